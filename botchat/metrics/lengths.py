"""Lengths of generated utterances in cl100k_base tokens (BotChat §4.1, Table 1, Figure 3).

Without the encoding's vocabulary, which tiktoken downloads, lengths are in words.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import starmap, zip_longest
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from botchat.languages.text import IDEOGRAPHS
from botchat.records import Dialogue, Dialogues

if TYPE_CHECKING:
    import tiktoken

log = logging.getLogger("botchat")

Unit = Literal["tokens", "words"]

ENCODING = "cl100k_base"
DOWNLOAD_TIMEOUT_S = 20.0
"""How long a run waits for tiktoken's download, which then continues in the background."""

_WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+(?:['\u2019][^\W{IDEOGRAPHS}]+)*")


@dataclass(frozen=True)
class Counter:
    """Measures a text in ``unit``."""

    unit: Unit
    count: Callable[[str], int]


@dataclass(frozen=True)
class Lengths:
    """Lengths of every generated utterance, without the ChatSEED's."""

    unit: Unit
    by_contestant: Mapping[str, NDArray[np.int64]]
    """Contestant -> lengths, in the order of its dialogues."""


@cache
def counter() -> Counter:
    """Return the cl100k_base counter, or one of words without the vocabulary (logged once)."""
    encodings: list[tiktoken.Encoding] = []

    def load() -> None:
        import tiktoken

        try:
            encodings.append(tiktoken.get_encoding(ENCODING))
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            log.debug("cannot load %s: %s", ENCODING, error)

    # In a thread, because tiktoken's download has no timeout.
    thread = threading.Thread(target=load, name="tiktoken", daemon=True)
    thread.start()
    thread.join(DOWNLOAD_TIMEOUT_S)
    if encodings:
        return Counter("tokens", lambda text: len(encodings[0].encode_ordinary(text)))
    log.warning(
        f"lengths are counted in words, not tokens: the {ENCODING} vocabulary is not on this "
        "machine and cannot be downloaded; set TIKTOKEN_CACHE_DIR to a folder where tiktoken has "
        "stored it"
    )
    return Counter("words", words)


@lru_cache(maxsize=1 << 16)  # each protocol, and each judge, counts the same dialogues
def words(text: str) -> int:
    """Return the words of a text: runs of letters and digits, and each Han or kana character."""
    return len(_WORD.findall(text))


def measure(dialogues: Dialogues, get_counter: Callable[[], Counter] = counter) -> Lengths:
    """Measure all generated utterances in one unit, counted where no tokens are recorded."""
    recorded = all(
        tokens is not None for by_seed in dialogues.values() for _, tokens in _generated(by_seed)
    )
    counting = Counter("tokens", len) if recorded else get_counter()

    def length(text: str, tokens: int | None) -> int:
        return counting.count(text) if tokens is None or counting.unit == "words" else tokens

    lengths = {
        name: np.fromiter(starmap(length, _generated(by_seed)), np.int64)
        for name, by_seed in dialogues.items()
    }
    return Lengths(counting.unit, lengths)


def _generated(dialogues: Mapping[str, Dialogue]) -> Iterator[tuple[str, int | None]]:
    """Yield every generated utterance of a contestant, and its tokens, if recorded."""
    for dialogue in dialogues.values():
        texts = dialogue.utterances[dialogue.n_seed :]
        yield from zip_longest(texts, [fact.tokens for fact in dialogue.facts[: len(texts)]])


def summary(lengths: NDArray[np.int64]) -> dict[str, float]:
    """Return statistics of lengths, shape (n,); nan without any.

    ``n``, ``mean``, ``median``, ``p95`` (linearly interpolated), ``max``, ``sd`` of the population.
    """
    if not len(lengths):
        return {"n": 0, **dict.fromkeys(("mean", "median", "p95", "max", "sd"), math.nan)}
    keys = ("n", "mean", "median", "p95", "max", "sd")
    percentiles = np.percentile(lengths, (50, 95, 100)).tolist()
    values = (len(lengths), float(lengths.mean()), *percentiles, float(lengths.std()))
    return dict(zip(keys, values, strict=True))


def log_words(dialogues: Mapping[str, Dialogue], end: int) -> dict[str, float]:
    """Return seed id -> log of 1 + the mean words of what was generated up to utterance ``end``."""
    texts = {seed_id: d.utterances[d.n_seed : end] for seed_id, d in dialogues.items()}
    return {i: math.log1p(sum(map(words, said)) / max(1, len(said))) for i, said in texts.items()}
