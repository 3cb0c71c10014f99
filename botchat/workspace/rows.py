"""Files of rows that are not ours: csv, tsv, JSON and JSON lines; each row with its place.

Whatever reads such a file begins here, so that a fault is told in one way: file, line or row, what
was found, and what to do. Spreadsheets are opened in `botchat.importers.spreadsheets`, columns of a
million rows in `botchat.importers.vote_tables`.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from botchat.errors import DataError


class Record(NamedTuple):
    """One row of a table, or one JSON object."""

    place: str
    """``file:line`` or ``file row n``."""
    fields: object
    """Cells by the names of their columns; of JSON whatever is there."""


def rows(data: bytes, where: str) -> Iterator[Record]:
    """The rows of a file by the ending of its name ``where``: ``.csv`` and ``.tsv``, else JSON.

    Raises `DataError`, as all here: with the line, it is not what it must be.
    """
    if where.lower().endswith((".csv", ".tsv")):
        return csv_rows(utf8(data, where), where)
    return json_rows(data, where)


def json_rows(data: bytes, where: str) -> Iterator[Record]:
    """The values of a JSON array, of JSON lines, or the one object that a file is, indented."""
    text = utf8(data, where)
    if text.lstrip().startswith("["):
        array = msgspec.convert(json_value(text, where), list[object])
        yield from (Record(f"{where} row {n}", value) for n, value in enumerate(array, 1))
        return
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if lines and lines[0][1].strip() == "{":
        yield Record(where, json_value(text, where))
        return
    yield from (Record(f"{where}:{n}", json_value(line, f"{where}:{n}")) for n, line in lines)


def csv_rows(text: str, where: str, *, comments: bool = False) -> Iterator[Record]:
    """Every row under the header line, cells by name; separated by comma, semicolon or tab.

    ``comments``: lines that begin with ``#`` are none, such as the signature of our own tables.
    """
    lines: Iterator[str] = io.StringIO(text.removeprefix("\ufeff"), newline="")
    if comments:
        lines = ("\n" if line.startswith("#") else line for line in lines)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            place, line = f"{where}:{line}", reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = [name.strip() for name in cells]
            elif len(cells) != len(names):
                raise DataError(
                    f"{place}: {len(cells)} cells under {len(names)} column names; "
                    "put cells that hold the separator in quotes"
                )
            else:
                yield Record(place, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise DataError(f"{where}:{line}: not CSV ({error}); write it as in RFC 4180") from None


def utf8(data: bytes, where: str) -> str:
    """The text of a file, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{where}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def json_value(text: str, place: str) -> object:
    """A value in JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        hint = "" if text.lstrip()[:1] in ("[", "{", '"') else '; a list is ["Hi.", "Hello."]'
        raise DataError(
            f"{place}: {quoted(text)} is not JSON ({error}); correct it{hint}"
        ) from None


@contextmanager
def unzipping(where: str, what: str, advice: str) -> Iterator[None]:
    """What a damaged archive raises is a `DataError`; ``what`` it is, ``advice``: what to do."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # about anything
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(f"{where}: not a readable {what} ({told}); {advice}") from None


def unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member of an archive, at most as long as the archive says.

    ``ZipFile.read`` unpacks all that is there before it cuts: 3 MB may be all memory.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{member.filename} is packed in another way than deflated")
    with archive.open(member) as file:
        return file.read(member.file_size)


def fields_of(value: object, place: str) -> dict[str, object]:
    """The cells of a row by the letters and digits of their column's name."""
    return {
        re.sub(r"[\W_]", "", str(name).lower()): cell for name, cell in named(value, place).items()
    }


def named(value: object, place: str) -> Mapping[str, object]:
    """The same by the names as they are."""
    if not isinstance(value, Mapping):
        raise DataError(f"{place}: {quoted(value)} is not an object with named fields; make it one")
    return value


def quoted(value: object) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
