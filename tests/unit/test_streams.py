"""Streams of server-sent events: however they arrive, a whole answer or none."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.models.endpoint import chat
from botchat.models.endpoint.replies import events
from tests.openai_server.streams import chunks, sse

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def body(content="Fine, thanks.", finish="stop", **message):
    """A chat completion."""
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "finish_reason": finish}
    used = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    return {"id": "c", "model": "m", "choices": [choice], "usage": used}


def assembled(*listed, **how):
    """What becomes of these events."""
    return chat.assemble(events(sse(listed, **how)))


@given(TEXT, TEXT, ENDS, st.booleans(), st.booleans())
def test_a_stream_says_what_its_completion_says(content, thoughts, end, done, usage):
    """In any line ends, with comments between, with or without [DONE] and usage."""
    whole = body(content, reasoning_content=thoughts)
    made = assembled(*chunks(whole, usage=usage), end=end, done=done)
    message = made["choices"][0]["message"]
    assert (message["content"], message.get("reasoning_content", "")) == (content, thoughts)
    read, plain = (chat.read(one, "") for one in (made, whole))
    assert (read.outcome, read.text, read.finish_reason) == (
        plain.outcome,
        plain.text,
        plain.finish_reason,
    )
    assert read.usage == (plain.usage if usage else type(plain.usage)())


@given(st.data(), ENDS)
def test_a_stream_that_is_cut_anywhere_is_no_answer_or_the_whole_one(data, end):
    """Never a part of it: whoever reads on has an error, or nothing, or all that was said."""
    whole = body("one two three four five six seven", "length")
    stream = sse(chunks(whole), end=end)
    cut = data.draw(st.integers(0, len(stream) - 1))
    made = chat.assemble(events(stream[:cut]))
    if made is not None and not made.get("error"):
        assert made["choices"][0]["message"]["content"] == "one two three four five six seven"
        assert made["choices"][0]["finish_reason"] == "length"


@given(st.data())
def test_a_stream_with_a_damaged_event_is_no_answer(data):
    """One lost chunk would be a text with a hole in it."""
    listed = [msgspec.json.encode(one).decode() for one in chunks(body())]
    broken = data.draw(st.integers(0, len(listed) - 1))
    listed[broken] = listed[broken][:-2]
    assert assembled(*listed)["error"]


def delta(finish=None, **said):
    """A chunk."""
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        ([delta(content="a"), delta("stop")], "a"),
        ([delta(content="a"), delta()], None),
        ([], None),
        ([delta(content="a"), delta("", content="b"), delta("stop")], "ab"),
        ([delta(content="a"), delta("stop"), delta("", content="")], "a"),
        ([delta(content=None, tool_calls=[{"index": 0}]), delta("tool_calls")], ""),
        ([delta(content=[{"type": "text", "text": "a"}]), delta("stop")], "a"),
        ([{"choices": [{"delta": ["odd"], "finish_reason": None}]}, delta("stop")], ""),
        ([{"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}], "whole"),
        ([delta("stop", content="a"), {"choices": [], "usage": {"prompt_tokens": 1}}], "a"),
        ([delta(content="a"), {"choices": [{"index": 1, "delta": {"content": "z"}}]}], None),
    ],
)
def test_chunks_of_every_sort(listed, text):
    """What servers other than OpenAI's send."""
    made = assembled(*listed)
    assert text == (None if made is None else made["choices"][0]["message"]["content"])


def test_an_error_in_the_middle_is_what_counts():
    """Whatever was said before it."""
    error = {"error": {"message": "overloaded", "code": 503}}
    assert assembled(delta(content="Half a sent"), error, delta("stop")) == error


def test_data_over_several_lines_is_one_event():
    """As the standard has it; other fields, comments and a byte order mark are passed over."""
    stream = (
        b'\xef\xbb\xbfevent: chunk\nid: 1\ndata: {"a":\ndata:1}\nretry: 3\n\n:\n\ndata\n\ndata:\n\n'
    )
    assert events(stream) == [{"a": 1}]


def test_log_probabilities_come_through_a_stream():
    """Those of all chunks, in order."""
    tokens = [
        {"token": t, "logprob": -n / 4, "bytes": list(t.encode())} for n, t in enumerate("ab")
    ]
    whole = body("ab")
    whole["choices"][0]["logprobs"] = {"content": tokens}
    made = assembled(*chunks(whole))
    found = chat.WIRE.token_logprobs(msgspec.json.encode(made).decode())
    assert found == ((b"a", 0.0), (b"b", -0.25))
