"""Panels over real HTTP: who heard what, how many calls, killed in mid-debate, their controls."""

import threading
import tomllib
from contextlib import closing

import msgspec
import pytest

from botchat.cli.main import main
from botchat.judges.panel import calls
from botchat.pipeline import session
from botchat.records import Judgment, Seed
from botchat.workspace import jsonl
from botchat.workspace.ledger import Ledger
from botchat.workspace.panels import PanelSettings
from tests.openai_server import Gate, Server, converse, faults, text
from tests.openai_server.replies import by_model
from tests.rows import rows


def workspace(folder, server, panel, n_seeds=3, in_flight=4):
    """Seeds of four utterances, dialogues of two bots, a panel of the server's model."""
    folder.mkdir(parents=True)
    seeds = [
        Seed(f"s{n}", tuple(f"line {i} of talk {n}, isn't it?" for i in range(4)))
        for n in range(n_seeds)
    ]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    (folder / "botchat.toml").write_text(
        f'[models.umpire]\nmodel = "umpire"\nbase_url = "{server.url}"\n'
        f"max_concurrency = {in_flight}\nprice_input = 1.0\nprice_output = 2.0\n\n{panel}"
    )
    models = ["--model", "bot:verbose", "--model", "bot:parrot"]
    generate = ["generate", "--seeds", "small", "--turns", "4", *models]
    assert main([*generate, "--dir", str(folder)]) == 0
    return folder


def judge_arena(folder, *more, judge="three"):
    """The command: three seeds, one pair of bots, both orders make six cases."""
    asked = ["judge", "arena", "--seeds", "small", "--turns", "4", "--judge", judge, *more]
    return [*asked, "--dir", str(folder)]


def judgments(folder):
    """Judge -> its Arena judgments."""
    found = {}
    for path in sorted((folder / "judgments" / "small" / "arena-n4").glob("*.jsonl")):
        made = jsonl.read(path, Judgment)
        found[made[0].judge] = made
    return found


@pytest.mark.parametrize("settings", rows("a_panels_calls_can_be_told_beforehand"))
def test_a_panels_calls_can_be_told_beforehand(tmp_path, settings):
    """What a control matches is what every strategy really sends."""
    with Server(conversed) as server:
        entry = f'[panels.three]\nmodel = "umpire"\n{settings}\n'
        folder = workspace(tmp_path / "w", server, entry, n_seeds=1)
        assert main(judge_arena(folder)) == 0
    table = tomllib.loads(settings) | {"model": "umpire"}
    read = msgspec.convert(table, PanelSettings)
    assert {len(judgment.calls) for judgment in judgments(folder)["three"]} == {calls(read)}


def conversed(call):
    """The usual judge, who breaks a question down in as many parts as it is asked for."""
    if "Break it down" in call.messages[-1]["content"]:
        return text("1. Is the first one human?\n2. Is the second one?\n3. And both?")
    return converse(call)


def test_a_reply_under_way_is_stored_also_where_another_agent_ends_the_run(tmp_path, monkeypatch):
    """However long it takes: the half minute is for an interrupt alone."""
    monkeypatch.setattr(session, "DRAIN_S", 0.0)
    with Server(converse) as server:
        entry = f'[models.other]\nmodel = "other"\nbase_url = "{server.url}"\n\n'
        agents = '{ name = "A", model = "umpire" }, { name = "B", model = "other" }'
        panel = f'[panels.three]\nstrategy = "ensemble"\nagents = [{agents}]\n'
        folder = workspace(tmp_path / "w", server, entry + panel, n_seeds=1)
        gate = Gate()

        def held(call):
            return converse(call).held(gate)

        server.play(by_model({"umpire": held, "other": faults.unauthorized()}))
        opener = threading.Thread(target=lambda: (server.wait_for(2), gate.open()))
        opener.start()
        assert main(judge_arena(folder)) == 1
        opener.join()
    with closing(Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)) as ledger:
        ((n_stored,),) = ledger.select("SELECT count(*) FROM calls WHERE model='umpire'")
    assert n_stored == server.n_by_model["umpire"] > 0
