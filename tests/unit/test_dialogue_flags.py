"""Measures of dialogues without a model: hand-counted values, fitted thresholds, flags."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.languages import text as text_patterns
from botchat.metrics.criteria import FLOORS, fit_thresholds, flags, values
from tests.rows import rows

SEED = ("Where did you park the van?", "Behind the bakery, under the lamp.")
WORDS = "I you the van lamp bakery thanks bye see glad however additionally as an AI ? . \n 1. 你"
LINE = st.lists(st.sampled_from(WORDS.split(" ")), max_size=9).map(" ".join) | st.text(max_size=20)
TALK = st.lists(LINE, max_size=9).map(tuple)


def shown(criterion: str, *utterances: str) -> list[float]:
    """The values of one criterion after the ChatSEED."""
    return [getattr(each, criterion) for each in values((*SEED, *utterances))[2:]]


def test_words_and_exact_repeats_are_counted():
    """Contractions are one word; a repeat counts its words times."""
    assert shown("words", "Don't, it\u2019s 3.5 o'clock!", "你好, Ann", "", "...") == [5, 3, 0, 0]
    lines = ("Move it.", "Why?", "MOVE IT!", "move it", "Why?", "👍", "👍", "👍")
    assert shown("exact_repeat", *lines) == [0, 0, 2, 4, 1, 0, 1, 2]


def test_closing_chains_and_verbatim_runs_are_counted():
    """A chain breaks at a subject or a question; a repeated run stays within sentences."""
    lines = ("I will.", "Thank you!", "I will.", "Bye, Ann.", "Bye?", "See you.", "Cheers, Tom")
    assert shown("closing_chain", *lines) == [0, 1, 2, 3, 0, 1, 2]
    assert shown("closing_chain", "Bye.", "The van's lamp broke.", "Bye.") == [1, 0, 1]
    assert shown("closing_chain", "Thanks, the brakes squeak and the clutch slips.") == [0]
    lines = (
        "We left it by the old mill. It was dark.",
        "You left it by the old mill it was dark.",
        "By the old mill. It was dark",
        "I turn the key and wait, I turn the key and wait.",
    )
    assert shown("verbatim_run", *lines) == [0, 6, 4, 6]


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


def test_formality_counts_marks_per_hundred_words():
    """Phrases, long words and full forms add, contractions take away, damped by 40 words."""
    assert shown("formality", "However, we will certainly not go.") == [
        pytest.approx(100 * (5 + 1 + 1) / (6 + 40))
    ]
    assert shown("formality", "It's fine, don't worry.", "Yes, I am.") == [0, 0]


@pytest.mark.parametrize(
    ("text", "marks"),
    rows("layout_marks"),
)
def test_layout_marks(text: str, marks: int):
    """Marks of documents and scripts are counted, punctuation of talk is not."""
    assert shown("layout_marks", text) == [marks]


@pytest.mark.parametrize(
    "text",
    rows("ai_phrases_found"),
)
def test_ai_phrases_found(text: str):
    """Speakers who call themselves or each other a program are heard."""
    assert shown("ai_phrases", text) == [1]


@pytest.mark.parametrize(
    "text",
    rows("ai_phrases_not_found_in_human_talk"),
)
def test_ai_phrases_not_found_in_human_talk(text: str):
    """Talk about programs, and words that look alike, are no confession."""
    assert shown("ai_phrases", text) == [0]


def test_every_phrase_of_programs_has_a_sign():
    """Texts without a word of ``ai_words`` are not searched; no phrase is missed by that."""
    making = ("created", "trained", "developed", "made", "built")
    programs = (
        "AI|A.I.|bot|chat-bot|chatbot|LLM|language model|artificial intelligence|virtual assistant"
        "|digital agent|automated companion|computer program"
    )
    phrases = (
        *(f"I am an {program}" for program in programs.split("|")),
        *(f"I'm not a {being}" for being in ("human", "person")),
        *(f"I don't have {kind} beliefs" for kind in ("personal", "physical", "real")),
        *(f"I was {made} by OpenAI" for made in making),
        *(f"I am {made} to listen" for made in ("programmed", "designed")),
        *(f"I do not have {lack}" for lack in ("feelings", "emotions", "access to real-time news")),
        *(f"I do not have the {skill} to feel" for skill in ("ability", "capacity")),
        *(f"my {part}" for part in ("training data", "knowledge cutoff", "programming")),
        *(f"I'm {name}" for name in ("ChatGPT", "GPT4", "gpt-3")),
        "I cannot taste like humans",
        "I can't have subjective experiences",
        "I don't experience true feelings",
    )
    for phrase in phrases:
        assert shown("ai_phrases", f"Well, {phrase}.") == [1], phrase


@pytest.mark.parametrize("name", ["ai", "formal", "full", "closing"])
def test_phrases_capture_nothing(name: str):
    """A group that captures would stand in the evidence instead of the whole phrase."""
    assert getattr(text_patterns, f"_{name.upper()}").groups == 0


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Ann as well as Tom, such as I", 5 + 5),
        ("I'm here to help, I am here to listen", 5 - 1 + 5 + 1),
        ("Is there anything else I can do", 5 + 1),
        ("It's always worth it, feel free to go", 5 - 1 + 5),
    ],
)
def test_formal_phrases_found(text: str, marks: int):
    """Written connectives and assistants' phrases give 5 marks, also those of everyday words."""
    assert shown("formality", text) == [pytest.approx(100 * marks / (len(text.split()) + 40))]


def test_stem_equates_inflections():
    """Plural, past and progressive forms share a stem; different words do not."""
    for group in ("park parks parked parking", "plan plans planned planning", "story stories"):
        assert len({text_patterns._stem(word) for word in group.split()}) == 1
    assert len({text_patterns._stem(word) for word in ("park", "spark", "bark", "part")}) == 4


def test_flags_carry_criterion_place_value_limit_and_evidence():
    """Which utterance exceeds what, by how much, quoted shortly; what it repeats, or since when."""
    limits = FLOORS._replace(ai_phrases=1)
    talk = (*SEED, "As an AI, I'm an AI.", "Sure.", "I'm only an AI.", "1. a\n2. b\x00" + "x" * 99)
    first, second = flags(talk, limits)
    assert (first.criterion, first.index, first.value, first.threshold) == ("ai_phrases", 3, 2, 1)
    assert first.evidence == '"as an ai, i\'m an ai"'
    assert first.strength == 2
    assert (second.criterion, second.index) == ("layout_marks", 6)
    assert second.evidence == '"1. a 2. b ' + "x" * 49 + '…"'
    assert flags((*SEED, "I'm an AI."), FLOORS)[0].strength == math.inf
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


@given(TALK, TALK)
def test_what_comes_later_changes_nothing(talk: tuple[str, ...], more: tuple[str, ...]):
    """Values and flags of a cut dialogue are the beginning of those of the whole one."""
    assert values(talk + more)[: len(talk)] == values(talk)
    before, after = flags(talk, FLOORS), flags(talk + more, FLOORS)
    assert after[: len(before)] == before
    assert all(flag.index > len(talk) for flag in after[len(before) :])
