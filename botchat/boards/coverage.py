"""What a board rests on: cases with a readable verdict, and what the others lack.

A case is a dialogue that UniEval or the diagnosis judges, or two dialogues of one ChatSEED in one
order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from botchat.boards.protocols import Evidence, Part
from botchat.boards.tables import Column, Role, Table, table
from botchat.interfaces import Row
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.pairs import Field, Verdicts
from botchat.protocols.rates import passed
from botchat.records import HUMAN, Dialogues, Judgment, Seed

Gaps = Counter[str]
"""Cases of one contestant without a readable verdict, by what they lack first: see `_REASONS`."""


def of_single(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judgments: Iterable[Judgment],
    turns: int | None = None,
) -> dict[str, Gaps]:
    """What a protocol on single dialogues lacks on each contestant that it judged.

    ``turns``: N of a success rate, which a shorter dialogue that is not accused tells nothing
    about; ``None``: any length will do.
    """
    said: dict[str, dict[str, str | None]] = {}
    for judgment in judgments:
        said.setdefault(judgment.contestants[0], {})[judgment.seed_id] = judgment.verdict

    def lacks(name: str, seed_id: str) -> str | None:
        dialogue = dialogues[name].get(seed_id)
        if dialogue is None:
            return "no_dialogue"
        if seed_id not in said[name]:
            return "not_judged"
        verdict = said[name][seed_id]
        if verdict is None:
            return "unreadable"
        short = turns is not None and passed(dialogue, verdict, turns) is None
        return "too_short" if short else None

    return {name: Gaps(filter(None, (lacks(name, seed.id) for seed in seeds))) for name in said}


def of_pairs(
    protocol: Protocol, seeds: Sequence[Seed], dialogues: Dialogues, verdicts: Verdicts
) -> dict[str, Gaps]:
    """What a protocol about pairs lacks on each contestant; beside ``human`` only on models."""
    names = verdicts.judged_contestants
    field = Field(protocol, seeds, {name: dialogues[name] for name in names})
    beside_human = protocol.shows == "human"
    seed_number = {seed_id: i for i, seed_id in enumerate(field.seed_ids)}
    seed = np.array([seed_number.get(i, -1) for i in verdicts.seed_ids], dtype=np.intp)
    place = np.array([names.index(name) if name in names else 0 for name in verdicts.contestants])
    made = verdicts.only(seed[verdicts.seed] >= 0)
    m, n = len(names), len(field.seed_ids)
    key = place[made.first] * m + place[made.second]
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(key[order], np.arange(m * m + 1))
    unreadable = np.bincount(key[~made.readable], minlength=m * m)
    found = {name: Gaps() for name in names}
    for i, j in combinations(range(m), 2):
        if beside_human and HUMAN not in (names[i], names[j]):
            continue
        absent, short = field.obstacles(i, j)
        for shown in (i * m + j, j * m + i):
            lacking = Gaps(unreadable=int(unreadable[shown]))
            judged = seed[made.seed[order[begin[shown] : begin[shown + 1]]]]
            if len(judged) < n:
                open_ = np.ones(n, dtype=bool)
                open_[judged] = False
                lacking += Gaps(
                    no_dialogue=int((open_ & absent).sum()),
                    too_short=int((open_ & short).sum()),
                    not_judged=int((open_ & ~absent & ~short).sum()),
                )
            found[names[i]] += lacking
            found[names[j]] += lacking
    if beside_human:
        found.pop(HUMAN, None)
    return found


def coverage(
    parts: Iterable[Part],
    judged: Mapping[str, Evidence],
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    signatures: Sequence[str],
) -> Table | None:
    """Readable verdicts of every contestant in every protocol; ``None`` where nothing was judged.

    ``judged``: by name of the protocol. ``dialogues``: of ``human`` too.
    """
    rows: list[Row] = []
    for part in parts:
        protocol, said = part.protocol, judged[part.protocol.name]
        readable = part.table.column(role="readable")
        gaps = (
            of_single(seeds, dialogues, said.judgments, readable.n)
            if protocol.shows == "one"
            else of_pairs(protocol, seeds, dialogues, said.verdicts)
        )
        counted = {role: part.table.values(part.table.column(role=role).key) for role in _COVERED}
        for name in part.table.frame["model"]:
            rows.append(
                {
                    "protocol": protocol.name,
                    "model": name,
                    **{role: values[name] for role, values in counted.items()},
                    **{key: gaps[name][key] for key in _REASONS},
                }
            )
    if not rows:
        return None
    return table(
        "coverage",
        "Coverage",
        _COLUMNS,
        rows,
        signatures,
        "In percent of the cases that a protocol has; each case without a readable verdict is "
        "counted by what it lacks first. Too short: a dialogue stopped, or was made, below the "
        "length that is judged.",
    )


def notes(covered: Table | None, catalogue: Catalogue) -> Iterator[str]:
    """A sentence on the protocols of a `coverage` that lack something."""
    if covered is None:
        return
    said = []
    for name, rows in covered.frame.groupby("protocol", sort=False):
        protocol = catalogue.find(str(name))
        # A case of two contestants stands with both; beside people with the model alone.
        contestants = 2 if protocol is not None and protocol.shows == "pair" else 1
        sums = {
            key: int(rows[key].sum()) // contestants for key in ("readable", "missing", *_REASONS)
        }
        reasons = [f"{sums[key]:,} {word.lower()}" for key, word in _REASONS.items() if sums[key]]
        if reasons:
            total = sums["readable"] + sums["missing"]
            said.append(f"{name} {sums['missing']:,} of {total:,} ({', '.join(reasons)})")
    if said:
        yield f"Cases without a readable verdict: {'; '.join(said)}."


_COVERED: tuple[Role, ...] = ("readable", "missing", "coverage")

_REASONS = {
    "no_dialogue": "Not generated",
    "too_short": "Too short",
    "not_judged": "Not judged",
    "unreadable": "Unreadable",
}
"""Keys of `Gaps`, those that are not generated first. Of two dialogues it is either that is not
generated, or too short to be judged at this length."""

_COLUMNS = (
    Column("protocol", "Protocol", "name"),
    Column("model", "Model", "name"),
    Column("readable", "Readable", "count", role="readable"),
    Column("missing", "Missing", "count", detail=True, role="missing"),
    Column("coverage", "Coverage", "rate", role="coverage"),
    *(Column(key, heading, "count") for key, heading in _REASONS.items()),
)
