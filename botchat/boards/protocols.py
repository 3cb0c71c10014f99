"""What a judge's verdicts come to, a part for each kind of answer: verdicts in, `Table` out.

Every rate has a 95 % interval, for other ChatSEEDs, and stands beside what it covers.

A new column is a `Column` of the part whose table it is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from statistics import fmean

import numpy as np

from botchat.boards.results import Sides, Tallies, comparisons_of
from botchat.boards.survival import Curve, curves
from botchat.boards.tables import (
    Column,
    Getter,
    Kind,
    Role,
    Table,
    rank_by,
    table,
    with_ends,
    with_interval,
)
from botchat.interfaces import Row
from botchat.metrics.annotations import BLIND_PAGE
from botchat.metrics.intervals import entries, mean, of_share
from botchat.protocols.mateval import Diagnoses, diagnoses, error_rates
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import PASS_AT, Rate, success
from botchat.protocols.reports import ERRORS
from botchat.ratings.places import apart
from botchat.records import HUMAN, Dialogues, Judgment, Seed
from botchat.verdicts import Flags, Verdicts

MODEL = Column("model", "Model", "name", getter=str)


@dataclass(frozen=True)
class Evidence:
    """What one judge said in one protocol about the seeds and contestants of a board."""

    protocol: Protocol
    judgments: Sequence[Judgment]
    """On single dialogues, at most one for each."""
    verdicts: Verdicts
    """On pairs; none where the protocol is about single dialogues."""
    sure: Row = field(default_factory=dict)
    """See `botchat.boards.judge_health.sureness`; empty where the judgments are not at hand."""
    imported: str = ""
    """End of the signature: which of the dialogues were made elsewhere."""
    counted: Mapping[str, Sequence[Seed]] = field(default_factory=dict)
    """Contestant -> the seeds that it is counted on, where that is not all: see `own_seeds`."""
    undecided: Collection[tuple[str, str]] = ()
    """(contestant, seed id) of dialogues of which people cannot tell; their verdict is ``None``."""

    @cached_property
    def by_contestant(self) -> Mapping[str, Sequence[Judgment]]:
        """Contestant -> the judgments on its dialogues, in their order."""
        found: dict[str, list[Judgment]] = {}
        for one in self.judgments:
            found.setdefault(one.contestants[0], []).append(one)
        return found

    @property
    def signatures(self) -> Counter[str]:
        """How the verdicts were made -> how many."""
        return Counter(one.signature for one in self.judgments) + self.verdicts.signatures

    @property
    def is_as_asked(self) -> bool:
        """Whether the prompt is still the one that some of it answers, as far as they say."""
        parts = {part for one in self.signatures for part in one.split("|")}
        prompts = {part for part in parts if part.startswith("prompt:")}
        return not prompts or bool(prompts & {f"prompt:{self.protocol.digest}", BLIND_PAGE})

    @property
    def signature(self) -> str:
        """The most frequent of the signatures; says so if there are others."""
        (first, _), *others = self.signatures.most_common()
        many = f"|and-{len(others)}-other-settings" if others else ""
        return f"{first}{many}{self.imported}"


@dataclass(frozen=True)
class Part:
    """What one judge's verdicts in one protocol come to; one subclass a kind of answer."""

    protocol: Protocol
    table: Table
    """One row a contestant, best first."""
    keys: Sequence[str] = field(default=(), kw_only=True)
    """Of the columns of the table that the protocol is quoted by, most important first."""

    @property
    def tables(self) -> list[Table]:
        """Every table that a reader wants, most important first."""
        return [self.table]

    @property
    def quoted(self) -> list[Column]:
        """The columns that the protocol is quoted by."""
        return [self.table.column(key) for key in self.keys]

    @property
    def ranking(self) -> list[Column]:
        """Those of `quoted` that contestants may be ranked by."""
        return self.quoted

    def better(self, names: Sequence[str]) -> Flags:
        """Whether who is of the row is clearly better than who is of the column, by `ranking`."""
        column = self.ranking[0]
        keys = [column.key, *(end.key for end in self.table.ends(column.key) or ())]
        told = self.table.frame.set_index("model").loc[[*names], keys].to_numpy(dtype=float).T
        # An interval of a share is about as wide everywhere on this scale, and at its ends.
        return apart(*(2 * np.arcsin(np.sqrt(told)) if column.kind == "rate" else told))

    @property
    def places(self) -> list[Column]:
        """The places that are left open, for the main table: ends of its rank."""
        column = self.ranking[0]
        known = {k: v for k, v in self.table.values(column.key).items() if v == v and k != HUMAN}
        better = self.better([*known])
        found = 1 + better.sum(axis=0), len(known) - better.sum(axis=1)
        _, *rank = with_ends(rank_by(column.key), detail=True)
        return [
            replace(end, getter=dict(zip(known, at.tolist(), strict=True)).get)
            for end, at in zip(rank, found, strict=True)
        ]

    def quote(self, column: Column) -> Column:
        """A column for the main table, by contestant; named by protocol, unless it leads, and N."""
        heading, label = column.heading, self.protocol.label
        if self.protocol.n is not None:
            heading = f"{heading} @{self.protocol.n}"
        if not self.protocol.leads:
            said_once = heading.casefold() == label.casefold()
            heading = label if said_once else f"{label} {heading[:1].lower()}{heading[1:]}"
        ending = f"_{column.role}" if column.role in ("low", "high") else ""
        return replace(
            column,
            key=f"{self._key(column.of)}{ending}" if ending else self._key(column.key),
            heading=heading,
            detail=column.role in ("low", "high"),
            of=self._key(column.of) if column.of else "",
            getter=self.table.values(column.key).get,
        )

    def quoted_with_ends(self) -> list[Column]:
        """`quoted` for the main table, each with the ends of its interval; the first is kept."""
        return [
            replace(self.quote(one), priority=max(column.priority, min(i, 1)))
            for i, column in enumerate(self.quoted)
            for one in (column, *(self.table.ends(column.key) or ()))
        ]

    @property
    def coverage(self) -> Column:
        """The first coverage of the table, for the main table."""
        quoted = self.quote(self.table.column(role="coverage"))
        name = self.protocol.name.replace("-", "_")
        key, heading = f"coverage_{name}", f"{self.protocol.label} coverage"
        return replace(quoted, key=key, heading=heading, of="")

    def _key(self, key: str) -> str:
        at = "" if self.protocol.n is None else f"_n{self.protocol.n}"
        before = "" if self.protocol.leads else f"{self.protocol.name.replace('-', '_')}_"
        return f"{before}{key}{at}"


@dataclass(frozen=True)
class Place(Part):
    """A protocol that asks for a place, such as UniEval."""

    curves: Mapping[str, Curve]
    """Contestant -> how many of its dialogues are not accused yet, utterance by utterance."""

    @property
    def quoted(self) -> list[Column]:
        """Success rates, largest N first, then at the human length."""
        return [replace(one, heading=f"Success {one.heading}") for one in super().quoted]

    @property
    def ranking(self) -> list[Column]:
        """The success rates at an N."""
        return self.quoted[:-1]


class BesideHuman(Part):
    """A protocol that sets models beside people, such as GTEval."""


class Scored(Part):
    """A protocol that asks for numbers about one dialogue, such as somebody's own criterion."""


@dataclass(frozen=True)
class Reported(Part):
    """A protocol that asks for a report, such as the diagnosis; it is not quoted."""

    diagnoses: Diagnoses
    """Every report."""


def _standing(
    judged: Evidence, columns: Iterable[Column], rows: Iterable[Row], note: str, by: Sequence[str]
) -> Table:
    """The table of a protocol."""
    protocol, columns = judged.protocol, [MODEL, *columns]
    return table(protocol.name, protocol.title, columns, rows, [judged.signature], note, by)


def place(judged: Evidence, seeds: Sequence[Seed], dialogues: Dialogues) -> Place:
    """Success rates, at each N that the dialogues reach and at the human length."""
    protocol = judged.protocol
    dialogues = protocol.seen(dialogues)
    turns = success_turns(judged, dialogues)
    by_utterance = curves(judged.judgments, dialogues)
    rows: list[Row] = []
    for name, judgments in judged.by_contestant.items():
        said = {one.seed_id: one.verdict for one in judgments}
        row: Row = {"model": name}
        for n in (*turns, None):
            rate = success(judged.counted.get(name, seeds), dialogues[name], said, n)
            after = _after(n)
            key = f"success{after}"
            row[f"rate{after}"] = rate
            if n is None or name == HUMAN:
                # People's dialogues are complete at their own length: none is cut short.
                row |= entries(key, rate.value, *of_share(rate.hits, rate.n))
            elif name in by_utterance:
                row |= by_utterance[name].at(n, key)
        rows.append(row)
    shown = _standing(
        judged,
        [
            *(column for n in turns for column in _success(n, f"@{n}", detail=n < turns[0])),
            *_success(None, "@human length", detail=True),
        ],
        rows,
        f"Success rate at N in percent: dialogues that the judge {_FINDS[protocol.about_ai]} "
        "after utterance N, by Kaplan-Meier, so that one which stops unaccused before N counts as "
        "far as it goes, with 95 % intervals. @human length: N is the length of the human "
        "dialogue, where that has at least 4 utterances.",
        [f"success_n{n}" for n in turns],
    )
    keys = [f"success{_after(n)}" for n in (*turns, None)]
    return Place(protocol, shown, by_utterance, keys=keys)


def success_turns(judged: Evidence, dialogues: Dialogues) -> list[int]:
    """Each N of the success rates that generated dialogues reach, the largest first."""
    names = {judgment.contestants[0] for judgment in judged.judgments}
    generated = names - {HUMAN} or {HUMAN}
    reached = (len(d.utterances) for name in generated for d in dialogues[name].values())
    longest = max(reached, default=PASS_AT[-1])
    return [n for n in reversed(PASS_AT) if n <= longest] or [longest]


_FINDS = {True: "takes for human, or accuses only", False: "finds nothing in, or only"}


def _after(n: int | None) -> str:
    """Ends the keys of what is at N, or at the human length."""
    return "_human_length" if n is None else f"_n{n}"


def beside_human(judged: Evidence, seeds: Sequence[Seed]) -> BesideHuman:
    """Win, tie and lose rates of each model against the human dialogues."""
    contestants = judged.verdicts.judged_contestants
    seed_ids = [seed.id for seed in judged.protocol.eligible(seeds)]
    counted = judged.verdicts.on(seed_ids)
    compared = comparisons_of(counted.only(counted.readable))
    tallies = Tallies.of(compared, contestants, 2 * len(seed_ids))
    beside = Sides.of(compared).by_pair()
    shown = _standing(
        judged,
        PAIRWISE,
        [
            {"model": model, "tally": tallies.of_pair(model, HUMAN), **beside(model, HUMAN)}
            for model in contestants
            if model != HUMAN
        ],
        "Against the human dialogue of the same ChatSEED, cut to its length; in percent of "
        "comparisons, with 95 % intervals that allow for both orders of one ChatSEED. A model wins "
        "where the judge takes the human dialogue for AI.",
        ["win_or_tie", "win"],
    )
    return BesideHuman(judged.protocol, shown, keys=["win_or_tie"])


def scored(judged: Evidence, seeds: Sequence[Seed]) -> Scored:
    """The mean of each number, with its 95 % interval over dialogues (Student's t)."""
    protocol, scale, rows = judged.protocol, judged.protocol.asked_scale, []
    keys = [f"mean_{i}" for i, _ in enumerate(scale.names, 1)]
    for model, judgments in judged.by_contestant.items():
        known = [said for one in judgments if (said := protocol.scores(one.verdict)) is not None]
        row: Row = {"model": model, "rate": _rate(judged, seeds, model, 0, len(known))}
        for key, told in zip(keys, zip(*known, strict=True), strict=False):
            if values := [number for number in told if number is not None]:
                row |= entries(key, fmean(values), *mean(values, scale.lowest, scale.highest))
        rows.append(row)
    means = zip(keys, scale.names, strict=True)
    columns = [c for key, name in means for c in with_interval(Column(key, name, "decimal"))]
    shown = _standing(
        judged,
        [*columns, *covered(itemgetter("rate"))],
        rows,
        f"Means over dialogues of scores from {scale.lowest} to {scale.highest}, with 95 % "
        "intervals; a dialogue without a readable score is missing.",
        keys,
    )
    return Scored(protocol, shown, keys=keys)


def _rate(judged: Evidence, seeds: Sequence[Seed], name: str, hits: int, n: int) -> Rate:
    """Of a contestant's dialogues, one on each seed that it is counted on."""
    return Rate(hits, n, len(judged.counted.get(name, seeds)) - n)


def reported(judged: Evidence, seeds: Sequence[Seed], dialogues: Dialogues) -> Reported:
    """Error rates of each contestant, fewest points lost first."""
    reported = diagnoses(judged.judgments, dialogues)
    types = [Column(type_, name, "rate") for type_, name in ERRORS.items()]
    shown = _standing(
        judged,
        [
            *with_interval(Column("score", "Score", "number")),
            *with_interval(Column("any", "Any error", "rate", detail=True)),
            *(column for type_ in types for column in with_interval(type_)),
            *(Column(f"score_{type_}", name, "number", True) for type_, name in ERRORS.items()),
            *(Column(f"readable_{type_}", name, "count", True) for type_, name in ERRORS.items()),
            *with_interval(Column("quoted", "Quotes found", "rate")),
            *covered(),
        ],
        error_rates(judged.judgments, reported, len(seeds)),
        "Dialogues with an error, in percent of those judged on it, with 95 % intervals. "
        "Score: mean of one point less for every error, from 0. Quotes found: errors whose quoted "
        "words are in the utterance that the judge names, in percent.",
        ["score"],
    )
    return Reported(judged.protocol, shown, reported)


def covered(rate: Getter | None = None, of: Column | None = None, after: str = "") -> list[Column]:
    """The cases of a row's `Rate`, without ``rate`` of the row itself; ``after`` ends the keys."""

    def part(name: str) -> Getter | None:
        return rate and (lambda row: getattr(rate(row), name))

    found = []
    for role, kind, name in _COVERED:
        key, heading = f"{role}{after}", role.capitalize()
        found.append(Column(key, heading, kind, role=role, getter=part(name)))
    return [replace(column, of=of.key, n=of.n) for column in found] if of else found


_COVERED: tuple[tuple[Role, Kind, str], ...] = (
    ("readable", "count", "n"),
    ("missing", "count", "missing"),
    ("coverage", "rate", "coverage"),
)
"""Role and key, kind, and which number of a `Rate` it is."""


_COMPARISONS, _MISSING, _COVERAGE = covered(lambda row: row["tally"].win)
PAIRWISE = (
    *with_interval(Column("win", "Win", "rate")),
    *with_interval(Column("tie", "Tie", "rate")),
    *with_interval(Column("lose", "Lose", "rate")),
    *with_interval(Column("win_or_tie", "Win + tie", "rate")),
    replace(_COMPARISONS, heading="Comparisons"),
    replace(_MISSING, detail=True),
    _COVERAGE,
)
"""Of rows with a ``tally`` and the entries of `Sides`."""


def _success(n: int | None, heading: str, *, detail: bool) -> list[Column]:
    """A success rate at N, or at the human length (``None``), and what it is from."""
    after = _after(n)
    key = f"success{after}"
    value = Column(key, heading, "rate", n=n)
    counts = covered(lambda row: row[f"rate{after}"], value, after)
    return [
        *with_interval(value),
        *(replace(column, detail=detail) for column in counts),
    ]
