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
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat import commands
from botchat.boards import writers
from botchat.boards.tables import Column, Table, table, with_ends, with_interval
from botchat.boards.writers import WRITERS, Formats, described, document, fragment, table_files
from botchat.errors import ConfigError
from botchat.interfaces import round_floats
from tests.boards import make_records

NAMES = [
    "50% off_& more",
    r"a\b^c~d",
    "[x]",
    "<script>alert(1)</script>",
    "通义",
    "x\n\\end{table}",
]


def rates_table(names: list[str] = NAMES) -> Table:
    """A rate with its interval for each name; the last has none."""
    rows = [{"model": name, "rate": 0.5, "rate_low": 0.25, "rate_high": 0.75} for name in names]
    rows[-1] = {"model": names[-1]}
    return table(
        "t_1",
        "Wins & losses",
        [
            Column("model", "Model", "name"),
            *with_interval(Column("rate", "Won", "rate")),
        ],
        rows,
        ["botchat:1|a_b\n\\input{x}"],
        "Rates in percent.",
    )


def test_latex_has_a_row_a_model_with_its_interval():
    """Booktabs' rules, numbers to the right, a dash for what is missing."""
    text = WRITERS["tex"](rates_table(["a", "b"]))
    assert text == (
        "% botchat:1|a_b \\input{x}\n"
        "\\begin{table}\n\\centering\n\\caption{Wins \\& losses}\n\\label{tab:t-1}\n"
        "\\begin{tabular}{@{}lr@{}}\n\\toprule\nModel & Won \\\\\n\\midrule\n"
        "a & 50.0 {\\scriptsize {[}25--75{]}} \\\\\nb & -- \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
        "\\par\\smallskip{\\footnotesize Rates in percent.\\par}\n\\end{table}\n"
    )


@given(st.text())
def test_no_name_means_anything_to_latex(name):
    """Neither a command of its own, nor a cell, a row, a comment or a brace that stays open."""
    text = WRITERS["tex"](rates_table([name, "b"]))
    assert len(text.splitlines()) == len(WRITERS["tex"](rates_table(["a", "b"])).splitlines())
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


def test_html_shows_names_as_they_are():
    """Escaped, with note and signature; a browser makes no other tags of it."""
    read = _Text()
    read.feed(str(WRITERS["html"](rates_table())))
    assert set(read.tags) == {
        "meta", "title", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "p", "code",
    }  # fmt: skip
    assert read.tags.count("tr") == len(NAMES) + 1
    assert {*NAMES[:-1], "50.0 [25–75]", "Rates in percent."} <= set(read.texts)


def test_parquet_has_exact_numbers_and_what_they_are():
    """Types, missing values and signatures come back."""
    read = pd.read_parquet(io.BytesIO(WRITERS["parquet"](rates_table())))
    pd.testing.assert_frame_equal(read, rates_table().frame, check_dtype=False)
    assert read["model"].tolist() == NAMES
    assert read.attrs == described(rates_table())
    rate = {"key": "rate", "heading": "Won", "kind": "rate", "role": "value"}
    assert read.attrs["columns"][1] == rate


def test_every_format_of_every_table_of_a_board():
    """A file each; a description only beside a csv."""
    tables = make_records({"a": 0.9, "b": 0.1}, 8).board().every_table
    formats = Formats(("tex", "parquet", "html", "md", "json"))
    assert set(table_files(tables, formats)) == {
        f"{part.name}.{form}" for part in tables for form in formats.names
    }
    for part in tables:
        rows = re.findall(r"^(.*) \\\\$", str(WRITERS["tex"](part)), re.MULTILINE)
        columns = [len(re.split(r"(?<!\\) & ", row)) for row in rows]
        assert columns == [len(part.headline)] * (len(part.frame) + 1)
        read = pd.read_parquet(io.BytesIO(WRITERS["parquet"](part)))
        pd.testing.assert_frame_equal(read, part.frame, check_dtype=False)


def test_a_board_in_a_notebook_is_short():
    """One line as text; as HTML the main table, no matter how much there is behind it."""
    board = make_records({"a": 0.9, "b <i>": 0.1}, 8).board()
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
    assert set(board.frames) == {part.name for part in board.every_table}


def test_the_formats_there_are():
    """The command line knows each, though it imports none; another one is one line."""
    message = "--format docx: give one of csv, md, json, tex, parquet, html"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        Formats(("docx",))
    assert set(WRITERS) == {*get_args(get_args(get_args(commands.Formats)[0])[0])}


# Tables: a column is declared once, asked for by what it means, and written in any format.


@dataclass(frozen=True)
class Model:
    """A row that is an object."""

    name: str
    wins: int
    games: int
    rate_low = 0.0
    rate_high = 1.0

    @property
    def rate(self) -> float | None:
        """Share of games won."""
        return self.wins / self.games if self.games else None


COLUMNS = (
    Column("name", "Model", "name"),
    *with_ends(Column("rate", "Won", "rate", n=8), detail=True),
    Column("games", "Games", "count", role="coverage", of="rate", n=8),
    Column("lost", "Lost", "count", getter=lambda model: model.games - model.wins),
)


def two_models() -> Table:
    """Two models, one of which has not played."""
    return table("t", "T", COLUMNS, [Model("a", 1, 4), Model("b", 0, 0)], ["sig"], "Note.")


def test_columns_have_values_and_may_be_left_out():
    """From attributes, getters or what a mapping has under the key; names stay."""
    first, second = two_models().records
    assert first == {
        "name": "a", "rate": 0.25, "rate_low": 0.0, "rate_high": 1.0, "games": 4, "lost": 3,
    }  # fmt: skip
    assert second["rate"] is None
    assert two_models().cells_with_ends == [["a", "25.0 [0–100]", "4", "3"], ["b", "–", "0", "0"]]
    columns = [Column("name", "Model", "name"), Column("why", "Why", "name")]
    part = table("t", "T", [*columns, Column("x", "X", "rate")], [{"name": "a"}], [""])
    assert [column.key for column in part.filled().columns] == ["name", "why"]
    assert list(part.filled().frame) == ["name", "why"]
    assert pickle.dumps(two_models())


def test_columns_are_found_by_what_they_are():
    """By key, by role and what they belong to, by N."""
    part = two_models()
    assert part.column("lost").heading == "Lost"
    assert part.column(role="coverage", of="rate", n=8).key == "games"
    ends = part.ends("rate")
    assert ends is not None
    assert [end.heading for end in ends] == ["Won, low", "Won, high"]
    assert [end.detail for end in ends] == [True, True]
    assert part.ends("lost") is None
    assert {n: column.key for n, column in part.by_n().items()} == {8: "rate"}
    with pytest.raises(KeyError, match="missing"):
        part.column(key="missing")


def test_a_format_is_one_entry_and_a_document_holds_tables(monkeypatch):
    """Every table can be written in it then; notes and tables stand under one title."""

    def tsv(part: Table) -> str:
        return "".join("\t".join(row) + "\n" for row in part.cells)

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


def test_numbers_are_the_same_whichever_processor_made_them():
    """The last digits of a sum depend on the order of its terms, so none of them is written."""
    terms = [0.1 * n / 7 for n in range(1, 1000)]
    # Not `sum`, which carries what it loses since Python 3.12.
    sums = [reduce(add, order) for order in (terms, terms[::-1])]
    assert sums[0] != sums[1]
    assert len({writers.to_json({"a": [value]}) for value in sums}) == 1
    p = Column("p", "p", "exact")
    assert len({WRITERS["csv"](table("t", "T", [p], [{"p": value}], ())) for value in sums}) == 1
    assert round_floats({"n": 3, "x": (None, "s", 0.25)}) == {"n": 3, "x": [None, "s", 0.25]}
