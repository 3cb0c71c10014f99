"""Told from people by form, without a judge: a number of each model, and what gives it away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.interfaces import Row
from botchat.measures.fingerprint import Lineup
from botchat.measures.intervals import figures
from botchat.records import HUMAN

TOLD = Column(
    "told_by_form",
    "Told by form",
    "rate",
    meaning="of 100 chats of the model, each beside one of people, those that look more like a "
    "machine's by their form alone, without a judge; 50 is not told from people",
)
"""Of the board, and of its own table."""

_OTHERS, _ALONE, _HALVES = "other models", "people alone", "one half of people against the other"


@lru_cache(maxsize=1)  # the same for all judges of a set
def tables(found: Lineup, signature: str) -> Sequence[Table]:
    """Every model's numbers, people's two halves last; and what gives each model away.

    ``signature``: how it begins, with what was measured.
    """
    if not found.models or found.halves is None:
        return ()
    signature += f"|people:{found.people}|models:{len(found.models)}"
    rows: list[Row] = [
        {
            "model": name,
            **figures({"told_by_form": one.read, "alone": one.alone}),
            **(figures({"others": one.told}) if one.told else {}),
            "read": _OTHERS if one.read is one.told else _ALONE,
            "chats": one.chats,
        }
        for name, one in found.models.items()
    ]
    rows.sort(key=lambda row: (-row["told_by_form"], row["model"]))
    rows.append({"model": HUMAN, **figures({"told_by_form": found.halves}), "read": _HALVES,
                 "chats": found.people})  # fmt: skip
    giveaways = [
        {"model": name, "number": f"{'more' if one.more else 'fewer'}: {one.number}",
         "seed_id": one.seed_id}
        for name in (row["model"] for row in rows[:-1])
        for one in found.models[name].giveaways
    ]  # fmt: skip
    told = table(
        "fingerprint",
        "Told from people by form, of 100",
        [
            Column("model", "Model", "name"),
            *with_interval(TOLD),
            Column("read", "Read, fitted on", "name"),
            *with_interval(Column("others", "Fitted on other models", "rate")),
            *with_interval(Column("alone", "Fitted on people alone", "rate")),
            Column("chats", "Chats", "count"),
        ],
        rows,
        [signature],
        f"{explained([TOLD])} Fitted on other seeds: to tell the set's people from its "
        "other models, or on people alone. Where the two disagree the higher is read: what is "
        "found on chats that were not fitted is there, and what is not found proves nothing, since "
        "a model unlike all others may look more human than people do. It detects and does not "
        "grade. People's own lines, said again elsewhere (bot:retrieval), are people to it.",
    )
    because = table(
        "fingerprint-because",
        "What gives each model away",
        [
            Column("model", "Model", "name"),
            Column("number", "Than people", "name"),
            Column("seed_id", "Example", "name"),
        ],
        giveaways,
        [signature],
        "The numbers that move a model's chats furthest from people's, the first first, in the fit "
        "that is read of it. Example: the chat that shows it most.",
    )
    return (told, because) if giveaways else (told,)


def notes(found: Lineup) -> Iterator[str]:
    """Why nobody is told by form, where there are people to tell them from."""
    if found.refused and found.people:
        yield f"No model is told from people by form: {found.refused}."
