"""Benchmarks of judges: cases, and a comparison of the replies with human labels or scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from botchat.boards import judge_agreement
from botchat.boards.judge_agreement import HUMAN_LABELS, PRICE, AgreementReport, debate_of
from botchat.boards.tables import Column, Table, table
from botchat.errors import ConfigError, DataError
from botchat.importers.rows import read_text
from botchat.importers.tables import SUFFIXES, rows
from botchat.interfaces import Row
from botchat.metrics import lengths
from botchat.metrics.agreement import ItemScore, compare, compare_scores
from botchat.metrics.annotations import VerdictArrays
from botchat.papers import chateval
from botchat.papers.chateval import ASPECTS
from botchat.papers.printed import column, tables_of
from botchat.pipeline.agree import publish, signature
from botchat.pipeline.ledger import expenses
from botchat.pipeline.run.ask import Cases
from botchat.protocols.answers import ANSWERS, AnswerPair, pair_cases, pair_labels
from botchat.protocols.items import items, paragraphs
from botchat.protocols.mateval import MATEVAL, TEXT, OwnText, text_case
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import calibrated, preferences
from botchat.protocols.replies import plain_name
from botchat.protocols.reports import KINDS, as_prose, as_text, parse_text, reports
from botchat.records import Judgment
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

Files = Mapping[str, bytes]
"""Name -> content of upstream's files."""

Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""

Scores = tuple[float | None, ...]
"""Of a verdict; None: missing."""

RANKS = ("spearman", "kendall")


@dataclass(frozen=True)
class Answered:
    """What judges have said about a benchmark."""

    workspace: Workspace
    judged: Mapping[str, Judgments]
    """By name of the protocol; with controls."""
    formats: Sequence[str]
    """Of the file of each table (csv)."""
    out: Path
    cases: Sequence[Table] = ()
    """A table of every verdict, of an own file."""

    def all(self, protocol: Protocol) -> list[Judgment]:
        """Of every judge."""
        return [judgment for each in self.judged[protocol.name].values() for judgment in each]

    def costs(self, protocol: Protocol) -> dict[str, Row]:
        """Judge -> price of a verdict."""
        return expenses(self.workspace, self.judged[protocol.name])


@dataclass(frozen=True)
class AnswerPairs:
    """Which of two answers is better, in both orders (Wang et al. 2023; ChatEval §4.1)."""

    name: str
    pairs: Sequence[AnswerPair]

    @property
    def cases(self) -> Sequence[Cases]:
        """Each pair in both orders."""
        return [Cases(ANSWERS, list(pair_cases(self.pairs)))]

    def compared(self, answered: Answered) -> Result:
        """Judges by the sum of their scores in both orders; position by each order alone."""
        everything, of = answered.all(ANSWERS), self.name.lower()
        labels = pair_labels(self.pairs, HUMAN_LABELS)
        arrays = VerdictArrays.of([*labels, *calibrated(everything, ANSWERS)], HUMAN_LABELS)
        words = {
            (pair.id, name): lengths.words(text)
            for pair in self.pairs
            for name, text in zip(pair.contestants, pair.answers, strict=True)
        }
        agreement = compare(arrays, HUMAN_LABELS)
        shown = [*labels, *preferences(everything, ANSWERS)]
        costs, rows = answered.costs(ANSWERS), []
        in_order = compare(shown, HUMAN_LABELS, words).judges
        for row, one_order in zip(agreement.judges, in_order, strict=True):
            both = ends_of(one_order, ("consistency", "first_preferred", "longer_preferred"), "")
            apart = {f"{key}_one_order": one_order[key] for key in ("accuracy", "kappa")}
            rows.append({**row, **both, **apart, **costs[row["judge"]]})
        report = AgreementReport(
            **vars(replace(agreement, judges=judge_agreement.ordered(rows), annotators=())),
            subject=self.name,
            labels=HUMAN_LABELS,
            signature=signature("bench", {"benchmark": of}, arrays.digest, HUMAN_LABELS),
        )
        tables = [*judge_agreement.tables(report), *answered.cases, *tables_of(of)]
        return publish(report, tables, answered.out, formats=answered.formats)


def ends_of(found: Row, figures: Iterable[str], begin: str) -> Row:
    """Some figures with the ends of their intervals, their keys with ``begin`` before them."""
    keys = [f"{figure}{end}" for figure in figures for end in ("", "_low", "_high")]
    return {f"{begin}{key}": found.get(key) for key in keys}


@dataclass(frozen=True)
class RatedTexts:
    """Texts that judges and annotators give numbers, one for each of several parts."""

    name: str
    table: tuple[str, str]
    """Name and title of its table, which is the paper's."""
    first: Column
    """Whose a row is."""
    part: str
    """Key of the parts' names in rows: ``aspect``."""
    cases: Sequence[Cases]
    parts: Mapping[str, tuple[Protocol, Callable[[Scores | None], float | None]]]
    """What a number is about -> the question that asks for it, and its score in the verdict's."""
    labels: Mapping[str, Sequence[ItemScore]]
    """Part -> human scores of it."""

    def compared(self, answered: Answered) -> Result:
        """Correlations in the paper's layout."""
        rated, prices = {}, {}
        for part in self.labels:
            protocol, score = self.parts[part]
            rated[part] = [
                ItemScore(j.seed_id, j.contestants[0], j.judge, score(protocol.scores(j.verdict)))
                for j in answered.all(protocol)
            ]
            prices[part] = answered.costs(protocol)
        return self.compared_scores(rated, prices, answered)

    def compared_scores(
        self,
        ratings: Mapping[str, Sequence[ItemScore]],
        prices: Mapping[str, Mapping[str, Row]],
        answered: Answered,
    ) -> Result:
        """Correlations with human scores; ``ratings``, ``prices``: by part, the latter by judge."""
        data: list[Any] = []
        rows: list[Row] = []
        by_judge: dict[str, dict[str, Row]] = {}
        for part, labels in self.labels.items():
            rated = [*labels, *ratings[part]]
            found = compare_scores(rated, HUMAN_LABELS)
            data += [[part, rating._asdict()] for rating in rated]
            for row in found.judges:
                head = {self.first.key: row["judge"], self.part: part}
                rows.append(head | row | prices.get(part, {}).get(row["judge"], {}))
                by_judge.setdefault(row["judge"], {})[part] = rows[-1]
        signed = signature("bench", {"benchmark": self.name}, data, HUMAN_LABELS)
        figures = (f"{part}_{figure}" for part in (*self.labels, "average") for figure in RANKS)
        unreadable = Column("unreadable", "Unreadable", "count")
        columns = [self.first, *map(column, figures), unreadable, *PRICE]
        lines = [{**of[part], **_in_one_row(of)} for of in by_judge.values()]
        shown = table(
            *self.table, columns, map(judge_agreement.with_price, lines), [signed], _SCORED
        ).filled()
        notes = _by_correlation(lines, self.first.key)
        report = AgreementReport(
            subject=shown.title, labels=HUMAN_LABELS, signature=signed, notes=notes
        )
        whole = {"sentences": notes, "judges": rows, "signature": signed}
        tables = [shown, *answered.cases, *tables_of(self.name)]
        return publish(report, tables, answered.out, whole, answered.formats)


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
        values = [of.get(figure) for of in found.values()]
        known = [value for value in values if value is not None]
        row[f"average_{figure}"] = fmean(known) if len(known) == len(values) else None
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


def topical_chat(files: Files) -> RatedTexts:
    """Return responses rated in four aspects (Mehri and Eskenazi 2020; ChatEval §4.2)."""
    responses = chateval.topical_chat(files)
    return RatedTexts(
        "topicalchat",
        ("chateval-table-2", "Topical-Chat: correlation with people (layout of ChatEval, Table 2)"),
        Column("judge", "Metrics", "name"),
        "aspect",
        [
            Cases(of, [partial(chateval.aspect_case, one, aspect) for one in responses])
            for aspect, of in ASPECTS.items()
        ],
        {aspect: (of, score_at(0)) for aspect, of in ASPECTS.items()},
        {
            aspect: [
                ItemScore(r.id, r.contestant, HUMAN_LABELS, r.scores[aspect]) for r in responses
            ]
            for aspect in ASPECTS
        },
    )


def score_at(place: int) -> Callable[[Scores | None], float | None]:
    """Return what takes one score of a verdict."""
    return lambda scores: None if scores is None else scores[place]


NUMBERS = {"_".join(kind.lower().split()): plain_name(kind) for kind in KINDS} | {"score": ""}
"""Key of an error type, and of the sum of all -> what `OwnText.labels` calls it."""


def total(scores: Scores | None) -> float | None:
    """Return the sum of all; None if one is missing."""
    known = [score for score in scores or () if score is not None]
    return sum(known) if len(known) == len(KINDS) else None


PARTS = dict(zip(NUMBERS, (*map(score_at, range(len(KINDS))), total), strict=True))
"""Key of a number -> what takes it from a verdict's scores."""

_PAIRS = [Column(key, key.capitalize(), "name") for key in ("first", "second", "verdict", "scores")]
_TEXTS = [Column(key, key.replace("_", " ").capitalize(), "number") for key in NUMBERS]
_TEXTS.append(Column("report", "Report", "name", detail=True))


def rated_texts(texts: Sequence[OwnText]) -> RatedTexts:
    """Return texts with human scores of them, by error type or as a whole."""
    labels = {
        key: [ItemScore(text.id, TEXT, HUMAN_LABELS, text.labels[name])
              for text in texts if name in text.labels]
        for key, name in NUMBERS.items()
    }  # fmt: skip
    return RatedTexts(
        "texts",
        ("judges", "Texts: correlation with human scores"),
        Column("judge", "Judge", "name"),
        "number",
        [Cases(MATEVAL, [partial(text_case, text) for text in texts])],
        {key: (MATEVAL, part) for key, part in PARTS.items()},
        {key: scores for key, scores in labels.items() if scores},
    )


class OwnFile:
    """Texts or pairs of a file; those with labels are a benchmark."""

    def __init__(self, file: Path) -> None:
        """Raises as `read_items`."""
        items = read_items(file)
        pairs = [item for item in items if isinstance(item, AnswerPair)]
        texts = [item for item in items if isinstance(item, OwnText)]
        self._texts = {text.id: text.text for text in texts}
        self._benchmark = AnswerPairs(file.stem, pairs) if pairs else rated_texts(texts)
        self._has_labels = any(pair.label for pair in pairs) or any(text.labels for text in texts)
        self.cases = self._benchmark.cases

    def compared(self, answered: Answered) -> Result:
        """Every verdict, and judges against human labels where there are any."""
        ((protocol, _),) = self.cases
        judged = answered.all(protocol)
        heads = [Column("item", "Item", "name"), Column("judge", "Judge", "name")]
        cases = table(
            "cases",
            f"{protocol.title}: every verdict",
            [
                *heads,
                *(_TEXTS if self._texts else _PAIRS),
                Column("reason", "Reason", "name", True),
            ],
            [self._row(judgment) for judgment in judged],
            sorted({judgment.signature for judgment in judged}),
        )
        if self._has_labels:
            return self._benchmark.compared(replace(answered, cases=[cases]))
        note = "The file has no human labels to compare judges with."
        report = AgreementReport(
            subject=cases.title, labels="", signature=cases.signature, notes=[note]
        )
        return publish(report, [cases], answered.out, formats=answered.formats)

    def _row(self, judgment: Judgment) -> Row:
        row = {"item": judgment.seed_id, "judge": judgment.judge, "reason": judgment.reason}
        if not self._texts:
            (preference,) = preferences([judgment], ANSWERS)
            return row | msgspec.structs.asdict(preference) | {"scores": judgment.verdict}
        scores = MATEVAL.scores(judgment.verdict)
        found = reports(judgment, partial(parse_text, text=self._texts[judgment.seed_id]))
        row |= {"report": " ".join(map(as_prose, found.values()))}
        row |= {"reason": "\n".join(map(as_text, found.values()))} if found else {}
        return row | {key: part(scores) for key, part in PARTS.items()}


Benchmark = AnswerPairs | RatedTexts | OwnFile
"""Has ``cases`` to ask, and compares every judge with human labels."""


def read_items(file: Path) -> list[OwnText] | list[AnswerPair]:
    """Read texts or pairs, see `botchat.protocols.items`.

    Raises `ConfigError` for another kind of file, `DataError` with row and column.
    """
    if file.is_dir() or file.suffix.lower() not in (*SUFFIXES, ".txt"):
        kind = "a folder" if file.is_dir() else "no table of texts"
        raise ConfigError(f"{file} is {kind}; name a file: {', '.join(SUFFIXES)} or .txt")
    data, where = jsonl.content(file), str(file)
    if file.suffix.lower() != ".txt":
        cells = [(at, {plain_name(k): v for k, v in row.items()}) for at, row in rows(data, where)]
        return items(cells, where, [name for name in NUMBERS.values() if name])
    if not (texts := paragraphs(read_text(data, where))):
        raise DataError(f"{where}: no texts; separate them by blank lines")
    return texts
