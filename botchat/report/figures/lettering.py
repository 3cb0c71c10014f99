"""How wide text is, in px, without drawing it; and names that fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from PIL import ImageFont

from botchat.boards.names import LABEL_COLUMNS, elided, labels

LEAST, SIZE, HEAD = 11.0, 11.5, 15.5
"""Px of the smallest text, of names, and of a title."""

LETTERS = 14
"""A name is not cut to fewer."""


@cache
def font(bold: bool = False, size: float = 2048) -> ImageFont.FreeTypeFont:
    """DejaVu Sans: it comes with matplotlib, so that text is as wide everywhere."""
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.submodule_search_locations
    name = f"DejaVuSans{'-Bold' if bold else ''}.ttf"
    path = Path(spec.submodule_search_locations[0], "mpl-data", "fonts", "ttf", name)
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


@cache
def has(char: str) -> bool:
    """Whether that font can draw a character."""
    drawn, lacking = (font(size=16).getmask(one) for one in (char, "\U0010fffe"))
    return drawn.size != lacking.size or [*map(drawn.getpixel, _ALL)] != [
        *map(lacking.getpixel, _ALL)
    ]


_ALL = [(x, y) for y in range(10) for x in range(7)]
"""Places that tell a letter from the box that stands for one that is lacking."""


@cache
def _em(char: str, bold: bool) -> float:
    """Advance of a character in sizes of its font."""
    if ord(char) < 0x250 or has(char):
        return font(bold).getlength(char) / 2048
    if unicodedata.combining(char):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(char) in "WF" else 0.7


def width_of(text: str, size: float = SIZE, bold: bool = False) -> float:
    """Width of a line of text in px, kerning aside; about right for what the font has not."""
    return sum(_em(char, bold) for char in text) * size


def widest(texts: Iterable[str], size: float = SIZE, bold: bool = False) -> float:
    """Width of the widest of some texts; 0 of none."""
    return max((width_of(text, size, bold) for text in texts), default=0.0)


def fitted(names: Sequence[str], room: float, size: float = SIZE) -> list[str]:
    """`labels` of names in so many px: if need be without organisations, or cut.

    None has fewer than `LETTERS` letters of its own, even where that is wider.
    """
    bare = [name.rpartition("/")[2] or name for name in names]
    for some in (names, bare) if len({*bare}) == len({*names}) else (names,):
        if widest(shown := labels(some), size, bold=True) <= room:
            return shown
    for columns in range(LABEL_COLUMNS, LETTERS - 1, -1):
        if widest(shown := labels(some, columns), size, bold=True) <= room:
            break
    return shown


def wrapped(
    text: str, size: float, width: float, *, at: str = " ", bold: bool = False
) -> list[str]:
    """Text in lines at most so many px wide, broken after ``at`` or else anywhere."""
    lines, used = [""], 0.0
    for piece in elided(text, 4000).replace(at, f"{at}\0").split("\0"):
        if lines[-1] and used + width_of(piece.rstrip(), size, bold) > width:
            lines.append("")
            used = 0.0
        for char in piece:
            if used + (wide := _em(char, bold) * size) > width and char != " ":
                lines.append("")
                used = 0.0
            lines[-1] += char
            used += wide
    return [line.rstrip() for line in lines if line.strip()]


def apart(heights: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Places from ``low`` down to ``high``, at least ``distance`` apart, near to ``heights``.

    ``heights``: ascending, as px go down.
    """
    places: list[float] = []
    for height in heights:
        places.append(max(height, places[-1] + distance if places else low))
    most = high
    for i in reversed(range(len(places))):
        places[i] = min(places[i], most)
        most = places[i] - distance
    return places
