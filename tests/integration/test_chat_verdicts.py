"""Verdicts on one chat, by people and judges: from a file to boards, agreement and plans."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.pipeline.run.read_set import read
from botchat.records import Judgment
from botchat.workspace import files
from botchat.workspace.folder import Workspace
from tests.commands import refused, said

TURING = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "turing"
SPOT_THE_BOT = TURING / "spot-the-bot" / "dev.jsonl.gz"

AI = "As an AI language model, I cannot have feelings."
CHATS = [
    {"id": "two", "turns": [["u", "Hi!"], ["u", "Anybody?"], ["m", AI], ["u", "Oh."], ["m", AI]],
     "who": {"u": "human", "m": "meena"}},
    {"id": "three", "turns": [["x", "Hello."], ["y", "Hey."], ["z", AI], ["x", "No!"], ["y", "A"]],
     "who": {"x": "human", "y": "human", "z": "gpt"}},
    {"id": "people", "turns": [["a", "Morning."], ["b", "Cold."], ["a", "Very."], ["b", "A"]],
     "who": {"a": "human", "b": "human"}},
]  # fmt: skip
ROWS = [
    ("two", "ann", "human", "u", "4"), ("two", "ann", "machine", "m", "4"),
    ("two", "bob", "undecided", "u", "4"), ("two", "bob", "human", "m", "4"),
    ("three", "ann", "human", "x", "4"), ("three", "ann", "human", "y", "4"),
    ("three", "ann", "machine", "z", "4"),
    ("people", "ann", "human", "a", "4"), ("people", "ann", "", "b", "4"),
    ("people", "bob", "undecided", "B", "4"), ("people", "bob", "human", "A", "4"),
]  # fmt: skip


def table(rows, names=("item", "judge", "verdict", "speaker", "after")):
    """The same as csv."""
    text = io.StringIO()
    csv.writer(text).writerows([names, *rows])
    return text.getvalue()


@pytest.fixture
def place(tmp_path, capsys):
    """Flags of a set of three chats, with their verdicts beside them."""
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(one) + "\n" for one in CHATS))
    (tmp_path / "verdicts.csv").write_text(table(ROWS))
    found = said(capsys, "dialogues", "import", tmp_path / "chats.jsonl", "--set", "s",
                 "--dir", tmp_path / "w")  # fmt: skip
    assert (found["model"], found["dialogues"]) == ("meena, gpt, human", 3)
    return ["--seeds", "s", "--dir", tmp_path / "w"]


def labels(folder, protocol):
    """(judge, chat) -> verdict, of a protocol's stage files."""
    made = (one for path in sorted((folder / "w" / "judgments" / "s" / protocol).glob("*.jsonl"))
            for one in files.read(path, Judgment))  # fmt: skip
    return {(one.judge, one.seed_id): one.verdict for one in made}


@pytest.mark.parametrize("layout", ["csv", "jsonl"])
def test_verdicts_are_filed_and_counted(layout, place, tmp_path, capsys):
    """Undecided apart from missing; read by boards, agreement, plans; taken once."""
    path = tmp_path / f"verdicts.{layout}"
    if layout == "jsonl":
        names = ("item", "judge", "verdict", "speaker", "after")
        path.write_text("".join(json.dumps(dict(zip(names, r, strict=True))) + "\n" for r in ROWS))
    found = said(capsys, "label", "import", path, *place)
    assert sum(row["labels"] for row in found["rows"]) == 5
    assert labels(tmp_path, "speakers-n4") == {
        ("human:ann", "two"): "No Yes",
        ("human:ann", "three"): "No No Yes",
        ("human:ann", "people"): "No ?",
        ("human:bob", "two"): "Undecided No",
        ("human:bob", "people"): "No Undecided",
    }
    again = said(capsys, "label", "import", path, *place)
    assert not sum(row["labels"] for row in again["rows"])
    judged = said(capsys, "judge", "speakers", "--turns", "4", "--judge", "rules", *place)
    assert judged["rows"][0]["cases"] == 3
    board = read(Workspace(tmp_path / "w"), "s", ["human:ann"], for_boards=True).board("human:ann")
    (part,) = board.parts
    survived = part.survival.frame.set_index("model")
    assert {*survived.index} == {"gpt", "meena"}
    assert survived["accused"].sum() == 2
    covered = board.coverage.frame.set_index("model")
    assert covered["undecided"].to_dict() == {"gpt": 0, "human": 1, "meena": 0}
    assert covered[["no_dialogue", "too_short"]].sum().sum() == 0
    agreed = said(capsys, "agree", "--protocol", "speakers-n4", *place)
    rows = {row["judge"]: row for row in agreed["rows"]}
    assert rows["rules"]["n"] == 7
    beside = said(capsys, "agree", path, "--protocol", "speakers-n4", *place)
    assert {row["judge"] for row in beside["rows"]} == {"ann", "bob", "rules"}
    alone = said(capsys, "agree", path, "--dir", tmp_path)
    assert {row["judge"] for row in alone["rows"]} == {"ann", "bob"}
    planned = said(capsys, "label", "plan", "--judge", "rules", "--budget", "9", *place)
    assert planned["protocol"] == "speakers-n4"
    page = said(capsys, "leaderboard", "--judge", "rules", *place)
    assert {row["model"] for row in page["rows"]} == {"gpt", "human", "meena"}


def test_which_speaker_it_is(place, tmp_path, capsys):
    """The rules judge and people name one; the board says how often it is the machine."""
    path = tmp_path / "which.csv"
    path.write_text(table([("two", "ann", "m"), ("three", "ann", "x"), ("people", "ann", "none")],
                          ("item", "judge", "verdict")))  # fmt: skip
    said(capsys, "label", "import", path, *place)
    assert labels(tmp_path, "which") == {
        ("human:ann", "two"): "2", ("human:ann", "three"): "1", ("human:ann", "people"): "neither"
    }  # fmt: skip
    said(capsys, "judge", "which", "--judge", "rules", *place)
    found = read(Workspace(tmp_path / "w"), "s", for_boards=True)
    rows = {
        judge: found.board(judge).parts[0].table.frame.set_index("model")
        for judge in ("rules", "human:ann")
    }
    assert rows["rules"]["not_named"].to_dict() == {"gpt": 0, "human": 1, "meena": 0}
    assert rows["human:ann"]["not_named"].to_dict() == {"gpt": 1, "human": 1, "meena": 0}
    assert rows["human:ann"]["person"]["gpt"] == 1
    agreed = said(capsys, "agree", "--protocol", "which", "--truth", "built-in", *place)
    rows = {row["judge"]: row for row in agreed["rows"]}
    assert (rows["rules"]["accuracy"], rows["rules"]["n"]) == (1, 7)
    assert rows["human:ann"]["accuracy"] == pytest.approx(5 / 7)
    said(capsys, "leaderboard", *place)


def test_an_own_criterion_names_a_speaker(place, tmp_path, capsys):
    """A choice about one dialogue; another set of words for none of them."""
    w = tmp_path / "w"
    (w / "kind.txt").write_text("{{conversation}}\nWho is kinder? Choice: Speaker A, or Nobody")
    (w / "botchat.toml").write_text(
        '[protocols.kinder]\nkind = "choice"\nprompt = "kind.txt"\nlabels = ["Nobody"]\n'
    )
    plan = said(capsys, "judge", "kinder", "--judge", "http://localhost:9/v1#m", "--plan", *place)
    assert plan["cases"] == 3 if "cases" in plan else plan
    (w / "botchat.toml").write_text(
        '[protocols.kinder]\nkind = "choice"\nprompt = "kind.txt"\nlabels = ["A", "B", "None"]\n'
    )
    assert main(["judge", "kinder", "--judge", "rules", *map(str, place)]) == 1
    assert "a choice about one names its speakers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("four", "ann", "human", "", ""), "column item: the set has no chat 'four'"),
        (("two", "ann", "maybe", "", ""), "column verdict: 'maybe' is none of human, machine, und"),
        (("two", "ann", "human", "q", ""), "column speaker: 'q' does not speak in two: u, m"),
        (("two", "ann", "human", "", "9"), "column after: 9; two has 5 utterances"),
        (("two", "ann", "human", "", "x"), "column after: 'x' is no number of utterances"),
        (("two", "", "human", "", ""), "column judge: empty; every verdict needs one"),
    ],
)
def test_a_wrong_row_is_one_line_and_nothing_is_filed(row, message, place, tmp_path, capsys):
    """Which row, which column, what was expected."""
    (tmp_path / "x.csv").write_text(table([ROWS[0], row]))
    assert f"x.csv row 2: {message}" in refused(
        capsys, ["label", "import", str(tmp_path / "x.csv"), *map(str, place)]
    )
    (tmp_path / "x.csv").write_text("item,verdict\none,human\n")
    assert main(["label", "import", str(tmp_path / "x.csv"), *map(str, place)]) == 1
    assert "x.csv: verdicts on chats have the columns item,judge" in capsys.readouterr().err
    assert not (tmp_path / "w" / "judgments").exists()


@pytest.mark.skipif(not SPOT_THE_BOT.exists(), reason="Spot The Bot is not ours to ship")
def test_every_verdict_of_spot_the_bot_comes_in(tmp_path, capsys):
    """4,860 of 75 raters on 1,133 chats, none dropped, undecided apart, also those said again."""
    chats = gzip.decompress(SPOT_THE_BOT.read_bytes())
    (tmp_path / "chats.jsonl").write_bytes(chats)
    told = {True: "human", False: "machine", None: "undecided"}
    rows = [
        (one["id"], given["rater"], told[human], speaker, given["after"])
        for one in map(json.loads, chats.splitlines())
        for given in one["labels"].get("verdicts", ())
        for speaker, human in enumerate(given["human"])
    ]
    (tmp_path / "verdicts.csv").write_text(table(rows))
    place = ["--seeds", "s", "--dir", tmp_path / "w"]
    found = said(capsys, "dialogues", "import", tmp_path / "chats.jsonl", "--set", "s", *place[2:])
    assert (found["read"], found["dialogues"]) == (1133, 1133)
    filed = said(capsys, "label", "import", tmp_path / "verdicts.csv", *place)
    assert sum(row["labels"] for row in filed["rows"]) == 4860 == len(rows) // 2
    words = Counter(
        word for n in (2, 4, 6, 10) for v in labels(tmp_path, f"speakers-n{n}").values()
        for word in v.split()
    )  # fmt: skip
    given = Counter(verdict for _, _, verdict, _, _ in rows)
    assert words == {"No": given["human"], "Yes": given["machine"], "Undecided": given["undecided"]}
