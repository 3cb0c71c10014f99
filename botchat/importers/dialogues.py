"""Dialogues that were made elsewhere: three formats, told apart by the fields of their records.

OpenAI's chat messages (``messages`` of role and content; LMSYS' ``conversation`` too), ShareGPT's
(``conversations`` of from and value), ours (``utterances``). A file is JSON lines, a JSON array, or
one JSON object.

Two speak; several messages in a row of one become one utterance. System messages and a model's
thoughts are passed over, tools are an error.

A new format is a line of `FORMATS`, and in `_HOLDS` the fields that it is known by.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from botchat.errors import DataError
from botchat.importers.spreadsheets import MAX_ID
from botchat.records import Outcome
from botchat.workspace.rows import (
    json_rows,
    named,
    quoted,
)

FORMATS: Mapping[str, str] = {
    "openai": "OpenAI chat messages",
    "sharegpt": "ShareGPT conversations",
    "utterances": "lists of utterances",
}
"""Name -> what it is in words."""

_HOLDS: Mapping[str, tuple[str, ...]] = {
    "openai": ("messages", "conversation"),
    "sharegpt": ("conversations",),
    "utterances": ("utterances",),
}
"""Fields that hold the dialogue, the first that is there."""

_SPEAKERS = ("role", "from", "speaker")
_TEXTS = ("content", "value", "text", "utterance")
_IDS = ("id", "seed_id", "conversation_id", "dialogue_id", "question_id")
_TOOLS = re.compile(r"(?i)tool|function|observation")
_UNSPOKEN = ("system", "developer")
_THOUGHTS = ("reasoning", "thinking")
_FAILED = "$ERROR$"
"""What FastChat writes for an answer that it did not get."""


class ToldDialogue(NamedTuple):
    """One dialogue as it stands in a file."""

    place: str
    id: str
    """Empty: it has none."""
    utterances: tuple[str, ...]
    """Up to the first empty one."""
    outcome: Outcome
    """``ok`` if it came to its end; else why not."""


@dataclass
class Collection:
    """What some files of one format hold."""

    format: str
    """A key of `FORMATS`."""
    read: int = 0
    """Records."""
    told: list[ToldDialogue] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Why -> how many records."""
    system_messages: int = 0
    """Messages to a speaker that are no utterance."""


def read_dialogues(files: Mapping[str, bytes]) -> Collection:
    """The dialogues of some files: name -> content.

    Raises `DataError`, with file and line or record: it is none of the formats, or not the first
    record's; it cannot be read; it has tools, or more than two speakers.
    """
    records = [
        (place, named(value, place))
        for name, data in files.items()
        for place, value in json_rows(data, name)
    ]
    if not records:
        raise DataError(f"{', '.join(files)}: no dialogue; expected one of: {_expected()}")
    first_place, first = records[0]
    found = Collection(_format_of(first, first_place))
    for place, record in records:
        kind = _format_of(record, place)
        if kind != found.format:
            raise DataError(
                f"{place}: this is {FORMATS[kind]}, and {first_place} is {FORMATS[found.format]}; "
                "import one format at a time"
            )
    for place, record in records:
        found.read += 1
        found.told.append(_dialogue(place, record, found))
    return found


def _expected() -> str:
    return ", ".join(f"{' or '.join(_HOLDS[name])} ({FORMATS[name]})" for name in FORMATS)


def _format_of(record: Mapping[str, object], place: str) -> str:
    there = record.keys()
    for name in ("openai", "sharegpt", "utterances"):
        if there & set(_HOLDS[name]):
            return name
    fields = ", ".join(map(str, record))[:200] or "none"
    raise DataError(f"{place}: no dialogue (fields: {fields}); expected one of: {_expected()}")


def _dialogue(place: str, record: Mapping[str, object], found: Collection) -> ToldDialogue:
    holds = _HOLDS[found.format]
    messages = next((record[name] for name in holds if name in record), None)
    if not isinstance(messages, list):
        fields = ", ".join(map(str, record))[:200]
        raise DataError(
            f"{place}: {' or '.join(holds)} is no list of messages (fields: {fields}); as "
            f"{FORMATS[found.format]} it must be one"
        )
    said = [_message(message, f"{place}: message {n}") for n, message in enumerate(messages, 1)]
    spoken = [one for one in said if one is not None]
    found.system_messages += len(said) - len(spoken)
    named = [speaker for speaker, _ in spoken if speaker is not None]
    if (n := len({*named})) > 2:
        who = quoted(", ".join(dict.fromkeys(named)))
        raise DataError(f"{place}: {n} speakers ({who}); leave talks of two")
    if len(named) not in (0, len(spoken)):
        raise DataError(
            f"{place}: {len(named)} of {len(spoken)} messages name their speaker; name it in each"
        )
    if not named:
        return _told(place, record, [text for _, text in spoken])
    turns = groupby(spoken, key=itemgetter(0))
    return _told(place, record, [" ".join(text for _, text in turn) for _, turn in turns])


def _message(message: object, place: str) -> tuple[str | None, str] | None:
    """(speaker, text) of a message; ``None``: it is no utterance."""
    if isinstance(message, str):
        return None, message
    if isinstance(message, list) and len(message) == 2:
        message = dict(zip(("speaker", "text"), message, strict=True))
    if not isinstance(message, Mapping):
        raise DataError(f"{place}: {quoted(message)} is neither text nor a record; make it one")
    speaker = next((message[name] for name in _SPEAKERS if message.get(name) is not None), None)
    tools = message.get("tool_calls") or message.get("function_call")
    if tools or (speaker is not None and _TOOLS.search(str(speaker))):
        raise DataError(f"{place} calls a tool; judges read talk only: take such dialogues out")
    if speaker is not None and str(speaker).lower() in _UNSPOKEN:
        return None
    names = [name for name in _TEXTS if name in message]
    if not names:
        raise DataError(
            f"{place} has no text (fields: {', '.join(map(str, message))[:200] or 'none'}); "
            f"expected one of: {', '.join(_TEXTS)}"
        )
    return None if speaker is None else str(speaker), _text(message[names[0]], place)


def _text(content: object, place: str) -> str:
    """The words of a message, whose content may be a list of parts."""
    if content is None or isinstance(content, str):
        return (content or "").strip()
    if not isinstance(content, list):
        raise DataError(f"{place}: {quoted(content)} is not text; write it as text")
    words = []
    for part in content:
        held = part if isinstance(part, Mapping) else {"text": part}
        if isinstance(text := held.get("text"), str):
            words.append(text)
        elif (kind := held.get("type")) not in _THOUGHTS:
            raise DataError(f"{place}: a part of type {quoted(kind)} is no text; take it out")
    return " ".join(words).strip()


def _told(place: str, record: Mapping[str, object], texts: Iterable[str]) -> ToldDialogue:
    utterances: list[str] = []
    outcome: Outcome = "ok"
    for text in texts:
        if not text.strip() or text.strip() == _FAILED:
            outcome = "empty"
            break
        utterances.append(text)
    value = next((record[name] for name in _IDS if record.get(name) is not None), "")
    id_ = str(value).strip() if isinstance(value, str | int) else ""
    if len(id_) > MAX_ID:
        raise DataError(f"{place}: the id {quoted(id_)} is longer than {MAX_ID} characters")
    return ToldDialogue(place, id_, tuple(utterances), outcome)
