"""One table for each thing that is judged or measured: counts and rates in, `Table` out.

Every rate stands beside what it covers, and has the bounds that missing verdicts leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from botchat.boards.strengths import COLUMNS as STRENGTHS
from botchat.boards.strengths import Strengths
from botchat.boards.tables import Column, Table, table
from botchat.interfaces import Row
from botchat.measures import lengths
from botchat.protocols import rates
from botchat.protocols.diagnosis import ERRORS
from botchat.protocols.diagnosis import PROTOCOL as DIAGNOSIS
from botchat.protocols.rates import Rate, Tally
from botchat.ratings.elo import EloResult, EloSettings
from botchat.records import HUMAN, Dialogues, Judgment, Seed, Verdict

Pair = tuple[str, str]

MODEL = Column("model", "Model", "name")

_BOUNDS = (
    "Low and high bound the rate: they count every missing verdict as a failure or as a success."
)


@dataclass(frozen=True)
class Arena:
    """BotChat Arena at one N."""

    turns: int | None
    """``None`` where it is not known (a published rate table)."""
    standing: Table
    """One row a contestant, by rating."""
    pairs: Table
    """One row an ordered pair; its csv is what ``--pairwise-rates`` reads."""
    win: pd.DataFrame
    """Win rate of the row against the column, both by rating; NaN where nothing was compared."""
    win_or_tie: pd.DataFrame
    comparisons: Rate
    """Readable comparisons (``n``) and missing ones; ``hits`` are the decided."""
    elo: EloSettings
    """How it is rated."""
    misfit: Table | None
    """The pairs that Bradley-Terry explains worst."""
    style: Table | None
    """What style is worth; ``None`` where the dialogues were not measured."""
    notes: tuple[str, ...]
    """What a reader must know of the ratings, a sentence each."""

    @property
    def ratings(self) -> dict[str, float]:
        """Contestant -> Elo, best first; without those that nothing readable was said about."""
        frame = self.standing.frame.dropna(subset="elo")
        return dict(zip(frame["model"], frame["elo"].tolist(), strict=True))


def arena(
    turns: int | None,
    tallies: Mapping[Pair, Tally],
    rated: EloResult,
    strengths: Strengths,
    signature: str,
    name: str = "arena",
) -> Arena:
    """The Arena's tables, wherever its counts come from.

    Args:
        turns: N.
        tallies: of every ordered pair of contestants (`botchat.protocols.rates.tallies`).
        rated: bootstrap Elo of those with a readable comparison.
        strengths: Bradley-Terry of the same.
        signature: how the comparisons were made and rated by Elo.
        name: file name of the tables, without ending.
    """
    at = f" at N = {turns}" if turns else ""
    elo = dict(zip(rated.models, rated.rating.tolist(), strict=True))
    run_std = dict(zip(rated.models, rated.run_std.tolist(), strict=True))
    fitted = strengths.rows()
    title, signature = f"BotChat Arena{at}", f"{signature}|{strengths.signature}"
    met: dict[str, list[Tally]] = {}
    for (model, _), tally in tallies.items():
        met.setdefault(model, []).append(tally)
    uneven = strengths.design.uneven
    rows = ranked(
        [
            {
                "model": model,
                "elo": elo.get(model),
                "elo_run_std": run_std.get(model),
                **fitted.get(model, {}),
                **_pairwise(sum(of_model, Tally())),
                **(_alike(of_model) if uneven else {}),
            }
            for model, of_model in met.items()
        ],
        ["elo"],
    )
    order = [row["model"] for row in rows]
    standing = table(
        name,
        title,
        [
            Column("rank", "Rank", "count", role="rank", of="elo"),
            MODEL,
            Column("elo", "Elo", "rating"),
            Column("elo_run_std", "± runs", "rating"),
            *STRENGTHS,
            *_PAIRWISE,
        ],
        rows,
        [signature],
        f"Rates in percent, of the comparisons with all others{_ALIKE if uneven else ''}. "
        "± runs is the spread between runs "
        f"of shuffles, not a confidence interval. {strengths.note()} {_BOUNDS}",
    )
    ordered = [(a, b) for a in order for b in order if a != b]
    pairs = table(
        f"{name}-pairs",
        f"{title}, pair by pair",
        [
            Column("model_a", "Model", "name"),
            Column("model_b", "Against", "name"),
            Column("win_rate", "Win", "rate"),
            Column("win_or_tie_rate", "Win + tie", "rate"),
            *_covered_columns(),
        ],
        [
            {
                "model_a": a,
                "model_b": b,
                "win_rate": tallies[a, b].win.value,
                "win_or_tie_rate": tallies[a, b].win_or_tie.value,
                **_covered(tallies[a, b].win),
            }
            for a, b in ordered
        ],
        [signature],
    )
    once = [tallies[a, b] for a, b in combinations(order, 2)]
    return Arena(
        turns=turns,
        standing=standing,
        pairs=pairs,
        win=_matrix(order, "win_rate", pairs),
        win_or_tie=_matrix(order, "win_or_tie_rate", pairs),
        comparisons=Rate(
            hits=sum(tally.wins + tally.losses for tally in once),
            n=sum(tally.n for tally in once),
            missing=sum(tally.missing for tally in once),
        ),
        elo=rated.settings,
        misfit=strengths.misfit_table(f"{name}-misfit", title, signature),
        style=strengths.style_table(f"{name}-style", title, signature),
        notes=tuple(f"{title}. {warning}" for warning in strengths.warnings),
    )


def unieval(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judgments: Iterable[Judgment],
    signature: str,
) -> Table:
    """UniEval's success rates, at each N that the dialogues reach and at the human length.

    Args:
        seeds: the set.
        dialogues: of at least the contestants that were judged.
        judgments: all of UniEval, of known contestants, at most one for each dialogue.
        signature: how they were made.
    """
    verdicts: dict[str, dict[str, Verdict | None]] = {}
    for judgment in judgments:
        verdicts.setdefault(judgment.contestants[0], {})[judgment.seed_id] = judgment.verdict
    generated = [name for name in verdicts if name != HUMAN] or [HUMAN]
    reached = (len(d.utterances) for name in generated for d in dialogues[name].values())
    longest = max(reached, default=rates.PASS_AT[-1])
    turns = [n for n in reversed(rates.PASS_AT) if n <= longest] or [longest]
    parts: list[tuple[str, str, int | None]] = [(f"_n{n}", f"@{n}", n) for n in turns]
    parts.append(("_human_length", "@human length", None))
    rows: list[Row] = []
    for name, said in verdicts.items():
        row: dict[str, Any] = {"model": name}
        for n in turns:
            row |= _success(f"_n{n}", rates.success(seeds, dialogues[name], said, n))
        at_human_length = rates.success_at_human_length(seeds, dialogues[name], said)
        rows.append(row | _success("_human_length", at_human_length))
    by_success = [f"success_n{n}" for n in turns]
    return table(
        "unieval",
        "UniEval",
        [
            MODEL,
            *(
                column
                for i, (suffix, heading, n) in enumerate(parts)
                for column in _success_columns(suffix, heading, n, detail=i > 0)
            ),
        ],
        descending(rows, by_success),
        [signature],
        "Success rate at N in percent: dialogues that the judge takes for human, or accuses only "
        "after utterance N; @human length: N is the length of the human dialogue, where that has "
        f"at least 4 utterances. {_BOUNDS}",
    )


def gteval(tallies: Mapping[str, Tally], signature: str) -> Table:
    """Win, tie and lose rates of each model against the human dialogues."""
    rows: list[Row] = [{"model": model, **_pairwise(tally)} for model, tally in tallies.items()]
    return table(
        "gteval",
        "GTEval",
        [MODEL, *_PAIRWISE],
        descending(rows, ["win_or_tie", "win"]),
        [signature],
        "Against the human dialogue of the same ChatSEED, cut to its length; in percent of "
        f"comparisons. A model wins where the judge takes the human dialogue for AI. {_BOUNDS}",
    )


def diagnosis(rows: Iterable[Row], signature: str) -> Table:
    """Error rates of each contestant, fewest points lost first.

    Args:
        rows: of `botchat.protocols.diagnosis.error_rates`.
        signature: how the diagnoses were made.
    """
    return table(
        DIAGNOSIS,
        "Diagnosis",
        [
            MODEL,
            Column("score", "Score", "number"),
            Column("any", "Any error", "rate"),
            Column("low", "Any error, low", "rate", detail=True, role="low", of="any"),
            Column("high", "Any error, high", "rate", detail=True, role="high", of="any"),
            *(Column(type_, name, "rate") for type_, name in ERRORS.items()),
            *(Column(f"score_{type_}", name, "number", True) for type_, name in ERRORS.items()),
            *(Column(f"readable_{type_}", name, "count", True) for type_, name in ERRORS.items()),
            Column("quoted", "Quotes found", "rate"),
            *_covered_columns(),
        ],
        descending(rows, ["score"]),
        [signature],
        "Dialogues with an error, in percent of those judged on it. Score: mean of one point less "
        "for every error, from 0. Quotes found: errors whose quoted words are in the utterance "
        "that the judge names, in percent.",
    )


def utterance_lengths(measured: lengths.Lengths, signature: str) -> Table:
    """Statistics of the lengths of generated utterances."""
    rows = []
    for name, values in measured.by_contestant.items():
        found = lengths.summary(values)
        rows.append(
            {
                "model": name,
                "utterances": found.n,
                f"mean_{measured.unit}": found.mean,
                "median": found.median,
                "p95": found.p95,
                "max": found.max,
                "sd": found.sd,
            }
        )
    return table(
        "lengths",
        "Length of generated utterances",
        [
            MODEL,
            Column("utterances", "Utterances", "count"),
            Column(f"mean_{measured.unit}", f"Mean {measured.unit}", "number"),
            Column("median", "Median", "number"),
            Column("p95", "95 %", "number"),
            Column("max", "Longest", "count"),
            Column("sd", "Std. dev.", "number"),
        ],
        descending(rows, [f"mean_{measured.unit}"])[::-1],
        [signature],
        f"In {measured.unit} an utterance; ChatSEED utterances are not counted.",
    )


def descending(rows: Iterable[Row], keys: Sequence[str]) -> list[Row]:
    """Rows by the first key, highest first, then by the next; missing values last, then by name."""

    def order(row: Row) -> tuple[Any, ...]:
        values = [row.get(key) for key in keys]
        return (*((True, 0.0) if pd.isna(v) else (False, -v) for v in values), row["model"])

    return sorted(rows, key=order)


def ranked(rows: Iterable[Row], keys: Sequence[str]) -> list[Row]:
    """Rows in `descending` order with a ``rank`` by the first key: equal values share the best."""
    ordered = descending(rows, keys)
    values = [row.get(keys[0]) if keys else None for row in ordered]
    return [
        row if pd.isna(value) else {**row, "rank": 1 + values.index(value)}
        for row, value in zip(ordered, values, strict=True)
    ]


_PAIRWISE = (
    Column("win", "Win", "rate"),
    Column("tie", "Tie", "rate"),
    Column("lose", "Lose", "rate"),
    Column("win_low", "Win, low", "rate", detail=True, role="low", of="win"),
    Column("win_high", "Win, high", "rate", detail=True, role="high", of="win"),
    Column("win_or_tie", "Win + tie", "rate"),
    Column("win_or_tie_low", "Low", "rate", role="low", of="win_or_tie"),
    Column("win_or_tie_high", "High", "rate", role="high", of="win_or_tie"),
    Column("readable", "Comparisons", "count", role="readable"),
    Column("missing", "Missing", "count", detail=True, role="missing"),
    Column("coverage", "Coverage", "rate", role="coverage"),
)


def _pairwise(tally: Tally) -> dict[str, Any]:
    win, win_or_tie = tally.win, tally.win_or_tie
    return {
        "win": win.value,
        "tie": Rate(tally.ties, tally.n, tally.missing).value,
        "lose": tally.mirrored.win.value,
        "win_low": win.lowest,
        "win_high": win.highest,
        "win_or_tie": win_or_tie.value,
        "win_or_tie_low": win_or_tie.lowest,
        "win_or_tie_high": win_or_tie.highest,
        **_covered(win),
    }


_ALIKE = ", each of whom counts alike"


def _alike(met: Iterable[Tally]) -> dict[str, float]:
    """Rates of a model whose opponents have unequal numbers: the mean over opponents."""
    known = [tally for tally in met if tally.n]
    if not known:
        return {}
    n = len(known)
    win = sum(tally.win.value for tally in known) / n
    win_or_tie = sum(tally.win_or_tie.value for tally in known) / n
    return {"win": win, "tie": win_or_tie - win, "lose": 1 - win_or_tie, "win_or_tie": win_or_tie}


def _success_columns(suffix: str, heading: str, n: int | None, detail: bool) -> list[Column]:
    of = f"success{suffix}"
    return [
        Column(of, heading, "rate", n=n),
        Column(f"low{suffix}", "Low", "rate", detail, role="low", of=of, n=n),
        Column(f"high{suffix}", "High", "rate", detail, role="high", of=of, n=n),
        *_covered_columns(suffix, detail=detail, of=of, n=n),
    ]


def _success(suffix: str, rate: Rate) -> dict[str, Any]:
    return {
        f"success{suffix}": rate.value,
        f"low{suffix}": rate.lowest,
        f"high{suffix}": rate.highest,
        **_covered(rate, suffix),
    }


def _covered_columns(
    suffix: str = "", *, detail: bool = False, of: str = "", n: int | None = None
) -> list[Column]:
    return [
        Column(f"readable{suffix}", "Readable", "count", detail, role="readable", of=of, n=n),
        Column(f"missing{suffix}", "Missing", "count", detail, role="missing", of=of, n=n),
        Column(f"coverage{suffix}", "Coverage", "rate", detail, role="coverage", of=of, n=n),
    ]


def _covered(rate: Rate, suffix: str = "") -> dict[str, Any]:
    return {
        f"readable{suffix}": rate.n,
        f"missing{suffix}": rate.missing,
        f"coverage{suffix}": rate.coverage,
    }


def _matrix(order: list[str], key: str, pairs: Table) -> pd.DataFrame:
    square = pairs.frame.pivot(index="model_a", columns="model_b", values=key)
    return square.reindex(index=order, columns=order).rename_axis(index=None, columns=None)
