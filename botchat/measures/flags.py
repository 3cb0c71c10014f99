"""What can be seen in a dialogue without a model: numbers for the tables, and flags that accuse.

The criteria are those of the UniEval prompt (BotChat Appendix B, without fluency) and the bad cases
of Appendix C, made countable: one number per utterance, from the dialogue up to and including it.
Word lists are those of the language; a Chinese or Japanese character is a word.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby, pairwise
from operator import gt
from typing import NamedTuple, TypeAlias

import numpy as np

from botchat.errors import ConfigError
from botchat.languages import ENGLISH, Language
from botchat.languages.text import ReadText, known_words
from botchat.measures.fingerprint import Lineup, telling
from botchat.measures.memory import Opening
from botchat.measures.statistics import share
from botchat.records import N_SEED, Dialogues, Seed
from botchat.verdicts import Floats, Indices

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

    Floors, in a language's pack, are English ones here; those without another source are the
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


class DialogueMeasures(NamedTuple):
    """Numbers of one dialogue after its ChatSEED; ``nan`` where there is nothing to measure."""

    n_utterances: int
    mean_words: float
    length_growth: float
    """Mean words of the second half over that of the first; 1 = constant, ``nan`` below 2."""
    question_rate: float
    """Share of utterances with a question mark."""
    distinct_2: float
    """Different word pairs over all word pairs (Li et al. 2016)."""
    exact_rate: float
    """Share of utterances made before, word for word."""
    repetition_rate: float
    """Share of word 4-grams said before, the ChatSEED included."""
    max_overlap: float
    """Greatest Jaccard index of content words with an earlier utterance."""
    closing_loop: int | None
    """1-based start of the first chain of closings longer than people need, if there is one."""
    ai_phrases: int
    formality: float
    """Mean of the utterances', in marks per 100 words."""
    contraction_share: float
    """Contracted words over all words."""
    long_word_share: float
    """Words of 8 letters or more over all words."""
    layout_share: float
    """Share of utterances with layout marks."""
    emoji_share: float
    """Share of utterances with an emoji."""


def floors(language: Language) -> Thresholds:
    """The least thresholds in a language; raises `ConfigError` if its pack lacks one."""
    if odd := sorted(set(language.thresholds) ^ set(CRITERIA)):
        fault = "is missing" if odd[0] in CRITERIA else "is unknown"
        raise ConfigError(
            f"{language.where}: thresholds.{odd[0]} {fault}; criteria: {', '.join(CRITERIA)}"
        )
    return Thresholds(**language.thresholds)


def fit_thresholds(
    dialogues: Iterable[tuple[str, ...]], language: Language = ENGLISH
) -> Thresholds:
    """The 99th percentile of what human dialogues reach, but not less than the floors.

    A dialogue counts with its most extreme utterance, so each criterion accuses at most 1 % of
    these dialogues. Of fewer than 100 the maximum is taken.
    """
    peaks = [np.max(values(dialogue, language), axis=0) for dialogue in dialogues if dialogue]
    least = floors(language)
    if not peaks:
        return least
    # "higher": no person is accused only because the percentile falls between two dialogues.
    limits = np.percentile(np.array(peaks), _PERCENTILE, axis=0, method="higher")
    return Thresholds(*map(float, np.maximum(limits, least)))


def flags(
    utterances: tuple[str, ...],
    thresholds: Thresholds,
    language: Language = ENGLISH,
    n_seed: int = N_SEED,
) -> list[Flag]:
    """Every criterion that an utterance after the first ``n_seed`` exceeds, by utterance."""
    reading = _read(utterances, language)
    return [
        Flag(criterion, at + 1, value, limit, _evidence(reading, criterion, at))
        for criterion, at, value, limit in _exceeded(reading, thresholds, n_seed)
    ]


def values(utterances: tuple[str, ...], language: Language = ENGLISH) -> tuple[Values, ...]:
    """What each utterance shows of each criterion, the ChatSEED's included."""
    return _read(utterances, language).values


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


def measure(utterances: tuple[str, ...], language: Language = ENGLISH) -> DialogueMeasures:
    """The numbers of what follows the ChatSEED of one dialogue."""
    reading = _read(utterances, language)
    texts, shown = reading.texts[N_SEED:], reading.values[N_SEED:]
    n, half = len(texts), len(texts) // 2
    lengths = [len(text.words) for text in texts]
    n_words = sum(lengths)
    pairs = set(chain.from_iterable([pairwise(text.words) for text in texts]))
    mean_words, repetition_rate, question_rate, formality = _style(reading)
    usual = int(floors(language).closing_chain)
    chains = [each.closing_chain for each in reading.values]
    return DialogueMeasures(
        n_utterances=n,
        mean_words=mean_words,
        length_growth=share(sum(lengths[n - half :]), sum(lengths[:half])),
        question_rate=question_rate,
        distinct_2=share(len(pairs), sum([length - 1 for length in lengths if length])),
        exact_rate=share(len([each for each in shown if each.exact_repeat]), n),
        repetition_rate=repetition_rate,
        max_overlap=max([each.overlap for each in shown], default=math.nan),
        closing_loop=chains.index(usual + 1) + 1 - usual if usual + 1 in chains else None,
        ai_phrases=int(sum([each.ai_phrases for each in shown])),
        formality=formality,
        contraction_share=share(sum([text.contractions for text in texts]), n_words),
        long_word_share=share(sum([text.long_words for text in texts]), n_words),
        layout_share=share(len([each for each in shown if each.layout_marks]), n),
        emoji_share=share(len([text for text in texts if text.emoji]), n),
    )


def style(utterances: tuple[str, ...], end: int, language: Language = ENGLISH) -> tuple[float, ...]:
    """`STYLE` of a dialogue cut to ``end`` utterances; 0 for what cannot be measured."""
    mean_words, *rates = _style(_read(utterances, language), end)
    return tuple(0.0 if math.isnan(value) else value for value in (math.log1p(mean_words), *rates))


def _style(reading: _ReadDialogue, end: int | None = None) -> tuple[float, float, float, float]:
    """Mean words, repetition rate, question rate and formality, as in `DialogueMeasures`."""
    texts, ngrams = reading.texts[N_SEED:end], reading.ngrams[N_SEED:end]
    n = len(texts)
    return (
        share(sum([len(text.words) for text in texts]), n),
        share(sum([each[0] for each in ngrams]), sum([each[1] for each in ngrams])),
        share(len([text for text in texts if text.question]), n),
        share(sum([each.formality for each in reading.values[N_SEED:end]]), n),
    )


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
    ngrams: list[tuple[int, int]]
    """Word 4-grams said before, all word 4-grams."""


@lru_cache(maxsize=1)  # so that flags() and measure() read a dialogue once between them
def _read(utterances: tuple[str, ...], language: Language) -> _ReadDialogue:
    known = known_words(language)
    texts = tuple([ReadText(utterance, known) for utterance in utterances])
    repeats, first = _repeats(texts)
    overlaps, like = _overlaps(texts)
    runs, ngrams = _runs(texts)
    found = zip(
        [len(text.ai_phrases()) for text in texts],
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
    return _ReadDialogue(texts, tuple(map(Values._make, found)), first, like, runs, ngrams)


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
        elif text.closes():
            courtesies = len(text.content) - len(text.subject)
            length = length + 1 if len(text.subject) <= max(1, courtesies / 2) else 0
        elif length:
            length = 0 if text.subject else length + 1
        chains.append(length)
    return chains


def _runs(texts: Iterable[ReadText]) -> tuple[list[list[str]], list[tuple[int, int]]]:
    """Of each utterance: longest stretch said before; number of 4-grams said before, and of all."""
    said: set[tuple[str, ...]] = set()
    runs, counts = [], []
    for text in texts:
        longest: list[str] = []
        repeated = total = 0
        for words in text.sentences:
            known = []
            for ngram in zip(words, words[1:], words[2:], words[3:], strict=False):
                known.append(ngram in said)
                said.add(ngram)
            repeated += sum(known)
            total += len(known)
            end = 0
            for again, stretch in groupby(known):
                start, end = end, end + len(list(stretch))
                if again and end - start + _NGRAM - 1 > len(longest):
                    longest = words[start : end + _NGRAM - 1]
        runs.append(longest)
        counts.append((repeated, total))
    return runs, counts


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
        return _quote(", ".join(text.ai_phrases()))
    if criterion == "formality":
        return _quote(", ".join(text.formal_phrases()) or text.raw)
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
MEASURES = DialogueMeasures._fields
STYLE = ("length", "repetition", "questions", "formality")
"""Columns of `Measured.style`: logarithm of the mean words of an utterance, share of word 4-grams
said before, share of utterances with a question, formal marks in 100 words."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What one contestant's n dialogues show after their ChatSEEDs; empty dialogues left out.

    ``measures``: `MEASURES` of each, nan where there is nothing to measure, shape (n, 16).
    ``first``: 1-based utterance of the first flag of each of `CRITERIA`, 0 for none, shape (n, 9).
    ``style``: N -> `STYLE` of each dialogue cut to N utterances, shape (n, 4). ``flags``: seed id
    -> utterance, criterion and value of each of its flags. ``openings``: of its first utterance.
    """

    seed_ids: tuple[str, ...]
    measures: Floats
    first: Indices
    style: Mapping[int, Floats]
    flags: Mapping[str, Sequence[tuple[int, str, float]]] = field(default_factory=dict)
    openings: Mapping[str, Opening] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Survey:
    """All contestants of a set, measured on the same seeds."""

    thresholds: Thresholds
    n_seeds: int
    measured: Mapping[str, Measured]
    """Contestant -> its dialogues, ``human`` among them."""
    lineup: Lineup | None = None
    """How well each is told from people by form; ``None``: not asked."""


def survey(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    turns: Collection[int] = (),
    language: Language = ENGLISH,
) -> Survey:
    """Measure all contestants of a set; ``turns`` are the N of `Measured.style`."""
    thresholds = fit_thresholds((seed.utterances for seed in seeds), language)
    measured = {}
    for name, by_seed in dialogues.items():
        said = {i: dialogue.utterances for i, dialogue in by_seed.items()}
        measured[name] = measure_all(said, thresholds, turns, language)
    return Survey(thresholds, len(seeds), measured, telling(seeds, dialogues, language)())


def measure_all(
    dialogues: Mapping[str, tuple[str, ...]],
    thresholds: Thresholds,
    turns: Collection[int] = (),
    language: Language = ENGLISH,
) -> Measured:
    """Measure a contestant's dialogues, seed id -> utterances; see `survey`."""
    seed_ids, measures, first = [], [], []
    marks: dict[str, list[tuple[int, str, float]]] = {}
    styles: dict[int, list[tuple[float, ...]]] = {n: [] for n in turns}
    openings: dict[str, Opening] = {}
    for seed_id, utterances in dialogues.items():
        found = measure(utterances, language)
        if not found.n_utterances:
            continue
        reading = _read(utterances, language)
        openings[seed_id] = tuple(text.words for text in reading.texts[: N_SEED + 1])
        exceeded = _exceeded(reading, thresholds)
        marks[seed_id] = [(at + 1, criterion, value) for criterion, at, value, _ in exceeded]
        flagged = {criterion: at for at, criterion, _ in reversed(marks[seed_id])}
        seed_ids.append(seed_id)
        measures.append(found)  # NumPy makes nan of None
        first.append([flagged.get(criterion, 0) for criterion in CRITERIA])
        for n, rows in styles.items():
            rows.append(style(utterances, n, language))
    return Measured(
        tuple(seed_ids),
        np.array(measures, dtype=np.float64).reshape(-1, len(MEASURES)),
        np.array(first, dtype=np.intp).reshape(-1, len(CRITERIA)),
        {n: np.array(rows, np.float64).reshape(-1, len(STYLE)) for n, rows in styles.items()},
        marks,
        openings,
    )
