"""Whole runs against an endpoint that speaks Anthropic's Messages, streams and batches included."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace

import msgspec
import pytest

from botchat.cli.main import main
from botchat.models.endpoint import batch, batch_endpoint
from botchat.models.limits import Retry
from botchat.records import Dialogue, Judgment, Seed
from botchat.workspace import files as store
from botchat.workspace.ledger import Ledger
from tests.integration.test_batch import start
from tests.integration.test_runs import KEY, commands, stage_files, workspace
from tests.openai_server import Cut, Gate, Server, converse, faults, per_request
from tests.openai_server.messages import (
    Ending,
    MessageBatch,
    MessagesServer,
    error,
    events,
    said,
    streamed,
)

GENERATE = ["generate", "--seeds", "small", "--turns", "5", "--model", "alpha"]
JUDGE = ["judge", "unieval", "--seeds", "small", "--judge", "strict"]
N = 6
FINE = streamed(list(events(said("Fine, thanks."))))


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # for endpoints of this machine
    monkeypatch.setattr(batch, "FIRST_POLL_S", 0.0)
    for name in ("RETRY", "PATIENT"):
        monkeypatch.setattr(batch_endpoint, name, Retry(attempts=4, first_s=0.0))


@pytest.fixture
def messages():
    """An endpoint that lets nobody in without the key in its own header."""
    with MessagesServer(api_key=KEY) as server:
        yield server


def prepared(folder, server, n_seeds=N, **settings):
    """A workspace whose models are asked so."""
    return workspace(folder, server, n_seeds, api="anthropic", **settings)


def run(folder, *flags, command=GENERATE):
    """One command; its exit code."""
    return main([*command, *flags, "--dir", str(folder)])


def ledger(folder):
    """Every stored call."""
    with closing(Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)) as opened:
        return list(opened.calls(""))


def stages(folder):
    """What was said and judged, without what tells one endpoint from another."""
    talks = [
        (one.model, one.seed_id, one.utterances)
        for path in sorted((folder / "generations").rglob("*.jsonl"))
        for one in store.read(path, Dialogue)
    ]
    verdicts = [
        (one.protocol, one.seed_id, one.contestants, one.verdict, one.reason)
        for path in sorted((folder / "judgments").rglob("*.jsonl"))
        for one in store.read(path, Judgment)
    ]
    return talks, verdicts


def test_a_whole_run_says_and_judges_what_chat_completions_do(tmp_path, messages):
    """Models that answer by the messages alone; one request a call; a ledger replays it all."""
    folder = prepared(tmp_path / "w", messages)
    for command in commands():
        assert run(folder, command=command) == 0
    n = messages.n_received
    assert len(ledger(folder)) == n
    assert messages.n_repeated == 0
    with Server(converse) as server:
        other = workspace(tmp_path / "chat", server, N, layout="merge-leading")
        for command in commands():
            assert run(other, command=command) == 0
        assert server.n_received == n
    assert stages(folder) == stages(other)

    made = stage_files(folder)
    for stage in ("generations", "judgments"):
        for path in (folder / stage).rglob("*.jsonl"):
            path.unlink()
    messages.play(faults.server_error())
    for command in commands():
        assert run(folder, command=command) == 0
    assert (messages.n_received, stage_files(folder)) == (n, made)


def test_a_stream_makes_the_same_dialogues(tmp_path, messages):
    """Assembled from its events; the request asks for one."""
    plain, streams = (
        prepared(tmp_path / "a", messages),
        prepared(tmp_path / "b", messages, stream=True),
    )
    assert run(plain) == 0
    before = messages.n_received
    assert run(streams) == 0
    assert stages(plain) == stages(streams)
    assert all(call.body["stream"] for call in messages.calls[before:])
    assert messages.n_received == 2 * before


BROKEN = [
    replace(FINE, cut=Cut(300)),
    replace(FINE, cut=Cut(300, reset=False)),
    streamed(list(events(said("Fine, thanks.")))[:-1]),
    streamed(list(events(said("Fine, thanks.")))[:6]),
    streamed([*list(events(said("Fine.")))[:5], error("overloaded_error", "Overloaded").body]),
    error("overloaded_error", "Overloaded"),
    error("rate_limit_error", "This would exceed the rate limit.", (("retry-after", "0"),)),
    error("api_error", "Internal server error"),
    error("timeout_error", "The request timed out"),
]


@pytest.mark.parametrize("fault", BROKEN, ids=range(len(BROKEN)))
def test_what_breaks_off_is_asked_again_and_nothing_of_it_is_kept(tmp_path, fault):
    """One attempt lost, one answer stored."""
    with MessagesServer(per_request(fault, FINE)) as server:
        folder = prepared(tmp_path / "w", server, 1, stream=True)
        command = ["generate", "--seeds", "small", "--turns", "3", "--model", "alpha"]
        assert run(folder, command=command) == 0
        assert server.n_received == 2
    assert [one.text for one in ledger(folder)] == ["Fine, thanks."]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (error("not_found_error", "model: alpha"), "check model and URL"),
        (error("invalid_request_error", "Your credit balance is too low"), "key and account"),
        (error("permission_error", f"{KEY} has no permission"), "key and account"),
    ],
)
def test_an_account_error_ends_the_run_in_one_line(tmp_path, capsys, answer, said):
    """Nothing is stored as an answer, and the key is not shown."""
    with MessagesServer(answer) as server:
        folder = prepared(tmp_path / "w", server, 1)
        assert run(folder) == 1
        told = capsys.readouterr()
        assert said in told.err
        assert KEY not in told.err + told.out
        assert server.n_received == 1
    assert ledger(folder) == []


def test_a_temperature_that_is_refused_is_left_out_from_then_on(tmp_path):
    """Newer models take none: one request more in all, and the run says so."""
    gone = error("invalid_request_error", "`temperature` is deprecated for this model.")

    class Newer(MessagesServer):
        def _message(self, call):
            return gone if "temperature" in call.body else super()._message(call)

    with Newer() as server:
        folder = prepared(tmp_path / "w", server, 1)
        assert run(folder) == 0
        assert server.n_received == 1 + 3
        assert run(folder) == 0
    assert [one.sent for one in ledger(folder)] == [{"parameters": {"temperature": None}}] * 3


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_judge_is_held_to_its_schema_and_asked_for_no_logprobs(tmp_path, messages, temperature):
    """As output_config; what the API does not have is left out, and nothing else differs."""
    folder = prepared(tmp_path / "w", messages)
    with (folder / "botchat.toml").open("a") as settings:
        settings.write(
            f'\n[judges.strict]\nmodel = "umpire"\nstructured = true\nlogprobs = 3\n'
            f"temperature = {temperature}\nmax_tokens = 77\n"
        )
    assert run(folder) == 0
    before = messages.n_received
    assert run(folder, command=JUDGE) == 0
    asked = [call.body for call in messages.calls[before:]]
    assert {body["output_config"]["format"]["type"] for body in asked} == {"json_schema"}
    assert {(body["max_tokens"], body["temperature"]) for body in asked} == {(77, temperature)}
    judged = [
        j for path in (folder / "judgments").rglob("*.jsonl") for j in store.read(path, Judgment)
    ]
    assert len(judged) == len(asked)
    assert all(one.verdict is not None and one.confidence is msgspec.UNSET for one in judged)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("max_tokens", "none", "models.alpha.max_tokens: "),
        ("temperature", 1.5, "models.alpha.temperature: 1.5"),
        ("layout", "natural", "models.alpha.layout: "),
    ],
)
def test_settings_that_the_api_cannot_be_asked_with_are_one_line(
    tmp_path, messages, capsys, key, value, said
):
    """Before anything is sent."""
    folder = prepared(tmp_path / "w", messages, 1, **{key: value})
    assert run(folder) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert messages.n_received == 0


def test_tokens_and_costs_count_the_cache_as_it_is_billed(tmp_path, messages):
    """A long talk: each turn reads what an earlier one wrote; sums are the server's own."""
    prices = {
        "price_input": 3.0,
        "price_output": 15.0,
        "price_cached": 0.3,
        "price_cache_write": 3.0,
    }
    folder = prepared(tmp_path / "w", messages, **prices)
    lines = tuple(f"{'word ' * 700}{n}" for n in range(2))
    store.finish(folder / "seeds" / "small.jsonl", [Seed("s", lines)], lambda seed: seed.id)
    assert run(folder, "--turns", "8") == 0
    stored = ledger(folder)
    total = Counter()
    for one in stored:
        total.update(
            prompt=one.prompt_tokens,
            said=one.completion_tokens,
            read=one.cached_tokens,
            written=one.cache_write_tokens,
        )
    assert total == messages.used
    assert total["read"] > total["written"] > 0
    due = (
        3.0 * (total["prompt"] - total["read"]) + 0.3 * total["read"] + 15.0 * total["said"]
    ) / 1e6
    assert sum(one.cost_usd for one in stored) == pytest.approx(due)


def test_a_panel_reads_the_question_of_its_talk_from_the_cache(tmp_path, messages):
    """The first to speak writes it, all others read it; a single judge's beginning is shared too.

    That is UniEval's instructions and examples, which every other dialogue's question begins with.
    """
    folder = prepared(tmp_path / "w", messages)
    lines = tuple(f"{'word ' * 700}{n}" for n in range(2))
    store.finish(folder / "seeds" / "small.jsonl", [Seed("s", lines)], lambda seed: seed.id)
    assert run(folder) == 0
    messages.used.clear()
    judge = ["judge", "unieval", "--seeds", "small", "--model", "alpha", "--judge"]
    assert run(folder, command=[*judge, "umpire"]) == 0
    assert 1024 < messages.used["written"] < 1400
    assert messages.used["read"] == 0
    messages.used.clear()
    before = messages.n_received
    assert run(folder, command=[*judge, "chateval-default", "--judge-model", "umpire"]) == 0
    n = messages.n_received - before
    assert n > 2
    assert messages.used["read"] == (n - 1) * messages.used["written"] > 0


# --- batches -------------------------------------------------------------------------------------


def expected(server, tmp_path):
    """Stage files of the same run without batches."""
    folder = prepared(tmp_path / "plain", server)
    assert run(folder) == 0
    return stage_files(folder)


def check(server, folder, files):
    """The run is the one without batches, and every call of it was paid for once."""
    assert stage_files(folder) == files
    assert set(server.paid.values()) == {1}
    assert sum(server.paid.values()) == N * 3


def test_a_run_in_batches_is_the_same_to_the_byte(tmp_path, messages):
    """One batch a turn, created, looked at and fetched once; then nothing is left to send."""
    files = expected(messages, tmp_path)
    folder = prepared(tmp_path / "w", messages)
    assert run(folder, "--batch") == 0
    check(messages, folder, files)
    assert messages.steps == dict.fromkeys(("create", "look", "fetch"), 3)
    assert [len(one.requests) for one in messages.batches] == [N] * 3
    assert run(folder, "--batch") == run(folder) == 0
    assert len(messages.batches) == 3


def test_streams_are_not_asked_for_in_batches(tmp_path, messages):
    """The API has none there."""
    folder = prepared(tmp_path / "w", messages, stream=True)
    assert run(folder, "--batch") == 0
    assert sum(messages.paid.values()) == N * 3


@pytest.mark.parametrize("ending", [Ending(expired=2), Ending(canceled=1), Ending(1, 1, 1)])
def test_what_a_batch_leaves_out_goes_with_the_next(tmp_path, messages, ending):
    """Only that, once."""
    files = expected(messages, tmp_path)
    messages.fates = [ending, Ending()]
    folder = prepared(tmp_path / "w", messages)
    assert run(folder, "--batch") == 0
    check(messages, folder, files)
    left = ending.expired + ending.canceled
    asked = Counter(r["custom_id"] for one in messages.batches for r in one.requests)
    assert Counter(asked.values()) == {1: N * 3 - left, 2: left}


@pytest.mark.parametrize(
    "fault", [error("api_error", "Internal server error"), faults.html(), faults.reset_in_body()]
)
def test_a_batch_whose_creation_was_answered_wrongly_is_found_by_its_results(
    tmp_path, messages, fault
):
    """Among others of the account; no request is in two batches."""
    files = expected(messages, tmp_path)
    foreign = [{"custom_id": f"theirs-{n}", "params": {"model": "x"}} for n in range(N)]
    old = MessageBatch("old", Ending(), foreign, created_at="2024-08-20T18:37:24.100435Z")
    messages.batches += [old, *(MessageBatch(f"other{n}", Ending(1), foreign) for n in range(3))]
    messages.losses["create"].append(fault)
    folder = prepared(tmp_path / "w", messages)
    assert run(folder, "--batch") == 0
    check(messages, folder, files)
    assert old.looks == 0
    ours = [one for one in messages.batches if one.id.startswith("msgbatch")]
    assert [len(one.requests) for one in ours] == [N] * 3


def test_a_batch_that_was_never_made_is_made(tmp_path, messages):
    """The list has nothing: the creation is tried again."""
    files = expected(messages, tmp_path)
    folder = prepared(tmp_path / "w", messages)
    messages.refusals["create"].append(error("overloaded_error", "Overloaded"))
    assert run(folder, "--batch") == 0
    check(messages, folder, files)
    assert len(messages.batches) == 3


@pytest.mark.parametrize(("step", "sign"), [("create", 9), ("look", 2), ("fetch", 9)])
def test_an_interrupted_run_is_collected_by_the_next(tmp_path, messages, step, sign):
    """Whatever exchange it was stopped in: every batch is used, none is made twice."""
    files = expected(messages, tmp_path)
    folder = prepared(tmp_path / "w", messages)
    gate = messages.gates[step] = Gate()
    process = start(folder)
    gate.wait_held(1)
    process.send_signal(sign)
    messages.gates.pop(step)
    gate.open()
    process.communicate()
    assert run(folder, "--batch") == 0
    check(messages, folder, files)
    assert len(messages.batches) == 3


def test_results_are_fetched_from_no_other_host(tmp_path, messages):
    """Whatever address the endpoint names: the key goes to its own."""
    files = expected(messages, tmp_path)
    with MessagesServer() as other:
        messages.results_host = other.url
        folder = prepared(tmp_path / "w", messages)
        assert run(folder, "--batch") == 0
        assert other.n_received == 0
    check(messages, folder, files)


def test_errors_in_a_batch_are_what_they_are_outside(tmp_path):
    """A refused parameter is left out of the next batch; an unknown model ends the run."""

    class Newer(MessagesServer):
        def _message(self, call):
            if "temperature" in call.body:
                return error("invalid_request_error", "`temperature` is deprecated for this model.")
            return super()._message(call)

    with Newer() as server:
        folder = prepared(tmp_path / "w", server)
        assert run(folder, "--batch") == 0
        assert [len(one.requests) for one in server.batches] == [N] * 4
        assert sum(server.paid.values()) == N * 3
    with MessagesServer(models=["nobody"]) as server:
        folder = prepared(tmp_path / "v", server)
        assert run(folder, "--batch") == 1
        assert len(server.batches) == 1
