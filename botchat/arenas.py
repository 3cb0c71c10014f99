"""BotChat Arena at one N: its comparisons counted, rated by Elo and by Bradley-Terry, tabled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np

from botchat import __version__, standings
from botchat.measures.flagged import STYLE, Measured
from botchat.measures.statistics import Floats
from botchat.protocols import rates
from botchat.protocols.verdicts import Verdicts
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings, bootstrap_elo
from botchat.standings import Arena
from botchat.strengths import Design, Strengths


def from_verdicts(
    turns: int,
    verdicts: Verdicts,
    seed_ids: Collection[str],
    signature: str,
    elo: EloSettings,
    measured: Mapping[str, Measured],
) -> Arena | None:
    """The Arena at N, ``None`` if none of its verdicts is readable.

    Args:
        turns: N.
        verdicts: of one judge.
        seed_ids: the seeds that count; every pair is expected on each, in both orders.
        signature: how the verdicts were made.
        elo: how they are rated.
        measured: contestant -> its dialogues, for the style that they have at N.
    """
    made = verdicts.on(seed_ids)
    readable = made.only(made.readable)
    if not len(readable):
        return None
    comparisons = comparisons_of(readable)
    pairs = list(combinations(verdicts.players, 2))
    design = _design(made, pairs, 2 * len(set(seed_ids)))
    elo = _as_designed(elo, design)
    return standings.arena(
        turns,
        rates.tallies(made, pairs, seed_ids),
        bootstrap_elo(comparisons, elo),
        Strengths.of(
            comparisons,
            design,
            _differences(readable, comparisons, measured, turns),
            STYLE,
        ),
        f"{signature}|{elo_signature(elo)}",
        f"arena-n{turns}",
    )


def from_comparisons(
    comparisons: Comparisons, name: str, per_pair: int, elo: EloSettings | None = None
) -> Arena:
    """The Arena's tables from comparisons without judgments, such as a published rate table's.

    Args:
        comparisons: of any pairs of models.
        name: where they come from.
        per_pair: comparisons that every pair should have; what it has less is missing.
        elo: how they are rated; default: the paper's way.
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
    """How an Elo was made: ``elo:k32,1000x10|seed:0``, and whatever is not as in the paper."""
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
    """As the whole design would be rated, where a part of it has more of some pairs than others."""
    return replace(elo, per_pair=design.expected) if design.uneven else elo


def comparisons_of(readable: Verdicts) -> Comparisons:
    """Readable verdicts as comparisons of the players, by name, with their seeds."""
    players = readable.players
    place = {name: i for i, name in enumerate(players)}
    # Contestants that only unreadable verdicts name have no place, and none is asked for.
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
    """Style of the first less the second in each comparison, shape (n, k).

    nan where it was not measured, or at another length: beside a human dialogue both are cut to
    its end. ``None`` where a whole contestant was not measured.
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
