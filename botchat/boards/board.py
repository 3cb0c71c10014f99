"""Stage 3: judgments of one judge on one seed set -> a `Board` of tables; pure.

Every number stands beside what it covers: a comparison or dialogue without a readable verdict is
missing from it. A protocol that was not judged is left out, with a sentence that says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from botchat import __version__
from botchat.boards import arena, flags, protocols, tables
from botchat.boards.coverage import coverage
from botchat.boards.coverage import notes as coverage_notes
from botchat.boards.judge_health import judge_health, sureness
from botchat.boards.protocols import Arena, Part, Quoted, Reported
from botchat.boards.tables import Column, Table, table, to_json
from botchat.interfaces import Row, settings_digest
from botchat.measures.flags import Survey, survey
from botchat.measures.lengths import ENCODING, Lengths, measure
from botchat.protocols.catalogue import RANKING, Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.pairs import Verdicts
from botchat.protocols.reports import as_prose, as_records, as_text
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogues, Judgment, Seed, eligible, human_dialogue
from botchat.workspace.criteria import TAKEN

P = TypeVar("P", bound=Part)


@dataclass(frozen=True)
class Board:
    """Everything that one judge's judgments on one seed set say."""

    seed_set: str
    judge: str
    main: Table
    """One row a contestant, by the first number of the first protocol: Elo at the largest N."""
    parts: tuple[Part, ...]
    """What each protocol comes to: pairs first, at the largest N first, then as catalogued."""
    flags: Table
    """Why each contestant's dialogues fail, without a judge."""
    flags_judge: Table | None
    """The flags beside the first protocol that asks for a place."""
    lengths: Table
    judge_health: Table | None
    """Consistency under swap, what is preferred, ties, unreadable verdicts, false alarms."""
    coverage: Table | None
    utterance_lengths: Lengths
    human_lengths: tuple[int, ...]
    """Utterances of every human dialogue of the set."""
    seeds_signature: str
    notes: tuple[str, ...]
    """What is left out and why, a sentence each."""

    def of(self, kind: type[P]) -> list[P]:
        """The parts of one kind."""
        return [part for part in self.parts if isinstance(part, kind)]

    @property
    def arenas(self) -> list[Arena]:
        """The protocols about pairs, the largest N first."""
        return self.of(Arena)

    @property
    def diagnoses(self) -> list[Reported]:
        """The protocols that ask for a report."""
        return self.of(Reported)

    @property
    def tables(self) -> list[Table]:
        """The tables that a reader wants, most important first."""
        others = [
            *(shown for part in self.parts for shown in part.tables),
            self.flags,
            self.flags_judge,
            *(part.style for part in self.arenas),
            *(part.misfit for part in self.arenas),
            self.lengths,
            self.judge_health,
            self.coverage,
        ]
        return [self.main, *(part for part in others if part is not None)]

    @property
    def files(self) -> list[Table]:
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
    surveyed: Survey | None = None,
) -> Board:
    """Count, rate and rank.

    Args:
        seeds: the set; what a protocol expects is counted from it.
        dialogues: of every contestant; of ``human`` too where it was judged.
        judgments: protocol -> the judge's judgments, at most one for each seed and order shown;
            those on seeds or contestants that are not given are passed over. Pairwise ones may be
            in columns.
        seed_set: name of the set.
        judge: name of the judge.
        catalogue: knows the protocols; default: the built-in ones.
        elo: how pairs are rated; default: the paper's way.
        surveyed: what the dialogues show, ``human``'s among them, at each N that pairs were judged
            at; default: measured here.

    Raises:
        DataError: a verdict that the protocol does not offer.
    """
    elo, catalogue = elo or EloSettings(), catalogue or Catalogue()
    known = catalogue.among(judgments)
    single, pairwise = _usable(known, judgments, seeds, dialogues)
    made_with = {
        **{name: Counter(judgment.signature for judgment in made) for name, made in single.items()},
        **{name: made.signatures for name, made in pairwise.items()},
    }
    made_with = dict(sorted(made_with.items()))
    signatures = {protocol: _signature(counts) for protocol, counts in made_with.items()}
    everyone = _with_human(dialogues, seeds)
    of_pairs = [p for name, p in known.items() if p.shows == "pair" and name in pairwise]
    turns = sorted({p.n for p in of_pairs if p.n}, reverse=True)
    min4 = [seed.id for seed in eligible(seeds)]
    others = [
        _part(p, single, pairwise, seeds, dialogues, signatures[name])
        for name, p in known.items()
        if p.shows != "pair" and name in made_with
    ]
    took_part = {judgment.contestants[0] for made in single.values() for judgment in made}
    took_part |= {name for p in of_pairs for name in pairwise[p.name].judged_contestants}
    contestants = {
        name: dialogues[name] for name in sorted(dialogues) if name != HUMAN or name in took_part
    }
    measured = measure(contestants)
    unit = ENCODING if measured.unit == "tokens" else measured.unit
    length_table = protocols.utterance_lengths(
        measured, f"botchat:{__version__}|lengths|set:{seed_set}|unit:{unit}"
    )
    health = None
    if signatures:
        listed = {
            p: made
            for p, made in judgments.items()
            if p in known and not isinstance(made, Verdicts)
        }
        sure = {protocol: sureness(made) for protocol, made in listed.items()}
        health = judge_health(
            single, pairwise, everyone, list(signatures.values()), sure, catalogue
        )
    found = surveyed or survey(seeds, everyone, turns)
    rated = arena.rate(
        {p: pairwise[p.name] for p in of_pairs},
        min4,
        {p: signatures[p.name] for p in of_pairs},
        elo,
        found.measured,
    )
    parts = (*(rated[p] for p in of_pairs if p in rated), *others)
    covered = coverage(
        (part.covered for part in parts),
        seeds,
        everyone,
        single,
        pairwise,
        list(signatures.values()),
    )
    digest = settings_digest(found.thresholds._asdict())
    flags_signature = f"botchat:{__version__}|flags|set:{seed_set}|thresholds:{digest}"
    flagged = flags.flags(found, len(seeds), flags_signature)
    return Board(
        seed_set=seed_set,
        judge=judge,
        main=_main(seeds, contestants, parts, flagged, length_table),
        parts=parts,
        flags=flagged,
        flags_judge=_flags_judge(found, known, single, signatures, flags_signature),
        lengths=length_table,
        judge_health=health,
        coverage=covered,
        utterance_lengths=measured,
        human_lengths=tuple(len(seed.utterances) for seed in seeds),
        seeds_signature=(
            f"botchat:{__version__}|seeds|set:{seed_set}|seeds:{len(seeds)}|min4:{len(min4)}"
        ),
        notes=(
            *_notes(made_with, parts, of_pairs, seed_set, judge),
            *_unknown(judgments, known, judge),
            *flags.notes(found, len(seeds)),
            *coverage_notes(covered, catalogue),
        ),
    )


def _part(
    protocol: Protocol,
    single: Mapping[str, Sequence[Judgment]],
    pairwise: Mapping[str, Verdicts],
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    signature: str,
) -> Part:
    """What the judgments of a protocol that needs no rating come to."""
    if protocol.shows == "human":
        return protocols.beside_human(protocol, pairwise[protocol.name], seeds, signature)
    made = single[protocol.name]
    if protocol.kind == "place":
        return protocols.place(protocol, seeds, dialogues, made, signature)
    if protocol.kind == "report":
        return protocols.reported(protocol, made, dialogues, seeds, signature)
    return protocols.scored(protocol, made, seeds, signature)


def files(board: Board) -> dict[str, str]:
    """File name -> text of every table, for the folder of the set."""
    found = tables.files(board.files)
    title = f"Leaderboard of {board.seed_set}, judged by {board.judge}"
    found["leaderboard.md"] = tables.document(title, board.notes, board.tables)
    found["leaderboard.json"] = to_json(as_json(board))
    for part in board.diagnoses:
        found[f"{part.protocol.name}-records.jsonl"] = "".join(_report_records(part))
        found[f"{part.protocol.name}-reports.txt"] = "\n".join(_report_texts(part))
    return found


def as_json(board: Board) -> dict[str, Any]:
    """The board, JSON-ready: ``rows`` of the main table, ``elo`` in them at the largest N."""
    ratings = next((part.ratings for part in board.arenas), {})
    rows = [
        {**row, "elo": round(ratings[row["model"]], 4) if row["model"] in ratings else None}
        for row in board.main.records
    ]
    return {
        "set": board.seed_set,
        "judge": board.judge,
        "rows": rows,
        "signature": board.main.signature,
        "signatures": list(board.main.signatures),
        "notes": list(board.notes),
        "tables": {
            part.name: {"rows": part.records, "signatures": list(part.signatures)}
            for part in board.files[1:]
        },
    }


def _report_records(part: Reported) -> Iterator[str]:
    for (contestant, seed_id), found in part.diagnoses.items():
        for judge, report in found.items():
            who = {"seed_id": seed_id, "model": contestant, "judge": judge}
            for row in as_records(report):
                yield json.dumps({**who, **row}, ensure_ascii=False) + "\n"


def _report_texts(part: Reported) -> Iterator[str]:
    """As prose for people, then as questions and answers."""
    for (contestant, seed_id), found in part.diagnoses.items():
        for judge, report in found.items():
            title = f"{seed_id} | {contestant} | {judge}"
            yield f"{title}\n\n{as_prose(report)}\n\n{as_text(report)}\n"


def _usable(
    known: Mapping[str, Protocol],
    judgments: Mapping[str, Sequence[Judgment] | Verdicts],
    seeds: Sequence[Seed],
    dialogues: Dialogues,
) -> tuple[dict[str, list[Judgment]], dict[str, Verdicts]]:
    """Protocol -> its judgments on these seeds and contestants, if there are any.

    Those on single dialogues, and those on pairs.
    """
    ids = {seed.id for seed in seeds}
    single: dict[str, list[Judgment]] = {}
    pairwise: dict[str, Verdicts] = {}
    for name, made in judgments.items():
        if name not in known:
            continue
        # The other side of GTEval is the seeds' own dialogues.
        beside_human = known[name].shows == "human"
        there = dialogues.keys() | {HUMAN} if beside_human else dialogues.keys()
        if isinstance(made, Verdicts):
            pairwise[name] = made.on(ids).between(there)
            continue
        kept = [j for j in made if j.seed_id in ids and there >= set(j.contestants)]
        if kept and known[name].shows == "one":
            single[name] = kept
        elif kept:
            pairwise[name] = Verdicts.of(kept, known[name])
    return single, {name: made for name, made in pairwise.items() if len(made)}


def _with_human(dialogues: Dialogues, seeds: Sequence[Seed]) -> Dialogues:
    """All contestants, people among them: what they show is what flags are measured against."""
    human = dialogues.get(HUMAN) or {seed.id: human_dialogue(seed) for seed in seeds}
    return {**dialogues, HUMAN: human}


def _flags_judge(
    surveyed: Survey,
    known: Mapping[str, Protocol],
    judged: Mapping[str, Sequence[Judgment]],
    signatures: Mapping[str, str],
    signature: str,
) -> Table | None:
    places = [n for n, p in known.items() if p.kind == "place" and p.about_ai and n in judged]
    said: dict[str, dict[str, str | None]] = {}
    for name in places[:1]:
        for judgment in judged[name]:
            said.setdefault(judgment.contestants[0], {})[judgment.seed_id] = judgment.verdict
    by = signatures[places[0]] if places else ""
    return flags.agreement(surveyed, said, [signature, by])


def _main(
    seeds: Sequence[Seed],
    contestants: Dialogues,
    parts: Sequence[Part],
    flagged: Table,
    length_table: Table,
) -> Table:
    """One row a contestant: the numbers that each protocol is quoted by, and their coverage."""
    first = next((part for part in parts if isinstance(part, Arena)), None)
    intervals = first.intervals if first is not None else []
    quoted = [part for part in parts if part.quoted]
    numbers = [number for part in quoted for number in part.quoted]
    covered = [part.coverage for part in quoted]
    ranking = [number for number in numbers if number.ranks]
    failing = [
        Quoted(flagged, "flagged", "flagged", "Flagged"),
        Quoted(flagged, "why", "why", "By"),
    ]
    mean = length_table.columns[2]
    numbers.append(Quoted(length_table, mean.key, mean.key, mean.heading))
    taken = [*numbers, *intervals, *failing, *covered]
    values = {number.key: number.values for number in taken}
    rows: list[Row] = [
        {
            "model": name,
            "complete": sum(dialogue.complete for dialogue in by_seed.values()),
            "dialogues": len(seeds),
            **{key: of_key.get(name) for key, of_key in values.items()},
        }
        for name, by_seed in contestants.items()
    ]
    return table(
        "leaderboard",
        "Leaderboard",
        [
            Column("rank", "Rank", "count", role="rank", of=ranking[0].key if ranking else ""),
            protocols.MODEL,
            *(number.as_column for number in (*intervals, *numbers, *failing)),
            Column("complete", "Complete dialogues", "count"),
            Column("dialogues", "Dialogues", "count", detail=True),
            *(number.as_column for number in covered),
        ],
        protocols.ranked(rows, [number.key for number in ranking]),
        [signature for part in (*numbers, *failing) for signature in part.table.signatures],
        (f"Ranked by {ranking[0].heading}. " if ranking else "")
        + "Rates in percent. Flagged: dialogues that do what at most 1 % of people do. Coverage: "
        "readable verdicts in percent of those that a protocol has.",
    )


def _signature(made_with: Mapping[str, int]) -> str:
    """What judgments are signed with; where they were not all made alike, that is said."""
    found = Counter(made_with).most_common()
    return found[0][0] if len(found) == 1 else f"{found[0][0]}|and-{len(found) - 1}-other-settings"


def _notes(
    made_with: Mapping[str, Mapping[str, int]],
    parts: Sequence[Part],
    of_pairs: Sequence[Protocol],
    seed_set: str,
    judge: str,
) -> Iterator[str]:
    """What a reader must know is not there."""
    judged = {part.protocol.base for part in parts} | {protocol.base for protocol in of_pairs}
    for protocol in sorted(RANKING, key=lambda protocol: protocol.shows != "pair"):
        if protocol.name not in judged:
            how = (
                "label some on the page"
                if judge.startswith(f"{HUMAN}:")
                else f"judge it with: botchat judge {protocol.name} --seeds {seed_set} "
                f"--judge {judge}"
            )
            yield f"{protocol.label} was not judged by {judge}; {how}"
    rated = {part.protocol for part in parts}
    for protocol in of_pairs:
        if protocol not in rated:
            name = protocol.short or protocol.title
            yield f"{name} at N = {protocol.n} has no readable verdict, so no rating."
    for part in parts:
        if isinstance(part, Arena):
            yield from part.notes
    for name, kinds in made_with.items():
        if len(kinds) > 1:
            yield (
                f"The judgments of {name} were made with {len(kinds)} different settings; "
                "judge again to make them one."
            )


def _unknown(
    judgments: Mapping[str, object], known: Mapping[str, Protocol], judge: str
) -> Iterator[str]:
    """A sentence on judgments of protocols that nobody knows: none is dropped in silence."""
    for name in sorted(set(judgments) - set(known) - set(TAKEN)):
        yield (
            f"The judgments of {name} by {judge} do not count: no protocol has that name; if it is "
            f"yours, describe it in [protocols.{name}] of botchat.toml."
        )
