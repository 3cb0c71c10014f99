"""The picture that a link to the page shows: the result, the judge, and everybody's rating."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from botchat.boards.names import elided
from botchat.report.figures import formats, style
from botchat.report.plane import Interval

WIDTH, HEIGHT = 7.5, 3.9375
"""Inches: 1200 by 630 pixels at the resolution of `formats.png`."""

_ROWS = 9
_SIZE = 17
"""Of the sentence, in points."""


def preview(
    seed_set: str,
    sentence: str,
    judge: str,
    ratings: Mapping[str, Interval],
    people: Interval | None,
    rated: str,
) -> bytes:
    """The picture as a PNG of 1200 by 630.

    ``judge``: what is said of it. ``ratings``: contestant -> number with its interval, the best
    first. ``people``: where people are; ``rated``: what the number is.
    """
    with style.styled():
        figure, ink = Figure(figsize=(WIDTH, HEIGHT)), style.tint(style.INK)
        brand = f"BotChat · {elided(seed_set, 40)}"
        figure.text(0.045, 0.93, brand, size=10, color=style.tint(style.MUTED), va="top")
        width = (0.41 if ratings else 0.9) * WIDTH
        lines = style.wrapped(sentence, _SIZE, width, bold=True)
        lines = lines if len(lines) <= 6 else [*lines[:5], elided(lines[5], 20) + " …"]
        said = "\n".join(lines)
        figure.text(0.045, 0.83, said, size=_SIZE, weight="bold", va="top", color=ink)
        said = "\n".join(style.wrapped(judge, 11, width)[:2])
        figure.text(0.045, 0.1, said, size=11, color=ink, va="bottom")
        if ratings:
            _rows(figure, dict([*ratings.items()][:_ROWS]), people, rated)
        return formats.png(figure)


def _rows(
    figure: Figure, ratings: Mapping[str, Interval], people: Interval | None, rated: str
) -> None:
    axes = figure.add_axes((0.74, 0.12, 0.22, 0.74))
    style.bare(axes)
    axes.set_yticks([])
    values, low, high = zip(*ratings.values(), strict=True)
    rows, (fill, edge) = range(len(values)), style.faces(ratings)
    if people:
        color = style.people()
        axes.axvspan(people[1], people[2], color=color, alpha=0.12, linewidth=0)
        axes.axvline(people[0], color=color, linewidth=1.5)
        axes.annotate("people", (people[0], 1.0), (0, 2), xycoords=axes.get_xaxis_transform(),
                      textcoords="offset points", ha="center", size=9, color=color)  # fmt: skip
    axes.hlines(rows, low, high, color=style.tint(style.MUTED), linewidth=2)
    axes.scatter(values, rows, s=25, color=fill, edgecolor=edge, zorder=3)
    place = axes.get_yaxis_transform()
    for row, name in enumerate(ratings):
        axes.text(-0.04, row, elided(name, 26), transform=place, ha="right", va="center", size=10)
    axes.margins(x=0.06)
    axes.set_ylim(max(len(rows), 4) - 0.4, -0.6)
    axes.tick_params(axis="x", labelsize=8)
    axes.locator_params(axis="x", nbins=3)
    axes.set_xlabel(f"{rated}, 95 % interval", size=8, color=style.tint(style.MUTED))
