"""`botchat rank` from the command line: files in, a board, figures and a page out."""

import re
import shlex
from html import escape
from pathlib import Path

import pandas as pd
import pytest

import botchat
from botchat.cli.main import main
from tests.commands import refused, said, walk
from tests.rows import rows

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_votes_in_board_out(tmp_path, monkeypatch, capsys):
    """One command: the line on the file, the board, every file of it; best first in JSON."""
    monkeypatch.chdir(tmp_path)
    lines = ["model_a,model_b,winner,question_id,judge"]
    for n in range(400):
        a, b = ("xy", "yx", "xz", "zx", "yz", "zy")[n % 6]
        better = "model_a" if (a < b) != (n % 7 == 0) else "model_b"
        lines.append(f"{a},{b},{better if n % 5 else 'tie'},{n // 6},{n % 3}")
    Path("mine.csv").write_text("\n".join(lines))
    assert main(["rank", "mine.csv"]) == 0
    printed = capsys.readouterr().out
    assert "mine.csv: battles as of LMArena: 400 rows read; nothing left out" in printed
    assert main(["agree", "mine.csv"]) == 0
    assert "Judge  Against" in capsys.readouterr().out  # of whom no truth is known
    assert "vs next" in printed.partition("\n")[0]
    assert "not tested" not in printed  # no judge of dialogues
    out = tmp_path / "leaderboards" / "mine"
    kinds = {path.suffix for path in out.iterdir() if path.is_file()}
    assert kinds == {".csv", ".md", ".json", ".svg", ".html"}
    names = {path.name for path in out.iterdir()}
    assert names >= {"votes.csv", "votes-pairs.csv", "judge.csv"}
    page = re.sub(r"</?bdi[^>]*>", "", (out / "index.html").read_text("utf-8"))
    assert "x leads" in page
    assert 'data-to="read"' not in page
    for word in ("N = None", "--seeds", "Prompt: "):
        assert word not in page
    assert "ChatSEED" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    found = said(capsys, "rank", "mine.csv")
    assert [row["model"] for row in found["rows"]] == ["x", "y", "z"]
    elos = [row["elo"] for row in found["rows"]]
    assert elos == sorted(elos, reverse=True)
    assert found["signature"].startswith("botchat:")
    assert found["files"][0].startswith("mine.csv: battles")
    # Only its votes count, and one that is not there is refused.
    found = said(capsys, "rank", "mine.csv", "--judge", "1")
    assert (found["judge"]["name"], sum(row["n"] for row in found["rows"])) == ("1", 2 * 133)
    unknown = refused(capsys, ["rank", "mine.csv", "--judge", "7"])
    assert "no votes of the judge '7'; there are: 0, 1, 2" in unknown


@pytest.mark.parametrize(("content", "message"), rows("what_cannot_be_read_leaves_nothing_behind"))
def test_what_cannot_be_read_leaves_nothing_behind(tmp_path, monkeypatch, capsys, content, message):
    """One line on stderr, exit code 1, no folder; also beside a good file."""
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text(content)
    Path("good.csv").write_text("model_a,model_b,winner\nx,y,tie\n")
    for files in (["bad.csv"], ["good.csv", "bad.csv"]):
        assert message in refused(capsys, ["rank", *files])
    assert "no file none.csv; name a csv, tsv, json" in refused(capsys, ["rank", "none.csv"])
    # Everything is made before the first file is written.
    monkeypatch.setattr("botchat.report.page.files", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["rank", "good.csv"])
    assert not Path("leaderboards").exists()


def test_tables_of_rates(tmp_path, monkeypatch, capsys):
    """A published table and our own pairs, as files and frames; not together with votes."""
    monkeypatch.chdir(tmp_path)
    rates = "model_a,model_b,win_rate,win_or_tie_rate\na,b,60,70\na,c,70,80\nb,c,50,60\n"
    Path("rates.csv").write_text(rates)
    found = said(capsys, "rank", "rates.csv", "--per-pair", 100)
    assert [row["model"] for row in found["rows"]] == ["a", "b", "c"]
    assert "pairwise win rates: 3 models, 3 pairs read" in found["files"][0]
    assert Path("leaderboards/rates/index.html").read_text("utf-8").count(">100</td>") == 6
    pairs, here = Path("leaderboards/rates/votes-pairs.csv"), botchat.Workspace(tmp_path)
    again = botchat.rank(str(pairs), per_pair=100, format=("parquet",), out="again", workspace=here)
    assert again.rows == found["rows"]
    read = pd.read_parquet(f"again/{again.tables[0].name}.parquet")
    pd.testing.assert_frame_equal(read, again.frame, check_dtype=False)
    assert again._repr_html_().startswith(again.tables[0]._repr_html_())  # its notes follow
    assert all(escape(note) in again._repr_html_() for note in again.lines)
    Path("rates.json").write_text(pd.read_csv("rates.csv").to_json(orient="records"))
    assert said(capsys, "rank", "rates.json", "--per-pair", 100)["rows"] == found["rows"]
    Path("votes.csv").write_text("left,right,winner,judge\n" + "x,y,x,a\nx,y,y,b\ny,x,,c\n" * 9)
    assert "18 votes by 2 judges" in said(capsys, "rank", "votes.csv")["notes"][-1]
    assert "has rates, not votes" in refused(capsys, ["rank", "votes.csv", "rates.csv"])


def test_soft_results_weights_and_repeats_are_said_alike(tmp_path, monkeypatch, capsys):
    """In rank and agree; who never met is said, and Elo takes neither softness nor weights."""
    monkeypatch.chdir(tmp_path)
    lines = ["model_a,model_b,winner,prompt,judge,weight"]
    for n in range(40):
        lines += [f"base,x,model_{'ab'[n % 3 > 0]},{n},j,2", f"base,y,{'ab'[n % 4 > 0]},{n},j,1"]
    Path("star.csv").write_text("\n".join([*lines, lines[-1]]))
    again = "1 of 81 votes were given again by the same judge on the same item and order: the last"
    board = said(capsys, "rank", "star.csv")
    assert board["headline"] == "y leads; x is not ruled out (met only through others)."
    assert board["judge"] == {"name": "j", "trust": "not tested"}
    page = Path("leaderboards/star/index.html").read_text("utf-8")
    assert "<dt>By</dt><dd><bdi>j</bdi></dd>" in page
    assert "<dt>Ties</dt><dd>0 %</dd>" in page
    assert not re.search("human dialogues|not tested|0 · 0 · 0", page.partition("<footer")[0])
    assert "elo" not in board["rows"][0]
    main(["rank", "star.csv"])
    printed = " ".join(capsys.readouterr().out.split())
    assert again in printed
    assert "No Elo: it takes wins, ties and losses that each count" in printed
    assert main(["agree", "star.csv"]) == 0
    assert again in " ".join(capsys.readouterr().out.split())
    rows = "\n".join(f"base,x,{1 + n / 39}" for n in range(40))
    Path("soft.csv").write_text(f"generator_1,generator_2,preference\n{rows}")
    board = said(capsys, "rank", "soft.csv")
    assert [row["win"] for row in board["rows"]] == pytest.approx([0.5, 0.5])


def test_names_are_text(tmp_path, monkeypatch, capsys):
    """No name is a formula, a tag or a folder; a set of the same name keeps its board."""
    monkeypatch.chdir(tmp_path)
    assert main(["seeds"]) == 0
    name = "=1+1<script>alert(1)</script>"
    rows = [f'"{name}",../y,model_{w},=j' for w in "aab"]
    Path("sample.csv").write_text("model_a,model_b,winner,judge\n" + "\n".join(rows) + "\n")
    assert main(["rank", "sample.csv"]) == 0
    assert "Too few votes a pair to rank: 3 of 20." in capsys.readouterr().out
    (out,) = (tmp_path / "leaderboards").iterdir()
    assert out.name == "sample-votes"
    for path in out.glob("*.csv"):
        assert not re.search(r'(^|[,"])=', path.read_text(), re.MULTILINE), path.name
    assert "<script>alert" not in (out / "index.html").read_text()


def test_the_walk_of_the_docs(tmp_path, monkeypatch, capsys):
    """The file and the commands of docs/rank.md on votes, as printed."""
    monkeypatch.chdir(tmp_path)
    votes = (DOCS / "rank.md").read_text("utf-8").split("\n## Votes\n")[1]
    assert walk(votes.split("published heatmap")[0], capsys) == 3
    assert (tmp_path / "leaderboards" / "votes" / "index.html").exists()
    assert (tmp_path / "kims-board" / "leaderboard.csv").exists()


# Results as data frames and files of tables.


PAGE = "".join((DOCS / name).read_text("utf-8") for name in ("scripting.md", "python.md"))


def test_the_walks_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command and every line of Python in docs/scripting.md and docs/python.md."""
    monkeypatch.chdir(tmp_path)
    models = [flag for name in ("verbose", "parrot") for flag in ("--model", f"bot:{name}")]
    assert main(["generate", "--seeds", "sample", *models, "--limit", "6"]) == 0
    for protocol in ("unieval", "gteval"):
        assert main(["judge", protocol, "--seeds", "sample", "--judge", "rules"]) == 0
    known: dict[str, object] = {}
    blocks = re.findall(r"^```(bash|python)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for language, text in blocks:
        if language == "python":
            exec(text, known)
        else:
            for line in text.splitlines():
                assert main(shlex.split(line)[1:]) == 0
    assert known["run"].judgments["protocol"].nunique() == 2
    folder = tmp_path / "leaderboards" / "sample"
    csv = pd.read_csv(folder / "leaderboard.csv")
    assert csv["model"].tolist() == known["board"].frame["model"].tolist()
    assert (folder / "gteval.tex").exists()
    assert pd.read_parquet(folder / "gteval.parquet").attrs["signatures"]
