"""The data of every rating: which model was compared with which, and who won."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from botchat.errors import DataError, MissingDataError
from botchat.estimates import Flags, Floats, Indices, Names
from botchat.metrics.statistics import columns_at, distinct
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdict, PairVerdicts

LEAST_CLUSTERS = 3
"""Seeds or topics below which a rating has no interval: that of two is six times as wide as with
many, by Student's t with one degree of freedom; that of three is twice as wide."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons of models, in columns of shape (n,); `of` makes them from rows.

    ``first``, ``second``: indices into the m ``models``, never the same. ``result``: 1, ½ or 0 for
    ``first``, or between (soft). ``cluster``: number from 0 of the topic, or of the ChatSEED; None
    if not known. ``weight``: how often each counts, above 0; None: once. ``seed``: number of the
    ChatSEED from 0; None: the cluster.
    """

    models: Names
    first: Indices
    second: Indices
    result: Floats
    cluster: Indices | None = None
    weight: Floats | None = None
    seed: Indices | None = None

    def __len__(self) -> int:
        """Number of comparisons."""
        return len(self.first)

    @classmethod
    def of(
        cls, rows: Iterable[tuple[str, str, float]], seeds: Iterable[str] | None = None
    ) -> Comparisons:
        """Read ``(first, second, result)`` rows and, in step, ChatSEED ids; models sorted by name.

        Raises `DataError` for another result, a model against itself, or another number
        of seeds than of rows.
        """
        games = []
        for a, b, result in rows:
            if a == b or result not in (WIN, TIE, LOSS):
                raise DataError(
                    f"comparison of {a!r} with {b!r}, result {result!r}: give two different models"
                    " and 1, 0.5 or 0"
                )
            games.append(PairVerdict("", a, b, "", result))
        cluster = None
        if seeds is not None:
            cluster = np.unique(list(seeds), return_inverse=True)[1]
            if len(cluster) != len(games):
                raise DataError(
                    f"{len(games)} comparisons and {len(cluster)} seeds: give each comparison its "
                    "seed"
                )
        return comparisons_of(PairVerdicts.of(games), cluster)

    def select(self, kept: Flags) -> Comparisons:
        """Return the comparisons where ``kept``, shape (n,), is true."""
        return replace(self, **columns_at(self, kept))

    @property
    def unit(self) -> Indices:
        """Number of each comparison's ChatSEED, or of itself if that is not known, shape (n,)."""
        if self.seed is not None:
            return self.seed
        if self.cluster is not None:
            return self.cluster
        return np.arange(len(self))

    @property
    def n_seeds(self) -> int | None:
        """Number of ChatSEEDs; None if not known."""
        if self.cluster is None:
            return None
        return len(distinct(self.unit)[0])

    @property
    def too_few_clusters(self) -> str:
        """One line if there are fewer than `LEAST_CLUSTERS` seeds or topics, else ""."""
        if self.cluster is None:
            return ""
        n = len(distinct(self.cluster)[0])
        if n >= LEAST_CLUSTERS:
            return ""
        kind = "seeds"
        if n != self.n_seeds:
            kind = "topics"
        return f"fewer than {LEAST_CLUSTERS} {kind}: no interval and no rank"

    @property
    def weights(self) -> Floats:
        """Weight of each comparison, shape (n,)."""
        if self.weight is None:
            return np.ones(len(self))
        return self.weight

    @property
    def is_soft(self) -> bool:
        """Whether a result is none of 1, ½ and 0."""
        return not np.isin(self.result, (WIN, TIE, LOSS)).all()

    @property
    def is_hard(self) -> bool:
        """Whether all are wins, ties and losses that count once, as Elo takes them."""
        return not self.is_soft and bool((self.weights == 1).all())

    def require_any(self) -> None:
        """Raise `MissingDataError` if there is nothing to rate."""
        if not len(self):
            raise MissingDataError(
                "no comparison to rate: judge at least one pair of models with readable verdicts"
            )


def comparisons_of(
    readable: PairVerdicts, cluster: Indices | None, seed: Indices | None = None
) -> Comparisons:
    """Make comparisons, models sorted by name, of readable verdicts.

    ``cluster``, ``seed``: of each verdict, as `Comparisons` has them.
    """
    names = readable.judged_contestants
    # Contestants that only unreadable verdicts name have no place, and none is asked for.
    number = np.searchsorted(np.array(names, object), np.array(readable.contestants, object))
    first = number[readable.first]
    second = number[readable.second]
    return Comparisons(tuple(names), first, second, readable.result, cluster, readable.weight, seed)
