"""MATEval's benchmark beside its judges: metrics, recorded discussions, where errors are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from typing import TypeVar, get_args

from botchat.errors import MissingError
from botchat.interfaces import Row
from botchat.languages import Language, built_in
from botchat.measures.correlation import Rating
from botchat.measures.error_reports import ToldKind, read_kinds
from botchat.papers import locations, mateval_columns, mateval_records, stories
from botchat.papers.locations import Places, named
from botchat.papers.mateval_records import STRATEGIES, Reading
from botchat.papers.metrics import (
    PEOPLE,
    RANKS,
    Given,
    bleu,
    correlated,
    ends_of,
    rouge_l,
    rouge_l_of_sets,
)
from botchat.papers.stories import STORY, Story
from botchat.protocols import scores
from botchat.protocols.texts import ERROR_TYPES
from botchat.records import Judgment
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.panels import SUMMARIZER

Files = Mapping[str, bytes]
Metric = Callable[[str, str], float]


def of_stories(files: Files, told: Sequence[Story]) -> Given:
    """What needs no judge: metrics, and the strategies of upstream's recorded discussions.

    Metrics compare each story with the one before errors were put in; recordings are taken as the
    paper did, or as written.
    They raise `MissingError` where the files have no originals or no recording of that strategy.
    """
    language = built_in()[mateval_records.language(files)]
    found: dict[str, Callable[[Sequence[str]], Row]] = {
        name: partial(_measured, files, told, metric) for name, metric in _metrics(language).items()
    }
    rows = cache(partial(mateval_records.mateval, files))
    for reading in get_args(Reading):
        for strategy in STRATEGIES.values():
            name = f"recorded {strategy}"
            name += "" if reading == "as published" else f", {reading}"
            found[name] = partial(_recorded, rows, strategy, reading)
    return found


def _metrics(language: Language) -> Mapping[str, Metric]:
    if language.english:
        # As the paper computed them: all ten cells of each agree.
        published: Metric = partial(bleu, tokens="blanks")
        return {"BLEU": published, "ROUGE-L": rouge_l_of_sets, "ROUGE-L (rouge-score)": rouge_l}
    return {"BLEU": partial(bleu, tokens="zh"), "ROUGE-L": partial(rouge_l, tokens="zh")}


def _measured(files: Files, told: Sequence[Story], metric: Metric, _: Sequence[str]) -> Row:
    references = mateval_columns.originals(files)
    values = [
        Rating(story.id, STORY, "metric", metric(story.text, reference))
        for story, reference in zip(told, references, strict=True)
    ]
    return correlated(
        {code: [*stories.labels(told, code, PEOPLE), *values] for code in ERROR_TYPES}
    )


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


def recorded_locations(files: Files) -> list[Row]:
    """Rows of `botchat.papers.locations.compare` of every recorded ``strategy``.

    Empty where people did not say where errors are; else errors as of `mateval_records.mateval`.
    """

    def places(of: Mapping[int, ToldKind], told: Sequence[str], spaced: bool) -> Places:
        present = {
            kind: one.score < 0 if one.present is None and one.score is not None else one.present
            for kind, one in of.items()
        }
        return {
            _CODES[kind]: _named([of[kind]], told, spaced) if there else None
            for kind, there in present.items()
            if there is not None
        }

    found = mateval_records.recorded(files)
    in_order = [name for name in STRATEGIES.values() if name in found]
    return _located(files, {name: found[name] for name in [*in_order, *found]}, places)


def live_locations(
    workspace: Workspace,
    files: Files,
    told: Sequence[Story],
    judged: Mapping[str, Sequence[Judgment]],
) -> list[Row]:
    """The same of judges, each a ``strategy``, on the stories that it judged.

    A story has the errors that the verdict takes points off for; they are where the report of a
    discussion's summariser, or any other panel's members in their last words, quote them.
    """
    language = built_in()[mateval_records.language(files)]
    numbers = {story.id: number for number, story in enumerate(told)}
    by_judge = {
        judge: {numbers[one.seed_id]: one for one in of if one.verdict is not None}
        for judge, of in judged.items()
    }
    path = workspace.ledger_path
    with closing(Ledger(path, readonly=True) if path.exists() else Ledger(None)) as ledger:

        def places(judgment: Judgment, sentences: Sequence[str], spaced: bool) -> Places:
            said = [
                one for text in _reports(judgment, ledger) for one in read_kinds(text, language)
            ]
            verdict = (judgment.verdict or "").split()
            return {
                code: _named([one for one in said if one.kind == kind], sentences, spaced)
                if float(points) < 0
                else None
                for kind, (code, points) in enumerate(zip(_CODES, verdict, strict=True))
                if points != scores.MISSING
            }

        return _located(files, by_judge, places)


_CODES = tuple(ERROR_TYPES)

T = TypeVar("T")


def _located(
    files: Files,
    by_judge: Mapping[str, Mapping[int, T]],
    places: Callable[[T, Sequence[str], bool], Places],
) -> list[Row]:
    """Judge -> number of a story -> what it says of it; ``places`` of that, by its sentences."""
    try:
        people = mateval_columns.people(files)
    except MissingError:
        return []
    spaced = built_in()[mateval_records.language(files)].pack.units == "words"
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
