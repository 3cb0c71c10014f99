"""One look for every figure: its size, its shades, and names that fit.

A figure is laid out for its width; no text is smaller than `LEAST` points. Ink and paper are the
only shades, people the only colour. No pyplot: its figures are global state.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import ArrayLike

from botchat.boards.names import LABEL_COLUMNS, elided, labels
from botchat.errors import ConfigError
from botchat.records import HUMAN

_RC: Any = mpl.rc_params_from_file(
    Path(__file__).with_name("figures.mplstyle"), use_default_template=False
)

WIDE, NARROW = 7.0, 3.7
"""Inches: half of a page of 1440 px, and a whole one of 390 px, at 96 px an inch."""

LEAST = 8.25
"""Points of the smallest text: 11 px."""

SIZE = 8.5
"""Points of names."""

ROW = 0.165
"""Least height of a row with a name, in inches."""

INK, MUTED, BAR, GRID, WASH = 1.0, 0.72, 0.5, 0.14, 0.06
"""Shades, as `tint` takes them: marks; second text; intervals; lines and areas behind them."""

_PAD = 5
"""Between a plot and its labels, in points."""

EDGE = 0.12
"""Around a figure, in inches."""

_LINE = 1.35
"""Height of a line of text, in sizes of its font."""

_LEAST_PLOT = 0.5
"""Width of a plot, in inches."""

_KEY = 0.19
"""Height of a line of a key, in inches."""


class Drawn(Figure):
    """A figure that a notebook shows, whatever its backend."""

    def draw(self, renderer: Any) -> None:
        """Draw it; texts of the same size and font are measured once for all figures."""
        measure = renderer.get_text_width_height_descent
        kind = (measure.__qualname__, self.dpi, _family(), mpl.rcParams["text.hinting"])
        known = _MEASURED.setdefault(kind, {})

        def measured(said: str, font: FontProperties, ismath: Any) -> tuple[float, float, float]:
            key = said, hash(font), ismath
            if key not in known:
                known[key] = measure(said, font, ismath)
            return known[key]

        renderer.get_text_width_height_descent = measured
        try:
            super().draw(renderer)
        finally:
            del renderer.get_text_width_height_descent

    def _repr_svg_(self) -> str:
        from botchat.report.figures.formats import svg

        return svg(self)


_MEASURED: dict[Any, dict[Any, tuple[float, float, float]]] = {}
"""How texts are measured -> text and font -> width, height, descent in pixels."""


class Look(NamedTuple):
    """What may be chosen of a figure."""

    width: float = WIDE
    height: float | None = None
    """Inches; ``None``: what it needs."""
    order: tuple[str, ...] = ()
    """Names, the first on top; none: as the figure has them, such as the best first."""
    highlight: tuple[str, ...] = ()
    """Names to stand out."""
    style: Path | None = None
    """A matplotlib style file, on top of our own."""

    @property
    def narrow(self) -> bool:
        """Whether it is for a telephone."""
        return self.width < (WIDE + NARROW) / 2

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Names in the chosen order; those that it lacks last, as they come."""
        place = {name: i for i, name in enumerate(self.order)}
        return sorted(names, key=lambda name: place.get(name, len(place)))


class Heading(NamedTuple):
    """The text above and below a figure, and its look."""

    title: str
    subtitle: str
    """Set, judge and number of comparisons or dialogues."""
    signatures: Sequence[str]
    look: Look = Look()


@contextmanager
def styled(style: Path | None = None) -> Iterator[None]:
    """The settings of figures, within a block; ``style`` is a file of more."""
    with mpl.rc_context(_RC):
        if style is not None:
            from matplotlib import style as styles  # reads 30 files when imported

            if not style.is_file() and str(style) not in styles.available:
                raise ConfigError(
                    f"--style {style}: no such file, and no style of matplotlib, such as "
                    "dark_background"
                )
            try:
                styles.use(str(style))
            except (OSError, ValueError) as error:
                said = " ".join(str(error).split())
                raise ConfigError(f"--style {style}: no matplotlib style: {said}") from None
        yield


def tint(share: float) -> str:
    """The shade between paper (0) and ink (1), in whole percent."""
    return _tint(_paper(), mpl.rcParams["text.color"], round(100 * share))


def people() -> str:
    """The colour of people."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()
    return to_hex(cycle.get("color", ["#a83c0e"])[0])


def _paper() -> Any:
    given = mpl.rcParams["figure.facecolor"]
    return "white" if given == "none" else given


@cache
def _tint(paper: Any, ink: Any, percent: int) -> str:
    return mixed(ink, paper, percent / 100)


def mixed(color: Any, paper: Any, share: float) -> str:
    """So much of a colour, on paper."""
    r, g, b = (
        share * one + (1 - share) * other
        for one, other in zip(to_rgb(color), to_rgb(paper), strict=True)
    )
    return str(to_hex((r, g, b)))


def faces(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Fill and edge of the mark of each: people in their colour, floor bots open."""
    found = [
        (people(),) * 2 if name == HUMAN
        else (tint(0 if name.startswith("bot:") else 1), tint(1))
        for name in names
    ]  # fmt: skip
    return [fill for fill, _ in found], [edge for _, edge in found]


def sheet(
    heading: Heading,
    panels: Sequence[float],
    *,
    left: float,
    right: float = 0.2,
    above: float = 0.1,
    below: float = 0.5,
    columns: int = 1,
    gap: float = 0.3,
    least: float = 0.8,
    key: Sequence[Patch | Line2D] = (),
) -> tuple[Figure, list[Axes]]:
    """A figure with heading, key, panels and signatures; all sizes in inches.

    ``panels``: the height of each; ``columns`` stand side by side. ``left``, ``right``: room for
    names at the edges. ``above``, ``below``: room at each panel. ``least``: height that a panel
    needs where the figure's is chosen.
    """
    look = heading.look
    width = look.width
    across = (width - left - right - gap * (columns - 1)) / columns
    if across < _LEAST_PLOT:
        more = width + columns * (_LEAST_PLOT - across)
        raise ConfigError(
            f"--size: {heading.title!r} needs a width of {_up(more):g} inches and more"
        )
    room = width - 2 * EDGE
    large = 11 if look.narrow else 12.5
    title = wrapped(heading.title, large, room, bold=True)
    subtitle = wrapped(heading.subtitle, SIZE, room)
    signature = [line for one in heading.signatures for line in wrapped(one, LEAST, room, at="|")]
    beside = _beside(key, room)
    keyed = _KEY * math.ceil(len(key) / beside) + 0.06 if key else 0.0
    head = EDGE + _height(title, large) + 0.04 + _height(subtitle, SIZE) + keyed
    foot = EDGE + _height(signature, LEAST)
    lines = [max(panels[i : i + columns]) for i in range(0, len(panels), columns)]
    natural = head + sum(lines) + len(lines) * (above + below) + foot
    spare = ((look.height or natural) - natural) / len(lines)
    if spare < 0 and min(lines) + spare < least:
        more = natural + sum(least - line for line in lines)
        raise ConfigError(
            f"--size: {heading.title!r} needs a height of {_up(more):g} inches and more"
        )
    height = look.height or natural
    figure = Drawn(figsize=(width, height))

    def put(lines: list[str], size: float, top: float, **style: Any) -> None:
        """Lines from ``top`` inches below the upper edge."""
        for i, line in enumerate(lines):
            y = 1 - (top + i * size * _LINE / 72) / height
            figure.text(EDGE / width, y, line, size=size, va="top", **style)

    put(title, large, EDGE, weight="bold")
    put(subtitle, SIZE, EDGE + _height(title, large) + 0.04, color=tint(MUTED))
    put(signature, LEAST, height - foot, color=tint(MUTED))
    if key:
        _draw_key(figure, key, beside, height - (head - keyed + 0.04))
    axes = []
    y = height - head
    for i in range(len(panels)):
        column = i % columns
        tall = lines[i // columns] + spare
        x, bottom = left + column * (across + gap), y - above - tall
        axes.append(figure.add_axes((x / width, bottom / height, across / width, tall / height)))
        if column == columns - 1:
            y = bottom - below
    return figure, axes


def _up(inches: float) -> float:
    """The next tenth."""
    return math.ceil(10 * inches) / 10


def _draw_key(figure: Figure, key: Sequence[Patch | Line2D], columns: int, top: float) -> None:
    """Marks with what they mean, from ``top`` inches above the lower edge down, column by column.

    A third of the time of matplotlib's legend, which lays each entry out in boxes of boxes.
    """
    em, place, x = SIZE / 72, figure.dpi_scale_trans, EDGE
    for column in np.array_split(np.arange(len(key)), columns):
        entries = [key[i] for i in column]
        for row, mark in enumerate(entries):
            y = top - (0.76 + 1.3 * row) * em
            if isinstance(mark, Line2D):
                xs = [0.6] if mark.get_linestyle() == "None" else [0, 1.2]
                mark.set_data([x + at * em for at in xs], [y + 0.35 * em] * len(xs))
                shown: Patch | Line2D = mark
            else:
                shown = Rectangle((x, y), 1.2 * em, 0.7 * em)
                shown.update_from(mark)
            shown.set_transform(place)
            figure.add_artist(shown)
            said = str(mark.get_label())
            figure.text(x + 1.7 * em, y, said, size=SIZE, transform=place)
        x += 2.9 * em + widest((str(mark.get_label()) for mark in entries), SIZE)


def _beside(key: Sequence[Patch | Line2D], room: float) -> int:
    """How many entries of a key fit into a line."""
    said = [inches(str(one.get_label()), SIZE) for one in key]
    for n in range(len(key), 1, -1):
        if sum(max(said[i::n]) + 0.36 for i in range(n)) <= room:
            return n
    return 1


def size_of(axes: Axes) -> tuple[float, float]:
    """Width and height of a plot, in inches."""
    figure: Any = axes.figure
    width, height = axes.get_position().size * np.asarray(figure.get_size_inches())
    return float(width), float(height)


def bare(axes: Axes, *, grid: str | None = None) -> None:
    """No frame and no tick marks; a light grid along one axis."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=_PAD)
    if grid:
        axes.grid(axis=grid, color=tint(GRID), linewidth=0.7)  # type: ignore[arg-type]


def label_x(axes: Axes, label: str) -> None:
    """Name the horizontal axis, from its right end on, so that a long name has room."""
    axes.set_xlabel(label, loc="right", size=SIZE, color=tint(MUTED))


def name_rows(axes: Axes, names: Sequence[str], shown: Sequence[str], look: Look) -> None:
    """Names left of a plot, from row 0 on; ``shown``: as they are written."""
    # Plain text in place of tick labels: matplotlib makes five objects for each of those.
    axes.set_yticks([])
    place, va, ha = axes.get_yaxis_text1_transform(_PAD)
    for row, (name, said) in enumerate(zip(names, shown, strict=True)):
        if name in look.highlight:
            axes.axhspan(row - 0.5, row + 0.5, color=tint(2 * WASH), zorder=0, linewidth=0)
        axes.text(0, row, said, transform=place, va=va, ha=ha, **of_name(name, said, look))


def of_name(name: str, said: str, look: Look) -> dict[str, Any]:
    """How a name is written: people in their colour; one that is cut has its whole on demand."""
    style: dict[str, Any] = {"size": SIZE}
    if name == HUMAN:
        style["color"] = people()
    if name in look.highlight:
        style["weight"] = "bold"
    return style if said == name else {**style, "gid": titled(name)}


def titled(said: str) -> str:
    """The ``gid`` of an artist that shows this in an SVG when it is pointed at."""
    return f"{TITLED}{said}"


TITLED = "title: "


def bars(
    axes: Axes,
    rows: ArrayLike,
    starts: ArrayLike,
    ends: ArrayLike,
    *,
    height: float,
    color: str | Sequence[str],
) -> None:
    """Bars along rows of a plot whose limits are set; none where a number is missing."""
    y, left, right = np.broadcast_arrays(rows, starts, ends)
    low, high = y - height / 2, y + height / 2
    corners = np.array([(left, low), (right, low), (right, high), (left, high)], dtype=float)
    drawn = PolyCollection(list(corners.transpose(2, 0, 1)), facecolors=color, edgecolors="none")
    axes.add_collection(drawn, autolim=False)


def right_of(axes: Axes, place: Transform, points: float) -> Transform:
    """So many points to the right of a place in the figure of these axes."""
    figure = axes.figure
    assert figure is not None
    return place + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def wrapped(
    text: str, size: float, width: float, *, at: str = " ", bold: bool = False
) -> list[str]:
    """Text in lines at most ``width`` inches wide, broken after ``at`` or else anywhere."""
    text = elided(text, 2000)
    pieces = [piece + at for piece in text.split(at)]
    pieces[-1] = pieces[-1].removesuffix(at)
    lines, used = [""], 0.0
    for piece in pieces:
        if lines[-1] and used + inches(piece.rstrip(), size, bold) > width:
            lines.append("")
            used = 0.0
        for char in piece:
            if used + (wide := inches(char, size, bold)) > width:
                lines.append("")
                used = 0.0
            lines[-1] += char
            used += wide
    return [line.rstrip() for line in lines if line.strip()]


def inches(text: str, size: float, bold: bool = False) -> float:
    """Width of one line of text; kerning aside, and about right for what the font has not."""
    family = _family()
    return sum(_em(char, bold, family) for char in text) * size / 72


def widest(texts: Iterable[str], size: float = SIZE, bold: bool = False) -> float:
    """Width of the widest of some texts, in inches; 0 of none."""
    return max((inches(text, size, bold) for text in texts), default=0.0)


def fitted(names: Sequence[str], room: float, size: float = SIZE) -> list[str]:
    """`labels` of names in at most so many inches: if need be without organisations, or cut."""

    def fit(shown: Sequence[str]) -> bool:
        return widest(shown, size, bold=True) <= room

    if fit(shown := labels(names)):
        return shown
    bare = [name.rpartition("/")[2] or name for name in names]
    if len({*bare}) == len({*names}):
        names = bare
    most = min(LABEL_COLUMNS, math.ceil(room * 72 / size / 0.4))
    for columns in range(max(most, 9), 8, -1):
        if fit(shown := labels(names, columns)):
            break
    return shown


def _family() -> tuple[str, ...]:
    """The families that text is drawn with, the first that is installed."""
    settings: Any = mpl.rcParams
    return tuple(
        name for one in settings["font.family"] for name in settings.get(f"font.{one}", [one])[:1]
    )


@cache
def _em(char: str, bold: bool, family: tuple[str, ...]) -> float:
    """Advance of a character in sizes of its font."""
    face = _face("bold" if bold else "normal", family)
    if face.get_char_index(ord(char)):
        return face.load_char(ord(char), flags=LoadFlags.NO_SCALE).horiAdvance / face.units_per_EM
    if unicodedata.combining(char):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(char) in "WF" else 0.7


def _face(weight: str, family: Sequence[str] = ("sans-serif",)) -> FT2Font:
    # Not cached here: matplotlib caches it and drops it in a forked process, where two processes
    # with one open file would move each other's position in it.
    return get_font(findfont(FontProperties(family=list(family), weight=weight)))


def _height(lines: Sequence[str], size: float) -> float:
    return len(lines) * size * _LINE / 72
