"""What every rating starts from: who was compared with whom, and who won."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from botchat.errors import DataError, MissingError

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.intp]
Flags: TypeAlias = npt.NDArray[np.bool_]

WIN, TIE, LOSS = 1.0, 0.5, 0.0
"""Result of a comparison for the model shown first."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons of models, one entry each, in an order that seeds may refer to.

    ``models``: names, m of them. ``first``, ``second``: indices into ``models``, shape (n,).
    ``result``: 1, ½ or 0 for ``first``, shape (n,). ``cluster``: number of the ChatSEED a
    comparison was made on, shape (n,), or None where that is not known.
    Raises ``ValueError`` for shapes, indices or results that break this.
    """

    models: tuple[str, ...]
    first: Indices
    second: Indices
    result: Floats
    cluster: Indices | None = None

    def __post_init__(self) -> None:
        """Refuse what no rating could use."""
        n, m = len(self.first), len(self.models)
        columns = [self.first, self.second, self.result]
        columns += [] if self.cluster is None else [self.cluster]
        if any(column.shape != (n,) for column in columns):
            raise ValueError(f"comparisons need columns of one length, got {columns!r:.200}")
        if n and not (
            min(self.first.min(), self.second.min()) >= 0
            and max(self.first.max(), self.second.max()) < m
        ):
            raise ValueError(f"comparisons name a model outside 0..{m - 1}")
        if bool(np.any(self.first == self.second)):
            raise ValueError("a comparison has the same model on both sides")
        if not bool(np.isin(self.result, (WIN, TIE, LOSS)).all()):
            raise ValueError("a result is not 1, 0.5 or 0")
        if self.cluster is not None and n and self.cluster.min() < 0:
            raise ValueError("a cluster number is negative")

    def __len__(self) -> int:
        """Number of comparisons."""
        return len(self.first)

    @classmethod
    def of(
        cls,
        rows: Iterable[tuple[str, str, float]],
        seeds: Iterable[str] | None = None,
    ) -> Comparisons:
        """Build from ``(first, second, result)`` rows and, in step with them, ChatSEED ids.

        Models are sorted by name. Raises `DataError` for a result or a pair that is none.
        """
        names: dict[str, int] = {}
        first, second, result = [], [], []
        for a, b, score in rows:
            if a == b or score not in (WIN, TIE, LOSS):
                raise DataError(
                    f"comparison of {a!r} with {b!r}, result {score!r}: give two different models"
                    " and 1, 0.5 or 0"
                )
            first.append(names.setdefault(a, len(names)))
            second.append(names.setdefault(b, len(names)))
            result.append(score)
        models = tuple(sorted(names))
        place = np.empty(len(models), dtype=np.intp)
        place[[names[model] for model in models]] = np.arange(len(models))
        return cls(
            models,
            place[np.array(first, dtype=np.intp)],
            place[np.array(second, dtype=np.intp)],
            np.array(result, dtype=np.float64),
            None if seeds is None else _numbered(seeds),
        )

    def oriented(self) -> tuple[Indices, Indices, Floats]:
        """Each comparison as (lower index, higher index, result for the lower), shape (n,)."""
        kept = self.first < self.second
        return (
            np.where(kept, self.first, self.second),
            np.where(kept, self.second, self.first),
            np.where(kept, self.result, 1 - self.result),
        )

    def need_some(self) -> None:
        """Raise `MissingError` where there is nothing to rate."""
        if not len(self):
            raise MissingError(
                "no comparison to rate: judge at least one pair of models with readable verdicts"
            )


def together(models: tuple[str, ...], parts: Sequence[Comparisons]) -> Comparisons:
    """Comparisons of the same models, with seeds, one part after the other; perhaps none."""
    clusters = [part.cluster for part in parts if part.cluster is not None]
    if any(part.models != models for part in parts) or len(clusters) < len(parts):
        raise ValueError("comparisons need seeds and the same models to be put together")
    nothing = np.zeros(0, dtype=np.intp)
    return Comparisons(
        models,
        np.concatenate([nothing, *(part.first for part in parts)]),
        np.concatenate([nothing, *(part.second for part in parts)]),
        np.concatenate([np.zeros(0), *(part.result for part in parts)]),
        np.concatenate([nothing, *clusters]),
    )


def distinct(labels: Indices) -> tuple[Indices, Indices]:
    """Distinct labels, ascending, and the place of each label among them, shape (n,).

    As ``numpy.unique`` has it; without its sorting where labels, 0 and up, are small numbers.
    """
    if labels.max(initial=0) > 4 * len(labels):
        found, place = np.unique(labels, return_inverse=True)
        return found, place
    there = np.bincount(labels) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[labels]


def _numbered(labels: Iterable[str]) -> Indices:
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.intp)
