"""BotChat Arena at one N: its comparisons counted, rated by Bradley-Terry and by Elo, tabled."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller

import numpy as np
import pandas as pd

from botchat.boards.protocols import MODEL, PAIRWISE, Evidence, Part, covered
from botchat.boards.results import MOST_LISTED, Sides, Tallies, comparisons_of
from botchat.boards.strengths import COLUMNS, Design, Strengths
from botchat.boards.tables import Column, Table, rank_by, table, with_ends, with_interval
from botchat.metrics.lengths import log_words
from botchat.protocols.catalogue import VOTES
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import WinTieLose
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import Bootstrap, EloResult, EloSettings, RatedCases, bootstrap_elo
from botchat.ratings.elo import rate as rate_elo
from botchat.records import Dialogues
from botchat.verdicts import Flags, Floats, Verdicts

MOST_ELO = 100
"""Contestants of votes up to which Elo is played, too, where nobody chose its settings: of more it
takes most of the time, and says what Bradley-Terry says."""


@dataclass(frozen=True)
class Arena(Part):
    """A protocol about pairs at one N (none where not known), its table sorted by rating."""

    pairs: Table
    """One row an ordered pair; its csv is such a table of rates as `rank` reads."""
    comparisons: WinTieLose
    """Each comparison once, seen from the model with the higher rating."""
    elo: EloSettings | None
    """How it is rated by Elo, if it is."""
    notes: tuple[str, ...]
    """What a reader must know of the ratings, a sentence each."""
    strengths: Strengths
    """The ratings, with how the comparisons were designed."""
    compared: Comparisons
    """What they are from."""

    @property
    def few(self) -> bool:
        """Whether too few ChatSEEDs were compared for a claim in words."""
        return self.strengths.few

    @property
    def separates(self) -> bool:
        """Whether any contestant is clearly better than another."""
        return bool((self.strengths.fitted.places[0] > 1).any())

    @property
    def quoted(self) -> list[Column]:
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
        """As `Part.better`, by the ratings."""
        fitted = self.strengths.fitted
        at = [fitted.models.index(name) for name in names]
        return np.asarray(fitted.clearly_better[np.ix_(at, at)])

    @property
    def places(self) -> list[Column]:
        """The places that the comparisons leave open, for the main table: ends of its rank."""
        ends = self.table.ends("rank")
        assert ends is not None
        return [replace(end, getter=self.table.values(end.key).get) for end in ends]

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
    judged: Iterable[Evidence],
    seed_ids: Collection[str],
    elo: EloSettings,
    dialogues: Dialogues,
) -> list[Arena]:
    """Rate every protocol about pairs, at each N that has a readable verdict.

    ``seed_ids``: those that count; every pair is expected on each, in both orders.
    """
    counted = (_Counted(one, seed_ids) for one in judged)
    found = [one for one in counted if len(one.comparisons)]
    groups: list[list[_Counted]] = []
    for one in found:
        alike = (group for group in groups if group[0].has_cases_of(one))
        if one.design.uneven or (group := next(alike, None)) is None:
            groups.append([one])
        else:
            group.append(one)
    results: dict[Protocol, EloResult] = {}
    for group in groups:
        settings = _as_designed(elo, group[0].design)
        rated = rate_elo(Bootstrap.of([one.cases for one in group], settings))
        results |= {one.judged.protocol: result for one, result in zip(group, rated, strict=True)}
    made = []
    for one in found:
        protocol = one.judged.protocol
        apart = _differences(one.readable, one.comparisons, dialogues, protocol.n)
        strengths = Strengths.of(one.comparisons, one.design, apart)
        signature, rated_so = one.judged.signature, results[protocol]
        made.append(_arena(protocol, one.tallies, one.comparisons, rated_so, strengths, signature))
    return made


class _Counted:
    """The verdicts of an Arena that count, and what is rated of them."""

    def __init__(self, judged: Evidence, seed_ids: Collection[str]) -> None:
        self.judged = judged
        expected = 2 * len(set(seed_ids))
        self.made = judged.verdicts.on(seed_ids)
        self.comparisons = comparisons_of(self.readable)
        # Those that only unreadable verdicts name are contestants too.
        contestants = judged.verdicts.judged_contestants
        self.tallies = Tallies.of(self.comparisons, contestants, expected)
        m, made = len(self.made.contestants), self.made
        judged_so = np.bincount(made.first * m + made.second, minlength=m * m).reshape(m, m)
        place = {name: i for i, name in enumerate(made.contestants)}
        at = np.array([place[name] for name in contestants], dtype=np.intp)
        one, other = at[np.array(np.triu_indices(len(at), 1))]
        of_pairs = (judged_so + judged_so.T)[one, other]
        self.design = Design(tuple(of_pairs.tolist()), expected)

    @property
    def readable(self) -> Verdicts:
        """Those with a result, copied anew: kept for every N, they are a third of a large board."""
        return self.made.only(self.made.readable)

    @property
    def cases(self) -> RatedCases:
        """Shuffled are all that were judged, so that N's with the same have one order."""
        return RatedCases(self.comparisons, np.flatnonzero(self.made.readable), len(self.made))

    def has_cases_of(self, other: _Counted) -> bool:
        """Whether both can be shuffled as one."""
        mine, others = self.made, other.made
        return (mine.seed_ids, mine.contestants) == (others.seed_ids, others.contestants) and all(
            np.array_equal(getattr(mine, column), getattr(others, column))
            for column in ("seed", "first", "second")
        )


def of_votes(
    comparisons: Comparisons,
    signature: str,
    elo: EloSettings,
    *,
    per_pair: int | None = None,
    unit: str = "ChatSEEDs",
    unreadable: Mapping[tuple[str, str], int] | None = None,
    differences: Floats | None = None,
) -> Arena:
    """The Arena's tables from comparisons without judgments: votes, or a table of rates.

    ``signature``: what they are. ``per_pair``: comparisons that every pair should have; votes have
    no plan that says so. ``unit``: what clusters are called.
    ``unreadable``: of a pair in the order of its names, votes without a result. ``differences``: as
    of `Strengths.of`.
    """
    found = Tallies.of(comparisons, comparisons.models, per_pair or 0)
    for (a, b), n in (unreadable or {}).items():
        if a in found.place and b in found.place:
            pair = found.place[a], found.place[b]
            found.missing[pair] = found.missing[pair[::-1]] = n
    design = Design(found.made, per_pair, unit=unit)
    few = len(comparisons.models) <= MOST_ELO or elo.most_games is None
    rated = bootstrap_elo(comparisons, _as_designed(elo, design)) if few else None
    strengths = Strengths.of(comparisons, design, differences)
    return _arena(VOTES, found, comparisons, rated, strengths, signature)


def _elo_signature(settings: EloSettings) -> str:
    """How an Elo was made: ``elo:k32,1000x10|seed:0``, with what differs from the paper."""
    paper, told = EloSettings(), f"elo:k{settings.k:g},{settings.shuffles}x{settings.runs}"
    for name in ("init", "scale"):
        if (value := getattr(settings, name)) != getattr(paper, name):
            told += f",{name}{value:g}"
    told += f",{settings.per_pair}-a-pair" if settings.per_pair else ""
    return f"{told}|seed:{settings.seed}"


def _as_designed(elo: EloSettings, design: Design) -> EloSettings:
    """Settings that estimate the Elo of a whole design where some pairs have more than others."""
    return replace(elo, per_pair=design.expected) if design.uneven else elo


def _differences(
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
    tallies: Tallies,
    comparisons: Comparisons,
    rated: EloResult | None,
    strengths: Strengths,
    signature: str,
) -> Arena:
    """The Arena's tables.

    ``tallies``: of all contestants; ``rated`` and ``strengths``: of those with a readable
    comparison. ``signature``: how the comparisons were made.
    """
    name, uneven = protocol.name, strengths.design.uneven
    title = f"{protocol.title} at N = {protocol.n}" if protocol.n else protocol.title
    signature += f"|{_elo_signature(rated.settings)}" if rated else ""
    signature += f"|{strengths.signature}"
    elos, fitted = _elos(rated, strengths) if rated else {}, strengths.rows()
    sides = Sides.of(comparisons)
    of_models, of_pair = sides.by_model(alike=uneven), sides.by_pair()
    fewer = _fewer(rated) if rated else ""
    told = f"Elo as in the paper{fewer and f', {fewer}'}; ± runs is the spread between runs of "
    allow = "take the comparisons as independent"
    if comparisons.cluster is not None:
        allow = f"allow for the {strengths.design.unit} that comparisons share"
    standing = table(
        name,
        title,
        [
            *with_ends(rank_by("bt"), detail=True),
            MODEL,
            *COLUMNS,
            *(with_interval(Column("elo", "Elo", "rating")) if rated else ()),
            *((Column("elo_run_std", "± runs", "rating"),) if rated else ()),
            *PAIRWISE,
        ],
        [
            {
                "model": model,
                **elos.get(model, {}),
                **fitted.get(model, {}),
                "tally": tallies.of_model(model),
                **of_models.get(model, {}),
            }
            for model in tallies.place
        ],
        [signature],
        f"Rates in percent, of the comparisons with all others"
        f"{', each of whom counts alike' if uneven else ''}, with 95 % intervals that {allow}. "
        f"{f'{told}shuffles. ' if rated else ''}{strengths.note()}",
        ["bt"],
    )
    order = standing.frame["model"].tolist()
    pairs = table(
        f"{name}-pairs",
        f"{title}, pair by pair",
        _PAIRS,
        (
            {"model_a": a, "model_b": b, "tally": tallies.of_pair(a, b), **of_pair(a, b)}
            for a, b in tallies.listed(order)
        ),
        [signature],
        f"Of more than {MOST_LISTED} contestants those that were compared, once each."
        if len(order) > MOST_LISTED
        else "",
    )
    notes = [f"{title}. {warning}" for warning in strengths.warnings]
    if fewer:
        notes.append(f"{title}. Elo is {fewer}; --shuffles {EloSettings.shuffles} plays all.")
    return Arena(
        protocol,
        standing,
        pairs,
        tallies.together(order),
        rated.settings if rated else None,
        tuple(notes),
        strengths,
        comparisons,
    )


def _fewer(rated: EloResult) -> str:
    """How Elo differs from the paper's where all its shuffles would be too many games, else ""."""
    made = rated.settings
    if made.most_games is None or made.shuffles == EloSettings.shuffles:
        return ""
    told = (
        f"of {made.shuffles:,} shuffles a run instead of {EloSettings.shuffles:,}, as each takes "
        f"{rated.n_played:,} games among so many models"
    )
    error = float(np.mean(rated.run_std)) / math.sqrt(made.runs)
    return told if math.isnan(error) else f"{told} (standard error of a rating: {error:.1f} points)"


def _elos(rated: EloResult, strengths: Strengths) -> dict[str, dict[str, float]]:
    """Model -> Elo, the spread of its runs, and its interval.

    Elo's mean over shuffles follows the same comparisons as Bradley-Terry, so that its error is
    taken to be Bradley-Terry's, in quadrature with the error of the mean over runs.
    """
    fitted = strengths.fitted
    bt = dict(zip(fitted.models, fitted.std_error.tolist(), strict=True))
    found = {}
    runs = rated.settings.runs
    for model, elo, std in zip(
        rated.models, rated.rating.tolist(), rated.run_std.tolist(), strict=True
    ):
        reach = fitted.width * math.hypot(bt[model], std / math.sqrt(runs))
        found[model] = {
            "elo": elo,
            "elo_run_std": std,
            "elo_low": elo - reach,
            "elo_high": elo + reach,
        }
    return found


def _rate(key: str, heading: str) -> tuple[Column, ...]:
    """A rate of `Sides` in the table of pairs, and its ends."""
    value, low, high = (methodcaller("get", f"{key}{end}") for end in ("", "_low", "_high"))
    column = Column(f"{key}_rate", heading, "rate", getter=value)
    return with_ends(column, detail=True, low=low, high=high)


_PAIRS = (
    Column("model_a", "Model", "name"),
    Column("model_b", "Against", "name"),
    *_rate("win", "Win"),
    *_rate("win_or_tie", "Win + tie"),
    *covered(lambda row: row["tally"].win),
)
"""Of rows with a ``tally`` and the entries of `Sides`."""
