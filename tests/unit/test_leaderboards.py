"""From records to tables: ranks, coverage, what is left out, and text that reads back."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pytest

from botchat.boards import arena, results
from botchat.boards import files as board_files
from botchat.boards.arena import of_votes
from botchat.boards.board import Board, build
from botchat.boards.files import as_json, files
from botchat.boards.names import elided, labels
from botchat.boards.protocols import Place
from botchat.boards.tables import Column, Table, table
from botchat.boards.writers import WRITERS, to_json
from botchat.errors import DataError
from botchat.ratings import elo
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings
from botchat.records import HUMAN, Seed
from tests.boards import QUICK, Made, judgment, made
from tests.rows import rows

SKILLS = {"best": 0.95, "good": 0.6, "poor": 0.1}


@pytest.fixture(scope="module")
def records_made() -> Made:
    """Three models of known skill on 40 seeds."""
    return made(SKILLS, 40)


@pytest.fixture(scope="module")
def board(records_made: Made) -> Board:
    """Its board."""
    return records_made.board()


def keep(records_made: Made, wanted: Callable[[str], bool]) -> Board:
    """The board of some of the protocols."""
    kept = {protocol: js for protocol, js in records_made.judgments.items() if wanted(protocol)}
    return replace(records_made, judgments=kept).board()


def column(part: Table, key: str) -> dict[str, float]:
    """Model -> value."""
    return dict(zip(part.frame["model"], part.frame[key].tolist(), strict=True))


def test_models_are_ranked_by_bradley_terry_at_the_largest_n(board: Board) -> None:
    """Skill decides the order; human took part in UniEval only and is listed without a rank."""
    assert board.main.frame["model"].tolist() == ["best", "good", "poor", HUMAN]
    assert board.main.frame["rank"].tolist()[:3] == [1, 2, 3]
    assert pd.isna(board.main.frame["rank"].iloc[3])
    assert [part.protocol.n for part in board.arenas] == [16, 8]
    assert board.main.note.startswith("Ranked by Bradley–Terry @16.")


def test_the_board_agrees_with_the_records(records_made: Made, board: Board) -> None:
    """Every number of the main table is what one counts in the judgments."""
    n = len(records_made.seeds)
    for model in SKILLS:
        said = [j.verdict for j in records_made.judgments["unieval"] if j.contestants == (model,)]
        readable = [v for v in said if v is not None]
        passing = [v for v in readable if v == "No" or int(v) > 8]
        assert column(board.main, "success_n8")[model] == pytest.approx(
            len(passing) / len(readable)
        )
        assert column(board.main, "coverage_unieval")[model] == len(readable) / n
        shown = [j for j in records_made.judgments["gteval"] if model in j.contestants]
        lost = [j for j in shown if j.verdict == str(j.contestants.index(model) + 1)]
        readable_gt = [j for j in shown if j.verdict is not None]
        assert column(board.main, "gteval_win_or_tie")[model] == pytest.approx(
            1 - len(lost) / len(readable_gt)
        )
    for part in board.parts:
        for row in part.table.records if "tie" in part.table.frame else ():
            assert row["win"] + row["tie"] + row["lose"] == pytest.approx(1, abs=2e-4)
            assert row["win"] + row["tie"] == pytest.approx(row["win_or_tie"], abs=2e-4)
    for one in board.every_table:
        for column_ in one.columns:
            if column_.role == "value" and (ends := one.ends(column_.key)):
                known = one.frame[column_.key].notna()
                low, high = (one.frame.loc[known, end.key] for end in ends)
                value = one.frame.loc[known, column_.key]
                assert ((low <= value + 1e-9) & (value <= high + 1e-9)).all(), column_.key
                assert (high - low > 1e-5).all(), column_.key
            elif column_.kind in ("rate", "rating") and column_.role == "value":
                plain = ("elo_run_std", "observed", "expected", "lead")
                bounds = column_.key.startswith("surviving_if_stopped")
                assert bounds or column_.key in plain, column_.key
    assert column(board.main, "complete")["best"] == n


def test_unreadable_verdicts_are_missing() -> None:
    """Ten of twelve verdicts lost: the rate is of two, and low and high leave room for ten."""
    some = made({"a": 0.9, "b": 0.1}, 20, unreadable=0.0, arena=())
    eligible = [s.id for s in some.seeds if len(s.utterances) >= 4][:6]
    seeds = [s for s in some.seeds if s.id in eligible]
    said = [
        judgment("arena-n16", s, shown, "2" if i == 0 else None)
        for i, s in enumerate(eligible)
        for shown in (("a", "b"), ("b", "a"))
    ]
    part = build(
        seeds, some.dialogues, {"arena-n16": said}, seed_set="s", judge="j", elo=QUICK
    ).arenas[0]
    row = part.table.records[0]
    assert (row["readable"], row["missing"]) == (2, 10)
    assert (row["win"], row["win_low"], row["win_high"]) == (0.5, 0.0546, 0.9454)
    assert (part.comparisons.win.n, part.comparisons.missing) == (2, 10)


def test_a_table_of_many_rows_is_in_its_own_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The json of the board says where they are."""
    board = made({"a": 0.9, "b": 0.5, "c": 0.1}, 8).board()
    before = json.loads(files(board)["leaderboard.json"])
    assert len(before["tables"]["arena-n16-pairs"]["rows"]) == 6
    monkeypatch.setattr(board_files, "MOST_IN_JSON", 5)
    written = files(board)
    after = json.loads(written["leaderboard.json"])
    assert after["tables"]["arena-n16-pairs"]["rows"] == []
    assert after["rows"] == before["rows"]
    assert "The 6 rows of arena-n16-pairs are in its own file alone." in after["notes"]
    assert len(str(written["arena-n16-pairs.csv"]).splitlines()) == 7


def test_of_many_models_only_pairs_that_were_compared_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each once, the better one first; sums, ratings and squares of rates are the same."""
    records = made({"a": 0.9, "b": 0.5, "c": 0.1}, 10)
    for name in ("arena-n8", "arena-n16"):
        kept = [j for j in records.judgments[name] if set(j.contestants) != {"a", "c"}]
        records.judgments[name] = kept
    all_pairs = records.board()
    for one in (arena, results):
        monkeypatch.setattr(one, "MOST_LISTED", 2)
    some = records.board()
    frame = all_pairs.arenas[0].pairs.frame
    order = [*all_pairs.main.frame["model"]].index
    once = frame["model_a"].map(order) < frame["model_b"].map(order)
    there = frame[frame["win_rate"].notna() & once].reset_index(drop=True)
    pd.testing.assert_frame_equal(some.arenas[0].pairs.frame, there)
    assert len(there) == 2
    for key in ("win_rate", "win_or_tie_rate"):
        squares = [one.arenas[0].matrix(key) for one in (some, all_pairs)]
        pd.testing.assert_frame_equal(*squares, atol=1e-12)
    assert some.arenas[0].comparisons == all_pairs.arenas[0].comparisons
    pd.testing.assert_frame_equal(some.main.frame, all_pairs.main.frame)


@pytest.mark.usefixtures("pictures")
def test_a_board_of_too_many_games_says_how_many_shuffles_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In its signature, its note and its table's; not where somebody named them."""
    monkeypatch.setattr(elo, "MOST_GAMES", 1)
    compared = Comparisons.of([("a", "b", r) for r in (1.0, 0.5, 0.0, 1.0)] * 10)
    fewer = of_votes(compared, "some", EloSettings.of_board(), per_pair=40)
    assert "|elo:k32,10x10|" in fewer.table.signature
    told = "of 10 shuffles a run instead of 1,000, as each takes 40 games among so many models"
    assert told in fewer.table.note
    (note,) = (note for note in fewer.notes if told in note)
    error = np.sqrt((fewer.table.frame["elo_run_std"].mean() ** 2) / 10)
    assert f"(standard error of a rating: {error:.1f} points)" in note
    named = of_votes(compared, "some", EloSettings(shuffles=15, runs=2), per_pair=40)
    assert "|elo:k32,15x2|" in named.table.signature
    monkeypatch.setattr(arena, "MOST_ELO", 1)
    unplayed = of_votes(compared, "some", EloSettings.of_board(), per_pair=40)
    assert unplayed.table.signature == fewer.table.signature.replace("|elo:k32,10x10|seed:0", "")
    assert not [key for key in unplayed.table.frame if "elo" in key]
    assert (unplayed.quoted, unplayed.ratings, "Elo" in unplayed.table.note) == ([], {}, False)
    assert not any("shuffles" in note for note in named.notes)


def test_a_pair_that_was_not_judged_is_missing_not_absent() -> None:
    """a-b and b-c were compared, a-c never: it stands in the matrix without a rate."""
    some = made({"a": 0.9, "b": 0.5, "c": 0.1}, 20, arena=(8,), unreadable=0.0)
    said = [j for j in some.judgments["arena-n8"] if set(j.contestants) != {"a", "c"}]
    part = replace(some, judgments={"arena-n8": said}).board().arenas[0]
    assert np.isnan(part.matrix("win_rate").loc["a", "c"])
    coverage = column(part.table, "coverage")
    assert (coverage["a"], coverage["b"]) == (0.5, 1.0)


def test_pairs_with_more_comparisons_are_weighed() -> None:
    """Pairs with more comparisons do not move rates and Elo; the board says how many there are.

    A verdict beyond the share of the whole that is said; the whole Arena says nothing of it.
    """
    some = made({"a": 0.9, "b": 0.5, "c": 0.1}, 36, arena=(8,), unreadable=0.0)
    said = some.judgments["arena-n8"]
    whole = replace(some, judgments={"arena-n8": said}).board().arenas[0]
    assert "data:full|" in whole.table.signature
    ends = {j.seed_id for j in said[:30]}
    part = [j for j in said if j.seed_id in ends or set(j.contestants) == {"a", "b"}]
    found = replace(some, judgments={"arena-n8": part}).board()
    arena = found.arenas[0]
    against = {(row["model_a"], row["model_b"]): row for row in arena.pairs.records}
    wins = [against["a", other]["win_rate"] for other in ("b", "c")]
    rows = {row["model"]: row for row in arena.table.records}
    assert rows["a"]["win"] == pytest.approx(sum(wins) / 2, abs=1e-4)
    assert rows["a"]["win"] + rows["a"]["tie"] + rows["a"]["lose"] == pytest.approx(1, abs=2e-4)
    per_pair = max(row["readable"] + row["missing"] for row in against.values())
    assert arena.elo.per_pair == per_pair
    assert f",{per_pair}-a-pair|" in arena.table.signature
    assert re.search(r"\|data:\d+\.\d%\|", arena.table.signature)
    (note,) = [note for note in found.notes if "Not every comparison" in note]
    assert note.endswith("Elo and the rates count every pair alike.")
    assert "each of whom counts alike" in arena.table.note


def test_what_has_no_readable_verdict_is_last_or_left_out(records_made: Made) -> None:
    """A model stays in the tables, unrated; an Arena is left out with a sentence."""
    some = made({"a": 0.9, "b": 0.5, "mute": 0.99}, 20, arena=(8,), unreadable=0.0)
    said = [
        judgment(j.protocol, j.seed_id, j.contestants, None) if "mute" in j.contestants else j
        for j in some.judgments["arena-n8"]
    ]
    part = replace(some, judgments={"arena-n8": said}).board().arenas[0]
    last = part.table.records[-1]
    assert (last["model"], last["rank"], last["elo"], last["coverage"]) == ("mute", None, None, 0.0)
    assert list(part.ratings) == ["a", "b"]
    said = [
        judgment(j.protocol, j.seed_id, j.contestants, None)
        for j in records_made.judgments["arena-n8"]
    ]
    found = replace(records_made, judgments={"arena-n8": said}).board()
    assert found.arenas == []
    assert "Arena at N = 8 has no readable verdict, so no rating." in found.notes


def test_without_an_arena_unieval_or_gteval_ranks(records_made: Made) -> None:
    """Success at the largest N, people unranked; else win + tie against people."""
    found = keep(records_made, lambda protocol: protocol == "unieval")
    assert found.main.frame["model"].tolist() == [HUMAN, "best", "good", "poor"]
    assert found.main.frame["rank"].tolist()[1:] == [1, 2, 3]
    assert found.main.written("rank")[0] == "–"
    assert found.arenas == []
    assert any("botchat judge arena --seeds made-up --judge rules" in n for n in found.notes)
    found = keep(records_made, lambda protocol: protocol == "gteval")
    assert found.main.frame["model"].tolist() == ["best", "good", "poor"]
    assert found.of(Place) == []
    assert [note.split(" was not judged")[0] for note in found.notes[:2]] == ["Arena", "UniEval"]


def test_without_judgments_there_are_lengths(records_made: Made) -> None:
    """Nothing judged is a board of three sentences and lengths, not a crash."""
    found = keep(records_made, lambda protocol: False)
    assert len(found.notes) == 3
    assert found.coverage is None
    assert found.main.frame["rank"].isna().all()
    assert found.main.signature.startswith("botchat:")
    assert set(files(found)) == {
        "leaderboard.csv", "leaderboard.md", "leaderboard.json", "lengths.csv",
        "leaderboard.meta.json", "lengths.meta.json",
    }  # fmt: skip


def test_judgments_on_others_are_passed_over_and_other_verdicts_stop_the_board(
    records_made: Made, board: Board
) -> None:
    """Seeds, models, protocols not given change nothing."""
    more = {
        **records_made.judgments,
        "unieval": [
            *records_made.judgments["unieval"],
            judgment("unieval", "S-1", ("gone",), "3"),
            judgment("unieval", "gone", ("best",), "3"),
        ],
    }
    assert files(replace(records_made, judgments=more).board()) == files(board)
    broken = {"arena-n8": [judgment("arena-n8", "S-4", ("best", "good"), "maybe")]}
    seeds = [Seed("S-4", ("a", "b", "c", "d"))]
    with pytest.raises(DataError, match="'maybe'"):
        build(seeds, records_made.dialogues, broken, seed_set="s", judge="j")


def test_success_is_counted_at_the_lengths_that_dialogues_reach() -> None:
    """Dialogues of 9 utterances have success rates at 4 and 8, not at 12 and 16."""
    found = made({"a": 0.9, "b": 0.2}, 10, turns=9, arena=(8,)).board()
    keys = [column.key for column in found.main.headline if column.key.startswith("success")]
    assert keys == ["success_n8", "success_n4", "success_human_length"]


def test_signatures_say_how_numbers_were_made(board: Board, records_made: Made) -> None:
    """With the settings of Elo and Bradley-Terry; several settings are marked, in a note too."""
    assert board.arenas[0].table.signature == (
        "botchat:0.1.0|arena|set:made-up|n:16|judge:rules|prompt:3f9a01bc|orders:2"
        "|elo:k32,4x2|seed:0|data:full|bt:ties0.5,95%,by-seed"
    )
    assert board.main.signature == board.arenas[0].table.signature
    assert len(board.main.signatures) == 5
    other = EloSettings(init=1500, k=4, shuffles=20, runs=1, seed=7)
    rated_otherwise = made({"a": 0.9, "b": 0.1}, 10).board(other)
    assert "|elo:k4,20x1,init1500|seed:7|data:" in rated_otherwise.main.signature
    said = records_made.judgments["unieval"]
    mixed = [msgspec.structs.replace(j, signature=f"{j.signature}|new") for j in said[:3]]
    found = replace(records_made, judgments={"unieval": [*mixed, *said[3:]]}).board()
    (part,) = found.of(Place)
    assert part.table.signature.endswith("|and-1-other-settings")
    assert any("2 different settings" in note for note in found.notes)


def test_json_and_csv_read_back(board: Board) -> None:
    """By plain pandas, to the numbers of its table, beside what made them; no NaN."""
    texts = files(board)
    parts = board.every_table
    assert {f"{part.name}.csv" for part in parts} == {n for n in texts if n.endswith(".csv")}
    for part in parts:
        read = pd.read_csv(io.StringIO(texts[f"{part.name}.csv"]))
        assert list(read.columns) == list(part.frame.columns)
        for key in (c.key for c in part.columns if c.kind != "name"):
            expected = part.frame[key].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
            assert read[key].to_numpy(dtype=float) == pytest.approx(expected, abs=5e-5, nan_ok=True)
        beside = json.loads(texts[f"{part.name}.meta.json"])
        assert beside["signatures"] == list(part.signatures)
        assert [column["key"] for column in beside["columns"]] == list(read.columns)
    whole = json.loads(files(board)["leaderboard.json"], parse_constant=pytest.fail)
    assert whole == json.loads(to_json(as_json(board)))
    assert whole["rows"][0]["elo"] == whole["rows"][0]["elo_n16"]
    assert whole["rows"][-1]["elo"] is None
    assert whole["signature"] == board.main.signature
    assert len(whole["tables"]["arena-n16-pairs"]["rows"]) == 6


@pytest.mark.parametrize(
    ("name", "cell"),
    rows("names_in_csv"),
)
def test_names_in_csv(name: str, cell: str) -> None:
    """A name is one cell that no spreadsheet runs and no comment mark cuts."""
    part = table(
        "t", "T", [Column("model", "M", "name"), Column("x", "X", "rate")],
        [{"model": name, "x": -0.5}], ["s"],
    )  # fmt: skip
    text = WRITERS["csv"](part)
    assert next(csv.DictReader(io.StringIO(text)))["model"] == cell
    assert pd.read_csv(io.StringIO(text), comment="#").iloc[0].tolist() == [cell, -0.5]


def test_markdown_shows_names_as_they_are() -> None:
    """Nothing in a name ends its cell or becomes markup; rates are in percent."""
    part = table(
        "t", "T", [Column("model", "M", "name"), Column("x", "X", "rate")],
        [{"model": "a|b `c` <script> [d](e)\n*f*", "x": 0.125}, {"model": "g"}], ["sig|nature"],
    )  # fmt: skip
    lines = WRITERS["md"](part).splitlines()
    assert lines[4].startswith(r"| a\|b \`c\` &lt;script> \[d\](e) \*f\* |")
    assert lines[4].endswith(" 12.5 |")
    assert lines[5].endswith(" – |")
    assert lines[-1].rstrip() == "`sig|nature`"


def test_labels_are_short_and_different() -> None:
    """Long ones lose their middle, alike ones get a mark; no control or direction marks."""
    alike = ["a" * 40 + "x" + "b" * 40, "a" * 40 + "y" + "b" * 40]
    found = labels([*alike, "short", "通" * 40, "short"])
    assert len(set(found)) == 4
    assert found[2] == found[4] == "short"
    assert max(map(len, found)) <= 34
    assert found[3].count("通") == 16
    for name in ("a\nb\x00c", "a\u202eb\u2066c", "a\u2028b\tc"):
        assert elided(name, 34) == "a b c"
