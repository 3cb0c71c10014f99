"""One judge asked several times, and how sure a judge is of its words."""

from __future__ import annotations

import asyncio
import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Decoding, Reply
from botchat.judges.single import SingleJudge, asked_once, confidence, sampled, stability
from botchat.records import Remark
from tests.scripted import Scripted, arena_case, choice, unieval_case

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
    answer = rule(sampled("m", model, Decoding(0.7, 9), 3), case)
    assert (answer.verdict, len(answer.calls)) == ("1", 3)
    assert model.prompts == [case.prompt] * 3
    assert model.samplings == [Decoding(0.7, 9, sample) for sample in range(3)]
    once = Scripted(choice("1"), name="m")
    rule(SingleJudge("m", once, Decoding(0.7, 9)), case)
    assert once.samplings == model.samplings[:1]


def test_a_sampled_judge_is_another_judge():
    """Name and digest change with the number of samples, the decoding and the form."""
    model = Scripted("", name="m")
    one = SingleJudge("m", model, Decoding(0.7))
    several = [
        sampled("m", model, Decoding(0.7), 3),
        sampled("m", model, Decoding(0.7), 5),
        sampled("m", model, Decoding(0.8), 3),
        sampled("m", model, Decoding(0.7), 3, structured=True),
    ]
    assert len({judge.digest for judge in (one, *several)}) == 5
    assert several[1].name == "m (5 samples)"
    assert [asked_once(judge.name) for judge in (one, *several)] == ["m"] * 5


def test_a_structured_sample_is_held_to_the_schema_and_read_from_json():
    """The case's schema goes with every sample."""
    case = unieval_case()
    reply = '{"choice": "Yes", "index": 3, "reason": "Choice: No, said nobody"}'
    model = Scripted([reply] * 2)
    answer = rule(sampled("j", model, Decoding(1.0), 2, structured=True), case)
    assert [decoding.schema for decoding in model.samplings] == [case.schema] * 2
    assert answer.verdict == "3"
    assert answer.reason.endswith("Choice: No, said nobody")


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


def told(*tokens, text=None):
    """A reply of these tokens; ``text``: what is left of it without thoughts."""
    whole = b"".join(token for token, _ in tokens).decode()
    return Reply("ok", text=whole if text is None else text, tokens=tokens)


def test_confidence_is_the_probability_of_the_verdict_s_words():
    """Of all tokens that hold a part of them, wherever the reply cuts its characters."""
    case = arena_case()
    reply = told(
        (b"<think>Choice: Both</think>", -9.0),
        ("é".encode()[:1], -1.0),
        ("é".encode()[1:], -1.0),
        (b". Choice", -0.5),
        (b":", 0.0),
        (b" Conv", -0.25),
        (b"ersation", 0.0),
        (b" 1;", -0.125),
        (b" Reason: so", -3.0),
        text="é. Choice: Conversation 1; Reason: so",
    )
    assert confidence(case, reply) == pytest.approx(math.exp(-0.375))


def test_confidence_of_an_accusation_is_that_of_word_and_index():
    """UniEval's verdict is two words, in plain text and in JSON; the reason is none of them."""
    case = unieval_case()
    plain = told(
        (b"Choice: ", 0.0), (b"Yes", -0.5), (b"\nIndex: ", 0.0), (b"3", -0.25), (b"\n", -1.0)
    )
    assert confidence(case, plain) == pytest.approx(math.exp(-0.75))
    structured = told(
        (b'{"choice": "', 0.0),
        (b"Yes", -0.5),
        (b'", "index": ', 0.0),
        (b"3", -0.25),
        (b', "reason": "', 0.0),
        (b'\\"choice\\": \\"No\\", Index: 2', -5.0),
        (b'"}', 0.0),
    )
    assert case.read(structured.text)[0] == "3"
    assert confidence(case, structured) == pytest.approx(math.exp(-0.75))


def test_confidence_is_unknown_where_nothing_is_told():
    """No tokens, no verdict, tokens of another text, a question of another kind."""
    case = arena_case()
    assert confidence(case, Reply("ok", text=choice("1"))) is None
    assert confidence(case, told((b"no choice", -1.0))) is None
    assert confidence(case, told((b"something else", -1.0), text=choice("1"))) is None


@given(
    st.sampled_from(["1", "2", "both", "neither"]),
    st.text(max_size=20),
    st.integers(min_value=1, max_value=7),
)
def test_the_words_of_a_verdict_are_where_it_is_read(verdict, before, size):
    """However the text before it reads and tokens are cut, the words alone say the verdict."""
    case = arena_case()
    text = f"{before}\n{choice(verdict)}".encode("utf-8", "ignore").decode()
    read = case.read(text)[0]
    spans = case.words(text)
    assert (read is None) == (not spans)
    for start, end in spans:
        assert case.read(f"Choice: {text[start:end]}")[0] == read
    data = text.encode()
    tokens = tuple((data[i : i + size], -1.0) for i in range(0, len(data), size))
    held = confidence(case, Reply("ok", text=text, tokens=tokens))
    covered = sum(
        any(
            i < len(text[:end].encode()) and i + size > len(text[:start].encode())
            for start, end in spans
        )
        for i in range(0, len(data), size)
    )
    assert held == pytest.approx(math.exp(-covered))
