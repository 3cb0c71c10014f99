"""The data of every rating: which model was compared with which, and who won.

Published tables of pairwise rates, such as BotChat's Figure 5, are turned back into comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from botchat.errors import ConfigError, DataError, MissingDataError, UsageError
from botchat.estimates import Flags, Floats, Indices, Names
from botchat.metrics.statistics import distinct, rows_at
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdict, PairVerdicts

LEAST_CLUSTERS = 3
"""Seeds or topics below which a rating has no interval: that of two is six times as wide as with
many, by Student's t with one degree of freedom; that of three is twice as wide."""


MOST = 10_000_000
"""Comparisons that a table may stand for; the paper's has 40,404."""

PER_PAIR = 444
"""Comparisons a pair in the paper: 222 ChatSEEDs in both orders (BotChat §4.2)."""

COLUMNS = ("model_a", "model_b", "win_rate", "win_or_tie_rate")


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
        return rows_at(self, kept)

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


Rows: TypeAlias = Iterable[tuple[str, Mapping[str, object]]]
"""Place of a row for messages, and its cells."""


def comparisons_from_rates(rows: Rows, per_pair: int, where: str) -> Comparisons:
    """Rebuild comparisons from rows (place, cells) with the columns `COLUMNS`, a pair each.

    Rates are all shares (0..1) or all percent (0..100), rounded to any digit. A pair may have one
    row, or one in each orientation, whose mean is used. The comparisons have no seeds. ``where``
    names the table in messages. Raises `ConfigError` for ``per_pair`` < 1, `DataError` for an
    invalid table.
    """
    if per_pair < 1:
        raise UsageError(f"{per_pair} comparisons a pair: give at least 1 (BotChat's Arena: 444)")
    places, values, digits = _read_table(rows)
    if not places:
        raise DataError(f"{where}: no rows: give a line for each pair of models")
    top = 1
    # By majority, so that one wrong value does not decide the table's unit.
    if (values > 1).sum() * 2 > (values > 0).sum():
        top = 100
    for place, (win, win_or_tie) in zip(places.values(), values.tolist(), strict=True):
        if not 0 <= win <= win_or_tie <= top:
            raise DataError(
                f"{place}: win_rate {win:g} and win_or_tie_rate {win_or_tie:g} are not in order "
                f"within 0..{top}, as those of this table: the second counts wins too"
            )
    models, sides = np.unique(np.array(list(places), object), return_inverse=True)
    first, second = sides.reshape(-1, 2).T
    shares = np.full((len(models), len(models), 2), np.nan)
    shares[first, second] = values / top
    mirrored = 1 - shares.transpose(1, 0, 2)[..., ::-1]
    apart = np.abs(shares - mirrored).max(axis=2)
    for a, b in models[np.argwhere(apart > 10.0**-digits / top + 1e-9)].tolist():
        raise DataError(
            f"{places[b, a]}: {b} against {a} contradicts {places[a, b]}: a win of one is a loss "
            "of the other"
        )
    # Of a pair with one row, what is not known is passed over: twice its share is halved.
    mean = (np.fmin(shares, mirrored) + np.fmax(shares, mirrored)) / 2
    low, high = np.nonzero(np.triu(mean[..., 1] >= 0))
    if len(low) * per_pair > MOST:
        most = MOST // len(low)
        raise ConfigError(f"{per_pair:,} comparisons a pair are too many: give at most {most:,}")
    wins, wins_or_ties = np.rint(mean[low, high].T * per_pair).astype(np.intp)
    times = np.stack([wins, wins_or_ties - wins, per_pair - wins_or_ties], axis=1)
    return Comparisons(
        tuple(models.tolist()),
        np.repeat(low, per_pair),
        np.repeat(high, per_pair),
        np.repeat(np.tile([WIN, TIE, LOSS], len(low)), times.ravel()),
    )


def _read_table(rows: Rows) -> tuple[dict[tuple[str, str], str], Floats, int]:
    """Return the place of each pair, its rates as they stand, shape (n, 2), and most digits."""
    places: dict[tuple[str, str], str] = {}
    values = []
    decimals = [""]
    for place, cells in rows:
        a, b, *texts = (str(cells.get(name, "")).strip() for name in COLUMNS)
        if not a or not b or a == b:
            raise DataError(f"{place}: {a!r} against {b!r}: name two different models")
        if not any(texts):
            continue  # our own tables list pairs that were never compared
        if (a, b) in places:
            raise DataError(f"{place}: {a} against {b} occurs in {places[a, b]} already: keep one")
        places[a, b] = place
        try:
            values.append([float(text) for text in texts])
        except ValueError:
            raise DataError(f"{place}: rates {texts!r:.90} are no numbers") from None
        decimals += [text.partition(".")[2] for text in texts]
    return places, np.array(values), max(map(len, decimals))
