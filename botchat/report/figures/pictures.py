"""A sheet as png, pdf, or a figure of matplotlib; the same sheet gives the same bytes.

A png is drawn by Pillow where one font has all that is said; matplotlib, which takes longer to
import than eight figures to draw, is asked for the others, and where its own figure is wanted.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageDraw, PngImagePlugin

from botchat.boards.names import elided
from botchat.report.figures import ink
from botchat.report.figures.lettering import font, has, width_of
from botchat.report.figures.sheet import INCH, Dot, Shade, Sheet, Spot, Stroke, Text, mixed, of_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "SimHei",
    "Malgun Gothic", "Noto Sans", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Thai",
    "Arial Unicode MS",
)  # fmt: skip
_DPI = 160
_MOST_DOTS = 4_000_000
"""Most pixels of a png: a larger one has fewer an inch."""

_FINER = 2
"""Lines and areas are drawn so many times as large, and made smaller, so that they are smooth."""


def written(sheet: Sheet, form: str) -> bytes:
    """The sheet as ``svg``, ``png`` or ``pdf``."""
    return sheet.svg().encode() if form == "svg" else {"png": png, "pdf": pdf}[form](sheet)


def png(sheet: Sheet) -> bytes:
    r"""As a png; what no installed font can draw is shown as ``\u901a``."""
    dpi = min(_DPI, math.sqrt(_MOST_DOTS / (sheet.width * sheet.height)) * INCH)
    about = {"Software": "BotChat", **_told(sheet)}
    if not all(map(has, {*"".join(text.said for text in sheet.texts)})):
        return _saved(sheet, "png", about, dpi=dpi)
    image, buffer, info = _drawn(sheet, dpi / INCH), io.BytesIO(), PngImagePlugin.PngInfo()
    for key, said in about.items():
        info.add_itxt(key, said)
    image.save(buffer, "png", pnginfo=info, compress_level=4, dpi=(dpi, dpi))
    return buffer.getvalue()


def pdf(sheet: Sheet) -> bytes:
    """As a pdf with no date."""
    return _saved(sheet, "pdf", {"Creator": "BotChat", "CreationDate": None,
                                 **_told(sheet, "Subject")})  # fmt: skip


def _told(sheet: Sheet, key: str = "Description") -> dict[str, str]:
    """Metadata: the title, and under a key set, judge and signatures."""
    if (heading := sheet.heading) is None:
        return {}
    return {"Title": heading.title, key: "\n".join((heading.subtitle, *heading.signatures))}


def _drawn(sheet: Sheet, scale: float) -> Image.Image:
    """By Pillow, so many pixels a px."""
    size, k = (math.ceil(scale * sheet.width), math.ceil(scale * sheet.height)), scale * _FINER
    image = Image.new("RGB", (size[0] * _FINER, size[1] * _FINER), "#ffffff")
    pen = ImageDraw.Draw(image, "RGBA")
    for mark in sheet.marks:
        if isinstance(mark, Stroke):
            points = [(k * x, k * y) for x, y in mark.points]
            if mark.fill is not None:
                pen.polygon(points, of_file(mark.fill) + f"{round(255 * mark.opacity):02x}")
            if mark.shade is not None:
                wide = max(1, round(k * mark.width))
                for some in _dashed(points, [k * n for n in mark.dashes]):
                    pen.line(some, of_file(mark.shade), wide, "curve")
        elif isinstance(mark, Dot):
            edge = None if mark.shade is None else of_file(mark.shade)
            pen.circle((k * mark.x, k * mark.y), k * (mark.r + mark.width / 2),
                       of_file(mark.fill), edge, round(k * mark.width))  # fmt: skip
    image = image.reduce(_FINER)
    pen = ImageDraw.Draw(image)
    for text in sheet.texts:
        letters, color = font(text.bold, round(scale * text.size, 1)), of_file(text.shade)
        at, anchor = (scale * text.x, scale * text.y), {"start": "ls", "middle": "ms", "end": "rs"}
        if not text.turn:
            pen.text(at, text.said, color, letters, anchor[text.anchor])
            continue
        half = int(letters.getlength(text.said) + 2 * scale * text.size)
        mask = Image.new("L", (2 * half, 2 * half))
        ImageDraw.Draw(mask).text((half, half), text.said, 255, letters, anchor[text.anchor])
        mask = mask.rotate(-text.turn, Image.Resampling.BICUBIC)
        image.paste(color, (int(at[0]) - half, int(at[1]) - half), mask)
    return image.quantize(palette=_shades(), dither=Image.Dither.NONE)


@cache
def _shades() -> Image.Image:
    """The 256 colours of a png, which is so a third as large: ink, people, and signed numbers."""
    kinds: list[tuple[int, Shade]] = [
        (128, 1.0), (64, ink.PEOPLE), (32, (ink.ABOVE, 1.0)), (32, (ink.BELOW, 1.0)),
    ]  # fmt: skip
    found = [mixed(of_file(shade), k / (n - 1)) for n, shade in kinds for k in range(n)]
    # Pillow compares colours to five bits: what it takes white for is white.
    found = ["#ffffff" if min(bytes.fromhex(color[1:])) >= 0xF8 else color for color in found]
    palette = Image.new("P", (1, 1))
    palette.putpalette(bytes.fromhex("".join(color[1:] for color in found)))
    return palette


def _dashed(points: Sequence[Spot], dashes: Sequence[float]) -> Iterator[list[Spot]]:
    """The pieces of a line that are drawn."""
    if not dashes:
        yield [*points]
        return
    left, i = dashes[0], 0
    for (x, y), (x1, y1) in pairwise(points):
        long, at = math.hypot(x1 - x, y1 - y), 0.0
        while at < long:
            end = min(at + left, long)
            if i % 2 == 0:
                yield [(x + (x1 - x) * t / long, y + (y1 - y) * t / long) for t in (at, end)]
            left -= end - at
            at = end
            if left <= 1e-9:
                i += 1
                left = dashes[i % len(dashes)]


# -------------------------------------------------------------------------------- matplotlib


def figure(sheet: Sheet) -> Figure:
    """As a figure of matplotlib, whose texts and lines can be changed; no pyplot, no settings."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Polygon

    class Drawn(Figure):
        """A figure that a notebook shows, whatever its backend."""

        def _repr_svg_(self) -> str:
            return sheet.svg()

    with mpl.rc_context(_RC):
        made = Drawn(figsize=(sheet.width / INCH, sheet.height / INCH), facecolor="#ffffff")
        axes = made.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, sheet.width), ylim=(sheet.height, 0))
        for i, mark in enumerate(sheet.marks):
            if isinstance(mark, Stroke):
                fill = "none" if mark.fill is None else of_file(mark.fill)
                edge = "none" if mark.shade is None else of_file(mark.shade)
                dashes: Any = (0, [n * 0.75 / max(0.75 * mark.width, 1e-9) for n in mark.dashes])
                axes.add_patch(
                    Polygon(
                        [*mark.points], closed=mark.fill is not None, facecolor=fill, zorder=i,
                        edgecolor=edge, linewidth=0.75 * mark.width, alpha=mark.opacity,
                        linestyle=dashes if mark.dashes else "-",
                    )
                )  # fmt: skip
            elif isinstance(mark, Dot):
                edge = "none" if mark.shade is None else of_file(mark.shade)
                inside, wide = of_file(mark.fill), 0.75 * mark.width
                spot = Circle((mark.x, mark.y), mark.r, facecolor=inside, edgecolor=edge, zorder=i)
                spot.set_linewidth(wide)
                axes.add_patch(spot)
            else:
                sides: dict[str, Any] = {"start": "left", "middle": "center", "end": "right"}
                axes.text(
                    mark.x, mark.y, mark.said, size=0.75 * mark.size, ha=sides[mark.anchor],
                    va="baseline", rotation=-mark.turn, rotation_mode="anchor", zorder=1e6,
                    color=of_file(mark.shade), weight="bold" if mark.bold else "normal",
                )  # fmt: skip
    return made


_RC: Any = {
    "font.family": ["DejaVu Sans"], "text.parse_math": False, "text.hinting": "none",
    "pdf.fonttype": 42,
}  # fmt: skip


def _saved(sheet: Sheet, form: str, metadata: Any, **how: Any) -> bytes:
    """By matplotlib, with the fonts of this machine."""
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager

    buffer, installed = io.BytesIO(), fontManager.get_font_names()
    family = ["DejaVu Sans", *(one for one in _FALLBACKS if one in installed)]
    with mpl.rc_context({**_RC, "font.family": family}):
        made = figure(spelled(sheet, family))
        for text in made.axes[0].texts:
            text.set_fontfamily(family)
        made.savefig(buffer, format=form, metadata=metadata, **how)
    return buffer.getvalue()


def spelled(sheet: Sheet, fonts: Sequence[str]) -> Sheet:
    """The sheet with what none of the fonts can draw spelled out, no wider than it was."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    found = [get_font(findfont(FontProperties(family=[name]))) for name in fonts]
    made = Sheet(sheet.width, sheet.height)
    for mark in sheet.marks:
        if isinstance(mark, Text):
            lacking = {
                ord(c) for c in mark.said if not any(f.get_char_index(ord(c)) for f in found)
            }
            said = mark.said.translate({code: f"\\u{code:04x}" for code in lacking})
            fitting = range(len(said), 0, -1) if lacking else ()
            room = width_of(mark.said, mark.size)
            cut = (elided(said, n) for n in fitting if width_of(elided(said, n), mark.size) <= room)
            mark = mark._replace(said=next(cut, said))
        made.marks.append(mark)
    return made
