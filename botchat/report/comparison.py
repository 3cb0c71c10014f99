"""Several judges beside each other: what each makes of the contestants, how often they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from botchat.leaderboards import Board
from botchat.protocols import rates
from botchat.protocols.unieval import PROTOCOL as UNIEVAL
from botchat.records import Judgment
from botchat.report.archive import shown_protocols
from botchat.tables import Column, Table, table

Judged = Mapping[str, Mapping[str, Sequence[Judgment]]]
"""Judge -> protocol -> judgments."""


def compare(boards: Sequence[Board], judged: Judged) -> list[Table]:
    """Ranks of every contestant by every judge; agreement of every two judges.

    Args:
        boards: of the judges.
        judged: their judgments, of the same dialogues.
    """
    return [part for part in (_ranks(boards), _agreement(judged)) if len(part.frame)]


def _ranks(boards: Sequence[Board]) -> Table:
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


_QUOTED = ("elo_n", "success_n", "gteval_win_or_tie")


def _agreement(judged: Judged) -> Table:
    said = {judge: _categories(shown_protocols(by)) for judge, by in judged.items()}
    rows = []
    for a, b in combinations(said, 2):
        for protocol in sorted(said[a].keys() & said[b].keys()):
            one, other = said[a][protocol], said[b][protocol]
            common = one.keys() & other.keys()
            same = sum(one[case] == other[case] for case in common)
            rows.append(
                {
                    "judge_a": a,
                    "judge_b": b,
                    "protocol": protocol,
                    "common": len(common),
                    "same": same / len(common) if common else None,
                }
            )
    columns = [
        Column("judge_a", "Judge", "name"),
        Column("judge_b", "And", "name"),
        Column("protocol", "Protocol", "name"),
        Column("common", "Both readable", "count"),
        Column("same", "Same outcome", "rate"),
    ]
    note = (
        "In percent of the cases, shown in the same order, on which both have a readable verdict. "
        "UniEval: human or not; otherwise who wins, or a tie."
    )
    return table("judges-agreement", "Every two judges", columns, rows, [""], note)


def _categories(
    by_protocol: Mapping[str, Sequence[Judgment]],
) -> dict[str, dict[tuple[str, tuple[str, ...]], float]]:
    """Protocol -> seed and contestants as shown -> outcome."""
    found: dict[str, dict[tuple[str, tuple[str, ...]], float]] = {}
    for protocol, made in by_protocol.items():
        for judgment in made:
            if judgment.verdict is None:
                continue
            outcome = (
                float(judgment.verdict == "No")
                if protocol == UNIEVAL
                else rates.outcome(judgment.verdict)
            )
            if outcome is not None:
                case = (judgment.seed_id, judgment.contestants)
                found.setdefault(protocol, {})[case] = outcome
    return found
