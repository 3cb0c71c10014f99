"""Who was asked: a preflight that fails, new weights under an old name, files that were changed."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import botchat
from botchat.cli.main import main
from botchat.languages import ENGLISH
from botchat.pipeline.load import load
from botchat.records import Seed
from botchat.workspace.folder import Workspace
from tests.openai_server import Server, templates, text
from tests.openai_server.replies import talk

SEEDS = [Seed(f"s{n}", (f"hello from {n}", f"hi, {n}", "fine", "bye")) for n in range(3)]


def entry(name, url, *more):
    """Lines of an entry in ``botchat.toml``."""
    return "\n".join([f"[models.{name}]", f'model = "{name}-1"', f'base_url = "{url}"', *more, ""])


@pytest.fixture
def place(tmp_path, server):
    """A workspace with a set of three, and a model ``m`` at a server."""
    botchat.Workspace(tmp_path).write_seeds("small", SEEDS)
    (tmp_path / "botchat.toml").write_text(entry("m", server.url))
    return tmp_path


def did(place, *command, code=0):
    """Run a command on the workspace; its exit code is checked."""
    assert main([*map(str, command), "--dir", str(place)]) == code


def test_a_check_of_models_says_what_each_answered_and_fails_with_the_first_that_did_not(
    place, server, capsys, monkeypatch
):
    """Only configured models, with the answer beside the name; none configured checks nothing."""
    with Server(api_key="right") as strict:
        keyed = entry("keyed", strict.url, 'api_key_env = "KEY"')
        (place / "botchat.toml").write_text(entry("open", server.url) + keyed)
        monkeypatch.setenv("KEY", "wrong")
        did(place, "models", "--check", code=1)
        said = capsys.readouterr()
        assert said.err.splitlines()[-1] == "botchat: no answer from keyed: see why above"
        heading, *rows = said.out.splitlines()
        assert heading.split() == ["name", "answer", "what"]
        assert [row.split()[0] for row in rows] == ["keyed", "open"]
        assert "401" in rows[0]
        assert "' in 0." in rows[1]
        monkeypatch.setenv("KEY", "right")
        did(place, "models", "--check", "--json")
        assert [row["ok"] for row in json.loads(capsys.readouterr().out)["rows"]] == [True, True]
        did(place, "models", "--check")
        assert strict.n_by_model["keyed-1"] == 3  # never from the ledger
    (place / "botchat.toml").write_text("")
    capsys.readouterr()
    did(place, "models", "--check", code=1)
    assert "has no [models.NAME] entry" in capsys.readouterr().err


GENERATE = ("generate", "--seeds", "small", "--turns", "4", "--model")


def said(place, name="m"):
    """Utterances of a contestant's dialogues."""
    made = botchat.Workspace(place).dialogues("small", name)
    return [text for one in made.values() for text in one.utterances[2:]]


def test_dialogues_of_another_are_not_overwritten_unless_told(place, server, capsys):
    """What differs is named, from the ledger; nothing is sent."""
    did(place, *GENERATE, "m")
    first, asked = said(place), server.n_received
    (place / "botchat.toml").write_text(entry("m", server.url).replace("m-1", "m-2"))
    for flags in ([], ["--plan"]):
        did(place, *GENERATE, "m", *flags, code=1)
        told = capsys.readouterr().err
        assert "m has 3 dialogues on small made with other settings (model m-1 → m-2)" in told
    assert (said(place), server.n_received) == (first, asked)
    did(place, *GENERATE, "m", "--replace")
    assert server.n_received == asked + 6
    did(place, *GENERATE, "m")


def test_a_revision_is_asked_by_itself_and_stands_beside_the_others(place, server):
    """In the entry or behind the name; without one, keys and names are as ever."""
    did(place, *GENERATE, "m")
    did(place, *GENERATE, "m@2", "--model", "m")
    assert server.n_received == 12
    (place / "botchat.toml").write_text(entry("m", server.url, 'revision = "2"'))
    did(place, *GENERATE, "m")
    did(place, *GENERATE, "m@3")
    assert server.n_received == 18
    assert sorted(botchat.Workspace(place).all_dialogues("small")) == ["m", "m@2", "m@3"]
    did(place, *GENERATE, "m@", code=1)
    did(place, *GENERATE, "other@2", code=1)


def test_a_model_has_its_own_system_prompt_and_so_has_its_partner(place, server, capsys):
    """From the entry; in the signature; a plain entry is told what the paper says."""
    pirate = entry("pirate", server.url, 'system_prompt = "You are a pirate."')
    user = entry("user", server.url, 'system_prompt = "You call a hotline."')
    (place / "botchat.toml").write_text(pirate + user + entry("m", server.url))
    did(place, *GENERATE, "pirate", "--partner", "user")
    did(place, *GENERATE, "m")
    told = {call.model: call.messages[0]["content"] for call in server.calls}
    assert told["pirate-1"] == "You are a pirate."
    assert told["user-1"] == "You call a hotline."
    assert told["m-1"].startswith("You are an AI")
    made = botchat.Workspace(place).all_dialogues("small")
    prompts = {
        name: re.search(r"prompt:([^|]*)", next(iter(by.values())).signature)[1]
        for name, by in made.items()
    }
    assert prompts["m"] == ENGLISH.prompts_digest("generation")
    assert re.fullmatch(r"[0-9a-f]{8}\+[0-9a-f]{8}", prompts["pirate + user"])
    boats = entry("user", server.url, 'system_prompt = "You sell boats."')
    (place / "botchat.toml").write_text(pirate + boats + entry("m", server.url))
    did(place, *GENERATE, "pirate", "--partner", "user", code=1)
    assert "made with other settings" in capsys.readouterr().err


def snapshots(place, server, name):
    """Have the server answer as a snapshot."""
    server.play(lambda call: replace(talk(call), body={**talk(call).body, "model": name}))


def test_what_was_measured_is_recorded_and_shown(place, server):
    """From the ledger, once for a model and stage; the board has both snapshots."""
    snapshots(place, server, "m-0806")
    run = ("run", "--seeds", "small", "--model", "m", "--judge", "rules", "--protocol", "unieval")
    did(place, *run, "--limit", 2)
    path = place / "measured" / "small.jsonl"
    record, first = json.loads(path.read_text()), path.read_bytes()
    assert (record["stage"], record["name"], record["asked"]) == ("generate", "m", "m-1")
    assert (record["answered"], record["calls"]) == (["m-0806"], 28)
    assert record["host"] == server.url.removeprefix("http://").removesuffix("/v1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["first"])
    path.unlink()
    did(place, *run, "--limit", 2)
    assert path.read_bytes() == first  # made anew of the ledger alone
    snapshots(place, server, "m-1120")
    did(place, *run)
    board = json.loads((place / "leaderboards" / "small" / "leaderboard.json").read_text())
    (row,) = board["provenance"]
    assert row["answered"] == ["m-0806", "m-1120"]


def edit(path, old, new):
    """Change a file by hand, once."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_was_edited_by_hand_is_said(place, server, capsys):
    """A verdict, a prompt, a file that is gone: one line each, no traceback."""
    criterion = '[protocols.tone]\nkind = "score"\nprompt = "tone.txt"\nscores = ["Tone"]\n'
    (place / "tone.txt").write_text("How kind?\n{{conversation}}\nEnd with: Tone: 1 to 10")
    config = entry("m", server.url) + criterion + "scale = [1, 10]\n"
    (place / "botchat.toml").write_text(config)
    server.play(lambda call: text("Tone: 3" if "Tone" in str(call.messages) else "I see."))
    did(place, *GENERATE, "m", "--model", "bot:parrot")
    (made,) = (place / "generations" / "small").glob("m-*.jsonl")
    judged = ("judge", "unieval", "--seeds", "small", "--judge", "rules")
    did(place, *judged)
    did(place, "judge", "tone", "--seeds", "small", "--judge", "m", "--model", "m")
    board = ("leaderboard", "--seeds", "small", "--judge")
    did(place, *board, "m")
    assert "has changed" not in capsys.readouterr().out
    edit(place / "tone.txt", "How kind?", "How rude?")
    did(place, *board, "m")
    assert "Judge m: run it again, the prompt of tone has changed" in capsys.readouterr().out
    with closing(sqlite3.connect(place / ".botchat" / "ledger.sqlite3")) as db, db:
        db.execute("DELETE FROM calls WHERE stage = 'generate'")
    for command in ((*board, "m"), ("ledger",)):
        did(place, *command)
        lost = r"[1-9]\d* utterances and 0 verdicts rest on calls that the ledger no\s+longer has"
        assert re.search(lost, capsys.readouterr().out)
    large = load(Workspace(place), "small", ["m"], large=True)
    assert re.match(f"At least {lost}", large.board("m").notes[-1])
    (place / ".botchat" / "ledger.sqlite3").unlink()  # a run that was fetched may have none
    did(place, *board, "m")
    assert "rest on calls" not in capsys.readouterr().out
    made.rename(place / "elsewhere")
    did(place, *board, "rules")
    assert "Run generate again: m was judged and has no dialogues." in capsys.readouterr().out
    (verdicts,) = (place / "judgments" / "small" / "unieval").glob("*.jsonl")
    good = verdicts.read_text()
    for odd in ("7x", "99", "-1"):
        line = json.loads(good.splitlines()[0]) | {"verdict": odd}
        verdicts.write_text(json.dumps(line) + "\n")
        did(place, *board, "rules", code=1)
        said_of = capsys.readouterr().err
        assert f"{verdicts}: seed s0: verdict '{odd}'" in said_of
        assert len(said_of.splitlines()) == 1
    verdicts.write_text(good.replace('"verdict":"No"', '"verdict":"Yes"', 1))
    did(place, *board, "rules")  # AI without a place: a judge may say so.


# What an endpoint refuses is learnt once, and is no secret.


ASK_PICKY = ["generate", "--seeds", "two", "--model", "picky", "--turns"]


def test_what_an_endpoint_refuses_is_said_listed_and_signed(tmp_path, capsys, caplog):
    """Once on stderr; in ``botchat models``; in signatures."""
    Workspace(tmp_path).write_seeds("two", [Seed("a", ("Hi.", "Ho.")), Seed("b", ("So?", "No."))])

    def run(*command):
        code = main([*command, "--dir", str(tmp_path)])
        return code, *capsys.readouterr()

    with Server(models={"m": templates.Rules(default_temperature=True)}) as server:
        entry = f'[models.picky]\nmodel = "m"\nbase_url = "{server.url}"\ntemperature = 0.5\n'
        (tmp_path / "botchat.toml").write_text(entry)
        code, _, _ = run(*ASK_PICKY, "4")
        assert (code, server.n_received) == (0, 5)  # the first is refused
        said = caplog.text
        assert said.count("picky is asked without temperature from now on") == 1
        (path,) = (tmp_path / "generations" / "two").glob("*.jsonl")
        before = path.read_text()
        assert before.count("|adapted:picky without temperature") == 2

        caplog.clear()
        code, _, _ = run(*ASK_PICKY, "4")
        assert (code, server.n_received, path.read_text()) == (0, 5, before)
        assert "from now on" not in caplog.text

        _, listed, _ = run("models", "--json")
        (row,) = [row for row in json.loads(listed)["rows"] if row["name"] == "picky"]
        assert row["adapted"] == "without temperature"
