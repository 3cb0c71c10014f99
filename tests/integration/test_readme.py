"""The README's commands run, its numbers are the demo's, its links lead somewhere."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.models.bots import BASELINES
from botchat.pipeline import generate as generating
from botchat.pipeline import judge as judging
from botchat.protocols.catalogue import BUILT_IN
from botchat.workspace.panels import PRESETS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
RANK, SETTINGS = ((ROOT / "docs" / name).read_text("utf-8") for name in ("rank.md", "settings.md"))

EXAMPLES = {
    "debate_vs_single.py": "leaderboards/sample/agreement-gteval/agreement.md",
    "figures.py": "success-curve.png",
    "own_judge.py": "own-judge/leaderboards/sample/index.html",
    "rank.py": "leaderboards/votes/index.html",
}
"""An example -> a file that it writes."""


def between(begin, end, page=README):
    """A page's text between two comments."""
    return page.split(begin, 1)[1].split("-->", 1)[1].split(end, 1)[0]


def commands(page, name):
    """The commands of a page between the marks of this name."""
    block = between(f"<!-- {name}:begin", f"<!-- {name}:end", page)
    return [line for line in block.splitlines() if line.startswith("botchat ")]


def test_the_table_at_the_top_is_what_the_demo_prints(demo_folder, capsys):
    """Not a number in it is typed by hand."""
    assert main(["leaderboard", "--dir", str(demo_folder)]) == 0
    printed = capsys.readouterr().out
    table = between("<!-- demo:begin", "<!-- demo:end").strip().removeprefix("```\n")
    assert printed.startswith(table.removesuffix("```"))


def test_the_walk_runs_as_written(tmp_path, monkeypatch, capsys):
    """Every command of the walk, then of docs/rank.md's, exits 0 in one folder, in order."""
    monkeypatch.chdir(tmp_path)
    walk = commands(README, "walk") + commands(RANK, "walk")
    assert len(walk) >= 11
    for command in walk:
        assert main(shlex.split(command)[1:]) == 0, command
        assert capsys.readouterr().out, command


def test_from_a_key_to_a_priced_plan(tmp_path, monkeypatch, capsys):
    """The first commands that rank real models as written; a plan needs no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generating, "WALKED", 4)  # what is priced is told by test_whole_run
    monkeypatch.setattr(judging, "WALKED", 10)
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    given = [shlex.split(line, comments=True) for line in commands(README, "rank")]
    assert given[2] == ["botchat", "import", "mutual"]
    assert given[3:] == [["botchat", "run"], ["botchat", "leaderboard", "--open"]]
    for command in given[:2]:
        assert main(command[1:]) == 0, command
    assert re.search(r"2 models, 14 u.+\n(.+\n)+ +total +[\d,]+ +\d\.\d+", capsys.readouterr().out)
    Path("talks.jsonl").write_bytes((ROOT / "seeds" / "sample.jsonl").read_bytes())
    published = ROOT.parent / "shared" / "data" / "botchat" / "MuTual_test.xlsx"
    sources = {"mutual-test": published, "talks": Path("talks.jsonl")}
    name = next(name for name, path in sources.items() if path.exists())
    assert main(["import", str(sources[name])]) == 0
    assert main(["run", "--plan"]) == 0
    assert name in capsys.readouterr().out


def test_the_published_heatmap_is_ranked_again(tmp_path, capsys, monkeypatch):
    """The command on the published rates runs in the checkout and puts GPT-4 first."""
    monkeypatch.chdir(ROOT)
    (command,) = re.findall(r"^botchat rank leaderboards.*$", RANK, re.MULTILINE)
    assert main([*shlex.split(command)[1:], "--out", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [rows[0]["model"], len(rows)] == ["GPT-4", 14]


def test_the_library_example_runs(tmp_path, monkeypatch):
    """The Python block runs as it stands."""
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["board"].rows  # type: ignore[attr-defined]


def test_what_can_be_named_is_listed():
    """Protocols in the README's table, bots and panels in docs/settings.md."""

    def rows(page):
        return {line.split("|")[1].strip() for line in page.lower().splitlines() if "|" in line}

    assert {f"`bot:{name}`" for name in BASELINES} <= rows(SETTINGS)
    assert {protocol.title.lower() for protocol in BUILT_IN} <= rows(README)
    listed = SETTINGS.split("**Panel presets**", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"`([a-z][a-z0-9-]+)`", listed)) == set(PRESETS)


def test_the_readme_is_read_in_one_go():
    """At most 110 lines, of which none is wider than a screen but in tables."""
    lines = README.splitlines()
    assert len(lines) <= 110
    assert [line for line in lines if len(line) > 115 and not line.startswith("|")] == []


def main_of(path):
    """What runs a short example that the README names; it ran once and wrote its file."""
    assert len(path.read_text("utf-8").splitlines()) <= 40
    assert f"`{path.name}`" in README
    run = runpy.run_path(str(path))["main"]
    run()
    assert Path(EXAMPLES[path.name]).exists()
    return run


OWN_JUDGE = ROOT / "examples" / "own_judge.py"


@pytest.mark.parametrize(
    "path", sorted({*(ROOT / "examples").glob("*.py")} - {OWN_JUDGE}), ids=lambda p: p.name
)
def test_every_example_is_short_and_runs_in_an_empty_folder(path, tmp_path, monkeypatch):
    """Offline, without a key."""
    monkeypatch.chdir(tmp_path)
    main_of(path)


def test_the_example_of_a_judge_in_python_runs(tmp_path, monkeypatch):
    """A function judges; its name is the judge's in files; nothing is judged twice."""
    monkeypatch.chdir(tmp_path)
    run = main_of(OWN_JUDGE)
    (path,) = Path("own-judge/judgments/sample/arena-n8").iterdir()
    lines = path.read_text("utf-8").splitlines()
    assert {json.loads(line)["judge"] for line in lines} == {"longest"}
    assert {json.loads(line)["verdict"] for line in lines} <= {"1", "2", "neither"}
    run()
    assert path.read_text("utf-8").splitlines() == lines
