"""Whole runs against a real server: replayed, interrupted, limited, locked, planned."""

import json
import re
import signal
from collections import Counter

import pytest

import botchat
from botchat import Workspace
from botchat.cli.main import main
from botchat.judges import rules
from botchat.models import bots
from botchat.records import Dialogue, Judgment, Seed
from botchat.workspace import jsonl
from tests.commands import said, stage_files
from tests.openai_server import Server, converse
from tests.processes import Started

KEY = "sk-canary-0123456789abcdef"
MODELS = ("alpha", "beta", "gamma")
IN_FLIGHT = 4
N_SEEDS = 8
CALLS = len(MODELS) * N_SEEDS * 6
"""Of `generate`: each model adds six utterances to two."""


def workspace(folder, server, n_seeds=N_SEEDS, **settings):
    """A workspace with a small set and three models of the server."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = [
        Seed(f"s{n}", tuple(f"line {i} of talk {n}" for i in range(2 + n % 8)))
        for n in range(n_seeds)
    ]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    more = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    entries = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\n'
        f"max_concurrency = {IN_FLIGHT}\n{more}"
        for name in (*MODELS, "umpire")
    ]
    (folder / "botchat.toml").write_text("\n".join(entries))
    return folder


def commands():
    """The stages of a whole run."""
    models = [part for name in MODELS for part in ("--model", name)]
    judge = ["--seeds", "small", "--judge", "umpire"]
    yield ["generate", "--seeds", "small", "--turns", "8", *models]
    yield ["judge", "unieval", *judge]
    yield ["judge", "arena", *judge, "--turns", "4", "--turns", "8"]
    yield ["judge", "gteval", *judge]


def start(folder, command, **env):
    """One command as a process of its own."""
    return Started([*command, "--dir", folder], OPENAI_API_KEY=KEY, **env)


def run(folder):
    """The whole run in this process."""
    for command in commands():
        assert main([*command, "--dir", str(folder)]) == 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of an uninterrupted run, and its number of calls."""
    with Server(converse) as server:
        folder = workspace(tmp_path_factory.mktemp("whole") / "w", server)
        run(folder)
        yield folder, server.n_received


def test_a_whole_run_makes_every_dialogue_and_verdict(finished):
    """3 models x 8 seeds; UniEval on models and human; Arena pairs; GTEval in both orders."""
    folder, n_calls = finished
    dialogues = [
        dialogue
        for path in (folder / "generations").rglob("*.jsonl")
        for dialogue in jsonl.read(path, Dialogue)
    ]
    assert len(dialogues) == 24
    assert all(d.complete and len(d.utterances) == 8 for d in dialogues)
    judgments = {
        path.parent.name: jsonl.read(path, Judgment)
        for path in (folder / "judgments").rglob("*.jsonl")
    }
    # Seeds have 2 to 9 human utterances; 6 of them 4 and more; 9 is beyond 8 turns.
    assert len(judgments["unieval"]) == 24 + 8
    assert len(judgments["arena-n4"]) == len(judgments["arena-n8"]) == 3 * 2 * 6
    assert len(judgments["gteval"]) == 3 * 2 * 5
    assert all(j.verdict is not None for found in judgments.values() for j in found)
    assert n_calls == CALLS + sum(map(len, judgments.values()))


def test_a_ledger_replays_the_run_without_key_or_network(finished, tmp_path, monkeypatch, capsys):
    """Its file in an empty workspace, run: the same bytes, and nothing is sent."""
    (folder, n_calls), other = finished, tmp_path / "other"
    for name in ("botchat.toml", "seeds/small.jsonl", ".botchat/ledger.sqlite3"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes((folder / name).read_bytes())
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    run(other)
    assert stage_files(other) == stage_files(folder)

    rows = said(capsys, "ledger", "--dir", other)["rows"]
    assert sum(row["calls"] for row in rows) == n_calls
    assert rows == said(capsys, "ledger", "--dir", folder)["rows"]  # failed attempts too


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_once_it_stores_what_is_in_flight(tmp_path, kind):
    """Ctrl-C, or a cluster's SIGTERM: exit 130, one line, no reply that comes is paid again."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        gate = server.hold()
        gate.release(1)  # the first call of a model goes alone
        process = start(folder, next(commands()))
        server.wait_for(1 + IN_FLIGHT)
        process.send_signal(kind)
        gate.open()
        _, error = process.communicate()
        assert process.returncode == 130
        assert error.count("\n") <= 2
        assert error.splitlines()[-1].startswith("botchat: interrupted")
        server.wait_idle()
        assert server.n_received < CALLS
        assert main([*next(commands()), "--dir", str(folder)]) == 0
        assert server.n_received == CALLS


def test_a_limit_stops_cleanly_and_the_next_run_goes_on(tmp_path, capsys):
    """--max-calls: exit 3, how to go on, never more calls than allowed; resumed to the end."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        command = [*next(commands()), "--dir", str(folder)]
        assert main([*command, "--max-calls", "100", "--json"]) == 3
        said = capsys.readouterr()
        assert "--max-calls 100" in said.err
        assert server.n_received == 100
        done = json.loads(said.out)
        assert (done["calls"], done["stopped"]) == (100, said.err.removeprefix("botchat: ").strip())
        assert main(command) == 0
        assert server.n_received == CALLS


def test_the_models_of_a_server_share_its_places(tmp_path, monkeypatch):
    """Every call waits for its turn, whatever its key; the largest max_concurrency holds."""
    from botchat.models import limits

    turns, place = [], limits.ServerLimit.place

    def noted(self):
        turns.append(self)
        return place(self)

    monkeypatch.setattr(limits.ServerLimit, "place", noted)
    monkeypatch.setenv("OTHER_VARIABLE", KEY)
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=3)
        settings = folder / "botchat.toml"
        each = f"max_concurrency = {IN_FLIGHT}"
        own_key = 'max_concurrency = 1\napi_key_env = "OTHER_VARIABLE"'
        settings.write_text(settings.read_text().replace(each, own_key, 1))
        assert main([*next(commands()), "--dir", str(folder)]) == 0
        assert len(turns) == server.n_received > 0
    (limit,) = {*turns}
    assert limit.most == IN_FLIGHT > 1


def test_a_run_reads_its_seed_set_once(tmp_path, monkeypatch):
    """Bots and rules are made once; a board reads first whose verdicts are in a file, then it."""
    n_reads, n_built = Counter(), Counter()
    read_blocks = jsonl.blocks

    def observed(path, *how):
        n_reads[path] += 1
        return read_blocks(path, *how)

    def counted(kind):
        class Counted(kind):
            def __init__(self, *args):
                n_built[kind.__name__] += 1
                super().__init__(*args)

        return Counted

    monkeypatch.setattr(bots, "Retrieval", counted(bots.Retrieval))
    monkeypatch.setattr(rules, "RulesJudge", counted(rules.RulesJudge))
    seeds = [Seed(f"s{n}", tuple(f"line {i} of talk {n}" for i in range(4))) for n in range(3)]
    path = Workspace(tmp_path).write_seeds("small", seeds)
    monkeypatch.setattr(jsonl, "blocks", observed)
    made = botchat.run(
        workspace=tmp_path, seeds="small", model=["bot:retrieval", "bot:verbose"], judge="rules"
    )
    assert {each["protocol"] for each in made.data["judged"]} >= {"unieval", "arena-n16"}
    assert n_reads.pop(path) == 1
    n_reads.clear()
    botchat.leaderboard(workspace=tmp_path, seeds="small")
    assert {n_reads[each] for each in [path, *tmp_path.glob("generations/*/*")]} == {1}
    assert {n_reads[each] for each in tmp_path.glob("judgments/*/*/*")} == {2}
    assert n_built == {"Retrieval": 1, "RulesJudge": 1}


def test_models_of_hostile_names_have_files_of_their_own(tmp_path):
    """Paths, device names, other scripts, 300 characters: a file each, all in their folder."""
    names = ["../x", "a/b", "A/B", "CON", "con", ".", "x" * 300, "x" * 301]
    names += ["模型", "模型二"]
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, n_seeds=1)
        models = [f"{server.url}#{name}" for name in names]
        flags = [part for model in models for part in ("--model", model)]
        command = ["generate", "--seeds", "small", "--turns", "3", *flags]
        assert main([*command, "--dir", str(folder)]) == 0
        assert server.n_by_model == dict.fromkeys(names, 1)
    made = {
        path.name.lower(): path
        for path in folder.rglob("*.jsonl")
        if not {"seeds", "measured"} & {*path.parts}
    }
    assert {path.parent for path in made.values()} == {folder / "generations" / "small"}
    stored = {path: jsonl.read(path, Dialogue) for path in made.values()}
    assert sorted(one.model for (one,) in stored.values()) == sorted(models)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]


def planned(folder, command, capsys):
    """The last row of --plan --json: all steps."""
    return said(capsys, *command, "--plan", "--dir", folder)["rows"][-1]


def test_a_plan_says_what_a_run_then_does(tmp_path, capsys):
    """Expected calls are the calls made; dollars within 10 %, once lengths are known."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, 10, price_input=1.0, price_output=2.0)
        stages = list(commands())
        fresh = planned(folder, stages[0], capsys)
        assert fresh["calls"] == 30 * 6
        assert server.n_received == 0
        assert not (folder / "generations").exists()
        # A taste of each stage teaches the lengths of replies.
        assert main([*stages[0], "--limit", "5", "--dir", str(folder)]) == 0
        for stage in stages:
            if stage[0] == "judge":
                taste = [*stage, "--model", "alpha", "--model", "beta", "--max-calls", "20"]
                assert main([*taste, "--dir", str(folder)]) in (0, 3)
            plan = planned(folder, stage, capsys)
            before = server.n_received
            made = said(capsys, *stage, "--dir", folder)
            assert server.n_received - before == plan["calls"] == made["calls"]
            assert plan["cost_usd"] == pytest.approx(made["cost_usd"], rel=0.1)
            assert plan["cost_usd"] < plan["cost_usd_high"]
            assert planned(folder, stage, capsys)["calls"] == 0


def test_a_plan_with_unknown_prices_says_so(tmp_path, capsys):
    """Unknown is unknown, never 0; bots are free."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        assert planned(folder, next(commands()), capsys)["cost_usd"] is None
        bots = ["generate", "--seeds", "small", "--model", "bot:verbose"]
        assert planned(folder, bots, capsys)["cost_usd"] == 0
        assert main([*next(commands()), "--plan", "--dir", str(folder)]) == 0
        assert re.search(r"total +\d+ +unknown", capsys.readouterr().out)
        assert server.n_received == 0
