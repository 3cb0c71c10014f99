"""BotChat Arena at one N: comparisons counted, rated by Bradley-Terry and by Elo, tabled."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from botchat.boards.pairs import MOST_LISTED, PairCounts, PairRates, comparisons_of
from botchat.boards.protocols import MODEL, PAIRWISE, ProtocolResult, ProtocolVerdicts, covered
from botchat.boards.tables import Column, Table, rank_by, table, with_ends, with_interval
from botchat.interfaces import Row
from botchat.metrics.lengths import log_words
from botchat.protocols.catalogue import VOTES
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import WinTieLose
from botchat.ratings.bradley_terry import BradleyTerryResult, fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloResult, EloSettings, bootstrap_elo
from botchat.records import Dialogues
from botchat.verdicts import Flags, Floats, Verdicts

MOST_ELO = 100
"""Contestants up to which Elo is played: of more it takes most of the time, and orders them as
Bradley-Terry does."""

_DIGITS = 6
"""Decimals in which the ratings of models that did the same are equal."""


@dataclass(frozen=True)
class ComparisonCounts:
    """How many of the comparisons that a protocol has were made, readable or not."""

    made: int
    expected: int | None
    """None: votes as they came, which have no plan."""
    unit: str = "ChatSEEDs"
    """What comparisons share, and errors are clustered by."""

    @property
    def full(self) -> bool:
        """Whether every comparison was made."""
        return self.expected is None or self.made >= self.expected

    @property
    def signature(self) -> str:
        """``data:full``, or the share that was made: ``data:31.2%``."""
        if self.expected is None:
            return f"data:{self.made}-votes"
        return "data:full" if self.full else f"data:{100 * self.made / self.expected:.1f}%"


@dataclass(frozen=True)
class Arena(ProtocolResult):
    """A protocol about pairs at one N (none where not known), its table sorted by rating."""

    pairs: Table
    """One row an ordered pair; its csv is such a table of rates as `rank` reads."""
    pair_counts: PairCounts
    elo: EloSettings | None
    """How it is rated by Elo, if it is."""
    counts: ComparisonCounts
    fitted: BradleyTerryResult
    compared: Comparisons
    """What they are from."""

    @property
    def comparisons(self) -> WinTieLose:
        """Each comparison once."""
        return self.pair_counts.total()

    def pair(self, a: str, b: str) -> WinTieLose:
        """Comparisons of two contestants, seen from the first."""
        return self.pair_counts.of_pair(a, b)

    @property
    def n_dialogues(self) -> int:
        """ChatSEEDs, or comparisons a pair where these are not known."""
        if self.fitted.n_clusters is not None:
            return self.fitted.n_clusters
        pairs = max(1, math.comb(len(self.fitted.models), 2))
        return self.counts.made // pairs // (1 if self.counts.expected is None else 2)

    @property
    def separates(self) -> bool:
        """Whether any contestant is significantly better than another."""
        return bool(self.fitted.significantly_better.any())

    @property
    def main_columns(self) -> list[Column]:
        """Elo, as in the paper."""
        return [replace(self.table.column("elo"), priority=1)] if self.elo else []

    @property
    def ranking(self) -> list[Column]:
        """Bradley-Terry, which every rank is by."""
        return [self.table.column("bt")]

    @property
    def rated(self) -> list[Column]:
        """The same with its interval, for the main table."""
        return [self.table.column(key) for key in ("bt", "bt_low", "bt_high")]

    def better(self, names: Sequence[str]) -> Flags:
        """As `ProtocolResult.better`, by the ratings."""
        at = [self.fitted.models.index(name) for name in names]
        return np.asarray(self.fitted.significantly_better[np.ix_(at, at)])

    @property
    def ratings(self) -> dict[str, float]:
        """Contestant -> Elo, in the order of the table; without those that have no comparison."""
        elos = self.table.values("elo") if self.elo else {}
        return {name: elo for name, elo in elos.items() if not pd.isna(elo)}

    def matrix(self, key: str) -> pd.DataFrame:
        """A rate of `pairs`, of the row against the column; NaN where nothing was compared."""
        order = self.table.frame["model"].tolist()
        square = self.pairs.frame.pivot(index="model_a", columns="model_b", values=key)
        square = square.reindex(index=order, columns=order)
        if len(order) > MOST_LISTED:  # each pair stands there once; who does not win or tie loses
            other = {"win_rate": "win_or_tie_rate", "win_or_tie_rate": "win_rate"}[key]
            turned = self.pairs.frame.pivot(index="model_b", columns="model_a", values=other)
            square = square.fillna(1 - turned.reindex(index=order, columns=order))
        return square.rename_axis(index=None, columns=None)


def rate(
    judged: Iterable[ProtocolVerdicts],
    seed_ids: Collection[str],
    elo: EloSettings | None,
    dialogues: Dialogues,
) -> list[Arena]:
    """Rate every protocol about pairs, at each N that has a readable verdict.

    ``seed_ids``: those that count; every pair is expected on each, in both orders.
    """
    results = []
    for part in judged:
        verdicts = part.verdicts.on(seed_ids)
        readable = verdicts.only(verdicts.readable)
        if not len(readable):
            continue
        comparisons = comparisons_of(readable, part.cluster)
        # Those that only unreadable verdicts name are contestants too.
        contestants, expected = part.verdicts.judged_contestants, 2 * len({*seed_ids})
        pairs = PairCounts.of(comparisons, contestants, expected)
        counts = ComparisonCounts(len(verdicts), expected * math.comb(len(contestants), 2))
        length = _length_differences(readable, comparisons, dialogues, part.protocol.n)
        results.append(
            _arena(part.protocol, pairs, comparisons, counts, part.signature, elo, length)
        )
    return results


def of_votes(
    comparisons: Comparisons,
    signature: str,
    elo: EloSettings | None,
    *,
    per_pair: int | None = None,
    unit: str = "ChatSEEDs",
    unreadable: Mapping[tuple[str, str], int] | None = None,
    length: Floats | None = None,
) -> Arena:
    """The Arena's tables from comparisons without judgments: votes, or a table of rates.

    ``signature``: what they are. ``per_pair``: comparisons that every pair should have; votes have
    no plan that says so. ``unit``: what clusters are called. ``unreadable``: of a pair in the order
    of its names, votes without a result. ``length``: as of `fit`, nan where not known.
    """
    pairs = PairCounts.of(comparisons, comparisons.models, per_pair or 0)
    for (a, b), n in (unreadable or {}).items():
        if a in pairs.place and b in pairs.place:
            pair = pairs.place[a], pairs.place[b]
            pairs.missing[pair] = pairs.missing[pair[::-1]] = n
    expected = None if per_pair is None else per_pair * math.comb(len(comparisons.models), 2)
    counts = ComparisonCounts(len(comparisons), expected, unit)
    return _arena(VOTES, pairs, comparisons, counts, signature, elo, length)


def _length_differences(
    readable: Verdicts, comparisons: Comparisons, dialogues: Dialogues, turns: int | None
) -> Floats | None:
    """How much longer the first is than the second in each comparison, nan where not known."""
    if turns is None:
        return None
    place = {seed_id: i for i, seed_id in enumerate(readable.seed_ids)}
    length = np.full((len(comparisons.models), len(place)), np.nan)
    for of_model, model in zip(length, comparisons.models, strict=True):
        for seed_id, value in log_words(dialogues.get(model, {}), turns).items():
            if seed_id in place:
                of_model[place[seed_id]] = value
    differences = length[comparisons.first, readable.seed]
    differences = differences - length[comparisons.second, readable.seed]
    differences[readable.shown != turns] = np.nan
    return np.asarray(differences)


def _arena(
    protocol: Protocol,
    counted: PairCounts,
    comparisons: Comparisons,
    counts: ComparisonCounts,
    signature: str,
    elo: EloSettings | None,
    length: Floats | None,
) -> Arena:
    """Rate, and make the tables; ``counted``: of all contestants."""
    title = f"{protocol.title} at N = {protocol.n}" if protocol.n else protocol.title
    few = len(comparisons.models) <= MOST_ELO
    rated = bootstrap_elo(comparisons, elo) if few or elo else None
    fitted, ratings = fit(comparisons), dict[str, Row]()
    _add(ratings, fitted, "bt")
    if length is not None and (known := np.isfinite(length)).any():
        _add(ratings, fit(comparisons.select(known), length[known]), "bt_length_controlled")
    if rated:
        _add_elo(ratings, rated, fitted)
    for model, low, high in zip(fitted.models, *fitted.rank_intervals, strict=True):
        ratings[model] |= {"rank_low": int(low), "rank_high": int(high)}
    signature += f"|{_elo_signature(rated.settings)}" if rated else ""
    errors = "by-seed" if fitted.n_clusters else "independent"
    signature += f"|{counts.signature}|bt:ties0.5,95%,{errors}"
    of_models = PairRates(comparisons, by_pair=False)
    of_pairs = PairRates(comparisons, by_pair=True)
    standing = table(
        protocol.name,
        title,
        [*with_ends(rank_by("bt"), detail=True), MODEL, *_COLUMNS, *PAIRWISE],
        [
            {
                "model": model,
                **ratings.get(model, {}),
                "counts": counted.of_model(model),
                **of_models.row(model),
            }
            for model in counted.place
        ],
        [signature],
        "Rates in percent of the comparisons with all others; brackets are 95 % intervals. Ranked "
        "by Bradley–Terry; ranks are simultaneous 95 % rank intervals.",
        ["bt"],
    ).filled()
    order = standing.frame["model"].tolist()
    pairs = table(
        f"{protocol.name}-pairs",
        f"{title}, pair by pair",
        _PAIRS,
        [
            {
                "model_a": a,
                "model_b": b,
                "counts": counted.of_pair(a, b),
                **{_rate_key(key): value for key, value in of_pairs.row(a, b).items()},
            }
            for a, b in counted.listed(order)
        ],
        [signature],
    )
    settings = rated.settings if rated else None
    return Arena(protocol, standing, pairs, counted, settings, counts, fitted, comparisons)


def _add(ratings: dict[str, Row], fitted: BradleyTerryResult, key: str) -> None:
    """Put ratings and their intervals into the rows of models."""
    # To the digits in which models that did the same are equal.
    columns = fitted.rating.round(_DIGITS), fitted.low, fitted.high
    for model, *values in zip(fitted.models, *(c.tolist() for c in columns), strict=True):
        keys = (key, f"{key}_low", f"{key}_high")
        ratings.setdefault(model, {}).update(zip(keys, values, strict=True))


def _add_elo(ratings: dict[str, Row], rated: EloResult, fitted: BradleyTerryResult) -> None:
    """Put Elo, the spread of its runs and its interval into the rows of models.

    Elo's mean over shuffles follows the same comparisons as Bradley-Terry, so its error is taken to
    be Bradley-Terry's, in quadrature with the error of the mean over runs.
    """
    error = np.hypot(fitted.std_error, np.nan_to_num(rated.run_std) / rated.settings.runs**0.5)
    reach = (fitted.reach() * error).tolist()
    for i, (model, elo) in enumerate(zip(rated.models, rated.rating.tolist(), strict=True)):
        ends = {"elo_low": elo - reach[i], "elo_high": elo + reach[i]}
        ratings[model] |= {"elo": elo, "elo_run_std": float(rated.run_std[i]), **ends}


def _elo_signature(settings: EloSettings) -> str:
    """How an Elo was made: ``elo:k32,1000x10|seed:0``, with what differs from the paper."""
    paper = EloSettings()
    text = f"elo:k{settings.k:g},{settings.shuffles}x{settings.runs}"
    for name in ("init", "scale"):
        if (value := getattr(settings, name)) != getattr(paper, name):
            text += f",{name}{value:g}"
    return f"{text}|seed:{settings.seed}"


def _rate_key(key: str) -> str:
    """``win_low`` -> ``win_rate_low``, as a table of rates calls it."""
    for end in ("_low", "_high"):
        if key.endswith(end):
            return f"{key.removesuffix(end)}_rate{end}"
    return f"{key}_rate"


_COLUMNS = (
    *with_ends(Column("bt", "Bradley–Terry", "rating"), "95 %"),
    *with_interval(Column("bt_length_controlled", "Length-controlled", "rating", priority=1)),
    *with_interval(Column("elo", "Elo", "rating")),
    Column("elo_run_std", "± runs", "rating"),
)
_PAIRS = (
    Column("model_a", "Model", "name"),
    Column("model_b", "Against", "name"),
    *with_interval(Column("win_rate", "Win", "rate")),
    *with_interval(Column("win_or_tie_rate", "Win + tie", "rate")),
    *covered(lambda row: row["counts"].win),
)
