"""The numbers that the papers print, as values and as a table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from botchat.papers.bench import BENCHMARKS
from botchat.papers.printed import Printed, PrintedLine, column, papers, tables_of

PAPERS = Path(__file__).resolve().parents[2].parent / "shared" / "papers"
PRINTED = {
    "table-1": ("chateval-v2.md", "Table 1:", "Table 2:"),
    "table-2": ("chateval-v2.md", "Table 2:", "that the LLM-based"),
    "table-3": ("chateval-v2.md", "Table 3:", "Figure 3:"),
    "table-4": ("chateval-v1.md", "Table 4:", "human annotations"),
    "table-5": ("chateval-v2.md", "Table 5:", "Table 6:"),
    "table-6": ("chateval-v2.md", "Table 6:", "## E"),
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
    (of,) = (one for one in papers() if one.name == f"chateval-{shown}")
    mine = {line.row: line for line in of.rows}
    assert len(mine) == len(lines)
    for head, printed in zip(lines, lines.values(), strict=True):
        line = next(mine[row] for row in mine if [p for p in row if p != "–"] == [*head])
        numbers = [*line.values]
        if line.std:
            numbers = [one for pair in zip(line.values, line.std, strict=True) for one in pair]
        assert numbers == [abs(float(n)) if shown == "table-1" else float(n) for n in printed]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_benchmark_has_one_table_of_all_that_is_printed(benchmark):
    """Rates in our units, every line once."""
    frame = tables_of(benchmark)[0].frame
    lines = sum(len(one.rows) for one in papers() if one.benchmark == benchmark)
    assert len(frame) == lines > 0
    if benchmark == "faireval":
        assert frame["accuracy"].iloc[0] == pytest.approx(0.688)
        assert frame["accuracy_std"].iloc[5] == pytest.approx(0.014)


def test_a_line_of_another_length_is_refused():
    """Nor is a column without a heading taken."""
    kind = {"title": "", "source": "", "benchmark": "faireval", "heads": ("A",)}
    table = Printed(**kind, columns=("kappa",) * 2, rows=(PrintedLine(row=("x",), values=(1.0,)),))
    with pytest.raises(ValueError, match="shorter"):
        list(table.records)
    with pytest.raises(KeyError):
        column("beauty")
