"""Dialogues from rows: seeds, and dialogues of a model that were generated elsewhere.

A row is a whole dialogue (a column of `FORMATS`: a list of texts or messages; in csv and xlsx as
JSON) or, of seeds, one utterance (`_TEXTS`, perhaps with `_SPEAKERS`, and `_TURNS` to sort by).
Consecutive texts of one speaker are one utterance; system messages and a model's reasoning are
left out; tools are an error. Other columns are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from botchat.errors import DataError
from botchat.importers.tables import FileRow, column_name, json_value, named, quoted
from botchat.records import N_SEED, Outcome, Seed

FORMATS: Mapping[str, str] = {
    **dict.fromkeys(("utterances", "conv_gt", "dialogue", "dialog"), "utterances"),
    **dict.fromkeys(("messages", "conversation"), "openai"),
    "conversations": "sharegpt",
}
"""Columns that hold a dialogue -> name of their format."""

_IDS = ("id", "index", "seed_id", "dialogue_id", "dialog_id", "conversation_id", "conv_id",
        "question_id")  # fmt: skip
_TEXTS = ("utterance", "text", "content", "value", "message")
_SPEAKERS = ("role", "speaker", "from")
_TURNS = ("turn", "turn_id", "turn_number", "position")
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


@dataclass
class ImportedDialogues:
    """Dialogues of some files of one format, a value of `FORMATS`."""

    format: str
    dialogues: list[ImportedDialogue]
    system_messages: int
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> number of dialogues."""


def read_seeds(rows: Iterable[FileRow], where: str) -> list[Seed]:
    """Read seeds; a whole dialogue without an id has its row's number.

    Raises `DataError` with the row.
    """
    dialogues: dict[str, list[ImportedMessage]] = {}
    first_rows: dict[str, FileRow] = {}
    complete: set[str] = set()
    for number, row in enumerate(rows, 1):
        place, fields = row
        content = _first(fields, FORMATS)
        seed_id = _id(fields, place) or ("" if content is None else str(number))
        if not seed_id:
            raise DataError(f"{place}: no id; give every dialogue one in a field named 'id'")
        if seed_id in dialogues and (content is not None or seed_id in complete):
            raise DataError(
                f"{place}: id {seed_id!r} is taken by {first_rows[seed_id].place}; "
                "give every dialogue its own"
            )
        parts = dialogues.setdefault(seed_id, [])
        first_rows.setdefault(seed_id, row)
        if content is None:
            parts += _messages([fields], place, len(parts))
        else:
            parts += _messages(content, place)
            complete.add(seed_id)
    if not dialogues:
        raise DataError(f"{where}: no dialogue; each needs an id and its utterances")
    return [_seed(seed_id, parts, first_rows[seed_id]) for seed_id, parts in dialogues.items()]


def read_dialogues(rows: Iterable[FileRow], where: str) -> ImportedDialogues:
    """Read the dialogues of a model; raises `DataError` with the row."""
    dialogues, formats, n_left = [], [], 0
    for place, record in rows:
        fields = _fields(record, place)
        column = next((name for name in FORMATS if name in fields), None)
        if column is None:
            names = ", ".join(fields)[:200] or "none"
            raise DataError(
                f"{place}: no dialogue (fields: {names}); expected one of: {', '.join(FORMATS)}"
            )
        messages = [m._replace(text=m.text.strip()) for m in _messages(fields[column], place)]
        n_left += len(fields[column]) - len(messages)
        texts = _join_turns(messages, place)
        end = next((n for n, text in enumerate(texts) if text in _FAILED), None)
        outcome: Outcome = "ok" if end is None else "empty"
        dialogues.append(ImportedDialogue(place, _id(fields, place), tuple(texts[:end]), outcome))
        formats.append(FORMATS[column])
    if not dialogues:
        raise DataError(f"{where}: no dialogue; expected one of: {', '.join(FORMATS)}")
    return ImportedDialogues(formats[0], dialogues, n_left)


def _fields(record: object, place: str) -> dict[str, Any]:
    return {column_name(name): value for name, value in named(record, place).items()}


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _id(fields: Mapping[str, Any], place: str) -> str:
    """Return the id of a row, empty where it has none."""
    value = _first(fields, _IDS)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{place}: the id {quoted(value)} is no text or whole number; correct it")
    if len(str(value)) > MAX_ID:
        raise DataError(f"{place}: the id {quoted(value)} is longer than {MAX_ID} characters")
    return str(value)


def _messages(content: object, place: str, start: int = 0) -> list[ImportedMessage]:
    """Read texts, messages and [speaker, text] pairs; instructions to a speaker are left out."""
    if isinstance(content, str):
        content = json_value(content, place)
    if not isinstance(content, list | tuple):
        raise DataError(f"{place}: {quoted(content)} is not a list of utterances; make it one")
    messages = [_message(item, place, n) for n, item in enumerate(content, start + 1)]
    return [message for message in messages if message is not None]


def _message(item: object, place: str, n: int) -> ImportedMessage | None:
    """Read a message; returns None for an instruction to a speaker."""
    if isinstance(item, str):
        return ImportedMessage(place, None, item, n)
    place = f"{place}: utterance {n}"
    if isinstance(item, list) and len(item) == 2:
        item = dict(zip(("speaker", "text"), item, strict=True))
    fields = _fields(item, place)
    speaker = _first(fields, _SPEAKERS)
    if fields.get("tool_calls") or fields.get("function_call") or _TOOLS.search(str(speaker)):
        raise DataError(f"{place} calls a tool; take such dialogues out")
    if str(speaker).lower() in _INSTRUCTIONS:
        return None
    column = next((name for name in _TEXTS if name in fields), None)
    if column is None:
        names = ", ".join(fields)[:200] or "none"
        raise DataError(f"{place}: no text (fields: {names}); expected one of: {', '.join(_TEXTS)}")
    turn = _first(fields, _TURNS)
    try:
        position = float(n if turn is None else str(turn))
    except ValueError:
        raise DataError(f"{place}: the turn {quoted(turn)} is no number") from None
    text = _text(fields[column], place)
    return ImportedMessage(place, None if speaker is None else str(speaker), text, position)


def _text(content: object, place: str) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise DataError(f"{place}: {quoted(content)} is not text; write it as text")
    parts = [part if isinstance(part, Mapping) else {"text": part} for part in content]
    parts = [part for part in parts if part.get("type") not in _REASONING]
    if other := next((part for part in parts if not isinstance(part.get("text"), str)), None):
        kind = quoted(other.get("type"))
        raise DataError(f"{place}: a part of type {kind} is no text; take it out")
    return " ".join(part["text"] for part in parts)


def _join_turns(messages: Sequence[ImportedMessage], place: str) -> list[str]:
    """Join consecutive messages of one speaker."""
    names = [message.speaker for message in messages if message.speaker is not None]
    if len({*names}) > 2:
        listed = quoted(", ".join(dict.fromkeys(names)))
        raise DataError(f"{place}: {len({*names})} speakers ({listed}); leave dialogues of two")
    if len(names) not in (0, len(messages)):
        raise DataError(f"{place}: {len(names)} of {len(messages)} messages name their speaker")
    turns = groupby(enumerate(messages), lambda pair: pair[1].speaker if names else pair[0])
    return [" ".join(message.text for _, message in turn) for _, turn in turns]


def _seed(seed_id: str, messages: list[ImportedMessage], row: FileRow) -> Seed:
    messages.sort(key=lambda message: message.turn)
    if twice := next((b for a, b in pairwise(messages) if a.turn == b.turn), None):
        raise DataError(f"{twice.place}: dialogue {seed_id!r} has turn {twice.turn:g} twice")
    utterances = _join_turns(messages, row.place)
    try:
        if not utterances:
            raise ValueError(f"seed {seed_id} has 0 utterances, needs at least {N_SEED}")
        return Seed(seed_id, tuple(utterances), str(row.fields.get("topic", "")).strip())
    except ValueError as error:
        fault = " ".join(str(error).split())
        raise DataError(f"{row.place}: {fault}; complete it or take it out") from None
