"""Places: intervals of all ranks at once, shared by models that are equal."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import studentized_range, t

from botchat.boards import people_line
from botchat.measures.intervals import of_shares
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.ratings import places
from botchat.ratings.bradley_terry import BradleyTerryResult, fit, score_rate
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.fragility import Fragility, fragility
from botchat.ratings.places import apart, of_ratings, quantile
from botchat.records import HUMAN
from tests.judges import World, always


def compared(utility: np.ndarray, tie: float = 0.0) -> Comparisons:
    """Every pair on every seed in both orders, the better utility wins; shape (seeds, models)."""
    n, m = utility.shape
    low, high = np.triu_indices(m, 1)
    first, second = np.concatenate([low, high]), np.concatenate([high, low])
    apart = utility[:, first] - utility[:, second]
    result = np.where(np.abs(apart) <= tie, 0.5, (apart > 0) * 1.0)
    return Comparisons(
        tuple(f"m{i}" for i in range(m)),
        np.tile(first, n),
        np.tile(second, n),
        result.ravel(),
        np.repeat(np.arange(n), len(first)),
    )


@pytest.mark.parametrize(("m", "freedom"), [(3, None), (8, None), (2, 9), (5, 20), (14, 9)])
def test_the_quantile_is_tukeys_or_wider(m: int, freedom: int | None) -> None:
    """Independent ratings of equal error: the studentized range over sqrt 2, where that is known.

    Each difference has its own error here, so with few degrees of freedom it is above Tukey's,
    whose errors are pooled, and below Bonferroni's. Of two models both are Student's t.
    """
    found = quantile(np.eye(m).tobytes(), m, freedom, 0.95)
    many = 100_000 if freedom is None else freedom
    tukey = studentized_range.ppf(0.95, m, many) / np.sqrt(2)
    if freedom is None:
        assert found == pytest.approx(tukey, rel=0.015)
    else:
        pairs = m * (m - 1) / 2
        assert tukey * 0.97 < found < t.ppf(1 - 0.025 / pairs, freedom) * 1.03


def test_a_ladder_is_in_order_and_level_models_share_all_places() -> None:
    """Far apart: one place each; equal: every place."""
    covariance = np.eye(3)
    first, last = of_ratings(np.array([30.0, 10.0, 20.0]), covariance, None)
    assert (first.tolist(), last.tolist()) == ([1, 3, 2], [1, 3, 2])
    first, last = of_ratings(np.array([10.0, 10.0, 30.0]), covariance, 40)
    assert (first.tolist(), last.tolist()) == ([2, 2, 1], [3, 3, 1])


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(6, 30))
def test_identical_models_stand_together(seed: int, m: int, n: int) -> None:
    """A model that is twice on a board has one rating, one place and one interval of it."""
    rng = np.random.default_rng(seed)
    utility = rng.gumbel(size=(n, m)) + np.linspace(0, 1.5, m)
    rated = fit(compared(np.column_stack([utility, utility[:, 0]])))
    first, last = rated.places
    assert rated.rating[0] == pytest.approx(rated.rating[m], abs=1e-6)
    assert (first[0], last[0]) == (first[m], last[m])
    assert rated.rank[0] == rated.rank[m]


def test_places_hold_every_rating_between_them() -> None:
    """1 <= first <= place by rating <= last <= m, whatever the board."""
    rng = np.random.default_rng(4)
    for n in (2, 3, 10, 60):
        rated = fit(compared(rng.gumbel(size=(n, 9)) + np.linspace(0, 2, 9)))
        first, last = rated.places
        place = 1 + np.argsort(np.argsort(-rated.rating))
        assert ((first >= 1) & (first <= place) & (place <= last) & (last <= 9)).all()


def test_level_boards_are_hardly_ever_called_unlike(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most one in twenty of boards of equal models calls anything clearly better."""
    monkeypatch.setattr(places, "DRAWS", 1000)
    rng = np.random.default_rng(7)
    false = sum((fit(compared(rng.gumbel(size=(12, 8)))).rank > 1).any() for _ in range(40))
    assert false <= 0.06 * 40 + 2 * np.sqrt(0.05 * 0.95 * 40)


def test_a_model_that_only_tied_is_not_certain() -> None:
    """Its verdicts do not vary, so the sandwich alone said ± 0.1; the others stay as they were."""
    rng = np.random.default_rng(5)
    made = compared(rng.gumbel(size=(40, 4)), tie=0.4)
    tied = (made.first == 3) | (made.second == 3)
    with_one = Comparisons(
        made.models, made.first, made.second, np.where(tied, 0.5, made.result), made.cluster
    )
    rated = fit(with_one)
    half = rated.width * rated.std_error
    assert 10 < half[3] < 30
    assert half[:3].min() > 10


def test_a_judge_that_takes_the_first_shown_is_not_certain() -> None:
    """One win for each order on every seed: no variation between seeds, but no certainty."""
    made = compared(np.zeros((30, 3)))
    first_wins = Comparisons(made.models, made.first, made.second, np.ones(len(made)), made.cluster)
    rated = fit(first_wins)
    assert rated.rating == pytest.approx([1000] * 3)
    assert (rated.width * rated.std_error > 15).all()
    assert rated.rank.tolist() == [1, 1, 1]


# How few ChatSEEDs decide who is first.


def made(results):
    """Comparisons of a, b and c by seed: ``results[s]`` are the points of a-b, a-c and b-c."""
    rows, seeds = [], []
    for seed, points in enumerate(results):
        for pair, point in zip(("ab", "ac", "bc"), points, strict=True):
            rows.append((*pair, point))
            seeds.append(f"s{seed}")
    return Comparisons.of(rows, seeds)


def fewest(results, found):
    """The fewest of up to four seeds without which the second is rated above the first."""
    first, second = ("abc".index(name) for name in (found.first, found.second))

    def swapped(gone):
        left = [points for seed, points in enumerate(results) if seed not in gone]
        rating = fit(made(left)).rating
        return rating[second] > rating[first]

    seeds = range(len(results))
    return next((k for k in range(1, 5) if any(map(swapped, combinations(seeds, k)))), None)


def test_the_seeds_that_hold_the_first_are_found():
    """Six level seeds and three in which a beats everybody: four are enough, no three are."""
    results = [(0.0, 1.0, 1.0), (0.5, 0.0, 0.5), (1.0, 0.5, 0.0)] * 2 + [(1.0, 1.0, 0.5)] * 3
    found = fragility(made(results))
    assert (found.first, found.second, found.of) == ("a", "b", 9)
    assert found.seeds == fewest(results, found)
    assert found.told() == (
        f"Without {found.seeds} of the 9 ChatSEEDs, if not fewer, b would stand before a"
    )


@pytest.mark.parametrize("seed", range(6))
def test_it_is_an_upper_bound_and_close_to_the_fewest(seed):
    """Against every choice of up to four of ten seeds."""
    rng = np.random.default_rng(seed)
    results = rng.choice([0, 0.5, 1], (10, 3), p=[0.3, 0.2, 0.5]).tolist()
    found = fragility(made(results))
    least = fewest(results, found)
    if least is None:
        assert found.seeds is None or found.seeds > 4
    else:
        assert least <= found.seeds <= least + 1


def test_where_nothing_can_be_said_nothing_is():
    """One seed, seeds that are not known, a winner of everything: none, or none found."""
    rows = [("a", "b", 1.0), ("b", "a", 1.0)] * 4
    assert fragility(Comparisons.of(rows)) is None
    assert fragility(Comparisons.of([("a", "b", 1.0)] * 4, ["s"] * 4)) is None
    steady = Comparisons.of(
        [("a", "b", 1.0), ("a", "b", 1.0), ("a", "b", 0.0)] * 5,
        [f"s{i}" for i in range(5) for _ in range(3)],
    )
    assert fragility(steady) == Fragility("a", "b", pytest.approx(120.4, abs=0.1), None, 5)
    assert fragility(steady).told() == "No ChatSEEDs were found without which b stands before a"


# Where people stand on the rating scale.


def drawn(
    rng: np.random.Generator, strength: float, n: int, m: int = 4
) -> tuple[BradleyTerryResult, Comparisons, Comparisons]:
    """Ratings of m models, their comparisons, and those with people of this strength (logits)."""
    theta = np.append(np.linspace(-1, 1, m), strength)
    names = (*(f"model-{i}" for i in range(m)), HUMAN)

    def play(pairs: list[tuple[int, int]], models: tuple[str, ...]) -> Comparisons:
        both = np.array([*pairs, *((b, a) for a, b in pairs)])
        first, second = np.tile(both, (n, 1)).T
        seed = np.repeat(np.arange(n), len(both))
        won = rng.random(len(seed)) < score_rate(theta[first] - theta[second])
        return Comparisons(models, first, second, won.astype(float), seed)

    arena = play(list(combinations(range(m), 2)), names[:m])
    return fit(arena), arena, play([(i, m) for i in range(m)], names)


@pytest.mark.parametrize("strength", [-0.5, 0.5, 2.0])
def test_it_is_where_a_joint_fit_has_people(strength: float) -> None:
    """With all comparisons in one fit people land at the same place, up to its own noise."""
    fitted, arena, beside = drawn(np.random.default_rng(3), strength, 400)
    found = people_line.estimate(fitted, arena, beside)
    assert found is not None
    rating, reach, n, seeds = found
    place = np.array([*range(4)])
    joint = fit(
        Comparisons(
            beside.models,
            np.concatenate([place[arena.first], beside.first]),
            np.concatenate([place[arena.second], beside.second]),
            np.concatenate([arena.result, beside.result]),
            np.concatenate([arena.cluster, beside.cluster]),  # type: ignore[list-item]
        )
    )
    # The joint scale has its zero at the mean of all five.
    apart = joint.rating[4] - joint.rating[:4].mean() + 1000
    assert rating == pytest.approx(apart, abs=reach / 2)
    assert abs(rating - (1000 + 400 / np.log(10) * strength)) < 2 * reach
    assert (n, seeds) == (3200, 400)


@settings(max_examples=6)
@given(st.integers(0, 10_000), st.permutations(range(40)))
def test_the_order_of_the_comparisons_and_seeds_is_nothing(seed: int, order: list[int]) -> None:
    """Numbers of seeds are names."""
    fitted, arena, beside = drawn(np.random.default_rng(seed), 0.3, 40)
    swapped = [
        Comparisons(one.models, one.first, one.second, one.result, np.array(order)[one.cluster])
        for one in (arena, beside)
    ]
    assert people_line.estimate(fitted, arena, beside) == pytest.approx(
        people_line.estimate(fit(swapped[0]), *swapped)
    )


def test_more_seeds_are_surer() -> None:
    """About by the root."""
    reach = []
    for n in (50, 450):
        found = people_line.estimate(*drawn(np.random.default_rng(5), 0.5, n))
        assert found is not None
        reach.append(found[1])
    assert 2.3 < reach[0] / reach[1] < 3.9


def test_the_error_of_the_ratings_is_in_it() -> None:
    """Few comparisons of models make people's place unsure however often people are compared."""
    fitted, arena, beside = drawn(np.random.default_rng(6), 0.5, 300)
    few = arena.only(arena.cluster < 15)  # type: ignore[operator]
    sure, unsure = (
        people_line.estimate(fitted, arena, beside),
        people_line.estimate(fit(few), few, beside),
    )
    assert sure is not None
    assert unsure is not None
    assert unsure[1] > 1.1 * sure[1]


def test_none_where_it_has_no_finite_value() -> None:
    """People win, or lose, everything; or nothing was asked."""
    fitted, arena, beside = drawn(np.random.default_rng(7), 0.0, 20)
    for result in (0.0, 1.0):
        sure = np.where(beside.first == 4, result, 1 - result)
        all_same = Comparisons(beside.models, beside.first, beside.second, sure, beside.cluster)
        assert people_line.estimate(fitted, arena, all_same) is None
    quality = {"bot:parrot": 0.0, "mill": 0.3, "weir": 0.95}
    world = World.of(5, quality)
    assert people_line.of(world.board(world.ideal(), [UNIEVAL, GTEVAL])) is None
    assert people_line.of(world.board(world.ideal(), [UNIEVAL, ARENA.at(16)])) is None


def test_ties_alone_are_not_certain() -> None:
    """All even: people stand with the models, and the interval has a width."""
    world = World.of(20, {"bot:parrot": 0.0, "mill": 0.3, "weir": 0.95})
    found = people_line.of(world.board(always("No", "both")))
    assert found is not None
    assert found.rating == pytest.approx(1000)
    assert found.high - found.low > 20


# Where no Arena says them: from the interval of each rate.


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("n", [20, 200])
def test_equal_shares_are_told_apart_once_in_twenty(share: float, n: int) -> None:
    """On a board of 14 that all pass as often; of one that passes far more the place is 1."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        found = rng.binomial(n, share, 14) / n
        told = (found, *of_shares(found, np.full(14, 1 / n)))
        wrong += bool(apart(*(2 * np.arcsin(np.sqrt(one)) for one in told)).any())
    assert wrong / 400 < 0.075  # .05 and three standard errors more


def test_a_board_without_an_arena_leaves_places_open() -> None:
    """Who pass alike share places; people have none."""
    world = World.of(25)
    frame = world.board(world.ideal(), [UNIEVAL]).frame.set_index("model")
    assert frame.loc["model-11", ["rank", "rank_low"]].tolist() == [1, 1]
    assert frame["rank_high"].dropna().between(frame["rank"].dropna(), 14).all()
    never = frame.loc[frame["success_n16"] == 0, ["rank_low", "rank_high"]].drop_duplicates()
    assert len(never) == 1
    assert frame.loc[HUMAN, ["rank", "rank_low", "rank_high"]].isna().all()
