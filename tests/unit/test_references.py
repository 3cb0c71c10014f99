"""Means as a reference judges: other people's numbers, hand-counted cases, honest short slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.measures.intervals import of_share, of_shares
from botchat.measures.references import UNSEEN, Corrected, Given, Reach, mean
from botchat.measures.statistics import Z, student_t
from botchat.verdicts import Floats

_JUDGED = "0001110100110000100101011010000100110111"
_PEOPLE = "000111011001"


def bits(text: str) -> Floats:
    """Zeros and ones."""
    return np.array([float(one) for one in text])


def sliced(people: Floats, n: int) -> Floats:
    """People's values of the first cases of n, nan of the others."""
    return np.concatenate([people, np.full(n - len(people), np.nan)])


@pytest.mark.parametrize(
    ("of_paper", "value"),
    [(None, 0.46717171717171724), (0.0, 0.5), (0.5, 0.4642857142857143), (1.0, 0.4285714285714286)],
)
def test_means_are_ppi_pys(of_paper: float | None, value: float) -> None:
    """Those of `ppi_mean_pointestimate` of ppi-python 0.2.3; its lambda is of the other cases."""
    judged, people = bits(_JUDGED), bits(_PEOPLE)
    power = None if of_paper is None else of_paper * 40 / 28
    found = mean(judged, sliced(people, 40), power=power)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.labels == 12
    if of_paper is None:
        assert found.power * 28 / 40 == pytest.approx(0.4595959595959596, rel=1e-12)


def test_interval_of_many_labels_is_ppi_pys() -> None:
    """`ppi_mean_ci` of ppi-python 0.2.3: 0.2839 to 0.4478; ours allows for 60 labels being few."""
    judged = bits("1" * 200 + "0" * 347)[np.argsort(np.arange(547) * 241 % 547)]
    drawn = np.arange(0, 540, 9)
    people = np.full(547, np.nan)
    people[drawn] = judged[drawn]
    people[drawn[::11]] = 1 - people[drawn[::11]]
    found = mean(judged, people)
    assert found.value == pytest.approx(0.36585428, abs=1e-8)
    assert 0.4478 - 0.2839 < found.high - found.low < 1.1 * (0.4478 - 0.2839)
    assert found.low == pytest.approx(0.2839, abs=0.012)
    assert found.high == pytest.approx(0.4478, abs=0.012)


def test_by_hand() -> None:
    """Four seeds of two cases, one of each pair labelled: the sum of both parts, seed by seed."""
    judged = np.array([1, 1, 0, 1, 0, 0, 1, 0], dtype=float)
    people = np.array([1, np.nan, 0, np.nan, 1, np.nan, 1, np.nan])
    found = mean(judged, people, np.repeat(np.arange(4), 2), power=0.5)
    assert found.value == pytest.approx(0.5 * 0.5 + 0.5)
    of_judge = 0.5 * np.array([1.0, 0.0, -1.0, 0.0]) / 8
    of_people = (np.array([0.5, 0.0, 1.0, 0.5]) - 0.5) / 4
    unseen = 0.5 * (0.5**2 + 1.0**2) / 16
    variance = (of_judge**2).sum() + 2 * (of_judge * of_people).sum() + (of_people**2).sum()
    each = (3.18244630528371 / 1.959963984540054) ** 2 * 4 / 3 * (variance + unseen) / 0.1875
    # As wide as labels of four seeds alone, no wider.
    assert each > 1 / 4
    assert (found.low, found.high) == pytest.approx(of_share(3, 4), abs=1e-9)


def test_power_nought_is_the_labels_alone() -> None:
    """With Wilson's interval, however good the judge is."""
    found = mean(bits(_JUDGED), sliced(bits(_PEOPLE), 40), power=0)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, *of_share(6, 12)))


def test_a_judge_like_people_gives_its_own_mean() -> None:
    """Of all its cases; but 20 labels without a disagreement do not prove that there is none."""
    judged = bits("10100" * 100)
    found = mean(judged, sliced(judged[:20], 500))
    assert found.value == pytest.approx(0.4, abs=1e-12)
    assert found.power == 1
    alone, all_labelled = of_share(8, 20), of_share(200, 500)
    assert 0.15 < found.high - found.low < 0.75 * (alone[1] - alone[0])
    assert found.high - found.low > 2 * (all_labelled[1] - all_labelled[0])


def test_one_verdict_throughout_shows_nothing() -> None:
    """All labelled dialogues pass for judge and people: what labels alone say, at least."""
    found = mean(np.ones(547), sliced(np.ones(20), 547))
    assert (found.value, found.low, found.high) == pytest.approx((1.0, *of_share(20, 20)))
    # The judge's failures are all outside the slice: nothing is known of it.
    few = np.concatenate([np.ones(20), np.zeros(100)])
    assert mean(few, sliced(np.ones(20), 120)).power == 0


def test_no_labels() -> None:
    """Nothing to say."""
    found = mean(np.ones(3), np.full(3, np.nan))
    assert np.isnan([found.value, found.low, found.high]).all()
    assert found.labels == 0


def test_a_slice_drawn_unevenly_is_weighed() -> None:
    """Models drawn with different chances count as often as they are there."""
    judged = np.repeat([1.0, 0.0], [10, 90])
    people = np.full(100, np.nan)
    people[:5], people[10:15] = 1, 0
    chance = np.repeat([5 / 10, 5 / 90], [10, 90])
    found = mean(judged, people, chance=chance, power=0)
    assert found.value == pytest.approx(0.1)
    # Half of the weight is on what is labelled as often: the same as without chances.
    assert mean(judged, people, power=0).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("labels", "values"), [(10, (0, 0.5, 1)), (40, (0.4, 0.5, 0.6)), (200, (0, 1))]
)
def test_reach_is_the_width_that_comes(labels: int, values: tuple[float, ...]) -> None:
    """Of intervals with such labels: people who agree always, and a judge that is not heard."""
    rng = np.random.default_rng(labels)
    judged, seed = rng.choice(values, 600), np.arange(600)
    best, worst = Reach.of(judged, seed, np.ones(600)).within(labels)
    halves = []
    for _ in range(40):
        people = np.full(600, np.nan)
        drawn = rng.choice(600, labels, replace=False)
        people[drawn] = judged[drawn]
        alike, alone = mean(judged, people, seed), mean(judged, people, seed, power=0)
        halves.append(((alike.high - alike.low) / 2, (alone.high - alone.low) / 2))
    assert np.mean(halves, axis=0) == pytest.approx((best, worst), rel=0.06)
    assert best <= worst


def test_needed_labels_are_the_first_that_bring_it_so_near() -> None:
    """One less is not enough; what all cases do not reach, none does."""
    judged = bits("10100" * 200)
    reach = Reach.of(judged, np.arange(1000), np.ones(1000))
    for which, n in enumerate(reach.needed(0.05)):
        assert n is not None
        assert reach.within(n)[which] <= 0.05 < reach.within(n - 1)[which]
    assert reach.needed(0.02) == (None, None)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """A judge's values, people's of some of the cases, the seeds."""
    results = st.sampled_from([0.0, 0.5, 1.0])
    n = draw(st.integers(1, 30))
    judged = np.array(draw(st.lists(results, min_size=n, max_size=n)))
    people = np.array(draw(st.lists(results | st.just(np.nan), min_size=n, max_size=n)))
    return judged, people, np.arange(n) // draw(st.integers(1, 3))


@given(worlds())
def test_intervals_hold_their_value_and_have_width(given_: tuple[Floats, Floats, Floats]) -> None:
    """They are never wider than the labels' own; losses for wins turn them round."""
    judged, people, seed = given_
    found, turned = mean(judged, people, seed), mean(1 - judged, 1 - people, seed)
    if not found.labels:
        return
    of_seed = np.unique(seed[~np.isnan(people)], return_counts=True)[1] / found.labels
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value <= found.high + 1e-12 <= 1 + 2e-12
    assert found.high - found.low > 1 / 40
    low, high = of_shares(np.array([found.value]), np.array([of_seed @ of_seed]))
    assert low[0] - 1e-9 <= found.low
    assert found.high <= high[0] + 1e-9
    assert turned == Corrected(
        *(pytest.approx(x) for x in (1 - found.value, 1 - found.high, 1 - found.low, found.power)),
        found.labels,
    )


def test_other_people_are_a_second_way_as_of_statsmodels() -> None:
    """`cov_cluster` of a constant by case, by person and by label (statsmodels 0.15.0, plain)."""
    by_case, by_person, by_label = 0.000794375, 0.01138, 0.001078875
    rng = np.random.default_rng(8)
    case, person = (part.ravel() for part in np.meshgrid(np.arange(40), np.arange(5)))
    luck, often = rng.random(200), 0.3 + 0.4 * rng.random(40)[case]
    value = (luck < np.clip(often + 0.35 * rng.normal(size=5)[person], 0, 1)).astype(float)
    reference = np.bincount(case, value) / 5
    told = Given(case, person, value)
    found = mean(np.zeros(40), reference, power=0.0, given=told)
    alone = mean(np.zeros(40), reference, power=0.0)
    assert (found.value, found.low, found.high) == (0.685, alone.low, alone.high)
    unseen = UNSEEN * (0.685**2 + 0.315**2) / 40**2
    wanted = 40 / 39 * (by_case + unseen) + 5 / 4 * by_person - by_label
    each = wanted * (student_t(0.95, 4) / Z) ** 2 / (0.685 * 0.315)
    assert found.others == pytest.approx([float(end[0]) for end in of_shares(
        np.array([0.685]), np.array([each])
    )])  # fmt: skip
    # Labels in another order of cases, and as seen from the other side.
    other = mean(np.ones(40), 1 - reference, power=0.0, given=Given(case, person, 1 - value))
    assert other.others == pytest.approx([1 - end for end in found.others[::-1]])
    two = person < 2
    few = Given(case[two], person[two], value[two])
    assert np.isnan(mean(np.zeros(40), reference, given=few).others).all()
