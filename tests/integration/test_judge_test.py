"""The judge is tested once, by calls that the plan names, and the board says what it found."""

import json

import pytest

from tests.commands import refused, said
from tests.openai_server import text

MODEL = '[models.{0}]\nmodel = "{0}"\nbase_url = "{1}"\nprice_input = 1\nprice_output = 2\n'


@pytest.fixture
def place(tmp_path, server):
    """The sample's 40 dialogues, a model, and a judge that always says No or Neither."""

    def play(call):
        words = call.messages[-1]["content"]
        if call.model != "judge":
            return text(f"{call.model} says {len(call.messages)} to {words[:40]}")
        return text("Choice: Neither" if "Conversation 2" in words else "Choice: No")

    server.play(play)
    (tmp_path / "botchat.toml").write_text(
        "".join(MODEL.format(name, server.url) for name in ("one", "judge"))
        + '[generation]\nturns = 6\n[run]\nseeds = "sample"\nmodels = ["one"]\njudge = "judge"\n'
    )
    return tmp_path


def n_asked(server):
    """Calls that the judge has had."""
    return sum(call.model == "judge" for call in server.calls)


def test_it_is_paid_once_whatever_the_limit(place, server, capsys):
    """A run below 20 asks none; 140 calls at 20, in the plan before; none again at 30."""
    where = ["--dir", place]
    small = said(capsys, "run", "--limit", 5, "--quiet", *where)
    assert "judge test" not in {row["step"] for row in small["plan"]}
    assert small["judge"]["trust"] == "not tested"
    assert "from 20 on it is (140 calls" in small["judge"]["reasons"][0]
    for limit, n_test in ((20, 140), (30, 0)):
        planned = said(capsys, "run", "--plan", "--limit", limit, *where)["rows"]
        calls = {row["step"]: row["calls"] for row in planned}
        assert calls.get("judge test", 0) == n_test
        before = n_asked(server)
        board = said(capsys, "run", "--limit", limit, "--quiet", *where)
        judging = sum(n for step, n in calls.items() if step not in ("generate", "total"))
        assert n_asked(server) - before == judging
        check = board["judge"]["checks"][0]
        assert (check["key"], check["protocol"], check["n"]) == ("skill", "unieval", 40)
        assert {row["model"] for row in board["rows"]} == {"one", "human"}
        assert "shuffled" not in json.dumps([board["rows"], board["tables"]["unieval"]])
    assert board["headline"] == "No ranking: the judge does not notice shuffled dialogues."
    assert all(row["rank"] is None for row in board["rows"])
    chunks = place / "leaderboards" / "sample" / "chunks"
    assert '"shuffled"' not in (chunks / "index.js").read_text("utf-8")
    said(capsys, "leaderboard", "--keep", "before", *where)
    gate = ["compare", "sample/before", "sample", "--gate", *map(str, where)]
    assert "No ranking: the judge does not notice" in refused(capsys, gate, 4)
    said(capsys, "run", "--limit", 20, "--model", "one", "--model", "judge", "--quiet", *where)
    said(capsys, "judge", "arena", "--judge", "judge", "--turns", 4, *where)
    figure = ["figure", "ratings", *map(str, where)]
    assert "(No ranking: the judge does not notice" in refused(capsys, figure)


def test_who_is_not_asked(place, capsys):
    """`rules` reads form only; 0 is none, and fewer than 20 tell nothing."""
    where = ["--dir", place]
    board = said(capsys, "run", "--judge", "rules", "--quiet", *where)
    assert (board["judge"]["trust"], board["judge"]["checks"][0]["n"]) == ("not tested", 0)
    path = place / "botchat.toml"
    path.write_text(path.read_text() + "shuffled = 7\n")
    line = refused(capsys, ["run", "--plan", *map(str, where)])
    assert "shuffled: 0 for none, or 20 and more" in line
