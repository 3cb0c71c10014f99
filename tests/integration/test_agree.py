"""`botchat agree`: judges against people, against what is known, and against each other."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from botchat.cli.main import main
from botchat.pipeline.contestants import single_judges
from botchat.records import Judgment, Seed
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.commands import refused, said
from tests.openai_server import Server, text
from tests.rows import rows

HEADER = "item,first,second,judge,verdict\n"
N_SEEDS = 4


def row(found: dict, judge: str) -> dict:
    """The row of one judge."""
    return next(row for row in found["judges"] if row["judge"] == judge)


@pytest.fixture
def small(tmp_path):
    """Three items, a person, a judge that is right and one that says 1."""
    three_items = Path(__file__).parents[1] / "data" / "three_items.csv"
    return shutil.copy(three_items, tmp_path / "small.csv")


def test_tables_and_figures_are_written_where_asked(small, tmp_path, capsys):
    """One csv a table, one md, one json, a figure; the highest skill first."""
    out = tmp_path / "out"
    found = said(capsys, "agree", small, "--out", out)
    assert {path.name for path in out.iterdir()} == {
        "judges.csv", "pairs.csv", "rankings.csv", "meta.json", "agreement.md", "agreement.json",
        "judge-agreement.svg",
    }  # fmt: skip
    assert found["signature"] in (out / "meta.json").read_text()
    rows = list(csv.DictReader((out / "judges.csv").read_text().splitlines()))
    assert [(r["judge"], r["skill"]) for r in rows] == [("sharp", "0.8333"), ("lazy", "0.0")]
    assert "| Judge | n | Unreadable | Skill | Ties |" in (out / "agreement.md").read_text()
    assert json.loads((out / "agreement.json").read_text()) == found
    assert main(["agree", str(small)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Judges against human labels: small.csv\nJudge  n ")
    assert "Too few items to compare judges: 3 of 20." in printed
    assert found["signature"] not in printed


@pytest.mark.parametrize(("command", "message"), rows("mistakes_of_agree"))
def test_a_mistake_is_one_line(small, tmp_path, capsys, command, message):
    """What is wrong and what to do, exit code 1, nothing written."""
    before = sorted(tmp_path.rglob("*"))
    filled = [part.format(small=small) for part in command]
    assert message in refused(capsys, [*filled, "--dir", str(tmp_path)])
    assert sorted(tmp_path.rglob("*")) == before


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
    debate = "There are a few other referees" in prompt
    if debate and ("[Critic]:" not in prompt or "of talk 3" in prompt):
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
    assert found["labels"] == "the truth"
    assert row(found, "umpire")["skill"] == row(found, "umpire")["kappa"] == 1.0
    assert row(found, "umpire")["n"] == N_GTEVAL
    # One answer to all: half of them right, no skill, and no kappa.
    assert [row(found, "lazy")[key] for key in ("accuracy", "skill", "kappa")] == [0.5, 0.0, None]
    assert (found["annotators"], row(found, "umpire")["kendall"]) == ([], None)
    assert {r["judge"] for r in found["rankings"]} == {r["judge"] for r in found["judges"]}
    out = judged / "leaderboards" / "small" / "agreement-gteval"
    assert {path.suffix for path in out.iterdir()} == {".csv", ".md", ".json", ".svg"}
    assert (out / "cost-agreement.svg").exists()
    # GTEval cuts both sides to one length; UniEval's are as long as they are.
    counted = "Human dialogues have 4 utterances here, generated ones 6 (medians)"
    notes = {name: agreed(capsys, judged, name)["notes"] for name in ("gteval", "unieval")}
    assert [any(counted in note for note in notes[name]) for name in notes] == [False, True]


def test_the_votes_before_the_talk_stand_beside_the_panel(judged, capsys):
    """Both begin with Conversation 1 and end right, but on one seed: half of the others flip."""
    found = agreed(capsys, judged, "gteval")
    assert row(found, "pair")["accuracy"] == 0.875
    assert row(found, "pair (before debate)")["accuracy"] == 0.5
    assert row(found, "pair (before debate)")["first_preferred"] == 0.0
    assert row(found, "pair (control)")["ties"] == 1.0
    names = [r["judge"] for r in found["judges"]]
    assert names == ["umpire", "pair", "pair (before debate)", "pair (control)", "lazy"]
    gains = {p["judge_b"]: p["skill_difference"] for p in found["pairs"] if p["judge_a"] == "pair"}
    assert (gains["pair (before debate)"], gains["pair (control)"]) == (0.75, 0.75)
    alone = agreed(capsys, judged, "gteval", "--judge", "pair")
    assert [r["judge"] for r in alone["judges"]] == names[1:4], "its controls are kept"
    assert found["sentences"] == [f"Too few items to compare judges: {N_SEEDS} of 20."]


def test_a_debate_is_compared_with_judges_of_its_own_models(judged):
    """Not with others, panels and samples among them where they ask no other model."""
    names = ["umpire", "lazy", "rules", "human:amy", "pair", "pair (control)"]
    named = Workspace(judged)
    assert single_judges(named, names) == {}
    names += ["pair (before debate)", "umpire (3 samples)", "chateval-default@lazy", "gpt"]
    assert single_judges(named, names) == {"pair": ["umpire", "umpire (3 samples)"]}


def test_a_verdict_has_its_price(judged, tmp_path, capsys):
    """Calls, tokens, money and seconds of a verdict, from the ledger; together what was paid."""
    found = agreed(capsys, judged, "gteval")
    rows = {r["judge"]: r for r in found["judges"]}
    calls = {"umpire": 1, "lazy": 1, "pair": 4, "pair (before debate)": 2, "pair (control)": 4}
    assert {name: r["calls"] for name, r in rows.items()} == calls
    stats = said(capsys, "ledger", "--dir", judged)["rows"]
    unieval = agreed(capsys, judged, "unieval")["judges"][0]
    paid = sum(s["cost_usd"] for s in stats)
    ours = [r["usd"] * N_GTEVAL for name, r in rows.items() if name != "pair (before debate)"]
    assert sum(ours) + unieval["usd"] * 3 * N_SEEDS == pytest.approx(paid)
    assert (
        rows["pair"]["tokens"] > rows["pair (before debate)"]["tokens"] > rows["umpire"]["tokens"]
    )
    assert all(r["seconds"] > 0 for r in rows.values())
    # Without the ledger stage files still tell the number of calls; the rest is unknown, not 0.
    moved = shutil.copytree(judged, tmp_path / "w", ignore=shutil.ignore_patterns(".botchat"))
    pair = row(agreed(capsys, moved, "gteval"), "pair")
    assert [pair[key] for key in ("calls", "tokens", "usd", "seconds")] == [4, None, None, None]


def test_people_who_were_asked_stand_beside_the_stage_files(judged, tmp_path, capsys):
    """A CSV about the same seeds: people are the truth, or judges where who wrote what is."""
    lines = [f"s{n},human,bot:verbose,human:amy,{'2' if n else '1'}" for n in range(N_SEEDS)]
    path = tmp_path / "people.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n")
    by_people = agreed(capsys, judged, "gteval", str(path), "--truth", "human")
    assert (row(by_people, "umpire")["n"], row(by_people, "umpire")["accuracy"]) == (8, 0.25)
    assert agreed(capsys, judged, "gteval", str(path))["judges"] == by_people["judges"]
    known = agreed(capsys, judged, "gteval", str(path), "--truth", "built-in")
    assert row(known, "human:amy")["accuracy"] == 0.25
    alone = said(capsys, "agree", path, "--truth", "built-in")
    assert (alone["labels"], row(alone, "human:amy")["n"]) == ("the truth", N_SEEDS)


def test_an_annotator_who_gives_one_answer_has_no_kappa(judged, tmp_path, capsys):
    """It is a dash and a word, not 0; and labels of one class know no skill."""
    folder = shutil.copytree(judged, tmp_path / "amy")
    (path,) = (folder / "judgments" / "small" / "unieval").iterdir()
    labels = path.read_text().replace('"umpire"', '"human:amy"').replace('"3"', '"No"')
    path.with_name("human-amy.jsonl").write_text(labels)
    found = agreed(capsys, folder, "unieval")
    assert "No kappa of umpire: these verdicts, or their labels, are all alike." in found["notes"]
    assert row(found, "umpire")["kappa"] is row(found, "umpire")["skill"] is None


def test_seeds_of_one_topic_are_one_case(judged, tmp_path, capsys):
    """The same accuracy, with the interval of the topics; verdicts and signature stay."""
    folder = shutil.copytree(judged, tmp_path / "topics")
    path = folder / "seeds" / "small.jsonl"
    seeds = [
        msgspec.structs.replace(seed, topic="cars" if seed.id < "s2" else "food")
        for seed in jsonl.read(path, Seed)
    ]
    jsonl.finish(path, seeds, lambda seed: seed.id)
    alone, together = (agreed(capsys, place, "unieval") for place in (judged, folder))
    (by_seed,), (by_topic,) = alone["judges"], together["judges"]
    assert by_topic["accuracy"] == by_seed["accuracy"]
    assert by_topic["accuracy_low"] < by_seed["accuracy_low"]
    assert together["signature"] == alone["signature"]


def test_the_control_asks_each_model_of_a_mixed_panel(tmp_path, capsys):
    """Two models, four calls: two samples of each, of the bare question; planned too."""
    with Server(umpire) as server:
        folder = workspace(tmp_path / "w", server)
        toml = folder / "botchat.toml"
        mixed = '["general-public", { role = "critic", model = "lazy" }]'
        toml.write_text(toml.read_text().replace('["general-public", "critic"]', mixed))
        judge = ["judge", "gteval", "--seeds", "small", "--dir", str(folder), "--judge"]
        no_panel = refused(capsys, [*judge, "control:umpire"])
        assert "control:umpire: 'umpire' is no panel" in no_panel
        judge.append("control:pair")
        planned = said(capsys, *judge, "--plan")["rows"]
        assert server.n_received == 0
        assert main(judge) == 0
        sent = server.n_received
        samples = Counter(c.model for c in server.calls if c.body.get("temperature") == 1.0)
        # Now that replies are known, nothing is planned that was not sent.
        assert sum(row["calls"] for row in said(capsys, *judge, "--plan")["rows"]) == 0
        assert not any("referees" in call.messages[-1]["content"] for call in server.calls)
    # As many as the four of the talk.
    assert planned[-1]["calls"] == sent == 4 * N_GTEVAL
    assert samples == {"umpire": 2 * N_GTEVAL, "lazy": 2 * N_GTEVAL}
    path = next((folder / "judgments" / "small" / "gteval").glob("pair-control*"))
    judgments = jsonl.read(path, Judgment)
    assert {(j.judge, len(j.calls)) for j in judgments} == {("pair (control)", 4)}
