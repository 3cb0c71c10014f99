"""Runs through a Batch API: the same bytes, and nothing paid twice whatever happens on the way."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
from collections import Counter

import pytest

from botchat.cli import output
from botchat.cli.main import main
from botchat.errors import BotChatError
from botchat.models.endpoint import batch, batch_endpoint
from botchat.models.limits import Retry
from botchat.requests.meter import Meter
from botchat.workspace.ledger import Ledger
from botchat.workspace.usage import stats
from tests.integration.test_runs import KEY, commands, stage_files, workspace
from tests.openai_server import Answer, Gate, faults, per_request, templates
from tests.openai_server.batches import BatchServer, Fate
from tests.openai_server.replies import converse
from tests.processes import Started

GENERATE = ["generate", "--seeds", "small", "--turns", "5", "--model", "alpha"]
N_SEEDS = 6
N_CALLS = N_SEEDS * 3

OFTEN = "from botchat.models.endpoint import batch; batch.FIRST_POLL_S = 0.0"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Looks and retries follow each other at once; the server decides how long a batch takes."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(batch, "FIRST_POLL_S", 0.0)
    for name in ("RETRY", "PATIENT"):
        monkeypatch.setattr(batch_endpoint, name, Retry(attempts=4, first_s=0.0))


def run(folder, *flags, command=GENERATE):
    """One command in this process; its exit code."""
    return main([*command, *flags, "--dir", str(folder)])


def start(folder, command=GENERATE):
    """The command with ``--batch`` as a process of its own."""
    return Started([*command, "--batch", "--dir", folder], OFTEN, OPENAI_API_KEY=KEY)


def expected(server, tmp_path, command=GENERATE):
    """Stage files of the same run without batches, from the same server."""
    folder = workspace(tmp_path / "plain", server, N_SEEDS)
    assert run(folder, command=command) == 0
    return stage_files(folder)


@contextlib.contextmanager
def served(tmp_path, *script, **how):
    """A server, a workspace, and what a run there leaves without batches."""
    with BatchServer(*script, **how) as server:
        yield server, workspace(tmp_path / "w", server, N_SEEDS), expected(server, tmp_path)


def end(server, folder, step, kind=signal.SIGKILL):
    """End a run while an exchange of this kind is held; what it said, and its exit code."""
    gate = server.gates[step] = Gate()
    process = start(folder)
    gate.wait_held(1)
    process.send_signal(kind)
    if kind != signal.SIGKILL:  # it waits for what is under way
        server.gates.pop(step).open()
    said = process.communicate()
    server.gates.pop(step, None)
    return said, process.returncode


def check(server, folder, files):
    """The run is the one without batches, and every call of it was paid for once."""
    assert stage_files(folder) == files
    assert set(server.paid.values()) == {1}
    assert sum(server.paid.values()) == N_CALLS


def test_a_whole_run_in_batches_is_the_same_to_the_byte(tmp_path):
    """Generation takes one batch a turn and model, judging one; requests uploaded = calls."""
    with BatchServer() as server:
        plain, batched = workspace(tmp_path / "a", server), workspace(tmp_path / "b", server)
        for command in commands():
            assert run(plain, command=command) == 0
        calls = server.n_received
        batches = []
        for command in commands():
            before = len(server.jobs)
            assert run(batched, "--batch", command=command) == 0
            batches.append(len(server.jobs) - before)
        assert stage_files(batched) == stage_files(plain)
        assert batches == [3 * 6, 1, 1, 1]
        assert len(server.lines) == calls == len(server.paid)
        assert server.steps == dict.fromkeys(("upload", "create", "look", "fetch"), 21)
        # All is in the ledger now: nothing is left to send.
        for command in commands():
            assert run(batched, "--batch", command=command) == 0
            assert run(batched, command=command) == 0
        assert len(server.jobs) == 21
        assert server.n_received == calls + 4 * 21


def test_a_panel_talks_through_batches(tmp_path):
    """Who speaks after the others is asked in a later batch; the judgments are the same."""
    judge = ["judge", "arena", "--seeds", "small", "--turns", "5", "--model", "alpha"]
    judge += ["--model", "human", "--judge", "chateval-3-roles", "--judge-model", "umpire"]
    with BatchServer() as server:
        plain = workspace(tmp_path / "a", server, N_SEEDS)
        batched = workspace(tmp_path / "b", server, N_SEEDS)
        for folder in (plain, batched):
            assert run(folder) == 0
        before = server.n_received
        assert run(plain, command=judge) == 0
        calls = server.n_received - before
        assert run(batched, "--batch", command=judge) == 0
        assert stage_files(batched) == stage_files(plain)
        assert len(server.lines) == calls
        # Three speakers, two rounds, one after the other.
        assert len(server.jobs) == 6


@pytest.mark.parametrize(
    ("fates", "n_batches"),
    [
        ([Fate(backwards=True, twice=True)], 3),
        ([Fate("expired", answered=2, listed=False), Fate()], 4),
        ([Fate("expired", answered=1), Fate("cancelled", answered=2), Fate()], 5),
    ],
    ids=lambda value: value if isinstance(value, int) else value[0].status,
)
def test_what_a_batch_leaves_unanswered_goes_with_the_next(tmp_path, fates, n_batches):
    """Order, doubles and slowness change nothing; only what is missing is asked again."""
    with served(tmp_path) as (server, folder, files):
        server.fates = fates
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert len(server.jobs) == n_batches


def test_a_request_that_fails_in_its_batch_is_read_like_any_other(tmp_path):
    """A 500 in the error file is asked again; a filtered prompt is an outcome, as without batch."""

    def script(call):
        if "talk 3" in call.messages[-1]["content"]:
            return faults.content_policy()
        return converse(call)

    with BatchServer(script) as server:
        files = expected(server, tmp_path)
        assert b"stopped:filtered" in next(iter(files.values()))
        server.play(per_request(faults.server_error(500), faults.rate_limited(), script))
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert run(folder, "--batch") == 0
        assert stage_files(folder) == files
        assert len(server.jobs) == 3 * 3
        assert set(server.paid.values()) == {1}


def test_a_parameter_is_refused_once_and_then_left_out(tmp_path):
    """What the endpoint's model refuses is learnt from the first batch for all later ones."""
    with BatchServer(models={"alpha": templates.REASONING}) as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert run(folder, "--batch") == 0
        # Two parameters, so the first turn takes three batches.
        assert len(server.jobs) == 3 + 2
        assert "max_completion_tokens" in server.lines[-1]["body"]
        assert sum(server.paid.values()) == N_CALLS


def test_a_request_goes_with_three_batches_at_most(tmp_path, capsys):
    """Batches that all expire end the run in bounded time; the next run goes on; never the key."""
    with served(tmp_path, fates=[Fate("expired", answered=0, message=f"{KEY} is late")]) as (
        server,
        folder,
        files,
    ):
        capsys.readouterr()
        assert run(folder, "--batch") == 1
        said = capsys.readouterr().err
        assert f"{N_SEEDS} dialogues are missing" in said
        assert "expired without an answer: batch_expired: [key] is late" in said
        assert [len(job.requests) for job in server.jobs] == [N_SEEDS] * 3
        assert not stage_files(folder)
        server.fates = [Fate()]
        assert run(folder, "--batch") == 0
        check(server, folder, files)


@pytest.mark.parametrize("step", ["upload", "create", "look", "fetch"])
def test_killed_while_a_batch_is_under_way_it_pays_nothing_twice(tmp_path, step):
    """SIGKILL before any answer about a batch arrives: the batch is found again and collected."""
    with served(tmp_path) as (server, folder, files):
        for _ in range(2):
            assert end(server, folder, step)[1] == -signal.SIGKILL
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert set(server.asked.values()) == {1}
        assert len(server.jobs) == 3
        # Once its id is noted a batch is not looked for.
        assert (server.steps["list"] > 0) == (step in ("upload", "create"))


def test_an_unnoted_batch_is_found_on_a_later_page_of_the_list(tmp_path):
    """The endpoint's list is walked through to the end."""
    with served(tmp_path) as (server, folder, files):
        end(server, folder, "create")
        other = workspace(tmp_path / "other", server, 1)
        assert run(other, "--batch", "--turns", "25") == 0
        assert len(server.jobs) > 20
        before = server.steps["list"]
        server.paid.clear()
        assert run(folder, "--batch") == 0
        assert stage_files(folder) == files
        assert set(server.paid.values()) == {1}
        assert server.steps["list"] - before == 2


def test_a_crash_between_two_stored_replies_loses_none(tmp_path, monkeypatch, capsys):
    """The ledger fails in the middle of a batch's answers: the rest is fetched again, not asked."""
    keep = Ledger.keep
    stored = []

    async def fail(ledger, *arguments, **more):
        if len(stored) == 4:
            raise BotChatError("no room on the disk")
        stored.append(arguments[0])
        await keep(ledger, *arguments, **more)

    with served(tmp_path) as (server, folder, files):
        monkeypatch.setattr(Ledger, "keep", fail)
        assert run(folder, "--batch") == 1
        assert "no room on the disk" in capsys.readouterr().err
        monkeypatch.setattr(Ledger, "keep", keep)
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert set(server.asked.values()) == {1}


def test_interrupted_it_leaves_the_batch_to_the_next_run(tmp_path, capsys):
    """Ctrl-C does not wait for hours: exit 130 at once, and the next run collects."""
    with served(tmp_path, fates=[Fate(looks=10**9)]) as (server, folder, files):
        (_, error), code = end(server, folder, "look", signal.SIGINT)
        assert code == 130
        assert error.count("\n") == 1
        server.jobs[0].fate = Fate()
        server.fates = [Fate()]
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert set(server.asked.values()) == {1}


def test_a_smaller_run_takes_its_part_of_a_batch_and_leaves_the_rest(tmp_path):
    """Restarted with fewer seeds, then with all: every answer of the batch is used, none paid."""
    with served(tmp_path) as (server, folder, files):
        end(server, folder, "look")
        assert run(folder, "--batch", "--limit", "2") == 0
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert set(server.asked.values()) == {1}


def test_without_batch_a_run_says_what_it_would_pay_twice(tmp_path, caplog):
    """Calls in a batch that was not collected are a warning to a run that would ask them again."""
    with BatchServer() as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        server.refuse("look", *[faults.server_error()] * 4)
        assert run(folder, "--batch") == 1
        assert run(folder) == 0
        assert f"{N_SEEDS} calls of this workspace are in batches" in caplog.text
        caplog.clear()
        assert run(folder) == 0
        assert "batches" not in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "sizes"),
    [("MAX_REQUESTS", 4, [4, 2] * 3), ("MAX_BYTES", 2500, None)],
)
def test_a_file_keeps_within_the_limits(tmp_path, monkeypatch, name, value, sizes):
    """Requests and bytes of a file; the answers of all its files make the same run."""
    monkeypatch.setattr(batch, name, value)
    with served(tmp_path) as (server, folder, files):
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        if sizes:
            assert Counter(len(job.requests) for job in server.jobs) == Counter(sizes)
        else:
            uploads = [len(server.file(job)) for job in server.jobs]
            assert max(uploads) <= value
            assert len(uploads) > 3


def test_a_refused_batch_stops_its_model_in_one_line(tmp_path, capsys):
    """What the endpoint has against it, never the key; nothing is paid, the next run may try."""
    refused = Fate("failed", code="billing_hard_limit_reached", message=f"no\nmoney for {KEY}")
    with BatchServer(fates=[refused]) as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert run(folder, "--batch") == 1
        said = capsys.readouterr()
        assert said.err.count("\n") == 1
        assert "refused batch batch_0001: billing_hard_limit_reached: no money" in said.err
        assert len(server.jobs) == 1
        server.fates = [Fate()]
        assert run(folder, "--batch") == 0
        assert sum(server.paid.values()) == N_CALLS
    assert KEY not in said.err + said.out
    for path in folder.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


@pytest.mark.parametrize(("room", "refused"), [(1, [6, 3]), (4, [6])])
def test_a_batch_beyond_the_account_s_room_goes_in_halves(tmp_path, room, refused):
    """The limit of enqueued tokens: smaller batches, one after the other, nothing paid twice."""
    with served(tmp_path) as (server, folder, files):
        server.room = room
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert [len(job.requests) for job in server.jobs if job.errors] == refused


def test_an_account_without_any_room_ends_the_run(tmp_path, capsys):
    """Halving is bounded, and what could not be asked is left to the next run."""
    with BatchServer() as server:
        server.room = 0
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert run(folder, "--batch") == 1
        assert "dialogues are missing" in capsys.readouterr().err
        assert len(server.jobs) == batch.MAX_REFUSALS + 1
        server.room = None
        assert run(folder, "--batch") == 0


PASSING = [
    faults.server_error(503),
    faults.reset_in_body(),
    Answer(body=b'{"id": "\xff", "status": "\xff"}'),
    faults.html(),
]


@pytest.mark.parametrize(("n", "fault"), [*enumerate(PASSING)])
@pytest.mark.parametrize("step", ["upload", "create", "look", "fetch"])
def test_a_passing_fault_of_the_batch_api_is_overcome(tmp_path, step, n, fault):
    """Whether the exchange had its effect or not: no request is in two batches.

    Each step meets each fault, each of them now refused, now lost after its effect.
    """
    how = ("refuse", "lose")[(n + len(step)) % 2]
    with BatchServer() as server:
        folder = workspace(tmp_path / "w", server, 2)
        getattr(server, how)(step, fault, fault)
        assert run(folder, "--batch") == 0
        assert set(server.asked.values()) == set(server.paid.values()) == {1}
        assert sum(server.paid.values()) == 2 * 3


@pytest.mark.parametrize(
    "fault",
    [
        faults.unauthorized(echo=KEY),
        faults.error(405, "Method Not Allowed"),
        faults.redirect("http://127.0.0.1:9/steal"),
    ],
    ids=["401", "405", "redirect"],
)
@pytest.mark.parametrize("step", ["upload", "create", "look", "fetch"])
def test_an_endpoint_without_batches_is_one_line(tmp_path, capsys, step, fault):
    """One exchange, one line that names --batch and never the key; nothing is sent again."""
    with BatchServer() as server:
        folder = workspace(tmp_path / "w", server, 2)
        server.refuse(step, *[fault] * 9)
        assert run(folder, "--batch") == 1
        said = capsys.readouterr()
        assert said.err.count("\n") == 1
        assert "alpha at http://127.0.0.1" in said.err
        assert "without --batch" in said.err
        assert KEY not in said.err + said.out
        assert server.steps[step] == 1


def test_a_batch_that_never_ends_is_left_to_the_next_run(tmp_path, monkeypatch):
    """The endpoint's promise is over: the run ends; the batch is collected whenever it is done."""
    with served(tmp_path, fates=[Fate(looks=5)]) as (server, folder, files):
        monkeypatch.setattr(batch, "LONGEST_WAIT_S", 0.0)
        assert run(folder, "--batch") == 1
        assert server.steps["look"] == 1
        monkeypatch.undo()
        monkeypatch.setattr(batch, "FIRST_POLL_S", 0.0)
        assert run(folder, "--batch") == 0
        check(server, folder, files)
        assert set(server.asked.values()) == {1}


def test_a_limit_of_calls_holds_exactly(tmp_path, capsys):
    """--max-calls: what is admitted is sent and stored; exit 3; the next run goes on."""
    with served(tmp_path) as (server, folder, files):
        assert run(folder, "--batch", "--max-calls", "8") == 3
        assert "--max-calls 8" in capsys.readouterr().err
        assert len(server.lines) == 8
        assert run(folder, "--batch") == 0
        check(server, folder, files)


def test_no_batch_may_cost_more_than_the_limit_leaves(tmp_path, capsys):
    """What all its calls may cost at most is reserved before a batch is sent."""
    with BatchServer() as server:
        files = expected(server, tmp_path)
        prices = {"price_input": 1.0, "price_output": 1.0}
        folder = workspace(tmp_path / "w", server, N_SEEDS, **prices)
        for flags in (["--max-usd", "0.00001"], ["--max-tokens", "1"]):
            assert run(folder, "--batch", *flags) == 3
            error = capsys.readouterr().err
            assert "the next call may" in error
            assert "a higher limit or a smaller max_tokens" in error
        assert len(server.lines) == 0
        # A call may take 2,048 tokens and the bytes of its request, at half the price: two fit.
        assert run(folder, "--batch", "--max-usd", "0.0038") == 0
        assert max(len(job.requests) for job in server.jobs) == 2
        check(server, folder, files)


def test_notes_do_not_pile_up(tmp_path):
    """Calls that are in the ledger are no longer noted once the next batch is."""
    with BatchServer() as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert run(folder, "--batch") == 0
    with contextlib.closing(sqlite3.connect(folder / ".botchat" / "ledger.sqlite3")) as ledger:
        (noted,) = ledger.execute("SELECT count(*) FROM batched").fetchone()
        named = ledger.execute("SELECT id, model FROM batches ORDER BY at").fetchall()
    assert noted == N_SEEDS
    assert named == [(job.id, "alpha") for job in server.jobs]


def test_a_call_in_a_batch_costs_half(tmp_path):
    """The ledger's account of the same calls, with and without batches."""
    spent = []
    with BatchServer() as server:
        for flags in ([], ["--batch"]):
            folder = workspace(
                tmp_path / f"w{flags}", server, N_SEEDS, price_input=3.0, price_output=7.0
            )
            assert run(folder, *flags) == 0
            ledger = Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)
            spent.append(stats(ledger)[0].cost_usd)
            ledger.close()
    assert spent[1] == pytest.approx(spent[0] / 2)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["generate", "--seeds", "small", "--model", "bot:verbose"], "bot:verbose"),
        ([*GENERATE, "--partner", "bot:parrot"], "bot:parrot"),
        (["judge", "unieval", "--seeds", "small", "--judge", "rules"], "rules"),
    ],
)
def test_what_is_on_no_endpoint_has_no_batches(tmp_path, capsys, command, named):
    """One line that names it; nothing is sent."""
    with BatchServer() as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        assert run(folder) == 0
        before = server.n_received
        capsys.readouterr()
        assert run(folder, "--batch", command=command) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"--batch: {named} " in error
        assert server.n_received == before


def test_the_progress_line_says_what_is_waited_for():
    """Batches under way with their requests; nothing once they have ended."""
    meter = Meter()
    meter.begin("judge", 10)
    meter.batches.update({"batch_1": (3, 10), "batch_2": (0, 5)})
    assert "waiting for 2 batches (3/15 requests)" in output.progress_line(meter)
    meter.batches.clear()
    assert "batch" not in output.progress_line(meter)


def test_the_meter_follows_the_batches(tmp_path):
    """While a batch is under way the meter has its counts; afterwards it has none."""
    seen = []

    class Watched(dict):
        def __setitem__(self, name, counts):
            seen.append((name, counts))
            super().__setitem__(name, counts)

    from botchat.requests import Generating
    from botchat.workspace.folder import Workspace

    meter = Meter(batches=Watched())
    with BatchServer(fates=[Fate(looks=1), Fate()]) as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS)
        request = Generating("small", ["alpha"], turns=5, batch=True)
        request.run(Workspace(folder), meter=meter)
    assert seen == [("batch_0001", (0, N_SEEDS))]
    assert meter.batches == {}
