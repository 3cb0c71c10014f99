"""Models that never answered are no contestants, and `remove` takes others out of a set."""

from __future__ import annotations

import json
from itertools import cycle

import pytest
from msgspec.structs import replace

from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline.run import session
from botchat.records import UNANSWERED, Dialogue, Judgment
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace
from tests.integration.test_runs import KEY, MODELS, commands, stage_files, workspace
from tests.openai_server import Server, by_model, converse, faults


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """A call is given up at once."""
    monkeypatch.setattr(session, "Retry", lambda: Retry(attempts=1, first_s=0.0))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def run(folder, command, code=0):
    """A command in the workspace."""
    assert main([*command, "--dir", str(folder)]) == code


def of_one(name):
    """`generate` of one model."""
    return ["generate", "--seeds", "small", "--turns", "8", "--model", name]


@pytest.mark.parametrize(
    "fault",
    [
        faults.model_not_found("beta"),
        faults.server_error(503),
    ],
)
def test_a_model_that_never_answered_is_no_contestant(tmp_path, capsys, fault):
    """No file of it, nobody judges it, no board has it; when it answers, it is one."""
    with Server(by_model({"beta": fault})) as server:
        folder = workspace(tmp_path / "w", server)
        run(folder, next(commands()), code=1)
        assert sorted(Workspace(folder).all_dialogues("small")) == ["alpha", "gamma"]
        assert not [name for name in stage_files(folder) if "beta" in name]
        run(folder, ["judge", "unieval", "--seeds", "small", "--judge", "rules"])
        capsys.readouterr()
        run(folder, ["leaderboard", "--seeds", "small", "--json"])
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert {row["model"] for row in rows} == {"alpha", "gamma", "human"}
        server.play(converse)
        run(folder, next(commands()))
        assert sorted(Workspace(folder).all_dialogues("small")) == sorted(MODELS)


def test_what_a_killed_run_left_of_a_silent_model_does_not_count(tmp_path, capsys):
    """Unanswered dialogues on disk: no contestant; beside answered ones: the board says so."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        run(folder, next(commands()))
        there = Workspace(folder)
        for name, n_left in (("beta", 0), ("gamma", 5)):
            path = there.dialogues_path("small", name)
            made = store.read(path, Dialogue)
            stopped = [
                replace(d, utterances=d.utterances[:5], facts=d.facts[:3], status=f"stopped:{why}")
                for d, why in zip(made[n_left:], cycle(UNANSWERED), strict=False)
            ]
            store.finish(path, [*made[:n_left], *stopped], lambda d: d.seed_id)
        run(folder, ["judge", "unieval", "--seeds", "small", "--judge", "rules"])
        capsys.readouterr()
        run(folder, ["leaderboard", "--seeds", "small", "--json"])
        board = json.loads(capsys.readouterr().out)
        assert {row["model"] for row in board["rows"]} == {"alpha", "gamma", "human"}
        run(folder, ["leaderboard", "--seeds", "small"])
        assert "8 of beta, 3 of gamma" in capsys.readouterr().out
        run(folder, next(commands()))
        assert server.n_repeated == 0
        run(folder, ["leaderboard", "--seeds", "small"])
        assert "of beta" not in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["unieval", "gteval"])
def test_a_judge_that_never_answered_has_not_judged(tmp_path, capsys, protocol):
    """It does not stand beside the one that has, also where a kill left its file."""
    with Server(by_model({"umpire": faults.server_error(503)})) as server:
        folder = workspace(tmp_path / "w", server)
        run(folder, next(commands()))
        run(folder, ["judge", protocol, "--seeds", "small", "--judge", "rules"])
        run(folder, ["judge", protocol, "--seeds", "small", "--judge", "umpire"], code=1)
        assert set(Workspace(folder).judgment_files("small")) == {"rules"}
        path = Workspace(folder).judgments_path("small", protocol, "rules")
        left = [
            Judgment(
                j.protocol, j.seed_id, j.contestants, "umpire", None, "", j.shown, j.case, "s",
                outcome="transport",
            )
            for j in store.read(path, Judgment)
        ]  # fmt: skip
        other = Workspace(folder).judgments_path("small", protocol, "umpire")
        store.finish(other, left, lambda j: (j.seed_id, j.contestants))
        capsys.readouterr()
        run(folder, ["leaderboard", "--seeds", "small"])
        server.play(converse)
        run(folder, ["judge", protocol, "--seeds", "small", "--judge", "umpire"])
        assert set(Workspace(folder).judgment_files("small")) == {"rules", "umpire"}


def test_a_removed_model_is_gone_and_comes_back_at_no_cost(tmp_path, capsys):
    """Its dialogues and every judgment with it, not the others'; again, byte for byte, unpaid."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        for command in commands():
            run(folder, command)
        whole, paid = stage_files(folder), server.n_received
        capsys.readouterr()
        run(folder, ["remove", "--seeds", "small", "--model", "beta", "--json"])
        said = json.loads(capsys.readouterr().out)
        gone = sum(text.count(b"\n") for text in whole.values())
        left = stage_files(folder)
        assert all(b'"beta"' not in text for text in left.values())
        assert said["removed"] == "beta"
        assert said["dialogues"] == 8
        assert said["judgments"] == gone - 8 - sum(text.count(b"\n") for text in left.values())
        for command in commands():
            without = [part for part in command if part != "beta"]
            if "--model" in command:
                without = of_one("alpha")
            run(folder, without)
        assert stage_files(folder) == left
        for command in commands():
            run(folder, command)
        assert stage_files(folder) == whole
        assert server.n_received == paid


def test_cross_play_and_judges_are_removed_by_the_name_on_the_board(tmp_path, capsys):
    """`a + b` is a contestant of its own; a judge takes all its verdicts along."""
    bots = [
        "generate",
        "--seeds",
        "sample",
        "--model",
        "bot:verbose",
        "--limit",
        "3",
        "--turns",
        "4",
    ]
    run(tmp_path, bots)
    run(tmp_path, [*bots, "--partner", "bot:parrot"])
    run(tmp_path, ["judge", "arena", "--seeds", "sample", "--judge", "rules", "--turns", "4"])
    run(tmp_path, ["judge", "unieval", "--seeds", "sample", "--judge", "rules"])
    run(tmp_path, ["remove", "--seeds", "sample", "--model", "bot:verbose + bot:parrot"])
    assert list(Workspace(tmp_path).all_dialogues("sample")) == ["bot:verbose"]
    assert not list((tmp_path / "judgments").rglob("arena*/*.jsonl"))
    run(tmp_path, ["remove", "--seeds", "sample", "--judge", "rules"])
    assert Workspace(tmp_path).judgment_files("sample") == {}
    assert list(Workspace(tmp_path).all_dialogues("sample")) == ["bot:verbose"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "either --model MODEL or --judge JUDGE"),
        (["--model", "a", "--judge", "b"], "either --model MODEL or --judge JUDGE"),
        (["--model", "human"], "human is the set's own dialogues"),
        (["--model", "nobody"], "'nobody' on the set 'sample'; there are: "),
        (["--judge", "nobody"], "'nobody' on the set 'sample'; there are: "),
    ],
)
def test_what_cannot_be_removed_is_one_line(tmp_path, capsys, flags, said):
    """And nothing is made."""
    run(tmp_path, ["remove", "--seeds", "sample", *flags], code=1)
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
