"""Probes: what is planted, where, and nothing else; the counts of what a judge finds."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.errors import DataError
from botchat.languages import ENGLISH
from botchat.protocols import probe as probes
from botchat.protocols.catalogue import UNIEVAL
from botchat.protocols.planting import LONG_WORDS, planter
from botchat.protocols.probe import FAULTS, Probe, detection, plant, strangers_of
from botchat.records import HUMAN, Seed
from botchat.workspace import files
from tests.rows import rows

ROOT = Path(__file__).resolve().parents[2]
RULES = planter(ENGLISH)
SAMPLE = files.read(ROOT / "seeds" / "sample.jsonl", Seed)


def words(text):
    """Words in lower case."""
    return re.findall(r"[\w'\u2019]+", text.lower())


def check(probe, seed, seeds):
    """That a probe differs from its dialogue as its fault says, at its index, and nowhere else."""
    at = probe.index - 1
    width = 2 if probe.fault == "swapped" else 1
    was, now = seed.utterances, probe.utterances
    assert (probe.seed_id, len(now)) == (seed.id, len(was))
    assert at >= 2
    assert now[:at] == was[:at]
    assert now[at + width :] == was[at + width :]
    assert now[at] != was[at]
    STATED[probe.fault](was[at], now[at], was[at % 2 : at : 2], probe, seed, seeds)


def _repetition(was, now, own, *_):
    assert now in own


def _near_repetition(was, now, own, *_):
    inside = [text for text in own if f" {' '.join(words(text))}" in " ".join(words(now))]
    assert inside
    assert min(len(words(now)) - len(words(text)) for text in inside) <= 6


def _ai_phrase(was, now, *_):
    assert now.removesuffix(f" {was}") in RULES.told.ai_phrases


def _overlong(was, now, *_):
    assert now.startswith(was.strip())
    assert RULES.n_words(now) >= LONG_WORDS


def _formal(was, now, *_):
    opener = next(o for o in RULES.told.formal_openers if now.startswith(o))
    closer = next(c for c in RULES.told.formal_closers if now.endswith(c))
    inside = now.removeprefix(opener).removesuffix(closer)
    assert len(words(was)) <= len(words(inside)) <= 3 * len(words(was)) + 1
    assert not re.search(r"\b(?:I'm|we're|they're|I've|we'll)\b", inside)


def _foreign(was, now, own, probe, seed, seeds):
    assert now not in seed.utterances
    assert any(now in other.utterances for other in seeds if other.id != seed.id)


def _swapped(was, now, own, probe, seed, seeds):
    at = probe.index - 1
    assert probe.utterances[at : at + 2] == (seed.utterances[at + 1], seed.utterances[at])


def _contradiction(was, now, own, *_):
    assert now.startswith(f"{was} ")
    said = now.removeprefix(f"{was} ")
    assert re.search(r"\bnot\b|n't\b", said)
    left = set(words(said)) - {"not", "don't", "doesn't", "didn't", "won't", "haven't", "have"}
    kept = [set(words(text.replace("\u2019", "'"))) for text in own]
    # The verb may have lost its tense or its contraction.
    assert any(len(left - these) <= 2 for these in kept)


def _wrong_fact(was, now, own, probe, seed, seeds):
    old, new, before = (
        re.findall(r"\w+(?:[:.]\d+)?", text.lower())
        for text in (was, now, "\n".join(seed.utterances[: probe.index - 1]))
    )
    changed = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
    assert len(changed) == 1
    ((fact, other),) = changed
    assert fact in before
    assert other not in before


STATED = {
    "repetition": _repetition,
    "near_repetition": _near_repetition,
    "ai_phrase": _ai_phrase,
    "overlong": _overlong,
    "formal": _formal,
    "foreign": _foreign,
    "swapped": _swapped,
    "contradiction": _contradiction,
    "wrong_fact": _wrong_fact,
}


def everything(seeds, rng_seed=0):
    """All probes of a set."""
    return list(probes.probes(seeds, strangers_of(seeds), rng_seed))


# Planting


@pytest.mark.parametrize("rng_seed", [0, 1, 2])
def test_sample_probes_are_what_they_say(rng_seed):
    """Every fault in nearly all sample dialogues, at many places."""
    assert STATED.keys() == FAULTS.keys()
    made = everything(SAMPLE, rng_seed)
    by_id = {seed.id: seed for seed in SAMPLE}
    for probe in made:
        check(probe, by_id[probe.seed_id], SAMPLE)
    counts = {fault: sum(p.fault == fault for p in made) for fault in FAULTS}
    assert all(counts[fault] == 40 for fault in FAULTS if fault not in _BY_CHANCE)
    assert counts["contradiction"] >= 30
    assert counts["wrong_fact"] >= 12
    assert len({probe.index for probe in made}) >= 10


_BY_CHANCE = ("contradiction", "wrong_fact")


TEXTS = st.lists(st.text(min_size=1, max_size=30).filter(str.strip), min_size=2, max_size=7)


@settings(max_examples=10)
@given(TEXTS, TEXTS, st.integers(0, 3))
def test_any_dialogue_keeps_all_other_utterances(one, two, rng_seed):
    """Whatever people said: same length, the ChatSEED and all but the planted place untouched."""
    seeds = [Seed("a", tuple(one)), Seed("b", tuple(two))]
    for probe in everything(seeds, rng_seed):
        was = seeds[probe.seed_id == "b"].utterances
        width = 2 if probe.fault == "swapped" else 1
        assert 3 <= probe.index <= len(was) + 1 - width
        changed = [
            n for n, (a, b) in enumerate(zip(was, probe.utterances, strict=True), 1) if a != b
        ]
        assert changed[0] == probe.index
        assert changed[-1] < probe.index + width


def test_planting_depends_on_the_number_the_dialogue_and_the_fault_alone():
    """A part of the set is planted like the whole; another number plants elsewhere."""
    strangers = strangers_of(SAMPLE)
    whole = everything(SAMPLE)
    assert list(probes.probes(SAMPLE[:5], strangers)) == [
        probe for probe in whole if probe.seed_id in {seed.id for seed in SAMPLE[:5]}
    ]
    assert everything(SAMPLE) == whole
    other = everything(SAMPLE, 1)
    assert sum(a.index != b.index for a, b in zip(whole, other, strict=False)) > len(whole) / 2


def test_nothing_is_planted_where_nothing_fits():
    """No place behind the ChatSEED, nobody to take from, nothing to repeat or to turn round."""
    assert everything([Seed("s", ("One two three four five.", "Yes."))]) == []
    short = Seed("s", ("Tea?", "Yes.", "Milk?"))
    planted = {p.fault for p in everything([short])}
    assert planted == {"ai_phrase", "overlong", "formal"}
    assert plant(short, "foreign", [("s", "Milk? Yes, a lot of it."), ("t", "Milk?")]) is None


# Rewriting


@pytest.mark.parametrize(
    ("said", "denied"),
    rows("statements_are_negated"),
)
def test_statements_are_negated(said, denied):
    """The first plain statement, in its own words, its verb turned round."""
    assert RULES.contradiction(said) == denied


@pytest.mark.parametrize(
    "said",
    rows("what_cannot_be_negated_by_rule_is_left"),
)
def test_what_cannot_be_negated_by_rule_is_left(said):
    """Questions, negations, conditions, commands and verbs that it does not know."""
    assert RULES.contradiction(said) is None


@pytest.mark.parametrize(
    ("text", "earlier", "becomes"),
    [
        ("See you on Friday!", ["Is it on friday?"], r"See you on (?!Friday)[A-Z][a-z]+day!"),
        ("At 7:30.", ["It's 7:30."], r"At (8|9|10|6|5):30\."),
        ("Two hours?", ["It took two hours."], r"(?!Two)[A-Z][a-z]{2,5} hours\?"),
        ("$50, and 50 more.", ["It costs $50."], r"\$(\d\d), and \1 more\."),
        ("June is fine.", ["Not before June"], r"(?!June)[A-Z]\w+ is fine\."),
    ],
)
def test_facts_are_changed_into_others_of_their_kind(text, earlier, becomes):
    """Weekday to weekday, time to time, number to number, in every mention."""
    for seed in range(8):
        assert re.fullmatch(becomes, RULES.wrong_fact(text, earlier, Random(seed)))


@pytest.mark.parametrize(
    ("text", "earlier"),
    [
        ("Two hours.", ["Tray two, please."]),
        ("See you on Friday.", ["See you on Monday."]),
        ("It's one of them.", ["It's one of them."]),
        ("The 2nd of them.", ["Take 2 of them."]),
        ("I may march.", ["I may march."]),
    ],
)
def test_what_was_not_mentioned_cannot_be_wrong(text, earlier):
    """The same number of another thing, another day, words that are no facts."""
    assert RULES.wrong_fact(text, earlier, Random(0)) is None


def test_a_fact_becomes_nothing_that_was_mentioned():
    """With all other weekdays taken there is nothing to change it to."""
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    six = [f"On {day}?" for day in days[:6]]
    assert RULES.wrong_fact("On Monday.", six, Random(0)) == "On Sunday."
    assert RULES.wrong_fact("On Monday.", [*six, "On Sunday."], Random(0)) is None


def test_formal_and_near_rewrites_keep_the_words():
    """Contractions are written out, except in questions that would turn ungrammatical."""
    said = RULES.formal("Can't say, I'm busy. Don't you know? He'll help, it's his.", Random(0))
    assert " Cannot say, I am busy. Don't you know? He will assist, it is his. " in said
    assert re.search(
        r" the window was shut, \w", RULES.near_repetition("The window was shut.", Random(0))
    )
    assert "Moss is here" in RULES.near_repetition("Moss is here!", Random(0))


# Counting


def probe(seed_id, fault, index):
    """A probe whose text does not matter."""
    return Probe(seed_id, fault, index, ("x",) * 9)


def test_detection_by_hand():
    """4 probes: exact, one off, far off, one unreadable; 1 of 3 readable dialogues accused."""
    planted = [probe(f"s{n}", "foreign", 5) for n in range(4)]
    planted += [probe("s0", "swapped", 3), probe("s1", "swapped", 3)]
    verdicts = {
        ("s0", "foreign"): "5",
        ("s1", "foreign"): "4",
        ("s2", "foreign"): "9",
        ("s3", "foreign"): None,
        ("s0", "swapped"): "No",
        ("s1", "swapped"): "3",
        ("s0", HUMAN): "No",
        ("s1", HUMAN): "2",
        ("s2", HUMAN): "No",
        ("s3", HUMAN): None,
    }
    rows = {row["fault"]: row for row in detection(planted, verdicts)}
    foreign = rows["foreign"]
    assert (foreign["planted"], foreign["n"], foreign["n_untouched"]) == (4, 3, 3)
    assert foreign["detected"] == 1
    assert foreign["localised"] == foreign["false_alarms"] == pytest.approx(1 / 3)
    assert foreign["within_1"] == pytest.approx(2 / 3)
    # Of the three dialogues with both verdicts, two are accused only with the fault.
    assert foreign["found"] == pytest.approx(2 / 3)
    assert foreign["found_low"] < 2 / 3 < foreign["found_high"]
    # Seven utterances behind the ChatSEED, the fifth of nine is one of them, with a neighbour each.
    assert foreign["chance_localised"] == pytest.approx(1 / 7)
    assert foreign["chance_within_1"] == pytest.approx(3 / 7)
    swapped = rows["swapped"]
    shares = ("detected", "localised", "within_1", "false_alarms")
    assert [swapped[key] for key in shares] == [0.5] * 4
    assert list(rows) == list(FAULTS)
    empty = rows["formal"]
    assert (empty["planted"], empty["n"], empty["detected"], empty["detected_low"]) == (
        0,
        0,
        None,
        None,
    )


def test_a_verdict_that_is_no_index_stops_the_count():
    """Rather than being counted as something."""
    with pytest.raises(DataError, match="'maybe' of a probe"):
        detection([probe("s", "foreign", 3)], {("s", "foreign"): "maybe"})


def test_cases_are_unievals_under_a_name_of_their_own():
    """The question is word for word UniEval's; the judgments cannot be mistaken for it."""
    (seed,) = SAMPLE[:1]
    planted = [plant(seed, "swapped", [])]
    human, swapped = (make() for make in probes.cases([seed], planted))
    asked = UNIEVAL.one(seed.id, HUMAN, seed.utterances)
    assert (human.prompt, human.choices) == (asked.prompt, asked.choices)
    assert (human.protocol, human.contestants) == ("probe/unieval", (HUMAN,))
    assert swapped.contestants == ("swapped",)
    assert swapped.dialogues[0].utterances == planted[0].utterances
    assert human.digest != asked.digest
    assert human.read("Choice: Yes\nIndex: 3\nReason: x") == ("3", "x")
