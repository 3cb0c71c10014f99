"""Every protocol there is, built in or somebody's own, from plan to page; and the docs' example."""

import hashlib
import json
import re
from pathlib import Path
from typing import get_args

import pytest

from botchat.cli.main import main
from botchat.interfaces import Kind
from botchat.pipeline.load import load
from botchat.protocols.catalogue import catalogue
from botchat.protocols.reports import ERRORS
from botchat.records import Dialogue, Seed
from botchat.report import archive
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.commands import said, walk
from tests.openai_server import Server, text
from tests.rows import rows

DOCS = Path(__file__).resolve().parents[2] / "docs" / "criteria.md"

MODELS = ("ada", "bob", "cleo")
N = 4

OWN = (Path(__file__).resolve().parents[1] / "data" / "own_criteria.toml").read_text("utf-8")


def everything(call):
    """A reply with an answer of every kind in it, drawn from the prompt and the judge's name."""
    prompt = call.messages[-1]["content"]
    draw = int(hashlib.sha256(f"{call.model}{prompt}".encode()).hexdigest()[:8], 16)
    which = ("Left", "Right", "Same")[draw % 3]
    if "Choice: Conversation 1" in prompt:
        which = ("Conversation 1", "Conversation 2", "Both")[draw % 3]
    elif "Speaker A" in prompt:
        which = ("Speaker A", "Speaker B", "None")[draw % 3]
    elif "Index" in prompt or "boredom" in prompt:
        which = ("No", "Yes\nIndex: 3")[draw % 2]
    lines = [f"{error}? No" for error in ERRORS.values() if error != "Repetition"]
    return text(
        "\n".join(
            [
                f"Choice: {which}",
                *("Speaker A: Human", f"Speaker B: {('Human', 'Machine, Index: 2')[draw % 2]}"),
                "Reason: so",
                f"Empathy: {1 + draw % 10}",
                f"Warm tone: {1 + draw % 7}.5",
                f"Grace 1: {draw % 6}",
                f"Grace 2: {draw // 7 % 6}",
                "Repetition? Yes",
                '- Utterance 3: "line"',
                *lines,
            ]
        )
    )


def workspace(folder: Path, server: Server, more: str = OWN) -> Workspace:
    """Seeds, dialogues of three models, two judges, and criteria of one's own."""
    folder.mkdir(parents=True)
    seeds = [Seed(f"s{n}", tuple(f"line {i} of {n}" for i in range(N))) for n in range(4)]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    judges = "".join(
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\n' for name in ("x", "y")
    )
    (folder / "botchat.toml").write_text(f"{judges}[arena]\nturns = [{N}]\n{more}")
    for name in ("empathy", "boredom", "faults"):
        (folder / f"{name}.txt").write_text(f"Is there {name}?\n{{{{conversation}}}}\n")
    for name in ("rivals", "warmth"):
        shown = "{{conversation_1}}\nor\n{{conversation_2}}"
        asked = "Left, Right or Same?" if name == "warmth" else ""
        (folder / f"{name}.txt").write_text(f"Is there {name}? {asked}\n{shown}\n")
    found = Workspace(folder)
    for model in MODELS:
        made = [
            Dialogue(
                seed.id, model, (*seed.utterances[:2], f"I am {model}.", f"line of {model}"), 2, (),
                "complete", "sig",
            )
            for seed in seeds
        ]  # fmt: skip
        jsonl.finish(found.dialogues_path("small", model), made, lambda one: one.seed_id)
    return found


def test_every_protocol_is_everywhere(tmp_path, capsys):
    """Planned, judged, resumed, on the board, in the reader, and in agree."""
    with Server(everything) as server:
        here = workspace(tmp_path / "w", server)
        place = ["--seeds", "small", "--dir", here.root]
        asked = list(catalogue(here.config.protocols, here.language("small")))
        assert {p.kind for p in asked} == set(get_args(Kind))
        filed = {}
        kinds = {protocol.kind: protocol.name for protocol in asked}
        for protocol in asked:
            filed[protocol.name] = f"{protocol.name}-n{N}" if protocol.shows == "pair" else None
            name, judge = protocol.name, ["judge", protocol.name, *place, "--judge", "x"]
            planned = said(capsys, *judge, "--plan")["rows"] if name in kinds.values() else []
            made = said(capsys, *judge)
            (row,) = made["rows"]
            assert row["unreadable"] == 0, name
            assert row["protocol"] == (filed[name] or name)
            assert {r["calls"] for r in planned} <= {made["calls"]} == {row["new"]}
            if planned:
                sent, again = server.n_received, said(capsys, *judge)
                assert (again["calls"], again["rows"][0]["new"], server.n_received) == (0, 0, sent)
                said(capsys, "judge", name, *place, "--judge", "y")
    names = {filed[p.name] or p.name for p in asked}
    board = said(capsys, "leaderboard", *place, "--judge", "x")
    assert names <= set(board["tables"])
    assert {row["protocol"] for row in board["tables"]["judge"]["rows"]} == names
    models = [row for row in board["rows"] if row["model"] in MODELS]
    assert all(row["coverage"] == 1.0 for row in models)
    found = load(here, "small", ["x"])
    chunks = archive.build(found.seeds, found.dialogues, found.judgments, found.catalogue)
    assert names <= {*chunks.protocols}
    for name in (filed[name] or name for name in kinds.values()):
        compared = said(capsys, "agree", *place, "--protocol", name)
        assert {row["judge"] for row in compared["judges"]} == {"x", "y"}
        (pair,) = compared["pairs"]
        assert pair["n"] > 0, name


@pytest.mark.parametrize(("entry", "message"), rows("a_bad_criterion_gets_one_line"))
def test_a_bad_entry_gets_one_line(tmp_path, capsys, entry, message):
    """File, line, key, and what is allowed."""
    (tmp_path / "one.txt").write_text("{{conversation}}")
    (tmp_path / "two.txt").write_text("{{conversation_1}} {{conversation_2}}")
    (tmp_path / "botchat.toml").write_text(f"\n[protocols.mine]\n{entry}\n")
    assert main(["models", "--dir", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(r"botchat\.toml:\d: \[protocols\.mine\]", err), err
    assert message in err


def test_a_judge_without_readable_replies_is_stopped_and_the_last_is_shown(tmp_path, capsys):
    """A criterion after five in a row, a built-in protocol after twenty."""
    with Server(text("I like turtles.")) as server:
        here = workspace(tmp_path / "w", server)
        settings = here.root / "botchat.toml"
        settings.write_text(settings.read_text().replace('"x"\n', '"x"\nmax_concurrency = 1\n', 1))
        judge = ["judge", "empathy", "--seeds", "small", "--dir", str(here.root), "--judge"]
        assert main([*judge, "x"]) == 1
        assert server.n_received == 5
        err = capsys.readouterr().err
        assert "5 replies of x in a row are unreadable" in err
        assert "I like turtles." in err
        assert main([*judge, "rules"]) == 1
        assert server.n_received == 5
        assert "not empathy; name a model" in capsys.readouterr().err
        judge[1] = "arena"
        assert main([*judge, "x"]) == 1
        assert server.n_received == 25
        assert "20 replies of x in a row are unreadable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply", "n_first", "advice"),
    [
        (text("First, let me", finish_reason="length"), 5, "cut: set a larger max_tokens"),
        (text("", usage={"completion_tokens": 2}), 5, "needs a larger max_tokens"),
        (text("<think>First, let me", finish_reason="length"), 6, "set reasoning_tokens"),
    ],
)
def test_replies_that_are_cut_or_show_nothing_are_unreadable_too(
    tmp_path, capsys, reply, n_first, advice
):
    """They are paid for; the line says what to raise, and the next run goes on behind them."""
    with Server(reply) as server:
        here = workspace(tmp_path / "w", server)
        settings = here.root / "botchat.toml"
        settings.write_text(settings.read_text().replace('"x"\n', '"x"\nmax_concurrency = 1\n', 1))
        judge = ["judge", "empathy", "--seeds", "small", "--dir", str(here.root), "--judge", "x"]
        for n_sent in (n_first, 10):
            assert main(judge) == 1
            assert server.n_received == n_sent
            assert advice in capsys.readouterr().err


def unreadable_empathy(call):
    """A judge that answers all but one criterion."""
    if "Is there empathy?" in call.messages[-1]["content"]:
        return text("I like turtles.")
    return everything(call)


def test_an_unreadable_criterion_ends_itself_alone(tmp_path, capsys):
    """`run` asks the other protocols, makes the board and says the line; verdicts are missing."""
    with Server(unreadable_empathy) as server:
        here = workspace(tmp_path / "w", server)
        settings = here.root / "botchat.toml"
        settings.write_text(settings.read_text().replace('"x"\n', '"x"\nmax_concurrency = 1\n', 1))
        run = ["run", "--seeds", "small", "--model", "bot:parrot", "--judge", "x", "--json"]
        for name in ("empathy", "unieval", "boredom"):
            run += ["--protocol", name]
        assert main([*run, "--dir", str(here.root)]) == 1
        assert server.n_received == 5 + 8 + 8
        printed = capsys.readouterr()
        assert printed.err.count("5 replies of x in a row are unreadable") == 1
        assert "3 dialogues or verdicts are missing" in printed.err
        made = json.loads(printed.out)
        (line,) = made["left_out"]
        assert "I like turtles." in line
        judged = {row["protocol"]: row["cases"] for row in made["judged"]}
        assert judged == {"empathy": 5, "unieval": 8, "boredom": 8}
        assert {"unieval", "boredom"} <= set(made["tables"])


def test_the_walk_of_the_docs(tmp_path, capsys, monkeypatch):
    """From nothing to a leaderboard, with a local judge in the provider's place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with Server(lambda _: text("They listen.\nEmpathy: 7")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert walk(DOCS.read_text("utf-8"), capsys) == 4
        sent = server.n_received
    out = tmp_path / "leaderboards" / "sample"
    rows = json.loads((out / "leaderboard.json").read_text())["rows"]
    assert {row["empathy_mean_1"] for row in rows if row["empathy_mean_1"] is not None} == {7.0}
    assert sent > 0
    assert (out / "empathy.csv").exists()
    assert "Empathy" in (out / "index.html").read_text()
