"""The exam who is human: talks of six layouts, people's rows, traps, a judge over real HTTP."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score, roc_auc_score, roc_curve

from botchat.cli.main import main
from botchat.errors import DataError, MissingError
from botchat.papers import turing, turing_form, turing_rows
from botchat.papers.turing_files import read
from tests.openai_server import Server, text
from tests.papers.test_bench import said

pytestmark = pytest.mark.usefixtures("quick")

TURING = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "turing"


@pytest.fixture(scope="module")
def talks():
    """The shared half of every source."""
    if not TURING.exists():
        pytest.skip(f"no folder {TURING}: people's labels are not part of this repository")
    return read(TURING)


# ------------------------------------------------------------------------------------- files

SAID = ["hi there .", "hello , i 'm well < /s >", "nice day ?", "it is !"]
OID = {"_id": {"$oid": "c1"}, "domain_name": "personachat"}
RATED = {"is_human": None, "decision_turn": 4, "fluencyValue": True}
LAYOUTS = {
    "plain.jsonl": [
        {"id": "p", "turns": [{"speaker": "x", "text": "one"}, {"speaker": "y", "text": "two"},
                              {"speaker": "y", "text": "three"}, {"speaker": "y", "text": ""}],
         "who": {"y": "human", "x": "bot 1"},
         "labels": {"verdicts": [{"rater": "r", "after": 2, "human": [True, False]}]}}
    ],
    "sampled-dialogues-full-convai2.json": [
        {**OID, "is_human0": True, "is_human1": False, "system_type0": "human",
         "system_type1": "bot_b", "convo": [{"id": "x", "text": said} for said in SAID]}
    ],
    "annotated-dialogues-full-convai2.json": [
        {"_id": {"$oid": "a1"}, "convo_id": "c1", "user_name": "W1",
         "entity0_annotation": RATED, "entity1_annotation": {**RATED, "is_human": False}}
    ],
    "pass_free(run1).json": [
        {"AssignmentId": "A", "data": [
            {"model": "C_p", "dialogue": [{"round": 1, "user": "so ?", "bot": "so what ."}],
             "raw scores": {"fun": 3}, "z scores": {"fun": 0.5, "robotic": -1.5}}]}
    ],
    "train_final.json": [
        {"dialogId": -7, "users": [{"id": "Bob", "userType": "Bot"},
                                   {"id": "Alice", "userType": "Human"}],
         "thread": [{"userId": "Alice", "text": "caf\udcc3\udca9"},
                    {"userId": "Alice", "text": "still me"}, {"userId": "Bob", "text": "ok"}]}
    ],
    "fed_data.json": [
        {"context": "User: a\nSystem: b", "system": "Meena", "response": "System: c",
         "annotations": {"Overall": [1]}},
        {"context": "User: a\nSystem: b", "system": "Human",
         "annotations": {"Overall": [1, 4], "Error recovery": ["N/A", 2]}},
    ],
    "chatbot3.json": [
        {"context": "User: hey\nSystem: hey , you\n", "human (overall)": 4},
        {"context": "User: hey\nSystem: hey , you\n", "human (overall)": 1},
    ],
}  # fmt: skip
"""A file of each authors' layout, of our own sentences."""
LINES = ("plain", "sampled", "annotated")


def lay(folder: Path, name: str) -> bytes:
    """The file as upstream has it: JSON lines, or an array."""
    rows = [json.dumps(row) for row in LAYOUTS[name]]
    data = "\n".join(rows) if name.startswith(LINES) else f"[{', '.join(rows)}]"
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(data)
    return data.encode()


def test_authors_layouts(tmp_path):
    """Every layout, in one folder, gives talks with truth, labels and bursts."""
    for name in LAYOUTS:
        lay(tmp_path, name)
    found = read(tmp_path)
    one = {source: of[0] for source, of in found.items()}
    assert {source: len(of) for source, of in found.items()} == dict.fromkeys(
        ("convai2017", "dstc9", "fed", "ji2022", "plain", "spotbot-convai2"), 1
    )
    assert one["plain"].who == ("bot 1", "human")
    assert one["plain"].speakers == (0, 1, 1)
    # The labels stand in the order of `who`: the machine is y's partner.
    assert one["plain"].opinions[0].human == (False, True)
    bot = one["spotbot-convai2"]
    assert bot.utterances == ("hi there.", "hello, i'm well", "nice day?", "it is!")
    assert bot.who == ("human", "bot_b")
    assert bot.opinions == (("W1", 4, (None, False)),)
    assert one["ji2022"].id == "pass_free(run1)-0-0"
    assert one["ji2022"].rating == -0.5
    assert one["convai2017"].utterances[0] == "café"
    assert one["convai2017"].speakers == (0, 0, 1)
    assert one["fed"].machines == ()
    assert one["fed"].rating == 2.5
    assert one["fed"].id == "1"
    # Said by two raters, it is one talk.
    assert (one["dstc9"].machines, one["dstc9"].rating) == (("chatbot3",), 2.5)


def test_packed_files_are_the_same(tmp_path):
    """A gzip file and a zip archive read as what is in them."""
    for name in LAYOUTS:
        lay(tmp_path / "plain", name)
    packed = tmp_path / "packed"
    packed.mkdir()
    with zipfile.ZipFile(packed / "MongoDump.zip", "w") as archive:
        for name in LAYOUTS:
            if name != "plain.jsonl":
                archive.write(tmp_path / "plain" / name, name)
    (packed / "plain.jsonl.gz").write_bytes(gzip.compress(lay(tmp_path / "plain", "plain.jsonl")))
    assert read(packed) == read(tmp_path / "plain")


def test_faults_are_one_line(tmp_path):
    """What is no talk is told with its place; a folder without any is, too."""
    with pytest.raises(MissingError, match=r"no talks in .*Spot The Bot"):
        read(tmp_path)
    (tmp_path / "own.jsonl").write_text('{"id": "1", "turns": [["a", "x"]], "who": {}}\n')
    with pytest.raises(DataError, match=r"own.jsonl:1: .* is no talk .*'a'"):
        read(tmp_path)


# ----------------------------------------------------------------------------------- figures


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_sklearns(seed):
    """AUC, kappa and the place on the curve of graded scores with ties."""
    rng = np.random.default_rng(seed)
    machine = np.arange(60) % 3 > 0
    score = np.round(rng.normal(size=60) + machine, 1)
    most = (rng.random(60) < 0.5).astype(float)
    accuses = (score > 0.5).astype(float)
    row = turing_rows.Chats(np.zeros(60, int), machine, most).row(score, accuses)
    assert row["auc"] == pytest.approx(roc_auc_score(machine, score))
    assert row["kappa"] == pytest.approx(cohen_kappa_score(accuses, most))
    x, y, _ = roc_curve(machine, score, drop_intermediate=False)
    assert row["caught"] == pytest.approx(np.interp(0.05, x, y))
    assert row["auc_low"] < row["auc"] < row["auc_high"]
    # Of two sources pairs are of one source each.
    two = turing_rows.Chats(np.arange(60) % 2, machine, most).row(score, accuses)
    halves = [np.arange(60) % 2 == k for k in (0, 1)]
    n = [machine[of].sum() * (~machine[of]).sum() for of in halves]
    each = [roc_auc_score(machine[of], score[of]) for of in halves]
    assert two["auc"] == pytest.approx(np.average(each, weights=n))


def test_system_order_is_scipys():
    """Rank correlations of systems' means; intervals hold them."""
    rng = np.random.default_rng(1)
    member = np.eye(6, dtype=bool)[np.arange(300) % 6]
    level = np.arange(300) % 6
    value, rating = (level + rng.normal(0, 3, 300) for _ in range(2))
    row = turing_rows.by_system(value, rating, member)
    means = [[x[member[:, k]].mean() for k in range(6)] for x in (value, rating)]
    assert row["spearman"] == pytest.approx(stats.spearmanr(*means)[0])
    assert row["kendall"] == pytest.approx(stats.kendalltau(*means)[0])
    assert row["spearman_low"] <= row["spearman"] <= row["spearman_high"]
    # A pilot (--limit) sees some systems only.
    value[(level < 2) | (np.arange(300) > 60)] = np.nan
    few = turing_rows.by_system(value, rating, member)
    assert (few["systems"], few["chats"]) == (4, 40)
    means = [
        [x[member[:, k] & ~np.isnan(value)].mean() for k in range(2, 6)] for x in (value, rating)
    ]
    assert few["spearman"] == pytest.approx(stats.spearmanr(*means)[0])


# -------------------------------------------------------------------------- people, shared half

DOMAINS = {  # majority right, talks; one rater accuses machines' talks, and people's (TURING.md)
    "spotbot-convai2": (0.906, 309, 0.852, 0.299),
    "spotbot-dailydialog": (0.977, 133, 0.924, 0.130),
    "spotbot-empathetic": (0.789, 209, 0.669, 0.149),
}


def test_people_are_rows(talks):
    """TURING's numbers to .001, from all 4,860 verdicts."""
    assert sum(len(one.opinions) for of in talks.values() for one in of) == 4_860
    spot = {name: talks[name] for name in DOMAINS}
    bench = turing.Turing(spot)
    for name, (right, n, machines, people) in DOMAINS.items():
        most, rater = turing.people_rows(bench.parts[name].whole)
        assert (most["machines"] + most["people"]) == n
        found = (most["truth"], rater["machines_accused"], rater["people_accused"])
        assert found == pytest.approx((right, machines, people), abs=1e-3)
        assert most["truth_low"] < right < most["truth_high"]


def test_fingerprint_and_traps(talks):
    """Bots and sources left out, people alone, shuffled labels, and repetition by system."""
    floor = {"spotbot-convai2": 0.79, "spotbot-dailydialog": 0.68}
    bench = turing.Turing({name: talks[name] for name in floor})
    rows = {(r["source"], r["who"]): r for r in bench._rows_whole(bench._forms, {})}
    for name, alone in floor.items():
        assert rows[name, turing_form.OTHERS]["auc"] >= 0.87
        assert rows[name, turing_form.ALONE]["auc"] >= alone
        assert rows[name, "number of turns alone"]["auc"] == pytest.approx(0.5, abs=0.003)
    # PersonaChat's people write no contractions: that alone is most of it.
    assert rows["spotbot-convai2", "contractions alone"]["auc"] == pytest.approx(0.84, abs=0.01)
    near = [one.cut(10) for one in bench.parts["spotbot-convai2"].near]
    machine = np.array([bool(one.machines) for one in near])
    auc = [roc_auc_score(np.random.default_rng(k).permutation(~machine),
                         -turing_form.fingerprints(near, k)[turing_form.OTHERS])
           for k in range(2)]  # fmt: skip
    assert np.mean(auc) == pytest.approx(0.5, abs=0.05)  # three standard errors
    rated = turing.Turing({"ji2022": talks["ji2022"]})
    systems = {(r["source"], r["who"]): r for r in rated._rows_systems({})}
    assert systems["ji2022", "flags of repetition"]["spearman"] >= 0.94


# --------------------------------------------------------------------------- a judge, over HTTP


@pytest.fixture
def exam(tmp_path) -> Path:
    """Two sources of our own: machines that say "beep", people who do not; raters in one."""
    folder = tmp_path / "exam"
    folder.mkdir()
    for source in ("one", "two"):
        lines = []
        for n in range(8):
            machine = n % 2 == 0
            turns = [
                [k % 2, f"chat {source} {n} says {'beep' if machine and k % 2 else 'well'} {k}"]
                for k in range(4)
            ]
            who = {"0": "human" if not machine else "m", "1": "m" if machine else "human"}
            said = [not machine, not machine] if n < 6 else [machine, machine]
            votes = [{"rater": f"r{k}", "after": 4, "human": said} for k in range(3)]
            labels = {"verdicts": votes if source == "one" else []}
            lines.append({"id": f"{n}", "turns": turns, "who": who, "labels": labels})
        (folder / f"{source}.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in lines))
    beside = [{"id": f"{n}", "who": {"x": "human", "y": "m"},
               "turns": [["x", f"chat three {n}"], ["x", "are you there"], ["y", "I beep"]]}
              for n in range(4)]  # fmt: skip
    (folder / "three.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in beside))
    return folder


def answer(call):
    """Hears "beep", which one chat in four has not where it should: a judge of a kind."""
    prompt = call.messages[-1]["content"].rpartition("\n\nConversation")[2]
    if "Choice: Speaker A" in call.messages[-1]["content"]:
        return text(
            f"Choice: {'None' if 'chat three 0' in prompt else 'Speaker B'}; Reason: it beeps"
        )
    both = re.split(r"\nConversation 2:", call.messages[-1]["content"])
    if len(both) > 1:
        first = "beep" in both[0].rpartition("Conversation 1:")[2]
        return text(f"Choice: Conversation {1 if first else 2}; Reason: it beeps")
    if "beep" in prompt and "chat two 0" not in prompt:
        return text("Choice: Yes\nIndex: 2\nReason: it beeps")
    return text("Choice: No\nIndex: None\nReason: fine")


def test_a_judge_beside_people(tmp_path, exam, capsys, monkeypatch):
    """A judge is asked once, paid, and stands beside people, rules and traps."""
    monkeypatch.chdir(tmp_path)
    with Server(answer) as server:
        judge = f"{server.url}#m"
        command = ("bench", "turing", "--data", exam, "--judge", judge)
        assert main([*map(str, command), "--plan"]) == 0
        assert not server.calls
        found = said(capsys, *command)
        asked = len(server.calls)
        assert asked == 16 + 16 + 4  # whole chats, pairs in both orders, speakers
        again = said(capsys, *command)
        assert len(server.calls) == asked
    assert again["whole"] == found["whole"]
    rows = {(row["source"], row["who"]): row for row in found["whole"]}
    name = next(who for _, who in rows if who.endswith("#m"))
    mine = rows["all", name]
    assert (mine["truth"], mine["auc"], mine["caught"]) == (
        15 / 16,
        0.875 + 0.0625,
        7 / 8 + 0.05 / 8,
    )
    assert mine["kappa"] == cohen_kappa_score([1, 0] * 4, [1, 0, 1, 0, 1, 0, 0, 1])
    assert mine["calls_right"] == pytest.approx(16 / 15)
    assert rows["one", "people (majority)"]["truth"] == 0.75
    assert {row["cut"] for row in found["whole"] if row["source"] == "one"} == {"first 4"}
    pairs = {(row["source"], row["who"]): row["right"] for row in found["pairs"]}
    assert pairs["two", name] == 1
    speakers = {(row["source"], row["who"]): row["right"] for row in found["speakers"]}
    assert speakers["three", name] == 0.75
    assert speakers["three", "who speaks first"] == 1  # all machines answer: the position tells
    assert any(line.startswith("rules does not beat") for line in found["answer"])
    page = (tmp_path / "leaderboards/bench-turing/exam.html").read_text()
    assert page.count("<svg") == 1
    assert "people (one rater)" in page


def test_a_debate_beside_its_control_and_a_single_judge(tmp_path, exam, capsys, monkeypatch):
    """The table that a panel's price buys: talk, votes before it, as many calls alone, one call."""
    monkeypatch.chdir(tmp_path)

    def debater(call):
        """Alone it hears every beep, in a talk it is talked out of those of source two."""
        whole = " ".join(message["content"] for message in call.messages)
        talk = "beep" in whole.rpartition("<chat_end>")[2]
        of_two = "chat two" in whole
        if "Conversation 2:" in whole or "Speaker A" in whole:
            return text("Choice: N; Reason: the same")
        if "beep" in whole and not (talk and of_two):
            return text("Choice: Yes\nIndex: 2\nReason: it said beep")
        return text("Choice: No\nIndex: None\nReason: no word of it")

    with Server(debater) as server:
        model = f"{server.url}#m"
        one = ("bench", "turing", "--data", exam, "--judge")
        said(capsys, *one, model)
        found = said(capsys, *one, "chateval-default", "--judge-model", model, "--control")
    every = [row for row in found["whole"] if row["source"] == "all" and row.get("calls_right")]
    rows = {row["who"].removeprefix("chateval-default@").replace(model, "m"): row for row in every}
    calls = {who: row["calls_right"] * row["truth"] for who, row in rows.items()}
    ends = ("m (control)", "m (token control)", "m (before talk)")
    panel = next(row for row in every if row["who"] == f"chateval-default@{model}")
    alone = next(row for row in every if row["who"] == model)
    assert (panel["truth"], alone["truth"]) == (0.75, 1)
    assert [rows[end]["truth"] for end in ends] == [1, 1, 0.75]
    assert panel["calls_right"] == pytest.approx(4 / 0.75)
    assert [calls[end] for end in ends] == pytest.approx([4, 6, 2])


def test_a_judge_is_examined_before_it_is_paid(tmp_path, exam, capsys, monkeypatch):
    """--require refuses without an exam, and a worse one; a board quotes it, and what changed."""
    monkeypatch.chdir(tmp_path)
    with Server(answer) as server:
        judge = f"{server.url}#m"
        asks = ("judge", "unieval", "--seeds", "sample", "--judge", judge, "--require")
        assert main(["generate", "--seeds", "sample", "--model", "bot:parrot", "--turns", "4"]) == 0
        cases = {
            "caught@5>=.6": (4, "has passed no exam here; run botchat bench turing"),
            "wit>=1": (1, "say FIGURE>=NUMBER with auc, caught@5, right, kappa"),
        }
        for rule, (code, told) in cases.items():
            assert main([*asks, rule]) == code
            assert told in capsys.readouterr().err
        assert main(["bench", "turing", "--data", str(exam), "--judge", judge]) == 0
        paid = len(server.calls)
        assert main([*asks, "auc>=.99"]) == 4
        assert "has auc 0.94 (turing, 16 chats, " in capsys.readouterr().err
        assert len(server.calls) == paid
        assert main([*asks, "auc>=.9", "--require", "caught@5>=.6", "--limit", "3"]) == 0
        assert len(server.calls) > paid
    capsys.readouterr()
    assert main(["leaderboard", "--seeds", "sample", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    check = next(c for c in told["judge"]["checks"] if c["key"] == "passed_exam")
    assert (check["state"], check["number"]) == ("warns", "94 %")  # of 16 chats little is known
    assert re.search(r"\(turing, 16 chats, \d{4}-\d\d-\d\d, 88 % caught", check["reason"])
    assert not any("since its exam" in note for note in told["notes"])
    path = tmp_path / "exams.jsonl"
    path.write_text(re.sub(r'("settings":)"\w+"', r'\1"changed"', path.read_text()))
    assert main(["leaderboard", "--seeds", "sample", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("model or the settings" in note for note in notes)


def test_a_card_is_made_again_of_the_ledger(tmp_path, exam, capsys, monkeypatch):
    """Stage files gone, the ledger gives the same bytes, and nobody is paid; a change is told."""
    monkeypatch.chdir(tmp_path)
    compare, given = turing.compare_judges, []
    monkeypatch.setattr(
        turing,
        "compare_judges",
        lambda all_of, *a, **b: given.append(all_of) or compare(all_of, *a, **b),
    )
    with Server(answer) as server:
        judge = f"{server.url}#m"
        command = ("bench", "turing", "--data", str(exam), "--judge", judge, "--card")
        assert main([*command, "--verify"]) == 4
        assert "calls are not in the ledger" in capsys.readouterr().err
        assert main(list(command)) == 0
        (path,) = tmp_path.glob("cards/*/turing.json")
        (page,) = tmp_path.glob("cards/*/turing.html")
        asked, before = len(server.calls), path.read_bytes()
        shutil.rmtree(tmp_path / "judgments")
        shutil.rmtree(tmp_path / "measured")
        assert main([*command, "--verify"]) == 0
        assert "is what the ledger gives" in capsys.readouterr().out
        assert main(list(command)) == 0
        assert len(server.calls) == asked
        assert path.read_bytes() == before
        path.write_text(path.read_text().replace('"calls": 16', '"calls": 17', 1))
        assert main([*command, "--verify"]) == 4
        assert "asked differ" in capsys.readouterr().err
    truth, said = (
        [(x.item, x.first) for x in given[0] if (x.judge.startswith("who wrote")) == of]
        for of in (True, False)
    )
    assert truth == [*dict.fromkeys(said)]  # not by hash: sums have the same last digit everywhere
    card = json.loads(before)
    (name,) = {row["who"] for row in card["results"]["whole"]}
    assert card["judge"] == name
    assert [(one["stage"], one["asked"], one["calls"]) for one in card["asked"]] == [
        ("gteval", "m", 16), ("unieval", "m", 16), ("which", "m", 4)
    ]  # fmt: skip
    assert set(card["signatures"]) == {"gteval", "unieval", "which"}
    (prefers,) = card["results"]["preferences"]
    assert prefers["first_preferred"] == 0.5
    assert name in page.read_text()


def test_the_first_of_every_source(tmp_path, exam, capsys, monkeypatch):
    """--limit takes sources and kinds in turn; without a judge people and traps are shown."""
    monkeypatch.chdir(tmp_path)
    with Server(answer) as server:
        found = said(
            capsys, "bench", "turing", "--data", exam, "--judge", f"{server.url}#m", "--limit", 4
        )
    mine = [row for row in found["whole"] if row["who"].endswith("#m") and row["source"] != "all"]
    assert [(row["machines"], row["people"]) for row in mine] == [(1, 1), (1, 1)]
    alone = said(capsys, "bench", "turing", "--data", exam, "--out", tmp_path / "x")
    shown = [row["who"] for row in alone["whole"] if row["source"] == "one"]
    assert shown[:2] == ["people (majority)", "people (one rater)"]
    assert not any(a == b for a, b in pairwise(shown))
