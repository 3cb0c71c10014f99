"""Inputs that would take all memory or time, or end in a traceback: one line, and nothing sent."""

import pytest

from botchat.cli.main import main
from botchat.records import Seed, slug
from botchat.workspace.folder import Workspace
from tests.integration.test_runs import commands, workspace
from tests.openai_server import Server, converse
from tests.rows import rows

LONG = "9" * 5000
DEEP = "[" * 200_000 + "]" * 200_000  # Python 3.12 and newer read 5,000


def one_line(arguments, capsys):
    """Run a command that is refused; what it says."""
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    assert code in (1, 2), said
    assert said.out == ""
    line = said.err.splitlines()[-1]
    assert len(line) < 400
    assert "Traceback" not in said.err
    # argparse says before it how the command is used.
    assert code == 2 or said.err.count("\n") == 1
    return line


@pytest.mark.parametrize(("flags", "said"), rows("numbers_that_are_too_large"))
def test_numbers_of_a_run_that_pays(tmp_path, capsys, flags, said):
    """Refused before a call; the settings file's number of utterances too."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        generate = ["generate", "--seeds", "small", "--model", "alpha", "--dir", folder]
        assert said in one_line(generate + [flag.replace("$LONG", LONG) for flag in flags], capsys)
        assert server.n_received == 0


@pytest.mark.parametrize("flag", ["--dir", "--out"])
def test_a_path_that_no_file_can_have(tmp_path, capsys, flag):
    """NUL in it."""
    assert "NUL" in one_line(["leaderboard", "--seeds", "sample", flag, f"{tmp_path}/a\0b"], capsys)


@pytest.mark.parametrize(("name", "text"), rows("seeds_that_are_deep_long_or_broken"))
def test_seeds_that_are_deep_long_or_broken(tmp_path, capsys, name, text):
    """One short line with the file."""
    path = tmp_path / "source" / name
    path.parent.mkdir()
    path.write_text(text.replace("$LONG", LONG).replace("$DEEP", DEEP) + "\n")
    source = path.parent if name == "test_1.txt" else path
    line = one_line(["import", source, "--seeds", "x", "--dir", tmp_path], capsys)
    assert name in line
    assert not (tmp_path / "seeds").exists()


@pytest.mark.parametrize("stage", ["generations", "judgments"])
@pytest.mark.parametrize("broken", [f'"zz":{DEEP}', f'"n_seed":{LONG},"shown":{LONG}'])
def test_stage_files_that_are_deep_or_long(tmp_path, capsys, stage, broken):
    """The line is named, by every command that reads it."""
    bots = ["--model", "bot:parrot", "--model", "bot:verbose", "--limit", "3", "--turns", "4"]
    judge = ["judge", "arena", "--seeds", "sample", "--judge", "rules", "--turns", "4"]
    into = ["--dir", str(tmp_path)]
    assert main(["generate", "--seeds", "sample", *bots, *into]) == 0
    assert main([*judge, *into]) == 0
    capsys.readouterr()
    path = next((tmp_path / stage).rglob("*.jsonl"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], f"{lines[1][:-1]},{broken}}}", *lines[2:]]) + "\n")
    for command in (judge, ["leaderboard", "--seeds", "sample"]):
        assert f"{path.name}:2: " in one_line([*command, *into], capsys)


@pytest.mark.parametrize("text", [f"language = {DEEP}", f"{DEEP} = 1", "language = 1\n", "\xff"])
def test_facts_of_a_set_that_are_deep_or_broken(tmp_path, capsys, text):
    """The file is named."""
    Workspace(tmp_path).write_seeds("x", [Seed("1", ("a", "b"))])
    (tmp_path / "seeds" / "x.toml").write_text(text, "latin-1")
    line = one_line(
        ["generate", "--seeds", "x", "--model", "bot:parrot", "--dir", tmp_path], capsys
    )
    assert "x.toml: " in line


def test_an_endless_file_is_not_read_to_its_end(tmp_path, capsys, monkeypatch):
    """Votes and rates may come through a pipe; nobody reads it for ever."""
    monkeypatch.setattr("botchat.workspace.jsonl.MAX_BYTES", 1000)
    for command in (["agree", "/dev/zero"], ["rank", "/dev/zero"]):
        assert "1,000 bytes" in one_line([*command, "--dir", tmp_path], capsys)


@pytest.mark.parametrize(
    ("n", "in_the_way"), rows("a_stage_that_cannot_be_written_is_found_before_a_call")
)
def test_a_stage_that_cannot_be_written_is_found_before_a_call(tmp_path, capsys, n, in_the_way):
    """Whoever may write anywhere cannot write into a file, or to a folder."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        stages = list(commands())
        if n:
            assert main([*stages[0], "--dir", str(folder)]) == 0
            capsys.readouterr()
        before = server.n_received
        name = "gamma" if n == 0 else "umpire"
        place = folder / in_the_way.replace(f"{name}-*", slug(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir() if place.suffix else place.write_text("in the way")
        assert "cannot" in one_line([*stages[n], "--dir", folder], capsys)
        assert server.n_received == before
