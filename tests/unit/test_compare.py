"""Two boards beside each other: which model fell, paired by seed, and how often wrongly so."""

import json
import math
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.stats import binomtest

from botchat.boards.changes import p_fell
from botchat.boards.files import by_seed
from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.metrics.statistics import holm
from botchat.pipeline.compare import compare as compare_boards
from botchat.pipeline.compare import read_board
from botchat.protocols.verdicts import NOT_SAID, UNTOLD
from botchat.workspace.folder import Workspace
from tests.boards import make_records
from tests.rows import rows

SIGNATURE = "v|unieval|n:16|judge:a|prompt:x"


def firsts(n_pass: int, n: int = 100, at: int = 8) -> list[int | None]:
    """First AI utterances of n dialogues, of which the first ones pass."""
    # 0: no AI utterance.
    return [0] * n_pass + [at] * (n - n_pass)


def write_board(
    folder: Path,
    models: dict[str, list[int | None]],
    signature: str = SIGNATURE,
    seeds: str = "s",
    n: int = 16,
    same: tuple[str, ...] = (),
    topics: dict[str, str] | None = None,
) -> str:
    """A board of models with these first AI utterances; dialogues of ``same`` never change."""
    data = {
        "rows": [{"model": name, f"success_n{n}": 0.5, "success_n4": 0.5} for name in models],
        "signatures": [signature],
        "n": n,
        "by_seed": {
            name: {f"{seeds}{i}": first for i, first in enumerate(each)}
            for name, each in models.items()
        },
        "topics": topics or {},
        "dialogues": {name: "same" if name in same else f"{name} {folder}" for name in models},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "leaderboard.json").write_text(json.dumps(data))
    return str(folder)


def compare(tmp_path: Path, before: dict, after: dict, **more):
    """The comparison of two such boards."""
    kept = {key: more.pop(key) for key in ("same", "topics") if key in more}
    old = write_board(tmp_path / "old", before, **kept)
    new = write_board(tmp_path / "new", after, **kept)
    return compare_boards(Workspace(tmp_path), old, new, **more)


def test_a_fall_is_mcnemars_exact_test_of_pairs(tmp_path):
    """Of success at the largest N and at 4, with Holm over both; changes have intervals."""
    before = {"a": firsts(60), "b": firsts(50)}
    differences = compare(tmp_path, before, {"a": firsts(51), "b": firsts(50)})
    p = binomtest(0, 9, alternative="less").pvalue
    rows = {row["model"]: row for row in differences.data["rows"]}
    assert rows["a"]["p"] == pytest.approx(4 * p, abs=1e-4)  # of four tests the smallest
    assert rows["b"]["p"] == 1
    assert (rows["a"]["change_n16"], rows["b"]["change_n16"]) == (pytest.approx(-0.09), 0)
    assert rows["a"]["change_n16_low"] < -0.09 < rows["a"]["change_n16_high"] < 0
    assert rows["a"]["change_n4"] == 0
    assert differences.data["fell"] == ["a"]
    assert str(differences.failure) == "1 of 2 models fell"
    assert any(line.startswith("a fell, p ") for line in differences.lines)
    assert differences.data["tested"] == ["a", "b"]
    tested = "Tested: a, b; success at N = 16 and 4, paired by seed. A model fell where p (Holm)"
    assert any(line.startswith(tested) for line in differences.lines)
    strict = compare(tmp_path, before, {"a": firsts(51), "b": firsts(50)}, alpha=0.001)
    assert (strict.data["fell"], strict.failure) == ([], None)
    assert "no model fell" in strict.lines


@pytest.mark.parametrize(
    ("before", "after", "fell"),
    [
        # At 16 all fail on both boards; at 4 they did not.
        (firsts(0, at=8), firsts(0, at=3), True),
        (firsts(0, at=3), firsts(0, at=8), False),
        # Verdicts that cannot be read are no failures, and others are paired still.
        (firsts(60), [None] * 60 + firsts(0, 40), False),
        (firsts(60), [*firsts(40, 60), *[None] * 40], True),
        # An accusation without a place fails at the largest N, and is unknown at 4.
        (firsts(60), [NOT_SAID] * 100, True),
        ([8] * 100, [NOT_SAID] * 100, False),
        (firsts(60), [UNTOLD] * 100, False),
    ],
)
def test_what_counts_as_a_fall(tmp_path, before, after, fell):
    """Success at either N, on seeds with a verdict on both boards."""
    differences = compare(tmp_path, {"a": before}, {"a": after})
    assert bool(differences.data["fell"]) == fell


def test_who_is_on_one_board_alone_is_named(tmp_path):
    """Gone, and new."""
    boards = [{"a": firsts(80), name: firsts(10)} for name in ("old", "young")]
    differences = compare(tmp_path, *boards)
    assert {"gone: old", "new: young"} <= {*differences.lines}
    assert str(differences.failure) == "not tested: old, not on the second board any more"


def test_models_with_the_same_dialogues_and_bots_are_not_tested(tmp_path):
    """Unless a bot is named; a gate that tested nothing although something changed fails."""
    before = {"a": firsts(60), "b": firsts(60), "bot:parrot": firsts(60)}
    after = {"a": firsts(40), "b": firsts(40), "bot:parrot": firsts(40)}
    differences = compare(tmp_path, before, after, same=("b",))
    assert (differences.data["fell"], differences.data["unchanged"]) == (["a"], ["b"])
    assert "b is unchanged: nothing to test" in differences.lines
    named = compare(tmp_path, before, after, same=("b",), models=["bot:parrot"])
    assert named.data["fell"] == ["bot:parrot"]
    nothing = compare(tmp_path, {"a": [None] * 9}, {"a": [None] * 9})
    assert str(nothing.failure).startswith("nothing was tested: no changed model has UniEval")
    unchanged = compare(tmp_path, before, after, same=tuple(before))
    assert (unchanged.failure, unchanged.data["tested"]) == (None, [])
    alone = compare(tmp_path, before, after, same=("b",), models=["b"])
    assert (alone.failure, alone.lines[-1]) == (None, "b is unchanged: nothing to test")
    once, thrice = (compare(tmp_path, before, after, models=["a"] * k) for k in (1, 3))
    assert once.data["rows"] == thrice.data["rows"]


@pytest.mark.parametrize(
    ("models", "seeds", "topics", "n_found"),
    [(1, 20, 20, 37), (5, 20, 20, 16), (5, 120, 120, 98), (1, 120, 20, 37)],
)
def test_what_a_gate_finds(tmp_path, models, seeds, topics, n_found):
    """With these models, and seeds or, where these are fewer, topics."""
    board = {f"m{i}": firsts(seeds // 2, seeds) for i in range(models)}
    of_seed = {f"s{i}": f"t{i % topics}" for i in range(seeds)}
    line = compare(tmp_path, board, board, topics=of_seed).lines[-2]
    assert line == (
        f"This gate finds a fall of 30 points, from 65 to 35 %, in about {n_found} of 100 runs."
    )


@pytest.mark.parametrize(("change", "message"), rows("boards_that_differ"))
def test_boards_that_do_not_measure_the_same(tmp_path, change, message):
    """Other seeds, judges, prompts or N are refused."""
    old = write_board(tmp_path / "old", {"a": firsts(80), "gone": firsts(10)})
    new = write_board(tmp_path / "new", {"a": firsts(40), "more": firsts(90)}, **change)
    workspace = Workspace(tmp_path)
    with pytest.raises(DataError, match=f"differ: {message}; make both alike"):
        compare_boards(workspace, old, new)


def test_what_cannot_be_compared_is_an_error(tmp_path):
    """With the value, and what there is."""
    workspace = Workspace(tmp_path)
    old = write_board(tmp_path / "1", {"a": firsts(80)})
    new = write_board(tmp_path / "2", {"b": firsts(50)})
    write_board(tmp_path / "leaderboards" / "small", {"a": firsts(80)})
    with pytest.raises(MissingDataError, match=r"no board 'smal' \(did you mean 'small'\?\)"):
        compare_boards(workspace, "smal", old)
    with pytest.raises(ConfigError, match=r"--model A: not on both boards \(did you mean 'a'\?\)"):
        compare_boards(workspace, old, old, models=["A"])
    with pytest.raises(DataError, match="no model is on both"):
        compare_boards(workspace, old, new)
    with pytest.raises(ConfigError, match="--alpha 5: give a rate between 0 and 1"):
        compare_boards(workspace, old, old, alpha=5)
    (tmp_path / "3.json").write_text('{"rows": [{"bt_n20": 1}], "signatures": []}')
    assert read_board(workspace, str(tmp_path / "3.json")).n == 16  # of an older version
    for text in ("[]", '{"rows": 1}', "{"):
        (tmp_path / "3.json").write_text(text)
        with pytest.raises(DataError, match="is not what leaderboard writes"):
            compare_boards(workspace, str(tmp_path / "3.json"), old)


def test_models_that_did_not_change_are_rarely_blamed():
    """Five models of 100 dialogues, 1,000 comparisons: false alarms at most 5 % and their noise."""
    rng, rates, alarms, caught = np.random.default_rng(0), (0.15, 0.3, 0.5, 0.7, 0.9), 0, 0
    seeds = np.arange(100)
    for _ in range(1000):
        changes = [np.diff(rng.random((2, 100)) < rate, axis=0)[0] * 1.0 for rate in rates]
        changes = [rng.choice([-1, 1], 100) * change for change in changes]
        alarms += min(holm([p_fell(change, seeds) for change in changes])) <= 0.05
        # The same with a model that did fall, from 70 to 40 %: Holm still holds for the others.
        worse = (rng.random(100) < 0.4) - (rng.random(100) < 0.7).astype(float)
        caught += holm([p_fell(change, seeds) for change in (*changes[1:], worse)])[-1] <= 0.05
    assert 0.005 < alarms / 1000 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert caught / 1000 > 0.9


def test_seeds_of_one_topic_are_one_case(tmp_path):
    """Nine seeds that fell tell as much as their two topics; the change is the same."""
    before, after = {"a": firsts(60)}, {"a": firsts(51)}
    alone = compare(tmp_path, before, after)
    topics = {f"s{i}": "cars" if i % 2 else "food" for i in range(100)}
    together = compare(tmp_path, before, after, topics=topics)
    assert (alone.data["fell"], together.data["fell"]) == (["a"], [])
    (by_seed_row,), (row,) = alone.data["rows"], together.data["rows"]
    assert row["change_n16"] == by_seed_row["change_n16"]
    assert row["p"] == pytest.approx(2 * 0.25)  # of two topics, the smaller of two tests
    assert row["change_n16_high"] > by_seed_row["change_n16_high"]


def test_a_board_writes_what_pairs_it_with_a_later_one():
    """The first AI utterance of each seed; a dialogue that broke off is unknown."""
    records = make_records({"a": 0.8, "b": 0.4}, 12, arena=(), unreadable=0.0)
    judgments = records.judgments["unieval"]
    verdicts = [("Yes", 16), ("No", 16), ("No", 6), ("5", 6), (None, 16), ("Undecided", 16)]
    places = [i for i, j in enumerate(judgments) if j.contestants == ("a",)]
    for place, (verdict, n_shown) in zip(places, verdicts, strict=False):
        judgments[place] = msgspec.structs.replace(judgments[place], verdict=verdict, shown=n_shown)
    data = by_seed(records.board(), records.dialogues)
    assert [*data["by_seed"]["a"].values()][:6] == [NOT_SAID, 0, None, None, None, UNTOLD]
    assert data["n"] == 16
    assert data["by_seed"].keys() == data["dialogues"].keys() == {"a", "b"}
    changed = {**records.dialogues, "a": records.dialogues["b"]}
    other = by_seed(replace(records, dialogues=changed).board(), changed)["dialogues"]
    assert other["a"] == other["b"] == data["dialogues"]["b"] != data["dialogues"]["a"]
