"""What tables look like elsewhere: LaTeX, Parquet, notebooks."""

from __future__ import annotations

import io
import json
import re
from functools import reduce
from operator import add
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat import commands
from botchat.boards import writers
from botchat.boards.tables import Column, Table, table
from botchat.boards.writers import WRITERS, described, document, table_files
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
        [Column("model", "Model", "name"), Column("rate", "Won", "rate", interval=True)],
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


def test_parquet_has_exact_numbers_and_what_they_are():
    """Types, missing values and signatures come back."""
    read = pd.read_parquet(io.BytesIO(WRITERS["parquet"](rates_table())))
    pd.testing.assert_frame_equal(read, rates_table().frame, check_dtype=False)
    assert read["model"].tolist() == NAMES
    assert read.attrs == described(rates_table())
    assert read.attrs["columns"][1] == {"key": "rate", "heading": "Won", "kind": "rate"}
    assert [column["key"] for column in read.attrs["columns"]] == [*read]


def test_every_format_of_every_table_of_a_board():
    """A file each; a description only beside a csv."""
    tables = make_records({"a": 0.9, "b": 0.1}, 8).board().every_table
    formats = ("tex", "parquet", "md", "json")
    assert set(table_files(tables, formats)) == {
        f"{part.name}.{form}" for part in tables for form in formats
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
    assert board._repr_html_() == board.main._repr_html_()
    assert "b &lt;i&gt;" in board._repr_html_()
    assert re.search(r"<td>\d+\.\d \[\d+–\d+\]</td>", board._repr_html_())
    assert len(board._repr_html_()) < 8_000
    assert board.frames["leaderboard"] is board.frame is board.main.frame
    assert set(board.frames) == {part.name for part in board.every_table}


def test_the_formats_there_are():
    """The command line knows each, though it imports none; another one is one line."""
    message = "--format docx: give one of csv, md, json, tex, parquet"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        table_files([rates_table()], ("csv", "docx"))
    assert set(WRITERS) == {*get_args(get_args(get_args(commands.Formats)[0])[0])}


# Tables: a column is declared once, asked for by what it means, and written in any format.


COLUMNS = (
    Column("name", "Model", "name"),
    Column("rate", "Won", "rate", interval=True, n=8),
    Column("games", "Games", "count"),
    Column("rank", "Rank", "rank", interval=True),
    Column("lost", "Lost", "count", detail=True),
)


def two_models() -> Table:
    """Two models, one of which has not played."""
    rows = [
        {"name": "a", "rate": 0.25, "rate_low": 0.0, "rate_high": 1.0, "games": 4, "lost": 3,
         "rank": 1, "rank_low": 1, "rank_high": 2},
        {"name": "b", "rate": None, "rate_low": None, "games": 0, "lost": 0, "more": 1},
    ]  # fmt: skip
    return table("t", "T", COLUMNS, rows, ["sig"], "Note.")


def test_columns_have_values_and_may_be_left_out():
    """What rows have under the keys, None without; names stay; details are for machines."""
    first, second = two_models().records
    assert first == {
        "name": "a", "rate": 0.25, "rate_low": 0.0, "rate_high": 1.0, "games": 4,
        "rank": 1, "rank_low": 1, "rank_high": 2, "lost": 3,
    }  # fmt: skip
    assert second["rate"] is second["rate_high"] is second["rank"] is None
    assert two_models().cells == [["a", "25.0 [0–100]", "4", "1–2"], ["b", "–", "0", "–"]]
    columns = [Column("name", "Model", "name"), Column("why", "Why", "name")]
    x = Column("x", "X", "rate", interval=True)
    part = table("t", "T", [*columns, x], [{"name": "a"}], [""])
    assert [column.key for column in part.filled().columns] == ["name", "why"]
    assert list(part.filled().frame) == ["name", "why"]


def test_columns_are_found_by_key():
    """With the keys of the ends of their intervals."""
    part = two_models()
    assert part.column("lost").keys == ["lost"]
    assert part.column("rate").keys == ["rate", "rate_low", "rate_high"]
    assert [key for column in part.columns for key in column.keys] == [*part.frame]
    with pytest.raises(KeyError, match="missing"):
        part.column("missing")


def test_a_format_is_one_entry_and_a_document_holds_tables(monkeypatch):
    """Every table can be written in it then; notes and tables stand under one title."""

    def tsv(part: Table) -> str:
        return "".join("\t".join(row) + "\n" for row in part.cells)

    monkeypatch.setattr(writers, "WRITERS", {**writers.WRITERS, "tsv": tsv})
    assert table_files([two_models()], ("tsv",)) == {
        "t.tsv": "a\t25.0 [0–100]\t4\t1–2\nb\t–\t0\t–\n"
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
