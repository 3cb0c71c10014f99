"""Stage 3: judgments of one judge on one seed set -> a `Board` of tables; pure.

Every number stands beside what it covers: a comparison or dialogue without a readable verdict is
missing from it. A protocol that was not judged is left out, with a sentence that says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any

from botchat import __version__
from botchat.boards import arena as arenas
from botchat.boards import flags as failings
from botchat.boards import protocols as standings
from botchat.boards import survival, tables
from botchat.boards.coverage import coverage
from botchat.boards.coverage import notes as coverage_notes
from botchat.boards.judge_health import judge_health, sureness
from botchat.boards.protocols import Arena
from botchat.boards.survival import Curve
from botchat.boards.tables import Column, Table, table, to_json
from botchat.interfaces import Row, settings_digest
from botchat.measures.flags import Survey, survey
from botchat.measures.lengths import ENCODING, Lengths, measure
from botchat.parallel import HERE
from botchat.protocols import arena, rates
from botchat.protocols import diagnosis as error_rates
from botchat.protocols.diagnosis import PROTOCOL as DIAGNOSIS
from botchat.protocols.diagnosis import as_prose, as_records, as_text
from botchat.protocols.gteval import PROTOCOL as GTEVAL
from botchat.protocols.pairs import Verdicts, compares_pairs
from botchat.protocols.unieval import PROTOCOL as UNIEVAL
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogues, Judgment, Seed, human_dialogue


@dataclass(frozen=True)
class Board:
    """Everything that one judge's judgments on one seed set say."""

    seed_set: str
    judge: str
    main: Table
    """One row a contestant, by Elo at the largest N, else UniEval, else GTEval, else name."""
    arenas: Mapping[int, Arena]
    """N -> the Arena at N, largest N first."""
    unieval: Table | None
    survival: Table | None
    """By which utterance each contestant's dialogues are accused in UniEval."""
    curves: Mapping[str, Curve]
    """Contestant -> the same, utterance by utterance; in the order of the table."""
    gteval: Table | None
    diagnosis: Table | None
    diagnoses: error_rates.Diagnoses
    """Every report of the diagnosis."""
    flags: Table
    """Why each contestant's dialogues fail, without a judge."""
    flags_judge: Table | None
    """The flags beside UniEval."""
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

    @property
    def tables(self) -> list[Table]:
        """The tables that a reader wants, most important first."""
        parts = list(self.arenas.values())
        others = [
            *(part.standing for part in parts),
            self.unieval,
            self.survival,
            self.gteval,
            self.diagnosis,
            self.flags,
            self.flags_judge,
            *(part.style for part in parts),
            *(part.misfit for part in parts),
            self.lengths,
            self.judge_health,
            self.coverage,
        ]
        return [self.main, *(part for part in others if part is not None)]


def build(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judgments: Mapping[str, Sequence[Judgment] | Verdicts],
    *,
    seed_set: str,
    judge: str,
    elo: EloSettings | None = None,
    surveyed: Callable[[], Survey] | None = None,
    executor: Executor = HERE,
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
        elo: how the Arena is rated; default: the paper's way.
        surveyed: tells what the dialogues show, ``human``'s among them, at each N of
            `botchat.protocols.arena.turns_judged`; default: measured here.
        executor: what plays the games of Elo.

    Raises:
        DataError: a verdict that the protocol does not offer.
    """
    elo = elo or EloSettings()
    single, pairwise = _usable(judgments, seeds, dialogues)
    made_with = {
        **{name: Counter(judgment.signature for judgment in made) for name, made in single.items()},
        **{name: made.signatures for name, made in pairwise.items()},
    }
    made_with = dict(sorted(made_with.items()))
    signatures = {protocol: _signature(counts) for protocol, counts in made_with.items()}
    turns = arena.turns_judged(pairwise)
    everyone = _with_human(dialogues, seeds)
    seed_ids = [seed.id for seed in arena.eligible(seeds)]
    names = {n: arena.protocol(n) for n in turns}
    of_arenas = {n: pairwise[name] for n, name in names.items()}
    signed = {n: signatures[name] for n, name in names.items()}
    begun = arenas.begin(of_arenas, seed_ids, signed, elo, executor)
    unieval = gteval = survived = None
    curves = survival.curves(single.get(UNIEVAL, ()), dialogues)
    if UNIEVAL in single:
        unieval = standings.unieval(seeds, dialogues, single[UNIEVAL], signatures[UNIEVAL])
    if curves:
        survived = survival.survival(curves, seeds, signatures[UNIEVAL])
    if GTEVAL in pairwise:
        gteval = standings.gteval(_beside_human(pairwise[GTEVAL], seeds), signatures[GTEVAL])
    made = single.get(DIAGNOSIS, [])
    diagnoses = error_rates.diagnoses(made, dialogues)
    errors = error_rates.error_rates(made, diagnoses, len(seeds))
    diagnosed = standings.diagnosis(errors, signatures[DIAGNOSIS]) if errors else None
    took_part = {judgment.contestants[0] for made in single.values() for judgment in made}
    took_part |= {name for p, made in pairwise.items() if p != GTEVAL for name in made.players}
    contestants = {
        name: dialogues[name] for name in sorted(dialogues) if name != HUMAN or name in took_part
    }
    measured = measure(contestants)
    unit = ENCODING if measured.unit == "tokens" else measured.unit
    length_table = standings.utterance_lengths(
        measured, f"botchat:{__version__}|lengths|set:{seed_set}|unit:{unit}"
    )
    health = None
    if signatures:
        listed = {p: made for p, made in judgments.items() if not isinstance(made, Verdicts)}
        sure = {protocol: sureness(made) for protocol, made in listed.items()}
        health = judge_health(single, pairwise, everyone, list(signatures.values()), sure)
    # What takes long was begun first, and is waited for last.
    found = surveyed() if surveyed else survey(seeds, everyone, turns)
    rated = begun(found.measured)
    parts = {
        **{names[n]: part.standing for n, part in rated.items()},
        **({UNIEVAL: unieval} if unieval else {}),
        **({GTEVAL: gteval} if gteval else {}),
        **({DIAGNOSIS: diagnosed} if diagnosed else {}),
    }
    covered = coverage(parts, seeds, everyone, single, pairwise, list(signatures.values()))
    digest = settings_digest(asdict(found.thresholds))
    flags_signature = f"botchat:{__version__}|flags|set:{seed_set}|thresholds:{digest}"
    flags = failings.flags(found, len(seeds), flags_signature)
    return Board(
        seed_set=seed_set,
        judge=judge,
        main=_main(seeds, contestants, rated, unieval, gteval, flags, length_table),
        arenas=rated,
        unieval=unieval,
        survival=survived,
        curves=curves,
        gteval=gteval,
        diagnosis=diagnosed,
        diagnoses=diagnoses,
        flags=flags,
        flags_judge=_flags_judge(found, single, signatures, flags_signature),
        lengths=length_table,
        judge_health=health,
        coverage=covered,
        utterance_lengths=measured,
        human_lengths=tuple(len(seed.utterances) for seed in seeds),
        seeds_signature=(
            f"botchat:{__version__}|seeds|set:{seed_set}|seeds:{len(seeds)}|min4:{len(seed_ids)}"
        ),
        notes=(
            *_notes(made_with, rated, turns, seed_set, judge),
            *failings.notes(found, len(seeds)),
            *coverage_notes(covered),
        ),
    )


def files(board: Board) -> dict[str, str]:
    """File name -> text of every table, for the folder of the set."""
    listed = [*board.tables, *(part.pairs for part in board.arenas.values())]
    found = tables.files(listed)
    title = f"Leaderboard of {board.seed_set}, judged by {board.judge}"
    found["leaderboard.md"] = tables.document(title, board.notes, board.tables)
    found["leaderboard.json"] = to_json(as_json(board))
    if board.diagnoses:
        found["diagnosis-records.jsonl"] = "".join(_diagnosis_records(board))
        found["diagnosis-reports.txt"] = "\n".join(_diagnosis_reports(board))
    return found


def as_json(board: Board) -> dict[str, Any]:
    """The board, JSON-ready: ``rows`` of the main table, ``elo`` in them at the largest N."""
    ratings = next((part.ratings for part in board.arenas.values()), {})
    rows = [
        {**row, "elo": round(ratings[row["model"]], 4) if row["model"] in ratings else None}
        for row in board.main.records
    ]
    listed = [*board.tables[1:], *(part.pairs for part in board.arenas.values())]
    return {
        "set": board.seed_set,
        "judge": board.judge,
        "rows": rows,
        "signature": board.main.signature,
        "signatures": list(board.main.signatures),
        "notes": list(board.notes),
        "tables": {
            part.name: {"rows": part.records, "signatures": list(part.signatures)}
            for part in listed
        },
    }


def _diagnosis_records(board: Board) -> Iterator[str]:
    for (contestant, seed_id), reports in board.diagnoses.items():
        for judge, report in reports.items():
            who = {"seed_id": seed_id, "model": contestant, "judge": judge}
            for row in as_records(report):
                yield json.dumps({**who, **row}, ensure_ascii=False) + "\n"


def _diagnosis_reports(board: Board) -> Iterator[str]:
    """As prose for people, then as questions and answers."""
    for (contestant, seed_id), reports in board.diagnoses.items():
        for judge, report in reports.items():
            title = f"{seed_id} | {contestant} | {judge}"
            yield f"{title}\n\n{as_prose(report)}\n\n{as_text(report)}\n"


def _usable(
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
    for protocol, made in judgments.items():
        # The other side of GTEval is the seeds' own dialogues.
        known = dialogues.keys() | {HUMAN} if protocol == GTEVAL else dialogues.keys()
        if isinstance(made, Verdicts):
            pairwise[protocol] = made.on(ids).between(known)
            continue
        kept = [j for j in made if j.seed_id in ids and known >= set(j.contestants)]
        if kept and protocol in (UNIEVAL, DIAGNOSIS):
            single[protocol] = kept
        elif kept and compares_pairs(protocol):
            pairwise[protocol] = Verdicts.of(kept)
    return single, {protocol: made for protocol, made in pairwise.items() if len(made)}


def _with_human(dialogues: Dialogues, seeds: Sequence[Seed]) -> Dialogues:
    """All contestants, people among them: what they show is what flags are measured against."""
    human = dialogues.get(HUMAN) or {seed.id: human_dialogue(seed) for seed in seeds}
    return {**dialogues, HUMAN: human}


def _flags_judge(
    surveyed: Survey,
    judged: Mapping[str, Sequence[Judgment]],
    signatures: Mapping[str, str],
    signature: str,
) -> Table | None:
    said: dict[str, dict[str, str | None]] = {}
    for judgment in judged.get(UNIEVAL, ()):
        said.setdefault(judgment.contestants[0], {})[judgment.seed_id] = judgment.verdict
    return failings.agreement(surveyed, said, [signature, signatures.get(UNIEVAL, "")])


def _beside_human(made: Verdicts, seeds: Sequence[Seed]) -> dict[str, rates.Tally]:
    models = [name for name in made.players if name != HUMAN]
    seed_ids = [seed.id for seed in arena.eligible(seeds)]
    found = rates.tallies(made, [(model, HUMAN) for model in models], seed_ids)
    return {model: found[model, HUMAN] for model in models}


def _main(
    seeds: Sequence[Seed],
    contestants: Dialogues,
    arenas: Mapping[int, Arena],
    unieval: Table | None,
    gteval: Table | None,
    flags: Table,
    length_table: Table,
) -> Table:
    """One row a contestant: the numbers that each protocol is quoted by, and their coverage."""
    numbers, covered = [], []
    intervals = [
        _Taken(part.standing, key, f"{key}_n{n}", f"{heading} @{n}", detail)
        for n, part in list(arenas.items())[:1]
        for key, heading, detail in _INTERVALS
    ]
    for n, part in arenas.items():
        numbers.append(_Taken(part.standing, "elo", f"elo_n{n}", f"Elo @{n}"))
        covered.append(
            _Taken(part.standing, "coverage", f"coverage_arena_n{n}", f"Arena @{n} coverage")
        )
    if unieval is not None:
        successes = [column for column in unieval.columns if column.key.startswith("success")]
        numbers += [_Taken(unieval, c.key, c.key, f"Success {c.heading}") for c in successes]
        largest = successes[0].key.replace("success", "coverage")
        covered.append(_Taken(unieval, largest, "coverage_unieval", "UniEval coverage"))
    if gteval is not None:
        numbers.append(_Taken(gteval, "win_or_tie", "gteval_win_or_tie", "GTEval win + tie"))
        covered.append(_Taken(gteval, "coverage", "coverage_gteval", "GTEval coverage"))
    ranking = [part for part in numbers if part.key != "success_human_length"]
    failing = [_Taken(flags, "flagged", "flagged", "Flagged"), _Taken(flags, "why", "why", "By")]
    mean = next(column for column in length_table.columns if column.key.startswith("mean"))
    numbers.append(_Taken(length_table, mean.key, mean.key, mean.heading))
    rows: list[Row] = [
        {
            "model": name,
            "complete": sum(dialogue.complete for dialogue in by_seed.values()),
            "dialogues": len(seeds),
            **{
                part.key: part.values.get(name)
                for part in (*numbers, *intervals, *failing, *covered)
            },
        }
        for name, by_seed in contestants.items()
    ]
    return table(
        "leaderboard",
        "Leaderboard",
        [
            Column("rank", "Rank", "count", role="rank", of=ranking[0].key if ranking else ""),
            standings.MODEL,
            *(part.column for part in intervals),
            *(part.column for part in numbers),
            *(part.column for part in failing),
            Column("complete", "Complete dialogues", "count"),
            Column("dialogues", "Dialogues", "count", detail=True),
            *(part.column for part in covered),
        ],
        standings.ranked(rows, [part.key for part in ranking]),
        [signature for part in (*numbers, *failing) for signature in part.source.signatures],
        (f"Ranked by {ranking[0].heading}. " if ranking else "")
        + "Rates in percent. Flagged: dialogues that do what at most 1 % of people do. Coverage: "
        "readable verdicts in percent of those that a protocol has.",
    )


_INTERVALS = (
    ("bt_group", "Group", False),
    ("bt", "Bradley–Terry", False),
    ("bt_low", "Low", True),
    ("bt_high", "High", True),
)
"""Of the main table, at the largest N: key, heading, whether for machines only."""


@dataclass(frozen=True)
class _Taken:
    """A column of the main table, taken from another table."""

    source: Table
    source_key: str
    key: str
    heading: str
    detail: bool = False

    @property
    def column(self) -> Column:
        """Itself under its own name."""
        kind = next(c.kind for c in self.source.columns if c.key == self.source_key)
        return Column(self.key, self.heading, kind, self.detail)

    @property
    def values(self) -> dict[str, float]:
        """Contestant -> value."""
        frame = self.source.frame
        return dict(zip(frame["model"], frame[self.source_key].tolist(), strict=True))


def _signature(made_with: Mapping[str, int]) -> str:
    """What judgments are signed with; where they were not all made alike, that is said."""
    found = Counter(made_with).most_common()
    return found[0][0] if len(found) == 1 else f"{found[0][0]}|and-{len(found) - 1}-other-settings"


def _notes(
    made_with: Mapping[str, Mapping[str, int]],
    arenas: Mapping[int, Arena],
    turns: Sequence[int],
    seed_set: str,
    judge: str,
) -> Iterator[str]:
    """What a reader must know is not there."""
    asked = {"Arena": bool(turns), "UniEval": UNIEVAL in made_with, "GTEval": GTEVAL in made_with}
    for title, was_judged in asked.items():
        if not was_judged:
            how = (
                "label some on the page"
                if judge.startswith(f"{HUMAN}:")
                else f"judge it with: botchat judge {title.lower()} --seeds {seed_set} "
                f"--judge {judge}"
            )
            yield f"{title} was not judged by {judge}; {how}"
    for n in turns:
        if n not in arenas:
            yield f"Arena at N = {n} has no readable verdict, so no rating."
    for part in arenas.values():
        yield from part.notes
    for protocol, kinds in made_with.items():
        if len(kinds) > 1:
            yield (
                f"The judgments of {protocol} were made with {len(kinds)} different settings; "
                "judge again to make them one."
            )
