"""The wire format ``anthropic`` as pure functions: requests, replies, streams, errors."""

from __future__ import annotations

import msgspec
import pytest

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Case, Decoding, Message, Shown, Usage
from botchat.models.endpoint import wire_format
from botchat.models.endpoint.anthropic import CACHED, WIRE, assemble, body, read
from botchat.models.endpoint.connection import Connection, HttpResponse
from botchat.models.endpoint.model import EndpointModel
from botchat.models.self_chat import history
from botchat.workspace.config import ModelSettings
from tests.openai_server.messages import STATUS, events, failed, said, streamed
from tests.rows import rows

URL = "http://127.0.0.1:9/v1"
LONG = "word " * (CACHED // 5 + 1)
MARK = {"cache_control": {"type": "ephemeral"}}


def settings(**more):
    """Of a model that is asked so."""
    return ModelSettings(**{"model": "claude", "api": "anthropic", "base_url": URL, **more})


def model(**more):
    """A model that is asked so, and never connected to."""
    return EndpointModel("claude", settings(**more), WIRE, Connection(URL, lambda: "key"))


def asked(messages, decoding=None, **more):
    """The request to a model, as it is first arranged."""
    return model(**more).body(messages, decoding or Decoding(max_tokens=99), {})


@pytest.mark.parametrize("layout", ["auto", "merge-leading", "placeholder-user"])
@pytest.mark.parametrize("system", ["auto", "system-in-user"])
def test_the_user_begins_and_ends_and_roles_alternate(layout, system):
    """Whatever the length of a dialogue and the layout; nothing that was said is lost."""
    for n in range(1, 8):
        talk = history("Be brief.", [f"line {i}" for i in range(n)])
        sent = asked(talk, layout=layout, system=system)
        roles = [message["role"] for message in sent["messages"]]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], n
        whole = " ".join(message["content"] for message in sent["messages"])
        assert all(f"line {i}" in whole for i in range(n))
        assert (sent.get("system") == "Be brief.") == (system == "auto")


def test_messages_of_one_speaker_in_a_row_are_one():
    """Joined by an empty line; the request is what the API reference has."""
    talk = [Message(role="user", content=text) for text in ("one", "two")]
    assert asked(talk, Decoding(0.5, 7, sample=3, schema={"type": "object"}, logprobs=5)) == {
        "model": "claude",
        "max_tokens": 7,
        "messages": [{"role": "user", "content": "one\n\ntwo"}],
        "temperature": 0.5,
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    }


@pytest.mark.parametrize(
    ("more", "decoding", "sent"),
    [
        ({"temperature": None}, Decoding(0.0, 9), {"max_tokens": 9}),
        ({"max_tokens": 50}, Decoding(None, None), {"max_tokens": 50}),
        ({"context_window": 400}, Decoding(0.0, 999), {"max_tokens": 100, "temperature": 0.0}),
        ({"extra": {"top_k": 1}}, Decoding(None, 9), {"max_tokens": 9, "top_k": 1}),
    ],
)
def test_a_reply_always_has_a_limit(more, decoding, sent):
    """That of the call, of the window, or of the model's settings."""
    request = asked([Message(role="user", content="Hi.")], decoding, **more)
    assert {name: request[name] for name in request if name not in ("model", "messages")} == sent


def marks(request):
    """Texts whose end is marked."""
    said = (request.get("system", ""), *(m["content"] for m in request["messages"]))
    blocks = [block for one in said if not isinstance(one, str) for block in one]
    return [block["text"] for block in blocks if "cache_control" in block]


def test_the_cache_is_used_for_long_beginnings_only():
    """A long system prompt; a long talk up to its last message; nothing of what is short."""
    talk = history("Short.", ["a", "b", "c"])
    assert marks(asked(talk)) == []
    assert marks(asked(history(LONG, ["a", "b", "c"]))) == [LONG, "c"]
    assert marks(asked(history("Short.", [LONG, "b", "c"]))) == ["c"]
    assert marks(asked(history(LONG, ["a"]))) == [LONG]


@pytest.mark.parametrize("shared", [0, 10, len(LONG), len(LONG) + 4])
def test_of_a_question_what_others_begin_with_is_a_block_of_its_own(shared):
    """Where it is long; the text is the same, and no block is blank."""
    prompt = f"{LONG}End. "
    request = asked([Message(role="user", content=prompt)], Decoding(0.0, 9, shared=shared))
    content = request["messages"][0]["content"]
    if shared < CACHED:
        assert content == prompt
    else:
        assert "".join(block["text"] for block in content) == prompt
        assert all(block["text"].strip() for block in content)
        assert [block for block in content if "cache_control" in block] == content[:1]


def test_a_case_says_what_its_kind_begins_with():
    """The words before the first dialogue; none where it is not found."""
    shown = (Shown("m", ("Hello there.", "Hi.")),)
    case = Case(
        "p", "s", shown, "Judge this: Hello there. Hi.", frozenset(), lambda text: (None, "")
    )
    assert case.prompt[: case.shared] == "Judge this: "
    other = Case("p", "s", shown, "Judge this.", frozenset(), lambda text: (None, ""))
    assert other.shared == 0


def test_an_address_of_another_api_is_one_line():
    """Before anything is sent."""
    with pytest.raises(ConfigError, match=r"^models\.c\.base_url\b[^\n]*$"):
        wire_format("c", settings(base_url="https://api.openai.com/v1"))


USED = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 2000,
    "output_tokens": 5,
    "service_tier": "priority",
}
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "x"}
SAYS = {"type": "text", "text": "Fine."}


@pytest.mark.parametrize(
    ("message", "outcome", "text"),
    [
        (said("Fine."), "ok", "Fine."),
        (said([THOUGHT, SAYS, SAYS]), "ok", "Fine.Fine."),
        (said("Fine", "stop_sequence"), "ok", "Fine"),
        (said("Fine", "max_tokens"), "truncated", "Fine"),
        (said("Fine", "model_context_window_exceeded"), "truncated", "Fine"),
        (said([THOUGHT], "max_tokens"), "empty", ""),
        (said([]), "empty", ""),
        (said("I can", "refusal"), "refused", "I can"),
        (said([], "refusal", stop_details={"explanation": "No."}), "refused", "No."),
        (said([], "tool_use"), "empty", ""),
        (said("Wait", "pause_turn"), "malformed", "Wait"),
        (said("Half a", None), "malformed", "Half a"),
        (said("Half a", "kernel_panic"), "malformed", "Half a"),
        ({"type": "message"}, "malformed", ""),
        ({"content": [None, 5, {"type": "text"}], "stop_reason": "end_turn"}, "empty", ""),
        ({"content": "text", "stop_reason": ["end_turn"], "usage": 3}, "malformed", ""),
    ],
)
def test_how_a_message_ended(message, outcome, text):
    """Only text that a message ended with for a documented reason is an answer."""
    reply = read(message, "raw")
    assert (reply.outcome, reply.text) == (outcome, text)
    assert (reply.retry_after_s is None) == (outcome != "malformed")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (USED, Usage(2310, 5, 2000, 300)),
        ({"input_tokens": 10, "output_tokens": 5}, Usage(10, 5)),
        ({**USED, "cache_read_input_tokens": None}, Usage(310, 5, None, 300)),
        ({**USED, "input_tokens": None}, Usage(None, 5, 2000, 300)),
        ({"input_tokens": -1, "output_tokens": "5", "cache_read_input_tokens": 2**63}, Usage()),
        ([], Usage()),
    ],
)
def test_the_prompt_is_all_of_it(usage, counted):
    """The API counts what is read from and written to its cache beside the input."""
    reply = read(said("Fine.", usage=usage), "")
    assert reply.usage == counted
    assert reply.tier == ("priority" if "service_tier" in usage else "")


@pytest.mark.parametrize("content", [[SAYS], [THOUGHT, SAYS], [SAYS, SAYS], []])
@pytest.mark.parametrize("stop", ["end_turn", "max_tokens", "refusal"])
def test_a_stream_is_the_message_and_every_part_of_it_none(content, stop):
    """The same as unstreamed, counts of the cache included; broken off anywhere: no answer."""
    message = said(content, stop, usage=USED)
    told = list(events(message))
    assert assemble(told) == message
    assert [assemble(told[:n]) for n in range(len(told))] == [None] * len(told)
    data = streamed(told).body
    whole = model(stream=True).read(HttpResponse(200, {}, data), {})
    assert whole.text == "".join(block["text"] for block in content if block["type"] == "text")
    cut = model(stream=True).read(HttpResponse(200, {}, data[: len(data) * 2 // 3]), {})
    assert (cut.answered, cut.retry_after_s) == (False, 0.0)


@pytest.mark.parametrize("index", [[], "0", 7])
@pytest.mark.parametrize("delta", [True, "text", [[]], {"text": "x"}])
def test_a_piece_of_the_text_that_is_lost_makes_no_message(index, delta):
    """Of no block, or not readable: neither half a text nor an error of ours."""
    told = list(events(said("Fine, thanks.")))
    place = next(n for n, event in enumerate(told) if event["type"] == "content_block_delta")
    told[place] = {"type": "content_block_delta", "index": index, "delta": delta}
    assert assemble(told) is None or (index, delta) == ("0", {"text": "x"})


def test_an_error_in_a_stream_needs_no_type():
    """As gateways send it: what was said before it is no whole message."""
    error = {"error": {"message": "upstream is gone"}}
    assert assemble([*list(events(said("Fine.")))[:4], error]) == error
    assert assemble([*list(events(said("Fine.")))[:-1], error, {"type": "message_stop"}]) == error


@pytest.mark.parametrize("event", [{}, {"type": 5}, {"type": "message_start"}, {"delta": 3}])
def test_events_that_say_nothing_are_passed_over(event):
    """Also pings and kinds that are not known."""
    message = said("Fine.")
    told = [one for pair in zip(events(message), [event] * 99, strict=False) for one in pair]
    assert assemble(told) == message


def test_an_error_in_a_stream_is_no_answer():
    """Whatever was said before it; asked again, since it was overloaded."""
    told = [*list(events(said("Half a sentence")))[:5], failed("overloaded_error", "Overloaded")]
    data = streamed(told).body
    reply = model(stream=True).read(HttpResponse(200, {}, data), {})
    assert (reply.outcome, reply.status, reply.retry_after_s) == ("transport", 529, 0.0)


FATAL, ADAPTED, AGAIN, NOT_AGAIN = "fatal", "adapted", "again", "not again"
ERRORS = rows("documented_errors")


@pytest.mark.parametrize(("kind", "message", "becomes"), ERRORS)
@pytest.mark.parametrize("disguised", [False, True])
def test_a_documented_error_is_what_the_table_says(kind, message, becomes, disguised):
    """By its status, or by its type alone, as in a stream or a batch."""
    status = 200 if disguised else STATUS[kind]
    response = HttpResponse(status, {}, msgspec.json.encode(failed(kind, message)))
    try:
        reply = model().read(response, {})
    except FatalModelError:
        assert becomes == FATAL
        return
    if becomes in (ADAPTED, AGAIN, NOT_AGAIN):
        assert reply.adapted == (becomes == ADAPTED)
        assert (reply.retry_after_s is None) == (becomes == NOT_AGAIN)
    else:
        assert (reply.outcome, reply.final) == (becomes, True)


def test_a_limit_on_money_is_not_waited_for():
    """429, told from a limit on rates by its details."""
    said = failed("rate_limit_error", "No.", error_code="enforced_spend_limit_reached")
    with pytest.raises(FatalModelError, match="cannot be used: HTTP 429"):
        model().read(HttpResponse(429, {}, msgspec.json.encode(said)), {})


def test_a_request_in_a_batch_is_not_streamed_and_keeps_no_talk_in_the_cache():
    """The next turn comes hours later; what all requests begin with stays marked."""
    entry = model(stream=True)
    batches = WIRE.batches(entry)
    talk = entry.body(history(LONG, ["a", "b", "c"]), Decoding(0.0, 9), {})
    line = msgspec.json.decode(batches.line("key", talk))
    assert line["custom_id"] == "key"
    assert "stream" not in line["params"]
    assert marks(line["params"]) == [LONG]
    one = entry.body([Message(role="user", content=LONG)], Decoding(0.0, 9, shared=CACHED), {})
    assert marks(msgspec.json.decode(batches.line("key", one))["params"]) == [LONG[:CACHED]]


def test_body_and_decoding_know_nothing_of_each_others_parts():
    """What may be cached is no part of a request's key."""
    assert Decoding(shared=5).settings == Decoding().settings
    assert body([], Decoding(), settings())["messages"] == []
