"""Stage 1: who speaks, what is dropped, when a dialogue stops."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat import prompts
from botchat.interfaces import Decoding, Quirks, Reply, reply_tokens
from botchat.protocols import generation
from botchat.protocols.generation import (
    Speaker,
    TokenCounter,
    chat_messages,
    drop_oldest,
    generate_dialogue,
    prompt_tokens,
)
from botchat.records import Dialogue, Seed, Utterance
from tests.rows import rows
from tests.scripted import Scripted

SEED = Seed("s1", ("Hello there, how are you?", "Fine, and you?", "a human third", "a fourth"))
WORDS = TokenCounter(exact=lambda text: len(text.split()), estimate=lambda text: len(text.split()))


def run(*models, turns=8, max_tokens=100):
    """Extend the seed."""
    speakers = [Speaker(model, Decoding(0.0, max_tokens)) for model in models]
    return asyncio.run(generate_dialogue(SEED, speakers, turns, WORDS, lambda: "sig"))


def test_a_dialogue_grows_utterance_by_utterance_from_the_chatseed():
    """Algorithm 1; the rest of the human dialogue is never shown; two models take turns."""
    model = Scripted([f"reply {n}" for n in range(1, 7)], "m")
    made = run(model)
    assert made.utterances == (*SEED.utterances[:2], *(f"reply {n}" for n in range(1, 7)))
    assert (made.status, made.n_seed, made.model, made.partner) == ("complete", 2, "m", None)
    assert [fact.tokens for fact in made.facts] == [2] * 6
    assert [fact.call for fact in made.facts] == [f"m-{n}" for n in range(6)]
    assert model.messages[0][0] == {"role": "system", "content": prompts.text("generation")}
    assert [m["role"] for m in model.messages[0]] == ["system", "assistant", "user"]
    assert [m["role"] for m in model.messages[1]] == ["system", "user", "assistant", "user"]
    assert not any("human third" in m["content"] for seen in model.messages for m in seen)
    one = Scripted(["one 1", "one 2"], "one")
    two = Scripted(["two 1", "two 2"], "two")
    made = run(one, two, turns=6)
    assert made.utterances[2:] == ("one 1", "two 1", "one 2", "two 2")
    assert made.contestant == "one + two"
    assert two.messages[0][-1] == {"role": "user", "content": "one 1"}


@pytest.mark.parametrize("outcome", ["refused", "filtered", "empty", "malformed", "transport"])
def test_a_dialogue_stops_where_no_utterance_comes(outcome):
    """A failure is a status with its reason, never an utterance."""
    failure = Reply(outcome, text="Failed to obtain answer", detail="why")
    made = run(Scripted(["r1", "r2", failure]))
    assert made.status == f"stopped:{outcome}"
    assert made.detail == "why"
    assert made.utterances[2:] == ("r1", "r2")
    assert len(made.facts) == 2


def test_a_truncated_utterance_is_kept_and_marked():
    """Cut at max_tokens is still said; the record says so."""
    cut = Reply("truncated", text="and then I", key="k")
    made = run(Scripted([cut, "fine"]), turns=4)
    assert made.status == "complete"
    assert [fact.outcome for fact in made.facts] == ["truncated", "ok"]


def test_a_known_window_drops_the_oldest_beforehand():
    """Prompts fit window minus the reply's share; how many were dropped is on record."""
    system = len(prompts.text("generation").split())
    model = Scripted("one two three four five")
    model.context_window = (system + 60) * 4 // 3
    made = run(model, turns=16)
    assert made.status == "complete"
    dropped = [fact.dropped for fact in made.facts]
    assert dropped[0] == 0
    assert dropped == sorted(dropped)
    assert dropped[-1] > 0
    for seen, fact, said in zip(model.messages, made.facts, range(2, 16), strict=True):
        assert len(seen) == 1 + said - fact.dropped
        assert seen[0]["role"] == "system"


def test_an_unknown_window_is_found_by_dropping_one_at_a_time():
    """Each overflow drops one more; the utterance to answer is never dropped."""
    small = Reply("overflow", detail="too long")
    model = Scripted(["ok then", *["ok then", small] * 4, "ok then"])
    made = run(model)
    assert made.status == "complete"
    assert [fact.dropped for fact in made.facts] == [0, 0, 1, 2, 3, 4]
    assert [len(seen) for seen in model.messages] == [3, 4, *[5, 4] * 4]
    model = Scripted(small)
    made = run(model)
    assert made.status == "stopped:overflow"
    assert len(model.messages) == 2


# Layouts, truncation and think blocks.

words = st.lists(st.sampled_from(["a", "bb cc", "d e f g"]), min_size=1, max_size=9)


@given(utterances=words, window=st.integers(1, 60), reserve=st.integers(0, 20))
def test_truncation_drops_the_oldest_and_no_more_than_needed(utterances, window, reserve):
    """What is left fits, one utterance more would not, and the last one always stays."""

    def count(text):
        return len(text.split())

    messages = chat_messages("S S", utterances)
    drop_oldest(messages, window - reserve, count)
    dropped = len(utterances) + 1 - len(messages)
    assert 0 <= dropped < len(utterances)
    assert messages == chat_messages("S S", utterances[dropped:])

    def size(n):
        return prompt_tokens(chat_messages("S S", utterances[n:]), count) + reserve

    if dropped < len(utterances) - 1:
        assert size(dropped) <= window
    if dropped:
        assert size(dropped - 1) > window


def test_a_reply_takes_a_quarter_of_the_window_at_most():
    """Small windows keep most of their room for the dialogue; of a learnt one it takes half."""
    model = Scripted("fine")
    for window, tokens in ((None, 2048), (2048, 512), (128_000, 2048)):
        model.context_window = window
        assert reply_tokens(model, 2048) == tokens
    model.context_window = 2048
    model.quirks = Quirks(context_window=2048)
    assert reply_tokens(model, 2048) == 1024


# Marks of a chat template, another speaker's turn, loops and cut replies are named.


@pytest.mark.parametrize(("text", "mark"), rows("a_mark_is_found_and_nothing_else"))
def test_a_mark_is_found_and_nothing_else(text, mark):
    """Plain sentences have none."""
    assert generation.find_mark(text) == mark


def test_a_loop_is_twelve_of_fourteen():
    """A short dialogue is none."""
    assert generation.is_loop(["Bye."] * 12 + ["a", "b"])
    assert not generation.is_loop(["Bye."] * 11 + ["a", "b", "c"])
    assert not generation.is_loop(["Bye."] * 6)


def test_the_board_names_models_with_marks_and_cut_replies():
    """With their numbers; bots and humans are left out."""
    facts = (Utterance("truncated"), Utterance("ok"))
    utterances = ("Hi.", "Ho.", "Well<|im_end|>", "Yes.")
    dialogue = Dialogue("s", "m", utterances, 2, facts, "complete", "sig")
    assert [kind for kind, _ in generation.dialogue_faults(dialogue)] == ["mark"]
    notes = [*generation.fault_clauses({"m": {"s": dialogue}, "human": {"s": dialogue}})]
    assert notes == [
        "replies with marks of a chat template or another speaker: m 1 of 2",
        "replies cut by max_tokens: m 50 %",
        "first replies that are the human ones word for word: m 1 of 1",
    ]
    assert len([*generation.fault_clauses({"m": {"s": dialogue}})]) == 2
