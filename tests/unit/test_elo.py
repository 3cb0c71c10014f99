"""Bootstrap Elo: the paper's definition, though only the end of each shuffle is played."""

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import DataError, MissingDataError
from botchat.ratings import elo as engine
from botchat.ratings.bradley_terry import fit_logits
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings, bootstrap_elo, play

GAMES = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from("fghij"), st.sampled_from((1.0, 0.5, 0.0))),
    min_size=1,
    max_size=40,
)


def plain_elo(comparisons: Comparisons, order: np.ndarray, s: EloSettings) -> np.ndarray:
    """Reference: equation 1 of Appendix A, one game after the other."""
    rating = [s.init] * len(comparisons.models)
    for game in order:
        i, j = comparisons.first[game], comparisons.second[game]
        expected = 1 / (1 + 10 ** ((rating[j] - rating[i]) / s.scale))
        change = s.k * (comparisons.result[game] - expected)
        rating[i] += change
        rating[j] -= change
    return np.array(rating)


def simulated(n_models: int, per_pair: int, seed: int = 0, spread: float = 1.0) -> Comparisons:
    """Every pair ``per_pair`` times, strengths evenly apart, a third of the games tied."""
    rng = np.random.default_rng(seed)
    first, second = (np.repeat(side, per_pair) for side in np.triu_indices(n_models, 1))
    strength = np.linspace(spread, -spread, n_models)
    won = rng.random(len(first)) < 1 / (1 + np.exp(strength[second] - strength[first]))
    result = np.where(rng.random(len(first)) < 1 / 3, 0.5, won.astype(float))
    return Comparisons(tuple(f"m{i:03}" for i in range(n_models)), first, second, result)


@given(GAMES, st.randoms(use_true_random=False))
def test_equals_plain_loop(games, random):
    """Playing many orders at once gives what the definition's loop gives for each of them."""
    comparisons, s = Comparisons.of(games), EloSettings(k=20, scale=300, init=500)
    orders = np.array([random.sample(range(len(games)), len(games)) for _ in range(3)])
    expected = [plain_elo(comparisons, order, s) for order in orders]
    found = play(comparisons, orders, s, np.zeros(len(comparisons.models)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_ratings_that_are_further_apart_than_numbers_go():
    """A winner who is 500,000 points ahead gains nothing, and loses K if he loses."""
    comparisons = Comparisons.of([("a", "b", 1.0), ("a", "b", 0.0)])
    ends = play(comparisons, np.array([[0, 0, 0], [0, 0, 1]]), EloSettings(k=1e6), np.zeros(2))
    np.testing.assert_allclose(ends, [[501_000, -499_000], [-499_000, 501_000]])


def test_median_of_shuffles_and_mean_of_runs(monkeypatch):
    """The result is the mean over runs of the median over a run's shuffles, each fully played."""
    comparisons, s = simulated(4, 6), EloSettings(shuffles=15, runs=3, seed=5)
    orders = []
    plain_play = engine.play

    def recorded(comparisons, block, *rest):
        orders.extend(block)
        return plain_play(comparisons, block, *rest)

    monkeypatch.setattr(engine, "play", recorded)
    result = bootstrap_elo(comparisons, s)
    assert all(sorted(order) == list(range(36)) for order in orders)
    assert len({tuple(order) for order in orders}) == 45
    ends = np.reshape([plain_elo(comparisons, order, s) for order in orders], (3, 15, 4))
    medians = np.median(ends, axis=1)
    np.testing.assert_allclose(result.rating, medians.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(result.run_std, medians.std(axis=0, ddof=1), atol=1e-9)
    assert np.isnan(bootstrap_elo(comparisons, EloSettings(shuffles=3, runs=1)).run_std).all()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_digits_on_any_number_of_workers(monkeypatch, n_jobs):
    """Each block of shuffles has a random stream of its own."""
    monkeypatch.setattr(engine, "_SIDE_BY_SIDE", 16)
    comparisons, s = simulated(8, 60), EloSettings(shuffles=50, runs=2)
    whole = bootstrap_elo(comparisons, s)
    with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
        split = bootstrap_elo(comparisons, s)
    assert np.array_equal(split.rating, whole.rating)
    assert np.array_equal(split.run_std, whole.run_std)
    other = bootstrap_elo(comparisons, EloSettings(shuffles=50, runs=2, seed=1))
    assert not np.array_equal(other.rating, whole.rating)


@pytest.mark.parametrize(
    ("comparisons", "k"),
    [
        (simulated(5, 400), 1.0),
        (Comparisons.of([("a", "b", 1.0)] * 3000 + [("b", "c", 0.5)] * 3000), 32.0),
        (Comparisons.of([("a", "b", 0.5)] * 9000 + [("c", "d", 1.0)] * 9), 32.0),
    ],
    ids=["small K", "always won", "rare model"],
)
def test_all_games_where_all_count(comparisons, k):
    """With a small K, a model that always wins or one that rarely plays, every game is played."""
    s = EloSettings(k=k, shuffles=3, runs=1)
    assert engine._length_of_end(comparisons, fit_logits(comparisons), s) == len(comparisons)
    assert np.isfinite(bootstrap_elo(comparisons, s).rating).all()


@pytest.mark.parametrize("winners", ["m000", ""])
def test_ends_are_those_of_whole_shuffles(monkeypatch, winners):
    """Also where a model always wins, whose rating never settles: the same but for the noise."""
    games = simulated(4, 500)
    result = np.where(games.first == 0, 1.0, games.result) if winners else games.result
    comparisons = Comparisons(games.models, games.first, games.second, result)
    s = EloSettings(shuffles=600, runs=4)
    monkeypatch.setattr(engine, "_MOST_GAMES", 10**9)
    monkeypatch.setattr(engine, "_TOLERANCE", 1e-300)  # every game is played
    whole = bootstrap_elo(comparisons, s)
    monkeypatch.undo()
    monkeypatch.setattr(engine, "_MOST_GAMES", 700)
    played = []
    monkeypatch.setattr(engine, "play", lambda *given: played.append(given[1].size) or play(*given))
    ends = bootstrap_elo(comparisons, s)
    assert sum(played) <= 2400 * 700 + 128 * len(comparisons)
    assert abs(ends.rating - whole.rating).max() < min(8, 4 * ends.run_std.max())


def test_nothing_to_rate():
    """No comparison is an expected error, not an empty table."""
    with pytest.raises(MissingDataError, match="no comparison to rate"):
        bootstrap_elo(Comparisons.of([]))
    with pytest.raises(DataError, match="2 comparisons and 1 seeds: give each"):
        Comparisons.of([("a", "b", 1.0), ("a", "c", 1.0)], ["s"])


@pytest.mark.parametrize(("name", "value"), [("k", -32.0), ("scale", 0.0), ("shuffles", 0),
                                             ("runs", 0), ("k", float("nan"))])  # fmt: skip
def test_settings_without_a_game_are_one_line(name, value):
    """Which setting, which value."""
    with pytest.raises(DataError, match=rf"^EloSettings\({name}={value}\): give a number above 0$"):
        EloSettings(**{name: value})
