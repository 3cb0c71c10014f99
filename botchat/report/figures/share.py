"""What a link to the page shows: its whole sentence, the judge's stamp, and everybody's number."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from botchat.boards.names import elided
from botchat.report.figures import ink, pictures
from botchat.report.figures.lettering import LEAST, width_of, wrapped
from botchat.report.figures.sheet import Sheet
from botchat.report.main_table import Bar

WIDTH, HEIGHT = 720, 378
"""Px: 1200 by 630 pixels of `pictures.png`."""

_EDGE, _FOOT, _ROWS = 34.0, 330.0, 7
_SIZES = (30.0, 27.0, 24.0, 21.0, 18.5, 16.0, 14.0, 12.0)
"""Of the sentence, in px: the first in which there is room for all of it."""


def preview(
    sentence: str,
    scope: str,
    stamp: str,
    rows: Sequence[tuple[str, str, Bar]],
    rated: str,
) -> bytes:
    """The picture as a PNG of 1200 by 630.

    ``scope``: what was done. ``stamp``: what the judge is worth, a sign before it. ``rows``: each
    contestant, its number, and where that and its interval are on one scale, the best first.
    ``rated``: what the number is.
    """
    sheet = Sheet(WIDTH, HEIGHT)
    width = (0.47 if rows else 1) * WIDTH - 1.4 * _EDGE
    for size in _SIZES:
        lines = wrapped(sentence, size, width, bold=True)
        whole = all(width_of(word, size, bold=True) <= width for word in sentence.split())
        if whole and len(lines) * 1.15 * size <= _FOOT - 44:
            break
    y = _EDGE + 6.0
    for line in lines:
        y += 1.15 * size
        sheet.say(_EDGE, y - 0.3 * size, line, size=size, bold=True)
    below = wrapped(scope, 14, width)
    for i, line in enumerate(below if y + 8 + 19 * len(below) < _FOOT - 12 else ()):
        sheet.say(_EDGE, y + 20 + 19 * i, line, size=14, shade=ink.SOFT)
    sheet.say(_EDGE, _FOOT + 19, "BotChat", size=14.5, bold=True)
    x = _EDGE + width_of("BotChat", 14.5, bold=True) + 14
    end = x + width_of(stamp, 14.5) + 22
    corners = [(x, _FOOT), (end, _FOOT), (end, _FOOT + 28), (x, _FOOT + 28), (x, _FOOT)]
    if refused := stamp.startswith("✕"):
        sheet.area(corners, ink.INK)
    sheet.line(corners, ink.INK, 1.2, (3, 2) if stamp.startswith("?") else ())
    sheet.say(x + 11, _FOOT + 19, stamp, size=14.5, shade=0.0 if refused else ink.INK)
    if rows:
        _draw(sheet, rows, rated)
    return pictures.png(sheet)


def _draw(sheet: Sheet, rows: Sequence[tuple[str, str, Bar]], rated: str) -> None:
    """A line each: name, number, and the number with its interval drawn."""
    shown, names, left, right = rows[:_ROWS], 0.53 * WIDTH, 0.8 * WIDTH, WIDTH - _EDGE
    told = wrapped(rated, 12.5, right - names)
    for i, line in enumerate(told):
        sheet.say(names, _EDGE + 14 + 16 * i, line, size=12.5, shade=ink.SOFT)
    top = _EDGE + 22.0 + 16 * len(told)
    each = min(44.0, (_FOOT - top) / (_ROWS + 0.5))
    foot = top + each * len(shown)
    bars = [bar for *_, bar in shown]
    low, high = min(bar.low for bar in bars), max(bar.high for bar in bars)

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / ((high - low) or 1)

    for i, (name, number, bar) in enumerate(shown):
        y = top + (i + 0.5) * each
        sheet.line([(x(bar.low), y), (x(bar.high), y)], ink.BAR, 6)
        sheet.dot(x(bar.at), y, name, 4.2)
        sheet.say(left - 14, y + 5, number, "end", size=16, bold=True)
        sheet.say(names, y + 5, elided(name, 20), size=13.3)
    if len(rows) > len(shown):
        more = f"and {len(rows) - len(shown):,} more"
        sheet.say(names, foot + 16, more, size=12.5, shade=ink.SOFT)


def badge(said: str, stamp: str) -> str:
    """A line for a README, as SVG: the result in a few words, and what the judge is worth."""
    parts, x, drawn = ("BotChat", said, stamp), 0.0, []
    for i, text in enumerate(parts):
        wide = round(width_of(text, LEAST, bold=i == 0) + 14, 1)
        fill, shade = ("#1a1917", "#fff") if i == 0 else ("#eeebe4", "#1a1917")
        weight = ' font-weight="600"' if i == 0 else ""
        drawn.append(
            f'<rect x="{x:g}" width="{wide:g}" height="20" fill="{fill}"/><text x="{x + 7:g}" '
            f'y="14" fill="{shade}"{weight}>{escape(text)}</text>'
        )
        x = round(x + wide, 1)
    whole = escape(": ".join(parts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x:g}" height="20" role="img" '
        f'aria-label="{whole}"><title>{whole}</title><g font-family="system-ui, Arial, '
        f'\'DejaVu Sans\', sans-serif" font-size="{LEAST:g}">{"".join(drawn)}</g></svg>\n'
    )
