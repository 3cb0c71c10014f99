"""Bradley-Terry ratings: the right maximum, honest intervals, clear words where there is none."""

from __future__ import annotations

import math

import evalica
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from botchat.errors import ConfigError, MissingDataError
from botchat.ratings.bradley_terry import (
    BradleyTerrySettings,
    fit,
)
from botchat.ratings.comparisons import Comparisons, distinct

ELO = 400 / math.log(10)

rows = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.sampled_from((1.0, 0.5, 0.0))),
    min_size=4,
    max_size=60,
).map(lambda games: [game for game in games if game[0] != game[1]])


def rounds(wins: dict[tuple[str, str], int]) -> Comparisons:
    """Comparisons from numbers of wins of the first over the second."""
    return Comparisons.of([(*pair, 1.0) for pair, n in wins.items() for _ in range(n)])


def drawn(n_models: int, n_seeds: int, rng: np.random.Generator) -> tuple[Comparisons, np.ndarray]:
    """Every pair on every seed in both orders, with verdicts that hang together, and the truth.

    On each seed each model has a utility: its strength plus Gumbel noise. The better utility wins
    both orders. Each verdict alone is Bradley-Terry; those of one seed are far from independent.
    """
    strength = np.linspace(0.8, -0.8, n_models)
    utility = strength + rng.gumbel(size=(n_seeds, n_models))
    low, high = np.triu_indices(n_models, 1)
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    won = utility[:, first] > utility[:, second]
    cluster = np.repeat(np.arange(n_seeds), len(first))
    names = tuple(f"m{i:02}" for i in range(n_models))
    first, second = np.tile(first, n_seeds), np.tile(second, n_seeds)
    comparisons = Comparisons(names, first, second, won.ravel().astype(float), cluster)
    return comparisons, 1000 + ELO * (strength - strength.mean())


def unclustered(comparisons: Comparisons) -> Comparisons:
    """The same without its seeds."""
    return Comparisons(
        comparisons.models, comparisons.first, comparisons.second, comparisons.result
    )


def evalica_ratings(comparisons: Comparisons) -> np.ndarray:
    """Evalica's Bradley-Terry on the Elo scale with mean 1000, in the order of models."""
    verdict = {1.0: evalica.Winner.X, 0.5: evalica.Winner.Draw, 0.0: evalica.Winner.Y}
    names = np.array(comparisons.models)
    scores = evalica.bradley_terry(
        list(names[comparisons.first]),
        list(names[comparisons.second]),
        [verdict[result] for result in comparisons.result],
        tolerance=1e-14,
        limit=100_000,
    ).scores
    ratings = 400 * np.log10([scores[name] for name in names])
    return ratings + 1000 - ratings.mean()


def test_american_league_1987():
    """The seven baseball teams of Agresti's Categorical Data Analysis have his estimates."""
    teams = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
    wins = [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ]
    result = fit(
        rounds(
            {
                (a, b): n
                for a, row in zip(teams, wins, strict=True)
                for b, n in zip(teams, row, strict=True)
                if n
            }
        )
    )
    logit = dict(zip(result.models, result.rating / ELO, strict=True))
    published = [1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0]
    ours = [logit[team] - logit["Baltimore"] for team in teams]
    np.testing.assert_allclose(ours, published, atol=5e-4)


@settings(deadline=None)
@given(rows)
def test_equals_evalica(data):
    """Where a finite maximum exists, ratings equal evalica's to 1e-6 Elo."""
    assume(data)
    result = fit(Comparisons.of(data))
    assume(not result.warning)
    np.testing.assert_allclose(result.rating, evalica_ratings(Comparisons.of(data)), atol=1e-6)


def test_intervals_cover_where_seeds_tie_verdicts_together():
    """Clustered 95 % intervals hold the truth in 92 to 98 % of cases; unclustered ones do not."""
    rng = np.random.default_rng(1)
    clustered, independent = [], []
    for _ in range(200):
        comparisons, truth = drawn(6, 60, rng)
        for result, cover in (
            (fit(comparisons), clustered),
            (fit(unclustered(comparisons)), independent),
        ):
            cover.append((result.low <= truth) & (truth <= result.high))
    assert 0.92 <= np.mean(clustered) <= 0.98
    assert np.mean(independent) < 0.9


def resampled(data, rng):
    """As many seeds drawn with replacement; comparisons where seeds are not known."""
    if data.cluster is None:
        rows = rng.integers(len(data), size=len(data))
    else:
        of_seed = np.split(np.argsort(data.cluster), np.cumsum(np.bincount(data.cluster))[:-1])
        rows = np.concatenate([of_seed[one] for one in rng.choice(len(of_seed), len(of_seed))])
    return Comparisons(data.models, data.first[rows], data.second[rows], data.result[rows])


@pytest.mark.parametrize("tie_weight", [0.0, 2.0])
def test_bootstrap_agrees_with_sandwich(tie_weight):
    """Refits to resampled seeds scatter as the clustered sandwich says; likewise without seeds."""
    rng = np.random.default_rng(2)
    decided, _ = drawn(6, 200, rng)
    result = np.where(rng.random(len(decided)) < 0.3, 0.5, decided.result)
    comparisons = Comparisons(
        decided.models, decided.first, decided.second, result, decided.cluster
    )
    s = BradleyTerrySettings(tie_weight=tie_weight)
    for data in (comparisons, unclustered(comparisons)):
        result = fit(data, s)
        ratings = np.array([fit(resampled(data, rng), s).rating for _ in range(100)])
        np.testing.assert_allclose(ratings.std(axis=0), result.std_error, rtol=0.25)
        assert (np.abs(ratings.mean(axis=0) - result.rating) < result.std_error / 3).all()


def test_what_has_no_finite_rating_is_said():
    """Never compared, even through others, or won everything: named, finite, wide."""
    result = fit(rounds({("a", "b"): 3, ("b", "a"): 2, ("c", "d"): 2, ("d", "c"): 2}))
    assert "a, b and c, d were never compared with each other" in result.warning
    assert np.isfinite([*result.rating, *result.low, *result.high]).all()
    result = fit(rounds({("a", "b"): 50, ("a", "c"): 50, ("b", "c"): 5, ("c", "b"): 5}))
    assert "a won every comparison with the others" in result.warning
    assert "b, c lost every comparison with the others" in result.warning
    assert np.isfinite([*result.rating, *result.low, *result.high]).all()
    assert result.rating.argmax() == 0
    assert result.high[0] - result.low[0] > 400
    with pytest.raises(MissingDataError, match="no comparison to rate"):
        fit(Comparisons.of([]))


def test_one_seed_is_said():
    """Comparisons on one seed cannot show how seeds differ; the result says what it did."""
    comparisons, _ = drawn(4, 30, np.random.default_rng(0))
    lone = Comparisons(
        comparisons.models,
        comparisons.first,
        comparisons.second,
        comparisons.result,
        np.zeros_like(comparisons.first),
    )
    result = fit(lone)
    assert "one seed" in result.warning
    assert result.n_clusters is None
    np.testing.assert_allclose(result.covariance, fit(unclustered(lone)).covariance)


def test_ranks_are_groups_and_places_may_rest_on_ties():
    """Unless a difference's interval leaves zero out; a place on ties moves without them."""
    even = {(a, b): 20 for a in "abc" for b in "abc" if a != b}
    assert fit(rounds(even)).rank.tolist() == [1, 1, 1]
    ladder = {(a, b): 900 if a < b else 100 for a in "abc" for b in "abc" if a != b}
    assert fit(rounds(ladder)).rank.tolist() == [1, 2, 3]
    decided = [("a", "z", 1.0)] * 65 + [("a", "z", 0.0)] * 35
    decided += [("b", "z", 1.0)] * 30 + [("b", "z", 0.0)] * 10
    ties = [("b", "z", 0.5)] * 60
    comparisons = Comparisons.of(decided + ties)
    both_won = [game for a, b, _ in ties for game in ((a, b, 1.0), (b, a, 1.0))]
    for weight, others in ((0.0, []), (2.0, both_won)):
        read = fit(comparisons, BradleyTerrySettings(tie_weight=weight)).rating
        np.testing.assert_allclose(read, fit(Comparisons.of(decided + others)).rating, atol=1e-9)


@given(st.lists(st.integers(0, 12) | st.integers(0, 10**12), max_size=30))
def test_distinct_labels_are_what_numpy_finds(labels):
    """Small numbers, which are counted, and large ones, which are sorted."""
    values = np.array(labels, dtype=np.intp)
    for ours, theirs in zip(distinct(values), np.unique(values, return_inverse=True), strict=True):
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mean": math.inf}, "mean inf"),
        ({"scale": 0}, "scale 0"),
        ({"tie_weight": -1}, "tie weight -1"),
        ({"confidence": 1}, "confidence 1"),
    ],
)
def test_settings_that_define_no_rating(wrong, said):
    """A setting outside its range is refused with its value."""
    with pytest.raises(ConfigError, match=said):
        BradleyTerrySettings(**wrong)
