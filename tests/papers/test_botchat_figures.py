"""BotChat's Figures 3 to 6 from its published numbers, at a paper's sizes."""

import csv
import io
import json
import re
import runpy
import shutil
from pathlib import Path

import pytest
from scipy.stats import kendalltau

from botchat.cli.main import main
from botchat.papers.bench import BENCHMARKS
from botchat.papers.benchmarks import printed_tables, tables_of
from botchat.papers.botchat_figures import FIGURES, read_columns
from tests.papers.test_bench import needs
from tests.rows import rows as data_rows

PUBLISHED = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023"


def draw(out: Path, *more: str, data: Path = PUBLISHED, code: int = 0) -> None:
    """All figures by the command line."""
    command = ["bench", "botchat", "--data", str(data), "--out", str(out)]
    assert main([*command, *more, "--json"]) == code


@pytest.mark.usefixtures("pictures")
def test_every_figure_is_drawn_of_the_published_numbers(tmp_path, capsys) -> None:
    """3 to 6, as rows and files, with captions, whole names and where the numbers are from."""
    n_8 = shutil.ignore_patterns("arena_n16.csv")  # drawn as those of N = 8 are
    draw(tmp_path, data=shutil.copytree(PUBLISHED, tmp_path / "published", ignore=n_8))
    files = [row["file"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert {path.name for path in tmp_path.glob("*.*")} == {"captions.md", "captions.tex", *files}
    assert {file[:8] for file in files} == {f"figure-{number}" for number in FIGURES}
    for file in files:
        picture = (tmp_path / file).read_text()
        assert "Baichuan2-13B" in picture
        assert "\u2026" not in picture
        assert "sha256:" in picture


def test_the_numbers_are_those_of_the_file() -> None:
    """As they are printed beside the bars of Figure 6 and in the matrix of Figure 5."""

    def numbers(figure: str, file: str) -> list:
        columns, drawings = FIGURES[figure]
        frame = read_columns(PUBLISHED / file, columns)
        return [chart.draw.args[0] for chart in drawings(frame)]

    (rates,) = numbers("6", "gteval.csv")
    rates = rates.loc["GPT-4", ["win", "tie", "lose"]].tolist()
    assert rates == pytest.approx([0.264, 0.468, 0.268])
    wins, either = numbers("5", "arena_n8.csv")
    a, b = "Baichuan2-13B", "ChatGLM2-6B"
    assert wins.loc[a, b] == pytest.approx(0.29)
    assert wins.loc[b, a] == pytest.approx(1 - 0.88)
    assert either.loc[b, a] == pytest.approx(1 - 0.29)


def test_what_cannot_be_drawn_is_told_in_a_line(tmp_path, capsys) -> None:
    """No such columns, a cell that is no number, a flag that would change nothing."""
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    draw(tmp_path, data=tmp_path / "other.csv", code=1)
    assert (
        "no csv file has a figure's columns of model, mean_tokens, success_percent_n8"
        in capsys.readouterr().err
    )
    shutil.copy(PUBLISHED / "gteval.csv", broken := tmp_path / "gteval.csv")
    broken.write_text(broken.read_text().replace("26.4", "many"))
    draw(tmp_path, data=broken, code=1)
    assert "gteval.csv:2: 'many' is no number from 0 on" in capsys.readouterr().err
    assert main(["rank", str(PUBLISHED / "gteval.csv"), "--dir", str(tmp_path)]) == 1
    assert "no votes (columns: model" in capsys.readouterr().err
    draw(tmp_path, "--judge", "rules", code=2)
    assert "show published numbers; they ask nobody; leave out --judge" in capsys.readouterr().err
    draw(tmp_path, "--plan", code=2)
    assert "ask nobody; leave out --judge, --limit and --plan" in capsys.readouterr().err


def read(name: str) -> str:
    """A published file."""
    return (PUBLISHED / name).read_text(encoding="utf-8")


def rows(text: str) -> list[dict[str, str]]:
    """A CSV's rows by column."""
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(("name", "at"), [("elo", [[8]]), ("bradley_terry", [])])
def test_rebuilt_tables_are_what_the_code_makes(name, at):
    """The committed tables are made anew and compared, to the last digit shown; Elo at N = 8."""
    make = runpy.run_path(str(PUBLISHED / "rebuild.py"))[f"{name}_table"]
    committed, rebuilt = rows(read(f"rebuilt_{name}.csv")), rows(make(*at))
    assert len(committed) == 28
    if at:
        committed = [row for row in committed if row["n"] == "8"]
    for new, old in zip(rebuilt, committed, strict=True):
        assert new.keys() == old.keys()
        for key, value in old.items():
            is_digit = key in ("rating", "low", "high", "elo", "elo_run_std")
            assert abs(float(new[key]) - float(value)) < 0.11 if is_digit else new[key] == value


def test_the_papers_elo_comes_out():
    """At N = 8 12 models within 2 points, two within 6; at 16, where it differs, the order."""
    committed = rows(read("rebuilt_elo.csv"))
    by_n = {n: [row for row in committed if row["n"] == n] for n in ("8", "16")}
    off = {row["model"]: abs(float(row["elo"]) - float(row["published_elo"])) for row in by_n["8"]}
    assert {model for model, points in off.items() if points > 2} <= {"Vicuna-13B", "LLaMA2-70B"}
    assert max(off.values()) < 6
    ours, theirs = ([float(row[key]) for row in by_n["16"]] for key in ("elo", "published_elo"))
    assert kendalltau(ours, theirs).statistic >= 0.95
    fitted = rows(read("rebuilt_bradley_terry.csv"))
    rating = {row["model"]: float(row["rating"]) for row in fitted if row["n"] == "16"}
    assert kendalltau([rating[row["model"]] for row in by_n["16"]], theirs).statistic >= 0.97


def test_tables_are_the_published_ones():
    """The Arena rates and Elo equal the source files' values."""
    data = needs("botchat")
    for name, source in (
        ("arena_n8.csv", "arena_n8_pairwise_rates.csv"),
        ("arena_n16.csv", "arena_n16_pairwise_rates.csv"),
        ("elo.csv", "published_elo.csv"),
    ):
        assert rows(read(name)) == rows((data / source).read_text(encoding="utf-8"))


PAPERS = Path(__file__).resolve().parents[2].parent / "shared" / "papers"
PRINTED = {name: place for name, *place in data_rows("tables_of_papers")}


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
    (of,) = (one for one in printed_tables() if one.name == f"chateval-{shown}")
    mine = {tuple(line["row"]): line for line in of.rows}
    assert len(mine) == len(lines)
    for head, printed in zip(lines, lines.values(), strict=True):
        line = next(mine[row] for row in mine if [p for p in row if p != "–"] == [*head])
        values = dict(zip(of.columns, line["values"], strict=True))
        order = sorted(values, key=lambda name: of.columns.index(name.removesuffix("_std")))
        numbers = [values[name] for name in order if values[name] == values[name]]
        assert numbers == [abs(float(n)) if shown == "table-1" else float(n) for n in printed]


@pytest.mark.parametrize("benchmark", sorted({*BENCHMARKS} - {"turing"}))
def test_a_benchmark_has_one_table_of_all_that_is_printed(benchmark):
    """Rates in our units, every line once."""
    frame = tables_of(benchmark)[0].frame
    lines = sum(len(one.rows) for one in printed_tables() if one.benchmark == benchmark)
    assert len(frame) == lines > 0
    if benchmark == "faireval":
        assert frame["accuracy"].iloc[0] == pytest.approx(0.688)
        assert frame["accuracy_std"].iloc[5] == pytest.approx(0.014)
