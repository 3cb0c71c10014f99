"""A seed set as it is on disk: seeds, dialogues, and the verdicts on these dialogues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from botchat.errors import ConfigError, DataError, MissingDataError, listed
from botchat.interfaces import ShownDialogue, case_digest
from botchat.metrics.verdicts import PairVerdicts, VerdictsBuilder
from botchat.pipeline.contestants import human_dialogues, self_judged_models
from botchat.pipeline.ledger import lost_calls_note
from botchat.pipeline.session import catalogue_of
from botchat.pipeline.spending import JudgeName
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.records import (
    HUMAN,
    UNANSWERED,
    Dialogue,
    Dialogues,
    JudgeId,
    Judgment,
    PairJudgment,
    Seed,
)
from botchat.workspace import jsonl
from botchat.workspace.folder import INVENTED, Workspace, judgment_key

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.board import Board


@dataclass(frozen=True)
class SeedSetData:
    """A set as it is on disk, without verdicts on dialogues that have changed since."""

    workspace: Workspace
    seed_set: str
    seeds: list[Seed]
    """Seeds that a model was given or that were judged; all where there are none."""
    dialogues: Dialogues
    """Contestant -> seed id -> dialogue; of ``human`` too."""
    files: Mapping[str, Mapping[str, Path]]
    """Judge -> protocol -> stage file."""
    verdicts: Mapping[str, Mapping[str, PairVerdicts | list[Judgment]]]
    """Judge -> protocol -> verdicts on pairs, in columns, or judgments of single dialogues."""
    outdated: Mapping[str, int]
    """Judge -> number of judgments of dialogues that have changed."""
    unanswered: Mapping[str, int]
    """Model -> number of dialogues in which its endpoint did not answer, where there are any."""
    catalogue: Catalogue
    """Protocols that can be asked in the workspace."""
    cases: CurrentCases
    large: bool
    """Whether `judgments` leaves out pairwise ones, which would not fit into memory."""

    @cached_property
    def judgments(self) -> dict[str, dict[str, list[Judgment]]]:
        """Judge -> protocol -> judgments with their reasons, read when they are asked for."""
        judgments: dict[str, dict[str, list[Judgment]]] = {}
        for judge, by_protocol in self.verdicts.items():
            judgments[judge] = {}
            for name, verdicts in by_protocol.items():
                if not isinstance(verdicts, PairVerdicts):
                    judgments[judge][name] = verdicts
                elif not self.large:
                    judgments[judge][name], _ = self.cases.current(name, self.files[judge][name])
        return judgments

    def judgments_of(self, judge: str) -> list[Judgment]:
        """Return one judge's judgments in all protocols, as far as `judgments` has them."""
        return list(chain.from_iterable(self.judgments[judge].values()))

    def board(self, judge: str) -> Board:
        """Return one judge's numbers."""
        from botchat.boards.board import build_board

        board = build_board(  # whose numbers do not depend on what others judged
            *_in_use(self.seeds, self.dialogues, [self.verdicts[judge]]),
            self.verdicts[judge],
            seed_set=self.seed_set,
            judge=judge,
            catalogue=self.catalogue,
        )
        # Of a contestant on the board, or of the judge's verdicts.
        provenance = tuple(
            row
            for row in self.workspace.measured(self.seed_set).values()
            if (row.name in self.dialogues if row.stage == "generate" else row.name == judge)
        )
        invented = self.workspace.about(self.seed_set).invented
        notes = tuple(self._notes(board, invented))
        return replace(board, notes=notes, invented=invented, provenance=provenance)

    def _notes(self, board: Board, invented: bool) -> Iterator[str]:
        """Yield at most five notes: invented, generate again, judge, dialogues, lost calls."""
        from botchat.boards.board import imported_contestants
        from botchat.protocols import generation

        judge = board.judge
        if invented:
            yield INVENTED.format(self.seed_set)
        missing = sorted(self.cases.without_dialogues - set(self.unanswered))
        parts = [f"{name} was judged and has no dialogues" for name in missing]
        unanswered = self.unanswered.items()
        parts += [f"{n} dialogues of {name} got no usable reply" for name, n in unanswered]
        if parts:
            yield f"Run generate again: {'; '.join(parts)}."
        parts = []
        changed = [name for name, part in board.verdicts.items() if not part.is_as_asked]
        if changed:
            parts.append(f"run it again, the prompt of {', '.join(changed)} has changed")
        n = self.outdated[judge]
        if n:
            parts.append(f"run it again, {n} judgments are about dialogues that have changed")
        own = self_judged_models(self.workspace, judge, self.dialogues)
        if own:
            parts.append(f"it judges itself ({', '.join(own)}), name another")
        parts = [*parts, *board.notes]
        if parts:
            yield f"Judge {judge}: {'; '.join(parts)}."
        sources = imported_contestants(self.dialogues).items()
        parts = [
            f"{name} is not generated here but imported ({digest})" for name, digest in sources
        ]
        parts = [*parts, *generation.fault_clauses(self.dialogues)]
        if parts:
            yield f"Dialogues: {'; '.join(parts)}."
        judgments = self.judgments_of(judge)
        yield from lost_calls_note(self.workspace, self.dialogues.values(), judgments)


class CurrentCases:
    """Reads judgments on the dialogues as they are now, and leaves the others out."""

    def __init__(self, dialogues: Dialogues) -> None:
        self._dialogues = dialogues
        self._cut = cache(self._cut_dialogue)  # each dialogue meets all others
        self.without_dialogues: set[str] = set()
        """Contestants that were judged and have no dialogues."""

    def _cut_dialogue(self, name: str, seed_id: str, end: int | None) -> ShownDialogue:
        if name not in self._dialogues:
            self.without_dialogues.add(name)
        return ShownDialogue.of(self._dialogues[name][seed_id], end)

    def is_current(self, protocol: str, judgment: Judgment | PairJudgment) -> bool | None:
        """Return whether a judgment is on the dialogues as they are, or None if one is gone."""
        names = judgment.contestants
        is_cut = len(names) > 1 or re.search(r"-n\d+$", protocol)
        end = judgment.shown if is_cut else None
        try:
            dialogues = [self._cut(name, judgment.seed_id, end) for name in names]
        except KeyError:
            return None
        return case_digest(protocol, *dialogues) == judgment.case

    def current(self, protocol: str, path: Path) -> tuple[list[Judgment], int]:
        """Return the judgments of a stage file that are current, and how many are outdated."""
        latest: dict[object, Judgment] = {}
        for block in jsonl.blocks(path, Judgment):
            latest.update((judgment_key(j), j) for j in block if j.outcome not in UNANSWERED)
        states = [self.is_current(protocol, judgment) for judgment in latest.values()]
        kept = [judgment for judgment, state in zip(latest.values(), states, strict=True) if state]
        return kept, states.count(False)

    def columns(self, protocol: Protocol, path: Path) -> tuple[PairVerdicts, int]:
        """Return the same of pairs in columns, without reasons: in a tenth of the memory."""
        builder = VerdictsBuilder(protocol)
        for block in jsonl.blocks(path, PairJudgment):
            answered = [judgment for judgment in block if judgment.outcome not in UNANSWERED]
            states = [self.is_current(protocol.name, judgment) for judgment in answered]
            known = [pair for pair in zip(answered, states, strict=True) if pair[1] is not None]
            builder.add([judgment for judgment, _ in known], [bool(state) for _, state in known])
        return builder.verdicts(), builder.n_outdated


def load(
    workspace: Workspace,
    seed_set: str,
    judges: Sequence[str] = (),
    *,
    large: bool = False,
    seeds: Sequence[Seed] | None = None,
) -> SeedSetData:
    """Read a set with the verdicts of some judges, by default of all.

    ``large``: hold no judgments of pairs with their reasons. ``seeds``: the set, if it was read.
    Raises `MissingDataError`: no judgments, or none by a judge that is named; `DataError`: a line
    that is no judgment, a verdict that cannot be.
    """
    if seeds is None:
        seeds = workspace.seeds(seed_set)
    files = _files(workspace, seed_set, judges)
    catalogue = catalogue_of(workspace, seed_set)
    known = catalogue.among({name for by_protocol in files.values() for name in by_protocol})
    dialogues, unanswered = _dialogues(workspace, seed_set, seeds)
    cases = CurrentCases(dialogues)
    verdicts: dict[str, dict[str, PairVerdicts | list[Judgment]]] = {}
    outdated = dict.fromkeys(files, 0)
    for judge, by_protocol in files.items():
        verdicts[judge] = {}
        for name, path in by_protocol.items():
            protocol = known.get(name)
            try:
                if protocol is not None and not protocol.is_alone:
                    verdicts[judge][name], n_outdated = cases.columns(protocol, path)
                else:
                    judgments, n_outdated = cases.current(name, path)
                    if protocol is not None:
                        protocol.check(judgments)
                    verdicts[judge][name] = judgments
            except DataError as error:
                fault = str(error)
                raise DataError(fault if str(path) in fault else f"{path}: {fault}") from None
            outdated[judge] += n_outdated
    return SeedSetData(
        workspace,
        seed_set,
        *_in_use(seeds, dialogues, verdicts.values()),
        files,
        verdicts,
        outdated,
        unanswered,
        catalogue,
        cases,
        large,
    )


def _in_use(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judged: Iterable[Mapping[str, PairVerdicts | list[Judgment]]],
) -> tuple[list[Seed], Dialogues]:
    """Return the seeds that a model was given or that were judged, else all, with dialogues."""
    alone = (each for by in judged for each in by.values() if not isinstance(each, PairVerdicts))
    ids = {judgment.seed_id for judgments in alone for judgment in judgments}
    ids |= {id_ for name, by_seed in dialogues.items() if name != HUMAN for id_ in by_seed}
    used = [seed for seed in seeds if seed.id in ids] or list(seeds)
    human = {HUMAN: human_dialogues(used)} if HUMAN in dialogues else {}
    return used, {**dialogues, **human}


def _files(
    workspace: Workspace, seed_set: str, judges: Sequence[str]
) -> dict[str, dict[str, Path]]:
    """Return judge -> protocol -> file, of ``judges`` or of all; `MissingDataError` without."""
    files = workspace.judgment_files(seed_set)
    if not files:
        raise MissingDataError(
            f"no judgments in {workspace.root / 'judgments' / seed_set}; make some with: "
            f"botchat judge arena --seeds {seed_set} --judge rules"
        )
    for judge in judges:
        if judge not in files:
            raise MissingDataError(
                f"{judge!r} has not judged {seed_set}; judges who have: {listed(sorted(files))}"
            )
    return {judge: files[judge] for judge in dict.fromkeys(judges) or sorted(files)}


def _dialogues(
    workspace: Workspace, seed_set: str, seeds: Sequence[Seed]
) -> tuple[Dialogues, dict[str, int]]:
    """Return dialogues of models that an endpoint answered for, and `SeedSetData.unanswered`."""
    dialogues: dict[str, Mapping[str, Dialogue]] = {}
    human = human_dialogues(seeds)
    if human:
        dialogues[HUMAN] = human
    unanswered = {}
    for name, by_seed in workspace.all_dialogues(seed_set, seeds, unanswered=True).items():
        n_unanswered = sum(not dialogue.answered for dialogue in by_seed.values())
        if n_unanswered < len(by_seed):
            dialogues[name] = by_seed
        if n_unanswered > 0:
            unanswered[name] = n_unanswered
    return dialogues, unanswered


def only_judge(workspace: Workspace, seed_set: str, judge: str | None) -> list[str]:
    """Return the judge of a command that takes one, or none where none has judged.

    Annotators are judges only where there is no other. Of several, take ``[run]``'s; raise
    `ConfigError` if it has not judged and none is named.
    """
    if judge is not None:
        return [JudgeName(judge).text]  # from Python it may be a function
    ids = [JudgeId.parse(name) for name in sorted(workspace.judgment_files(seed_set))]
    ids = [id_ for id_ in ids if not id_.is_annotator()] or ids
    usual = workspace.config.run.judge
    ids = [id_ for id_ in ids if usual in (id_.panel, id_.name) and not id_.is_control] or ids
    known = [str(id_) for id_ in ids]
    if len(known) > 1:
        raise ConfigError(
            f"several judges have judged {seed_set}: name one with --judge: {listed(known)}"
        )
    return known


@dataclass(frozen=True)
class Run:
    """A seed set for notebooks, every stage as a data frame, read when it is first asked for.

    Columns are the fields of `botchat.records`, as in the files.
    """

    workspace: Workspace
    seed_set: str

    @cached_property
    def seeds(self) -> DataFrame:
        """A human dialogue a row."""
        return _frame(self.workspace.seeds(self.seed_set), Seed)

    @cached_property
    def generations(self) -> DataFrame:
        """One row a generated dialogue that begins with a ChatSEED of the set as it is now."""
        dialogues = self.workspace.all_dialogues(self.seed_set, unanswered=True)
        by_contestant = (by_seed.values() for by_seed in dialogues.values())
        return _frame(chain.from_iterable(by_contestant), Dialogue)

    @cached_property
    def judgments(self) -> DataFrame:
        """One row a judgment on the dialogues as they are now."""
        judgments: list[Judgment] = []
        if self.judges:
            data = load(self.workspace, self.seed_set)
            for judge in data.judgments:
                judgments += data.judgments_of(judge)
        return _frame(judgments, Judgment)

    @property
    def frame(self) -> DataFrame:
        """`judgments`, the numbers that all others are made of."""
        return self.judgments

    @cached_property
    def judges(self) -> list[str]:
        """Names of the judges of the set."""
        return sorted(self.workspace.judgment_files(self.seed_set))

    def board(self, judge: str | None = None) -> Board:
        """Return one judge's board; ``judge`` may be left out where only one has judged."""
        judges = only_judge(self.workspace, self.seed_set, judge)
        return load(self.workspace, self.seed_set, judges).board(*judges)

    def __repr__(self) -> str:
        """Name set and folder, in one line."""
        return f"<Run on {self.seed_set} in {self.workspace.root}>"


def _frame(records: Iterable[msgspec.Struct], kind: type[msgspec.Struct]) -> DataFrame:
    from botchat.boards.tables import record_frame  # pandas

    return record_frame(records, kind)


def read(workspace: Workspace, seed_set: str) -> Run:
    """Return the run on a set: ``.seeds``, ``.generations``, ``.judgments``, ``.board(judge)``.

    Raises `MissingDataError` if there is no such set.
    """
    workspace.seeds(seed_set)
    return Run(workspace, seed_set)
