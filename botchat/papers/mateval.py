"""MATEval's benchmark: judges of stories beside people, metrics, recordings, places of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial

import msgspec

from botchat.boards.tables import Column
from botchat.errors import MissingError
from botchat.interfaces import Row
from botchat.languages import Language, built_in
from botchat.measures.correlation import Rating
from botchat.measures.error_reports import ToldKind, read_kinds
from botchat.papers import locations, mateval_files, stories
from botchat.papers.benchmarks import Answered, Files, RatedTexts
from botchat.papers.experiments import Experiment, papers
from botchat.papers.locations import Places, named
from botchat.papers.mateval_files import STRATEGIES, Recorded
from botchat.papers.metrics import PEOPLE, bleu, of_parts, rouge_l, rouge_l_of_sets
from botchat.papers.stories import STORY
from botchat.pipeline.run.ask import Cases
from botchat.protocols.texts import ERROR_TYPES
from botchat.records import MISSING, Judgment
from botchat.workspace.ledger import Ledger
from botchat.workspace.panels import SUMMARIZER

Metric = Callable[[str, str], float]

Errors = Mapping[str, Sequence[ToldKind] | None]
"""Code of an error type -> what reports say of it; ``None``: it is not there; none: not judged."""

AS_WRITTEN = ", as written"
"""Ends the name of a recording whose points are off whatever their sign."""


class MATEval(RatedTexts):
    """Points off for five kinds of error in a story (Li et al. 2024).

    ``given`` compares each story with the one before errors were put in, and has the strategies of
    upstream's recorded discussions, taken as the paper did, or as written. It raises `MissingError`
    where the files have no originals or no recording of that strategy.
    """

    name, part = "mateval", "error_type"
    table = "mateval-table-1", "Stories: correlation with people (layout of MATEval, Table 1)"
    first = Column("strategy", "Strategy", "name")
    columns = of_parts(ERROR_TYPES)

    def __init__(self, files: Files) -> None:
        """Files and errors as of `botchat.papers.mateval_files`."""
        self._files, self._told = files, stories.stories(files)
        self._language = built_in()[mateval_files.language(files)]
        self._protocol = protocol = stories.asked_in(self._language)
        self.parts = dict.fromkeys(ERROR_TYPES, protocol)
        self.cases = [Cases(protocol, [partial(stories.case, s, protocol) for s in self._told])]
        self.data = mateval_files.dataset(files) or "own"
        self._recorded = cache(partial(mateval_files.recorded, files))
        metrics = _metrics(self._language)
        self.given = {name: partial(self._liked, metric) for name, metric in metrics.items()}
        for strategy in STRATEGIES.values():
            for end in ("", AS_WRITTEN):
                taken = partial(self._as_recorded, strategy, end == AS_WRITTEN)
                self.given[f"recorded {strategy}{end}"] = taken

    def labels(self, part: str) -> list[Rating]:
        """Of a kind of error."""
        return stories.labels(self._told, part, PEOPLE)

    def ratings(self, part: str, judged: Sequence[Judgment]) -> list[Rating]:
        """Of a kind of error."""
        return stories.ratings(judged, part)

    def _liked(self, metric: Metric, _: Sequence[str]) -> Row:
        references = mateval_files.originals(self._files)
        values = [
            Rating(story.id, STORY, "metric", metric(story.text, reference))
            for story, reference in zip(self._told, references, strict=True)
        ]
        return self.correlated(dict.fromkeys(self.parts, values))

    def _as_recorded(self, strategy: str, as_written: bool, _: Sequence[str]) -> Row:
        """``as_written``: else what a score line says counts as it stands, and 0 without one.

        Of 32 readings the latter is the one closest to the authors' tables, and equal to all ten
        cells of their SA on LOT.
        """
        if (reports := self._recorded().get(strategy)) is None:
            raise MissingError(f"no recorded discussions of {strategy} among the files")

        def score(told: ToldKind | None) -> float | None:
            if as_written:
                return None if told is None else told.score
            return 0.0 if told is None or told.written is None else told.written

        found = self.correlated(
            {
                code: [
                    Rating(self._told[number].id, STORY, "recorded", score(of.get(kind)))
                    for number, of in reports.items()
                ]
                for kind, code in enumerate(ERROR_TYPES)
            }
        )
        # Averages have never been of what the signature stands for.
        return {key: value for key, value in found.items() if not key.startswith("average")}

    def of_recordings(self) -> Experiment:
        """Every recorded strategy, taken in both ways, beside the paper's numbers of these data."""
        one, two = papers()["mateval"]["table 1"], papers()["mateval"]["table 2"]
        self._recorded()  # refuse files without any
        return msgspec.structs.replace(
            one,
            name="mateval-recorded",
            title="Stories, recorded discussions: correlation with people",
            source="MATEval (Li et al. 2024), Tables 1 and 2",
            asked=tuple(way for way in one.asked if way.judge.startswith("recorded ")),
            rows=tuple(o for o in (*one.rows, *two.rows) if o.row[:2] == (self.data, "GPT-4")),
        )

    def places(self, answered: Answered) -> list[Row]:
        """Of judges, each a ``strategy``, on the stories that it judged.

        A story has the errors that the verdict takes points off for; they are where the report of a
        discussion's summariser, or any other panel's members in their last words, quote them.
        """
        numbers = {story.id: number for number, story in enumerate(self._told)}
        path = answered.workspace.ledger_path
        with closing(Ledger(path, readonly=True) if path.exists() else Ledger(None)) as ledger:

            def errors(judgment: Judgment) -> Errors:
                reports = _reports(judgment, ledger)
                said = [one for text in reports for one in read_kinds(text, self._language)]
                verdict = (judgment.verdict or "").split()
                return {
                    code: [o for o in said if o.kind == kind] if float(points) < 0 else None
                    for kind, (code, points) in enumerate(zip(ERROR_TYPES, verdict, strict=True))
                    if points != MISSING
                }

            judged = answered.judged[self._protocol.name].items()
            return self._located(
                {
                    judge: {numbers[o.seed_id]: errors(o) for o in of if o.verdict is not None}
                    for judge, of in judged
                }
            )

    def recorded_places(self) -> list[Row]:
        """The same of every recorded ``strategy``."""
        codes = tuple(ERROR_TYPES)

        def errors(of: Mapping[int, ToldKind]) -> Errors:
            found: dict[str, Sequence[ToldKind] | None] = {}
            for kind, one in of.items():
                there = one.present
                if there is None and one.score is not None:
                    there = one.score < 0
                if there is not None:
                    found[codes[kind]] = [one] if there else None
            return found

        def all_of(reports: Recorded) -> dict[int, Errors]:
            return {number: errors(of) for number, of in reports.items()}

        return self._located({name: all_of(of) for name, of in self._recorded().items()})

    def _located(self, by_judge: Mapping[str, Mapping[int, Errors]]) -> list[Row]:
        """``by_judge``: judge -> number of a story -> errors; empty: people named no places."""
        try:
            people = mateval_files.marked(self._files)
        except MissingError:
            return []
        spaced = self._language.pack.units == "words"

        def places(number: int, errors: Errors) -> Places:
            sentences, _ = people[number]
            return {
                code: None if told is None else _named(told, sentences, spaced)
                for code, told in errors.items()
            }

        rows: list[Row] = []
        for judge, by_story in by_judge.items():
            found = [places(number, errors) for number, errors in by_story.items()]
            compared = locations.compare([people[number][1] for number in by_story], found)
            rows += [{"strategy": judge, "n": len(found), **row} for row in compared]
        return rows


def _metrics(language: Language) -> Mapping[str, Metric]:
    if language.english:
        # As the paper computed them: all ten cells of each agree.
        published: Metric = partial(bleu, tokens="blanks")
        return {"BLEU": published, "ROUGE-L": rouge_l_of_sets, "ROUGE-L (rouge-score)": rouge_l}
    return {"BLEU": partial(bleu, tokens="zh"), "ROUGE-L": partial(rouge_l, tokens="zh")}


def _named(told: Iterable[ToldKind], sentences: Sequence[str], spaced: bool) -> frozenset[int]:
    return named("\n".join(line for one in told for line in one.said), sentences, spaced)


def _reports(judgment: Judgment, ledger: Ledger) -> list[str]:
    """The reports behind a judgment: a panel's are in its transcript, others in the ledger."""
    last = {one.speaker: one.text for one in judgment.transcript if one.verdict is not None}
    if SUMMARIZER in last:
        return [last[SUMMARIZER]]
    stored = () if last else filter(None, map(ledger.get, judgment.calls))
    return [*last.values()] or [reply.text for reply in stored] or [judgment.reason]
