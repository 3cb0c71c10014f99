"""How long dialogues go on before the judge accuses them: Kaplan-Meier over utterances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from botchat.boards.tables import Column, Table, table
from botchat.interfaces import Row
from botchat.measures.statistics import Floats, Indices
from botchat.records import Dialogues, Judgment, Seed

_Z95 = 1.959964


@dataclass(frozen=True, eq=False)
class Curve:
    """Survival by utterance (Kaplan & Meier 1958); all of shape (n,), place i is utterance i + 1.

    ``at_risk``: dialogues that reach the utterance unaccused. ``accused``: those whose first
    accused utterance it is. ``surviving``: share of dialogues that would go on unaccused after it,
    0 to 1; nan after the last that anybody reaches. ``low``, ``high``: 95 % interval by Greenwood's
    variance on the scale of log(-log); nan where nobody has been accused, or everybody.
    """

    at_risk: Indices
    accused: Indices
    surviving: Floats
    low: Floats
    high: Floats

    def reached(self, share: float) -> int | None:
        """The first utterance after which at most ``share`` survives; ``None`` if there is none."""
        found = np.flatnonzero(self.surviving <= share + 1e-12)
        return int(found[0]) + 1 if len(found) else None


def estimate(ends: Iterable[tuple[int, bool]], n: int) -> Curve:
    """The curve of some dialogues.

    A dialogue that ends without an accusation says nothing about utterances that it does not have:
    it counts up to its end, and leaves as if it could have gone either way from there.

    Args:
        ends: of each dialogue, the first accused utterance and true, or its last and false.
        n: utterances of the longest.
    """
    rows = np.array([(end, accused) for end, accused in ends], dtype=np.intp).reshape(-1, 2)
    last, hit = rows[:, 0], rows[:, 1] > 0
    leaving = np.bincount(last, minlength=n + 1)[1 : n + 1]
    accused = np.bincount(last[hit], minlength=n + 1)[1 : n + 1]
    at_risk = len(last) - np.concatenate([[0], np.cumsum(leaving)[:-1]]).astype(np.intp)
    surviving: Floats = np.cumprod(1 - accused / np.maximum(at_risk, 1), dtype=np.float64)
    surviving[(at_risk == 0) & (surviving > 0)] = math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(accused / (at_risk * (at_risk - accused)))
        spread = _Z95 * np.sqrt(variance) / np.abs(np.log(surviving))
        low, high = surviving ** np.exp(spread), surviving ** np.exp(-spread)
    inside = (surviving > 0) & (surviving < 1)
    return Curve(
        at_risk,
        accused,
        surviving,
        np.where(inside, low, math.nan),
        np.where(inside, high, math.nan),
    )


def curves(judgments: Iterable[Judgment], dialogues: Dialogues) -> dict[str, Curve]:
    """Contestant -> its curve, up to the longest dialogue that was judged.

    Args:
        judgments: of UniEval, at most one for each dialogue; unreadable ones are passed over.
        dialogues: of at least the contestants that were judged.
    """
    ends: dict[str, list[tuple[int, bool]]] = {}
    longest = 0
    for judgment in judgments:
        (name,) = judgment.contestants
        if judgment.verdict is None:
            ends.setdefault(name, [])
            continue
        n = len(dialogues[name][judgment.seed_id].utterances)
        # An index beyond the end is none that the judge was offered; it accuses the end.
        end = (n, False) if judgment.verdict == "No" else (min(n, int(judgment.verdict)), True)
        ends.setdefault(name, []).append(end)
        longest = max(longest, n)
    return {name: estimate(found, longest) for name, found in ends.items() if found}


def survival(found: Mapping[str, Curve], seeds: Sequence[Seed], signature: str) -> Table:
    """One row a contestant, those who last longest first.

    Args:
        found: contestant -> curve.
        seeds: the set; a seed without a readable verdict is missing.
        signature: how the judgments were made.
    """
    turns = range(1, max((len(curve.surviving) for curve in found.values()), default=0) + 1)
    names = sorted(found, key=lambda name: (_order(found[name]), name))
    return table(
        "survival",
        "Survival: the first accused utterance",
        [
            Column("model", "Model", "name"),
            Column("dialogues", "Dialogues", "count"),
            Column("accused", "Accused", "count"),
            Column("early", "Ended before, unaccused", "count"),
            Column("missing", "Missing", "count"),
            Column("quarter", "A quarter accused by", "count"),
            Column("half", "Half accused by", "count"),
            *(column for n in turns for column in _columns(n)),
        ],
        [_row(name, found[name], len(seeds)) for name in names],
        [signature],
        "Utterance by which a quarter and a half of the dialogues are accused, by Kaplan-Meier: a "
        "dialogue that ends unaccused counts as far as it goes. Ended before: unaccused, and "
        f"shorter than {turns.stop - 1} utterances. Missing: no dialogue or no readable verdict.",
    )


def _columns(n: int) -> list[Column]:
    return [
        Column(f"at_risk_n{n}", f"Reach {n} unaccused", "count", detail=True),
        Column(f"surviving_n{n}", f"Unaccused after {n}", "rate", detail=True),
        Column(f"low_n{n}", f"Unaccused after {n}, low", "rate", detail=True),
        Column(f"high_n{n}", f"Unaccused after {n}, high", "rate", detail=True),
    ]


def _row(name: str, curve: Curve, n_seeds: int) -> Row:
    total, accused = int(curve.at_risk[0]), int(curve.accused.sum())
    whole = int(curve.at_risk[-1] - curve.accused[-1])
    row: dict[str, Any] = {
        "model": name,
        "dialogues": total,
        "accused": accused,
        "early": total - accused - whole,
        "missing": n_seeds - total,
        "quarter": curve.reached(0.75),
        "half": curve.reached(0.5),
    }
    for n, (at_risk, *shares) in enumerate(
        zip(curve.at_risk.tolist(), curve.surviving, curve.low, curve.high, strict=True), 1
    ):
        row[f"at_risk_n{n}"] = at_risk
        row |= dict(zip((f"surviving_n{n}", f"low_n{n}", f"high_n{n}"), shares, strict=True))
    return row


def _order(curve: Curve) -> tuple[float, ...]:
    """Who survives longer stands before: from the end of the curve towards its start."""
    return tuple(-share for share in np.nan_to_num(curve.surviving[::-1], nan=-1).tolist())
