"""`judge --bridge-from` and `agree --bridge`: a new judge asked about a part, over real HTTP."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.records import HUMAN, Judgment, Seed
from botchat.workspace import files
from botchat.workspace.folder import judgment_order
from tests.commands import refused, said
from tests.openai_server import Server, text

N_SEEDS = 24
BOTS = ("bot:eliza", "bot:parrot")
TOML = "".join(
    f'[models.{name}]\nmodel = "{name}"\nbase_url = "http://server"\n' for name in ("old", "new")
)


def judges(call):
    """Both pass people, and on half of the seeds the old one eliza, the new one the parrot."""
    prompt = call.messages[-1]["content"]
    if "Conversation 2:" in prompt:
        return text("Choice: Both; Reason: who knows")
    (number,) = set(re.findall(r"of talk (\d+)", prompt))
    parrot = prompt.count("line 1 of") > 1
    passes = "line 5 of" in prompt or (int(number) % 2 and parrot == (call.model == "new"))
    return text("Choice: No\nReason: x" if passes else "Choice: Yes\nIndex: 3\nReason: y")


def workspace(folder: Path, server: Server) -> Path:
    """24 seeds, dialogues of two bots, everything judged by the old judge in UniEval."""
    folder.mkdir()
    seeds = [
        Seed(f"s{n}", tuple(f"That is line {i} of talk {n}." for i in range(6)))
        for n in range(N_SEEDS)
    ]
    files.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    (folder / "botchat.toml").write_text(TOML.replace("http://server", server.url))
    bots = [part for bot in BOTS for part in ("--model", bot)]
    place = ["--dir", str(folder)]
    assert main(["generate", "--seeds", "small", "--turns", "6", *bots, *place]) == 0
    assert main([*UNIEVAL, "--judge", "old", *place]) == 0
    return folder


UNIEVAL = ["judge", "unieval", "--seeds", "small"]
DRAWN = [*UNIEVAL, "--judge", "new", "--bridge-from", "old", "--budget"]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Two thirds of the cases by the new judge."""
    with Server(judges) as server:
        folder = workspace(tmp_path_factory.mktemp("bridge") / "w", server)
        assert main([*DRAWN, "63", "--dir", str(folder)]) == 0
        yield folder


def of_new(folder: Path) -> list[Judgment]:
    """What the new judge said."""
    (path,) = (folder / "judgments" / "small" / "unieval").glob("new*")
    return list(files.read(path, Judgment))


def test_the_new_judge_is_asked_so_many_cases_of_each_contestant(tmp_path, capsys):
    """As planned; the same again, and a larger budget adds to them."""
    with Server(judges) as server:
        folder = workspace(tmp_path / "w", server)
        sent = server.n_received
        planned = said(capsys, *DRAWN, 31, "--plan", "--dir", folder)["rows"]
        assert {row["calls"] for row in planned} == {31}
        assert main([*DRAWN, "31", "--dir", str(folder)]) == 0
        assert server.n_received - sent == 31
        first = of_new(folder)
        dealt = Counter(one.contestants[0] for one in first)
        assert sorted(dealt.values()) == [10, 10, 11]
        assert set(dealt) == {*BOTS, HUMAN}
        assert main([*DRAWN, "31", "--dir", str(folder)]) == 0
        assert of_new(folder) == first
        assert server.n_received - sent == 31
        assert main([*DRAWN, "40", "--dir", str(folder)]) == 0
        assert server.n_received - sent == 40
        assert {(one.seed_id, one.contestants) for one in first} < {
            (one.seed_id, one.contestants) for one in of_new(folder)
        }
        assert main([*DRAWN, "1000", "--dir", str(folder)]) == 0
        assert server.n_received - sent == 3 * N_SEEDS


def test_the_board_by_the_new_judge(judged, tmp_path, capsys):
    """Who changes place, the mapping, and files as of any other comparison."""
    place = ["agree", "bridge", "old", "new", "--seeds", "small", "--dir", judged]
    found = said(capsys, *place)
    rows = {row["model"]: row for row in found["rows"]}
    assert {row["n_old"] for row in rows.values()} == {N_SEEDS}
    assert {row["n_both"] for row in rows.values()} == {21}
    assert (rows["bot:eliza"]["old"], rows["bot:parrot"]["old"]) == (0.5, 0.0)
    assert rows["bot:eliza"]["new_low"] < 0.05
    assert rows["bot:parrot"]["new_low"] < 0.5 < rows["bot:parrot"]["new_high"]
    assert rows[HUMAN]["new"] == 1.0
    assert rows["bot:eliza"]["change"].startswith("2 → 3")
    assert [row["old"] for row in found["mapping"]] == [0.0, 1.0]
    assert found["signature"].startswith(
        "botchat:0.1.0|bridge|set:small|protocol:unieval|old:old|new:new|data:"
    )
    out = judged / "leaderboards" / "small" / "bridge-unieval"
    assert {path.name for path in out.iterdir()} == {
        "bridge.csv",
        "bridge-mapping.csv",
        "bridge.meta.json",
        "bridge-mapping.meta.json",
        "bridge.md",
        "bridge.json",
    }
    assert json.loads((out / "bridge.json").read_text()) == found
    beside = json.loads((out / "bridge.meta.json").read_text())
    assert beside["signatures"] == [found["signature"]]
    lines = (out / "bridge.csv").read_text().splitlines()
    assert {row["model"] for row in csv.DictReader(lines)} == set(rows)
    capsys.readouterr()
    assert main([*map(str, place), "--protocol", "unieval", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "From old to new: unieval on small" in printed
    assert "If new replaces old" in printed
    assert (tmp_path / "bridge.md").exists()


def test_the_page_has_the_bridge_and_a_part_that_was_not_drawn_is_told(tmp_path, capsys):
    """What the first seeds say is no draw; on the page there is then none."""
    with Server(judges) as server:
        folder = workspace(tmp_path / "w", server)
        place = ["--seeds", "small", "--dir", str(folder)]
        assert main([*DRAWN, "63", "--dir", str(folder)]) == 0
        assert main(["leaderboard", "page", *place]) == 0
        page = (folder / "leaderboards" / "small" / "index.html").read_text("utf-8")
        assert "From old to new: unieval on small" in page
        assert "From new to old" not in page
        assert "If new replaces old" in page
        (path,) = (folder / "judgments" / "small" / "unieval").glob("new*")
        made = [one for one in files.read(path, Judgment) if one.seed_id < "s2"]
        files.finish(path, made, judgment_order)
        assert main(["leaderboard", "page", *place]) == 0
        page = (folder / "leaderboards" / "small" / "index.html").read_text("utf-8")
        assert "From old to new" not in page
        notes = said(capsys, "agree", "bridge", "old", "new", *place)["notes"]
    assert "The cases of new are not those that --bridge-from old draws with --seed 0" in notes[-1]


def test_pairs_are_bridged_by_their_results(tmp_path, capsys):
    """The Arena: as many of each pair, a tie is a half."""
    with Server(judges) as server:
        folder = workspace(tmp_path / "w", server)
        arena = ["judge", "arena", "--seeds", "small", "--turns", "6", "--dir", str(folder)]
        assert main([*arena, "--judge", "old"]) == 0
        budget = ["--bridge-from", "old", "--budget", "30"]
        assert main([*arena, "--judge", "new", *budget]) == 0
        place = ["agree", "bridge", "old", "new", "--seeds", "small", "--dir", folder]
        found = said(capsys, *place)
    assert found["protocol"] == "arena-n6"
    assert [row["new"] for row in found["rows"]] == [0.5, 0.5]
    assert {row["new_rank"] for row in found["rows"]} == {1}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([*DRAWN, "0"], "--bridge-from needs --budget K, at least 1; it is 0"),
        (DRAWN[:-1], "--bridge-from needs --budget K, at least 1; it is None"),
        (
            [*UNIEVAL, "--judge", "old", "--bridge-from", "old", "--budget", "5"],
            "--bridge-from old: it is the judge itself",
        ),
        (
            [*UNIEVAL, "--judge", "new", "--bridge-from", "nobody", "--budget", "5"],
            "'nobody' has not judged small; judges who have: new, old",
        ),
        (
            ["judge", "gteval", *DRAWN[2:], "5"],
            "old has no readable verdict on what gteval asks of small: judge with it first",
        ),
        (
            ["agree", "bridge", "old", "old", "--seeds", "small"],
            "old old: a bridge is between two judges",
        ),
        (
            ["agree", "bridge", "old", "nobody", "--seeds", "small"],
            "'nobody' has not judged small; judges who have: new, old",
        ),
        (
            ["agree", "bridge", "old", "new", "--seeds", "small", "--protocol", "gteval"],
            "--protocol gteval: what both old and new have judged on small: unieval",
        ),
    ],
)
def test_a_mistake_is_one_line(judged, capsys, command, message):
    """What is wrong and what to do; nothing is written."""
    before = sorted(judged.rglob("*"))
    assert message in refused(capsys, [*command, "--dir", str(judged)])
    assert sorted(judged.rglob("*")) == before


def test_nothing_in_common_is_one_line_with_what_to_do(tmp_path, capsys):
    """Of each contestant a case is needed."""
    with Server(judges) as server:
        folder = workspace(tmp_path / "w", server)
        assert main([*UNIEVAL, "--judge", "new", "--model", "human", "--dir", str(folder)]) == 0
    bridge = ["agree", "bridge", "old", "new", "--seeds", "small", "--dir", str(folder)]
    assert main(bridge) == 1
    error = capsys.readouterr().err
    assert "new has judged no case of bot:eliza, bot:parrot that old has; draw some with: " in error
    assert "botchat judge unieval --seeds small --judge new --bridge-from old --budget" in error


def test_a_judge_whose_replies_are_all_unreadable_bridges_nothing(tmp_path, capsys):
    """No contestant has a case: said in a line, and the board of the other judge is made."""
    with Server(lambda call: text("Hm.") if call.model == "old" else judges(call)) as server:
        folder = workspace(tmp_path / "w", server)
        some = ["--limit", "6", "--dir", str(folder)]
        assert main([*UNIEVAL, "--judge", "new", *some]) == 0
    place = ["--seeds", "small", "--dir", str(folder)]
    assert "old has no readable verdict in unieval on small, so nothing can be" in refused(
        capsys, ["agree", "bridge", "old", "new", *place]
    )
    assert main(["leaderboard", "page", *place]) == 0  # where all judges stand beside each other
