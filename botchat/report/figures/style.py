"""One look for every figure: its size, its shades, its key, and names that fit.

A figure is laid out for its width, in inches: matplotlib's own layout takes 275 ms for 40 rows,
this 47. No text is smaller than `LEAST` points. Ink and paper are the only shades, people the only
colour. No pyplot: its figures are global state.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
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
from matplotlib.ft2font import LoadFlags
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
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

NAMES = 1.2
"""Least room for names at a plot, in inches: names of 13 letters are not cut."""

_PAD = 5
"""Between a plot and its labels, in points."""

EDGE = 0.12
"""Around a figure, in inches."""

Dashes = Any
"""A line's style: a name, or an offset and the lengths of dashes and gaps."""

DASHED: Dashes = (0, (4, 3))
DOTTED: Dashes = (0, (1, 2))

_LINE = 1.35
"""Height of a line of text, in sizes of its font."""

_LEAST_PLOT = 0.5
"""Width of a plot, in inches."""

_KEY = 0.19
"""Height of a line of a key, in inches."""


class Drawn(Figure):
    """A figure that a notebook shows, whatever its backend."""

    def draw(self, renderer: Any) -> None:
        """Draw it; a text is measured once for all figures.

        So the two svgs and the png of a figure of 14 models take 260 ms in place of 340.
        """
        measure = renderer.get_text_width_height_descent
        known = _MEASURED.setdefault((measure.__qualname__, self.dpi), {})

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

    heading: Heading | None = None
    """What a bare one says in its file alone."""

    def _repr_svg_(self) -> str:
        return svg(self)


def svg(figure: Figure) -> str:
    """The figure as an SVG document: the same data give the same text. Text stays text."""
    buffer = io.StringIO()
    with styled(), warnings.catch_warnings():
        # The reader's fonts draw the text: it does not matter what this machine's fonts lack.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        known = {"Date": None, "Creator": "BotChat", **said_of(figure)}
        figure.savefig(buffer, format="svg", metadata=known)
    drawn = re.sub(rf'<g id="{TITLED}([^"]*)">', r"<g>\n<title>\1</title>", buffer.getvalue())
    # Hundredths of a point are enough, in half the size.
    return re.sub(r' d="[^"]*"', lambda path: _DIGITS.sub(r"\1", path.group()), drawn)


def said_of(figure: Figure, key: str = "Description") -> dict[str, str]:
    """Metadata of a figure that does not show its title and signatures; ``key``: of the latter."""
    heading = getattr(figure, "heading", None)
    return {} if heading is None else {"Title": heading.title, key: "\n".join(heading.lines)}


_DIGITS = re.compile(r"(\.\d\d)\d+")

_MEASURED: dict[Any, dict[Any, tuple[float, float, float]]] = {}
"""How texts are measured -> text and font -> width, height, descent in pixels."""


class Look(NamedTuple):
    """What may be chosen of a figure."""

    width: float = WIDE
    height: float | None = None
    """Inches; ``None``: what it needs."""
    highlight: tuple[str, ...] = ()
    """Names to stand out."""
    bare: bool = False
    """For a paper, whose caption says them: no title, no signature; in the file's metadata."""

    @property
    def narrow(self) -> bool:
        """Whether it is for a telephone."""
        return self.width < (WIDE + NARROW) / 2


class Heading(NamedTuple):
    """The text above and below a figure, and its look."""

    title: str
    subtitle: str
    """Set, judge and number of comparisons or dialogues."""
    signatures: Sequence[str]
    look: Look = Look()

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands below the title and at the foot."""
        return (self.subtitle, *self.signatures)


def styled() -> AbstractContextManager[None]:
    """The settings of figures, within a block."""
    return mpl.rc_context(_RC)


def tint(share: float) -> str:
    """The shade between paper (0) and ink (1), in whole percent."""
    return _tint(round(100 * share))


@cache
def _tint(percent: int) -> str:
    return mixed(_RC["text.color"], _RC["figure.facecolor"], percent / 100)


def people() -> str:
    """The colour of people."""
    return str(to_hex(_RC["axes.prop_cycle"].by_key()["color"][0]))


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


# ------------------------------------------------------------------------------ what a key shows


def marks(names: Iterable[str]) -> list[Line2D]:
    """What the marks of some contestants are, and their intervals."""
    names = list(names)
    found = []
    if any(name != HUMAN and not name.startswith("bot:") for name in names):
        found.append(mark(tint(INK), "model"))
    if any(name.startswith("bot:") for name in names):
        found.append(mark("none", "floor bot"))
    if HUMAN in names:
        found.append(mark(people(), "people", edge=people()))
    return [*found, interval_key()]


def mark(face: str, label: str, marker: str = "o", edge: str | None = None) -> Line2D:
    """A point."""
    return Line2D(
        [], [], linestyle="none", marker=marker, markersize=6, markeredgecolor=edge or tint(INK),
        markeredgewidth=1.3, markerfacecolor=face, label=label,
    )  # fmt: skip


def line_key(label: str, shade: float = INK, width: float = 1.2, dashes: Dashes = "-") -> Line2D:
    """A line."""
    return Line2D([], [], color=tint(shade), linewidth=width, linestyle=dashes, label=label)


def interval_key(label: str = "95 % interval", width: float = 2.4) -> Line2D:
    """The line of an interval."""
    return line_key(label, BAR, width)


# -------------------------------------------------------------------------------------- layout


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
    shown = heading._replace(title="", subtitle="", signatures=()) if look.bare else heading
    title = wrapped(shown.title, large, room, bold=True)
    subtitle = wrapped(shown.subtitle, SIZE, room)
    signature = [line for one in shown.signatures for line in wrapped(one, LEAST, room, at="|")]
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
    figure.heading = heading if look.bare else None

    def put(lines: list[str], size: float, top: float, **style: Any) -> None:
        """Lines from ``top`` inches below the upper edge."""
        for i, line in enumerate(lines):
            y = 1 - (top + i * size * _LINE / 72) / height
            figure.text(EDGE / width, y, line, size=size, va="top", **style)

    put(title, large, EDGE, weight="bold")
    put(subtitle, SIZE, EDGE + _height(title, large) + 0.04, color=tint(MUTED))
    put(signature, LEAST, height - foot, color=tint(MUTED))
    if key:
        figure.legend(
            handles=list(key), ncols=beside, fontsize=SIZE, frameon=False, loc="upper left",
            bbox_to_anchor=(EDGE, height - (head - keyed + 0.04)), borderpad=0, borderaxespad=0,
            bbox_transform=figure.dpi_scale_trans, labelspacing=0.3, handlelength=1.2,
            handletextpad=0.5, columnspacing=1.2,
        )  # fmt: skip
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


def _beside(key: Sequence[Patch | Line2D], room: float) -> int:
    """How many entries of a key fit into a line."""
    said = [inches(str(one.get_label()), SIZE) for one in key]
    for n in range(len(key), 1, -1):
        # A legend is filled column by column.
        if sum(max(column) + 0.36 for column in np.array_split(said, n)) <= room:
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
    """Name the horizontal axis, from its right end to the left; a long name begins at the edge."""
    figure: Any = axes.figure
    over = inches(label, SIZE) + EDGE - axes.get_position().x1 * figure.get_figwidth()
    end = 1 + max(0.0, over) / size_of(axes)[0]
    axes.set_xlabel(label, x=end, ha="right", size=SIZE, color=tint(MUTED))


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
    """Width of one line of text; kerning aside, and about right for what the font has not.

    The sum of its characters: names of 40 rows are cut in a thousand ways until they fit, which
    takes 15 ms so, and 120 where matplotlib measures whole texts.
    """
    return sum(_em(char, bold) for char in text) * size / 72


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


@cache
def _em(char: str, bold: bool) -> float:
    """Advance of a character in sizes of its font."""
    # matplotlib drops its open fonts in a forked process: this one is not kept.
    face = get_font(
        findfont(FontProperties(family=_RC["font.sans-serif"], weight=700 if bold else 400))
    )
    if face.get_char_index(ord(char)):
        return face.load_char(ord(char), flags=LoadFlags.NO_SCALE).horiAdvance / face.units_per_EM
    if unicodedata.combining(char):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(char) in "WF" else 0.7


def _height(lines: Sequence[str], size: float) -> float:
    return len(lines) * size * _LINE / 72
