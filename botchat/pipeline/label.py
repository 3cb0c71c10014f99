"""Human annotators as judges: a page of blind cases, and the labels that it exports.

The page opens from disk and needs no server. It holds the dialogues of each case and the digest of
the case, and no names of contestants. `label` writes the page, or files the labels of exported
files under the judge ``human:NAME``.
"""

import unicodedata
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from botchat.errors import ConfigError, DataError, MissingDataError, UsageError, listed
from botchat.frames import fill_text
from botchat.interfaces import KnownCase, case_ref
from botchat.metrics.statistics import LEAST
from botchat.pipeline.contestants import begun_seeds, in_turn, with_humans
from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.protocols.protocol import PASS_AT, Protocol
from botchat.records import (
    BLIND_PAGE,
    HUMAN,
    SIGNED,
    Dialogues,
    JudgeId,
    Judgment,
    Seeds,
    Utterances,
)
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

LONGEST_NAME = 60
"""Characters of an annotator's name."""


class LabelCase(msgspec.Struct):
    """A case on the page; ``case``: its digest."""

    seed_id: str
    case: str
    dialogues: list[Utterances]


class Label(msgspec.Struct, frozen=True):
    """A line of an exported file: the part of a `Judgment` that the page can know."""

    protocol: str
    seed_id: str
    judge: str
    verdict: str
    case: str


def label(
    workspace: Workspace,
    seed_set: str,
    files: Sequence[Path] = (),
    *,
    protocol: str | None = None,
    most: int = 100,
) -> Result:
    """Write the page of blind cases, or file the labels of exported files; all of them or none.

    Raises:
        MissingDataError: no such seed set or file, or no protocol is named and no judge has judged.
        ConfigError: no such protocol, or a name that cannot be an annotator's.
        DataError: a file of something else, or a label of no case that can be asked now.
    """
    seeds = workspace.seeds(seed_set)
    dialogues = workspace.all_dialogues(seed_set, seeds)
    known = catalogue(workspace.config.protocols, workspace.language(seed_set))
    if files:
        labels = _labels(known, seed_set, files, seeds, with_humans(seeds, dialogues))
        return _file_labels(workspace, seed_set, labels)
    if most < 1:
        raise UsageError(f"--cases {most}: give 1 or more")
    if protocol is None:
        asked = _judged_protocol(workspace, seed_set, known)
    else:
        asked = known.find(protocol) or known.named(protocol)
        if not asked.answer.is_labelled:
            raise ConfigError(f"--protocol {protocol}: error reports cannot be labelled")
    if not asked.is_pair:
        dialogues = with_humans(begun_seeds(seeds, dialogues), dialogues)
    if asked.tests_judges and asked.is_alone:
        asked = _at_one_length(asked, dialogues)
    cases = _draw(asked, seeds, dialogues)[:most]
    if not cases:
        raise MissingDataError(
            f"no dialogues of {seed_set} to label by {asked.name}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    path = workspace.out(seed_set) / f"label-{asked.name}.html"
    jsonl.write_atomic(path, _page(asked, seed_set, cases).encode())
    return Result(
        {"page": path, "protocol": asked.name, "cases": len(cases)},
        [
            f"{len(cases)} cases: {path}",
            f"Then file what it exports: botchat label FILE --seeds {seed_set}",
        ],
    )


def annotator_name(name: str) -> str:
    """Return the name that labels are filed under: ``Amy`` and `` amy`` are the same.

    Raises `ConfigError` for none, one that is too long, or one that cannot be shown.
    """
    # Case-folding can undo the normal form.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    words = " ".join(folded.split())
    if not words or len(words) > LONGEST_NAME or not words.isprintable():
        raise ConfigError(
            f"name {name[:LONGEST_NAME]!r}: give 1 to {LONGEST_NAME} characters that can be shown"
        )
    return words


def _judged_protocol(workspace: Workspace, seed_set: str, catalogue: Catalogue) -> Protocol:
    """Return the protocol to label by default: GTEval, or the Arena, if some judge was asked."""
    names: set[str] = set()
    for judge, by_protocol in workspace.judgment_files(seed_set).items():
        if not JudgeId.parse(judge).is_annotator():
            names.update(by_protocol)
    judged = list(catalogue.among(names).values())
    judged.sort(key=lambda protocol: (not protocol.against_human, not protocol.is_pair))
    for protocol in judged:
        if protocol.answer.is_labelled:
            return protocol
    raise MissingDataError(f"nobody has judged {seed_set}: name a protocol, --protocol unieval")


def _at_one_length(protocol: Protocol, dialogues: Dialogues) -> Protocol:
    """Return the protocol at the largest N that enough human dialogues have: length tells nothing.

    The protocol itself where too few are long enough.
    """
    lengths = [len(dialogue.utterances) for dialogue in dialogues.get(HUMAN, {}).values()]
    for n in reversed(PASS_AT):
        if sum(length >= n for length in lengths) >= LEAST:
            return protocol.at(n)
    return protocol


def _draw(protocol: Protocol, seeds: Seeds, dialogues: Dialogues) -> list[KnownCase]:
    """Return every case in random order, each pair of contestants (or each contestant) in turn.

    A pair is in one of its orders; the order is always the same.
    """

    def draw(case: KnownCase) -> bytes:
        return sha256("\0".join((protocol.name, case.seed_id, *case.contestants)).encode()).digest()

    drawn: dict[tuple[frozenset[str], str], KnownCase] = {}
    for case in sorted((case_ref(each) for each in protocol.cases(seeds, dialogues)), key=draw):
        drawn.setdefault((frozenset(case.contestants), case.seed_id), case)
    cases = in_turn((names, case) for (names, _), case in drawn.items())
    if protocol.knows_truth and protocol.is_alone:  # as many people as models
        return in_turn((HUMAN in case.contestants, case) for case in cases)
    return cases


def _page(protocol: Protocol, seed_set: str, cases: Sequence[KnownCase]) -> str:
    from botchat.report.archive import about_protocol
    from botchat.report.page import inert, policy, text

    rows = []
    for case in cases:
        utterances = [dialogue.utterances for dialogue in case.dialogues]
        rows.append(LabelCase(case.seed_id, case.digest, utterances))
    about = {"set": seed_set, "protocol": about_protocol(protocol), "cases": rows}
    script = text("label.js")
    return fill_text(
        "report/label.html",
        about_json=inert(about),
        script=script,
        style=text("paper.css"),
        policy=policy(script),
    )


def _labels(
    catalogue: Catalogue,
    seed_set: str,
    files: Sequence[Path],
    seeds: Seeds,
    dialogues: Dialogues,
) -> list[Judgment]:
    """Read the labels of exported files, each as a judgment of its case."""
    cases: dict[str, dict[tuple[str, str], KnownCase]] = {}
    labels = []
    for path in files:
        if not path.is_file():
            raise MissingDataError(f"no file {path}; name what the page of botchat label exported")
        for line in jsonl.read(path, Label):
            protocol = catalogue.find(line.protocol)
            if protocol is None or not protocol.answer.is_labelled:
                raise DataError(f"{path}: protocol {line.protocol[:40]!r} has no labels here")
            if line.protocol not in cases:
                known = map(case_ref, protocol.cases(seeds, dialogues))
                cases[line.protocol] = {(case.seed_id, case.digest): case for case in known}
            case = cases[line.protocol].get((line.seed_id, line.case))
            labels.append(_judgment(line, seed_set, protocol, case))
    if not labels:
        raise DataError(f"no labels in {listed(map(str, files))}")
    return labels


def _file_labels(workspace: Workspace, seed_set: str, labels: Sequence[Judgment]) -> Result:
    """Append the labels that are new to their judges' files."""
    by_judge: dict[tuple[str, str], list[Judgment]] = {}
    for each in labels:
        by_judge.setdefault((each.judge, each.protocol), []).append(each)
    rows = []
    with workspace.locked():
        files = workspace.judgment_files(seed_set)
        for (judge, name), judgments in by_judge.items():
            path = workspace.judgments_path(seed_set, name, judge)
            # An exported file that was put there by hand goes on where it is.
            path = files.get(judge, {}).get(name, path)
            last = {judgment.case: judgment.verdict for judgment in jsonl.read(path, Judgment)}
            new = 0
            with jsonl.Appender[Judgment](path) as file:
                for judgment in judgments:
                    if last.get(judgment.case) != judgment.verdict:
                        file.append(judgment)
                        last[judgment.case] = judgment.verdict
                        new += 1
            rows.append({"judge": judge, "protocol": name, "labels": len(judgments), "new": new})
    return Result({"rows": rows})


def _judgment(line: Label, seed_set: str, protocol: Protocol, case: KnownCase | None) -> Judgment:
    """Return a label as a judgment of its case; raises as `label`."""
    asked = JudgeId.parse(line.judge)
    if asked.role != "annotator":
        raise ConfigError(f"judge {line.judge[:80]!r}: labels are those of human:NAME")
    name = annotator_name(asked.name.partition(":")[2])
    judge = asked._replace(name=f"{HUMAN}:{name}")
    if case is None:
        raise DataError(
            f"label of {line.seed_id[:80]!r} in {protocol.name}: no dialogues of now are its case "
            f"{line.case[:16]!r}; make the page again: botchat label --seeds {seed_set}"
        )
    utterances = case.dialogues[0].utterances
    if not protocol.offers(utterances, line.verdict):
        raise DataError(
            f"label of {line.seed_id!r}: {protocol.name} does not offer {line.verdict[:40]!r}"
        )
    n = "" if protocol.n is None else f"|n:{protocol.n}"
    return Judgment(
        protocol=protocol.name,
        seed_id=line.seed_id,
        contestants=case.contestants,
        judge=str(judge),
        verdict=line.verdict,
        reason="",
        shown=len(utterances),
        case=line.case,
        signature=f"{SIGNED}|{protocol.base}|set:{seed_set}{n}|judge:{judge}|{BLIND_PAGE}|orders:1",
    )
