"""The lines of a terminal: a board at 100, 80 and 40 columns, one bill, what was not written."""

import os
import shutil
import sys

import pytest

import botchat
from botchat.cli import output
from botchat.cli.main import main
from tests.openai_server import Server, converse
from tests.processes import Started

SAMPLE = ["--seeds", "sample", "--quiet"]


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A folder with dialogues of two bots and their verdicts, under two judges."""
    folder = tmp_path_factory.mktemp("board")
    own = {"seeds": "sample", "workspace": folder}
    botchat.generate(model=["bot:parrot", "bot:retrieval"], limit=6, **own)
    for protocol in ("unieval", "arena"):
        botchat.judge(protocol, judge="rules", limit=6, **own)
    return folder


def printed(board, capsys, *words, code=0):
    """The lines of a command on the sample."""
    assert main([*words, *SAMPLE, "--dir", str(board)]) == code
    return capsys.readouterr()


def terminal(monkeypatch, columns):
    """Make stdout a terminal that is so wide."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(output.shutil, "get_terminal_size", lambda: os.terminal_size((columns, 1)))


@pytest.mark.parametrize(("columns", "n_columns"), [(100, 6), (60, 4)])
def test_columns_go_where_they_have_no_room(board, capsys, monkeypatch, columns, n_columns):
    """Same length and n; a line says the first. No line is wider than the terminal."""
    terminal(monkeypatch, columns)
    lines = printed(board, capsys, "leaderboard").out.splitlines()
    assert max(len(line) for line in lines if "index.html" not in line) <= columns
    assert len([head for head in lines[0].split("  ") if head]) == n_columns
    told = any(line.startswith("Cut to the human length: bot:") for line in lines)
    assert told == ("same length" not in lines[0])


def test_no_number_is_broken_in_a_narrow_terminal(board, capsys, monkeypatch):
    """Each value has a line of its own then."""
    terminal(monkeypatch, 30)
    wide = botchat.leaderboard(seeds="sample", workspace=board)
    lines = printed(board, capsys, "leaderboard").out.splitlines()
    assert {f"{'passes 16':<16}  {row['passes 16']}" for row in wide.pieces[0]} <= {*lines}


def test_a_kept_board_says_so(board, capsys):
    """Where it is, and that nothing was sent; no bill, no advice of matplotlib on a cache."""
    out = printed(board, capsys, "leaderboard", "--keep", "main").out
    assert "\nKept as sample/main. Stored: nothing was sent.\n" in out
    assert "USD" not in out
    drawing = Started(["figure", "lengths", *SAMPLE, "--dir", board], MPLCONFIGDIR="/dev/null/no")
    assert "atplotlib" not in drawing.communicate()[1]
    assert drawing.returncode == 0


def test_a_board_is_shown_where_nothing_can_be_written(board, capsys, tmp_path):
    """Its table, and one line that says what could not be made."""
    place = tmp_path / "read"
    shutil.copytree(board, place)
    shutil.rmtree(place / "leaderboards")
    (place / "leaderboards").write_text("a file")
    out = printed(place, capsys, "leaderboard").out
    assert "\nFiles are not written: cannot " in out
    assert "\nPage: " not in out
    (tmp_path / "votes.csv").write_text("item,first,second,judge,verdict\n1,a,b,j,1\n")
    assert main(["rank", str(tmp_path / "votes.csv"), "--dir", str(place)]) == 0
    assert "\nFiles are not written: cannot " in capsys.readouterr().out
    said = printed(place, capsys, "agree", "--protocol", "unieval").out
    assert said.startswith("Judges against")
    assert "\nFiles are not written: cannot " in said


def test_keys_are_looked_at_before_anything_is_made(tmp_path, capsys, monkeypatch):
    """One line names the variable; no dialogue is begun, none of a bot either."""
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    (tmp_path / "botchat.toml").write_text(
        '[models.far]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'api_key_env = "NO_SUCH_KEY"\nprice_input = 0\nprice_output = 0\n'
    )
    asked = ["run", "--model", "bot:parrot", "--model", "far", "--judge", "rules", "--limit", "2"]
    assert printed(tmp_path, capsys, *asked, code=1).err.count("NO_SUCH_KEY") == 1
    assert not list(tmp_path.glob("generations/*/*"))


@pytest.mark.parametrize(
    ("name", "known"), [("cha", "chateval-same-role@m"), ("chateval-same-role", None), ("m", "m")]
)
def test_a_unique_beginning_names_a_judge(tmp_path, capsys, name, known):
    """Where two begin so the whole name is needed; a whole name is never a beginning."""
    with Server(converse) as server:
        entry = f'[models.m]\nmodel = "m"\nbase_url = "{server.url}"\n'
        (tmp_path / "botchat.toml").write_text(entry)
        printed(tmp_path, capsys, "generate", "--model", "bot:parrot", "--limit", "1")
        for panel in ("chateval-same-role", "chateval-3-roles")[: 1 + (known is None)]:
            printed(tmp_path, capsys, "judge", "unieval", "--judge", panel, "--judge-model", "m")
        printed(tmp_path, capsys, "judge", "unieval", "--judge", "m")
    board = botchat.leaderboard(seeds="sample", judge=name, workspace=tmp_path)
    assert board.data["judge"]["name"] == (known or f"{name}@m")


def test_a_function_of_a_module_judges(tmp_path, capsys, monkeypatch):
    """PACKAGE:FUNCTION of the current folder; what names a judge already comes first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "own_judges.py").write_text("def strict(case): return 'Choice: No'")
    (tmp_path / "exits.py").write_text("raise SystemExit")
    printed(tmp_path, capsys, "generate", "--model", "bot:parrot", "--limit", "1")
    printed(tmp_path, capsys, "judge", "unieval", "--judge", "own_judges:strict")
    board = printed(tmp_path, capsys, "leaderboard", "--judge", "own_judges:strict").out
    assert "Judge strict: " in board
    for name in ("own_judges:lax", "no_module:f", "exits:f"):
        error = printed(tmp_path, capsys, "judge", "unieval", "--judge", name, code=1).err
        assert name in error and "PACKAGE:FUNCTION" in error  # noqa: PT018
