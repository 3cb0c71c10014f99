"""Figures: nothing overlaps or is cut, the same bytes each time, inert whatever names are."""

import hashlib
import io
import itertools
import re
from dataclasses import replace
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from botchat.boards.judge_agreement import AgreementReport
from botchat.estimates import VerdictPrice
from botchat.metrics.agreement import compare
from botchat.metrics.verdicts import PairVerdict, PairVerdicts
from botchat.records import HUMAN
from botchat.report.figures import FORMATS, MOST_DRAWN, Chart, board_charts, captions, judge_charts
from tests.boards import make_records
from tests.processes import Started

NAMES = {
    "ratings", "elo", "success", "success-curve", "win-rates-n16", "win-rates-n8", "vs-human",
    "lengths", "rounds", "cost-rating",
}  # fmt: skip
ALIKE = {"elo", "win-rates-n8"}
"""Drawn as others are."""


@cache
def charts(n_models: int) -> dict[str, Chart]:
    """Every figure of a board of so many models, some with long names."""
    names = [f"organisation-{i}/model-of-{i}-billion-parameters-instruct" for i in range(n_models)]
    names[1::2] = [f"m{i}" for i in range(1, n_models, 2)]
    skills = {name: (i + 0.5) / n_models for i, name in enumerate(names)}
    board = make_records(skills, 24 if n_models < 40 else 8).board()
    costs = {name: 0.001 * 2 ** (i % 7) for i, name in enumerate(names)}
    return {chart.name: chart for chart in board_charts(board, costs)}


@cache
def judges() -> dict[str, Chart]:
    """Figures of a comparison of three judges with human labels and prices."""
    rng = np.random.default_rng(0)
    rows = [
        PairVerdict(f"q{i}", "a", "b", judge, float(rng.choice([1, 0, 0.5])))
        for i in range(60)
        for judge in ("human:1", "small@m", "large@m", "debate-of-three@m (before debate)")
    ]
    compared = compare(PairVerdicts.of(rows), "human")
    prices = {}
    for i, judge in enumerate(compared.judges):
        prices[judge.judge] = VerdictPrice(1, None, 0.001 * 4**i, None)
    report = AgreementReport(
        subject="s", labels="human labels", signature="x", agreement=compared, prices=prices
    )
    return {chart.name: chart for chart in judge_charts(report)}


def test_every_figure_is_there():
    """Those of the paper's Figures 2 to 7 and Table 2, and cost; of judges two."""
    assert set(charts(4)) == NAMES
    assert set(judges()) == {"cost-agreement", "judge-agreement"}


@pytest.mark.parametrize(
    ("n", "name", "width"),
    [
        *itertools.product((14,), sorted(NAMES - ALIKE - {"rounds"}), (6.3,)),
        *itertools.product((4, 40), sorted(NAMES - ALIKE), (3.3,)),
        *itertools.product((0,), ("cost-agreement", "judge-agreement"), (3.3, 6.3)),
    ],
)
def test_no_text_is_cut_or_lies_on_another(n, name, width, monkeypatch):
    """Names, ticks, numbers, titles and legends, at the width of a column and of a page."""
    figure = (charts(n) if n else judges())[name].figure(width)
    canvas = FigureCanvasAgg(figure)
    texts: dict[mpl.text.Text, None] = {}  # drawn, not those of ticks outside the axes
    draw = mpl.text.Text.draw
    monkeypatch.setattr(mpl.text.Text, "draw", lambda t, r: (texts.setdefault(t), draw(t, r)))
    figure.draw_without_rendering()
    boxes = [
        (text.get_text(), text.get_window_extent(canvas.get_renderer()))
        for text in texts
        if text.get_text().strip()
    ]
    assert len(boxes) > 3
    inside = figure.bbox.padded(1)
    for text, box in boxes:
        assert inside.x0 <= box.x0, f"{text!r} is cut"
        assert box.x1 <= inside.x1, f"{text!r} is cut"
        assert inside.y0 <= box.y0, f"{text!r} is cut"
        assert box.y1 <= inside.y1, f"{text!r} is cut"
    for (a, first), (b, second) in itertools.combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        down = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(across, down) <= 1.5, f"{a!r} lies on {b!r}"


@pytest.mark.parametrize("name", ["success-curve", "cost-rating"])
def test_every_line_that_is_named_shows_its_name(name):
    """Names that would lie on each other are moved, none of them out of the figure."""
    axes = charts(14)[name].figure().axes[0]
    low, high = axes.get_ylim()
    heights = [text.xy[1] for text in axes.texts]  # at their points
    if name == "success-curve":
        (right,) = axes.child_axes
        heights = right.get_yticks()
    assert len(heights) == (10 if name == "success-curve" else 14)
    assert all(low <= height <= high for height in heights)


@pytest.mark.parametrize(("name", "skill", "n_seeds"), [("success", 0.0, 8), ("lengths", 0.9, 2)])
def test_of_more_contestants_the_first_are_drawn_and_humans(name, skill, n_seeds):
    """A thousand rows cannot be read."""
    skills = {f"m{i}": skill + i / 450 for i in range(45)}
    board = make_records(skills, n_seeds, arena=()).board()
    (chart,) = [chart for chart in board_charts(board) if chart.name == name]
    ticks = [tick.get_text() for tick in chart.figure().axes[0].get_yticklabels()]
    assert len(ticks) in (MOST_DRAWN, MOST_DRAWN + 1)
    assert HUMAN in ticks


def test_series_differ_in_shape_or_shade():
    """Of five: four N and the human length."""
    axes = charts(4)["success"].figure().axes[0]
    marks = [each for each in axes.collections if each.get_label()[0] != "_"]
    looks = {(str(m.get_edgecolor()), m.get_paths()[0].vertices.tobytes()) for m in marks}
    assert len(looks) == len(marks) == 5


def test_what_journals_and_readers_ask_for():
    """No title where none is wanted; the protocol in it; the ends of a control's name; captions."""
    chart = judges()["judge-agreement"]
    assert chart.figure().get_suptitle() == "s: same verdict of two judges (%)"
    assert replace(chart, titled=False).figure().get_suptitle() == ""
    names = [tick.get_text() for tick in chart.figure(3.3).axes[0].get_yticklabels()]
    assert "debate-of-three\n(votes before)" in names
    files = captions([chart, *charts(4).values()], "pdf")
    assert "\n**ratings.pdf**: Bradley–Terry ratings with" in files["captions.md"]
    assert "{ratings.pdf}\n\\caption{Bradley–Terry ratings with 95 \\% int" in files["captions.tex"]
    assert not re.search(r'id="[^"]* ', chart.inline("gteval on set"))


def drawn() -> str:
    """A digest of a figure in each form."""
    chart = next(board_charts(make_records({"a": 0.2, "b": 0.8}, 8).board()))
    return repr([hashlib.sha256(chart.render(form)).hexdigest() for form in FORMATS])


def test_two_processes_write_the_same_bytes():
    """svg, png and pdf, whatever the hash seed; of every figure the golden runs have the svg."""
    of_other = "from tests.unit.test_figures import drawn; print(drawn())"
    other = Started(["--version"], before=of_other)  # of another hash seed
    assert other.communicate()[0].splitlines()[0] == drawn()


def test_files_are_what_printers_need():
    """300 dots an inch; fonts whole in a pdf; signatures in the metadata."""
    chart = charts(4)["ratings"]
    with Image.open(io.BytesIO(chart.render("png", 3.3, 2))) as image:
        assert image.size == (990, 600)
    pdf = chart.render("pdf")
    assert b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf
    svg = chart.render("svg").decode()
    assert chart.signatures[0] in svg
    assert "<text" in svg


def test_names_are_text_and_nothing_else():
    """Marks of TeX, of HTML and of other scripts stand as they are."""
    names = ["$x^2$", "<script>alert(1)</script>", "نموذج 模型", "a\nb"]
    board = make_records({name: 0.2 * i for i, name in enumerate(names)}, 8).board()
    for chart in board_charts(board):
        if chart.name in ("ratings", "success-curve", "win-rates-n16"):
            assert "<script" not in (picture := chart.inline("f"))
            assert picture.startswith("<svg")
