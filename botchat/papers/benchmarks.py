"""What is asked of judges in a data set, and what the replies are worth beside people's.

**A new benchmark is one class**, a value of ``botchat.papers.bench.BENCHMARKS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from botchat.boards import judge_agreement, which_judge
from botchat.boards.judge_agreement import PRICE, Findings
from botchat.boards.tables import Column, table
from botchat.boards.writers import Formats
from botchat.interfaces import Row
from botchat.metrics import lengths
from botchat.metrics.annotations import Opinions
from botchat.metrics.correlation import Rating, compare_scores
from botchat.papers import chateval, tables
from botchat.papers.chateval import ASPECTS
from botchat.papers.printed import column, table_of
from botchat.pipeline.agree import (
    compare_judges,
    expenses,
    publish,
    signature,
)
from botchat.pipeline.run.ask import Cases
from botchat.pipeline.run.contestants import method, own_name
from botchat.protocols import scores
from botchat.protocols.answers import ANSWERS, pair_cases, pair_labels
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import calibrated, preferences
from botchat.records import Judgment
from botchat.requests.results import Compared
from botchat.workspace.folder import Workspace

Files = Mapping[str, bytes]
"""Name -> content of upstream's files."""

Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""

PEOPLE = "human labels"
"""What upstream's labels are filed under; no judge has such a name."""

RANKS = ("spearman", "kendall")


@dataclass(frozen=True)
class Answered:
    """What judges have said about a benchmark."""

    workspace: Workspace
    judged: Mapping[str, Judgments]
    """By name of the protocol; with controls."""
    formats: Formats | None
    """Of the file of each table (csv)."""
    out: Path

    def all(self, protocol: Protocol) -> list[Judgment]:
        """Of every judge."""
        return [judgment for each in self.judged[protocol.name].values() for judgment in each]

    def costs(self, protocol: Protocol) -> dict[str, Row]:
        """Judge -> price of a verdict."""
        return expenses(self.workspace, self.judged[protocol.name])


class Benchmark(ABC):
    """One data set, made of upstream's files."""

    figures: ClassVar[tuple[str, ...]]
    """What a judge's runs are compared by."""
    cases: Sequence[Cases]
    """What is asked."""

    @abstractmethod
    def __init__(self, files: Files) -> None:
        """Raises `MissingDataError` without the files, `DataError` for what is wrong in them."""

    @abstractmethod
    def compared(self, answered: Answered) -> Compared:
        """Everybody who has judged, beside people."""


_IN_ORDER = (
    "consistency", "same_winner", "first_preferred", "length_preference", "self_preference",
)  # fmt: skip
"""Figures of FairEval that only verdicts in one order have, or that need both orders."""


class FairEval(Benchmark):
    """Which of two answers is better, in both orders (Wang et al. 2023; ChatEval §4.1)."""

    figures = ("accuracy", "kappa")

    def __init__(self, files: Files) -> None:
        """See `botchat.papers.chateval.faireval`."""
        self._pairs = chateval.faireval(files)
        self.cases = [Cases(ANSWERS, list(pair_cases(self._pairs)))]

    def compared(self, answered: Answered) -> Compared:
        """ChatEval's Table 1, and judges with each other."""
        workspace, judged = answered.workspace, answered.judged[ANSWERS.name]
        everything = answered.all(ANSWERS)
        people = pair_labels(self._pairs, PEOPLE)
        selves = {name: own_name(workspace, name) for name in judged}
        both = [*people, *calibrated(everything, ANSWERS)]
        found = compare_judges(both, PEOPLE, selves=selves)
        shown = Opinions.of([*people, *preferences(everything, ANSWERS)], PEOPLE)
        in_order = compare_judges(
            shown,
            PEOPLE,
            lengths={
                (pair.id, name): lengths.words(text)
                for pair in self._pairs
                for name, text in zip(pair.contestants, pair.answers, strict=True)
            },
            selves=selves,
        )
        costs = answered.costs(ANSWERS)
        rows = []
        for row, one_order in zip(found.rows, in_order.rows, strict=True):
            evaluator, how = method(workspace, row["judge"])
            head = {"judge": row["judge"], "evaluator": evaluator, "method": how}
            apart = {f"{key}_one_order": one_order[key] for key in ("accuracy", "kappa")}
            taken = ends_of(one_order, _IN_ORDER, "")
            rows.append({**head, **row, **taken, **apart, **costs[row["judge"]]})
        data = [(a.item, a.first, a.second, a.judge, a.verdict) for a in both]
        findings = Findings(
            **vars(
                replace(found, rows=which_judge.in_order(replace(found, rows=rows)), annotators=())
            ),
            subject="FairEval",
            truth="people's majority",
            signature=signature("bench", {"benchmark": "faireval"}, data, PEOPLE),
            notes=[*which_judge.other_cases(found)],
        )
        first = tables.chateval_1(findings.rows, findings.signature)
        others = [part for part in judge_agreement.tables(findings) if part.name != "judges"]
        beside = [table_of("faireval")]
        return publish(findings, [first, *others, *beside], answered.out, formats=answered.formats)


def ends_of(found: Row, figures: Iterable[str], begin: str) -> Row:
    """Some figures with the ends of their intervals, their keys with ``begin`` before them."""
    keys = [f"{figure}{end}" for figure in figures for end in ("", "_low", "_high")]
    return {f"{begin}{key}": found[key] for key in keys}


def of_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """The columns of all parts and of their average."""
    return tuple(f"{part}_{figure}" for part in (*parts, "average") for figure in RANKS)


def in_one_row(parts: Iterable[str], found: Mapping[str, Row]) -> Row:
    """Part -> correlations of a judge, as one row: ``PART_spearman`` …, ``average_spearman`` …."""
    row: Row = {key: sum(of[key] for of in found.values()) for key in ("n", "unreadable")}
    for part, of in found.items():
        row |= ends_of(of, RANKS, f"{part}_")
    for figure in RANKS:
        values = [row.get(f"{part}_{figure}") for part in parts]
        known = [value for value in values if value is not None]
        row[f"average_{figure}"] = fmean(known) if len(known) == len(values) else None
    return row


class RatedTexts(Benchmark):
    """Texts that judges and people give numbers, one for each of several parts."""

    name: ClassVar[str]
    table: ClassVar[tuple[str, str]]
    """Name and title of its table, which is the paper's."""
    first: ClassVar[Column]
    """Whose a row is."""
    part: ClassVar[str]
    """Key of the parts' names in rows: ``aspect``."""
    parts: Mapping[str, Protocol]
    """What a number is about -> the question that asks for it."""

    @abstractmethod
    def labels(self, part: str) -> list[Rating]:
        """People's numbers of a part."""

    @abstractmethod
    def ratings(self, part: str, judged: Sequence[Judgment]) -> list[Rating]:
        """Judges' numbers of a part."""

    def compared(self, answered: Answered) -> Compared:
        """Correlations in the paper's layout."""
        said = {part: self.ratings(part, answered.all(of)) for part, of in self.parts.items()}
        costs = {of.name: answered.costs(of) for of in self.parts.values()}
        prices = {part: costs[of.name] for part, of in self.parts.items()}
        return self.beside_people(said, prices, answered.formats, answered.out)

    def beside_people(
        self,
        said: Mapping[str, Sequence[Rating]],
        prices: Mapping[str, Mapping[str, Row]],
        formats: Formats | None,
        out: Path,
    ) -> Compared:
        """Correlations with people's; ``said``, ``prices``: by part, the latter by judge."""
        data: list[Any] = []
        rows: list[Row] = []
        pairs: list[Row] = []
        by_judge: dict[str, dict[str, Row]] = {}
        for part in self.parts:
            rated = [*self.labels(part), *said[part]]
            found = compare_scores(rated, PEOPLE)
            data += [[part, asdict(rating)] for rating in rated]
            pairs += [{self.part: part, **row} for row in found.pairs]
            for row in found.rows:
                head = {self.first.key: row["judge"], self.part: part}
                rows.append({**head, **row, **prices[part].get(row["judge"], {})})
                by_judge.setdefault(row["judge"], {})[part] = rows[-1]
        signed = signature("bench", {"benchmark": self.name}, data, PEOPLE)
        columns = [self.first, *map(column, self.figures), _UNREADABLE, *PRICE]
        lines = [{**of[part], **in_one_row(self.parts, of)} for of in by_judge.values()]
        shown = [
            table(*self.table, columns, lines, [signed], _SCORED).filled(),
            table_of(self.name),
        ]
        findings = Findings(subject=shown[0].title, truth=PEOPLE, signature=signed)
        answer = _by_correlation(lines, self.first.key)
        whole = {"answer": answer, "rows": rows, "pairs": pairs, "signature": signed}
        return publish(findings, shown, out, whole, formats, answer)


_UNREADABLE = Column("unreadable", "Unreadable", "count")
_SCORED = (
    "Spearman and Kendall of all texts' scores with people's mean scores. Unreadable scores are "
    "counted and left out."
)


def _by_correlation(lines: Sequence[Row], judge: str) -> list[str]:
    """Who agrees most with people, by the mean of its correlations; ``judge``: key of its name."""
    known = [row for row in lines if row["average_spearman"] is not None]
    known = [row for row in known if not which_judge.control_of(row[judge])]
    if len(known) < 2:
        return []
    best = max(known, key=lambda row: float(row["average_spearman"]))
    value = f"mean Spearman {best['average_spearman']:.2f}"
    return [f"{best[judge]} agrees most with people of {len(known)} judges ({value})."]


class TopicalChat(RatedTexts):
    """Responses rated in four aspects (Mehri and Eskenazi 2020; ChatEval §4.2)."""

    name, part = "topicalchat", "aspect"
    table = (
        "chateval-table-2",
        "Topical-Chat: correlation with people (layout of ChatEval, Table 2)",
    )
    first = Column("judge", "Metrics", "name")
    figures = of_parts(ASPECTS)
    parts = ASPECTS

    def __init__(self, files: Files) -> None:
        """See `botchat.papers.chateval.topical_chat`."""
        self._responses = chateval.topical_chat(files)
        self.cases = [
            Cases(of, [partial(chateval.aspect_case, one, aspect) for one in self._responses])
            for aspect, of in self.parts.items()
        ]

    def labels(self, part: str) -> list[Rating]:
        """Of an aspect."""
        return chateval.aspect_labels(self._responses, part, PEOPLE)

    def ratings(self, _: str, judged: Sequence[Judgment]) -> list[Rating]:
        """Of an aspect."""
        return scores.ratings(judged)
