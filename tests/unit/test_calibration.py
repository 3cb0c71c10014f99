"""A cascade's threshold with a guarantee: drawn, tried and chosen."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from botchat.errors import ConfigError
from botchat.interfaces import Answer, Decoding
from botchat.judges.cascade import (
    DRAWN,
    UNSURE,
    Cascade,
    Guarantee,
    draw,
    loosest,
    outside_slice,
    so_few,
    strict_to_loose,
    sureness,
)
from botchat.judges.panel import build_panel
from botchat.judges.single import SingleJudge
from botchat.records import Judgment, Remark
from botchat.workspace.panels import CascadeSettings
from tests.scripted import FAILED, Scripted, accusation, arena_case, choice, unieval_case

ALPHA = Guarantee(alpha=0.1, delta=0.05, seeds=100)


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 0.6))
def test_the_chance_is_the_binomial(k, n, share):
    """As scipy has it."""
    k, n = sorted((k, n))
    assert so_few(k, n, share) == pytest.approx(stats.binom.cdf(k, n, share), abs=1e-12)


@given(
    st.dictionaries(st.integers(0, 40), st.integers(1, 6), min_size=1),
    st.integers(1, 12),
    st.randoms(),
)
def test_a_draw_has_one_case_a_seed_and_no_memory_of_order(sizes, n, shuffled):
    """As many as asked for at most; a longer draw goes on where a shorter one ended."""
    cases = [(str(seed), f"{seed}-{i}") for seed, m in sizes.items() for i in range(m)]
    found = draw(cases, n)
    seeds = [one.split("-")[0] for one in found]
    assert len(found) <= n
    assert len(set(seeds)) == len(seeds)
    assert draw(cases, n + 1)[: len(found)] == found
    again = list(cases)
    shuffled.shuffle(again)
    assert draw(again, n) == found


def test_every_case_has_the_same_chance_whatever_its_seed_holds():
    """Seeds of 4 cases and of 1: a case of either is drawn as often."""
    times: Counter[bool] = Counter()
    for world in range(400):
        cases = [
            (f"{world}-{i}", f"{world}-{i}-{j}") for i in range(20) for j in range(1 + i % 2 * 3)
        ]
        times.update(int(one.split("-")[1]) % 2 == 1 for one in draw(cases, 3))
    # 4 in 5 cases are of large seeds.
    assert times[True] / times.total() == pytest.approx(0.8, abs=0.05)


def test_thresholds_go_from_strict_to_loose_and_begin_where_something_can_be_shown():
    """Of 100 drawn, half to be accepted: 43.5 are tried first."""
    outside = [i / 100 for i in range(100)] + [None] * 100
    tried = strict_to_loose(outside, ALPHA)
    assert tried == sorted(tried, reverse=True)
    assert sum(one is not None and one >= tried[0] for one in outside) == 87
    assert tried[-1] == 0.0
    assert strict_to_loose([1.0] * 50, ALPHA) == [1.0]
    assert strict_to_loose([None], ALPHA) == strict_to_loose([], ALPHA) == [0.0]


def test_the_first_threshold_that_fails_ends_it():
    """A looser one that would pass is not looked at."""
    sure = [(0.9, False)] * 40
    assert loosest([0.9, 0.5], sure, ALPHA) == (0.5, 40, 0)
    apart = [*sure, *[(0.5, True)] * 10]
    assert loosest([0.9, 0.5, 0.1], [*apart, *[(0.1, False)] * 500], ALPHA) == (0.9, 40, 0)
    assert loosest([0.9], sure[:28], ALPHA) == (None, 28, 0)
    assert loosest([0.9], sure[:29], ALPHA) == (0.9, 29, 0)
    assert loosest([], [], ALPHA) == (None, 0, 0)


def test_the_promise_holds_where_verdicts_of_a_seed_are_all_alike():
    """A share just above alpha is believed in at most delta of 300 calibrations, and two errors."""
    rng = np.random.default_rng(1)
    wrong = 0
    for world in range(300):
        seeds = rng.random(120) < 0.105
        cases = [(f"{world} {i}", f"{i} {world}-{j}") for i in range(120) for j in range(2)]
        drawn = [int(one.split()[0]) for one in draw(cases, 100)]
        wrong += loosest([1.0], [(1.0, bool(seeds[i])) for i in drawn], ALPHA)[0] is not None
    assert wrong / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


# ------------------------------------------------------------------------------ the judge

FEW = Guarantee(alpha=0.4, delta=0.3, seeds=4)
"""Three that agree show it."""


def cases(n, start=0):
    """One case of each of ``n`` seeds, which knows its mirror."""

    def made(i, swap=False):
        one = arena_case(one=(f"Talk {i}.", "b", "c", "d"), two=(f"Chat {i}.", "b", "c", "d"))
        one = one.mirror() if swap else one
        return replace(one, seed_id=f"s{i}", mirror=lambda: made(i, not swap))

    return [lambda i=i: made(i) for i in range(start, start + n)]


def steady(prompt):
    """Prefers the talk to the chat, in either order."""
    return choice("1" if prompt.rindex("Talk") < prompt.rindex("Chat") else "2")


def calibrated(make, cheap, strong, guarantee=FEW):
    """The cascade, calibrated, and its two models."""
    one, two = Scripted(cheap, name="cheap"), Scripted(strong, name="strong")
    judges = [SingleJudge(model.name, model, Decoding()) for model in (one, two)]
    cascade = Cascade("thrifty", *judges, guarantee=guarantee)

    async def work(makers, do):
        for each in makers:
            await do(each)

    return asyncio.run(cascade.calibrate(make, work)), one, two


def causes(judge, make):
    """What the cascade says of each case."""
    answers = [asyncio.run(judge.answer(one())) for one in make]
    return [
        next((r.text for r in one.transcript if r.speaker == "Cascade"), one.outcome)
        for one in answers
    ]


def test_a_cascade_accepts_what_the_slice_shows_to_agree():
    """The strong judge is asked about the slice only, once a case."""
    make = cases(10)
    judge, _, strong = calibrated(make, steady, steady)
    assert (judge.calibrated.threshold, judge.calibrated.accepted) == (1.0, 4)
    assert len(strong.prompts) == 4
    assert Counter(causes(judge, make)) == {DRAWN: 4, "accepted": 6}
    assert "at most 40 % of the accepted verdicts disagree" in str(judge.calibrated)
    assert "(0 of 4 disagree in the slice of 4)" in str(judge.calibrated)


def test_where_no_threshold_passes_everything_is_escalated():
    """And one line says so."""
    make = cases(10)
    judge, *_ = calibrated(make, steady, choice("both"))
    assert judge.calibrated.threshold is None
    assert Counter(causes(judge, make)) == {DRAWN: 4, UNSURE: 6}
    assert str(judge.calibrated).startswith("no threshold shows that at most 40 % of the")
    assert str(judge.calibrated).endswith(
        "(4 of 4 disagree in the slice of 4): everything went to it"
    )


def test_a_case_of_the_slice_keeps_its_other_cause():
    """So that the account does not count it as accepted."""
    make = cases(5)
    judge, *_ = calibrated(make, choice("both"), steady)
    assert Counter(causes(judge, make)) == {f"{DRAWN}, tie": 4, "tie": 1}
    assert judge.calibrated.accepted == 0


def test_nothing_is_decided_until_the_slice_is_answered():
    """A strong judge that is down costs nothing more, and the next run asks again."""
    make = cases(10)
    judge, _, strong = calibrated(make, steady, FAILED["transport"])
    assert not judge.calibrated.whole
    assert "not complete" in str(judge.calibrated)
    asked = len(strong.prompts)
    assert Counter(causes(judge, make)) == {DRAWN: 4, "transport": 6}
    assert len(strong.prompts) == asked + 4


def test_too_few_seeds_are_one_clear_line():
    """What is asked for, and what there is."""
    with pytest.raises(ConfigError, match=r"calibration_seeds = 4 of thrifty: a case of 3 ChatSEE"):
        calibrated(cases(3), steady, steady)


def test_what_was_found_is_signed():
    """The threshold, the promise and the slice; a cascade that is not calibrated has its own."""
    judge, *_ = calibrated(cases(10), steady, steady)
    worse, *_ = calibrated(cases(10), steady, choice("both"))
    other, *_ = calibrated(cases(10, 20), steady, steady)
    digests = {one.digest for one in (judge, worse, other, replace(judge, calibrated=None))}
    assert len(digests) == 4
    assert judge.calibrated.signed == (
        f"alpha=0.4,delta=0.3,threshold=1.0,slice={judge.calibrated.slice_digest}"
    )
    assert "threshold=none" in worse.calibrated.signed


def test_how_sure_a_judge_is():
    """Probability where it is known, else the share of votes, else certain; the mean of orders."""

    def said(verdict, *votes, confidence=None):
        talk = tuple(Remark(f"A{i}", "x", verdict=vote) for i, vote in enumerate(votes))
        return Answer(verdict, transcript=talk, confidence=confidence)

    assert sureness([said("1"), said("2")]) == 1.0
    assert sureness([said("1", "1", "1", "2", "1"), said("2", "2", "1")]) == pytest.approx(0.625)
    assert sureness([said("1", confidence=0.9), said("2", confidence=0.7)]) == pytest.approx(0.8)
    assert sureness([said("1"), said("1")]) is None
    assert sureness([said("both"), said("both")]) is None
    assert sureness([said(None), said("2")]) is None
    assert sureness([said("3", "3", "No")]) == 0.5


def test_a_question_of_one_order_can_be_accepted_too():
    """UniEval: asked once."""

    def make(i):
        return replace(unieval_case((f"Talk {i}.", "b", "c", "d")), seed_id=f"s{i}")

    made = [lambda i=i: make(i) for i in range(10)]
    judge, cheap, _ = calibrated(made, accusation("3"), accusation("3"))
    assert Counter(causes(judge, made)) == {DRAWN: 4, "accepted": 6}
    assert len(cheap.prompts) == 20


def test_whole_seeds_of_the_slice_are_left_out_of_evaluation():
    """Their other cases too, and nothing of another judge."""

    def judged(seed, text):
        return Judgment(
            "arena-n4", seed, ("a", "b"), "j", "1", "", 4, hashlib.md5(seed.encode()).hexdigest(),
            "sig", transcript=(Remark("Cascade", text),),
        )  # fmt: skip

    made = [judged("s1", f"{DRAWN}, tie"), judged("s1", "accepted"), judged("s2", "accepted")]
    assert outside_slice(made) == made[2:]
    assert outside_slice(made[1:]) == made[1:]


def test_a_guarantee_is_kept_by_the_whole_cascade_only():
    """Not inside another one."""
    inner = CascadeSettings(cheap="a", strong="b", alpha=0.4, delta=0.3, calibration_seeds=4)
    outer = CascadeSettings(cheap="inner", strong="c", calibration=0)
    models = {name: Scripted("", name=name) for name in "abc"}

    def judge_of(name):
        if name == "inner":
            return build_panel("inner", inner, models.__getitem__, None)
        return SingleJudge(name, models[name], Decoding())

    assert judge_of("inner").guarantee == FEW
    with pytest.raises(
        ConfigError, match=r"panels\.outer: inner has alpha, which is kept on whole"
    ):
        build_panel("outer", outer, models.__getitem__, None, judge_of)
