"""The judge's own table: lengths it prefers, and humans and machines it calls AI."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from botchat.boards.judge_table import judge_table
from botchat.boards.protocols import ProtocolVerdicts
from botchat.protocols.catalogue import ARENA
from botchat.records import HUMAN, Judgment
from botchat.verdicts import Verdicts
from tests.boards import judgment, make_records

RECORDS = make_records({"short": 0.5, "long": 0.5}, 6)
DIALOGUES = {
    name: {
        seed_id: msgspec.structs.replace(
            dialogue, utterances=("Hi there.", "Hello.", *["word " * times] * 6)
        )
        for seed_id, dialogue in RECORDS.dialogues[name].items()
    }
    for name, times in (("short", 1), ("long", 3))
}


def row_of(judgments: list[Judgment]) -> dict[str, object]:
    """The row of one pairwise protocol."""
    judged = ProtocolVerdicts(ARENA.at(8), (), Verdicts.of(judgments, ARENA))
    (row,) = judge_table([judged], DIALOGUES, ["x"]).records
    return row


def test_the_longer_dialogue_has_more_words_of_those_shown():
    """Of five: two for the longer, one for the shorter, a tie, an unreadable one."""
    verdicts = [("S-1", ("short", "long"), "1"), ("S-1", ("long", "short"), "2"),
                ("S-2", ("long", "short"), "1"), ("S-3", ("long", "short"), "both"),
                ("S-4", ("long", "short"), None)]  # fmt: skip
    judgments = [judgment("arena-n8", s, pair, verdict, 8) for s, pair, verdict in verdicts]
    row = row_of(judgments)
    assert row["longer_preferred"] == pytest.approx(2 / 3, abs=1e-4)
    assert (row["judged"], row["unreadable"], row["unreadable_rate"]) == (5, 1, 0.2)
    # Cut before the first generated utterance both are as long.
    cut = [msgspec.structs.replace(j, shown=2) for j in judgments]
    assert "longer_preferred" not in row_of(cut)


def test_rates_of_calling_ai_by_hand():
    """Of humans, of everybody generated, of bots; who cannot tell calls nobody AI."""
    records = make_records({"m": 0.5, "bot:parrot": 0.1}, 6)
    verdicts = {
        HUMAN: ["No", "4", "No", None, "Undecided"],
        "m": ["3", "No", "Yes", "Undecided"],
        "bot:parrot": ["3", "5", None],
    }
    judgments = [
        judgment("unieval", f"S-{i}", (name,), verdict)
        for name, each in verdicts.items()
        for i, verdict in enumerate(each, 1)
    ]
    board = replace(records, judgments={"unieval": judgments}).board()
    row = board.judge_facts["unieval"]
    assert (row["judged"], row["unreadable"]) == (12, 2)
    assert row["false_positive_rate"] == pytest.approx(1 / 3)
    assert row["true_positive_rate"] == pytest.approx(4 / 5)
    assert row["true_positive_rate_bots"] == 1
    assert row["true_positive_rate_low"] < 4 / 5 < row["true_positive_rate_high"]
