"""Dialogues from rows: seeds, and dialogues of a model that were generated elsewhere.

Names of columns are in ``columns.toml``. A row is a whole dialogue: a list of texts or messages, in
csv and xlsx as JSON. A row of seeds may be one utterance, with a speaker and a turn to sort by.
Consecutive texts of one speaker are one utterance. System messages and parts of reasoning are left
out, and of a model's dialogues the thoughts in its texts. Tools are an error. Other columns are
ignored.
"""

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from botchat.errors import DataError, listed, one_line, quoted
from botchat.frames import Tables, package_toml
from botchat.importers.tables import COLUMNS, FileRow, column_name, folded, json_value, named
from botchat.interfaces import visible
from botchat.records import N_SEED, Names, Outcome, Seed, Utterances
from botchat.thoughts import strip_thoughts

_NAMES = COLUMNS["seeds"]
FORMATS: Mapping[str, str] = _NAMES["formats"]
"""Columns that hold a dialogue -> name of their format."""
MAX_ID = 200
"""Characters of an id."""

_MARK = re.compile(r"(?:^|\s)[mf] :(?=\s|$)")
_MAX_ITEM = 2**20  # bytes
MUTUAL = package_toml("importers/mutual.toml", Tables)
# Each in the one before; the last has the items
_MUTUAL_FOLDERS = ("MuTual-master", "data", "mutual", "test")

# Type of a part that is no text of a message
_THOUGHT_PART = re.compile(r"(?i)reasoning|thinking|thought")
# Stands in the name of what is no speaker
_TOOL = re.compile("tool|function|observation")
# Stands in FastChat's files in place of a reply
_FAILED = "$ERROR$"


class ImportedMessage(NamedTuple):
    """One utterance as it stands in a file; ``speaker`` is None where none is named."""

    speaker: str | None
    text: str
    turn: float


class _FieldNames(NamedTuple):
    """Names of a message's fields by what they hold, the best known first."""

    speakers: list[str]
    turns: list[str]
    texts: list[str]
    calls: list[str]
    """Calls of tools."""


class _Item(msgspec.Struct):
    """An item of MuTual."""

    article: str


class ImportedDialogue(NamedTuple):
    """One dialogue of a model, up to its first utterance that shows nothing; it may have no id."""

    id: str
    utterances: Utterances
    outcome: Outcome


def read_seeds(rows: Iterable[FileRow], where: str) -> list[Seed]:
    """Read seeds; a whole dialogue without an id has its row's number. Raises `DataError`."""
    dialogues: dict[str, tuple[FileRow, list[ImportedMessage]]] = {}
    for number, row in enumerate(rows, 1):
        place = row.place
        content = _first(row.fields, FORMATS)
        seed_id = _id(row) or ("" if content is None else str(number))
        if not seed_id:
            raise DataError(f"{place}: no id; give every dialogue one in a field named 'id'")
        first, messages = dialogues.setdefault(seed_id, (row, []))
        is_whole = FORMATS.keys() & (row.fields.keys() | first.fields.keys())
        if first is not row and is_whole:
            raise DataError(
                f"{place}: id {seed_id!r} is taken by {first.place}; give every dialogue its own"
            )
        items = [row.fields] if content is None else _items(content, place)
        messages += _messages(items, place, len(messages))
    if not dialogues:
        raise DataError(f"{where}: no dialogue; each needs an id and its utterances")
    return [_seed(seed_id, *dialogue) for seed_id, dialogue in dialogues.items()]


def read_dialogues(rows: Iterable[FileRow], where: str) -> tuple[str, list[ImportedDialogue]]:
    """Read the format, a value of `FORMATS`, and the dialogues of a model, or raise `DataError`."""
    dialogues = []
    form = ""
    for row in rows:
        column = _column(row.fields, FORMATS, f"{row.place}: no dialogue")
        messages = _messages(_items(row.fields[column], row.place), row.place)
        spoken = [m._replace(text=strip_thoughts(m.text)) for m in messages]
        utterances = []
        outcome: Outcome = "ok"
        for text in _join_turns(spoken, row.place):
            if text == _FAILED or not visible(text):
                outcome = "empty"
                break
            utterances.append(text.strip())
        dialogues.append(ImportedDialogue(_id(row), tuple(utterances), outcome))
        form = form or FORMATS[column]
    if not dialogues:
        raise DataError(f"{where}: no dialogue; expected one of: {listed(FORMATS)}")
    return form, dialogues


def read_mutual(source: Path) -> list[Seed]:
    """Read the paper's dialogues of MuTual's raw test split (Cui et al., ACL 2020).

    ``source``: a folder, or the zip that GitHub gives. The ``article`` of an item is a dialogue,
    with ``m :`` or ``f :`` before each utterance. Raises `DataError` if an item is missing or not
    in this layout.
    """
    place = str(source)
    seeds = []
    try:
        folder: Path | zipfile.Path = source
        if source.is_file():
            folder = zipfile.Path(source)
        for name in _MUTUAL_FOLDERS:
            if (folder / name).exists():
                folder = folder / name
        for n in MUTUAL["numbers"]:
            place = f"{source}: test_{n}.txt"
            with (folder / f"test_{n}.txt").open("rb") as file:
                seeds.append(Seed(f"MT-{n}", _article(file.read(_MAX_ITEM))))
    except Exception as error:  # no such folder or item, no zip, or none of MuTual's
        raise DataError(
            f"{place}: {one_line(error)}; give MuTual's own folder or zip, with every "
            "data/mutual/test/test_<n>.txt"
        ) from None
    return seeds


def _article(content: bytes) -> Utterances:
    """Return the utterances of an item, with single blanks; raises ValueError if it is none."""
    article = " ".join(msgspec.json.decode(content, type=_Item).article.split())
    before, *utterances = _MARK.split(article)
    if before or not all(utterances):
        raise ValueError("no 'article' of utterances, each after 'm :' or 'f :'")
    return tuple(map(str.strip, utterances))


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    for name in names:
        if fields.get(name) is not None:
            return fields[name]
    return None


def _column(fields: Mapping[str, Any], names: Iterable[str], fault: str) -> str:
    """Return the first of the names that there is; raises `DataError` if there is none."""
    for name in names:
        if name in fields:
            return name
    raise DataError(
        f"{fault} (fields: {', '.join(fields)[:200] or 'none'}); expected one of: {listed(names)}"
    )


def _id(row: FileRow) -> str:
    """Return the id of a row, empty where it has none."""
    value = _first(row.fields, _NAMES["ids"])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return ""
    if type(value) in (str, int) and 0 < len(str(value).strip()) <= MAX_ID:  # not bool
        return str(value)
    raise DataError(
        f"{row.place}: the id {quoted(value)} is no text or whole number of at most {MAX_ID} "
        "characters; correct it"
    )


def _items(content: object, place: str) -> Sequence[object]:
    """Return the texts or messages of a dialogue, which may be JSON in a csv."""
    if isinstance(content, str):
        content = json_value(content, place)
    if not isinstance(content, list | tuple):
        raise DataError(f"{place}: {quoted(content)} is not a list of utterances; make it one")
    return content


@lru_cache(4096)  # most messages have the same
def _field_names(names: Names) -> _FieldNames:
    """Return which of the names hold what."""
    spelt = {column_name(name): name for name in names}
    of_kinds = []
    for kind in _FieldNames._fields:
        of_kinds.append([spelt[name] for name in _NAMES[kind] if name in spelt])
    return _FieldNames._make(of_kinds)


def _messages(items: Sequence[object], place: str, start: int = 0) -> list[ImportedMessage]:
    """Read texts and messages; instructions to a speaker are left out."""
    messages = []
    for n, item in enumerate(items, start + 1):
        within = f"{place}: utterance {n}"
        if isinstance(item, str):
            item = {"text": item}
        fields = named(item, within)
        names = _field_names(tuple(fields))
        speaker = _first(fields, names.speakers)
        if speaker is not None:
            speaker = folded(str(speaker)).casefold().rstrip(" :")
        turn = _first(fields, names.turns)
        if any(fields[name] for name in names.calls) or _TOOL.search(str(speaker)):
            raise DataError(f"{within} calls a tool; take such dialogues out")
        if speaker in ("system", "developer"):
            continue
        column = _column(fields, names.texts or _NAMES["texts"], f"{within}: no text")
        text = _text(fields[column], within)
        try:
            position = float(n if turn is None else str(turn))
        except ValueError:
            raise DataError(f"{within}: the turn {quoted(turn)} is no number") from None
        messages.append(ImportedMessage(speaker, text, position))
    return messages


def _text(content: object, place: str) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        content = ["" if content is None else content]
    texts = []
    for part in content:
        fields: Mapping[str, Any] = part if isinstance(part, Mapping) else {"text": part}
        if _THOUGHT_PART.search(str(fields.get("type"))) or fields.get("thought") is True:
            continue  # in the forms of OpenAI, Anthropic and Google
        if not isinstance(fields.get("text"), str):
            raise DataError(f"{place}: {quoted(part)} is not text; write it as text or take it out")
        texts.append(fields["text"])
    return " ".join(texts)


def _join_turns(messages: Sequence[ImportedMessage], place: str) -> list[str]:
    """Join consecutive messages of one speaker."""
    names = dict.fromkeys(message.speaker for message in messages)
    if len(names) > 2 or (None in names and len(names) > 1):
        speakers = quoted(", ".join(map(str, names)))
        raise DataError(
            f"{place}: speakers {speakers}; name two, each before all of their messages"
        )
    joined = []
    for speaker, turn in groupby(messages, attrgetter("speaker")):
        texts = [message.text for message in turn]
        if speaker:
            texts = [" ".join(texts)]
        joined += texts
    return joined


def _seed(seed_id: str, row: FileRow, messages: list[ImportedMessage]) -> Seed:
    messages.sort(key=attrgetter("turn"))
    if len({message.turn for message in messages}) < len(messages):
        raise DataError(f"{row.place}: dialogue {seed_id!r} has a turn twice")
    try:
        utterances = _join_turns(messages, row.place)
        if not utterances:
            raise ValueError(f"seed {seed_id} has 0 utterances, needs at least {N_SEED}")
        shown = tuple(text if visible(text) else "" for text in utterances)
        return Seed(seed_id, shown, str(row.fields.get("topic", "")).strip())
    except ValueError as error:
        fault = " ".join(str(error).split())
        raise DataError(f"{row.place}: {fault}; complete it or take it out") from None
