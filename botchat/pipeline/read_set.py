"""A set as it is on disk: seeds, dialogues, and the judgments that are still about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import case_digest
from botchat.measures.flags import Survey
from botchat.parallel import HERE
from botchat.pipeline.session import catalogue_of
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.pairs import Verdicts
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogue, Dialogues, Judgment, Seed, human_dialogue
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.board import Board

from collections.abc import Collection
from pathlib import Path

import numpy as np

from botchat.interfaces import dialogue_digest, digests_of_pairs
from botchat.measures.flags import fit_thresholds, measure_all
from botchat.protocols.pairs import Collected, Flags
from botchat.ratings.comparisons import distinct
from botchat.records import PairVerdict
from botchat.workspace import files as store

MOST_TOLD_MB = 200
"""Judgments that `botchat leaderboard` packs beside its page; `botchat report` packs any number.
14 models in all protocols are 50 MB."""

Judgments = Mapping[str, Sequence[Judgment]]
"""Protocol -> judgments."""


@dataclass(frozen=True)
class Read:
    """A set as it is on disk, without judgments of dialogues that have changed since."""

    seed_set: str
    seeds: list[Seed]
    dialogues: dict[str, dict[str, Dialogue]]
    """Contestant -> seed id -> dialogue; of ``human`` too."""
    judged: dict[str, dict[str, list[Judgment]]]
    """Judge -> protocol -> judgments, in the order asked for, else who has judged most first."""
    turns: Sequence[int]
    """Each N that pairs were judged at."""
    catalogue: Catalogue
    """What can be asked in the workspace."""
    executor: Executor
    """What does the parts that take long."""
    _stale: dict[str, int]
    _begun: dict[str, Callable[[Dialogues], Counted]]

    @property
    def columns(self) -> dict[str, dict[str, Verdicts]]:
        """Judge -> protocol -> verdicts on pairs, of a set too large for them to be in ``judged``.

        They are waited for where they are still read.
        """
        return {judge: columns for judge, (columns, _) in self._in_columns.items()}

    @property
    def stale(self) -> dict[str, int]:
        """Judge -> judgments that are about dialogues that have changed."""
        return {
            judge: stale + self._in_columns.get(judge, ({}, 0))[1]
            for judge, stale in self._stale.items()
        }

    @cached_property
    def _in_columns(self) -> dict[str, Counted]:
        return {judge: finish(self.dialogues) for judge, finish in self._begun.items()}

    @cached_property
    def _surveyed(self) -> Callable[[], Survey]:
        return begin_survey(self.seeds, self.dialogues, self.turns, self.executor)

    def begin(self) -> None:
        """Begin now what every board needs; else the first begins it."""
        _ = self._surveyed

    def board(self, judge: str, elo: EloSettings | None = None) -> Board:
        """One judge's numbers."""
        from botchat.boards import board as leaderboards

        self.begin()
        board = leaderboards.build(
            self.seeds,
            self.dialogues,
            {**self.judged[judge], **self.columns.get(judge, {})},
            seed_set=self.seed_set,
            judge=judge,
            catalogue=self.catalogue,
            elo=elo,
            surveyed=self._surveyed,
            executor=self.executor,
        )
        if not self.stale[judge]:
            return board
        note = (
            f"{self.stale[judge]} judgments are about dialogues that have changed since and do "
            "not count; run the judge again."
        )
        return replace(board, notes=(*board.notes, note))


def only_judge(workspace: Workspace, seed_set: str, judge: str | None) -> str | None:
    """The judge to take where a command takes one.

    Raises:
        ConfigError: none is named and several have judged.
    """
    known = sorted(workspace.judgment_files(seed_set)) if judge is None else [judge]
    if len(known) > 1:
        raise ConfigError(
            f"several judges have judged {seed_set}: name one with --judge: {', '.join(known)}"
        )
    return known[0] if known else None


def too_much_for_a_page(workspace: Workspace, seed_set: str, judge: str | None) -> int:
    """Megabytes of a judge's judgments, where they are more than a quick page tells; else 0."""
    files = workspace.judgment_files(seed_set).get(judge or "", {})
    megabytes = sum(path.stat().st_size for path in files.values()) // 1_000_000
    return megabytes if megabytes > MOST_TOLD_MB else 0


def read(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    *,
    in_columns: bool = False,
    executor: Executor = HERE,
) -> Read:
    """A set with the judgments of some judges, by default of all.

    Args:
        workspace: where they are.
        seed_set: name of the set.
        judges: their names.
        in_columns: read those on pairs into columns: a tenth of the memory, and no reasons.
        executor: what reads columns, and helps to make boards.

    Raises:
        MissingError: no judgments, or none by a judge that is named.
    """
    seeds = workspace.seeds(seed_set)
    files = workspace.judgment_files(seed_set)
    if not files:
        raise MissingError(
            f"no judgments in {workspace.root / 'judgments' / seed_set}; make some with: "
            f"botchat judge arena --seeds {seed_set} --judge rules"
        )
    for judge in judges:
        if judge not in files:
            raise MissingError(
                f"{judge!r} has not judged {seed_set}; judges who have: {', '.join(sorted(files))}"
            )
    files = {judge: files[judge] for judge in dict.fromkeys(judges) or sorted(files)}
    catalogue = catalogue_of(workspace)
    known = catalogue.among({name for listed in files.values() for name in listed})
    of_pairs = {
        judge: {
            protocol: path
            for protocol, path in by_protocol.items()
            if in_columns and protocol in known and known[protocol].shows != "one"
        }
        for judge, by_protocol in files.items()
    }
    begun = {
        judge: begin_reading({known[name]: path for name, path in paths.items()}, executor)
        for judge, paths in of_pairs.items()
        if paths
    }
    dialogues = {
        HUMAN: {seed.id: human_dialogue(seed) for seed in seeds},
        **workspace.all_dialogues(seed_set),
    }
    judged, stale = {}, {}
    for judge, by_protocol in files.items():
        made = {
            protocol: list(workspace.judgments(path).values())
            for protocol, path in by_protocol.items()
            if protocol not in of_pairs[judge]
        }
        judged[judge], stale[judge] = _current(made, dialogues)
    if not judges:
        # Who has judged most says most; it is what the page opens with.
        judged = dict(sorted(judged.items(), key=lambda one: -sum(map(len, one[1].values()))))
    turns = sorted({protocol.n for protocol in known.values() if protocol.n}, reverse=True)
    return Read(seed_set, seeds, dialogues, judged, turns, catalogue, executor, stale, begun)


def _current(judged: Judgments, dialogues: Dialogues) -> tuple[dict[str, list[Judgment]], int]:
    """The judgments of the dialogues as they are now, and how many are of others.

    Judgments of a contestant or seed that is not there any more are neither.
    """
    kept: dict[str, list[Judgment]] = {}
    stale = 0
    for protocol, judgments in judged.items():
        kept[protocol] = []
        for judgment in judgments:
            found = [dialogues.get(name, {}).get(judgment.seed_id) for name in judgment.contestants]
            # UniEval shows the whole dialogue, the others as much as both have.
            end = judgment.shown if len(found) > 1 else None
            shown = [d.utterances[:end] for d in found if d is not None]
            if len(shown) < len(found):
                continue
            if case_digest(protocol, *shown) == judgment.case:
                kept[protocol].append(judgment)
            else:
                stale += 1
    return kept, stale


MOST = 9_000
"""Dialogues up to which all are measured: a board of the paper's size is. Of more, a part."""

SAMPLE = 6_000
"""Dialogues of that part: the same seeds of every contestant, spread evenly; of 15 contestants 400
each and of 48 125, which give a share with a standard error below 2.5 and 4.5 points."""

_WORTH_PROCESSES = 500
"""Dialogues below which sending them costs more than it saves."""


def begin_survey(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    turns: Collection[int],
    executor: Executor,
) -> Callable[[], Survey]:
    """Begin to measure every contestant's dialogues, of a large set those on some of its seeds.

    Args:
        seeds: the set.
        dialogues: contestant -> seed id -> dialogue, ``human`` among them.
        turns: each N that the Arena was judged at.
        executor: what measures.

    Returns:
        A function that waits for the result.
    """
    everything = sum(map(len, dialogues.values()))
    n = len(seeds) if everything <= MOST else min(len(seeds), max(1, SAMPLE // len(dialogues)))
    chosen = {seeds[i * len(seeds) // n].id for i in range(n)}
    thresholds = fit_thresholds(seed.utterances for seed in seeds)
    texts = {
        name: {seed_id: d.utterances for seed_id, d in by_seed.items() if seed_id in chosen}
        for name, by_seed in dialogues.items()
    }
    if sum(map(len, texts.values())) < _WORTH_PROCESSES:
        executor = HERE
    begun = {
        name: executor.submit(measure_all, by_seed, thresholds, tuple(turns))
        for name, by_seed in texts.items()
    }
    return lambda: Survey(thresholds, n, {name: part.result() for name, part in begun.items()})


Counted = tuple[dict[str, Verdicts], int]
"""Protocol -> verdicts on the dialogues as they are, and how many are on others."""


def begin_reading(
    files: Mapping[Protocol, Path], executor: Executor
) -> Callable[[Dialogues], Counted]:
    """Begin to read one judge's pairwise judgments.

    Args:
        files: protocol -> its stage file.
        executor: what reads them.

    Returns:
        A function of the dialogues as they are now, ``human`` among them: it waits, and tells
        verdicts on them from those on others. Verdicts on a contestant or seed that is not there
        any more are not counted at all. It raises `DataError` for a line that is no judgment, or a
        verdict that the protocol does not offer.
    """
    begun = {p.name: executor.submit(_read, path, p) for p, path in files.items()}

    def finish(dialogues: Dialogues) -> Counted:
        current, stale = {}, 0
        for protocol, read in begun.items():
            known = _known(read.result(), dialogues)
            current[protocol] = known.only(_is_current(protocol, known, dialogues))
            stale += len(known) - len(current[protocol])
        return current, stale

    return finish


def _read(path: Path, protocol: Protocol) -> Verdicts:
    collected = Collected(protocol)
    for block in store.blocks(path, PairVerdict):
        collected.add(block)
    return collected.verdicts()


def _known(verdicts: Verdicts, dialogues: Dialogues) -> Verdicts:
    """Those on dialogues that are still there."""
    there = np.array(
        [
            [seed_id in dialogues.get(name, {}) for seed_id in verdicts.seed_ids]
            for name in verdicts.contestants
        ],
        dtype=bool,
    ).reshape(len(verdicts.contestants), len(verdicts.seed_ids))
    seed = verdicts.seed
    known = there[verdicts.first, seed] & there[verdicts.second, seed]
    return verdicts if known.all() else verdicts.only(known)


def _is_current(protocol: str, verdicts: Verdicts, dialogues: Dialogues) -> Flags:
    """Whether each is on the dialogues as they are; what is shown of one is digested once."""
    n, longest = len(verdicts.seed_ids), int(verdicts.shown.max(initial=0)) + 1
    shown = np.concatenate([verdicts.first, verdicts.second]) * n + np.tile(verdicts.seed, 2)
    keys, place = distinct(shown * longest + np.tile(verdicts.shown, 2))
    digests = []
    for key in keys.tolist():
        dialogue, end = divmod(key, longest)
        contestant, seed = divmod(dialogue, n)
        whole = dialogues[verdicts.contestants[contestant]][verdicts.seed_ids[seed]]
        digests.append(dialogue_digest(whole.utterances[:end]))
    first, second = place.reshape(2, -1).tolist()
    now = np.frombuffer(digests_of_pairs(protocol, digests, first, second), dtype=">u8")
    return np.asarray(verdicts.case == now)
