"""Survival of dialogues: Kaplan-Meier, worked by hand and by scipy."""

from __future__ import annotations

import math
import warnings

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from botchat.boards.protocols import Place
from botchat.boards.survival import curves, estimate
from botchat.measures.intervals import of_share, of_shares
from botchat.measures.statistics import Z
from botchat.protocols import rates
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
def test_the_curve_and_its_interval_are_scipys(ends: list[tuple[int, bool]]) -> None:
    """Wherever scipy gives one: Kaplan-Meier, and Wilson's interval of Greenwood's variance."""
    curve = estimate(ends, 12)
    times = np.array([end for end, _ in ends])
    censored = np.array([not accused for _, accused in ends])
    found = ecdf(CensoredData.right_censored(times, censored)).sf
    at = [int(time) for time in found.quantiles]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, where an interval is not defined
        bounds = found.confidence_interval(method="log-log")
    low = bounds.low.probabilities.tolist()
    for i, (time, share) in enumerate(zip(at, found.probabilities.tolist(), strict=True)):
        assert curve.surviving[time - 1] == pytest.approx(share, abs=1e-12)
        if 1e-12 < share < 1:
            # Their interval on the log(-log) scale tells their variance.
            scaled = math.log(math.log(low[i]) / math.log(share)) / Z
            variance = (scaled * math.log(share) * share) ** 2
            least = 1 / (np.array(times) >= time).sum()
            each = min(max(variance / (share * (1 - share)), 1 / len(ends)), least)
            if any(
                abs(part / each - few) < 1e-6 for part in (share, 1 - share) for few in (2.5, 3.5)
            ):
                continue  # where the interval changes from Poisson's to Wilson's, rounding decides
            want = of_shares(np.array([share]), np.array([each]))
            assert curve.low[time - 1] == pytest.approx(want[0][0], abs=1e-6)
            assert curve.high[time - 1] == pytest.approx(want[1][0], abs=1e-6)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=60))
def test_where_none_is_cut_short_the_interval_is_wilsons(accused: list[int]) -> None:
    """Everybody goes to the end or is accused: the share of the uncensored, at every utterance."""
    curve = estimate([(min(end, 5), end < 6) for end in accused], 5)
    for n in range(1, 6):
        left = sum(end > n for end in accused)
        low, high = of_share(left, len(accused))
        assert curve.low[n - 1] == pytest.approx(low, abs=1e-9)
        assert curve.high[n - 1] == pytest.approx(high, abs=1e-9)
        assert high > low


@given(ENDS)
def test_survival_never_rises_and_ends_are_conserved(ends: list[tuple[int, bool]]) -> None:
    """Shares are shares, intervals hold them, every dialogue leaves once."""
    curve = estimate(ends, 12)
    known = curve.surviving[~np.isnan(curve.surviving)]
    assert ((known >= 0) & (known <= 1)).all()
    assert (np.diff(known) <= 1e-12).all()
    assert curve.at_risk[0] == len(ends)
    assert curve.accused.sum() == sum(accused for _, accused in ends)
    inside = ~np.isnan(curve.low)
    assert (inside == ~np.isnan(curve.surviving)).all()
    assert (curve.high[inside] - curve.low[inside] > 1e-3).all()
    assert (curve.low[inside] <= curve.surviving[inside]).all()
    assert (curve.high[inside] >= curve.surviving[inside]).all()


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
            rate = rates.success(records_.seeds, records_.dialogues[name], said, n)
            assert found[name].surviving[n - 1] == pytest.approx(rate.value)


def test_the_table_says_what_is_missing_and_what_ended_early() -> None:
    """Three of four readable: one accused, one stopped early, one that went on; best first."""
    plain = made({"m": 0.5, "best": 0.5}, 4)
    short = msgspec.structs.replace(
        plain.dialogues["m"]["S-2"], utterances=("a", "b", "c"), facts=(), status="stopped:refused"
    )
    dialogues = {**plain.dialogues, "m": {**plain.dialogues["m"], "S-2": short}}
    said = [
        judgment("unieval", f"S-{i}", ("m",), verdict)
        for i, verdict in enumerate(("5", "No", "No", None), 1)
    ]
    said.append(judgment("unieval", "S-1", ("best",), "No"))
    board = Made(plain.seeds, dialogues, {"unieval": said}).board()
    (part,) = board.of(Place)
    assert part.survival is not None
    best, row = part.survival.records
    assert best["model"] == "best"
    assert (best["quarter"], best["missing"]) == (None, 3)
    told = {key: row[key] for key in ("dialogues", "accused", "early", "missing", "half")}
    assert told == {"dialogues": 3, "accused": 1, "early": 1, "missing": 1, "half": 5}
    assert row["at_risk_n4"] == 2
    assert row["surviving_n16"] == 0.5


def test_stops_that_differ_by_model_have_bounds_and_few_at_risk_are_named() -> None:
    """Half of one model's dialogues stop after 3 utterances; only few of them reach 16."""
    plain = made({"m": 0.5, "best": 0.5}, 30)
    cut = {
        seed_id: one
        if i % 4 == 3
        else msgspec.structs.replace(one, utterances=one.utterances[:3], facts=())
        for i, (seed_id, one) in enumerate(plain.dialogues["m"].items())
    }
    said = [judgment("unieval", i, (name,), "No") for name in ("m", "best") for i in cut]
    whole = Made(plain.seeds, plain.dialogues, {"unieval": said}).board().of(Place)[0]
    (part,) = Made(plain.seeds, {**plain.dialogues, "m": cut}, {"unieval": said}).board().of(Place)
    row = next(row for row in part.survival.records if row["model"] == "m")
    bounds = row["surviving_if_stopped_accused"], row["surviving_if_stopped_passed"]
    assert (bounds, row["early"]) == ((round(7 / 30, 4), 1), 23)
    assert "How many stop before 16 differs by model" in part.table.note
    assert "(below 10): m @16 (7), m @" in part.table.note
    assert "if stopping tells nothing" in whole.table.note
    assert "differs by model" not in whole.table.note
    assert "surviving_if_stopped_accused" not in whole.survival.frame


def test_without_a_readable_verdict_there_is_no_curve() -> None:
    """A board of such verdicts has no table of it."""
    plain = made({"m": 0.5}, 3)
    said = [judgment("unieval", "S-1", ("m",), None)]
    assert (
        Made(plain.seeds, plain.dialogues, {"unieval": said}).board().of(Place)[0].survival is None
    )


def test_an_accusation_without_a_place_falls_where_the_others_do() -> None:
    """Between the ChatSEED and the end, self-consistently; counts stay whole."""
    told = [(4, True)] * 6 + [(10, True)] * 2 + [(16, False)] * 8
    alone = estimate(told, 16)
    both = estimate([*told, *[(16, None)] * 4], 16)
    # 12 of 20 are accused; three quarters of those with a place at 4.
    assert both.surviving[3] == pytest.approx(1 - 12 / 20 * 3 / 4, abs=1e-6)
    assert both.surviving[15] == pytest.approx(8 / 20, abs=1e-6)
    assert both.at_risk[0] == 20
    assert both.accused.sum() == 12
    assert both.early == alone.early == 0


def test_accusations_without_any_place_are_spread_and_end_where_they_must() -> None:
    """Nothing is said of before the ChatSEED's end; a short dialogue bounds its own."""
    curve = estimate([(8, None)] * 3 + [(4, None)] * 3 + [(8, False)] * 6, 8)
    assert curve.surviving[1] == 1
    assert curve.surviving[3] <= 0.75 + 1e-9
    assert curve.surviving[7] == pytest.approx(0.5)
    assert (np.diff(curve.surviving) <= 1e-12).all()
