"""A cheap judge in both orders, a strong one where that does not do."""

from __future__ import annotations

import asyncio
from dataclasses import astuple

import pytest

from botchat.interfaces import Decoding
from botchat.judges.cascade import Cascade, Escalations, escalations
from botchat.judges.panel import build_panel
from botchat.judges.single import SingleJudge
from botchat.measures.intervals import of_share
from botchat.records import Judgment
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


def test_a_question_without_a_second_order_goes_straight_to_the_strong_judge():
    """UniEval: nothing shows whether the cheap judge is steady."""
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


def test_an_unanswered_cheap_judge_is_asked_again_not_replaced():
    """A transport failure is the endpoint's, and heals; the strong judge costs nothing then."""
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


def test_the_digest_follows_either_judge_and_the_slice():
    """So that signatures change with what decides the verdicts."""
    judges = [SingleJudge(n, Scripted("", name=n), Decoding()) for n in "abc"]
    digests = {
        Cascade("x", judges[0], judges[1], calibration=0.0).digest,
        Cascade("x", judges[0], judges[1], calibration=0.1).digest,
        Cascade("x", judges[0], judges[2], calibration=0.0).digest,
        Cascade("x", judges[2], judges[1], calibration=0.0).digest,
    }
    assert len(digests) == 4
