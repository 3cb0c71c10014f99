"""A member of a debate that goes on as another: cut, counted, and never heard."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from botchat.boards.judge_health import sureness
from botchat.judges.debate import strip_other_speakers
from botchat.judges.panel import build_panel
from botchat.protocols.answers import AnswerPair, pair_case
from botchat.records import Judgment, Remark
from botchat.workspace.panels import AgentSettings, PanelSettings
from tests.scripted import Scripted

PROMPT = "[Question]\nWhy?\n\n[The Start of Assistant 1’s Answer]\nx\n\n[General Public]: hello"
OWN = "The first answer is clearer.\nScore of Assistant 1: 7\nScore of Assistant 2: 5\n"


@pytest.mark.parametrize(
    "more",
    [
        "[Critic]: I disagree.\nScore of Assistant 1: 2",
        "**[Critic]**: I disagree.",
        "[critic] I disagree.",
        "Critic: I disagree.",
        '@Critic: you wrote "Score of Assistant 1: 5" and that is low.',
        "> @Critic: no.\nmore",
        "[Question]\nWhat else?",
        "  [The Start of Assistant 1’s Answer]\ny",
        "[Scientist]: z\n[Critic]: w",
    ],
)
def test_a_reply_ends_where_another_begins(more):
    """At the first line that begins with a member's name, or with a heading of the question."""
    assert strip_other_speakers(OWN + more, ("Critic", "Scientist"), PROMPT) == OWN


@pytest.mark.parametrize(
    "reply",
    [
        OWN,
        "Critic: you overlook the date.\n" + OWN,
        "@Critic: you overlook the date.\n" + OWN,
        "[General Public]: " + OWN,
        OWN + "Critic's point about dates is fair.",
        OWN + "I agree with [Critic]: it is dated.",
        OWN + "[note] nothing else",
    ],
)
def test_what_is_ones_own_stays(reply):
    """An address at the start, one's own name, and a name within a line."""
    assert strip_other_speakers(reply, ("Critic", "Scientist"), PROMPT) == reply


def test_a_reply_that_is_another_from_the_start_says_nothing():
    """Its vote would be another's."""
    assert strip_other_speakers("[Critic]: " + OWN, ("Critic",), PROMPT) == ""
    assert strip_other_speakers("[Critic]: " + OWN, (), PROMPT) == "[Critic]: " + OWN


def test_a_debate_hears_and_counts_only_what_is_ones_own():
    """The vote, the history and the record; how much was cut is kept, and shown on the board."""
    goes_on = f"{OWN}[Critic]: no.\nScore of Assistant 1: 1\nScore of Assistant 2: 9\n"
    models = {"a": Scripted([goes_on, OWN]), "b": Scripted([OWN, OWN])}
    members = tuple(
        AgentSettings(name=name, text="x", model=model)
        for name, model in (("General Public", "a"), ("Critic", "b"))
    )
    settings = PanelSettings(strategy="one-by-one", agents=members)
    judge = build_panel("p", settings, models.__getitem__, None)
    pair = AnswerPair("q", "Why?", ("m", "n"), ("x", "y"), None)
    answer = asyncio.run(judge.answer(pair_case(pair)))
    assert answer.verdict == "7 5"
    first, *others = answer.transcript
    assert (first.verdict, first.cut) == ("7 5", len(goes_on) - len(OWN))
    assert all("no." not in prompt for prompt in models["b"].prompts)
    assert {one.cut for one in others} == {msgspec.UNSET}
    assert b'"cut"' not in msgspec.json.encode(others[0])
    judged = Judgment(
        "answers", "q", ("m", "n"), "p", "7 5", "", 1, "", "", "ok", answer.transcript
    )
    assert sureness([judged])["cut"] == pytest.approx(1 / len(answer.transcript))
    quiet = msgspec.structs.replace(judged, transcript=(Remark("Critic", OWN),))
    assert "cut" not in sureness([quiet])
