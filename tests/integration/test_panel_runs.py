"""Panels over real HTTP: who heard what, how many calls, killed in mid-debate, their controls."""

from __future__ import annotations

import hashlib
import re
import tomllib

import msgspec
import pytest

from botchat.cli.main import main
from botchat.judges.panel import calls
from botchat.records import Judgment, Seed
from botchat.workspace import jsonl
from botchat.workspace.panels import PanelSettings
from tests.openai_server import Server, converse, text

STRATEGIES = ("one-by-one", "simultaneous-talk", "simultaneous-talk-with-summarizer")
NAMES = ("Ann", "Ben", "Cleo")
_TASK = "\n\nThere are a few other referees"
_OWN = re.compile(r"please make your talk short and clear, (\w+) !")
_HEARD = re.compile(r"^\[(\w+)\]: (.*)$", re.MULTILINE)


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


def panel(strategy, turns=2, more=""):
    """Three members with names of their own."""
    members = ", ".join(f'{{ name = "{n}", text = "You are {n}." }}' for n in NAMES)
    return (
        f'[panels.three]\nstrategy = "{strategy}"\nrounds = {turns}\nmodel = "umpire"\n'
        f"agents = [{members}]\n{more}\n"
    )


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


def debater(call):
    """Says who it is, about which question and in which turn; votes by its prompt's hash."""
    prompt = call.messages[-1]["content"]
    own = _OWN.search(prompt)
    if own is None:
        return text(f"sum of {len(_HEARD.findall(prompt))} messages")
    question = hashlib.sha256(prompt.split(_TASK)[0].encode()).hexdigest()[:8]
    history = prompt.split("Here is your discussion history:\n")[1].split("\n\nYou are ")[0]
    turn = 2 if f"[{own[1]}]:" in history or "[Summarizer]:" in history else 1
    side = "Conversation 1" if call.digest < "8" else "Both"
    return text(f"Choice: {side}; Reason: {own[1]} on {question} in turn {turn}")


@pytest.mark.parametrize(
    ("strategy", "calibrated"), [*((one, False) for one in STRATEGIES), (STRATEGIES[-1], True)]
)
def test_calls_are_agents_times_turns_and_summaries(tmp_path, strategy, calibrated):
    """Exactly; position calibration doubles a verdict's calls, which both orders share."""
    more = "position_calibration = true" if calibrated else ""
    summaries = 2 if strategy.endswith("summarizer") else 0
    with Server(debater) as server:
        folder = workspace(tmp_path / "w", server, panel(strategy, more=more))
        assert main(judge_arena(folder)) == 0
        # A case in one order and its mirror ask the same two talks: 3 seeds × 2 orders either way.
        assert server.n_received == 6 * (3 * 2 + summaries)
        assert server.n_repeated == 0
    per_verdict = (3 * 2 + summaries) * (2 if calibrated else 1)
    made = judgments(folder)["three"]
    assert {len(judgment.calls) for judgment in made} == {per_verdict}
    assert len({call for judgment in made for call in judgment.calls}) == 6 * (3 * 2 + summaries)


@pytest.mark.parametrize(
    "settings",
    [
        'strategy = "ensemble"\nsamples = 2',
        'strategy = "one-by-one"\nrounds = 3',
        'strategy = "simultaneous-talk-with-summarizer"\nagents = ["critic", "critic"]',
        'strategy = "discussion-sa"',
        'strategy = "discussion-one-by-one"\nrounds = 2',
        'strategy = "discussion-sr"\nrounds = 2',
        'strategy = "discussion-cot"\nrounds = 2',
        'strategy = "discussion-sr-cot"\nrounds = 2',
    ],
)
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
