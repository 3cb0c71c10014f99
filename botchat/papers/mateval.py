"""MATEval's benchmark: judges of stories beside people, metrics, recordings, places of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TypeVar, get_args

from botchat.boards.judge_agreement import Findings
from botchat.boards.writers import Formats
from botchat.errors import MissingError
from botchat.interfaces import Row
from botchat.languages import Language, built_in
from botchat.measures.correlation import Rating
from botchat.measures.error_reports import ToldKind, read_kinds
from botchat.papers import locations, mateval_files, stories, tables
from botchat.papers.benchmarks import Answered, RatedTexts
from botchat.papers.locations import Places, named
from botchat.papers.mateval_files import STRATEGIES, Files, Reading
from botchat.papers.metrics import (
    PEOPLE,
    RANKS,
    bleu,
    correlated,
    ends_of,
    of_parts,
    rouge_l,
    rouge_l_of_sets,
)
from botchat.papers.stories import STORY
from botchat.pipeline.agree import Compared, publish, signature
from botchat.pipeline.run.ask import Cases
from botchat.protocols.texts import ERROR_TYPES
from botchat.records import MISSING, Judgment
from botchat.workspace.ledger import Ledger
from botchat.workspace.panels import SUMMARIZER

Metric = Callable[[str, str], float]


class MATEval(RatedTexts):
    """Points off for five kinds of error in a story (Li et al. 2024).

    ``given`` compares each story with the one before errors were put in, and has the strategies of
    upstream's recorded discussions, taken as the paper did, or as written. It raises `MissingError`
    where the files have no originals or no recording of that strategy.
    """

    name, part = "mateval", "error_type"
    columns = of_parts(ERROR_TYPES)

    def __init__(self, files: Files) -> None:
        """Files and errors as of `mateval_files.mateval`."""
        self._files, self._told = files, stories.stories(files)
        self._language = built_in()[mateval_files.language(files)]
        self._protocol = protocol = stories.asked_in(self._language)
        self.parts = dict.fromkeys(ERROR_TYPES, protocol)
        self.cases = [Cases(protocol, [partial(stories.case, s, protocol) for s in self._told])]
        self.data = mateval_files.dataset(files) or "own"
        metrics = _metrics(self._language)
        given = {name: partial(self._measured, metric) for name, metric in metrics.items()}
        rows = cache(partial(mateval_files.mateval, files))
        for reading in get_args(Reading):
            end = "" if reading == "as published" else f", {reading}"
            for strategy in STRATEGIES.values():
                given[f"recorded {strategy}{end}"] = partial(_recorded, rows, strategy, reading)
        self.given = given

    def ratings(self, part: str, judged: Sequence[Judgment]) -> list[Rating]:
        """Of a kind of error."""
        return [*stories.labels(self._told, part, PEOPLE), *stories.ratings(judged, part)]

    def more(self, answered: Answered, rows: list[Row]) -> tuple[list[Row], Row]:
        """A judge's kinds below each other, and where it says that errors are."""
        judged = answered.judged[self._protocol.name]
        judges = list(judged)
        rows = [{"strategy": row["judge"], **row} for row in rows]
        rows.sort(key=lambda row: judges.index(row["judge"]))
        return rows, {"places": self._places(answered, judged)}

    def _measured(self, metric: Metric, _: Sequence[str]) -> Row:
        references = mateval_files.originals(self._files)
        values = [
            Rating(story.id, STORY, "metric", metric(story.text, reference))
            for story, reference in zip(self._told, references, strict=True)
        ]
        return correlated(
            {code: [*stories.labels(self._told, code, PEOPLE), *values] for code in ERROR_TYPES}
        )

    def _places(self, answered: Answered, judged: Mapping[str, Sequence[Judgment]]) -> list[Row]:
        """Rows of `_located` of judges, each a ``strategy``, on the stories that it judged.

        A story has the errors that the verdict takes points off for; they are where the report of a
        discussion's summariser, or any other panel's members in their last words, quote them.
        """
        numbers = {story.id: number for number, story in enumerate(self._told)}
        by_judge = {
            judge: {numbers[one.seed_id]: one for one in of if one.verdict is not None}
            for judge, of in judged.items()
        }
        path = answered.workspace.ledger_path
        with closing(Ledger(path, readonly=True) if path.exists() else Ledger(None)) as ledger:

            def places(judgment: Judgment, sentences: Sequence[str], spaced: bool) -> Places:
                reports = _reports(judgment, ledger)
                said = [one for text in reports for one in read_kinds(text, self._language)]
                verdict = (judgment.verdict or "").split()
                return {
                    code: _named([one for one in said if one.kind == kind], sentences, spaced)
                    if float(points) < 0
                    else None
                    for kind, (code, points) in enumerate(zip(ERROR_TYPES, verdict, strict=True))
                    if points != MISSING
                }

            return _located(self._files, by_judge, places)


def _metrics(language: Language) -> Mapping[str, Metric]:
    if language.english:
        # As the paper computed them: all ten cells of each agree.
        published: Metric = partial(bleu, tokens="blanks")
        return {"BLEU": published, "ROUGE-L": rouge_l_of_sets, "ROUGE-L (rouge-score)": rouge_l}
    return {"BLEU": partial(bleu, tokens="zh"), "ROUGE-L": partial(rouge_l, tokens="zh")}


def _recorded(
    rows: Callable[[Reading], list[Row]], strategy: str, reading: Reading, _: Sequence[str]
) -> Row:
    mine = [row for row in rows(reading) if row["strategy"] == strategy]
    if not mine:
        raise MissingError(f"no recorded discussions of {strategy} among the files")
    found: Row = {key: sum(row[key] for row in mine) for key in ("n", "unreadable")}
    for row in mine:
        found |= ends_of(row, RANKS, f"{row['error_type']}_")
    return found


def recorded(files: Files, formats: Formats | None, out: Path | None) -> Compared:
    """MATEval's recorded reports, taken as the paper did and as they are written."""
    rows, shown = [], []
    for reading in get_args(Reading):
        found = mateval_files.mateval(files, reading)
        found = tables.beside_paper(found, mateval_files.dataset(files))
        rows += [{"reading": reading, **row} for row in found]
        signed = signature("bench", {"benchmark": "mateval-recorded"}, found, PEOPLE)
        shown.append(tables.recorded(reading, found, signed))
    signed = shown[0].signature
    if places := recorded_places(files):
        shown.append(tables.error_places(places, signed))
    findings = Findings(subject="Recorded discussions", truth=PEOPLE, signature=signed)
    whole = {"rows": rows, "places": places, "signature": signed}
    return publish(findings, shown, out, whole, formats)


def recorded_places(files: Files) -> list[Row]:
    """Rows of `_located` of every recorded ``strategy``; errors as of `mateval_files.mateval`."""
    codes = tuple(ERROR_TYPES)

    def places(of: Mapping[int, ToldKind], told: Sequence[str], spaced: bool) -> Places:
        present = {
            kind: one.score < 0 if one.present is None and one.score is not None else one.present
            for kind, one in of.items()
        }
        return {
            codes[kind]: _named([of[kind]], told, spaced) if there else None
            for kind, there in present.items()
            if there is not None
        }

    found = mateval_files.recorded(files)
    in_order = [name for name in STRATEGIES.values() if name in found]
    return _located(files, {name: found[name] for name in [*in_order, *found]}, places)


T = TypeVar("T")


def _located(
    files: Files,
    by_judge: Mapping[str, Mapping[int, T]],
    places: Callable[[T, Sequence[str], bool], Places],
) -> list[Row]:
    """Rows of `botchat.papers.locations.compare`; empty: people did not say where errors are.

    ``by_judge``: judge -> number of a story -> what it says of it; ``places`` of that, by the
    story's sentences.
    """
    try:
        people = mateval_files.marked(files)
    except MissingError:
        return []
    spaced = built_in()[mateval_files.language(files)].pack.units == "words"
    rows: list[Row] = []
    for judge, by_story in by_judge.items():
        found = [places(said, people[number][0], spaced) for number, said in by_story.items()]
        compared = locations.compare([people[number][1] for number in by_story], found)
        rows += [{"strategy": judge, "n": len(found), **row} for row in compared]
    return rows


def _named(told: Iterable[ToldKind], sentences: Sequence[str], spaced: bool) -> frozenset[int]:
    return named("\n".join(line for one in told for line in one.said), sentences, spaced)


def _reports(judgment: Judgment, ledger: Ledger) -> list[str]:
    """The reports behind a judgment: a panel's are in its transcript, others in the ledger."""
    last = {one.speaker: one.text for one in judgment.transcript if one.verdict is not None}
    if SUMMARIZER in last:
        return [last[SUMMARIZER]]
    stored = () if last else filter(None, map(ledger.get, judgment.calls))
    return [*last.values()] or [reply.text for reply in stored] or [judgment.reason]
