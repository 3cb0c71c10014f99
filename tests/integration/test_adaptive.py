"""The adaptive Arena over real HTTP: what is asked is sent once, killed and resumed or not."""

from __future__ import annotations

import hashlib
import json
import random
import re
from itertools import combinations

import pytest

import botchat
from botchat.cli.main import main
from botchat.errors import LimitReached
from botchat.models.endpoint import batch
from botchat.models.limits import Retry
from botchat.pipeline.run import read_set, session
from botchat.ratings.elo import EloSettings
from botchat.records import Dialogue, Judgment, Seed
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace
from tests.integration.test_runs import stage_files
from tests.openai_server import Server, faults, text
from tests.openai_server.batches import BatchServer

SKILLS = {"ada": 0.9, "bob": 0.65, "cleo": 0.4, "dan": 0.1}
N_SEEDS = 20
POPULATION = 6 * 2 * N_SEEDS
ADAPTIVE = ["judge", "arena", "--seeds", "small", "--judge", "umpire", "--adaptive"]
WHOLE = ADAPTIVE[:-1]
SURE = [*ADAPTIVE, "--target", "gap=20,swaps=0"]
_NAMED = re.compile(r"I am (\w+)\.")


def umpire(call):
    """Whom the prompt shows decides with their skills, and its hash stands in for chance."""
    prompt = call.messages[-1]["content"]
    first, second = list(dict.fromkeys(_NAMED.findall(prompt)))
    draw = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16) / 16**8
    score = 0.5 + (SKILLS.get(first, 0.55) - SKILLS.get(second, 0.55)) * 0.8
    choice = "Conversation 2" if draw < score - 0.1 else "Both"
    return text(f"Choice: {'Conversation 1' if draw > score + 0.1 else choice}; Reason: so")


def compete(folder, *models, turns=4):
    """Let models have dialogues on the set, without asking anyone."""
    workspace = Workspace(folder)
    for model in models:
        made = [
            Dialogue(
                seed.id,
                model,
                (*seed.utterances[:2], *(f"I am {model}. {seed.id} {i}" for i in range(turns - 2))),
                2,
                (),
                "complete",
                "sig",
            )
            for seed in workspace.seeds("small")
        ]
        store.finish(workspace.dialogues_path("small", model), made, lambda one: one.seed_id)


def workspace(folder, server, *models, n_seeds=N_SEEDS, more=""):
    """Seeds of four utterances, dialogues of models, and a judge of the server's."""
    folder.mkdir(parents=True)
    seeds = [
        Seed(f"s{n}", tuple(f"line {i} of talk {n}" for i in range(4))) for n in range(n_seeds)
    ]
    store.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    (folder / "botchat.toml").write_text(
        f'[models.umpire]\nmodel = "umpire"\nbase_url = "{server.url}"\nmax_concurrency = 4\n'
        f"price_input = 1.0\nprice_output = 2.0\n[arena]\nturns = [4]\n{more}"
    )
    compete(folder, *(models or SKILLS))
    return folder


def run(folder, *command, expect=0):
    """One command in this process."""
    assert main([*command, "--dir", str(folder)]) == expect


def told(capsys, folder, *command, expect=0):
    """What a command prints with --json, the only row for itself."""
    capsys.readouterr()
    run(folder, *command, "--json", expect=expect)
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    return row, found


def judgments(folder, n=4):
    """The stage file of the Arena."""
    (path,) = (folder / "judgments" / "small" / f"arena-n{n}").glob("*.jsonl")
    return store.read(path, Judgment)


@pytest.fixture(scope="module")
def server():
    """One for all: where a reply came from is part of its key."""
    with Server(umpire) as running:
        yield running


@pytest.fixture(scope="module")
def finished(server, tmp_path_factory):
    """An adaptive run without interruption: its folder, its files and its number of requests."""
    before = server.n_received
    folder = workspace(tmp_path_factory.mktemp("whole") / "w", server)
    run(folder, *SURE)
    return folder, stage_files(folder), server.n_received - before


def test_what_is_asked_is_sent_and_enough_for_the_ranking(finished, server, capsys):
    """Requests are comparisons; a part of the whole; the order is that of the skills."""
    folder, files, calls = finished
    row, found = told(capsys, folder, *SURE)
    made = judgments(folder)
    assert row["made"] == row["cases"] == len(made) == calls < POPULATION
    assert row["population"] == POPULATION
    assert row["saved"] == pytest.approx(1 - calls / POPULATION, abs=1e-4)
    assert row["stopped"] == "target reached"
    assert row["probability"] >= row["confidence"] == 0.95
    assert row["swaps"] == 0
    assert row["probability_other_seeds"] <= 1
    assert all(one["error_other_seeds"] > one["error"] for one in row["ratings"])
    assert [(one["place"], one["model"]) for one in row["ratings"]] == list(enumerate(SKILLS, 1))
    assert sum(one["rating"] for one in row["ratings"]) == pytest.approx(4000, abs=0.1)
    assert row["placed"] is None
    pairs = {frozenset(j.contestants) for j in made}
    assert pairs == {frozenset(pair) for pair in combinations(SKILLS, 2)}
    assert {j.chosen for j in made} == {"adaptive"}
    # The second run has found all of it, and left the file as it was.
    assert (row["new"], found["calls"], found["replayed"]) == (0, 0, 0)
    assert stage_files(folder) == files


def test_a_whole_run_keeps_all_of_it(finished, server, tmp_path, capsys):
    """Only the rest is sent; the file is then the same as without an adaptive run, to the byte."""
    _, _, calls = finished
    folder = workspace(tmp_path / "w", server)
    run(folder, *SURE)
    before = server.n_received
    run(folder, *WHOLE)
    assert server.n_received - before == POPULATION - calls
    plain = workspace(tmp_path / "plain", server)
    run(plain, *WHOLE)
    assert stage_files(folder) == stage_files(plain)
    before = server.n_received
    row, _ = told(capsys, folder, *SURE)
    assert (row["new"], server.n_received - before) == (0, 0)


def test_stopped_by_a_limit_it_goes_on_to_the_same_bytes(finished, server, tmp_path, capsys):
    """--max-calls again and again: exit 3 each time, and in all as many calls as at once."""
    _, files, calls = finished
    folder = workspace(tmp_path / "w", server)
    before = server.n_received
    rng = random.Random(5)
    codes = [main([*SURE, "--max-calls", str(rng.randrange(1, 30)), "--dir", str(folder)])]
    while codes[-1] == 3:
        codes.append(main([*SURE, "--max-calls", str(rng.randrange(1, 30)), "--dir", str(folder)]))
    assert codes[-1] == 0
    assert len(codes) > 2
    said = capsys.readouterr()
    assert "the same command goes on from here" in said.err
    assert re.search(r"N = 4: \d+ of 240 \(.* saved\) · up to \d swaps .* ada \d+ ± \d+", said.out)
    assert server.n_received - before == calls
    assert stage_files(folder) == files


def test_what_the_endpoint_leaves_unanswered_stops_it_where_it_is(tmp_path, monkeypatch, capsys):
    """A case without an answer ends the run at its batch; the next run asks it and goes on."""
    monkeypatch.setattr(session, "Retry", lambda: Retry(attempts=1))
    with Server(umpire) as server:
        plain = workspace(tmp_path / "plain", server)
        run(plain, *SURE)
        asked = server.n_received
        folder = workspace(tmp_path / "w", server)

        def failing(call):
            return faults.server_error(500) if call.n == asked + 10 else umpire(call)

        server.play(failing)
        capsys.readouterr()
        run(folder, *SURE, expect=1)
        said = capsys.readouterr()
        assert "1 verdicts are missing because the endpoint gave no usable reply" in said.err
        assert "run the same command again" in said.err
        assert "not finished" in said.out
        assert 10 <= server.n_received - asked < asked
        run(folder, *SURE)
        assert server.n_received - asked == asked + 1
        assert stage_files(folder) == stage_files(plain)


def test_a_budget_is_kept_and_can_be_raised(server, tmp_path, capsys):
    """As many comparisons as named; a larger budget goes on from there."""
    folder = workspace(tmp_path / "w", server)
    budget = [*ADAPTIVE, "--seed", "7", "--budget"]
    before = server.n_received
    row, _ = told(capsys, folder, *budget, "60")
    assert (row["made"], row["stopped"]) == (60, "budget used")
    assert server.n_received - before == 60
    row, _ = told(capsys, folder, *budget, "100")
    assert row["made"] == 100
    assert row["new"] <= 100 - 20  # a batch that the first budget cut short may be another one
    row, _ = told(capsys, folder, *budget, "5000")
    assert (row["made"], row["stopped"], row["saved"]) == (POPULATION, "everything compared", 0)
    assert server.n_received - before == POPULATION


def test_each_n_is_asked_for_itself(server, tmp_path, capsys):
    """Two N: two files, two rankings, each as if it were alone."""
    folder = workspace(tmp_path / "w", server)
    compete(folder, *SKILLS, turns=6)
    capsys.readouterr()
    run(folder, *ADAPTIVE, "--turns", "4", "--turns", "6", "--json")
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["protocol"] for row in rows] == ["arena-n4", "arena-n6"]
    alone = workspace(tmp_path / "alone", server)
    compete(alone, *SKILLS, turns=6)
    run(alone, *ADAPTIVE, "--turns", "6")
    name = next(path for path in stage_files(alone) if "arena-n6" in path)
    assert stage_files(folder)[name] == stage_files(alone)[name]


def test_a_model_is_placed_with_few_calls(server, tmp_path, capsys):
    """--add: only comparisons with it; its place; the others' verdicts stay; the board takes it."""
    folder = workspace(tmp_path / "w", server, n_seeds=40)
    run(folder, *WHOLE)
    before = {(j.seed_id, j.contestants): j for j in judgments(folder)}
    compete(folder, "eve")
    sent = server.n_received
    add = [*WHOLE, "--add", "eve", "--budget", "100"]
    row, _ = told(capsys, folder, *add)
    assert server.n_received - sent == row["made"] == row["new"] == 100
    assert row["population"] == 4 * 2 * 40
    placed = row["placed"]
    assert (placed["model"], placed["of"]) == ("eve", 5)
    assert placed["place"] in (2, 3)
    assert {placed["above"], placed["below"]} <= {"ada", "bob", "cleo"}
    after = {(j.seed_id, j.contestants): j for j in judgments(folder)}
    assert {key: after[key] for key in before} == before
    assert all("eve" in contestants for _, contestants in after.keys() - before.keys())
    run(folder, *add)
    said = capsys.readouterr().out
    assert re.search(
        r"eve: \d+ ± \d+ \(95 %; ± \d+ on other ChatSEEDs\), place [23] of 5, below \w+ and above",
        said,
    )
    assert server.n_received - sent == 100
    board = read_set.read(Workspace(folder), "small").board(
        "umpire", EloSettings(shuffles=10, runs=1)
    )
    assert any("; 100 of 580 were chosen adaptively" in note for note in board.notes)


def test_a_panel_and_a_batch_ask_the_same_way(tmp_path, monkeypatch, capsys):
    """A panel makes its calls for each comparison; the Batch API gives the same bytes."""
    monkeypatch.setattr(batch, "FIRST_POLL_S", 0.0)
    panel = (
        '[panels.two]\nstrategy = "ensemble"\nmodel = "umpire"\nagents = ["critic", "scientist"]\n'
    )
    judge = ["judge", "arena", "--seeds", "small", "--judge", "two", "--adaptive"]
    with BatchServer(umpire) as server:
        plain = workspace(tmp_path / "plain", server, n_seeds=12, more=panel)
        row, _ = told(capsys, plain, *judge, "--budget", "40")
        assert (row["made"], server.n_received) == (40, 80)
        batched = workspace(tmp_path / "w", server, n_seeds=12, more=panel)
        run(batched, *judge, "--budget", "40", "--batch")
        assert stage_files(batched) == stage_files(plain)
        assert len(server.lines) == 80
        assert set(server.paid.values()) == {1}


def test_a_plan_says_what_is_sent_at_most_and_what_to_expect(finished, server, tmp_path, capsys):
    """A budget exactly; a target as one simulated run and the whole; what is stored is not paid."""

    def calls(folder, *command):
        capsys.readouterr()
        run(folder, *command, "--plan", "--json")
        rows = json.loads(capsys.readouterr().out)["rows"]
        return {row["level"]: row["calls"] for row in rows}

    sent = server.n_received
    folder = workspace(tmp_path / "w", server)
    assert set(calls(folder, *ADAPTIVE, "--budget", "90").values()) == {90}
    plan = calls(folder, *SURE)
    assert plan["high"] == POPULATION
    assert plan["low"] == plan["expected"]
    assert finished[2] / 3 < plan["expected"] < POPULATION
    assert calls(finished[0], *SURE) == {
        "low": 0,
        "expected": 0,
        "high": POPULATION - finished[2],
    }
    assert server.n_received == sent
    assert not (folder / "judgments").exists()
    run(folder, *SURE, "--plan")
    assert "high: all that may be asked" in capsys.readouterr().out


def test_the_function_gives_what_the_command_gives(finished, server, tmp_path):
    """`botchat.judge` with the same settings: same result, same files; limits raise."""
    folder = workspace(tmp_path / "w", server)
    asked = Workspace(folder), "arena", "small", "umpire"
    with pytest.raises(LimitReached):
        botchat.judge(*asked, adaptive=True, limits=botchat.Limits(max_calls=5))
    settings = botchat.AdaptiveSettings(target=botchat.Target(gap=20, swaps=0))
    (found,) = botchat.judge(*asked, settings=settings)
    assert found.state.finished == "target reached"
    assert found.rows[0]["model"] == "ada"
    assert len(stage_files(folder)) == len(finished[1])
    (easier,) = botchat.judge(*asked, adaptive=True)
    assert easier.state.made < found.state.made


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--adaptive", "--target", "gap"], "'gap' is not known; write it like gap=10,swaps=2"),
        (["--adaptive", "--target", "size=3"], "'size=3' is not known"),
        (["--adaptive", "--target", "gap=1,gap=2"], "'gap=2' is given twice"),
        (["--adaptive", "--target", "swaps=1.5"], "swaps '1.5' is not a whole number"),
        (["--adaptive", "--target", "gap=wide"], "gap 'wide' is not a number"),
        (["--adaptive", "--target", "gap=-1"], "--target 'gap=-1': gap -1.0: give Elo points"),
        (["--adaptive", "--target", "confidence=1"], "confidence 1.0: give a number between"),
        (["--adaptive", "--budget", "0"], "budget 0: give at least 1"),
        (["--budget", "10"], "--budget belongs to an adaptive Arena"),
        (["--target", "gap=3"], "--target belongs to an adaptive Arena"),
        (["--seed", "3"], "--seed belongs to an adaptive Arena"),
        (["--adaptive", "--seed", "-1"], "seed -1: give at least 0"),
        (["--adaptive", "--control"], "--control does not go with --adaptive"),
        (["--adaptive", "--model", "ada"], "at least two contestants; there is ada"),
        (
            ["--adaptive", "--model", "ada", "--model", "bob"],
            "a target of 2 swaps says nothing of 2 models: 1 pairs are asked; give --target swaps",
        ),
        (["--adaptive", "--turns", "9"], "no two dialogues of one seed have 9 utterances"),
        (["--adaptive", "--judge", "rules", "--batch"], "--batch: rules is on no endpoint"),
        (["--add", "zoe"], "no dialogues of 'zoe' on the set 'small'"),
        (["--add", "ada"], "no board of umpire at N = 4 to add ada to; judge the others first"),
        (["--add", "ada", "--turns", "4"], "no board of umpire at N = 4 to add ada to"),
        (["--add", "ada", "--model", "ada"], "at least two contestants; there is ada"),
    ],
)
def test_a_mistake_is_one_line_and_sends_nothing(server, tmp_path, capsys, flags, said):
    """What is wrong and what to do; exit 1."""
    folder = workspace(tmp_path / "w", server, n_seeds=3)
    before = server.n_received
    at = WHOLE.index("--judge")
    whole = [*WHOLE[:at], *WHOLE[at + 2 :]] if "--judge" in flags else WHOLE
    run(folder, *whole, *flags, expect=1)
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert server.n_received == before
    assert not (folder / "judgments").exists()


def test_who_is_not_on_the_board_is_no_anchor(server, tmp_path, capsys):
    """Models without a verdict are left out of a placing, or told where they were named."""
    folder = workspace(tmp_path / "w", server, n_seeds=20)
    run(folder, *WHOLE, "--model", "ada", "--model", "bob")
    row, _ = told(capsys, folder, *WHOLE, "--add", "cleo", "--budget", "20")
    assert sorted(one["model"] for one in row["ratings"]) == ["ada", "bob", "cleo"]
    assert row["population"] == 2 * 2 * 20
    named = [part for name in ("ada", "bob", "dan") for part in ("--model", name)]
    named += ["--add", "cleo"]
    run(folder, *WHOLE, *named, expect=1)
    error = capsys.readouterr().err
    assert "umpire has not compared dan with the others at N = 4: judge them first" in error
