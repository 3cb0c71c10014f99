"""Criteria that accuse a dialogue without a model, for the judge `rules`.

They are those of the UniEval prompt (BotChat Appendix B, without fluency) and the bad cases of
Appendix C, made countable: one number per utterance, from the dialogue up to and including it.
Word lists are English.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
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

    The defaults are floors: without another source the rounded 99th percentile of MuTual's 547
    human dialogues.
    """

    ai_phrases: float = 0
    """Phrases that call a speaker a program ("AI self-identification", Appendix C)."""
    exact_repeat: float = 3
    """Words of the utterance times its earlier occurrences ("just repeat some previous sentences
    (exact repetition …)"). People say "How are you?" twice."""
    closing_chain: float = 4
    """Utterances in a row that only thank, wish well or say goodbye ("… with the same meaning").
    People close by a pair of offers and a pair of goodbyes (Schegloff & Sacks 1973)."""
    layout_marks: float = 1
    """Line breaks, list items, headings, bold, code, tags, speaker labels and stage directions
    ("not likely to appear in human-human conversations")."""
    words: float = 60
    """Words of the utterance ("too long"); the generation prompt's limit (Appendix B)."""
    verbatim_run: float = 5
    """Longest stretch of words within a sentence all of whose word 4-grams were said before, also
    within the same utterance ("just repeat some previous sentences"); 0 or at least 4."""
    overlap: float = 0.5
    """Greatest Jaccard index of the content words with those of one earlier utterance ("… or with
    the same meaning"); a union of fewer than 4 content words counts as 4."""
    drift: float = 20
    """Content words since the last link to the context ("not related to the context …"). An
    utterance that shares no content word with the `NEAR_CONTEXT` before it adds its own, at most
    10; each shared one takes 6 away. Pronouns and answer words are no links."""
    formality: float = 11
    """Formal marks in 100 words ("formal tone", Appendix C): 5 for each written connective or
    assistant's phrase, 1 for each word of 8 letters or more and each form that speech contracts,
    -1 for each contraction; divided by length + 40 words; never below 0."""


FLOORS = Thresholds()
CRITERIA = Thresholds._fields
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
    """Return the 99th percentile of what human dialogues reach, but not less than the floors.

    A dialogue counts with its most extreme utterance, so each criterion accuses at most 1 % of
    these dialogues. Of fewer than 100 the maximum is taken.
    """
    peaks = [np.max(values(dialogue), axis=0) for dialogue in dialogues if dialogue]
    if not peaks:
        return FLOORS
    # "higher": no person is accused only because the percentile falls between two dialogues.
    limits = np.percentile(np.array(peaks), _PERCENTILE, axis=0, method="higher")
    return Thresholds(*map(float, np.maximum(limits, FLOORS)))


def flags(utterances: tuple[str, ...], thresholds: Thresholds, n_seed: int = N_SEED) -> list[Flag]:
    """Return every criterion that an utterance after the first ``n_seed`` exceeds, by utterance."""
    texts = [*map(ReadText, utterances)]
    return [
        Flag(criterion, at + 1, value, limit, _evidence(texts, criterion, at))
        for at, shown in enumerate(_values(texts))
        for criterion, value, limit in zip(CRITERIA, shown, thresholds, strict=True)
        if value > limit and at >= n_seed
    ]


def values(utterances: tuple[str, ...]) -> list[Values]:
    """Return what each utterance shows of each criterion, the ChatSEED's included."""
    return _values([*map(ReadText, utterances)])


def _values(texts: Sequence[ReadText]) -> list[Values]:
    columns = zip(texts, _closing_chains(texts), _runs(texts), _drifts(texts), strict=True)
    return [
        Values(
            len(text.ai_phrases),
            len(_key(text)) * len(_repeated(texts, at)),
            chain,
            text.layout_marks(),
            len(text.words),
            len(run),
            _overlap(texts, at)[0],
            drift,
            text.formality(),
        )
        for at, (text, chain, run, drift) in enumerate(columns)
    ]


def _key(text: ReadText) -> list[str]:
    return text.words or [text.raw.strip()]


def _repeated(texts: Sequence[ReadText], at: int) -> list[int]:
    """Return the earlier utterances of the same words."""
    return [earlier for earlier in range(at) if _key(texts[earlier]) == _key(texts[at])]


def _closing_chains(texts: Iterable[ReadText]) -> list[int]:
    """Return the length of the chain of closings that each utterance ends.

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
    """Return the longest stretch of each utterance that was said before."""
    ngrams: set[tuple[str, ...]] = set()
    runs = []
    for text in texts:
        longest: list[str] = []
        for words in text.sentences:
            known = []
            for ngram in zip(words, words[1:], words[2:], words[3:], strict=False):
                known.append(ngram in ngrams)
                ngrams.add(ngram)
            end = 0
            for again, stretch in groupby(known):
                start, end = end, end + len(list(stretch))
                if again and end - start + _NGRAM - 1 > len(longest):
                    longest = words[start : end + _NGRAM - 1]
        runs.append(longest)
    return runs


def _overlap(texts: Sequence[ReadText], at: int) -> tuple[float, int]:
    """Return the greatest Jaccard index with an earlier utterance, and that utterance."""
    best, like = 0.0, at
    for earlier in range(at):
        common = len(texts[at].content & texts[earlier].content)
        union = len(texts[at].content) + len(texts[earlier].content) - common
        if (index := common / max(union, _FEWEST_CONTENT)) > best:
            best, like = index, earlier
    return best, like


def _drifts(texts: Iterable[ReadText]) -> list[int]:
    """Return the content words without a link to the context, less the links."""
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


def _evidence(texts: Sequence[ReadText], criterion: str, at: int) -> str:
    """Return what was found; the utterance itself where the criterion is about all of it."""
    text, note = texts[at], ""
    words = text.raw
    if criterion == "ai_phrases":
        words = ", ".join(text.ai_phrases)
    elif criterion == "formality":
        words = ", ".join(text.formal_phrases) or text.raw
    elif criterion == "verbatim_run":
        words = " ".join(_runs(texts)[at])
    elif criterion == "exact_repeat":
        note = f" (as utterance {_repeated(texts, at)[0] + 1})"
    elif criterion == "overlap":
        note = f" (like utterance {_overlap(texts, at)[1] + 1})"
    elif criterion == "closing_chain":
        note = f" (closing since utterance {at + 2 - _closing_chains(texts)[at]})"
    return _quote(words) + note


def _quote(text: str) -> str:
    """Return at most 60 printable characters on one line, in quotation marks."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _QUOTE]).split())
    return f'"{line if len(line) <= _QUOTE else line[: _QUOTE - 1] + chr(0x2026)}"'
