"""One judge asked several times."""

from __future__ import annotations

import asyncio

from botchat.interfaces import Decoding
from botchat.judges.single import SingleJudge, base_judge_name, repeated_judge
from tests.scripted import Scripted, arena_case, choice


def rule(judge, case):
    """Its answer."""
    return asyncio.run(judge.answer(case))


def test_samples_differ_in_their_number_alone_and_the_majority_decides():
    """The bare question K times; the first sample is the call of a judge that is asked once."""
    case = arena_case()
    model = Scripted([choice("1"), choice("2"), choice("1")], name="m")
    answer = rule(repeated_judge("m", model, Decoding(0.7, 9), 3), case)
    assert (answer.verdict, len(answer.calls)) == ("1", 3)
    assert model.prompts == [case.prompt] * 3
    assert model.samplings == [Decoding(0.7, 9, sample) for sample in range(3)]
    once = Scripted(choice("1"), name="m")
    rule(SingleJudge("m", once, Decoding(0.7, 9)), case)
    assert once.samplings == model.samplings[:1]


def test_a_sampled_judge_is_another_judge():
    """Name and digest change with the number of samples, and the decoding."""
    model = Scripted("", name="m")
    one = SingleJudge("m", model, Decoding(0.7))
    several = [
        repeated_judge("m", model, Decoding(0.7), 3),
        repeated_judge("m", model, Decoding(0.7), 5),
        repeated_judge("m", model, Decoding(0.8), 3),
    ]
    assert len({judge.digest for judge in (one, *several)}) == 4
    assert several[1].name == "m (5 samples)"
    assert [base_judge_name(judge.name) for judge in (one, *several)] == ["m"] * 4
