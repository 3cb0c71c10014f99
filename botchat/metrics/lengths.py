"""Lengths of generated utterances in cl100k_base tokens (BotChat §4.1, Table 1, Figure 3).

Without the encoding's vocabulary, which tiktoken downloads, lengths are in words.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from botchat.errors import log
from botchat.languages.text import IDEOGRAPHS
from botchat.records import Dialogue, Dialogues, Texts

ENCODING = "cl100k_base"
_WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+(?:['\u2019][^\W{IDEOGRAPHS}]+)*")


class Counter(NamedTuple):
    """Measures a text in tokens or words."""

    unit: str
    count: Callable[[str], int]


class Lengths(NamedTuple):
    """Lengths of every generated utterance by contestant, in the order of its dialogues."""

    unit: str
    by_contestant: Mapping[str, NDArray[np.int64]]


@cache
def counter() -> Counter:
    """Return the cl100k_base counter, or one of words without the vocabulary."""
    import tiktoken  # which is slow to load

    try:
        encoding = tiktoken.get_encoding(ENCODING)
    except (OSError, ValueError):  # requests' errors are OSErrors
        return Counter("words", words)
    # A dialogue's utterances are counted again in each of its prompts.
    count = lru_cache(10_000)(lambda text: len(encoding.encode_ordinary(text)))
    return Counter("tokens", count)


@cache
def warn_of_words() -> None:
    """Say, once, that lengths are in words, and how to have them in tokens."""
    log.warning(
        f"lengths are in words: TIKTOKEN_CACHE_DIR has no vocabulary {ENCODING} (docs/install.md)"
    )


def words_of(text: str) -> list[str]:
    """Split a text into runs of letters and digits, and each Han or kana character."""
    return _WORD.findall(text)


@lru_cache(maxsize=1 << 19)  # each protocol, and each judge, counts the same dialogues
def words(text: str) -> int:
    """Return the number of words of a text; see `words_of`."""
    return len(words_of(text))


def measure(dialogues: Dialogues) -> Lengths:
    """Measure all generated utterances in one unit, counted where no tokens are recorded."""
    generated = defaultdict[str, list[tuple[str, int | None]]](list)
    for name, by_seed in dialogues.items():
        utterances = generated[name]
        for dialogue in by_seed.values():
            texts = dialogue.utterances[dialogue.n_seed :]
            utterances += zip_longest(texts, [fact.tokens for fact in dialogue.facts[: len(texts)]])
    counting = Counter("tokens", len)
    if any(tokens is None for _, tokens in chain.from_iterable(generated.values())):
        counting = counter()
    lengths = {}
    for name, utterances in generated.items():
        counts = []
        for text, tokens in utterances:
            if tokens is None or counting.unit == "words":
                tokens = counting.count(text)
            counts.append(tokens)
        lengths[name] = np.array(counts, np.int64)
    return Lengths(counting.unit, lengths)


def summary(lengths: NDArray[np.int64]) -> dict[str, float]:
    """Return ``utterances`` and the mean, median … of their lengths, shape (n,); nan if none."""
    known = lengths if len(lengths) else [math.nan]
    median, p95, longest = np.percentile(known, (50, 95, 100)).tolist()
    return {
        "utterances": len(lengths),
        "mean": float(np.mean(known)),
        "median": median,
        "p95": p95,
        "max": longest,
    }


def log_words(dialogues: Mapping[str, Dialogue], end: int | None) -> dict[str, float]:
    """Return seed id -> log of 1 + the mean words of utterances generated up to ``end``."""
    logs = {}
    for seed_id, dialogue in dialogues.items():
        texts = dialogue.utterances[dialogue.n_seed : end]
        logs[seed_id] = math.log1p(mean_words(texts))
    return logs


def mean_words(texts: Texts) -> float:
    """Return the mean words of some texts; 0 of none."""
    return sum(map(words, texts)) / max(1, len(texts))
