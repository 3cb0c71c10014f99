"""A set as it is on disk: seeds, dialogues, and the judgments that are still about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from botchat import leaderboards
from botchat.errors import MissingError
from botchat.generation import human_dialogue
from botchat.interfaces import case_digest
from botchat.leaderboards import Board
from botchat.measures.flagged import Survey
from botchat.pipeline.surveying import survey
from botchat.pipeline.verdict_files import read_columns
from botchat.pipeline.workspace import Workspace
from botchat.protocols.verdicts import Verdicts
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Dialogue, Judgment, Seed

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
    columns: dict[str, dict[str, Verdicts]]
    """Judge -> protocol -> verdicts on pairs, of a set too large for them to be in ``judged``."""
    stale: dict[str, int]
    """Judge -> judgments that are about dialogues that have changed."""

    @cached_property
    def surveyed(self) -> Survey:
        """What the dialogues show without a judge."""
        protocols = {protocol for judged in self.judged.values() for protocol in judged}
        protocols |= {protocol for columns in self.columns.values() for protocol in columns}
        return survey(self.seeds, self.dialogues, leaderboards.turns_judged(protocols))

    def board(self, judge: str, elo: EloSettings | None = None) -> Board:
        """One judge's numbers."""
        board = leaderboards.build(
            self.seeds,
            self.dialogues,
            {**self.judged[judge], **self.columns.get(judge, {})},
            seed_set=self.seed_set,
            judge=judge,
            elo=elo,
            surveyed=self.surveyed,
        )
        if not self.stale[judge]:
            return board
        note = (
            f"{self.stale[judge]} judgments are about dialogues that have changed since and do "
            "not count; run the judge again."
        )
        return replace(board, notes=(*board.notes, note))


def read(
    workspace: Workspace, seed_set: str, judges: Sequence[str] = (), *, in_columns: bool = False
) -> Read:
    """A set with the judgments of some judges, by default of all.

    Args:
        workspace: where they are.
        seed_set: name of the set.
        judges: their names.
        in_columns: read those on pairs into columns: a tenth of the memory, and no reasons.

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
    dialogues = {
        HUMAN: {seed.id: human_dialogue(seed) for seed in seeds},
        **workspace.all_dialogues(seed_set),
    }
    found = Read(seed_set, seeds, dialogues, {}, {}, {})
    for judge in dict.fromkeys(judges) or sorted(files):
        of_pairs = {
            protocol: path
            for protocol, path in files[judge].items()
            if in_columns and leaderboards.compares_pairs(protocol)
        }
        made = {
            protocol: list(workspace.judgments(path).values())
            for protocol, path in files[judge].items()
            if protocol not in of_pairs
        }
        found.judged[judge], found.stale[judge] = _current(made, dialogues)
        if of_pairs:
            found.columns[judge], stale = read_columns(of_pairs, dialogues)
            found.stale[judge] += stale
    if judges:
        return found
    # Who has judged most says most; it is what the page opens with.
    by_number = sorted(found.judged.items(), key=lambda one: -sum(map(len, one[1].values())))
    return replace(found, judged=dict(by_number))


def _current(
    judged: Judgments, dialogues: Mapping[str, Mapping[str, Dialogue]]
) -> tuple[dict[str, list[Judgment]], int]:
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
