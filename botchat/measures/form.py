"""Numbers of the form of a chat: how it is said, not what; the same by the same words.

For whoever tells people from machines without a judge (`botchat.measures.fingerprint`). Each is of
one speaker, or of several together, from their utterances as they were sent, several in a row kept
apart. Everything is read in lower case, English with its contractions written out, since some
collections of people's talk expand them and no machine does. Word lists are the language pack's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from botchat.languages import ENGLISH, Language
from botchat.languages.text import EMOJI, Known, known_words
from botchat.verdicts import Floats

WORDS, STARTS = 100, 40
"""Function words, and first words of an utterance, that are counted: those people use most."""

_FIRST_WORDS = 60
"""Words among which the different ones are counted, since their share falls with length."""
_SHORT, _LONG = 3, 20
"""Most words of a short utterance, fewest of a long one."""
_FEWEST = 4

NAMES = {
    "length": "words an utterance",
    "length_spread": "lengths that differ",
    "shortest": "words of the shortest utterance",
    "longest": "words of the longest utterance",
    "growth": "utterances that grow longer",
    "step": "change of length from one utterance to the next",
    "sentences": "sentences an utterance",
    "sentences_spread": "numbers of sentences that differ",
    "exclamations": "exclamation marks",
    "word_length": "letters a word",
    "types": "different words among the first 60",
    "pairs": "different pairs of words",
    "function_words": "function words",
    "new_content": "content that nobody said before",
    "short": "utterances of 3 words or fewer",
    "long": "utterances of 20 words or more",
    "questions": "utterances with a question",
    "questions_last": "utterances that end with a question",
    "questions_alone": "utterances that are a question alone",
    "questions_again": "questions in two utterances in a row",
    "commas": "commas",
    "dots": "utterances with dots …",
    "emoji": "utterances with an emoji",
    "unended": "utterances without a mark at the end",
    "long_words": "long words",
    "own_again": "content that the same speaker said before",
    "taken_up": "content of the last speaker taken up",
    "runs_again": "runs of 4 words said before",
    "exact_again": "utterances said before, word for word",
    "alike": "utterances like an earlier one",
    "within_again": "words said again in one utterance",
    "closings": "thanks, wishes and goodbyes",
    "closings_again": "thanks, wishes and goodbyes in a row",
    "formal": "written connectives and assistants' phrases",
}
"""Number -> in words, which "more" or "fewer" can stand before. Those from ``short`` on are
square roots of shares, so that rare things and frequent ones vary alike; so are the numbers that
follow them, `WORDS` function words and `STARTS` first words."""


@dataclass(frozen=True)
class Form:
    """What one chat, or one speaker in it, shows."""

    numbers: tuple[float, ...]
    """As `NAMES`; 0 where there is nothing to measure."""
    words: Counter[str]
    """Function words and how often each is said."""
    starts: Counter[str]
    """First words and how many utterances begin with each."""
    n_words: int
    n_utterances: int


def form(
    utterances: Sequence[str],
    language: Language = ENGLISH,
    *,
    n_seed: int = 0,
    speakers: Sequence[int] | None = None,
    of: Collection[int] | None = None,
) -> Form:
    """Read the utterances of the speakers ``of``, default all of them, behind the first ``n_seed``.

    ``speakers``: of each utterance; by default two who alternate. What others say, and what was
    said in the first ``n_seed``, is what an utterance may take up or repeat. Utterances without a
    word are passed over. Raises `ConfigError` where the language's pack has no word lists.
    """
    who = [at % 2 for at in range(len(utterances))] if speakers is None else speakers
    known = known_words(language)
    lines = [_line(text, known) for text in utterances]
    own = [
        at for at in range(n_seed, len(lines)) if lines[at].key and (of is None or who[at] in of)
    ]
    mine = [lines[at] for at in own]
    earlier = _earlier(lines, who)
    again = [_mean([earlier[at][k] for at in own]) for k in range(6)]
    new = 1 - again[0] if mine else 0.0
    shares = (*_rates(mine), *again[1:], *_phrases(mine))
    return Form(
        (*_lengths(mine), *_vocabulary(mine), new, *map(math.sqrt, shares)),
        Counter(chain.from_iterable(line.function for line in mine)),
        Counter(line.key[0] for line in mine),
        sum(len(line.key) for line in mine),
        len(mine),
    )


def matrix(forms: Sequence[Form], words: Sequence[str], starts: Sequence[str]) -> Floats:
    """Numbers of chats, shape (chats, numbers); columns as `columns` names them."""
    return np.array(
        [
            (
                *one.numbers,
                *(math.sqrt(one.words[word] / max(one.n_words, 1)) for word in words),
                *(math.sqrt(one.starts[word] / max(one.n_utterances, 1)) for word in starts),
            )
            for one in forms
        ]
    ).reshape(len(forms), len(NAMES) + len(words) + len(starts))


def usual(forms: Iterable[Form]) -> tuple[list[str], list[str]]:
    """The function words and first words that these chats use most, in the order of `matrix`."""
    words: Counter[str] = Counter()
    starts: Counter[str] = Counter()
    for one in forms:
        words.update(one.words)
        starts.update(one.starts)
    return _most(words, WORDS), _most(starts, STARTS)


def columns(words: Iterable[str], starts: Iterable[str]) -> list[str]:
    """What each column of `matrix` is, in words."""
    return [
        *NAMES.values(),
        *(f"the word “{word}”" for word in words),
        *(f"utterances that begin with “{word}”" for word in starts),
    ]


def _most(counted: Counter[str], n: int) -> list[str]:
    return sorted(counted, key=lambda word: (-counted[word], word))[:n]


class _ReadLine(NamedTuple):
    """One utterance, read."""

    key: tuple[str, ...]
    """Its words."""
    n_sentences: int
    function: list[str]
    """Those that carry no content, in their order."""
    content: frozenset[str]
    n_long: int
    question: bool
    end: str
    """Its last character, but for quotation marks; empty of nothing."""
    exclamations: int
    commas: int
    dots: bool
    emoji: bool
    closes: bool
    formal: bool


@lru_cache(maxsize=4096)  # people's lines are said again by bots, and read for each speaker
def _line(raw: str, known: Known) -> _ReadLine:
    low = _plain(raw, known.language)
    sentences = [words for words in known.sentences(low) if words]
    words = tuple(chain.from_iterable(sentences))
    function, content = _kinds(low, words, known)
    pieces = words if "'" not in low else {*words, *known.split(low.replace("'", " "))}
    return _ReadLine(
        words,
        len(sentences),
        function,
        content,
        len([word for word in words if len(word) >= known.long_word]),
        "?" in low,
        low.rstrip(" \"')")[-1:],
        low.count("!"),
        low.count(","),
        "..." in low or "\u2026" in low,
        not raw.isascii() and EMOJI.search(raw) is not None,
        bool(known.closing.found(low, pieces)),
        bool(known.formal.found(low, pieces)),
    )


_ENDS = ".!?\u3002\u2026"
_MARKS = str.maketrans({"\u2019": "'", "\uff1f": "?", "\u061f": "?", "\uff01": "!", "\uff0c": ","})


def _plain(raw: str, language: Language) -> str:
    """Lower case, plain marks, contractions written out."""
    low = raw.lower() if raw.isascii() else raw.lower().translate(_MARKS)
    if "'" in low:
        for pattern, full in _expansions(language):
            low = pattern.sub(full, low)
    return low


@lru_cache(maxsize=8)
def _expansions(language: Language) -> list[tuple[re.Pattern[str], str]]:
    """The pack's contractions and what they are short for, in questions too."""
    grammar = language.pack.faults.grammar if language.pack.faults else None
    return [
        (re.compile(rf"\b{short.replace('{not asked}', '')}\b"), full)
        for short, full in (grammar.expansions if grammar else ())
    ]


def _kinds(low: str, words: Sequence[str], known: Known) -> tuple[list[str], frozenset[str]]:
    """Function words in their order, and what carries content: stems, or pairs of characters."""
    if known.spaced:
        function = [word for word in words if word in known.function]
        return function, frozenset(map(known.stem, {*words} - known.function)) - {""}
    function = [word for word in known.cut.findall(low) if word in known.function]
    runs = known.cut.sub(" ", low).split()
    return function, frozenset(chain.from_iterable(map("".join, pairwise(run)) for run in runs))


def _lengths(lines: Sequence[_ReadLine]) -> tuple[float, ...]:
    """Mean, spread, least, most, slope and step of the logarithm of words; sentences; marks."""
    logs = [math.log(len(line.key)) for line in lines]
    middle = (len(logs) - 1) / 2
    slope = sum([(at - middle) * log for at, log in enumerate(logs)])
    apart = sum([(at - middle) ** 2 for at in range(len(logs))])
    steps = [abs(after - before) for before, after in pairwise(logs)]
    ends = min(logs, default=0.0), max(logs, default=0.0)
    sentences = _spread([float(line.n_sentences) for line in lines])
    marks = math.log1p(_mean([line.exclamations for line in lines]))
    return (*_spread(logs), *ends, _ratio(slope, apart), _mean(steps), *sentences, marks)


def _vocabulary(lines: Sequence[_ReadLine]) -> tuple[float, ...]:
    """Letters a word; shares of different words, different pairs and function words."""
    words = list(chain.from_iterable([line.key for line in lines]))
    pairs = list(chain.from_iterable([pairwise(line.key) for line in lines]))
    first = words[:_FIRST_WORDS]
    return (
        _ratio(sum(map(len, words)), len(words)),
        _ratio(len(set(first)), len(first)),
        _ratio(len(set(pairs)), len(pairs)),
        _ratio(sum([len(line.function) for line in lines]), len(words)),
    )


def _rates(lines: Sequence[_ReadLine]) -> tuple[float, ...]:
    """Shares of utterances or words; in `NAMES` from ``short`` to ``long_words``."""
    words = sum([len(line.key) for line in lines])
    return (
        _mean([len(line.key) <= _SHORT for line in lines]),
        _mean([len(line.key) >= _LONG for line in lines]),
        _mean([line.question for line in lines]),
        _mean([line.end == "?" for line in lines]),
        _mean([line.question and line.n_sentences == 1 for line in lines]),
        _mean([one.question and other.question for one, other in pairwise(lines)]),
        _ratio(sum([line.commas for line in lines]), words),
        _mean([line.dots for line in lines]),
        _mean([line.emoji for line in lines]),
        _mean([line.end not in _ENDS for line in lines]),
        _ratio(sum([line.n_long for line in lines]), words),
    )


def _phrases(lines: Sequence[_ReadLine]) -> tuple[float, ...]:
    """Words said twice in an utterance; closings, and in a row; formal phrases."""
    twice = sum([len(line.key) - len(set(line.key)) for line in lines])
    return (
        _ratio(twice, sum([len(line.key) for line in lines])),
        _mean([line.closes for line in lines]),
        _mean([one.closes and other.closes for one, other in pairwise(lines)]),
        _mean([line.formal for line in lines]),
    )


def _earlier(lines: Sequence[_ReadLine], who: Sequence[int]) -> list[tuple[float, ...]]:
    """What each utterance shares with earlier ones, each 0 to 1.

    Content said before by anybody (then 1 - it is new), by the speaker, in the last utterance of
    another; 4-grams said before; word for word said before; the greatest Jaccard index with an
    earlier utterance, few words measured as if they were 4.
    """
    found: list[tuple[float, ...]] = []
    where: dict[str, list[int]] = {}
    own: dict[int, set[str]] = {speaker: set() for speaker in who}
    runs: set[tuple[str, ...]] = set()
    keys: set[tuple[str, ...]] = set()
    for at, (line, speaker) in enumerate(zip(lines, who, strict=True)):
        content = line.content
        again = [where[word] for word in content if word in where]
        common = Counter(chain.from_iterable(again))
        last = next((k for k in reversed(range(at)) if who[k] != speaker), -1)
        sizes = [(n, len(content) + len(lines[k].content) - n) for k, n in common.items()]
        grams = {*zip(line.key, line.key[1:], line.key[2:], line.key[3:], strict=False)}
        found.append(
            (
                _ratio(len(again), len(content)),
                _ratio(len(content & own[speaker]), len(content)),
                _ratio(common[last], len(content)),
                _ratio(len(grams & runs), max(0, len(line.key) - 3)),
                float(line.key in keys),
                max([n / max(union, _FEWEST) for n, union in sizes], default=0.0),
            )
        )
        for word in content:
            where.setdefault(word, []).append(at)
        own[speaker] |= content
        runs |= grams
        keys.add(line.key)
    return found


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    middle = _mean(values)
    return middle, math.sqrt(_mean([(value - middle) ** 2 for value in values]))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _ratio(part: float, whole: float) -> float:
    """A share, 0 of nothing."""
    return part / whole if whole else 0.0
