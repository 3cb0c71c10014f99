"""Criteria that flag AI in a dialogue without a model, for the judge `rules`.

They are from the UniEval prompt (BotChat Appendix B, without fluency) and the bad cases of
Appendix C, made countable: one number per utterance, from the dialogue up to and including it.
Word lists are English.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from botchat.languages.text import ReadText
from botchat.records import N_SEED, Utterances

NEAR_CONTEXT = 6  # earlier utterances in which a shared content word is a link to the context
_NGRAM = 4
_QUOTE = 60


class Thresholds(NamedTuple):
    """The most that an utterance may show of each criterion, the one to prefer first.

    The defaults are floors: without another source the rounded 99th percentile of MuTual's 547
    human dialogues.
    """

    ai_phrases: float = 0
    """Phrases that call a speaker a program ("AI self-identification", Appendix C)."""
    exact_repeat: float = 3
    """Words of the utterance times its earlier occurrences ("exact repetition")."""
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
    """Greatest Jaccard index of the content words with one earlier utterance's ("… or with
    the same meaning"); a union of fewer than 4 counts as 4."""
    drift: float = 20
    """Content words since the last link to the context ("not related to the context …"), which is
    a word of the `NEAR_CONTEXT` before: an utterance without any adds its own, at most 10; each
    link takes 6 away."""
    formality: float = 11
    """Formal marks in 100 words ("formal tone", Appendix C): 5 for each written connective or
    assistant's phrase, 1 for each word of 8 letters or more and each form that speech contracts,
    -1 for each contraction; divided by length + 40 words; never below 0."""


FLOORS = Thresholds()
CRITERIA = Thresholds._fields


class Measure(NamedTuple):
    """A criterion's number of an utterance, and the words that show it."""

    value: float
    words: str
    note: str = ""


@dataclass(frozen=True)
class Flag:
    """A criterion (field of `Thresholds`) that an utterance (1-based) exceeds, with its words."""

    criterion: str
    index: int
    value: float
    threshold: float
    quote: str
    """At most 60 printable characters of the words."""
    evidence: str
    """The quote in quotation marks, and the note."""


def fit_thresholds(dialogues: Iterable[Utterances]) -> Thresholds:
    """Return the 99th percentile of human dialogues, but not less than the floors.

    A dialogue counts with its most extreme utterance, so each criterion flags at most 1 % of
    these dialogues. Of fewer than 100 the maximum is taken.
    """
    peaks = [np.max(values(dialogue), axis=0) for dialogue in dialogues if dialogue]
    if not peaks:
        return FLOORS
    # "higher": no human is flagged only because the percentile falls between two dialogues.
    limits = np.percentile(np.array(peaks), 99, axis=0, method="higher")
    return Thresholds._make(np.maximum(limits, FLOORS).tolist())


def flags(utterances: Utterances, thresholds: Thresholds, n_seed: int = N_SEED) -> list[Flag]:
    """Return every criterion that an utterance after the first ``n_seed`` exceeds, by utterance."""
    exceeding = []
    for index, measures in enumerate(_survey(utterances), 1):
        for criterion, measure, limit in zip(CRITERIA, measures, thresholds, strict=True):
            if measure.value > limit and index > n_seed:
                quote = _quote(measure.words)
                evidence = f'"{quote}"{measure.note}'
                exceeding.append(Flag(criterion, index, measure.value, limit, quote, evidence))
    return exceeding


def values(utterances: Utterances) -> list[Thresholds]:
    """Return what each utterance shows of each criterion, the ChatSEED's included."""
    numbers = []
    for measures in _survey(utterances):
        numbers.append(Thresholds._make([measure.value for measure in measures]))
    return numbers


def _survey(utterances: Utterances) -> Iterator[list[Measure]]:
    """Yield what each utterance shows of each of `CRITERIA`."""
    texts = [ReadText(utterance) for utterance in utterances]
    keys = [text.words or [text.raw.strip()] for text in texts]
    columns = zip(texts, _closing_chains(texts), _runs(texts), _drifts(texts), strict=True)
    for at, (text, chain, run, drift) in enumerate(columns):
        raw = text.raw
        n_repeats = keys[:at].count(keys[at])
        overlap, like = _overlap(texts, at)
        yield [
            Measure(len(text.ai_phrases), ", ".join(text.ai_phrases)),
            Measure(len(keys[at]) * n_repeats, raw, f" (as utterance {keys.index(keys[at]) + 1})"),
            Measure(chain, raw, f" (closing since utterance {at + 2 - chain})"),
            Measure(text.layout_marks(), raw),
            Measure(len(text.words), raw),
            Measure(len(run), " ".join(run)),
            Measure(overlap, raw, f" (like utterance {1 - like})"),
            Measure(drift, raw),
            Measure(text.formality(), ", ".join(text.formal_phrases) or raw),
        ]


def _closing_chains(texts: Iterable[ReadText]) -> list[int]:
    """Return the length of the chain of closings that each utterance ends.

    A closing has a closing phrase, no question, and at most half as many words with a subject as
    courtesies, or one. A reply without a subject ("I will.") only continues a chain.
    """
    chains = []
    length = 0
    for text in texts:
        n_subject = len(text.subject)
        most = -1.0
        if text.closes:
            most = max(1, (len(text.content) - n_subject) / 2)
        elif length:
            most = 0
        if text.words and not text.question and n_subject <= most:
            length += 1
        else:
            length = 0
        chains.append(length)
    return chains


def _runs(texts: Iterable[ReadText]) -> list[list[str]]:
    """Return the longest stretch of each utterance whose word 4-grams all occurred before."""
    ngrams = set()
    runs = []
    for text in texts:
        longest: list[str] = []
        for words in text.sentences:
            length = 0
            for end in range(_NGRAM, len(words) + 1):
                ngram = tuple(words[end - _NGRAM : end])
                length = (length or _NGRAM - 1) + 1 if ngram in ngrams else 0
                if length > len(longest):
                    longest = words[end - length : end]
                ngrams.add(ngram)
        runs.append(longest)
    return runs


def _overlap(texts: Sequence[ReadText], at: int) -> tuple[float, int]:
    """Return the greatest Jaccard index with an earlier utterance, and minus its place."""
    best = 0.0, -at
    for earlier in range(at):
        common = len(texts[at].content & texts[earlier].content)
        union = len(texts[at].content) + len(texts[earlier].content) - common
        best = max(best, (common / max(union, 4), -earlier))
    return best


def _drifts(texts: Iterable[ReadText]) -> list[int]:
    """Return the content words without a link to the context, less the links."""
    drifts = []
    drift = 0
    near: deque[frozenset[str]] = deque(maxlen=NEAR_CONTEXT)
    for text in texts:
        if near:
            links = len(text.subject) - len(text.subject.difference(*near))
            step = -6 * links if links else min(len(text.subject), 10)
            drift = max(0, drift + step)
        drifts.append(drift)
        near.append(text.subject)
    return drifts


def _quote(text: str) -> str:
    """Return at most 60 printable characters on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _QUOTE]).split())
    if len(line) <= _QUOTE:
        return line
    return f"{line[: _QUOTE - 1]}\u2026"
