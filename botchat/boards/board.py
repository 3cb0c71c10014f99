"""Stage 3: judgments of one judge on one seed set -> a `Board` of tables; pure.

Every number stands beside what it covers: a comparison or dialogue without a readable verdict is
missing from it. A protocol that was not judged is left out, with a sentence that says so.

A new column is a `Column` in the file of its table and its value: a getter finds it, or the row has
it under the same key. Ratings are in `strengths` and `arena`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

import msgspec
import pandas as pd

from botchat.boards import arena, protocols
from botchat.boards.arena import Arena
from botchat.boards.coverage import coverage, own_seeds
from botchat.boards.coverage import notes as coverage_notes
from botchat.boards.judge_health import judge_health, sureness
from botchat.boards.names import elided
from botchat.boards.protocols import Evidence, Part, Reported
from botchat.boards.tables import Column, Table, rank_by, table
from botchat.interfaces import Row
from botchat.metrics.lengths import ENCODING, Lengths, measure, summary
from botchat.protocols.catalogue import RANKING, Catalogue
from botchat.protocols.protocol import Protocol
from botchat.ratings.elo import EloSettings
from botchat.records import (
    HUMAN,
    SIGNED,
    Dialogues,
    Judgment,
    Seed,
    eligible_seeds,
    human_dialogue,
    outline,
)
from botchat.verdicts import Verdicts
from botchat.workspace.criteria import is_reserved

P = TypeVar("P", bound=Part)


@dataclass(frozen=True, kw_only=True)
class Board:
    """Everything that one judge's judgments on one seed set say."""

    seed_set: str
    judge: str
    main: Table
    """One row a contestant, by the first number of the first protocol: Bradley-Terry at the largest
    N, or the success rate."""
    parts: tuple[Part, ...]
    """What each protocol comes to: pairs first, at the largest N first, then as catalogued."""
    lengths: Table
    judge_health: Table | None = None
    """Consistency under swap, what is preferred, ties, unreadable verdicts, false alarms."""
    coverage: Table | None = None
    utterance_lengths: Lengths
    human_lengths: tuple[int, ...] = ()
    """Utterances of every human dialogue of the set."""
    seeds_signature: str
    notes: tuple[str, ...]
    """What is left out and why, a sentence each."""
    evidence: Mapping[str, Evidence]
    """Protocol -> what the judge said, as counted."""
    invented: bool = False
    """Whether the set's "people" are nobody: its dialogues were made up."""
    own: tuple[str, ...] = ()
    """Contestants in which the judge hears itself."""
    measured: Table | None = None
    """Who was asked for it and when; ``None``: it is not known, or no model was."""

    def __repr__(self) -> str:
        """What it is, in one line, and what its tables are called."""
        names = ", ".join(self.frames)
        return (
            f"<Board of {self.seed_set} by {elided(self.judge, 60)}: "
            f"{len(self.frame)} contestants; tables {names}>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the main table as people read it."""
        return self.main._repr_html_()

    @property
    def frame(self) -> pd.DataFrame:
        """The exact numbers of the main table."""
        return self.main.frame

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The same of every table, by its name."""
        return {one.name: one.frame for one in self.every_table}

    def of(self, kind: type[P]) -> list[P]:
        """The parts of one kind."""
        return [part for part in self.parts if isinstance(part, kind)]

    @property
    def judge_facts(self) -> dict[str, Row]:
        """Protocol -> its row of `judge_health`; of votes the first, which is of all of them."""
        if self.judge_health is None:
            return {}
        frame = self.judge_health.frame
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        names = frame.get("protocol", self.evidence)
        return dict(zip(names, rows, strict=False))

    @property
    def arenas(self) -> list[Arena]:
        """The protocols about pairs, the largest N first."""
        return self.of(Arena)

    @property
    def leading(self) -> Arena | None:
        """The Arena to speak of: the largest N that separates anybody, else the largest."""
        arenas = [one for one in self.arenas if one.protocol.leads]
        return next((one for one in arenas if one.separates), arenas[0] if arenas else None)

    @property
    def diagnoses(self) -> list[Reported]:
        """The protocols that ask for a report."""
        return self.of(Reported)

    @property
    def tables(self) -> list[Table]:
        """The tables that a reader wants, most important first."""
        found = [
            self.main,
            *(shown for part in self.parts for shown in part.tables),
            self.lengths,
            self.judge_health,
            self.coverage,
            self.measured,
        ]
        return [one for one in found if one is not None and (one is self.main or len(one.frame))]

    @property
    def every_table(self) -> list[Table]:
        """Every table, those for machines among them."""
        return [*self.tables, *(part.pairs for part in self.arenas)]


def build(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judgments: Mapping[str, Sequence[Judgment] | Verdicts],
    *,
    seed_set: str,
    judge: str,
    catalogue: Catalogue | None = None,
    elo: EloSettings | None = None,
) -> Board:
    """Count, rate and rank.

    ``dialogues``: of every contestant; of ``human`` too where it was judged. ``judgments``:
    protocol -> the judge's, at most one for each seed and order shown; those on seeds or
    contestants that are not given are passed over, and pairwise ones may be in columns.
    ``catalogue`` is by default the built-in protocols', ``elo`` the paper's way to rate.

    Raises:
        DataError: a verdict that the protocol does not offer.
    """
    elo, catalogue = elo or EloSettings.of_board(), catalogue or Catalogue()
    known = catalogue.among(judgments)
    judged = evidence(known, judgments, seeds, dialogues)
    signatures = [judged[name].signature for name in sorted(judged)]
    human = dialogues.get(HUMAN) or {s.id: human_dialogue(s) for s in seeds if s.utterances}
    everyone = {**dialogues, HUMAN: human} if human else dialogues
    in_pairs = [one for one in judged.values() if one.protocol.shows == "pair"]
    min4 = [seed.id for seed in eligible_seeds(seeds)]
    contestants = _contestants(dialogues, judged.values())
    measured = measure(contestants)
    unit = ENCODING if measured.unit == "tokens" else measured.unit
    elsewhere = imported(dialogues)
    made_elsewhere = _signed(elsewhere)
    length_table = utterance_lengths(
        measured, f"{SIGNED}|lengths|set:{seed_set}|unit:{unit}{made_elsewhere}"
    )
    parts = (
        *arena.rate(in_pairs, min4, elo, everyone),
        *(_part(one, seeds, dialogues) for one in judged.values() if one.protocol.shows != "pair"),
    )
    covered = coverage(parts, judged, seeds, everyone, signatures)
    return Board(
        seed_set=seed_set,
        judge=judge,
        main=_main(seeds, contestants, parts, length_table),
        parts=parts,
        lengths=length_table,
        judge_health=judge_health(judged.values(), everyone, signatures) if judged else None,
        coverage=covered,
        utterance_lengths=measured,
        human_lengths=tuple(len(seed.utterances) for seed in seeds if seed.utterances),
        seeds_signature=(f"{SIGNED}|seeds|set:{seed_set}|seeds:{len(seeds)}|min4:{len(min4)}"),
        notes=(
            *_notes(judged, parts, seed_set, judge, RANKING if human else ()),
            *(
                f"The dialogues of {name} were not generated here but imported ({digest})."
                for name, digest in elsewhere.items()
            ),
            *(
                f"The judgments of {name} by {judge} do not count: no protocol has that name; if "
                f"it is yours, describe it in [protocols.{name}] of botchat.toml."
                for name in sorted({*judgments} - {*known})
                if not is_reserved(name)
            ),
            *coverage_notes(covered, catalogue),
        ),
        evidence=judged,
    )


def _contestants(dialogues: Dialogues, judged: Iterable[Evidence]) -> Dialogues:
    """Who is on the board, by name: everybody, ``human`` only where it was judged as they are.

    Those that GTEval sets beside the human dialogues are no reason to rank ``human``.
    """
    took_part = set()
    for one in judged:
        took_part |= {judgment.contestants[0] for judgment in one.judgments}
        took_part |= {*one.verdicts.judged_contestants} if one.protocol.shows == "pair" else set()
    there = [name for name in sorted(dialogues) if name != HUMAN or name in took_part]
    return {name: dialogues[name] for name in there}


def imported(dialogues: Dialogues) -> dict[str, str]:
    """Contestant whose dialogues were made elsewhere -> ``imported:DIGEST``, of their signatures.

    A contestant has one signature, except where a run was cut off or made with other settings.
    """
    found = {}
    for name, by_seed in dialogues.items():
        parts = sorted({part for one in outline(by_seed).signatures for part in one.split("|")})
        if told := [part for part in parts if part.startswith("imported:")]:
            found[name] = "+".join(told)
    return found


def _signed(elsewhere: Mapping[str, str]) -> str:
    return "".join(f"|{digest}" for digest in sorted({*elsewhere.values()}))


def _part(judged: Evidence, seeds: Sequence[Seed], dialogues: Dialogues) -> Part:
    """What the judgments of a protocol that needs no rating come to."""
    if judged.protocol.shows == "human":
        return protocols.beside_human(judged, seeds)
    if judged.protocol.kind == "place":
        return protocols.place(judged, seeds, dialogues)
    if judged.protocol.kind == "report":
        return protocols.reported(judged, seeds, dialogues)
    return protocols.scored(judged, seeds)


def evidence(
    known: Mapping[str, Protocol],
    judgments: Mapping[str, Sequence[Judgment] | Verdicts],
    seeds: Sequence[Seed],
    dialogues: Dialogues,
) -> dict[str, Evidence]:
    """Protocol -> its judgments on these seeds and contestants, if there are any."""
    elsewhere = imported(dialogues)
    ids, made_elsewhere = {seed.id for seed in seeds}, _signed(elsewhere)
    counted = own_seeds(seeds, dialogues, elsewhere) if elsewhere else {}
    found = {}
    for name, protocol in known.items():
        made = judgments[name]
        # The other side of GTEval is the seeds' own dialogues.
        there = dialogues.keys() | ({HUMAN} if protocol.shows == "human" else set())
        if isinstance(made, Verdicts):
            pairs_read = made.on(ids).between(there)
            found[name] = Evidence(protocol, (), pairs_read, imported=made_elsewhere)
            continue
        kept = [j for j in made if j.seed_id in ids and there.issuperset(j.contestants)]
        single, pairs = (kept, []) if protocol.shows == "one" else ([], kept)
        verdicts = Verdicts.of(pairs, protocol)
        said = [one.verdict for one in single]
        untold = {
            (one.contestants[0], one.seed_id)
            for one, verdict in zip(single, said, strict=True)
            if verdict is None and one.verdict is not None
        }
        plain = [
            one if one.verdict == verdict else msgspec.structs.replace(one, verdict=verdict)
            for one, verdict in zip(single, said, strict=True)
        ]
        found[name] = Evidence(
            protocol, plain, verdicts, sureness(made), made_elsewhere, counted, untold
        )
    return {name: one for name, one in found.items() if one.judgments or len(one.verdicts)}


def utterance_lengths(measured: Lengths, signature: str) -> Table:
    """Statistics of the lengths of generated utterances, the shortest first."""
    mean = Column(
        f"mean_{measured.unit}", f"Mean {measured.unit}", "number", getter=itemgetter("mean")
    )
    shown = table(
        "lengths",
        "Length of generated utterances",
        [
            protocols.MODEL,
            Column("utterances", "Utterances", "count", getter=itemgetter("n")),
            mean,
            Column("median", "Median", "number"),
            Column("p95", "95 %", "number"),
            Column("max", "Longest", "count"),
            Column("sd", "Std. dev.", "number"),
        ],
        [{"model": name, **summary(values)} for name, values in measured.by_contestant.items()],
        [signature],
        f"In {measured.unit} an utterance; ChatSEED utterances are not counted.",
        [mean.key],
    )
    return replace(shown, frame=shown.frame[::-1].reset_index(drop=True))


def _main(
    seeds: Sequence[Seed],
    contestants: Dialogues,
    parts: Sequence[Part],
    length_table: Table,
) -> Table:
    """One row a contestant: the numbers that each protocol is quoted by, and their coverage."""

    def taken(shown: Table, column: Column, heading: str) -> Column:
        return replace(column, heading=heading, detail=False, getter=shown.values(column.key).get)

    first = next((part for part in parts if isinstance(part, Arena)), None)
    rated = [first.quote(column) for column in first.rated] if first else []
    quoted = [part for part in parts if part.quoted]
    ranking = [part.quote(column) for part in quoted for column in part.ranking
               if part is first or not isinstance(part, Arena)]  # fmt: skip
    ranked = first or next((part for part in quoted if part.ranking), None)
    shown = [*(part.table for part in quoted), length_table]
    mean = next(column for column in length_table.columns if column.key.startswith("mean_"))
    return table(
        "leaderboard",
        "Leaderboard",
        [
            rank_by(ranking[0].key if ranking else ""),
            *(ranked.places if ranked else ()),
            protocols.MODEL,
            *rated,
            *(column for part in quoted for column in part.quoted_with_ends()),
            replace(taken(length_table, mean, mean.heading), priority=1),
            Column(
                "complete",
                "Complete dialogues",
                "count",
                priority=2,
                getter=lambda name: outline(contestants[name]).complete,
            ),
            Column("dialogues", "Dialogues", "count", True, getter=lambda _: len(seeds)),
            *(replace(part.coverage, priority=2) for part in quoted),
        ],
        contestants,
        [signature for part in shown for signature in part.signatures],
        (f"Ranked by {ranking[0].heading}. " if ranking else "")
        + "Places are those that are left open, of all at once; in brackets 95 % intervals. "
        "Rates in percent. Coverage: readable verdicts in percent of those that a protocol has.",
        [column.key for column in ranking],
    )


def _notes(
    judged: Mapping[str, Evidence],
    parts: Sequence[Part],
    seed_set: str,
    judge: str,
    wanted: Sequence[Protocol],
) -> Iterator[str]:
    """What a reader must know is not there; ``wanted``: what a board is usually made of."""
    bases = {one.protocol.base for one in judged.values()}
    for protocol in sorted(wanted, key=lambda protocol: protocol.shows != "pair"):
        if protocol.name not in bases:
            how = (
                "label some on the page"
                if judge.startswith(f"{HUMAN}:")
                else f"judge it with: botchat judge {protocol.name} --seeds {seed_set} "
                f"--judge {judge}"
            )
            yield f"{protocol.label} was not judged by {judge}; {how}"
    made = {part.protocol for part in parts}
    for one in judged.values():
        if one.protocol not in made:
            name = one.protocol.short or one.protocol.title
            at = "" if one.protocol.n is None else f" at N = {one.protocol.n}"
            yield f"{name}{at} has no readable verdict, so no rating."
    for part in parts:
        if isinstance(part, Arena):
            yield from part.notes
    for name in sorted(judged):
        if (kinds := len(judged[name].signatures)) > 1:
            yield (
                f"The judgments of {name} were made with {kinds} different settings; "
                "judge again to make them one."
            )
