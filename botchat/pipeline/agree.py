"""Judges beside people and beside each other: stage files and CSV files in, tables and figures out.

GTEval and UniEval know the truth themselves: one side, or the whole dialogue, is human.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from botchat.boards import judge_agreement, which_judge
from botchat.boards.judge_agreement import Findings
from botchat.boards.judge_health import sureness
from botchat.boards.tables import Table
from botchat.boards.writers import Formats, document, table_files, to_json
from botchat.errors import ConfigError, MissingDataError, did_you_mean
from botchat.interfaces import Row, round_floats, settings_digest
from botchat.judges.panel import BEFORE_TALK, CALL_MATCHED, is_debate, votes_before_debate
from botchat.metrics.agreement import Agreement, compare, detection
from botchat.metrics.annotations import Annotation, Opinions, is_person
from botchat.pipeline.run.contestants import full_name, own_name, panel_of
from botchat.pipeline.run.read_set import Read, read
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import preferences
from botchat.protocols.rates import truth as truth_of
from botchat.records import HUMAN, SIGNED, Dialogues, Judgment
from botchat.requests import Agreeing
from botchat.requests.results import Compared
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from botchat.workspace.usage import bills, total

RESAMPLES = 1000
"""Of the bootstrap over items, from seed 0."""

_FEW_PEOPLE = 12
"""Who are compared with each other on a page, where no judge answered what they did."""


def agree(request: Agreeing, workspace: Workspace) -> Compared:
    """Compare judges with people, with what is known anyway, and with each other.

    Verdicts are those of files (``item,first,second,judge,verdict``, or any format of votes, see
    `botchat.importers.vote_files`; beside a set, their items are seeds) and of a set's stage
    files of one protocol. Of files alone nothing is written unless ``out`` says where.
    """
    files, seed_set, protocol = request.files, request.seed_set, request.protocol
    truth, out = request.truth, request.out
    if not files and seed_set is None:
        raise ConfigError("agree needs FILE.csv, or --seeds SET --protocol PROTOCOL")
    stage = _Stage()
    if seed_set is not None:
        stages = _stages(read(workspace, seed_set))
        if protocol is None or protocol not in stages:
            raise ConfigError(
                f"--protocol {protocol or 'is missing'}{did_you_mean(protocol or '', stages)}: "
                f"what was judged on {seed_set}: "
                f"{', '.join(stages) or 'nothing that judges can be compared on'}"
            )
        stage = stages[protocol]
    elif protocol is not None:
        raise ConfigError(f"--protocol {protocol} is about stage files: add --seeds SET")
    read_files = [annotations_of(path) for path in files]
    annotations = [one for found, _ in read_files for one in found]
    known = list(dict.fromkeys([*(a.judge for a in annotations), *stage.judged]))
    kept = _chosen(workspace, known, request.judges, truth)
    found = _findings(
        workspace,
        replace(stage, judged={name: stage.judged[name] for name in stage.judged if name in kept}),
        [a for a in annotations if a.judge in kept],
        known,
        files,
        truth,
    )
    found = replace(found, notes=[*(line for _, said in read_files for line in said), *found.notes])
    if out is None and seed_set is not None:
        out = workspace.out(seed_set) / f"agreement-{protocol}"
    return publish(found, judge_agreement.tables(found), out, formats=request.table_formats)


def votes_in(path: Path) -> bytes:
    """A file of votes; `MissingDataError` without one, `DataError` if it is too long."""
    if not path.exists():
        raise MissingDataError(
            f"no file {path}; name a csv, tsv, json, jsonl or parquet of votes, such as "
            "item,first,second,judge,verdict"
        )
    return jsonl.content(path)


def annotations_of(path: Path) -> tuple[list[Annotation], list[str]]:
    """The verdicts of a file of any format of votes, and what a reader must know of them."""
    from botchat.importers.vote_files import read_votes  # pandas

    taken = read_votes(votes_in(path), str(path))
    found, again = taken.votes.annotations(once=taken.once)
    repeated = f"; {again:,} given again by the same judge, the last counts" if again else ""
    return found, [f"{taken.note}{repeated}."]


def beside_each_other(workspace: Workspace, found: Read) -> dict[str, Findings]:
    """Protocol -> what `agree` finds of a set's judges, where there are two, not all people.

    Of few people alone, where the truth is known, it finds who is right too.
    """
    compared = {}
    for name, stage in _stages(found).items():
        judges = [name for name in stage.judged if not is_person(name, HUMAN)]
        truth_known = stage.protocol is not None and stage.protocol.knows_truth
        few = truth_known and len(stage.judged) <= _FEW_PEOPLE
        if len(stage.judged) > 1 and (judges or few):
            compared[name] = _findings(workspace, stage, [], list(stage.judged))
    return compared


@dataclass(frozen=True)
class _Stage:
    """What the stage files of one protocol say."""

    seed_set: str | None = None
    protocol: Protocol | None = None
    """``None``: nothing of stage files takes part."""
    judged: Mapping[str, Sequence[Judgment]] = field(default_factory=dict)
    dialogues: Dialogues = field(default_factory=dict)
    stale: Mapping[str, int] = field(default_factory=dict)


def _findings(
    workspace: Workspace,
    stage: _Stage,
    annotations: Sequence[Annotation],
    known: Sequence[str],
    files: Sequence[Path] = (),
    truth: str | None = None,
) -> Findings:
    """Judges compared, by stage files and ``annotations``; ``known``: all who said something."""
    protocol, judged, said = stage.protocol, dict(stage.judged), list(annotations)
    costs = {}
    if protocol is not None:
        judged = with_controls(workspace, stage.judged, protocol)
        costs = expenses(workspace, judged)
        made_by = (j for made in judged.values() for j in made)
        said += preferences(made_by, protocol)
    prefix = None if truth == OF_WRITERS else truth
    people = {is_person(name, HUMAN) for name in known}
    if truth is None and len(people) > 1:
        prefix = HUMAN
    elif prefix is None and protocol is not None and protocol.knows_truth:
        prefix = BUILT_IN
        said += truth_of(said, BUILT_IN)
    elif prefix is None and True in people:
        prefix = HUMAN
    grid = Opinions.of(said, prefix)
    compared = compare_judges(
        grid,
        prefix,
        lengths=judge_agreement.shown_lengths(stage.dialogues, judged),
        selves={name: own_name(workspace, name) for name in (*known, *judged)},
    )
    if prefix == BUILT_IN:
        compared = _without_people(compared)
    if protocol is not None and protocol.kind == "place" and protocol.about_ai:
        compared = _with_accusations(compared, judged, stage.dialogues)
    rated = judge_agreement.ratings(grid, prefix)
    name = None if protocol is None else protocol.name
    subject = [f"{name} on {stage.seed_set}"] if stage.seed_set else []
    rows = [
        {**sureness(judged.get(row["judge"], ())), **row, **costs.get(row["judge"], {})}
        for row in compared.rows
    ]
    rankings = [
        row | {"bt": rated.get((row["judge"], row["contestant"]))} for row in compared.rankings
    ]
    return Findings(
        **vars(
            replace(
                compared, rows=which_judge.in_order(replace(compared, rows=rows)), rankings=rankings
            )
        ),
        subject=", ".join([*subject, *(path.name for path in files)]),
        truth={None: "", BUILT_IN: BUILT_IN}.get(prefix, f"people ({prefix}…)"),
        signature=signature(
            "agree",
            {"set": stage.seed_set, "protocol": name, "files": "+".join(f.name for f in files)},
            sorted((a.item, a.first, a.second, a.judge, a.verdict or "") for a in said),
            prefix,
        ),
        notes=list(_notes(stage, judged, compared, prefix)),
    )


def _stages(found: Read) -> dict[str, _Stage]:
    """What judges can be compared on, by name of the protocol."""
    stages = {}
    for name in sorted({name for by in found.judged.values() for name in by}):
        if (protocol := found.catalogue.find(name)) is not None:
            judged = {judge: by[name] for judge, by in found.judged.items() if by.get(name)}
            stale = {judge: found.stale[judge] for judge in judged}
            stages[name] = _Stage(found.seed_set, protocol, judged, found.dialogues, stale)
    return stages


def _chosen(
    workspace: Workspace, known: Sequence[str], judges: Sequence[str], truth: str | None
) -> set[str]:
    """Names that take part: those asked for, their controls, and all people."""
    if not judges:
        return set(known)
    kept = {name for name in known if is_person(name, truth or HUMAN)}
    for asked in judges:
        full = full_name(asked, workspace)
        found = {
            name
            for name in known
            if name in (asked, full)
            or name.startswith(f"{asked}@")
            or name in (f"{asked}{CALL_MATCHED}", f"{full}{CALL_MATCHED}")
        }
        if not found:
            hint = did_you_mean(asked, known)
            raise MissingDataError(
                f"no verdicts of the judge {asked!r}{hint}; there are: {', '.join(known)}"
            )
        kept |= found
    return kept


def _without_people(compared: Agreement) -> Agreement:
    """Truth that nobody was asked for ranks nobody, and is no group of people."""

    def unranked(rows: Iterable[Row]) -> list[Row]:
        ranks = ("spearman", "kendall")
        return [{key: None if key.startswith(ranks) else row[key] for key in row} for row in rows]

    return replace(
        compared,
        rows=unranked(compared.rows),
        pairs=unranked(compared.pairs),
        rankings=[row for row in compared.rankings if row["judge"] != BUILT_IN],
        annotators=(),
    )


def _with_accusations(
    compared: Agreement, judged: Mapping[str, Sequence[Judgment]], dialogues: Dialogues
) -> Agreement:
    """UniEval: what is known of who wrote what, beside the figures."""

    def first_ai(judgment: Judgment) -> int | None:
        (name,) = judgment.contestants
        return None if name == HUMAN else dialogues[name][judgment.seed_id].n_seed + 1

    rows, pairs = detection((judgment for made in judged.values() for judgment in made), first_ai)
    return replace(
        compared,
        rows=[row | rows.get(row["judge"], {}) for row in compared.rows],
        pairs=[row | pairs.get((row["judge_a"], row["judge_b"]), {}) for row in compared.pairs],
    )


def _notes(
    stage: _Stage, judged: Mapping[str, Sequence[Judgment]], compared: Agreement, prefix: str | None
) -> Iterable[str]:
    for name in judged:
        if stage.stale.get(name):
            yield (
                f"{stage.stale[name]} judgments of {name} are about dialogues that have changed "
                "since and do not count; run the judge again."
            )
        kinds = Counter(judgment.signature for judgment in judged[name])
        if len(kinds) > 1 and not name.endswith(BEFORE_TALK):
            yield (
                f"The judgments of {name} were made with {len(kinds)} different settings; judge "
                "again to make them one."
            )
    yield from which_judge.other_cases(compared)
    if prefix is None:
        yield "No truth is known: judges are compared with each other only; see --truth."


OF_WRITERS = "built-in"
"""In place of a prefix of people: `BUILT_IN`, though people labelled."""

BUILT_IN = "who wrote what (built in)"
"""The annotator that knows which side is human; no judge has such a name."""


def publish(
    found: Findings,
    tables: Sequence[Table],
    out: Path | None,
    whole: Row | None = None,
    formats: Formats | None = None,
    answer: Sequence[str] = (),
) -> Compared:
    """Write tables, md, json (default all of ``found``) and figures to ``out``, if there is one.

    ``answer``: first, where it is not that of ``found``.
    """
    whole = {**(whole or judge_agreement.as_json(found)), "out": None if out is None else str(out)}
    said = [*found.talk, *found.notes]
    lines = [*said, found.signature]
    answer = answer or found.answer
    if out is not None:
        from botchat.report.figures import agreement as figures

        texts = {"agreement.md": document(found.subject, [*answer, *said], tables)}
        texts["agreement.json"] = to_json(whole)
        jsonl.write_all(out, {**table_files(tables, formats), **texts})
        for chart in figures.draw(found):
            jsonl.write_atomic(out / f"{chart.name}.svg", chart.svg.encode())
            jsonl.write_atomic(out / f"{chart.name}.png", chart.png)
        lines.append(f"written to: {out}")
    shown = [part for part in tables if part.name not in ("pairs", "rankings")]
    return Compared(shown, lines, whole, out, answer)


def compare_judges(
    annotations: Sequence[Annotation] | Opinions,
    truth_prefix: str | None,
    *,
    lengths: Mapping[tuple[str, str], float] | None = None,
    selves: Mapping[str, str] | None = None,
) -> Agreement:
    """`compare`; votes before a talk are nobody's of a group."""
    return compare(
        annotations,
        truth_prefix,
        resamples=RESAMPLES,
        lengths=lengths,
        selves=selves,
        ungrouped=(BEFORE_TALK,),
    )


def with_controls(
    workspace: Workspace, judged: Mapping[str, Sequence[Judgment]], protocol: Protocol
) -> dict[str, Sequence[Judgment]]:
    """Judges by name, each panel that talks followed by its own votes before the talk."""
    choices = protocol.reading().choices
    found: dict[str, Sequence[Judgment]] = {}
    for name in sorted(judged):
        found[name] = judged[name]
        if is_debate(judged[name]):
            settings = panel_of(workspace, name)
            votes = settings is not None and settings.decides == "majority"
            scores: Literal["mean", "majority"] = "majority" if votes else "mean"
            found[f"{name}{BEFORE_TALK}"] = votes_before_debate(
                judged[name], lambda _: choices, scores
            )
    return found


def expenses(workspace: Workspace, judged: Mapping[str, Sequence[Judgment]]) -> dict[str, Row]:
    """Judge -> ``calls``, ``tokens``, ``usd`` and ``seconds`` of one verdict, from the ledger.

    A call that several verdicts rest on counts once. ``None``: not known of every call. Seconds are
    the sum of the calls' own, also where they were in flight together.
    """
    by_judge = {
        name: {call for judgment in made for call in judgment.calls}
        for name, made in judged.items()
    }
    with closing(workspace.ledger(readonly=True)) as ledger:
        paid = bills(ledger, set().union(*by_judge.values()))

    def mean(judge: str, figure: str) -> float | None:
        whole = total(paid, by_judge[judge], figure)
        return None if whole is None else whole / len(judged[judge])

    return {
        name: {
            "calls": len(calls) / len(judged[name]),
            "tokens": mean(name, "tokens"),
            "usd": mean(name, "cost_usd"),
            "seconds": mean(name, "latency_s"),
        }
        for name, calls in by_judge.items()
    }


def signature(what: str, of: Mapping[str, str | None], data: Any, truth: str | None) -> str:
    """What a comparison of judges is signed with; ``data``, JSON-ready, holds every verdict."""
    people = {None: "none", BUILT_IN: "built-in"}.get(truth, truth)
    return "|".join(
        [
            f"{SIGNED}",
            what,
            *(f"{key}:{value}" for key, value in of.items() if value),
            f"truth:{people}",
            f"data:{settings_digest(round_floats(data))}",
            f"bootstrap:{RESAMPLES}",
            "seed:0",
        ]
    )
