"""How far a run is, told by the run itself: exact against the ledger, safe when it is killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.cli.main import main
from botchat.interfaces import Reply, Usage
from botchat.pipeline.live import Live, _run, _step
from botchat.pipeline.run import progress
from botchat.protocols.catalogue import Catalogue
from botchat.report.live import StepRow, render, whole
from botchat.requests.meter import Step
from botchat.workspace.accounts import stats
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.progress import Progress, StepProgress
from tests.integration.test_runs import start
from tests.integration.test_runs import workspace as with_models
from tests.openai_server import Gate, Server, by_model, converse, faults, text

PRICES = {"price_input": 3.0, "price_output": 15.0}


def until(condition: Callable[[], object]) -> object:
    """The first true value of a condition that another process or thread will meet soon."""
    end = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < end, "it never came"
        threading.Event().wait(0.01)
    return found


def account(workspace: Workspace) -> tuple[int, float, int]:
    """Calls, dollars and tokens of the whole ledger."""
    with contextlib.closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        rows = stats(ledger)
    return (
        sum(row.calls for row in rows),
        sum(row.cost_usd or 0.0 for row in rows),
        sum(row.prompt_tokens + row.completion_tokens for row in rows),
    )


def step(**changed) -> StepProgress:
    """A step of ten calls, four of them made for a cent each."""
    made = StepProgress("s", "arena-n16", "j", 10, 4, 4, 0, 400, 0.04, 0, {}, 6)
    return msgspec.structs.replace(made, **changed)


def told(*steps: StepProgress, **changed) -> Progress:
    """A run of these steps that goes on."""
    made = Progress(
        process=7,
        host="h",
        command="botchat judge arena --seeds s --dir /secret/place --json",
        started=100.0,
        at=110.0,
        heard=109.0,
        state="running",
        why="",
        rate=2.0,
        steps=list(steps or [step()]),
        spent_usd=0.04,
        spent_calls=4,
        spent_tokens=400,
        max_usd=None,
        max_calls=None,
        max_tokens=None,
        estimated=0,
        batches={},
        notes=[],
    )
    return msgspec.structs.replace(made, **changed)


def run(*steps: StepProgress, **changed):
    """The same as people follow it."""
    return _run(told(*steps, **changed), "process 7 on h: botchat judge")


def test_what_is_done_left_and_projected() -> None:
    """Shares are of calls; the projection is what is spent and the rest at each step's own mean."""
    found = run(step(), step(protocol="unieval", calls=1, left=99, cost_usd=0.1, tokens=100))
    assert (found.done, found.planned, found.unit, found.percent) == (5, 110, "calls", 4)
    assert found.left_s == 105 / 2
    assert found.projected_usd == pytest.approx(0.04 + 6 * 0.01 + 99 * 0.1)
    assert found.limit_s is None
    assert found.command == "botchat judge arena --seeds s"


@pytest.mark.parametrize(
    ("limit", "share"),
    [
        ({"max_usd": 0.07}, 3 / 6),
        ({"max_usd": 0.10}, None),
        ({"max_calls": 6}, 2 / 6),
        ({"max_calls": 10}, None),
        ({"max_tokens": 500}, 1 / 6),
        ({"max_usd": 0.07, "max_calls": 6, "max_tokens": 500}, 1 / 6),
        ({"max_usd": 0.01}, 0.0),
    ],
)
def test_the_limit_that_stops_it_first(limit: dict[str, float], share: float | None) -> None:
    """In how many seconds, at the rate that there is; none if what is left fits."""
    found = run(**limit).limit_s
    assert found == (None if share is None else pytest.approx(share * 6 / 2))


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    """No mean yet, an unknown price, an adaptive run, no rate: "–", never 0."""
    assert run(step(calls=0, cost_usd=0.0)).projected_usd is None
    assert run(step(unpriced=1)).projected_usd is None
    assert run(step(calls=0, left=0, replayed=4)).projected_usd == 0.04
    found = run(step(items=None, left=None))
    assert (found.planned, found.percent, found.left_s, found.projected_usd) == (None,) * 4
    assert run(rate=None).left_s is None
    page = render(replace(Live(Workspace(Path("nowhere")), "sample").state(), run=found))
    assert "4 of – (not known yet) calls" in " ".join(page.split())
    assert '<p class="big">–</p>' in page


def test_a_run_without_calls_is_counted_in_verdicts() -> None:
    """The rules judge asks nobody."""
    found = run(step(calls=0, left=0, done=3, items=12, cost_usd=0.0))
    assert (found.done, found.planned, found.unit, found.percent) == (3, 12, "verdicts", 25)
    assert found.left_s == pytest.approx(9 / 0.3)


def test_how_a_run_ended() -> None:
    """One whose process is gone was killed, whoever else writes now; others say it themselves."""
    for other in ("", "process 8 on h: botchat judge", "process 7 on elsewhere: botchat judge"):
        assert _run(told(), other).state == "killed"
    for state in ("done", "stopped", "failed", "interrupted"):
        assert _run(told(state=state), "").state == state


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 5))
def test_calls_left_are_those_of_items_not_begun_and_of_those_under_way(
    seed: int, n: int, each: int
) -> None:
    """Whatever the order: at any time calls and calls left are the plan, unless items end early."""
    rng, plan = Random(seed), Step("s", "", "m", n, each=each)
    under_way: list[tuple[contextlib.ExitStack, object, int]] = []
    begun = counted = spared = 0
    reply = Reply("ok", usage=Usage(1, 1), cost_usd=0.5)
    while plan.done < n:
        if begun < n and (not under_way or rng.random() < 0.4):
            stack = contextlib.ExitStack()
            under_way.append((stack, stack.enter_context(plan.item()), rng.randint(0, each)))
            begun += 1
        i = rng.randrange(len(under_way))
        stack, item, most = under_way[i]
        if item.calls < most:
            plan.count(item, reply, stored=rng.random() < 0.3)
            counted += 1
        else:
            stack.close()
            spared += each - item.calls
            del under_way[i]
        assert counted + plan.left + spared == n * each
        assert plan.calls + plan.replayed == counted
    assert plan.left == 0
    assert plan.cost_usd == 0.5 * plan.calls


def test_a_row_a_step_and_one_that_failed_is_not_done() -> None:
    """Models are folded with their sums; what failed or waits in one is said of all."""
    of = {"total": 10, "unit": "calls", "cost_usd": 0.5, "unpriced": 1}
    one = StepRow("Dialogues", "a", 10, calls=10, failed="", **of)
    other = replace(one, by="b", done=4, calls=4, failed="6 transport", state="failed")
    judge = replace(one, name="UniEval", by="j", done=0, calls=0, state="waiting")
    both, last = whole([one, other, judge])
    assert last is judge
    assert (both.by, both.done, both.total, both.calls) == ("2 models", 14, 20, 14)
    assert (both.cost_usd, both.unpriced, both.failed) == (1.0, 2, "b: 6 transport")
    assert (both.state, both.share) == ("failed", 0.7)
    assert [two.state for two in whole([one, replace(one, by="b", state="waiting")])] == ["waiting"]
    assert whole([one, replace(one, total=None)])[0].total is None


def test_standings_so_far_are_those_of_the_board(demo_folder: Path, tmp_path: Path) -> None:
    """From 20 verdicts on, each with the interval that it has on the leaderboard."""
    shutil.copytree(demo_folder, tmp_path / "demo")
    (told,) = (tmp_path / "demo/judgments/sample/unieval").glob("rules*.jsonl")
    os.utime(told, (2e9, 2e9))
    live = Live(Workspace(tmp_path / "demo"), "sample")
    found = live.state().standings
    assert found is not None
    assert found.about == "UniEval, by rules"
    board = json.loads((tmp_path / "demo/leaderboards/sample/leaderboard.json").read_text())
    keys = ("success_n16", "success_n16_low", "success_n16_high")
    rows = {row["model"]: [row[key] for key in keys] for row in board["rows"]}
    assert {name for name, *_ in found.rows} == rows.keys()
    for name, n, *said in found.rows:
        assert (n, said) == (40, pytest.approx(rows[name], abs=1e-4))
    assert "bot:verbose" in render(live.state())
    told.write_bytes(b"".join(told.read_bytes().splitlines(keepends=True)[:19]))
    os.utime(told, (2e9, 2e9))
    again = live.state().standings
    assert again is None or again.about != found.about


def test_calls_of_a_panel_are_known_when_its_first_case_is_done() -> None:
    """And follow the mean; cases that were stored before make none."""
    plan, reply = Step("s", "p", "j", 5), Reply("ok")
    assert plan.left is None
    for n in (0, 3, 5):
        with plan.item() as item:
            for _ in range(n):
                plan.count(item, reply, stored=False)
    assert plan.left == 2 * 4
    adaptive = Step("s", "p", "j", None, each=1)
    with adaptive.item():
        assert adaptive.left is None


def test_a_case_that_a_limit_stopped_is_not_done() -> None:
    """An exception leaves the rest of it to be asked for."""
    plan = Step("s", "p", "j", 2, each=2)
    with contextlib.suppress(KeyError), plan.item() as item:
        plan.count(item, Reply("ok"), stored=False)
        raise KeyError
    assert (plan.done, plan.calls, plan.left) == (0, 1, 3)


def test_a_finished_run_is_exact_against_its_ledger(tmp_path: Path) -> None:
    """Generation, then two Arenas in one run, with unreadable verdicts and tries that failed."""

    def umpire(call):
        if call.repeat == 1 and call.n % 7 == 0:
            return faults.server_error(503, retry_after="0")
        return text("I cannot say.") if call.n % 5 == 0 else converse(call)

    with Server(by_model({"umpire": umpire})) as server:
        workspace = Workspace(with_models(tmp_path, server, n_seeds=6, **PRICES))
        common = ["--seeds", "small", "--dir", str(tmp_path)]
        models = ["--model", "alpha", "--model", "beta"]
        assert main(["generate", *models, "--turns", "5", *common]) == 0
        made = account(workspace)
        state = Live(workspace, "small").state()
        first = state.run
        assert first is not None
        assert (first.state, first.done, first.planned) == ("done", 2 * 6 * 3, 2 * 6 * 3)
        assert first.spent_usd == pytest.approx(made[1])
        assert first.spent_tokens == made[2]
        assert [(one.name, one.by, one.done) for one in state.run_steps] == [
            ("Dialogues", "alpha", 18),
            ("Dialogues", "beta", 18),
        ]
        turns = ["--turns", "3", "--turns", "5"]
        assert main(["judge", "arena", "--judge", "umpire", *turns, *common, "--max-usd", "9"]) == 0
        live = Live(workspace, "small").state()
        now, found = account(workspace), live.run
    assert found is not None
    calls, usd, tokens = (after - before for after, before in zip(now, made, strict=True))
    assert (found.done, found.planned, found.percent) == (calls, calls, 100)
    assert sum(one.calls or 0 for one in found.steps) == calls
    assert sum(one.cost_usd or 0.0 for one in found.steps) == pytest.approx(usd)
    assert found.spent_usd == found.projected_usd == pytest.approx(usd)
    assert (found.spent_tokens, found.max_usd) == (tokens, 9.0)
    unread = [
        one
        for judged in workspace.judgment_files("small")["umpire"].values()
        for one in workspace.judgments(judged).values()
        if one.verdict is None
    ]
    assert found.failures == [(len(unread), "unreadable", "I cannot say.")]
    # The whole set, from stage files and the ledger, is the same again.
    assert sum(one.calls or 0 for one in live.steps) == now[0]
    assert sum(one.cost_usd or 0.0 for one in live.steps) == pytest.approx(now[1])
    assert [one.failed for one in live.steps if one.by == "umpire"] == [
        one.failed for one in live.run_steps
    ]
    newest = [one.at for one in live.verdicts]
    assert newest == sorted(newest, reverse=True)
    assert {one.text[:8] for one in live.failed} == {"I cannot"}  # no try that succeeded later
    # A second run of the same asks nothing and plans nothing.
    assert main(["judge", "arena", "--judge", "umpire", *turns, *common]) == 0
    again = Live(workspace, "small").state().run
    assert again is not None
    assert (again.state, again.unit, again.spent_usd) == ("done", "verdicts", 0.0)
    assert again.done == again.planned == calls


def test_a_run_is_followed_and_its_death_is_noticed(tmp_path: Path) -> None:
    """Half the calls answered, the rest held: exact numbers; killed: said, with what was told."""
    gate = Gate()
    with Server(lambda call: replace(converse(call), gate=gate)) as server:
        workspace = Workspace(with_models(tmp_path, server, n_seeds=4, **PRICES))
        command = ["generate", "--seeds", "small", "--turns", "6", "--model", "alpha"]
        process = start(tmp_path, [*command, "--max-usd", "1"])
        try:
            gate.wait_held(1)
            gate.release(7)

            def of_seven() -> Progress | None:
                found = progress.read(workspace)
                return found if found and found.steps[0].calls == 7 else None

            until(of_seven)
            live = Live(workspace, "small")
            found = live.state().run
            assert found is not None
            assert (found.state, found.done, found.planned, found.percent) == ("running", 7, 16, 43)
            calls, usd, tokens = account(workspace)
            assert calls == 7
            assert found.spent_usd == pytest.approx(usd)
            assert found.projected_usd == pytest.approx(usd + 9 * usd / 7)
            assert (found.max_usd, found.spent_tokens) == (1.0, tokens)
            assert "43 % done" in render(live.state())
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed = live.state()
            assert killed.run is not None
            assert (killed.run.state, killed.run.done) == ("killed", 7)
            assert "Every reply that it got is stored" in render(killed)
        finally:
            gate.open()
            process.kill()
            process.communicate()
        # The same command goes on: what is in the ledger counts as done, and costs nothing.
        assert main([*command, "--dir", str(tmp_path)]) == 0
    found = live.state().run
    assert found is not None
    assert (found.state, found.done, found.planned) == ("done", 16, 16)
    assert found.spent_usd < account(workspace)[1]


def test_a_run_stopped_by_its_limit_says_so(tmp_path: Path) -> None:
    """With the reason, and the share that was done."""
    with Server(converse) as server:
        workspace = Workspace(with_models(tmp_path, server, n_seeds=4))
        command = ["generate", "--seeds", "small", "--turns", "6", "--model", "alpha"]
        assert main([*command, "--max-calls", "4", "--dir", str(tmp_path)]) == 3
    state = Live(workspace, "small").state()
    assert state.run is not None
    assert (state.run.state, state.run.done, state.run.percent) == ("stopped", 4, 25)
    page = render(state)
    assert "! Stopped by a limit at 25 %" in page
    assert "stopped at --max-calls 4" in page
    assert "4 of at most 4 calls" in page


def test_a_silent_endpoint_is_said_on_top() -> None:
    """A run that goes on without a reply for long, but not one that waits for batches."""
    base = Live(Workspace(Path("nowhere")), "sample").state()
    quiet = replace(base, now=150.0, run=run())
    assert quiet.quiet_s == 41.0
    assert "No reply for 41 s." in render(quiet)
    assert replace(base, now=120.0, run=run()).quiet_s == 0.0
    assert replace(base, now=150.0, run=run(batches={"b": (1, 9)})).quiet_s == 0.0


def test_what_is_told_is_ours_alone_and_holds_no_key(tmp_path: Path) -> None:
    """Mode 600, no key, and a file that is torn or of another version is no run."""
    with Server(converse) as server:
        folder = with_models(tmp_path, server, n_seeds=1)
        command = ["generate", "--seeds", "small", "--turns", "3", "--dir", str(folder)]
        url = server.url.replace("http://", "http://amy:hunter22@")
        assert main([*command, "--model", f"{url}#m"]) == 0
    path = progress.path(Workspace(folder))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "hunter22" not in path.read_text()
    for data in (b"", b"{", json.dumps({"version": 2}).encode(), b"\xff"):
        path.write_bytes(data)
        assert progress.read(Workspace(folder)) is None
        assert Live(Workspace(folder), "small").state().run is None


@pytest.mark.parametrize(
    ("step", "running", "ended"),
    [
        ({"items": 2, "done": 2, "left": 0}, "done", "done"),
        ({"items": 2, "done": 1, "left": 3}, "running", "waiting"),
        ({"left": 40, "begun": False}, "waiting", "waiting"),
        ({"items": 1, "done": 1, "left": 0, "failures": {"malformed": (1, "")}}, *["failed"] * 2),
        ({"items": 2, "done": 2, "left": 0, "failures": {"unreadable": (1, "")}}, "done", "done"),
    ],
)  # fmt: skip
def test_only_what_is_whole_and_answered_is_ticked(step, running, ended):
    """A step that lost calls, or did not come to its end, has no tick when the run is over."""
    made = StepProgress("s", "", "m", **step)
    for state, shown in (("running", running), ("done", ended), ("stopped", ended)):
        assert _step(made, state, Catalogue()).state == shown
