"""Where people stand on the rating scale."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards import people_line
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.ratings.bradley_terry import BradleyTerryResult, fit, score_rate
from botchat.ratings.comparisons import Comparisons
from botchat.records import HUMAN
from tests.judges import World, always


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


@settings(max_examples=15, deadline=None)
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
    kept = arena.cluster < 15  # type: ignore[operator]
    few = Comparisons(
        arena.models,
        arena.first[kept],
        arena.second[kept],
        arena.result[kept],
        arena.cluster[kept],  # type: ignore[index]
    )
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
    assert (found.n, found.seeds, found.comparisons) == (16, 20, 120)
