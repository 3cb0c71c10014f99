"""`botchat rank` from the command line: files in, a board, figures and a page out."""

import csv
import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from botchat.cli.main import main
from tests.commands import walk

pytestmark = pytest.mark.usefixtures("quick")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "votes.md"
SHARED = ROOT.parent / "shared" / "data" / "votes"


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """A file of votes, in a folder of its own: x before y before z."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = []
    for n in range(400):
        a, b = rng.choice(3, 2, replace=False)
        winner = "tie" if rng.random() < 0.2 else "ab"[int(rng.random() > 0.5 + (b - a) * 0.2)]
        rows.append(
            ["xyz"[a], "xyz"[b], f"model_{winner}".replace("model_tie", "tie"), n // 8, n % 3]
        )
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model_a", "model_b", "winner", "question_id", "judge"])
        writer.writerows(rows)
    return path


def test_one_open_place_is_one_place(tmp_path, monkeypatch):
    """Three models are level, each of four others has its place: half of them have 1 place open."""
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{a},{b},model_{'ab'[n % 2 if b in 'abc' else n % 10 == 0]}\n"
        for a, b in combinations("abcdefg", 2)
        for n in range(40)
    ]
    Path("mine.csv").write_text("".join(["model_a,model_b,winner\n", *rows]))
    assert main(["rank", "mine.csv"]) == 0
    page = Path("leaderboards", "mine", "index.html").read_text("utf-8")
    assert "half of the models have 1 place open." in page


def test_votes_in_board_out(votes, capsys):
    """One command: the line on the file, the board, every file of it; best first in JSON."""
    assert main(["rank", "mine.csv"]) == 0
    said = capsys.readouterr().out
    assert "mine.csv: battles as of LMArena: 400 rows read; nothing left out" in said
    assert "allow for the 50 questions that the comparisons share" in said
    out = votes.parent / "leaderboards" / "mine"
    kinds = {path.suffix for path in out.iterdir() if path.is_file()}
    assert kinds == {".csv", ".md", ".json", ".svg", ".png", ".html"}
    names = {path.name for path in out.iterdir()}
    assert names >= {"votes.csv", "votes-pairs.csv", "votes-win-rate-matrix.csv", "judge.csv"}
    page = (out / "index.html").read_text("utf-8")
    assert "x is preferred to an average model " in re.sub(r"</?bdi[^>]*>", "", page)
    assert "N = None" not in page
    assert "There is nothing to read on this page" in page
    assert "--seeds" not in page
    assert "Prompt: " not in page
    assert "ChatSEED" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert main(["rank", "mine.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in found["rows"]] == ["x", "y", "z"]
    elos = [row["elo"] for row in found["rows"]]
    assert elos == sorted(elos, reverse=True)
    assert found["signature"].startswith("botchat:")
    assert found["files"][0].startswith("mine.csv: battles")


def test_one_judge_of_several(votes, capsys):
    """Only its votes count; a judge that is not there is refused."""
    assert main(["rank", "mine.csv", "--judge", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["judge"]["name"], sum(row["readable"] for row in found["rows"])) == ("1", 2 * 133)
    assert main(["rank", "mine.csv", "--judge", "7"]) == 1
    assert "no votes of the judge '7'; available: 0, 1, 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "bad.csv: no votes (columns: a, b)"),
        (
            "model_a,model_b,winner\nx,y,tie\nx,y,who\n",
            "bad.csv row 3: the winner 'who' is neither",
        ),
        ("model_a,model_b,winner\nx,x,tie\n", "1 of a model against itself: nothing is left"),
    ],
)
def test_what_cannot_be_read_leaves_nothing_behind(tmp_path, monkeypatch, capsys, text, message):
    """One line on stderr, exit code 1, no folder; also beside a good file."""
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text(text)
    Path("good.csv").write_text("model_a,model_b,winner\nx,y,tie\n")
    for files in (["bad.csv"], ["good.csv", "bad.csv"]):
        assert main(["rank", *files]) == 1
        error = capsys.readouterr().err.strip()
        assert message in error
        assert "\n" not in error
    assert not Path("leaderboards").exists()
    assert main(["rank", "none.csv"]) == 1
    assert "no file none.csv; name a csv, tsv, json" in capsys.readouterr().err


def test_what_fails_late_leaves_nothing_behind(votes, monkeypatch):
    """Everything is made before the first file is written."""

    def fails(*_, **__):
        raise RuntimeError("the page fails")

    monkeypatch.setattr("botchat.report.render", fails)
    with pytest.raises(RuntimeError):
        main(["rank", "mine.csv"])
    assert not (votes.parent / "leaderboards").exists()


def test_tables_of_rates(tmp_path, monkeypatch, capsys):
    """A published table and our own pairs; not together with votes."""
    monkeypatch.chdir(tmp_path)
    rates = "model_a,model_b,win_rate,win_or_tie_rate\na,b,60,70\na,c,70,80\nb,c,50,60\n"
    Path("rates.csv").write_text(rates)
    assert main(["rank", "rates.csv", "--per-pair", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in found["rows"]] == ["a", "b", "c"]
    assert "pairwise win rates: 3 models, 3 pairs read" in found["files"][0]
    pairs = "leaderboards/rates/votes-pairs.csv"
    assert main(["rank", pairs, "--per-pair", "100", "--out", "again", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [row["bt"] for row in again["rows"]] == [row["bt"] for row in found["rows"]]
    Path("votes.csv").write_text("model_a,model_b,winner\nx,y,tie\n")
    assert main(["rank", "votes.csv", "rates.csv"]) == 1
    assert "has rates, not votes" in capsys.readouterr().err


def test_names_are_text(tmp_path, monkeypatch, capsys):
    """No name is a formula, a tag or a folder; a set of the same name keeps its board."""
    monkeypatch.chdir(tmp_path)
    assert main(["seeds", "list"]) == 0
    name = "=1+1<script>alert(1)</script>"
    rows = [f'"{name}",../y,model_{w},=j' for w in "aab"]
    Path("sample.csv").write_text("model_a,model_b,winner,judge\n" + "\n".join(rows) + "\n")
    assert main(["rank", "sample.csv"]) == 0
    (out,) = (tmp_path / "leaderboards").iterdir()
    assert out.name == "sample-votes"
    for path in out.glob("*.csv"):
        assert not re.search(r'(^|[,"])=', path.read_text(), re.MULTILINE), path.name
    assert "<script>alert" not in (out / "index.html").read_text()


def test_the_crowd_in_one_command(tmp_path, monkeypatch, capsys):
    """59 models by 124 workers, in the order that other people's code has."""
    if not (SHARED / "llmfao.csv").exists():
        pytest.skip(f"{SHARED} is not on this machine")
    monkeypatch.chdir(tmp_path)
    text = (SHARED / "llmfao.csv").read_text("utf-8")
    Path("llmfao.csv").write_text(text.replace("left,right", "model_a,model_b", 1))
    assert main(["rank", "llmfao.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    with (SHARED / "llmfao-golden.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["algorithm"] == "bradley_terry"]
    rows.sort(key=lambda row: -float(row["score"]))
    assert [row["model"] for row in found["rows"]] == [row["item"] for row in rows]
    assert (tmp_path / "leaderboards" / "llmfao" / "index.html").exists()


def test_the_walk_of_the_docs(tmp_path, monkeypatch, capsys):
    """The file and the commands of docs/votes.md, as printed."""
    monkeypatch.chdir(tmp_path)
    assert walk(DOCS.read_text("utf-8"), capsys) == 3
    assert (tmp_path / "leaderboards" / "votes" / "index.html").exists()
    assert (tmp_path / "kims-board" / "leaderboard.csv").exists()
