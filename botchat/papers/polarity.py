"""Polarity of a panel's roles: which way each pulls where it is plain which side is a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.interfaces import Row
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import mirrored, openings
from botchat.measures.intervals import share
from botchat.records import HUMAN, Judgment, Verdict

WITH, AGAINST, UNCLEAR = "with it", "against it", "not clear"

_NAMES = {"1": 0, "2": 1}


def polarity(judge: str, judgments: Sequence[Judgment], signature: str) -> Table:
    """A row for the judge's own verdicts and one for each member's first vote about every case.

    ``judgments``: of dialogues of a floor bot beside the human one, asked which is AI-involved.
    """
    votes: dict[str, list[tuple[Judgment, Verdict | None]]] = {judge: []}
    for judgment in judgments:
        votes[judge].append((judgment, judgment.verdict))
        for said in openings(judgment.transcript):
            member = said.speaker.removesuffix(SWAPPED)
            turned = mirrored(said.verdict) if said.speaker != member else said.verdict
            if member != judge:
                votes.setdefault(member, []).append((judgment, turned))
    rows = [_row(name, cast) for name, cast in votes.items()]
    title = f"Polarity of {judge}: a bot's dialogue beside the human one"
    return table("polarity", title, _COLUMNS, rows, [signature], explained(_COLUMNS))


def lines(found: Table) -> Iterator[str]:
    """What the table says, in plain words: a line for whoever does not pull with the question."""
    rows = found.records
    for row in rows:
        if row["pull"] == AGAINST:
            low, high = (round(100 * row[f"named_{end}"]) for end in ("low", "high"))
            yield (
                f"{row['who']} pulls against the question: of its votes that name one conversation "
                f"{100 * row['named']:.0f} % ({low}–{high}) name the machine's. Asked for machines "
                "it names the better one: leave role_set at auto, or reword its own text"
            )
        elif row["pull"] == UNCLEAR:
            yield f"which way {row['who']} pulls is not clear from {row['decided']} votes"
    if all(row["pull"] == WITH for row in rows):
        yield f"all pull with the question: {', '.join(row['who'] for row in rows)}"


def _row(name: str, cast: Iterable[tuple[Judgment, Verdict | None]]) -> Row:
    said = [(judgment, vote) for judgment, vote in cast if vote is not None]
    named = [
        (judgment.seed_id, judgment.contestants[_NAMES[vote]])
        for judgment, vote in said
        if vote in _NAMES
    ]
    row = {
        "who": name,
        "votes": len(said),
        "decided": len(named),
        **share([one != HUMAN for _, one in named], [seed for seed, _ in named], "named"),
    }
    clear = row["named"] is not None
    pull = UNCLEAR
    if clear and (row["named_low"] > 0.5 or row["named_high"] < 0.5):
        pull = WITH if row["named"] > 0.5 else AGAINST
    return row | {
        "machine": sum(one != HUMAN for _, one in named),
        "person": sum(one == HUMAN for _, one in named),
        "pull": pull,
    }


_COLUMNS = (
    Column("who", "Judge or role", "name", meaning="of a role its first vote about each case"),
    Column("votes", "Votes", "count", priority=3),
    Column("machine", "Names the machine", "count", priority=1),
    Column("person", "Names the person", "count", priority=1),
    Column("decided", "Names one", "count", priority=2, meaning="the rest says both or neither"),
    *with_interval(
        Column(
            "named",
            "Machine, % of these",
            "rate",
            meaning="in brackets the 95 % interval, by ChatSEED",
        )
    ),
    Column(
        "pull",
        "Pulls",
        "name",
        meaning="against the question, or with it: the whole interval is below or above half",
    ),
)
