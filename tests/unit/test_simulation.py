"""Simulated designs on boards that are known in full."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from botchat.errors import ConfigError
from botchat.pipeline.simulate import simulate
from botchat.ratings import simulation
from botchat.ratings.adaptive import AdaptiveSettings, Target
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings
from botchat.ratings.rate_table import comparisons_from_rates
from botchat.ratings.simulation import Population

QUICK = EloSettings(shuffles=50, runs=1)
TABLE = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023" / "arena_n8.csv"
SMALL = """model_a,model_b,win_rate,win_or_tie_rate
a,b,0.5,0.8
a,c,0.7,0.9
a,d,0.8,0.95
b,c,0.45,0.85
b,d,0.7,0.9
c,d,0.5,0.8
"""


def table(per_pair=60):
    """A small rate table's comparisons."""
    return comparisons_from_rates(SMALL, per_pair, "small.csv")


@pytest.mark.parametrize("per_pair", [60, 7])
def test_a_table_is_dealt_anew_and_stays_the_same_table(per_pair):
    """Dealing moves results between a pair's seeds and orders; its counts and ratings stay."""
    recorded = table(per_pair)
    population = Population.of(recorded)
    dealt = population.deal(np.random.default_rng(0))
    assert population.dealt
    assert len(dealt.comparisons) == len(recorded)
    assert not np.array_equal(dealt.result, population.result, equal_nan=True)
    for one in (population, dealt):
        np.testing.assert_allclose(one.truth, fit(recorded).rating, atol=1e-9)


def test_a_finished_board_keeps_its_seeds():
    """Comparisons with seeds are used as they are; missing cells are not invented."""
    made = Comparisons.of(
        [("a", "b", 1.0), ("b", "a", 0.5), ("a", "c", 0.0), ("c", "b", 1.0)],
        ["s1", "s1", "s2", "s1"],
    )
    population = Population.of(made)
    assert not population.dealt
    assert population.deal(np.random.default_rng(0)) is population
    assert len(population.comparisons) == 4
    assert population.seeds_of(0, 1).tolist() == [0]
    assert population.seeds_of(0, 2).tolist() == [1]
    np.testing.assert_allclose(population.truth, fit(made).rating)


def test_swaps_count_pairs_beyond_the_gap():
    """Only pairs that are more than the gap apart in truth can be in the wrong order; ties are."""
    truth = np.array([100.0, 60.0, 50.0])
    ratings = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.0, 1.0, 0.0]])
    assert simulation.swaps(ratings, truth, 0).tolist() == [0, 3, 2, 1]
    assert simulation.swaps(ratings, truth, 10).tolist() == [0, 2, 1, 1]
    assert simulation.swaps(ratings, truth, 45).tolist() == [0, 1, 1, 0]
    np.testing.assert_allclose(simulation.order_kept(ratings[:2], truth), [1, -1])
    assert simulation.order_kept(np.zeros((1, len(truth))), truth) == [0]


def test_a_run_is_its_number():
    """The same number gives the same run, another one another; a budget is kept to."""
    population = Population.of(table())
    chosen = AdaptiveSettings(target=None, budget=100, draws=200)
    one, same, other = (simulation.simulate(population, chosen, run) for run in (3, 3, 4))
    assert one.made == 100
    assert one.population == 360
    assert np.array_equal(one.rating, same.rating)
    assert not np.array_equal(one.rating, other.rating)
    elsewhere = simulation.simulate(population, replace(chosen, seed=1), 3)
    assert not np.array_equal(one.rating, elsewhere.rating)


def test_processes_change_no_digit(tmp_path):
    """Every run has its own random stream: workers only share the work out."""
    path = tmp_path / "small.csv"
    path.write_text(SMALL, "utf-8")
    found = [
        simulate(
            rates=path,
            per_pair=60,
            target=Target(20, 0),
            budgets=[90],
            runs=2,
            elo=QUICK,
            n_jobs=n,
        )
        for n in (1, 2)
    ]
    assert found[0].rows == found[1].rows
    designs = [(row["design"], row["budget"]) for row in found[0].rows]
    assert designs == [
        ("full", None),
        ("adaptive", None),
        ("uniform", None),
        ("adaptive", 90),
        ("uniform", 90),
    ]
    full, *others = found[0].rows
    assert full["calls_mean"] == 360
    assert full["share"] == full["success"] == full["kendall_mean"] == 1
    assert all(0 < row["share"] <= 1 for row in others)
    assert others[2]["calls_mean"] == 90


def test_the_published_table_needs_less_than_a_tenth():
    """BotChat's N = 8 Arena: the default target takes about 8.5 % of 40,404, uniformly far more."""
    found = simulate(rates=TABLE, per_pair=444, runs=4, elo=QUICK, n_jobs=1)
    by_design = {row["design"]: row for row in found.rows}
    adaptive, uniform = by_design["adaptive"], by_design["uniform"]
    assert by_design["full"]["calls_mean"] == 40_404
    assert adaptive["share"] < 0.1
    assert uniform["calls_mean"] > 1.1 * adaptive["calls_mean"]
    assert adaptive["success"] == 1
    assert adaptive["stated"] >= 0.95
    assert adaptive["kendall_mean"] > 0.9


def test_every_model_placed_in_turn(tmp_path):
    """``add="all"`` leaves each model out once, and puts the rows together."""
    path = tmp_path / "small.csv"
    path.write_text(SMALL, "utf-8")
    found = simulate(
        rates=path,
        per_pair=200,
        target=Target(20, 0),
        budgets=[150],
        add="all",
        runs=2,
        elo=QUICK,
        n_jobs=1,
    )
    *rows, over_all = found.rows
    assert [row["added"] for row in rows] == ["a", "b", "c", "d"]
    assert over_all["added"] == "all"
    assert over_all["runs"] == 8
    assert over_all["share"] == pytest.approx(150 / 600)
    assert over_all["success"] == pytest.approx(np.mean([row["success"] for row in rows]))
    assert "added" in found.shown[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "either --rates"),
        ({"rates": TABLE, "seed_set": "sample"}, "either --rates"),
        ({"rates": TABLE, "runs": 0}, "runs 0"),
        ({"rates": TABLE, "add": "nobody"}, "--add nobody: not on this board; it has Baichuan2"),
    ],
)
def test_what_cannot_be_simulated(arguments, said):
    """One line that says what to give."""
    with pytest.raises(ConfigError, match=said):
        simulate(**arguments)
