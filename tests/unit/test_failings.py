"""Why a model fails: shares of flags by hand, and where they agree with the judge."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards.judge_health import judge_health
from botchat.boards.protocols import Evidence
from botchat.protocols.catalogue import ARENA
from botchat.records import Dialogue, Judgment
from botchat.verdicts import Verdicts
from tests.boards import judgment, made

OPENING = ("Did you catch the bus this morning?", "No, I walked along the river instead.")


# What a judge's own verdicts say about it.

PLAIN = made({"short": 0.5, "long": 0.5}, 6)


def dialogues() -> dict[str, dict[str, Dialogue]]:
    """Two models; from the third utterance on one says three times as many words."""
    found = {}
    for name, times in (("short", 1), ("long", 3)):
        found[name] = {
            seed_id: msgspec.structs.replace(
                one, utterances=("Hi there.", "Hello.", *["word " * times] * 6)
            )
            for seed_id, one in PLAIN.dialogues[name].items()
        }
    return found


def health(said: list[Judgment]) -> dict[str, object]:
    """The row of one pairwise protocol."""
    judged = Evidence(ARENA.at(8), (), Verdicts.of(said, ARENA))
    (row,) = judge_health([judged], dialogues(), ["x"]).records
    return row


def test_the_longer_one_is_the_one_with_more_words_of_those_shown() -> None:
    """Of five: two for the longer, one for the shorter, a tie, an unreadable one."""
    said = [
        judgment("arena-n8", "S-1", ("short", "long"), "1", 8),
        judgment("arena-n8", "S-1", ("long", "short"), "2", 8),
        judgment("arena-n8", "S-2", ("long", "short"), "1", 8),
        judgment("arena-n8", "S-3", ("long", "short"), "both", 8),
        judgment("arena-n8", "S-4", ("long", "short"), None, 8),
    ]
    row = health(said)
    assert row["longer_preferred"] == pytest.approx(2 / 3, abs=1e-4)
    assert (row["unreadable"], row["unreadable_rate"]) == (1, 0.2)
    # Cut before the first generated utterance both are as long.
    assert health([msgspec.structs.replace(one, shown=2) for one in said])[
        "longer_preferred"
    ] is None  # fmt: skip


@settings(max_examples=8)
@given(st.lists(st.sampled_from(["1", "2", "both", None]), min_size=6, max_size=6))
def test_showing_the_two_the_other_way_round_changes_no_taste_for_length(
    verdicts: list[str | None],
) -> None:
    """Names swapped and verdicts with them: who wins is the same."""
    swap = {"1": "2", "2": "1", "both": "both", None: None}
    said = [
        judgment("arena-n8", f"S-{i}", ("short", "long"), verdict, 8)
        for i, verdict in enumerate(verdicts, 1)
    ]
    other = [
        msgspec.structs.replace(one, contestants=("long", "short"), verdict=swap[one.verdict])
        for one in said
    ]
    assert health(said)["longer_preferred"] == health(other)["longer_preferred"]
