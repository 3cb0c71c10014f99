"""`judge --anchors`: the same cases on every day, what they cost, and when a judge has changed."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta

import pytest

from botchat.cli.main import main
from botchat.measures.drift import drift
from botchat.pipeline import judge as judging
from tests.integration.test_panel_runs import workspace
from tests.openai_server import Server, text

ANCHORS = 30


class Umpire:
    """Says the same on every prompt until it has changed: then it turns three of five around."""

    changed = False

    def __call__(self, call):
        """A verdict of the Arena, by the prompt."""
        drawn = int(hashlib.sha256(call.messages[-1]["content"].encode()).hexdigest(), 16)
        first = bool(drawn & 1) != (self.changed and drawn // 2 % 5 < 3)
        return text(f"Choice: Conversation {1 if first else 2}; Reason: so")


@pytest.fixture
def on_day(monkeypatch):
    """Sets the day."""

    def on(day: int) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime(2026, 3, 1, tzinfo=tz) + timedelta(days=7 * day)

        monkeypatch.setattr(judging, "datetime", Clock)

    return on


def command(folder, *more):
    """Judge the Arena of two bots at N = 4, or its anchors."""
    asked = ["judge", "arena", "--seeds", "small", "--turns", "4", "--dir", str(folder), *more]
    return asked if "--judge" in more else [*asked, "--judge", "umpire"]


def test_a_judge_that_changed_is_found_and_the_board_says_so(tmp_path, capsys, on_day):
    """Each day costs its anchors, what the plan says; a day asked twice costs nothing."""
    umpire = Umpire()
    with Server(umpire) as server:
        folder = workspace(tmp_path / "w", server, "", n_seeds=40)
        assert main(command(folder)) == 0
        verdicts = (folder / "judgments").rglob("*.jsonl")
        before = {path: path.read_bytes() for path in verdicts}
        anchors = ("--anchors", str(ANCHORS))
        for day in range(4):
            on_day(day)
            sent = server.n_received
            capsys.readouterr()
            assert main(command(folder, *anchors, "--plan", "--json")) == 0
            planned = {row["calls"] for row in json.loads(capsys.readouterr().out)["rows"]}
            assert (planned, server.n_received) == ({ANCHORS}, sent)
            for _ in range(2):
                assert main(command(folder, *anchors)) == 0
            assert server.n_received == sent + ANCHORS
        assert (
            "arena-n4: anchors asked again on 4 days: 0 of 120 (0 %) differ"
            in capsys.readouterr().out
        )
        umpire.changed = True
        codes = []
        for day in range(4, 8):
            on_day(day)
            capsys.readouterr()
            codes.append(main(command(folder, *anchors)))
        assert codes[-1] == 4
        assert set(codes) <= {0, 4}
        said = capsys.readouterr().err
        assert (
            "umpire by its arena-n4: anchors asked again on 8 days: the judge has changed" in said
        )
        assert "about 2026-03-29" in said
    days = sorted((folder / "anchors" / "small" / "arena-n4").glob("*.jsonl"))
    shown = [
        {
            (one["seed_id"], *one["contestants"])
            for one in map(json.loads, path.read_text().splitlines())
        }
        for path in days
    ]
    assert len(days) == 8
    assert all(one == shown[0] for one in shown)
    assert {path: path.read_bytes() for path in before} == before
    assert main(["leaderboard", "--seeds", "small", "--no-png", "--dir", str(folder)]) == 0
    board = (folder / "leaderboards" / "small" / "leaderboard.md").read_text()
    assert (
        "arena-n4, anchors asked again on 8 days: the judge has changed about 2026-03-29" in board
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--anchors", "0"), "--anchors 0: give a number of cases"),
        (("--anchors", "5", "--control"), "leave --control out"),
        (("--anchors", "5", "--judge", "rules"), "the rules judge never changes"),
        (("--anchors", "5"), "umpire has no readable verdict"),
    ],
)
def test_what_has_no_anchors_is_told_in_a_line(tmp_path, capsys, more, said):
    """Before anything is sent."""
    with Server(Umpire()) as server:
        folder = workspace(tmp_path / "w", server, "", n_seeds=1)
        capsys.readouterr()
        assert main(command(folder, *more)) == 1
        assert said in capsys.readouterr().err
        assert server.n_received == 0


@pytest.mark.parametrize("base", [0, 2, 12])
def test_a_steady_rate_is_no_drift_and_a_rise_is(base):
    """Of 60; the first day may be anything, and what falls is no alarm."""
    steady = [(f"day {i}", base, 60) for i in range(52)]
    assert drift(steady).e < 1
    assert drift([("day 0", base, 60)]).e < 1
    assert drift([]).e == 0
    risen = drift([*steady[:10], *((f"later {i}", base + 9, 60) for i in range(10))])
    assert risen.alarm
    assert risen.days[risen.since][0] == "later 0"
    assert f"{10 * base} of 600" in str(risen)
    assert f"{10 * (base + 9)} of 600" in str(risen)
    assert not drift(risen_turned(base)).alarm


def risen_turned(base):
    """Days on which fewer and fewer verdicts differ."""
    return [(f"day {i}", base + 9 if i < 10 else base, 60) for i in range(20)]
