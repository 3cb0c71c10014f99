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

from botchat.boards import judge_agreement
from botchat.boards.judge_agreement import HUMAN_LABELS, PRICE, AgreementReport, debate_of
from botchat.boards.tables import Column, table
from botchat.boards.writers import Formats
from botchat.interfaces import Row
from botchat.metrics import lengths
from botchat.metrics.agreement import ItemScore, compare, compare_scores
from botchat.metrics.annotations import VerdictArrays
from botchat.papers import chateval
from botchat.papers.chateval import ASPECTS
from botchat.papers.printed import column, table_of
from botchat.pipeline.agree import publish, signature
from botchat.pipeline.ledger import expenses
from botchat.pipeline.run.ask import Cases
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

    cases: Sequence[Cases]
    """What is asked."""

    @abstractmethod
    def __init__(self, files: Files) -> None:
        """Raises `MissingDataError` without the files, `DataError` for what is wrong in them."""

    @abstractmethod
    def compared(self, answered: Answered) -> Compared:
        """Everybody who has judged, beside people."""


class FairEval(Benchmark):
    """Which of two answers is better, in both orders (Wang et al. 2023; ChatEval §4.1)."""

    def __init__(self, files: Files) -> None:
        """See `botchat.papers.chateval.faireval`."""
        self._pairs = chateval.faireval(files)
        self.cases = [Cases(ANSWERS, list(pair_cases(self._pairs)))]

    def compared(self, answered: Answered) -> Compared:
        """Judges by the sum of their scores in both orders; position by each order alone."""
        everything = answered.all(ANSWERS)
        labels = pair_labels(self._pairs, HUMAN_LABELS)
        arrays = VerdictArrays.of([*labels, *calibrated(everything, ANSWERS)], HUMAN_LABELS)
        words = {
            (pair.id, name): lengths.words(text)
            for pair in self._pairs
            for name, text in zip(pair.contestants, pair.answers, strict=True)
        }
        found = compare(arrays, HUMAN_LABELS)
        shown = [*labels, *preferences(everything, ANSWERS)]
        costs, rows = answered.costs(ANSWERS), []
        in_order = compare(shown, HUMAN_LABELS, words).judges
        for row, one_order in zip(found.judges, in_order, strict=True):
            both = ends_of(one_order, ("consistency", "first_preferred", "longer_preferred"), "")
            apart = {f"{key}_one_order": one_order[key] for key in ("accuracy", "kappa")}
            rows.append({**row, **both, **apart, **costs[row["judge"]]})
        report = AgreementReport(
            **vars(replace(found, judges=judge_agreement.ordered(rows), annotators=())),
            subject="FairEval",
            labels=HUMAN_LABELS,
            signature=signature("bench", {"benchmark": "faireval"}, arrays.digest, HUMAN_LABELS),
        )
        tables = [*judge_agreement.tables(report), table_of("faireval")]
        return publish(report, tables, answered.out, formats=answered.formats)


def ends_of(found: Row, figures: Iterable[str], begin: str) -> Row:
    """Some figures with the ends of their intervals, their keys with ``begin`` before them."""
    keys = [f"{figure}{end}" for figure in figures for end in ("", "_low", "_high")]
    return {f"{begin}{key}": found[key] for key in keys}


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
    def labels(self, part: str) -> list[ItemScore]:
        """People's numbers of a part."""

    @abstractmethod
    def ratings(self, part: str, judged: Sequence[Judgment]) -> list[ItemScore]:
        """Judges' numbers of a part."""

    def compared(self, answered: Answered) -> Compared:
        """Correlations in the paper's layout."""
        rated = {part: self.ratings(part, answered.all(of)) for part, of in self.parts.items()}
        costs = {of.name: answered.costs(of) for of in self.parts.values()}
        prices = {part: costs[of.name] for part, of in self.parts.items()}
        return self.beside_people(rated, prices, answered.formats, answered.out)

    def beside_people(
        self,
        ratings: Mapping[str, Sequence[ItemScore]],
        prices: Mapping[str, Mapping[str, Row]],
        formats: Formats | None,
        out: Path,
    ) -> Compared:
        """Correlations with people's; ``ratings``, ``prices``: by part, the latter by judge."""
        data: list[Any] = []
        rows: list[Row] = []
        pairs: list[Row] = []
        by_judge: dict[str, dict[str, Row]] = {}
        for part in self.parts:
            rated = [*self.labels(part), *ratings[part]]
            found = compare_scores(rated, HUMAN_LABELS)
            data += [[part, asdict(rating)] for rating in rated]
            pairs += [{self.part: part, **row} for row in found.pairs]
            for row in found.judges:
                head = {self.first.key: row["judge"], self.part: part}
                rows.append({**head, **row, **prices[part].get(row["judge"], {})})
                by_judge.setdefault(row["judge"], {})[part] = rows[-1]
        signed = signature("bench", {"benchmark": self.name}, data, HUMAN_LABELS)
        figures = (f"{part}_{figure}" for part in (*self.parts, "average") for figure in RANKS)
        unreadable = Column("unreadable", "Unreadable", "count")
        columns = [self.first, *map(column, figures), unreadable, *PRICE]
        lines = [{**of[part], **_in_one_row(of)} for of in by_judge.values()]
        shown = table(*self.table, columns, lines, [signed], _SCORED).filled()
        notes = _by_correlation(lines, self.first.key)
        report = AgreementReport(
            subject=shown.title, labels=HUMAN_LABELS, signature=signed, notes=notes
        )
        whole = {"sentences": notes, "judges": rows, "pairs": pairs, "signature": signed}
        return publish(report, [shown, table_of(self.name)], out, whole, formats)


_SCORED = (
    "Spearman and Kendall of all texts' scores with people's mean scores. Unreadable scores are "
    "counted and left out."
)


def _in_one_row(found: Mapping[str, Row]) -> Row:
    """Part -> correlations of a judge, as one row: ``PART_spearman`` …, ``average_spearman`` …."""
    row: Row = {key: sum(of[key] for of in found.values()) for key in ("n", "unreadable")}
    for part, of in found.items():
        row |= ends_of(of, RANKS, f"{part}_")
    for figure in RANKS:
        values = [of[figure] for of in found.values()]
        row[f"average_{figure}"] = None if None in values else fmean(values)
    return row


def _by_correlation(lines: Sequence[Row], judge: str) -> list[str]:
    """Who agrees most with people, by the mean of its correlations; ``judge``: key of its name."""
    known = [row for row in lines if row["average_spearman"] is not None]
    known = [row for row in known if not debate_of(row[judge])]
    if len(known) < 2:
        return []
    best = max(known, key=lambda row: float(row["average_spearman"]))
    value = f"mean Spearman {best['average_spearman']:.2f}"
    return [f"{best[judge]} agrees most with people of {len(known)} judges ({value})."]


class TopicalChat(RatedTexts):
    """Responses rated in four aspects (Mehri and Eskenazi 2020; ChatEval §4.2)."""

    name, part, parts = "topicalchat", "aspect", ASPECTS
    table = (
        "chateval-table-2",
        "Topical-Chat: correlation with people (layout of ChatEval, Table 2)",
    )
    first = Column("judge", "Metrics", "name")

    def __init__(self, files: Files) -> None:
        """See `botchat.papers.chateval.topical_chat`."""
        self._responses = chateval.topical_chat(files)
        self.cases = [
            Cases(of, [partial(chateval.aspect_case, one, aspect) for one in self._responses])
            for aspect, of in self.parts.items()
        ]

    def labels(self, part: str) -> list[ItemScore]:
        """People's mean scores of an aspect."""
        return [
            ItemScore(response.id, response.contestant, HUMAN_LABELS, response.scores[part])
            for response in self._responses
        ]

    def ratings(self, _: str, judged: Sequence[Judgment]) -> list[ItemScore]:
        """Of an aspect."""
        return scores.ratings(judged)
