"""Tables: a column is declared once, asked for by what it means, and written in any format."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass

import pytest

from botchat.boards import writers
from botchat.boards.tables import Column, Table, explained, record, table, with_ends
from botchat.boards.writers import Formats, document, table_files


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


def made() -> Table:
    """Two models, one of which has not played."""
    return table("t", "T", COLUMNS, [Model("a", 1, 4), Model("b", 0, 0)], ["sig"], "Note.")


def test_values_come_from_attributes_and_getters() -> None:
    """What an object has under the key, or what the getter says of it."""
    first, second = made().records
    assert first == {
        "name": "a", "rate": 0.25, "rate_low": 0.0, "rate_high": 1.0, "games": 4, "lost": 3,
    }  # fmt: skip
    assert second["rate"] is None
    assert made().cells_with_ends[1] == ["b", "–", "0", "0"]


def test_a_record_is_a_row_of_the_same_columns() -> None:
    """Nothing is computed again from what was computed before; other keys are left out."""
    rows = [{**record(COLUMNS, model), "x": 1} for model in (Model("a", 1, 4), Model("b", 0, 0))]
    assert table("t", "T", COLUMNS, rows, ["sig"]).frame.equals(made().frame)


def test_columns_are_found_by_what_they_are() -> None:
    """By key, by role and what they belong to, by N."""
    shown = made()
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


def test_meanings_are_sentences_of_a_note() -> None:
    """One for each column that has a meaning."""
    assert explained(COLUMNS) == "Won: of all games."


def test_columns_without_a_value_can_be_left_out() -> None:
    """Names stay, also where there is none."""
    columns = [Column("name", "Model", "name"), Column("why", "Why", "name")]
    shown = table("t", "T", [*columns, Column("x", "X", "rate")], [{"name": "a"}], [""])
    assert [column.key for column in shown.filled().columns] == ["name", "why"]
    assert list(shown.filled().frame) == ["name", "why"]


def test_a_table_can_be_sent_to_another_process() -> None:
    """Whatever its columns were computed with."""
    assert pickle.dumps(made())


def test_a_format_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table can be written in it then."""

    def tsv(shown: Table) -> str:
        return "".join("\t".join(row) + "\n" for row in shown.cells)

    monkeypatch.setattr(writers, "WRITERS", {**writers.WRITERS, "tsv": tsv})
    assert table_files([made()], Formats(("tsv",))) == {"t.tsv": "a\t25.0\t4\t3\nb\t–\t0\t0\n"}
    assert json.loads(writers.WRITERS["json"](made())) == {
        "rows": made().records,
        "signatures": ["sig"],
    }


def test_a_document_has_notes_and_tables() -> None:
    """Under one title."""
    text = document("All", ["first", "second"], [made(), made()])
    assert text.startswith("# All\n\n- first\n- second\n\n## T\n")
    assert text.count("## T\n") == 2
