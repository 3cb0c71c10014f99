"""One judge asked several times."""

from __future__ import annotations

import asyncio
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Decoding
from botchat.judges.single import SingleJudge, base_judge_name, repeated_judge, sample_agreement
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


def test_agreement_counts_each_agent_and_each_order_by_itself():
    """Unreadable samples are absent; one sample, and an agent that is not sampled, say nothing."""
    assert sample_agreement(said("1", "1", "2")) == [(False, pytest.approx(1 / 3))]
    both = (*said("1", "1"), *said("2", "2", end=" (swapped)"))
    assert sample_agreement(both) == [(True, 1), (True, 1)]
    assert sample_agreement(said("both", None, "both")) == [(True, 1)]
    assert sample_agreement(said("1", None, None)) == []
    panel = (Remark("Critic", "", "", "ok", "1"), Remark("Author", "", "", "ok", "2"))
    assert sample_agreement(panel) == sample_agreement(()) == []


@given(st.lists(VERDICTS, min_size=2, max_size=6))
def test_agreement_is_the_share_of_equal_pairs(verdicts):
    """Against a count by hand."""
    readable = [verdict for verdict in verdicts if verdict is not None]
    pairs = [a == b for a, b in combinations(readable, 2)]
    expected = [(len(set(readable)) == 1, pytest.approx(sum(pairs) / len(pairs)))] if pairs else []
    assert sample_agreement(said(*verdicts)) == expected
