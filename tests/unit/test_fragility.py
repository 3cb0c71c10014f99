"""How few ChatSEEDs decide who is first."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.fragility import Fragility, fragility


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
    assert str(found) == (
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
    assert str(fragility(steady)) == "No ChatSEEDs were found without which b stands before a"
