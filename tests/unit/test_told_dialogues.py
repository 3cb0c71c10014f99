"""Files of dialogues made elsewhere: whatever is in them, they are read or refused in one line."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import DataError
from botchat.protocols.items import items
from botchat.seeds import dialogues
from botchat.seeds.dialogues import FORMATS
from botchat.seeds.spreadsheets import fields_of, table_rows

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
    found, refused = outcome(lambda: dialogues.read({"x.jsonl": data}, form))
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
        rows = [(r.place, fields_of(r.fields, r.place)) for r in table_rows(data, "x.jsonl")]
        return items(rows, "x.jsonl")

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
        dialogues.read({"x.eval": buffer.getvalue()})
