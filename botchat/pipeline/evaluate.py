"""``botchat evaluate``: a judge's reports on anybody's texts, or its verdicts on pairs of answers.

A file is judged like a seed set of its own, ``evaluate-NAME``, as a benchmark is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.boards import evaluation
from botchat.boards.evaluation import Criterion
from botchat.boards.tables import Formats, Table, document, table_files, to_json
from botchat.errors import ConfigError, DataError
from botchat.interfaces import Case, Row
from botchat.measures.correlation import compare_scores
from botchat.pipeline.agree import Options, compare_judges
from botchat.pipeline.bench import judgments_of
from botchat.pipeline.correlations import PEOPLE
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.session import RULES, catalogue_of
from botchat.pipeline.run.work import Meter
from botchat.pipeline.seeds import MAX_TABLE_BYTES
from botchat.protocols import answers, preferences, texts
from botchat.protocols.answers import ANSWERS, AnswerPair
from botchat.protocols.catalogue import ARENA, DIAGNOSIS
from botchat.protocols.items import TEXTS, items, paragraphs, plain
from botchat.protocols.kinds import Protocol
from botchat.protocols.texts import MATEVAL, TEXT, Text
from botchat.records import Dialogue, Judgment
from botchat.requests import JudgeName, Spending
from botchat.workspace import files
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.rows import fields_of, rows, utf8

if TYPE_CHECKING:
    from pandas import DataFrame

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".txt")
"""Of the files that can be evaluated."""


@dataclass(frozen=True)
class Evaluated:
    """What a judge says about a file, as written."""

    criteria: Sequence[Criterion]
    lines: Sequence[str]
    """What else a person should see: notes, where things are."""
    whole: Row
    """``rows``, one a text or pair and criterion, and every table, JSON-ready."""
    unanswered: int
    """Cases that another run may still get an answer for."""

    @property
    def frame(self) -> DataFrame:
        """The exact numbers of the first table."""
        return self.tables[0].frame

    @property
    def rows(self) -> Sequence[Row]:
        """One a text or pair and criterion, JSON-ready."""
        rows: Sequence[Row] = self.whole["rows"]
        return rows

    @property
    def shown(self) -> Sequence[str | Table]:
        """Lines and tables, in the order in which people read them."""
        parts: list[str | Table] = []
        for one in self.tables:
            parts += [f"{one.title}\n", one, f"\n{one.note}\n"]
        return [*parts, *self.lines]

    @property
    def tables(self) -> list[Table]:
        """Of every criterion."""
        return [one for criterion in self.criteria for one in criterion.tables]


@dataclass(frozen=True)
class Evaluating:
    """The request of ``botchat evaluate``; what is judged already is not asked again."""

    file: Path
    """Texts or pairs, see `botchat.protocols.items`; of plain text what blank lines separate."""
    judge: JudgeName
    criteria: tuple[str, ...] = ()
    """Names of protocols; empty: ``mateval`` of texts, ``answers`` of pairs (``rules`` judge:
    ``diagnosis`` and ``arena``)."""
    out: Path | None = None
    """Folder to write to; default ``leaderboards/evaluate-NAME``."""
    formats: Formats | None = None
    """Of the file of each table (csv)."""

    def plan(self, workspace: Workspace) -> plan.Plan:
        """What `run` would send; errors as there."""
        _, cases = self._cases(workspace)
        return self._asked(workspace, cases).plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Evaluated:
        """Ask what is not judged yet, and write tables and reports.

        Raises as `botchat.pipeline.judge.Judging.run`, and `DataError`: the file, with its row and
        column.
        """
        listed, cases = self._cases(workspace)
        made = self._asked(workspace, cases).run(workspace, spending, meter)
        judge = made[0].judge
        criteria = []
        for one in cases:
            judged = judgments_of(workspace, self._set, one).get(judge, ())
            criteria.append(_criterion(one.protocol, listed, judged, judge))
        return self._published(workspace, judge, criteria, sum(one.unanswered for one in made))

    @property
    def _set(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._]+", "-", self.file.stem).strip("-.")[:40]
        return f"evaluate-{name or 'file'}"

    def _asked(self, workspace: Workspace, cases: Sequence[Cases]) -> Asked:
        # People of the sample are what the rules judge measures a text against.
        return Asked(self._set, workspace.seeds(SAMPLE), self.judge, cases)

    def _cases(self, workspace: Workspace) -> tuple[list[Text] | list[AnswerPair], list[Cases]]:
        """The texts or pairs of the file, and what each criterion asks about them."""
        known = {one.name: one for one in (MATEVAL, ANSWERS, *catalogue_of(workspace))}
        if odd := next((name for name in self.criteria if name not in known), None):
            raise ConfigError(f"--criteria {odd}: unknown; criteria: {', '.join(known)}")
        protocols = [known[name] for name in dict.fromkeys(self.criteria)]
        wanted = [plain(name) for one in protocols or [MATEVAL] for name in evaluation.numbers(one)]
        listed = read_items(self.file, wanted)
        of_texts = isinstance(listed[0], Text)
        what, shows = ("texts", "one") if of_texts else ("pairs", "pair")
        rules = self.judge.name == RULES
        if not protocols:
            by_rules, by_model = (DIAGNOSIS, MATEVAL) if of_texts else (ARENA, ANSWERS)
            protocols = [by_rules if rules else by_model]
        for one in protocols:
            if one.shows != shows:
                fit = ", ".join(each.name for each in known.values() if each.shows == shows)
                raise ConfigError(
                    f"--criteria {one.name}: it is not about {what}, which {self.file} holds; "
                    f"about {what}: {fit}"
                )
            if rules and not one.about_ai:
                raise ConfigError(
                    f"--criteria {one.name}: the rules judge knows only what tells machines from "
                    f"people: {'unieval or diagnosis' if of_texts else 'arena'}; name a model"
                )
        return listed, [_asking(one, listed) for one in protocols]

    def _published(
        self, workspace: Workspace, judge: str, criteria: list[Criterion], unanswered: int
    ) -> Evaluated:
        """Write csv, md, json and the page."""
        out = self.out or workspace.out(self._set)
        title = f"Evaluation of {self.file.name} by {judge}"
        notes = list(_notes(judge, criteria))
        tables = [one for criterion in criteria for one in criterion.tables]
        whole: Row = {
            "file": self.file.name,
            "judge": judge,
            "rows": [
                {"criterion": each.protocol.name, **row} for each in criteria for row in each.items
            ],
            "tables": {one.name: one.records for one in tables},
            "signatures": [one.signature for one in tables],
            "notes": notes,
            "out": str(out),
        }
        from botchat.report.evaluation import render

        written = table_files(tables, self.formats)
        sections = [evaluation.markdown(one) for one in criteria]
        written["evaluation.md"] = "\n".join([document(title, notes, tables), *sections])
        written["evaluation.json"] = to_json(whole)
        written["evaluation.html"] = render(title, notes, criteria)
        # Half a character, which a file may hold, is written as a question mark.
        files.write_all(
            out,
            {
                name: content.encode("utf-8", "replace") if isinstance(content, str) else content
                for name, content in written.items()
            },
        )
        lines = [*notes, f"page: {out / 'evaluation.html'}"]
        return Evaluated(criteria, lines, whole, unanswered)


def read_items(
    file: Path, numbers: Sequence[str] = (), columns: Sequence[str] = TEXTS
) -> list[Text] | list[AnswerPair]:
    """What a file holds, see `botchat.protocols.items`; `ConfigError` for any other kind of it."""
    kind = file.suffix.lower()
    if file.is_dir():
        raise ConfigError(f"{file} is a folder; name a file in it: {', '.join(SUFFIXES)}")
    if kind not in SUFFIXES:
        raise ConfigError(f"{file}: none of {', '.join(SUFFIXES)}; save it as one of these")
    data, where = files.content(file, MAX_TABLE_BYTES), str(file)
    if kind == ".txt":
        found = paragraphs(utf8(data, where))
        if not found:
            raise DataError(f"{where}: no texts; separate them by blank lines")
        return found
    listed = [(place, fields_of(fields, place)) for place, fields in rows(data, where)]
    return items(listed, where, numbers, columns)


def _asking(protocol: Protocol, listed: Sequence[Text] | Sequence[AnswerPair]) -> Cases:
    """Every case of one criterion: a text once, a pair in both orders."""
    made = []
    for one in listed:
        if isinstance(one, AnswerPair):
            if protocol == ANSWERS:
                made += list(answers.cases([one]))
                continue
            first, second = _talks(one)
            made += [
                partial(_pair, protocol, first, second),
                partial(_pair, protocol, second, first),
            ]
        elif protocol == MATEVAL:
            made.append(partial(texts.case, one))
        else:
            made.append(partial(_one, protocol, one))
    return Cases(protocol, made)


def _one(protocol: Protocol, text: Text) -> Case:
    """The question about a text as a talk, whose first lines are its own too."""
    return _own(protocol.one(text.id, TEXT, text.lines), 0)


def _pair(protocol: Protocol, first: Dialogue, second: Dialogue) -> Case:
    case = protocol.pair(first.seed_id, first, second, len(first.utterances))
    return _own(case, first.n_seed)


def _own(case: Case, n_seed: int) -> Case:
    shown = tuple(replace(one, n_seed=n_seed) for one in case.dialogues)
    return replace(case, dialogues=shown)


def _talks(pair: AnswerPair) -> list[Dialogue]:
    """A pair for questions about conversations: the question, if there is one, and each answer."""
    before = (pair.question,) if pair.question else ()
    return [
        Dialogue(pair.id, name, (*before, answer), len(before), (), "complete", "")
        for name, answer in zip(pair.contestants, pair.answers, strict=True)
    ]


def _criterion(
    protocol: Protocol,
    listed: Sequence[Text] | Sequence[AnswerPair],
    judged: Sequence[Judgment],
    judge: str,
) -> Criterion:
    pairs = [one for one in listed if isinstance(one, AnswerPair)]
    if pairs:
        people = answers.labels(pairs, PEOPLE)
        both = [*people, *preferences.calibrated(judged, protocol)]
        compare = people and judged
        rows = compare_judges(both, PEOPLE, Options()).rows if compare else []
        return evaluation.of_pairs(protocol, pairs, judged, rows)
    told = [one for one in listed if isinstance(one, Text)]
    by_id: Mapping[str, Judgment] = {judgment.seed_id: judgment for judgment in judged}
    shown = [evaluation.text_row(protocol, one, by_id.get(one.id)) for one in told]
    found = evaluation.ratings(protocol, shown, judge, PEOPLE)
    correlated = [
        {**row, "number": name}
        for name, rated in found.items()
        for row in compare_scores(rated, PEOPLE).rows
    ]
    return evaluation.of_texts(protocol, told, by_id, correlated)


def _notes(judge: str, criteria: Sequence[Criterion]) -> Sequence[str]:
    notes = []
    if judge == RULES:
        notes.append(
            "The rules judge measures texts and answers against what people say in dialogues: it "
            "sees form only, and long texts are long to it."
        )
    for one in criteria:
        gaps = [found for row in one.items if (found := evaluation.lacking(one.protocol, row))]
        if gaps:
            which = Counter(name for found in gaps for name in found)
            listed = ", ".join(f"{name} of {n}" for name, n in which.items())
            notes.append(
                f"{one.title}: of {len(gaps)} of {len(one.items)} the judge's reply lacks "
                f"something ({listed}); it is missing, and counts for nothing."
            )
    return notes
