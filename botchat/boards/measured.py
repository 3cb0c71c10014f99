"""What was asked for a board, of whom and when, as a table; see `botchat.records.Provenance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from botchat.boards.tables import Column, Table, table
from botchat.records import SIGNED, Exam, Provenance

_COLUMNS = (
    Column("name", "Contestant or judge", "name"),
    Column("stage", "For", "name"),
    Column("model", "Model", "name", detail=True),
    Column("asked", "Asked as", "name"),
    Column("answered", "Answered as", "name", getter=lambda one: ", ".join(one.answered) or None),
    Column("revision", "Revision", "name"),
    Column("host", "Host", "name"),
    Column("api", "API", "name"),
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


def since_exam(exam: Exam, made: Sequence[Provenance], signatures: Sequence[str]) -> Iterator[str]:
    """What has changed of a judge since its exam, a sentence each; ``signatures``: of its numbers.

    ``made``: of the same board, the judge's among them.
    """
    when = f"its exam ({exam.exam}{f', {exam.day}' if exam.day else ''})"
    of_judge = f"|judge:{exam.judge}@"
    settings = {of_judge + exam.settings in one for one in signatures if of_judge in one}
    if settings == {False}:
        yield f"The model or the settings of {exam.judge} have changed since {when}."
    prompts = [one for one in signatures if "|unieval|" in one]
    if prompts and not any(f"|prompt:{exam.prompt}" in one for one in prompts):
        yield f"UniEval's prompt has changed since {exam.judge} took {when}."
    answered = {a for one in made if one.name == exam.judge for a in one.answered}
    if answered and exam.answered and not answered & {*exam.answered}:
        yield (
            f"{exam.judge} was answered for by {', '.join(exam.answered)} in {when}, and here by "
            f"{', '.join(sorted(answered))}."
        )
