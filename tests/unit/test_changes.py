"""Differences of independent estimates, and how often a gate cries wolf."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import botchat
from botchat.boards.by_seed import by_seed
from botchat.cli.main import main
from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.metrics.changes import Change, Estimate, correlation, holm
from botchat.workspace.folder import Workspace
from tests.boards import made


@cache
def share(k: int, n: int) -> Estimate:
    """A share with Wilson's interval."""
    return Estimate(k / n, *binomtest(k, n).proportion_ci(method="wilson"))


@pytest.mark.parametrize(
    ("after", "before", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_two_shares_have_newcombes_interval(after, before, low, high):
    """Method 10 of Newcombe 1998, Statistics in Medicine 17, table II: a, b and f."""
    change = Change(share(*before), share(*after))
    assert (change.low, change.high) == pytest.approx((low, high), abs=6e-5)


ESTIMATES = st.tuples(*[st.floats(0, 1)] * 3).map(lambda x: Estimate(sorted(x)[1], min(x), max(x)))


@given(ESTIMATES, ESTIMATES)
def test_turned_round_a_change_is_the_other_way(one, other):
    """Its ends change places, and nothing is certain of both directions."""
    change, back = Change(one, other), Change(other, one)
    assert (back.value, back.low, back.high) == pytest.approx(
        (-change.value, -change.high, -change.low)
    )
    assert change.low <= change.value <= change.high
    assert 0 <= change.fell <= 1
    assert max(change.fell, back.fell) >= 0.5


@given(ESTIMATES, ESTIMATES, st.floats(0, 1))
def test_what_goes_together_changes_more_surely(one, other, r):
    """The interval of a change is the narrower the more alike the boards are, and holds it."""
    paired, strangers = Change(one, other, r), Change(one, other)
    assert strangers.low - 1e-12 <= paired.low <= paired.value + 1e-12
    assert paired.value - 1e-12 <= paired.high <= strangers.high + 1e-12


def test_paired_shares_have_newcombes_interval():
    """Method 10 of Newcombe 1998, 2635: 36, 12, 2, 0; a correlation is of the seeds of both."""
    before = np.repeat([1.0, 1.0, 0.0], [36, 2, 12])
    after = np.repeat([1.0, 0.0, 1.0], [36, 2, 12])
    phi = float(np.corrcoef(before, after)[0, 1])
    change = Change(share(38, 50), share(48, 50), phi)
    assert (change.low, change.high) == pytest.approx((0.0569, 0.3404), abs=5e-5)
    assert correlation(before, after) == pytest.approx(phi + 2 / 50)
    one = np.array([0, 1, 0, 1, 1, 0, 1, 0], dtype=float)
    alone = np.full(8, math.nan)
    assert correlation(one, one) == pytest.approx(1 - 2 / 8)
    assert correlation(one, 1 - one) == pytest.approx(-(1 - 2 / 8))
    assert correlation([*one, *alone], [*one, *one]) == pytest.approx((1 - 2 / 8) * math.sqrt(0.5))
    assert correlation(one[:4], one[:4]) == 0
    assert correlation(one, alone) == correlation(one, np.ones(8)) == correlation([], []) == 0


def test_seeds_that_a_model_is_good_at_stay_so():
    """Paired, the interval of a change of nothing holds as often, and is clearly narrower."""
    rng, held, widths = np.random.default_rng(3), 0, []
    for _ in range(400):
        hard = rng.normal(size=60)
        one, other = (hard + 0.5 * rng.normal(size=60) < 0.3 for _ in range(2))
        told = [share(int(said.sum()), 60) for said in (one, other)]
        change, strangers = Change(*told, correlation(one, other)), Change(*told)
        held += change.low <= 0 <= change.high
        widths.append((change.high - change.low) / (strangers.high - strangers.low))
    assert held / 400 > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)
    assert np.mean(widths) < 0.75


def rejected(changes: list[Change]) -> list[bool]:
    """Which of them fell at 5 % over all."""
    return [p <= 0.05 for p in holm([change.fell for change in changes])]


def test_five_models_that_did_not_change_are_blamed_at_most_as_often_as_is_said():
    """Shares of 100 dialogues: false alarms in 1,000 comparisons, against 5 % and their noise."""
    rng, rates, n = np.random.default_rng(0), (0.15, 0.3, 0.5, 0.7, 0.9), 100
    alarms, found = 0, 0
    for _ in range(1000):
        before, after = (rng.binomial(n, rates) for _ in range(2))
        changes = [Change(share(b, n), share(a, n)) for b, a in zip(before, after, strict=True)]
        alarms += any(rejected(changes))
        # The same with one that did fall: it is found, and Holm still holds for the others.
        worse = Change(share(before[3], n), share(rng.binomial(n, 0.4), n))
        found += rejected([*changes[:3], worse, changes[4]])[3]
    noise = 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert 0.02 < alarms / 1000 < 0.05 + noise
    assert found / 1000 > 0.9


def board(folder: Path, rates: dict[str, int], signature: str = "v|unieval|n:16|judge:a") -> str:
    """A board of models that pass so many of 100 dialogues; ratings go with it."""
    rows = [
        {
            "rank": 1, "model": name, "bt_n16": 1000.0 + k, "bt_n16_low": 980.0 + k,
            "bt_n16_high": 1020.0 + k, "success_n16": k / 100,
            "success_n16_low": share(k, 100).low, "success_n16_high": share(k, 100).high,
            "flagged": 1 - k / 100, "flagged_low": 1 - share(k, 100).high,
            "flagged_high": 1 - share(k, 100).low, "why": "x", "success_n8": None,
        }
        for name, k in rates.items()
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    told = {"rows": rows, "signature": signature, "signatures": [signature]}
    (folder / "leaderboard.json").write_text(json.dumps(told))
    return str(folder)


def test_boards_of_the_same_seeds_are_paired(tmp_path, capsys):
    """A fall that is in the noise of strangers shows, where seeds are as hard as before."""
    old = board(tmp_path / "old", {"a": 60, "b": 50})
    new = board(tmp_path / "new", {"a": 52, "b": 50})
    assert botchat.compare(Workspace(tmp_path), old, new).fell == []
    for folder, passed in ((old, {"a": 60, "b": 50}), (new, {"a": 52, "b": 50})):
        values = {name: [int(i < k) for i in range(100)] for name, k in passed.items()}
        said = {"seeds": [f"{i:08x}" for i in range(100)], "values": {"success_n16": values}}
        (Path(folder) / "by-seed.json").write_text(json.dumps(said))
    found = botchat.compare(Workspace(tmp_path), old, new)
    assert found.fell == ["a"]
    assert any(line.startswith("Paired by the 100 ChatSEEDs") for line in found.lines)
    least = "Tested in success_n16: a, b. A fall by 8 points would be found in 80 %"
    assert any(line.startswith(least) for line in found.lines), found.lines
    one, other = (share(k, 100) for k in (60, 52))
    r = correlation(*([int(i < k) for i in range(100)] for k in (60, 52)))
    row = next(row for row in found.whole["rows"] if row["model"] == "a")
    ends = row["success_n16_change_low"], row["success_n16_change_high"]
    assert ends == pytest.approx((Change(one, other, r).low, Change(one, other, r).high), abs=1e-4)
    elsewhere = {"seeds": ["x"] * 100, "values": {}}
    (Path(new) / "by-seed.json").write_text(json.dumps(elsewhere))
    with pytest.raises(DataError, match="they share no ChatSEED"):
        botchat.compare(Workspace(tmp_path), old, new)
    assert botchat.compare(Workspace(tmp_path), old, new, anyway=True).fell == []
    (Path(new) / "by-seed.json").write_text("[1]")
    with pytest.raises(DataError, match=r"by-seed\.json is not what leaderboard writes"):
        botchat.compare(Workspace(tmp_path), old, new)


def test_what_does_not_agree_is_told(tmp_path):
    """Other judges, other contestants; ratings are moved to the mean of those on both."""
    old = board(tmp_path / "1", {"a": 80, "b": 60, "gone": 10})
    new = board(tmp_path / "2", {"a": 50, "b": 30, "come": 90}, "v|unieval|n:16|judge:b")
    with pytest.raises(DataError, match=r"judge:a before, judge:b after; .* --anyway"):
        botchat.compare(Workspace(tmp_path), old, new)
    found = botchat.compare(Workspace(tmp_path), old, new, anyway=True)
    said = "\n".join(found.lines)
    assert found.fell == ["a", "b"]
    for part in (
        "gone: gone",
        "new: come",
        "judge:a before, judge:b after",
    ):
        assert part in said
    for folder in ("1", "2"):
        path = tmp_path / folder / "leaderboard.json"
        path.write_text(path.read_text().replace("success_n16_low", "").replace("flagged_low", ""))
    found = botchat.compare(Workspace(tmp_path), old, new, anyway=True)
    said = "\n".join(found.lines)
    assert "ratings are moved to the same mean" in said
    assert "bt_n16 is relative" in said
    assert [row["bt_n16_change"] for row in found.rows] == [0, 0]
    new = board(tmp_path / "1", {"a": 80, "b": 60})
    alike = "\n".join(botchat.compare(Workspace(tmp_path), new, new).lines)
    assert not any(part in alike for part in ("gone:", "moved", "differently", "relative"))


def test_what_cannot_be_compared_is_said(tmp_path):
    """Which value, and what there is."""
    workspace = Workspace(tmp_path)
    old, new = board(tmp_path / "1", {"a": 80}), board(tmp_path / "2", {"b": 50})
    board(tmp_path / "leaderboards" / "small", {"a": 80})
    with pytest.raises(MissingDataError, match=r"no board 'smal' \(did you mean 'small'\?\)"):
        botchat.compare(workspace, "smal", old)
    with pytest.raises(ConfigError, match=r"--model A: not on both boards \(did you mean 'a'\?\)"):
        botchat.compare(workspace, old, old, models=["A"])
    with pytest.raises(DataError, match="no model is on both"):
        botchat.compare(workspace, old, new)
    with pytest.raises(ConfigError, match="--alpha 5: give a rate between 0 and 1"):
        botchat.compare(workspace, old, old, alpha=5)
    (tmp_path / "3.json").write_text("[]")
    with pytest.raises(DataError, match="is not what leaderboard writes"):
        botchat.compare(workspace, str(tmp_path / "3.json"), old)


GOOD = {4: 0.87, 8: 0.64, 12: 0.41, 16: 0.256}
BLAND = {4: 0.28, 8: 0.2, 12: 0.15, 16: 0.1}
"""Share of dialogues that say nothing of a machine up to each utterance."""


def speak(workspace, model, surviving):
    """Give a model people's dialogues of 40 seeds, with a machine's sentence where it is due."""
    seeds = workspace.seeds("sample")
    ends = [next((n - 1 for n, s in surviving.items() if i >= s * 40), 17) for i in range(40)]
    step, told = (7 if surviving is GOOD else 11), []
    for at, seed in enumerate(seeds):
        others = (said for k in range(1, 9) for said in seeds[at - k].utterances[2:])
        said = [*seed.utterances, *others][:16]
        if (end := ends[step * at % 40]) < 17:
            said[end - 1] = "As an AI language model, I cannot say."
        told.append({"utterances": said})
    path = workspace.root / "told.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in told))
    botchat.import_dialogues(workspace, [path], "sample", model, replace=True)


def test_the_gate_finds_that_a_model_became_bland(tmp_path, capsys):
    """40 seeds, success @16 from 26 to 10 %, @4 from 87 to 28 %; a bot and a model as before."""
    workspace = Workspace(tmp_path)
    botchat.generate(workspace, "sample", ["bot:parrot"], limit=40)
    speak(workspace, "same", GOOD)
    for week, surviving in (("last-week", GOOD), ("this-week", BLAND)):
        speak(workspace, "mine", surviving)
        botchat.judge(workspace, "unieval", "sample", "rules")
        botchat.leaderboard(workspace, "sample", png=False, keep=week)
    place = ["--dir", str(tmp_path)]
    weeks = ["compare", "sample/last-week", "sample/this-week", *place]
    assert main([*weeks, "--gate"]) == 4
    printed = capsys.readouterr()
    assert (
        "fell in survived_n16: mine (false alarms at most 5 % over 1 model together)" in printed.err
    )
    assert "not tested, the same dialogues on both boards: same, bot:parrot" in printed.out
    least = r"Tested in survived_n16: mine\. A fall by [1-3]\.\d utterances would be found in 80 %"
    assert re.search(least, printed.out), printed.out
    assert main([*weeks, "--gate", "--alpha", "0.01"]) == 4
    capsys.readouterr()
    assert main([*weeks, "--gate", "--model", "same"]) == 0
    assert "no model was tested, so --gate passes and says nothing" in capsys.readouterr().out
    assert main(["compare", "sample/last-week", "sample", "--gate", *place]) == 4
    assert main(["compare", "sample/this-week", "sample", "--gate", *place]) == 0


def test_an_accusation_without_a_place_counts_half_way():
    """What each seed says of a model: utterances until one is accused."""
    some = made({"a": 0.8, "b": 0.4}, 12, arena=(), unreadable=0.0)
    of_a = [one for one in some.judgments["unieval"] if one.contestants == ("a",)]
    for i, verdict in enumerate(["Yes", "No", "16", "3"]):
        place = some.judgments["unieval"].index(of_a[i])
        some.judgments["unieval"][place] = msgspec.structs.replace(of_a[i], verdict=verdict)
    told = by_seed(some.board(), some.seeds, {})
    assert len(set(told["seeds"])) == len(some.seeds) == len(told["seeds"])
    assert {*told["values"]} == {"survived_n16"}
    assert {*told["values"]["survived_n16"]} == {"a", "b"}
    assert told["values"]["survived_n16"]["a"][:4] == [(2 + 15) / 2, 16, 15, 2]
