"""``botchat label-plan``: which cases people should label, to correct a judge's rates.

The plan is a file of the set, one JSON object a line (`PlannedCase`), that a page can show and
anybody can read. It costs nothing and sends nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from botchat.boards.board import evidence
from botchat.boards.references import Cases, cases
from botchat.boards.tables import Column, Table, table
from botchat.errors import ConfigError, MissingError
from botchat.measures.annotations import is_person
from botchat.pipeline.run.read_set import only_judge, read
from botchat.records import HUMAN, Judgment
from botchat.verdicts import Verdicts
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from pandas import DataFrame

FILE = "label-plan.jsonl"
"""In the folder of a set's leaderboards."""


class PlannedCase(msgspec.Struct, frozen=True, gc=False):
    """A case that somebody should label."""

    protocol: str
    """Of its judgments: ``unieval``, ``arena-n16``."""
    seed_id: str
    contestants: tuple[str, ...]
    """In the order to show them in."""
    n: int | None
    """Utterances that both dialogues are cut to; ``None``: as the protocol shows them."""


@dataclass(frozen=True)
class LabelPlan:
    """What was drawn, and what it buys."""

    path: Path
    protocol: str
    planned: Sequence[PlannedCase]
    """In the order to label them in: those who stop early have labelled as many of everybody."""
    table: Table
    """How near to the truth each contestant's rate gets."""

    @property
    def frame(self) -> DataFrame:
        """Its exact numbers."""
        return self.table.frame


def label_plan(
    workspace: Workspace,
    seed_set: str,
    judge: str | None = None,
    *,
    budget: int = 300,
    protocol: str | None = None,
    rng_seed: int = 0,
) -> LabelPlan:
    """Draw cases at random among those that a judge judged, as many of each contestant, and file.

    The same arguments draw the same cases; a larger budget draws these and more. Cases that people
    have labelled count towards the budget and are not drawn. ``judge`` may be left out where only
    one has judged. ``protocol``: as judgments are filed; default: the judge's first.

    Raises:
        ConfigError: a budget below 1, several judges and none named, a protocol that cannot be.
        MissingError: no such set, judge, or nothing that it judged.
    """
    if budget < 1:
        raise ConfigError(f"--budget {budget}: at least one case has to be labelled")
    judges = [name for name in workspace.judgment_files(seed_set) if not is_person(name, HUMAN)]
    only = judges[0] if judge is None and len(judges) == 1 else judge
    chosen = only_judge(workspace, seed_set, only)
    found = read(workspace, seed_set, chosen, with_labels=True)
    by = next(iter(found.judged))
    if is_person(by, HUMAN):
        raise ConfigError(f"{by} is a person, whose rates need no correction; name another judge")
    made: dict[str, Sequence[Judgment] | Verdicts] = {**found.judged[by], **found.columns[by]}
    known = evidence(found.catalogue.among(made), made, found.seeds, found.dialogues)
    leading: dict[str, Cases] = {}
    for one in cases(known, found.labels, found.seeds, found.dialogues):
        leading.setdefault(one.protocol.name, one)
    if not leading:
        raise MissingError(f"{by} has no readable verdict on {seed_set} that people could label")
    name = next(iter(leading)) if protocol is None else protocol
    if name not in leading:
        raise ConfigError(f"--protocol {name}: {by} judged {', '.join(leading)} on {seed_set}")
    of = leading[name]
    planned = list(_draw(of, budget, rng_seed))
    path = workspace.out(seed_set) / FILE
    store.write_atomic(path, b"".join(msgspec.json.encode(one) + b"\n" for one in planned))
    return LabelPlan(path, name, planned, _bought(of, planned, by, rng_seed))


def _draw(of: Cases, budget: int, rng_seed: int) -> Iterator[PlannedCase]:
    """Cases that nobody labelled, so many with those labelled, in a random order.

    Each is dealt to the pair of contestants (or the contestant) that has the fewest, then to those
    who have the fewest together.
    """
    left: dict[tuple[str, ...], list[tuple[bytes, str]]] = {}
    had: Counter[tuple[str, ...]] = Counter()
    for at, one, other, by in zip(
        of.seed.tolist(), of.one.tolist(), of.other.tolist(), of.reference.tolist(), strict=True
    ):
        names: tuple[str, ...] = tuple(of.names[i] for i in (one, other) if i >= 0)
        if names == (HUMAN,):
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


def _bought(of: Cases, planned: Sequence[PlannedCase], judge: str, rng_seed: int) -> Table:
    """What each contestant's labels come to, and how near to the truth they bring its number."""
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
        _COLUMNS,
        rows,
        [f"{of.signature}|label-plan:{len(planned)}|seed:{rng_seed}"],
        f"{of.what}, {judge} in percent. ±: half of the 95 % interval as people judge, in points: "
        "if people always agree with the judge, and if its verdicts tell nothing about theirs "
        "(and their rate is its own); the truth is in between.",
    )


_COLUMNS = (
    Column("model", "Model", "name"),
    Column("judge", "Judge", "rate"),
    Column("cases", "Cases", "count"),
    Column("labelled", "Labelled", "count"),
    Column("planned", "To label", "count"),
    Column("best", "± if people agree", "rate"),
    Column("worst", "± if the judge tells nothing", "rate"),
)
