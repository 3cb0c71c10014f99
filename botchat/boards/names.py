"""Names of models where there is little room: in figures, on pages, on a terminal."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate

LABEL_COLUMNS = 34
"""Width of the longest label of a model, in columns of a terminal."""


def labels(names: Sequence[str], columns: int = LABEL_COLUMNS) -> list[str]:
    """Names as figures and pages show them: one line, shortened, all different."""
    short = {name: shorten(name, columns) for name in names}
    count = Counter(short.values())
    for name, label in short.items():
        if count[label] > 1:
            digest = sha256(name.encode("utf-8", "replace")).hexdigest()
            short[name] = f"{shorten(name, columns - 5)}~{digest[:4]}"
    return [short[name] for name in names]


@lru_cache(maxsize=1 << 12)  # every figure tries how many models' names fit
def shorten(text: str, columns: int) -> str:
    """Text without control characters, its middle left out if it is wider than ``columns``."""
    # Cf: marks that turn the writing direction of everything after them.
    clean = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)
    clean = " ".join(clean.split())
    if sum(map(_columns, clean)) <= columns:
        return clean
    room = (columns - 1) // 2
    head = sum(total <= columns - 1 - room for total in accumulate(map(_columns, clean)))
    tail = sum(total <= room for total in accumulate(map(_columns, reversed(clean))))
    return f"{clean[:head]}…{clean[len(clean) - tail :]}"


def _columns(char: str) -> int:
    """Width of a character on a terminal."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def is_floor_bot(contestant: str) -> bool:
    """Whether a contestant is one of BotChat's own offline bots."""
    return all(name.startswith("bot:") for name in contestant.split(" + "))
