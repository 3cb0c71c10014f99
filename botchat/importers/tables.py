"""Files of rows: csv, tsv, JSON, JSON lines, xlsx and parquet, as data frames or with their places.

A fault is one line: file, row number, value, and what to do.
"""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from botchat.errors import DataError, one_line, quoted
from botchat.frames import Tables, package_toml, read_text

if TYPE_CHECKING:
    import pandas as pd  # half a second, for commands that read no table

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".parquet")
COLUMNS = package_toml("importers/columns.toml", Tables)
"""Names of columns in other people's files, of seeds and of votes."""

MAX_UNPACKED = 2**26  # bytes that an xlsx may unpack to
MAX_SHEET = 2**23  # cells of its first sheet
MAX_CELLS = 10**8  # of a parquet: they are packed to next to nothing, and unpacked in memory


class FileRow(NamedTuple):
    """One row of a table, or one JSON value, with its place for messages."""

    place: str
    fields: Any


class FileTable(NamedTuple):
    """A file's rows, and names of columns that were not read: not asked for, or named again."""

    where: str
    frame: pd.DataFrame
    others: list[str]


def json_rows(data: bytes, where: str) -> list[FileRow]:
    """Read a JSON array, JSON lines, or one JSON object."""
    text = read_text(data, where)
    begin = text.lstrip()[:2].rstrip()
    if begin == "{":
        return [FileRow(where, json_value(text, where))]
    if begin.startswith("["):
        values = json_value(text, where)
    else:
        lines = filter(str.strip, text.split("\n"))
        values = [json_value(line, f"{where} row {n}") for n, line in enumerate(lines, 1)]
    return [FileRow(f"{where} row {n}", value) for n, value in enumerate(values, 1)]


def json_value(text: str | bytes, place: str) -> Any:
    """Decode a JSON value."""
    try:
        if isinstance(text, str) and _NOT_A_NUMBER.search(text):
            text = _IN_JSON.sub(lambda part: part[1] or "null", text)
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DataError(f"{place}: {quoted(text)} is not JSON ({error}); correct it") from None


_NOT_A_NUMBER = re.compile(r"\b(NaN|Infinity)\b")
# A text of JSON, or what Python's json writes for a number that is none
_IN_JSON = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|-?\b(?:NaN|Infinity)\b')


def named(value: object, place: str) -> Mapping[str, Any]:
    """Return a JSON object; anything else is a `DataError`."""
    if not isinstance(value, dict | Mapping):  # a dict is known at once
        raise DataError(f"{place}: {quoted(value)} is not an object with named fields; make it one")
    return value


@lru_cache(4096, typed=True)
def column_name(name: object) -> str:
    """Return a name in small letters, words joined by ``_``; ``dialogueId`` is two words."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name))
    return re.sub(r"\W+", "_", words.lower()).strip("_")


@lru_cache(4096)
def folded(text: str) -> str:
    """Return a text without invisible characters, each in its usual form, blanks as one."""
    if not text.isascii():
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
        text = unicodedata.normalize("NFC", _NO_INK.sub("", text))
    return " ".join(text.split())


# Joiners, fillers, and selectors of a form, which Unicode counts as marks and letters
_NO_INK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")


def read_table(data: bytes, where: str, columns: Collection[str] | None = None) -> FileTable:
    """Read a file by the ending of its name ``where``; the frame's index is the row number.

    Names of columns are in small letters, words joined by ``_``, and of equal ones the first is
    read; cells of csv are text. None of ``columns``: all are read. Raises `DataError`.
    """
    import pandas as pd

    suffix = PurePath(where).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{where}: none of {', '.join(SUFFIXES)}; convert it")
    try:
        if suffix == ".parquet":
            frame, others = _parquet(data, columns)
        elif suffix in (".json", ".jsonl"):
            frame = pd.DataFrame(_objects(data, where), dtype=object)
        else:
            frame = _xlsx(data) if suffix == ".xlsx" else _csv(data, where)
    except DataError:
        raise
    except Exception as error:  # each library raises its own
        raise DataError(
            f"{where}: not readable as {suffix[1:]} ({one_line(error)}); correct or save it again"
        ) from None
    if suffix != ".parquet":
        places, others = _chosen(frame.columns, columns)
        frame = frame.iloc[:, list(places.values())].set_axis(list(places), axis=1)
    start = 2
    if suffix in (".json", ".jsonl", ".parquet"):
        start = 1  # below the names of columns
    frame.index = pd.RangeIndex(start, start + len(frame))
    return FileTable(where, frame, others)


def _chosen(
    names: Iterable[object], columns: Collection[str] | None
) -> tuple[dict[str, int], list[str]]:
    """Return the name and place of each column to read, and the names of the others."""
    places: dict[str, int] = {}
    others = []
    for place, name in enumerate(names):
        key = column_name(name)
        if key in places:
            others.append(f"{key} (again)")
        elif columns is None or key in columns:
            places[key] = place
        else:
            others.append(key)
    return places, others


def rows(data: bytes, where: str) -> Iterator[FileRow]:
    """Yield the rows of a file that are not empty; missing cells are left out."""
    return table_rows(read_table(data, where))


def table_rows(table: FileTable) -> Iterator[FileRow]:
    """Yield the rows of a table as `rows` does."""
    records = table.frame.to_dict("records")
    return rows_of(records, table.where, min(table.frame.index, default=1))


def rows_of(
    records: Iterable[Mapping[Any, object]], where: str, start: int = 1
) -> Iterator[FileRow]:
    """Yield records of any origin as rows, the first with the number ``start``."""
    import pandas as pd

    for number, record in enumerate(records, start):
        fields = {}
        for name, cell in record.items():
            is_nan = isinstance(cell, float) and cell != cell
            if not is_nan and cell is not None and cell is not pd.NA:
                fields[column_name(name)] = cell
        if any(cell != "" for cell in fields.values()):
            yield FileRow(f"{where} row {number}", fields)


def _csv(data: bytes, where: str) -> pd.DataFrame:
    from pyarrow import csv as arrow_csv
    from pyarrow import string

    data = data.removeprefix(b"\xef\xbb\xbf").rstrip(b"\n")
    head, _, last = data.rpartition(b"\n")
    if last.startswith(b"# botchat:") and head.count(b'"') % 2 == 0:
        data = head  # the signature under our own tables
    data = re.sub(rb"\Asep=[,;\t]\r?\n", b"", data)  # Excel's own first line
    header = data.lstrip(b"\r\n").partition(b"\n")[0]
    separator = max((b",", b";", b"\t"), key=header.count).decode()
    if not header:
        raise DataError(f"{where}: the file is empty; its first row names columns")
    # The names of columns are read as a row, since a name that is no number makes its column text;
    # ``column_types`` is for names that are numbers.
    texts = {f"f{i}": string() for i in range(header.count(separator.encode()) + 1)}
    try:
        cells = arrow_csv.read_csv(
            BytesIO(data + b"\n"),
            arrow_csv.ReadOptions(autogenerate_column_names=True),
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=texts),
        )
    except ValueError:
        read_text(data, where)
        raise
    frame: pd.DataFrame = cells.to_pandas()
    return frame[1:].set_axis(frame.iloc[0], axis=1)


def _objects(data: bytes, where: str) -> list[Mapping[str, object]]:
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):  # faster, but names no row
        return list(msgspec.json.Decoder(dict[str, object]).decode_lines(data))
    return [named(value, place) for place, value in json_rows(data, where)]


def _parquet(data: bytes, columns: Collection[str] | None) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet

    schema = parquet.read_schema(pa.BufferReader(data))
    texts = [field.name for field in schema if field.type in (pa.string(), pa.large_string())]
    file = parquet.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    places, others = _chosen(schema.names, columns)
    names = [schema.names[place] for place in places.values()]
    n_cells = file.metadata.num_rows * len(names)
    if n_cells > MAX_CELLS:
        raise ValueError(f"it has {n_cells:,} cells; split it into smaller files")
    cells = file.read(columns=names)
    cells.validate(full=True)  # texts may be no UTF-8
    frame = pd.DataFrame(index=range(len(cells)))
    for key, name in zip(places, names, strict=True):
        column = cells[cells.schema.names.index(name)]  # the first of a name
        kind = column.type
        if re.match("(large_|fixed_size_)?binary", str(kind)):
            column = column.cast(pa.string())
        if pa.types.is_dictionary(kind) or pa.types.is_primitive(kind):
            frame[key] = column.to_pandas(types_mapper=pd.ArrowDtype)
        else:  # what they are in JSON: pandas cannot count the others
            frame[key] = pd.Series(column.to_pylist(), dtype=object)
    return frame, others


def _xlsx(data: bytes) -> pd.DataFrame:
    """Read the first sheet of a workbook; no more is unpacked than its members state.

    Cells count, not bytes: a frame has all of them between the first and the last.
    """
    import pandas as pd

    with zipfile.ZipFile(BytesIO(data)) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > MAX_UNPACKED:
            raise ValueError(f"it unpacks to {size:,} bytes; split it into smaller files")
    with pd.ExcelFile(BytesIO(data)) as file:
        sheet = file.book.worksheets[0]
        sheet.reset_dimensions()  # which the file may state wrongly
        width = 0
        for n, row in enumerate(sheet.iter_rows(values_only=True), 1):
            filled = [column for column, cell in enumerate(row, 1) if cell is not None]
            width = max(filled[-1:] + [width])
            if filled and n * width > MAX_SHEET:
                raise ValueError(f"more than {MAX_SHEET:,} cells; split it into smaller files")
        # Empty cells alone are missing.
        return pd.read_excel(file, dtype=object, keep_default_na=False, na_values=[""])
