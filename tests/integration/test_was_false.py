"""What a page, a figure or a line once said and was false: none of it comes back."""

import re
from pathlib import Path

import pytest

import botchat
from botchat.interfaces import Case
from botchat.pipeline.load import load
from botchat.records import HUMAN, VERSION
from botchat.report.figures import board_charts
from botchat.workspace.folder import Workspace
from tests.commands import refused
from tests.conftest import ROOT


async def grader(case: Case) -> str:
    """Find nothing, and give every dialogue a 7."""
    return "Choice: No\nIndex: None\nReason: natural.\nPoliteness: 7"


def test_an_own_criterion_leaves_the_counts_as_they_were(tmp_path: Path) -> None:
    """Dialogues, coverage and cases are those that were made, not all of the set."""
    (tmp_path / "polite.txt").write_text("How polite?\n{{conversation}}\nPoliteness: 1 to 10")
    own = (
        '[protocols.{}]\nkind = "score"\nprompt = "polite.txt"\n'
        'scores = ["Politeness"]\nscale = [1, 10]\ntitle = "Rank"\n'
    )
    settings = "[run]\nlimit = 6\n" + own.format("polite") + own.format("kind")
    (tmp_path / "botchat.toml").write_text(settings)
    shared = {"workspace": Workspace(tmp_path), "seeds": "sample"}
    botchat.generate(model=["bot:parrot", "bot:verbose"], **shared)
    pages, coverages = [], []
    for protocol in ("unieval", "polite", "kind"):
        judged = botchat.judge(protocol, judge=grader, **shared)
        assert [row["cases"] for row in judged.rows] == [18]
        board = botchat.leaderboard(judge=grader.__name__, **shared)
        coverages.append(board.frame["coverage"].dropna().tolist())
        pages.append(Path(board.data["page"]).read_text("utf-8"))
    assert coverages[0] == coverages[1] == coverages[2] == [1.0] * len(coverages[0])
    # "95 % CI" is printed once.
    (printed,) = (piece for piece in board.pieces if isinstance(piece, list))
    assert [*printed[0]] == [
        "rank",
        "model",
        "passes 16 (95 % CI)",
        "same length",
        "Rank (1–10): polite",
        "Rank (1–10): kind",
        "n",
    ]
    for page in pages:
        (done,) = re.findall(r'<p class="done">(.*?)</p>', page)
        assert done.startswith("6 invented dialogues of sample, 2 bots, judge grader")


def test_titles_name_what_is_drawn_and_claim_nothing(demo_folder: Path) -> None:
    """No count, no share and no contestant stands in a figure's title."""
    board = load(Workspace(demo_folder), "sample").board("rules")
    titles = [chart.title for chart in board_charts(board)]
    assert len(titles) >= 8
    for title in titles:
        assert not re.search(r"\d", re.sub(r"95 %|N = \d+", "", title)), title
        assert not any(name in title for name in board.frame["model"] if name != HUMAN)


def test_humans_have_no_place_among_models(demo_folder: Path) -> None:
    """No rank, no rating, and no row of the matrix of wins."""
    board = load(Workspace(demo_folder), "sample").board("rules")
    (row,) = (row for row in board.main.records if row["model"] == HUMAN)
    assert {row[key] for key in ("rank", "bt_n16", "elo_n16", "gteval_win_or_tie")} == {None}
    for arena in board.arenas:
        assert HUMAN not in arena.results.index.levels[0]


def test_there_is_one_version(demo_folder: Path) -> None:
    """Of the package, the page and the citation; signatures on a page name none."""
    page = (demo_folder / "leaderboards" / "sample" / "index.html").read_text("utf-8")
    shown = re.sub(r"<(script|style|metadata).*?</\1>", "", page, flags=re.DOTALL)
    assert set(re.findall(r"\b\d+\.\d+\.\d+\b", shown)) == {VERSION}
    assert 'path = "botchat/records.py"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_a_plan_counts_whole_calls_and_quiet_is_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls are whole numbers; ``--quiet`` leaves only the result."""
    where = ["--seeds", "sample", "--limit", "2", "--dir", str(tmp_path)]
    assert botchat.cli.main.main(["generate", "--model", "bot:parrot", "--plan", *where]) == 0
    plan = capsys.readouterr().out
    assert re.findall(r"^ *total +(\S+)", plan, re.MULTILINE) == ["28"]
    assert botchat.cli.main.main(["generate", "--model", "bot:parrot", "--quiet", *where]) == 0
    output = capsys.readouterr()
    assert "Plan:" not in output.out
    assert output.err == ""


def test_what_is_no_benchmark_is_refused_in_a_short_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text is not cut into items, a folder of many files is not listed; nothing is left."""
    monkeypatch.chdir(tmp_path)
    Path("any.txt").write_text("How polite is this?\n\n{{conversation}}\n\nSay a number.")
    Path("many").mkdir()
    for i in range(300):
        Path("many", f"a-file-with-a-long-name-{i}.json").touch()
    before = sorted(tmp_path.rglob("*"))
    for words in (["any.txt"], ["faireval", "--data", "many"]):
        assert len(refused(capsys, ["bench", *words, "--judge", "rules"])) < 400
    assert [path for path in sorted(tmp_path.rglob("*")) if ".botchat" not in path.parts] == before
