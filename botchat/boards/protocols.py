"""What a judge's verdicts come to, a part for each kind of answer: verdicts in, `Table` out.

Every rate stands beside what it covers, and has the bounds that missing verdicts leave open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

import pandas as pd

from botchat.boards.coverage import Covered
from botchat.boards.strengths import COLUMNS as STRENGTHS
from botchat.boards.strengths import Strengths
from botchat.boards.survival import Curve, curves, survival
from botchat.boards.tables import Column, Table, table
from botchat.interfaces import Row
from botchat.measures import lengths
from botchat.measures.statistics import mean_interval
from botchat.protocols import rates
from botchat.protocols.kinds import Protocol
from botchat.protocols.pairs import Verdicts
from botchat.protocols.rates import Rate, Tally
from botchat.protocols.reports import ERRORS
from botchat.ratings.elo import EloResult, EloSettings
from botchat.records import HUMAN, Dialogues, Judgment, Seed, Verdict

Pair = tuple[str, str]

MODEL = Column("model", "Model", "name")

_BOUNDS = (
    "Low and high bound the rate: they count every missing verdict as a failure or as a success."
)


@dataclass(frozen=True)
class Quoted:
    """A column of a protocol's table that the board's main table takes."""

    table: Table
    column: str
    """Its key there."""
    key: str
    """Its key in the main table."""
    heading: str
    detail: bool = False
    ranks: bool = True
    """Whether contestants may be ranked by it."""
    low: str = ""
    high: str = ""
    """Keys of the ends of its interval, where it has one."""

    @property
    def as_column(self) -> Column:
        """Itself under its own name."""
        kind = next(c.kind for c in self.table.columns if c.key == self.column)
        return Column(self.key, self.heading, kind, self.detail)

    @property
    def values(self) -> dict[str, float]:
        """Contestant -> value."""
        frame = self.table.frame
        return dict(zip(frame["model"], frame[self.column].tolist(), strict=True))


class Part(ABC):
    """What one judge's verdicts in one protocol come to; one subclass a kind of answer."""

    protocol: Protocol
    table: Table
    """One row a contestant, best first."""

    @property
    def tables(self) -> list[Table]:
        """Every table that a reader wants, most important first."""
        return [self.table]

    @property
    def details(self) -> list[Table]:
        """Tables for machines, or that explain the others."""
        return []

    @property
    @abstractmethod
    def quoted(self) -> list[Quoted]:
        """The numbers that the protocol is quoted by, most important first."""

    @property
    def covered(self) -> Covered:
        """Where the table says how many cases have a verdict."""
        return Covered(self.protocol, self.table)

    @property
    def coverage(self) -> Quoted:
        """The same for the main table."""
        column = f"coverage{self.covered.suffix}"
        heading = f"{self.protocol.label} coverage"
        return Quoted(self.table, column, f"coverage_{self.protocol.key}", heading)

    def named(self, key: str) -> str:
        """A key of the main table: the protocol's name stands before it unless it leads."""
        return key if self.protocol.leads else f"{self.protocol.key}_{key}"

    def headed(self, heading: str) -> str:
        """Likewise a heading."""
        if self.protocol.leads:
            return heading
        return f"{self.protocol.label} {heading[:1].lower()}{heading[1:]}"


@dataclass(frozen=True)
class Arena(Part):
    """A protocol about pairs at one N, such as BotChat Arena."""

    protocol: Protocol
    """Without N where it is not known (a published rate table)."""
    table: Table
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
    def turns(self) -> int | None:
        """N."""
        return self.protocol.n

    @property
    def details(self) -> list[Table]:
        """What style is worth, what the ratings do not explain."""
        return [part for part in (self.style, self.misfit) if part is not None]

    @property
    def quoted(self) -> list[Quoted]:
        """Elo, as in the paper."""
        heading = "Elo" if self.turns is None else f"Elo @{self.turns}"
        at = "" if self.turns is None else f"_n{self.turns}"
        return [Quoted(self.table, "elo", self.named(f"elo{at}"), self.headed(heading))]

    @property
    def intervals(self) -> list[Quoted]:
        """Bradley-Terry, its interval and group."""
        return [
            Quoted(
                self.table,
                key,
                self.named(f"{key}_n{self.turns}"),
                self.headed(f"{heading} @{self.turns}"),
                detail,
                ranks=False,
            )
            for key, heading, detail in (
                ("bt_group", "Group", False),
                ("bt", "Bradley–Terry", False),
                ("bt_low", "Low", True),
                ("bt_high", "High", True),
            )
        ]

    @property
    def ratings(self) -> dict[str, float]:
        """Contestant -> Elo, best first; without those that nothing readable was said about."""
        frame = self.table.frame.dropna(subset="elo")
        return dict(zip(frame["model"], frame["elo"].tolist(), strict=True))


@dataclass(frozen=True)
class Place(Part):
    """A protocol that asks for a place, such as UniEval."""

    protocol: Protocol
    table: Table
    survival: Table | None
    """By which utterance each contestant's dialogues are accused."""
    curves: Mapping[str, Curve]
    """Contestant -> the same, utterance by utterance; in the order of the table."""
    reached: tuple[int, ...]
    """Each N of the success rates, largest first."""

    @property
    def tables(self) -> list[Table]:
        """Success rates and survival."""
        return [self.table, *([self.survival] if self.survival is not None else [])]

    @property
    def quoted(self) -> list[Quoted]:
        """Success rates, largest N first, then at the human length, which ranks nobody."""
        found = [(f"success_n{n}", f"Success @{n}", True) for n in self.reached]
        found.append(("success_human_length", "Success @human length", False))
        return [
            Quoted(self.table, key, self.named(key), self.headed(heading), ranks=ranks)
            for key, heading, ranks in found
        ]

    @property
    def covered(self) -> Covered:
        """At the largest N."""
        n = self.reached[0]
        return Covered(self.protocol, self.table, f"_n{n}", n)


@dataclass(frozen=True)
class BesideHuman(Part):
    """A protocol that sets models beside people, such as GTEval."""

    protocol: Protocol
    table: Table

    @property
    def quoted(self) -> list[Quoted]:
        """The paper's metric."""
        return [
            Quoted(self.table, "win_or_tie", self.named("win_or_tie"), self.headed("win + tie"))
        ]


@dataclass(frozen=True)
class Scored(Part):
    """A protocol that asks for numbers about one dialogue, such as somebody's own criterion."""

    protocol: Protocol
    table: Table

    @property
    def quoted(self) -> list[Quoted]:
        """The mean of each number."""
        return [
            Quoted(
                self.table,
                f"mean_{i}",
                self.named(f"mean_{i}"),
                self.headed(name),
                low=f"low_{i}",
                high=f"high_{i}",
            )
            for i, name in enumerate(self.protocol.asked_scale.names, 1)
        ]


@dataclass(frozen=True)
class Reported(Part):
    """A protocol that asks for a report, such as the diagnosis."""

    protocol: Protocol
    table: Table
    diagnoses: rates.Diagnoses
    """Every report."""

    @property
    def quoted(self) -> list[Quoted]:
        """None: how many errors a judge lists depends on the judge more than on the dialogue."""
        return []


def arena(
    protocol: Protocol,
    tallies: Mapping[Pair, Tally],
    rated: EloResult,
    strengths: Strengths,
    signature: str,
) -> Arena:
    """The Arena's tables, wherever its counts come from.

    Args:
        protocol: what was judged.
        tallies: of every ordered pair of contestants (`botchat.protocols.rates.tallies`).
        rated: bootstrap Elo of those with a readable comparison.
        strengths: Bradley-Terry of the same.
        signature: how the comparisons were made and rated by Elo.
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
        protocol=protocol,
        table=standing,
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


def place(
    protocol: Protocol,
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judgments: Sequence[Judgment],
    signature: str,
) -> Place:
    """Success rates, at each N that the dialogues reach and at the human length; survival.

    Args:
        protocol: what was judged.
        seeds: the set.
        dialogues: of at least the contestants that were judged.
        judgments: of known contestants, at most one for each dialogue.
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
    shown = table(
        protocol.name,
        protocol.title,
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
        f"Success rate at N in percent: dialogues that the judge {_FINDS[protocol.about_ai]} "
        "after utterance N; @human length: N is the length of the human dialogue, where that has "
        f"at least 4 utterances. {_BOUNDS}",
    )
    found = curves(judgments, dialogues)
    survived = survival(found, seeds, signature) if found else None
    if survived is not None and not protocol.leads:
        survived = replace(survived, name=f"{protocol.name}-{survived.name}")
    return Place(protocol, shown, survived, found, tuple(turns))


_FINDS = {True: "takes for human, or accuses only", False: "finds nothing in, or only"}


def beside_human(
    protocol: Protocol, verdicts: Verdicts, seeds: Sequence[Seed], signature: str
) -> BesideHuman:
    """Win, tie and lose rates of each model against the human dialogues."""
    models = [name for name in verdicts.judged_contestants if name != HUMAN]
    seed_ids = [seed.id for seed in protocol.eligible(seeds)]
    tallies = rates.tallies(verdicts, [(model, HUMAN) for model in models], seed_ids)
    rows = [{"model": model, **_pairwise(tallies[model, HUMAN])} for model in models]
    shown = table(
        protocol.name,
        protocol.title,
        [MODEL, *_PAIRWISE],
        descending(rows, ["win_or_tie", "win"]),
        [signature],
        "Against the human dialogue of the same ChatSEED, cut to its length; in percent of "
        f"comparisons. A model wins where the judge takes the human dialogue for AI. {_BOUNDS}",
    )
    return BesideHuman(protocol, shown)


def scored(
    protocol: Protocol, judgments: Sequence[Judgment], seeds: Sequence[Seed], signature: str
) -> Scored:
    """The mean of each number, with its 95 % interval over dialogues (Student's t)."""
    given: dict[str, list[tuple[float, ...] | None]] = {}
    for judgment in judgments:
        said = protocol.numbers(judgment.verdict)
        given.setdefault(judgment.contestants[0], []).append(said)
    names = protocol.asked_scale.names
    rows = []
    for model, verdicts in given.items():
        known = [said for said in verdicts if said is not None]
        row: Row = {"model": model}
        for i, values in enumerate(zip(*known, strict=True), 1):
            low, high = mean_interval(values)
            row |= {f"mean_{i}": fmean(values), f"low_{i}": low, f"high_{i}": high}
        rows.append(row | _covered(Rate(0, len(known), len(seeds) - len(known))))
    scale = protocol.asked_scale
    shown = table(
        protocol.name,
        protocol.title,
        [
            MODEL,
            *(
                column
                for i, name in enumerate(names, 1)
                for column in (
                    Column(f"mean_{i}", name, "decimal"),
                    Column(f"low_{i}", "95 % low", "decimal", role="low", of=f"mean_{i}"),
                    Column(f"high_{i}", "95 % high", "decimal", role="high", of=f"mean_{i}"),
                )
            ),
            *_covered_columns(),
        ],
        descending(rows, [f"mean_{i}" for i, _ in enumerate(names, 1)]),
        [signature],
        f"Means over dialogues of scores from {scale.lowest} to {scale.highest}, with 95 % "
        "intervals; a dialogue without a readable score is missing.",
    )
    return Scored(protocol, shown)


def reported(
    protocol: Protocol,
    judgments: Sequence[Judgment],
    dialogues: Dialogues,
    seeds: Sequence[Seed],
    signature: str,
) -> Reported:
    """Error rates of each contestant, fewest points lost first."""
    diagnoses = rates.diagnoses(judgments, dialogues)
    rows = rates.error_rates(judgments, diagnoses, len(seeds))
    shown = table(
        protocol.name,
        protocol.title,
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
    return Reported(protocol, shown, diagnoses)


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
