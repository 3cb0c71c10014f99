"""The files of a board: a file a table, a text for people, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_checks import JudgeTrust
from botchat.boards.protocols import DetectionResult, ReportResult
from botchat.boards.writers import Content, document, table_files, to_json
from botchat.interfaces import settings_digest
from botchat.metrics.annotations import accused_index
from botchat.protocols.reports import as_prose, as_records, as_text
from botchat.records import HUMAN, Dialogues

MOST_IN_JSON = 10_000
"""Rows of a table that are in ``leaderboard.json`` too: all pairs of 100 models."""


def board_files(
    board: Board,
    headline: Headline,
    trust: JudgeTrust,
    formats: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
) -> dict[str, Content]:
    """File name -> content of every table, for the folder of the set; ``data``: `as_json`."""
    files = table_files(board.every_table, formats)
    title = f"Leaderboard of {board.seed_set}, judged by {board.judge}"
    about_judge = f"Judge {board.judge}: {trust.level}. {' '.join(trust.reasons)}"
    notes = [headline.sentence, headline.scope, about_judge, *board.notes]
    files["leaderboard.md"] = document(title, notes, board.tables)
    files["leaderboard.json"] = to_json(data or as_json(board, headline, trust))
    for part in board.of(ReportResult):
        records, texts = [], []
        for (contestant, seed_id), by_judge in part.diagnoses.items():
            for judge, report in by_judge.items():
                head = {"seed_id": seed_id, "model": contestant, "judge": judge}
                for row in as_records(report):
                    records.append(json.dumps({**head, **row}, ensure_ascii=False) + "\n")
                title = f"{seed_id} | {contestant} | {judge}"
                texts.append(f"{title}\n\n{as_prose(report)}\n\n{as_text(report)}\n")
        files[f"{part.protocol.name}-records.jsonl"] = "".join(records)
        files[f"{part.protocol.name}-reports.txt"] = "\n".join(texts)
    return files


def as_json(board: Board, headline: Headline, trust: JudgeTrust) -> dict[str, Any]:
    """The board, JSON-ready: ``rows`` of the main table, and all tables by name."""
    long = {part.name: n for part in board.every_table if (n := len(part.frame)) > MOST_IN_JSON}
    return {
        "set": board.seed_set,
        **({"invented": True} if board.invented else {}),
        "judge": {"name": board.judge, **trust.as_json},
        "headline": headline.sentence,
        "rows": board.main.records,
        "signature": board.main.signature,
        "signatures": list(board.main.signatures),
        "notes": [
            *board.notes,
            *(f"The {n:,} rows of {name} are in its own file alone." for name, n in long.items()),
        ],
        "provenance": [msgspec.to_builtins(row) for row in board.provenance],
        "tables": {
            part.name: {
                "rows": [] if part.name in long else part.records,
                "signatures": list(part.signatures),
            }
            for part in board.every_table[1:]
        },
    }


def by_seed(board: Board, dialogues: Dialogues) -> dict[str, Any]:
    """What `compare` pairs a later board with.

    ``by_seed``: model -> seed id -> first AI utterance by the leading protocol, 0: none, None: not
    known (or none, and the dialogue broke off). ``dialogues``: model -> digest of all of them.
    ``topics``: seed id -> topic, where seeds have one.
    """
    first: dict[str, dict[str, int | None]] = {}
    leading = next((part for part in board.of(DetectionResult) if part.protocol.leads), None)
    by_contestant = board.verdicts[leading.protocol.name].by_contestant if leading else {}
    largest = leading.ranking[0].n or 0 if leading else 0
    for name, judgments in by_contestant.items():
        for judgment in judgments if name != HUMAN else ():
            verdict, seed_id = judgment.verdict, judgment.seed_id
            index = None if verdict is None else accused_index(verdict, seed_id)
            is_cut = index == 0 and judgment.shown < largest
            first.setdefault(name, {})[seed_id] = None if is_cut else index
    digests = {
        name: settings_digest(*((at, d.utterances) for at, d in sorted(by.items())))
        for name, by in dialogues.items()
        if name != HUMAN
    }
    topics = board.verdicts[leading.protocol.name].topics if leading else {}
    return {"by_seed": first, "dialogues": digests} | ({"topics": topics} if topics else {})
