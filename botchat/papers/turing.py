"""Dialogues with known truth: does a machine take part? ``docs/benchmarks.md`` has the form."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import numpy as np

from botchat.boards.judge_agreement import (
    BUILT_IN,
    JUDGES,
    AgreementReport,
    agreement_signature,
    by_skill,
    with_price,
)
from botchat.boards.tables import Column, spread, table
from botchat.errors import DataError, MissingDataError, listed, quoted
from botchat.estimates import UNKNOWN, Estimate
from botchat.frames import fill_lines
from botchat.importers.tables import json_rows
from botchat.interfaces import MakeCase
from botchat.metrics import lengths
from botchat.metrics.agreement import Agreement, JudgeAgreement, compare
from botchat.metrics.statistics import LEVEL
from botchat.metrics.verdicts import LOSS, NO_CONTESTANT, WIN, PairVerdict, PairVerdicts
from botchat.papers.benchmarks import Answered, Benchmark, Comparison, Files
from botchat.pipeline.judge import ProtocolCases
from botchat.protocols.catalogue import UNIEVAL
from botchat.protocols.kinds import result_of
from botchat.protocols.protocol import preferences
from botchat.records import HUMAN, Dialogue, Texts

MACHINE = "machine"
ANNOTATOR = "one annotator"
MAJORITY = "annotators' majority"
_OTHERS = f"{MAJORITY}: of all but one"

TRAPS: Mapping[str, Callable[[Dialogue], int]] = {
    "length alone": lambda dialogue: sum(lengths.words(each) for each in dialogue.utterances),
    "number of turns alone": lambda dialogue: len(dialogue.utterances),
}
"""Name -> a number that a judge must beat."""

Item = tuple[Dialogue, list[tuple[int, bool]]]
"""A dialogue by `HUMAN` or `MACHINE`, and its labels: utterances read, whether it was called AI."""


class CutItems(NamedTuple):
    """Items of a source, cut to one length, and how many dialogues and labels are left out."""

    items: list[Item]
    end: int
    n_short: int
    """Dialogues that are shorter."""
    n_labels: int
    """Labels that were given after another number of utterances."""


def turing(files: Files) -> Benchmark:
    """Return the dialogues of each source; raises as `read_items`."""
    whole, left_out = read_items(files)
    sources = {source: _cut(items) for source, items in whole.items()}
    dialogues = []
    for cut in sources.values():
        dialogues += [dialogue for dialogue, _ in cut.items]
    dialogues.sort(key=lambda each: sha256(each.seed_id.encode()).digest())  # --limit mixes them
    cases: list[MakeCase] = []
    for dialogue in dialogues:
        cases += UNIEVAL.cases((), {dialogue.model: {dialogue.seed_id: dialogue}})
    return Benchmark(
        [ProtocolCases(UNIEVAL, cases)], partial(_compare, sources, left_out), needs_judges=False
    )


def read_items(files: Files) -> tuple[dict[str, list[Item]], list[str]]:
    """Return the items by source, and a line on each row that is none.

    Raises `DataError`, with file and row, if all rows are none, `MissingDataError` without any.
    """
    sources = defaultdict[str, list[Item]](list)
    left_out = []
    for name in sorted(files):
        for place, record in json_rows(files[name], name):
            try:
                source, item = _item(record, name)
            except (AttributeError, LookupError, TypeError, msgspec.ValidationError):
                left_out.append(f"{place}: {quoted(record)} is no dialogue with id, turns and who")
            else:
                sources[source].append(item)
    if left_out and not sources:
        raise DataError(f"{listed(left_out)}; see docs/benchmarks.md")
    if not sources:
        raise MissingDataError("no dialogues: --data needs JSON lines, see docs/benchmarks.md")
    return sources, left_out


def _item(record: Any, name: str) -> tuple[str, Item]:
    """Return an item and its source; a record of another form raises one of several errors."""
    source = record.get("source", name)
    turns = []
    for turn in record["turns"]:
        if isinstance(turn, dict):
            turn = (turn["speaker"], turn["text"])
        turns.append(turn)
    texts = [text for _, text in msgspec.convert(turns, list[tuple[str | int, str]])]
    contestant = MACHINE
    if set(record["who"].values()) == {HUMAN}:
        contestant = HUMAN
    verdicts = record.get("labels", {}).get("verdicts", ())
    labels = [(verdict["after"], False in verdict["human"]) for verdict in verdicts]
    id_ = f"{source}:{record['id']}"
    return source, (Dialogue(id_, contestant, tuple(texts), 0, (), "complete", ""), labels)


def _cut(items: Sequence[Item]) -> CutItems:
    """Cut to the length that annotators read and half of the dialogues have, else the median."""
    median = int(np.median([len(dialogue.utterances) for dialogue, _ in items]))
    ends = []
    for _, labels in items:
        ends += [after for after, _ in labels if after <= median]
    end = max(ends, default=median)
    cut = []
    n_labels = 0
    for dialogue, labels in items:
        kept = []
        if len(dialogue.utterances) >= end:
            kept = [label for label in labels if label[0] == end]
            cut.append((dialogue.cut(end), kept))
        n_labels += len(labels) - len(kept)
    return CutItems(cut, end, len(items) - len(cut), n_labels)


def _compare(sources: Mapping[str, CutItems], left_out: Texts, answered: Answered) -> Comparison:
    """Compare judges, annotators and traps with the truth, source by source."""
    verdicts = preferences(answered.all(UNIEVAL), UNIEVAL)
    costs = answered.costs(UNIEVAL)
    rows = []
    unjudged = []
    unbeaten = defaultdict[tuple[str, str], list[str]](list)
    for source, cut in sources.items():
        in_columns = _on_items(cut.items, verdicts)
        kappas = {}
        if MAJORITY in in_columns.judges:
            kappas = {each.judge: each.kappa for each in compare(in_columns, MAJORITY).judges}
        try:
            compared = compare(in_columns, BUILT_IN)
        except MissingDataError:  # nobody has judged it, and one class has no traps
            unjudged.append(source)
            continue
        of_source = AgreementReport(
            subject=source,
            labels=BUILT_IN,
            signature="",
            agreement=Agreement(judges=_shown(compared.judges, kappas)),
            prices=costs,
        )
        rows += [spread({"source": source, **row}) for row in of_source.judge_rows]
        for (judge, other), difference in compared.differences.items():
            if judge in costs and other in TRAPS and not difference.at(LEVEL).low > 0:
                unbeaten[judge, other].append(source)
    notes = fill_lines(
        "papers/turing_notes.txt",
        left_out=left_out,
        sources=sources,
        unjudged=unjudged,
        unbeaten=unbeaten,
    )
    signed = agreement_signature("bench", {"benchmark": "turing"}, rows, BUILT_IN)
    rates_table = table(
        "turing",
        "Is an AI involved? Judges, annotators and traps against the truth",
        (Column("source", "Source", "name"), *JUDGES),
        [with_price(row) for row in rows],
        [signed],
        "Brackets are 95 % CIs by dialogue; kappa is Cohen's with the annotators' majority.",
    ).filled()
    report = AgreementReport(
        subject=rates_table.title, labels=BUILT_IN, signature=signed, notes=notes
    )
    return Comparison(report, [rates_table], {"judges": rows, "notes": notes, "signature": signed})


def _on_items(items: Sequence[Item], verdicts: Iterable[PairVerdict]) -> PairVerdicts:
    """Return the verdicts on some items, of judges, annotators and traps."""
    ids = {dialogue.seed_id for dialogue, _ in items}
    known = [verdict for verdict in verdicts if verdict.item in ids]
    known += _annotations(items)
    known += _traps(items)
    return PairVerdicts.of(known)


def _shown(
    judges: Sequence[JudgeAgreement], kappas: Mapping[str, Estimate]
) -> list[JudgeAgreement]:
    """Return judges by skill, with these kappas; who wrote a dialogue ranks no contestant."""
    shown = []
    for judge in by_skill(judges):
        if judge.judge != _OTHERS:
            kappa = kappas.get(judge.judge, UNKNOWN)
            shown.append(replace(judge, kappa=kappa, spearman=None, kendall=None))
    return shown


def _annotations(items: Sequence[Item]) -> Iterator[PairVerdict]:
    """Yield the truth, the majority, and each annotator against the majority of the others.

    These are other people for each: an annotator's verdict has a contestant of its own.
    """
    for dialogue, labels in items:
        name = dialogue.model
        votes = [is_ai for _, is_ai in labels]
        groups = [(name, MAJORITY, votes)]
        for n, vote in enumerate(votes):
            groups.append((f"{name} {n}", _OTHERS, votes[:n] + votes[n + 1 :]))
            yield _annotation(dialogue, f"{name} {n}", ANNOTATOR, vote)
        for contestant, judge, group in groups:
            yield _annotation(dialogue, contestant, BUILT_IN, name == MACHINE)
            lead = 2 * sum(group) - len(group)
            if lead:
                yield _annotation(dialogue, contestant, judge, lead > 0)


def _traps(items: Sequence[Item]) -> Iterator[PairVerdict]:
    """Yield verdicts by one number alone, at the threshold of most skill on all other items.

    A tie where no threshold has any; nothing for dialogues that are all human or all AI.
    """
    machine = np.array([dialogue.model == MACHINE for dialogue, _ in items])
    if machine.all() or not machine.any():
        return
    for trap, number in TRAPS.items():
        numbers = np.array([number(dialogue) for dialogue, _ in items])
        above = numbers[:, None] >= np.unique(numbers)
        rates = []
        for of_class in (machine, ~machine):
            called = above * of_class[:, None]
            n_others = np.maximum(of_class.sum() - of_class, 1)[:, None]
            rates.append((called.sum(0) - called) / n_others)
        skill = rates[0] - rates[1]
        row = np.arange(len(items))
        best = np.abs(skill).argmax(1)
        leads = np.sign(skill[row, best]) * (1 - 2 * above[row, best])
        for (dialogue, _), lead in zip(items, leads.tolist(), strict=True):
            result = result_of(lead)
            yield PairVerdict(dialogue.seed_id, dialogue.model, NO_CONTESTANT, trap, result)


def _annotation(dialogue: Dialogue, contestant: str, judge: str, is_ai: bool) -> PairVerdict:
    result = WIN
    if is_ai:
        result = LOSS
    return PairVerdict(dialogue.seed_id, contestant, NO_CONTESTANT, judge, result)
