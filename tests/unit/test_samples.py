"""One judge asked several times."""

from __future__ import annotations

import asyncio
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Decoding
from botchat.judges.single import SingleJudge, base_judge_name, repeated_judge, stability
from botchat.records import Remark
from tests.scripted import Scripted, arena_case, choice

VERDICTS = st.sampled_from(["1", "2", "both", "neither", None])


def rule(judge, case):
    """Its answer."""
    return asyncio.run(judge.answer(case))


def said(*verdicts, agent="j", end=""):
    """The turns of one agent's samples."""
    return tuple(Remark(f"{agent} #{n}{end}", "", "", "ok", v) for n, v in enumerate(verdicts, 1))


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


def test_stability_counts_each_agent_and_each_order_by_itself():
    """Unreadable samples are absent; what was asked once says nothing."""
    found = stability(
        [
            said("1", "1", "2"),  # 1 of 3 pairs
            (*said("1", "1"), *said("2", "2", end=" (swapped)")),  # 2 x 1 of 1
            said("both", None, "both"),  # 1 of 1
            said("1", None, None),
            (Remark("Critic", "", "", "ok", "1"), Remark("Author", "", "", "ok", "2")),
        ]
    )
    assert found is not None
    assert (found.n, found.unanimous) == (4, 3 / 4)
    assert found.agreement == pytest.approx((1 / 3 + 3) / 4)
    assert stability([()]) is None


@given(st.lists(st.lists(VERDICTS, min_size=2, max_size=6), min_size=1, max_size=5))
def test_stability_is_the_share_of_equal_pairs(cases):
    """Against a count by hand."""
    readable = [[v for v in case if v is not None] for case in cases]
    readable = [case for case in readable if len(case) > 1]
    found = stability([said(*case) for case in cases])
    if not readable:
        assert found is None
        return
    alike = [[a == b for a, b in combinations(case, 2)] for case in readable]
    assert found.agreement == pytest.approx(sum(sum(s) / len(s) for s in alike) / len(alike))
    assert found.unanimous == sum(len(set(case)) == 1 for case in readable) / len(readable)
    assert found.unanimous <= found.agreement + 1e-12
