"""The data of every rating: which model was compared with which, and who won."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from botchat.errors import DataError, MissingDataError
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
        kinds: dict[str, Any] = {"first": np.intp, "second": np.intp, "result": np.float64}
        if self.cluster is not None:
            kinds["cluster"] = np.intp
        for name, kind in kinds.items():
            column = np.asarray(getattr(self, name))
            if column.dtype.kind not in ("iuf" if kind is np.float64 else "iu") and column.size:
                raise ValueError(
                    f"{name} holds {column.dtype}, not numbers; of rows (model, model, result)"
                    " make comparisons with Comparisons.of"
                )
            object.__setattr__(self, name, column.astype(kind))
        columns = [getattr(self, name) for name in kinds]
        if any(column.shape != (len(self.first),) for column in columns):
            raise ValueError(f"comparisons need columns of one length, got {columns!r:.200}")
        sides = np.stack([self.first, self.second])
        if ((sides < 0) | (sides >= len(self.models))).any():
            raise ValueError(f"comparisons name a model outside 0..{len(self.models) - 1}")
        if self.cluster is not None and (self.cluster < 0).any():
            raise ValueError("a cluster is below 0")
        if (self.first == self.second).any():
            raise ValueError("a comparison has the same model on both sides")
        if not np.isin(self.result, (WIN, TIE, LOSS)).all():
            raise ValueError("a result is not 1, 0.5 or 0")

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

    def select(self, kept: Flags) -> Comparisons:
        """Return the comparisons where ``kept``, shape (n,), is true."""
        sides = self.first[kept], self.second[kept]
        cluster = None if self.cluster is None else self.cluster[kept]
        return Comparisons(self.models, *sides, self.result[kept], cluster)

    def oriented(self) -> tuple[Indices, Indices, Floats]:
        """Return (lower index, higher index, result for the lower), shape (n,) each."""
        kept = self.first < self.second
        return (
            np.where(kept, self.first, self.second),
            np.where(kept, self.second, self.first),
            np.where(kept, self.result, 1 - self.result),
        )

    def require_any(self) -> None:
        """Raise `MissingDataError` if there is nothing to rate."""
        if not len(self):
            raise MissingDataError(
                "no comparison to rate: judge at least one pair of models with readable verdicts"
            )
