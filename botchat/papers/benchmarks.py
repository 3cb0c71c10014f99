"""Benchmarks of judges: cases, a comparison of the replies with human labels, and printed numbers.

A new printed table is a table of ``published/PAPER.toml``, with no code.
"""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from botchat.boards.judge_agreement import (
    AS_PRINTED,
    HUMAN_LABELS,
    PRICE,
    AgreementReport,
    agreement_signature,
    agreement_tables,
    by_skill,
    known_fields,
    with_price,
)
from botchat.boards.tables import COLUMNS, Column, Table, spread, table
from botchat.errors import ConfigError, DataError, MissingDataError, listed
from botchat.estimates import UNKNOWN, VerdictPrice
from botchat.frames import read_text
from botchat.importers.tables import SUFFIXES, rows
from botchat.importers.vote_files import WORDS
from botchat.interfaces import Cells
from botchat.metrics import lengths
from botchat.metrics.agreement import ItemScore, ScoreAgreement, compare, compare_scores
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdicts, verdicts_digest
from botchat.pipeline.contestants import single_judges
from botchat.pipeline.judge import ProtocolCases
from botchat.pipeline.ledger import cost_per_verdict
from botchat.protocols.items import (
    ANSWERS,
    AnswerPair,
    items,
    pair_cases,
    pair_labels,
    paragraphs,
    plain_label,
)
from botchat.protocols.mateval import MATEVAL, TEXT, OwnText, text_case
from botchat.protocols.protocol import Protocol, calibrated, preferences
from botchat.protocols.replies import plain_name
from botchat.protocols.reports import KINDS, as_prose, as_text, parse_text, reports
from botchat.records import SIGNED, Judged, Judgment, Texts
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

Files = Mapping[str, bytes]
"""Name -> content of upstream's files."""

_SCORED = (
    "Spearman and Kendall of all texts' scores with the mean human scores. "
    "Unreadable scores are counted and left out."
)


class Answered(NamedTuple):
    """Verdicts of judges on a benchmark."""

    workspace: Workspace
    judged: Mapping[str, Judged]  # by name of the protocol; with controls

    def all(self, protocol: Protocol) -> list[Judgment]:
        """Return the judgments of every judge."""
        return list(chain.from_iterable(self.judged[protocol.name].values()))

    def costs(self, *protocols: Protocol) -> dict[str, VerdictPrice]:
        """Return the price of a verdict in each of some protocols together, by judge."""
        judged = defaultdict[str, list[Judgment]](list)
        for protocol in protocols:
            for judge, judgments in self.judged[protocol.name].items():
                judged[judge] += judgments
        return cost_per_verdict(self.workspace, judged, len(protocols))


class Comparison(NamedTuple):
    """A comparison of judges with labels. ``data`` is JSON-ready (default: the report's)."""

    report: AgreementReport
    tables: Sequence[Table]
    data: Cells | None = None


class Benchmark(NamedTuple):
    """Items with human labels or scores."""

    cases: Sequence[ProtocolCases]  # of each protocol
    compare: Callable[[Answered], Comparison]  # compares every judge with the labels
    needs_judges: bool = True


def refuse_several(names: Texts) -> None:
    """Raise `ConfigError` for the files of more than one data set."""
    if len(names) > 1:
        raise ConfigError(
            f"--data holds {len(names)} data sets, {listed(names)}: give a folder that holds one "
            "of them"
        )


def answer_pairs(name: str, pairs: Sequence[AnswerPair]) -> Benchmark:
    """Return pairs of answers, asked about in both orders (Wang et al. 2023; ChatEval §4.1)."""
    return Benchmark(
        [ProtocolCases(ANSWERS, list(pair_cases(pairs)))], partial(_compare_answers, name, pairs)
    )


def _compare_answers(name: str, pairs: Sequence[AnswerPair], answered: Answered) -> Comparison:
    """Compare judges by the sum of their scores in both orders; position by each order alone."""
    judgments = answered.all(ANSWERS)
    labels = pair_labels(pairs, HUMAN_LABELS)
    verdicts = PairVerdicts.of(labels + calibrated(judgments, ANSWERS))
    words = {}
    for pair in pairs:
        for contestant, text in zip(pair.contestants, pair.answers, strict=True):
            words[pair.id, contestant] = lengths.words(text)
    agreement = compare(verdicts, HUMAN_LABELS)
    by_order = compare(
        PairVerdicts.of(labels + preferences(judgments, ANSWERS)), HUMAN_LABELS, words
    )
    judges = []
    for judge, in_order in zip(agreement.judges, by_order.judges, strict=True):
        judges.append(
            replace(
                judge,
                consistency=in_order.consistency,
                first_preferred=in_order.first_preferred,
                longer_preferred=in_order.longer_preferred,
            )
        )
    subject = {"benchmark": name.lower()}
    report = AgreementReport(
        agreement=replace(agreement, judges=by_skill(judges), annotators=()),
        prices=answered.costs(ANSWERS),
        one_order={each.judge: each for each in by_order.judges},
        singles=single_judges(answered.workspace, [each.judge for each in judges]),
        columns=AS_PRINTED,
        subject=name,
        labels=HUMAN_LABELS,
        signature=agreement_signature("bench", subject, verdicts_digest(verdicts), HUMAN_LABELS),
    )
    categories = _by_category(pairs, verdicts, report.signature)
    return Comparison(report, agreement_tables(report) + categories)


def _by_category(
    pairs: Sequence[AnswerPair], verdicts: PairVerdicts, signature: str
) -> list[Table]:
    """Return the table of each judge's accuracy by category of the questions, if they have any."""
    by_item = {pair.id: pair.category for pair in pairs}
    category = np.array([by_item[item] for item in verdicts.items])[verdicts.item]
    rows = []
    for name in sorted(filter(None, set(by_item.values()))):
        try:
            judges = compare(verdicts.only(category == name), HUMAN_LABELS).judges
        except MissingDataError:
            continue  # nobody has judged these questions yet
        for judge in by_skill(judges):
            rows.append({"category": name, **known_fields(judge)})
    if not rows:
        return []
    columns = (Column("category", "Category", "name"), *AS_PRINTED)
    title = "Accuracy by category of the question (layout of ChatEval, Figure 3)"
    return [table("categories", title, columns, rows, [signature]).filled()]


class RatedPart(NamedTuple):
    """A part of texts that gets a number of its own, such as an aspect."""

    protocol: Protocol
    place: int | None  # of the number in a verdict; None: the sum of all
    labels: Sequence[ItemScore]  # human scores


class RatedTexts(NamedTuple):
    """Texts that judges and annotators give numbers, one for each of several parts."""

    name: str
    table: str  # name of its table, which is the paper's
    title: str
    part: str  # key of the parts' names in rows: "aspect"
    parts: Mapping[str, RatedPart]

    def compare(self, answered: Answered) -> Comparison:
        """Correlate judges' scores with human ones, in the paper's layout."""
        scores = {}
        prices = {}
        protocols = {}
        for part, asked in self.parts.items():
            protocol = asked.protocol
            scores[part] = [
                ItemScore(j.seed_id, j.contestants[0], j.judge, score_of(j, protocol, asked.place))
                for j in answered.all(protocol)
            ]
            prices[part] = answered.costs(protocol)
            protocols[protocol.name] = protocol
        of_all = answered.costs(*protocols.values())
        of_text = {judge: vars(of_all[judge]) for judge in of_all}
        return self.correlate(scores, prices, of_text, {})

    def correlate(
        self,
        scores: Mapping[str, Sequence[ItemScore]],
        prices: Mapping[str, Mapping[str, VerdictPrice]],
        of_text: Mapping[str, Cells],
        printed: Mapping[str, Cells],
    ) -> Comparison:
        """Correlate with human scores, by part; ``prices``: by part, ``of_text``: of all parts.

        ``printed``: judge -> the paper's row of it, which stands below.
        """
        data = []
        judges = []
        by_judge = defaultdict[str, dict[str, ScoreAgreement]](dict)
        for part, asked in self.parts.items():
            rated = [*asked.labels, *scores[part]]
            data += [(part, score._asdict()) for score in rated]
            of_part = prices.get(part, {})
            for compared in compare_scores(rated, HUMAN_LABELS):
                judge = compared.judge
                by_judge[judge][part] = compared
                row = {"judge": judge, self.part: part, **known_fields(compared)}
                if judge in of_part:
                    row |= vars(of_part[judge])
                judges.append(spread(row))
        signed = agreement_signature("bench", {"benchmark": self.name}, data, HUMAN_LABELS)
        columns = [Column("judge", "Judge", "name")]
        for part in (*self.parts, "average"):
            columns += [printed_column(f"{part}_spearman"), printed_column(f"{part}_kendall")]
        columns += [Column("unreadable", "Unreadable", "count"), *PRICE]
        rows = []
        for judge, by_part in by_judge.items():
            price = of_text.get(judge, {})
            rows.append(with_price({"judge": judge, **_correlations(by_part), **price}))
            if judge in printed:
                rows.append({**printed[judge], "judge": f"{judge}, as printed"})
        correlations = table(self.table, self.title, columns, rows, [signed], _SCORED).filled()
        report = AgreementReport(subject=self.title, labels=HUMAN_LABELS, signature=signed)
        return Comparison(report, [correlations], {"judges": judges, "signature": signed})


def score_of(judgment: Judgment, protocol: Protocol, place: int | None) -> float | None:
    """Return one score of a verdict, or the sum of all; None if it is missing, or any is."""
    answer = protocol.score
    if place is None:
        numbers = answer.numbers(judgment.verdict)
        return sum(numbers) if numbers else None
    scores = answer.scores(judgment.verdict)
    return scores[place] if scores else None


def _correlations(by_part: Mapping[str, ScoreAgreement]) -> dict[str, float]:
    """Return a judge's cells of the table: ``PART_spearman`` …, ``average_spearman`` …."""
    cells = {}
    for part, each in by_part.items():
        cells[f"{part}_spearman"] = (each.spearman or UNKNOWN).value
        cells[f"{part}_kendall"] = (each.kendall or UNKNOWN).value
    values = list(cells.values())
    cells["average_spearman"] = fmean(values[::2])
    cells["average_kendall"] = fmean(values[1::2])
    cells["unreadable"] = sum([each.unreadable for each in by_part.values()])
    return cells


NUMBERS = {"_".join(kind.lower().split()): plain_name(kind) for kind in KINDS} | {"score": ""}
"""Key of an error type, and of the sum of all -> its name in `OwnText.labels`."""

_PLACES = {key: place for place, key in enumerate(NUMBERS)} | {"score": None}
# Result -> the label of a file that means it
_LABELS: Mapping[float | None, str] = {WIN: "1", TIE: "tie", LOSS: "2"}
LABEL_WORDS = {plain_label(word): result for word, (result, _) in WORDS.items() if word}
"""Plain word of a file's label, as `rank` reads it -> the result; NaN: unreadable."""


def _rated_texts(texts: Sequence[OwnText]) -> Benchmark:
    """Return texts with human scores of them, by error type or as a whole."""
    parts = {}
    for key, name in NUMBERS.items():
        scores = [
            ItemScore(text.id, TEXT, HUMAN_LABELS, text.labels[name])
            for text in texts
            if name in text.labels
        ]
        if scores:
            parts[key] = RatedPart(MATEVAL, _PLACES[key], scores)
    rated = RatedTexts("texts", "judges", "Texts: correlation with human scores", "number", parts)
    return Benchmark(
        [ProtocolCases(MATEVAL, [partial(text_case, text) for text in texts])], rated.compare
    )


def own_file(file: Path) -> Benchmark:
    """Return the texts or pairs of a file, with its labels if it has any.

    Raises as `read_items`.
    """
    asked = read_items(file)
    pairs = [item for item in asked if isinstance(item, AnswerPair)]
    texts = [item for item in asked if isinstance(item, OwnText)]
    protocol = MATEVAL
    benchmark = _rated_texts(texts)
    if pairs:
        protocol = ANSWERS
        benchmark = answer_pairs(file.stem, pairs)
    has_labels = pair_labels(pairs) or any(text.labels for text in texts)

    def compare_all(answered: Answered) -> Comparison:
        cases = _cases_table(protocol, answered.all(protocol), texts)
        if has_labels:
            comparison = benchmark.compare(answered)
            return comparison._replace(tables=[*comparison.tables, cases])
        report = AgreementReport(
            subject=cases.title,
            labels="",
            signature=cases.signature,
            notes=["The file has no human labels to compare judges with."],
        )
        return Comparison(report, [cases])

    return Benchmark(benchmark.cases, compare_all)


def _cases_table(
    protocol: Protocol, judgments: Sequence[Judgment], texts: Sequence[OwnText]
) -> Table:
    """Return the table of every verdict on texts, or on pairs where there are no texts."""
    columns = COLUMNS.judged_pairs
    if texts:
        columns = COLUMNS.judged_texts
    by_id = {text.id: text.text for text in texts}
    rows = []
    for judgment in judgments:
        row: Cells = {
            "item": judgment.seed_id,
            "judge": judgment.judge,
            "reason": judgment.reason,
        }
        if texts:
            row |= _text_cells(judgment, by_id[judgment.seed_id])
        else:
            (preference,) = preferences([judgment], ANSWERS)
            row["first"] = preference.first
            row["second"] = preference.second
            row["verdict"] = _LABELS.get(preference.result)
            row["scores"] = judgment.verdict
        rows.append(row)
    signatures = sorted({judgment.signature for judgment in judgments})
    return table("cases", f"{protocol.title}: every verdict", columns, rows, signatures)


def _text_cells(judgment: Judgment, text: str) -> Cells:
    """Return the scores of a text, with the reports on it."""
    errors = reports(judgment, partial(parse_text, text=text)).values()
    cells: Cells = {"report": " ".join([as_prose(report) for report in errors])}
    if errors:
        cells["reason"] = "\n".join([as_text(report) for report in errors])
    for key, place in _PLACES.items():
        cells[key] = score_of(judgment, MATEVAL, place)
    return cells


def read_items(file: Path) -> list[OwnText] | list[AnswerPair]:
    """Read texts or pairs, see `botchat.protocols.items`.

    Raises `ConfigError` for another kind of file, `DataError` with row and column.
    """
    if file.suffix.lower() not in (*SUFFIXES, ".txt"):
        kind = "no table of texts"
        if file.is_dir():
            kind = "a folder"
        raise ConfigError(f"{file} is {kind}; name a file: {', '.join(SUFFIXES)} or .txt")
    data = jsonl.content(file)
    where = str(file)
    if file.suffix.lower() != ".txt":
        cells = []
        for at, row in rows(data, where):
            cells.append((at, {plain_name(key): cell for key, cell in row.items()}))
        return items(cells, where, LABEL_WORDS, [name for name in NUMBERS.values() if name])
    texts = paragraphs(read_text(data, where))
    if not texts:
        raise DataError(f"{where}: no texts; separate them by blank lines")
    return texts


class PrintedTable(NamedTuple):
    """One table or figure of a paper."""

    name: str
    """``chateval-table-1``."""
    source: str
    """Paper and table that print the numbers."""
    benchmark: str
    """A name of ``botchat.papers.bench.BENCHMARKS``."""
    columns: Texts
    """Keys of the printed numbers, see `printed_column`."""
    rows: Sequence[Mapping[str, Sequence[Any]]]
    """``row``: names. ``values``: numbers of the columns as printed, rates in percent, ``nan``
    where nothing is printed."""
    note: str = ""

    @property
    def records(self) -> Iterator[Cells]:
        """Rows with numbers in our units; a row of another length raises `ValueError`."""
        for line in self.rows:
            row: Cells = {"table": self.name, "line": " · ".join(line["row"])}
            for key, number in zip(self.columns, line["values"], strict=True):
                unit = 1.0
                if printed_column(key).kind == "rate":
                    unit = 0.01
                row[key] = unit * number
            yield row


@cache
def printed_tables() -> tuple[PrintedTable, ...]:
    """Return every table of every paper."""
    tables = []
    for file in sorted(resources.files(__package__).joinpath("published").iterdir(), key=str):
        content = tomllib.loads(file.read_text("utf-8"))
        paper = content.pop("paper")
        for key, fields in content.items():
            fields["source"] = f"{paper}, {fields['source']}"
            tables.append(PrintedTable(f"{file.name.removesuffix('.toml')}-{key}", **fields))
    return tuple(tables)


def printed_rows(dataset: str) -> dict[str, Cells]:
    """Return what papers print of a dataset such as ``ROC``, by the last name of a row."""
    rows = {}
    for each in printed_tables():
        for line, record in zip(each.rows, each.records, strict=True):
            if line["row"][0] == dataset:
                rows[line["row"][-1]] = record
    return rows


_FIGURES = {column.key: column for column in COLUMNS.printed}


def printed_column(key: str) -> Column:
    """Return the column of a key: one of `_FIGURES`, or ``PART_FIGURE`` as in ``REP_spearman``.

    ``FIGURE_std`` is its standard deviation over runs.
    """
    part, _, figure = key.removesuffix("_std").rpartition("_")
    column = _FIGURES[figure]
    if not part.isupper():
        part = part.replace("_", " ").capitalize()
    heading = f"{part} {column.heading}".strip()
    if key.endswith("_std"):
        heading = f"\u00b1 {heading.removesuffix(' (%)')}"
    return replace(column, key=key, heading=heading)


def tables_of(benchmark: str) -> list[Table]:
    """Return all that papers print of a benchmark in one table; none of one's own file."""
    printed = [each for each in printed_tables() if each.benchmark == benchmark]
    if not printed:
        return []
    records = list(chain.from_iterable(each.records for each in printed))
    columns = [Column("table", "Table", "name"), Column("line", "Line", "name")]
    for key in list(dict.fromkeys(chain.from_iterable(records)))[2:]:
        columns.append(printed_column(key))
    note = " ".join(f"{each.name}: {each.source}. {each.note}".strip() for each in printed)
    return [
        table(
            "published",
            "As the papers print it",
            columns,
            records,
            [f"{SIGNED}|published|{benchmark}"],
            note,
        ).filled()
    ]
