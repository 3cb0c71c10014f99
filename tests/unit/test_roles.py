"""Layouts, truncation and think blocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.models.self_chat import (
    arrange,
    dropped_to_fit,
    history,
    prompt_tokens,
    reply_tokens,
    without_thoughts,
)

words = st.lists(st.sampled_from(["a", "bb cc", "d e f g"]), min_size=1, max_size=9)


def roles(messages):
    """The roles as one string: s, u, a."""
    return "".join(m["role"][0] for m in messages)


@given(utterances=words)
def test_the_last_utterance_is_always_the_users(utterances):
    """The model that speaks next sees the other's utterance last, its own as assistant."""
    messages = history("S", utterances)
    assert messages[-1]["role"] == "user"
    assert [m["content"] for m in messages[1:]] == utterances
    spoken = roles(messages)[1:]
    assert all(a != b for a, b in pairwise(spoken))


def test_even_history_in_every_layout():
    """The paper's first request (two seed utterances) in the layouts that templates take."""
    natural = history("S", ["one", "two"])
    assert roles(natural) == "sau"
    merged = arrange(natural, "merge-leading", "system")
    assert roles(merged) == "su"
    assert merged[1]["content"] == "[You said before:] one\n\ntwo"
    placed = arrange(natural, "placeholder-user", "system")
    assert roles(placed) == "suau"
    assert [m["content"] for m in placed[1:]] == ["...", "one", "two"]
    folded = arrange(natural, "merge-leading", "system-in-user")
    assert roles(folded) == "u"
    assert folded[0]["content"] == "S\n\n[You said before:] one\n\ntwo"
    assert roles(arrange(natural, "placeholder-user", "system-in-user")) == "uau"


@given(
    utterances=words,
    layout=st.sampled_from(["merge-leading", "placeholder-user"]),
    system=st.sampled_from(["system", "system-in-user"]),
)
def test_strict_layouts_alternate_from_user_to_user(utterances, layout, system):
    """After the system message strict templates get user, assistant, ..., user; no word is lost."""
    messages = arrange(history("S", utterances), layout, system)
    spoken = roles(messages).removeprefix("s")
    assert spoken == ("ua" * len(spoken))[: len(spoken)]
    assert spoken.endswith("u")
    joined = "\n".join(m["content"] for m in messages)
    assert all(text in joined for text in [*utterances, "S"])


@given(utterances=words, window=st.integers(1, 60), reserve=st.integers(0, 20))
def test_truncation_drops_the_oldest_and_no_more_than_needed(utterances, window, reserve):
    """What is left fits, one utterance more would not, and the last one always stays."""

    def count(text):
        return len(text.split())

    dropped = dropped_to_fit("S S", utterances, window, reserve, count)
    assert 0 <= dropped < len(utterances)

    def size(n):
        return prompt_tokens(history("S S", utterances[n:]), count) + reserve

    if dropped < len(utterances) - 1:
        assert size(dropped) <= window
    if dropped:
        assert size(dropped - 1) > window


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("<think>hm\nhm</think>\n\nHello.", "Hello."),
        ("<THINK>x</THINK>Hi <think>y</think>there", "Hi there"),
        ("the template ate the opening tag</think> Hello.", "Hello."),
        ("<think>cut while thinking", ""),
        ("<thinking>a <b>c</b></thinking> ok", "ok"),
        ("  plain < text > stays  ", "plain < text > stays"),
        ("I think> so", "I think> so"),
    ],
)
def test_think_blocks_are_not_said(said, left):
    """Only what follows the thoughts is an utterance."""
    assert without_thoughts(said) == left


def test_a_reply_takes_a_quarter_of_the_window_at_most():
    """Small windows keep most of their room for the dialogue."""
    assert reply_tokens(2048, None) == 2048
    assert reply_tokens(2048, 2048) == 512
    assert reply_tokens(2048, 128_000) == 2048
