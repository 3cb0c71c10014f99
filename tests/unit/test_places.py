"""Places: intervals of all ranks at once, shared by models that are equal."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import studentized_range, t

from botchat.metrics.intervals import of_shares
from botchat.protocols.catalogue import UNIEVAL
from botchat.ratings import places
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.places import apart, clearly_better, left_open, quantile
from botchat.records import HUMAN
from tests.judges import World


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
    first, last = left_open(clearly_better(np.array([30.0, 10.0, 20.0]), covariance, None))
    assert (first.tolist(), last.tolist()) == ([1, 3, 2], [1, 3, 2])
    first, last = left_open(clearly_better(np.array([10.0, 10.0, 30.0]), covariance, 40))
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
