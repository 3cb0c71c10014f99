"""One look for every figure: colours, names that fit, sizes in inches, svg and png.

Margins are computed from the width of the labels. No pyplot: its figures are global state.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import ArrayLike

from botchat.boards.tables import LABEL_COLUMNS, elided

_RC: Any = mpl.rc_params_from_file(
    Path(__file__).with_name("figures.mplstyle"), use_default_template=False
)
INK, MUTED, GRID = _RC["text.color"], _RC["xtick.color"], _RC["grid.color"]
"""The page recolours these three for dark screens, so nothing else may have these colours."""

BLUE, ORANGE, GREY = "#2f7ebc", "#e08214", "#b4bcc4"
"""Told apart with every common colour blindness, on white and on near-black."""
SHADES = ("#2166ac", "#4393c3", "#92c5de", "#c9ddeb", "#dfe7ec", "#e9edf0")
"""Strong to weak, for ordered series."""

FONT = _RC["font.sans-serif"][0]
_FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "SimHei",
    "Malgun Gothic", "Noto Sans", "Noto Sans Devanagari", "Noto Sans Thai", "Arial Unicode MS",
)  # fmt: skip
_DPI = 160
_MOST_DOTS = 4_000_000
"""Most pixels of a PNG: a larger figure has fewer pixels an inch."""

_PAD = 5
"""Between a plot and its labels, in points."""

_EDGE = 0.15
_LINE = 1.35
"""Height of a line of text, in sizes of its font."""


class Heading(NamedTuple):
    """The text above and below a figure."""

    title: str
    subtitle: str
    """Set, judge and number of comparisons or dialogues."""
    signatures: Sequence[str]


styled = partial(mpl.rc_context, _RC)
"""The settings of figures, within a block or as the decorator ``@styled()``."""


def sheet(
    heading: Heading,
    panels: Sequence[tuple[float, float]],
    *,
    left: float,
    right: float = 0.3,
    above: float = 0.1,
    below: float = 0.5,
    stacked: bool = False,
    gap: float = 0.3,
) -> tuple[Figure, list[Axes]]:
    """A figure with heading, panels and signature; all sizes in inches.

    ``panels``: width and height of each. ``left``: room for labels, left of the first panel or, if
    ``stacked``, of each. ``below``: room under each panel. ``gap``: between panels side by side.
    """
    widths = [width for width, _ in panels]
    inner = max(widths) if stacked else sum(widths) + gap * (len(panels) - 1)
    width = left + inner + right
    room = width - 2 * _EDGE
    title = wrapped(heading.title, 13, room, bold=True)
    subtitle = wrapped(heading.subtitle, 9, room)
    signature = [line for one in heading.signatures for line in wrapped(one, 6.5, room, at="|")]
    head = _EDGE + _height(title, 13) + 0.04 + _height(subtitle, 9)
    foot = _EDGE + _height(signature, 6.5)
    tallest = max(height for _, height in panels)
    body = sum(h + above + below for _, h in panels) if stacked else tallest + above + below
    height = head + body + foot
    figure = Figure(figsize=(width, height))

    def put(lines: list[str], size: float, top: float, **style: Any) -> None:
        """Lines from ``top`` inches below the upper edge."""
        for i, line in enumerate(lines):
            y = 1 - (top + i * size * _LINE / 72) / height
            figure.text(_EDGE / width, y, line, size=size, va="top", **style)

    put(title, 13, _EDGE, weight="bold")
    put(subtitle, 9, _EDGE + _height(title, 13) + 0.04, color=MUTED)
    put(signature, 6.5, height - foot, color=MUTED)
    axes = []
    x, y = left, height - head
    for panel_width, panel_height in panels:
        bottom = y - above - panel_height
        place = (x / width, bottom / height, panel_width / width, panel_height / height)
        axes.append(figure.add_axes(place))
        if stacked:
            y = bottom - below
        else:
            x += panel_width + gap
    return figure, axes


def bare(axes: Axes, *, grid: str | None = None) -> None:
    """No frame and no tick marks; a light grid along one axis."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=_PAD)
    if grid:
        axes.grid(axis=grid, color=GRID, linewidth=0.7)  # type: ignore[arg-type]


def name_rows(axes: Axes, names: Sequence[str], size: float) -> None:
    """Names left of a plot, from row 0 on."""
    # Plain text in place of tick labels: matplotlib makes five objects for each of those.
    axes.set_yticks([])
    place, va, ha = axes.get_yaxis_text1_transform(_PAD)
    for row, name in enumerate(names):
        axes.text(0, row, name, size=size, transform=place, va=va, ha=ha)


def name_columns(axes: Axes, names: Sequence[str], size: float) -> None:
    """Names above a plot, read upwards, from column 0 on."""
    axes.set_xticks([])
    place, va, ha = axes.get_xaxis_text2_transform(_PAD)
    for column, name in enumerate(names):
        axes.text(column, 1, name, size=size, transform=place, va=va, ha=ha, rotation=90)


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
    lines = [""]
    for piece in pieces:
        if lines[-1] and inches(lines[-1] + piece.rstrip(), size, bold) > width:
            lines.append("")
        for char in piece:
            if inches(lines[-1] + char, size, bold) > width:
                lines.append("")
            lines[-1] += char
    return [line.rstrip() for line in lines if line.strip()]


def inches(text: str, size: float, bold: bool = False) -> float:
    """Room for one line of text, also where `png` spells characters out; kerning aside."""
    return sum(_em(char, bold) for char in text) * size / 72


def label_inches(names: Sequence[str], size: float) -> float:
    """Room for the widest of some `labels`."""
    spelling = _spelling("".join(names), [FONT])
    return max(inches(elided(name.translate(spelling), LABEL_COLUMNS), size) for name in names)


def svg(figure: Figure) -> str:
    """The figure as an SVG document: the same data give the same text. Text stays text."""
    buffer = io.StringIO()
    with styled(), warnings.catch_warnings():
        # The reader's fonts draw the text: it does not matter what this machine's fonts lack.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "BotChat"})
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    r"""The figure as a PNG on white; what no installed font can draw is shown as ``\u901a``."""
    buffer = io.BytesIO()
    area = figure.get_figwidth() * figure.get_figheight()
    fonts = [FONT, *(name for name in _FALLBACKS if name in fontManager.get_font_names())]
    with styled(), mpl.rc_context({"font.sans-serif": fonts}), _drawable(figure, fonts):
        figure.savefig(
            buffer,
            format="png",
            dpi=min(_DPI, math.sqrt(_MOST_DOTS / area)),
            facecolor="white",
            metadata={"Software": "BotChat"},
            # A tenth larger than at the default level 6, in half the time.
            pil_kwargs={"compress_level": 1},
        )
    return buffer.getvalue()


@contextmanager
def _drawable(figure: Figure, fonts: Sequence[str]) -> Iterator[None]:
    """Replace what none of the fonts can draw, for as long as it lasts."""
    texts = {text: text.get_text() for text in figure.findobj(Text)}
    spelling = _spelling("".join(texts.values()), fonts)
    changed = {text: said for text, said in texts.items() if said != said.translate(spelling)}
    for text, said in changed.items():
        spelled = said.translate(spelling)
        # A plot has room for a label; the lines of the heading are broken to fit already.
        text.set_text(elided(spelled, LABEL_COLUMNS) if text.axes is not None else spelled)
    yield
    for text, said in changed.items():
        text.set_text(said)


def _spelling(chars: Iterable[str], fonts: Sequence[str]) -> dict[int, str]:
    """What stands for the characters that none of the fonts has, as `str.translate` takes it."""
    faces = [get_font(findfont(FontProperties(family=name))) for name in fonts]
    lacking = (
        code for code in map(ord, set(chars)) if not any(f.get_char_index(code) for f in faces)
    )
    return {code: f"\\u{code:04x}" for code in lacking}


@cache
def _em(char: str, bold: bool) -> float:
    """Advance of a character in sizes of its font."""
    face = _face("bold" if bold else "normal")
    if not face.get_char_index(ord(char)):
        return sum(_em(c, bold) for c in f"\\u{ord(char):04x}")
    return face.load_char(ord(char), flags=LoadFlags.NO_SCALE).horiAdvance / face.units_per_EM


def _face(weight: str) -> FT2Font:
    # Not cached here: matplotlib caches it and drops it in a forked process, where two processes
    # with one open file would move each other's position in it.
    return get_font(findfont(FontProperties(family=FONT, weight=weight)))


def _height(lines: Sequence[str], size: float) -> float:
    return len(lines) * size * _LINE / 72
