"""A ledger that was changed, damaged or cut: what is wrong is said, what is right is kept."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from contextlib import closing

import pytest

from botchat.cli.main import main
from botchat.errors import BotChatError, DataError
from botchat.interfaces import Decoding, Reply, Usage
from botchat.workspace.accounts import stats
from botchat.workspace.export import export, import_
from botchat.workspace.ledger import Ledger, request_json, request_key
from tests.unit.test_ledger import put

N = 120
PAGE = 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed ledger of `N` calls: its bytes, and the lines of its export by key."""
    folder = tmp_path_factory.mktemp("whole")
    with closing(Ledger(folder / "l.sqlite3")) as ledger:
        for n in range(N):
            ask = [{"role": "user", "content": f"question {n} " * (1 + n % 50)}]
            put(
                ledger, f"answer {n} é" * (n % 70), messages=ask, raw=f"{n:x}" * (50 * n), model="m"
            )
        export(ledger, folder / "all.jsonl")
    return (folder / "l.sqlite3").read_bytes(), by_key(folder / "all.jsonl")


def by_key(path):
    """Key -> line of an export."""
    return {json.loads(line)["key"]: line for line in path.read_text().splitlines()}


def workspace(folder, data):
    """A workspace with this ledger; its path."""
    path = folder / ".botchat" / "ledger.sqlite3"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def edit(path, sql, *values):
    """Change the ledger behind its back."""
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(sql, values).rowcount == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", "not what it said"),
        ("text", b"bytes"),
        ("outcome", "filtered"),
        ("finish_reason", None),
        ("finish_reason", "length"),
        ("prompt_tokens", 4),
        ("completion_tokens", None),
        ("cached_tokens", 0),
        ("cache_write_tokens", 1),
        ("cost_usd", 0.0),
        ("latency_s", 0.25),
        ("at", 1.0),
        ("model", "another"),
        ("stage", "generate"),
        ("detail", "changed"),
        ("sent", "{}"),
        ("sent", "no json"),
        ("raw", b"no zlib"),
        ("raw", 5),
        ("request", b""),
        ("digest", "0" * 64),
    ],
)
def test_a_changed_row_is_found_and_not_used(tmp_path, column, value):
    """Any column: one line with the key and what to do; the other calls answer as before."""
    path = tmp_path / "l.sqlite3"
    with closing(Ledger(path)) as ledger:
        facts = {"finish_reason": "stop", "usage": Usage(3, 2, 1), "cost_usd": 0.5}
        key = put(ledger, latency_s=1.0, raw="{}", sent={"layout": "natural"}, **facts)
        other = put(ledger, "two", messages=[{"role": "user", "content": "2"}])
    edit(path, f"UPDATE calls SET {column}=? WHERE key=?", value, key)
    with closing(Ledger(path)) as ledger:
        with pytest.raises(DataError, match=f"the call {key} is not as it was stored") as caught:
            ledger.get(key)
        assert "botchat ledger forget --damaged" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert ledger.get(other).text == "two"
        with pytest.raises(DataError, match=r"damaged and left out \(1: .* other 1 are in"):
            export(ledger, tmp_path / "out.jsonl")
    assert list(by_key(tmp_path / "out.jsonl")) == [other]


def test_a_key_that_was_swapped_is_found(tmp_path):
    """An answer to one question never answers another."""
    path = tmp_path / "l.sqlite3"
    with closing(Ledger(path)) as ledger:
        one = put(ledger, "one")
        two = put(ledger, "two", messages=[{"role": "user", "content": "2"}])
    with closing(sqlite3.connect(path)) as db, db:
        for old, new in ((one, "x"), (two, one), ("x", two)):
            db.execute("UPDATE calls SET key=? WHERE key=?", (new, old))
    with closing(Ledger(path)) as ledger:
        for key in (one, two):
            with pytest.raises(DataError, match="not as it was stored"):
                ledger.get(key)


def test_a_damaged_call_is_asked_again_or_brought_back(tmp_path, capsys, whole):
    """`forget --damaged` makes it askable and keeps what it cost; an archive replaces it."""
    data, lines = whole
    path, archive = workspace(tmp_path, data), tmp_path / "all.jsonl"
    archive.write_text("".join(f"{line}\n" for line in lines.values()))
    first, second, *_ = lines
    for key in (first, second):
        edit(path, "UPDATE calls SET text='changed' WHERE key=?", key)
    folder = ["--dir", str(tmp_path)]
    assert main(["ledger", "import", str(archive), "--json", *folder]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": str(archive),
        "added": 2,
        "known": N - 2,
    }
    with closing(Ledger(path, readonly=True)) as ledger:
        export(ledger, tmp_path / "again.jsonl")
    assert by_key(tmp_path / "again.jsonl") == lines

    edit(path, "UPDATE calls SET text='changed' WHERE key=?", second)
    assert main(["ledger", "forget", "--damaged", "--json", *folder]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"calls": 1, "dialogues": 0, "judgments": 0}
    with closing(Ledger(path)) as ledger:
        assert ledger.get(second) is None
        assert [(row.calls, row.superseded) for row in stats(ledger)] == [(N - 1, False), (1, True)]


def test_a_row_changed_in_any_byte_is_never_used(tmp_path, whole):
    """One flipped bit anywhere in the pages of rows: what is exported is as it was."""
    data, lines = whole
    path, out = tmp_path / "l.sqlite3", tmp_path / "out.jsonl"
    lost = []
    for n in range(40):
        place = 5 * PAGE + (len(data) - 5 * PAGE) * (2 * n + 1) // 80
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << n % 8]) + data[place + 1 :])
        out.unlink(missing_ok=True)
        with contextlib.suppress(DataError), closing(Ledger(path, readonly=True)) as ledger:
            export(ledger, out)
        found = by_key(out)
        assert found.items() <= lines.items()
        lost.append(N - len(found))
    assert max(lost) <= 20  # an inner page of the index, or of the table
    assert sorted(lost)[len(lost) // 2] <= 1
    assert sum(lost) > 0


@pytest.mark.parametrize(("share", "fill"), [(0.5, b""), (0.7, b"Z"), (0.95, b"\0")])
def test_of_a_cut_ledger_the_rest_is_exported(tmp_path, capsys, whole, share, fill):
    """Truncated or overwritten from somewhere on: exit 1, one line, and every row before it."""
    data, lines = whole
    keep = int(share * len(data))
    path = workspace(tmp_path, data[:keep] + fill * (len(data) - keep))
    out = tmp_path / "out.jsonl"
    assert main(["ledger", "export", str(out), "--dir", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"calls of the ledger {path} are damaged and left out (" in error
    found = by_key(out)
    assert found.items() < lines.items()
    assert len(found) > 0.4 * share * N  # rows of different lengths, and empty tables
    assert f"the other {len(found)} are in {out}" in error
    assert not [*tmp_path.glob(".*.part")]
    other = tmp_path / "other.sqlite3"
    with closing(Ledger(other)) as ledger:
        assert import_(ledger, out) == (len(found), 0)


def test_a_damaged_index_or_page_is_said_and_the_rest_is_exported(tmp_path, whole):
    """The file is damaged, so the exit is not 0; what a run asks of it ends with one line."""
    data, lines = whole
    path, out = tmp_path / "l.sqlite3", tmp_path / "out.jsonl"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name='sqlite_autoindex_calls_1'"
        ((root,),) = db.execute(query).fetchall()
    path.write_bytes(data[: (root - 1) * PAGE] + b"Z" * PAGE + data[root * PAGE :])
    with closing(Ledger(path, readonly=True)) as ledger:
        with pytest.raises(DataError, match=rf"\(1: a part of the file\); the other {N} are in"):
            export(ledger, out)
        assert ledger.select("SELECT count(*) FROM superseded") == [(0,)]
    assert by_key(out) == lines
    data, lines = whole
    path = tmp_path / "l.sqlite3"
    path.write_bytes(data[: 9 * PAGE] + b"Z" * (len(data) - 9 * PAGE))
    with closing(Ledger(path)) as ledger, pytest.raises(DataError) as caught:  # noqa: PT012
        for key in lines:
            ledger.get(key)
    assert "botchat ledger export FILE" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("old", [False, True])
def test_every_page_but_the_first_three_may_be_damaged(tmp_path, whole, old):
    """Page by page: at most the rows on it are lost, and each of them is named."""
    data, lines = whole
    path, out = tmp_path / "l.sqlite3", tmp_path / "out.jsonl"
    path.write_bytes(data)
    if old:
        of_before(path)
        data = path.read_bytes()
    for page in range(3, len(data) // PAGE):
        path.write_bytes(data[: page * PAGE] + b"Z" * PAGE + data[(page + 1) * PAGE :])
        out.unlink(missing_ok=True)
        said = None
        with closing(Ledger(path, readonly=True)) as ledger:
            try:
                export(ledger, out)
            except DataError as error:
                said = str(error)
        found = by_key(out)
        assert found.items() <= lines.items()
        assert len(found) > N - 30
        named = [key for key in lines if said and key[:12] in said]
        assert not set(named) & set(found)
        assert said is not None or found == lines
        if found != lines:
            assert f"({N - len(found)}: " in said


def test_an_archive_is_not_replaced_by_less(tmp_path, capsys, whole):
    """Exporting a damaged ledger over its own archive keeps the archive, to the byte."""
    data, lines = whole
    path, out = workspace(tmp_path, data), tmp_path / "all.jsonl.gz"
    command = ["ledger", "export", str(out), "--dir", str(tmp_path)]
    assert main(command) == 0
    before = out.read_bytes()
    edit(path, "UPDATE calls SET text='changed' WHERE key=?", next(iter(lines)))
    assert main(command) == 1
    error = capsys.readouterr().err
    assert f"{out} may hold them, so it is kept; export the other {N - 1} to another" in error
    assert out.read_bytes() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == [".botchat", "all.jsonl.gz"]


def test_an_export_that_fails_leaves_the_one_before(tmp_path, whole, monkeypatch):
    """A full disk in the middle: the old file stays, and no part of a new one."""
    data, _ = whole
    path, out = tmp_path / "l.sqlite3", tmp_path / "all.jsonl"
    path.write_bytes(data)
    out.write_text("the old one")

    def full(*_, **__):
        yield from ()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Ledger, "readable", full)
    said = r"cannot write .*: No space left on device"
    with closing(Ledger(path, readonly=True)) as ledger, pytest.raises(BotChatError, match=said):
        export(ledger, out)
    assert out.read_text() == "the old one"
    assert not [*tmp_path.glob(".*.part")]


def of_before(path):
    """Make a ledger as earlier versions made it: no digests, nothing superseded."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE superseded")
        for column in ("digest", "cache_write_tokens"):
            db.execute(f"ALTER TABLE calls DROP COLUMN {column}")


def test_an_older_ledger_is_read_without_being_changed(tmp_path, whole):
    """Columns and tables that it lacks are empty; export and stats need no writing."""
    data, lines = whole
    path, out = tmp_path / "l.sqlite3", tmp_path / "all.jsonl"
    path.write_bytes(data)
    of_before(path)
    before = path.read_bytes()
    with closing(Ledger(path, readonly=True)) as ledger:
        assert [(row.calls, row.cache_write_tokens) for row in stats(ledger)] == [(N, 0)]
        assert export(ledger, out) == N
        assert ledger.get(next(iter(lines))) is not None
        assert [*ledger.recent("m", "judge", 5)] == []
    assert by_key(out) == lines
    assert path.read_bytes() == before


def test_an_older_ledger_goes_on_and_its_new_rows_have_digests(tmp_path, whole):
    """Also one that is damaged: the rows that can be read are used as before."""
    data, lines = whole
    path, answered = tmp_path / "l.sqlite3", 0
    path.write_bytes(data)
    of_before(path)
    old = path.read_bytes()
    with closing(Ledger(path)) as ledger:
        key = put(ledger, "new", messages=[{"role": "user", "content": "another"}])
        assert export(ledger, tmp_path / "all.jsonl") == N + 1
    assert lines.items() < by_key(tmp_path / "all.jsonl").items()
    edit(path, "UPDATE calls SET text='changed' WHERE key=?", key)
    with closing(Ledger(path)) as ledger, pytest.raises(DataError, match=key):
        ledger.get(key)
    for log in tmp_path.glob("l.sqlite3-*"):
        log.unlink()
    place = old.rindex(b"answer 69 ") // PAGE * PAGE
    path.write_bytes(old[:place] + b"Z" * PAGE + old[place + PAGE :])
    with closing(Ledger(path)) as ledger:
        for key in lines:
            with contextlib.suppress(DataError):
                answered += ledger.get(key) is not None
    assert N - 20 < answered < N


@pytest.mark.parametrize("reply_text", ["half \ud83d of one", "\ud800"])
def test_halves_of_characters_lose_no_reply(tmp_path, reply_text):
    """What no file takes is stored as a question mark; the raw body has it as it was."""
    with closing(Ledger(tmp_path / "l.sqlite3")) as ledger:
        key = put(ledger, reply_text, raw=reply_text, detail=reply_text)
        found = ledger.get(key)
        assert found.text == reply_text.encode("utf-8", "replace").decode()
        assert found.raw == reply_text


IMPOSSIBLE = [2**63, 2**64, 10**5000, -1, True, 1.5, float("nan"), "12", 10**13]


@pytest.mark.parametrize("tokens", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_a_count_that_is_none_loses_no_reply(tmp_path, tokens):
    """A paid reply is stored whatever the endpoint counts; the impossible is unknown."""
    with closing(Ledger(tmp_path / "l.sqlite3")) as ledger:
        for n in range(4):
            counts = [None, None, None, None]
            counts[n] = tokens
            key = put(
                ledger, "said", messages=[{"role": "user", "content": f"{n}"}], usage=Usage(*counts)
            )
            assert ledger.get(key).usage == Usage()
            assert ledger.get(key).text == "said"
        (row,) = stats(ledger)
        assert (row.calls, row.prompt_tokens, row.completion_tokens) == (4, 0, 0)
        assert export(ledger, tmp_path / "out.jsonl") == 4
        with closing(Ledger(None)) as other:
            assert import_(other, tmp_path / "out.jsonl") == (4, 0)


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -0.5])
def test_a_cost_that_is_none_is_unknown(tmp_path, cost):
    """Neither stored nor added up; minus zero is zero."""
    with closing(Ledger(tmp_path / "l.sqlite3")) as ledger:
        key = put(ledger, cost_usd=cost, latency_s=cost)
        found = ledger.get(key)
        assert (found.cost_usd, found.latency_s) == (None, 0.0)
        nothing = put(ledger, messages=[{"role": "user", "content": "2"}], cost_usd=-0.0)
        assert ledger.get(nothing).cost_usd == 0.0


def test_absurd_counts_of_an_older_version_are_unknown(tmp_path):
    """They neither overflow the accounts nor stop an export."""
    path = tmp_path / "l.sqlite3"
    with closing(Ledger(path)) as ledger:
        keys = [put(ledger, messages=[{"role": "user", "content": f"{n}"}]) for n in range(3)]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE calls SET prompt_tokens=?, cost_usd=-1.0, digest=NULL", (2**63 - 1,))
    with closing(Ledger(path)) as ledger:
        assert stats(ledger)[0].calls == 3
        assert {ledger.get(key).usage.prompt_tokens for key in keys} == {None}
        export(ledger, tmp_path / "out.jsonl")
        with closing(Ledger(None)) as other:
            assert import_(other, tmp_path / "out.jsonl") == (3, 0)


def test_a_batch_brings_no_forgotten_answer_back(tmp_path):
    """A call that is forgotten is in no noted batch any more: it is sent, not collected."""
    with closing(Ledger(tmp_path / "l.sqlite3")) as ledger:
        request = request_json({"model": "m"}, [{"role": "user", "content": "hi"}], Decoding())
        key = request_key(request)
        ledger.note_batch("tag", [key], model="m", sent={})
        ledger.put(key, request, Reply("filtered"), model="m", stage="judge")
        assert ledger.forget([key]) == 1
        assert ledger.get(key) is None
        assert ledger.batches_of([key]) == []
        assert ledger.n_batched(0.0) == 0
        ledger.put(key, request, Reply("ok", "said"), model="m", stage="judge")
        assert ledger.get(key).text == "said"
        assert ledger.forget([key, "0" * 64]) == 1
