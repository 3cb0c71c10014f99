"""What tables look like elsewhere: LaTeX, Parquet, notebooks."""

import io
import re
from dataclasses import replace
from functools import reduce
from operator import add
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat import commands
from botchat.boards.files import WRITERS, described, table_files, to_json
from botchat.boards.tables import Column, Table, table
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


def test_a_table_by_name_keeps_the_order_of_a_name_s_rows():
    """Such as of groups: the shorter first."""
    ranked = replace(rates_table(), frame=rates_table([*"ba"] * 9).frame.assign(rate=range(18)))
    assert [*ranked.unranked().frame["rate"]] == [*range(1, 18, 2), *range(0, 18, 2)]


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


def test_the_formats_there_are():
    """The command line knows each, though it imports none; another one is one line."""
    message = "--format docx: give one of csv, md, json, tex, parquet"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        table_files([rates_table()], ("csv", "docx"))
    assert set(WRITERS) == {*get_args(get_args(get_args(commands.Formats)[0])[0])}


# Tables: a column is declared once, asked for by what it means, and written in any format.


def test_numbers_are_the_same_whichever_processor_made_them():
    """The last digits of a sum depend on the order of its terms, so none of them is written."""
    terms = [0.1 * n / 7 for n in range(1, 1000)]
    # Not `sum`, which carries what it loses since Python 3.12.
    sums = [reduce(add, order) for order in (terms, terms[::-1])]
    assert sums[0] != sums[1]
    assert len({to_json({"a": [value]}) for value in sums}) == 1
    p = Column("p", "p", "exact")
    assert len({WRITERS["csv"](table("t", "T", [p], [{"p": value}], ())) for value in sums}) == 1
    assert round_floats({"n": 3, "x": (None, "s", 0.25)}) == {"n": 3, "x": [None, "s", 0.25]}
