"""Limits, prices and first calls against a real server: requests counted, nothing above a limit."""

import contextlib
import json
import signal

import pytest

from botchat.cli.main import main
from botchat.workspace.ledger import Ledger
from botchat.workspace.usage import stats
from tests.integration.test_runs import IN_FLIGHT, start, workspace
from tests.openai_server import Server, converse, faults, text
from tests.rows import cases, rows

GENERATE = ["generate", "--seeds", "small", "--turns", "4", "--model", "alpha"]
PRICES = {"max_tokens": 2048, "price_input": 1.0, "price_output": 10.0}


def run(folder, *flags, command=GENERATE):
    """One command in this process; its exit code."""
    return main([*command, *flags, "--dir", str(folder)])


def account(folder):
    """Answered calls, failed attempts and known dollars of the ledger."""
    with contextlib.closing(Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)) as found:
        rows = stats(found)
    return (
        sum(row.calls for row in rows),
        sum(row.failed_attempts for row in rows),
        sum(row.cost_usd or 0.0 for row in rows),
    )


def usage(**counts):
    """Everyday talk with these counts in the place of its own."""
    return lambda call: text(f"answer {call.n}", usage=counts)


SILENT = {
    "none": lambda call: faults.no_usage(f"answer {call.n}"),
    "negative": usage(prompt_tokens=-100, completion_tokens=-1),
    "half": usage(prompt_tokens=10),
    "zero": usage(prompt_tokens=0, completion_tokens=0, total_tokens=0),
    "one of each": usage(prompt_tokens=1, completion_tokens=1, total_tokens=2),
    "one and none": usage(prompt_tokens=1, completion_tokens=0),
    "ten, in text": usage(prompt_tokens="10", completion_tokens="10"),
    "no prompt": usage(prompt_tokens=3, completion_tokens=500, total_tokens=503),
    "no reply": usage(prompt_tokens=250, completion_tokens=0, total_tokens=250),
    "absurd": usage(prompt_tokens=10**30, completion_tokens=-(2**70)),
    "fractions": usage(prompt_tokens=0.5, completion_tokens=1.5),
    "a list": lambda call: text(f"answer {call.n}", usage=[1]),
}


@pytest.mark.parametrize(("counts", "cost"), cases("costs_that_are_said", 2))
def test_a_cost_is_believed_where_it_is_more_than_what_was_said(tmp_path, capsys, counts, cost):
    """Not where it is less than tokens times price, or nothing tells the tokens: two calls."""
    with Server(usage(**counts, cost=cost)) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert run(folder, "--max-usd", "0.05") == 3
        assert 1 <= server.n_received <= 2
    assert "stopped at --max-usd 0.05" in capsys.readouterr().err


@pytest.mark.parametrize("counts", [("prompt_tokens", 30000), ("total_tokens", 30000),
                                    ("prompt_tokens", "30000")])  # fmt: skip
def test_a_prompt_beyond_its_bytes_counts_however_it_is_said(tmp_path, counts):
    """It is spent and expected of the next, for which nothing is left: one call."""
    with Server(usage(completion_tokens=0, **dict([counts]))) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert (run(folder, "--max-tokens", "60000"), server.n_received) == (3, 1)


def thinks(call):
    """A model that shows nothing without room, and bills all that it may."""
    cap = call.body["max_tokens"]
    counts = {"prompt_tokens": 300, "completion_tokens": cap, "total_tokens": 300 + cap}
    return text("" if cap == 2048 else f"answer {call.n}", finish_reason="length", usage=counts)


@pytest.mark.parametrize(("flag", "most"), [("--max-tokens", 30_000), ("--max-usd", 0.3)])
def test_a_limit_holds_where_a_model_turns_out_to_think(tmp_path, capsys, flag, most):
    """The room is reserved for as the rest; what was billed before it was learnt counts, too."""
    with Server(thinks) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert run(folder, flag, str(most)) == 3
        caps = [call.body["max_tokens"] for call in server.calls]
        assert caps[:2] == [2048, 2048 + 8192]
        billed = {"--max-tokens": sum(caps) + 300 * len(caps), "--max-usd": sum(caps) * 1e-5}
        assert 0.5 * most < billed[flag] <= most
    assert f"stopped at {flag}" in capsys.readouterr().err


@pytest.mark.parametrize("kind", SILENT)
@pytest.mark.parametrize("flags", [["--max-usd", "0.05"], ["--max-tokens", "8000"]])
def test_a_limit_stops_also_where_no_reply_says_what_it_took(tmp_path, capsys, kind, flags):
    """Each call counts as what it may take at most: exit 3, and the summary says how many do."""
    most = 2  # calls that may take 2,048 tokens and the bytes of their request
    with Server(SILENT[kind]) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert run(folder, *flags, "--json") == 3
        said = capsys.readouterr()
        assert server.n_received == most
        assert f"stopped at {flags[0]}" in said.err
        found = json.loads(said.out)
        assert found["cost_usd"] is None  # unknown is never 0
        assert found["estimated"]["calls"] == most
        assert 2048 * most < found["estimated"]["tokens"] < 4000 * most
        # What is stored is not asked again; the next run has the whole limit once more.
        assert run(folder, *flags) == 3
        assert server.n_received == 2 * most
        assert account(folder)[:2] == (2 * most, 0)


def test_a_dollar_with_64_in_flight_is_never_exceeded(tmp_path, capsys):
    """Every reply takes all that it may: 50 calls of 2 cents, whatever is in flight."""
    with Server(usage(prompt_tokens=20, completion_tokens=2000), latency_s=0.05) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=100, **PRICES | {"max_tokens": 2000})
        settings = folder / "botchat.toml"
        settings.write_text(settings.read_text().replace(f"= {IN_FLIGHT}\n", "= 64\n"))
        assert run(folder, "--max-usd", "1") == 3
        calls, _, usd = account(folder)
        assert calls == server.n_received == 49  # the 50th might take its prompt beyond 2 cents
        assert 0.97 < usd <= 1.0
        assert server.max_in_flight > 2
    assert "the next call may cost up to $0.02" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "toml", "named"), rows("an_unknown_price_is_refused_before_anything_is_sent")
)
def test_an_unknown_price_is_refused_before_anything_is_sent(
    tmp_path, capsys, command, toml, named
):
    """--max-usd: exit 1, one line with the model and the settings; for a panel too."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert run(folder) == 0
        before = server.n_received
        settings = folder / "botchat.toml"
        whole = settings.read_text().split("\n\n")
        bare = [part for part in whole if "[models.gamma]" not in part]
        gamma = f'[models.gamma]\nmodel = "gamma"\nbase_url = "{server.url}"\n'
        settings.write_text("\n\n".join([*bare, gamma, toml]))
        capsys.readouterr()
        assert run(folder, "--max-usd", "5", command=command) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"--max-usd 5 cannot be kept: the price of {named} is unknown" in error
        assert "price_input and price_output" in error
        assert server.n_received == before


@pytest.mark.parametrize("flags", [["--max-usd", "5"], ["--max-tokens", "100000"]])
def test_a_reply_that_nothing_limits_is_refused_before_anything_is_sent(tmp_path, capsys, flags):
    """No max_tokens and no window: one line that says which to give; either is enough."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=2, **PRICES | {"max_tokens": "none"})
        assert run(folder, *flags) == 1
        error = capsys.readouterr().err
        assert "nothing limits a reply of alpha; set max_tokens or context_window" in error
        assert error.count("\n") == 1
        assert server.n_received == 0
        settings = folder / "botchat.toml"
        window = "context_window = 4096\nmax_concurrency"
        settings.write_text(settings.read_text().replace("max_concurrency", window))
        assert run(folder, *flags) == 0


def test_an_interrupt_during_a_pause_ends_at_once(tmp_path):
    """Retry-After of ten minutes: nothing is under way, so nothing is waited for."""
    with Server(faults.rate_limited("600")) as server:
        folder = workspace(tmp_path / "w", server)
        process = start(folder, GENERATE)  # of one model: another would have a call under way
        server.wait_for(1)
        server.wait_idle()
        # The reply is noted before the pause begins.
        while not account(folder)[1]:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
    assert (process.returncode, server.n_received) == (130, 1)
    assert "under way" not in error
