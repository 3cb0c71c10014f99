"""A judge's card: who it is, how it did, what it prefers, what it does not see; json and a page.

It is made of what is stored alone, so ``bench … --card --verify`` makes the same bytes again, out
of the ledger, and nobody is paid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from botchat.boards.tables import Table, of_rows
from botchat.boards.writers import to_json
from botchat.errors import Fell, MissingError
from botchat.interfaces import Row
from botchat.papers import turing_page
from botchat.papers.benchmarks import Judgments
from botchat.pipeline import probe
from botchat.records import VERSION, slug
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


def write(workspace: Workspace, made: Row) -> Path:
    """Write json and page."""
    path = place_of(workspace, made["judge"], made["benchmark"])
    parts = {"asked": made["asked"], **made["results"], "planted": made["planted"]}
    parts |= {f"from {told['old']}": told["rows"] for told in made["bridges"]}
    tables = [_table(name, rows, made) for name, rows in parts.items() if rows]
    lines = [*made["signatures"].values(), made["signature"]]
    title = f"{made['judge']}: {made['benchmark']}"
    turing_page.write(path.parent, title, lines, [], tables, {path.name: to_json(made)})
    return path


def verify(workspace: Workspace, made: Row) -> Path:
    """`Fell` where the card that is stored is not this one to the byte."""
    path = place_of(workspace, made["judge"], made["benchmark"])
    if not path.exists():
        raise MissingError(f"no card {path}: make it with --card")
    stored = path.read_bytes()
    if stored != to_json(made).encode():
        old = json.loads(stored)
        apart = ", ".join(key for key in made if made[key] != old.get(key)) or "its layout"
        raise Fell(
            f"{path} is not what the ledger gives: {apart} differ; make it again with --card"
        )
    return path


def _table(name: str, rows: Sequence[Row], made: Row) -> Table:
    keys = dict.fromkeys(key for row in rows for key in row)
    return of_rows(name, [{key: row.get(key) for key in keys} for row in rows], [made["signature"]])
