"""Survival of dialogues: Kaplan-Meier, worked by hand and by scipy."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from botchat.boards.protocols import Place
from botchat.boards.survival import curves, estimate
from botchat.metrics.intervals import of_share
from botchat.protocols.rates import success
from botchat.records import HUMAN
from tests.boards import Made, judgment, made


def test_a_curve_worked_by_hand() -> None:
    """Six dialogues of up to 5 utterances: accused at 2, 3, 3; ended at 3; went on to 5 twice."""
    curve = estimate([(2, True), (3, True), (3, True), (3, False), (5, False), (5, False)], 5)
    assert curve.at_risk.tolist() == [6, 6, 5, 2, 2]
    assert curve.accused.tolist() == [0, 1, 2, 0, 0]
    assert curve.surviving == pytest.approx([1, 5 / 6, 5 / 6 * 3 / 5, 1 / 2, 1 / 2])
    assert (curve.reached(0.75), curve.reached(0.5), curve.reached(0.25)) == (3, 3, None)


ENDS = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=40)


@given(ENDS)
@example([*[(1, False)] * 3, *[(1, True)] * 3, (2, False), (2, False), (2, True)])
def test_the_curve_is_scipys(ends: list[tuple[int, bool]]) -> None:
    """Wherever scipy gives one."""
    curve = estimate(ends, 12)
    times = np.array([end for end, _ in ends])
    censored = np.array([not accused for _, accused in ends])
    found = ecdf(CensoredData.right_censored(times, censored)).sf
    at = [int(time) for time in found.quantiles]
    for time, share in zip(at, found.probabilities.tolist(), strict=True):
        assert curve.surviving[time - 1] == pytest.approx(share, abs=1e-12)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=60))
def test_where_none_is_cut_short_the_interval_is_wilsons(accused: list[int]) -> None:
    """Everybody goes to the end or is accused: the share of the uncensored, at every utterance."""
    curve = estimate([(min(end, 5), end < 6) for end in accused], 5)
    for n in range(1, 6):
        left = sum(end > n for end in accused)
        low, high = of_share(left, len(accused))
        row = curve.at(n, "x")
        assert (row["x_low"], row["x_high"]) == pytest.approx((low, high), abs=1e-9)


@given(ENDS)
def test_survival_never_rises_and_ends_are_conserved(ends: list[tuple[int, bool]]) -> None:
    """Shares are shares, every dialogue leaves once."""
    curve = estimate(ends, 12)
    known = curve.surviving[~np.isnan(curve.surviving)]
    assert ((known >= 0) & (known <= 1)).all()
    assert (np.diff(known) <= 1e-12).all()
    assert curve.at_risk[0] == len(ends)
    assert curve.accused.sum() == sum(accused for _, accused in ends)


def test_where_nothing_is_cut_short_it_is_the_success_rate() -> None:
    """Dialogues that all reach 16 utterances: the curve at N is the share that passes at N."""
    records_ = made({"a": 0.9, "b": 0.3}, 30, unreadable=0.2)
    found = curves(records_.judgments["unieval"], records_.dialogues)
    for name in ("a", "b"):
        said = {
            one.seed_id: one.verdict
            for one in records_.judgments["unieval"]
            if one.contestants == (name,)
        }
        for n in (4, 8, 12, 16):
            rate = success(records_.seeds, records_.dialogues[name], said, n)
            assert found[name].surviving[n - 1] == pytest.approx(rate.value)


def test_without_a_readable_verdict_there_is_no_curve() -> None:
    """A board of such verdicts has none."""
    plain = made({"m": 0.5}, 3)
    said = [judgment("unieval", "S-1", ("m",), None)]
    assert not Made(plain.seeds, plain.dialogues, {"unieval": said}).board().of(Place)[0].curves


def test_a_human_dialogue_that_ends_has_passed() -> None:
    """Of a model it is cut short; of people it counts at every later utterance."""
    records_ = made({"a": 0.9}, 4)
    short = {s.id: msgspec.structs.replace(records_.dialogues["a"][s.id], utterances=("x",) * n)
             for s, n in zip(records_.seeds, (4, 16, 16, 16), strict=True)}  # fmt: skip
    said = [judgment("unieval", s.id, (name,), v) for name in ("a", HUMAN)
            for s, v in zip(records_.seeds, ("No", "No", "9", "9"), strict=True)]  # fmt: skip
    found = curves(said, {"a": short, HUMAN: short})
    assert found["a"].surviving[-1] == pytest.approx(1 / 3)
    assert found[HUMAN].surviving[-1] == pytest.approx(1 / 2)
