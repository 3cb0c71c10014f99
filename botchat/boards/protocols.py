"""Results of a protocol, one class a kind of answer: verdicts in, `Table` out.

Every rate has a 95 % interval, clustered by ChatSEED, and its number of cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from botchat.boards.pairs import PairCounts, PairRates, comparisons_of
from botchat.boards.tables import (
    Column,
    Getter,
    Table,
    rank_by,
    table,
    with_ends,
    with_interval,
)
from botchat.interfaces import Row
from botchat.metrics.annotations import BLIND_PAGE, NOT_SAID, accused_index
from botchat.metrics.intervals import (
    ci_columns,
    clustered_proportions,
    proportion_ci,
    separated,
    wilson,
)
from botchat.protocols.mateval import Diagnoses, diagnoses, error_rates
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import PASS_AT, Rate, successes
from botchat.protocols.reports import ERRORS
from botchat.ratings.bradley_terry import ranks_from_order
from botchat.records import HUMAN, UNDECIDED, Dialogues, Judgment, Seed
from botchat.verdicts import Flags, Floats, Indices, Verdicts

MODEL = Column("model", "Model", "name", getter=str)


@dataclass(frozen=True)
class ProtocolVerdicts:
    """What one judge said in one protocol about the seeds and contestants of a board."""

    protocol: Protocol
    judgments: Sequence[Judgment]
    """On single dialogues, at most one for each."""
    verdicts: Verdicts
    """On pairs; none where the protocol is about single dialogues."""
    imported: str = ""
    """End of the signature: which of the dialogues were made elsewhere."""
    counted: Mapping[str, Sequence[Seed]] = field(default_factory=dict)
    """Contestant -> the seeds that it is counted on, where that is not all."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Seed -> its topic, where it has one; intervals are clustered by topic, else by seed."""

    @cached_property
    def by_contestant(self) -> Mapping[str, Sequence[Judgment]]:
        """Contestant -> the judgments on its dialogues, in their order."""
        found: dict[str, list[Judgment]] = {}
        for one in self.judgments:
            found.setdefault(one.contestants[0], []).append(one)
        return found

    def topics_of(self, judgments: Iterable[Judgment]) -> list[str]:
        """Return the topic of each judgment's seed, or the seed."""
        return [self.topics.get(one.seed_id, one.seed_id) for one in judgments]

    @cached_property
    def cluster(self) -> Indices:
        """Number of the topic, or of itself, of each seed of ``verdicts``."""
        numbers: dict[str, int] = {}
        names = (self.topics.get(seed_id, seed_id) for seed_id in self.verdicts.seed_ids)
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.intp)

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
class ProtocolResult:
    """Results of one judge's verdicts in one protocol; one subclass a kind of answer."""

    protocol: Protocol
    table: Table
    """One row a contestant, best first."""
    keys: Sequence[str] = field(default=(), kw_only=True)
    """Of the columns of the table that the protocol is quoted by, most important first."""

    @property
    def main_columns(self) -> list[Column]:
        """The columns that the protocol is quoted by."""
        return [self.table.column(key) for key in self.keys]

    @property
    def ranking(self) -> list[Column]:
        """Those of `main_columns` that contestants may be ranked by."""
        return self.main_columns

    def better(self, names: Sequence[str]) -> Flags:
        """Whether the row's contestant is significantly better than the column's, shape (m, m)."""
        column = self.ranking[0]
        keys = [column.key, *(end.key for end in self.table.ends(column.key) or ())]
        told = self.table.frame.set_index("model").loc[[*names], keys].to_numpy(dtype=float).T
        # An interval of a share is about as wide everywhere on this scale, and at its ends.
        return separated(*(2 * np.arcsin(np.sqrt(told)) if column.kind == "rate" else told))

    @property
    def places(self) -> list[Column]:
        """The ends of the rank interval, for the main table."""
        column = self.ranking[0]
        known = {k: v for k, v in self.table.values(column.key).items() if v == v and k != HUMAN}
        intervals = ranks_from_order(self.better([*known]))
        _, *ends = with_ends(rank_by(column.key), detail=True)
        return [
            replace(end, getter=dict(zip(known, ranks.tolist(), strict=True)).get)
            for end, ranks in zip(ends, intervals, strict=True)
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
        """`main_columns` for the main table, each with the ends of its interval."""
        return [
            replace(self.quote(one), priority=max(column.priority, min(i, 1)))
            for i, column in enumerate(self.main_columns)
            for one in (column, *(self.table.ends(column.key) or ()))
        ]

    @property
    def n_dialogues(self) -> int:
        """Most dialogues of a contestant that a number rests on."""
        return int(self.table.frame["n"].max()) // self.protocol.orders

    def _key(self, key: str) -> str:
        at = "" if self.protocol.n is None else f"_n{self.protocol.n}"
        before = "" if self.protocol.leads else f"{self.protocol.name.replace('-', '_')}_"
        return f"{before}{key}{at}"


@dataclass(frozen=True)
class DetectionResult(ProtocolResult):
    """A protocol that asks for the first AI utterance, such as UniEval."""

    curves: Mapping[str, SuccessCurve]
    """Contestant -> success rate at each N."""

    @property
    def main_columns(self) -> list[Column]:
        """Success rates, largest N first, then at the human length."""
        return [replace(one, heading=f"Success {one.heading}") for one in super().main_columns]

    @property
    def ranking(self) -> list[Column]:
        """The success rates at an N."""
        return self.main_columns[:-1]


class GTEvalResult(ProtocolResult):
    """A protocol that compares models with the human dialogue, such as GTEval."""


@dataclass(frozen=True)
class ReportResult(ProtocolResult):
    """A protocol that asks for a report, such as the diagnosis; it is not quoted."""

    diagnoses: Diagnoses
    """Every report."""


@dataclass(frozen=True, eq=False)
class SuccessCurve:
    """Success rate at each N (Kaplan & Meier 1958); place i of both is N = i + 1.

    ``rate``: 0 to 1, nan beyond the longest dialogue. ``n``: independent dialogues that it is
    worth, of those that reach N or have an AI utterance before. A model's dialogue that breaks off
    early counts as far as it goes; a human one that ends without being called AI has passed.
    """

    rate: Floats
    n: Floats

    @classmethod
    def of(
        cls, ends: Sequence[tuple[int, bool]], topics: Sequence[str], longest: int
    ) -> SuccessCurve:
        """``ends``: the first AI utterance of each dialogue and true, or its last and false."""
        end, is_ai = np.array(ends, np.intp).reshape(-1, 2).T
        n = np.arange(1, longest + 1)
        known = (end >= n[:, None]) | (is_ai == 1)
        failed = (end <= n[:, None]) & (is_ai == 1)
        at_risk = (end >= n[:, None]).sum(1)
        gone = np.bincount(end[is_ai == 1], minlength=longest + 1)[1 : longest + 1]
        rate: Floats = np.cumprod(1 - gone / np.maximum(at_risk, 1), dtype=np.float64)
        rate[rate < 1e-12] = 0
        rate[(at_risk == 0) & (rate > 0)] = np.nan
        row, dialogue = np.nonzero(known)
        cluster = np.unique(topics, return_inverse=True)[1]
        passed = 1.0 - failed[row, dialogue]
        return cls(rate, clustered_proportions(row, cluster[dialogue], passed, longest).n)

    def row(self, n: int, key: str) -> Row:
        """The columns of the success rate at N = ``n``."""
        if n > len(self.rate):
            return ci_columns(key, *[np.nan] * 3)
        value = float(self.rate[n - 1])
        return ci_columns(key, value, *map(float, wilson(value, 1 / self.n[n - 1])))


def success_curves(judged: ProtocolVerdicts, dialogues: Dialogues) -> dict[str, SuccessCurve]:
    """Contestant -> its curve, up to the longest dialogue with a readable verdict."""
    ends: dict[str, list[tuple[int, bool]]] = {}
    topics: dict[str, list[str]] = {}
    longest = 0
    for judgment, topic in zip(judged.judgments, judged.topics_of(judged.judgments), strict=True):
        (name,) = judgment.contestants
        if judgment.verdict in (None, UNDECIDED):
            continue
        n = len(dialogues[name][judgment.seed_id].utterances)
        index = accused_index(judgment.verdict, f"{name} on seed {judgment.seed_id}")
        # An index after the last utterance was not offered; it counts as the last one.
        last = n if index == NOT_SAID else min(n, index or n)
        ends.setdefault(name, []).append((last, index > 0))
        topics.setdefault(name, []).append(topic)
        longest = max(longest, n)
    passed = [(end if is_ai else longest, is_ai) for end, is_ai in ends.get(HUMAN, ())]
    ends |= {HUMAN: passed} if passed else {}
    return {name: SuccessCurve.of(each, topics[name], longest) for name, each in ends.items()}


def _standing(
    judged: ProtocolVerdicts,
    columns: Iterable[Column],
    rows: Iterable[Row],
    note: str,
    by: Sequence[str],
) -> Table:
    """The table of a protocol."""
    protocol, columns = judged.protocol, [MODEL, *columns]
    return table(protocol.name, protocol.title, columns, rows, [judged.signature], note, by)


def detection_result(
    judged: ProtocolVerdicts, seeds: Sequence[Seed], dialogues: Dialogues
) -> DetectionResult:
    """Success rates, at each N that the dialogues reach and at the human length."""
    protocol = judged.protocol
    dialogues = protocol.seen(dialogues)
    turns = success_turns(judged, dialogues)
    by_utterance = success_curves(judged, dialogues)
    rows: list[Row] = []
    for name, judgments in judged.by_contestant.items():
        said = {one.seed_id: one.verdict for one in judgments}
        row: Row = {"model": name}
        for n in (*turns, None):
            passed = successes(judged.counted.get(name, seeds), dialogues[name], said, n)
            known = {id_: result for id_, result in passed.items() if result is not None}
            key = f"success{_after(n)}"
            # At the largest N.
            row.setdefault("rate", Rate(sum(known.values()), len(known), len(passed) - len(known)))
            if n is None or name == HUMAN:
                # Human dialogues are complete at their own length: none is cut short.
                topics = [judged.topics.get(id_, id_) for id_ in known]
                row |= proportion_ci([*known.values()], topics, key)
            elif name in by_utterance:
                row |= by_utterance[name].row(n, key)
        rows.append(row)
    shown = _standing(
        judged,
        [
            *(column for n in turns for column in _success(n, f"@{n}")),
            *_success(None, "@human length"),
            *covered(lambda row: row["rate"]),
        ],
        rows,
        "Success rate at N in percent: dialogues without an AI utterance up to N (Kaplan-Meier), "
        "with 95 % intervals. @human length: N is the length of the human dialogue.",
        [f"success_n{n}" for n in turns],
    )
    keys = [f"success{_after(n)}" for n in (*turns, None)]
    return DetectionResult(protocol, shown, by_utterance, keys=keys)


def success_turns(judged: ProtocolVerdicts, dialogues: Dialogues) -> list[int]:
    """Each N of the success rates that generated dialogues reach, the largest first."""
    names = {judgment.contestants[0] for judgment in judged.judgments}
    generated = names - {HUMAN} or {HUMAN}
    reached = (len(d.utterances) for name in generated for d in dialogues[name].values())
    longest = max(reached, default=PASS_AT[-1])
    return [n for n in reversed(PASS_AT) if n <= longest] or [longest]


def _after(n: int | None) -> str:
    """Ends the keys of what is at N, or at the human length."""
    return "_human_length" if n is None else f"_n{n}"


def gteval_result(judged: ProtocolVerdicts, seeds: Sequence[Seed]) -> GTEvalResult:
    """Win, tie and lose rates of each model against the human dialogues."""
    contestants = judged.verdicts.judged_contestants
    seed_ids = [seed.id for seed in judged.protocol.eligible(seeds)]
    counted = judged.verdicts.on(seed_ids)
    compared = comparisons_of(counted.only(counted.readable), judged.cluster)
    counted_pairs = PairCounts.of(compared, contestants, 2 * len(seed_ids))
    rates = PairRates(compared, by_pair=True)
    shown = _standing(
        judged,
        PAIRWISE,
        [
            {
                "model": model,
                "counts": counted_pairs.of_pair(model, HUMAN),
                **rates.row(model, HUMAN),
            }
            for model in contestants
            if model != HUMAN
        ],
        "Against the human dialogue of the same ChatSEED, cut to its length; in percent of "
        "comparisons, with 95 % intervals that allow for both orders of one ChatSEED. A model wins "
        "where the judge takes the human dialogue for AI.",
        ["win_or_tie", "win"],
    )
    return GTEvalResult(judged.protocol, shown, keys=["win_or_tie"])


def score_result(judged: ProtocolVerdicts, seeds: Sequence[Seed]) -> ProtocolResult:
    """The mean of each number, with its 95 % interval over dialogues (Student's t)."""
    protocol, scale, rows = judged.protocol, judged.protocol.asked_scale, []
    keys = [f"mean_{i}" for i, _ in enumerate(scale.names, 1)]
    for model, judgments in judged.by_contestant.items():
        readable = [one for one in judgments if one.verdict is not None]
        known = [protocol.scores(one.verdict) or () for one in readable]
        missing = len(judged.counted.get(model, seeds)) - len(known)
        row: Row = {"model": model, "rate": Rate(0, len(known), missing)}
        topics = judged.topics_of(readable)
        for key, scores in zip(keys, zip(*known, strict=True), strict=False):
            if given := [each for each in zip(scores, topics, strict=True) if each[0] is not None]:
                values, of = zip(*given, strict=True)
                row |= proportion_ci(values, of, key, (scale.lowest, scale.highest))
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
    return ProtocolResult(protocol, shown, keys=keys)


def report_result(
    judged: ProtocolVerdicts, seeds: Sequence[Seed], dialogues: Dialogues
) -> ReportResult:
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
            *with_interval(Column("quoted", "Quotes found", "rate")),
            Column("n", "n", "count", getter=itemgetter("readable")),
            Column("missing", "Missing", "count", detail=True),
        ],
        error_rates(judged.judgments, reported, len(seeds), judged.topics),
        "Dialogues with an error, in percent of those judged on it, with 95 % intervals. "
        "Score: mean of one point less for every error, from 0. Quotes found: errors whose quoted "
        "words are in the utterance that the judge names, in percent.",
        ["score"],
    )
    return ReportResult(judged.protocol, shown, reported)


def covered(rate: Getter) -> tuple[Column, Column]:
    """The number of cases of a row's `Rate`, and of those that are missing."""
    return (
        Column("n", "n", "count", getter=lambda row: rate(row).n),
        Column("missing", "Missing", "count", detail=True, getter=lambda row: rate(row).missing),
    )


PAIRWISE = (
    *with_interval(Column("win", "Win", "rate")),
    *with_interval(Column("tie", "Tie", "rate")),
    *with_interval(Column("lose", "Lose", "rate")),
    *with_interval(Column("win_or_tie", "Win + tie", "rate")),
    *covered(lambda row: row["counts"].win),
)
"""Of rows with ``counts`` and the columns of `PairRates`."""


def _success(n: int | None, heading: str) -> tuple[Column, Column, Column]:
    """A success rate at N, or at the human length (None)."""
    return with_interval(Column(f"success{_after(n)}", heading, "rate", n=n))


def result(judged: ProtocolVerdicts, seeds: Sequence[Seed], dialogues: Dialogues) -> ProtocolResult:
    """The result of a protocol that needs no rating."""
    if judged.protocol.shows == "human":
        return gteval_result(judged, seeds)
    if judged.protocol.kind == "place":
        return detection_result(judged, seeds, dialogues)
    if judged.protocol.kind == "report":
        return report_result(judged, seeds, dialogues)
    return score_result(judged, seeds)
