"""The papers' experiments as values, their published numbers, tables and figures."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.writers import table_files
from botchat.cli.layout import of_table
from botchat.errors import ConfigError
from botchat.papers import figures
from botchat.papers.bench import BENCHMARKS, grid_of
from botchat.papers.experiments import (
    SINGLE,
    Experiment,
    Printed,
    Way,
    column,
    experiment,
    papers,
    table_of,
)
from botchat.report.figures.sheet import NARROW, Look
from botchat.workspace.panels import find
from tests.rows import rows as examples
from tests.unit.test_plots import assert_readable

pytestmark = pytest.mark.usefixtures("pictures")

PAPERS = Path(__file__).resolve().parents[2].parent / "shared" / "papers"
EXPERIMENTS = [
    pytest.param(one, id=one.name) for shown in papers().values() for one in shown.values()
]
METRICS = {"rouge-l", "bleu-4", "rouge-l r", "bleu-4 r"}


@pytest.mark.parametrize("one", [p for p in EXPERIMENTS if p.id.startswith("chateval")])
def test_a_papers_experiment_names_what_there_is(one):
    """Benchmark, columns, panels; and its lines are those that the judges asked would stand at."""
    assert one.benchmark in BENCHMARKS
    assert {column(key).key for key in one.columns} == set(one.columns)
    known = set()
    for asked in one.asked:
        for point in asked.points:
            panel = find(point, {})
            assert panel is not None or point in (SINGLE, *METRICS)
            said = {"strategy": "", "roles": "", "rounds": ""}
            if panel is not None:
                said = {
                    "strategy": panel.strategy,
                    "roles": str(len(panel.members)),
                    "rounds": str(getattr(panel, "rounds", "")),
                }
            known |= {
                tuple(
                    part.format(model=asked.called.get(model, model), **said) for part in asked.row
                )
                for model in one.models
            }
    # Every line that says which model it needs is one that this model would be put at.
    mine = [line.row for line in one.rows if re.fullmatch(r"needs [\w.-]+", line.why)]
    assert [row for row in mine if row not in known] == []


PRINTED = {
    "table 1": ("chateval-v2.md", "Table 1:", "Table 2:"),
    "table 2": ("chateval-v2.md", "Table 2:", "that the LLM-based"),
    "table 3": ("chateval-v2.md", "Table 3:", "Figure 3:"),
    "table 4": ("chateval-v1.md", "Table 4:", "human annotations"),
    "table 5": ("chateval-v2.md", "Table 5:", "Table 6:"),
    "table 6": ("chateval-v2.md", "Table 6:", "## E"),
}


@pytest.mark.parametrize("shown", PRINTED)
def test_the_published_numbers_are_those_of_the_paper(shown):
    """Line by line against the paper's text: as many numbers as it prints, in its order."""
    name, start, end = PRINTED[shown]
    if not (PAPERS / name).exists():
        pytest.skip("the papers are not part of this repository")
    text = (PAPERS / name).read_text()
    text = text[text.index(f"\n{start}") :].split(end)[0]
    lines = {}
    for line in text.splitlines():
        cells = re.sub(r"</?b>", "", line).split("\t")
        if len(cells) > 1 and re.search(r"\d", cells[-1]):
            head = [cell for cell in cells if not re.match(r"^[\\$-]*\d", cell) and cell != "-"]
            lines[tuple(head)] = re.findall(r"-?\d+\.?\d*", " ".join(cells[len(head) :]))
    of = experiment("chateval", shown)
    mine = {line.row: line for line in of.rows if not line.row[0].endswith("r as τ")}
    assert len(mine) == len(lines)
    for head, printed in zip(lines, lines.values(), strict=True):
        line = next(mine[row] for row in mine if [p for p in row if p != "–"] == [*head])
        numbers = [*line.values]
        if line.std:
            numbers = [one for pair in zip(line.values, line.std, strict=True) for one in pair]
        assert numbers == [abs(float(n)) if "table 1" in shown else float(n) for n in printed]


PAPER = Experiment(
    title="T",
    benchmark="faireval",
    heads=("Evaluator", "Methods"),
    columns=("accuracy", "kappa"),
    asked=(Way(judge=SINGLE, row=("{model}", "One")),),
    rows=(
        Printed(row=("GPT", "One"), values=(60.0, 0.3), std=(1.0, 0.1)),
        Printed(row=("GPT", "Two"), values=(70.0, float("nan")), why="needs GPT"),
    ),
    source="Paper, Table 1",
    name="paper-table-1",
    models={"GPT": "gpt.*"},
)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1)), min_size=1, max_size=6))
def test_ours_is_the_mean_of_the_runs_and_stands_below_the_papers(runs):
    """Mean, n - 1 standard deviation, difference; rates of the paper in our units."""
    rows = [{"accuracy": a, "kappa": k, "n": 5, "unreadable": 1} for a, k in runs]
    made = table_of(PAPER, {("GPT", "One"): rows, ("mine", "One"): rows}, "sig", {})
    frame = made.frame
    assert frame["values"].tolist() == ["published", "ours", "difference", "published", "ours"]
    accuracies = [a for a, _ in runs]
    ours = frame.iloc[1]
    assert ours["accuracy"] == pytest.approx(fmean(accuracies))
    assert (ours["runs"], ours["n"], ours["unreadable"]) == (len(runs), 5 * len(runs), len(runs))
    if len(runs) > 1:
        assert ours["accuracy_std"] == pytest.approx(stdev(accuracies))
    assert frame["accuracy"].iloc[0] == pytest.approx(0.6)
    assert frame["accuracy"].iloc[2] == pytest.approx(fmean(accuracies) - 0.6)
    assert frame["remark"].iloc[3] == "not run: needs GPT"
    assert np.isnan(frame["kappa"].iloc[3])


def test_a_run_without_a_value_has_no_part_and_what_is_missing_is_said():
    """In the line and, since a narrow terminal leaves remarks out, in the note."""

    def made(*rows, remarks=None):
        return table_of(PAPER, {("GPT", "One"): rows} if rows else {}, "sig", remarks or {})

    half = made({"accuracy": None, "kappa": None}, {"accuracy": 0.5, "kappa": None},
                remarks={("GPT", "Two"): "install it"})  # fmt: skip
    ours = half.frame.iloc[1]
    assert (ours["accuracy"], ours["runs"]) == (0.5, 2)
    assert np.isnan(ours["kappa"])
    assert half.frame["remark"].iloc[3] == "not run: install it"
    written = table_files([half])["paper-table-1.csv"]
    assert written.splitlines()[1].startswith('"GPT","One","published",0.6')
    none = made({"accuracy": None, "kappa": None, "n": 0, "unreadable": 4})
    assert none.frame["values"].tolist() == ["published", "ours", "published"]
    assert none.frame["remark"].iloc[1] == "no verdict could be read"
    assert "no verdict could be read: see judgments" in none.note
    assert "could be read" not in made().note


def test_a_pilot_is_said_and_its_totals_are_compared_with_nobodys():
    """Minutes of 3 questions stand beside those of 80, without a difference."""
    of = experiment("chateval", "table 6")
    mine = {("GPT-4(MA)",): [{"usd": 0.5, "minutes": 1.0, "n": 6, "unreadable": 0}]}
    pilot, whole = (table_of(of, mine, "sig", {}, limit) for limit in (3, None))
    assert "Judges were asked about the first 3 alone (--limit)." in pilot.note
    assert "difference" not in pilot.frame["values"].tolist()
    (apart,) = whole.frame[whole.frame["values"] == "difference"]["minutes"]
    assert apart == pytest.approx(1.0 - 36.0)
    assert "--limit" not in whole.note


def test_stories_in_another_table_than_the_papers_are_pointed_to_theirs():
    """LOT's published numbers are in Table 2; one's own stories are nowhere."""
    of = experiment("mateval", "table 1")
    notes = {data: table_of(of, {}, "sig", {}, None, data).note for data in ("LOT", "ROC", "mine")}
    assert "The paper's numbers of LOT are in its table 2." in notes["LOT"]
    assert not any("numbers of" in notes[data] for data in ("ROC", "mine"))


def test_remarks_are_broken_into_lines_on_a_narrow_terminal():
    """And each standard deviation says of what, also beside another column."""
    rows = [{"accuracy": a, "kappa": -0.00001, "n": 5, "unreadable": 0} for a in (0.5, 0.6)]
    made = table_of(PAPER, {("GPT", "One"): rows}, "sig", {("GPT", "Two"): "it needs " + "x " * 30})
    drawn = of_table(made).only(["methods", "values", "kappa", "kappa_std", "remark"]).drawn(70)
    assert "…" not in drawn
    assert "± Kap." in drawn
    assert "-0.000" not in drawn


@pytest.mark.parametrize(("model", "known"), examples("a_model_stands_for_the_papers_by_its_name"))
def test_a_model_stands_for_the_papers_by_its_name(model, known):
    """A newer model of a like name does not."""
    assert experiment("chateval", "table 1").known_as(model) == known


def test_wrong_lines_and_grids_are_refused():
    """A catalogue that does not fit its headings cannot be loaded."""
    with pytest.raises(ValueError, match="not one for each"):
        Experiment(title="", benchmark="faireval", heads=("A",), columns=(), asked=(PAPER.asked))
    with pytest.raises(ValueError, match="not a number for each"):
        Experiment(
            title="", benchmark="faireval", heads=("A",), columns=("kappa",), asked=(),
            rows=(Printed(row=("x",), values=(1.0, 2.0)),),
        )  # fmt: skip
    with pytest.raises(KeyError):
        column("beauty")
    assert grid_of(["roles=1,2,2", "feedback=false"]) == {
        "roles": ("1", "2"),
        "feedback": ("false",),
    }
    for wrong in (["roles"], ["roles="], ["roles=1", "roles=2"], ["=1"]):
        with pytest.raises(ConfigError, match="--grid"):
            grid_of(wrong)


def swept(points, **more):
    """A table of a grid of roles and rounds, as Figure 4's."""
    of = experiment("chateval", "figure 4")
    measured = {
        ("ChatGPT", strategy, roles, rounds): [
            {"accuracy": int(roles) / 10, "accuracy_low": 0.0, "accuracy_high": 0.9, "kappa": 0.1}
        ]
        for strategy, roles, rounds in points
    }
    return of, table_of(of, measured, "sig", {})


def mark_of(mark) -> str:
    """What a mark says when it is pointed at."""
    return getattr(mark, "whole", "")


def test_a_sweep_draws_a_line_for_what_is_kept_and_the_papers_points():
    """Roles at 2 rounds and rounds at 2 roles, by strategy; published only on its own line."""
    points = [(s, r, "2") for s in ("one-by-one", "simultaneous-talk") for r in "1234"]
    points += [(s, "2", r) for s in ("one-by-one", "simultaneous-talk") for r in "13"]
    chart = figures.draw(*swept(points))
    sheet = chart.sheet()
    lines = [mark for mark in sheet.marks if getattr(mark, "points", ()) and mark.whole]
    assert len(lines) == 8  # two strategies; accuracy and kappa, over roles and over rounds
    first, *_ = lines
    ups = [a[1] - b[1] for a, b in pairwise(first.points)]
    assert len(ups) == 3  # 10, 20, 30, 40 %: a step is as high as another
    assert max(ups) == pytest.approx(min(ups))
    assert min(ups) > 5
    level = next(line for line in lines if len({round(y, 6) for _, y in line.points}) == 1)
    assert len(level.points) == 3  # 20 % at 1, 2 and 3 rounds
    diamonds = [mark for mark in sheet.marks if mark_of(mark).startswith("published")]
    assert len(diamonds) == 4  # two points, of each measure
    assert diamonds[0].y == pytest.approx(diamonds[1].y)
    assert "published: one-by-one" in chart.svg
    assert chart.svg == figures.draw(*swept(points)).svg


def test_without_a_line_there_is_no_figure():
    """One point is no sweep; nothing of ours is no figure."""
    assert figures.draw(*swept([("one-by-one", "2", "2")])) is None
    assert figures.draw(*swept([])) is None
    of = experiment("chateval", "figure 3")
    row = dict.fromkeys(of.columns, 0.5) | {f"{key}_low": 0.4 for key in of.columns}
    made = table_of(of, {("m", "Coding"): [row], ("m", "Writing"): [row]}, "sig", {})
    chart = figures.draw(of, made)
    assert "Coding" in chart.svg
    assert "1 run a judge" in chart.caption


def test_names_of_axes_are_inside_the_figure():
    """Also beside numbers that are as long as -0.75."""
    of = experiment("chateval", "figure 4")
    measured = {
        ("ChatGPT", "one-by-one", str(roles), str(rounds)): [
            {"accuracy": 0.5, "kappa": kappa, "kappa_low": -0.7, "kappa_high": 0.7}
        ]
        for roles, rounds, kappa in [(1, 2, -0.4), (2, 2, 0.4), (2, 1, 0.1)]
    }
    chart = figures.draw(of, table_of(of, measured, "sig", {}))
    assert_readable(chart.sheet(), chart.name)
    assert_readable(chart.sheet(Look(NARROW)), chart.name)
