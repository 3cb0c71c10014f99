"""Figures: everything inside, nothing over anything else, titles that are true, the same bytes."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from botchat.boards.board import Board, build
from botchat.boards.names import columns
from botchat.boards.protocols import Scored
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.protocols.scores import Scale
from botchat.records import HUMAN
from botchat.report import figures
from botchat.report.figures import cells, curves, pictures, points, questions, rows
from botchat.report.figures.axes import Axis, ruler
from botchat.report.figures.cells import Cells
from botchat.report.figures.lettering import LEAST, LETTERS, apart, width_of
from botchat.report.figures.points import OF_A_CROWD, Point
from botchat.report.figures.sheet import NARROW, WIDE, Look, Sheet, Text
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
SVG = "{http://www.w3.org/2000/svg}"


@cache
def board(k: int, *names: str) -> Board:
    """Of ``k`` models, named by these in turn, the first the best."""
    names = names or ("an-organisation/some-model-instruct-{}",)
    skills = {names[i % len(names)].format(i): 1 - (i + 0.5) / k for i in range(k)}
    arena = (8, 16) if k <= 40 else (16,)
    return made(skills, 8 if k <= 14 else 5, unreadable=0.1, arena=arena).board()


def drawn(k: int, *names: str) -> list[figures.Chart]:
    """Every figure of such a board."""
    return figures.draw(board(k, *names))


def corners(text: Text) -> list[tuple[float, float]]:
    """Of its box, turned as it is."""
    wide = width_of(text.said, text.size, text.bold)
    left = {"start": 0.0, "middle": -wide / 2, "end": -wide}[text.anchor]
    high, low = -0.75 * text.size, 0.2 * text.size
    c, s = math.cos(math.radians(text.turn)), math.sin(math.radians(text.turn))
    box = [(left, high), (left + wide, high), (left + wide, low), (left, low)]
    return [(text.x + c * x - s * y, text.y + s * x + c * y) for x, y in box]


def clashes(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """Two texts whose boxes, turned as they are, lie over each other by more than a px."""
    texts = [text for text in sheet.texts if text.said.strip()]
    boxes = np.array([corners(text) for text in texts])
    low, high = boxes.min(axis=1) + 0.5, boxes.max(axis=1) - 0.5
    near = ((low[:, None] < high[None]) & (low[None] < high[:, None])).all(axis=2)
    for i, j in np.argwhere(np.triu(near, 1)):
        # Boxes are apart if the shadows on a side of one of them are.
        sides = np.concatenate([np.diff(boxes[k][:3], axis=0) for k in (i, j)])
        sides = sides / np.linalg.norm(sides, axis=1, keepdims=True)
        one, two = boxes[i] @ sides.T, boxes[j] @ sides.T
        over = np.minimum(one.max(0), two.max(0)) - np.maximum(one.min(0), two.min(0))
        if (over > 1).all():
            yield texts[i].said, texts[j].said


def assert_readable(sheet: Sheet, whose: str) -> None:
    """No text is cut off, small, over another, or of a name that is cut too short."""
    assert [*clashes(sheet)] == [], whose
    for text in sheet.texts:
        for x, y in corners(text):
            assert -1 <= x <= sheet.width + 1, (whose, text)
            assert -1 <= y <= sheet.height + 1, (whose, text)
        assert text.size >= LEAST, (whose, text)
        if text.whole and {"\u2026", "~"} & {*text.said}:
            wide = columns(text.said) - len(text.said)
            assert columns(text.said) + 2 * (wide > 0) >= LETTERS, (whose, text)


def test_a_judge_whom_nobody_can_read_has_figures():
    """Of what is known without it; no rate is drawn that is none."""
    found = figures.draw(made({"a": 0.9, "b": 0.2}, 4, unreadable=1.0).board())
    assert all(one.png for one in found)
    assert "beside-people" not in {one.name for one in found}


@pytest.mark.parametrize(
    ("k", "names"),
    [(1, ["bot-{}"]), (4, [NAMES["long"]]),
     (14, [NAMES["script"], *SCRIPTS, "claude-{}-opus-20250229", "bot:thing-{}", "Baichuan2-{}B"]),
     (60, ["an-organisation/model-{}", "gpt-{}-turbo-instruct", NAMES["long"]])],
)  # fmt: skip
def test_nothing_is_cut_and_nothing_overlaps(k: int, names: list[str]) -> None:
    """Every text lies inside its figure and over no other, in a paper's column and on its page."""
    charts = drawn(k, *names)
    asked = [one.name for one in charts if one.question]
    assert len(asked) == (4 if k > 1 else 2)
    for chart in charts:
        assert_readable(chart.sheet(), chart.name)
        if k < 60:
            assert_readable(chart.sheet(Look(WIDE, bare=True)), chart.name)
        if chart.question:
            assert chart.sheet(Look(NARROW, bare=True)).width == pytest.approx(96 * NARROW)
            assert len(chart.title) <= 100


def told(found: Board) -> dict[str, str]:
    """Name -> title of the questions."""
    return {one.name: one.title for one in figures.draw(found) if one.question}


def test_titles_say_what_the_data_leave_sure() -> None:
    """Models that differ in nothing are not told apart; of those that do, who and how many."""
    level = told(made(dict.fromkeys("abcd", 0.97), 60, unreadable=0).board())
    assert level["pairs"] == "No pair can be told apart"
    assert level["strength"].startswith("Nobody is ahead: each of 4 models may be first")
    skills = {"m0": 0.99, **{f"m{i}": 0.68 - 0.08 * i for i in range(1, 8)}, "bot:x": 0.01}
    apart = told(made(skills, 60, unreadable=0).board())
    assert apart["strength"] == "m0 is ahead of all others; length moves nobody for certain"
    assert re.fullmatch(r"[1-9] of 8 models lose more than half between line 8 and line 16",
                        apart["mask"])  # fmt: skip
    assert re.match(r"\d+ of 36 pairs cannot be told apart", apart["pairs"])
    few = told(made({"a": 0.9, "b": 0.1}, 8).board())
    assert few["strength"] == "Too few ChatSEEDs to say who is better"


def test_a_pair_is_told_apart_by_wins_and_half_the_ties() -> None:
    """Not by wins alone: with many ties they are below one half on both sides."""
    (arena,) = made({"a": 0.6, "b": 0.6, "c": 0.1}, 140, arena=(16,), unreadable=0).board().arenas
    names, score, sure = questions.told_apart(arena)
    i, j, last = (names.index(name) for name in "abc")
    wins = arena.matrix("win_rate_high")
    assert wins.loc["a", "b"] < 0.5
    assert wins.loc["b", "a"] < 0.5
    assert not sure[i, j]
    assert sure[i, last]
    assert sure[last, i]
    assert score[i, last] == pytest.approx(1 - score[last, i])


def test_the_signature_is_whole_where_it_is_long() -> None:
    """It is broken into lines, never cut."""
    signature = "botchat:0.1.0|" + "|".join(f"part-{i}:{'x' * 30}" for i in range(20))
    chart = figures.chart("n", "T", "C", "1 chats", "s", [signature], rows.human_lengths, [2, 4, 5])
    assert chart.caption == "C 1 chat."
    lines = [text.said for text in chart.sheet().texts if "part-" in text.said or "|" in text.said]
    assert len(lines) > 3
    assert "".join(lines) == signature


def test_names_are_text_in_svg() -> None:
    """Whatever a name contains, the SVG stays well-formed and shows it."""
    hostile = [
        "<script>alert(1)</script>", "a&b \"q\" 'x'", "$\\frac{1}{2}$", "]]>--><svg onload=x>",
    ]  # fmt: skip
    found = made({name: 0.2 + 0.2 * i for i, name in enumerate(hostile)}, 8).board()
    for chart in figures.draw(found):
        for svg in (chart.svg, chart.inline):
            root = ElementTree.fromstring(svg)
            tags = {element.tag.removeprefix(SVG) for element in root.iter()}
            assert not tags & {"script", "image", "a", "foreignObject"}
            if chart.name != "human-lengths":
                shown = " ".join("".join(element.itertext()) for element in root.iter())
                assert all(name in shown for name in hostile), chart.name


def test_of_many_contestants_the_first_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure says so; ranks and intervals are those among all."""
    found = board(6, "model-{}-")
    in_order = [name for name in found.main.frame["model"] if name != HUMAN]
    monkeypatch.setattr(figures, "MOST_DRAWN", 3)
    for chart in figures.draw(found):
        if chart.name != "human-lengths":
            there = {name for name in in_order if f"{name}" in chart.inline}
            assert there == {*found.main.frame["model"][:3]} - {HUMAN}, chart.name
        if chart.name != "human-lengths":
            assert "the first 3 of" in chart.svg, chart.name


def test_a_png_has_its_title_and_spells_out_what_no_font_has() -> None:
    """By Pillow or, where its one font lacks a letter, by matplotlib; the same bytes twice."""
    for names in (("plain {}",), ("通义千问 {}", "नमस्ते {}")):
        (chart, *_) = drawn(3, *names)
        with Image.open(io.BytesIO(chart.png)) as image:
            assert image.text["Title"] == chart.title
            assert image.text["Description"].startswith("made-up · judged by rules")
            sheet = chart.sheet()
            for px, dots in zip((sheet.width, sheet.height), image.size, strict=True):
                assert abs(px * 160 / 96 - dots) <= 1
        assert pictures.png(chart.sheet()) == chart.png
    said = "".join(text.said for text in pictures.spelled(chart.sheet(), ["DejaVu Sans"]).texts)
    assert "\\u" in said
    assert not any(ord(char) > 0x3000 for char in said)


def test_lengths_that_do_not_vary_have_a_violin() -> None:
    """A bot that always says one word, one that said a single thing, and one that said nothing."""
    found = {"same": np.full(50, 7), "once": np.array([3]), "silent": np.array([], dtype=int)}
    said = [text.said for text in rows.violins(found, "words", Look()).texts]
    assert [name for name in said if name in found] == ["once", "same"]
    assert "words a line, log scale" in said


def test_a_board_without_protocols_has_figures_of_the_dialogues() -> None:
    """What was not judged is not drawn."""
    nothing = replace(made({"a": 0.9}, 8), judgments={}).board()
    named = [chart.name for chart in figures.draw(nothing)]
    assert named == ["utterance-lengths", "human-lengths"]


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


def test_a_figure_takes_the_pages_colours_and_text_of_11_px() -> None:
    """No colour of a file is left; what people called their models is left alone."""
    for chart in drawn(3, "#1a1917 {}"):
        root = ElementTree.fromstring(chart.inline)
        colors = {one.get(key, "none") for one in root.iter() for key in ("fill", "stroke")}
        assert not any(re.match("#(?!762a83|1b7837)", color) for color in colors), chart.name
        assert {"var(--ink)", "none"} < colors
        sizes = [float(one.get("font-size", "11")) for one in root.iter()]
        assert min(sizes) >= 11
        assert 'fill="#ffffff"' in chart.svg
    first = drawn(3, "#1a1917 {}")[0].inline
    assert "color-mix(in srgb,var(--ink) 42%,var(--paper))" in first
    assert "#1a1917 1" in first


def test_at_most_ten_survival_curves_are_named() -> None:
    """Among them people; others say who they are when pointed at."""
    (chart,) = [one for one in drawn(14, "model {:02d}") if one.name == "survival"]
    sheet = chart.sheet(Look(WIDE))
    named = {text.said for text in sheet.texts if text.said.startswith(("model ", "human"))}
    assert len(named) == curves.MOST_NAMED
    assert "human" in named
    titles = re.findall("<title>(.*?)</title>", sheet.svg())
    assert {f"model {i:02d}" for i in range(14)} <= set(titles)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_labels_keep_their_order_and_their_distance(n: int) -> None:
    """From the top down, inside the plot, wherever the points are."""
    heights = sorted(np.random.default_rng(n).random(n) * 100)
    placed = apart(heights, 100 / n, 0, 100)
    assert all(b - a >= 100 / n - 1e-9 for a, b in pairwise(placed))
    assert placed[0] >= -1e-9
    assert placed[-1] <= 100


def test_the_pareto_line_leads_along_those_that_nobody_beats() -> None:
    """Cheap and good; a free one stands apart at the left; a crowd has at most ten names."""
    nan = float("nan")
    numbers = {"free": (0, 900), "good": (1, 1000), "beaten": (2, 950), "best": (4, 1100)}
    some = {name: Point(x, nan, nan, y, nan, nan) for name, (x, y) in numbers.items()}
    some["dear"] = Point(9.0, nan, nan, 1050.0, nan, nan)
    best = {name: one for name, one in some.items() if name in ("free", "good", "best")}
    assert points._unbeaten(dict(sorted(some.items(), key=lambda one: -one[1].y))) == [*best]
    cost, rating = Axis("USD", log=True), Axis("Rating")
    sheet = points.against(some, cost, rating, Look(), best="best for its cost")
    assert {"free", "good", "best", "0"} <= {text.said for text in sheet.texts}
    crowd = {f"m{i}{j}": Point(i, nan, nan, j, nan, nan) for i in range(8) for j in range(5)}
    sheet = points.against(crowd, Axis("x"), Axis("y"), Look())
    named = [text for text in sheet.texts if text.said.startswith("m")]
    assert 1 <= len(named) <= OF_A_CROWD


@given(
    st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=30), st.booleans(),
    st.floats(80, 800),
)  # fmt: skip
def test_an_axis_holds_its_numbers_and_its_ticks_fit(
    values: list[float], is_log: bool, wide: float
) -> None:
    """Whatever the numbers: all inside, ticks in their order and none over another."""
    values = [value if value > 1e-6 else 0.0 for value in values]
    scale = ruler(Axis("x", log=is_log and any(values)), values,
                  lambda texts: sum(8 * len(text) + 14 for text in texts) <= wide)  # fmt: skip
    places = [at for at, _ in scale.ticks]
    assert places == sorted(places)
    assert all(-1e-9 <= at <= 1 + 1e-9 for at in places)
    assert all(-1e-9 <= scale.share(value) <= 1 + 1e-9 for value in values)
    assert sum(8 * len(text) + 14 for _, text in scale.ticks) <= wide


def test_signed_numbers_diverge() -> None:
    """Below and above 0 have a colour each; a number that says something is bold."""
    square = pd.DataFrame([[np.nan, -0.8], [0.8, np.nan]], index=["a", "b"], columns=["a", "b"])
    part = Cells("τ × 100", square, np.array([[0, 1], [0, 0]], dtype=bool), signed=True)
    sheet = cells.squares([part], "row and column", Look())
    purple, green = (mark.fill[0] for mark in sheet.marks if not isinstance(mark, Text))
    assert (purple, green) == ("#762a83", "#1b7837")
    assert {text.said: text.bold for text in sheet.texts if "80" in text.said} == {
        "−80": True, "80": False,
    }  # fmt: skip
