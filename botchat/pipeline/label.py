"""People as judges: what they label on the page is checked and filed as judge ``human:NAME``.

`label_plan` draws which cases people should label, to correct a judge's rates: a file of the set,
one JSON object a line (`PlannedCase`), that the page shows and anybody can read. It costs nothing
and sends nothing. `save` is what the served page's ``POST /labels`` does. `write_game` makes that
page, `game_path` is where `botchat label` opens it.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from heapq import heapify, heappop, heappush
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec

from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Shown, case_digest
from botchat.measures.annotations import BLIND_PAGE, is_person
from botchat.pipeline.run.contestants import of_people
from botchat.pipeline.run.read_set import Read, only_judge, read
from botchat.pipeline.run.session import catalogue_of
from botchat.protocols.kinds import Protocol
from botchat.records import (
    HUMAN,
    MISSING,
    SIGNED,
    UNDECIDED,
    Dialogues,
    Judgment,
    Verdict,
)
from botchat.requests import LabelPlanning
from botchat.requests.results import Told
from botchat.verdicts import Verdicts
from botchat.workspace import files
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.references import JudgedCases
    from botchat.boards.tables import Table

PERSON = "human:"
"""What the name of a judge who is a person begins with."""

LONGEST_NAME = 60
"""Characters of a name."""

MOST_ROWS = 10_000
"""Labels taken at once."""

_WRITING = threading.Lock()
"""The server answers in threads; a file is written by one at a time."""


GAME = "game.html"

PLAN = "label-plan.jsonl"
"""Beside the page: cases that were drawn to be labelled, one a line."""


class _Label(msgspec.Struct, frozen=True):
    """A label as the page sends it: the part of a `Judgment` that the page can know."""

    seed_id: str
    judge: str
    verdict: str
    case: str
    contestants: tuple[str, ...] = ()
    reason: str = ""
    undone: bool = False
    """The person takes back what was said of the case: no label of it stays."""


class _SentLabels(msgspec.Struct, frozen=True):
    set: str
    protocol: str
    rows: tuple[_Label, ...]


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


def save(workspace: Workspace, sent: Mapping[str, Any], only: str = "") -> int:
    """Check the labels that a page sends and append them to their judges' files; how many.

    ``sent``: ``{"set": …, "protocol": …, "rows": [judgment, …]}``. A page that is blind knows no
    names, so a row may leave out its ``contestants``: the ``case`` says what was shown. ``only``:
    the judge that they must be of. Where one cannot be, nothing is written.

    Raises:
        DataError: what was sent is no labels, or a label is of no case that can be asked now.
        ConfigError: no such protocol, or a judge that is no person, or another than ``only``.
        MissingError: no such seed set.
    """
    try:
        given = msgspec.convert(sent, _SentLabels)
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
    dialogues = dialogues_of(workspace, given.set)
    labels = [_label(row, given.set, protocol, dialogues) for row in given.rows]
    if only and (other := next((one.judge for one in labels if one.judge != only), "")):
        raise ConfigError(f"labels of {other}: this address is that of {only}")
    both = zip(labels, given.rows, strict=True)
    undone = {(label.judge, label.case) for label, row in both if row.undone}
    with _WRITING:
        for judge in dict.fromkeys(label.judge for label in labels):
            # An exported file that was put there by hand goes on where it is.
            there = workspace.judgment_files(given.set).get(judge, {}).get(protocol.name)
            path = there or workspace.judgments_path(given.set, protocol.name, judge)
            known = files.read(path, Judgment)
            if undone and known:
                known = [one for one in known if (one.judge, one.case) not in undone]
                files.write_atomic(path, b"".join(msgspec.json.encode(o) + b"\n" for o in known))
            # A page that was left before it had our answer sends its last label again.
            last = {one.case: one.verdict for one in known if one.judge == judge}
            with files.Appender[Judgment](path) as file:
                for label in labels:
                    new = (judge, label.case) not in undone and last.get(
                        label.case
                    ) != label.verdict
                    if label.judge == judge and new:
                        file.append(label)
    return len(labels)


def dialogues_of(workspace: Workspace, seed_set: str) -> Dialogues:
    """Every contestant's, and the set's own, as `human`, whole or not."""
    return {HUMAN: of_people(workspace.seeds(seed_set)), **workspace.all_dialogues(seed_set)}


def _label(row: _Label, seed_set: str, protocol: Protocol, dialogues: Dialogues) -> Judgment:
    if not row.judge.startswith(PERSON):
        raise ConfigError(f"judge {row.judge[:80]!r}: labels are those of {PERSON}NAME")
    judge = PERSON + rater(row.judge.removeprefix(PERSON))
    shown = _shown(row, protocol, dialogues)
    found = next((one for one in shown if case_digest(protocol.name, *one) == row.case), None)
    if found is None:
        raise DataError(
            f"label of {row.seed_id[:80]!r} in {protocol.name}: no dialogues of now are its case "
            f"{row.case[:16]!r}; make the page again: botchat leaderboard page --seeds {seed_set}"
        )
    if not _may_say(protocol, found[0], row.verdict):
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


def _may_say(protocol: Protocol, shown: Shown, verdict: Verdict | None) -> bool:
    """Whether a person may say that: what a judge may, and of a place that they cannot tell."""
    choices = protocol.reading(shown.utterances, shown.spoken_by).choices
    if protocol.kind != "place" or verdict is None or verdict in choices:
        return verdict in choices
    words = verdict.split(" ")
    told = " ".join("No" if word in (UNDECIDED, MISSING) else word for word in words)
    return told in choices and {*words} != {MISSING}


def signature(protocol: Protocol, seed_set: str, judge: str) -> str:
    """What labels were made with; the page's own export says the same."""
    n = "" if protocol.n is None else f"|n:{protocol.n}"
    made = f"{SIGNED}|{protocol.base}|set:{seed_set}{n}"
    return f"{made}|judge:{judge}|{BLIND_PAGE}|orders:1"


def _shown(row: _Label, protocol: Protocol, dialogues: Dialogues) -> Iterator[tuple[Shown, ...]]:
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


def write_game(workspace: Workspace, found: Read, folder: Path, url: str = "") -> Path:
    """Write ``game.html`` and its chunks beside a set's page; what is not needed any more goes."""
    from botchat.report import game
    from botchat.report.archive import FOLDER

    planned = files.read(workspace.out(found.seed_set) / PLAN, PlannedCase)
    drawn = [msgspec.to_builtins(one) for one in planned]
    made = game.build(
        found.seed_set,
        found.seeds,
        found.dialogues,
        found.judged,
        found.catalogue,
        drawn,
        invented=workspace.invented(found.seed_set),
        url=url,
    )
    workspace.write_out(folder, made.files)
    for prefix in game.PREFIXES:
        for path in (folder / FOLDER).glob(f"{prefix}*.js"):
            if f"{FOLDER}/{path.name}" not in made.files:
                path.unlink(missing_ok=True)
    workspace.write_out(folder, {GAME: made.page, game.PICTURE: game.picture()})
    return folder / GAME


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
            f"no plan {folder / PLAN}; make one with: botchat label plan --seeds {seed_set}"
        )
    catalogue = catalogue_of(workspace, seed_set)
    if protocol is not None and catalogue.find(protocol) is None:
        catalogue.named(protocol)
    asked = {"rater": rater(name)} if name is not None else {}
    asked |= {"protocol": protocol} if protocol is not None else {}
    asked |= {"plan": "1"} if plan else {"label": "1"}
    write_game(workspace, read(workspace, seed_set), folder)
    return f"/{quote(seed_set)}/{GAME}?{urlencode(asked)}"


class PlannedCase(msgspec.Struct, frozen=True, gc=False):
    """A case that somebody should label."""

    protocol: str
    """Of its judgments: ``unieval``, ``arena-n16``."""
    seed_id: str
    contestants: tuple[str, ...]
    """In the order to show them in."""
    n: int | None = None
    """Utterances that both dialogues are cut to; ``None``: as the protocol shows them."""


def label_plan(request: LabelPlanning, workspace: Workspace) -> Told:
    """Draw cases at random among those that a judge judged, as many of each contestant, and file.

    The same arguments draw the same cases; a larger budget draws these and more. Cases that people
    have labelled count towards the budget and are not drawn. How near to the truth each
    contestant's rate gets is told.

    Raises:
        ConfigError: a budget below 1, several judges and none named, a protocol that cannot be.
        MissingError: no such set, judge, or nothing that it judged.
    """
    from botchat.boards.board import evidence
    from botchat.boards.references import cases  # pandas, which labelling does not need

    seed_set, budget, judge = request.seed_set, request.budget, request.judge
    if budget < 1:
        raise ConfigError(f"--budget {budget}: at least one case has to be labelled")
    judges = [name for name in workspace.judgment_files(seed_set) if not is_person(name, HUMAN)]
    only = judges[0] if judge is None and len(judges) == 1 else judge
    chosen = only_judge(workspace, seed_set, only)
    found = read(workspace, seed_set, chosen)
    by = next(iter(found.judged))
    if is_person(by, HUMAN):
        raise ConfigError(f"{by} is a person, whose rates need no correction; name another judge")
    made: dict[str, Sequence[Judgment] | Verdicts] = {**found.judged[by], **found.columns[by]}
    known = evidence(found.catalogue.among(made), made, found.seeds, found.dialogues)
    leading: dict[str, JudgedCases] = {}
    for one in cases(known, found.labels, found.seeds, found.dialogues):
        leading.setdefault(one.protocol.name, one)
    if not leading:
        raise MissingError(f"{by} has no readable verdict on {seed_set} that people could label")
    name = next(iter(leading)) if request.protocol is None else request.protocol
    if name not in leading:
        raise ConfigError(f"--protocol {name}: {by} judged {', '.join(leading)} on {seed_set}")
    of = leading[name]
    planned = list(_draw(of, budget, request.rng_seed))
    path = workspace.out(seed_set) / PLAN
    files.write_atomic(path, b"".join(msgspec.json.encode(one) + b"\n" for one in planned))
    bought = _bought(of, planned, by, request.rng_seed)
    whole = {"path": path, "protocol": name, "planned": len(planned), "rows": bought.records}
    said = f"{len(planned):,} cases to label: {path}"
    return Told(whole, [bought, bought.note, said])


def _draw(of: JudgedCases, budget: int, rng_seed: int) -> Iterator[PlannedCase]:
    """Cases that nobody labelled, so many with those labelled, in a random order.

    People's dialogues are among them, or labels could not tell people from machines; floor bots'
    only where there is no model.

    Each is dealt to the pair of contestants (or the contestant) that has the fewest, then to those
    who have the fewest together.
    """
    from botchat.boards.names import is_floor_bot

    left: dict[tuple[str, ...], list[tuple[bytes, str]]] = {}
    had: Counter[tuple[str, ...]] = Counter()
    models = [name for name in of.rated if name != HUMAN and not is_floor_bot(name)]
    for at, one, other, by in zip(
        of.seed.tolist(), of.one.tolist(), of.other.tolist(), of.reference.tolist(), strict=True
    ):
        names: tuple[str, ...] = tuple(of.names[i] for i in (one, other) if i >= 0)
        if models and any(map(is_floor_bot, names)):  # judges know them; people need not
            continue
        if by == by:  # not nan
            had[names] += 1
            continue
        seed_id = of.seed_ids[at]
        said = "\0".join((str(rng_seed), of.protocol.name, seed_id, *names))
        left.setdefault(names, []).append((sha256(said.encode()).digest(), seed_id))
    for drawn in left.values():
        drawn.sort(reverse=True)
    counts: Counter[str] = Counter()
    for names, n in had.items():
        counts.update(dict.fromkeys(names, n))

    def turn(names: tuple[str, ...]) -> tuple[int, int, bytes]:
        """Who is dealt to next; it never gets less, so that a heap may hold an older one."""
        return had[names], sum(counts[name] for name in names), left[names][-1][0]

    waiting = [(turn(names), names) for names in left]
    heapify(waiting)
    open_ = budget - had.total()
    while waiting and open_ > 0:
        known, names = heappop(waiting)
        if known == turn(names):
            key, seed_id = left[names].pop()
            had[names] += 1
            counts.update(names)
            open_ -= 1
            shown = names[::-1] if key[0] % 2 else names
            yield PlannedCase(of.protocol.name, seed_id, shown, of.protocol.n)
        if left[names]:
            heappush(waiting, (turn(names), names))


def _bought(of: JudgedCases, planned: Sequence[PlannedCase], judge: str, rng_seed: int) -> Table:
    """What each contestant's labels come to, and how near to the truth they bring its number."""
    from botchat.boards.tables import Column, table

    new = Counter(name for case in planned for name in case.contestants)
    rows = []
    for name in of.rated:
        if name == HUMAN and not new[name]:
            continue
        side = of.of(name)
        best, worst = side.reach.within(len(side.known) + new[name])
        rows.append(
            {
                "model": name,
                "judge": float(side.by_judge.value[0]),
                "cases": len(side.judged),
                "labelled": len(side.known),
                "planned": new[name],
                "best": best,
                "worst": worst,
            }
        )
    return table(
        "label-plan",
        f"What to label, {of.what}",
        [
            Column("model", "Model", "name"),
            Column("judge", "Judge", "rate"),
            Column("cases", "Cases", "count"),
            Column("labelled", "Labelled", "count"),
            Column("planned", "To label", "count"),
            Column("best", "± if people agree", "rate"),
            Column("worst", "± if the judge tells nothing", "rate"),
        ],
        rows,
        [f"{of.signature}|label-plan:{len(planned)}|seed:{rng_seed}"],
        f"{of.what}, {judge} in percent. ±: half of the 95 % interval as people judge, in points: "
        "if people always agree with the judge, and if its verdicts tell nothing about theirs "
        "(and their rate is its own); the truth is in between.",
    )
