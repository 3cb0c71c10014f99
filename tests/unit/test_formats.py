"""What tables look like elsewhere: LaTeX, HTML, Parquet, notebooks."""

from __future__ import annotations

import io
import json
import pickle
import re
from dataclasses import dataclass
from functools import reduce
from html.parser import HTMLParser
from operator import add
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import botchat
from botchat.boards import writers
from botchat.boards.tables import (
    Column,
    Table,
    explained,
    record,
    table,
    with_ends,
    with_interval,
)
from botchat.boards.writers import WRITERS, Formats, described, document, fragment, table_files
from botchat.cli.main import main
from botchat.errors import ConfigError
from botchat.interfaces import round_floats
from botchat.requests import arguments
from botchat.workspace.folder import Workspace
from tests.boards import made

NAMES = [
    "50% off_& more",
    r"a\b^c~d",
    "[x]",
    "<script>alert(1)</script>",
    "通义",
    "x\n\\end{table}",
]


def shown(names: list[str] = NAMES) -> Table:
    """A rate with its interval for each name; the last has none."""
    rows = [{"model": name, "rate": 0.5, "rate_low": 0.25, "rate_high": 0.75} for name in names]
    rows[-1] = {"model": names[-1]}
    return table(
        "t_1",
        "Wins & losses",
        [
            Column("model", "Model", "name"),
            *with_interval(Column("rate", "Won", "rate", meaning="of #all")),
        ],
        rows,
        ["botchat:1|a_b\n\\input{x}"],
        "Rates in percent.",
    )


def test_latex_has_a_row_a_model_with_its_interval() -> None:
    """Booktabs' rules, numbers to the right, a dash for what is missing."""
    text = WRITERS["tex"](shown(["a", "b"]))
    assert text == (
        "% botchat:1|a_b \\input{x}\n"
        "\\begin{table}\n\\centering\n\\caption{Wins \\& losses}\n\\label{tab:t-1}\n"
        "\\begin{tabular}{@{}lr@{}}\n\\toprule\nModel & Won \\\\\n\\midrule\n"
        "a & 50.0 {\\scriptsize {[}25--75{]}} \\\\\nb & -- \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
        "\\par\\smallskip{\\footnotesize Rates in percent.\\par}\n\\end{table}\n"
    )


@given(st.text())
def test_no_name_means_anything_to_latex(name: str) -> None:
    """Neither a command of its own, nor a cell, a row, a comment or a brace that stays open."""
    text = WRITERS["tex"](shown([name, "b"]))
    assert len(text.splitlines()) == len(WRITERS["tex"](shown(["a", "b"])).splitlines())
    row = text[text.index("\\midrule\n") + 9 :].split("\n", 1)[0]
    cell, number = re.split(r"(?<!\\) & ", row)
    assert number == "50.0 {\\scriptsize {[}25--75{]}} \\\\"
    known = r"\\text[a-z]+\{\}|\\ldots\{\}|\\[&%$#_{}]|\{[][*]\}|\$-\$"
    assert not re.search(r"[\\{}$&%#_^~[\]<>|\"]", re.sub(known, "", cell))


class _Text(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_shows_names_as_they_are() -> None:
    """Escaped, with note and signature; a browser makes no other tags of it."""
    read = _Text()
    read.feed(str(WRITERS["html"](shown())))
    assert set(read.tags) == {
        "meta", "title", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "p", "code",
    }  # fmt: skip
    assert read.tags.count("tr") == len(NAMES) + 1
    assert {*NAMES[:-1], "50.0 [25–75]", "Rates in percent."} <= set(read.texts)


def test_parquet_has_exact_numbers_and_what_they_are() -> None:
    """Types, missing values and signatures come back."""
    read = pd.read_parquet(io.BytesIO(WRITERS["parquet"](shown())))
    pd.testing.assert_frame_equal(read, shown().frame, check_dtype=False)
    assert read["model"].tolist() == NAMES
    assert read.attrs == described(shown())
    assert read.attrs["columns"][1] == {
        "key": "rate", "heading": "Won", "kind": "rate", "role": "value", "meaning": "of #all",
    }  # fmt: skip


def test_every_format_of_every_table_of_a_board() -> None:
    """A file each; a description only beside a csv."""
    tables = made({"a": 0.9, "b": 0.1}, 8).board().every_table
    formats = Formats(("tex", "parquet", "html", "md", "json"))
    assert set(table_files(tables, formats)) == {
        f"{one.name}.{form}" for one in tables for form in formats.names
    }
    for one in tables:
        rows = re.findall(r"^(.*) \\\\$", str(WRITERS["tex"](one)), re.MULTILINE)
        columns = [len(re.split(r"(?<!\\) & ", row)) for row in rows]
        assert columns == [len(one.headline)] * (len(one.frame) + 1)
        read = pd.read_parquet(io.BytesIO(WRITERS["parquet"](one)))
        pd.testing.assert_frame_equal(read, one.frame, check_dtype=False)


def test_a_board_in_a_notebook_is_short() -> None:
    """One line as text; as HTML the main table, no matter how much there is behind it."""
    board = made({"a": 0.9, "b <i>": 0.1}, 8).board()
    assert repr(board).startswith("<Board of made-up by rules: 3 contestants; tables leaderboard,")
    assert len(repr(board)) < 500
    assert (
        repr(board.main)
        == f"<Table leaderboard: Leaderboard; 3 rows, {board.frame.shape[1]} columns>"
    )
    assert board._repr_html_() == fragment(board.main)
    assert "b &lt;i&gt;" in board._repr_html_()
    assert len(board._repr_html_()) < 8_000
    assert board.frames["leaderboard"] is board.frame is board.main.frame
    assert set(board.frames) == {one.name for one in board.every_table}


def test_the_formats_there_are() -> None:
    """The command line knows each, though it imports none; another one is one line."""
    said = "--format docx: give one of csv, md, json, tex, parquet, html"
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        Formats(("docx",))
    assert tuple(WRITERS) == arguments.FORMATS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with dialogues, judgments and a board."""
    folder = tmp_path_factory.mktemp("printed")
    for line in (
        "generate --model bot:verbose --model bot:parrot --limit 4",
        "judge unieval --judge rules",
        "leaderboard",
    ):
        assert main([*line.split(), "--seeds", "sample", "--dir", str(folder), "--quiet"]) == 0
    return folder


def test_a_board_has_what_pairs_it_with_a_later_one(place: Path) -> None:
    """Beside leaderboard.json, seed by seed: who has the same dialogues on both is not tested."""
    found = botchat.compare(Workspace(place), "sample", "sample", models=["bot:verbose"])
    assert "not tested, the same dialogues on both boards: bot:verbose" in found.lines


# Tables: a column is declared once, asked for by what it means, and written in any format.


@dataclass(frozen=True)
class Model:
    """A row that is an object."""

    name: str
    wins: int
    games: int

    @property
    def rate(self) -> float | None:
        """Share of games won."""
        return self.wins / self.games if self.games else None


COLUMNS = (
    Column("name", "Model", "name"),
    *with_ends(
        Column("rate", "Won", "rate", meaning="of all games", n=8),
        detail=True,
        low=lambda model: 0.0,
        high=lambda model: 1.0,
    ),
    Column("games", "Games", "count", role="readable", of="rate", n=8),
    Column("lost", "Lost", "count", getter=lambda model: model.games - model.wins),
)


def two_models() -> Table:
    """Two models, one of which has not played."""
    return table("t", "T", COLUMNS, [Model("a", 1, 4), Model("b", 0, 0)], ["sig"], "Note.")


def test_columns_have_values_meanings_and_may_be_left_out() -> None:
    """From attributes or getters; a meaning is a sentence of the note; names stay."""
    first, second = two_models().records
    assert first == {
        "name": "a", "rate": 0.25, "rate_low": 0.0, "rate_high": 1.0, "games": 4, "lost": 3,
    }  # fmt: skip
    assert second["rate"] is None
    assert two_models().cells_with_ends[1] == ["b", "–", "0", "0"]
    rows = [{**record(COLUMNS, model), "x": 1} for model in (Model("a", 1, 4), Model("b", 0, 0))]
    assert table("t", "T", COLUMNS, rows, ["sig"]).frame.equals(two_models().frame)
    assert explained(COLUMNS) == "Won: of all games."
    columns = [Column("name", "Model", "name"), Column("why", "Why", "name")]
    shown = table("t", "T", [*columns, Column("x", "X", "rate")], [{"name": "a"}], [""])
    assert [column.key for column in shown.filled().columns] == ["name", "why"]
    assert list(shown.filled().frame) == ["name", "why"]
    assert pickle.dumps(two_models())


def test_columns_are_found_by_what_they_are() -> None:
    """By key, by role and what they belong to, by N."""
    shown = two_models()
    assert shown.column("lost").heading == "Lost"
    assert shown.column(role="readable", of="rate", n=8).key == "games"
    ends = shown.ends("rate")
    assert ends is not None
    assert [end.heading for end in ends] == ["Won, low", "Won, high"]
    assert [end.detail for end in ends] == [True, True]
    assert shown.ends("lost") is None
    assert {n: column.key for n, column in shown.by_n().items()} == {8: "rate"}
    with pytest.raises(KeyError, match="missing"):
        shown.column(role="missing")


def test_a_format_is_one_entry_and_a_document_holds_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table can be written in it then; notes and tables stand under one title."""

    def tsv(shown: Table) -> str:
        return "".join("\t".join(row) + "\n" for row in shown.cells)

    monkeypatch.setattr(writers, "WRITERS", {**writers.WRITERS, "tsv": tsv})
    assert table_files([two_models()], Formats(("tsv",))) == {
        "t.tsv": "a\t25.0\t4\t3\nb\t–\t0\t0\n"
    }
    assert json.loads(writers.WRITERS["json"](two_models())) == {
        "rows": two_models().records,
        "signatures": ["sig"],
    }
    text = document("All", ["first", "second"], [two_models(), two_models()])
    assert text.startswith("# All\n\n- first\n- second\n\n## T\n")
    assert text.count("## T\n") == 2


def test_numbers_are_the_same_whichever_processor_made_them() -> None:
    """The last digits of a sum depend on the order of its terms, so none of them is written."""
    terms = [0.1 * n / 7 for n in range(1, 1000)]
    # Not `sum`, which carries what it loses since Python 3.12.
    one, other = (reduce(add, some) for some in (terms, terms[::-1]))
    assert one != other
    assert writers.to_json({"a": [one]}) == writers.to_json({"a": [other]})
    p = Column("p", "p", "exact")
    shown = [table("t", "T", [p], [{"p": value}], ()) for value in (one, other)]
    assert WRITERS["csv"](shown[0]) == WRITERS["csv"](shown[1])
    assert round_floats({"n": 3, "x": (None, "s", 0.25)}) == {"n": 3, "x": [None, "s", 0.25]}
