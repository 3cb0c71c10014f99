"""Files of dialogues made elsewhere: whatever is in them, they are read or refused in one line."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import DataError
from botchat.protocols.items import items
from botchat.seeds import dialogues
from botchat.seeds.dialogues import FORMATS
from botchat.workspace.rows import fields_of, rows

NAMES = st.sampled_from(
    ["messages", "conversations", "utterances", "turns", "choices", "question_id", "epoch", "id",
     "role", "from", "content", "value", "text", "type", "samples", "eval", "output", "attachments",
     "tool_calls", "answer_1", "answer_2", "winner", "score", "user", "assistant", "system"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | NAMES | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES, lambda of: st.lists(of, max_size=3) | st.dictionaries(NAMES, of, max_size=4)
)


def finite(value):
    """JSON lines of a value."""
    return json.dumps(value).replace("NaN", "1").replace("-Infinity", "2").replace("Infinity", "3")


def outcome(read):
    """What is read, or ``None`` and the one line."""
    try:
        return read(), ""
    except DataError as error:
        return None, str(error)


@given(st.lists(VALUES, max_size=3), st.none() | st.sampled_from(list(FORMATS)))
def test_any_records_are_read_or_refused_in_one_line(records, form):
    """Never another error; what is read has alternating utterances, none of them empty."""
    data = "\n".join(map(finite, records)).encode()
    found, refused = outcome(lambda: dialogues.read_dialogues({"x.jsonl": data}, form))
    if found is None:
        assert "x.jsonl" in refused
        assert "\n" not in refused
    else:
        assert all(text.strip() for one in found.told for text in one.utterances)
        assert found.read == len(found.told) + found.left_out.total()


@given(st.lists(VALUES, max_size=3))
def test_any_rows_are_items_or_refused_in_one_line(records):
    """The same of what `evaluate` reads."""
    data = "\n".join(map(finite, records)).encode()

    def read():
        listed = [(r.place, fields_of(r.fields, r.place)) for r in rows(data, "x.jsonl")]
        return items(listed, "x.jsonl")

    found, refused = outcome(read)
    assert "x.jsonl" in refused if found is None else len(found) == len(records)


def test_a_log_that_unpacks_to_too_much_is_refused(monkeypatch):
    """By what its members say, before they are unpacked; other members are passed over."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("summaries/1.json", "[" * 1000)
        archive.writestr("samples/1_epoch_1.json", " " * 10_000)
    monkeypatch.setattr(dialogues, "MAX_UNPACKED", 9_999)
    with pytest.raises(DataError, match="unpacks to 10,000 bytes"):
        dialogues.read_dialogues({"x.eval": buffer.getvalue()})


def zstandard(samples, crc=0):
    """An archive packed as Inspect packs now, which Python 3.11 cannot write: headers by hand."""
    buffer, packed = io.BytesIO(), {}
    with zipfile.ZipFile(buffer, "w") as archive:
        for n, sample in enumerate(samples):
            told = json.dumps(sample).encode()
            packed[name := f"samples/{n}_epoch_1.json"] = told
            archive.writestr(name, pyarrow.compress(told, codec="zstd", asbytes=True))
    data = bytearray(buffer.getvalue())
    for mark, method, at_crc in ((b"PK\3\4", 8, 14), (b"PK\1\2", 10, 16)):
        at = 0
        for told in packed.values():
            at = data.index(mark, at)
            struct.pack_into("<H", data, at + method, 93)
            struct.pack_into("<L", data, at + at_crc, zlib.crc32(told) ^ crc)
            struct.pack_into("<L", data, at + at_crc + 8, len(told))
            at += 1
    return bytes(data)


def test_a_log_is_read_as_inspect_packs_it():
    """With Zstandard, too; a damaged member is refused."""
    said = [{"role": "user", "content": "a" * 500}, {"role": "assistant", "content": "b"}]
    samples = [{"id": n, "epoch": 1, "messages": said} for n in range(2)]
    found = dialogues.read_dialogues({"x.eval": zstandard(samples)})
    assert [one.utterances for one in found.told] == [("a" * 500, "b")] * 2
    with pytest.raises(DataError, match=r"x.eval: not a readable zip archive .*is damaged"):
        dialogues.read_dialogues({"x.eval": zstandard(samples, crc=1)})
    with pytest.raises(DataError, match=r"x.eval: not a readable zip archive"):
        dialogues.read_dialogues(
            {"x.eval": zstandard(samples).replace(b"\x28\xb5\x2f\xfd", b"abcd")}
        )
