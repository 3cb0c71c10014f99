"""What beginners get wrong, and the one line that each gets: what, where, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from botchat import Comparisons, Workspace, bradley_terry
from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline.run import session
from botchat.records import Seed
from tests.openai_server import Server

GENERATE = "generate --seeds sample --turns 3 --limit 1 --model"
JUDGE = "--seeds sample --judge rules"
RUN = "run --seeds sample --model bot:verbose --limit 2"

COMMANDS = [
    # names of models
    (f"{GENERATE} URL#bad", "model `bad` does not exist", "check its model"),
    (f"{GENERATE} http://127.0.0.1:1/v1#m", "ConnectionRefused", "check host and port"),
    (f"{GENERATE} localhost:8000/v1#m", "unknown model", "bot:NAME"),
    (f"{GENERATE} URL", "give a name of printable characters", "http://localhost:8000/v1#my-model"),
    (f"{GENERATE} gpt-4o", "unknown model 'gpt-4o'", "openai:MODEL"),
    (f"{GENERATE} openai:gpt-4o", "OPENAI_API_KEY is not set"),
    (f"{GENERATE} bot:verbos", "unknown bot", "bot:verbose"),
    (f"{GENERATE} mne", "unknown model 'mne'", "did you mean 'mine'?"),
    (f"{GENERATE} rules", "it is a judge"),
    (f"{GENERATE} human", "human is not generated"),
    (f"{GENERATE} http://h/v1/chat/completions#m", "which is added to it; leave that out"),
    # seeds
    ("generate --seeds sampel --model bot:verbose", "did you mean 'sample'?"),
    ("generate --seeds a/b --model bot:verbose", "a name is letters"),
    ("generate --seeds empty --model bot:verbose", "is empty"),
    ("generate --seeds broken --model bot:verbose", "broken.jsonl:2: "),
    ("seeds sample sample-999", "botchat seeds sample"),
    ("import nope.csv --seeds a", "is not a file of this kind", ".csv"),
    ("import botchat.toml --seeds a", "is not a file of this kind", ".jsonl"),
    ("import empty.jsonl --seeds a", "empty.jsonl"),
    ("import broken.csv --seeds a", "broken.csv"),
    ("import other.jsonl --seeds mine", "the set mine has 2 other seeds already", "--replace"),
    ("import other.jsonl --seeds sample", "the built-in set", "choose another"),
    ("import semicolons.csv --seeds a", "'a|b|c' is not JSON"),
    ("import latin.csv --seeds a", "latin.csv: line 2: byte 0xe9", "save the file as UTF-8"),
    ("import other.jsonl --seeds b/c", "a name is letters, digits"),
    ("seeds --dir other.jsonl", "--dir other.jsonl is a file", "name the folder"),
    # numbers
    ("generate --seeds sample --model bot:verbose --limit 0", "at least one seed"),
    ("generate --seeds sample --model bot:verbose --turns 2", "at least 3"),
    (f"judge unieval {JUDGE} --limit 0", "at least one seed"),
    (f"judge unieval {JUDGE} --max-usd 0", "a number above 0"),
    ("judge unieval --seeds sample --judge URL#good --max-usd 1", "price_input and price_output"),
    ("generate --seeds sample --model bot:verbose --limit -3", "--limit -3", "at least one seed"),
    # judging
    (f"judge areno {JUDGE}", "unknown protocol 'areno'", "did you mean 'arena'?"),
    (f"judge arena {JUDGE} --model bot:verbose", "at least two contestants", "--model"),
    (f"judge arena {JUDGE} --comparisons 1", "--comparisons 1: give at least 2"),
    (f"judge unieval {JUDGE} --comparisons 8", "--comparisons is for pairs of models"),
    (f"judge arena {JUDGE} --turns 2", "at least 3 are needed"),
    (f"judge unieval {JUDGE} --turns -1", "--turns -1: judge the first 1, 2, …"),
    (f"judge gteval {JUDGE} --turns 8", "gteval has no N of its own"),
    (f"judge gteval {JUDGE} --model human", "name a model besides human"),
    (f"judge unieval {JUDGE} --model bot:retrieval", "botchat generate --seeds sample"),
    ("judge unieval --seeds sample --judge control:rules", "'rules' is no panel"),
    ("judge unieval --seeds sample --judge rule", "did you mean 'rules'?"),
    ("judge unieval --seeds sample --judge human", "name a model, or rules"),
    ("judge unieval --seeds sample --judge rules --judge-model m", "--judge-model is for panels"),
    ("judge gteval --seeds sample --judge mateval-cott --judge-model m", "did you mean"),
    (f"judge unieval {JUDGE} --batch", "leave --batch out"),
    ("judge unieval --seeds mine --judge rules", "botchat generate --seeds mine"),
    # boards
    ("leaderboard --seeds mine", "botchat judge arena --seeds mine"),
    ("leaderboard --seeds sample --judge gpt", "gpt", "rules"),
    ("figure elos --seeds sample", "elo"),
    ("figure ratings --seeds sample --size 7y4", "--size 7y4"),
    ("agree", "--seeds"),
    ("agree nope.csv", "nope.csv"),
    ("agree two", "cannot read two: "),
    ("agree --seeds sample --protocol unievl", "did you mean 'unieval'?"),
    ("rank empty.jsonl", "empty.jsonl"),
    ("rank empty.csv", "the file is empty; its first row names columns"),
    ("rank two", "cannot read two: "),
    ("compare mine sample", "no board 'mine'", "name a set with a leaderboard"),
    ("bench two --judge rules", "two is a folder; name a file:"),
    ("bench latin.csv --judge rules", "latin.csv: line 2: byte 0xe9", "save the file as UTF-8"),
    ("bench empty.csv --judge rules", "empty.csv: the file is empty"),
    ("publish mine --seeds mine --dry-run", "'mine' is not ORG/NAME"),
    ("publish https://h/a/b --seeds mine --dry-run", "is not ORG/NAME"),
    # benchmarks
    ("bench fareval --data two --judge rules", "did you mean 'faireval'?"),
    ("bench faireval --data nope --judge rules", "no folder nope"),
    ("bench faireval --data seeds --judge rules", "needs question.jsonl", "mine.jsonl"),
    (
        "bench faireval --data two --judge rules",
        "holds 2 data sets, a, b: give a folder that holds one",
    ),
    ("bench faireval --data two/a --judge rules", "rules answers UniEval", "name a model"),
    # the whole run
    ("run", "name a set with --seeds, or seeds in [run]"),
    ("run --seeds sample", "run needs --model MODEL"),
    ("run --seeds sample --model bot:verbose", "run needs --judge JUDGE"),
    ("run --seeds sample --model human --judge rules", "besides human"),
    (f"{RUN} --judge rules --protocol areno", "did you mean 'arena'?"),
    (f"{RUN} --judge rules --protocol arena", "at least two contestants"),
    (f"{RUN} --judge rul", "did you mean 'rules'?"),
    ("init opnai", "did you mean 'openai'?"),
    ("init openai", "botchat.toml already exists"),
    # the ledger
    ("ledger --forget", "--outcome"),
]
"""A command, and what its one line has; URL stands for a server that knows the model ``good``."""


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


@pytest.mark.parametrize(("command", "told"), [(c, told) for c, *told in COMMANDS])
def test_a_mistaken_command_gets_one_line_that_helps(command, told, place, monkeypatch, capsys):
    """Exit 1, one line on stderr, nothing on stdout, and the server is not asked to chat."""
    folder, server = place
    monkeypatch.chdir(folder)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(session, "Retry", lambda: Retry(attempts=1))
    capsys.readouterr()
    words = [word.replace("URL", server.url) for word in command.split()]
    assert main(words) == 1
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.startswith("botchat: ")]
    assert (len(lines), said.out) == (1, "")
    for part in told:
        assert part.replace("URL", server.url) in lines[0]


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


def test_a_workspace_may_be_named_by_a_str(tmp_path):
    """As anybody would."""
    assert Workspace(str(tmp_path)).seeds("sample") == Workspace(tmp_path).seeds("sample")


def test_comparisons_take_series_and_lists():
    """Columns of a data frame, with an index of its own, rate as arrays do."""
    frame = pd.DataFrame(
        {"a": [0, 1, 0, 2], "b": [1, 2, 2, 0], "r": [1, 0.5, 1, 0]}, index=[7, 5, 3, 1]
    )
    models = ("x", "y", "z")
    plain = Comparisons(models, np.array([0, 1, 0, 2]), np.array([1, 2, 2, 0]), frame["r"].values)
    of_series = Comparisons(models, frame["a"], frame["b"], frame["r"], frame["a"])
    of_lists = Comparisons(models, [0, 1, 0, 2], [1, 2, 2, 0], [1, 0.5, 1, 0])
    expected = bradley_terry(plain).rating.tolist()
    assert bradley_terry(of_series).rating.tolist() == expected
    assert bradley_terry(of_lists).rating.tolist() == expected
    for column in (pd.Series(["x", "y", "x", "z"]), pd.Series([0.5, 1, 0, 2])):
        with pytest.raises(ValueError, match=r"first holds .* Comparisons.of"):
            Comparisons(models, column, frame["b"], frame["r"])
