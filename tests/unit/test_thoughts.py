"""What a model thinks is no part of what it says, whatever marks it has; all else is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.thoughts import find_thoughts, strip_thoughts
from tests.rows import rows


@pytest.mark.parametrize(("text", "said"), rows("thoughts_are_no_speech"))
def test_thoughts_are_no_speech(text, said):
    """A closed block, one that never ends, and one whose opening stood in the prompt."""
    assert strip_thoughts(text) == said
    thoughts = find_thoughts(text)
    assert [*thoughts] == sorted(thoughts)
    outside = text
    for start, end in reversed(thoughts):
        outside = outside[:start] + outside[end:]
    assert said in outside
    assert not find_thoughts(outside)


@pytest.mark.parametrize("text", rows("plain_sentences_stay"))
def test_plain_sentences_stay(text):
    """Byte for byte, but for outer blanks."""
    assert strip_thoughts(f" {text}\n") == text
    assert find_thoughts(text) == []


PIECES = ("<think>", "</THINK>", "<Thinking>", "</thinking>", "<reasoning>", "</reasoning>")
OTHERS = (" ", "\n", "Hi <b>", "[laughs]", "I think> that", "a < b", "<thinker>", "<|im_end|>")
CLOSED = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
OPENED = re.compile(r"\A.*?</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)


@given(st.lists(st.sampled_from(PIECES + OTHERS), max_size=12).map("".join))
def test_the_first_three_tags_are_read_as_ever(text):
    """Stored replies give the utterances that they gave."""
    assert strip_thoughts(text) == OPENED.sub("", CLOSED.sub("", text)).strip()


@pytest.mark.parametrize("piece", ["<think>", "[thought]", "</think>", "<think a=b ", "<|end|>"])
def test_many_marks_take_no_longer_than_many_words(piece):
    """A reply of 200 kB is no trap: the marks are paired in one pass."""
    assert len(strip_thoughts(piece * 30_000)) <= len(piece) * 30_000
