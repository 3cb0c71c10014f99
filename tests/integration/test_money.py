"""Limits, prices and first calls against a real server: requests counted, nothing above a limit."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket

import pytest

from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline.run import session
from botchat.workspace.ledger import Ledger
from botchat.workspace.usage import stats
from tests.integration.test_runs import IN_FLIGHT, commands, start, workspace
from tests.openai_server import Server, by_model, converse, faults, text

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
}


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


def test_a_cost_of_zero_beside_a_price_counts_as_reserved(tmp_path, capsys):
    """A router that says that calls are free does not switch the limit off."""
    free = usage(prompt_tokens=5, completion_tokens=5, cost=0)
    with Server(free) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert run(folder, "--max-usd", "0.05", "--json") == 3
        assert server.n_received == 2
    assert json.loads(capsys.readouterr().out)["cost_usd"] is None


def test_the_summary_says_that_calls_are_estimates_also_without_a_limit(tmp_path, capsys):
    """A finished run: how many calls, and what they were counted at."""
    with Server(SILENT["none"]) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=2, **PRICES)
        assert run(folder) == 0
    said = capsys.readouterr().out
    assert re.search(r"4 calls, [\d,]+ tokens, \$0\.08\d+, 4 calls estimated", said)
    assert "of unknown cost" not in said


def test_a_dollar_with_64_in_flight_is_never_exceeded(tmp_path, capsys):
    """Every reply takes all that it may: 50 calls of 2 cents, whatever is in flight."""
    with Server(usage(prompt_tokens=1, completion_tokens=2000), latency_s=0.001) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=100, **PRICES | {"max_tokens": 2000})
        settings = folder / "botchat.toml"
        settings.write_text(settings.read_text().replace(f"= {IN_FLIGHT}\n", "= 64\n"))
        assert run(folder, "--max-usd", "1") == 3
        calls, _, usd = account(folder)
        assert calls == server.n_received == 49  # the 50th might take its prompt beyond 2 cents
        assert 0.97 < usd <= 1.0
        assert server.max_in_flight > 2
    assert "the next call may cost up to $0.02" in capsys.readouterr().err


def test_an_attempt_that_broke_counts_under_a_limit(tmp_path, capsys, monkeypatch):
    """The connection breaks after the request was sent: it may have been billed."""
    monkeypatch.setattr(session, "Retry", lambda: Retry(attempts=6, first_s=0.0))
    with Server(faults.reset_before_headers()) as server:
        folder = workspace(tmp_path / "w", server, **PRICES)
        assert run(folder, "--max-usd", "0.05", "--json") == 3
        assert server.n_received == 2
    found = json.loads(capsys.readouterr().out)
    assert found["estimated"]["calls"] == 2


def test_attempts_that_were_turned_away_cost_nothing(tmp_path, monkeypatch):
    """429 and 503 are no bill: the limit is as it was."""
    monkeypatch.setattr(session, "Retry", lambda: Retry(attempts=6, first_s=0.0))

    def script(call):
        turned_away = [faults.rate_limited("0"), faults.server_error(503)]
        return [*turned_away, converse(call)][min(call.repeat, 3) - 1]

    with Server(script) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=2, **PRICES)
        assert run(folder, "--max-usd", "0.025") == 0
        assert server.n_received == 3 * 4


@pytest.mark.parametrize(
    ("command", "toml", "named"),
    [
        (["generate", "--seeds", "small", "--model", "alpha", "--partner", "gamma"], "", "gamma"),
        (
            ["judge", "unieval", "--seeds", "small", "--judge", "three"],
            '[panels.three]\nstrategy = "ensemble"\n'
            'agents = [{name = "a", model = "alpha"}, {name = "b", model = "gamma"}]\n',
            "gamma",
        ),
    ],
    ids=["partner", "panel"],
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


def test_a_plan_says_of_which_models_the_price_is_not_known(tmp_path, capsys):
    """One named by its address has none; with a price there is no such line."""
    with Server(converse) as server:
        folder, bare = workspace(tmp_path / "w", server, **PRICES), f"{server.url}#gamma"
        main(["generate", "--seeds", "small", "--model", bare, "--dir", str(folder), "--plan"])
        said = capsys.readouterr().out
        assert f"The price of {bare} is not known: tell it by price_input and price_output" in said
        assert run(folder, "--plan") == 0
        assert "not known" not in capsys.readouterr().out


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
        settings.write_text(
            settings.read_text().replace(
                "max_concurrency", "context_window = 4096\nmax_concurrency"
            )
        )
        assert run(folder, *flags) == 0


def test_an_unknown_model_costs_one_request_however_many_seeds_wait(tmp_path, capsys):
    """547 dialogues are to be made; the first request says that there is no such model."""
    with Server(converse, models=["other"]) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=547)
        assert run(folder) == 1
        assert server.n_received == 1
        assert "404" in capsys.readouterr().err


def test_a_server_that_is_down_costs_the_tries_of_one_call(tmp_path, capsys, monkeypatch):
    """A refused port: six tries in all, in the record, and no word of a bill."""
    monkeypatch.setattr(session, "Retry", lambda: Retry(attempts=6, first_s=0.0))
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=547)
        settings = folder / "botchat.toml"
        with socket.socket() as closed:  # bound, but nobody listens: it refuses
            closed.bind(("127.0.0.1", 0))
            refused = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
            settings.write_text(settings.read_text().replace(server.url, refused))
            assert run(folder) == 1
        assert server.n_received == 0
    error = capsys.readouterr().err
    assert "alpha has not answered once" in error
    assert "billed" not in error
    assert account(folder)[:2] == (0, 6)


def test_one_model_in_three_roles_knocks_once(tmp_path):
    """A panel of one model that is unknown: one request, not one a role."""
    judge = ["judge", "unieval", "--seeds", "small", "--judge", "chateval-3-roles"]
    with Server(by_model({"umpire": faults.model_not_found("umpire")})) as server:
        folder = workspace(tmp_path / "w", server)
        assert run(folder) == 0
        assert run(folder, "--judge-model", "umpire", command=judge) == 1
        assert server.n_by_model["umpire"] == 1


def test_an_interrupt_during_a_pause_ends_at_once(tmp_path):
    """Retry-After of ten minutes: nothing is under way, so nothing is waited for."""
    with Server(faults.rate_limited("600")) as server:
        folder = workspace(tmp_path / "w", server)
        process = start(folder, next(commands()))
        server.wait_for(1)
        server.wait_idle()
        # The reply is noted before the pause begins.
        while not account(folder)[1]:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
    assert process.returncode == 130
    assert "under way" not in error
