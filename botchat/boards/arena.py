"""BotChat Arena at one N: its comparisons counted, rated by Elo and by Bradley-Terry, tabled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from operator import itemgetter
from statistics import fmean

import numpy as np
import pandas as pd

from botchat.boards.protocols import BOUNDS, MODEL, PAIRWISE, Evidence, Part, covered
from botchat.boards.strengths import COLUMNS, Design, Strengths
from botchat.boards.tables import Column, Table, rank_by, table
from botchat.measures.flags import STYLE, Measured
from botchat.measures.statistics import Floats
from botchat.protocols import rates
from botchat.protocols.catalogue import ARENA
from botchat.protocols.kinds import Protocol
from botchat.protocols.pairs import Verdicts
from botchat.protocols.rates import Tally
from botchat.ratings.comparisons import LOSS, TIE, WIN, Comparisons
from botchat.ratings.elo import Bootstrap, Cases, EloResult, EloSettings, bootstrap_elo
from botchat.ratings.elo import rate as rate_elo
from botchat.records import VERSION


@dataclass(frozen=True)
class Arena(Part):
    """A protocol about pairs at one N (none where not known), its table sorted by rating."""

    pairs: Table
    """One row an ordered pair; its csv is what ``--pairwise-rates`` reads."""
    comparisons: Tally
    """Each comparison once, seen from the model with the higher rating."""
    elo: EloSettings
    """How it is rated."""
    misfit: Table | None
    """The pairs that Bradley-Terry explains worst."""
    style: Table | None
    """What style is worth; ``None`` where the dialogues were not measured."""
    fragility: Table | None
    """What decides who is first; ``None`` where seeds are not known."""
    notes: tuple[str, ...]
    """What a reader must know of the ratings, a sentence each."""

    @property
    def quoted(self) -> list[Column]:
        """Elo, as in the paper."""
        return [self.table.column("elo")]

    @property
    def intervals(self) -> list[Column]:
        """Bradley-Terry for the main table: group, rating and its interval."""
        keys = ("bt_group", "bt", "bt_low", "bt_high")
        return [self.quote(self.table.column(key)) for key in keys]

    @property
    def ratings(self) -> dict[str, float]:
        """Contestant -> Elo, best first; without those that nothing readable was said about."""
        return {name: elo for name, elo in self.table.values("elo").items() if not pd.isna(elo)}

    def matrix(self, key: str) -> pd.DataFrame:
        """A rate of `pairs`, of the row against the column; NaN where nothing was compared."""
        order = self.table.frame["model"].tolist()
        square = self.pairs.frame.pivot(index="model_a", columns="model_b", values=key)
        return square.reindex(index=order, columns=order).rename_axis(index=None, columns=None)


def rate(
    judged: Iterable[Evidence],
    seed_ids: Collection[str],
    elo: EloSettings,
    measured: Mapping[str, Measured],
) -> list[Arena]:
    """Rate every protocol about pairs, at each N that has a readable verdict.

    ``seed_ids``: those that count; every pair is expected on each, in both orders. ``measured``:
    of each contestant, for the style at N.
    """
    found = [_Counted.of(one, seed_ids) for one in judged]
    found = [one for one in found if len(one.comparisons)]
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
    return [
        _arena(
            protocol := one.judged.protocol,
            rates.tallies(one.made, one.pairs, seed_ids),
            result := results[protocol],
            Strengths.of(
                one.comparisons,
                one.design,
                _differences(one.readable, one.comparisons, measured, protocol.n),
                STYLE,
            ),
            f"{one.judged.signature}|{elo_signature(result.settings)}",
        )
        for one in found
    ]


@dataclass(frozen=True)
class _Counted:
    """The verdicts of an Arena that count, and what is rated of them."""

    judged: Evidence
    made: Verdicts
    readable: Verdicts
    comparisons: Comparisons
    pairs: Sequence[tuple[str, str]]
    design: Design

    @classmethod
    def of(cls, judged: Evidence, seed_ids: Collection[str]) -> _Counted:
        made = judged.verdicts.on(seed_ids)
        readable = made.only(made.readable)
        pairs = list(combinations(judged.verdicts.judged_contestants, 2))
        design = _design(made, pairs, 2 * len(set(seed_ids)))
        return cls(judged, made, readable, comparisons_of(readable), pairs, design)

    @property
    def cases(self) -> Cases:
        """Shuffled are all that were judged, so that N's with the same have one order."""
        return Cases(self.comparisons, np.flatnonzero(self.made.readable), len(self.made))

    def has_cases_of(self, other: _Counted) -> bool:
        """Whether both can be shuffled as one."""
        mine, others = self.made, other.made
        return (mine.seed_ids, mine.contestants) == (others.seed_ids, others.contestants) and all(
            np.array_equal(getattr(mine, column), getattr(others, column))
            for column in ("seed", "first", "second")
        )


def from_comparisons(
    comparisons: Comparisons, name: str, per_pair: int, elo: EloSettings | None = None
) -> Arena:
    """The Arena's tables from comparisons without judgments, such as a published rate table's.

    ``name``: where they come from. ``per_pair``: comparisons that every pair should have.
    """
    models = comparisons.models
    columns = (comparisons.first, comparisons.second, comparisons.result)
    said = Counter(zip(*(column.tolist() for column in columns), strict=True))
    found = {}
    for i, j in permutations(range(len(models)), 2):
        wins, ties, losses = (
            said[i, j, result] + said[j, i, 1 - result] for result in (WIN, TIE, LOSS)
        )
        found[models[i], models[j]] = Tally(
            wins, ties, losses, max(0, per_pair - wins - ties - losses)
        )
    design = Design(tuple(found[pair].n for pair in combinations(models, 2)), per_pair)
    elo = _as_designed(elo or EloSettings(), design)
    return _arena(
        ARENA,
        found,
        bootstrap_elo(comparisons, elo),
        Strengths.of(comparisons, design),
        f"botchat:{VERSION}|arena|set:{name}|per_pair:{per_pair}|{elo_signature(elo)}",
    )


def elo_signature(settings: EloSettings) -> str:
    """How an Elo was made: ``elo:k32,1000x10|seed:0``, with what differs from the paper."""
    paper, told = EloSettings(), f"elo:k{settings.k:g},{settings.shuffles}x{settings.runs}"
    for name in ("init", "scale"):
        if (value := getattr(settings, name)) != getattr(paper, name):
            told += f",{name}{value:g}"
    told += ",resampled" if settings.resample else ""
    told += f",{settings.per_pair}-a-pair" if settings.per_pair else ""
    return f"{told}|seed:{settings.seed}"


def _as_designed(elo: EloSettings, design: Design) -> EloSettings:
    """Settings that estimate the Elo of a whole design where some pairs have more than others."""
    return replace(elo, per_pair=design.expected) if design.uneven else elo


def comparisons_of(readable: Verdicts) -> Comparisons:
    """Readable verdicts as comparisons of the contestants, by name, with their seeds."""
    contestants = readable.judged_contestants
    place = {name: i for i, name in enumerate(contestants)}
    # Contestants that only unreadable verdicts name have no place, and none is asked for.
    of = np.array([place.get(name, -1) for name in readable.contestants], dtype=np.intp)
    return Comparisons(
        tuple(contestants),
        of[readable.first],
        of[readable.second],
        readable.result,
        readable.seed,
    )


def _design(made: Verdicts, pairs: Sequence[tuple[str, str]], expected: int) -> Design:
    m = len(made.contestants)
    judged = np.bincount(made.first * m + made.second, minlength=m * m).reshape(m, m)
    judged = judged + judged.T
    place = {name: i for i, name in enumerate(made.contestants)}
    of_pairs = tuple(int(judged[place[a], place[b]]) for a, b in pairs)
    return Design(of_pairs, expected, int(made.chosen.sum()))


def _differences(
    readable: Verdicts,
    comparisons: Comparisons,
    measured: Mapping[str, Measured],
    turns: int | None,
) -> Floats | None:
    """Style of the first less that of the second in each comparison, shape (n, k).

    nan where it was not measured at the length shown; ``None`` where a contestant was not at all.
    """
    styled = {name for name, found in measured.items() if turns in found.style}
    if turns is None or not styled.issuperset(comparisons.models):
        return None
    place = {seed_id: i for i, seed_id in enumerate(readable.seed_ids)}
    style = np.full((len(comparisons.models), len(place), len(STYLE)), np.nan)
    for model, of_model in zip(comparisons.models, style, strict=True):
        found = measured[model]
        rows = [i for i, seed_id in enumerate(found.seed_ids) if seed_id in place]
        of_model[[place[found.seed_ids[i]] for i in rows]] = found.style[turns][rows]
    of_first = style[comparisons.first, readable.seed]
    differences = of_first - style[comparisons.second, readable.seed]
    differences[readable.shown != turns] = np.nan
    return np.asarray(differences)


def _arena(
    protocol: Protocol,
    tallies: Mapping[tuple[str, str], Tally],
    rated: EloResult,
    strengths: Strengths,
    signature: str,
) -> Arena:
    """The Arena's tables.

    ``tallies``: of every ordered pair of contestants; ``rated`` and ``strengths``: of those with a
    readable comparison. ``signature``: how the comparisons were made and rated by Elo.
    """
    name = protocol.name
    at = f" at N = {protocol.n}" if protocol.n else ""
    elo = dict(zip(rated.models, rated.rating.tolist(), strict=True))
    run_std = dict(zip(rated.models, rated.run_std.tolist(), strict=True))
    fitted = strengths.rows()
    title, signature = f"{protocol.title}{at}", f"{signature}|{strengths.signature}"
    met: dict[str, list[Tally]] = {}
    for (model, _), tally in tallies.items():
        met.setdefault(model, []).append(tally)
    uneven = strengths.design.uneven
    standing = table(
        name,
        title,
        [
            rank_by("elo"),
            MODEL,
            Column("elo", "Elo", "rating"),
            Column("elo_run_std", "± runs", "rating"),
            *COLUMNS,
            *PAIRWISE,
        ],
        [
            {
                "model": model,
                "elo": elo.get(model),
                "elo_run_std": run_std.get(model),
                **fitted.get(model, {}),
                "tally": sum(of_model, Tally()),
                **(_alike(of_model) if uneven else {}),
            }
            for model, of_model in met.items()
        ],
        [signature],
        f"Rates in percent, of the comparisons with all others{_ALIKE if uneven else ''}. "
        "± runs is the spread between runs "
        f"of shuffles, not a confidence interval. {strengths.note()} {BOUNDS}",
        ["elo"],
    )
    order = standing.frame["model"].tolist()
    return Arena(
        protocol,
        standing,
        table(
            f"{name}-pairs",
            f"{title}, pair by pair",
            _PAIRS,
            [(a, b, tallies[a, b]) for a in order for b in order if a != b],
            [signature],
        ),
        comparisons=sum((tallies[pair] for pair in combinations(order, 2)), Tally()),
        elo=rated.settings,
        misfit=strengths.misfit_table(f"{name}-misfit", title, signature),
        style=strengths.style_table(f"{name}-style", title, signature),
        fragility=strengths.fragility_table(f"{name}-fragility", title, signature),
        notes=tuple(f"{title}. {warning}" for warning in strengths.warnings),
    )


_ALIKE = ", each of whom counts alike"


def _alike(met: Iterable[Tally]) -> dict[str, float]:
    """Rates of a model whose opponents have unequal numbers: the mean over opponents."""
    rates = [(tally.win.value, tally.win_or_tie.value) for tally in met if tally.n]
    if not rates:
        return {}
    win, win_or_tie = map(fmean, zip(*rates, strict=True))
    return {"win": win, "tie": win_or_tie - win, "lose": 1 - win_or_tie, "win_or_tie": win_or_tie}


_PAIRS = (
    Column("model_a", "Model", "name", getter=itemgetter(0)),
    Column("model_b", "Against", "name", getter=itemgetter(1)),
    Column("win_rate", "Win", "rate", getter=lambda row: row[2].win.value),
    Column("win_or_tie_rate", "Win + tie", "rate", getter=lambda row: row[2].win_or_tie.value),
    *covered(lambda row: row[2].win),
)
"""Of rows (model, model, `Tally`)."""
