"""A figure as svg, png or pdf: the same figure gives the same bytes."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

from botchat.boards.names import elided
from botchat.report.figures.style import EDGE, inches, people, said_of, styled, svg, tint

_FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "SimHei",
    "Malgun Gothic", "Noto Sans", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Thai",
    "Arial Unicode MS",
)  # fmt: skip
_DPI = 160
_MOST_DOTS = 4_000_000
"""Most pixels of a PNG: a larger figure has fewer pixels an inch."""

_COLOR = re.compile(r"#[0-9a-f]{6}\b")


def written(figure: Figure, form: str) -> bytes:
    """The figure as ``svg``, ``png`` or ``pdf``."""
    return svg(figure).encode() if form == "svg" else {"png": png, "pdf": pdf}[form](figure)


def themed(svg: str) -> str:
    """An SVG in the colours of the page that it stands in: ``--ink``, ``--paper``, ``--people``."""
    known = _variables()

    def of_page(style: re.Match[str]) -> str:
        return _COLOR.sub(lambda found: known.get(found.group(), found.group()), style.group())

    return re.sub(r' style="[^"]*"', of_page, svg)


@cache
def _variables() -> dict[str, str]:
    """Each shade of a file -> the same of a page."""
    ink, paper, of_people = "var(--ink)", "var(--paper)", "var(--people)"
    with styled():
        shades = {tint(n / 100): f"color-mix(in srgb, {ink} {n}%, {paper})" for n in range(1, 100)}
        return {**shades, tint(0): paper, tint(1): ink, people(): of_people}


def png(figure: Figure) -> bytes:
    r"""The figure as a PNG; what no installed font can draw is shown as ``\u901a``."""
    area = figure.get_figwidth() * figure.get_figheight()
    # A tenth larger than at the default level 6, in half the time.
    how = {"dpi": min(_DPI, math.sqrt(_MOST_DOTS / area)), "pil_kwargs": {"compress_level": 1}}
    return _drawn(figure, "png", {"Software": "BotChat", **said_of(figure)}, **how)


def pdf(figure: Figure) -> bytes:
    """The figure as a PDF with no date: the same data give the same bytes."""
    known = {"Creator": "BotChat", "CreationDate": None, **said_of(figure, "Subject")}
    return _drawn(figure, "pdf", known)


def _drawn(figure: Figure, form: str, metadata: Any, **how: Any) -> bytes:
    """A figure in a form that has its text drawn with the fonts of this machine."""
    buffer = io.BytesIO()
    with styled():
        installed = fontManager.get_font_names()
        family = [*mpl.rcParams["font.family"], *(one for one in _FALLBACKS if one in installed)]
        with mpl.rc_context({"font.family": family}), drawable(figure, family):
            figure.savefig(buffer, format=form, metadata=metadata, **how)
    return buffer.getvalue()


@contextmanager
def drawable(figure: Figure, fonts: Sequence[str]) -> Iterator[None]:
    """Replace what none of the fonts can draw, for as long as it lasts; and draw with them."""
    before = {text: (text.get_text(), text.get_fontfamily()) for text in figure.findobj(Text)}
    spelling = _spelling("".join(said for said, _ in before.values()), fonts)
    for text, (said, _) in before.items():
        text.set_fontfamily(list(fonts))
        if said != (spelled := said.translate(spelling)):
            whole = figure.get_figwidth() - 2 * EDGE
            size = float(text.get_fontsize())
            room = inches(said, size) if text.axes else whole
            columns = len(spelled)
            while columns > 1 and inches(elided(spelled, columns), size) > room:
                columns -= 1
            text.set_text(elided(spelled, columns))
    yield
    for text, (said, family) in before.items():
        text.set_text(said)
        text.set_fontfamily(family)


def _spelling(chars: Iterable[str], fonts: Sequence[str]) -> dict[int, str]:
    """What stands for the characters that none of the fonts has, as `str.translate` takes it."""
    found = [get_font(findfont(FontProperties(family=[name]))) for name in fonts]
    lacking = (
        code for code in map(ord, set(chars)) if not any(f.get_char_index(code) for f in found)
    )
    return {code: f"\\u{code:04x}" for code in lacking}
