"""Tables of a bridge between two judges: the board if the new one replaces the old one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from botchat.boards.tables import Column, Table, explained, table, with_ends, with_interval
from botchat.interfaces import Row
from botchat.measures import intervals
from botchat.measures.intervals import LEAST, entries
from botchat.measures.references import Side, means
from botchat.ratings import places
from botchat.verdicts import Indices

MOST_VALUES = 11
"""Values of the old judge up to which each has a row of the mapping."""


def _place(judge: str, heading: str) -> tuple[Column, ...]:
    return with_ends(Column(f"{judge}_rank", heading, "count", role="rank", of=judge), detail=True)


_BOARD = [
    Column("model", "Model", "name"),
    Column("n_old", "Cases", "count"),
    Column("n_both", "By both", "count"),
    *with_interval(Column("old", "Old judge", "rate")),
    *_place("old", "Place"),
    *with_interval(
        Column("new", "New judge", "rate", meaning="as it would judge all cases of the old one")
    ),
    *_place("new", "New place"),
    Column(
        "change",
        "Change",
        "name",
        meaning="of the place by the number alone; clearly where the intervals of places are apart",
    ),
    *with_ends(Column("new_alone", "New judge, alone", "rate", True, "of the cases by both alone")),
    Column("power", "Power", "decimal", True, "how far the old judge's verdicts are used, 0 to 1"),
]
_MAPPING = [
    Column("old", "Old judge", "rate"),
    Column("n", "Times", "count", meaning="in cases by both; of a pair once for either side"),
    *with_interval(Column("new", "New judge", "rate", meaning="mean where the old one says so")),
]


def board_rows(models: Sequence[str], sides: Sequence[Side]) -> list[Row]:
    """A row a contestant, best by the new judge first; all have cases in the slice."""
    placed: dict[str, Indices] = {}
    for judge, each in zip(("old", "new"), means(sides), strict=True):
        # 1 + how many are better; equal ones share a place.
        place = 1 + (each.value[:, None] > each.value[None, :] + 1e-9).sum(axis=0)
        ends = places.of_ratings(each.value, each.covariance, each.freedom)
        keys = (f"{judge}_rank", f"{judge}_rank_low", f"{judge}_rank_high")
        placed |= dict(zip(keys, (place, *ends), strict=True))
    rows = []
    for i, (model, side) in enumerate(zip(models, sides, strict=True)):
        new = side.by_reference
        row: Row = {"model": model, "n_old": len(side.judged), "n_both": new.labels}
        row |= side.by_judge.row(0, "old") | side.slice_alone.row(0, "new_alone")
        row |= entries("new", new.value, new.low, new.high)
        row |= {key: int(values[i]) for key, values in placed.items()}
        row["power"] = new.power
        row["change"] = ""
        if row["old_rank"] != row["new_rank"] or _apart(row):
            clearly = ", clearly" if _apart(row) else ""
            row["change"] = f"{row['old_rank']} → {row['new_rank']}{clearly}"
        rows.append(row)
    return sorted(rows, key=lambda row: (row["new_rank"], row["model"]))


def mapping_rows(sides: Sequence[Side]) -> list[Row]:
    """The new judge's mean where the old one gives each of its values, clustered by seed."""
    old, new, seed = (
        np.concatenate(each)
        for each in zip(*((side.judged, side.reference, side.seed) for side in sides), strict=True)
    )
    both = ~np.isnan(new)
    values = np.unique(old[both])
    if len(values) > MOST_VALUES:
        return []
    rows = []
    for value in values.tolist():
        there = both & (old == value)
        told = intervals.share(new[there], seed[there], "new")
        rows.append({"old": value, "n": int(there.sum()), **told})
    return rows


def tables(
    title: str, rows: Sequence[Row], mapping: Sequence[Row], signature: str, unit: str
) -> list[Table]:
    """The board by both judges, and the mapping where there is one; ``unit``: what a rate is of."""
    by_case, made = f"{title}, case by case", [signature]
    found = [table("bridge", title, _BOARD, rows, made, f"{unit} {_HOW_READ}")]
    if mapping:
        found.append(table("bridge-mapping", by_case, _MAPPING, mapping, made, _HOW_MAPPED))
    return found


def sentences(rows: Sequence[Row], old: str, new: str) -> Iterator[str]:
    """Which places change."""
    fewest = min(row["n_both"] for row in rows)
    if fewest < LEAST:
        yield (
            f"Fewer than {LEAST} cases of some model are by both judges ({fewest}): too few to say "
            f"what changes if {new} replaces {old}."
        )
        return
    clearly = [f"{r['model']} {_span(r, 'old')} → {_span(r, 'new')}" for r in rows if _apart(r)]
    seeming = [f"{r['model']} {r['change']}" for r in rows if r["change"] and not _apart(r)]
    if clearly:
        yield f"If {new} replaces {old}, these change place clearly: {', '.join(clearly)}."
    else:
        yield f"If {new} replaces {old}, no place changes clearly."
    if seeming:
        yield f"Their numbers change order, within their intervals: {', '.join(seeming)}."


def _apart(row: Row) -> bool:
    """Whether the intervals of a contestant's two places have no place in common."""
    return bool(
        row["old_rank_high"] < row["new_rank_low"] or row["new_rank_high"] < row["old_rank_low"]
    )


def _span(row: Row, judge: str) -> str:
    low, high = row[f"{judge}_rank_low"], row[f"{judge}_rank_high"]
    return f"{low}" if low == high else f"{low}–{high}"


_HOW_READ = (
    f"{explained(_BOARD)} Places: all of a judge hold together with 95 %. It takes cases of the "
    "new judge that were drawn at random (docs/judges.md)."
)
_HOW_MAPPED = (
    f"{explained(_MAPPING)} A model that is no exception has by the new judge the mean of these, "
    "each as often as the old judge says so."
)
