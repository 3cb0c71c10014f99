"""Two judges of a set, of whom the new one has judged a part: what the board would be by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from operator import itemgetter
from typing import Any

import numpy as np

from botchat.boards import bridge as boards
from botchat.boards.references import JudgedCases, drawn_by_pair, one_by_one, result
from botchat.boards.writers import document, table_files, to_json
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import portable, settings_digest
from botchat.measures.references import is_draw
from botchat.pipeline.run.contestants import judge_named
from botchat.pipeline.run.read_set import Read, read
from botchat.protocols.kinds import Protocol
from botchat.records import SIGNED, Judgment
from botchat.requests import Bridging
from botchat.requests.results import Compared
from botchat.workspace.files import write_all
from botchat.workspace.folder import Workspace, judgment_key


def bridge(request: Bridging, workspace: Workspace) -> Compared:
    """The board of the old judge as the new one would judge it, from what both have judged.

    Raises `ConfigError` for the same judge twice, or a protocol to choose; `MissingError` for a
    judge without verdicts, or nothing in common.
    """
    seed_set, protocol = request.seed_set, request.protocol
    old, new = request.old, request.new
    names = [judge_named(workspace, seed_set, name) for name in (old, new)]
    if names[0] == names[1]:
        raise ConfigError(f"{old} {new}: a bridge is between two judges; name another")
    found = read(workspace, seed_set, names)
    old, new = names
    protocols = {name: found.catalogue.find(name) for name in sorted(found.judged[old])}
    common = {name: one for name, one in protocols.items() if one and found.judged[new].get(name)}
    if protocol is None and len(common) == 1:
        (protocol,) = common
    if protocol is None or protocol not in common:
        raise ConfigError(
            f"--protocol {protocol or 'is missing'}: what both {old} and {new} have judged on "
            f"{seed_set}: {', '.join(common) or 'nothing'}"
        )
    made = _between(found, old, new, common[protocol], request.rng_seed)
    out = request.out or workspace.out(seed_set) / f"bridge-{protocol}"
    whole = {**made.whole, "out": str(out)}
    title = made.tables[0].title
    texts = {"bridge.md": document(title, made.lines, made.tables), "bridge.json": to_json(whole)}
    write_all(out, {**table_files(made.tables, request.table_formats), **texts})
    lines = [*made.lines, whole["signature"], f"written to: {out}"]
    return Compared(made.tables, lines, whole, out)


def bridges(found: Read, protocol: Protocol) -> list[Compared]:
    """Those of a set in which the new judge was asked a drawn part of what the old one judged."""
    judged = {name: by[protocol.name] for name, by in found.judged.items() if by.get(protocol.name)}
    made = []
    for old, new in permutations(judged, 2):
        asked = {judgment_key(one) for one in judged[new]}
        if asked < {judgment_key(one) for one in judged[old]} and _drawn(judged[old], judged[new]):
            try:
                made.append(_between(found, old, new, protocol, 0))
            except MissingError:
                continue
    return made


def _between(found: Read, old: str, new: str, protocol: Protocol, rng_seed: int) -> Compared:
    judged = {name: found.judged[name][protocol.name] for name in (old, new)}
    seed_ids = sorted({one.seed_id for one in judged[old]})
    value = partial(result, protocol)
    cases = one_by_one(protocol, judged[old], judged[new], seed_ids, value)
    chance = drawn_by_pair(cases.one, cases.other, cases.reference)
    # Of contestants without a case in the slice, nothing is weighed.
    cases = replace(cases, chance=np.where(chance > 0, chance, 1))
    models = sorted(name for name in cases.rated if len(cases.rows_of(name)))
    sides = [cases.of(name) for name in models]
    if not sides:
        raise MissingError(
            f"{old} has no readable verdict in {protocol.name} on {found.seed_set}, so nothing can "
            "be held against it; name another judge, or have it judge again"
        )
    if unknown := [name for name, side in zip(models, sides, strict=True) if not len(side.known)]:
        raise MissingError(
            f"{new} has judged no case of {', '.join(unknown)} that {old} has; draw some with: "
            f"botchat judge {protocol.base} --seeds {found.seed_set} --judge {new} "
            f"--bridge-from {old} --budget 300"
        )
    rows, mapping = boards.board_rows(models, sides), boards.mapping_rows(sides)
    signature = (
        f"{SIGNED}|bridge|set:{found.seed_set}|protocol:{protocol.name}"
        f"|old:{old}|new:{new}|data:{settings_digest(portable(_data(cases, models)))}"
    )
    notes = list(boards.sentences(rows, old, new))
    if not _drawn(judged[old], judged[new], rng_seed):
        notes.append(
            f"The cases of {new} are not those that --bridge-from {old} draws with --seed "
            f"{rng_seed}: the intervals hold only if they were drawn at random otherwise."
        )
    title = f"From {old} to {new}: {protocol.name} on {found.seed_set}"
    tables = boards.tables(title, rows, mapping, signature, _unit(protocol))
    whole = {
        "old": old,
        "new": new,
        "protocol": protocol.name,
        "rows": rows,
        "mapping": mapping,
        "notes": notes,
        "signature": signature,
    }
    return Compared(tables, notes, whole, None)


def _data(cases: JudgedCases, models: Sequence[str]) -> list[Any]:
    """What the signature stands for: of each contestant's cases what both judges said, in order."""
    told = []
    for model in models:
        side, rows = cases.of(model), cases.rows_of(model).tolist()
        both = zip(rows, side.judged.tolist(), side.reference.tolist(), strict=True)
        for row, old, new in both:
            shown = [cases.names[i] for i in (cases.one[row], cases.other[row]) if i >= 0]
            key = model, cases.seed_ids[cases.seed[row]], shown
            told.append([key, old, None if math.isnan(new) else new])
    return sorted(told, key=itemgetter(0))


def _drawn(old: Sequence[Judgment], new: Sequence[Judgment], rng_seed: int = 0) -> bool:
    """Whether what the new judge was asked is a draw from what the old one has a verdict on."""
    readable = [one for one in old if one.verdict is not None]
    strata = [frozenset(one.contestants) for one in readable]
    return is_draw(strata, [one.case for one in readable], {one.case for one in new}, rng_seed)


def _unit(protocol: Protocol) -> str:
    """What a rate is of, a sentence."""
    if protocol.shows != "one":
        return "Mean result in percent: a win 100, a tie 50."
    if protocol.innocent is not None:
        return "Dialogues with nothing found, in percent."
    return "Mean score, in percent of the scale."
