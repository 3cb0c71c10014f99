"""`botchat agree`: judges against people, against what is known, and against each other."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec
import pytest

from botchat import prompts
from botchat.cli.main import main
from botchat.records import Dialogue, Judgment, Seed
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace, stage_order
from tests.commands import refused, said
from tests.openai_server import Server, text

pytestmark = pytest.mark.usefixtures("quick")

HEADER = "item,first,second,judge,verdict\n"
N_SEEDS = 4


def row(found: dict, judge: str) -> dict:
    """The row of one judge."""
    return next(row for row in found["rows"] if row["judge"] == judge)


# ------------------------------------------------------------------------------- CSV files


SMALL = """\
1,a,b,human,1
2,a,b,human,2
3,a,b,human,1
1,a,b,sharp,1
1,b,a,sharp,2
2,a,b,sharp,2
2,b,a,sharp,1
3,a,b,sharp,1
3,b,a,sharp,
1,a,b,lazy,1
1,b,a,lazy,1
2,a,b,lazy,1
2,b,a,lazy,1
3,a,b,lazy,1
3,b,a,lazy,1
"""


@pytest.fixture
def small(tmp_path):
    """Three items, a person, a judge that is right and one that says 1."""
    path = tmp_path / "small.csv"
    path.write_text(HEADER + SMALL)
    return path


def test_a_small_file_by_hand(small, capsys):
    """People's names are found by themselves; every list is there; the lazy judge is 50 : 50."""
    found = said(capsys, "agree", small)
    assert found["truth"] == "people (human…)"
    assert (row(found, "sharp")["accuracy"], row(found, "sharp")["n"]) == (1.0, 5)
    assert (row(found, "lazy")["accuracy"], row(found, "lazy")["kappa"]) == (0.5, 0.0)
    assert row(found, "lazy")["first_preferred"] == 1.0
    (pair,) = found["pairs"]
    assert (pair["only_a_right"], pair["only_b_right"], pair["n"]) == (2, 0, 5)
    assert found["groups"][0]["group"] == "judges"
    ranked = [(r["judge"], r["contestant"]) for r in found["rankings"]]
    assert ranked == [(who, c) for who in ("human", "sharp", "lazy") for c in "ab"]
    # The lazy judge gives everybody half of the points, so both are rated alike.
    ratings = [r["bt"] for r in found["rankings"] if r["judge"] == "lazy"]
    assert ratings == pytest.approx([1000.0, 1000.0])
    assert found["signature"].startswith("botchat:0.1.0|agree|files:small.csv|truth:human|data:")
    assert found["out"] is None


def test_tables_and_figures_are_written_where_asked(small, tmp_path, capsys):
    """One csv a table, one md, one json, the matrix of judges; no cost without calls."""
    out = tmp_path / "out"
    found = said(capsys, "agree", small, "--out", out)
    assert {path.name for path in out.iterdir()} == {
        *(f"{name}.csv" for name in ("judges", "groups", "pairs", "rankings")),
        *(f"{name}.meta.json" for name in ("judges", "groups", "pairs", "rankings")),
        *(f"agreement.{kind}" for kind in ("md", "json")),
        *(f"judges-against-each-other.{kind}" for kind in ("svg", "png")),
    }
    beside = json.loads((out / "judges.meta.json").read_text())
    assert beside["signatures"] == [found["signature"]]
    rows = list(csv.DictReader((out / "judges.csv").read_text().splitlines()))
    assert [(r["judge"], r["accuracy"]) for r in rows] == [("sharp", "1.0"), ("lazy", "0.5")]
    assert json.loads((out / "agreement.json").read_text()) == found
    capsys.readouterr()
    assert main(["agree", str(small)]) == 0
    printed = capsys.readouterr().out
    assert "Judges against people (human…): small.csv" in printed
    assert found["signature"] in printed


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["agree", "{small}", "--judge", "nobody"], "no verdicts of the judge 'nobody'"),
        (["agree", "{small}", "--truth", "gold"], "no judge's name starts with 'gold'"),
        (["agree", "{small}", "--protocol", "gteval"], "--protocol gteval is about stage files"),
        (["agree", "--seeds", "sample"], "no judgments in"),
    ],
)
def test_a_mistake_is_one_line(small, tmp_path, capsys, command, message):
    """What is wrong and what to do, exit code 1, nothing written."""
    before = sorted(tmp_path.rglob("*"))
    filled = [part.format(small=small) for part in command]
    assert message in refused(capsys, [*filled, "--dir", str(tmp_path)])
    assert sorted(tmp_path.rglob("*")) == before


# ------------------------------------------------------------------------------ stage files

PANEL = """
[panels.pair]
strategy = "simultaneous-talk"
model = "umpire"
agents = ["general-public", "critic"]

"""


def workspace(folder: Path, server: Server) -> Path:
    """Four seeds of four to six utterances, dialogues of two bots, two models and two panels."""
    folder.mkdir()
    seeds = [
        Seed(f"s{n}", tuple(f"That is line {i} of talk {n}." for i in range(4 + n % 3)))
        for n in range(N_SEEDS)
    ]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    models = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\n'
        "price_input = 1.0\nprice_output = 2.0\n"
        for name in ("umpire", "lazy")
    ]
    (folder / "botchat.toml").write_text("\n".join(models) + PANEL)
    bots = ["--model", "bot:verbose", "--model", "bot:parrot"]
    generate = ["generate", "--seeds", "small", "--turns", "6", *bots]
    assert main([*generate, "--dir", str(folder)]) == 0
    return folder


def umpire(call):
    """Knows people by their lines. In a debate it says so only once it has been talked to."""
    prompt = call.messages[-1]["content"]
    if call.model == "lazy":
        return text("Choice: Conversation 1; Reason: the first one, always")
    if "There are a few other referees" in prompt and "[Critic]:" not in prompt:
        return text("Choice: Conversation 1; Reason: let me begin with the first")
    if call.body.get("temperature") == 1.0:
        return text("Choice: Both; Reason: who knows")
    if "Index:" in prompt:
        human = "line 2 of" in prompt
        # Of talk 3 it thinks wrongly whatever it is; else it finds the first utterance of the AI.
        accused = human == ("of talk 3" in prompt)
        return text("Choice: Yes\nIndex: 3\nReason: x" if accused else "Choice: No\nReason: y")
    shown = prompt.split("\n\nThere are a few other referees")[0]
    second = shown.rpartition("Conversation 2:")[2]
    ai = "1" if "line 2 of" in second else "2"
    return text(f"Choice: Conversation {ai}; Reason: the other one knows its lines")


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """GTEval and UniEval by two models, GTEval by a panel with its control."""
    with Server(umpire) as server:
        folder = workspace(tmp_path_factory.mktemp("agree") / "w", server)
        judge = ["judge", "gteval", "--seeds", "small", "--dir", str(folder), "--judge"]
        for name in ("umpire", "lazy"):
            assert main([*judge, name]) == 0
        assert main([*judge, "pair"]) == 0
        assert main([*judge, "control:pair"]) == 0
        unieval = ["judge", "unieval", "--seeds", "small", "--judge", "umpire"]
        assert main([*unieval, "--dir", str(folder)]) == 0
        yield folder


COMPARED: dict[tuple[object, ...], dict] = {}


def agreed(capsys, folder: Path, protocol: str, *more: str) -> dict:
    """The comparison of stage files, of those that stay as they are made once."""
    asked = (folder, protocol, *more)
    if asked not in COMPARED:
        place = ["--seeds", "small", "--protocol", protocol, "--dir", folder]
        COMPARED[asked] = said(capsys, "agree", *place, *more)
    return COMPARED[asked]


N_GTEVAL = 2 * 2 * N_SEEDS
"""Two bots, both orders."""


def test_gteval_knows_the_truth_itself(judged, capsys):
    """One side is human: no annotator is needed, none is made up."""
    found = agreed(capsys, judged, "gteval")
    assert found["truth"] == "who wrote what (built in)"
    assert row(found, "umpire")["accuracy"] == row(found, "umpire")["kappa"] == 1.0
    assert row(found, "umpire")["n"] == N_GTEVAL
    assert (row(found, "lazy")["accuracy"], row(found, "lazy")["kappa"]) == (0.5, 0.0)
    assert found["annotators"] == []
    assert row(found, "umpire")["kendall"] is None
    assert {r["judge"] for r in found["rankings"]} == {r["judge"] for r in found["rows"]}
    out = judged / "leaderboards" / "small" / "agreement-gteval"
    assert {path.suffix for path in out.iterdir()} == {".csv", ".md", ".json", ".svg", ".png"}
    assert (out / "cost-against-agreement.svg").exists()


def test_the_votes_before_the_talk_stand_beside_the_panel(judged, capsys):
    """Both members begin with Conversation 1 and end right: half of the cases flip to right."""
    found = agreed(capsys, judged, "gteval")
    assert row(found, "pair")["accuracy"] == 1.0
    assert row(found, "pair (before talk)")["accuracy"] == 0.5
    assert row(found, "pair (before talk)")["first_preferred"] == 0.0
    assert row(found, "pair (control)")["ties"] == 1.0
    controls = {c["control"]: c for c in found["controls"]}
    talk = controls["pair (before talk)"]
    assert (talk["wrong_to_right"], talk["right_to_wrong"]) == (N_GTEVAL // 2, 0)
    assert (talk["changed"], talk["accuracy_difference"]) == (0.5, 0.5)
    assert controls["pair (control)"]["wrong_to_right"] == N_GTEVAL
    # The votes before the talk are no judge of their own, whatever else is compared.
    assert found["groups"][0]["raters"] == 4


def test_a_verdict_has_its_price(judged, capsys):
    """Calls, tokens, money and seconds of a verdict, from the ledger; together what was paid."""
    found = agreed(capsys, judged, "gteval")
    rows = {r["judge"]: r for r in found["rows"]}
    calls = {"umpire": 1, "lazy": 1, "pair": 4, "pair (before talk)": 2, "pair (control)": 4}
    assert {name: r["calls"] for name, r in rows.items()} == calls
    stats = said(capsys, "ledger", "stats", "--dir", judged)["rows"]
    unieval = agreed(capsys, judged, "unieval")["rows"][0]
    paid = sum(s["cost_usd"] for s in stats)
    ours = [r["usd"] * N_GTEVAL for name, r in rows.items() if name != "pair (before talk)"]
    assert sum(ours) + unieval["usd"] * 3 * N_SEEDS == pytest.approx(paid)
    assert rows["pair"]["tokens"] > rows["pair (before talk)"]["tokens"] > rows["umpire"]["tokens"]
    assert all(r["seconds"] > 0 for r in rows.values())


def test_without_the_ledger_prices_are_unknown_and_not_nothing(judged, tmp_path, capsys):
    """Stage files alone still tell the number of calls."""
    other = tmp_path / "moved"
    shutil.copytree(judged, other, ignore=shutil.ignore_patterns(".botchat", "leaderboards"))
    found = row(agreed(capsys, other, "gteval"), "pair")
    assert (found["calls"], found["tokens"], found["usd"], found["seconds"]) == (
        4,
        None,
        None,
        None,
    )


def test_the_page_puts_judges_beside_each_other_as_agree_does(judged, tmp_path, capsys):
    """Cost against agreement, judge against judge, the talk; what panels were told in full."""
    found = agreed(capsys, judged, "gteval")
    where = ["--seeds", "small", "--dir", str(judged), "--out", str(tmp_path)]
    everybody = Workspace(judged).judgment_files("small")
    judges = [word for name in everybody for word in ("--judge", name)]
    assert main(["leaderboard", *where, *judges, "--no-png"]) == 0
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "gteval on small: judges beside each other" in page
    for figure in ("What agreement costs", "Judges against each other"):
        assert f"{figure}</h3>" in page or f">{figure}<" in page
    assert found["signature"] in page
    assert "Panels beside their controls" in page
    assert escape(prompts.text("roles/dialogues/critic").splitlines()[0], quote=False) in page
    plot = ["leaderboard", "figure", "cost-against-agreement-gteval", *where[:-1]]
    assert main([*plot, str(tmp_path / "cost.svg")]) == 0
    assert "What agreement costs" in (tmp_path / "cost.svg").read_text("utf-8")
    plot[2] = "cost-against-agreement-arena-n8"
    assert "there are: cost-against-agreement-gteval, judges-against" in refused(
        capsys, [*plot, str(tmp_path / "x.svg")]
    )
    alone = tmp_path / "alone"
    judge = ["--judge", found["rows"][0]["judge"]]
    assert main(["leaderboard", *where[:-1], str(alone), *judge, "--no-png"]) == 0
    page = (alone / "index.html").read_text("utf-8")
    assert "judges beside each other" not in page
    assert "To compare it, judge the same dialogues with another" in page


def test_unieval_gives_detection_index_and_false_alarms(judged, capsys):
    """Of four seeds the umpire errs on one: accuses its people and misses its bots."""
    found = row(agreed(capsys, judged, "unieval"), "umpire")
    assert found["machines_caught"] == found["exact_index_rate"] == 0.75
    assert found["people_accused"] == 0.25
    assert found["accuracy"] == 0.75
    assert found["people_accused_low"] <= 0.25 <= found["people_accused_high"]
    assert found["kendall"] is None


def test_people_who_were_asked_stand_beside_the_stage_files(judged, tmp_path, capsys):
    """A CSV about the same seeds: people are the truth, or judges where who wrote what is."""
    lines = [f"s{n},human,bot:verbose,human-1,{'2' if n else '1'}" for n in range(N_SEEDS)]
    path = tmp_path / "people.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n")
    by_people = agreed(capsys, judged, "gteval", str(path), "--truth", "human")
    assert (row(by_people, "umpire")["n"], row(by_people, "umpire")["accuracy"]) == (8, 0.25)
    assert agreed(capsys, judged, "gteval", str(path))["rows"] == by_people["rows"]
    known = agreed(capsys, judged, "gteval", str(path), "--truth", "built-in")
    assert row(known, "human-1")["accuracy"] == 0.25


def test_one_judge_with_its_controls(judged, capsys):
    """--judge of a panel keeps the votes before the talk and the call-matched control."""
    found = agreed(capsys, judged, "gteval", "--judge", "pair")
    names = [r["judge"] for r in found["rows"]]
    assert names == ["pair", "pair (before talk)", "pair (control)"]
    (line,) = found["talk"]
    assert line.startswith("What the talk of pair adds in accuracy: +50.0 points (")
    assert " over single judges asked as often at " in line


def test_judgments_of_other_dialogues_do_not_count(judged, tmp_path, capsys):
    """Dialogues made again: what was said of the old ones is left out, and that is told."""
    folder = tmp_path / "changed"
    shutil.copytree(judged, folder)
    (parrot,) = (folder / "generations" / "small").glob("bot-parrot*")
    first, *others = jsonl.read(parrot, Dialogue)
    utterances = (*first.utterances[:2], "Well, no.", *first.utterances[3:])
    changed = msgspec.structs.replace(first, utterances=utterances)
    jsonl.finish(parrot, [changed, *others], stage_order)
    found = agreed(capsys, folder, "gteval")
    assert row(found, "umpire")["n"] == N_GTEVAL - 2
    assert any("about dialogues that have changed" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (["control:umpire"], "control:umpire: 'umpire' is no panel"),
    ],
)
def test_a_control_is_for_panels(tmp_path, capsys, judge, message):
    """One line, and nothing is sent."""
    with Server(umpire) as server:
        folder = workspace(tmp_path / "w", server)
        command: Sequence[str] = ["judge", "gteval", "--seeds", "small", "--judge"]
        assert main([*command, *judge, "--dir", str(folder)]) == 1
        assert message in capsys.readouterr().err
        assert server.n_received == 0


def test_the_control_asks_each_model_of_a_mixed_panel(tmp_path, capsys):
    """Two models, four calls: two samples of each, of the bare question; planned too."""
    with Server(umpire) as server:
        folder = workspace(tmp_path / "w", server)
        toml = folder / "botchat.toml"
        mixed = '["general-public", { role = "critic", model = "lazy" }]'
        toml.write_text(toml.read_text().replace('["general-public", "critic"]', mixed))
        judge = ["judge", "gteval", "--seeds", "small", "--judge", "control:pair"]
        planned = said(capsys, *judge, "--plan", "--dir", folder)["rows"]
        assert main([*judge, "--dir", str(folder)]) == 0
        sent = server.n_received
        samples = [c for c in server.calls if c.body.get("temperature") == 1.0]
        # Now that replies are known, nothing is planned that was not sent.
        left = said(capsys, *judge, "--plan", "--dir", folder)["rows"]
    # As many as the four of the talk.
    expected = sum(r["calls"] for r in planned if r["level"] == "expected")
    assert expected == sent == 4 * N_GTEVAL
    assert sum(r["calls"] for r in left) == 0
    assert {name: sum(c.model == name for c in samples) for name in ("umpire", "lazy")} == {
        "umpire": 2 * N_GTEVAL,
        "lazy": 2 * N_GTEVAL,
    }
    assert not any("referees" in c.messages[-1]["content"] for c in samples)
    path = next((folder / "judgments" / "small" / "gteval").glob("pair-control*"))
    made = jsonl.read(path, Judgment)
    assert {j.judge for j in made} == {"pair (control)"}
    assert {len(j.calls) for j in made} == {4}
