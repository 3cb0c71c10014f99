"""A set as it is on disk: seeds, dialogues, and the judgments that are still about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import case_digest
from botchat.measures.flagged import Survey
from botchat.parallel import HERE
from botchat.pipeline.surveying import begin_survey
from botchat.pipeline.verdict_files import Counted, begin_reading
from botchat.protocols.arena import turns_judged
from botchat.protocols.pairs import Verdicts, compares_pairs
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogue, Judgment, Seed, human_dialogue
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.board import Board

MOST_TOLD_MB = 200
"""Judgments that `botchat leaderboard` packs beside its page; `botchat report` packs any number.
14 models in all protocols are 50 MB."""

Dialogues = Mapping[str, Mapping[str, Dialogue]]
"""Contestant -> seed id -> dialogue."""

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
    """Each N that the Arena was judged at."""
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
    of_pairs = {
        judge: {
            protocol: path
            for protocol, path in by_protocol.items()
            if in_columns and compares_pairs(protocol)
        }
        for judge, by_protocol in files.items()
    }
    begun = {judge: begin_reading(paths, executor) for judge, paths in of_pairs.items() if paths}
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
    turns = turns_judged({name for listed in files.values() for name in listed})
    return Read(seed_set, seeds, dialogues, judged, turns, executor, stale, begun)


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
