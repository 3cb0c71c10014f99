"""Results of a protocol, one class a kind of answer: verdicts in, `Table` out.

Every rate has a 95 % interval, clustered by ChatSEED, and its number of cases.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

import numpy as np
import pandas as pd

from botchat.boards.skill import SkillCases
from botchat.boards.success import SuccessCurve as SuccessCurve
from botchat.boards.success import passes, success_curves
from botchat.boards.tables import COLUMNS, Column, N, Table, TableRow, share, table, with_ends
from botchat.estimates import Estimate, Flags, Floats, Indices
from botchat.metrics.statistics import (
    ClusteredCases,
    distinct,
    level_of_best,
    level_of_pairs,
    proportion,
    separated,
)
from botchat.metrics.verdicts import LOSS, TIE, WIN, Numbers, PairVerdicts
from botchat.protocols.kinds import Detection, Pairwise, Report, Score
from botchat.protocols.mateval import Diagnoses, diagnoses, error_rates
from botchat.protocols.protocol import PASS_AT, Protocol
from botchat.protocols.reports import ERRORS
from botchat.protocols.verdicts import first_ai_index
from botchat.ratings.bradley_terry import ranks_from_order
from botchat.ratings.comparisons import Comparisons, comparisons_of
from botchat.records import BLIND_PAGE, HUMAN, MIN_HUMAN, Dialogues, Judgment, Seeds, Texts

MODEL = Column("model", "Model", "name")


@dataclass(frozen=True)
class ProtocolVerdicts:
    """Verdicts of one judge in one protocol on the seeds and contestants of a board."""

    protocol: Protocol
    judgments: Sequence[Judgment]
    """On single dialogues, at most one for each."""
    verdicts: PairVerdicts
    """On pairs; none where the protocol is about single dialogues."""
    seeds: Seeds = ()
    dialogues: Dialogues = field(default_factory=dict)
    tested: SkillCases = field(default_factory=SkillCases)
    """On shuffled dialogues; none of a protocol that does not test its judges."""

    @cached_property
    def topics(self) -> Mapping[str, str]:
        """Seed -> its topic, where it has one; intervals are clustered by topic, else by seed."""
        return {seed.id: seed.topic for seed in self.seeds if seed.topic}

    @cached_property
    def counted(self) -> pd.DataFrame:
        """Whether a contestant (row) is counted on a seed of the protocol (column).

        One that was imported has its own dialogues, and is counted on their seeds alone.
        """
        seed_ids = [seed.id for seed in self.protocol.eligible(self.seeds)]
        counted = pd.DataFrame(True, list(self.dialogues), seed_ids)
        for name in imported_contestants(self.dialogues):
            counted.loc[name] = np.isin(seed_ids, list(self.dialogues[name]))
        return counted

    @cached_property
    def eligible(self) -> PairVerdicts:
        """Verdicts on pairs whose seeds the protocol has cases on."""
        return self.verdicts.on(self.counted.columns)

    @cached_property
    def comparisons(self) -> Comparisons:
        """The readable ones of `eligible`."""
        readable = self.eligible.only(self.eligible.readable)
        return comparisons_of(readable, self.cluster[readable.item], readable.item)

    @property
    def contestants(self) -> list[str]:
        """Contestants with a judgment, alone or in pairs."""
        return self.cases["model"].tolist() + self.verdicts.judged_contestants

    def row(self, name: str, n: int) -> dict[str, object]:
        """Begin the row of a contestant that has ``n`` readable verdicts on its dialogues."""
        return {"model": name, "n": n, "missing": self.counted.loc[name].sum() - n}

    @cached_property
    def cases(self) -> pd.DataFrame:
        """One row a judgment on a single dialogue, in their order.

        ``model``, ``seed``, ``topic`` (or the seed), ``shown`` utterances, and ``verdict``, missing
        where it cannot be read.
        """
        rows = []
        for judgment in self.judgments:
            seed = judgment.seed_id
            topic = self.topics.get(seed, seed)
            rows.append((judgment.contestants[0], seed, topic, judgment.shown, judgment.verdict))
        return pd.DataFrame(rows, columns=["model", "seed", "topic", "shown", "verdict"])

    @cached_property
    def ends(self) -> pd.DataFrame:
        """`cases` of a protocol that asks whether a dialogue is AI's.

        In place of the verdict ``first_ai``, the first AI utterance: NaN unreadable, else as
        `first_ai_index` or a place behind the last one.
        """
        first_ai = self.cases["verdict"].map(first_ai_index, na_action="ignore")
        return self.cases.drop(columns="verdict").assign(first_ai=first_ai.astype(float))

    @cached_property
    def cluster(self) -> Indices:
        """Number of the topic, or of itself, of each seed of ``verdicts``."""
        return Numbers().of(self.topics.get(item, item) for item in self.verdicts.items)

    def expected_pairs(self, names: list[str]) -> Indices:
        """Comparisons of each two of some contestants, in both orders, shape (m, m).

        Every pair is expected on each seed that both are counted on.
        """
        counted = self.counted.reindex(names, fill_value=True).to_numpy(np.intp)
        pairs: Indices = 2 * counted @ counted.T
        np.fill_diagonal(pairs, 0)
        return pairs

    @property
    def signatures(self) -> Counter[str]:
        """Signature -> number of verdicts that have it."""
        return Counter(j.signature for j in self.judgments) + self.verdicts.signatures

    @property
    def is_as_asked(self) -> bool:
        """Whether some verdicts answer today's prompt, as far as signatures name prompts."""
        parts = "|".join(self.signatures).split("|")
        prompts = {part for part in parts if part.startswith("prompt:")}
        return not prompts or bool(prompts & {f"prompt:{self.protocol.digest}", BLIND_PAGE})

    @cached_property
    def signature(self) -> str:
        """The most frequent signature, with the number of others if there are any."""
        signatures = self.signatures
        first = signatures.most_common(1)[0][0]
        many = ""
        if len(signatures) > 1:
            many = f"|and-{len(signatures) - 1}-other-settings"
        return f"{first}{many}{imported_signature(self.dialogues)}"


def imported_contestants(dialogues: Dialogues) -> dict[str, str]:
    """Contestant whose dialogues were made elsewhere -> ``imported:DIGEST``, of their signatures.

    A contestant has one signature, except where a run was cut off or made with other settings.
    """
    imported = {}
    for name, by_seed in dialogues.items():
        signatures = "|".join({dialogue.signature for dialogue in by_seed.values()})
        digests = {part for part in signatures.split("|") if part.startswith("imported:")}
        if digests:
            imported[name] = "+".join(sorted(digests))
    return imported


def imported_signature(dialogues: Dialogues) -> str:
    """End of a signature: which of the dialogues were made elsewhere."""
    return "".join(f"|{digest}" for digest in sorted(set(imported_contestants(dialogues).values())))


@dataclass(frozen=True)
class ProtocolResult:
    """Results of one judge's verdicts in one protocol; one subclass a kind of answer."""

    protocol: Protocol
    table: Table
    """One row a contestant, best first."""
    keys: Texts = field(default=(), kw_only=True)
    """Keys of the table's columns that contestants may be ranked by, most important first."""

    @property
    def ranking(self) -> list[Column]:
        """The columns that contestants may be ranked by."""
        return [self.table.column(key) for key in self.keys]

    def above(self, names: Texts, level: float) -> Flags:
        """Whether the row's contestant is better than the column's, of these, shape (m, m).

        ``level``: of each two-sided test.
        """
        column = self.ranking[0]
        values = self.table.by_model.loc[list(names), column.keys].to_numpy(float).T
        # An interval of a share is about as wide everywhere on this scale, and at its ends.
        if column.kind == "rate":
            values = 2 * np.arcsin(np.sqrt(values))
        value, low, high = values
        return separated(value, low, high, level)

    def may_be_best(self, names: Texts) -> Flags:
        """Whether each contestant may be the best of these, shape (m,).

        One that is alone leads clearly. Holds at 95 % for all comparisons with the best together
        (Hsu 1984).
        """
        first_rank = ranks_from_order(self.above(names, level_of_best(len(names))))[0]
        return np.equal(first_rank, 1)

    @property
    def ranks(self) -> pd.DataFrame:
        """Table of `rank_columns`, by the first column of `ranking`."""
        return rank_columns(self.table.by_model[self.ranking[0].keys], self.above)

    def quote(self, column: Column) -> Column:
        """A column as the main table calls it: by protocol, unless it leads, and N."""
        protocol = self.protocol
        key = column.key
        heading = column.heading
        if protocol.n is not None:
            key += f"_n{protocol.n}"
            heading += f" @{protocol.n}"
        if not protocol.leads:
            key = f"{protocol.name.replace('-', '_')}_{key}"
            if heading.casefold() == protocol.label.casefold():
                heading = protocol.label
            else:
                heading = f"{protocol.label} {heading[:1].lower()}{heading[1:]}"
        return replace(column, key=key, heading=heading)

    @property
    def n_dialogues(self) -> int:
        """Most dialogues of a contestant that a number rests on."""
        return int(self.table.frame["n"].max()) // self.protocol.orders


def rank_columns(values: pd.DataFrame, above: Callable[[Texts, float], Flags]) -> pd.DataFrame:
    """``rank``, equal values the same, and the ends of its interval, by contestant.

    ``values``: in columns with the ends of their intervals. Humans, who are what models are
    measured by, and contestants without a value or its interval have no rank.
    ``above``: see `ProtocolResult.above`.
    """
    known = values.drop(HUMAN, errors="ignore").dropna()
    low, high = ranks_from_order(above(list(known.index), level_of_pairs(len(known))))
    ranks = known.iloc[:, 0].rank(method="min", ascending=False)
    return pd.DataFrame({"rank": ranks, "rank_low": low, "rank_high": high})


@dataclass(frozen=True)
class DetectionResult(ProtocolResult):
    """A protocol that asks for the first AI utterance, such as UniEval."""

    curves: Mapping[str, SuccessCurve]
    """Contestant -> success rate at each N."""


class GTEvalResult(ProtocolResult):
    """A protocol that compares models with the human dialogue, such as GTEval."""


@dataclass(frozen=True)
class ReportResult(ProtocolResult):
    """A protocol that asks for a report, such as the diagnosis; it gives no ranking."""

    diagnoses: Diagnoses
    """Every report."""


def _result_table(
    judged: ProtocolVerdicts,
    columns: Sequence[Column],
    rows: Iterable[TableRow] | pd.DataFrame,
    note: str,
    by: Texts,
) -> Table:
    protocol = judged.protocol
    columns = [MODEL, *columns, *COUNTS]
    return table(protocol.name, protocol.title, columns, rows, [judged.signature], note, by)


def detection_result(judged: ProtocolVerdicts) -> DetectionResult:
    """Success rates, at each N that the dialogues reach and at the human length."""
    curves = success_curves(judged.ends)
    turns = success_turns(judged)
    columns = [Column(f"success_n{n}", f"Success @{n}", "rate", interval=True, n=n) for n in turns]
    keys = [column.key for column in columns]
    columns.append(share("success_human_length", "Success @human length"))
    human_length = {s.id: len(s.utterances) for s in judged.seeds if len(s.utterances) >= MIN_HUMAN}
    rows = []
    for name, ends in judged.ends.groupby("model", sort=False):
        row = judged.row(str(name), passes(ends, turns[0]).count())
        if name == HUMAN:
            n = ends["first_ai"].count()
            row |= {"n": n, "missing": len(ends) - n}
        passed = passes(ends, ends["seed"].map(human_length))
        row["success_human_length"] = _mean(passed, ends["topic"])
        if name in curves:
            row |= {key: curves[str(name)].at(n) for key, n in zip(keys, turns, strict=True)}
        rows.append(row)
    standing = _result_table(
        judged,
        columns,
        rows,
        "Success rate at N in percent: dialogues without an AI utterance up to N (Kaplan-Meier), "
        "with 95 % intervals; of human dialogues those with N utterances or more, from 20 on. "
        "@human length: N is the length of the human dialogue.",
        keys,
    )
    return DetectionResult(judged.protocol, standing, curves, keys=keys)


def _mean(values: pd.Series, topic: pd.Series, scale: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Return the mean of the values that are known, clustered by topic."""
    known = values.dropna()
    return proportion(known, topic[known.index].tolist(), scale)


def success_turns(judged: ProtocolVerdicts) -> list[int]:
    """Each N of the success rates that generated dialogues reach, the largest first."""
    lengths = []
    for name in set(judged.cases["model"]) - {HUMAN} or {HUMAN}:
        lengths += [len(dialogue.utterances) for dialogue in judged.dialogues[name].values()]
    longest = max(lengths)
    if judged.protocol.n is not None:
        longest = min(longest, judged.protocol.n)
    return [n for n in reversed(PASS_AT) if n <= longest] or [longest]


def results(comparisons: Comparisons, *, of_pairs: bool = False) -> pd.DataFrame:
    """Results of each model that was compared, or of each ordered pair, seen from the first.

    Columns: ``n`` comparisons, and for ``win``, ``tie``, ``lose`` and ``win_or_tie`` the share with
    the ends of its interval. With soft results ``win`` is the mean result, and no tie is known.
    """
    models = pd.Index(comparisons.models, dtype=object, name="model")
    names: pd.Index = models
    side = np.concatenate([comparisons.first, comparisons.second])
    if of_pairs:
        names = pd.MultiIndex.from_product([models, models], names=["model_a", "model_b"])
        other = np.concatenate([comparisons.second, comparisons.first])
        side = side * len(models) + other
    result = np.concatenate([comparisons.result, 1 - comparisons.result])
    cluster = None if comparisons.cluster is None else np.tile(comparisons.cluster, 2)
    numbers, row = distinct(side)
    columns: dict[str, Floats | Indices] = {"n": np.bincount(row, minlength=len(numbers))}
    hits = {
        "win": result == WIN,
        "tie": result == TIE,
        "lose": result == LOSS,
        "win_or_tie": result > LOSS,
    }
    if comparisons.is_soft:
        # The win rate is the mean result, as AlpacaEval's; ties are half of it.
        hits = {"win": result, "tie": result * np.nan, "lose": 1 - result, "win_or_tie": result}
    cases = ClusteredCases(row, cluster, len(numbers), np.tile(comparisons.weights, 2))
    for key, hit in hits.items():
        shares = cases.proportions(hit.astype(np.float64))
        columns |= with_ends(key, shares.value, shares.low, shares.high)
    return pd.DataFrame(columns, index=names[numbers])


def with_missing(
    results: pd.DataFrame,
    names: list[str] | list[tuple[str, str]],
    expected: pd.Series | Indices | int,
) -> pd.DataFrame:
    """Rows of ``names``, with the number of comparisons that are ``missing`` of the expected.

    ``expected``: of each row, shape (rows,), or the same of all.
    """
    frame = results.reindex(names)
    n = frame["n"].fillna(0)
    return frame.assign(n=n, missing=(expected - n).clip(lower=0))


def gteval_result(judged: ProtocolVerdicts) -> GTEvalResult:
    """Win, tie and lose rates of each model against the human dialogues."""
    models = [name for name in judged.verdicts.judged_contestants if name != HUMAN]
    pairs = [(model, HUMAN) for model in models]
    expected = judged.expected_pairs([*models, HUMAN])[:-1, -1]
    of_pairs = results(judged.comparisons, of_pairs=True)
    rows = with_missing(of_pairs, pairs, expected).assign(model=models)
    keys = ["win_or_tie", "win"]
    standing = _result_table(
        judged,
        COLUMNS.pairwise,
        rows,
        "Against the human dialogue of the same ChatSEED, cut to its length; in percent of "
        "comparisons, with 95 % intervals that allow for both orders of one ChatSEED. A model wins "
        "where the judge takes the human dialogue for AI.",
        keys,
    )
    return GTEvalResult(judged.protocol, standing, keys=keys)


def score_result(judged: ProtocolVerdicts, answer: Score) -> ProtocolResult:
    """The mean of each number, with its 95 % interval over dialogues (Student's t)."""
    scale = answer.scale
    columns = [
        Column(f"mean_{i}", name, "decimal", interval=True) for i, name in enumerate(scale.names, 1)
    ]
    keys = [column.key for column in columns]
    rows = []
    for model, cases in judged.cases.groupby("model", sort=False):
        readable = cases.dropna(subset="verdict")
        row = judged.row(str(model), len(readable))
        known = [answer.scores(verdict) for verdict in readable["verdict"]]
        # What a verdict lacks is NaN.
        scores = pd.DataFrame(known, readable.index, keys, dtype=float)
        for key in keys:
            row[key] = _mean(scores[key], readable["topic"], (scale.lowest, scale.highest))
        rows.append(row)
    standing = _result_table(
        judged,
        columns,
        rows,
        f"Means over dialogues of scores from {scale.lowest} to {scale.highest}, with 95 % "
        "intervals; a dialogue without a readable score is missing.",
        keys,
    )
    return ProtocolResult(judged.protocol, standing, keys=keys)


def report_result(judged: ProtocolVerdicts) -> ReportResult:
    """Error rates of each contestant, fewest points lost first."""
    reported = diagnoses(judged.judgments, judged.dialogues)
    standing = _result_table(
        judged,
        [
            Column("score", "Score", "number", interval=True),
            *(share(key, name) for key, name in ERRORS.items()),
            share("quoted", "Quotes found"),
        ],
        error_rates(
            judged.judgments, reported, judged.counted.sum(axis=1).to_dict(), judged.topics
        ),
        "Dialogues with an error, in percent of those judged on it, with 95 % intervals. "
        "Score: mean of one point less for every error, from 0. Quotes found: errors whose quoted "
        "words are in the utterance that the judge names, in percent.",
        ["score"],
    )
    return ReportResult(judged.protocol, standing, reported)


COUNTS = (N, Column("missing", "Missing", "count", detail=True))
RANK = Column("rank", "Rank", "rank", interval=True)


def protocol_result(judged: ProtocolVerdicts) -> ProtocolResult:
    """The result of a protocol that needs no rating."""
    match judged.protocol.answer:
        case Detection():
            return detection_result(judged)
        case Pairwise():
            return gteval_result(judged)
        case Score() as answer:
            return score_result(judged, answer)
        case Report():
            return report_result(judged)
        case _ as unknown:
            assert_never(unknown)
