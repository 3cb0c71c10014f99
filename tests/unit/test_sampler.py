"""The adaptive design: asks each thing once, stops when it should, does the same again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.errors import ConfigError
from botchat.ratings import full_board
from botchat.ratings.adaptive import ELO, AdaptiveDesign, AdaptiveSettings, Target
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.full_board import estimate
from botchat.ratings.rate_table import comparisons_from_rates

TABLE = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023" / "arena_n8.csv"
QUICK = AdaptiveSettings(draws=200)


def board(strength, n_seeds, rng, ties=0.4, unreadable=0.0):
    """Everything that can be compared: result of i shown before j on a seed, (m, m, seeds)."""
    m = len(strength)
    result = np.full((m, m, n_seeds), np.nan)
    for i, j in zip(*np.nonzero(~np.eye(m, dtype=bool)), strict=True):
        won = rng.random(n_seeds) < 1 / (1 + np.exp(strength[j] - strength[i]))
        result[i, j] = np.where(rng.random(n_seeds) < ties, 0.5, won)
    result[rng.random(result.shape) < unreadable] = np.nan
    return result


def play(result, chosen, known=None, added=None):
    """A whole run: the design at its end, and all that was asked, as (first, second, seed)."""
    m, _, n_seeds = result.shape
    models = tuple(f"m{i:02}" for i in range(m))
    design = AdaptiveDesign(models, lambda i, j: np.arange(n_seeds), chosen, known, added)
    asked = []
    while (batch := design.ask()) is not None:
        asked += list(zip(batch.first, batch.second, batch.seed, strict=True))
        design.tell(result[batch.first, batch.second, batch.seed])
    return design, asked


def everything(result):
    """All readable comparisons of a board."""
    first, second, seed = np.nonzero(~np.isnan(result))
    models = tuple(f"m{i:02}" for i in range(len(result)))
    return Comparisons(models, first, second, result[first, second, seed], seed)


worlds = st.tuples(
    st.integers(2, 6), st.integers(1, 12), st.floats(0, 0.3), st.integers(0, 1 << 30)
)


@settings(max_examples=20)
@given(worlds, st.integers(1, 300), st.sampled_from(["adaptive", "uniform"]), st.booleans())
def test_nothing_twice_and_no_more_than_there_is(world, budget, design, until):
    """Never the same pair, seed and order twice; never more than budget or population."""
    m, n_seeds, unreadable, seed = world
    rng = np.random.default_rng(seed)
    result = board(rng.normal(size=m), n_seeds, rng, unreadable=unreadable)
    target = Target(20, 0) if until else None
    chosen = replace(QUICK, target=target, budget=budget, design=design, seed=seed)
    design, asked = play(result, chosen)
    state = design.state
    assert len(set(asked)) == len(asked) == state.made <= min(budget, state.population)
    assert state.population == m * (m - 1) * n_seeds
    assert all(first != second for first, second, _ in asked)
    assert state.finished
    if state.finished == "target reached":
        assert state.probability >= 0.95 - 1e-9
        assert state.swaps == 0
    assert np.isfinite(state.rating).all()
    assert (state.error >= 0).all()
    if not until:
        assert state.made == min(budget, state.population)


@settings(max_examples=8)
@given(worlds, st.integers(0, 200))
def test_a_replayed_run_goes_on_as_if_it_had_not_stopped(world, cut):
    """What is asked depends on settings and results only: replay gives the same batches."""
    m, n_seeds, unreadable, seed = world
    rng = np.random.default_rng(seed)
    result = board(rng.normal(size=m), n_seeds, rng, unreadable=unreadable)
    chosen = replace(QUICK, target=None, budget=200, seed=seed)
    whole, asked = play(result, chosen)
    # A run with a smaller budget is the same run, stopped earlier.
    stopped, before = play(result, replace(chosen, budget=max(1, cut)))
    again, repeated = play(result, chosen)
    assert repeated == asked
    assert np.array_equal(again.state.rating, whole.state.rating)
    assert len(before) == stopped.state.made <= max(1, cut)


def test_start_is_a_few_of_each_pair_in_balanced_orders():
    """Every pair begins with its own seeds, both orders as often, about a tenth asked twice."""
    m, first = 14, 4
    result = board(np.linspace(1, -1, m), 222, np.random.default_rng(0))
    design = AdaptiveDesign(
        [f"m{i}" for i in range(m)], lambda i, j: np.arange(222), AdaptiveSettings(first=first)
    )
    batch = design.ask()
    pair = np.minimum(batch.first, batch.second) * m + np.maximum(batch.first, batch.second)
    assert (np.unique(pair, return_counts=True)[1] == first).all()
    swapped = batch.first > batch.second
    assert 0.4 < swapped.mean() < 0.6
    seeds = [set(batch.seed[pair == p]) for p in np.unique(pair)]
    twice = 1 - sum(map(len, seeds)) / len(batch)
    assert 0.03 < twice < 0.15
    assert len({frozenset(one) for one in seeds}) == len(seeds)
    design.tell(result[batch.first, batch.second, batch.seed])
    assert design.state.made == first * m * (m - 1) // 2


def test_close_pairs_get_more():
    """Comparisons go where the order is in doubt: not to a model that beats all others."""
    strength = np.array([2.5, 0.05, 0.0, -0.05])
    result = board(strength, 300, np.random.default_rng(1), ties=0.2)
    _, asked = play(result, AdaptiveSettings(target=None, budget=600))
    far = sum(0 in pair[:2] for pair in asked)
    assert far < 0.35 * len(asked)


def test_uniform_serves_pairs_in_equal_turn():
    """The other design stops by the same rule and has all pairs equally often, give or take 1."""
    result = board(np.array([1.0, 0.5, 0.0, -0.5]), 100, np.random.default_rng(2))
    _, asked = play(result, AdaptiveSettings(target=None, budget=137, design="uniform"))
    counts = np.zeros((4, 4), dtype=int)
    for first, second, _ in asked:
        counts[min(first, second), max(first, second)] += 1
    of_pairs = counts[np.triu_indices(4, 1)]
    assert np.ptp(of_pairs) <= 1


def test_everything_compared_is_the_plain_fit():
    """With all comparisons made the ratings are the board's own, without error."""
    result = board(np.array([0.8, 0.2, -0.3, -0.7]), 12, np.random.default_rng(3), unreadable=0.1)
    design, asked = play(result, AdaptiveSettings(target=None, budget=10_000))
    state = design.state
    assert len(asked) == result.shape[2] * 12 == state.made
    assert state.finished == "everything compared"
    np.testing.assert_allclose(state.rating, fit(everything(result)).rating, atol=1e-6)
    np.testing.assert_allclose(state.error, 0, atol=1e-3)
    assert state.swaps == 0
    assert state.probability == 1


def test_errors_are_honest():
    """On boards drawn with misfit and ties the estimates miss by what their errors say."""
    rng = np.random.default_rng(5)
    z = []
    for run in range(16):
        m, n_seeds = 6, 100
        strength = rng.normal(0, 0.5, m)
        misfit = np.triu(rng.normal(0, 0.15, (m, m)), 1)
        result = board(np.zeros(m), n_seeds, rng)
        for i, j in zip(*np.nonzero(~np.eye(m, dtype=bool)), strict=True):
            logit = strength[i] - strength[j] + misfit[i, j] - misfit[j, i]
            decided = result[i, j] != 0.5
            won = rng.random(n_seeds) < 1 / (1 + np.exp(-logit))
            result[i, j] = np.where(decided, won, 0.5)
        state = play(result, replace(QUICK, target=None, budget=500, seed=run))[0].state
        z.append((state.rating - fit(everything(result)).rating) / state.error)
    assert 0.7 < np.mean(np.square(z)) < 1.35


def test_other_seeds_move_the_whole_board_as_far_as_is_said():
    """A dialogue that came out well wins all its pairs on that seed; from a part and from all."""
    rng, m, n_seeds = np.random.default_rng(6), 5, 40
    population, sides = 2.0 * n_seeds * (1 - np.eye(m)), np.nonzero(~np.eye(m, dtype=bool))
    moved, said = [], []
    for run in range(40):
        quality = np.linspace(-0.8, 0.8, m)[:, None] + rng.normal(0, 1.2, (m, n_seeds))
        result = np.full((m, m, n_seeds), np.nan)
        apart = quality[sides[0]] - quality[sides[1]] + rng.logistic(size=(len(sides[0]), n_seeds))
        result[sides] = np.where(np.abs(apart) < 0.5, 0.5, apart > 0)
        whole = everything(result)
        moved.append(fit(whole).rating)
        if run % 3:  # what is said varies less
            continue
        design = play(result, replace(QUICK, target=None, budget=400, seed=run))[0]
        more = full_board.by_other_seeds(estimate(whole, population), whole, population)
        apart = design.elsewhere.error**2 - design.state.error**2
        said.append([np.diag(more) * ELO**2, apart])
    real = np.var(moved, axis=0, ddof=1).mean()
    np.testing.assert_allclose(np.mean(said, axis=(0, 2)), real, rtol=0.2)


def seen_apart(misfit, seed, m=12, n_seeds=200):
    """A judge who sees differences with logistic noise, and ties below 1; pairs are off by misfit.

    All comparisons, and the number of each two models.
    """
    rng = np.random.default_rng(seed)
    strength, off = rng.normal(0, 0.8, m), np.triu(rng.normal(0, misfit, (m, m)), 1)
    apart = strength[:, None] - strength + off - off.T
    edge = apart[:, :, None] + rng.logistic(size=(m, m, n_seeds))
    result = np.where(np.abs(edge) < 1, 0.5, edge > 0)
    result[np.arange(m), np.arange(m)] = np.nan
    return everything(result), 2.0 * n_seeds * (1 - np.eye(m))


def test_a_pair_that_ties_less_does_not_hide_its_misfit():
    """Pairs further apart than their models' strengths tie less; that is misfit, and found."""
    found = [estimate(*seen_apart(0.3, seed)).latent.misfit for seed in range(6)]
    # With thresholds of the pairs' own it was 0.24.
    assert 0.27 < np.mean(found) < 0.36
    none = [estimate(*seen_apart(0.0, seed)).latent.misfit for seed in range(6)]
    assert np.mean(none) < 0.08


def test_few_comparisons_do_not_say_that_there_is_no_misfit():
    """Of ten a pair nothing can be told, and something usual is assumed; more would tell."""
    comparisons, population = seen_apart(0.0, 0)
    few = comparisons.only(comparisons.cluster < 5)
    assert 0.18 < estimate(few, population).latent.misfit < 0.4


def test_the_published_table_takes_less_than_a_tenth():
    """BotChat's N = 8 Arena: the default target asks about 8.5 % of 40,404, and keeps its promise.

    The table has no seeds: each pair's results are dealt to them and to both orders.
    """
    whole = comparisons_from_rates(TABLE.read_text("utf-8"), 444, TABLE.name)
    low, high, result = whole.oriented()
    m = len(whole.models)
    cells = np.full((m, m, 222), np.nan)
    for i, j in zip(*np.triu_indices(m, 1), strict=True):
        dealt = np.random.default_rng([i, j]).permutation(result[(low == i) & (high == j)])
        cells[i, j], cells[j, i] = dealt[:222], 1 - dealt[222:]
    state = play(cells, AdaptiveSettings())[0].state
    truth = fit(whole).rating
    ahead = truth[:, None] - truth
    wrong = (ahead > 10) & (state.rating[:, None] <= state.rating)
    assert state.population == 40_404
    assert state.made < 0.1 * state.population
    assert state.probability >= 0.95
    assert wrong.sum() <= 2


def test_added_model_is_placed():
    """Only comparisons with the added model are asked; it lands where it belongs."""
    strength = np.array([0.9, 0.3, 0.0, -0.4, -0.8])
    result = board(strength, 100, np.random.default_rng(6), ties=0.3)
    others = result.copy()
    others[1] = others[:, 1] = np.nan
    known = everything(others)
    design, asked = play(result, AdaptiveSettings(target=None, budget=300), known, added=1)
    truth = fit(everything(result)).rating
    state = design.state
    assert all(1 in pair[:2] for pair in asked)
    assert state.population == 2 * 100 * 4
    assert abs(state.rating[1] - truth[1]) < 3 * state.error[1] + 1
    assert np.argsort(-state.rating).tolist() == np.argsort(-truth).tolist()
    assert state.error[[0, 2, 3, 4]].max() < state.error[1]
    assert state.warning == ""


@pytest.mark.parametrize(
    ("strength", "said"),
    [(9.0, "m00 won all of its"), (-9.0, "m00 lost all of its"), (4.0, "nearest to m00 is")],
)
def test_extreme_anchors_are_warned_of(strength, said):
    """A model beyond all others is placed with a word of caution."""
    result = board(np.array([strength, 0.2, 0.0, -0.2]), 60, np.random.default_rng(7), ties=0)
    others = result.copy()
    others[0] = others[:, 0] = np.nan
    design, _ = play(result, replace(QUICK, target=None, budget=100), everything(others), added=0)
    assert said in design.state.warning


def test_many_models_start_with_some_opponents_each():
    """With many models the start is not all pairs, yet every model has its share."""
    m = 80
    design = AdaptiveDesign([f"m{i}" for i in range(m)], lambda i, j: np.arange(9), QUICK)
    batch = design.ask()
    assert len(batch) == 30 * m
    counts = np.bincount(np.concatenate([batch.first, batch.second]), minlength=m)
    assert counts.min() > 25


def test_estimate_is_blind_to_names_and_orders():
    """Relabelled models get the same numbers; mirrored comparisons change nothing."""
    result = board(np.array([0.5, 0.1, -0.2, -0.6]), 20, np.random.default_rng(8))
    some = everything(result)
    kept = np.random.default_rng(9).random(len(some)) < 0.3
    some = some.only(kept)
    population = 40.0 * (1 - np.eye(4))
    plain, place = estimate(some, population), np.array([2, 0, 3, 1])
    sides = place[some.second], place[some.first]
    other = estimate(Comparisons(some.models, *sides, 1 - some.result, some.cluster), population)
    np.testing.assert_allclose(other.strength[place], plain.strength, atol=1e-9)
    np.testing.assert_allclose(other.covariance[np.ix_(place, place)], plain.covariance, atol=1e-12)


def test_orders_that_agree_are_found():
    """Where a judge says the same in both orders the correlation of orders goes to 1, else to 0."""
    rng = np.random.default_rng(10)
    same = board(np.zeros(4), 200, rng)
    for i, j in zip(*np.triu_indices(4, 1), strict=True):
        same[j, i] = 1 - same[i, j]
    population = 400.0 * (1 - np.eye(4))
    assert estimate(everything(same), population).agreement > 0.9
    assert estimate(everything(board(np.zeros(4), 200, rng)), population).agreement < 0.15


def test_one_comparison_of_a_pair_lowers_what_gains_say():
    """The gain of a pair is what the variance falls by when its next result becomes known."""
    result = board(np.array([0.4, 0.0, -0.4]), 40, np.random.default_rng(11))
    all_of_it = everything(result)
    kept = all_of_it.cluster < 12
    population = 80.0 * (1 - np.eye(3))
    before = estimate(all_of_it.only(kept), population)
    weight = np.zeros((3, 3))
    weight[0, 1] = weight[1, 0] = 1
    gain = before.next.gains(weight)
    more = kept | (
        (np.minimum(all_of_it.first, all_of_it.second) == 0)
        & (np.maximum(all_of_it.first, all_of_it.second) == 1)
        & (all_of_it.cluster < 14)
    )
    after = estimate(all_of_it.only(more), population)
    fall = before.variance[0, 1] - after.variance[0, 1]
    assert 0.5 < fall / (4 * gain[0, 1]) < 1.5
    assert gain[0, 1] > gain[0, 2] > 0


def test_what_cannot_be_sampled_is_refused():
    """One model, models without common seeds, results out of turn, a board that is none."""
    pair, no_seeds = ["a", "b"], np.zeros(0, dtype=np.intp)
    with pytest.raises(ConfigError, match="1 models to compare"):
        AdaptiveDesign(["a"], lambda i, j: no_seeds, QUICK)
    with pytest.raises(ConfigError, match="no seed in common"):
        AdaptiveDesign(pair, lambda i, j: no_seeds, QUICK)
    design = AdaptiveDesign(pair, lambda i, j: np.arange(5), QUICK)
    with pytest.raises(ValueError, match="0 asked for"):
        design.tell(np.ones(1))
    batch = design.ask()
    with pytest.raises(ValueError, match="not been told"):
        design.ask()
    with pytest.raises(ValueError, match=r"not 1, 0\.5 or 0"):
        design.tell(np.full(len(batch), 0.7))
    known = Comparisons.of([("a", "b", 1.0)], ["s"])
    for wrong in (None, 0):
        with pytest.raises(ValueError, match="known comparisons"):
            AdaptiveDesign(pair, lambda i, j: np.arange(5), QUICK, known, wrong)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Target(gap=-1), "gap -1"),
        (lambda: Target(swaps=-1), "swaps -1"),
        (lambda: Target(confidence=1), "confidence 1"),
        (lambda: AdaptiveSettings(target=None), "nothing says when to stop"),
        (lambda: AdaptiveSettings(budget=0), "budget 0"),
        (lambda: AdaptiveSettings(uniform=1.5), "uniform 1.5"),
    ],
)
def test_settings_out_of_range(make, said):
    """Refused with the value."""
    with pytest.raises(ConfigError, match=said):
        make()


@pytest.mark.parametrize(("m", "said"), [(12, "2066426fe37a"), (30, "21ebb028c61f")])
def test_a_faster_way_chooses_the_same(m, said):
    """What is asked in four batches after the first, as it was before the choice got faster."""
    rng = np.random.default_rng(m)
    result = board(rng.normal(0, 0.6, m), 20, rng)
    chosen = AdaptiveSettings(first=2, batch=60, draws=400)
    design = AdaptiveDesign([f"m{i}" for i in range(m)], lambda *_: np.arange(20), chosen)
    asked = []
    for _ in range(5):
        batch = design.ask()
        asked += [batch.first, batch.second, batch.seed]
        design.tell(result[batch.first, batch.second, batch.seed])
    told = np.concatenate(asked).astype("<i8").tobytes()
    assert hashlib.sha256(told).hexdigest()[:12] == said


def test_a_system_of_pairs_is_solved():
    """With conjugate gradients as with all of its matrix, where one model met all others too."""
    rng = np.random.default_rng(12)
    for low, high in (np.triu_indices(30, 1), (np.zeros(29, dtype=int), np.arange(1, 30))):
        none = np.zeros(0)
        seen = full_board.SeenPairs(low, high, none, none, none, none)
        weight, wanted = rng.uniform(0, 200, len(low)), rng.normal(size=30)
        own = seen.sums(weight, 30) + 6.25
        whole = seen.table(weight, 30) + np.diag(own)
        found = full_board._solved(seen, weight, own, wanted)
        np.testing.assert_allclose(found, np.linalg.solve(whole, wanted), rtol=1e-10)
