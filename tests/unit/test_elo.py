"""Bootstrap Elo: the paper's definition, whatever shortcuts the engine takes."""

from __future__ import annotations

import math
from dataclasses import replace

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError, MissingDataError
from botchat.ratings import elo as engine
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloSettings, bootstrap_elo, play
from botchat.ratings.shuffles import end_of_alike, end_of_shuffle, streams

PER_PAIR = 444

rows = st.lists(
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


@given(rows, st.randoms(use_true_random=False))
def test_equals_plain_loop(data, random):
    """Playing many orders at once gives what the definition's loop gives for each of them."""
    comparisons, s = Comparisons.of(data), EloSettings(k=20, scale=300, init=500)
    orders = np.array([random.sample(range(len(data)), len(data)) for _ in range(3)])
    expected = [plain_elo(comparisons, order, s) for order in orders]
    np.testing.assert_allclose(play(comparisons, orders, s), expected, rtol=0, atol=1e-9)


def test_ratings_that_are_further_apart_than_numbers_go():
    """A winner who is 500,000 points ahead gains nothing, and loses K if he loses."""
    data = Comparisons.of([("a", "b", 1.0), ("a", "b", 0.0)])
    ends = play(data, np.array([[0, 0, 0], [0, 0, 1]]), EloSettings(k=1e6))
    np.testing.assert_allclose(ends, [[501_000, -499_000], [-499_000, 501_000]])


def test_median_of_shuffles_and_mean_of_runs():
    """The result is the mean over runs of the median over a run's shuffles, each fully played."""
    comparisons = simulated(4, 6)
    s = EloSettings(shuffles=15, runs=3, seed=5)
    n = len(comparisons)
    draw = end_of_shuffle(n, n)
    orders = [draw(rng) for rng in streams(s.seed, range(s.runs * s.shuffles))]
    ends = np.reshape([plain_elo(comparisons, order, s) for order in orders], (3, 15, 4))
    result = bootstrap_elo(comparisons, s)
    assert result.n_played == result.n_comparisons == n
    medians = np.median(ends, axis=1)
    np.testing.assert_allclose(result.run_ratings, medians, atol=1e-9)
    np.testing.assert_allclose(result.rating, medians.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(result.run_std, medians.std(axis=0, ddof=1), atol=1e-9)


def some_of(whole: Comparisons, seed: int, missing: float) -> engine.RatedCases:
    """Most of some comparisons; the others are cases without a result."""
    kept = np.flatnonzero(np.random.default_rng(seed).random(len(whole)) >= missing)
    columns = (whole.first[kept], whole.second[kept], whole.result[kept])
    return engine.RatedCases(Comparisons(whole.models, *columns), kept, len(whole))


def test_cases_without_a_result_are_passed_over():
    """A shuffle of all cases, read once for each Arena: of each those with a result are played."""
    s = EloSettings(shuffles=15, runs=2, seed=5)
    rated = [some_of(simulated(4, 6, seed), seed, 0.3) for seed in (1, 2)]
    n = rated[0].n
    draw = end_of_shuffle(n, n)
    orders = [draw(rng) for rng in streams(s.seed, range(s.runs * s.shuffles))]
    for cases, result in zip(rated, engine.rate(engine.Bootstrap.of(rated, s)), strict=True):
        place = {case: game for game, case in enumerate(cases.place.tolist())}
        ends = [
            plain_elo(cases.comparisons, [place[case] for case in order if case in place], s)
            for order in orders
        ]
        medians = np.median(np.reshape(ends, (2, 15, 4)), axis=1)
        np.testing.assert_allclose(result.run_ratings, medians, atol=1e-9)
        assert result.n_comparisons == len(cases.comparisons) < n


def test_arenas_that_are_shuffled_together_are_rated_as_alone():
    """Where a tail is played it is as long as the slowest needs, which moves nobody by 1e-6."""
    s = EloSettings(shuffles=30)
    rated = [some_of(simulated(8, 444, seed, seed / 2), seed, 0.05) for seed in (1, 2, 3)]
    together = engine.rate(engine.Bootstrap.of(rated, s))
    for cases, result in zip(rated, together, strict=True):
        (alone,) = engine.rate(engine.Bootstrap.of([cases], s))
        assert alone.n_played <= result.n_played < cases.n / 2
        np.testing.assert_allclose(result.run_ratings, alone.run_ratings, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("block", "n_jobs"), [(7, 1), (13, 2)])
def test_same_digits_whatever_the_split(monkeypatch, block, n_jobs):
    """Neither the number of processes nor the size of blocks changes a digit."""
    comparisons, s = simulated(8, 60), EloSettings(shuffles=50, runs=2)
    whole = bootstrap_elo(comparisons, s, n_jobs=1)
    monkeypatch.setattr(engine, "_BLOCK", block)
    with joblib.parallel_config(backend="threading"):
        split = bootstrap_elo(comparisons, s, n_jobs=n_jobs)
    assert np.array_equal(split.run_ratings, whole.run_ratings)


def test_more_games_than_are_played_for_nobody_make_fewer_shuffles():
    """They are the first of as many as one would ask for; the result says how many."""
    comparisons = simulated(6, 400)
    whole = bootstrap_elo(comparisons, EloSettings(shuffles=40, runs=2))
    assert whole.n_played < len(comparisons)
    room = 2 * 15 * whole.n_played
    asked = EloSettings(shuffles=40, runs=2, most_games=room)
    fewer = bootstrap_elo(comparisons, asked)
    assert fewer.n_played == whole.n_played
    assert fewer.settings.shuffles == 15
    named = bootstrap_elo(comparisons, EloSettings(shuffles=15, runs=2))
    np.testing.assert_allclose(fewer.run_ratings, named.run_ratings, rtol=0, atol=1e-6)
    least = bootstrap_elo(comparisons, replace(asked, most_games=1)).settings
    assert least.shuffles == engine._FEWEST
    enough = bootstrap_elo(comparisons, replace(asked, most_games=10 * room))
    assert np.array_equal(enough.run_ratings, whole.run_ratings)


def test_the_end_is_long_enough_where_pairs_have_one_comparison():
    """What each says of its pair is not how far apart two models are: pilots ask little more."""
    rng = np.random.default_rng(0)
    level, some = np.linspace(1.5, -1.5, 30), rng.permutation(435)[:300]
    first, second = (side[some] for side in np.triu_indices(30, 1))
    won = rng.random(len(first)) < 1 / (1 + np.exp(level[second] - level[first]))
    names = tuple(f"m{i:02}" for i in range(30))
    few = Comparisons(names, first, second, won.astype(float))
    settings = EloSettings(shuffles=2, runs=1, per_pair=444)
    bootstrap = engine.Bootstrap.of([some_of(few, 0, 0)], settings)
    assert not bootstrap.whole
    assert engine._miss(bootstrap) < 10 * engine._TOLERANCE
    short = replace(bootstrap, length=bootstrap.length // 2)
    assert engine._miss(short) > 100 * engine._TOLERANCE


def test_a_tail_is_as_long_as_it_must_be(monkeypatch):
    """Too short a one is noticed on pilots."""
    comparisons, s = simulated(14, PER_PAIR, spread=1.5), EloSettings(shuffles=20, runs=1)
    short = bootstrap_elo(comparisons, s)
    assert short.n_played < len(comparisons) / 4
    monkeypatch.setattr(engine, "_guess_length", lambda *_: len(comparisons))
    whole = bootstrap_elo(comparisons, s)
    assert whole.n_played == len(comparisons)
    np.testing.assert_allclose(short.run_ratings, whole.run_ratings, rtol=0, atol=1e-6)
    comparisons, s = simulated(6, 2000), EloSettings(shuffles=4, runs=1)
    monkeypatch.setattr(engine, "_guess_length", lambda *_: 100)
    with joblib.parallel_config(backend="threading"):
        one, two = (bootstrap_elo(comparisons, s, n_jobs=n) for n in (1, 2))
    assert 1000 < one.n_played == two.n_played < len(comparisons)
    monkeypatch.setattr(engine, "_guess_length", lambda *_: len(comparisons))
    whole = bootstrap_elo(comparisons, s)
    np.testing.assert_allclose(one.run_ratings, whole.run_ratings, rtol=0, atol=1e-5)


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
    result = bootstrap_elo(comparisons, EloSettings(k=k, shuffles=3, runs=1))
    assert result.n_played == len(comparisons)


@given(st.integers(2, 300), st.integers(0, 2**32), st.data())
def test_end_of_shuffle_does_not_depend_on_its_length(n, seed, data):
    """A stream's shuffle is one order: shorter ends are the end of longer ones."""
    short, long = sorted(data.draw(st.integers(1, n)) for _ in range(2))
    ends = [end_of_shuffle(n, length)(np.random.default_rng(seed)) for length in (short, long)]
    assert sorted(set(ends[1])) == sorted(ends[1])
    assert np.array_equal(ends[0], ends[1][long - short :])


@given(st.integers(0, 2**140), st.lists(st.integers(0, 2**32 - 1), max_size=4))
def test_streams_are_numpys_own(seed, numbers):
    """Each shuffle's stream is what numpy makes of the seed and the shuffle's number."""
    for number, rng in zip(numbers, streams(seed, numbers), strict=True):
        child = np.random.SeedSequence(seed, spawn_key=(number,))
        own = np.random.Generator(np.random.PCG64DXSM(child))
        # Half a word is left over, which the next stream must not begin with.
        assert rng.integers(9, size=3).tolist() == own.integers(9, size=3).tolist()


def test_ends_are_of_the_integers_that_numpy_draws():
    """Digits are those of `Generator.integers`, also where it draws a number anew to be even."""
    n, length, anew = 65_026, 9000, 0
    draw = end_of_shuffle(n, length)
    for seed in range(60):
        integers = np.random.default_rng(seed).integers(n, size=10_000)
        in_order = list(dict.fromkeys(integers.tolist()))
        assert draw(np.random.default_rng(seed))[::-1].tolist() == in_order[:length]
        raw = np.random.PCG64(seed).random_raw(5000).view(np.uint32)
        anew += not np.array_equal(raw * np.uint64(n) >> np.uint64(32), integers)
    assert anew > 0


def test_a_part_with_unequal_counts_is_rated_as_the_whole():
    """`per_pair`: the same results with one pair ten times as often give the Elo of equal counts.

    Played as it is, the part gives another: nothing but the counts has moved those ratings.
    """
    circle = [("a", "b"), ("b", "c"), ("c", "a")]  # each beats the next: all are worth the same
    rows = [(*pair, result) for pair in circle for result in [1.0] * 48 + [0.0] * 12]
    part = Comparisons.of(rows + 9 * [row for row in rows if row[:2] == ("a", "b")])
    s = EloSettings(shuffles=300, runs=2)
    alike = replace(s, per_pair=PER_PAIR)
    np.testing.assert_allclose(bootstrap_elo(part, alike).rating, 1000, atol=3)
    assert np.abs(bootstrap_elo(part, s).rating - 1000).max() > 30
    # Of equal counts it is the paper's Elo, played long enough to forget the start.
    large = simulated(4, PER_PAIR, spread=0.8)
    paper = bootstrap_elo(large, s).rating
    np.testing.assert_allclose(bootstrap_elo(large, alike).rating, paper, atol=4)


def test_every_pair_is_drawn_alike():
    """Pairs equally often, and each comparison as often as others of its pair."""
    comparisons = Comparisons.of(
        [("a", "b", 1.0)] * 5 + [("c", "a", 0.5), ("b", "c", 0.0), ("c", "b", 1.0)]
    )
    cases = engine.RatedCases(comparisons, np.arange(8), 8)
    games = engine._Games.of(cases, EloSettings(per_pair=50))
    assert games.in_shuffle == 150
    assert engine._Games.of(cases, EloSettings(per_pair=7)).in_shuffle == 21
    drawn = end_of_alike(games.by_pair, games.begin, 30_000)(np.random.default_rng(0))
    share = np.bincount(drawn, minlength=8) / len(drawn)
    np.testing.assert_allclose(share, [1 / 15] * 5 + [1 / 3, 1 / 6, 1 / 6], atol=0.01)
    with joblib.parallel_config(backend="threading"):
        split = bootstrap_elo(
            comparisons, EloSettings(shuffles=15, runs=2, per_pair=2000), n_jobs=2
        )
    whole = bootstrap_elo(comparisons, EloSettings(shuffles=15, runs=2, per_pair=2000), n_jobs=1)
    assert np.array_equal(split.run_ratings, whole.run_ratings)
    shorter = end_of_alike(games.by_pair, games.begin, 100)(np.random.default_rng(0))
    assert np.array_equal(shorter, drawn[-100:])


def test_blocks_cover_and_fit_in_memory():
    """Blocks cover all shuffles in order, evenly, and none holds more than 64 MB of games."""
    whole = engine.Bootstrap.of([some_of(simulated(14, PER_PAIR), 1, 0)])
    bootstrap = replace(whole, length=whole.games[0].in_shuffle)
    assert bootstrap.length == 40_404
    blocks = bootstrap.blocks(3)
    assert [number for block in blocks for number in block] == list(range(10_000))
    assert max(map(len, blocks)) * 2 * 40_404 <= 64 << 20
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    assert len(blocks) % 3 == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"scale": -1},
        {"init": math.nan},
        {"shuffles": 0},
        {"runs": 0},
        {"seed": -1},
        {"per_pair": 0},
    ],
)
def test_settings_that_define_no_rating(wrong):
    """A setting outside its range is refused by name."""
    with pytest.raises(ConfigError, match=f"Elo {next(iter(wrong))} "):
        EloSettings(**wrong)


def test_nothing_to_rate():
    """No comparison is an expected error, not an empty table; so are no workers."""
    with pytest.raises(MissingDataError, match="no comparison to rate"):
        bootstrap_elo(Comparisons.of([]))
    with pytest.raises(ConfigError, match="0 workers"):
        bootstrap_elo(Comparisons.of([("a", "b", 1.0)]), n_jobs=0)
