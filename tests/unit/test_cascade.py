"""A cheap judge in both orders, a strong one where that does not do."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError
from botchat.interfaces import Answer, Decoding
from botchat.judges.cascade import (
    DRAWN,
    REFUSED,
    UNSURE,
    Cascade,
    Escalations,
    Guarantee,
    by_contestant,
    draw,
    escalations,
    loosest,
    strict_to_loose,
    sureness,
)
from botchat.judges.panel import build_panel
from botchat.judges.single import SingleJudge
from botchat.measures.intervals import of_share
from botchat.records import Judgment, Remark
from botchat.workspace.panels import PRESETS, CascadeSettings
from tests.scripted import FAILED, Scripted, accusation, arena_case, choice, unieval_case

TOLD_APART = ("This is one.", "b", "c", "d")


def cascade(cheap, strong="2", calibration=0.0):
    """A cascade of two single judges; ``cheap`` says what about the case, then about its mirror."""
    case = arena_case(one=TOLD_APART)
    replies = [said if not isinstance(said, str) else choice(said, f"c{said}") for said in cheap]
    one = Scripted(lambda prompt: replies[prompt != case.prompt], name="cheap")
    two = Scripted(choice(strong, "deep") if isinstance(strong, str) else strong, name="strong")
    judges = [SingleJudge(model.name, model, Decoding()) for model in (one, two)]
    return Cascade("thrifty", *judges, calibration=calibration), case, one, two


def judged(answer, seed="s", contestants=("a", "b")):
    """The judgment made of an answer."""
    return Judgment(
        "arena-n4", seed, contestants, "j", answer.verdict, "", 4, "digest", "sig",
        transcript=answer.transcript,
    )  # fmt: skip


def account_of(*answers):
    """Of answers on a seed each."""
    return escalations(judged(answer, f"s{i}") for i, answer in enumerate(answers))


def test_a_steady_judge_is_believed():
    """1 in the order as shown and 2 in the swapped one are the same side: two calls in all."""
    judge, case, cheap, strong = cascade(["1", "2"])
    answer = asyncio.run(judge.answer(case))
    assert answer.verdict == "1"
    assert answer.reason == "both orders agree: c1"
    assert (len(cheap.prompts), strong.prompts) == (2, [])
    assert answer.calls == ("cheap-0", "cheap-1")
    assert cheap.most_in_flight == 2


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (["1", "1"], "the orders disagree"),
        (["1", "both"], "the orders disagree"),
        (["both", "both"], "tie"),
        (["neither", "neither"], "tie"),
        ([FAILED["refused"], "2"], "no readable verdict"),
    ],
)
def test_all_else_goes_to_the_strong_judge(said, cause):
    """Disagreement, a tie, nothing readable: the strong judge's answer stands, and says why."""
    judge, case, _, strong = cascade(said)
    answer = asyncio.run(judge.answer(case))
    assert answer.verdict == "2"
    assert answer.reason == f"escalated ({cause}): deep"
    assert len(strong.prompts) == 1
    assert answer.calls == ("cheap-0", "cheap-1", "strong-0")
    assert account_of(answer) == Escalations(1, 0, {cause: 1}, 0, 0)


def test_a_question_without_a_second_order_goes_to_the_strong_judge_and_no_answer_to_nobody():
    """UniEval shows no steadiness; a transport failure is the endpoint's, and heals."""
    model = Scripted(accusation("3"), name="strong")
    cheap = Scripted([], name="cheap")
    judge = Cascade(
        "thrifty",
        SingleJudge("cheap", cheap, Decoding()),
        SingleJudge("strong", model, Decoding()),
        calibration=0.5,
    )
    answer = asyncio.run(judge.answer(unieval_case()))
    assert answer.verdict == "3"
    assert cheap.prompts == []
    judge, case, _, strong = cascade(["1", FAILED["transport"]])
    answer = asyncio.run(judge.answer(case))
    assert (answer.verdict, answer.outcome) == (None, "transport")
    assert strong.prompts == []
    assert account_of(answer).n == 0


def test_the_calibration_slice_measures_the_cheap_judge():
    """All in the slice: the strong judge rules, and its agreement is told."""
    rulings = []
    for strong in ("1", "1", "2"):
        judge, case, _, model = cascade(["1", "2"], strong, calibration=1.0)
        rulings.append(asyncio.run(judge.answer(case)))
        assert len(model.prompts) == 1
    assert [answer.verdict for answer in rulings] == ["1", "1", "2"]
    assert rulings[0].reason == "escalated (calibration slice): deep"
    account = account_of(*rulings)
    assert astuple(account)[:5] == (3, 3, {}, 3, 2)
    assert (account.agreed_low, account.agreed_high) == pytest.approx(of_share(2, 3))
    assert "of 3 questions checked the strong judge agreed on 2 (95 %: 21 to 98 %)" in str(account)


def test_both_orders_of_a_question_are_one_and_questions_of_a_seed_belong_together():
    """Twelve cases are six questions; six questions on two seeds say less than six seeds would."""
    judge, case, _, _ = cascade(["1", "2"], "1", calibration=1.0)
    answer = asyncio.run(judge.answer(case))
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    made = [
        judged(answer, seed, shown)
        for seed in ("s1", "s2")
        for pair in pairs
        for shown in (pair, pair[::-1])
    ]
    account = escalations(made)
    assert (account.n, account.checked, account.agreed) == (12, 6, 6)
    assert account.agreed_low < of_share(2, 2)[0] + 1e-9 < of_share(6, 6)[0]


def test_both_orders_of_a_question_are_in_the_slice_or_neither():
    """About as many as asked for, and the same whichever order is the case."""
    chosen = 0
    for number in range(200):
        case = arena_case(one=(f"Number {number}.", "b", "c", "d"))
        asked = []
        for shown in (case, case.mirror()):
            cheap = Scripted(lambda prompt, first=case: choice("12"[prompt != first.prompt]))
            strong = Scripted(choice("1"))
            judges = [SingleJudge("j", model, Decoding()) for model in (cheap, strong)]
            asyncio.run(Cascade("c", *judges, calibration=0.25).answer(shown))
            asked.append(len(strong.prompts))
        assert asked[0] == asked[1]
        chosen += asked[0]
    assert 30 <= chosen <= 70


def test_a_panel_can_be_the_strong_judge():
    """Its whole talk is in the transcript, between the cheap judge's part and its own verdict."""
    cheap = Scripted(choice("1"), name="cheap")
    strong = Scripted(choice("2"), name="strong")
    models = {"cheap": cheap, "strong": strong}

    def judge_of(name):
        if name == "panel":
            return build_panel("panel", PRESETS["chateval-default"], models.__getitem__, "strong")
        return SingleJudge(name, models[name], Decoding())

    settings = CascadeSettings(cheap="cheap", strong="panel", calibration=0)
    judge = build_panel("c", settings, models.__getitem__, None, judge_of)
    answer = asyncio.run(judge.answer(arena_case(one=TOLD_APART)))
    speakers = [turn.speaker for turn in answer.transcript]
    assert speakers[:3] == ["Cheap judge", "Cheap judge (swapped)", "Cascade"]
    assert speakers[3:5] == ["General Public", "Critic"]
    assert speakers[-1] == "Strong judge"
    assert answer.verdict == "neither"  # this panel names the second in both orders
    assert len(answer.calls) == 2 + 2 * 2 * 2


def test_what_decides_the_verdicts_is_signed():
    """Either judge and the slice; the threshold and the promise."""
    judges = [SingleJudge(n, Scripted("", name=n), Decoding()) for n in "abc"]
    digests = {
        Cascade("x", judges[0], judges[1], calibration=0.0).digest,
        Cascade("x", judges[0], judges[1], calibration=0.1).digest,
        Cascade("x", judges[0], judges[2], calibration=0.0).digest,
        Cascade("x", judges[2], judges[1], calibration=0.0).digest,
    }
    assert len(digests) == 4
    judge, *_ = calibrated(cases(10), steady, steady)
    worse, *_ = calibrated(cases(10), steady, choice("both"))
    other, *_ = calibrated(cases(10, 20), steady, steady)
    digests = {one.digest for one in (judge, worse, other, replace(judge, calibrated=None))}
    assert len(digests) == 4
    assert judge.calibrated.signed == (
        f"alpha=0.4,delta=0.3,threshold=1.0,slice={judge.calibrated.slice_digest}"
    )
    assert "threshold=none" in worse.calibrated.signed


# A cascade's threshold with a guarantee: drawn, tried and chosen.

ALPHA = Guarantee(alpha=0.1, delta=0.05, seeds=100)


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


def test_thresholds_go_from_strict_to_loose_and_the_first_that_fails_ends_it():
    """Of 100 drawn, half to be accepted: 43.5 are tried first."""
    outside = [i / 100 for i in range(100)] + [None] * 100
    tried = strict_to_loose(outside, ALPHA)
    assert tried == sorted(tried, reverse=True)
    assert sum(one is not None and one >= tried[0] for one in outside) == 87
    assert tried[-1] == 0.0
    assert strict_to_loose([1.0] * 50, ALPHA) == [1.0]
    assert strict_to_loose([None], ALPHA) == strict_to_loose([], ALPHA) == [0.0]
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
    """The strong judge is asked about the slice; where no threshold passes, about everything."""
    make = cases(10)
    judge, _, strong = calibrated(make, steady, steady)
    assert (judge.calibrated.threshold, judge.calibrated.accepted) == (1.0, 4)
    assert len(strong.prompts) == 4
    assert Counter(causes(judge, make)) == {DRAWN: 4, "accepted": 6}
    assert "at most 40 % of the accepted verdicts disagree" in str(judge.calibrated)
    assert "(0 of 4 disagree in the slice of 4)" in str(judge.calibrated)
    make = cases(10)
    judge, *_ = calibrated(make, steady, choice("both"))
    assert judge.calibrated.threshold is None
    assert Counter(causes(judge, make)) == {DRAWN: 4, UNSURE: 6}
    assert str(judge.calibrated).startswith("no threshold shows that at most 40 % of the")
    assert str(judge.calibrated).endswith(
        "(4 of 4 disagree in the slice of 4): everything went to it"
    )


def test_a_contestant_on_which_the_judges_disagree_is_refused():
    """Though 3 of 40 in all are few enough; its other cases go to the strong judge."""
    seen = [(1.0, i < 3, (("bad",) if i < 5 else ("good", "fine"))) for i in range(40)]
    assert loosest([1.0], [one[:2] for one in seen], replace(ALPHA, delta=0.5))[0] == 1.0
    rows = by_contestant([*seen, (0.5, True, ("good",))], 1.0, ALPHA.alpha)
    assert [tuple(row.values()) for row in rows] == [
        ("bad", 5, 3, True), ("fine", 35, 0, False), ("good", 35, 0, False),
    ]  # fmt: skip
    assert by_contestant(seen, None, ALPHA.alpha) == ()
    make = cases(10)
    judge, *_ = calibrated(make, steady, steady)
    names = make[0]().contestants
    told = tuple({**row, "refused": row["contestant"] == names[0]} for row in
                 judge.calibrated.contestants)  # fmt: skip
    assert [tuple(row.values()) for row in told] == [
        (names[0], 4, 0, True),
        (names[1], 4, 0, False),
    ]
    refusing = replace(judge, calibrated=replace(judge.calibrated, contestants=told))
    assert Counter(causes(refusing, make)) == {DRAWN: 4, REFUSED: 6}
    assert refusing.digest != judge.digest
    assert f"; {names[0]} is refused, its cases all go to it" in str(refusing.calibrated)


def test_nothing_is_decided_until_the_slice_is_answered():
    """A strong judge that is down costs nothing more; too few seeds are one clear line."""
    make = cases(10)
    judge, _, strong = calibrated(make, steady, FAILED["transport"])
    assert not judge.calibrated.whole
    assert "not complete" in str(judge.calibrated)
    asked = len(strong.prompts)
    assert Counter(causes(judge, make)) == {DRAWN: 4, "transport": 6}
    assert len(strong.prompts) == asked + 4
    with pytest.raises(ConfigError, match=r"calibration_seeds = 4 of thrifty: a case of 3 ChatSEE"):
        calibrated(cases(3), steady, steady)


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


def test_a_guarantee_is_kept_by_the_whole_cascade_only():
    """Not inside another one."""
    inner = CascadeSettings(cheap="a", strong="b", alpha=0.4, delta=0.3, calibration_seeds=4)
    outer = CascadeSettings(cheap="inner", strong="c", calibration=0)
    models = {name: Scripted("", name=name) for name in "abc"}

    def judge_of(name):
        if name == "inner":
            return build_panel("inner", inner, models.__getitem__, None, judge_of)
        return SingleJudge(name, models[name], Decoding())

    assert judge_of("inner").guarantee == FEW
    with pytest.raises(
        ConfigError, match=r"panels\.outer: inner has alpha, which is kept on whole"
    ):
        build_panel("outer", outer, models.__getitem__, None, judge_of)
