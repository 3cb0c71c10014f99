"""Marks of a chat template, another speaker's turn, loops and cut replies are named."""

from __future__ import annotations

import pytest

from botchat.metrics.reply_faults import dialogue_faults, fault_notes, find_mark, is_loop
from botchat.records import Dialogue, Utterance


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Fine.<|im_end|>", "<|im_end|>"),
        ("Hi <start_of_turn>model", "<start_of_turn>"),
        ("[INST] Go on", "[INST]"),
        ("Yes.</s>", "</s>"),
        ("Fine, thanks.\nUser: And you?", "User:"),
        ("Plan B: we walk. 2 < 3 | 4 > 1", ""),
        ("I said:\nthat is it", ""),
    ],
)
def test_a_mark_is_found_and_nothing_else(text, mark):
    """Plain sentences have none."""
    assert find_mark(text) == mark


def test_a_loop_is_twelve_of_fourteen():
    """A short dialogue is none."""
    assert is_loop(["Bye."] * 12 + ["a", "b"])
    assert not is_loop(["Bye."] * 11 + ["a", "b", "c"])
    assert not is_loop(["Bye."] * 6)


def test_the_board_names_models_with_marks_and_cut_replies():
    """With their numbers; bots and humans are left out."""
    facts = (Utterance("truncated"), Utterance("ok"))
    utterances = ("Hi.", "Ho.", "Well<|im_end|>", "Yes.")
    dialogue = Dialogue("s", "m", utterances, 2, facts, "complete", "sig")
    assert [kind for kind, _ in dialogue_faults(dialogue)] == ["mark"]
    notes = [*fault_notes({"m": {"s": dialogue}, "human": {"s": dialogue}})]
    assert notes == [
        "Replies with marks of a chat template or another speaker: m 1 of 2.",
        "Replies cut by max_tokens: m 50 %.",
    ]
