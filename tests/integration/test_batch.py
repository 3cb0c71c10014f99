"""Runs through a Batch API: the same bytes, and nothing paid twice whatever happens on the way."""

import shutil
from contextlib import closing

import pytest

from botchat.cli.main import main
from botchat.workspace.ledger import Ledger
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Gate, faults
from tests.openai_server.batches import BatchServer, Fate
from tests.processes import Started
from tests.rows import rows

GENERATE = ["generate", "--seeds", "small", "--turns", "4", "--model", "alpha"]
JUDGE = ["judge", "unieval", "--seeds", "small", "--judge", "alpha"]
N_SEEDS = 3
N_CALLS = N_SEEDS * 2
SENT, DONE = 3, 0
"""Exit codes: a batch was sent; nothing is left to do."""


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def run(folder, *flags, command=GENERATE):
    """One command in this process; its exit code."""
    return main([*command, *flags, "--dir", str(folder)])


def to_the_end(folder, command=GENERATE):
    """The same command until nothing is left; how often it sent a batch."""
    for n in range(40):
        if (code := run(folder, "--batch", command=command)) == DONE:
            return n
        assert code == SENT
    raise AssertionError("it does not end")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The stage files of the run without batches, wherever its server is."""
    with pytest.MonkeyPatch.context() as patched, BatchServer() as server:
        patched.setenv("OPENAI_API_KEY", KEY)
        folder = workspace(tmp_path_factory.mktemp("plain"), server, N_SEEDS, identity="here")
        assert run(folder) == DONE
    return stage_files(folder)


@pytest.fixture
def made(tmp_path, plain):
    """A server, a workspace, and the stage files of the same run without batches."""
    with BatchServer() as server:
        yield server, workspace(tmp_path / "w", server, N_SEEDS, identity="here"), plain


@pytest.mark.parametrize("plan", [[], ["--plan"]])
@pytest.mark.parametrize(("command", "name"), rows("who_is_on_no_endpoint"))
def test_who_is_on_no_endpoint_is_refused_also_by_a_plan(tmp_path, capsys, command, name, plan):
    """One line, before anything is sent or written."""
    folder = tmp_path / "w"
    assert main(["generate", "--seeds", "sample", "--limit", "2", "--model", "bot:verbose",
                 "--dir", str(folder)]) == 0  # fmt: skip
    entry = '[models.m]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    (folder / "botchat.toml").write_text(entry)
    capsys.readouterr()
    assert run(folder, "--batch", *plan, command=command) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[-1].startswith(f"botchat: --batch: {name} is on no endpoint and has no Batch API;")


def check(server, folder, files):
    """The run is the one without batches, and every call of it was paid for once."""
    assert stage_files(folder) == files
    assert set(server.paid.values()) == {1}
    assert sum(server.paid.values()) == N_CALLS
    assert not [*folder.glob(".botchat/batches/*/*")]


def test_whole_runs_in_batches_are_the_same_to_the_byte(tmp_path, capsys):
    """Generation takes one batch a turn and model, judging one; requests uploaded = calls."""
    stages = [GENERATE, JUDGE]
    with BatchServer() as server:
        plain, batched = (workspace(tmp_path / name, server, N_SEEDS) for name in "ab")
        for command in stages:
            assert run(plain, command=command) == DONE
        calls, n_jobs = server.n_received, []
        for command in stages:
            before = len(server.jobs)
            to_the_end(batched, command)
            n_jobs.append(len(server.jobs) - before)
        assert stage_files(batched) == stage_files(plain)
        assert n_jobs == [2, 1]
        assert len(server.lines) == calls == len(server.paid)
        sent = [line for line in capsys.readouterr().err.splitlines() if "in a batch" in line]
        assert "run the same command again to collect them" in sent[0]
        for command in stages:  # all is in the ledger now
            assert run(batched, "--batch", command=command) == DONE
        assert len(server.jobs) == 3


@pytest.mark.parametrize(
    "fates",
    [
        [Fate("expired", answered=2, listed=False), Fate()],
        [Fate("expired", answered=0), Fate("cancelled", answered=1), Fate()],
        [Fate(looks=3, backwards=True)],
    ],
)
def test_what_a_batch_leaves_unanswered_goes_with_the_next(made, fates):
    """Order, doubles and slowness change nothing; only what is missing is asked again."""
    server, folder, files = made
    server.fates = fates
    to_the_end(folder)
    check(server, folder, files)


@pytest.mark.parametrize("step", ["upload", "create", "list", "fetch"])
def test_an_exchange_whose_answer_is_lost_is_one_line_and_pays_nothing_twice(made, step, capsys):
    """The next run finds in the endpoint's list what the lost exchange did."""
    server, folder, files = made
    assert run(folder, "--batch") == SENT
    server.lose(step, *[faults.server_error(500)] * (1 if step == "create" else 3))
    codes = [run(folder, "--batch") for _ in range(5)]
    assert codes.count(1) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "Batch API" in line]
    assert KEY not in line
    to_the_end(folder)
    check(server, folder, files)


@pytest.mark.parametrize("step", ["upload", "create"])
def test_killed_while_a_batch_is_sent_it_pays_nothing_twice(made, step):
    """The file is on disk before it is sent, and its batch is looked for before it is sent."""
    server, folder, files = made
    gate = server.gates[step] = Gate()
    process = Started([*GENERATE, "--batch", "--dir", folder], OPENAI_API_KEY=KEY)
    gate.wait_held(1)
    process.kill()
    process.communicate()
    server.gates.pop(step)
    to_the_end(folder)
    check(server, folder, files)


def test_a_batch_is_found_on_any_page_of_the_list_and_is_never_sent_twice(made):
    """More than a hundred batches of others are newer; the workspace has lost its own files."""
    server, folder, files = made
    assert run(folder, "--batch") == SENT
    ours = server.jobs[0]
    server.jobs += [type(ours)(f"other{n}", Fate(), ours.file, {}, []) for n in range(130)]
    shutil.rmtree(folder / ".botchat" / "batches")
    assert run(folder, "--batch") == SENT
    assert len(server.jobs) == 132  # of the next utterances
    assert len({line["custom_id"] for line in server.lines}) == len(server.lines)
    to_the_end(folder)
    check(server, folder, files)


def test_a_refused_batch_is_one_line_and_may_be_sent_again(made, capsys):
    """With the endpoint's reason; nothing of it was paid for."""
    server, folder, files = made
    server.fates = [Fate("failed", message="The file is no good."), Fate()]
    assert run(folder, "--batch") == SENT
    capsys.readouterr()
    assert run(folder, "--batch") == 1
    assert "The file is no good." in capsys.readouterr().err
    to_the_end(folder)
    check(server, folder, files)


def test_a_limit_of_calls_holds_exactly_and_a_call_costs_half(tmp_path):
    """No batch has more calls than the limit admits; prices are halved in the ledger."""
    with BatchServer() as server:
        folder = workspace(tmp_path / "w", server, N_SEEDS, price_input=2.0, price_output=4.0)
        assert run(folder, "--batch", "--max-calls", "2") == SENT
        assert [len(job.requests) for job in server.jobs] == [2]
        to_the_end(folder)
    with closing(Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)) as ledger:
        ((usd, prompt, reply),) = ledger.select(
            "SELECT sum(cost_usd), sum(prompt_tokens), sum(completion_tokens) FROM calls"
        )
    assert usd == pytest.approx((prompt * 2 + reply * 4) / 2e6)


def test_a_run_without_batch_says_what_it_pays_twice(made, caplog):
    """As long as a batch was not collected."""
    _, folder, _ = made
    assert run(folder, "--batch") == SENT
    assert run(folder) == DONE
    assert "batches that were not collected" in caplog.text


@pytest.mark.parametrize("fault", [faults.not_found(), faults.unauthorized(echo=KEY)])
def test_an_endpoint_without_batches_is_one_line(made, capsys, fault):
    """It says what to do, and never the key."""
    server, folder, _ = made
    server.refuse("list", fault, fault, fault)
    assert run(folder, "--batch") == 1
    error = capsys.readouterr().err
    assert "leave --batch out" in error
    assert KEY not in error
