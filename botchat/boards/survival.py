"""Survival of dialogues until UniEval accuses them: Kaplan-Meier over utterances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.boards.tables import Column, Kind, Table, explained, table, with_ends
from botchat.interfaces import Row
from botchat.measures.annotations import NOT_SAID, accused_index
from botchat.measures.intervals import entries, of_share, of_shares
from botchat.measures.statistics import Z
from botchat.records import HUMAN, N_SEED, Dialogues, Judgment
from botchat.verdicts import Floats, Indices


@dataclass(frozen=True, eq=False)
class Curve:
    """Survival by utterance (Kaplan & Meier 1958); all of shape (n,), place i is utterance i + 1.

    ``at_risk``: dialogues that reach the utterance unaccused. ``accused``: dialogues whose first
    accused utterance it is. ``surviving``: share of dialogues not accused up to and including it,
    0 to 1; nan after the last utterance of the longest dialogue. ``low``, ``high``: 95 % interval,
    Wilson's for as many dialogues as give Greenwood's variance (Rothman 1978): Wilson's own where
    none is cut short, never of width zero.
    """

    at_risk: Indices
    accused: Indices
    surviving: Floats
    low: Floats
    high: Floats

    def reached(self, share: float) -> int | None:
        """The first utterance after which at most ``share`` survives, or ``None``."""
        found = np.flatnonzero(self.surviving <= share + 1e-12)
        return int(found[0]) + 1 if len(found) else None

    def at(self, n: int, key: str) -> Row:
        """The share that survives utterance ``n`` and the ends of its interval, by key."""
        there = n <= len(self.surviving)
        parts = (self.surviving, self.low, self.high)
        return entries(key, *(float(part[n - 1]) if there else math.nan for part in parts))

    @property
    def early(self) -> int:
        """Dialogues that end, unaccused, before the last utterance of the longest one."""
        return self.stopped(len(self.at_risk))

    def stopped(self, n: int) -> int:
        """Dialogues that end, unaccused, before utterance ``n``."""
        through = self.at_risk[n - 1] - self.accused[n - 1]
        return int(self.at_risk[0] - self.accused[:n].sum() - through)

    def if_stopped(self, n: int, *, accused: bool) -> float:
        """The share that survives ``n`` if all that stopped before had been accused, or none."""
        through = self.at_risk[n - 1] - self.accused[n - 1]
        return float(through + (0 if accused else self.stopped(n))) / float(self.at_risk[0])


End: TypeAlias = tuple[int, bool | None]
"""Of a dialogue, the first accused utterance and true, or its last and false (censored), or
``None``: it is accused, and the judge does not say from where."""


def estimate(ends: Iterable[End], n: int) -> Curve:
    """The curve of some dialogues, the longest of which has ``n`` utterances."""
    listed = list(ends)
    told, unaccused, untold = (
        np.bincount([end for end, how in listed if how is one], minlength=n + 1)[1 : n + 1]
        for one in (True, False, None)
    )
    accused = told + _placed(told, unaccused, untold) if untold.any() else told
    at_risk = _at_risk(accused, unaccused)
    surviving: Floats = np.cumprod(1 - accused / np.maximum(at_risk, 1), dtype=np.float64)
    surviving[surviving < 1e-12] = 0
    surviving[(at_risk == 0) & (surviving > 0)] = math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = surviving * np.cumsum(accused / (at_risk * (at_risk - accused)))
        each = np.where((surviving > 0) & (surviving < 1), greenwood / (1 - surviving), math.inf)
    # Worth no more than all dialogues, and no fewer than those that reach the utterance.
    each = each.clip(1 / max(len(listed), 1), 1 / np.maximum(at_risk, 1))
    for zero in np.flatnonzero(surviving == 0)[:1]:
        before, reached = (surviving[zero - 1] if zero else 1.0), at_risk[zero]
        # All who were left are accused: as sure as just before, and as that step is.
        step = before / (reached + (1 - before) * Z**2)
        each[zero:] = max(each[zero - 1], step) if before < 1 else 1 / reached
    whole = np.diff(np.rint(np.cumsum(accused)), prepend=0).astype(np.intp)
    return Curve(_at_risk(whole, unaccused), whole, surviving, *of_shares(surviving, each))


def _at_risk(accused: npt.NDArray[Any], unaccused: Indices) -> npt.NDArray[Any]:
    """How many reach each utterance unaccused."""
    leaving = accused + unaccused
    reached: npt.NDArray[Any] = leaving.sum() - np.cumsum(leaving) + leaving
    return reached


def _placed(told: Indices, unaccused: Indices, untold: Indices) -> Floats:
    """Accusations without a place, by utterance; all of shape (n,), ``untold`` by length.

    Each is shared out over the utterances behind the ChatSEED as the curve itself says that
    accusations fall there (self-consistency; Turnbull 1976), from even shares on.
    """
    n = len(told)
    place = np.arange(n)
    lengths = np.flatnonzero(untold)
    inside = (place <= lengths[:, None]) & (place >= np.minimum(N_SEED, lengths)[:, None])
    falls = np.full(n, 1 / n)
    for _ in range(_MOST_ROUNDS):
        each = np.where(inside, falls + 1e-15, 0)
        shared: Floats = untold[lengths] @ (each / each.sum(1, keepdims=True))
        accused = told + shared
        surviving = np.cumprod(1 - accused / np.maximum(_at_risk(accused, unaccused), 1e-12))
        before, falls = falls, -np.diff(surviving, prepend=1).clip(max=0)
        if np.abs(falls - before).max() < 1e-9:
            break
    return shared


_MOST_ROUNDS = 1000


def curves(judgments: Iterable[Judgment], dialogues: Dialogues) -> dict[str, Curve]:
    """Contestant -> its curve, up to the longest dialogue with a readable UniEval judgment."""
    ends: dict[str, list[End]] = {}
    longest = 0
    for judgment in judgments:
        (name,) = judgment.contestants
        if judgment.verdict is None:
            ends.setdefault(name, [])
            continue
        n = len(dialogues[name][judgment.seed_id].utterances)
        accused = accused_index(judgment.verdict, f"{name} on seed {judgment.seed_id}")
        how = None if accused == NOT_SAID else accused > 0
        # An index after the last utterance was not offered; it counts as the last one.
        ends.setdefault(name, []).append((min(n, accused or n), how))
        longest = max(longest, n)
    return {name: estimate(found, longest) for name, found in ends.items() if found}


FEW = 10
"""Dialogues that reach an utterance, below which intervals may cover .70 instead of .95."""


def cautions(found: Mapping[str, Curve], turns: Sequence[int]) -> str:
    """What success rates at these N take for granted, and where that is little; sentences."""
    models = {name: curve for name, curve in found.items() if name != HUMAN}
    said = ["That holds if stopping tells nothing of what would have followed."]
    n = min(max(turns), min((len(curve.at_risk) for curve in models.values()), default=0))
    ends = [of_share(curve.stopped(n), curve.at_risk[0]) for curve in models.values()]
    if ends and max(low for low, _ in ends) > min(high for _, high in ends):
        said.append(
            f"How many stop before {n} differs by model: the table of survival has bounds, the "
            "rate if all that stopped had been accused, or none."
        )
    few = [f"{name} @{at} ({curve.at_risk[at - 1]})" for at in turns
           for name, curve in models.items() if at <= len(curve.at_risk)
           and curve.stopped(at) and curve.at_risk[at - 1] < FEW]  # fmt: skip
    if few:
        more = f" and {len(few) - _NAMED} more" if len(few) > _NAMED else ""
        said.append(
            f"Few reach N unaccused, so that intervals hold less often than stated (below {FEW}): "
            f"{', '.join(few[:_NAMED])}{more}."
        )
    return " ".join(said)


_NAMED = 5
"""Most contestants that a sentence names."""


def survival(found: Mapping[str, Curve], n_seeds: Mapping[str, int], signature: str) -> Table:
    """One row a contestant, the longest survival first; ``found``: contestant -> curve.

    ``n_seeds``: of each contestant, how many it is counted on.
    """
    n = max((len(curve.surviving) for curve in found.values()), default=0)

    def column(
        key: str, heading: str, value: Callable[[Curve], Any], kind: Kind = "count", **more: Any
    ) -> Column:
        return Column(key, heading, kind, getter=lambda name: value(found[name]), **more)

    missing = Column(
        "missing", "Missing", "count", meaning="no dialogue or no readable verdict",
        getter=lambda name: n_seeds[name] - found[name].at_risk[0], role="missing",
    )  # fmt: skip
    columns = [
        Column("model", "Model", "name", getter=str),
        column("dialogues", "Dialogues", lambda curve: curve.at_risk[0]),
        column("accused", "Accused", lambda curve: curve.accused.sum()),
        column("early", "Ended before, unaccused", lambda curve: curve.early),
        missing,
        column("quarter", "A quarter accused by", lambda curve: curve.reached(3 / 4)),
        column("half", "Half accused by", lambda curve: curve.reached(0.5)),
    ]
    if any(curve.early for curve in found.values()):
        for ending, heading, accused in (("accused", "Worst", True), ("passed", "Best", False)):
            bound = partial(Curve.if_stopped, n=n, accused=accused)
            columns.append(column(f"surviving_if_stopped_{ending}", heading, bound, "rate"))
    for i in range(n):
        at_risk, surviving, low, high = (
            lambda name, part=part, i=i: getattr(found[name], part)[i]
            for part in ("at_risk", "surviving", "low", "high")
        )
        key, end = f"surviving_n{i + 1}", f"{i + 1}"
        columns.append(
            Column(f"at_risk_n{end}", f"Reach {end} unaccused", "count", True, "", at_risk,
                   "readable", key, i + 1)
        )  # fmt: skip
        share = Column(key, f"Unaccused after {end}", "rate", True, getter=surviving, n=i + 1)
        columns += with_ends(share, low=low, high=high)
    return table(
        "survival",
        "Survival: the first accused utterance",
        columns,
        # The longest survival first: by the curve from its end to its start.
        sorted(
            sorted(found),
            key=lambda name: np.nan_to_num(-found[name].surviving[::-1], nan=1).tolist(),
        ),
        [signature],
        "Utterance by which a quarter and a half of the dialogues are accused, by Kaplan-Meier: a "
        "dialogue that ends unaccused counts as far as it goes, an accusation without a place as "
        "those with one fall. Ended before: unaccused, and "
        f"shorter than {n} utterances. Worst, best: unaccused after {n}, in percent, if all of "
        f"these had been accused, or none. {explained([missing])}",
    )
