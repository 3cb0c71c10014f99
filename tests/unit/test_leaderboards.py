"""From records to tables: ranks, coverage, what is left out, and files that read back."""

import csv
import io
import json
import re
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest

from botchat.boards.board import Board, JudgedSet, build_board
from botchat.boards.files import WRITERS, Content, as_json, board_files, document, to_json
from botchat.boards.headline import headline
from botchat.boards.judge_checks import judge_trust
from botchat.boards.protocols import DetectionResult
from botchat.boards.tables import Column, labels, shorten, table
from botchat.errors import DataError
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Seed
from tests.boards import Records, judgment, make_records
from tests.rows import rows

SKILLS = {"best": 0.95, "good": 0.6, "poor": 0.1}


@pytest.fixture(scope="module")
def records() -> Records:
    """Three models of known skill on 40 seeds."""
    return make_records(SKILLS, 40)


@pytest.fixture(scope="module")
def board(records: Records) -> Board:
    """Its board."""
    return records.board()


def files(board: Board) -> dict[str, Content]:
    """Every file of a board."""
    trust = judge_trust(board)
    heading = headline(board, trust)
    return board_files(board, heading, trust, (), as_json(board, heading, trust))


def test_models_are_ranked_by_bradley_terry_at_the_largest_n(board):
    """Skill decides the order; human took part in UniEval only and is listed without a rank."""
    assert board.main.frame["model"].tolist() == ["best", "good", "poor", HUMAN]
    assert board.main.frame["rank"].tolist()[:3] == [1, 2, 3]
    assert pd.isna(board.main.frame["rank"].iloc[3])
    assert [part.protocol.n for part in board.arenas] == [16, 8]
    assert board.ranked_by is board.arenas[0]


def test_the_board_agrees_with_the_records(records, board):
    """Every number of the main table is what is counted in the judgments."""
    shares: dict[str, list[float]] = {model: [] for model in SKILLS}
    for model in SKILLS:
        for protocol in ("unieval", "gteval", "arena-n8", "arena-n16"):
            of = [j for j in records.judgments[protocol] if model in j.contestants]
            readable = [j for j in of if j.verdict is not None]
            shares[model].append(len(readable) / len(of))
            if protocol == "unieval":
                passing = [j for j in readable if j.verdict == "No" or int(j.verdict) > 8]
                success = board.of(DetectionResult)[0].table.by_model["success_n8"][model]
                assert success == pytest.approx(len(passing) / len(readable))
            elif protocol == "gteval":
                lost = [j for j in readable if j.verdict == str(j.contestants.index(model) + 1)]
                rate = board.main.by_model["gteval_win_or_tie"][model]
                assert rate == pytest.approx(1 - len(lost) / len(readable))
        assert board.main.by_model["coverage"][model] == pytest.approx(min(shares[model]))
    assert board.main.by_model["complete"]["best"] == len(records.seeds)


def test_unreadable_verdicts_are_missing():
    """Ten of twelve verdicts lost: the rate is of two."""
    some = make_records({"a": 0.9, "b": 0.1}, 20, unreadable=0.0, arena=())
    seeds = [s for s in some.seeds if len(s.utterances) >= 4][:6]
    judgments = [
        judgment("arena-n16", s.id, part, None if i else "2")
        for i, s in enumerate(seeds)
        for part in (("a", "b"), ("b", "a"))
    ]
    part = replace(some, seeds=seeds, judgments={"arena-n16": judgments}).board().arenas[0]
    row = part.table.records[0]
    assert (row["n"], row["missing"], row["win"], row["lose"]) == (2, 10, 0.5, 0.5)
    assert row["win_low"] < 0.1
    assert row["win_high"] > 0.9
    assert part.pair("a", "b") == [1, 0, 1]
    assert [row["missing"] for row in part.table.records] == [10, 10]


def test_comparisons_that_were_not_judged_are_missing():
    """a-c never, and some seeds not: the share is in the signature, the number in a note."""
    some = make_records({"a": 0.9, "b": 0.5, "c": 0.1}, 36, arena=(8,), unreadable=0.0)
    judgments = some.judgments["arena-n8"]
    assert "|data:full|" in some.board().arenas[0].table.signature
    kept = [j for j in judgments if set(j.contestants) != {"a", "c"}][2:]
    partial = replace(some, judgments={"arena-n8": kept}).board()
    (part,) = partial.arenas
    n, expected = len(kept), len(judgments)
    assert f"|data:{100 * n / expected:.1f}%|" in part.table.signature
    assert f"Arena @8: {n} of {expected} comparisons were judged" in partial.notes
    assert ("a", "c") not in part.results.index
    missing = part.table.by_model["missing"]
    assert missing.sum() == 2 * (expected - n)
    assert missing["c"] in (expected // 3, expected // 3 + 2)


def test_a_model_or_protocol_without_a_readable_verdict(records):
    """The model stays in the tables, last and unrated; an Arena is left out with a sentence."""
    some = make_records({"a": 0.9, "b": 0.5, "mute": 0.99}, 20, arena=(8,), unreadable=0.0)
    judgments = [
        msgspec.structs.replace(j, verdict=None) if "mute" in j.contestants else j
        for j in some.judgments["arena-n8"]
    ]
    part = replace(some, judgments={"arena-n8": judgments}).board().arenas[0]
    last = part.table.records[-1]
    assert (last["model"], last["rank"], last["elo"], last["n"]) == ("mute", None, None, 0)
    assert part.table.frame.dropna(subset="elo")["model"].tolist() == ["a", "b"]
    unread = [msgspec.structs.replace(j, verdict=None) for j in records.judgments["arena-n8"]]
    mute = replace(records, judgments={"arena-n8": unread}).board()
    assert mute.arenas == []
    assert "Arena @8 has no readable verdict, so no rating" in mute.notes


def test_other_judgments_are_passed_over_and_other_verdicts_stop_the_board(records, board):
    """Seeds and models that are not of the board change nothing."""
    more = [
        *records.judgments["unieval"],
        judgment("unieval", "S-1", ("gone",), "3"),
        judgment("unieval", "gone", ("best",), "3"),
    ]
    same = replace(records, judgments={**records.judgments, "unieval": more}).board()
    assert files(same) == files(board)
    broken = {"arena-n8": [judgment("arena-n8", "S-4", ("best", "good"), "maybe")]}
    seeds = [Seed("S-4", ("a", "b", "c", "d"))]
    with pytest.raises(DataError, match="'maybe'"):
        build_board(JudgedSet("s", seeds, records.dialogues), "j", broken)


def test_signatures_name_the_settings(board, records):
    """Those of Elo and Bradley-Terry; several settings are marked, in a note too."""
    assert board.arenas[0].table.signature == (
        "botchat:0.1.0|arena|set:made-up|n:16|judge:rules|prompt:3f9a01bc|orders:2"
        "|elo:k32,4x2|seed:0|data:full|bt:ties0.5,95%,by-seed"
    )
    assert board.main.signature == board.arenas[0].table.signature
    assert len(board.main.signatures) == 5
    other = EloSettings(init=1500, k=4, shuffles=20, runs=1, seed=7)
    rated_otherwise = make_records({"a": 0.9, "b": 0.1}, 10).board(other)
    assert "|elo:k4,20x1,init1500|seed:7|data:" in rated_otherwise.main.signature
    judgments = records.judgments["unieval"]
    mixed = [msgspec.structs.replace(j, signature=f"{j.signature}|new") for j in judgments[:3]]
    two_ways = replace(records, judgments={"unieval": [*mixed, *judgments[3:]]}).board()
    (part,) = two_ways.of(DetectionResult)
    assert part.table.signature.endswith("|and-1-other-settings")
    assert any("2 different settings" in note for note in two_ways.notes)


def test_json_and_csv_read_back(board):
    """By plain pandas, to the numbers of the table; no NaN; one file says what the columns are."""
    texts = files(board)
    meta = json.loads(texts["meta.json"])
    tables = {part.name: part for part in board.every_table}
    assert {f"{name}.csv" for name in tables} == {n for n in texts if n.endswith(".csv")}
    assert meta.keys() == tables.keys()
    for name, part in tables.items():
        read = pd.read_csv(io.StringIO(str(texts[f"{name}.csv"])))
        assert list(read.columns) == list(part.frame.columns)
        for key in (key for c in part.columns if c.kind != "name" for key in c.keys):
            expected = part.frame[key].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
            assert read[key].to_numpy(dtype=float) == pytest.approx(expected, abs=5e-5, nan_ok=True)
        assert meta[name]["signatures"] == list(part.signatures)
        assert [column["key"] for column in meta[name]["columns"]] == list(read.columns)
    whole = json.loads(texts["leaderboard.json"], parse_constant=pytest.fail)
    trust = judge_trust(board)
    assert whole == json.loads(to_json(as_json(board, headline(board, trust), trust)))
    assert isinstance(whole["rows"][0]["elo_n16"], float)
    assert whole["rows"][-1]["elo_n16"] is None
    assert whole["signature"] == board.main.signature


COLUMNS = [Column("model", "M", "name"), Column("x", "X", "rate")]


@pytest.mark.parametrize(("name", "cell"), rows("names_in_csv"))
def test_names_in_csv(name, cell):
    """A name is one cell that no spreadsheet runs and no comment mark cuts."""
    text = WRITERS["csv"](table("t", "T", COLUMNS, [{"model": name, "x": -0.5}], ["s"]))
    assert next(csv.DictReader(io.StringIO(str(text))))["model"] == cell
    assert pd.read_csv(io.StringIO(str(text)), comment="#").iloc[0].tolist() == [cell, -0.5]


def test_markdown_shows_names_as_they_are():
    """Nothing in a name ends its cell or becomes markup; rates are in percent."""
    name = "a|b `c` <script> [d](e)\n*f*"
    part = table("t", "T", COLUMNS, [{"model": name, "x": 0.125}, {"model": "g"}], ["sig|nature"])
    lines = str(WRITERS["md"](part)).splitlines()
    assert lines[4].startswith(r"| a\|b \`c\` &lt;script> \[d\](e) \*f\* |")
    assert lines[4].endswith(" 12.5 |")
    assert lines[5].endswith(" – |")
    assert lines[-1].rstrip() == "`sig|nature`"


def test_markdown_shows_notes_titles_and_signatures_as_they_are():
    """A name in them is no image, link or code; nor in the file of a whole board."""
    name = "![x](http://h/a.png) <img src=//h> `b` *c*"
    shown = r"!\[x\](http://h/a.png) &lt;img src=//h> \`b\` \*c\*"
    part = table("t", "T", COLUMNS, [{"model": "m", "x": 0.5}], [f"judge:{name}"], f"Of {name}.")
    lines = document(f"By {name}", [f"{name} leads."], [part]).splitlines()
    assert lines[0] == f"# By {shown}"
    assert f"- {shown} leads." in lines
    assert f"Of {shown}." in lines
    assert lines[-1].rstrip() == f"``` judge:{name} ```"
    made = make_records({name: 0.9, "b": 0.1}, 8).board()
    text = str(files(made)["leaderboard.md"])
    assert shown in text
    assert "![x]" not in re.sub("(?m)^`.*$", "", text)


def test_labels_are_short_and_different():
    """Long ones lose their middle, alike ones get a mark; no control or direction marks."""
    alike = ["a" * 40 + "x" + "b" * 40, "a" * 40 + "y" + "b" * 40]
    short = labels([*alike, "short", "通" * 40, "short"])
    assert len(set(short)) == 4
    assert short[2] == short[4] == "short"
    assert max(map(len, short)) <= 34
    assert short[3].count("通") == 16
    for name in ("a\nb\x00c", "a\u202eb\u2066c", "a\u2028b\tc"):
        assert re.fullmatch("a b c", shorten(name, 34))
