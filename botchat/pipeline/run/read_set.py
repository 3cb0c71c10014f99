"""A set as it is on disk: seeds, dialogues, and the judgments of these dialogues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from botchat import parallel
from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.interfaces import ShownDialogue, case_digest, digests_of_pairs, utterances_shown
from botchat.metrics.annotations import is_annotator
from botchat.metrics.statistics import distinct
from botchat.pipeline.ledger import lost_calls_note
from botchat.pipeline.run.contestants import of_people, own_models
from botchat.pipeline.run.session import catalogue_of
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.ratings.elo import EloSettings
from botchat.records import (
    HUMAN,
    UNANSWERED,
    Dialogue,
    Dialogues,
    Judgment,
    PairJudgment,
    Seed,
    outline,
)
from botchat.verdicts import Flags, Indices, Verdicts, VerdictsBuilder
from botchat.workspace import jsonl
from botchat.workspace.folder import INVENTED, Workspace

if TYPE_CHECKING:
    from botchat.boards.board import Board

Judgments = Mapping[str, Sequence[Judgment]]
"""Protocol -> judgments."""


@dataclass(frozen=True)
class Read:
    """A set as it is on disk, without judgments of dialogues that have changed since."""

    workspace: Workspace
    seed_set: str
    seeds: list[Seed]
    dialogues: dict[str, Mapping[str, Dialogue]]
    """Contestant -> seed id -> dialogue; of ``human`` too."""
    judged: dict[str, dict[str, list[Judgment]]]
    """Judge -> protocol -> judgments, in the order asked for, else who has judged most first."""
    columns: dict[str, dict[str, Verdicts]]
    """Judge -> protocol -> verdicts on pairs, of a set too large for them to be in ``judged``."""
    stale: dict[str, int]
    """Judge -> number of judgments of dialogues that have changed."""
    unanswered: dict[str, int]
    """Model -> number of dialogues in which its endpoint did not answer, where there are any."""
    catalogue: Catalogue
    """What can be asked in the workspace."""
    gone: list[str]
    """Contestants that were judged and whose dialogues are not there."""

    def board(self, judge: str, elo: EloSettings | None = None) -> Board:
        """One judge's numbers."""
        from botchat.boards.board import build_board
        from botchat.metrics import reply_faults

        board = build_board(
            self.seeds,
            self.dialogues,
            {**self.judged[judge], **self.columns[judge]},
            seed_set=self.seed_set,
            judge=judge,
            catalogue=self.catalogue,
            elo=elo,
        )
        invented = self.workspace.about(self.seed_set).invented
        notes = [INVENTED.format(self.seed_set)] if invented else []
        if self.gone:
            notes.append(
                f"Judged, but without dialogues on {self.seed_set}, so not on the board: "
                f"{', '.join(self.gone)}. Make them again with generate, which the ledger answers."
            )
        if changed := [name for name, one in board.verdicts.items() if not one.is_as_asked]:
            notes.append(
                f"The prompt of {', '.join(changed)} has changed since {judge} answered it; these "
                "are answers to the old one: run the judge again."
            )
        if own := own_models(self.workspace, judge, self.dialogues):
            notes.append(f"{judge} judges itself: {', '.join(own)}. Name a judge that is not here.")
        notes += board.notes
        if self.stale[judge]:
            notes.append(
                f"{self.stale[judge]} judgments are about dialogues that have changed since and do "
                "not count; run the judge again."
            )
        if self.unanswered:
            told = ", ".join(f"{n} of {name}" for name, n in self.unanswered.items())
            notes.append(
                "Dialogues that stopped because the endpoint gave no usable reply, and are made by "
                f"running generate again: {told}. A model with none but such is not on the board."
            )
        known = self.workspace.measured(self.seed_set).values()
        # Of a contestant that is there, or of the judge's verdicts.
        asked = [
            one
            for one in known
            if (one.name in self.dialogues if one.stage == "generate" else one.name == judge)
        ]
        notes += [
            f"{row.name} ({row.stage}) was answered by {len(row.answered)} models or snapshots: "
            f"{', '.join(row.answered)}."
            for row in asked
            if len(row.answered) > 1
        ]
        notes += reply_faults.fault_notes(self.dialogues)
        judgments = [j for by in self.judged[judge].values() for j in by]
        notes += lost_calls_note(self.workspace, self.dialogues.values(), judgments)
        return replace(
            board,
            notes=tuple(notes),
            invented=invented,
            provenance=tuple(asked),
        )


def only_judge(workspace: Workspace, seed_set: str, judge: str | None) -> list[str]:
    """The judge of a command that takes one, or none where nobody has judged.

    People who label are judges only where nobody else is. Of several, that of ``[run]``;
    `ConfigError` if it has not judged and none is named.
    """
    known = sorted(workspace.judgment_files(seed_set)) if judge is None else [judge]
    known = [name for name in known if not is_annotator(name, HUMAN)] or known
    usual = workspace.config.run.judge
    known = [name for name in known if usual and usual in (name, name.partition("@")[0])] or known
    if len(known) > 1:
        raise ConfigError(
            f"several judges have judged {seed_set}: name one with --judge: {', '.join(known)}"
        )
    return known


def board_of(
    workspace: Workspace, seed_set: str, judge: str | None, elo: EloSettings | None = None
) -> tuple[Read, Board]:
    """A set with its board by a judge, who may be left out where only one has judged."""
    found = read(workspace, seed_set, only_judge(workspace, seed_set, judge))
    return found, found.board(next(iter(found.judged)), elo)


def read(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    *,
    in_columns: bool = False,
) -> Read:
    """A set with the judgments of some judges, by default of all.

    ``in_columns``: read judgments of pairs into columns, without reasons, in a tenth of the memory;
    where there are no others and dialogues are above `MOST_HELD_MB`, hold none of them.
    Raises `MissingDataError`: no judgments, or none by a judge that is named; `DataError`: a line
    that is no judgment, a verdict that cannot be.
    """
    seeds, everybody = workspace.seeds(seed_set), _judged_files(workspace, seed_set, judges)
    files = {judge: everybody[judge] for judge in dict.fromkeys(judges) or sorted(everybody)}
    catalogue = catalogue_of(workspace, seed_set)
    asked = catalogue.among({name for listed in files.values() for name in listed})
    of_pairs = {
        (judge, protocol): path
        for judge, by_protocol in files.items()
        for protocol, path in by_protocol.items()
        if in_columns and protocol in asked and asked[protocol].shows != "one"
    }
    megabytes = sum(path.stat().st_size for path in of_pairs.values()) / 1e6
    reading = parallel.run_tasks(
        [partial(read_columns, path, asked[name]) for (_, name), path in of_pairs.items()],
        megabytes * _SECONDS_A_MB,
    )
    alone = any(len(by) > sum(judge == who for who, _ in of_pairs) for judge, by in files.items())
    held = not of_pairs or alone or dialogue_megabytes(workspace, seed_set) <= MOST_HELD_MB
    dialogues, unanswered = _spoken(workspace, seed_set, seeds, held=held)
    judged, stale, named = {}, {}, set[str]()
    for judge, by_protocol in files.items():
        made = {
            protocol: _joined(workspace.judgments(path).values())
            for protocol, path in by_protocol.items()
            if (judge, protocol) not in of_pairs
        }
        for name in made.keys() & asked.keys():
            _refuse_odd(by_protocol[name], asked[name], made[name])
        named |= {who for said in made.values() for one in said for who in one.contestants}
        judged[judge], stale[judge] = _current(made, dialogues)
    pairs_read = dict(zip(of_pairs, reading, strict=True))
    named.update(*(verdicts.contestants for verdicts in pairs_read.values()))
    known = {of: still_there(verdicts, dialogues) for of, verdicts in pairs_read.items()}
    checks = [
        currency_task(protocol, verdicts, dialogues) for (_, protocol), verdicts in known.items()
    ]
    # Seeds that a model was given or that were judged; all where there are none.
    ids = {id_ for name, said in dialogues.items() if name != HUMAN for id_ in said}
    ids |= {one.seed_id for made in judged.values() for of in made.values() for one in of}
    used = [seed for seed in seeds if seed.id in ids] or seeds
    if HUMAN in dialogues:
        dialogues[HUMAN] = {one.id: dialogues[HUMAN][one.id] for one in used if one.utterances}
    n_verdicts = sum(map(len, known.values()))
    current = iter(parallel.run_tasks(checks, n_verdicts * _SECONDS_A_VERDICT))
    columns: dict[str, dict[str, Verdicts]] = {judge: {} for judge in files}
    for (judge, protocol), verdicts in known.items():
        columns[judge][protocol] = verdicts.only(next(current))
        stale[judge] += len(verdicts) - len(columns[judge][protocol])
    if not judges:
        # The page opens with the judge who has judged most.
        judged = dict(sorted(judged.items(), key=lambda one: -sum(map(len, one[1].values()))))
    return Read(
        workspace,
        seed_set,
        used,
        dialogues,
        judged,
        columns,
        stale,
        unanswered,
        catalogue,
        sorted(named - {HUMAN, *dialogues, *unanswered}),
    )


def _joined(judgments: Iterable[Judgment]) -> list[Judgment]:
    """The same, with what they have in common held once: half of their memory."""
    made, held = list(judgments), dict[object, object]()
    for name in ("protocol", "contestants", "judge", "signature"):
        for one in made:
            value = getattr(one, name)
            msgspec.structs.force_setattr(one, name, held.setdefault(value, value))
    return made


def _refuse_odd(path: Path, protocol: Protocol, judgments: Sequence[Judgment]) -> None:
    """`DataError`, with the file, for a verdict that nobody can have given."""
    unlike: dict[tuple[object, ...], Judgment] = {}
    for one in judgments:
        unlike.setdefault((one.verdict, one.shown, len(one.contestants)), one)
    for one in unlike.values():
        try:
            protocol.values(one)
            if protocol.kind == "report":
                protocol.scores(one.verdict)
            places = (one.verdict or "").split(" ") if protocol.kind == "place" else []
            if any(int(place) > one.shown for place in places if place.isdecimal()):
                raise DataError(
                    f"verdict {one.verdict!r} accuses an utterance that was not shown, of "
                    f"{one.shown}; delete that line and judge again"
                )
        except DataError as error:
            raise DataError(f"{path}: seed {one.seed_id}: {error}") from None


def _judged_files(
    workspace: Workspace, seed_set: str, judges: Sequence[str]
) -> dict[str, dict[str, Path]]:
    """Judge -> protocol -> file, of everybody; `MissingDataError` if one of ``judges`` has none."""
    files = workspace.judgment_files(seed_set)
    if not files:
        raise MissingDataError(
            f"no judgments in {workspace.root / 'judgments' / seed_set}; make some with: "
            f"botchat judge arena --seeds {seed_set} --judge rules"
        )
    for judge in judges:
        if judge not in files:
            raise MissingDataError(
                f"{judge!r} has not judged {seed_set}; judges who have: {', '.join(sorted(files))}"
            )
    return files


def _spoken(
    workspace: Workspace, seed_set: str, seeds: Sequence[Seed], *, held: bool
) -> tuple[dict[str, Mapping[str, Dialogue]], dict[str, int]]:
    """`Read.dialogues`, of models that an endpoint answered for, and `Read.unanswered`."""
    said = workspace.all_dialogues(seed_set, unanswered=True, held=held)
    silent = {name: len(by) - outline(by).answered for name, by in said.items()}
    human = of_people(seeds)
    dialogues: dict[str, Mapping[str, Dialogue]] = {HUMAN: human} if human else {}
    dialogues |= {name: by for name, by in said.items() if silent[name] < len(by)}
    return dialogues, {name: n for name, n in silent.items() if n}


def _current(judged: Judgments, dialogues: Dialogues) -> tuple[dict[str, list[Judgment]], int]:
    """The judgments of the dialogues as they are now, and how many are of earlier ones."""
    kept: dict[str, list[Judgment]] = {}
    stale = 0

    @cache
    def shown(
        name: str, seed_id: str, end: int | None
    ) -> ShownDialogue | None:  # each meets all others
        one = dialogues.get(name, {}).get(seed_id)
        return None if one is None else ShownDialogue.of(one, end)

    for protocol, judgments in judged.items():
        kept[protocol] = []
        for judgment in judgments:
            if judgment.outcome in UNANSWERED:
                continue  # nobody was asked
            seed_id, end = judgment.seed_id, utterances_shown(judgment)
            of = [shown(name, seed_id, end) for name in judgment.contestants]
            found = [one for one in of if one is not None]
            if len(found) < len(of):
                continue
            if case_digest(protocol, *found) == judgment.case:
                kept[protocol].append(judgment)
            else:
                stale += 1
    return kept, stale


MOST_HELD_MB = 200
"""Size of the dialogues on disk up to which a board holds all of them, in twice as much memory."""


def dialogue_megabytes(workspace: Workspace, seed_set: str) -> float:
    """Of all dialogues of a set, on disk."""
    return sum(path.stat().st_size for path in workspace.dialogue_files(seed_set)) / 1e6


_SECONDS_A_MB = 4e-3
_SECONDS_A_VERDICT = 1e-6
"""CPU time of reading on a core of 2023."""


def read_columns(path: Path, protocol: Protocol) -> Verdicts:
    """The verdicts of a stage file of pairwise judgments; `DataError` for a line that is none."""
    collected = VerdictsBuilder(protocol)
    for block in jsonl.blocks(path, PairJudgment):
        collected.add([one for one in block if one.outcome not in UNANSWERED])
    return collected.verdicts()


def still_there(verdicts: Verdicts, dialogues: Dialogues) -> Verdicts:
    """Those on dialogues that are still there."""
    there = np.array(
        [
            [seed_id in dialogues.get(name, {}) for seed_id in verdicts.seed_ids]
            for name in verdicts.contestants
        ],
        dtype=bool,
    ).reshape(len(verdicts.contestants), len(verdicts.seed_ids))
    both = there[verdicts.first, verdicts.seed] & there[verdicts.second, verdicts.seed]
    return verdicts if both.all() else verdicts.only(both)


def currency_task(protocol: str, verdicts: Verdicts, dialogues: Dialogues) -> Callable[[], Flags]:
    """What tells which verdicts are on the dialogues as they are now, shape (n,)."""
    # What is shown of one dialogue is digested once.
    n, longest = len(verdicts.seed_ids), int(verdicts.shown.max(initial=0)) + 1
    shown = np.concatenate([verdicts.first, verdicts.second]) * n + np.tile(verdicts.seed, 2)
    keys, place = distinct(shown * longest + np.tile(verdicts.shown, 2))
    digests = []
    for key in keys.tolist():
        dialogue, end = divmod(key, longest)
        contestant, seed = divmod(dialogue, n)
        whole = dialogues[verdicts.contestants[contestant]][verdicts.seed_ids[seed]]
        digests.append(ShownDialogue.of(whole, end).digest)
    first, second = place.reshape(2, -1)
    return partial(_are_of, protocol, digests, first, second, verdicts.case)


_BLOCK = 1 << 16


def _each(numbers: Indices) -> Iterator[int]:
    """Each number, a block at a time: Python's take five times what they take in an array."""
    for at in range(0, len(numbers), _BLOCK):
        yield from numbers[at : at + _BLOCK].tolist()


def _are_of(
    protocol: str,
    digests: Sequence[bytes],
    first: Indices,
    second: Indices,
    case: npt.NDArray[np.uint64],
) -> Flags:
    """Which cases are on these pairs of digests."""
    now = digests_of_pairs(protocol, digests, _each(first), _each(second))
    return np.asarray(case == np.frombuffer(now, dtype=">u8"))
