"""Why a model fails: shares of flags by hand, and where they agree with the judge."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards import flags as failings
from botchat.boards.judge_health import judge_health
from botchat.boards.protocols import Evidence
from botchat.languages import ENGLISH
from botchat.measures.flags import (
    CRITERIA,
    MEASURES,
    STYLE,
    Measured,
    Survey,
    floors,
    measure_all,
)
from botchat.protocols.catalogue import ARENA
from botchat.records import Dialogue, Judgment
from botchat.verdicts import Verdicts
from tests.boards import judgment, made

OPENING = ("Did you catch the bus this morning?", "No, I walked along the river instead.")


def survey(**contestants: Measured) -> Survey:
    """Of some contestants on ten seeds."""
    return Survey(floors(ENGLISH), 10, contestants)


def measured(*talks: tuple[str, ...]) -> Measured:
    """Dialogues that go on from one opening: ``S-0``, ``S-1`` ..."""
    dialogues = {f"S-{i}": (*OPENING, *talk) for i, talk in enumerate(talks)}
    return measure_all(dialogues, floors(ENGLISH), [4, 16])


def flagged_at(first: dict[str, dict[str, int]]) -> Measured:
    """Dialogues with nothing but first flags: seed id -> criterion -> utterance."""
    return Measured(
        tuple(first),
        np.full((len(first), len(MEASURES)), np.nan),
        np.array([at.get(c, 0) for at in first.values() for c in CRITERIA]).reshape(
            -1, len(CRITERIA)
        ),
        {},
    )


def test_what_a_dialogue_shows_stands_in_its_row() -> None:
    """Measures, first flags and style of each; one without anything of its own has no row."""
    found = measured(("I am an AI language model.", "I am an AI language model."), (), ("Nice.",))
    assert found.seed_ids == ("S-0", "S-2")
    of = dict(zip(CRITERIA, found.first[0].tolist(), strict=True))
    assert (of["ai_phrases"], of["exact_repeat"]) == (3, 4)
    assert found.first[1].tolist() == [0] * len(CRITERIA)
    values = dict(zip(MEASURES, found.measures[0].tolist(), strict=True))
    assert (values["n_utterances"], values["ai_phrases"], values["exact_rate"]) == (2, 2, 0.5)
    assert {n: style.shape for n, style in found.style.items()} == {
        4: (2, len(STYLE)), 16: (2, len(STYLE)),
    }  # fmt: skip


def test_shares_of_flags_by_hand() -> None:
    """Two of four say that they are programs; without dialogues there are no shares."""
    first = {
        "S-0": {"ai_phrases": 3, "exact_repeat": 5},
        "S-1": {"ai_phrases": 6},
        "S-2": {},
        "S-3": {"words": 4},
    }
    fine = {"S-0": {}, "S-1": {}}
    table = failings.flags(survey(bot=flagged_at(first), person=flagged_at(fine)), 10, "signed")
    person, bot = table.records
    assert (person["model"], person["flagged"], person["why"]) == ("person", 0.0, None)
    assert (bot["model"], bot["flagged"], bot["measured"]) == ("bot", 0.75, 4)
    assert (bot["ai_phrases"], bot["exact_repeat"], bot["words"]) == (0.5, 0.25, 0.25)
    assert bot["why"] is None, "four dialogues are too few for words"
    assert (bot["flagged_low"], bot["flagged_high"]) == (0.3006, 0.9872)
    many = {f"S-{i}": first[f"S-{i % 4}"] for i in range(20)}
    (of_many,) = failings.flags(survey(bot=flagged_at(many)), 20, "signed").records
    assert of_many["why"] == "says it is an AI 50 %, repeats utterances 25 %"
    assert (bot["first_flag"], bot["first_ai_phrases"], bot["first_words"]) == (4.0, 4.5, 4.0)
    assert table.signature == "signed"
    table = failings.flags(survey(nobody=flagged_at({}), bot=flagged_at({"S-0": {}})), 10, "")
    assert [(row["model"], row["flagged"]) for row in table.records] == [
        ("bot", 0.0), ("nobody", None),
    ]  # fmt: skip


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
