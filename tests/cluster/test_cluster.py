"""Runs whose calls are made by workers: the same bytes, limits kept, nothing lost with a worker."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import fsspec
import joblib
import pytest

import botchat
from botchat import parallel
from botchat.cli.main import main
from botchat.cluster import head, leases
from botchat.cluster import shards as cluster
from botchat.errors import BotChatError, ConfigError, FatalModelError, LimitReached
from botchat.pipeline.run.session import Session
from botchat.ratings.adaptive import AdaptiveSettings
from botchat.records import Seed
from botchat.requests import Generating, Judging, Running
from botchat.requests.arguments import Limits, Spending
from botchat.requests.meter import Meter
from botchat.workspace import segments
from botchat.workspace.config import ClusterSettings
from botchat.workspace.folder import Workspace
from botchat.workspace.store import Store
from tests.openai_server import Billed, Server, converse, templates

MODELS = ("alpha", "beta")
JUDGE = "umpire"
MINE = "s3cr3t-of-mine"

needs = {
    "dask": pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None, reason="needs dask[distributed]"
    ),
    "ray": [
        pytest.mark.opt_in,
        pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray"),
    ],
}


def workspace(folder: Path, server: Server, more: str = "", **each: object) -> Workspace:
    """Three seeds and three models, whose price is $1 a million tokens."""
    made = Workspace(folder)
    made.write_seeds(
        "few", [Seed(f"s{n}", tuple(f"line {i} of {n}" for i in range(4))) for n in range(3)]
    )
    usual = {"max_concurrency": 3, "max_tokens": 64, "price_input": 1.0, "price_output": 1.0}
    lines = "".join(f"{key} = {value}\n" for key, value in {**usual, **each}.items())
    entries = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\nidentity = "one"\n{lines}'
        for name in (*MODELS, "umpire")
    ]
    (folder / "botchat.toml").write_text("\n".join([*entries, more]))
    return made


def files(made: Workspace) -> dict[str, bytes]:
    """Every stage file and board."""
    return {
        str(path.relative_to(made.root)): path.read_bytes()
        for stage in ("generations", "judgments", "leaderboards")
        for path in sorted((made.root / stage).rglob("*"))
        if path.suffix in (".jsonl", ".csv")
    }


def ran(made: Workspace, meter: Meter | None = None) -> dict[str, bytes]:
    """The files of both stages."""
    Generating("few", MODELS, turns=6).run(made, None, meter)
    Judging("arena", "few", JUDGE, turns=(3, 4)).run(made, None, meter)
    return files(made)


def generating(turns: int = 5) -> Generating:
    """Eighteen calls."""
    return Generating("few", MODELS, turns=turns)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Files, calls and account of a run without workers."""
    with Server() as server:
        meter = Meter()
        made = ran(workspace(tmp_path_factory.mktemp("alone"), server), meter)
        yield made, server.n_received, meter


ENGINES = [
    pytest.param(engine, workers, marks=needs.get(engine, ()))
    for engine, workers in (("threading", 4), ("dask", 4), ("ray", 2))
]


@pytest.fixture(scope="module")
def scheduler():
    """Address of one of dask's whose workers are threads of this process."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("ignore")  # of dask and ray
@pytest.mark.parametrize(("engine", "workers"), ENGINES)
def test_workers_give_the_same_bytes(alone, server, tmp_path, request, engine, workers):
    """Stage files and account; each call is sent once, and the run itself sends none."""
    expected, calls, account = alone
    made, meter = workspace(tmp_path, server), Meter()
    address = request.getfixturevalue("scheduler") if engine == "dask" else None
    with parallel.engine(engine, workers, address):
        assert ran(made, meter) == expected
    assert server.n_received == calls == meter.calls
    assert meter.replayed == calls + account.replayed  # all of it by the run itself
    assert meter.cost_usd == pytest.approx(account.cost_usd)
    assert not (tmp_path / ".botchat" / "spool").exists()


def test_a_whole_run_by_workers_gives_the_same_boards(server, tmp_path):
    """Tables with all their intervals and costs, from one budget."""
    request, made = Running("few", MODELS, JUDGE, protocols=("unieval", "gteval"), limit=2), {}
    for engine in (None, "threading"):
        made[engine] = workspace(tmp_path / str(engine), server)
        with parallel.engine(engine, 2, None):
            request.run(made[engine], Spending(Limits(max_usd=1.0)))
    assert files(made[None]) == files(made["threading"])
    assert any("leaderboards" in name for name in files(made[None]))


def test_adaptive_batches_panels_and_controls_are_asked_by_workers(server, tmp_path):
    """Every request that judges; a control that needs a panel's tokens is asked by the run."""

    def judged(folder, engine):
        made = workspace(tmp_path / folder, server)
        before = server.n_received
        with parallel.engine(engine, 2, None):
            generating().run(made)
            settings = AdaptiveSettings(target=None, budget=6)
            Judging("arena", "few", JUDGE, turns=(3, 4), settings=settings).run(made)
            panel = {"judge_model": "umpire", "control": True}
            Judging("unieval", "few", "chateval-default", **panel).run(made)
        return files(made), server.n_received - before

    assert judged("workers", "threading") == judged("alone", None)


def test_the_settings_name_an_engine_and_a_flag_another(server, tmp_path, capsys, monkeypatch):
    """``[cluster]`` of botchat.toml, ``--engine`` before it; a Batch API needs neither."""
    used = []
    each = parallel.Engine.each

    def watched(self, tasks):
        used.append((type(self.backend).__name__, self.workers))
        return each(self, tasks)

    monkeypatch.setattr(parallel.Engine, "each", watched)
    made = workspace(tmp_path, server, '[cluster]\nengine = "threading"\nworkers = 2\n')
    generate = ["generate", "--seeds", "few", "--model", "alpha", "--dir", str(tmp_path)]
    assert main([*generate, "--turns", "3"]) == 0
    assert main([*generate, "--turns", "4", "--engine", "sequential", "--workers", "1"]) == 0
    with joblib.parallel_config("threading", n_jobs=3):
        generating().run(made)
    assert used == [("ThreadingBackend", 2), ("SequentialBackend", 1), ("ThreadingBackend", 3)]
    assert capsys.readouterr().out.count("3 calls") == 2


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--workers", "2"], "--workers 2: name their --engine"),
        (["--engine", "loky", "--workers", "0"], "--workers 0: give at least 1"),
        (["--engine", "lokky"], "no engine 'lokky' (did you mean 'loky'?); engines"),
    ],
)
def test_what_is_no_engine_is_said(tmp_path, capsys, flags, said):
    """In one line, before anything is asked."""
    generate = ["generate", "--seeds", "sample", "--model", "bot:eliza", "--dir", str(tmp_path)]
    assert main([*generate, *flags]) == 1
    assert said in capsys.readouterr().err


def test_only_what_is_missing_is_given_out(server, tmp_path, caplog):
    """A dialogue that was cut short goes on where it was; what is there is not asked.

    That workers bring nothing for such endpoints, which are on no node, is said once.
    """
    made = workspace(tmp_path, server)
    settings = made.root / "botchat.toml"
    settings.write_text(settings.read_text().replace('identity = "one"\n', ""))
    with pytest.raises(LimitReached):
        generating().run(made, Spending(Limits(max_calls=7)))
    assert server.n_received == 7
    with parallel.engine("threading", 2, None):
        generating().run(made)
    assert server.n_received == 18
    assert len({call.body["model"] + str(call.messages) for call in server.calls}) == 18
    assert caplog.text.count("one process is enough for these endpoints") == 1


@pytest.mark.parametrize("limit", [{"max_calls": 7}, {"max_tokens": 3000}])
def test_a_limit_holds_over_all_workers(server, tmp_path, limit):
    """And the same command goes on."""
    made, meter = workspace(tmp_path, server), Meter()
    with parallel.engine("threading", 2, None):
        with pytest.raises(LimitReached, match=f"--{next(iter(limit)).replace('_', '-')}"):
            generating().run(made, Spending(Limits(**limit)), meter)
        spent = {
            "max_calls": server.n_received,
            "max_tokens": meter.tokens,
        }
        ((name, most),) = limit.items()
        assert 0 < spent[name] <= most
        generating().run(made)
    assert server.n_received == 18


def test_a_wrong_key_is_said_as_without_workers(tmp_path):
    """By the run itself, which tries it once."""
    with Server(api_key="right") as server:
        made = workspace(tmp_path, server)
        with (
            parallel.engine("threading", 2, None),
            pytest.raises(FatalModelError, match="401"),
        ):
            Generating("few", ("alpha",), turns=3).run(made)


def test_what_endpoints_refuse_comes_back_with_the_replies(tmp_path):
    """The run signs its dialogues as if it had found out itself."""
    rules = {name: templates.Rules(default_temperature=True) for name in MODELS}
    with Server(models=rules) as server:
        made = [workspace(tmp_path / name, server, temperature=0.5) for name in "ab"]
        generating().run(made[0])
        with parallel.engine("threading", 2, None):
            generating().run(made[1])
        assert b"|adapted:alpha without temperature" in b"".join(files(made[0]).values())
        assert files(made[0]) == files(made[1])


def test_two_heads_with_a_store_end_as_one_run(alone, server, tmp_path):
    """Each asks one model; then either has the whole set without sending anything."""
    expected, calls, _ = alone
    store = f'[cluster]\nstore = "{tmp_path / "store"}"\n'
    heads = [workspace(tmp_path / name, server, store) for name in "ab"]
    for one, model in zip(heads, MODELS, strict=True):
        with parallel.engine("threading", 2, None):
            Generating("few", (model,), turns=6).run(one)
    before = server.n_received
    Generating("few", MODELS, turns=6).run(heads[0])
    assert server.n_received == before
    assert ran(heads[0]) == expected
    assert server.n_received == calls
    assert ran(heads[1]) == expected
    assert server.n_received == calls
    assert main(["ledger", "rebuild", "--dir", str(heads[1].root)]) == 0
    assert main(["ledger", "push", "--dir", str(heads[1].root)]) == 0
    assert len(list((tmp_path / "store" / "ledger").rglob("*.jsonl.gz"))) > 2


@pytest.mark.filterwarnings("ignore")
def test_two_heads_share_a_ledger_in_object_storage(server, tmp_path, bucket):
    """As in a folder, through s3fs and an S3 server of this machine, keys by its own ways."""
    store = f'[cluster]\nstore = "{bucket}/one"\nhand_in_calls = 4\n'
    heads = [workspace(tmp_path / name, server, store) for name in "ab"]
    for one, model in zip(heads, MODELS, strict=True):
        with parallel.engine("threading", 2, None):
            spending = Spending(Limits(max_usd=1.0))
            Generating("few", (model,), turns=6).run(one, spending)
    for one in heads:
        Generating("few", MODELS, turns=6).run(one)
    storage = fsspec.filesystem("s3")
    storage.invalidate_cache()
    found = storage.find(f"{bucket}/one")
    assert {path.split("/")[2] for path in found} >= {"ledger", "stages"}
    assert not {path.split("/")[2] for path in found} & {"heads", "leases"}
    assert server.n_received == 24
    assert files(heads[0]) == files(heads[1])


def test_a_scheduler_of_ones_own_gets_shards(alone, server, tmp_path, monkeypatch):
    """The example of docs/cluster.md, one job after another: the command then sends nothing."""
    expected, calls, _ = alone
    page = (Path(__file__).parents[2] / "docs/cluster.md").read_text("utf-8")
    (example,) = (code for code in page.split("```python\n") if "botchat.shards(" in code[:400])
    folder, place = tmp_path / "run", str(tmp_path / "store")
    folder.mkdir()
    made = workspace(folder, server)
    monkeypatch.chdir(tmp_path)
    told = example.partition("```")[0].replace('("a", "b")', f"{MODELS}, turns=6")
    exec(told.replace("SET", "few"))
    jobs = sorted(tmp_path.glob("shard-*"))
    assert 1 < len(jobs) <= 8
    assert server.n_received == 0
    for job in jobs:
        assert pickle.loads(job.read_bytes()).work(place)  # noqa: S301
    sent = server.n_received
    asked = ["--seeds", "few", "--turns", "6", "--model", "alpha", "--model", "beta"]
    assert main(["generate", "--dir", str(folder), *asked, "--store", place]) == 0
    assert server.n_received == sent
    judging = Judging("arena", "few", JUDGE, turns=(3, 4))
    for shard in botchat.shards(judging, made, 3):
        pickle.loads(pickle.dumps(shard)).work(place)  # noqa: S301
    sent = server.n_received
    assert main(["ledger", "pull", place, "--dir", str(folder)]) == 0
    assert list(botchat.shards(judging, made, 3)) == []
    assert server.n_received == sent == calls
    assert files(made) == expected


def test_a_job_that_is_begun_anew_has_one_lease(server, tmp_path):
    """And the segments that it has left: whoever begins it again spends only what is left of it."""
    made, place = workspace(tmp_path, server), str(tmp_path / "store")
    (shard,) = botchat.shards(generating(), made, 1, limits=Limits(max_calls=10))
    for _ in range(3):
        assert shard.work(place)
    assert server.n_received == 10
    with pytest.raises(ConfigError, match="0 shards"):
        botchat.shards(generating(), made, 0)


@pytest.fixture
def sent(monkeypatch):
    """Every shard that workers get."""
    shards, work = [], cluster.work
    monkeypatch.setattr(head, "work", lambda shard: (shards.append(shard), work(shard))[1])
    return shards


def test_no_key_travels(server, tmp_path, monkeypatch, sent):
    """A worker has its own; a URL with a login is refused before anything is sent."""
    monkeypatch.setenv("MINE", MINE)
    made = workspace(tmp_path / "a", server, api_key_env='"MINE"', headers='{ X-It = "$MINE" }')
    with parallel.engine("threading", 2, None):
        generating(3).run(made)
    assert {call.headers["x-it"] for call in server.calls} == {MINE}
    assert sent
    assert all(MINE.encode() not in pickle.dumps(shard) for shard in sent)
    told = f'[models.mine]\nmodel = "m"\nbase_url = "{server.url.replace("//", "//me:pw@")}"\n'
    with parallel.engine("threading", 2, None), pytest.raises(ConfigError, match=r"mine\.base_url"):
        generating(4).run(workspace(tmp_path / "b", server, told))


def test_no_command_travels(server, tmp_path, sent):
    """A shard has none; a model that needs one is refused before anything is sent."""
    made = workspace(tmp_path, server)
    path = made.root / "botchat.toml"
    entry = (
        f'[models.mine]\nmodel = "m"\nbase_url = "{server.url}"\napi_key_command = "a-command"\n'
    )
    path.write_text(path.read_text() + entry)
    again = Workspace(made.root)
    with parallel.engine("threading", 2, None):
        generating(3).run(again)
        assert sent
        assert all(b"a-command" not in pickle.dumps(shard) for shard in sent)
        with pytest.raises(ConfigError, match=r"models\.mine\.api_key_command: commands do not"):
            Generating("few", ("mine",), turns=4).run(again)


def test_a_worker_keeps_local_models_for_its_next_shard(server, tmp_path, monkeypatch):
    """Weights are loaded once a worker."""
    monkeypatch.setattr(cluster, "_KEPT", {})
    with parallel.engine("threading", 1, None):
        Generating("few", ("bot:eliza", "alpha"), turns=4).run(workspace(tmp_path, server))
    assert list(cluster._KEPT) == ["bot:eliza"]


def test_one_model_at_another_port_on_every_node(server, other_server, tmp_path, monkeypatch):
    """Its ``identity`` is who answers; where that is, the worker's own environment says."""
    servers, both = (server, other_server), threading.Barrier(2, timeout=60)

    def answer(call):
        if call.n == 1:
            both.wait()  # so that both workers ask
        return converse(call)

    for one in servers:
        one.play(answer)
    ports = [one.url.split(":")[2].partition("/")[0] for one in servers]
    work = cluster.work

    def is_mine(place):
        """Of the process that comes first."""
        with contextlib.suppress(FileExistsError):
            place.symlink_to(str(os.getpid()))
        return str(place.readlink()) == str(os.getpid())

    def on_a_node(shard):
        os.environ["NODE_PORT"] = next(port for port in ports if is_mine(tmp_path / port))
        return work(shard)

    monkeypatch.setattr(head, "work", on_a_node)
    made = workspace(tmp_path / "nodes", server)
    settings = (made.root / "botchat.toml").read_text().replace(ports[0], "$NODE_PORT")
    (made.root / "botchat.toml").write_text(settings)
    with parallel.engine("loky", 2, None):
        Generating("few", MODELS, turns=6).run(made)
    received = [one.n_received for one in servers]
    assert all(received)
    monkeypatch.setattr(head, "work", work)
    alone = workspace(tmp_path / "alone", server)
    Generating("few", MODELS, turns=6).run(alone)
    assert sum(received) == server.n_received - received[0] == 24
    assert files(made) == files(alone)
    before = files(made)
    for path in (made.root / "generations").rglob("*.jsonl"):
        path.unlink()
    Generating("few", MODELS, turns=6).run(made)  # the variable is not set here
    assert files(made) == before
    with pytest.raises(FatalModelError, match=r"alpha: .*NODE_PORT is not set"):
        Generating("few", MODELS, turns=7).run(made)


def test_an_interrupted_run_keeps_what_its_workers_were_told(tmp_path, monkeypatch):
    """Ctrl-C: every reply that was under way is stored, and the same command goes on."""
    told, ended, watch = threading.Event(), threading.Semaphore(0), cluster._watch

    async def watched(shard, store, end):
        await watch(shard, store, lambda: (end(), ended.release()))

    def script(call):
        if server.n_received >= 5 and not told.is_set():
            told.set()
            os.kill(os.getpid(), signal.SIGINT)
            assert ended.acquire(timeout=30)
            assert ended.acquire(timeout=30)  # nobody is answered before both workers know
        return converse(call)

    monkeypatch.setattr(cluster, "_watch", watched)
    monkeypatch.setattr(cluster, "WATCH_S", 0.01)
    with Server(script) as server, parallel.engine("threading", 2, None):
        made = workspace(tmp_path, server)
        with pytest.raises(KeyboardInterrupt):
            generating().run(made)
        assert not list((made.hidden / "spool").glob("heads/*"))
        assert server.n_received < 18
        generating().run(made)
        assert server.n_received == 18


@needs["dask"]
@pytest.mark.filterwarnings("ignore")
def test_a_shard_that_dask_gives_up_is_given_out_again(alone, tmp_path, caplog):
    """A process is killed more often than dask allows; the other shard goes on beside it."""
    import dask
    from distributed import default_client

    expected, calls, _ = alone
    most, killed = 4, threading.Event()

    def script(call):
        if server.n_received >= 12 and not killed.is_set():
            killed.set()
            os.kill(default_client().cluster.workers[0].pid, signal.SIGKILL)
        return converse(call)

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        Server(script) as server,
        parallel.engine("dask", 2, None),
    ):
        made = workspace(tmp_path, server, f"[cluster]\nhand_in_calls = {most}\n")
        assert ran(made) == expected
        assert server.n_received - calls <= most + 3
    assert "workers were lost" in caplog.text


@needs["dask"]
@pytest.mark.filterwarnings("ignore")
def test_a_task_that_dask_cannot_run_ends(scheduler, monkeypatch):
    """The others do as well; where results are asked in order, the error is raised."""
    from distributed import Client

    submit = Client.submit

    def refuses(self, run, *told, tasks=(), **more):
        if "not this" in repr(tasks):
            raise RuntimeError("it has gone")
        return submit(self, run, *told, tasks=tasks, **more)

    monkeypatch.setattr(Client, "submit", refuses)
    with parallel.engine("dask", 2, scheduler):
        tasks = [partial(str, one) for one in ("not this", 0, 1, 2)]
        *others, lost = sorted(parallel.chosen_engine().each(tasks), key=str)
        assert (*others, str(lost)) == ("0", "1", "2", "RuntimeError: it has gone")
        with (
            pytest.raises(BotChatError, match="a process that helped was killed"),
            parallel.workers(2) as working,
        ):
            list(working.begin(tasks, 60))


def test_what_is_waited_for_is_said(tmp_path, monkeypatch, caplog):
    """Where nothing came from any shard since the last look."""
    monkeypatch.setattr(head, "QUIET_S", 0.001)
    run = object.__new__(head.Elsewhere)
    run._store = Store(str(tmp_path))

    async def waited():
        coming = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(run._heard(coming, {"0123456789": None}))
        while "1 shards are out" not in caplog.text:
            await asyncio.sleep(0)
        coming.set_result(None)
        return await waiting

    assert asyncio.run(waited()) is None
    assert "(01234567)" in caplog.text


def limited_to(made: Workspace, script: Billed, usd: float, turns: int = 6) -> str:
    """How a run ends that may spend so much; never more is billed."""
    before, meter, said = script.tokens, Meter(), ""
    try:
        generating(turns).run(made, Spending(Limits(max_usd=usd)), meter)
    except LimitReached as error:
        said = str(error)
    assert meter.cost_usd <= (script.tokens - before) / 1e6 <= usd
    return said


def test_no_limit_is_exceeded_wherever_workers_die(tmp_path, monkeypatch):
    """At the server, which bills what nobody hands in too; another run goes on to the same end."""
    script, said, changed, left, at_work = Billed(), [], threading.Condition(), 0, 0
    count, work = cluster._HandingIn.count, cluster.work

    def dies(self, reply, stored):
        nonlocal left
        with changed:
            left -= not stored
            gone = not stored and left in (0, -7)
        if gone:
            raise RuntimeError("worker gone")
        count(self, reply, stored)

    def working(shard):
        nonlocal at_work
        try:
            with changed:
                at_work += 1
            return work(shard)
        finally:
            with changed:
                at_work -= 1
                changed.notify_all()

    monkeypatch.setattr(cluster._HandingIn, "count", dies)
    monkeypatch.setattr(head, "work", working)
    monkeypatch.setattr(cluster, "WATCH_S", 0.01)
    with Server(script) as server, parallel.engine("threading", 2, None):
        for moment in range(1, 13, 2):
            left = moment
            made = workspace(tmp_path / f"{moment}", server, "[cluster]\nhand_in_calls = 6\n")
            said.append(limited_to(made, script, 0.0035, turns=7))
            assert not list((made.hidden / "spool").glob("heads/*"))
            with changed:  # those that were not lost themselves
                assert changed.wait_for(lambda: not at_work, 30)
        assert any("of it drawn by workers that were lost" in one for one in said)
        assert all("the same command goes on from here" in one for one in said)
        generating(7).run(made)
        whole = workspace(tmp_path / "whole", server)
        generating(7).run(whole)
        assert files(made) == files(whole)


def test_a_worker_that_is_killed_costs_little_and_exceeds_no_limit(alone, tmp_path):
    """`kill -9` of one of two processes: its shard is given out again, from what was handed in."""
    from joblib.externals.loky import reusable_executor

    expected, calls, _ = alone
    most, killed = 4, threading.Event()

    def kills(call):
        if server.n_received >= 8 and not killed.is_set():
            killed.set()
            os.kill(next(iter(reusable_executor._executor._processes)), signal.SIGKILL)
        return converse(call)

    script = Billed(kills)
    with Server(script) as server, parallel.engine("loky", 2, None):
        made = workspace(tmp_path, server, f"[cluster]\nhand_in_calls = {most}\n")
        assert "the same command goes on from here" in limited_to(made, script, 0.003)
        assert killed.is_set()
        assert ran(made) == expected
        assert server.n_received - calls <= 2 * (most + 3)


def test_a_limit_needs_a_store_that_workers_see(server, tmp_path, monkeypatch):
    """One that is blind to what others have drawn of a lease does not begin."""
    monkeypatch.setattr(leases, "commander", lambda store, home: "")
    made = workspace(tmp_path, server)
    with parallel.engine("threading", 2, None), pytest.raises(ConfigError, match="--store"):
        generating().run(made, Spending(Limits(max_usd=1.0)))
    assert server.n_received == 0


def test_nothing_is_handed_in_twice(server, tmp_path, monkeypatch):
    """Replies that came at once go into one segment, and none has nothing in it."""
    names, write = [], Store.add
    monkeypatch.setattr(Store, "add", lambda *told: (names.append(write(*told)), names[-1])[1])
    with parallel.engine("threading", 2, None):
        more = "[cluster]\nhand_in_calls = 1\n"
        generating().run(workspace(tmp_path, server, more, max_concurrency=12))
    assert 2 < len(names) == len(set(names)) <= server.n_received


def test_workers_that_are_always_lost_end_the_run(server, tmp_path, monkeypatch):
    """After three times without a reply, with what to do."""

    def gone(_shard):
        raise RuntimeError("worker gone")

    monkeypatch.setattr(head, "work", gone)
    made = workspace(tmp_path, server)
    with (
        parallel.engine("threading", 2, None),
        pytest.raises(BotChatError, match="lost 3 times without a reply"),
    ):
        generating().run(made)
    assert server.n_received == 0


@pytest.mark.parametrize(
    "end",
    [lambda store, home: leases.command(store, home, "another run"), leases.end_command],
    ids=["another run", "no run"],
)
def test_a_worker_stops_when_its_run_is_over(server, tmp_path, monkeypatch, end):
    """An orphan sends nothing more, and what it was told is handed in."""
    shards, stopped, stop = [], threading.Event(), Session.stop

    def keep(shard):
        shards.append(shard)
        raise BotChatError("kept")

    work = cluster.work
    monkeypatch.setattr(head, "work", keep)
    monkeypatch.setattr(Session, "stop", lambda self: (stop(self), stopped.set()))
    made = workspace(tmp_path, server)
    with parallel.engine("sequential", 1, None), pytest.raises(BotChatError, match="kept"):
        Generating("few", ("alpha",), turns=4).run(made)
    store = Store(shards[0].place)
    assert not leases.commander(store, shards[0].home)
    leases.command(store, shards[0].home, shards[0].run)
    with ThreadPoolExecutor(1) as worker:
        stopped.clear()
        gate = server.hold()
        done = worker.submit(work, shards[0])
        gate.wait_held(1)
        end(store, shards[0].home)
        assert stopped.wait(30)
        gate.open()
        assert (done.result(30).spent[1], server.n_received) == (1, 1)
    assert len(segments.names(store, shards[0].id)) == 1
    with parallel.engine("sequential", 1, None):
        monkeypatch.setattr(head, "work", work)
        Generating("few", ("alpha",), turns=4).run(made)
    assert server.n_received == 6


def test_settings_of_a_cluster():
    """A flag changes the engine; an address belongs to the engine beside it."""
    told = ClusterSettings(engine="dask", workers=8, address="tcp://it:8786", store="s3://b")
    assert told.where(None, 2, None).address == "tcp://it:8786"
    assert told.where("loky", None, "/mnt").address is None
    assert told.where("loky", None, "/mnt").store == "/mnt"
