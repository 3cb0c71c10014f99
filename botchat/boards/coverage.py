"""What a board rests on: cases with a readable verdict, and what the others lack.

A case is a dialogue that UniEval or the diagnosis judges, or two dialogues of one ChatSEED in one
order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import EllipsisType

import numpy as np

from botchat.boards.protocols import Evidence, Part
from botchat.boards.tables import Column, Role, Table, table
from botchat.interfaces import Row
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import passes
from botchat.records import HUMAN, Dialogues, Seed, Verdict, outline
from botchat.verdicts import Flags, Indices, Verdicts

Gaps = Counter[str]
"""Cases of one contestant without a readable verdict, by what they lack first: see `_REASONS`."""


def own_seeds(
    seeds: Sequence[Seed], dialogues: Dialogues, elsewhere: Collection[str]
) -> dict[str, list[Seed]]:
    """Contestant -> the seeds that it is counted on: not those of chats that another had alone.

    ``elsewhere``: contestants whose dialogues were made elsewhere. A seed on which one of them
    alone has a dialogue is its own; one that no model has is people's, and no lack of theirs.
    """
    models = {name: by for name, by in dialogues.items() if name != HUMAN}
    on = {seed.id: [name for name, by in models.items() if seed.id in by] for seed in seeds}

    def counts(name: str, seed: Seed) -> bool:
        there = on[seed.id]
        own = len(there) == 1 and there[0] in elsewhere
        if name == HUMAN:
            return bool(seed.utterances)
        return name in there or not (own or (name in elsewhere and not there))

    return {name: [seed for seed in seeds if counts(name, seed)] for name in dialogues}


def of_single(
    seeds: Sequence[Seed], dialogues: Dialogues, judged: Evidence, turns: int | None = None
) -> dict[str, Gaps]:
    """What a protocol on single dialogues lacks on each contestant that it judged.

    ``turns``: N of a success rate, which a shorter dialogue that is not accused tells nothing
    about; ``None``: any length will do.
    """
    n = judged.protocol.n

    def lacks(name: str, seed_id: str, said: Mapping[str, Verdict | None]) -> str | None:
        dialogue = dialogues[name].get(seed_id)
        if dialogue is None:
            return "no_dialogue"
        if n is not None and len(dialogue.utterances) < n:
            return "too_short"
        if seed_id not in said:
            return "not_judged"
        if (verdict := said[seed_id]) is None:
            return "undecided" if (name, seed_id) in judged.undecided else "unreadable"
        shown = dialogue if n is None else dialogue.cut(n)
        short = turns is not None and passes(shown, verdict, turns) is None
        return "too_short" if short else None

    found = {}
    for name, made in judged.by_contestant.items():
        said = {one.seed_id: one.verdict for one in made}
        counted = judged.counted.get(name, seeds)
        found[name] = Gaps(filter(None, (lacks(name, seed.id, said) for seed in counted)))
    return found


def of_pairs(
    protocol: Protocol, seeds: Sequence[Seed], dialogues: Dialogues, verdicts: Verdicts
) -> dict[str, Gaps]:
    """What a protocol about pairs lacks on each contestant; beside ``human`` only on models."""
    names, beside_human = verdicts.judged_contestants, protocol.shows == "human"
    field = _Field(protocol, seeds, {name: dialogues[name] for name in names})
    seed_number = {seed_id: i for i, seed_id in enumerate(field.seed_ids)}
    seed = np.array([seed_number.get(i, -1) for i in verdicts.seed_ids], dtype=np.intp)
    place = np.array([names.index(name) if name in names else 0 for name in verdicts.contestants])
    made = verdicts.only(seed[verdicts.seed] >= 0)
    first, second = place[made.first], place[made.second]
    absent, short = field.obstacles(first, second, seed[made.seed])
    # Verdicts of each kind that each contestant is in.
    done = [
        np.bincount(np.concatenate([first[kept], second[kept]]), minlength=len(names))
        for kept in (absent, short, ~absent & ~short, ~made.readable)
    ]
    found = {}
    for i, name in enumerate(names):
        if beside_human and name == HUMAN:
            continue
        others = [
            j
            for j, other in enumerate(names)
            if j != i and other in ({HUMAN} if beside_human else names)
        ]
        absent, short = field.obstacles(i, np.array(others, dtype=np.intp))
        # A case each in both orders.
        lacking = [2 * int(each.sum()) for each in (absent, short, ~absent & ~short)]
        open_ = [all_ - int(of[i]) for all_, of in zip(lacking, done, strict=False)]
        found[name] = Gaps(dict(zip(_REASONS, [*open_, int(done[3][i])], strict=False)))
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
            of_single(seeds, dialogues, said, readable.n)
            if protocol.shows == "one"
            else of_pairs(protocol, seeds, dialogues, said.verdicts)
        )
        counted = {role: part.table.values(part.table.column(role=role).key) for role in _COVERED}
        rows += [
            {"protocol": protocol.name, "model": name}
            | {role: values[name] for role, values in counted.items()}
            | {key: gaps[name][key] for key in _REASONS}
            for name in part.table.frame["model"]
        ]
    if not rows:
        return None
    return table(
        "coverage",
        "Coverage",
        [one for one in _COLUMNS if one.key != "undecided" or any(r[one.key] for r in rows)],
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
        sums = (rows.select_dtypes("number").sum() // contestants).astype(int).to_dict()
        reasons = [
            f"{n:,} {word.lower()}" for key, word in _REASONS.items() if (n := sums.get(key))
        ]
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
    "undecided": "Undecided",
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


_ANY = 1 << 40
"""More utterances than any dialogue has."""


class _Field:
    """A pairwise protocol by numbers: the contestants that can be compared on each seed."""

    def __init__(self, protocol: Protocol, seeds: Iterable[Seed], dialogues: Dialogues) -> None:
        """The same comparisons as of ``protocol.cases``; without N, of any length."""
        self.protocol = protocol
        self.contestants = tuple(sorted(dialogues))
        self.seed_ids = tuple(seed.id for seed in protocol.eligible(seeds))
        known = [outline(dialogues[name]).lengths for name in self.contestants]
        lengths = [by_seed.get(seed_id, 0) for by_seed in known for seed_id in self.seed_ids]
        shape = len(self.contestants), len(self.seed_ids)
        self._length = np.array(lengths, dtype=np.intp).reshape(shape)
        human = np.array([name == HUMAN for name in self.contestants])
        n = _ANY if protocol.n is None else protocol.n
        self._wanted = np.where(human[:, None], np.minimum(self._length, n), n)

    def obstacles(
        self, i: int | Indices, j: int | Indices, seed: Indices | EllipsisType = ...
    ) -> tuple[Flags, Flags]:
        """Return the seeds on which a dialogue of either contestant is absent, and is too short.

        Several contestants at a time, as numpy broadcasts; or each pair on one ``seed``.
        """
        shorter = np.minimum(self._length[i, seed], self._length[j, seed])
        wanted = np.minimum(self._wanted[i, seed], self._wanted[j, seed])
        absent = shorter == 0
        return absent, ~absent & (shorter < wanted)
