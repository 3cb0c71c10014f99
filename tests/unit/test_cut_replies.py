"""A member of a debate that goes on as another: cut, counted, and never heard."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from botchat.judges.debate import strip_other_speakers
from botchat.judges.panel import build_panel
from botchat.protocols.answers import AnswerPair, pair_case
from botchat.workspace.panels import AgentSettings, PanelSettings
from tests.scripted import Scripted

PROMPT = "[Question]\nWhy?\n\n[The Start of Assistant 1’s Answer]\nx\n\n[General Public]: hello"
OWN = "The first answer is clearer.\nScore of Assistant 1: 7\nScore of Assistant 2: 5\n"


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (f"{OWN}[Critic]: I disagree.\nScore of Assistant 1: 2", OWN),
        (f"{OWN}**[Critic]**: I disagree.", OWN),
        (f"{OWN}[critic] I disagree.", OWN),
        (f"{OWN}Critic: I disagree.", OWN),
        (f'{OWN}@Critic: you wrote "Score of Assistant 1: 5" and that is low.', OWN),
        (f"{OWN}> @Critic: no.\nmore", OWN),
        (f"{OWN}[Question]\nWhat else?", OWN),
        (f"{OWN}  [The Start of Assistant 1’s Answer]\ny", OWN),
        (f"{OWN}[Scientist]: z\n[Critic]: w", OWN),
        # An address at the start, its own name, and a name within a line are the member's own.
        (OWN, ...),
        (f"Critic: you overlook the date.\n{OWN}", ...),
        (f"@Critic: you overlook the date.\n{OWN}", ...),
        (f"[General Public]: {OWN}", ...),
        (f"{OWN}Critic's point about dates is fair.", ...),
        (f"{OWN}I agree with [Critic]: it is dated.", ...),
        (f"{OWN}[note] nothing else", ...),
        # Another's from the start: its vote would be another's.
        (f"[Critic]: {OWN}", ""),
    ],
)
def test_a_reply_ends_where_another_begins(reply, kept):
    """At the first line that begins with a member's name, or with a heading of the question."""
    kept = reply if kept is ... else kept
    assert strip_other_speakers(reply, ("Critic", "Scientist"), PROMPT) == kept


def test_a_debate_hears_and_counts_only_what_is_ones_own():
    """The vote, the history and the record; how much was cut is kept."""
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
    assert {remark.cut for remark in others} == {msgspec.UNSET}
    assert b'"cut"' not in msgspec.json.encode(others[0])
