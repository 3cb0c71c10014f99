"""Segments: rows of a ledger as files named by their content, in any place."""

from __future__ import annotations

import gzip
import os
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.errors import BotChatError, ConfigError, DataError, MissingError
from botchat.interfaces import Decoding, Reply, Usage
from botchat.requests import Pulling, Rebuilding
from botchat.workspace import segments
from botchat.workspace import store as stores
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger, request_json, request_key
from botchat.workspace.store import Store


def put(ledger, text, number=0, cost=0.5, model="m"):
    """Store one reply; its key."""
    messages = [{"role": "user", "content": f"question {number}"}]
    request = request_json({"model": model}, messages, Decoding())
    reply = Reply("ok", text=text, usage=Usage(3, 2), cost_usd=cost)
    ledger.put(request_key(request), request, reply, model=model, stage="judge")
    return request_key(request)


def content(ledger):
    """Everything that a ledger answers, knows and was billed, in one order."""
    calls = "SELECT key, at, digest FROM {} ORDER BY key, at"
    return (
        ledger.select(calls.format("calls")),
        ledger.select(calls.format("superseded")),
        ledger.select("SELECT * FROM attempts ORDER BY key, at"),
        ledger.select("SELECT * FROM quirks ORDER BY identity"),
    )


@pytest.fixture
def ledgers(tmp_path):
    """Makes empty ledgers."""
    made = []

    def make():
        made.append(Ledger(tmp_path / f"l{len(made)}.sqlite3"))
        return made[-1]

    yield make
    for ledger in made:
        ledger.close()


def test_a_segment_carries_replies_tries_and_quirks(ledgers):
    """Another ledger answers the same; taking it again changes nothing and is worth nothing."""
    one, other = ledgers(), ledgers()
    key = put(one, "hello")
    one.add_attempt("k", Reply("transport", detail="gone"), model="m")
    one.set_quirks({"model": "m"}, {"parameters": {"seed": None}})
    segment = segments.since(one)
    assert segments.take(other, segment, learnt=True) == segments.Merged(1, 5, 0.5, 0)
    assert segments.take(other, segment, learnt=True) == segments.Merged()
    assert content(other) == content(one)
    assert other.get(key) == one.get(key)


def test_a_segment_since_a_mark_holds_what_came_after(ledgers):
    """Not what the mark knew."""
    one, other = ledgers(), ledgers()
    put(one, "old", 1)
    mark = segments.mark(one)
    key = put(one, "new", 2)
    segments.take(other, segments.since(one, mark))
    assert [call.key for call in other.calls("")] == [key]


def test_only_the_calls_that_are_named_travel(ledgers):
    """The answers that a shard may need."""
    one, other = ledgers(), ledgers()
    keys = [put(one, "x", n) for n in range(3)]
    segments.take(other, segments.of_calls(one, [keys[1], "no such call"]))
    assert [call.key for call in other.calls("")] == [keys[1]]


@settings(max_examples=20)
@given(order=st.permutations(range(4)), data=st.data())
def test_all_who_read_the_same_segments_agree(order, data):
    """Two answers to one question, one of them forgotten elsewhere: any order, any repetition."""
    written = [Ledger(None) for _ in range(4)]
    for n, ledger in enumerate(written):
        put(ledger, f"answer {n}", 0)
        put(ledger, f"own {n}", n)
    key = put(written[3], "forgotten", 9)
    segments.take(written[2], segments.since(written[3]), learnt=True)
    written[3].forget([key])
    made = [segments.since(ledger) for ledger in written]
    first, second = Ledger(None), Ledger(None)
    for segment in made:
        segments.take(first, segment, learnt=True)
    for n in [*order, *data.draw(st.lists(st.integers(0, 3), max_size=4))]:
        segments.take(second, made[n], learnt=True)
    assert content(first) == content(second)
    assert len(first.select("SELECT 1 FROM calls WHERE key=?", key)) == 0
    for ledger in (*written, first, second):
        ledger.close()


def test_what_was_forgotten_here_stays_forgotten(ledgers):
    """The store still has it as an answer."""
    one = ledgers()
    key = put(one, "wrong")
    segment = segments.since(one)
    one.forget([key])
    assert segments.take(one, segment, learnt=True) == segments.Merged()
    assert one.get(key) is None


def test_a_changed_segment_is_refused(ledgers):
    """No edited reply answers for a request that it does not belong to."""
    one = ledgers()
    put(one, "hello")
    lines = gzip.decompress(segments.since(one)).replace(b"question 0", b"question 1")
    with pytest.raises(DataError, match="does not match its key"):
        segments.take(ledgers(), gzip.compress(lines))
    with pytest.raises(DataError, match="no segment of a ledger"):
        segments.take(ledgers(), b"nothing of the kind")


@pytest.mark.parametrize("place", ["{}", "file://{}"])
def test_two_ledgers_become_one_through_a_store(ledgers, tmp_path, place):
    """Each leaves what the store lacks; who has pushed and pulled has everything, once."""
    store = Store(place.format(tmp_path / "a store"))
    one, other = ledgers(), ledgers()
    put(one, "a", 1)
    put(other, "b", 2)
    assert (segments.push(one, store), segments.push(other, store)) == (1, 1)
    assert segments.pull(one, store).calls == 1
    assert content(one) == content(other)
    before = segments.names(store)
    assert (segments.push(one, store), segments.push(other, store)) == (0, 0)
    assert segments.names(store) == before
    put(one, "c", 3)
    assert segments.push(one, store) == 1
    second = Store(str(tmp_path / "another"))
    assert segments.push(one, second) == 3


def test_a_store_is_filled_in_segments_of_bounded_size(ledgers, tmp_path, monkeypatch):
    """A ledger of any size is never held whole."""
    monkeypatch.setattr(segments, "MOST_ROWS", 4)
    store, one, other = Store(str(tmp_path / "s")), ledgers(), ledgers()
    for n in range(10):
        put(one, "x", n)
    assert segments.push(one, store) == 10
    assert len(segments.names(store)) == 3
    assert segments.pull(other, store).calls == 10


def test_many_segments_are_read_side_by_side_in_bounded_memory(ledgers, tmp_path, monkeypatch):
    """So many files at a time, or bytes; one that cannot be merged leaves nothing of itself."""
    store, one, other = Store(str(tmp_path / "s")), ledgers(), ledgers()
    for n in range(10):
        mark = segments.mark(one)
        put(one, "x", n)
        put(one, "fails" if n == 3 else "x", 10 + n)
        store.add("ledger/shard", segments.since(one, mark))
    read, whole, merged = [], Store.whole, Ledger._merged

    def fails(self, call):
        if call.text == "fails":
            raise ValueError("it does not fit")
        return merged(self, call)

    monkeypatch.setattr(stores, "BATCH_FILES", 4)
    monkeypatch.setattr(Store, "whole", lambda *told: read.append(whole(*told)) or read[-1])
    monkeypatch.setattr(Ledger, "_merged", fails)
    assert segments.pull(other, store).calls == 18
    assert [len(some) for some in read] == [4, 4, 2]
    monkeypatch.setattr(Ledger, "_merged", merged)
    monkeypatch.setattr(stores, "BATCH_BYTES", 1)
    assert segments.pull(other, store).calls == 2
    assert [len(some) for some in read[3:]] == [1, 0]
    assert content(other)[0] == content(one)[0]


def test_a_torn_segment_is_passed_over_until_it_is_whole(ledgers, tmp_path):
    """A writer that was killed does no harm, and who writes it again mends it."""
    store, one, other = Store(str(tmp_path / "s")), ledgers(), ledgers()
    put(one, "x")
    name = store.add("ledger/shard", segments.since(one))
    file = tmp_path / "s" / name
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    assert segments.pull(other, store).calls == 0
    store.add("ledger/shard", whole)
    assert segments.pull(other, store).calls == 1
    assert segments.names(store, "shard") == [name]
    store.remove(name)
    assert segments.names(store) == []


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere://x", "Protocol not known"),
        ("s3://user:secret@bucket", "a secret stands in it"),
    ],
)
def test_what_is_no_place_is_said_without_secrets(place, said):
    """Before anything is read."""
    with pytest.raises(ConfigError, match=said) as error:
        Store(place)
    assert "secret@" not in str(error.value)


def test_a_place_that_cannot_be_written_is_one_line(ledgers, tmp_path, monkeypatch):
    """Also where the system says that the folder to make it in is not there, as in /proc."""
    store, one = Store(str(tmp_path / "s")), ledgers()
    put(one, "x")

    def refuse(*_, **__):
        raise FileNotFoundError(2, "No such file or directory", "/proc/s")

    monkeypatch.setattr("os.makedirs", refuse)
    with pytest.raises(BotChatError, match=r"cannot use the store .*No such file"):
        segments.push(one, store)


def test_a_place_without_segments_is_no_place_to_read_from(tmp_path):
    """A misspelt one is said, and nothing is made there."""
    for reading in (Pulling, Rebuilding):
        with pytest.raises(MissingError, match=r"no segments in the store .*botchat ledger push"):
            reading(str(tmp_path / "typo")).run(Workspace(tmp_path / "w"))
    assert not (tmp_path / "typo").exists()


def test_a_damaged_call_is_replaced_by_the_segments(ledgers):
    """A row that was changed answers nothing; the segment brings it back."""
    one, other = ledgers(), ledgers()
    key = put(one, "right")
    segment = segments.since(one)
    segments.take(other, segment)
    with closing(Ledger(other.path)) as vandal:
        vandal._db.execute("UPDATE calls SET text='wrong'")
    assert segments.take(other, segment).calls == 1
    assert other.get(key).text == "right"


def test_what_is_asked_is_never_learnt_from_a_store(ledgers, tmp_path):
    """Quirks change request bodies (a limit left out, a field renamed): only one's own are used."""
    one, other, store = ledgers(), ledgers(), Store(str(tmp_path / "store"))
    put(one, "x")
    one.set_quirks({"model": "m"}, {"parameters": {"max_tokens": None, "temperature": "tools"}})
    handed = segments.since(one)
    store.add("ledger", handed)
    segments.push(one, store)
    segments.pull(other, store)
    assert len(other.select("SELECT key FROM calls")) == 1
    assert other.quirks({"model": "m"}) == {}
    assert b"quirks" in gzip.decompress(handed)
    packed = [Path(tmp_path / "store" / name).read_bytes() for name in segments.names(store)]
    assert sum(b"quirks" in gzip.decompress(data) for data in packed) == 1
    segments.take(other, handed, learnt=True)  # of one's own worker
    assert other.quirks({"model": "m"}) == one.quirks({"model": "m"})


@pytest.mark.parametrize(
    "line",
    [
        b'{"attempt":["k","m","yesterday","transport",500,"x",1.0]}',
        b'{"attempt":["k","m",1e300,"transport",500,"x",1.0]}',
        b'{"attempt":["k","m",1.0,"stolen",500,"x",1.0]}',
        b'{"attempt":["k","m",1.0,"transport",500,{"a":1},1.0]}',
        b'{"attempt":["k"]}',
        b'{"attempt":1}',
        b'{"quirks":[{}, "x"]}',
        b'{"attempt":' + b"[" * 100_000,
        b'{"quirks":["a","b"],"attempt":[]}',
    ],
)
def test_a_row_that_is_none_is_no_segment(ledgers, line):
    """Nothing is written that a later reader cannot read."""
    ledger = ledgers()
    with pytest.raises(DataError, match="no segment of a ledger"):
        segments.take(ledger, gzip.compress(line))
    assert content(ledger) == content(ledgers())


def test_what_is_too_large_or_no_file_stays_in_the_store(ledgers, tmp_path, monkeypatch, caplog):
    """A bomb is refused at the limit; a pipe, which never ends, and links are not opened."""
    monkeypatch.setattr(stores, "MOST_BYTES", 10_000)
    store, ledger = Store(str(tmp_path)), ledgers()
    bomb = store.add("ledger", gzip.compress(b" " * 1_000_000))
    segments.pull(ledger, store)
    assert "more than 10,000 bytes" in caplog.text
    store.remove(bomb)
    store.add("ledger", gzip.compress(os.urandom(20_000)))
    os.mkfifo(tmp_path / f"ledger/{'0' * 64}.jsonl.gz")
    (tmp_path / "ledger/loop").symlink_to(tmp_path)
    (tmp_path / f"ledger/{'1' * 64}.jsonl.gz").symlink_to("/etc/passwd")
    assert segments.names(store) == []
    segments.pull(ledger, store)
