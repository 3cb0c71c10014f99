"""A seed set as it is on disk: seeds, dialogues, and the verdicts on these dialogues."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import msgspec

from botchat.boards.skill import JudgeTest
from botchat.errors import ConfigError, DataError, MissingDataError, listed
from botchat.frames import fill_lines
from botchat.interfaces import ShownDialogue, case_digest
from botchat.judges.discussion import is_undivided
from botchat.metrics.verdicts import PairVerdicts, VerdictsBuilder
from botchat.pipeline.contestants import (
    begun_seeds,
    dialogues_on,
    human_dialogues,
    self_judged_models,
    with_humans,
)
from botchat.pipeline.ledger import lost_calls_note
from botchat.pipeline.spending import JudgeName
from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.protocols.controls import shuffled_dialogues
from botchat.protocols.protocol import Protocol
from botchat.records import (
    HUMAN,
    MIN_HUMAN,
    SHUFFLED,
    UNANSWERED,
    Dialogues,
    JudgeId,
    Judgment,
    PairJudgment,
    Provenance,
    Seed,
    Seeds,
    Texts,
    natural_sort_key,
)
from botchat.workspace import jsonl
from botchat.workspace.folder import INVENTED, CaseKey, JudgmentFiles, Workspace, judgment_key
from botchat.workspace.usage import CallCosts, call_costs

if TYPE_CHECKING:
    from botchat.boards.board import Board

J = TypeVar("J", Judgment, PairJudgment)

ByProtocol: TypeAlias = dict[str, PairVerdicts | list[Judgment]]
"""Protocol -> verdicts on pairs, in columns, or judgments of single dialogues."""


# Dialogues up to which a board has groups by length.
MOST_GROUPED = 2_000


@dataclass(frozen=True)
class SeedSetData:
    """A set as it is on disk, without verdicts on dialogues that have changed since."""

    workspace: Workspace
    seed_set: str
    invented: bool
    """Whether its human dialogues were written for a demo."""
    seeds: list[Seed]
    """Seeds that a model was given or that were judged; all where there are none."""
    dialogues: Dialogues
    """Contestant -> seed id -> dialogue; of ``human`` too."""
    verdicts: Mapping[str, ByProtocol]
    """Judge -> protocol -> verdicts, also those that test the judge."""
    judgments: Mapping[str, dict[str, list[Judgment]]]
    """Judge -> protocol -> judgments with their reasons, in the same way."""
    outdated: Mapping[str, int]
    """Judge -> number of judgments of dialogues that have changed."""
    unanswered: Mapping[str, int]
    """Model -> number of dialogues in which its endpoint did not answer, where there are any."""
    without_dialogues: set[str]
    """Contestants that were judged and have no dialogues."""
    measured: Sequence[Provenance]
    """Calls that dialogues and verdicts rest on, in sum."""
    catalogue: Catalogue
    """Protocols that can be asked in the workspace."""
    large: bool
    """Whether `judgments` leaves out pairwise ones, which would not fit into memory."""
    test: JudgeTest
    """Dialogues that judges can be tested on."""

    @cached_property
    def costs(self) -> CallCosts:
        """Cost of the dialogues and of `judgments`."""
        judged = {judge: self.judgments_of(judge) for judge in self.judgments}
        with closing(self.workspace.ledger(readonly=True)) as ledger:
            return call_costs(ledger, self.dialogues, judged)

    def judgments_of(self, judge: str) -> list[Judgment]:
        """Return one judge's judgments in all protocols, as far as `judgments` has them."""
        return list(chain.from_iterable(self.judgments[judge].values()))

    def board(self, judge: str) -> Board:
        """Return one judge's numbers, which do not depend on what others judged."""
        from botchat.boards.board import JudgedSet, build_board, rated_board, with_groups
        from botchat.ratings.elo import EloSettings

        verdicts = self.verdicts[judge]
        seeds, dialogues = _in_use(self.seeds, self.dialogues, [verdicts])
        asked = JudgedSet(self.seed_set, seeds, dialogues, self.catalogue, self.test)
        board = build_board(asked, judge, verdicts)
        group_of = self._group_of(seeds)
        groups = set(group_of.values())
        if len(groups) > 1 and len(board.main.frame):
            parts = {}
            for group in sorted(groups, key=natural_sort_key):
                # Inside of a topic its dialogues are the clusters.
                of_group = (seed for seed in seeds if group_of.get(seed.id) == group)
                own = [msgspec.structs.replace(seed, topic="") for seed in of_group]
                part = JudgedSet(self.seed_set, own, dialogues_on(own, dialogues), self.catalogue)
                parts[group] = rated_board(part, judge, verdicts, EloSettings(shuffles=1, runs=1))
            board = with_groups(board, parts, group_of)
        # Of a contestant on the board, or of the judge's verdicts.
        names = {"generate": set(self.dialogues)}
        return replace(
            board,
            notes=self._notes(board),
            invented=self.invented,
            provenance=[row for row in self.measured if row.name in names.get(row.stage, {judge})],
            self_judged=self_judged_models(self.workspace, judge, dialogues),
        )

    def _group_of(self, seeds: Seeds) -> dict[str, str]:
        """Return seed id -> topic, or length of the human dialogue in a set without topics.

        Above `MOST_GROUPED` seeds and contestants none by length: each group is a board.
        """
        groups = {seed.id: seed.topic for seed in seeds if seed.topic}
        if groups or len(seeds) * len(self.dialogues) > MOST_GROUPED:
            return groups
        for seed in seeds:
            least = 1 << (len(seed.utterances).bit_length() - 1)
            groups[seed.id] = f"{least}–{2 * least - 1} utterances"
        return groups

    def _notes(self, board: Board) -> list[str]:
        """Return at most five notes; the last is on lost calls."""
        from botchat.boards.protocols import imported_contestants
        from botchat.protocols import generation

        judgments = self.judgments_of(board.judge)
        notes = fill_lines(
            "pipeline/board_notes.txt",
            data=self,
            board=board,
            invented=INVENTED,
            n_undivided=sum(is_undivided(judgment.transcript) for judgment in judgments),
            imported=imported_contestants(self.dialogues),
            faults=generation.fault_clauses(self.dialogues),
        )
        dialogues = chain.from_iterable(each.values() for each in self.dialogues.values())
        for lost in lost_calls_note(self.costs.lost, dialogues, judgments):
            if self.large:  # calls of verdicts on pairs were not looked up
                lost = f"At least {lost}"
            notes.append(lost)
        return notes


class StageFile(NamedTuple):
    """Content of a stage file of judgments, as far as it is about the dialogues as they are."""

    verdicts: PairVerdicts | list[Judgment]
    judgments: list[Judgment]
    n_outdated: int


class CurrentCases:
    """Reads judgments on the dialogues as they are now, and leaves the others out."""

    def __init__(self, dialogues: Dialogues) -> None:
        self._dialogues = dialogues
        self._cut = cache(self._cut_dialogue)  # each dialogue meets all others
        self.without_dialogues: set[str] = set()
        """See `SeedSetData.without_dialogues`."""

    def _cut_dialogue(self, name: str, seed_id: str, end: int | None) -> ShownDialogue:
        if name not in {HUMAN, *self._dialogues}:
            self.without_dialogues.add(name)
        return ShownDialogue.of(self._dialogues[name][seed_id], end)

    def _is_current(self, protocol: str, judgment: Judgment | PairJudgment) -> bool | None:
        """Return whether a judgment is on the dialogues as they are, or None if one is gone."""
        names = judgment.contestants
        is_cut = len(names) > 1 or re.search(r"-n\d+$", protocol)
        end = judgment.shown if is_cut else None
        try:
            dialogues = [self._cut(name, judgment.seed_id, end) for name in names]
        except KeyError:
            return None
        return case_digest(protocol, *dialogues) == judgment.case

    def _states(self, protocol: str, judgments: Iterable[J]) -> list[tuple[J, bool]]:
        """Return the answered ones on dialogues that there are, with whether they are current."""
        states = []
        for judgment in judgments:
            if judgment.outcome not in UNANSWERED:
                is_current = self._is_current(protocol, judgment)
                if is_current is not None:
                    states.append((judgment, is_current))
        return states

    def read(self, name: str, protocol: Protocol | None, path: Path) -> StageFile:
        """Read a stage file of the protocol ``name``, which may be unknown; raises as `load`."""
        states = self._states(name, jsonl.read(path, Judgment))
        latest: dict[CaseKey, tuple[Judgment, bool]] = {}
        for state in states:
            key = judgment_key(state[0])
            latest.pop(key, None)  # a case stands where its last verdict does
            latest[key] = state
        judgments = [judgment for judgment, is_current in latest.values() if is_current]
        verdicts: PairVerdicts | list[Judgment] = judgments
        if protocol is not None and protocol.is_alone:
            protocol.check(judgments)
        elif protocol is not None:
            protocol.check([judgment for judgment, _ in states])
            builder = VerdictsBuilder(protocol.answer)
            builder.add(states)
            verdicts = builder.verdicts()
        return StageFile(verdicts, judgments, len(latest) - len(judgments))

    def read_pairs(self, protocol: Protocol, path: Path) -> StageFile:
        """Read verdicts on pairs alone, without reasons: in a tenth of the memory."""
        builder = VerdictsBuilder(protocol.answer)
        for block in jsonl.blocks(path, PairJudgment):
            builder.add(self._states(protocol.name, block))
        return StageFile(builder.verdicts(), [], builder.n_outdated)


def load(
    workspace: Workspace,
    seed_set: str,
    judges: Texts = (),
    *,
    large: bool = False,
    seeds: Seeds | None = None,
    files: JudgmentFiles | None = None,
) -> SeedSetData:
    """Read a set with the verdicts of some judges, by default of all; each stage file once.

    ``large``: hold no judgments of pairs with their reasons. ``seeds`` and ``files``: the set and
    `judged_files`, if they were read. Raises `MissingDataError`: no judgments, or none by a judge
    that is named; `DataError`: a line that is no judgment, a verdict that cannot be.
    """
    if seeds is None:
        seeds = workspace.seeds(seed_set)
    if files is None:
        files = judged_files(workspace, seed_set)
    for judge in judges:
        if judge not in files:
            raise MissingDataError(
                f"{judge!r} has not judged {seed_set}; judges who have: {listed(sorted(files))}"
            )
    about = workspace.about(seed_set)
    known = catalogue(workspace.config.protocols, workspace.language_named(about.language))
    dialogues, unanswered = _dialogues(workspace, seed_set, seeds)
    n_asked = workspace.config.run.shuffled
    shuffled = shuffled_dialogues(seeds, n_asked)
    cases = CurrentCases({**dialogues, SHUFFLED: shuffled})
    verdicts: dict[str, ByProtocol] = {}
    judgments: dict[str, dict[str, list[Judgment]]] = {}
    outdated = Counter[str]()
    for judge in dict.fromkeys(judges) or sorted(files):
        verdicts[judge] = {}
        judgments[judge] = {}
        for name, path in files[judge].items():
            protocol = known.find(name)
            try:
                if protocol is not None and large and not protocol.is_alone:
                    content = cases.read_pairs(protocol, path)
                else:
                    content = cases.read(name, protocol, path)
                    judgments[judge][name] = content.judgments
            except DataError as error:
                fault = str(error)
                raise DataError(fault if str(path) in fault else f"{path}: {fault}") from None
            verdicts[judge][name] = content.verdicts
            outdated[judge] += content.n_outdated
    used, dialogues = _in_use(seeds, dialogues, verdicts.values())
    return SeedSetData(
        workspace=workspace,
        seed_set=seed_set,
        invented=about.invented,
        seeds=used,
        dialogues=dialogues,
        verdicts=verdicts,
        judgments=judgments,
        outdated=outdated,
        unanswered=unanswered,
        without_dialogues=cases.without_dialogues,
        measured=workspace.measured(seed_set),
        catalogue=known,
        large=large,
        test=JudgeTest(
            topics={seed.id: seed.topic for seed in seeds if seed.topic},
            seeds=list(shuffled),
            n_asked=n_asked,
            n_human=sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds),
        ),
    )


def _in_use(
    seeds: Seeds, dialogues: Dialogues, judged: Iterable[ByProtocol]
) -> tuple[list[Seed], Dialogues]:
    """Return the seeds that a model was given or that were judged, else all, with dialogues.

    Seeds whose human and shuffled dialogues were judged only test the judge.
    """
    ids: set[str] = set()
    tested: set[str] = set()
    for by_protocol in judged:
        for verdicts in by_protocol.values():
            if not isinstance(verdicts, PairVerdicts):
                ids.update(judgment.seed_id for judgment in verdicts)
                tested.update(each.seed_id for each in verdicts if SHUFFLED in each.contestants)
    if dialogues.keys() - {HUMAN}:
        ids -= tested
    used = begun_seeds(seeds, dialogues, ids)
    if HUMAN in dialogues:
        dialogues = {**dialogues, HUMAN: human_dialogues(used)}
    return used, dialogues


def judged_files(workspace: Workspace, seed_set: str) -> JudgmentFiles:
    """Return judge -> protocol -> stage file; raises `MissingDataError` if none has judged."""
    files = workspace.judgment_files(seed_set)
    if not files:
        raise MissingDataError(
            f"no judgments in {workspace.root / 'judgments' / seed_set}; make some with: "
            f"botchat judge arena --seeds {seed_set} --judge rules"
        )
    return files


def _dialogues(
    workspace: Workspace, seed_set: str, seeds: Seeds
) -> tuple[Dialogues, dict[str, int]]:
    """Return dialogues of models that an endpoint answered for, and `SeedSetData.unanswered`."""
    dialogues = {}
    unanswered = {}
    for name, by_seed in workspace.all_dialogues(seed_set, seeds, unanswered=True).items():
        n_unanswered = sum(not dialogue.answered for dialogue in by_seed.values())
        if n_unanswered < len(by_seed):
            dialogues[name] = by_seed
        if n_unanswered:
            unanswered[name] = n_unanswered
    return with_humans(seeds, dialogues), unanswered


def judged_by(name: str, known: Collection[str]) -> str:
    """Return who of the known is meant by a name, a unique beginning, or PACKAGE:FUNCTION."""
    begin = name.rpartition(":")[2]
    matches = [each for each in known if each.startswith(begin)]
    if name not in known and len(matches) == 1:
        return matches[0]
    return name


def only_judge(
    workspace: Workspace, seed_set: str, files: JudgmentFiles, judge: str | None = None
) -> str:
    """Return the judge of a command that takes one.

    Annotators are judges only where there is no other. Of several, take ``[run]``'s; raise
    `ConfigError` if it has not judged and none is named.
    """
    if judge is not None:
        return judged_by(JudgeName(judge).text, files)  # from Python it may be a function
    ids = [JudgeId.parse(name) for name in sorted(files)]
    ids = [id_ for id_ in ids if not id_.is_annotator()] or ids
    usual = workspace.config.run.judge
    ids = [id_ for id_ in ids if usual in (id_.panel, id_.name) and not id_.is_control] or ids
    if len(ids) > 1:
        known = listed(map(str, ids))
        raise ConfigError(f"several judges have judged {seed_set}: name one with --judge: {known}")
    return str(ids[0])
