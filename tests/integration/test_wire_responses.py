"""The Responses API and streams through the whole stack, against servers of the suite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from botchat.cli.main import main
from botchat.interfaces import Decoding, Message, Usage
from botchat.models.endpoint import connection as connections
from botchat.records import Judgment
from botchat.workspace import files
from tests.integration import test_endpoints as endpoints
from tests.integration.test_runs import stage_files, workspace
from tests.openai_server import Answer, Cut, Server, converse, faults, per_request, text
from tests.openai_server.responses import ResponsesServer, events, response
from tests.openai_server.streams import HEADERS, chunks, sse, stream, streamed

ASK = [
    Message(role="system", content="Be brief."),
    Message(role="assistant", content="Hello."),
    Message(role="user", content="How was the match?"),
]
COMMANDS = (
    ["generate", "--seeds", "small", "--turns", "5", "--model", "alpha"],
    ["judge", "unieval", "--seeds", "small", "--judge", "umpire"],
)


def ask(server, tmp_path, decoding=None, n=1, **settings):
    """Replies to one request asked ``n`` times, answers in the ledger, and quirks."""
    asked = endpoints.ask(server, tmp_path, *[ASK] * n, decoding=decoding, **settings)
    return asked.replies, asked.stored, asked.quirks


def answered(**fields):
    """A response object of one message with these fields changed."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    message = {"role": "assistant", "content": "Half a sent"}
    choice = {"message": message, "finish_reason": "stop"}
    whole = response({"model": "m", "choices": [choice], "usage": usage}) | fields
    return Answer(200, {name: value for name, value in whole.items() if value != "absent"})


def message(*parts, **fields):
    """An output item."""
    return {"type": "message", "role": "assistant", "content": list(parts), **fields}


THOUGHT = {"type": "reasoning", "summary": []}
REFUSAL = {"type": "refusal", "refusal": "I won't."}
TEXT = {"type": "output_text", "text": "Fine."}
CUT = {"reason": "max_output_tokens"}
CAUGHT = {"reason": "content_filter"}
FINAL = [
    (answered(), "ok", "Half a sent"),
    (answered(output=[THOUGHT, message(TEXT)]), "ok", "Fine."),
    (answered(output=[message(TEXT), message(TEXT)]), "ok", "Fine.Fine."),
    (answered(output=[message(REFUSAL, phase="commentary"), message(TEXT)]), "ok", "Fine."),
    (answered(output=[message(REFUSAL)]), "refused", "I won't."),
    (answered(output=[THOUGHT]), "empty", ""),
    (answered(status="incomplete", incomplete_details=CUT), "truncated", "Half a sent"),
    (answered(status="incomplete", incomplete_details=CUT, output=[]), "empty", ""),
    (answered(status="incomplete", incomplete_details=CAUGHT), "filtered", "Half a sent"),
    (answered(status="incomplete", incomplete_details=CAUGHT, output="absent"), "filtered", ""),
    (answered(error={"code": "invalid_prompt", "message": "No."}), "filtered", ""),
    (answered(error={"code": "bio_policy", "message": "No."}), "filtered", ""),
    (answered(error={"code": "context_length_exceeded", "message": "No."}), "overflow", ""),
    (faults.content_policy(), "filtered", ""),
    (faults.context_overflow(), "overflow", ""),
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("given", "outcome", "said"), FINAL)
def test_an_answer_is_asked_for_once(tmp_path, given, outcome, said, streams):
    """Typed by status, output and error, as a body or as the end of a stream."""
    if streams and given.status == 200:
        kind = "failed" if given.body.get("error") else given.body["status"]
        started, last = {"type": "response.created"}, {"type": f"response.{kind}"}
        given = stream([started, {**last, "response": given.body}], done=False)
    with ResponsesServer(given) as server:
        replies, stored, quirks = ask(server, tmp_path, n=2, api="responses", stream=streams)
        assert [(one.outcome, one.text) for one in replies] == [(outcome, said)] * 2
        assert stored == 1
        assert server.n_received == (2 if "context_window" in quirks else 1)


@pytest.mark.parametrize(
    "given",
    [
        answered(status="failed"),
        answered(error={"code": "server_error", "message": "The server had an error."}),
        answered(error={"code": "rate_limit_exceeded", "message": "Too many tokens."}),
        answered(status="in_progress"),
        answered(status="incomplete", incomplete_details=None),
        answered(output=[]),
        answered(output="absent"),
        stream([{"type": "response.created"}], done=False),
        stream([{"type": "error", "code": None, "message": "Overloaded"}], done=False),
        stream([{"type": "response.completed", "response": None}]),
    ],
)
def test_what_is_no_answer_is_asked_again(tmp_path, given):
    """Nothing of it is stored."""
    with ResponsesServer(per_request(given, text("fine"))) as server:
        (reply,), stored, quirks = ask(server, tmp_path, api="responses")
        assert (reply.text, server.n_received, stored, quirks) == ("fine", 2, 1, {})


def test_a_request_is_what_the_schema_says(tmp_path):
    """System prompt, turns, least output, schema, log-probabilities, extras; nothing is kept."""
    asked = Decoding(0.5, 4, sample=2, schema={"type": "object"}, logprobs=3)
    extra = {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}}
    tokens = [(b"fi", -0.25), (b"ne", -0.5)]
    with ResponsesServer(text("fine", logprobs=tokens)) as server:
        (reply,), _, _ = ask(server, tmp_path, asked, api="responses", extra=extra)
        (call,) = server.calls
    assert call.body == {
        "model": "m",
        "store": False,
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "assistant", "content": "Hello."},
            {"type": "message", "role": "user", "content": "How was the match?"},
        ],
        "temperature": 0.5,
        "max_output_tokens": 16,
        "text": {
            "format": {
                "type": "json_schema",
                "name": "reply",
                "strict": True,
                "schema": {"type": "object"},
            },
            "verbosity": "low",
        },
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 3,
        "reasoning": {"effort": "low"},
    }
    assert reply.tokens == tuple(tokens)
    assert (reply.tier, reply.usage.prompt_tokens is not None) == ("default", True)


def test_a_refused_parameter_is_left_out_with_what_depends_on_it(tmp_path):
    """``top_logprobs`` says nothing without ``include``."""
    refused = faults.error(
        400,
        "Unsupported parameter: 'temperature' is not supported with this model.",
        param="temperature",
    )
    also = faults.error(403, "You are not allowed to request logprobs from this model")

    def script(call):
        sent = server.calls[-1].body
        return refused if "temperature" in sent else also if "include" in sent else text("fine")

    with ResponsesServer(script) as server:
        (reply,), _, quirks = ask(server, tmp_path, Decoding(logprobs=2), api="responses")
        assert (reply.text, server.n_received) == ("fine", 3)
        assert not {"temperature", "include", "top_logprobs"} & set(server.calls[-1].body)
    assert quirks == {"parameters": {"temperature": None, "include": None}}


def test_tokens_are_what_is_billed(tmp_path):
    """Cached and written ones included; thoughts outside of the output count."""
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "total_tokens": 210,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    }
    with ResponsesServer(answered(usage=usage)) as server:
        (reply,), _, _ = ask(server, tmp_path, api="responses")
    assert reply.usage == Usage(100, 110, 60, 30)


def test_an_answer_without_its_output_in_the_last_event_is_put_together(tmp_path):
    """As some gateways send it."""
    whole = answered().body
    bare = {"response": {**whole, "output": []}}
    listed = [event | bare if "response" in event else event for event in events(whole)]
    with ResponsesServer(stream(listed)) as server:
        (reply,), _, _ = ask(server, tmp_path, api="responses", stream=True)
    assert (reply.outcome, reply.text) == ("ok", "Half a sent")


CHAT = {
    "model": "m",
    "choices": [{"index": 0, "message": {"content": "fine, thanks"}, "finish_reason": "stop"}],
}
CHUNKS = list(chunks(CHAT))
BROKEN = {
    "no end": stream(CHUNKS[:-1]),
    "nothing": Answer(200, b": keep-alive\n\n", HEADERS),
    "an error": stream([CHUNKS[1], {"error": {"message": "overloaded", "code": 503}}]),
    "an error with a status": Answer(503, sse([{"error": {"message": "busy"}}]), HEADERS),
    "half an event": Answer(200, sse(CHUNKS)[:-60], HEADERS, chunked=True),
    "clean close": Answer(
        headers=(("connection", "close"),),
        body=b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        + sse(CHUNKS[:-1], done=False),
        raw=True,
    ),
    "reset": replace(stream(CHUNKS), cut=Cut(200)),
    "half a text": replace(stream(CHUNKS), cut=Cut(len(sse(CHUNKS)) - 40, reset=False)),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_a_stream_that_breaks_is_no_answer(tmp_path, fault):
    """It is asked again, as it was, and only the whole one is stored."""
    fine = streamed(text("fine, thanks"))
    with Server(per_request(fault, fine)) as server:
        (reply,), stored, quirks = ask(server, tmp_path, stream=True)
        assert (reply.outcome, reply.text) == ("ok", "fine, thanks")
        assert (server.n_received, stored, quirks) == (2, 1, {})
        assert server.calls[0].raw == server.calls[1].raw


def test_a_filter_that_comes_as_a_stream_with_a_status_is_known(tmp_path):
    """LiteLLM sends errors so to whom asked for a stream."""
    error = {"error": {"message": "No.", "code": "content_filter", "type": "x"}}
    with Server(Answer(400, sse([error]), HEADERS)) as server:
        (first, again), stored, _ = ask(server, tmp_path, n=2, stream=True)
        assert (first.outcome, again.outcome, stored) == ("filtered", "filtered", 1)
        assert server.n_received == 1


@pytest.mark.parametrize("streams", [False, True])
def test_a_stream_that_was_not_asked_for_is_read_all_the_same(tmp_path, streams):
    """And a body in the place of a stream."""
    given = text("fine") if streams else stream(CHUNKS)
    with Server(given) as server:
        (reply,), _, _ = ask(server, tmp_path, stream=streams)
    assert reply.text == ("fine" if streams else "fine, thanks")


def test_a_stream_may_be_larger_than_a_body(tmp_path, monkeypatch):
    """It says the same in many more bytes; but it has its limit too."""
    fine, most = streamed(text("so " * 500)), connections.MAX_STREAM
    with Server(fine) as server:
        monkeypatch.setattr(connections, "MAX_STREAM", 10_000)
        (reply,), stored, _ = ask(server, tmp_path, max_body=5_000, stream=True)
        assert (reply.outcome, stored) == ("malformed", 0)
        monkeypatch.setattr(connections, "MAX_STREAM", most)
        (reply,), stored, _ = ask(server, tmp_path, max_body=5_000, stream=True)
        assert (reply.outcome, stored) == ("ok", 1)


def test_a_run_by_streams_makes_the_same_files(tmp_path):
    """With as many requests; and the ledger of either replays the other."""
    with Server(streamed(converse)) as server:
        folders = [
            workspace(tmp_path / "plain", server, 4),
            workspace(tmp_path / "stream", server, 4, stream=True),
        ]
        made, counts = [], []
        for folder in folders:
            before = server.n_received
            assert [main([*command, "--dir", str(folder)]) for command in COMMANDS] == [0, 0]
            made.append(stage_files(folder))
            counts.append(server.n_received - before)
        assert made[0] == made[1] != {}
        assert counts[0] == counts[1]
        settings = (folders[0] / "botchat.toml").read_bytes()
        (folders[1] / "botchat.toml").write_bytes(settings)
        assert [main([*command, "--dir", str(folders[1])]) for command in COMMANDS] == [0, 0]
        assert server.n_received == sum(counts)
        streams = [call.body.get("stream", False) for call in server.calls]
        assert streams == [False] * counts[0] + [True] * counts[1]


@pytest.mark.parametrize("streams", [False, True])
def test_a_run_by_responses_says_what_chat_says(tmp_path, streams):
    """The same script behind both APIs; stage by stage, in as many requests."""
    said, counts = [], []
    for kind, api in ((Server, "chat"), (ResponsesServer, "responses")):
        with kind(streamed(converse) if kind is Server else converse) as server:
            folder = workspace(tmp_path / api, server, 4, api=api, stream=streams)
            assert [main([*command, "--dir", str(folder)]) for command in COMMANDS] == [0, 0]
            counts.append(server.n_received)
        judged = (folder / "judgments").rglob("*.jsonl")
        said.append([one.verdict for path in judged for one in files.read(path, Judgment)])
    assert said[0] == said[1] != []
    assert counts[0] == counts[1]
