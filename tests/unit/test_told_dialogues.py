"""Inspect's logs: read as they are packed now, refused where they are damaged or too large."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib

import pyarrow
import pytest

from botchat.errors import DataError
from botchat.seeds import dialogues


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
