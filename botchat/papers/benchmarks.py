"""What is asked of judges in a data set, and what the replies are worth beside people's.

**A new benchmark is one class**, a value of ``botchat.papers.bench.BENCHMARKS``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import correlation, fmean
from typing import Any, ClassVar

import numpy as np

from botchat.boards import judge_agreement, which_judge
from botchat.boards.judge_agreement import PRICE, Findings
from botchat.boards.tables import Column, table
from botchat.boards.writers import Formats
from botchat.interfaces import Row
from botchat.measures import lengths
from botchat.measures.agreement import Agreement
from botchat.measures.annotations import Opinions
from botchat.measures.best import contest
from botchat.measures.correlation import Correlated, Rating, compare_scores
from botchat.measures.intervals import LEAST
from botchat.papers import chateval, tables
from botchat.papers.chateval import ASPECTS, ORIGINAL, Response
from botchat.papers.experiments import column
from botchat.papers.metrics import PEOPLE, bleu, ends_of, in_one_row, of_parts, rouge_l
from botchat.pipeline.agree import (
    anatomy,
    compare_judges,
    expenses,
    in_families,
    publish,
    signature,
)
from botchat.pipeline.run.ask import Cases
from botchat.pipeline.run.contestants import method, own_name
from botchat.protocols import scores
from botchat.protocols.items import ANSWERS, pair_cases, pair_labels
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import calibrated, preferences
from botchat.records import Judgment
from botchat.requests.results import Compared
from botchat.workspace.folder import Workspace

Files = Mapping[str, bytes]
"""Name -> content of upstream's files."""

ByProtocol = Mapping[str, Sequence[Judgment]]
"""Of one judge, by name of the protocol."""

Judgments = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments of one protocol."""

Given = Mapping[str, Callable[[Sequence[str]], Row]]
"""Name -> keys of columns -> their numbers; see `Benchmark.given`."""


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

    columns: ClassVar[tuple[str, ...]]
    """What a table shows where no paper says it; see `measured`."""
    cases: Sequence[Cases]
    """What is asked."""
    given: Given
    """As `measured` of what needs no judge: metrics, recordings; keys of columns -> numbers."""
    data = ""
    """What papers call it, where one of several was given."""
    needs_nobody: ClassVar[bool] = False
    """Shown where nobody has judged, too."""

    @abstractmethod
    def __init__(self, files: Files) -> None:
        """Raises `MissingError` without the files, `DataError` for what is wrong in them."""

    @abstractmethod
    def compared(self, answered: Answered) -> Compared:
        """Everybody who has judged, beside people."""

    @abstractmethod
    def measured(self, workspace: Workspace, said: ByProtocol, keys: Sequence[str]) -> Row:
        """Numbers of one judge by ``keys`` of columns, see `botchat.papers.experiments`.

        With the ends of their intervals, ``n`` and ``unreadable``.
        """

    def among(self, _: Sequence[str]) -> Collection[str] | None:
        """The items that the columns of such keys are about; ``None``: all."""
        return None


_IN_ORDER = (
    "consistency", "same_winner", "first_preferred", "length_preference", "self_preference",
)  # fmt: skip
"""Figures of FairEval that only verdicts in one order have, or that need both orders."""


class FairEval(Benchmark):
    """Which of two answers is better, in both orders (Wang et al. 2023; ChatEval §4.1)."""

    columns = ("accuracy", "kappa")

    def __init__(self, files: Files) -> None:
        """See `botchat.papers.chateval.faireval`."""
        self._pairs = chateval.faireval(files)
        self.cases = [Cases(ANSWERS, list(pair_cases(self._pairs)))]
        self.given = {}

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
            **vars(in_families(workspace, replace(found, rows=rows, annotators=()), judged)),
            subject="FairEval",
            truth="people's majority",
            signature=signature("bench", {"benchmark": "faireval"}, data, PEOPLE),
            notes=[*which_judge.other_cases(found)],
            debates=anatomy(workspace, judged, ANSWERS, shown),
        )
        first = tables.chateval_1(findings.rows, findings.signature)
        others = [part for part in judge_agreement.tables(findings) if part.name != "judges"]
        return publish(findings, [first, *others], answered.out, formats=answered.formats)

    def measured(self, workspace: Workspace, said: ByProtocol, keys: Sequence[str]) -> Row:
        """By category of question where a key begins so; ``usd`` and ``minutes`` of all calls."""
        made = said[ANSWERS.name]
        both = calibrated(made, ANSWERS)
        cost = expenses(workspace, {PEOPLE: made})[PEOPLE]
        usd, seconds = (
            None if (each := cost[key]) is None else each * len(made) for key in ("usd", "seconds")
        )
        n = sum(one.verdict is not None for one in both)
        row: Row = {"usd": usd, "minutes": None if seconds is None else seconds / 60}
        row |= {"n": n, "unreadable": len(both) - n}
        for category in _categories(keys):
            ids = self._of([category])
            asked = [one for one in both if one.item in ids]
            people = [one for one in pair_labels(self._pairs, PEOPLE) if one.item in ids]
            if asked and people:
                (found,) = compare_judges([*people, *asked], PEOPLE).rows
                row |= ends_of(found, self.columns, f"{category}_" if category else "")
        return row

    def among(self, keys: Sequence[str]) -> Collection[str] | None:
        """Questions of the categories that keys begin with."""
        categories = _categories(keys)
        return None if "" in categories else self._of(categories)

    def _of(self, categories: Iterable[str]) -> set[str]:
        """Questions of these categories; of an empty name all."""
        wanted = {*categories}
        return {pair.id for pair in self._pairs if wanted & {"", pair.category}}


def _categories(keys: Sequence[str]) -> set[str]:
    return {key.rpartition("_")[0] for key in keys}


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

    def correlated(self, numbers: Mapping[str, Sequence[Rating]]) -> Row:
        """Correlations of each part with people's, and their mean; ``numbers``: of one judge."""
        found = {
            part: compare_scores([*self.labels(part), *given], PEOPLE).rows[0]
            for part, given in numbers.items()
            if given
        }
        return in_one_row(self.parts, found)

    def measured(self, _: Workspace, said: ByProtocol, __: Sequence[str]) -> Row:
        """See `correlated`."""
        return self.correlated(
            {part: self.ratings(part, said.get(of.name, ())) for part, of in self.parts.items()}
        )

    def compared(self, answered: Answered) -> Compared:
        """Correlations in the paper's layout."""
        data: list[Any] = []
        rows: list[Row] = []
        pairs: list[Row] = []
        parts: dict[str, Correlated] = {}
        prices: dict[str, dict[str, Row]] = {}
        by_judge: dict[str, dict[str, Row]] = {}
        for part, protocol in self.parts.items():
            rated = [*self.labels(part), *self.ratings(part, answered.all(protocol))]
            found = parts[part] = compare_scores(rated, PEOPLE)
            costs = prices[protocol.name] = answered.costs(protocol)
            data += [[part, asdict(rating)] for rating in rated]
            pairs += [{self.part: part, **row} for row in found.pairs]
            for row in found.rows:
                head = {self.first.key: row["judge"], self.part: part}
                rows.append({**head, **row, **costs[row["judge"]]})
                by_judge.setdefault(row["judge"], {})[part] = rows[-1]
        signed = signature("bench", {"benchmark": self.name}, data, PEOPLE)
        columns = [self.first, *map(column, self.columns), _UNREADABLE, *PRICE]
        lines = [{**of[part], **in_one_row(self.parts, of)} for of in by_judge.values()]
        shown = [table(*self.table, columns, lines, [signed], _SCORED).filled()]
        more: Row = {}
        if places := self.places(answered):
            more["places"] = places
            shown.append(tables.error_places(places, signed))
        findings = Findings(subject=shown[0].title, truth=PEOPLE, signature=signed)
        said = _by_correlation(parts, [*prices.values()])
        whole = {"answer": said, "rows": rows, "pairs": pairs, **more, "signature": signed}
        return publish(findings, shown, answered.out, whole, answered.formats, said)

    def places(self, _: Answered) -> list[Row]:
        """Where judges say that errors are, as of `botchat.papers.locations.compare`."""
        return []


_UNREADABLE = Column("unreadable", "Unreadable", "count")
_SCORED = (
    "Spearman and Kendall of all texts' scores with people's mean scores. Unreadable scores are "
    "counted and left out."
)


def _by_correlation(
    parts: Mapping[str, Correlated], prices: Sequence[Mapping[str, Row]]
) -> list[str]:
    """Which judge to take, by the mean of its correlations; ``prices``: of every question."""
    whole: dict[str, dict[tuple[str, str], float]] = {}
    for part, found in parts.items():
        for judge, items in found.parts.items():
            own = {(part, item): value for item, value in items.items() if math.isfinite(value)}
            whole.setdefault(judge, {}).update(own)
    judges = [name for name, of in whole.items() if of and not which_judge.control_of(name)]
    cases = list(dict.fromkeys(case for judge in judges for case in whole[judge]))
    item = np.unique([item for _, item in cases], return_inverse=True)[1]
    if len(judges) < 2 or item.max() + 1 < LEAST:
        return []
    values = np.array([[whole[judge].get(case, math.nan) for case in cases] for judge in judges])
    held, rows = contest(values, item, 2.0), []
    for i, judge in enumerate(judges):
        costs = {
            key: None if None in known else sum(known) / len(known)
            for key in ("usd", "tokens", "calls")
            for known in [[of[judge][key] for of in prices]]
        }
        rows.append({"judge": judge, "accuracy": np.nanmean(values[i]), **held.of(i), **costs})
    made = Agreement(rows=rows, contested=judges, contest=held)
    return which_judge.answer(made, "mean Spearman × 100")


class TopicalChat(RatedTexts):
    """Responses rated in four aspects (Mehri and Eskenazi 2020; ChatEval §4.2).

    ``given``: ROUGE-L and BLEU-4 of each response against the conversation's own next turn, which
    is no response then: 300 of 360 are left. ``NAME r``: with Pearson's r in place of Kendall's
    tau, which is what ChatEval's Table 2 prints of metrics.
    """

    name, part = "topicalchat", "aspect"
    table = (
        "chateval-table-2",
        "Topical-Chat: correlation with people (layout of ChatEval, Table 2)",
    )
    first = Column("judge", "Metrics", "name")
    columns = of_parts(ASPECTS)
    parts = ASPECTS

    def __init__(self, files: Files) -> None:
        """See `botchat.papers.chateval.topical_chat`."""
        self._responses = chateval.topical_chat(files)
        self.cases = [
            Cases(of, [partial(chateval.aspect_case, one, aspect) for one in self._responses])
            for aspect, of in self.parts.items()
        ]
        true = {one.id: one.text for one in self._responses if one.contestant == ORIGINAL}
        others = [o for o in self._responses if o.id in true and o.contestant != ORIGINAL]
        self.given = {}
        for name, metric in (("rouge-l", rouge_l), ("bleu-4", bleu)):

            @cache
            def scored(metric: Callable[[str, str], float] = metric) -> list[float]:
                return [metric(one.text, true[one.id]) for one in others]

            for end in ("", " r"):
                self.given[f"{name}{end}"] = partial(self._likeness, others, scored, bool(end))

    def labels(self, part: str) -> list[Rating]:
        """Of an aspect."""
        return chateval.aspect_labels(self._responses, part, PEOPLE)

    def ratings(self, _: str, judged: Sequence[Judgment]) -> list[Rating]:
        """Of an aspect."""
        return scores.ratings(judged)

    def _likeness(
        self,
        responses: Sequence[Response],
        scored: Callable[[], list[float]],
        as_r: bool,
        _: Sequence[str],
    ) -> Row:
        values = scored()
        both = zip(responses, values, strict=True)
        mine = [Rating(one.id, one.contestant, "metric", value) for one, value in both]
        row = self.correlated(dict.fromkeys(self.parts, mine))
        if not as_r:
            return row
        rs = {part: correlation(values, [o.scores[part] for o in responses]) for part in ASPECTS}
        rs["average"] = fmean(rs.values())
        kept = {key: value for key, value in row.items() if "kendall" not in key}
        return kept | {f"{part}_kendall": r for part, r in rs.items()}
