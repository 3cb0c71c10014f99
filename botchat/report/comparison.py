"""Several judges beside each other: what each makes of the contestants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botchat.boards.board import Board
from botchat.boards.tables import Column, Table, table

_QUOTED = ("elo_n", "success_n", "gteval_win_or_tie")
"""What a judge's ranking is by: columns of the main table, the first there is."""


def ranks(boards: Sequence[Board]) -> Table:
    """Rank of every contestant by every judge, and the number that it is by."""
    rows: dict[str, dict[str, Any]] = {}
    columns = [Column("model", "Model", "name")]
    for i, board in enumerate(boards):
        quoted = next((c for c in board.main.columns if c.key.startswith(_QUOTED)), None)
        columns.append(Column(f"rank_{i}", f"Rank by {board.judge}", "count"))
        if quoted is not None:
            columns.append(Column(f"value_{i}", quoted.heading, quoted.kind))
        for row in board.main.frame.to_dict("records"):
            told = rows.setdefault(row["model"], {"model": row["model"]})
            told[f"rank_{i}"] = row["rank"]
            if quoted is not None:
                told[f"value_{i}"] = row[quoted.key]
    signatures = [signature for board in boards for signature in board.main.signatures]
    return table(
        "judges-ranks", "Every contestant by every judge", columns, [*rows.values()], signatures
    )
