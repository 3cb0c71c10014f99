"""``botchat evaluate``: a judge's reports on anybody's texts, or its verdicts on pairs of answers.

A file is judged like a seed set of its own, ``evaluate-NAME``, as a benchmark is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec

from botchat.boards import cases as case_tables
from botchat.boards.tables import Table
from botchat.boards.writers import Content, table_files
from botchat.errors import ConfigError, DataError
from botchat.importers.tables import read_text, rows
from botchat.interfaces import Case, MakeCase, Row, ShownDialogue, settings_digest
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.session import RULES, catalogue_of
from botchat.protocols.answers import ANSWERS, AnswerPair, pair_cases
from botchat.protocols.catalogue import ARENA
from botchat.protocols.items import items, paragraphs
from botchat.protocols.mateval import DIAGNOSIS, MATEVAL, TEXT, OwnText, text_case
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import plain_name
from botchat.records import SIGNED, Dialogue, Judgment, Seed
from botchat.requests import Evaluating, Leaderboard
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter
from botchat.requests.results import Plan, Told
from botchat.workspace import jsonl
from botchat.workspace.folder import SAMPLE, Workspace, stage_order
from botchat.workspace.jsonl import write_all

Item = OwnText | AnswerPair

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".txt")
"""Of the files that can be evaluated."""


_OF_RULES = (
    "The rules judge measures texts and answers against what people say in dialogues: it sees form "
    "only, and long texts are long to it."
)


def plan_evaluate(request: Evaluating, workspace: Workspace) -> Plan:
    """What `evaluate` would send."""
    return _asked(request, workspace, _cases(request, workspace)[1]).plan(workspace)


def evaluate(
    request: Evaluating, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Told:
    """Ask what is not judged yet, and write tables and reports.

    Raises as `botchat.pipeline.judge.Judging.run`, and `DataError`: the file, with its row and
    column.
    """
    listed, cases = _cases(request, workspace)
    stages = _asked(request, workspace, cases).run(workspace, spending, meter)
    judge, seed_set = stages[0].judge, seed_set_of(request)
    with workspace.locked():
        _write_set(workspace, seed_set, listed)
    board = Leaderboard(seed_set, judge, request.out, formats=request.formats).run(
        workspace, meter=meter
    )
    texts = [item for item in listed if isinstance(item, OwnText)]
    pairs = [item for item in listed if isinstance(item, AnswerPair)]
    notes = [_OF_RULES] if request.judge == RULES else []
    tables: list[Table] = []
    files: dict[str, Content] = {}
    rows, agreed = list[Row](), list[Row]()
    for of, stage in zip(cases, stages, strict=True):
        protocol, judged = of.protocol, _judged(of, workspace.judgments(stage.path))
        shown, labelled = (
            case_tables.of_pairs(protocol, pairs, judged)
            if pairs
            else case_tables.of_texts(protocol, texts, judged)
        )
        tables.append(shown)
        rows += [{"criterion": protocol.name, **row} for row in shown.records]
        agreed += [{"criterion": protocol.name, **row} for row in labelled]
        notes += case_tables.sentences(protocol, shown.records, labelled)
        if protocol == MATEVAL:
            files[f"{protocol.name}-reports.txt"] = case_tables.written_reports(texts, judged)
    write_all(Path(board.whole["out"]), {**table_files(tables, request.table_formats), **files})
    whole = {
        **board.whole,
        "file": request.file.name,
        "board": board.tables[0].records,
        "rows": rows,
        "agreement": agreed,
        "notes": [*notes, *board.whole["notes"]],
    }
    parts = [part for one in tables for part in (f"{one.title}\n", one, f"\n{one.note}\n")]
    unanswered = sum(stage.unanswered for stage in stages)
    return Told(whole, [*parts, *notes, *board.lines], unanswered)


def _judged(cases: Cases, judgments: Mapping[Any, Judgment]) -> list[Judgment]:
    """What the judge says of the cases as they are now, in their order."""
    asked = (make() for make in cases.make)
    known = [(case, judgments.get((case.seed_id, case.contestants))) for case in asked]
    return [one for case, one in known if one is not None and one.case == case.digest]


def seed_set_of(request: Evaluating) -> str:
    """The set that the file becomes."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", request.file.stem).strip("-.")[:40]
    return f"evaluate-{name or 'file'}"


def _asked(request: Evaluating, workspace: Workspace, cases: Sequence[Cases]) -> Asked:
    # People of the sample are what the rules judge measures a text against.
    return Asked(seed_set_of(request), workspace.seeds(SAMPLE), request.judge_name, cases)


def _cases(request: Evaluating, workspace: Workspace) -> tuple[Sequence[Item], list[Cases]]:
    """The texts or pairs of the file, and what each criterion asks about them."""
    known = {one.name: one for one in (MATEVAL, ANSWERS, *catalogue_of(workspace))}
    if odd := next((name for name in request.criteria if name not in known), None):
        raise ConfigError(f"--criteria {odd}: unknown; criteria: {', '.join(known)}")
    protocols = [known[name] for name in dict.fromkeys(request.criteria)]
    wanted = [
        plain_name(name) for one in protocols or [MATEVAL] for name in case_tables.numbers(one)
    ]
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


def read_items(file: Path, numbers: Sequence[str] = ()) -> list[OwnText] | list[AnswerPair]:
    """What a file holds, see `botchat.protocols.items`; `ConfigError` for any other kind of it."""
    kind = file.suffix.lower()
    if file.is_dir():
        raise ConfigError(f"{file} is a folder; name a file in it: {', '.join(SUFFIXES)}")
    if kind not in SUFFIXES:
        raise ConfigError(f"{file}: none of {', '.join(SUFFIXES)}; save it as one of these")
    data, where = jsonl.content(file), str(file)
    if kind == ".txt":
        found = paragraphs(read_text(data, where))
        if not found:
            raise DataError(f"{where}: no texts; separate them by blank lines")
        return found
    cells = [
        (place, {name.replace("_", ""): cell for name, cell in fields.items()})
        for place, fields in rows(data, where)
    ]
    return items(cells, where, numbers)


def _asking(protocol: Protocol, listed: Sequence[Item]) -> Cases:
    """Every case of one criterion: a text once, a pair in both orders."""
    made: list[MakeCase] = []
    for one in listed:
        if protocol == ANSWERS and isinstance(one, AnswerPair):
            made += pair_cases([one])
        elif protocol == MATEVAL and isinstance(one, OwnText):
            made.append(partial(text_case, one))
        else:
            made += (partial(_case, protocol, talks) for talks in permutations(_talks(one)))
    return Cases(protocol, made)


def _case(protocol: Protocol, talks: Sequence[Dialogue]) -> Case:
    """Return a question about dialogues, cut to the length of the first."""
    n = len(talks[0].utterances)
    return protocol.case(talks[0].seed_id, *(ShownDialogue.of(talk, n) for talk in talks))


def _talks(one: Item) -> list[Dialogue]:
    """A text as a conversation; of a pair the question, if there is one, and each answer."""
    if isinstance(one, OwnText):
        return [Dialogue(one.id, TEXT, one.lines, 0, (), "complete", "")]
    before = (one.question,) if one.question else ()
    return [
        Dialogue(one.id, name, (*before, answer), len(before), (), "complete", "")
        for name, answer in zip(one.contestants, one.answers, strict=True)
    ]


def _write_set(workspace: Workspace, name: str, listed: Sequence[Item]) -> None:
    """The file as a set: seeds that nobody began, and what each of them holds as dialogues."""
    talks = [talk for one in listed for talk in _talks(one)]
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
        jsonl.finish(workspace.dialogues_path(name, model), made, stage_order)
