"""The call ledger: keys, replies, accounts, calls of a published run."""

import asyncio
import gzip
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.errors import BotChatError, DataError
from botchat.interfaces import Decoding, Quirks, Reply, Usage
from botchat.pipeline.ledger import record_provenance
from botchat.pipeline.plan import Plan, PlannedCalls, minutes_note, resolution
from botchat.pipeline.resolved import ResolvedRun, SeedSet
from botchat.pipeline.session import LiveModels, Session
from botchat.pipeline.spending import NO_LIMITS, JudgeName, Meter
from botchat.protocols.catalogue import RANKING
from botchat.records import Dialogue, Seed, Utterance
from botchat.workspace import ledger as storage
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger, identity_key, read_calls, request_json, request_key
from botchat.workspace.usage import call_costs, call_facts, keep_pace, share, stats
from tests.boards import judgment
from tests.rows import rows

ASK = [{"role": "user", "content": "hi"}]


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger."""
    made = Ledger(tmp_path / "l.sqlite3")
    yield made
    made.close()


def put(ledger, text="hello", model="m", messages=ASK, stage="judge", **facts):
    """Store one reply; its key."""
    request = request_json({"model": model}, messages, Decoding())
    reply = Reply(facts.pop("outcome", "ok"), text=text, **facts)

    async def keep():
        await ledger.keep(request_key(request), request, reply, model=model, stage=stage)

    asyncio.run(keep())
    return request_key(request)


@settings(max_examples=10)
@given(text=st.text().filter(lambda t: not any(0xD800 <= ord(c) < 0xE000 for c in t)))
def test_a_reply_comes_back_as_it_was(text, tmp_path_factory):
    """Whatever the endpoint said is returned unchanged, raw body included."""
    ledger = Ledger(tmp_path_factory.mktemp("l") / "l.sqlite3")
    key = put(ledger, text, raw=text * 2, usage=Usage(3, 2, 1), cost_usd=0.5, latency_s=1.5)
    found = ledger.get(key)
    ledger.close()
    assert found is not None
    assert (found.text, found.raw, found.usage) == (text, text * 2, Usage(3, 2, 1))
    assert (found.cost_usd, found.latency_s, found.key) == (0.5, 1.5, key)


def test_the_first_answer_stays_and_what_is_refused_is_remembered(ledger):
    """A second answer to a request never replaces the first; quirks are kept by identity."""
    key = put(ledger, "first")
    put(ledger, "second")
    assert ledger.get(key).text == "first"
    ledger.set_quirks(identity_key({"model": "m"}), Quirks(layout="merge-leading"))
    assert ledger.quirks(identity_key({"model": "m"})) == Quirks(layout="merge-leading")
    assert ledger.quirks(identity_key({"model": "n"})) == Quirks()


@pytest.mark.parametrize(
    ("identity", "messages", "decoding"),
    [
        ({"model": "other"}, ASK, Decoding()),
        ({"model": "m"}, [{"role": "user", "content": "ho"}], Decoding()),
        ({"model": "m"}, [{"role": "system", "content": "hi"}], Decoding()),
        ({"model": "m"}, ASK, Decoding(temperature=None)),
        ({"model": "m"}, ASK, Decoding(max_tokens=5)),
        ({"model": "m"}, ASK, Decoding(sample=1)),
    ],
)
def test_everything_that_decides_an_answer_is_in_the_key(identity, messages, decoding):
    """Another model, text, role or decoding is another call."""
    base = request_key(request_json({"model": "m"}, ASK, Decoding()))
    assert request_key(request_json(identity, messages, decoding)) != base


def test_keys_of_earlier_ledgers_stay():
    """Those of 0.1.0 answer every call they hold; the canonical request has one byte order."""
    assert request_json({"model": "m"}, ASK, Decoding(0.7, 50, 1)) == (
        b'{"identity":{"model":"m"},"messages":[{"content":"hi","role":"user"}],'
        b'"sampling":{"max_tokens":50,"sample":1,"temperature":0.7},"schema":1}'
    )
    assert request_key(request_json({"model": "m"}, ASK, Decoding())) == (
        "4cafa403c22e4585b87ff22b5de86c9f7429f15128aa732b122eee10330db579"
    )
    a = request_json({"x": 1, "y": 2}, ASK, Decoding())
    b = request_json({"y": 2, "x": 1}, [{"content": "hi", "role": "user"}], Decoding())
    assert a == b


def test_accounts_keep_unknown_prices_unknown(ledger):
    """Known money is summed, unknown never taken as free."""
    put(ledger, usage=Usage(10, 5, None), cost_usd=0.25)
    put(ledger, messages=[{"role": "user", "content": "2"}], usage=Usage(10, 5, 4))
    put(ledger, model="n", outcome="refused")
    ledger.add_attempt("k", Reply("transport", detail="HTTP 500"), model="m", status=500)
    first, second, never = stats(ledger)
    assert (first.model, first.calls, first.prompt_tokens, first.cached_tokens) == ("m", 2, 20, 4)
    assert (first.cost_usd, first.unpriced_calls, never.failed_attempts) == (0.25, 1, 1)
    assert (second.cost_usd, second.outcomes) == (None, {"refused": 1})


def test_failed_attempts_are_counted_in_the_stage_of_their_call(ledger):
    """Those of a call that was never answered have none."""
    key = put(ledger, stage="generate")
    ledger.add_attempt(key, Reply("transport"), model="m", status=None)
    ledger.add_attempt("never answered", Reply("transport"), model="m", status=None)
    assert [(one.stage, one.failed_attempts) for one in stats(ledger)] == [("generate", 1), ("", 1)]


@pytest.mark.parametrize(("n", "calls", "line"), rows("a_plan_takes_as_long_as_the_last_run"))
def test_a_plan_takes_as_long_as_the_last_run(ledger, monkeypatch, n, calls, line):
    """Bots count for nothing, and neither do pauses between runs."""
    for i in range(n + 5):
        monkeypatch.setattr(storage.time, "time", lambda: 1000.0)
        put(ledger, messages=[{"role": "user", "content": f"{i}"}], latency_s=float(i < n))
    monkeypatch.setattr(storage.time, "time", lambda: 1060.0)
    keep_pace(ledger, 1000.0)
    keep_pace(ledger, 2000.0)
    assert minutes_note(ledger, calls) == line
    assert minutes_note(Ledger(None), 600) == []


@pytest.mark.parametrize(
    ("models", "topics", "length", "usd", "is_fresh", "protocols", "lines"),
    rows("a_plan_tells_what_it_can_show"),
)
def test_a_plan_tells_what_it_can_show(models, topics, length, usd, is_fresh, protocols, lines):
    """From its topics and models, at the price of a run of which nothing is stored."""
    seeds = [Seed(f"s{i}", ("a",) * length, topic=f"t{i % topics}") for i in range(40)]
    asked = [protocol for protocol in RANKING if protocol.name in protocols]
    seed_set = SeedSet("s", seeds)
    run = ResolvedRun(Workspace("."), seed_set, NO_LIMITS, models=models, protocols=asked)
    planned = Plan([PlannedCalls("a", "generate", 1, 1, usd, True)], [], [], is_fresh)
    assert resolution(run, planned) == lines


@pytest.mark.parametrize(("judge", "reach", "points"), [("j", 47.8, 14), ("j", 23.9, 7),
                                                        ("other", 23.9, 14)])  # fmt: skip
def test_a_plan_knows_how_far_the_verdicts_so_far_vary(tmp_path, judge, reach, points):
    """Half the interval, half the gap; verdicts of another judge tell nothing."""
    workspace = Workspace(tmp_path)
    board = {"rows": [{"model": name, "bt_n16": 1000.0, "bt_n16_high": 1000 + reach, "complete": 40}
                      for name in "ab"], "signatures": [], "judge": {"name": "j"}}  # fmt: skip
    workspace.out("s").mkdir(parents=True)
    (workspace.out("s") / "leaderboard.json").write_bytes(msgspec.json.encode(board))
    seed_set = SeedSet("s", [Seed(f"s{i}", tuple("abcd")) for i in range(40)])
    asked = JudgeName(judge)
    run = ResolvedRun(workspace, seed_set, NO_LIMITS, models=["a", "b"], judge=asked)
    line, _ = resolution(run, Plan([], [], [], True))
    assert line.startswith(f"40 dialogues tell two models apart from about {points} points")
    assert line.endswith("by the verdicts so far.") == (judge == "j")


def test_the_calls_of_a_published_run_answer(ledger, tmp_path):
    """Another machine's ledger answers them; a second time adds nothing, also none forgotten."""
    keys = [put(ledger, f"t{n}", messages=[{"role": "user", "content": str(n)}]) for n in range(5)]
    path = tmp_path / "calls.jsonl.gz"
    path.write_bytes(gzip.compress(msgspec.json.Encoder().encode_lines(ledger.calls(""))))
    other = Ledger(tmp_path / "other.sqlite3")
    assert other.add_calls(call.row() for call in read_calls(path)) == 5
    assert [other.get(key) for key in keys] == [ledger.get(key) for key in keys]
    assert other.forget(keys[:2]) == 2
    assert other.add_calls(call.row() for call in read_calls(path)) == 5
    assert other.missing(keys) == {*keys[:2]}
    other.close()


def test_something_else_is_not_a_ledger(tmp_path):
    """A file that is no ledger, or of another schema, is named."""
    path = tmp_path / "l.sqlite3"
    path.write_bytes(b"not a database at all, surely" * 40)
    with pytest.raises(DataError, match="cannot read the ledger") as refused:
        Ledger(path)
    assert refused.tb  # which would keep it open
    if (held := Path("/proc/self/fd")).exists():
        assert path.resolve() not in {one.resolve() for one in held.iterdir()}


@pytest.mark.parametrize("readonly", [False, True])
def test_a_ledger_of_another_version_is_named_and_left_alone(tmp_path, readonly):
    """Not one byte of it changes."""
    path = tmp_path / "l.sqlite3"
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE meta SET value = '99'")
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"^the ledger .* has schema '99', .* reads 1; use the"):
        Ledger(path, readonly=readonly)
    assert path.read_bytes() == before


def test_a_call_counts_once_in_all_and_what_is_not_known_of_each_is_not_known(ledger):
    """Contestants may share calls; an imported utterance has none; a lost call has no price."""
    prices = (1.0, 2.0, 4.0, 0.0, None)
    a, b, c, free, unknown = [put(ledger, model=f"m{usd}", cost_usd=usd) for usd in prices]
    spoken = {"own": [a, b], "shared": [b], "free": [free], "human": []}
    odd = {"imported": [""], "unpriced": [a, unknown], "lost": [a, "gone"]}

    def costs(spoken, **judged):
        dialogues = {}
        for name, calls in spoken.items():  # a call a dialogue
            facts = {key: (Utterance(call=key),) for key in calls}
            dialogues[name] = {key: Dialogue(key, name, (), 2, facts[key], "", "") for key in calls}
        for judge, calls in judged.items():
            judged[judge] = [msgspec.structs.replace(judgment("", "", (), None), calls=calls)]
        return call_costs(ledger, dialogues, judged)

    known = {"own": 1.5, "shared": 2.0, "free": 0.0}
    assert costs(spoken, j=(c, c), rules=()) == (known, {"j": 7.0, "rules": 3.0}, set())
    assert costs({**spoken, **odd}, j=("too",)) == (known, {"j": None}, {"gone", "too"})


def use(ledger, workspace, key):
    """Yield everything that reads a ledger."""
    yield lambda: ledger.get(key)
    yield lambda: ledger.recent("m", "judge", 9)
    yield lambda: ledger.quirks(identity_key({"model": "m"}))
    yield lambda: ledger.missing([key])
    yield lambda: stats(ledger)
    yield lambda: share(ledger, [key], 1)
    yield lambda: [call_facts(call) for call in ledger.calls("WHERE key=?", key)]
    run = ResolvedRun(workspace, SeedSet("s", ()))
    session = Session(run, LiveModels(run, ledger, Meter()), ledger, Meter())
    yield lambda: record_provenance(session, "judge", {"j": [key]}, ["j"])
    yield lambda: minutes_note(ledger, 600)


def refused(read):
    """Return what a reader says if it cannot read."""
    try:
        read()
    except DataError as error:
        return str(error)
    return None


CELLS = [("calls", name) for name in storage.StoredCall.__struct_fields__]
CELLS += [("superseded", name) for name in ("model", "stage", "outcome", "cost_usd")]
CELLS += [("attempts", name) for name in ("key", "model", "outcome", "detail", "latency_s")]
CELLS += [("quirks", "value")]
VALUES = [
    "x",
    "",
    b"\x00x",
    7,
    -1,
    1.5,
    1e300,
    "[1]",
    "{",
    zlib.compress(b"{}"),
    zlib.compress(b"["),
]
REQUESTS = [
    b'{"schema":1,"identity":{},"messages":[],"sampling":{}}',
    b'{"schema":1,"identity":[],"messages":[{"role":"user","content":"a"}],"sampling":{}}',
    b'{"schema":1,"identity":{},"messages":[{"role":"user"}],"sampling":{}}',
    b'{"schema":1,"identity":{},"messages":[{"role":"user","content":"a"}],'
    b'"sampling":{"temperature":"x"}}',
    b'{"schema":1,"identity":{"base_url":"http://[","revision":[1],"model":5,"temperature":true},'
    b'"messages":[{"role":"user","content":"a"}],"sampling":{}}',
    b"[" * 100_000,
]
VALUES += [zlib.compress(request) for request in REQUESTS]


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_a_cell_of_another_type_is_one_line(tmp_path, table, column):
    """Whoever reads it, and whatever stands there; what is stored then is read again."""
    path = tmp_path / "l.sqlite3"
    with closing(Ledger(path)) as ledger:
        key = put(ledger, usage=Usage(3, 2, 1), cost_usd=0.5)
        gone = put(ledger, messages=[{"role": "user", "content": "2"}])
        ledger.forget([gone])
        ledger.add_attempt(key, Reply("transport"), model="m", status=None)
        ledger.set_quirks(identity_key({"model": "m"}), Quirks(layout="merge-leading"))
    workspace = Workspace(tmp_path)
    for value in VALUES:
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
        with closing(Ledger(path, readonly=True)) as ledger:
            for read in use(ledger, workspace, key):
                fault = refused(read)
                assert fault is None or re.fullmatch(r"cannot read the ledger [^\n]{1,500}", fault)
        workspace.measured("s")


async def keep_two(ledger, text):
    """Store two replies in one turn of the loop; what each waiter gets."""
    kept = []
    for n in range(2):
        request = request_json({"model": "m"}, [{"role": "user", "content": f"{n}"}], Decoding())
        reply = Reply("ok", text=text)
        kept.append(ledger.keep(request_key(request), request, reply, model="m", stage="judge"))
    done, waiting = await asyncio.wait(kept, timeout=60)
    assert not waiting
    return [future.exception() for future in done]


@pytest.mark.parametrize(
    ("fault", "error"),
    [("memory", MemoryError), ("a half of a character", UnicodeError), ("disk", BotChatError)],
)
def test_a_write_that_fails_reaches_everybody_who_waits(ledger, monkeypatch, fault, error):
    """Foreseen or not; what is asked after it is refused before it is sent."""

    def fail():
        raise MemoryError

    if fault == "memory":
        monkeypatch.setattr(ledger, "transaction", fail)
    if fault == "disk":
        ledger.select("PRAGMA query_only=1")
    first, second = asyncio.run(keep_two(ledger, "\ud800" if fault.startswith("a half") else "a"))
    assert first is second
    assert isinstance(first, error)
    with pytest.raises(BotChatError, match=r"^cannot write the ledger .*; nothing before"):
        ledger.check_writable()
    monkeypatch.undo()
    ledger.select("PRAGMA query_only=0")
    assert ledger.get(put(ledger)).text == "hello"


def test_a_disk_that_is_nearly_full_is_found_before_a_call(tmp_path, monkeypatch):
    """Its reply could not be kept."""
    monkeypatch.setattr(storage, "LEAST_FREE", 2**80)
    said = pytest.raises(BotChatError, match=r"^only .* bytes are free .*, and nothing was sent")
    with closing(Ledger(tmp_path / "l.sqlite3")) as ledger, said:
        ledger.check_writable()


def test_an_interrupt_of_a_write_is_everybody_s(ledger, monkeypatch):
    """It ends the loop, and leaves nobody waiting."""
    kept = []

    def interrupt():
        raise KeyboardInterrupt

    async def keep():
        kept.append(ledger.keep("k", b"{}", Reply("ok"), model="m", stage="judge"))
        await asyncio.wait(kept)

    monkeypatch.setattr(ledger, "transaction", interrupt)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(keep())
    assert isinstance(kept[0].exception(), KeyboardInterrupt)


def test_sqlite_is_called_as_every_python_takes_it(tmp_path, monkeypatch):
    """From 3.12 on numbered placeholders with a sequence are deprecated, positions from 3.13 on."""
    connect = sqlite3.connect

    class Strict(sqlite3.Connection):
        def execute(self, sql, values=()):
            assert not any(mark in sql for mark in ("?1", ":key", "@", "$"))
            return super().execute(sql, values)

        def executemany(self, sql, values):
            assert not any(mark in sql for mark in ("?1", ":key", "@", "$"))
            return super().executemany(sql, values)

    def connect_by_name(database, **named):
        return connect(database, factory=Strict, **named)

    monkeypatch.setattr(sqlite3, "connect", connect_by_name)
    workspace = Workspace(tmp_path)
    with workspace.locked(), closing(workspace.ledger()) as ledger:
        key = put(ledger)
        assert ledger.add_calls([call.row() for call in ledger.calls("")]) == 1
        assert ledger.forget([key]) == 1
        assert ledger.missing([key]) == {key}
