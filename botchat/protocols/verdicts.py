"""Pairwise verdicts in columns: a million take 57 MB and are counted in a tenth of a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.errors import DataError
from botchat.records import Judgment, PairVerdict, Verdict

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
    of each dialogue. ``chosen``: whether an adaptive design asked for it. ``signature``: indices
    into ``known_signatures``.
    """

    seed_ids: tuple[str, ...]
    contestants: tuple[str, ...]
    known_signatures: tuple[str, ...]
    seed: Indices
    first: Indices
    second: Indices
    outcome: Floats
    shown: Indices
    chosen: Flags
    signature: Indices

    @classmethod
    def of(cls, judgments: Iterable[Judgment]) -> Verdicts:
        """Judgments in columns; of several on one seed and order the last.

        Raises:
            DataError: a verdict that the protocol does not offer.
        """
        collected = Collected()
        collected.add(list(judgments))
        return collected.verdicts()[0]

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

    @property
    def signatures(self) -> Counter[str]:
        """How they were made -> how many."""
        counts = np.bincount(self.signature, minlength=len(self.known_signatures)).tolist()
        return +Counter(dict(zip(self.known_signatures, counts, strict=True)))

    def only(self, kept: Flags) -> Verdicts:
        """Some of them."""
        return replace(self, **{name: getattr(self, name)[kept] for name in _COLUMNS})

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


_COLUMNS = ("seed", "first", "second", "outcome", "shown", "chosen", "signature")


class Collected:
    """Verdicts while they are read, a block at a time."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._seeds, self._contestants, self._signatures = _Numbers(), _Numbers(), _Numbers()
        self._blocks: list[tuple[npt.NDArray[np.float64], Flags]] = []

    def add(
        self, said: Sequence[Judgment | PairVerdict], current: Sequence[bool] | None = None
    ) -> None:
        """Add some.

        Args:
            said: judgments, older ones first.
            current: whether each is about dialogues as they are now; default: all are.

        Raises:
            DataError: a verdict that the protocol does not offer.
        """
        players = self._contestants.of(chain.from_iterable(map(attrgetter("contestants"), said)))
        columns = [
            self._seeds.of(map(attrgetter("seed_id"), said)),
            players[::2],
            players[1::2],
            [outcome(one.verdict) for one in said],
            [one.shown for one in said],
            [one.chosen != "" for one in said],
            self._signatures.of(map(attrgetter("signature"), said)),
        ]
        rows = np.array(columns, dtype=np.float64).reshape(len(_COLUMNS), len(said))
        usable = np.ones(len(said), dtype=bool) if current is None else np.array(current, bool)
        self._blocks.append((rows, usable))

    def verdicts(self) -> tuple[Verdicts, int]:
        """The last on each seed and order: those that are current, and how many are not."""
        empty = np.empty((len(_COLUMNS), 0)), np.empty(0, dtype=bool)
        rows, usable = (
            np.concatenate(parts, axis=-1) for parts in zip(empty, *self._blocks, strict=True)
        )
        m = len(self._contestants)
        key = ((rows[0] * m + rows[1]) * m + rows[2]).astype(np.intp)
        latest = np.arange(len(key))
        _, appeared = np.unique(key, return_index=True)
        if len(appeared) < len(key):
            # In order of first appearance, as `botchat.store.latest` has it.
            from_end = np.unique(key[::-1], return_index=True)[1]
            latest = (len(key) - 1 - from_end)[np.argsort(appeared)]
        kept = latest[usable[latest]]
        seed, first, second, result, shown, chosen, signature = rows[:, kept]
        verdicts = Verdicts(
            tuple(self._seeds),
            tuple(self._contestants),
            tuple(self._signatures),
            seed.astype(np.intp),
            first.astype(np.intp),
            second.astype(np.intp),
            result,
            shown.astype(np.intp),
            chosen > 0,
            signature.astype(np.intp),
        )
        return verdicts, len(latest) - len(kept)


class _Numbers(dict[str, int]):
    """Name -> its number, in the order in which names were first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return len(self) - 1

    def of(self, names: Iterable[str]) -> list[int]:
        """The number of each."""
        return [self[name] for name in names]
