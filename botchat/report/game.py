"""``game.html``: blind cases to answer, and only after the last of them who they were of.

The page and its chunks ``game-…`` hold cases without names and verdicts; ``answers-…`` hold those
of the same cases, and the page loads one only when the case that it is about is answered.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any

from botchat.interfaces import Shown, case_digest
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.wording import letters
from botchat.records import HUMAN, SIGNED, SOMEWHERE, Dialogues, Seed, Verdict, eligible
from botchat.report import inert, joined, policy, template
from botchat.report.archive import FOLDER, ByJudge, about_protocol, script

SCRIPTS = ("core.js", "labels.js", "ending.js", "game.js")
STYLES = ("paper.css", "game.css")

PICTURE = "game.png"
"""For previews of links, the same for all sets; beside the page."""

TEN = 10
"""Cases of a deal, half of them of people."""

CHUNK = 50
"""Cases in a chunk."""

MOST = 1_000
"""Cases of a list: the first in everybody's order."""

LONG = 6
"""Utterances that a conversation of a deal has, where enough conversations of people have them."""

PREFIXES = ("game-", "answers-")
"""Of the chunks: without names, and with."""


@dataclass(frozen=True)
class Game:
    """The page, and what lies beside it."""

    page: str
    files: Mapping[str, str]
    """Path relative to the page -> script."""


@dataclass(frozen=True)
class Dealt:
    """A case as people see it."""

    protocol: Protocol
    seed_id: str
    contestants: tuple[str, ...]
    shown: tuple[Shown, ...]
    """What is shown of each dialogue."""
    exact: bool = True
    """Whether judges are shown the same; else it is cut, and an answer is no label."""

    @property
    def said(self) -> tuple[tuple[str, ...], ...]:
        """The utterances of each dialogue."""
        return tuple(one.utterances for one in self.shown)

    @property
    def key(self) -> str:
        """The digest of what is shown."""
        return case_digest(self.protocol.name, *self.shown)

    @property
    def blind(self) -> list[Any]:
        """What the page knows of it; who speaks is told where two do not take turns."""
        told = [self.seed_id, self.key, self.said]
        by = [letters(0, one.spoken_by) for one in self.shown]
        return [*told, by] if any(by) else told

    def as_seen(self, verdict: Verdict | None) -> Verdict | None:
        """What a verdict on the whole says of what is shown here."""
        if self.exact or verdict is None or verdict == "No":
            return verdict
        if verdict == SOMEWHERE:
            return None
        return verdict if int(verdict) <= len(self.said[0]) else "No"


Listed = tuple[str, str, Sequence[Dealt]]
"""Cases in their order: ``deals`` of ten, ``all`` that judges were asked, or a ``plan``; of which
protocol, the plan of any."""


def build(
    seed_set: str,
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judged: ByJudge,
    catalogue: Catalogue | None = None,
    plan: Iterable[Mapping[str, Any]] = (),
    *,
    invented: bool = False,
    url: str = "",
) -> Game:
    """The page of a set; the same arguments give the same bytes.

    ``dialogues``: of ``human`` too. ``judged``: those on other seeds or contestants are passed
    over. ``plan``: cases to label (`planned`). ``url``: where the folder of the page will be.
    """
    known = catalogue or Catalogue()
    filed = known.among(name for by_protocol in judged.values() for name in by_protocol)
    lists: list[Listed] = [
        ("deals", protocol.name, deals(protocol, seeds, dialogues))
        for protocol in known
        if protocol.kind == "place" and protocol.knows_truth and not protocol.of_speakers
    ]
    lists += [
        ("all", protocol.name, [*islice(in_order(protocol, dialogues, judged), MOST)])
        for protocol in filed.values()
        if protocol.kind != "report"
    ]
    lists.append(("plan", "", planned(plan, known, dialogues)[:MOST]))
    lists = [one for one in lists if one[2]]
    protocols = {case.protocol.name: case.protocol for *_, cases in lists for case in cases}
    about = {
        "set": seed_set,
        "people": "for the demo, not by people," if invented else "by people",
        "signed": SIGNED,
        "chunks": FOLDER,
        "protocols": [about_protocol(protocol) for protocol in protocols.values()],
        "lists": [[kind, name, len(cases)] for kind, name, cases in lists],
        "per_chunk": CHUNK,
        "ten": TEN,
    }
    code = joined(SCRIPTS)
    page = template("game.html").render(
        style=joined(STYLES),
        about_json=inert(about),
        picture=f"{url.rstrip('/')}/{PICTURE}" if url else PICTURE,
        script=code,
        policy=policy(code, "img-src data:", "connect-src 'self'", chunks=True),
    )
    return Game(page, dict(_files(lists, [*protocols], judged)))


def picture() -> bytes:
    """`PICTURE`, a PNG of 1200 by 630."""
    return resources.files("botchat.report").joinpath(PICTURE).read_bytes()


def deals(protocol: Protocol, seeds: Sequence[Seed], dialogues: Dialogues) -> list[Dealt]:
    """Deals of ten, one after the other: half of people, half of machines, each seed once in all.

    Each is cut at a line that is drawn by its seed, whoever speaks, and before people say goodbye
    (`_end`), so that neither its length nor its end tells. All machines take part equally often. Of
    fewer seeds than ten one smaller deal; none of fewer than two.
    """
    people = dialogues.get(HUMAN, {})
    machines = {name: by for name, by in dialogues.items() if name != HUMAN}
    longest = max((len(d.utterances) for by in machines.values() for d in by.values()), default=0)
    long = [seed for seed in seeds if len(seed.utterances) >= LONG]
    ends = {seed.id: _end(seed, longest) for seed in seeds}
    able = {
        seed.id: [
            by[seed.id]
            for by in machines.values()
            if seed.id in by and len(by[seed.id].utterances) >= ends[seed.id]
        ]
        for seed in seeds
    }
    offered = _shuffled(long if len(long) >= TEN else eligible(seeds), "deal")
    usable = [seed for seed in offered if seed.id in people and able[seed.id]]
    size = TEN if len(usable) >= TEN else len(usable) // 2 * 2
    dealt: list[Dealt] = []
    had: Counter[str] = Counter()
    for first in range(0, len(usable) - size + 1, size) if size else ():
        ten = usable[first : first + size]
        of_people = {seed.id for seed in _shuffled(ten, "who")[: size // 2]}
        for seed in ten:
            dialogue = people[seed.id]
            if seed.id not in of_people:
                dialogue = min(able[seed.id], key=lambda one: (
                    had[one.contestant], _rank(one.contestant, one.seed_id)))  # fmt: skip
                had[dialogue.contestant] += 1
            cut = (Shown.of(dialogue, ends[seed.id]),)
            whole = len(dialogue.utterances) == ends[seed.id]
            dealt.append(Dealt(protocol, seed.id, (dialogue.contestant,), cut, whole))
    return dealt


def _end(seed: Seed, longest: int) -> int:
    """How many utterances are shown, by chance: four or more, without the last two of people's.

    Fewer where people say fewer than six; never more than the longest machine's.
    """
    there = min(longest, len(seed.utterances))
    most = min(there, max(3, there - 2))
    least = min(4, most)
    return least + int.from_bytes(_rank("end", seed.id)[:4]) % (most - least + 1)


def in_order(protocol: Protocol, dialogues: Dialogues, judged: ByJudge) -> Iterator[Dealt]:
    """Every case that some judge was asked, a pair in one of its orders, as judges see it.

    In an order that is the same for everybody and that a new model or judge does not change.
    """
    orders: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    alike = cache(lambda names: tuple(sorted(names)))
    for by_protocol in judged.values():
        for one in by_protocol.get(protocol.name, ()):
            orders.setdefault((one.seed_id, *alike(one.contestants)), set()).add(one.contestants)
    taken = set()
    for case in sorted(orders, key=lambda case: _rank(protocol.name, *case)):
        asked, seed_id = sorted(orders[case]), case[0]
        names = asked[_rank("order", protocol.name, *case)[0] % len(asked)]
        dealt = _dealt(protocol, seed_id, names, dialogues)
        # Two models that said the same are one question.
        if dealt and (seed_id, dealt.key) not in taken:
            taken.add((seed_id, dealt.key))
            yield dealt


def planned(
    plan: Iterable[Mapping[str, Any]], catalogue: Catalogue, dialogues: Dialogues
) -> list[Dealt]:
    """The cases of a label plan that can be asked now, in an order that says nothing.

    So whoever stops early has labelled a random part of it.

    A row has ``protocol`` as filed (``arena-n16``), or as on the command line with ``n`` beside it,
    ``seed_id`` and ``contestants`` in the order to show.
    """
    cases = []
    for row in plan:
        name, names = str(row.get("protocol")), tuple(map(str, row.get("contestants", ())))
        protocol = catalogue.find(f"{name}-n{row.get('n')}") or catalogue.find(name)
        if protocol is None or len(names) != (1 if protocol.shows == "one" else 2):
            continue
        seed_id = str(row.get("seed_id"))
        if dealt := _dealt(protocol, seed_id, names, dialogues):
            cases.append((_rank(protocol.name, seed_id, *names), dealt))
    return [dealt for _, dealt in sorted(cases, key=lambda one: one[0])]


def _dealt(
    protocol: Protocol, seed_id: str, names: tuple[str, ...], dialogues: Dialogues
) -> Dealt | None:
    """The case as judges see it; ``None``: a dialogue is not there, or too short to compare."""
    there = [dialogues.get(name, {}).get(seed_id) for name in names]
    shown = protocol.shown(*(one for one in there if one)) if all(there) else ()
    return Dealt(protocol, seed_id, names, shown) if shown else None


def _files(
    lists: Sequence[Listed], protocols: Sequence[str], judged: ByJudge
) -> Iterator[tuple[str, str]]:
    """Chunks of each list: cases, and the answers to them."""
    said = [
        {
            (name, one.seed_id, one.contestants): one.verdict
            for name, made in by_protocol.items()
            for one in made
        }
        for by_protocol in judged.values()
    ]
    for i, (*_, every) in enumerate(lists):
        for k, first in enumerate(range(0, len(every), CHUNK)):
            cases = every[first : first + CHUNK]
            blind = [[protocols.index(case.protocol.name), *case.blind] for case in cases]
            answers = [
                [
                    case.contestants,
                    case.exact,
                    [case.as_seen(by.get((case.protocol.name, case.seed_id, case.contestants)))
                     for by in said],
                ]
                for case in cases
            ]  # fmt: skip
            told = {"judges": list(judged), "human": HUMAN, "cases": answers}
            for prefix, content in zip(PREFIXES, (blind, told), strict=True):
                name = f"{prefix}{i}-{k}"
                yield f"{FOLDER}/{name}.js", script(name, content)


def _rank(*parts: str) -> bytes:
    """A place in an order that depends on nothing but these words."""
    listed = ", ".join(map(encode_basestring_ascii, parts))
    return hashlib.sha256(f"[{listed}]".encode()).digest()


def _shuffled(seeds: Iterable[Seed], salt: str) -> list[Seed]:
    return sorted(seeds, key=lambda seed: _rank(salt, seed.id))
