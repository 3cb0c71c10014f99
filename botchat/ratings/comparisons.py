"""The data of every rating: who was compared with whom, and who won."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.verdicts import LOSS, TIE, WIN, Flags, Floats, Indices


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons of models, in columns of shape (n,).

    ``first``, ``second``: indices into the m ``models``. ``result``: 1, ½ or 0 for ``first``.
    ``cluster``: number of the ChatSEED, None if not known. Raises ``ValueError`` for anything else.
    """

    models: tuple[str, ...]
    first: Indices
    second: Indices
    result: Floats
    cluster: Indices | None = None

    def __post_init__(self) -> None:
        """Check shapes and ranges; other sequences of numbers (a pandas Series) become arrays."""
        for name, kind in (("first", np.intp), ("second", np.intp), ("result", np.float64)):
            object.__setattr__(self, name, _column(name, getattr(self, name), kind))
        shared = []
        if self.cluster is not None:
            shared = [_column("cluster", self.cluster, np.intp)]
            object.__setattr__(self, "cluster", shared[0])
        n, m = len(self.first), len(self.models)
        columns = [self.first, self.second, self.result, *shared]
        if any(column.shape != (n,) for column in columns):
            raise ValueError(f"comparisons need columns of one length, got {columns!r:.200}")
        sides = np.stack([self.first, self.second])
        if bool(((sides < 0) | (sides >= m)).any()):
            raise ValueError(f"comparisons name a model outside 0..{m - 1}")
        if bool(np.any(self.first == self.second)):
            raise ValueError("a comparison has the same model on both sides")
        if not bool(np.isin(self.result, (WIN, TIE, LOSS)).all()):
            raise ValueError("a result is not 1, 0.5 or 0")
        if any(bool((cluster < 0).any()) for cluster in shared):
            raise ValueError("a cluster number is negative")

    def __len__(self) -> int:
        """Number of comparisons."""
        return len(self.first)

    @classmethod
    def of(
        cls, rows: Iterable[tuple[str, str, float]], seeds: Iterable[str] | None = None
    ) -> Comparisons:
        """From ``(first, second, result)`` rows and, in step, ChatSEED ids; models sorted by name.

        Raises `DataError` for another result, or a model against itself.
        """
        rows = list(rows)
        for a, b, result in rows:
            if a == b or result not in (WIN, TIE, LOSS):
                raise DataError(
                    f"comparison of {a!r} with {b!r}, result {result!r}: give two different models"
                    " and 1, 0.5 or 0"
                )
        models = sorted({name for a, b, _ in rows for name in (a, b)})
        number = {model: i for i, model in enumerate(models)}
        clusters: dict[str, int] = {}
        return cls(
            tuple(models),
            np.array([number[a] for a, _, _ in rows], dtype=np.intp),
            np.array([number[b] for _, b, _ in rows], dtype=np.intp),
            np.array([result for _, _, result in rows], dtype=np.float64),
            None
            if seeds is None
            else np.array([clusters.setdefault(seed, len(clusters)) for seed in seeds], np.intp),
        )

    def only(self, kept: Flags) -> Comparisons:
        """Some of them."""
        sides = self.first[kept], self.second[kept]
        cluster = None if self.cluster is None else self.cluster[kept]
        return Comparisons(self.models, *sides, self.result[kept], cluster)

    def oriented(self) -> tuple[Indices, Indices, Floats]:
        """Each comparison as (lower index, higher index, result for the lower), shape (n,)."""
        kept = self.first < self.second
        return (
            np.where(kept, self.first, self.second),
            np.where(kept, self.second, self.first),
            np.where(kept, self.result, 1 - self.result),
        )

    def need_some(self) -> None:
        """Raise `MissingDataError` if there is nothing to rate."""
        if not len(self):
            raise MissingDataError(
                "no comparison to rate: judge at least one pair of models with readable verdicts"
            )


def check(*rules: tuple[str, object, bool, str]) -> None:
    """`ConfigError` for the first (setting, value, whether it is right, what to give) not right."""
    for name, value, right, wanted in rules:
        if not right:
            raise ConfigError(f"{name} {value}: give {wanted}")


MOST_CELLS = 2**21
"""Clusters times models: above this, clusters are put together at random (16 MB)."""


def put_together(labels: Indices, most: int) -> Indices:
    """Labels as they are, or ``most`` groups of them at random, which leaves errors unbiased."""
    n = int(labels.max(initial=-1)) + 1
    return labels if n <= most else np.random.default_rng(0).integers(most, size=n)[labels]


def distinct(labels: Indices) -> tuple[Indices, Indices]:
    """Distinct labels, ascending, and the place of each label among them, shape (n,).

    Like ``numpy.unique``, but without sorting if the labels, which start at 0, are small numbers.
    """
    if labels.max(initial=0) > 4 * len(labels):
        found, place = np.unique(labels, return_inverse=True)
        return found, place
    there = np.bincount(labels) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[labels]


def _column(name: str, values: object, kind: type[np.intp] | type[np.float64]) -> npt.NDArray[Any]:
    """A column as an array; `ValueError` for what is not numbers of that kind."""
    column = np.asarray(values)
    if column.dtype == kind:
        return column
    whole = kind is np.float64 or (column.dtype.kind in "iub" or not column.size)
    if column.dtype.kind not in "iufb" or not whole:
        raise ValueError(
            f"{name} holds {column.dtype} and not {'numbers' if kind is np.float64 else 'indices'}"
            "; of rows (model, model, result) make comparisons with Comparisons.of"
        )
    return column.astype(kind)
