"""Dialogues from rows: seeds, and dialogues of a model that were generated elsewhere.

Names of columns stand in ``columns.toml``. A row is a whole dialogue (a list of texts or messages;
in csv and xlsx as JSON) or, of seeds, one utterance, perhaps with a speaker, and a turn to sort by.
Consecutive texts of one speaker are one utterance; system messages and a model's reasoning are
left out; tools are an error. Other columns are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from botchat.errors import DataError
from botchat.importers.tables import COLUMNS, FileRow, column_name, json_value, named, quoted
from botchat.records import N_SEED, Outcome, Seed

FORMATS: Mapping[str, str] = COLUMNS["seeds"]["formats"]
"""Columns that hold a dialogue -> name of their format."""

_IDS, _TEXTS, _SPEAKERS, _TURNS = (
    COLUMNS["seeds"][name] for name in ("ids", "texts", "speakers", "turns")
)
_INSTRUCTIONS = ("system", "developer")
_TOOLS = re.compile(r"(?i)tool|function|observation")
_REASONING = ("reasoning", "thinking")
_FAILED = ("", "$ERROR$")
"""Texts of no reply; the second is FastChat's."""

MAX_ID = 200
"""Characters of an id."""


class ImportedMessage(NamedTuple):
    """One utterance as it stands in a file; ``speaker`` is None where none is named."""

    place: str
    speaker: str | None
    text: str
    turn: float


class ImportedDialogue(NamedTuple):
    """One dialogue of a model, up to its first empty utterance.

    ``id`` is empty where the file has none; ``outcome`` is ``ok`` if no utterance is empty.
    """

    place: str
    id: str
    utterances: tuple[str, ...]
    outcome: Outcome


class ImportedDialogues(NamedTuple):
    """Dialogues of some files; ``format`` is that of the first, a value of `FORMATS`."""

    format: str
    dialogues: list[ImportedDialogue]
    system_messages: int


def read_seeds(rows: Iterable[FileRow], where: str) -> list[Seed]:
    """Read seeds; a whole dialogue without an id has its row's number. Raises `DataError`."""
    dialogues: dict[str, list[ImportedMessage]] = {}
    first_rows: dict[str, FileRow] = {}
    for number, row in enumerate(rows, 1):
        place, content = row.place, _first(row.fields, FORMATS)
        seed_id = _id(row) or ("" if content is None else str(number))
        if not seed_id:
            raise DataError(f"{place}: no id; give every dialogue one in a field named 'id'")
        first = first_rows.setdefault(seed_id, row)
        is_whole = content is not None or _first(first.fields, FORMATS) is not None
        if first is not row and is_whole:
            raise DataError(
                f"{place}: id {seed_id!r} is taken by {first.place}; give every dialogue its own"
            )
        messages = dialogues.setdefault(seed_id, [])
        items = [row.fields] if content is None else _items(content, place)
        messages += _messages(items, place, len(messages))
    if not dialogues:
        raise DataError(f"{where}: no dialogue; each needs an id and its utterances")
    return [_seed(seed_id, texts, first_rows[seed_id]) for seed_id, texts in dialogues.items()]


def read_dialogues(rows: Iterable[FileRow], where: str) -> ImportedDialogues:
    """Read the dialogues of a model; raises `DataError` with the row."""
    dialogues, formats, n_system = [], [], 0
    for row in rows:
        place, fields = row
        column = next((name for name in FORMATS if name in fields), None)
        if column is None:
            raise _lacks(f"{place}: no dialogue", fields, FORMATS)
        items = _items(fields[column], place)
        messages = _messages(items, place)
        n_system += len(items) - len(messages)
        texts = _join_turns([m._replace(text=m.text.strip()) for m in messages], place)
        end = next((n for n, text in enumerate(texts) if text in _FAILED), None)
        outcome: Outcome = "ok" if end is None else "empty"
        dialogues.append(ImportedDialogue(place, _id(row), tuple(texts[:end]), outcome))
        formats.append(FORMATS[column])
    if not dialogues:
        raise DataError(f"{where}: no dialogue; expected one of: {', '.join(FORMATS)}")
    return ImportedDialogues(formats[0], dialogues, n_system)


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _lacks(fault: str, fields: Iterable[str], wanted: Iterable[str]) -> DataError:
    names = ", ".join(fields)[:200] or "none"
    return DataError(f"{fault} (fields: {names}); expected one of: {', '.join(wanted)}")


def _id(row: FileRow) -> str:
    """Return the id of a row, empty where it has none."""
    value = _first(row.fields, _IDS)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return ""
    is_name = isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip()
    if not is_name or len(str(value)) > MAX_ID:
        raise DataError(
            f"{row.place}: the id {quoted(value)} is no text or whole number of at most {MAX_ID} "
            "characters; correct it"
        )
    return str(value)


def _items(content: object, place: str) -> Sequence[object]:
    """Return the texts or messages of a dialogue, which may be JSON in a csv."""
    if isinstance(content, str):
        content = json_value(content, place)
    if not isinstance(content, list | tuple):
        raise DataError(f"{place}: {quoted(content)} is not a list of utterances; make it one")
    return content


def _messages(items: Sequence[object], place: str, start: int = 0) -> list[ImportedMessage]:
    """Read texts, messages and [speaker, text] pairs; instructions to a speaker are left out."""
    messages = [_message(item, place, n) for n, item in enumerate(items, start + 1)]
    return [message for message in messages if message is not None]


def _message(item: object, place: str, n: int) -> ImportedMessage | None:
    """Read a message; returns None for an instruction to a speaker."""
    if isinstance(item, str):
        return ImportedMessage(place, None, item, n)
    place = f"{place}: utterance {n}"
    if isinstance(item, list) and len(item) == 2:
        item = dict(zip(("speaker", "text"), item, strict=True))
    fields = {column_name(name): value for name, value in named(item, place).items()}
    speaker = _first(fields, _SPEAKERS)
    if fields.get("tool_calls") or fields.get("function_call") or _TOOLS.search(str(speaker)):
        raise DataError(f"{place} calls a tool; take such dialogues out")
    if str(speaker).lower() in _INSTRUCTIONS:
        return None
    column = next((name for name in _TEXTS if name in fields), None)
    if column is None:
        raise _lacks(f"{place}: no text", fields, _TEXTS)
    turn = _first(fields, _TURNS)
    try:
        position = float(n if turn is None else str(turn))
    except ValueError:
        raise DataError(f"{place}: the turn {quoted(turn)} is no number") from None
    text = _text(fields[column], place)
    return ImportedMessage(place, None if speaker is None else str(speaker), text, position)


def _text(content: object, place: str) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    if not isinstance(content, list):
        content = ["" if content is None else content]
    texts = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in _REASONING:
            continue
        text = part.get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str):
            raise DataError(f"{place}: {quoted(part)} is not text; write it as text or take it out")
        texts.append(text)
    return " ".join(texts)


def _join_turns(messages: Sequence[ImportedMessage], place: str) -> list[str]:
    """Join consecutive messages of one speaker."""
    names = dict.fromkeys(message.speaker for message in messages)
    if len(names) > 2 or (None in names and len(names) > 1):
        listed = quoted(", ".join(map(str, names)))
        raise DataError(f"{place}: speakers {listed}; name two, each before all of their messages")
    turns = groupby(enumerate(messages), lambda pair: pair[1].speaker or pair[0])
    return [" ".join(message.text for _, message in turn) for _, turn in turns]


def _seed(seed_id: str, messages: list[ImportedMessage], row: FileRow) -> Seed:
    messages.sort(key=lambda message: message.turn)
    if twice := next((b for a, b in pairwise(messages) if a.turn == b.turn), None):
        raise DataError(f"{twice.place}: dialogue {seed_id!r} has turn {twice.turn:g} twice")
    try:
        if not (utterances := _join_turns(messages, row.place)):
            raise ValueError(f"seed {seed_id} has 0 utterances, needs at least {N_SEED}")
        return Seed(seed_id, tuple(utterances), str(row.fields.get("topic", "")).strip())
    except ValueError as error:
        fault = " ".join(str(error).split())
        raise DataError(f"{row.place}: {fault}; complete it or take it out") from None
