"""Sheets: what a figure draws, in px (1/96 inch) from its upper left corner; and the sheet as SVG.

Marks are few and plain (paths, dots, text), so that a figure is written in milliseconds, in the
colours of the page that it stands in or in its own, without matplotlib. No text is smaller than
`LEAST`. Ink and paper are the only shades, people the only colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from itertools import groupby
from typing import NamedTuple

from botchat.boards.names import elided, is_floor_bot
from botchat.errors import ConfigError
from botchat.records import HUMAN
from botchat.report.figures import ink
from botchat.report.figures.lettering import HEAD, LEAST, SIZE, width_of, wrapped

INCH = 96.0
NARROW, WIDE = 3.3, 6.3
"""Inches: a paper's column, and its page; what fits into a column is drawn for one."""

EDGE = 10.0
"""Px around a figure in a file."""

_INK, _PAPER = "#1a1917", "#ffffff"
_FAMILY = "system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"

Shade = float | tuple[str, float]
"""A share of ink, or of a colour, on paper."""
Spot = tuple[float, float]


class Stroke(NamedTuple):
    """A line or, filled, an area."""

    points: Sequence[Spot]
    fill: Shade | None = None
    shade: Shade | None = None
    width: float = 1.0
    dashes: tuple[float, ...] = ()
    opacity: float = 1.0
    whole: str = ""
    """What is shown when it is pointed at."""


class Dot(NamedTuple):
    """A round mark."""

    x: float
    y: float
    r: float
    fill: Shade
    shade: Shade | None
    width: float = 1.4
    whole: str = ""


class Text(NamedTuple):
    """One line of text from (``x``, ``y``), the end of its baseline that ``anchor`` names."""

    x: float
    y: float
    said: str
    size: float = SIZE
    anchor: str = "start"
    shade: Shade = ink.INK
    bold: bool = False
    turn: float = 0.0
    """Degrees, clockwise."""
    whole: str = ""


Mark = Stroke | Dot | Text


class Look(NamedTuple):
    """What may be chosen of a figure."""

    width: float = NARROW
    height: float | None = None
    """Inches; ``None``: what it needs."""
    bare: bool = False
    """For the page, which says them: no title, no signature."""
    more: float = 0.0
    """Px of height beyond what it needs."""

    @property
    def px(self) -> float:
        """Its width, inside its edges."""
        return self.width * INCH - (0 if self.bare else 2 * EDGE)

    def tall(self, natural: float, least: float, n: int = 1) -> float:
        """Height of a plot, or of each of its ``n`` rows, where its figure's height was chosen."""
        height = natural + self.more / n
        if height < min(natural, least):
            raise _too_small("height", (self.height or 0) + n * (least - height) / INCH)
        return height

    def wide(self, left: float, right: float = 0.0, least: float = 48.0) -> float:
        """Width of a plot between its sides; `ConfigError` where there is none."""
        if (room := self.px - left - right) < least:
            raise _too_small("width", self.width + (least - room) / INCH)
        return room


def _too_small(side: str, needed: float) -> ConfigError:
    needed = math.ceil(10 * needed) / 10
    return ConfigError(f"--size: the figure needs a {side} of {needed:g} inches and more")


class Heading(NamedTuple):
    """The text above and below a figure."""

    title: str
    subtitle: str
    """Set, judge and number of comparisons or dialogues."""
    signatures: Sequence[str] = ()


class Sheet:
    """Marks on paper; later ones lie above earlier ones, texts above all."""

    def __init__(self, width: float, height: float = 0.0) -> None:
        """Of so many px."""
        self.width, self.height = width, height
        self.marks: list[Mark] = []
        self.heading: Heading | None = None

    def line(self, points: Iterable[Spot], shade: Shade = ink.INK, width: float = 1.0,
             dashes: tuple[float, ...] = (), whole: str = "") -> None:  # fmt: skip
        """A line; none where a number is missing."""
        self._put(Stroke([*points], None, shade, width, dashes, 1.0, whole))

    def area(self, points: Iterable[Spot], fill: Shade, opacity: float = 1.0) -> None:
        """What a line encloses."""
        self._put(Stroke([*points], fill, None, opacity=opacity))

    def _put(self, stroke: Stroke) -> None:
        if all(math.isfinite(n) for spot in stroke.points for n in spot):
            self.marks.append(stroke)

    def box(
        self, x: float, y: float, x1: float, y1: float, fill: Shade, opacity: float = 1
    ) -> None:
        """A rectangle between two corners."""
        self.area([(x, y), (x1, y), (x1, y1), (x, y1)], fill, opacity)

    def dot(self, x: float, y: float, name: str = "", r: float = 3.8, *, hollow: bool = False,
            fill: Shade = ink.INK, whole: str = "") -> None:  # fmt: skip
        """The mark of a contestant: people in their colour, floor bots open."""
        edge: Shade = fill
        if name == HUMAN:
            edge = fill = ink.PEOPLE
        if math.isfinite(x + y):
            inside = 0.0 if hollow or is_floor_bot(name or "?") else fill
            self.marks.append(Dot(x, y, r, inside, edge, whole=whole))

    def say(self, x: float, y: float, said: str, anchor: str = "start", *, size: float = LEAST,
            shade: Shade = ink.INK, bold: bool = False, turn: float = 0.0,
            whole: str = "") -> None:  # fmt: skip
        """A line of text."""
        self.marks.append(Text(x, y, said, size, anchor, shade, bold, turn, whole))

    def name(self, x: float, y: float, name: str, said: str, anchor: str = "end", *,
             shade: Shade = ink.INK, size: float = SIZE, turn: float = 0.0) -> None:  # fmt: skip
        """A name; one that is cut has its whole when it is pointed at."""
        shade = ink.PEOPLE if name == HUMAN else shade
        whole = "" if name in said else name
        self.say(x, y, said, anchor, size=size, shade=shade, turn=turn, whole=whole)

    def key(self, y: float, entries: Iterable[tuple[str, Shade, str]], x: float = 0.0) -> float:
        """What marks mean, from ``y`` down; the height that it took.

        ``entries``: ``dot``, ``ring``, ``bar``, ``line`` or ``dotted``; its shade; and its words.
        """
        start, line = x, 0
        for kind, shade, said in entries:
            wide = 18 + width_of(said, LEAST)
            if x > start and x + wide > self.width:
                x, line = start, line + 1
            middle = y + 16 * line + 5
            if kind in ("dot", "ring"):
                self.marks.append(Dot(x + 6, middle, 3.8, 0.0 if kind == "ring" else shade, shade))
            elif kind == "bar":
                self.box(x, middle - 4, x + 13, middle + 4, shade)
            else:
                dashes = (1.5, 2.5) if kind == "dotted" else ()
                self.line([(x, middle), (x + 13, middle)], shade, 1.8, dashes)
            self.say(x + 18, middle + 4, said, shade=ink.SOFT)
            x += wide + 12
        return 16.0 * (line + 1) + 6

    @property
    def texts(self) -> list[Text]:
        """Every text."""
        return [mark for mark in self.marks if isinstance(mark, Text)]

    def headed(self, heading: Heading) -> Sheet:
        """Itself, as a file has it: between its title and its signatures."""
        framed, room = Sheet(self.width + 2 * EDGE), self.width
        y = EDGE

        def put(said: str, size: float, shade: Shade, *, bold: bool = False, at: str = " ") -> None:
            nonlocal y
            for line in wrapped(said, size, room, at=at, bold=bold):
                y += 1.32 * size
                framed.say(EDGE, y - 0.3 * size, line, size=size, shade=shade, bold=bold)

        put(heading.title, HEAD, ink.INK, bold=True)
        put(heading.subtitle, LEAST, ink.SOFT)
        framed.marks += [_moved(mark, EDGE, y + EDGE) for mark in self.marks]
        y += self.height + 2 * EDGE
        for signature in heading.signatures:
            put(signature, LEAST, ink.SOFT, at="|")
        framed.height = y + EDGE
        framed.heading = heading
        return framed

    def svg(self, *, of_page: bool = False) -> str:
        """As an SVG document: the same marks give the same text.

        ``of_page``: in its colours, by ``--ink``, ``--paper`` and ``--people``, and its font.
        """
        color = _of_page if of_page else of_file
        size = f'width="{_n(self.width)}" height="{_n(self.height)}"'
        own = "" if of_page else f' xmlns="http://www.w3.org/2000/svg" font-family="{_FAMILY}"'
        said = self.heading or Heading("", "")
        parts = [f'<svg{own} {size} viewBox="0 0 {_n(self.width)} {_n(self.height)}" role="img" '
                 f'aria-label="{_said(said.title)}">']  # fmt: skip
        if not of_page:
            told = "\n".join((said.subtitle, *said.signatures))
            parts.append(f"<title>{_said(said.title)}</title><desc>{_said(told)}</desc>"
                         f'<rect width="100%" height="100%" fill="{_PAPER}"/>')  # fmt: skip
        marks = [one for one in self.marks if not isinstance(one, Text)]
        for (how, _), run in groupby([*marks, *self.texts], lambda mark: _how(mark, color)):
            parts.append(f"<g {how}>{''.join(_elements([*run]))}</g>")
        return "\n".join([*parts, "</svg>\n"])


def _moved(mark: Mark, dx: float, dy: float) -> Mark:
    if isinstance(mark, Stroke):
        return mark._replace(points=[(x + dx, y + dy) for x, y in mark.points])
    return mark._replace(x=mark.x + dx, y=mark.y + dy)


# ----------------------------------------------------------------------------------------- SVG


def _n(value: float) -> str:
    """Tenths of a px are enough."""
    return f"{value:.1f}".removesuffix(".0")


def _said(text: str) -> str:
    """Text without control characters, for an SVG."""
    return escape("\n".join(elided(line, 4000) for line in text.split("\n")))


def of_file(shade: Shade) -> str:
    """The colour of a shade in a file."""
    color, share = shade if isinstance(shade, tuple) else (_INK, shade)
    return mixed(color, share)


def _of_page(shade: Shade) -> str:
    color, share = shade if isinstance(shade, tuple) else ("var(--ink)", shade)
    color = "var(--people)" if color == ink.ORANGE else color
    if share in (0, 1):
        return color if share else "var(--paper)"
    return f"color-mix(in srgb,{color} {100 * share:.0f}%,var(--paper))"


@cache
def mixed(color: str, share: float) -> str:
    """So much of a colour on paper."""
    pairs = ((int(color[i : i + 2], 16), int(_PAPER[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(share * one + (1 - share) * two):02x}" for one, two in pairs)


def _how(mark: Mark, of: Callable[[Shade], str]) -> tuple[str, type]:
    """Attributes that marks of one group share."""
    if isinstance(mark, Text):
        bold = ' font-weight="700"' if mark.bold else ""
        how = f'fill="{of(mark.shade)}" font-size="{_n(mark.size)}" text-anchor="{mark.anchor}"'
        return how + bold, Text
    fill = "none" if mark.fill is None else of(mark.fill)
    how = f'fill="{fill}"'
    if mark.shade is not None:
        how += f' stroke="{of(mark.shade)}" stroke-width="{_n(mark.width)}"'
    if isinstance(mark, Stroke):
        how += f' stroke-dasharray="{" ".join(map(_n, mark.dashes))}"' if mark.dashes else ""
        how += f' fill-opacity="{mark.opacity:g}"' if mark.opacity < 1 else ""
    return how, type(mark)


def _elements(marks: Sequence[Mark]) -> Iterable[str]:
    """Marks of one group; paths that say nothing are one."""
    for silent, run in groupby(marks, lambda mark: isinstance(mark, Stroke) and not mark.whole):
        if silent:
            yield f'<path d="{"".join(map(_path, run))}"/>'
            continue
        for mark in run:
            told = f"<title>{_said(mark.whole)}</title>" if mark.whole else ""
            if isinstance(mark, Text):
                at = f'x="{_n(mark.x)}" y="{_n(mark.y)}"'
                if mark.turn:
                    at = f'transform="translate({_n(mark.x)} {_n(mark.y)}) rotate({_n(mark.turn)})"'
                yield f"<text {at}>{told}{_said(mark.said)}</text>"
            elif isinstance(mark, Dot):
                at = f'cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="{_n(mark.r)}"'
                yield f"<circle {at}>{told}</circle>" if told else f"<circle {at}/>"
            else:
                yield f'<path d="{_path(mark)}">{told}</path>'


def _path(line: Mark) -> str:
    assert isinstance(line, Stroke)
    if line.fill is not None and len(line.points) == 4:
        (x, y), (x1, y1), (x2, y2), (x3, y3) = line.points
        if (y, x1, y2, x3) == (y1, x2, y3, x):  # a box
            return f"M{_n(x)} {_n(y)}H{_n(x1)}V{_n(y2)}H{_n(x)}Z"
    points = "L".join(f"{_n(x)} {_n(y)}" for x, y in line.points)
    return f"M{points}{'Z' if line.fill is not None else ''}"
