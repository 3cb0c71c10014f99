"""Figures: everything inside, nothing over anything else, the same data the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from botchat.boards.board import build
from botchat.boards.protocols import Scored
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.scores import Scale
from botchat.records import HUMAN
from botchat.report import figures
from botchat.report.figures import cells, curves, formats, points, rows, style
from botchat.report.figures.cells import Cells
from botchat.report.figures.style import NARROW, Heading, Look
from botchat.report.plane import MOST_NAMED, Axis, Point, laid_out
from tests.boards import judgment, made

NAMES = {
    "long": "an-organisation/a-model-with-a-very-long-name-that-goes-on-instruct-preview-{:02d}",
    "script": "модель {} <b>$x_1$</b>",
}
SCRIPTS = (
    "通义千问-{}B-对话",
    "نموذج عربي {}",
    "大規模言語モデル {}",
    "한국어 모델 {}",
    "🤖👩‍🚀 {}",
    "मॉडल {}",
)
FONT = ["DejaVu Sans"]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(k: int, *names: str) -> list[figures.Chart]:
    """Every figure of a board of ``k`` models, named by these in turn."""
    names = names or ("an-organisation/some-model-instruct-{}",)
    skills = {names[i % len(names)].format(i): 1 - (i + 0.5) / k for i in range(k)}
    return figures.draw(made(skills, 8, unreadable=0.1).board())


def visible(figure: Figure) -> list[Text]:
    """Every text that can be read in a figure."""
    figure.canvas = FigureCanvasAgg(figure)
    with style.styled():
        figure.canvas.draw()
    beyond = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
        beyond |= {label for label, at in ticks if not low <= at <= high}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text not in beyond]
    return [text for text in texts if text.get_text().strip()]


def boxes(texts: Sequence[Text]) -> np.ndarray:
    """Left, bottom, right and top of each in pixels, shrunk by a pixel's rounding."""
    extents = [text.get_window_extent() for text in texts]
    return np.array([[box.x0 + 0.5, box.y0 + 0.5, box.x1 - 0.5, box.y1 - 0.5] for box in extents])


def beside(figure: Figure) -> list[str]:
    """What stands left of the first plot, from the top down."""
    axes = figure.axes[0]
    placed = [(text.get_window_extent(), text.get_text()) for text in axes.texts]
    beside = [(-box.y0, said) for box, said in placed if box.x1 <= axes.bbox.x0]
    return [said for _, said in sorted(beside)]


@pytest.mark.parametrize(
    ("k", "names"),
    [(1, ["bot-{}"]), (11, [NAMES["script"], *SCRIPTS]), (40, [NAMES["long"]])],
)
def test_nothing_is_cut_and_nothing_overlaps(k: int, names: list[str]) -> None:
    """Every text lies inside its figure and over no other text, with 3 models and with 40.

    On a page and on a telephone; also where no font has the characters of a name.
    """
    found_charts = drawn(k, *names)
    assert {chart.name for chart in found_charts} >= {"survival", "success-rates", "judge-health"}
    different = [chart for chart in found_charts if chart.name != "win-rates-n8"]
    # What has room on a telephone has room on a page; names in all scripts are looked at on both.
    for chart, look in product(different, (Look(), Look(NARROW))[k != 11 :]):
        figure = chart.make(look)
        with formats.drawable(figure, FONT):
            texts = visible(figure)
            found = boxes(texts)
        width, height = figure.canvas.get_width_height()
        inside = (found >= 0).all(axis=1) & (found[:, 2] <= width) & (found[:, 3] <= height)
        cut = [text.get_text() for text, ok in zip(texts, inside, strict=True) if not ok]
        assert not cut, (chart.name, look, cut)
        apart = (
            (found[:, None, 2] <= found[None, :, 0])
            | (found[:, None, 0] >= found[None, :, 2])
            | (found[:, None, 3] <= found[None, :, 1])
            | (found[:, None, 1] >= found[None, :, 3])
        )
        np.fill_diagonal(apart, True)
        clash = np.argwhere(~apart)
        assert not len(clash), (chart.name, look, [texts[i].get_text() for i in clash[0]])
        assert min(text.get_fontsize() for text in texts) >= style.LEAST
        assert figure.get_figwidth() == look.width


def test_the_signature_is_whole_where_it_is_long() -> None:
    """It is broken into lines, never cut."""
    signature = "botchat:0.1.0|" + "|".join(f"part-{i}:{'x' * 30}" for i in range(20))
    figure = rows.human_lengths([2, 4, 5], Heading("T", "s", [signature]))
    lines = [
        t.get_text() for t in visible(figure) if "part-" in t.get_text() or "|" in t.get_text()
    ]
    assert len(lines) > 3
    assert "".join(lines) == signature


def test_names_are_text_in_svg() -> None:
    """Whatever a name contains, the SVG stays well-formed and shows it; no mathtext."""
    hostile = [
        "<script>alert(1)</script>", "a&b \"q\" 'x'", "$\\frac{1}{2}$", "]]>--><svg onload=x>",
    ]  # fmt: skip
    board = made({name: 0.2 + 0.2 * i for i, name in enumerate(hostile)}, 8).board()
    for chart in figures.draw(board):
        root = ElementTree.fromstring(chart.svg)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert not tags & {"script", "image", "a", "foreignObject"}
        if chart.name not in ("human-lengths", "judge-health"):
            shown = " ".join("".join(element.itertext()) for element in root.iter())
            assert all(name in shown for name in hostile)


def test_of_many_contestants_the_first_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure says so; ranks and intervals are those among all."""
    names = [f"model-{i}-" for i in range(6)]
    board = made({name: 1 - (i + 0.5) / 6 for i, name in enumerate(names)}, 8).board()
    in_order = [name for name in board.main.frame["model"] if name != HUMAN]
    monkeypatch.setattr(figures, "MOST_DRAWN", 3)
    for chart in figures.draw(board):
        root = ElementTree.fromstring(chart.svg)
        shown = " ".join("".join(element.itertext()) for element in root.iter())
        if chart.name not in ("human-lengths", "judge-health"):
            there = {name for name in in_order if name in shown}
            assert there == {*board.main.frame["model"][:3]} - {HUMAN}, chart.name
        if chart.name != "human-lengths":
            assert "the first 3 of" in shown, chart.name
    assert len(board.main.frame) >= 6


def test_png_spells_out_what_no_font_has() -> None:
    """What a font lacks is no row of boxes; afterwards the figure is as it was."""
    (chart, *_) = drawn(3, "通义千问 {}")
    before = chart.svg
    assert "通义千问 1" in before
    assert chart.png.startswith(b"\x89PNG")
    assert formats.svg(chart.figure) == before
    with formats.drawable(chart.figure, FONT):
        said = {text.get_text() for text in visible(chart.figure)}
        assert not any(ord(char) > 0x3000 for char in "".join(said))
        assert any(text.startswith("\\u") for text in said)
        assert (boxes(visible(chart.figure))[:, 0] >= 0).all()


def test_lengths_that_do_not_vary_have_a_violin() -> None:
    """A bot that always says one word, one that said a single thing, and one that said nothing."""
    found = {"same": np.full(50, 7), "once": np.array([3]), "silent": np.array([], dtype=int)}
    figure = rows.utterance_lengths(found, "words", Heading("T", "s", ["x"]))
    assert beside(figure) == ["once", "same"]
    assert figure.axes[0].get_xlabel().startswith("Words")
    assert visible(figure)


def test_a_board_without_protocols_has_figures_of_the_dialogues() -> None:
    """What was not judged is not drawn."""
    nothing = replace(made({"a": 0.9}, 8), judgments={}).board()
    named = [chart.name for chart in figures.draw(nothing)]
    assert named == ["failure-types", "utterance-lengths", "human-lengths"]


def test_every_number_of_an_own_score_is_drawn_with_its_interval() -> None:
    """One figure a number, named and headed as the board's main table has it."""
    some = made({"good": 0.9, "poor": 0.2}, 8)
    scale = Scale(1, 5, ("Wit", "Warmth"))
    own = Protocol("my-wit", "My wit", "score", "one", "how witty", template="?", scale=scale)
    said = [
        judgment("my-wit", seed.id, (name,), f"{1 + i % 4} {2 + i % 3}")
        for name in ("good", "poor")
        for i, seed in enumerate(some.seeds)
    ]
    board = build(
        some.seeds,
        some.dialogues,
        {"my-wit": said},
        seed_set="made-up",
        judge="rules",
        catalogue=Catalogue([own]),
    )
    titles = {chart.name: chart.title for chart in figures.draw(board) if chart.svg}
    assert titles["my-wit-mean-1"] == "My wit wit: mean score"
    assert titles["my-wit-mean-2"] == "My wit warmth: mean score"
    assert board.main.ends("my_wit_mean_1") is not None
    assert board.of(Scored)[0].table.ends("mean_1") is not None


def test_svg_text_has_11_px_at_natural_size() -> None:
    """On a page and on a telephone, as a browser reads it; on paper of its own."""
    for chart in drawn(5):
        for svg, width in ((chart.svg, style.WIDE), (chart.narrow_svg, style.NARROW)):
            root = ElementTree.fromstring(svg)
            assert root.get("width") == f"{72 * width:g}pt"
            unit = 96 * width / float(root.get("viewBox", "").split()[2])
            sizes = [float(size) for size in re.findall(r"font(?:-size)?: [^;\"]*?([\d.]+)px", svg)]
            assert sizes
            assert unit * min(sizes) >= 11
            assert 'style="fill: #ffffff"' in svg


def test_every_shade_takes_the_pages_colours() -> None:
    """No colour of a file is left inline; what people called their models is left alone."""
    (chart, *_) = drawn(3, "#1a1917 {}")
    for svg in chart.on_page:
        assert not re.search(r'style="[^"]*#[0-9a-f]{6}', svg)
        assert "color-mix(in srgb, var(--ink) 50%, var(--paper))" in svg
        assert "#1a1917 1" in svg


def test_at_most_ten_survival_curves_are_named() -> None:
    """Among them people and those that are asked for; others say who they are when pointed at."""
    (chart,) = [one for one in drawn(14, "model {:02d}") if one.name == "survival"]
    figure = chart.make(Look(highlight=("model 13",)))
    said = [text.get_text() for text in visible(figure)]
    named = {name for name in said if name.startswith("model ") or name == "human"}
    assert len(named) == curves.MOST_NAMED
    assert {"human", "model 13"} <= named
    for name in named:
        assert said.count(name) == 2  # at the curve and beside its numbers at risk
    titles = re.findall("<title>(.*?)</title>", formats.svg(figure))
    assert {f"model {i:02d}" for i in range(14)} <= set(titles)


def test_the_pareto_line_leads_along_those_that_nobody_beats() -> None:
    """Cheap and good; a free one stands apart at the left; a crowd has at most ten names."""
    nan = float("nan")
    numbers = {"free": (0, 900), "good": (1, 1000), "beaten": (2, 950), "best": (4, 1100)}
    some = {name: Point(x, nan, nan, y, nan, nan) for name, (x, y) in numbers.items()}
    some["dear"] = Point(9.0, nan, nan, 1050.0, nan, nan)
    cost, rating = Axis("USD", log=True), Axis("Rating")
    plane = laid_out(some, cost, rating, (5, 3), len, dict.fromkeys(some, ""), pareto=True)
    assert [one.name for one in plane.best] == ["free", "good", "best"]
    assert plane.across.ticks[0][1] == "0"
    heading = Heading("T", "s", ["x"])
    figure = points.against(some, cost, rating, heading, pareto="best for its cost")
    assert {"free", "good", "best", "0"} <= {text.get_text() for text in visible(figure)}
    crowd = {f"m{i}{j}": Point(i, nan, nan, j, nan, nan) for i in range(8) for j in range(5)}
    figure = points.against(crowd, Axis("x"), Axis("y"), heading)
    named = [text for text in visible(figure) if text.get_text().startswith("m")]
    assert 1 <= len(named) <= MOST_NAMED + 1  # and "model" in the key


@given(
    st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=30), st.booleans(),
    st.booleans(), st.floats(0.8, 8),
)  # fmt: skip
def test_an_axis_holds_its_numbers_and_its_ticks_fit(
    values: list[float], is_log: bool, down: bool, wide: float
) -> None:
    """Whatever the numbers: all inside, ticks in their order and none over another."""
    is_log = is_log and any(value > 1e-6 for value in values)
    values = [value if value > 1e-6 else 0.0 for value in values]
    some = {str(i): Point(v, v, v, v, v, v) for i, v in enumerate(values)}
    axis = Axis("x", log=is_log, down=down and not is_log)
    plane = laid_out(
        some, axis, axis, (wide, 3), lambda text: 0.08 * len(text), {n: n for n in some}
    )
    for scale in (plane.across, plane.up):
        places = [at for at, _ in scale.ticks]
        assert places == sorted(places, reverse=axis.down)
        assert all(-1e-9 <= at <= 1 + 1e-9 for at in places)
        assert all(-1e-9 <= scale.share(value) <= 1 + 1e-9 for value in values)
    assert sum(0.08 * len(text) + 0.15 for _, text in plane.across.ticks) <= wide


def test_signed_numbers_diverge() -> None:
    """Below and above 0 have a colour each; a number is bold where its interval leaves out 0."""
    square = pd.DataFrame([[np.nan, -0.8], [0.8, np.nan]], index=["a", "b"], columns=["a", "b"])
    part = Cells("τ × 100", square, square - 0.1, square + 0.1, 0.0, signed=True)
    figure = cells.squares([part], "row and column", Heading("T", "s", ["x"]))
    fills = figure.axes[0].collections[0].get_facecolor()
    assert fills[0][1] < fills[0][0]  # purple
    assert fills[1][1] > fills[1][0]  # green
    weights = {t.get_text(): t.get_weight() for t in figure.axes[0].texts}
    assert weights["−80"] == weights["80"] == "bold"
