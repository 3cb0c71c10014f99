"""What was asked for a board, of whom and when, as a table; see `botchat.records.Provenance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from botchat.boards.tables import Column, Table, table
from botchat.records import SIGNED, Provenance

_COLUMNS = (
    Column("name", "Contestant or judge", "name"),
    Column("stage", "For", "name"),
    Column("model", "Model", "name", detail=True),
    Column("asked", "Asked as", "name"),
    Column("answered", "Answered as", "name", getter=lambda one: ", ".join(one.answered) or None),
    Column("revision", "Revision", "name"),
    Column("host", "Host", "name"),
    Column("temperature", "Temperature", "exact"),
    Column("system_prompt", "System prompt", "name"),
    Column("first", "First day", "name"),
    Column("last", "Last day", "name"),
    Column("botchat", "BotChat", "name", detail=True),
    Column("calls", "Calls", "count"),
    Column("tokens", "Tokens", "count"),
    Column("cost_usd", "USD", "exact"),
)


def measured(seed_set: str, made: Sequence[Provenance]) -> Table | None:
    """A row for each model that was asked for something; ``None``: bots and rules alone."""
    if not made:
        return None
    note = (
        "Days are UTC; a system prompt is a digest. Answered as: what replies say of the model, of "
        "the first and the last call of every day. USD: unknown where the price of a call is."
    )
    signature = f"{SIGNED}|measured|set:{seed_set}"
    return table("measured", "What was measured", _COLUMNS, made, [signature], note)


def notes(made: Sequence[Provenance]) -> Iterator[str]:
    """A sentence on each model that was answered for by several."""
    for one in made:
        if len(one.answered) > 1:
            yield (
                f"{one.name} ({one.stage}) was answered by {len(one.answered)} models or "
                f"snapshots: {', '.join(one.answered)}."
            )
