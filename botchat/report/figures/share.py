"""The picture that a link to the page shows: the result, the judge, and everybody's rating."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from botchat.boards.names import elided
from botchat.report.figures import formats, style

WIDTH, HEIGHT = 7.5, 3.9375
"""Inches: 1200 by 630 pixels at the resolution of `formats.png`."""

_ROWS = 9
_SIZE = 17
"""Of the sentence, in points."""

Interval = tuple[float, float, float]


@style.styled()
def preview(
    seed_set: str,
    sentence: str,
    judge: str,
    ratings: Sequence[tuple[str, Interval, bool]],
    people: Interval | None,
    rated: str,
) -> bytes:
    """The picture as a PNG of 1200 by 630.

    ``judge``: what is said of it. ``ratings``: contestant, number with its interval, whether it is
    a floor bot; the best first. ``people``: where people are; ``rated``: what the number is.
    """
    figure = Figure(figsize=(WIDTH, HEIGHT))
    brand = f"BotChat · {elided(seed_set, 40)}"
    figure.text(0.045, 0.93, brand, size=10, color=style.tint(style.MUTED), va="top")
    width = 0.41 if ratings else 0.9
    lines = style.wrapped(sentence, _SIZE, width * WIDTH, bold=True)
    lines = lines if len(lines) <= 6 else [*lines[:5], elided(lines[5], 20) + " …"]
    y = 0.83
    for line in lines:
        figure.text(
            0.045, y, line, size=_SIZE, weight="bold", va="top", color=style.tint(style.INK)
        )
        y -= _SIZE * 1.25 / 72 / HEIGHT
    for line in style.wrapped(judge, 11, width * WIDTH)[:2][::-1]:
        figure.text(0.045, 0.1, line, size=11, color=style.tint(style.INK), va="bottom")
    shown = ratings[:_ROWS]
    if shown:
        _rows(figure, shown, people, rated)
    return formats.png(figure)


def _rows(
    figure: Figure,
    shown: Sequence[tuple[str, Interval, bool]],
    people: Interval | None,
    rated: str,
) -> None:
    axes = figure.add_axes((0.74, 0.12, 0.22, 0.74))
    style.bare(axes)
    axes.set_yticks([])
    ends = [end for _, told, _ in shown for end in told] + list(people or ())
    room = (max(ends) - min(ends) or 1) * 0.06
    axes.set_xlim(min(ends) - room, max(ends) + room)
    axes.set_ylim(max(len(shown), 4) - 0.4, -0.6)
    if people:
        axes.axvspan(people[1], people[2], color=style.people(), alpha=0.12, linewidth=0)
        axes.axvline(people[0], color=style.people(), linewidth=1.5)
        axes.annotate(
            "people", (people[0], 1.0), (0, 2), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", size=9, color=style.people(),
        )  # fmt: skip
    for row, (name, (value, low, high), floor) in enumerate(shown):
        axes.plot(
            [low, high],
            [row, row],
            color=style.tint(style.MUTED),
            linewidth=2,
            solid_capstyle="butt",
        )
        face = "white" if floor else style.tint(style.INK)
        mark = "s" if floor else "o"
        axes.plot(
            [value], [row], mark, color=style.tint(style.INK), markerfacecolor=face, markersize=5
        )
        place = axes.get_yaxis_transform()
        axes.text(-0.04, row, elided(name, 26), transform=place, ha="right", va="center", size=10)
    axes.tick_params(axis="x", labelsize=8)
    axes.locator_params(axis="x", nbins=3)
    axes.set_xlabel(f"{rated}, 95 % interval", size=8, color=style.tint(style.MUTED))
