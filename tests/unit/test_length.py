"""Ratings at equal length: somebody else's regression, honest intervals, what is not known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from botchat.errors import MissingDataError
from botchat.ratings.bradley_terry import BradleyTerrySettings, fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.length import fit_at_equal_length

ELO = 400 / math.log(10)


def drawn(
    n_models: int,
    n_seeds: int,
    worth: float,
    rng: np.random.Generator,
    ties: float = 0.2,
) -> tuple[Comparisons, np.ndarray]:
    """Every pair on every seed in both orders, won by strength and length; the differences.

    Each model has a length of its own, and each of its dialogues differs from that. Verdicts of one
    seed hang together through Gumbel noise for each model on it.
    """
    strength = np.linspace(0.7, -0.7, n_models)
    length = rng.normal(size=n_models) + rng.normal(size=(n_seeds, n_models))
    utility = strength + length * worth + rng.gumbel(size=(n_seeds, n_models))
    low, high = np.triu_indices(n_models, 1)
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    result = (utility[:, first] > utility[:, second]).astype(float).ravel()
    result[rng.random(len(result)) < ties] = 0.5
    comparisons = Comparisons(
        tuple(f"m{i:02}" for i in range(n_models)),
        np.tile(first, n_seeds),
        np.tile(second, n_seeds),
        result,
        np.repeat(np.arange(n_seeds), len(first)),
    )
    return comparisons, (length[:, first] - length[:, second]).ravel()


def matrix(comparisons: Comparisons, differences: np.ndarray) -> np.ndarray:
    """The regression's matrix: first less second, the last model left out, then length."""
    n, m = len(comparisons), len(comparisons.models)
    models = np.zeros((n, m))
    models[np.arange(n), comparisons.first] = 1
    models[np.arange(n), comparisons.second] -= 1
    return np.column_stack([models[:, :-1], differences])


def sklearn_fit(comparisons: Comparisons, differences: np.ndarray) -> np.ndarray:
    """Coefficients of scikit-learn's logistic regression, each tie half a win twice."""
    x = matrix(comparisons, differences)
    won = comparisons.result
    rows = np.vstack([x, x])
    weight = np.concatenate([won, 1 - won])
    said = np.concatenate([np.ones(len(x)), np.zeros(len(x))])
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(rows[weight > 0], said[weight > 0], weight[weight > 0])
    return model.coef_[0]


def dense_errors(comparisons: Comparisons, differences: np.ndarray) -> np.ndarray:
    """Clustered standard errors by the textbook's formula on whole matrices."""
    x = matrix(comparisons, differences)
    rate = 1 / (1 + np.exp(-x @ sklearn_fit(comparisons, differences)))
    bread = np.linalg.inv(x.T @ (x * (rate * (1 - rate))[:, None]))
    slopes = x * (comparisons.result - rate)[:, None]
    seeds = np.unique(comparisons.cluster)
    by_seed = np.array([slopes[comparisons.cluster == seed].sum(axis=0) for seed in seeds])
    covariance = bread @ by_seed.T @ by_seed @ bread * len(seeds) / (len(seeds) - 1)
    m = len(comparisons.models)
    centred = np.eye(m)[:, :-1] - 1 / m
    return ELO * np.sqrt(np.diag(centred @ covariance[: m - 1, : m - 1] @ centred.T))


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_equals_scikit_learn(ties):
    """Ratings equal an unpenalised logistic regression's to 1e-6 Elo."""
    comparisons, differences = drawn(6, 60, 0.5, np.random.default_rng(1), ties)
    result = fit_at_equal_length(comparisons, differences)
    strength = np.append(sklearn_fit(comparisons, differences)[:-1], 0)
    np.testing.assert_allclose(result.rating, 1000 + ELO * (strength - strength.mean()), atol=1e-6)
    assert result.warning == ""


def test_intervals_are_the_textbook_sandwich():
    """Standard errors of ratings equal the formula on whole matrices."""
    comparisons, differences = drawn(5, 40, 0.5, np.random.default_rng(2))
    result = fit_at_equal_length(comparisons, differences)
    np.testing.assert_allclose(result.std_error, dense_errors(comparisons, differences), rtol=1e-5)
    assert result.n_clusters == 40


def test_length_without_a_worth_of_its_own_is_left_out():
    """It never differs, or is the model's: the ratings and covariances of the plain fit."""
    comparisons, _ = drawn(5, 40, 0.5, np.random.default_rng(3))
    by_model = np.array([3.0, 1.0, 4.0, 2.0, 5.0])
    of_model = by_model[comparisons.first] - by_model[comparisons.second]
    for data in (comparisons, replace(comparisons, cluster=None)):
        plain = fit(data)
        for differences in (np.zeros(len(data)), of_model):
            found = fit_at_equal_length(data, differences)
            np.testing.assert_allclose(found.rating, plain.rating, atol=1e-7)
            np.testing.assert_allclose(found.covariance, plain.covariance, atol=1e-6)
            assert found.rank.tolist() == plain.rank.tolist()


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_mirrored_orders_and_units_change_nothing(seed):
    """Orders may be swapped with their differences, and length measured in any unit."""
    rng = np.random.default_rng(seed)
    comparisons, differences = drawn(4, 20, 0.5, rng)
    swap = rng.random(len(comparisons)) < 0.5
    mirrored = Comparisons(
        comparisons.models,
        np.where(swap, comparisons.second, comparisons.first),
        np.where(swap, comparisons.first, comparisons.second),
        np.where(swap, 1 - comparisons.result, comparisons.result),
        comparisons.cluster,
    )
    plain = fit_at_equal_length(comparisons, differences)
    other = fit_at_equal_length(mirrored, 1000 * np.where(swap, -differences, differences))
    np.testing.assert_allclose(other.rating, plain.rating, atol=1e-6)
    np.testing.assert_allclose(other.covariance, plain.covariance, atol=1e-6)


def test_a_model_that_wins_everything_is_said():
    """No finite maximum of the models: the plain fit's warning, finite numbers, wide intervals."""
    rng = np.random.default_rng(7)
    games = [("a", b, 1.0) for b in "bc" for _ in range(20)]
    games += [("b", "c", float(score)) for score in rng.integers(0, 2, 40)]
    result = fit_at_equal_length(Comparisons.of(games), rng.normal(size=80))
    assert "a won every comparison with the others" in result.warning
    assert np.isfinite(result.rating).all()
    assert result.high[0] - result.low[0] > 400


def test_length_that_decides_everything_has_finite_ratings():
    """Where the longer always wins, what length is worth has no finite estimate."""
    longer = np.random.default_rng(8).normal(size=60)
    games = [("a", "b", float(d > 0)) for d in longer]
    result = fit_at_equal_length(Comparisons.of(games), longer)
    assert np.isfinite([*result.rating, *result.low, *result.high]).all()
    assert result.n_clusters is None


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from((1.0, 0.5, 0.0))),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 10**6),
)
def test_few_comparisons_give_finite_ratings(games, seed):
    """However little there is to go by, ratings and intervals are finite."""
    games = [game for game in games if game[0] != game[1]] or [("a", "b", 1.0)]
    differences = np.random.default_rng(seed).integers(-2, 3, len(games)).astype(float)
    result = fit_at_equal_length(Comparisons.of(games), differences)
    assert np.isfinite([*result.rating, *result.low, *result.high]).all()


def test_settings_carry_over():
    """Mean, scale, the reading of ties and the confidence are those of Bradley-Terry."""
    comparisons, differences = drawn(4, 40, 0.5, np.random.default_rng(9))
    chosen = BradleyTerrySettings(mean=0, scale=4, tie_weight=0, confidence=0.5)
    decided = comparisons.result != 0.5
    result = fit_at_equal_length(comparisons, differences, chosen)
    same = fit_at_equal_length(comparisons.only(decided), differences[decided])
    np.testing.assert_allclose(result.rating, (same.rating - 1000) / 100, atol=1e-6)


def test_nothing_to_rate_is_refused():
    """As by the plain fit."""
    with pytest.raises(MissingDataError, match="no comparison to rate"):
        fit_at_equal_length(Comparisons.of([]), np.empty(0))
