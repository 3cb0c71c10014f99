"""``botchat evaluate``: a judge's reports on anybody's texts, or its verdicts on pairs of answers.

A file is judged like a seed set of its own, ``evaluate-NAME``, as a benchmark is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from botchat.boards import cases as of_cases
from botchat.boards.tables import Table
from botchat.boards.writers import table_files
from botchat.errors import ConfigError, DataError
from botchat.interfaces import Case, Row, settings_digest
from botchat.pipeline.agree import compare_judges
from botchat.pipeline.leaderboard import Published, leaderboard
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.results import Plan
from botchat.pipeline.run.session import RULES, catalogue_of
from botchat.pipeline.run.work import Meter
from botchat.pipeline.seeds import MAX_TABLE_BYTES
from botchat.protocols import texts
from botchat.protocols.catalogue import ARENA, DIAGNOSIS
from botchat.protocols.items import (
    ANSWERS,
    TEXTS,
    AnswerPair,
    items,
    pair_cases,
    pair_labels,
    paragraphs,
    plain,
)
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import calibrated
from botchat.protocols.texts import MATEVAL, TEXT, OwnText
from botchat.records import SIGNED, Dialogue, Judgment, Seed
from botchat.requests import Evaluating
from botchat.requests.arguments import Spending
from botchat.workspace import files
from botchat.workspace.folder import SAMPLE, Workspace, dialogue_order
from botchat.workspace.rows import fields_of, rows, utf8

if TYPE_CHECKING:
    from pandas import DataFrame

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".txt")
"""Of the files that can be evaluated."""


@dataclass(frozen=True)
class Evaluated:
    """What a judge says about a file, as written: the set's board, and its verdicts one by one."""

    board: Published
    tables: Sequence[Table]
    """Every text or pair, what they come to, and beside people, of each criterion."""
    notes: Sequence[str]
    """What a person should know of them."""
    whole: Mapping[str, Any]
    """The board's, and these tables, JSON-ready."""
    unanswered: int
    """Cases that another run may still get an answer for."""

    @property
    def frame(self) -> DataFrame:
        """The exact numbers of the first table."""
        return self.tables[0].frame

    @property
    def rows(self) -> Sequence[Row]:
        """One a text, or a pair in one order, and criterion, JSON-ready."""
        rows: Sequence[Row] = self.whole["rows"]
        return rows

    @property
    def shown(self) -> Sequence[str | Table]:
        """Lines and tables, in the order in which people read them."""
        parts: list[str | Table] = []
        for one in self.tables:
            parts += [f"{one.title}\n", one, f"\n{one.note}\n"]
        return [*parts, self.board.table, *self.notes, *self.board.lines]


_OF_RULES = (
    "The rules judge measures texts and answers against what people say in dialogues: it sees form "
    "only, and long texts are long to it."
)


def plan_evaluate(request: Evaluating, workspace: Workspace) -> Plan:
    """What `evaluate` would send."""
    _, cases = _cases(request, workspace)
    return _asked(request, workspace, cases).plan(workspace)


def evaluate(
    request: Evaluating, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Evaluated:
    """Ask what is not judged yet, and write tables and reports.

    Raises as `botchat.pipeline.judge.Judging.run`, and `DataError`: the file, with its row and
    column.
    """
    listed, cases = _cases(request, workspace)
    made = _asked(request, workspace, cases).run(workspace, spending, meter)
    judge = made[0].judge
    with workspace.locked():
        _write_set(workspace, seed_set_of(request), listed)
    told = [(one, _judged(request, workspace, one, judge)) for one in cases]
    formats = request.table_formats
    board = leaderboard(
        workspace, seed_set_of(request), judge, request.out, meter=meter, formats=formats
    )
    tables: list[Table] = []
    texts: dict[str, str] = {}
    rows: list[Row] = []
    notes = [_OF_RULES] if request.judge == RULES else []
    for one, judged in told:
        found = _tables(one.protocol, listed, judged, judge)
        tables += found
        rows += [{"criterion": one.protocol.name, **row} for row in found[0].records]
        notes += of_cases.lacking(one.protocol, found[0].records)
        if one.protocol == MATEVAL:
            by_id = {judgment.seed_id: judgment for judgment in judged}
            own = [text for text in listed if isinstance(text, OwnText)]
            texts[f"{one.protocol.name}-reports.txt"] = of_cases.written_reports(own, by_id)
    assert board.out is not None
    workspace.write_out(board.out, {**table_files(tables, formats), **texts})
    whole = {
        **board.whole,
        "file": request.file.name,
        "board": board.rows,
        "rows": rows,
        "notes": [*notes, *board.whole["notes"]],
        "tables": {one.name: one.records for one in tables},
    }
    return Evaluated(board, tables, notes, whole, sum(one.unanswered for one in made))


def _judged(request: Evaluating, workspace: Workspace, cases: Cases, judge: str) -> list[Judgment]:
    """What the judge says of the cases as they are now, in their order."""
    path = workspace.judgments_path(seed_set_of(request), cases.protocol.name, judge)
    made = workspace.judgments(path)
    asked = ((case, made.get((case.seed_id, case.contestants))) for case in
             (make() for make in cases.make))  # fmt: skip
    return [one for case, one in asked if one is not None and one.case == case.digest]


def seed_set_of(request: Evaluating) -> str:
    """The set that the file becomes."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", request.file.stem).strip("-.")[:40]
    return f"evaluate-{name or 'file'}"


def _asked(request: Evaluating, workspace: Workspace, cases: Sequence[Cases]) -> Asked:
    # People of the sample are what the rules judge measures a text against.
    return Asked(seed_set_of(request), workspace.seeds(SAMPLE), request.judge_name, cases)


def _cases(
    request: Evaluating, workspace: Workspace
) -> tuple[list[OwnText] | list[AnswerPair], list[Cases]]:
    """The texts or pairs of the file, and what each criterion asks about them."""
    known = {one.name: one for one in (MATEVAL, ANSWERS, *catalogue_of(workspace))}
    if odd := next((name for name in request.criteria if name not in known), None):
        raise ConfigError(f"--criteria {odd}: unknown; criteria: {', '.join(known)}")
    protocols = [known[name] for name in dict.fromkeys(request.criteria)]
    wanted = [plain(name) for one in protocols or [MATEVAL] for name in of_cases.numbers(one)]
    listed = read_items(request.file, wanted)
    of_texts = isinstance(listed[0], OwnText)
    what, shows = ("texts", "one") if of_texts else ("pairs", "pair")
    rules = request.judge == RULES
    if not protocols:
        by_rules, by_model = (DIAGNOSIS, MATEVAL) if of_texts else (ARENA, ANSWERS)
        protocols = [by_rules if rules else by_model]
    for one in protocols:
        if one.shows != shows:
            fit = ", ".join(each.name for each in known.values() if each.shows == shows)
            raise ConfigError(
                f"--criteria {one.name}: it is not about {what}, which {request.file} holds; "
                f"about {what}: {fit}"
            )
        if rules and not one.about_ai:
            raise ConfigError(
                f"--criteria {one.name}: the rules judge knows only what tells machines from "
                f"people: {'unieval or diagnosis' if of_texts else 'arena'}; name a model"
            )
    return listed, [_asking(one, listed) for one in protocols]


def read_items(
    file: Path, numbers: Sequence[str] = (), columns: Sequence[str] = TEXTS
) -> list[OwnText] | list[AnswerPair]:
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


def _asking(protocol: Protocol, listed: Sequence[OwnText] | Sequence[AnswerPair]) -> Cases:
    """Every case of one criterion: a text once, a pair in both orders."""
    made = []
    for one in listed:
        if isinstance(one, AnswerPair):
            if protocol == ANSWERS:
                made += list(pair_cases([one]))
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


def _one(protocol: Protocol, text: OwnText) -> Case:
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


def _write_set(
    workspace: Workspace, name: str, listed: Sequence[OwnText] | Sequence[AnswerPair]
) -> None:
    """The file as a set: seeds that nobody began, and what each of them holds as dialogues."""
    talks = [
        talk
        for one in listed
        for talk in (
            _talks(one)
            if isinstance(one, AnswerPair)
            else [Dialogue(one.id, TEXT, one.lines, 0, (), "complete", "")]
        )
    ]
    digest = settings_digest([(one.seed_id, one.model, one.utterances) for one in talks])
    signature = f"{SIGNED}|imported:{digest}|set:{name}"
    workspace.write_seeds(name, [Seed(one.id, ()) for one in listed])
    by_model: dict[str, list[Dialogue]] = {}
    for talk in talks:
        signed = msgspec.structs.replace(talk, signature=signature)
        by_model.setdefault(talk.model, []).append(signed)
    for path in workspace.dialogue_files(name):
        path.unlink()  # of an earlier file of that name
    for model, made in by_model.items():
        files.finish(workspace.dialogues_path(name, model), made, dialogue_order)


def _tables(
    protocol: Protocol,
    listed: Sequence[OwnText] | Sequence[AnswerPair],
    judged: Sequence[Judgment],
    judge: str,
) -> list[Table]:
    """A criterion's tables of the file."""
    pairs = [one for one in listed if isinstance(one, AnswerPair)]
    if pairs:
        found = [of_cases.of_pairs(protocol, pairs, judged)]
        people = pair_labels(pairs, of_cases.PEOPLE)
        if people and judged:
            both = [*people, *calibrated(judged, protocol)]
            rows = compare_judges(both, of_cases.PEOPLE).rows
            found.append(of_cases.beside_people(protocol, rows, judged))
        return found
    own = [one for one in listed if isinstance(one, OwnText)]
    by_id = {judgment.seed_id: judgment for judgment in judged}
    numbers = of_cases.of_numbers(protocol, own, by_id, judge)
    return [of_cases.of_texts(protocol, own, by_id), *([numbers] if numbers else [])]
