"""Style as a coefficient: somebody else's regression, honest intervals, what is not known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from botchat.errors import MissingError
from botchat.ratings.bradley_terry import BradleyTerrySettings, fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.style import StyleResult, fit_style

ELO = 400 / math.log(10)
FEATURES = ("length", "questions")


def drawn(
    n_models: int,
    n_seeds: int,
    worth: tuple[float, ...],
    rng: np.random.Generator,
    ties: float = 0.2,
) -> tuple[Comparisons, np.ndarray]:
    """Every pair on every seed in both orders, won by strength and style; the differences.

    Each model has a style of its own, and each of its dialogues differs from that. Verdicts of one
    seed hang together through Gumbel noise for each model on it.
    """
    k = len(worth)
    strength = np.linspace(0.7, -0.7, n_models)
    style = rng.normal(size=(n_models, k)) + rng.normal(size=(n_seeds, n_models, k))
    utility = strength + style @ np.array(worth) + rng.gumbel(size=(n_seeds, n_models))
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
    return comparisons, (style[:, first] - style[:, second]).reshape(-1, k)


def matrix(comparisons: Comparisons, style: np.ndarray) -> np.ndarray:
    """The regression's matrix: first less second, the last model left out, then style."""
    n, m = len(comparisons), len(comparisons.models)
    models = np.zeros((n, m))
    models[np.arange(n), comparisons.first] = 1
    models[np.arange(n), comparisons.second] -= 1
    return np.hstack([models[:, :-1], style])


def sklearn_fit(comparisons: Comparisons, differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratings and coefficients of scikit-learn's logistic regression, each tie half a win twice."""
    style = differences / np.sqrt((differences**2).mean(axis=0))
    x = matrix(comparisons, style)
    won = comparisons.result
    rows = np.vstack([x, x])
    weight = np.concatenate([won, 1 - won])
    said = np.concatenate([np.ones(len(x)), np.zeros(len(x))])
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(rows[weight > 0], said[weight > 0], weight[weight > 0])
    m = len(comparisons.models)
    strength = np.append(model.coef_[0, : m - 1], 0)
    return 1000 + ELO * (strength - strength.mean()), ELO * model.coef_[0, m - 1 :]


def dense_errors(comparisons: Comparisons, differences: np.ndarray, result: StyleResult):
    """Clustered standard errors by the textbook's formula on whole matrices."""
    style = differences / result.scale
    x = matrix(comparisons, style)
    theta = (result.adjusted.rating - 1000) / ELO
    beta = np.concatenate([theta[:-1] - theta[-1], result.coefficient / ELO])
    rate = 1 / (1 + np.exp(-x @ beta))
    bread = np.linalg.inv(x.T @ (x * (rate * (1 - rate))[:, None]))
    slopes = x * (comparisons.result - rate)[:, None]
    seeds = np.unique(comparisons.cluster)
    by_seed = np.array([slopes[comparisons.cluster == seed].sum(axis=0) for seed in seeds])
    covariance = bread @ by_seed.T @ by_seed @ bread * len(seeds) / (len(seeds) - 1)
    m = len(comparisons.models)
    centred = np.eye(m)[:, :-1] - 1 / m
    of_models = centred @ covariance[: m - 1, : m - 1] @ centred.T
    return ELO * np.sqrt(np.diag(of_models)), ELO * np.sqrt(np.diag(covariance)[m - 1 :])


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_equals_scikit_learn(ties):
    """Ratings and coefficients equal an unpenalised logistic regression's to 1e-6 Elo."""
    comparisons, differences = drawn(6, 60, (0.5, -0.3), np.random.default_rng(1), ties)
    result = fit_style(comparisons, differences, FEATURES)
    rating, coefficient = sklearn_fit(comparisons, differences)
    np.testing.assert_allclose(result.adjusted.rating, rating, atol=1e-6)
    np.testing.assert_allclose(result.coefficient, coefficient, atol=1e-6)
    assert result.warning == result.adjusted.warning == ""


def test_intervals_are_the_textbook_sandwich():
    """Standard errors of ratings and coefficients equal the formula on whole matrices."""
    comparisons, differences = drawn(5, 40, (0.5, -0.3), np.random.default_rng(2))
    result = fit_style(comparisons, differences, FEATURES)
    of_models, of_style = dense_errors(comparisons, differences, result)
    np.testing.assert_allclose(result.adjusted.std_error, of_models, rtol=1e-6)
    np.testing.assert_allclose(result.std_error, of_style, rtol=1e-6)
    assert result.adjusted.n_clusters == 40
    np.testing.assert_allclose(
        (result.high - result.low) / 2, 2.0226909 * result.std_error, rtol=1e-5
    )


def test_without_features_it_is_bradley_terry():
    """No feature at all, and the ratings, covariances and groups are those of the plain fit."""
    comparisons, _ = drawn(5, 40, (0.5,), np.random.default_rng(3))
    for data in (comparisons, replace(comparisons, cluster=None)):
        plain = fit(data)
        found = fit_style(data, np.empty((len(data), 0)), ()).adjusted
        np.testing.assert_allclose(found.rating, plain.rating, atol=1e-7)
        np.testing.assert_allclose(found.covariance, plain.covariance, atol=1e-6)
        assert found.rank.tolist() == plain.rank.tolist()


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_mirrored_orders_and_units_change_nothing(seed):
    """Orders may be swapped with their differences, and features measured in any unit."""
    rng = np.random.default_rng(seed)
    comparisons, differences = drawn(4, 20, (0.5, -0.3), rng)
    swap = rng.random(len(comparisons)) < 0.5
    mirrored = Comparisons(
        comparisons.models,
        np.where(swap, comparisons.second, comparisons.first),
        np.where(swap, comparisons.first, comparisons.second),
        np.where(swap, 1 - comparisons.result, comparisons.result),
        comparisons.cluster,
    )
    turned = np.where(swap[:, None], -differences, differences) * [1000, 0.01]
    plain = fit_style(comparisons, differences, FEATURES)
    other = fit_style(mirrored, turned, FEATURES)
    np.testing.assert_allclose(other.adjusted.rating, plain.adjusted.rating, atol=1e-6)
    np.testing.assert_allclose(other.adjusted.covariance, plain.adjusted.covariance, atol=1e-6)
    np.testing.assert_allclose(other.coefficient, plain.coefficient, atol=1e-6)
    np.testing.assert_allclose(other.scale, plain.scale * [1000, 0.01])


def test_features_without_a_worth_of_their_own_are_left_out():
    """One that never differs, one that is the model's, one that repeats another: nan, and said."""
    comparisons, differences = drawn(4, 30, (0.5,), np.random.default_rng(6))
    by_model = np.array([3.0, 1.0, 4.0, 2.0])
    style = np.column_stack(
        [
            np.zeros(len(comparisons)),
            by_model[comparisons.first] - by_model[comparisons.second],
            differences[:, 0],
            2 * differences[:, 0],
        ]
    )
    result = fit_style(comparisons, style, ("flat", "model", "length", "words"))
    alone = fit_style(comparisons, differences, ("length",))
    assert np.isnan(result.coefficient).tolist() == [True, True, False, True]
    assert np.isnan(result.low).tolist() == [True, True, False, True]
    assert result.coefficient[2] == pytest.approx(alone.coefficient[0])
    for said in ("flat never differs", "model goes with the models", "words goes with"):
        assert said in result.warning
    np.testing.assert_allclose(result.adjusted.rating, alone.adjusted.rating, atol=1e-6)


def test_a_model_that_wins_everything_is_said():
    """No finite maximum of the models: the plain fit's warning, finite numbers, wide intervals."""
    rng = np.random.default_rng(7)
    games = [("a", b, 1.0) for b in "bc" for _ in range(20)]
    games += [("b", "c", float(score)) for score in rng.integers(0, 2, 40)]
    result = fit_style(Comparisons.of(games), rng.normal(size=(80, 1)), ("length",))
    assert "a won every comparison with the others" in result.warning
    assert result.adjusted.warning in result.warning
    assert np.isfinite([*result.adjusted.rating, *result.low, *result.high]).all()
    assert result.adjusted.high[0] - result.adjusted.low[0] > 400


def test_style_that_decides_everything_is_said():
    """Where the longer always wins its worth has no finite estimate: a wide one, and a sentence."""
    rng = np.random.default_rng(8)
    longer = rng.normal(size=60)
    games = [("a", "b", float(d > 0)) for d in longer]
    result = fit_style(Comparisons.of(games), longer[:, None], ("length",))
    assert "style explains every comparison" in result.warning
    assert np.isfinite([*result.adjusted.rating, *result.coefficient, *result.std_error]).all()
    assert result.low[0] > 0
    assert result.adjusted.n_clusters is None


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
    """However little there is to go by, ratings and intervals are finite, or it is said why not."""
    games = [game for game in games if game[0] != game[1]] or [("a", "b", 1.0)]
    style = np.random.default_rng(seed).integers(-2, 3, size=(len(games), 2)).astype(float)
    result = fit_style(Comparisons.of(games), style, FEATURES)
    assert np.isfinite([*result.adjusted.rating, *result.adjusted.low, *result.adjusted.high]).all()
    known = np.isfinite(result.coefficient)
    assert (np.isfinite(result.std_error) == known).all()
    assert known.all() or "is not known" in result.warning


def test_settings_carry_over():
    """Mean, scale, the reading of ties and the confidence are those of Bradley-Terry."""
    comparisons, differences = drawn(4, 40, (0.5, -0.3), np.random.default_rng(9))
    chosen = BradleyTerrySettings(mean=0, scale=4, tie_weight=0, confidence=0.5)
    decided = comparisons.result != 0.5
    without = comparisons.only(decided)
    result = fit_style(comparisons, differences, FEATURES, chosen)
    scale = np.sqrt((differences**2).mean(axis=0))
    same = fit_style(without, differences[decided], FEATURES)
    np.testing.assert_allclose(
        result.adjusted.rating, (same.adjusted.rating - 1000) / 100, atol=1e-6
    )
    np.testing.assert_allclose(result.coefficient / scale, same.coefficient / same.scale / 100)
    np.testing.assert_allclose((result.high - result.low) / result.std_error, 2 * 0.681, rtol=1e-3)


def test_differences_must_fit_the_comparisons():
    """Another shape, or a number that is none, is refused; so is having nothing to rate."""
    comparisons, differences = drawn(3, 5, (0.5, 0.1), np.random.default_rng(10))
    for wrong in (differences[:-1], differences[:, :1], np.full_like(differences, np.nan)):
        with pytest.raises(ValueError, match="differences need a finite number"):
            fit_style(comparisons, wrong, FEATURES)
    with pytest.raises(MissingError, match="no comparison to rate"):
        fit_style(Comparisons.of([]), np.empty((0, 1)), ("length",))
