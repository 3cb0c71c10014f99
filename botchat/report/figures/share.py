"""The picture that a link to the page shows: the result, the judge, and everybody's rating."""

from __future__ import annotations

from collections.abc import Mapping

from botchat.boards.names import elided
from botchat.report.figures import ink, pictures
from botchat.report.figures.lettering import wrapped
from botchat.report.figures.sheet import Sheet
from botchat.report.plane import Interval

WIDTH, HEIGHT = 720, 378
"""Px: 1200 by 630 pixels of `pictures.png`."""

_ROWS = 9
_SIZE = 22.5
"""Of the sentence, in px."""


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
    sheet = Sheet(WIDTH, HEIGHT)
    width = (0.41 if ratings else 0.9) * WIDTH
    sheet.say(32, 38, f"BotChat · {elided(seed_set, 40)}", size=13.5, shade=ink.SOFT)
    lines = wrapped(sentence, _SIZE, width, bold=True)
    lines = lines if len(lines) <= 6 else [*lines[:5], elided(lines[5], 20) + " …"]
    for i, line in enumerate(lines):
        sheet.say(32, 86 + 29 * i, line, size=_SIZE, bold=True)
    for i, line in enumerate(reversed(wrapped(judge, 14.5, width)[:2])):
        sheet.say(32, 346 - 20 * i, line, size=14.5)
    if ratings:
        _rows(sheet, dict([*ratings.items()][:_ROWS]), people, rated)
    return pictures.png(sheet)


def _rows(
    sheet: Sheet, ratings: Mapping[str, Interval], people: Interval | None, rated: str
) -> None:
    left, wide, top, each = 0.74 * WIDTH, 0.22 * WIDTH, 44.0, 278.0 / max(len(ratings), 4)
    foot = top + each * len(ratings)
    numbers = [*(n for one in ratings.values() for n in one), *(people or ())]
    low, high = (float(end([n for n in numbers if n == n])) for end in (min, max))

    def x(value: float) -> float:
        return left + wide * (value - low) / ((high - low) or 1)

    if people:
        color = (ink.PEOPLE, 1.0)
        sheet.box(x(people[1]), top - 4, x(people[2]), foot, color, 0.12)
        sheet.line([(x(people[0]), top - 4), (x(people[0]), foot)], color, 2)
        sheet.say(x(people[0]), top - 9, "people", "middle", size=12, shade=color)
    for i, (name, (value, start, end)) in enumerate(ratings.items()):
        y = top + (i + 0.5) * each
        sheet.line([(x(start), y), (x(end), y)], ink.BAR, 2.6)
        sheet.dot(x(value), y, name, 3.6)
        sheet.say(left - 12, y + 4.5, elided(name, 26), "end", size=13.3, shade=ink.INK)
    said = f"{rated}, 95 % interval"
    sheet.say(left + wide, foot + 22, said, "end", size=11, shade=ink.SOFT)
