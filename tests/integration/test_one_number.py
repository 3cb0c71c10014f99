"""One number has one value and one interval, wherever it stands: tables, JSON, figures, page.

Everything that a run with two judges writes and prints is walked. A number is told by who judged,
in what (a protocol or a table of its own), of whom, and by its key; on the page by its heading.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from botchat.boards.board import Board
from botchat.boards.tables import Table
from botchat.cli.main import main
from botchat.pipeline.run.read_set import read
from botchat.report import figures
from botchat.workspace.folder import Workspace

JUDGES = ("rules", "noisy")
Number = tuple[str, str, str, str]
"""Judge, protocol, contestants, key."""
Ends = tuple[float, float, float]
SUBJECTS = ("model", "model_a", "model_b", "contestant", "feature", "group")


class Found:
    """Every number that was met, with where."""

    def __init__(self) -> None:
        self.places: dict[Number, dict[Ends, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, number: Number, ends: Any, place: str) -> None:
        """One more place of a number; ``None`` and empty are not known."""
        if all(one not in (None, "") and one == one for one in ends):
            self.places[number][tuple(round(float(one), 4) for one in ends)].add(place)  # type: ignore[index]

    def row(self, judge: str, protocol: str, row: Mapping[str, Any], place: str) -> None:
        """A row of a table or of JSON: each entry that has its ends beside it."""
        judge = row.get("judge") or judge
        protocol = row.get("protocol") or protocol
        of = "|".join(str(row[key]) for key in SUBJECTS if key in row)
        for key in row:
            if f"{key}_low" in row and f"{key}_high" in row:
                ends = (row[key], row[f"{key}_low"], row[f"{key}_high"])
                self.add((judge, protocol, of, key), ends, place)

    def walk(self, judge: str, protocol: str, told: Any, place: str) -> None:
        """JSON: every mapping in it; a check of a judge is a number under its key."""
        if isinstance(told, dict):
            if {"key", "value", "low", "high"} <= told.keys():
                ends = (told["value"], told["low"], told["high"])
                self.add((judge, told["protocol"] or protocol, "", told["key"]), ends, place)
            self.row(judge, protocol, told, place)
            for name, part in told.items():
                table = isinstance(part, dict) and "rows" in part
                self.walk(judge, name if table else protocol, part, f"{place}/{name}")
        elif isinstance(told, list | tuple):
            for part in told:
                self.walk(judge, protocol, part, place)

    @property
    def twice(self) -> dict[Number, dict[Ends, set[str]]]:
        """Numbers of two values, or of two intervals."""
        return {number: dict(ends) for number, ends in self.places.items() if len(ends) > 1}


class Cells(HTMLParser):
    """Tables of a page: the file that each is of, and its rows of texts, headings first."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self._in = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A table, a row, a cell, or the interval in it."""
        given = dict(attrs)
        if tag == "table":
            self.tables.append((given.get("data-file") or "", []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1][1]:
            self.tables[-1][1][-1].append("")
            self._in = tag
        elif tag == "small" and self._in:
            self.tables[-1][1][-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        """The end of a cell."""
        if tag == self._in:
            self._in = ""

    def handle_data(self, data: str) -> None:
        """Text of a cell."""
        if self._in:
            self.tables[-1][1][-1][-1] += data


def said(folder: Path, *command: str) -> Any:
    """What a command prints with ``--json``."""
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(printed):
        assert main([*command, "--dir", str(folder), "--json"]) == 0
    printed.seek(0)
    return json.loads(printed.read())


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, judged a second time by a judge who errs, and skips one case in twenty."""
    folder = shutil.copytree(demo_folder, tmp_path_factory.mktemp("one") / "w")
    rng = random.Random(0)
    other = {"1": "2", "2": "1", "No": "3", "neither": "1", "both": "2"}
    for path in sorted((folder / "judgments" / "sample").glob("*/*.jsonl")):
        lines = []
        for line in path.read_text("utf-8").splitlines():
            made = json.loads(line)
            verdict, chance = made["verdict"], rng.random()
            made["verdict"] = (
                None if chance < 0.05 else other.get(verdict, "No") if chance < 0.3 else verdict
            )
            lines.append(json.dumps(made | {"judge": "noisy"}) + "\n")
        path.with_name("noisy.jsonl").write_text("".join(lines), "utf-8")
    return folder


def quoted(board: Board) -> dict[str, tuple[str, str]]:
    """Key on the main table -> the protocol and the key that it is quoted from."""
    return {
        part.quote(column).key: (part.table.name, column.key)
        for part in board.parts
        for column in part.table.columns
        if column.role == "value"
    }


def tables_of(folder: Path, found: Found, board: Board, seed_set: Path) -> None:
    """Every csv of a board's folder."""
    main_keys = quoted(board)
    for path in sorted(seed_set.glob("*.csv")):
        for row in csv.DictReader(io.StringIO(path.read_text("utf-8"))):
            if path.stem != "leaderboard":
                found.row(board.judge, path.stem, row, str(path.relative_to(folder)))
                continue
            for key, (protocol, own) in main_keys.items():
                if f"{key}_low" in row:
                    ends = (row[key], row[f"{key}_low"], row[f"{key}_high"])
                    found.add((board.judge, protocol, row["model"], own), ends, path.name)


def tables_in(value: Any, depth: int = 0) -> Iterator[Table]:
    """Tables that a figure is drawn from, however deep in its data."""
    if isinstance(value, Table):
        yield value
    elif depth < 6:
        if is_dataclass(value) and not isinstance(value, type):
            value = [getattr(value, one.name) for one in fields(value)]
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            for part in value:
                yield from tables_in(part, depth + 1)


def drawn(found: Found, board: Board) -> None:
    """What each figure of a board is drawn from."""
    for chart in figures.draw(board):
        for one in tables_in(chart.plot.args):  # type: ignore[attr-defined]
            if one.name != "leaderboard":
                for row in one.records:
                    found.row(board.judge, one.name, row, f"figure {chart.name}")


def on_page(page: str, found: Found, whose: str, headings: Mapping[str, Mapping[str, str]]) -> int:
    """Cells with an interval beside what is known of them; how many were compared.

    ``whose``: the judge of the page. ``headings``: table -> heading -> key.
    """
    written: dict[tuple[str, str, str], set[Ends]] = defaultdict(set)
    for (judge, protocol, of, key), every in found.places.items():
        if judge == whose:
            written[protocol, of, key].update(every)
            written["judge", protocol, key].update(every)
    cells, n = Cells(page), 0
    for name, rows in cells.tables:
        keys = headings.get(name, {})
        head = rows[0] if rows else []
        for row in rows[1:]:
            for heading, cell in zip(head, row, strict=False):
                key, subject = keys.get(heading), row[0].strip()
                told = re.fullmatch(r"(-?[\d.]+)\s+(\d+)–(\d+)", cell.strip())
                if key and told and (name, subject, key) in written:
                    shown = np.array(told.groups(), float) / 100
                    ends = np.array([*written[name, subject, key]])
                    # As rounded for people, of numbers that files have with four digits.
                    near = np.abs(ends - shown) <= np.array([0.0006, 0.0051, 0.0051])
                    assert near.all(), (name, subject, heading, cell, ends)
                    n += 1
    return n


def test_a_number_has_one_interval_everywhere(folder: Path) -> None:
    """Of each judge, protocol and contestant: one value, one lower and one upper end."""
    found, workspace = Found(), Workspace(folder)
    everyone = read(workspace, "sample", JUDGES)
    headings = {}
    for judge in JUDGES:
        board = everyone.board(judge)
        out = folder / judge
        told = said(folder, "leaderboard", "--seeds", "sample", "--judge", judge, "--out", str(out))
        tables_of(folder, found, board, out)
        whole = json.loads((out / "leaderboard.json").read_text("utf-8"))
        found.walk(judge, "", {"tables": whole["tables"], "judge": whole["judge"]}, "file")
        found.walk(judge, "", told["judge"], f"leaderboard --json of {judge}")
        drawn(found, board)
        headings = {
            one.name: {column.heading: column.key for column in one.columns}
            for one in board.every_table
        }
        assert on_page((out / "index.html").read_text("utf-8"), found, judge, headings) > 40
    for protocol in ("arena-n16", "arena-n8", "gteval", "unieval"):
        told = said(folder, "agree", "--seeds", "sample", "--protocol", protocol)
        found.walk("", protocol, [*told["rows"], *told["pairs"]], f"agree --json on {protocol}")
    numbers = {key for _, _, _, key in found.places}
    assert {
        "consistency",
        "first_preferred",
        "ties",
        "unreadable_rate",
        "people_accused",
    } <= numbers
    assert not found.twice, found.twice
