"""Lengths of generated utterances in cl100k_base tokens (BotChat §4.1, Table 1, Figure 3).

Without the encoding's vocabulary, which tiktoken downloads, lengths are in words.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import math
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import Path
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
CACHE_DIR = "TIKTOKEN_CACHE_DIR"
DOWNLOAD_TIMEOUT_S = 20.0
"""How long a run waits for tiktoken's download, which then continues in the background."""

_URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
_FILE = hashlib.sha1(_URL.encode(), usedforsecurity=False).hexdigest()
"""tiktoken names a cached file by the SHA-1 of its address."""
_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

_WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+(?:['\u2019][^\W{IDEOGRAPHS}]+)*")
_ASCII_WORD = re.compile(r"\w+(?:'\w+)*", re.ASCII)
"""Finds the same words in ASCII text, faster."""
_ASCII_BLANKS = re.sub(rb"\W", b" ", bytes(range(256)))
"""Cuts ASCII text without apostrophes into the same words, faster still."""


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
    """The cl100k_base counter, or one of words without the vocabulary (logged once)."""
    folder = next(filter(_holds_vocabulary, _folders()), None)
    encoding = _load(folder) if folder else _download()
    if encoding is None:
        log.warning(
            f"lengths are counted in words, not tokens: the {ENCODING} vocabulary is not on this "
            f"machine and cannot be downloaded; set {CACHE_DIR} to a folder that holds it (file "
            f"{_FILE}), or run: pip install 'botchat-bench[tokens]'"
        )
        return Counter("words", words)
    encode = encoding.encode_ordinary
    return Counter("tokens", lambda text: len(encode(text)))


@lru_cache(maxsize=1 << 16)  # each protocol, and each judge, counts the same dialogues
def words(text: str) -> int:
    """Words of a text: runs of letters and digits, and each Han or kana character."""
    if text.isascii() and "'" not in text:
        return len(text.encode().translate(_ASCII_BLANKS).split())
    return len((_ASCII_WORD if text.isascii() else _WORD).findall(text))


def measure(dialogues: Dialogues, get_counter: Callable[[], Counter] = counter) -> Lengths:
    """Lengths of all generated utterances in one unit, counted where no tokens are recorded."""
    recorded = Counter("tokens", lambda _: -1)
    chosen, lengths = recorded, _counted(dialogues, recorded)
    if any((found < 0).any() for found in lengths.values()):
        lengths = _counted(dialogues, chosen := get_counter())
    return Lengths(chosen.unit, lengths)


def _counted(dialogues: Dialogues, chosen: Counter) -> dict[str, NDArray[np.int64]]:
    lengths = {}
    for name, by_seed in dialogues.items():
        found = (
            chosen.count(text) if tokens is None or chosen.unit == "words" else tokens
            for text, tokens in _spoken(by_seed)
        )
        lengths[name] = np.fromiter(found, np.int64)
    return lengths


def _spoken(dialogues: Mapping[str, Dialogue]) -> Iterator[tuple[str, int | None]]:
    """Every generated utterance of a contestant, and its tokens, if recorded."""
    for dialogue in dialogues.values():
        generated = dialogue.utterances[dialogue.n_seed :]
        yield from zip_longest(
            generated, [fact.tokens for fact in dialogue.facts[: len(generated)]]
        )


def summary(lengths: NDArray[np.int64]) -> dict[str, float]:
    """Statistics of lengths, shape (n,); nan without any.

    ``n``, ``mean``, ``median``, ``p95`` (linearly interpolated), ``max``, ``sd`` of the population.
    """
    if not len(lengths):
        return {"n": 0, **dict.fromkeys(("mean", "median", "p95", "max", "sd"), math.nan)}
    median, p95, longest = np.percentile(lengths, (50, 95, 100)).tolist()
    found = {"n": len(lengths), "mean": float(lengths.mean()), "median": median}
    return found | {"p95": p95, "max": longest, "sd": float(lengths.std())}


def log_words(dialogues: Mapping[str, Dialogue], end: int) -> dict[str, float]:
    """Seed id -> logarithm of 1 + the mean words of what was generated up to utterance ``end``."""
    made = {i: one.utterances[one.n_seed : end] for i, one in dialogues.items()}
    return {i: math.log1p(sum(map(words, said)) / max(1, len(said))) for i, said in made.items()}


def _folders() -> Iterator[Path]:
    """Folders that may hold the vocabulary, most explicit first."""
    for variable in (CACHE_DIR, "DATA_GYM_CACHE_DIR"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    # llama-index-core contains the file; find_spec does not import the package.
    spec = importlib.util.find_spec("llama_index")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place) / "core" / "_static" / "tiktoken_cache"
    yield Path(tempfile.gettempdir()) / "data-gym-cache"


def _holds_vocabulary(folder: Path) -> bool:
    """Whether tiktoken would use the file: one with another digest it deletes and downloads."""
    try:
        return hashlib.sha256((folder / _FILE).read_bytes()).hexdigest() == _SHA256
    except OSError:
        return False


def _load(folder: Path) -> tiktoken.Encoding:
    import tiktoken

    before = os.environ.get(CACHE_DIR)
    os.environ[CACHE_DIR] = str(folder)
    try:
        return tiktoken.get_encoding(ENCODING)
    finally:
        if before is None:
            del os.environ[CACHE_DIR]
        else:
            os.environ[CACHE_DIR] = before


def _download() -> tiktoken.Encoding | None:
    """Let tiktoken download it, in a thread because tiktoken sets no timeout."""
    import tiktoken

    got: list[tiktoken.Encoding] = []

    def get() -> None:
        try:
            got.append(tiktoken.get_encoding(ENCODING))
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            log.debug("cannot download %s: %s", ENCODING, error)

    thread = threading.Thread(target=get, name="tiktoken download", daemon=True)
    thread.start()
    thread.join(DOWNLOAD_TIMEOUT_S)
    return got[0] if got else None
