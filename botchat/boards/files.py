"""The files of a board: a file a table, what is read in text, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botchat.boards import headline, judge_verdict
from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_verdict import JudgeVerdict
from botchat.boards.writers import Content, Formats, described, document, table_files, to_json
from botchat.protocols.reports import as_prose, as_records, as_text

MOST_IN_JSON = 10_000
"""Rows of a table that are in ``leaderboard.json`` too: all pairs of 100 models."""


def files(
    board: Board,
    said: Headline | None = None,
    verdict: JudgeVerdict | None = None,
    formats: Formats | None = None,
    whole: Mapping[str, Any] | None = None,
) -> dict[str, Content]:
    """File name -> content of every table, for the folder of the set; ``whole``: `as_json`."""
    verdict = verdict or judge_verdict.of(board)
    said = said or headline.of(board, verdict=verdict)
    found = table_files(board.every_table, formats)
    if board.measured is not None and (meta := f"{board.main.name}.meta.json") in found:
        found[meta] = to_json({**described(board.main), "measured": board.measured.records})
    title = f"Leaderboard of {board.seed_set}, judged by {board.judge}"
    of_judge = f"Judge {board.judge}: {verdict.word}. {' '.join(verdict.reasons)}"
    notes = [said.sentence, of_judge, *board.notes]
    found["leaderboard.md"] = document(title, notes, board.tables)
    found["leaderboard.json"] = to_json(whole or as_json(board, said, verdict))
    for part in board.diagnoses:
        records, texts = [], []
        for (contestant, seed_id), by_judge in part.diagnoses.items():
            for judge, report in by_judge.items():
                who = {"seed_id": seed_id, "model": contestant, "judge": judge}
                for row in as_records(report):
                    records.append(json.dumps({**who, **row}, ensure_ascii=False) + "\n")
                title = f"{seed_id} | {contestant} | {judge}"
                texts.append(f"{title}\n\n{as_prose(report)}\n\n{as_text(report)}\n")
        found[f"{part.protocol.name}-records.jsonl"] = "".join(records)
        found[f"{part.protocol.name}-reports.txt"] = "\n".join(texts)
    return found


def as_json(
    board: Board, said: Headline | None = None, verdict: JudgeVerdict | None = None
) -> dict[str, Any]:
    """The board, JSON-ready: ``rows`` of the main table, ``elo`` in them at the largest N.

    ``said``, ``verdict``: default what the board says alone, without other judges.
    """
    verdict = verdict or judge_verdict.of(board)
    said = said or headline.of(board, verdict=verdict)
    ratings = next((part.ratings for part in board.arenas), {})
    rows = [
        {**row, "elo": round(ratings[row["model"]], 4) if row["model"] in ratings else None}
        for row in board.main.records
    ]
    long = {part.name: n for part in board.every_table if (n := len(part.frame)) > MOST_IN_JSON}
    return {
        "set": board.seed_set,
        **({"invented": True} if board.invented else {}),
        "judge": {"name": board.judge, **verdict.as_json},
        "headline": said.sentence,
        "rows": rows,
        "signature": board.main.signature,
        "signatures": list(board.main.signatures),
        "notes": [
            *board.notes,
            *(f"The {n:,} rows of {name} are in its own file alone." for name, n in long.items()),
        ],
        "tables": {
            part.name: {
                "rows": [] if part.name in long else part.records,
                "signatures": list(part.signatures),
            }
            for part in board.every_table[1:]
        },
    }
