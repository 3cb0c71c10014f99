"""Files of votes as columns: csv, tsv, JSON, JSON lines, parquet; known by what is in them.

What comes in is from strangers: nothing of it is run, and it must fit the limits below.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from botchat.errors import DataError
from botchat.verdicts import Indices
from botchat.workspace.rows import Record, csv_rows, json_rows, named, utf8

MOST_ROWS = 20_000_000
_MOST_UNPACKED = 2**31
"""Bytes of a parquet's columns."""
_MOST_OBJECTS = 2**28
"""Bytes of its columns of lists and objects: a dictionary of one long text is small in the file."""
_LOOKED_AT = 100
"""Rows of JSON that tell the names of columns."""


@dataclass(frozen=True)
class OpenTable:
    """A table that was opened: the names of its columns, and what reads some of them."""

    where: str
    names: tuple[str, ...]
    load: Callable[[Sequence[str]], Mapping[str, pa.ChunkedArray | list[Any]]]
    """Name -> the cells of that column; each as long as all others."""
    rows: Callable[[], Iterator[Record]] | None = None
    """The same as rows, to say where a fault is; ``None``: they have numbers only."""

    def fault(self, row: int, column: str, what: str) -> DataError:
        """The error that a row, counted from 0, has in a column, one line."""
        place = f"{self.where} row {row + 1}"
        if self.rows is not None:
            place = next(islice(self.rows(), row, None)).place
        return DataError(f"{place}: column {column}: {what}")


def opened(data: bytes, where: str) -> OpenTable:
    """The table in a file; ``where`` is its name, for messages.

    Raises:
        DataError: it is none; says where.
    """
    if data[:4] == b"PAR1":
        return _parquet(data, where)
    begins = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if begins in (b"[", b"{"):
        return _json(data, where)
    return _csv(data, where)


def texts(cells: pa.ChunkedArray | list[Any]) -> pa.ChunkedArray:
    """Cells as text, each different one stored once; null where there is none."""
    if isinstance(cells, list):
        cells = pa.chunked_array([[None if x is None else str(x) for x in cells]], pa.string())
    if pa.types.is_dictionary(cells.type):
        return cells
    if not pa.types.is_string(cells.type):
        try:
            cells = cells.cast(pa.string())
        except pa.ArrowException:  # lists, objects
            cells = pa.chunked_array([[str(x) for x in cells.to_pylist()]], pa.string())
    return cells.dictionary_encode()


def names_in(columns: Sequence[pa.ChunkedArray]) -> tuple[tuple[str, ...], list[Indices]]:
    """Distinct stripped texts of some columns, as they appear, and each column by number.

    ``columns``: as of `texts`. The number of what is null or empty is -1.
    """
    chunks = [chunk for column in columns for chunk in column.chunks if len(chunk)]
    kind = pa.dictionary(pa.int32(), pa.string())
    whole = pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind).unify_dictionaries()
    told = whole.chunk(0).dictionary if whole.num_chunks else pa.array([], pa.string())
    parts = [chunk.indices.fill_null(len(told)).to_numpy(zero_copy_only=False) for chunk in
             whole.chunks]  # fmt: skip
    words: dict[str, int] = {"": -1}
    place = np.empty(len(told) + 1, np.intp)
    place[-1] = -1
    stripped = pc.utf8_trim_whitespace(told).to_pylist()
    for i, word in enumerate(stripped):
        place[i] = -1 if not word else words.setdefault(word, len(words) - 1)
    numbers = place[np.concatenate(parts)] if parts else place[:0]
    ends = accumulate(map(len, columns), initial=0)
    del words[""]
    return tuple(words), [numbers[a:b] for a, b in pairwise(ends)]


def objects(cells: pa.ChunkedArray | list[Any]) -> list[Any]:
    """Cells as Python values; what csv has as JSON is read."""
    values = cells if isinstance(cells, list) else cells.to_pylist()
    return [_value(one) if isinstance(one, str) and one[:1] in "[{" else one for one in values]


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def _counted(rows: int, where: str) -> None:
    if rows > MOST_ROWS:
        raise DataError(f"{where}: {rows:,} rows; at most {MOST_ROWS:,} are read: split it")


def _csv(data: bytes, where: str) -> OpenTable:
    if b"\0" in data[:4096] or data[:2] in (b"PK", b"\x1f\x8b"):
        raise DataError(f"{where}: neither csv, tsv, JSON nor parquet; save or unpack it as one")
    data = data.removeprefix(b"\xef\xbb\xbf")
    # Our own tables end with their signature in comments.
    while (at := data.rstrip(b"\n").rfind(b"\n") + 1) and data[at : at + 2] == b"# ":
        data = data[:at]
    header = utf8(data.partition(b"\n")[0], where)
    separator = max(",;\t", key=header.count)
    names = [
        name.strip() for name in next(csv.reader(header.splitlines(), delimiter=separator), [])
    ]
    if len(names) < 2:
        if not data.strip():
            raise DataError(f"{where}: the file is empty; its first row names columns")
        raise DataError(f"{where}: row 1: {header[:60]!r} names no columns; the first row must")

    def rows() -> Iterator[Record]:
        return csv_rows(utf8(data, where), where)

    def load(wanted: Sequence[str]) -> Mapping[str, pa.ChunkedArray]:
        try:
            read = pa_csv.read_csv(
                pa.py_buffer(data),
                pa_csv.ReadOptions(column_names=[str(i) for i in range(len(names))], skip_rows=1),
                pa_csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in data),
                pa_csv.ConvertOptions(
                    column_types={str(i): pa.string() for i in range(len(names))},
                    include_columns=[str(names.index(name)) for name in wanted],
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowException as error:
            deque(rows(), 0)  # says in which line the fault is
            told = " ".join(str(error).split())[:200]
            raise DataError(f"{where}: not readable as csv: {told}") from None
        _counted(len(read), where)
        return {name: read[str(names.index(name))] for name in wanted}

    return OpenTable(where, tuple(names), load, rows)


def _json(data: bytes, where: str) -> OpenTable:
    data = data.removeprefix(b"\xef\xbb\xbf")
    array = data.lstrip()[:1] == b"["

    def load(wanted: Sequence[str]) -> Mapping[str, list[Any]]:
        keys = [f"c{i}" for i in range(len(wanted))]
        vote = msgspec.defstruct(
            "Vote", [(key, Any, None) for key in keys], rename=dict(zip(keys, wanted, strict=True))
        )
        found = _objects(data, where, vote, array)
        _counted(len(found), where)
        return {
            name: [getattr(row, key) for row in found]
            for key, name in zip(keys, wanted, strict=True)
        }

    head = data if array else b"\n".join(data.split(b"\n", _LOOKED_AT)[:_LOOKED_AT])
    begun = _objects(head, where, dict[str, msgspec.Raw], array)[:_LOOKED_AT]
    names = dict.fromkeys(name for row in begun for name in row)
    return OpenTable(where, tuple(names), load, lambda: json_rows(data, where))


def _objects(data: bytes, where: str, row: Any, array: bool) -> list[Any]:
    decoder = msgspec.json.Decoder(list[row] if array else row)
    try:
        found: list[Any] = decoder.decode(data) if array else decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        for one in json_rows(data, where):
            named(one.fields, one.place)
        raise DataError(f"{where}: not a JSON list of objects ({error})") from None
    return found


def _parquet(data: bytes, where: str) -> OpenTable:
    def wrong(error: Exception) -> DataError:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return DataError(f"{where}: not readable as parquet: {told}")

    try:
        file = pa_parquet.ParquetFile(pa.BufferReader(data))
        names = tuple(file.schema_arrow.names)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        columns = [group.column(i) for group in groups for i in range(group.num_columns)]
        sizes = [(c.path_in_schema.partition(".")[0], c.total_uncompressed_size) for c in columns]
        n_rows = file.metadata.num_rows
    except Exception as error:  # whatever pyarrow raises on a damaged file
        raise wrong(error) from None
    _counted(n_rows, where)

    def load(wanted: Sequence[str]) -> Mapping[str, pa.ChunkedArray]:
        if (unpacked := sum(size for name, size in sizes if name in wanted)) > _MOST_UNPACKED:
            raise DataError(f"{where}: unpacks to {unpacked:,} bytes; split it")
        try:
            types = {name: file.schema_arrow.field(name).type for name in wanted}
            is_text = (pa.types.is_string, pa.types.is_large_string)
            flat = [name for name, kind in types.items() if any(one(kind) for one in is_text)]
            plain = [name for name, kind in types.items() if pa.types.is_primitive(kind)] + flat
            whole = pa_parquet.ParquetFile(pa.BufferReader(data), read_dictionary=flat)
            read = whole.read(columns=plain)
            read.validate(full=True)  # texts may be no UTF-8
            others = _bounded(whole, [name for name in wanted if name not in plain], where)
            return {name: (read if name in plain else others)[name] for name in wanted}
        except DataError:
            raise
        except Exception as error:  # as above
            raise wrong(error) from None

    return OpenTable(where, names, load)


def _bounded(file: pa_parquet.ParquetFile, wanted: list[str], where: str) -> pa.Table:
    """Some columns, read a few rows at a time, as long as they are not too many bytes."""
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    longest = max((group.total_byte_size for group in groups), default=0)  # of one cell
    rows = max(1, min(4096, _MOST_OBJECTS // max(1, longest)))
    parts, held = [], 0
    for part in file.iter_batches(rows, columns=wanted):
        parts.append(part)
        held += part.nbytes
        if held > _MOST_OBJECTS:
            raise DataError(f"{where}: lists and objects of more than {held:,} bytes; split it")
    return pa.Table.from_batches(parts, pa.schema([file.schema_arrow.field(n) for n in wanted]))
