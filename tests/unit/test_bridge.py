"""A bridge between judges: what is drawn, what the new judge's board would be, what changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards.bridge import board_rows, mapping_rows, sentences
from botchat.measures.intervals import by_seed
from botchat.measures.references import Side, draw, is_draw, mean, means
from botchat.ratings import places


@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=40),
    st.integers(1, 45),
    st.integers(0, 9),
)
def test_a_draw_deals_to_all_alike(strata, n, rng_seed):
    """No stratum has two fewer than another unless it is empty; a larger draw holds a smaller."""
    cases = [f"case {i}" for i in range(len(strata))]
    chosen = draw(strata, cases, n, rng_seed)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(n, len(strata))
    dealt, there = Counter(strata[i] for i in chosen), Counter(strata)
    most = max(dealt.values())
    assert all(dealt[one] >= min(there[one], most - 1) for one in there)
    assert set(chosen) <= set(draw(strata, cases, n + 1, rng_seed))
    assert is_draw(strata, cases, {cases[i] for i in chosen}, rng_seed)


def test_a_draw_is_by_what_is_shown_and_a_number():
    """Not by where a case stands; another number draws others, and what was not drawn is seen."""
    strata, cases = ["x"] * 50, [f"case {i}" for i in range(50)]
    found = {cases[i] for i in draw(strata, cases, 10, 0)}
    back = cases[::-1]
    assert {back[i] for i in draw(strata, back, 10, 0)} == found
    assert {cases[i] for i in draw(strata, cases, 10, 1)} != found
    first = next(cases[i] for i in draw(strata, cases, 1, 0))
    for other, number in ((set(cases[:10]), 0), (found, 1), (found - {first}, 0)):
        assert not is_draw(strata, cases, other, number)


def world(n_seeds=60, every=3, seed=0):
    """Three models, the new judge stricter; each third seed in the slice."""
    rng = np.random.default_rng(seed)
    row, seeds = np.tile(np.arange(3), n_seeds), np.repeat(np.arange(n_seeds), 3)
    old = (rng.random(len(row)) < np.array([0.8, 0.5, 0.2])[row]).astype(float)
    new = old * (rng.random(len(row)) < 0.8)
    return row, seeds, old, np.where(seeds % every == 0, new, np.nan)


def sides(row, seed, old, new, chance=None):
    """The cases of each model."""
    chance = np.ones(len(row)) if chance is None else chance
    each = [row == i for i in range(row.max() + 1)]
    return [Side(old[i], new[i], seed[i], np.ones(i.sum()), chance[i]) for i in each]


def test_each_contestant_is_ppis_own():
    """Means and intervals are those of `mean`; a stratum of which more was drawn counts no more."""
    row, seed, old, new = world()
    found = sides(row, seed, old, new)
    for i, side in enumerate(found):
        own = row == i
        assert side.by_reference == mean(old[own], new[own], seed[own])
    by_judge, by_reference = means(found)
    assert by_judge.value.tolist() == by_seed(row, seed, old, 3).value.tolist()
    assert by_reference.value.tolist() == [side.by_reference.value for side in found]
    assert found[0].slice_alone.value[0] == pytest.approx(np.nanmean(new[row == 0]))
    seed = np.arange(80)
    stratum = (seed >= 40).astype(int)
    old = np.full(80, 0.5)
    new = np.where((stratum == 0) | (seed % 4 == 0), stratum.astype(float), np.nan)
    chance = np.where(stratum == 0, 1, 0.25)
    (found,) = sides(np.zeros(80, dtype=int), seed, old, new, chance)
    assert found.by_reference.value == pytest.approx(0.5)
    assert found.slice_alone.value[0] == pytest.approx(0.5)


def test_of_two_judges_alike_nothing_changes_and_of_few_cases_nothing_is_said():
    """With all cases by both the value is the old one's own; below 20 there are no words."""
    row, seed, old, _ = world()
    by_judge, by_reference = means(sides(row, seed, old, old))
    assert by_reference.value == pytest.approx(by_judge.value)
    rows = board_rows("abc", sides(row, seed, old, old))
    assert [row["change"] for row in rows] == ["", "", ""]
    assert list(sentences(rows, "old", "new")) == ["If new replaces old, no place changes clearly."]
    row, seed, old, new = world(30)
    rows = board_rows("abc", sides(row, seed, old, new))
    (said,) = sentences(rows, "old", "new")
    assert said.startswith("Fewer than 20 cases of some model are by both judges (10)")


def test_a_new_judge_that_turns_the_board_round_changes_places_clearly():
    """First and last change; the one in the middle stays."""
    row, seed, old, _ = world(300)
    new = np.where(seed % 2 == 0, 1 - old, np.nan)
    rows = board_rows("abc", sides(row, seed, old, new))
    assert [(row["model"], row["change"]) for row in rows] == [
        ("c", "3 → 1, clearly"),
        ("b", ""),
        ("a", "1 → 3, clearly"),
    ]
    (said,) = sentences(rows, "old", "new")
    assert said == "If new replaces old, these change place clearly: c 3 → 1, a 1 → 3."


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_no_covariance_is_below_what_its_interval_says(seed):
    """Nor is any matrix one that is no covariance; places are in order."""
    row, seeds, old, new = world(24, 3, seed)
    for found in means(sides(row, seeds, old, new)):
        assert np.linalg.eigvalsh(found.covariance).min() > -1e-12
        assert (np.diag(found.covariance) > 0).all()
        first, last = places.of_ratings(found.value, found.covariance, found.freedom)
        assert ((first >= 1) & (first <= last) & (last <= 3)).all()


def test_the_mapping_is_what_the_new_judge_says_where_the_old_one_says_so():
    """Of each value, with an interval; not of a scale with many."""
    _, seed, old, new = world()
    rows = mapping_rows([Side(old, new, seed, np.ones(len(old)), np.ones(len(old)))])
    assert [row["old"] for row in rows] == [0.0, 1.0]
    assert sum(row["n"] for row in rows) == 60
    assert rows[0]["new"] == 0.0
    assert rows[1]["new_low"] < rows[1]["new"] < rows[1]["new_high"]
    many = Side(np.linspace(0, 1, len(old)), new, seed, old, old)
    assert mapping_rows([many]) == []
