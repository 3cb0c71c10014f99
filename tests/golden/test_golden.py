"""One digest a file of seven kinds of run: what a change moves is seen, and said in its commit.

Numbers of tables are as they were at 6162e234 (``numbers/``, recorded before features were taken
away): a table or a column may go, a number that stays does not change.

``pytest tests/golden --update-golden`` writes the digests anew and prints which moved.
"""

import contextlib
import hashlib
import json
import platform
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from botchat.workspace import ledger
from tests.golden.families import FAMILIES, SHARED
from tests.golden.numbers import moved, numbers

HERE = Path(__file__).parent
NOT_MADE = {"lock", "ledger.sqlite3-shm", "ledger.sqlite3-wal"}
"""Of ``.botchat/``: nothing at all, or what SQLite keeps beside the ledger."""


def digest(path: Path, folder: Path) -> str:
    """Of what a file says, wherever folders are; of a ledger, its calls and their answers."""
    if path.suffix == ".sqlite3":
        with contextlib.closing(sqlite3.connect(path)) as db:
            # Not digests of rows: they cover when each was asked, and how long it took.
            said = sorted(db.execute("SELECT key, model, outcome, text FROM calls"))
        return hashlib.sha256(repr(said).encode()).hexdigest()[:16]
    contents = path.read_bytes()
    for place, name in ((folder, b"DIR"), (SHARED, b"SHARED")):
        contents = contents.replace(str(place).encode(), name)
    return hashlib.sha256(contents).hexdigest()[:16]


def digests(folder: Path) -> dict[str, str]:
    """Of every file of a workspace, by its path there."""
    return {
        path.relative_to(folder).as_posix(): digest(path, folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_MADE
    }


@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="other systems' numerics differ in the last digit",
)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_file_is_as_it_was(name, tmp_path, monkeypatch, request):
    """Each run writes the files that are listed, with the bytes that are listed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # `measured/` says on which day a model was asked.
    monkeypatch.setattr(ledger, "time", SimpleNamespace(time=lambda: 1_763_900_000.0))
    folder = tmp_path / "run"
    if name == "demo":  # so a second demo changes nothing
        shutil.copytree(request.getfixturevalue("demo_folder"), folder)
    else:
        folder.mkdir()
    FAMILIES[name](folder)
    found, kept = digests(folder), HERE / f"{name}.json"
    recorded = json.loads((HERE / "numbers" / f"{name}.json").read_text())
    assert set(recorded) & set(numbers(folder))
    assert not moved(recorded, numbers(folder)), "numbers of 6162e234"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    changed = sorted(path for path in {*found, *known} if found.get(path) != known.get(path))
    if request.config.getoption("--update-golden"):
        kept.write_text(json.dumps(found, indent=0) + "\n")
        print(f"\n{name}: {len(changed)} of {len({*found, *known})} moved", *changed, sep="\n  ")
        return
    assert len(found) > 1
    assert not changed, f"{changed[:40]} moved; if that is meant: --update-golden, and say why"
