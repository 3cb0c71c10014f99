"""Comparison of judges with human labels and each other, from stage files and files of votes.

GTEval and UniEval know the truth themselves: one side, or the whole dialogue, is human.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from botchat.boards import judge_agreement
from botchat.boards.files import document, table_files, to_json
from botchat.boards.judge_agreement import BUILT_IN, AgreementReport, agreement_signature
from botchat.boards.tables import Table
from botchat.errors import ConfigError, MissingDataError, UsageError, did_you_mean, listed
from botchat.estimates import UNKNOWN
from botchat.interfaces import Row
from botchat.metrics.agreement import compare
from botchat.metrics.verdicts import PairVerdicts, verdicts_digest
from botchat.pipeline.contestants import stored_name, with_controls
from botchat.pipeline.leaderboard import write_charts
from botchat.pipeline.ledger import cost_per_verdict
from botchat.pipeline.load import SeedSetData, load
from botchat.protocols.rates import preferences
from botchat.protocols.rates import truth as truth_of
from botchat.records import HUMAN, JudgeId, Judgment
from botchat.results import Piece, Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

OF_WRITERS = "built-in"
"""Value of ``truth`` for `BUILT_IN` instead of a name of annotators, even if there are labels."""

Judged = Mapping[str, Sequence[Judgment]]
"""Judge -> judgments in one protocol."""


def agree(
    workspace: Workspace,
    files: Sequence[Path] = (),
    *,
    seed_set: str | None = None,
    protocol: str | None = None,
    judges: Sequence[str] = (),
    truth: str | None = None,
    out: Path | None = None,
    formats: Sequence[str] = (),
) -> Result:
    """Compare judges with human labels, with what is known anyway, and with each other.

    Verdicts come from files (``item,first,second,judge,verdict``, or battles, see
    `botchat.importers.vote_files`; with a set, their items are seeds) and from a set's stage files
    of one protocol. With files alone nothing is written unless ``out`` is given.
    """
    if not files and seed_set is None:
        raise UsageError("agree needs FILE.csv, or --seeds SET --protocol PROTOCOL")
    data = None
    judged: Judged = {}
    if seed_set is not None:
        data = load(workspace, seed_set)
        protocols = _judged_protocols(data)
        asked = protocol or ""
        if asked not in protocols:
            raise ConfigError(
                f"--protocol {asked or 'is missing'}{did_you_mean(asked, protocols)}: "
                f"what was judged on {seed_set}: "
                f"{listed(protocols) or 'nothing that judges can be compared on'}"
            )
        judged = protocols[asked]
    elif protocol is not None:
        raise UsageError(f"--protocol {protocol} is about stage files: add --seeds SET")
    parts = []
    notes = []
    for path in files:
        from botchat.importers.vote_files import read_votes, votes_in  # pandas

        file = read_votes(votes_in(path), str(path))
        parts.append(file.votes if file.once else file.votes.latest())
        earlier = len(file.votes) - len(parts[-1])
        again = f"; {earlier:,} given again by the same judge, the last counts" if earlier else ""
        notes.append(f"{file.note}{again}.")
    known = [name for part in parts for name in part.judges]
    kept = _select(workspace, [*known, *judged], judges, truth)
    judged = {name: judgments for name, judgments in judged.items() if name in kept}
    votes = [part.by(kept).with_turns_named() for part in parts]
    report = _report(workspace, data, protocol, judged, votes, [path.name for path in files], truth)
    report = replace(report, notes=[*notes, *report.notes])
    if out is None and seed_set is not None:
        out = workspace.out(seed_set) / f"agreement-{protocol}"
    return publish(report, judge_agreement.agreement_tables(report), out, formats=formats)


def set_reports(data: SeedSetData) -> dict[str, AgreementReport]:
    """Return protocol -> the comparison of a set's judges, if there are two, not all annotators."""
    return {
        name: _report(data.workspace, data, name, judged)
        for name, judged in _judged_protocols(data).items()
        if len(judged) > 1 and not all(JudgeId.parse(judge).is_annotator() for judge in judged)
    }


def _judged_protocols(data: SeedSetData) -> dict[str, Judged]:
    """Return the judgments that judges can be compared on, by protocol."""
    names = sorted({name for by_protocol in data.judgments.values() for name in by_protocol})
    return {
        name: {judge: by[name] for judge, by in data.judgments.items() if by.get(name)}
        for name in names
        if data.catalogue.find(name) is not None
    }


def _report(
    workspace: Workspace,
    data: SeedSetData | None,
    name: str | None,
    judged: Judged,
    votes: Sequence[PairVerdicts] = (),
    files: Sequence[str] = (),
    truth: str | None = None,
) -> AgreementReport:
    """Compare judges by judgments in the protocol ``name`` and by ``votes`` of ``files``."""
    protocol = data.catalogue.find(name) if data and name else None
    parts = list(votes)
    if protocol is not None:
        judged = with_controls(workspace, judged, protocol)
        for judgments in judged.values():
            parts.append(PairVerdicts.of(preferences(judgments, protocol)))
    verdicts = PairVerdicts.together(parts)
    present = [verdicts.judges[i] for i in np.unique(verdicts.judge).tolist()]
    labelled = {JudgeId.parse(judge).is_annotator() for judge in present}
    prefix = None if truth == OF_WRITERS else truth
    if truth is None and len(labelled) > 1:
        prefix = HUMAN
    elif prefix is None and protocol is not None and protocol.knows_truth:
        prefix = BUILT_IN
        verdicts = PairVerdicts.together([verdicts, truth_of(verdicts, BUILT_IN)])
    elif prefix is None and True in labelled:
        prefix = HUMAN
    lengths = judge_agreement.shown_lengths(data.dialogues if data else {}, judged)
    topics = {seed.id: seed.topic for seed in data.seeds if seed.topic} if data else {}
    compared = compare(verdicts, prefix, lengths, topics)
    costs = cost_per_verdict(workspace, judged) if judged else {}
    if prefix == BUILT_IN:  # these labels are no verdicts
        # Who wrote a dialogue ranks no contestant.
        judges = [replace(each, spearman=UNKNOWN, kendall=UNKNOWN) for each in compared.judges]
        rankings = [each for each in compared.rankings if each.judge != BUILT_IN]
        compared = replace(compared, judges=judges, rankings=rankings, annotators=())
    signed = {"set": data.seed_set if data else None, "protocol": name, "files": "+".join(files)}
    subject = [f"{name} on {data.seed_set}"] if data else []
    return AgreementReport(
        agreement=replace(compared, judges=judge_agreement.by_accuracy(compared.judges)),
        prices=costs,
        subject=", ".join([*subject, *files]),
        labels={None: "", BUILT_IN: BUILT_IN}.get(prefix, judge_agreement.HUMAN_LABELS),
        signature=agreement_signature("agree", signed, verdicts_digest(verdicts), prefix),
        notes=list(_notes(data, judged, prefix)),
    )


def _select(
    workspace: Workspace, known: Sequence[str], judges: Sequence[str], truth: str | None
) -> set[str]:
    """Return the names that take part: ``judges``, their controls, and all annotators."""
    ids = {name: JudgeId.parse(name) for name in known}
    if not judges:
        return set(ids)
    kept = {name for name in ids if ids[name].is_annotator(truth or HUMAN)}
    for judge in judges:
        asked = {judge, stored_name(judge, workspace)}
        matches = {
            name for name, id_ in ids.items() if not asked.isdisjoint((name, id_.panel, id_.name))
        }
        if not matches:
            hint = did_you_mean(judge, ids)
            raise MissingDataError(
                f"no verdicts of the judge {judge!r}{hint}; there are: {listed(ids)}"
            )
        kept |= matches
    return kept


def _notes(data: SeedSetData | None, judged: Judged, prefix: str | None) -> Iterator[str]:
    for name in judged:
        if data and (n := data.outdated.get(name)):
            yield (
                f"{n} judgments of {name} are about dialogues that have changed "
                "since and do not count; run the judge again."
            )
        kinds = Counter(judgment.signature for judgment in judged[name])
        if len(kinds) > 1 and JudgeId.parse(name).role != "votes_before_debate":
            yield (
                f"The judgments of {name} were made with {len(kinds)} different settings; judge "
                "again to make them one."
            )
    if prefix is None:
        yield "No truth is known: judges are compared with each other only; see --truth."


def publish(
    report: AgreementReport,
    tables: Sequence[Table],
    out: Path | None,
    data: Row | None = None,
    formats: Sequence[str] = (),
) -> Result:
    """Write tables, md, json (default: all of the report) and figures to ``out``, if given."""
    data = data or judge_agreement.agreement_json(report)
    data = {**data, "out": None if out is None else str(out)}
    lines = [*report.sentences, *report.notes]
    if out is not None:
        from botchat.report.figures import judge_charts

        texts = {"agreement.md": document(report.subject, lines, tables)}
        texts["agreement.json"] = to_json(data)
        jsonl.write_all(out, {**table_files(tables, formats), **texts})
        write_charts(out, judge_charts(report))
        lines.append(f"Tables: {out / 'agreement.md'}")
    printed: Piece = tables[0]
    if report.agreement.judges:
        printed = report.printed_rows
    return Result(data, [tables[0].title, printed, *lines], table=tables[0])
