"""A judge's card: who it is, how it did, what it prefers, what it does not see; json and a page.

It is made of what is stored alone, so ``bench … --card --verify`` makes the same bytes again, out
of the ledger, and nobody is paid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from botchat.boards.tables import Column, Table, fragment, of_rows, table, with_interval
from botchat.boards.writers import to_json
from botchat.errors import Fell, MissingError
from botchat.interfaces import Row
from botchat.papers.benchmarks import Judgments
from botchat.pipeline import probe
from botchat.records import VERSION, slug
from botchat.report.figures.chart import Chart
from botchat.workspace import files
from botchat.workspace.folder import Workspace

_NAMES = ("who", "judge", "strategy")
"""Columns that say whose a row is."""


def of(
    workspace: Workspace,
    judge: str,
    benchmark: str,
    judged: Mapping[str, Judgments],
    whole: Mapping[str, Any],
) -> Row:
    """The card, JSON-ready; ``whole``: what the benchmark found of everybody.

    ``asked`` says which models and snapshots, when and for how much; ``signatures`` hold the
    digests of prompts and settings; ``results`` the judge's rows of every table, with prices and
    preferences; ``planted`` what `bench probe` found; ``bridges`` what it would change on boards
    of another judge.
    """
    signed = {name: by[judge][0].signature for name, by in judged.items() if by.get(judge)}
    if not signed:
        raise MissingError(f"{judge} has judged nothing of {benchmark}: name it with --judge")
    asked = workspace.measured(f"bench-{benchmark}")
    lists = {key: rows for key, rows in whole.items() if isinstance(rows, list)}
    mine = {
        key: [r for r in rows if isinstance(r, dict) and judge in [r.get(n) for n in _NAMES]]
        for key, rows in lists.items()
    }
    bridges = [
        told for path in sorted(workspace.root.glob("leaderboards/*/bridge-*/bridge.json"))
        if (told := json.loads(path.read_bytes()))["new"] == judge
    ]  # fmt: skip
    return {
        "judge": judge,
        "benchmark": benchmark,
        "botchat": VERSION,
        "asked": [msgspec.to_builtins(asked[key]) for key in sorted(asked) if key[1] == judge],
        "signatures": signed,
        "results": {key: rows for key, rows in mine.items() if rows},
        "planted": probe.found(workspace, judge),
        "bridges": [{key: told[key] for key in ("old", "new", "rows")} for told in bridges],
        "signature": whole["signature"],
    }


def place_of(workspace: Workspace, judge: str, benchmark: str) -> Path:
    """Where the json is; the page is beside it."""
    return workspace.root / "cards" / slug(judge) / f"{benchmark}.json"


def write(workspace: Workspace, made: Row, shown: Sequence[Table]) -> Path:
    """Write json and page, with the judge's rows of the benchmark's tables ``shown``."""
    path, judge = place_of(workspace, made["judge"], made["benchmark"]), made["judge"]
    tables = [_lines("asked", "Who was asked", made["asked"])]
    for one in shown:
        key = next((column.key for column in one.columns if column.key in _NAMES), None)
        if key and (mine := one.frame[one.frame[key] == judge]).size:
            tables.append(replace(one, frame=mine.reset_index(drop=True)).filled().compact)
    prefers = made["results"].get("preferences", [])
    tables.append(table("preferences", "What it prefers of two", _PREFERS, prefers, ()).filled())
    tables.append(
        _lines("planted", "Planted faults that it sees", probe.in_percent(made["planted"]))
    )
    for told in made["bridges"]:
        tables.append(_lines("bridge", f"In place of {told['old']}", told["rows"]))
    said = [*made["signatures"].values(), made["signature"]]
    title = f"{judge}: {made['benchmark']}"
    kept = [one for one in tables if len(one.frame)]
    write_page(path.with_suffix(".html"), title, said, kept, {path.name: to_json(made)})
    return path


def verify(workspace: Workspace, made: Row) -> Path:
    """`Fell` where the card that is stored is not this one to the byte."""
    path = place_of(workspace, made["judge"], made["benchmark"])
    if not path.exists():
        raise MissingError(f"no card {path}: make it with --card")
    stored = path.read_bytes()
    if stored != (text := to_json(made).encode()):
        old, new = json.loads(stored), json.loads(text)
        apart = ", ".join(key for key in new if new[key] != old.get(key)) or "its layout"
        raise Fell(
            f"{path} is not what the ledger gives: {apart} differ; make it again with --card"
        )
    return path


def write_page(
    path: Path,
    title: str,
    said: Sequence[str],
    tables: Sequence[Table],
    also: Mapping[str, str | bytes],
    drawn: Chart | None = None,
) -> None:
    """Write a page of tables that any browser opens, and other files ``also`` beside it."""
    told = "".join(f"<p>{escape(line)}</p>\n" for line in said)
    figure = "" if drawn is None else drawn.svg[drawn.svg.index("<svg") :]
    parts = "\n".join(fragment(one) for one in tables)
    page = f"<h1>{escape(title)}</h1>\n{told}{figure}\n{parts}\n"
    page = (
        f'<!doctype html>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n{_STYLE}{page}'
    )
    files.write_all(path.parent, {**also, path.name: page})


def _lines(name: str, title: str, rows: Sequence[Row]) -> Table:
    """Rows under their own keys as words."""
    if not rows:
        return table(name, title, (), (), ())
    made = of_rows(name, rows)
    headed = (replace(c, heading=c.heading.replace("_", " ").capitalize()) for c in made.columns)
    return replace(made, title=title, columns=tuple(headed)).filled()


_STYLE = (
    "<style>body{max-width:70em;margin:1em auto;font:15px/1.45 sans-serif}table{display:block;"
    "overflow-x:auto;margin:1.5em 0 .5em}caption{text-align:left;font-weight:bold}"
    "th,td{padding:.1em .6em;white-space:nowrap}code{overflow-wrap:anywhere}</style>\n"
)
_PREFERS = (
    *with_interval(Column("first_preferred", "First shown wins", "rate")),
    *with_interval(Column("same_winner", "Same in both orders", "rate")),
    *with_interval(Column("ties", "Ties", "rate")),
    *with_interval(Column("length_preference", "Prefers longer", "decimal")),
    *with_interval(Column("self_preference", "Prefers its own model", "decimal")),
)
