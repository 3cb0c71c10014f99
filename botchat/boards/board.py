"""Stage 3: judgments of one judge on one seed set -> a `Board` of tables; pure.

Every number has its number of cases: a comparison or dialogue without a readable verdict is missing
from it. A new column is a `Column` in the file of its table, whose rows have it under the same key;
the main table quotes such a column, or has an entry of ``more`` in `build_board`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar

import pandas as pd

from botchat.boards.arena import Arena, rate
from botchat.boards.judge_table import JudgeFacts, judge_facts, judge_table
from botchat.boards.protocols import (
    MODEL,
    RANK,
    ProtocolResult,
    ProtocolVerdicts,
    imported_signature,
    protocol_result,
)
from botchat.boards.skill import SPAN, JudgeTest
from botchat.boards.tables import (
    COLUMNS,
    Column,
    N,
    Table,
    models_of,
    share,
    shorten,
    table,
)
from botchat.frames import fill_lines
from botchat.metrics.lengths import ENCODING, Lengths, measure, summary
from botchat.metrics.statistics import LEAST, proportion
from botchat.metrics.verdicts import PairVerdicts
from botchat.protocols.catalogue import VOTES, Catalogue
from botchat.ratings.elo import EloSettings
from botchat.records import (
    HUMAN,
    SIGNED,
    Dialogues,
    Judgment,
    Provenance,
    Seeds,
    Texts,
    eligible_seeds,
)
from botchat.workspace.criteria import is_reserved

P = TypeVar("P", bound=ProtocolResult)

Judged: TypeAlias = Mapping[str, ProtocolVerdicts]
"""Protocol -> the judge's verdicts, as counted."""

JudgedFor: TypeAlias = Mapping[str, Sequence[Judgment] | PairVerdicts]
"""Protocol -> the judge's judgments, pairwise ones perhaps in columns."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """Everything that one judge's judgments on one seed set say."""

    seed_set: str
    judge: str
    main: Table
    """One row a contestant, by the first number of the first protocol: Bradley-Terry at the largest
    N, or the success rate."""
    parts: Sequence[ProtocolResult]
    """Results of each protocol: pairs first, at the largest N first, then as catalogued."""
    lengths: Table
    judge_table: Table
    """Empty where nothing was judged."""
    judge_facts: Mapping[str, JudgeFacts] = field(default_factory=dict)
    """Protocol -> the numbers of `judge_table`; of votes all together."""
    utterance_lengths: Lengths
    human_lengths: Sequence[int] = ()
    """Utterances of every human dialogue of the set."""
    seeds_signature: str = ""
    """Signature of `human_lengths`."""
    notes: Texts = ()
    """Sentences on what is left out, and why."""
    verdicts: Judged
    invented: bool = False
    """Whether the set's dialogues are invented, not human."""
    provenance: Sequence[Provenance] = ()
    """Models that were asked for it, and when."""
    n_seeds: int = 0
    test: JudgeTest = field(default_factory=JudgeTest)
    self_judged: Texts = ()
    """Contestants that are the judge itself."""
    groups: Sequence[Table] = ()
    """One of one row a topic and contestant, or a length and contestant; none of one group."""

    def __repr__(self) -> str:
        """Name the tables, in one line."""
        return (
            f"<Board of {self.seed_set} by {shorten(self.judge, 60)}: "
            f"{len(self.frame)} contestants; tables {', '.join(self.frames)}>"
        )

    def _repr_html_(self) -> str:
        """Return the main table as HTML, for notebooks."""
        return self.main._repr_html_()

    def unranked(self) -> Board:
        """Return the board of a judge that ranks nobody: by name, without ranks and ratings."""
        parts = [replace(part, table=part.table.unranked()) for part in self.parts]
        groups = [each.unranked() for each in self.groups]
        return replace(self, main=self.main.unranked(), parts=parts, groups=groups)

    @property
    def frame(self) -> pd.DataFrame:
        """The exact numbers of the main table."""
        return self.main.frame

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The exact numbers of every table, by its name."""
        return {part.name: part.frame for part in self.every_table}

    def of(self, kind: type[P]) -> list[P]:
        """Return the results of one kind."""
        return [part for part in self.parts if isinstance(part, kind)]

    @property
    def arenas(self) -> list[Arena]:
        """The protocols about pairs, the largest N first."""
        return self.of(Arena)

    @property
    def leading(self) -> Arena | None:
        """The Arena to speak of: the largest N that separates any two, else the largest."""
        leading = [part for part in self.arenas if part.protocol.leads]
        separating = [part for part in leading if part.fitted.significantly_better.any()]
        return next(iter(separating + leading), None)

    @property
    def ranked_by(self) -> ProtocolResult | None:
        """The part whose number the board is ranked by; None if it is not."""
        return next((part for part in self.parts if part.keys), None)

    @property
    def is_of_votes(self) -> bool:
        """Whether it ranks by votes or rates of a file: no judge of dialogues is to be trusted."""
        return self.rated is not None and self.rated.protocol == VOTES

    @property
    def rated(self) -> ProtocolResult | None:
        """The part whose order the headline tells."""
        return self.leading or self.ranked_by

    @property
    def leaders(self) -> list[str]:
        """The models of the highest value, by name; none of too few dialogues to lead."""
        part = self.rated
        if part is None or part.n_dialogues < LEAST:
            return []
        ranks = part.ranks["rank"]
        ranks = ranks[models_of(ranks.index)]
        return sorted(ranks.index[ranks == ranks.min()])

    @property
    def tables(self) -> list[Table]:
        """The tables that a reader wants, most important first."""
        tables = [part.table for part in self.parts]
        tables += [self.lengths, self.judge_table, *self.groups]
        return [self.main] + [each for each in tables if len(each.frame)]

    @property
    def every_table(self) -> list[Table]:
        """Every table, also the ones for machines."""
        return self.tables + [part.pairs for part in self.arenas]


class JudgedSet(NamedTuple):
    """Seeds and dialogues that a judge was asked about."""

    name: str
    seeds: Seeds
    dialogues: Dialogues
    """Dialogues of every contestant; of ``human`` too where it was judged."""
    catalogue: Catalogue = Catalogue()
    """Protocols, by default the built-in ones."""
    test: JudgeTest = JudgeTest()
    """Shuffled dialogues, by default none; there are judgments on them too."""


def rated_board(
    judged_set: JudgedSet, judge: str, judgments: JudgedFor, elo: EloSettings | None
) -> Board:
    """Count, rate and rank, without a look at the judge and without notes.

    ``judgments``: protocol -> the judge's, at most one for each seed and order shown; judgments on
    other seeds or contestants are passed over, and pairwise ones may be in columns. ``elo``: None
    is the paper's way to rate.

    Raises:
        DataError: a verdict that the protocol does not offer.
    """
    seed_set, seeds, dialogues, _, test = judged_set
    judged = protocol_verdicts(judged_set, judgments)
    contestants = _contestants(dialogues, judged)
    measured = measure(contestants)
    lengths = lengths_table(measured, seed_set, imported_signature(dialogues))
    arenas: list[ProtocolResult] = []
    others = []
    for part in judged.values():
        if not part.protocol.is_pair:
            others.append(protocol_result(part))
        elif len(part.comparisons):
            arenas.append(rate(part, elo))
    parts = arenas + others
    return Board(
        seed_set=seed_set,
        judge=judge,
        main=_main_table(contestants, parts, lengths, measured.unit),
        parts=parts,
        lengths=lengths,
        judge_table=judge_table((), ()),
        utterance_lengths=measured,
        human_lengths=[len(each.utterances) for each in dialogues.get(HUMAN, {}).values()],
        seeds_signature=f"{SIGNED}|seeds|set:{seed_set}|seeds:{len(seeds)}"
        f"|min4:{len(eligible_seeds(seeds))}",
        verdicts=judged,
        n_seeds=len(seeds),
        test=test,
    )


def build_board(
    judged_set: JudgedSet, judge: str, judgments: JudgedFor, elo: EloSettings | None = None
) -> Board:
    """Return the `rated_board` with what is known of the judge; parameters and errors as there."""
    board = rated_board(judged_set, judge, judgments, elo)
    judged = board.verdicts
    facts = {name: judge_facts(judged[name]) for name in sorted(judged)}
    known = judged_set.catalogue.among(judgments)
    unknown = [name for name in sorted(judgments.keys() - known) if not is_reserved(name)]
    notes = fill_lines("boards/clauses.txt", board=board, unknown=unknown)
    return replace(
        board,
        judge_table=judge_table(facts.values(), [judged[name].signature for name in facts]),
        judge_facts=facts,
        notes=notes,
    )


def with_groups(board: Board, parts: Mapping[str, Board], group_of: Mapping[str, str]) -> Board:
    """Return the board with a table of groups, each a board of that group's dialogues alone.

    ``group_of``: seed id -> its topic, or where seeds have none its length.
    """
    word = "length"
    title = "By length of the human dialogue"
    if board.test.topics:
        word = "topic"
        title = "By topic"
    columns = [Column(word, word.capitalize(), "name"), MODEL, N]
    for column in board.main.columns:
        if column.kind in ("rate", "rating") and column.interval and column.key[:3] != "elo":
            columns.append(column)
    columns.append(share("skill", "Skill of the judge"))
    values: list[float] = []
    seeds: list[str] = []
    for facts in board.judge_facts.values():
        values += facts.cases.values.tolist()
        seeds += facts.cases.seeds
    cases = pd.Series(values, seeds, dtype=float)
    cases_of = cases.index.map(group_of)
    frames = []
    for group, part in parts.items():
        frame = part.frame.assign(n=part.frame["complete"])
        frame[word] = group
        # Of its shuffled dialogues, alone and in pairs.
        own = cases[cases_of == group]
        frame[columns[-1].keys] = list(vars(proportion(own, list(own.index), SPAN)).values())
        frames.append(frame)
    note = f"Each {word} by its own dialogues alone; of fewer than 20 draw no conclusion."
    groups = table(f"by-{word}", title, columns, pd.concat(frames), board.main.signatures, note)
    return replace(board, groups=[groups.filled()])


def _main_table(
    contestants: Dialogues, parts: Sequence[ProtocolResult], lengths: Table, unit: str
) -> Table:
    """Make the main table: numbers of each protocol that ranks, and what dialogues there are."""
    ranking = [part for part in parts if part.keys]
    quoted = []
    for part in ranking:
        keys = ["elo"]
        if part is parts[0] or not isinstance(part, Arena):
            keys += part.keys[:1]
        quoted.append((part, keys))
    complete = {}
    for name, by_seed in contestants.items():
        complete[name] = sum(dialogue.complete for dialogue in by_seed.values())
    more = {
        Column(f"mean_{unit}", f"Mean {unit}", "number"): lengths.by_model["mean"],
        Column("complete", "Complete dialogues", "count"): pd.Series(complete),
        Column("coverage", "Coverage", "rate"): _coverage(ranking),
    }
    return main_table(contestants, quoted, more, lengths.signatures)


def _contestants(dialogues: Dialogues, judged: Judged) -> Dialogues:
    """Return the contestants of the board by name, ``human`` only if judged as models are.

    GTEval's comparisons with the human dialogues are no reason to rank ``human``.
    """
    kept = dict(sorted(dialogues.items()))
    for part in judged.values():
        if not part.protocol.against_human and HUMAN in part.contestants:
            return kept
    kept.pop(HUMAN, None)
    return kept


def protocol_verdicts(judged_set: JudgedSet, judgments: JudgedFor) -> dict[str, ProtocolVerdicts]:
    """Protocol -> its judgments on these seeds and contestants, if there are any."""
    _, seeds, dialogues, catalogue, test = judged_set
    ids = {seed.id for seed in seeds}
    parts = {}
    for name, protocol in catalogue.among(judgments).items():
        contestants = set(dialogues)
        if protocol.against_human:  # the other side is the seeds' own dialogues
            contestants.add(HUMAN)
        stored = judgments[name]
        if not (protocol.is_alone or isinstance(stored, PairVerdicts)):
            stored = PairVerdicts.of_judgments(stored, protocol.answer)
        single: list[Judgment] = []
        if isinstance(stored, PairVerdicts):
            verdicts = stored.on(ids).between(contestants)
        else:
            verdicts = PairVerdicts.of([])
            for judgment in stored:
                if judgment.seed_id in ids and contestants.issuperset(judgment.contestants):
                    single.append(judgment)
        if single or len(verdicts):
            tested = test.cases(stored, protocol)
            parts[name] = ProtocolVerdicts(protocol, single, verdicts, seeds, dialogues, tested)
    return parts


def lengths_table(measured: Lengths, seed_set: str, imported: str = "") -> Table:
    """Statistics of the lengths of generated utterances, the shortest first."""
    unit = ENCODING if measured.unit == "tokens" else measured.unit
    columns = []
    for column in COLUMNS.lengths:
        columns.append(replace(column, heading=column.heading.format(unit=measured.unit)))
    rows = [{"model": name, **summary(each)} for name, each in measured.by_contestant.items()]
    return table(
        "lengths",
        "Length of generated utterances",
        columns,
        sorted(rows, key=itemgetter("mean", "model")),
        [f"{SIGNED}|lengths|set:{seed_set}|unit:{unit}{imported}"],
        f"In {measured.unit} an utterance; ChatSEED utterances are not counted.",
    )


def main_table(
    names: Collection[str],
    quoted: Sequence[tuple[ProtocolResult, Texts]],
    more: Mapping[Column, pd.Series],
    signatures: Texts,
) -> Table:
    """Make the table with a row a contestant, ranked as the first that is quoted, then by name.

    ``quoted``: protocols, each with keys of columns that are taken from its table if it has them.
    ``more``: columns with their values by contestant; ``signatures``: theirs.
    """
    order = sorted(names)
    ranks = pd.DataFrame()
    for ranked, _ in quoted[:1]:
        order = ranked.table.models + order
        ranks = ranked.ranks
    frame = ranks.reindex([name for name in dict.fromkeys(order) if name in names])
    columns = [RANK, MODEL]
    signed: list[str] = []
    for part, keys in quoted:
        for column in part.table.columns:
            if column.key in keys:
                columns.append(part.quote(column))
                values = part.table.by_model[column.keys]
                frame = frame.join(values.set_axis(columns[-1].keys, axis=1))
        signed += part.table.signatures
    for column, by_name in more.items():
        columns.append(column)
        frame[column.key] = by_name
    signed += signatures
    return table(
        "leaderboard",
        "Leaderboard",
        columns,
        frame.rename_axis("model"),
        signed,
        "Ranks are simultaneous 95 % rank intervals; brackets are 95 % CIs. Rates in percent.",
    )


def _coverage(parts: Iterable[ProtocolResult]) -> pd.Series:
    """Contestant -> the least coverage of the protocols that judged it."""
    shares = [pd.Series(dtype=float)]
    for part in parts:
        counts = part.table.by_model[["n", "missing"]].astype(float)
        shares.append(counts["n"] / counts.sum(axis=1))
    return pd.concat(shares, axis=1).min(axis=1)
