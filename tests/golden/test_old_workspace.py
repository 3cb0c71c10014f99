"""A workspace of 0.2 opens, is made again from its ledger without a call, and gives its board.

`tests/data/workspace-0.2.zip` was made at 6162e234 against a scripted server that is gone: four
seeds of the sample, three contestants, a single judge, a panel, the rules judge and an own
criterion; half of what `rules` has in the Arena was chosen adaptively.
"""

import json
import zipfile
from pathlib import Path

import pytest

from tests.golden.families import ROOT, said
from tests.golden.numbers import moved, numbers
from tests.golden.test_golden import HERE


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The workspace, unpacked."""
    with zipfile.ZipFile(ROOT / "tests" / "data" / "workspace-0.2.zip") as packed:
        packed.extractall(tmp_path / "old")
    settings = (
        tmp_path / "old" / "botchat.toml"
    )  # its keys have other names now, and other defaults
    text = settings.read_text().replace("lowest = 1\nhighest = 10", "scale = [1, 10]")
    for name, limit in {"ada": 2048, "umpire": 1024}.items():
        text = text.replace(
            f'model = "{name}"\nbase', f'model = "{name}"\nmax_tokens = {limit}\nbase'
        )
    settings.write_text(text.replace("numbers =", "scores ="))
    return tmp_path / "old"


def test_boards_keep_their_numbers(workspace):
    """Every number that is still there is the one of 6162e234."""
    for judge in ("umpire", "rules"):
        said(workspace, judge, "leaderboard", "--seeds", "sample", "--judge", judge,
             "--out", workspace / "boards" / judge)  # fmt: skip
    recorded = json.loads((HERE / "numbers" / "workspace-0.2.json").read_text())
    found = numbers(workspace)
    assert {f"boards/{judge}/leaderboard.csv" for judge in ("umpire", "rules")} <= set(found)
    assert not moved(recorded, found)


def test_made_again_without_a_call(workspace):
    """Dialogues and judgments come from the ledger, byte for byte; no server is there to ask."""
    made = [*workspace.glob("generations/*/*"), *workspace.glob("judgments/*/*/*")]
    gone = [path for path in made if "eliza" not in path.name and not _chosen(path)]
    before = {path: _kept(path) for path in gone}
    assert len(gone) == 10
    for path in gone:
        path.unlink()
    few = ["--seeds", "sample", "--limit", "4"]
    said(workspace, "generate", "generate", *few, "--model", "ada", "--model", "bot:parrot")
    for judge, protocols in {
        "umpire": ("unieval", "arena", "gteval", "empathy"),
        "rules": ("unieval", "gteval"),
    }.items():
        for protocol in protocols:
            said(workspace, "judge", "judge", protocol, *few, "--judge", judge)
    said(workspace, "pair", "judge", "gteval", "--seeds", "sample", "--limit", "2",
         "--judge", "pair")  # fmt: skip
    assert {path: _kept(path) for path in gone} == before


def _chosen(path: Path) -> bool:
    return b'"chosen":"adaptive"' in path.read_bytes()


def _kept(path: Path) -> bytes:
    """Without the empty field of 0.2 that said how the Arena chose its questions."""
    return path.read_bytes().replace(b',"chosen":""', b"")
