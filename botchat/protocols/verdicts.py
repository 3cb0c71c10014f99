"""Pairwise verdicts in columns: a million take 50 MB and are counted in a tenth of a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.errors import DataError
from botchat.records import Judgment, Verdict

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.intp]

_OUTCOME: Mapping[Verdict | None, float | None] = {
    "1": 0.0,
    "2": 1.0,
    "both": 0.5,
    "neither": 0.5,
    None: None,
}


def outcome(verdict: Verdict | None) -> float | None:
    """Result of a pairwise comparison for the contestant shown first: 1 win, ½ tie, 0 loss.

    The contestant whose conversation alone is AI-involved loses; Both and Neither are ties
    (BotChat §3.3). ``None``, an unreadable verdict, has no outcome: never a tie, never a loss.

    Raises:
        DataError: the verdict is none that Arena and GTEval offer.
    """
    try:
        return _OUTCOME[verdict]
    except KeyError:
        raise DataError(
            f"verdict {verdict!r} of a pairwise judgment is none of 1, 2, both, neither; "
            "delete that line and judge again"
        ) from None


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What one judge said in one pairwise protocol, at most once for each seed and order shown.

    All arrays have shape (n,). ``seed``: indices into ``seed_ids``. ``first``, ``second``: into
    ``contestants``. ``outcome``: for ``first``, nan where unreadable. ``shown``: utterances shown
    of each dialogue. ``chosen``: whether an adaptive design asked for it.
    """

    seed_ids: tuple[str, ...]
    contestants: tuple[str, ...]
    seed: Indices
    first: Indices
    second: Indices
    outcome: Floats
    shown: Indices
    chosen: Flags
    signatures: Mapping[str, int]
    """How they were made -> how many."""

    @classmethod
    def of(cls, judgments: Iterable[Judgment]) -> Verdicts:
        """Judgments in columns.

        Raises:
            DataError: a verdict that the protocol does not offer.
        """
        collected = Collected()
        for one in judgments:
            collected.add(
                one.seed_id, one.contestants, one.verdict, one.shown, one.chosen, one.signature
            )
        return collected.verdicts()

    def __len__(self) -> int:
        """Number of verdicts, unreadable ones among them."""
        return len(self.seed)

    @property
    def readable(self) -> Flags:
        """Which have an outcome."""
        return ~np.isnan(self.outcome)

    @property
    def players(self) -> list[str]:
        """Who was judged, by name."""
        there = np.unique(np.concatenate([self.first, self.second]))
        return sorted(self.contestants[i] for i in there.tolist())

    def only(self, kept: Flags) -> Verdicts:
        """Some of them; ``signatures`` stay those of all."""
        columns = ("seed", "first", "second", "outcome", "shown", "chosen")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})

    def on(self, seed_ids: Collection[str]) -> Verdicts:
        """Those on some seeds."""
        chosen = set(seed_ids)
        known = np.array([seed_id in chosen for seed_id in self.seed_ids], dtype=bool)
        return self if known.all() else self.only(known[self.seed])

    def between(self, contestants: Collection[str]) -> Verdicts:
        """Those between some contestants."""
        chosen = set(contestants)
        known = np.array([name in chosen for name in self.contestants], dtype=bool)
        return self if known.all() else self.only(known[self.first] & known[self.second])


class Collected:
    """Verdicts while they are read, one by one."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._seeds: dict[str, int] = {}
        self._contestants: dict[str, int] = {}
        self._rows: list[tuple[int, int, int, float | None, int, bool]] = []
        self._signatures: Counter[str] = Counter()

    def add(
        self,
        seed_id: str,
        pair: Sequence[str],
        verdict: Verdict | None,
        shown: int,
        chosen: str,
        signature: str,
    ) -> None:
        """Add one.

        Raises:
            DataError: a verdict that the protocol does not offer.
        """
        seeds, contestants = self._seeds, self._contestants
        first, second = pair
        self._rows.append(
            (
                seeds.setdefault(seed_id, len(seeds)),
                contestants.setdefault(first, len(contestants)),
                contestants.setdefault(second, len(contestants)),
                outcome(verdict),
                shown,
                bool(chosen),
            )
        )
        self._signatures[signature] += 1

    def verdicts(self) -> Verdicts:
        """All of them; of several on one seed and order the last."""
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 6)
        seed, first, second = rows[:, :3].T.astype(np.intp)
        m = len(self._contestants)
        key = (seed * m + first) * m + second
        # np.unique keeps the first of equals, so the newest must come first.
        newest = len(key) - 1 - np.unique(key[::-1], return_index=True)[1]
        kept = np.sort(newest)
        return Verdicts(
            tuple(self._seeds),
            tuple(self._contestants),
            seed[kept],
            first[kept],
            second[kept],
            rows[kept, 3],
            rows[kept, 4].astype(np.intp),
            rows[kept, 5] > 0,
            dict(self._signatures),
        )
