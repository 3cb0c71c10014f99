"""Human annotators as judges: a page of blind cases, and the labels that it exports.

The page opens from disk and needs no server. It holds the dialogues of each case and the digest of
the case, and no names of contestants. `label` writes the page, or files the labels of exported
files under the judge ``human:NAME``.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec

from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.interfaces import Row, ShownDialogue, case_digest, case_ref
from botchat.metrics.annotations import BLIND_PAGE, is_annotator
from botchat.pipeline.contestants import human_dialogues
from botchat.pipeline.session import catalogue_of
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, MISSING, SIGNED, UNDECIDED, Dialogues, Judgment, Verdict
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

PERSON = "human:"
"""What the name of a judge begins with, where that is a human annotator."""

LONGEST_NAME = 60
"""Characters of an annotator's name."""


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
        MissingDataError: no such seed set or file, or no protocol is named and nobody has judged.
        ConfigError: no such protocol, or a name that cannot be an annotator's.
        DataError: a file of something else, or a label of no case that can be asked now.
    """
    catalogue = catalogue_of(workspace, seed_set)
    human = human_dialogues(workspace.seeds(seed_set))
    if files:
        dialogues = {HUMAN: human, **workspace.all_dialogues(seed_set)}
        return _filed(workspace, seed_set, files, catalogue, dialogues)
    if most < 1:
        raise ConfigError(f"--cases {most}: give 1 or more")
    about = _labelled(workspace, seed_set, catalogue, protocol)
    dialogues = workspace.all_dialogues(seed_set)
    if about.shows != "pair":
        dialogues = {HUMAN: human, **dialogues}
    cases = _draw(about, workspace, seed_set, dialogues)[:most]
    if not cases:
        raise MissingDataError(
            f"no dialogues of {seed_set} to label by {about.name}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    path = workspace.out(seed_set) / f"label-{about.name}.html"
    jsonl.write_atomic(path, _page(about, seed_set, cases).encode())
    lines = [
        f"{len(cases)} cases: {path}",
        f"Then file what it exports: botchat label FILE --seeds {seed_set}",
    ]
    return Result({"page": path, "protocol": about.name, "cases": len(cases)}, lines)


def annotator_name(name: str) -> str:
    """The name that an annotator's labels are filed under: ``Amy`` and `` amy`` are one.

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


def _labelled(
    workspace: Workspace, seed_set: str, catalogue: Catalogue, name: str | None
) -> Protocol:
    """The protocol that is labelled; by default the first that some judge was asked."""
    if name is not None:
        protocol = catalogue.find(name) or catalogue.named(name)
        if protocol.kind == "report":
            raise ConfigError(f"--protocol {name}: error reports cannot be labelled")
        return protocol
    judges = workspace.judgment_files(seed_set).items()
    names = {one for judge, by in judges if not is_annotator(judge, HUMAN) for one in by}
    known = [one for one in catalogue.among(names).values() if one.kind != "report"]
    if not known:
        raise MissingDataError(f"nobody has judged {seed_set}: name a protocol, --protocol unieval")
    return known[0]


def _draw(
    protocol: Protocol, workspace: Workspace, seed_set: str, dialogues: Dialogues
) -> list[list[Any]]:
    """Every case in random order, each pair of contestants (or each contestant) in turn.

    Seed id, digest and utterances. A pair is in one of its orders; the order is always the same.
    """
    drawn: dict[tuple[str, frozenset[str]], tuple[bytes, tuple[ShownDialogue, ...]]] = {}
    for make in protocol.cases(workspace.seeds(seed_set), dialogues):
        case = case_ref(make)
        names = [one.contestant for one in case.dialogues]
        rank = sha256("\0".join((protocol.name, case.seed_id, *names)).encode()).digest()
        key = (case.seed_id, frozenset(names))
        drawn[key] = min(drawn.get(key, (rank, case.dialogues)), (rank, case.dialogues),
                         key=lambda one: one[0])  # fmt: skip
    turns: Counter[frozenset[str]] = Counter()
    ranked = []
    for (seed_id, who), (rank, shown) in sorted(drawn.items(), key=lambda one: one[1][0]):
        said = [seed_id, case_digest(protocol.name, *shown), [one.utterances for one in shown]]
        ranked.append((turns[who], rank, said))
        turns[who] += 1
    return [said for *_, said in sorted(ranked, key=lambda one: one[:2])]


def _page(protocol: Protocol, seed_set: str, cases: list[list[Any]]) -> str:
    from botchat.report import inert, policy, template, text
    from botchat.report.archive import about_protocol

    about = {"set": seed_set, "protocol": about_protocol(protocol), "cases": cases}
    script = text("label.js")
    return template("label.html").render(
        about_json=inert(about), script=script, style=text("paper.css"), policy=policy(script)
    )


def _filed(
    workspace: Workspace,
    seed_set: str,
    files: Sequence[Path],
    catalogue: Catalogue,
    dialogues: Dialogues,
) -> Result:
    """Append the labels that are new to their judges' files."""
    given: dict[tuple[str, str], list[Judgment]] = {}
    for path in files:
        if not path.is_file():
            raise MissingDataError(f"no file {path}; name what the page of botchat label exported")
        for one in jsonl.read(path, Label):
            protocol = catalogue.find(one.protocol)
            if protocol is None or protocol.kind == "report":
                raise DataError(f"{path}: protocol {one.protocol[:40]!r} has no labels here")
            made = _judgment(one, seed_set, protocol, dialogues)
            given.setdefault((made.judge, made.protocol), []).append(made)
    if not given:
        raise DataError(f"no labels in {', '.join(map(str, files))}")
    rows: list[Row] = []
    with workspace.locked():
        for (judge, name), labels in given.items():
            # An exported file that was put there by hand goes on where it is.
            there = workspace.judgment_files(seed_set).get(judge, {}).get(name)
            path = there or workspace.judgments_path(seed_set, name, judge)
            last = {one.case: one.verdict for one in jsonl.read(path, Judgment)}
            new = 0
            with jsonl.Appender[Judgment](path) as file:
                for made in labels:
                    if last.get(made.case) != made.verdict:
                        file.append(made)
                        last[made.case] = made.verdict
                        new += 1
            rows.append({"judge": judge, "protocol": name, "labels": len(labels), "new": new})
    return Result({"rows": rows}, [rows])


def _judgment(one: Label, seed_set: str, protocol: Protocol, dialogues: Dialogues) -> Judgment:
    """The label as a judgment of its case."""
    if not one.judge.startswith(PERSON):
        raise ConfigError(f"judge {one.judge[:80]!r}: labels are those of {PERSON}NAME")
    judge = PERSON + annotator_name(one.judge.removeprefix(PERSON))
    cases = _cases(one.seed_id, protocol, dialogues)
    shown = next((case for case in cases if case_digest(protocol.name, *case) == one.case), None)
    if shown is None:
        raise DataError(
            f"label of {one.seed_id[:80]!r} in {protocol.name}: no dialogues of now are its case "
            f"{one.case[:16]!r}; make the page again: botchat label --seeds {seed_set}"
        )
    if not _offers(protocol, shown[0], one.verdict):
        raise DataError(
            f"label of {one.seed_id!r}: {protocol.name} does not offer {one.verdict[:40]!r}"
        )
    n = "" if protocol.n is None else f"|n:{protocol.n}"
    made_with = f"{SIGNED}|{protocol.base}|set:{seed_set}{n}|judge:{judge}|{BLIND_PAGE}|orders:1"
    return Judgment(
        protocol=protocol.name,
        seed_id=one.seed_id,
        contestants=tuple(dialogue.contestant for dialogue in shown),
        judge=judge,
        verdict=one.verdict,
        reason="",
        shown=len(shown[0].utterances),
        case=one.case,
        signature=made_with,
    )


def _cases(
    seed_id: str, protocol: Protocol, dialogues: Dialogues
) -> Iterator[tuple[ShownDialogue, ...]]:
    """What a label on this seed can be about."""
    there = {name: by[seed_id] for name, by in sorted(dialogues.items()) if seed_id in by}
    for names in permutations(there, 1 if protocol.shows == "one" else 2):
        if (protocol.shows == "human") <= (HUMAN in names) and (
            shown := protocol.shown(*(there[name] for name in names))
        ):
            yield shown


def _offers(protocol: Protocol, shown: ShownDialogue, verdict: Verdict) -> bool:
    """Whether an annotator may say that: what a judge may, or of a place that they cannot tell."""
    choices = protocol.reading(shown.utterances).choices
    if protocol.kind == "place" and verdict in (UNDECIDED, MISSING):
        return verdict == UNDECIDED
    return verdict in choices
