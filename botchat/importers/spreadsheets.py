"""Seeds from tables: JSON lines, JSON, CSV, xlsx, or any rows (a Hugging Face dataset's).

A row has an id (a field of `_IDS`) and is either a whole dialogue (`_DIALOGUES`: a list of texts,
or of objects that are utterances; in CSV and xlsx as JSON) or one utterance (`_TEXTS`, perhaps with
`_SPEAKERS`, and `_TURNS` to sort by). Only letters and digits in field names count (``conv-GT``,
``Turn_ID``); other fields are ignored. Where speakers are named, consecutive texts of one become
one utterance, a ``system`` or ``developer`` message is left out, a third speaker is an error. A
whole dialogue without an id (OpenAI's messages, KdConv's of Zhou et al. 2020) has its row's number.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from botchat.errors import DataError
from botchat.records import N_SEED, Seed
from botchat.workspace.rows import (
    Record,
    fields_of,
    json_value,
    quoted,
    rows,
    unpacked,
    unzipping,
)

_IDS = ("id", "index", "dialogueid", "dialogid", "conversationid", "convid")
_DIALOGUES = (
    "utterances",
    "convgt",
    "conversation",
    "conversations",
    "dialogue",
    "dialog",
    "messages",
)
_TEXTS = ("utterance", "text", "content", "value", "message")
_SPEAKERS = ("role", "speaker", "from")
_UNSPOKEN = ("system", "developer")
_TURNS = ("turn", "turnid", "turnnumber", "position")

_MAX_UNPACKED = 64 * 2**20
"""Bytes an xlsx may unpack to."""

_MAX_CELLS = 1_000_000
"""Of a sheet; empty ones before the last of a row too, and a row counts as `_A_ROW` more."""

_A_ROW = 4

MAX_ID = 200
"""Characters of an id."""


SUFFIXES = (".xlsx", ".jsonl", ".json", ".csv", ".tsv")


def from_table(data: bytes, where: str) -> list[Seed]:
    """Read a file by the ending of its name ``where``, of `SUFFIXES`; else as JSON.

    JSON: an array, or one object a line: ``{"id": "...", "utterances": ["...", ...]}``. CSV:
    columns under a header line. xlsx: the first sheet, columns under a header in its first row
    (BotChat: index, conv-GT). Raises `DataError`, as any function here.
    """
    return _seeds((_filled if where.lower().endswith(".xlsx") else rows)(data, where), where)


def from_rows(rows: Iterable[Mapping[str, object]], where: str) -> list[Seed]:
    """Read rows of any origin."""
    return _seeds((Record(f"{where} row {n}", row) for n, row in enumerate(rows, 1)), where)


def _filled(data: bytes, where: str) -> Iterator[Record]:
    """The rows of a sheet that are not empty."""
    header, *below = _sheet(data, where) or [()]
    names = ["" if name is None else str(name) for name in header]
    for n, cells in enumerate(below, 2):
        if any(cell not in (None, "") for cell in cells):
            yield Record(f"{where} row {n}", dict(zip(names, cells, strict=False)))


def _sheet(data: bytes, where: str) -> list[Sequence[object]]:
    from openpyxl import load_workbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

    plain = io.BytesIO()
    with unzipping(where, "xlsx workbook", "save it again as .xlsx or as .csv"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(plain, "w") as copy:
            size = sum(member.file_size for member in archive.infolist())
            if size > _MAX_UNPACKED:
                raise DataError(f"{where}: unpacks to {size:,} bytes; split it into smaller files")
            # openpyxl believes what an archive says of its members' sizes.
            for member in archive.infolist():
                copy.writestr(member.filename, unpacked(archive, member))
        with warnings.catch_warnings(action="ignore"):
            book = load_workbook(plain, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            if isinstance(sheet, ReadOnlyWorksheet):
                sheet.reset_dimensions()  # some programs state wrong ones
            return list(_counted(sheet.iter_rows(values_only=True), where))


def _counted(rows: Iterable[Sequence[object]], where: str) -> Iterator[Sequence[object]]:
    """The rows, as long as they are not too many cells: a small file may hold billions."""
    cells = 0
    for row in rows:
        cells += len(row) + _A_ROW
        if cells > _MAX_CELLS:
            raise DataError(f"{where}: more than {_MAX_CELLS:,} cells; split it into smaller files")
        yield row


class _Spoken(NamedTuple):
    """One utterance as it stands in a row or an object."""

    place: str
    speaker: str | None
    text: str
    turn: float


def _seeds(rows: Iterable[Record], where: str) -> list[Seed]:
    """The number of its row stands in for the id of a whole dialogue that has none."""
    dialogues: dict[str, list[_Spoken]] = {}
    places: dict[str, str] = {}
    whole: set[str] = set()
    for n, row in enumerate(rows, 1):
        fields = fields_of(row.fields, row.place)
        told = _first(fields, _DIALOGUES)
        seed_id = _id(row.place, fields, None if told is None else n)
        if told is None and seed_id not in whole:
            parts = dialogues.setdefault(seed_id, [])
            parts.append(_part(fields, row.place, len(parts)))
            places.setdefault(seed_id, row.place)
        elif seed_id in dialogues:
            raise DataError(
                f"{row.place}: id {seed_id!r} is taken by {places[seed_id]}; "
                "give every dialogue its own"
            )
        else:
            dialogues[seed_id], places[seed_id] = _parts(told, row.place), row.place
            whole.add(seed_id)
    if not dialogues:
        raise DataError(f"{where}: holds no dialogue; each needs an id and its utterances")
    return [_seed(seed_id, parts, places[seed_id]) for seed_id, parts in dialogues.items()]


def _first(fields: Mapping[str, object], names: Iterable[str]) -> object | None:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _id(place: str, fields: Mapping[str, object], number: int | None) -> str:
    value = _first(fields, _IDS)
    if value is None:
        value = number
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        fault = "no id" if value is None else f"the id {quoted(value)} is no text or whole number"
        raise DataError(f"{place}: {fault}; give every dialogue one in a field named 'id'")
    if len(str(value)) > MAX_ID:
        fault = f"the id {quoted(value)} is longer than {MAX_ID} characters; shorten it"
        raise DataError(f"{place}: {fault}")
    return str(value)


def _parts(told: object, place: str) -> list[_Spoken]:
    if isinstance(told, str):
        told = json_value(told, place)
    if not isinstance(told, list | tuple):
        raise DataError(f"{place}: {quoted(told)} is not a list of utterances; make it one")
    return [
        _Spoken(place, None, item, n)
        if isinstance(item, str)
        else _part(fields_of(item, f"{place}: utterance {n}"), f"{place}: utterance {n}", n)
        for n, item in enumerate(told, 1)
    ]


def _part(fields: Mapping[str, object], place: str, n: int) -> _Spoken:
    text, speaker, turn = (_first(fields, names) for names in (_TEXTS, _SPEAKERS, _TURNS))
    if text is None:
        names = ", ".join(fields)[:200] or "none"
        raise DataError(f"{place}: no utterances (fields: {names}); name the field 'utterances'")
    if not isinstance(text, str):
        raise DataError(f"{place}: the utterance {quoted(text)} is not text; write it as text")
    try:
        position = float(str(turn)) if turn is not None else n
    except ValueError:
        raise DataError(
            f"{place}: the turn {quoted(turn)} is no number; number the turns"
        ) from None
    return _Spoken(place, None if speaker is None else str(speaker), text, position)


def _seed(seed_id: str, parts: Iterable[_Spoken], place: str) -> Seed:
    spoken = [part for part in parts if (part.speaker or "").lower() not in _UNSPOKEN]
    speakers = sorted({part.speaker for part in spoken if part.speaker is not None})
    if len(speakers) > 2:
        raise DataError(
            f"{place}: dialogue {seed_id!r} has {len(speakers)} speakers "
            f"({quoted(', '.join(speakers))}); leave only talks of two"
        )
    spoken.sort(key=lambda part: part.turn)
    if twice := next((b for a, b in pairwise(spoken) if a.turn == b.turn), None):
        raise DataError(
            f"{twice.place}: dialogue {seed_id!r} has turn {twice.turn:g} twice; number the turns"
        )
    # Consecutive texts of one speaker are one utterance; of nobody each is one.
    turns = groupby(
        enumerate(spoken), lambda one: one[0] if one[1].speaker is None else one[1].speaker
    )
    utterances = [" ".join(part.text for _, part in of_one) for _, of_one in turns]
    try:
        if not utterances:
            raise ValueError(f"seed {seed_id} has 0 utterances, needs at least {N_SEED}")
        return Seed(seed_id, tuple(utterances))
    except ValueError as error:
        fault = " ".join(str(error).split())
        raise DataError(f"{place}: {fault}; complete it or take it out") from None
