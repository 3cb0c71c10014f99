"""Measures of dialogues without a model: hand-counted values, fitted thresholds, flags."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.judges.criteria import FLOORS, fit_thresholds, flags, values
from tests.rows import rows

SEED = ("Where did you park the van?", "Behind the bakery, under the lamp.")
WORDS = "I you the van lamp bakery thanks bye see glad however additionally as an AI ? . \n 1. 你"
LINE = st.lists(st.sampled_from(WORDS.split(" ")), max_size=9).map(" ".join) | st.text(max_size=20)
TALK = st.lists(LINE, max_size=9).map(tuple)


def shown(criterion: str, *utterances: str) -> list[float]:
    """The values of one criterion after the ChatSEED."""
    return [getattr(each, criterion) for each in values((*SEED, *utterances))[2:]]


def test_overlap_and_drift_are_counted_by_hand():
    """Jaccard's index of content stems; unlinked content adds up to 10, a link takes 6 back."""
    assert shown("overlap", "The bakeries parked vans", "parking", "Lamps") == [
        pytest.approx(2 / 4),
        pytest.approx(1 / 4),
        pytest.approx(1 / 4),
    ]
    lines = ("Ann sold apples, pears and plums", "Plums, pears: Ann bought plums and cherries")
    assert shown("overlap", *lines)[1] == pytest.approx(3 / 7)
    ten = "zinc iron gold lead neon helium argon carbon sulfur copper nickel tin"
    lines = ("Turtles swim", "Yes, I think so.", ten, "Iron rusts", "Turtles")
    # The second seed utterance shares nothing with the first: bakery, lamp.
    assert [each.drift for each in values((*SEED, *lines))] == [0, 2, 4, 4, 14, 8, 2]
    far = (*SEED, *["Hm."] * 6, "The van")
    assert values(far)[-1].drift == 3


@pytest.mark.parametrize(("text", "marks"), rows("layout_marks"))
def test_layout_marks(text: str, marks: int):
    """Marks of documents and scripts are counted, punctuation of talk is not."""
    assert shown("layout_marks", text) == [marks]


@pytest.mark.parametrize("text", rows("ai_phrases_found"))
def test_ai_phrases_found(text: str):
    """Speakers who call themselves or each other a program are heard."""
    assert shown("ai_phrases", text) == [1]


@pytest.mark.parametrize("text", rows("ai_phrases_not_found_in_human_talk"))
def test_ai_phrases_not_found_in_human_talk(text: str):
    """Talk about programs, and words that look alike, are no confession."""
    assert shown("ai_phrases", text) == [0]


def test_flags_carry_criterion_place_value_limit_and_evidence():
    """Which utterance exceeds what, by how much, quoted shortly; what it repeats, or since when."""
    limits = FLOORS._replace(ai_phrases=1)
    talk = (*SEED, "As an AI, I'm an AI.", "Sure.", "I'm only an AI.", "1. a\n2. b\x00" + "x" * 99)
    first, second = flags(talk, limits)
    assert (first.criterion, first.index, first.value, first.threshold) == ("ai_phrases", 3, 2, 1)
    assert first.evidence == '"as an ai, i\'m an ai"'
    assert (second.criterion, second.index) == ("layout_marks", 6)
    assert second.evidence == '"1. a 2. b ' + "x" * 49 + '…"'
    again = flags((*SEED, "Oh.", SEED[1]), FLOORS)
    assert [f.criterion for f in again] == ["exact_repeat", "verbatim_run"]
    assert again[0].evidence == f'"{SEED[1]}" (as utterance 2)'
    loop = flags((*SEED, "Thanks.", "Bye.", "Cheers.", "See you.", "Take care."), FLOORS)
    assert [(f.criterion, f.index) for f in loop] == [("closing_chain", 7)]
    assert loop[0].evidence.endswith("(closing since utterance 3)")


def test_thresholds_are_the_99th_percentile():
    """Of 300 dialogues three exceed the limit, of 99 none does."""
    talks = [(*SEED, "well " * n) for n in range(1, 301)]
    limit = fit_thresholds(talks).words
    assert limit == 298
    limits = FLOORS._replace(words=limit, verbatim_run=math.inf)
    assert sum(bool(flags(talk, limits)) for talk in talks) == 2
    assert fit_thresholds(talks[:99]).words == 99


@given(st.lists(TALK, max_size=8))
def test_thresholds_never_fall_below_the_floors_nor_accuse_a_small_set(
    talks: list[tuple[str, ...]],
):
    """Fitting only ever adds patience, enough for all of a set below 100."""
    limits = fit_thresholds(talks)
    assert all(x >= floor for x, floor in zip(limits, FLOORS, strict=True))
    assert not any(flags(talk, limits) for talk in talks)
