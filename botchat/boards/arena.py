"""BotChat Arena at one N: its comparisons counted, rated by Elo and by Bradley-Terry, tabled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np

from botchat import __version__
from botchat.boards import protocols as standings
from botchat.boards.protocols import Arena
from botchat.boards.strengths import Design, Strengths
from botchat.measures.flags import STYLE, Measured
from botchat.measures.statistics import Floats
from botchat.protocols import rates
from botchat.protocols.pairs import Verdicts
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import Bootstrap, Cases, EloResult, EloSettings, bootstrap_elo
from botchat.ratings.elo import rate as rate_elo


def rate(
    judged: Mapping[int, Verdicts],
    seed_ids: Collection[str],
    signatures: Mapping[int, str],
    elo: EloSettings,
    measured: Mapping[str, Measured],
) -> dict[int, Arena]:
    """Rate the Arena at each N that has a readable verdict.

    Args:
        judged: N -> verdicts of one judge.
        seed_ids: the seeds that count; every pair is expected on each, in both orders.
        signatures: N -> how the verdicts were made.
        elo: how they are rated.
        measured: contestant -> its dialogues as measured, for their style at N.
    """
    parts = {n: _Part.of(verdicts, seed_ids) for n, verdicts in judged.items()}
    parts = {n: part for n, part in parts.items() if len(part.comparisons)}
    results: dict[int, EloResult] = {}
    for group in _alike(parts):
        settings = _as_designed(elo, parts[group[0]].design)
        # All that were judged are shuffled, so that N's with the same cases have one order.
        shuffled = [
            Cases(part.comparisons, np.flatnonzero(part.made.readable), len(part.made))
            for part in map(parts.__getitem__, group)
        ]
        results |= dict(zip(group, rate_elo(Bootstrap.of(shuffled, settings)), strict=True))
    return {
        n: standings.arena(
            n,
            rates.tallies(part.made, part.pairs, seed_ids),
            results[n],
            Strengths.of(
                part.comparisons,
                part.design,
                _differences(part.readable, part.comparisons, measured, n),
                STYLE,
            ),
            f"{signatures[n]}|{elo_signature(results[n].settings)}",
            f"arena-n{n}",
        )
        for n, part in parts.items()
    }


@dataclass(frozen=True)
class _Part:
    """The verdicts of an Arena that count, and what is rated of them."""

    made: Verdicts
    readable: Verdicts
    comparisons: Comparisons
    pairs: Sequence[tuple[str, str]]
    design: Design

    @classmethod
    def of(cls, verdicts: Verdicts, seed_ids: Collection[str]) -> _Part:
        made = verdicts.on(seed_ids)
        readable = made.only(made.readable)
        pairs = list(combinations(verdicts.players, 2))
        design = _design(made, pairs, 2 * len(set(seed_ids)))
        return cls(made, readable, comparisons_of(readable), pairs, design)

    def has_cases_of(self, other: _Part) -> bool:
        mine, others = self.made, other.made
        return (mine.seed_ids, mine.contestants) == (others.seed_ids, others.contestants) and all(
            np.array_equal(getattr(mine, column), getattr(others, column))
            for column in ("seed", "first", "second")
        )


def _alike(parts: Mapping[int, _Part]) -> list[list[int]]:
    """N's in groups with the same cases, which share their shuffles."""
    groups: list[list[int]] = []
    for n, part in parts.items():
        for group in groups:
            if not part.design.uneven and parts[group[0]].has_cases_of(part):
                group.append(n)
                break
        else:
            groups.append([n])
    return groups


def from_comparisons(
    comparisons: Comparisons, name: str, per_pair: int, elo: EloSettings | None = None
) -> Arena:
    """The Arena's tables from comparisons without judgments, such as a published rate table's.

    ``name`` says where they come from. Every pair should have ``per_pair``; the rest is missing.
    """
    models = comparisons.models
    m = len(models)
    # For each ordered pair of numbers: losses, ties and wins of the first.
    kind = (comparisons.first * m + comparisons.second) * 3 + (2 * comparisons.outcome).astype(int)
    counts = np.bincount(kind, minlength=3 * m * m).reshape(m, m, 3)
    counts = counts + counts.transpose(1, 0, 2)[:, :, ::-1]
    found = {}
    for i, j in permutations(range(m), 2):
        losses, ties, wins = counts[i, j].tolist()
        missing = max(0, per_pair - wins - ties - losses)
        found[models[i], models[j]] = rates.Tally(wins, ties, losses, missing)
    design = Design(tuple(found[pair].n for pair in combinations(models, 2)), per_pair)
    elo = _as_designed(elo or EloSettings(), design)
    return standings.arena(
        None,
        found,
        bootstrap_elo(comparisons, elo),
        Strengths.of(comparisons, design),
        f"botchat:{__version__}|arena|set:{name}|per_pair:{per_pair}|{elo_signature(elo)}",
    )


def elo_signature(settings: EloSettings) -> str:
    """How an Elo was made: ``elo:k32,1000x10|seed:0``, with what differs from the paper."""
    paper = EloSettings()
    unusual = [
        f",{name}{getattr(settings, name):g}"
        for name in ("init", "scale")
        if getattr(settings, name) != getattr(paper, name)
    ]
    drawn = ",resampled" if settings.resample else ""
    drawn += f",{settings.per_pair}-a-pair" if settings.per_pair else ""
    shuffles = f"{settings.shuffles}x{settings.runs}"
    return f"elo:k{settings.k:g},{shuffles}{''.join(unusual)}{drawn}|seed:{settings.seed}"


def _as_designed(elo: EloSettings, design: Design) -> EloSettings:
    """Settings that estimate the Elo of a whole design where some pairs have more than others."""
    return replace(elo, per_pair=design.expected) if design.uneven else elo


def comparisons_of(readable: Verdicts) -> Comparisons:
    """Readable verdicts as comparisons of the contestants in them, with their seeds."""
    players = readable.players
    place = {name: i for i, name in enumerate(players)}
    # Contestants that only unreadable verdicts name have no place.
    of = np.array([place.get(name, -1) for name in readable.contestants], dtype=np.intp)
    return Comparisons(
        tuple(players),
        of[readable.first],
        of[readable.second],
        readable.outcome,
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
    readable: Verdicts, comparisons: Comparisons, measured: Mapping[str, Measured], turns: int
) -> Floats | None:
    """Style of the first less that of the second in each comparison, shape (n, k).

    nan where style was not measured, or at another length because both were cut to the end of a
    human dialogue. ``None`` where a whole contestant was not measured.
    """
    styled = {name for name, found in measured.items() if turns in found.style}
    if not styled.issuperset(comparisons.models):
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
