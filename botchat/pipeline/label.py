"""People as judges: what they label on the page is checked and filed as judge ``human:NAME``.

`save` is what the served page's ``POST /labels`` does::

    save(workspace: Workspace, sent: Mapping[str, Any]) -> int

``sent`` is the body: ``{"set": …, "protocol": …, "rows": [judgment, …]}``. It returns the number of
labels written, or raises a `BotChatError` of one line and writes nothing. A page that is blind
knows no names, so a row may leave out its ``contestants``: the ``case`` says what was shown.
`write_game` makes that page, `game_path` is where `botchat label` opens it.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Shown, case_digest
from botchat.pipeline.run.read_set import Read, read
from botchat.pipeline.run.session import catalogue_of
from botchat.protocols.kinds import Protocol
from botchat.records import HUMAN, VERSION, Dialogues, Judgment, human_dialogue
from botchat.workspace import files
from botchat.workspace.folder import Workspace

PERSON = "human:"
"""What the name of a judge who is a person begins with."""

LONGEST_NAME = 60
"""Characters of a name."""

MOST_ROWS = 10_000
"""Labels taken at once."""

_MOST_BYTES = 2**26
"""Of a plan."""

_WRITING = threading.Lock()
"""The server answers in threads; a file is written by one at a time."""


GAME = "game.html"

PLAN = "label-plan.jsonl"
"""Beside the page: cases that were drawn to be labelled, one a line (`botchat.report.game`)."""


class _Row(msgspec.Struct, frozen=True):
    """A label as the page sends it: the part of a `Judgment` that the page can know."""

    seed_id: str
    judge: str
    verdict: str
    case: str
    contestants: tuple[str, ...] = ()
    reason: str = ""


class _Sent(msgspec.Struct, frozen=True):
    set: str
    protocol: str
    rows: tuple[_Row, ...]


def rater(name: str) -> str:
    """The name that a person's labels are filed under: ``Amy`` and `` amy`` are one person.

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


def save(workspace: Workspace, sent: Mapping[str, Any]) -> int:
    """Check the labels that a page sends and append them to their judges' files; how many.

    Raises:
        DataError: what was sent is no labels, or a label is of no case that can be asked now.
        ConfigError: no such protocol, or a judge that is no person.
        MissingError: no such seed set.
    """
    try:
        given = msgspec.convert(sent, _Sent)
    except msgspec.ValidationError as error:
        raise DataError(f"labels: {error}") from None
    if len(given.rows) > MOST_ROWS:
        raise DataError(f"{len(given.rows):,} labels: send at most {MOST_ROWS:,} at once")
    protocol = catalogue_of(workspace, given.set).find(given.protocol)
    if protocol is None or protocol.kind == "report":
        raise ConfigError(
            f"protocol {given.protocol!r}: people label what is filed in this workspace, such as "
            "unieval or arena-n16, and no reports"
        )
    seeds = workspace.seeds(given.set)
    dialogues = {
        HUMAN: {seed.id: human_dialogue(seed) for seed in seeds},
        **workspace.all_dialogues(given.set),
    }
    labels = [_label(row, given.set, protocol, dialogues) for row in given.rows]
    with _WRITING:
        for judge in dict.fromkeys(label.judge for label in labels):
            # An exported file that was put there by hand goes on where it is.
            there = workspace.judgment_files(given.set).get(judge, {}).get(protocol.name)
            path = there or workspace.judgments_path(given.set, protocol.name, judge)
            with files.Appender[Judgment](path) as file:
                for label in labels:
                    if label.judge == judge:
                        file.append(label)
    return len(labels)


def _label(row: _Row, seed_set: str, protocol: Protocol, dialogues: Dialogues) -> Judgment:
    if not row.judge.startswith(PERSON):
        raise ConfigError(f"judge {row.judge[:80]!r}: labels are those of {PERSON}NAME")
    judge = PERSON + rater(row.judge.removeprefix(PERSON))
    found = next(
        (
            shown
            for shown in _shown(row, protocol, dialogues)
            if case_digest(protocol.name, *(one.utterances for one in shown)) == row.case
        ),
        None,
    )
    if found is None:
        raise DataError(
            f"label of {row.seed_id[:80]!r} in {protocol.name}: no dialogues of now are its case "
            f"{row.case[:16]!r}; make the page again with: botchat report --seeds {seed_set}"
        )
    if row.verdict not in protocol.reading(found[0].utterances).choices:
        raise DataError(
            f"label of {row.seed_id!r}: {protocol.name} does not offer {row.verdict[:40]!r}"
        )
    return Judgment(
        protocol=protocol.name,
        seed_id=row.seed_id,
        contestants=tuple(one.contestant for one in found),
        judge=judge,
        verdict=row.verdict,
        reason=row.reason,
        shown=len(found[0].utterances),
        case=row.case,
        signature=signature(protocol, seed_set, judge),
    )


def signature(protocol: Protocol, seed_set: str, judge: str) -> str:
    """What labels were made with; the page's own export says the same."""
    n = "" if protocol.n is None else f"|n:{protocol.n}"
    made = f"botchat:{VERSION}|{protocol.base}|set:{seed_set}{n}"
    return f"{made}|judge:{judge}|prompt:blind-page|orders:1"


def _shown(row: _Row, protocol: Protocol, dialogues: Dialogues) -> Iterator[tuple[Shown, ...]]:
    """What a label can be about: with names one case, else all on its seed, by name."""
    there = {name: by[row.seed_id] for name, by in sorted(dialogues.items()) if row.seed_id in by}
    size = 1 if protocol.shows == "one" else 2
    named = [row.contestants] if row.contestants else permutations(there, size)
    for names in named:
        if len(set(names)) != size or not there.keys() >= set(names):
            continue
        if protocol.shows == "human" and HUMAN not in names:
            continue
        if found := protocol.shown(*(there[name] for name in names)):
            yield found


def write_game(workspace: Workspace, found: Read, folder: Path) -> Path:
    """Write ``game.html`` and its chunks beside a set's page; what is not needed any more goes."""
    from botchat.report import game
    from botchat.report.archive import FOLDER

    drawn = _plan(workspace.out(found.seed_set) / PLAN)
    made = game.build(
        found.seed_set, found.seeds, found.dialogues, found.judged, found.catalogue, drawn
    )
    for name, text in made.files.items():
        files.write_atomic(folder / name, text.encode())
    for prefix in game.PREFIXES:
        for path in (folder / FOLDER).glob(f"{prefix}*.js"):
            if f"{FOLDER}/{path.name}" not in made.files:
                path.unlink(missing_ok=True)
    page = folder / GAME
    files.write_atomic(page, made.page.encode())
    return page


def _plan(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = files.content(path, _MOST_BYTES).splitlines()
    drawn = []
    for number, line in enumerate(lines, 1):
        try:
            drawn.append(msgspec.json.decode(line, type=dict[str, Any]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise DataError(f"{path}:{number}: no JSON object; make the plan again") from None
    return drawn


def game_path(
    workspace: Workspace,
    seed_set: str,
    *,
    protocol: str | None = None,
    name: str | None = None,
    plan: bool = False,
) -> str:
    """Make the page of a set; where it is to label, from the root of `botchat view`.

    Raises:
        MissingError: nobody has judged the set, or there is no plan.
        ConfigError: no such protocol, or a name that cannot be one.
    """
    folder = workspace.out(seed_set)
    if plan and not (folder / PLAN).exists():
        raise MissingError(
            f"no plan {folder / PLAN}; make one with: botchat label-plan --seeds {seed_set}"
        )
    catalogue = catalogue_of(workspace, seed_set)
    if protocol is not None and catalogue.find(protocol) is None:
        catalogue.named(protocol)
    asked = {"rater": rater(name)} if name is not None else {}
    asked |= {"protocol": protocol} if protocol is not None else {}
    asked |= {"plan": "1"} if plan else {"label": "1"}
    write_game(workspace, read(workspace, seed_set), folder)
    return f"/{quote(seed_set)}/{GAME}?{urlencode(asked)}"
