"""Comparison of judges with human labels and each other, from stage files and files of votes.

GTEval and UniEval know the truth themselves: one side, or the whole dialogue, is human.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import median_low

import numpy as np

from botchat.boards.files import document, table_files, to_json
from botchat.boards.judge_agreement import (
    BUILT_IN,
    HUMAN_LABELS,
    AgreementReport,
    agreement_json,
    agreement_signature,
    agreement_tables,
    by_skill,
)
from botchat.boards.tables import Table
from botchat.errors import (
    ConfigError,
    MissingDataError,
    NotWritten,
    UsageError,
    did_you_mean,
    listed,
)
from botchat.estimates import UNKNOWN
from botchat.frames import fill_lines
from botchat.interfaces import Row
from botchat.metrics.agreement import Agreement, TextNumbers, compare
from botchat.metrics.lengths import mean_words
from botchat.metrics.verdicts import PairVerdicts, verdicts_digest
from botchat.pipeline.contestants import single_judges, stored_name, with_controls
from botchat.pipeline.ledger import cost_per_verdict
from botchat.pipeline.load import SeedSetData, judged_by, load
from botchat.protocols.protocol import Protocol, preferences
from botchat.protocols.protocol import truth as truth_of
from botchat.records import HUMAN, SHUFFLED, Dialogues, Judged, JudgeId, Judgment, Texts
from botchat.results import Piece, Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

OF_WRITERS = "built-in"
"""Value of ``truth`` for `BUILT_IN` instead of a name of annotators, even if there are labels."""


def agree(
    workspace: Workspace,
    files: Sequence[Path] = (),
    *,
    seed_set: str | None,
    protocol: str | None,
    judges: Texts = (),
    truth: str | None = None,
    out: Path | None = None,
    formats: Texts = (),
) -> Result:
    """Compare judges with human labels, with what is known anyway, and with each other.

    Verdicts come from files (``item,first,second,judge,verdict``, or battles, see
    `botchat.importers.vote_files`; with a set, their items are seeds) and from a set's stage files
    of one protocol. With files alone nothing is written unless ``out`` is given.
    """
    if not files and seed_set is None:
        raise UsageError("agree needs FILE.csv, or --seeds SET --protocol PROTOCOL")
    data = None
    name = protocol or ""
    judged: Judged = {}
    if seed_set is not None:
        data = load(workspace, seed_set)
        judged = _judged_in(data, name)
        if out is None:
            out = workspace.out(seed_set) / f"agreement-{protocol}"
    elif protocol is not None:
        raise UsageError(f"--protocol {protocol} is about stage files: add --seeds SET")
    votes, notes = _read_files(files)
    kept = _select(workspace, [*judged, *votes.judges], judges, truth)
    judged = {name: judgments for name, judgments in judged.items() if name in kept}
    votes = votes.by(kept).with_turns_named()
    names = [path.name for path in files]
    report = _report(workspace, data, name, judged, [votes], names, truth, notes)
    return publish(report, agreement_tables(report), out, formats)


def _read_files(files: Sequence[Path]) -> tuple[PairVerdicts, list[str]]:
    """Return the votes of all files, and lines on them."""
    from botchat.importers.vote_files import together, votes_in, votes_of  # pandas

    read = together([votes_of(votes_in(path)) for path in files])
    votes = read.votes
    latest = votes.only(votes.is_latest)
    notes = fill_lines("pipeline/notes_on_votes.txt", read=read, latest=latest)
    return latest, notes


def set_reports(data: SeedSetData) -> dict[str, AgreementReport]:
    """Return protocol -> the comparison of a set's judges, if there are two, not all annotators."""
    reports = {}
    for name, judged in _judged_protocols(data).items():
        n_annotators = sum(JudgeId.parse(judge).is_annotator() for judge in judged)
        if len(judged) > max(1, n_annotators):
            reports[name] = _report(data.workspace, data, name, judged)
    return reports


def _judged_in(data: SeedSetData, protocol: str) -> Judged:
    """Return the judgments in one protocol; raises `ConfigError` where there are none."""
    protocols = _judged_protocols(data)
    if protocol not in protocols:
        raise ConfigError(
            f"--protocol {protocol or 'is missing'}{did_you_mean(protocol, protocols)}: "
            f"what was judged on {data.seed_set}: "
            f"{listed(protocols) or 'nothing that judges can be compared on'}"
        )
    return protocols[protocol]


def _judged_protocols(data: SeedSetData) -> dict[str, Judged]:
    """Return the judgments on a board's seeds and contestants, by protocol; none test a judge."""
    ids = {seed.id for seed in data.seeds}
    protocols: dict[str, dict[str, Sequence[Judgment]]] = {}
    for judge, by_protocol in data.judgments.items():
        for name, judgments in by_protocol.items():
            if data.catalogue.find(name) is not None:
                judged = protocols.setdefault(name, {})
                kept = [each for each in judgments if each.seed_id in ids]
                kept = [each for each in kept if SHUFFLED not in each.contestants]
                if kept:
                    judged[judge] = kept
    return dict(sorted(protocols.items()))


def _report(
    workspace: Workspace,
    data: SeedSetData | None,
    name: str,
    judged: Judged,
    votes: Sequence[PairVerdicts] = (),
    files: Texts = (),
    truth: str | None = None,
    notes: Texts = (),
) -> AgreementReport:
    """Compare judges by judgments in the protocol ``name`` and by ``votes`` of ``files``.

    ``notes``: on the files; they stand before ours.
    """
    protocol = None
    parts = list(votes)
    signed = {"set": "", "protocol": name, "files": "+".join(files)}
    subject = list(files)
    dialogues: Dialogues = {}
    topics: Mapping[str, str] = {}
    outdated: Mapping[str, int] = Counter()
    costs = {}
    if data is not None:
        protocol = data.catalogue.find(name)
        dialogues = data.dialogues
        topics = data.test.topics
        outdated = data.outdated
        signed["set"] = data.seed_set
        subject.insert(0, f"{name} on {data.seed_set}")
        if protocol is not None:
            judged = with_controls(workspace, judged, protocol)
            parts += [PairVerdicts.of(preferences(each, protocol)) for each in judged.values()]
        costs = cost_per_verdict(workspace, judged)
    verdicts = PairVerdicts.together(parts)
    labels = _labels(verdicts, protocol, truth)
    if labels == BUILT_IN:
        verdicts = PairVerdicts.together([verdicts, truth_of(verdicts, BUILT_IN)])
    compared = compare(verdicts, labels, _shown_lengths(dialogues, judged), topics)
    if labels == BUILT_IN:  # these labels are no verdicts
        # Who wrote a dialogue ranks no contestant.
        compared = replace(
            compared,
            judges=[replace(each, spearman=UNKNOWN, kendall=UNKNOWN) for each in compared.judges],
            rankings=[each for each in compared.rankings if each.judge != BUILT_IN],
            annotators=(),
        )
    return AgreementReport(
        agreement=replace(compared, judges=by_skill(compared.judges)),
        prices=costs,
        singles=single_judges(workspace, [judge.judge for judge in compared.judges]),
        subject=", ".join(subject),
        labels={None: "", BUILT_IN: BUILT_IN}.get(labels, HUMAN_LABELS),
        signature=agreement_signature("agree", signed, verdicts_digest(verdicts), labels),
        notes=list(notes) + _notes(outdated, judged, labels, compared),
    )


def _shown_lengths(dialogues: Dialogues, judged: Judged) -> TextNumbers:
    """Return (seed, contestant) -> words an utterance of the texts that comparisons show."""
    shown: dict[tuple[str, str], float] = {}
    for judgment in chain.from_iterable(judged.values()):
        for name in judgment.contestants:
            key = (judgment.seed_id, name)
            if len(judgment.contestants) > 1 and key not in shown:
                utterances = dialogues[name][judgment.seed_id].utterances
                shown[key] = mean_words(utterances[: judgment.shown])
    return shown


def _labels(verdicts: PairVerdicts, protocol: Protocol | None, truth: str | None) -> str | None:
    """Return whose verdicts are the labels: annotators', or `BUILT_IN`; None if nobody's are."""
    if truth not in (None, OF_WRITERS):
        return truth
    if truth == OF_WRITERS and len(truth_of(verdicts, BUILT_IN)):
        return BUILT_IN
    present = np.unique(verdicts.judge).tolist()
    kinds = {JudgeId.parse(verdicts.judges[i]).is_annotator() for i in present}
    if truth is None and len(kinds) > 1:
        return HUMAN
    if protocol is not None and protocol.knows_truth:
        return BUILT_IN
    return HUMAN if True in kinds else None


def _select(workspace: Workspace, known: Texts, judges: Texts, truth: str | None) -> set[str]:
    """Return the names that take part: ``judges``, their controls, and all annotators."""
    ids = {name: JudgeId.parse(name) for name in known}
    if not judges:
        return set(ids)
    kept = {name for name in ids if ids[name].is_annotator(truth or HUMAN)}
    for named in judges:
        judge = judged_by(named, known)
        asked = {judge, stored_name(judge, workspace)}
        matches = {
            name for name, id_ in ids.items() if not asked.isdisjoint((name, id_.panel, id_.name))
        }
        if not matches:
            raise MissingDataError(
                f"no verdicts of the judge {judge!r}{did_you_mean(judge, ids)}; "
                f"there are: {listed(ids)}"
            )
        kept |= matches
    return kept


def _notes(
    outdated: Mapping[str, int], judged: Judged, labels: str | None, compared: Agreement
) -> list[str]:
    n_settings = Counter[str]()
    for name, judgments in judged.items():
        if JudgeId.parse(name).role != "votes_before_debate":
            n_settings[name] = len({judgment.signature for judgment in judgments})
    # Utterances of dialogues that are judged by themselves, which are not cut to one length.
    alone = [each for each in chain.from_iterable(judged.values()) if len(each.contestants) == 1]
    human = [each.shown for each in alone if each.contestants[0] == HUMAN]
    generated = [each.shown for each in alone if each.contestants[0] != HUMAN]
    return fill_lines(
        "pipeline/agree_notes.txt",
        judged=judged,
        outdated=outdated,
        n_settings=n_settings,
        compared=compared,
        labels=labels,
        is_built_in=labels == BUILT_IN,
        n_human=median_low(human or generated or [0]),
        n_generated=median_low(generated or [0]),
    )


def publish(
    report: AgreementReport,
    tables: Sequence[Table],
    out: Path | None,
    formats: Texts,
    data: Row | None = None,
) -> Result:
    """Write tables, md, json (default: all of the report) and figures to ``out``, if given."""
    data = {**(data or agreement_json(report)), "out": None}
    lines = report.sentences + list(report.notes)
    if out is not None:
        from botchat.report.figures import judge_charts, svg_files

        contents = table_files(tables, formats)
        contents["agreement.md"] = document(report.subject, lines, tables)
        written = {**data, "out": str(out)}
        contents["agreement.json"] = to_json(written)
        try:
            jsonl.write_all(out, contents)
            jsonl.write_all(out, svg_files(judge_charts(report)))
            data = written
            lines.append(f"Tables: {out / 'agreement.md'}")
        except NotWritten as error:
            lines.append(f"Files are not written: {error}.")
    printed: Piece = tables[0]
    if not report.labels and report.agreement.pairs:
        printed = tables[1]
    elif report.agreement.judges:
        printed = report.printed_rows
    return Result(data, [tables[0].title, printed, *lines], table=tables[0])
