"""What can be seen in a dialogue without a model, for the rules judge: flags that accuse.

The criteria are those of the UniEval prompt (BotChat Appendix B, without fluency) and the bad cases
of Appendix C, made countable: one number per utterance, from the dialogue up to and including it.
Word lists are English.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import gt
from typing import NamedTuple, TypeAlias

import numpy as np

from botchat.languages.text import ReadText
from botchat.records import N_SEED

NEAR_CONTEXT = 6
"""Earlier utterances in which a shared content word is a link to the context (see ``drift``)."""

_PERCENTILE = 99
_NGRAM = 4
_QUOTE = 60
_FEWEST_CONTENT = 4
_DRIFT_CAP = 10
_DRIFT_LINK = 6


class Thresholds(NamedTuple):
    """The most that an utterance may show of each criterion, the one to prefer first.

    Those of `FLOORS` without another source are the
    rounded 99th percentile of MuTual's 547 human dialogues.
    """

    ai_phrases: float
    """Phrases in which a speaker is said to be a program ("AI self-identification", Appendix C)."""

    exact_repeat: float
    """Words of the utterance times how often it was said before ("just repeat some previous
    sentences (exact repetition …)"). Floor 3: people say "How are you?" twice."""

    closing_chain: float
    """Utterances in a row, this one included, that only thank, wish well or say goodbye ("just
    repeat … with the same meaning"). Floor 4: between people a closing is a pair that offers to
    close and a pair of goodbyes (Schegloff and Sacks 1973)."""

    layout_marks: float
    """Line breaks, list items, headings, bold, code, tags, speaker labels and stage directions
    ("not likely to appear in human-human conversations"). Floor 1: one may be a slip."""

    words: float
    """Words of the utterance ("too long"). Floor 60: the generation prompt's limit (Appendix B)."""

    verbatim_run: float
    """Longest stretch of words within a sentence all of whose word 4-grams were said before, also
    within the same utterance ("just repeat some previous sentences"); 0 or at least 4."""

    overlap: float
    """Greatest Jaccard index of the content words with those of one earlier utterance ("… or with
    the same meaning"); pairs of fewer than 4 content words are measured as if they had 4."""

    drift: float
    """Content words said since the dialogue last had a link to its context ("not related to the
    context or the change of topic is not natural"). An utterance that shares no content word with
    the `NEAR_CONTEXT` utterances before it adds its own, at most 10; each shared one takes 6 away.
    Pronouns and answer words are no links: utterances from other dialogues have as many."""

    formality: float
    """Formal marks in 100 words ("formal tone", Appendix C; "do not talk like an AI assistant",
    Appendix B): 5 for each written connective or assistant's phrase, 1 for each word of 8 letters
    or more and each form that speech contracts ("do not"), -1 for each contraction; divided by
    length + 40 words; never below 0."""


FLOORS = Thresholds(
    ai_phrases=0,
    exact_repeat=3,
    closing_chain=4,
    layout_marks=1,
    words=60,
    verbatim_run=5,
    overlap=0.5,
    drift=20,
    formality=11,
)
"""The least thresholds, whatever the set's people do."""

Values: TypeAlias = Thresholds
"""What one utterance shows of each criterion."""


@dataclass(frozen=True)
class Flag:
    """One criterion that one utterance exceeds."""

    criterion: str
    """Name of a field of `Thresholds`."""
    index: int
    """1-based utterance."""
    value: float
    threshold: float
    evidence: str
    """What was found, in about 60 characters."""

    @property
    def strength(self) -> float:
        """Value in multiples of the threshold; infinite where humans show none at all."""
        return self.value / self.threshold if self.threshold else math.inf


def fit_thresholds(dialogues: Iterable[tuple[str, ...]]) -> Thresholds:
    """The 99th percentile of what human dialogues reach, but not less than the floors.

    A dialogue counts with its most extreme utterance, so each criterion accuses at most 1 % of
    these dialogues. Of fewer than 100 the maximum is taken.
    """
    peaks = [np.max(values(dialogue), axis=0) for dialogue in dialogues if dialogue]
    if not peaks:
        return FLOORS
    # "higher": no person is accused only because the percentile falls between two dialogues.
    limits = np.percentile(np.array(peaks), _PERCENTILE, axis=0, method="higher")
    return Thresholds(*map(float, np.maximum(limits, FLOORS)))


def flags(
    utterances: tuple[str, ...],
    thresholds: Thresholds,
    n_seed: int = N_SEED,
) -> list[Flag]:
    """Every criterion that an utterance after the first ``n_seed`` exceeds, by utterance."""
    reading = _read(utterances)
    return [
        Flag(criterion, at + 1, value, limit, _evidence(reading, criterion, at))
        for criterion, at, value, limit in _exceeded(reading, thresholds, n_seed)
    ]


def values(utterances: tuple[str, ...]) -> tuple[Values, ...]:
    """What each utterance shows of each criterion, the ChatSEED's included."""
    return _read(utterances).values


def _exceeded(
    reading: _ReadDialogue, thresholds: Thresholds, n_seed: int = N_SEED
) -> Iterator[tuple[str, int, float, float]]:
    """Criterion, 0-based utterance, value and limit of all that is too much after the ChatSEED."""
    for at in range(n_seed, len(reading.values)):
        shown = reading.values[at]
        if any(map(gt, shown, thresholds)):  # seldom, so this test saves time
            for criterion, value, limit in zip(CRITERIA, shown, thresholds, strict=True):
                if value > limit:
                    yield criterion, at, value, limit


class _ReadDialogue(NamedTuple):
    """A dialogue read once: of every utterance the text, the values, and where they come from."""

    texts: tuple[ReadText, ...]
    values: tuple[Values, ...]
    first: list[int]
    """0-based first utterance of the same words."""
    like: list[int]
    """0-based earlier utterance of greatest overlap; itself where there is none."""
    runs: list[list[str]]
    """Longest stretch of words said before."""


def _read(utterances: tuple[str, ...]) -> _ReadDialogue:
    texts = tuple([ReadText(utterance) for utterance in utterances])
    repeats, first = _repeats(texts)
    overlaps, like = _overlaps(texts)
    runs = _runs(texts)
    found = zip(
        [len(text.ai_phrases) for text in texts],
        repeats,
        _closing_chains(texts),
        [text.layout_marks() for text in texts],
        [len(text.words) for text in texts],
        [len(run) for run in runs],
        overlaps,
        _drifts(texts),
        [text.formality() for text in texts],
        strict=True,
    )
    return _ReadDialogue(texts, tuple(map(Values._make, found)), first, like, runs)


def _repeats(texts: Iterable[ReadText]) -> tuple[list[int], list[int]]:
    """Words of each utterance times earlier utterances of the same words; the first of them."""
    made: dict[tuple[str, ...], list[int]] = {}
    repeats, first = [], []
    for at, text in enumerate(texts):
        key = tuple(text.words) or (text.raw.strip(),)
        earlier = made.setdefault(key, [])
        repeats.append(len(key) * len(earlier))
        earlier.append(at)
        first.append(earlier[0])
    return repeats, first


def _closing_chains(texts: Iterable[ReadText]) -> list[int]:
    """Length of the chain of closings that each utterance ends.

    A closing has a closing phrase, no question, and at most half as many words with a subject as
    courtesies, or one. A reply without a subject ("I will.") only continues a chain.
    """
    chains, length = [], 0
    for text in texts:
        if text.question or not text.words:
            length = 0
        elif text.closes:
            courtesies = len(text.content) - len(text.subject)
            length = length + 1 if len(text.subject) <= max(1, courtesies / 2) else 0
        elif length:
            length = 0 if text.subject else length + 1
        chains.append(length)
    return chains


def _runs(texts: Iterable[ReadText]) -> list[list[str]]:
    """The longest stretch of each utterance that was said before."""
    said: set[tuple[str, ...]] = set()
    runs = []
    for text in texts:
        longest: list[str] = []
        for words in text.sentences:
            known = []
            for ngram in zip(words, words[1:], words[2:], words[3:], strict=False):
                known.append(ngram in said)
                said.add(ngram)
            end = 0
            for again, stretch in groupby(known):
                start, end = end, end + len(list(stretch))
                if again and end - start + _NGRAM - 1 > len(longest):
                    longest = words[start : end + _NGRAM - 1]
        runs.append(longest)
    return runs


def _overlaps(texts: tuple[ReadText, ...]) -> tuple[list[float], list[int]]:
    """Greatest Jaccard index with an earlier utterance, and that utterance."""
    overlaps, like = [], []
    for at, text in enumerate(texts):
        best, whom = 0.0, at
        for other in range(at):
            if common := len(text.content & texts[other].content):
                union = len(text.content) + len(texts[other].content) - common
                index = common / max(union, _FEWEST_CONTENT)
                if index > best:
                    best, whom = index, other
        overlaps.append(best)
        like.append(whom)
    return overlaps, like


def _drifts(texts: Iterable[ReadText]) -> list[int]:
    """Content words said without a link to the context, less the links (see `Thresholds`)."""
    drifts, drift = [], 0
    near: deque[frozenset[str]] = deque(maxlen=NEAR_CONTEXT)
    for text in texts:
        if near:
            links = len(text.subject) - len(text.subject.difference(*near))
            step = -_DRIFT_LINK * links if links else min(len(text.subject), _DRIFT_CAP)
            drift = max(0, drift + step)
        drifts.append(drift)
        near.append(text.subject)
    return drifts


def _evidence(reading: _ReadDialogue, criterion: str, at: int) -> str:
    """What was found; the utterance itself where the criterion is about all of it."""
    text = reading.texts[at]
    if criterion == "ai_phrases":
        return _quote(", ".join(text.ai_phrases))
    if criterion == "formality":
        return _quote(", ".join(text.formal_phrases) or text.raw)
    if criterion == "verbatim_run":
        return _quote(" ".join(reading.runs[at]))
    since = at + 2 - int(reading.values[at].closing_chain)
    where = {
        "exact_repeat": f" (as utterance {reading.first[at] + 1})",
        "overlap": f" (like utterance {reading.like[at] + 1})",
        "closing_chain": f" (closing since utterance {since})",
    }
    return _quote(text.raw) + where.get(criterion, "")


def _quote(text: str) -> str:
    """At most 60 printable characters on one line, in quotation marks."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _QUOTE]).split())
    return f'"{line if len(line) <= _QUOTE else line[: _QUOTE - 1] + chr(0x2026)}"'


CRITERIA = Thresholds._fields
