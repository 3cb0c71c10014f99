"""What beginners get wrong, and the one line that each gets: what, where, and what to do."""

import json
import re
from pathlib import Path

import pytest

from botchat import Workspace
from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline import session
from botchat.records import Seed
from tests.openai_server import Server
from tests.rows import rows

GENERATE = "generate --seeds sample --turns 3 --limit 1 --model"
JUDGE = "--seeds sample --judge rules"


def jsonl(path: Path, rows: list[dict]) -> None:
    """Write rows as lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which a beginner has begun, and a server that knows one model."""
    folder = tmp_path_factory.mktemp("beginner")
    seeds = [Seed(f"s{n}", ("a", "b", "c", f"d{n}")) for n in range(2)]
    Workspace(folder).write_seeds("mine", seeds)
    jsonl(folder / "other.jsonl", [{"id": "s9", "utterances": ["a", "b", "c", "d"]}])
    for name in ("empty.jsonl", "empty.csv"):
        (folder / name).write_text("")
    (folder / "seeds" / "empty.jsonl").write_text("")
    (folder / "seeds" / "broken.jsonl").write_text('{"id":"a","utterances":["x","y"]}\n{"id":\n')
    (folder / "semicolons.csv").write_text('id;utterances\n1;"a|b|c"\n')
    (folder / "latin.csv").write_bytes("text\ncaf\xe9\n".encode("latin-1"))
    (folder / "broken.csv").write_text("one column\nand nothing else\n")
    for name in ("a", "b"):
        jsonl(folder / f"two/{name}/question.jsonl", [{"question_id": 1, "text": "?"}])
        for who in ("m1", "m2"):
            said = {"question_id": 1, "text": f"{who} of {name}"}
            jsonl(folder / f"two/{name}/answer/answer_{who}.jsonl", [said])
        (folder / f"two/{name}/review_m1_m2_human.txt").write_text("m1\n")
    with Server(models=["good"]) as server:
        (folder / "botchat.toml").write_text(
            f'[models.mine]\nmodel = "good"\nbase_url = "{server.url}"\n'
        )
        for bot in ("bot:verbose", "bot:parrot"):
            command = ["generate", "--seeds", "sample", "--limit", "2", "--model", bot]
            assert main([*command, "--dir", str(folder)]) == 0
        for protocol in ("unieval", "arena"):
            assert main(["judge", protocol, *JUDGE.split(), "--dir", str(folder)]) == 0
        yield folder, server


@pytest.mark.parametrize(("command", "told", "code"), rows("mistaken_commands"))
def test_a_mistaken_command_gets_one_line_that_helps(
    command, told, code, place, monkeypatch, capsys
):
    """Exit 2 where the command line alone is wrong; URL stands for a server that has ``good``."""
    folder, server = place
    monkeypatch.chdir(folder)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(session, "Retry", lambda: Retry(most=1))
    capsys.readouterr()
    words = [word.replace("URL", server.url) for word in command.split()]
    assert main(words) == code
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.startswith("botchat: ")]
    assert (len(lines), said.out) == (1, "")
    for part in told:
        assert part.replace("URL", server.url) in lines[0]


def test_no_list_has_more_than_eight_names(tmp_path, capsys):
    """Of models, sets and keys of an entry."""
    entries = "".join(f'[models.m{n}]\nmodel = "m"\n' for n in range(12))
    (tmp_path / "botchat.toml").write_text(entries)
    for n in range(12):
        Workspace(tmp_path).write_seeds(f"set{n}", [Seed("s", ("a", "b"))])
    commands = ["generate --seeds set1 --model zz", "leaderboard --seeds zz", "leaderboard"]
    for command in commands:
        assert main([*command.split(), "--dir", str(tmp_path)]) == 1
        assert 0 < len(re.findall(r"\b(?:m|set)\d+\b", capsys.readouterr().err)) <= 8
    (tmp_path / "botchat.toml").write_text(f"{entries}zzz = 1\n")
    assert main([*commands[0].split(), "--dir", str(tmp_path)]) == 1
    assert re.search(r"known: (\w+, ){7}\w+ and \d+ more$", capsys.readouterr().err)


@pytest.mark.parametrize("key", ['"sk-abc"', "sk abc", "sk-‘abc’", " "])
def test_a_key_that_can_be_none_is_not_sent(key, place, monkeypatch, capsys):
    """With quotes of a .env file, from a text editor, or empty: the variable is named."""
    folder, server = place
    n_asked = len(server.calls)
    monkeypatch.setenv("BOTCHAT_API_KEY", key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert main([*GENERATE.split(), "openai:good", "--dir", str(folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "OPENAI_API_KEY" in line
    assert "set it" in line
    assert len(server.calls) == n_asked


def test_a_set_is_replaced_only_where_that_is_asked_for(tmp_path, monkeypatch, capsys):
    """The same content is no other content; a refused import changes nothing."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"s{n}", "utterances": ["a", "b", "c", f"{n}"]} for n in range(12)]
    jsonl(Path("one.jsonl"), rows)
    jsonl(Path("two.jsonl"), rows[:3])
    assert main(["import", "one.jsonl", "--seeds", "set"]) == 0
    stored = Path("seeds/set.jsonl").read_bytes()
    assert main(["import", "one.jsonl", "--seeds", "set"]) == 0
    assert main(["import", "two.jsonl", "--seeds", "set"]) == 1
    assert "the set set has 12 other seeds already" in capsys.readouterr().err
    assert Path("seeds/set.jsonl").read_bytes() == stored
    assert main(["import", "two.jsonl", "--seeds", "set", "--replace"]) == 0
    assert len(Workspace(Path()).seeds("set")) == 3
