"""Figures: everything inside, nothing over anything else, the same data the same bytes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import joblib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from botchat import parallel
from botchat.boards.arena import from_comparisons
from botchat.boards.board import build
from botchat.boards.protocols import Scored
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.scores import Scale
from botchat.ratings.comparisons import Comparisons
from botchat.report import figures
from botchat.report.figures import charts, style
from botchat.report.figures.style import Heading
from tests.boards import QUICK, judgment, made

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


def rows(figure: Figure) -> list[str]:
    """What stands left of the first plot, from the top down."""
    axes = figure.axes[0]
    placed = [(text.get_window_extent(), text.get_text()) for text in axes.texts]
    beside = [(-box.y0, said) for box, said in placed if box.x1 <= axes.bbox.x0]
    return [said for _, said in sorted(beside)]


@pytest.mark.parametrize(
    ("k", "names"),
    [(1, ["bot-{}"]), (3, ["bot-{}"]), (14, [NAMES["script"], *SCRIPTS]), (40, [NAMES["long"]])],
)
def test_nothing_is_cut_and_nothing_overlaps(k: int, names: list[str]) -> None:
    """Every text lies inside its figure and over no other text, with 3 models and with 40.

    Also where no font has the characters of a name and each takes the room of its number.
    """
    found_charts = drawn(k, *names)
    assert {chart.name for chart in found_charts} >= {"survival", "success-rates", "judge-health"}
    for chart in found_charts:
        with style._drawable(chart.figure, [style.FONT]):
            texts = visible(chart.figure)
            found = boxes(texts)
        width, height = chart.figure.canvas.get_width_height()
        inside = (found >= 0).all(axis=1) & (found[:, 2] <= width) & (found[:, 3] <= height)
        cut = [text.get_text() for text, ok in zip(texts, inside, strict=True) if not ok]
        assert not cut, (chart.name, cut)
        apart = (
            (found[:, None, 2] <= found[None, :, 0])
            | (found[:, None, 0] >= found[None, :, 2])
            | (found[:, None, 3] <= found[None, :, 1])
            | (found[:, None, 1] >= found[None, :, 3])
        )
        np.fill_diagonal(apart, True)
        clash = np.argwhere(~apart)
        assert not len(clash), (chart.name, [texts[i].get_text() for i in clash[0]])


def test_every_figure_says_what_it_is() -> None:
    """Title, number of comparisons and the whole signature stand in each; axes have labels."""
    for chart in drawn(3):
        said = [text.get_text() for text in visible(chart.figure)]
        assert chart.title in said
        assert "botchat:0.1.0|" in "".join(said)
        assert any(char.isdigit() for char in chart.caption)
        assert all(axes.get_xlabel() for axes in chart.figure.axes)


def test_the_signature_is_whole_where_it_is_long() -> None:
    """It is broken into lines, never cut."""
    signature = "botchat:0.1.0|" + "|".join(f"part-{i}:{'x' * 30}" for i in range(20))
    figure = charts.human_lengths([2, 4, 5], Heading("T", "s", [signature]))
    lines = [t.get_text() for t in visible(figure) if t.get_fontsize() == 6.5]
    assert len(lines) > 3
    assert "".join(lines) == signature


def test_the_same_board_gives_the_same_svg() -> None:
    """No date and no random id: stage files made twice are the same to the byte."""
    for one, two in zip(drawn(3), drawn(3), strict=True):
        assert one.svg == two.svg
        assert "<dc:date>" not in one.svg


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
            shown = {"".join(element.itertext()) for element in root.iter(f"{SVG}text")}
            assert shown >= set(hostile)


def test_png_spells_out_what_no_font_has() -> None:
    """What a font lacks is no row of boxes; afterwards the figure is as it was."""
    (chart, *_) = drawn(3, "通义 {}")
    before = chart.svg
    assert chart.png.startswith(b"\x89PNG")
    assert style.svg(chart.figure) == before
    with style._drawable(chart.figure, [style.FONT]):
        said = {text.get_text() for text in visible(chart.figure)}
        assert "\\u901a\\u4e49 1" in said
        assert (boxes(visible(chart.figure))[:, 0] >= 0).all()


def test_bars_are_sorted_by_the_largest_n() -> None:
    """Figure 4's rows: best at N = 16 first, missing rates last."""
    at_n = {4: [0.9, 1.0, 0.8, 0.7], 16: [0.2, 0.1, np.nan, 0.5]}
    rates = {
        n: pd.DataFrame({"success": of_n, "low": 0.05, "high": 1.0}, index=["b", "c", "d", "a"])
        for n, of_n in at_n.items()
    }
    figure = charts.success_rates(rates, Heading("T", "s", ["x"]))
    assert rows(figure) == ["a", "b", "c", "d"]


def test_heatmap_holds_every_value() -> None:
    """A pair that was not compared is a dash, a model against itself is empty."""
    win = pd.DataFrame([[np.nan, 0.25, np.nan], [0.5, np.nan, 0.0], [np.nan, 1.0, np.nan]])
    win.index = win.columns = pd.Index(["a", "b", "c"])
    parts = {"Win rate": win, "Win + tie rate": win}
    figure = charts.squares(parts, "row against column", Heading("T", "s", ["x"]))
    for axes, beside in zip(figure.axes, (["a", "b", "c"], []), strict=True):
        shown = [text.get_text() for text in axes.texts if "rate" not in text.get_text()]
        assert sorted(shown) == sorted(["0", "100", "25", "50", "–", "–", "a", "b", "c", *beside])


def test_lengths_that_do_not_vary_have_a_violin() -> None:
    """A bot that always says one word, one that said a single thing, and one that said nothing."""
    found = {"same": np.full(50, 7), "once": np.array([3]), "silent": np.array([], dtype=int)}
    figure = charts.utterance_lengths(found, "words", Heading("T", "s", ["x"]))
    assert rows(figure) == ["once", "same"]
    assert figure.axes[0].get_xlabel().startswith("Words")
    assert visible(figure)


def test_a_board_without_protocols_has_two_figures() -> None:
    """What was not judged is not drawn."""
    nothing = replace(made({"a": 0.9}, 8), judgments={}).board()
    assert [chart.name for chart in figures.draw(nothing)] == ["utterance-lengths", "human-lengths"]


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


def test_an_arena_alone_is_drawn() -> None:
    """A published rate table has ratings and win rates, and no N."""
    rows = [("a", "b", 1.0), ("b", "c", 0.5), ("a", "c", 0.0)]
    arena = from_comparisons(Comparisons.of(rows), "x", 1, QUICK)
    found = figures.draw_arenas([arena], "a table")
    assert [chart.name for chart in found] == ["bradley-terry", "elo", "win-rates"]
    assert all("N =" not in chart.svg for chart in found)


def face() -> int:
    """Which object reads the font's file."""
    return id(style._face("normal"))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_forked_process_opens_its_own_fonts() -> None:
    """Two that read one open file would move each other's place in it."""
    ours = style._face("normal")
    assert id(ours) == face()
    with joblib.parallel_config(backend=parallel.FORK), parallel.workers(2) as working:
        assert next(working.begin([face], 1)) != id(ours)
