"""Boards from a store, on a machine that has nothing: the same bytes, of a few small files."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from botchat.cli.main import main
from botchat.errors import BotChatError, LimitReached
from botchat.requests import Generating, Judging
from botchat.requests.arguments import Limits, Spending
from botchat.requests.results import Told
from botchat.workspace import stages
from botchat.workspace.config import ClusterSettings
from botchat.workspace.folder import Workspace
from botchat.workspace.from_store import from_store
from botchat.workspace.store import Store
from tests.cluster.test_cluster import JUDGE, MODELS, workspace
from tests.openai_server import Server

BOARD = ["leaderboard", "--seeds", "few", "--judge", "umpire"]
BOARD += ["--no-png", "--format", "json", "--format", "eee"]
NUMBERS = ["share", "export", "--as", "eee", "--seeds", "few", "--judge", "umpire"]
"""All numbers of the board, without figures."""


def spending(place: object, **limits: object) -> Spending:
    """With a store."""
    return Spending(Limits(**limits), cluster=ClusterSettings(store=str(place)))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path; times of day are of a record, not of a board."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def told(capsys) -> tuple[int, int]:
    """Files and bytes that the last command read from a store."""
    found = re.search(r"read from \S+: (\d+) files, ([\d,]+) bytes", capsys.readouterr().err)
    return int(found[1]), int(found[2].replace(",", ""))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[tuple[Workspace, dict[str, dict[str, bytes]]]]:
    """A run of three judges, and the board of one, with figures and without."""
    with Server() as server:
        more = '[judges.second]\nmodel = "umpire"\nmax_tokens = 65\n'
        made = workspace(tmp_path_factory.mktemp("run"), server, more)
        Generating("few", MODELS, turns=6).run(made)
        for name in (JUDGE, "second", "rules"):
            Judging("arena", "few", name, turns=(3, 4)).run(made)
            Judging("unieval", "few", name).run(made)
        out, numbers = made.root / "board", made.root / "numbers"
        assert main([*BOARD, "--dir", str(made.root), "--out", str(out)]) == 0
        assert main([*NUMBERS, "--dir", str(made.root), "--out", str(numbers)]) == 0
        assert "cost-rating.svg" in contents(out)
        yield made, {"folder": contents(out), "other": contents(numbers)}


@pytest.fixture(params=["folder", "memory", "s3"])
def place(request, tmp_path) -> Iterator[str]:
    """A place of each kind."""
    if request.param == "s3":
        yield f"{request.getfixturevalue('bucket')}/one"
    elif request.param == "memory":
        yield "memory://runs/one"
        fsspec.filesystem("memory").rm("/runs", recursive=True)
    else:
        yield str(tmp_path / "store")


def test_a_board_from_a_store_has_the_bytes_of_the_workspaces_own(
    run, place, tmp_path, capsys, monkeypatch
):
    """Costs too; of the ledger nothing is read. Other judges' files are, only for a board.

    Its verdict on the judge holds that against them.

    Figures, which take their time, are compared once.
    """
    made, expected = run
    assert main(["ledger", "push", place, "--dir", str(made.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"pushed": 66, "records": 84}
    read, whole = [], Store.whole

    def watched(store, paths):
        found = whole(store, paths)
        read.extend(found.items())
        return found

    monkeypatch.setattr(Store, "whole", watched)
    monkeypatch.setattr(Store, "get", lambda *_: pytest.fail("a segment is read"))
    reader = tmp_path / "reader"
    if "://" in place:
        out = ["--out", str(reader / "numbers")]
        assert main([*NUMBERS, "--dir", str(reader), "--store", place, *out]) == 0
        assert contents(reader / "numbers") == expected["other"]
    else:
        assert main([*BOARD, "--dir", str(reader), "--store", place]) == 0
        assert contents(reader / "leaderboards" / "few") == expected["folder"]
    assert {path.name for path in reader.iterdir()} - {".botchat"} <= {"leaderboards", "numbers"}
    files = [path for path, _ in read]
    assert told(capsys) == (len(files), sum(len(data) for _, data in read))
    others = [file for file in files if "second" in file or "rules" in file]
    assert len(others) == (0 if "://" in place else 6)
    assert len(files) == 1 + 1 + 1 + 2 + 3 + len(others)


def test_the_other_commands_read_from_a_store_too(run, tmp_path, capsys, monkeypatch):
    """The same bytes; page and figure are of what was fetched. A fresh machine may pull, too."""
    made, _ = run
    store = str(tmp_path / "store")
    assert main(["ledger", "push", store, "--dir", str(made.root)]) == 0
    judges = ["--judge", "umpire", "--judge", "rules"]
    for command, out in (
        (["agree", "--protocol", "arena-n4", *judges], "--out"),
        (["share", "export", "--as", "jsonl"], "--out"),
    ):
        made_of = {}
        for place in (["--dir", str(made.root)], ["--dir", "/", "--store", store]):
            folder = tmp_path / command[0]
            assert main([*command, "--seeds", "few", *place, out, str(folder)]) == 0
            made_of[len(place)] = contents(folder)
            shutil.rmtree(folder)
        assert made_of[2] == made_of[4]
        assert made_of[2]
    drawn = []

    def draw(request, found, *_):
        of = request.seed_set
        drawn.append((found.out(of), {*found.judgment_files(of)}))
        return Told({})

    monkeypatch.setattr("botchat.pipeline.leaderboard.page", draw)
    monkeypatch.setattr("botchat.pipeline.plot.figure", draw)
    far = ["--seeds", "few", "--judge", "rules", "--store", store, "--dir", str(tmp_path)]
    assert main(["leaderboard", "page", *far]) == 0
    assert main(["leaderboard", "figure", "elo", *far, "--out", "elo.svg"]) == 0
    # A page's verdict on a judge holds it against the others.
    assert [judges for _, judges in drawn] == [{"rules", "second", "umpire"}, {"rules"}]
    assert {place for place, _ in drawn} == {tmp_path / "leaderboards" / "few"}
    fresh = tmp_path / "fresh"
    assert main(["ledger", "pull", store, "--dir", str(fresh), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"added": 66, "records": 80}
    for stage in ("seeds", "generations", "judgments", "measured"):
        assert contents(fresh / stage) == contents(made.root / stage)


def test_a_run_leaves_its_stage_files_whole_or_as_far_as_it_came(tmp_path, server, capsys):
    """At its end, at a limit; two heads with other models become one board."""
    store = tmp_path / "store"
    heads = [workspace(tmp_path / name, server) for name in "ab"]
    with pytest.raises(LimitReached):
        Generating("few", MODELS, turns=4).run(heads[0], spending(store, max_calls=8))
    assert stages.parts(Store(str(store)), "generations").keys() == {
        str(path.relative_to(heads[0].root)) for path in heads[0].root.rglob("generations/*/*")
    }
    for head, model in zip(heads, MODELS, strict=True):
        Generating("few", (model,), turns=4).run(head, spending(store))
        Judging("unieval", "few", JUDGE, (model,)).run(head, spending(store))
    with from_store(str(store), "few") as found:
        (path,) = found.judgment_files("few")["umpire"].values()
        assert {key[1] for key in found.judgments(path)} == {*((name,) for name in MODELS)}
        assert {*found.all_dialogues("few")} == {*MODELS}
    before = server.n_received
    assert main(["ledger", "pull", str(store), "--dir", str(heads[0].root)]) == 0
    Generating("few", MODELS, turns=4).run(heads[0])
    Judging("unieval", "few", JUDGE, MODELS).run(heads[0])
    assert server.n_received == before


@pytest.mark.parametrize("wrong", ["a file", "no bucket", "no server", "no keys"])
def test_a_store_that_cannot_be_used_costs_nothing(wrong, tmp_path, server, monkeypatch, request):
    """One line, before a call is sent, and before anything is read."""
    place = tmp_path / "store"
    if wrong == "a file":
        place.write_text("")
    else:
        place = f"{request.getfixturevalue('bucket')}{'x' if wrong == 'no bucket' else ''}/one"
    if wrong == "no server":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    elif wrong == "no keys":
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    made = workspace(tmp_path / "w", server)
    with pytest.raises(BotChatError, match=rf"cannot use the store {re.escape(str(place))}: \w"):
        Generating("few", MODELS, turns=4).run(made, spending(place))
    assert server.n_received == 0
    assert not (made.root / "generations").exists()


def test_what_a_store_does_not_have_is_named(run, tmp_path, capsys):
    """The place, the set, the judge; and a store that is only in the settings."""
    made, _ = run
    store = str(tmp_path / "store")
    board = ["leaderboard", "--dir", str(tmp_path), "--store"]
    assert main([*board, store, "--seeds", "few"]) == 1
    assert f"no stage files in the store {store}; a run with --store" in capsys.readouterr().err
    main(["ledger", "push", store, "--dir", str(made.root)])
    capsys.readouterr()
    for flags, said in (
        (["--seeds", "fwe"], "no judgments on fwe in the store .* (did you mean 'few'?); it has"),
        (["--seeds", "few", "--judge", "umpir"], "'umpir' has not judged few; judges who have: r"),
        (["--seeds", "few"], "several judges have judged few: name one"),
    ):
        assert main([*board, store, *flags]) == 1
        pattern = re.escape(said).replace(r"\.\*", ".*")
        assert re.search(pattern, capsys.readouterr().err)
    assert main(["agree", str(tmp_path / "votes.csv"), "--store", store]) == 1
    assert "say of which set" in capsys.readouterr().err
    assert main(["leaderboard", "page", "--seeds", "few", "--dir", "s3://bucket/run"]) == 1
    assert "a store is named by --store" in capsys.readouterr().err
    (tmp_path / "botchat.toml").write_text(f'[cluster]\nstore = "{store}"\n')
    assert main([*board[:-1], "--seeds", "few"]) == 1
    assert f"only if it is named: --store {store}" in capsys.readouterr().err
