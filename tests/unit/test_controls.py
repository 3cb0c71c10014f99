"""What a panel is measured against: its own opening votes, and one judge asked as often."""

from __future__ import annotations

import pytest

from botchat.judges.debate import SWAPPED
from botchat.judges.panel import calls, equal_calls_panel, is_debate, votes_before_debate
from botchat.protocols.catalogue import ARENA
from botchat.records import Judgment, Remark
from botchat.workspace.panels import (
    DECOMPOSER,
    FEEDBACK,
    PRESETS,
    SUMMARIZER,
)


def judgment(transcript, verdict="1", protocol="arena-n4", contestants=("a", "b")):
    """What a panel left behind."""
    turns = tuple(transcript)
    made = tuple(turn.call for turn in turns)
    return Judgment(protocol, "s1", contestants, "p", verdict, "", 4, "d", "s", "ok", turns, made)


def turn(speaker, vote, call="k"):
    """One contribution."""
    return Remark(speaker, "said", call, "ok", vote)


def test_votes_of_a_talk_are_counted_as_the_panel_counts_them():
    """On the swapped order turned back; an index by which more than half accuse."""
    opening = [turn("A", "1", "k1"), turn("A", "2", "k2")]
    mirrored = [turn(f"A{SWAPPED}", "1", "k3"), turn(f"A{SWAPPED}", "1", "k4")]
    (control,) = votes_before_debate(
        [judgment([*opening, *mirrored])], lambda _: ARENA.reading().choices
    )
    assert control.verdict == "neither"
    assert control.calls == ("k1", "k3")
    opening = [turn("A", "3"), turn("B", "No"), turn("C", "5"), turn("D", None)]
    made = judgment([*opening, *opening], "3", "unieval", ("m",))
    (control,) = votes_before_debate([made], lambda _: {"No", "1"})
    assert control.verdict == "5"


@pytest.mark.parametrize(
    ("speakers", "expected"),
    [
        ([], False),
        (["judge"], False),
        (["A", "B"], False),
        (["A", "B", f"A{SWAPPED}", f"B{SWAPPED}"], False),
        (["A", SUMMARIZER], False),
        (["A", "B", "A", "B"], True),
        (["A", "B", FEEDBACK, SUMMARIZER], True),
        ([DECOMPOSER, "A", "B", "A", "B"], False),
    ],
)
def test_only_those_who_heard_each_other_have_talked(speakers, expected):
    """Singles, ensembles and single reports have no votes before a talk."""
    assert is_debate([judgment([turn(speaker, "1") for speaker in speakers])]) is expected


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("chateval-default", 4),
        ("chateval-3-roles-simultaneous", 6),
        ("chateval-3-roles-summarizer", 8),
        ("chateval-ensemble", 3),
        ("faireval-mec-bpc", 3),
        ("mateval-sa", 2),
        ("mateval-one-by-one", 3 * 3 + 2),
        ("mateval-sr", 3 * 5 + 2),
        ("mateval-cot", 1 + 3 * 3 + 2),
        ("mateval-sr-cot", 1 + 3 * 5 + 2),
    ],
)
def test_the_control_is_asked_as_often_as_the_panel(preset, expected):
    """Calls of a talk in one order; position calibration is the control's too."""
    settings = PRESETS[preset]
    control = equal_calls_panel(settings, "m")
    assert calls(settings) == calls(control) == expected
    assert control.position_calibration == settings.position_calibration
    assert (control.strategy, control.temperature) == ("ensemble", 1.0)
    assert [member.role for member in control.members] == [None]
