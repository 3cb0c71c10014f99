"""The test server itself: each fault is on the wire what its name says, and every call is counted.

Raw aiohttp shows the wire; the openai client shows that the server passes for an endpoint.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from dataclasses import replace
from urllib.parse import urlsplit

import aiohttp
import openai
import pytest

from tests.openai_server import (
    Rules,
    Server,
    by_model,
    converse,
    faults,
    flaky,
    in_turn,
    per_request,
    templates,
    text,
)

HELLO = [{"role": "user", "content": "Have you fed the tortoise?"}]


def body(model="alpha", messages=HELLO, **more):
    """A request's JSON."""
    return {"model": model, "messages": messages, **more}


async def _post(session, url, payload, **more):
    async with session.post(f"{url}/chat/completions", json=payload, **more) as reply:
        return reply.status, reply.headers, await reply.read()


def post(url, payload=None, **more):
    """Status, headers and body of one POST on a fresh connection."""

    async def main():
        async with aiohttp.ClientSession() as session:
            return await _post(session, url, payload or body(), **more)

    return asyncio.run(main())


def said(data):
    """The text of a completion."""
    return json.loads(data)["choices"][0]["message"]["content"]


def client(server, **more):
    """The real client, without its own retries."""
    return openai.AsyncOpenAI(api_key="sk-test", base_url=server.url, max_retries=0, **more)


def ask(server, **more):
    """One plain call with the real client."""

    async def main():
        async with client(server) as real:
            return await real.chat.completions.create(**body(**more))

    return asyncio.run(main())


def raw_exchange(server, n_requests=1):
    """Every byte the server sends to ``n_requests`` requests written at once on one socket."""
    payload = json.dumps(body()).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n" % len(payload)
    )
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as wire:
        for n in range(n_requests):
            close = b"Connection: close\r\n" if n == n_requests - 1 else b""
            wire.sendall(request + close + b"\r\n" + payload)
        received = b""
        while piece := wire.recv(65536):
            received += piece
    return received


# --- ordinary service ----------------------------------------------------------------------------


def test_the_openai_client_gets_a_completion_with_usage(server):
    """The real client parses an ordinary answer: text, finish reason, model, token counts."""
    reply = ask(server)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.content
    assert reply.model == "alpha"
    assert reply.usage.prompt_tokens == 4 + 7  # 5 words × 1.3, rounded up, and the template's 4
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


@pytest.mark.parametrize("protocol", ["unieval", "arena", "gteval"])
def test_judge_replies_are_in_the_papers_format(server, protocol):
    """To the real prompts it answers an offered verdict, an index within the dialogue, a reason."""
    from botchat.languages import ENGLISH

    dialogue = "A: Hi. <chat_end>\nB: Hello. <chat_end>\nA: Bye. <chat_end>"
    verdicts = set()
    for n in range(40):
        shown = dialogue.replace("Hello", f"Hello {n}")
        if protocol == "unieval":
            prompt = ENGLISH.fill("unieval", examples="", conversation=shown)
            wanted = r"Choice: (No\nIndex: None|Yes\nIndex: [123])\nReason: .+"
        else:
            prompt = ENGLISH.fill(protocol, conversation_1=shown, conversation_2=dialogue)
            wanted = r"Choice: (Conversation 1|Conversation 2|Both|Neither); Reason: .+"
        judgment = said(post(server.url, body("judge", [{"role": "user", "content": prompt}]))[2])
        match = re.fullmatch(wanted, judgment)
        assert match, judgment
        verdicts.add(match[1])
    assert len(verdicts) == 4


def test_every_request_is_recorded(server):
    """Bodies, headers, models, repeats and connections of all requests are there afterwards."""
    post(server.url, body("alpha"), headers={"Authorization": "Bearer canary"})
    post(server.url, body("beta"))
    post(server.url, body("alpha"))
    first, second, third = server.calls
    assert first.headers["authorization"] == "Bearer canary"
    assert first.messages == HELLO
    assert [call.n for call in server.calls] == [1, 2, 3]
    assert [call.repeat for call in server.calls] == [1, 1, 2]
    assert first.digest == third.digest != second.digest
    assert server.n_by_model == {"alpha": 2, "beta": 1}
    assert (server.n_received, server.n_repeated, server.n_connections) == (3, 1, 3)
    assert all(call.answered and not call.lost and call.status == 200 for call in server.calls)


def test_wrong_key_unknown_model_and_unknown_address_are_refused():
    """401 without the key, 404 for a model or path not served, 400 without messages: no script."""
    with Server(lambda _: 1 / 0, models=["alpha"], api_key="sk-right") as running:
        assert post(running.url)[0] == 401
        good = {"Authorization": "Bearer sk-right"}
        status, _, data = post(running.url, body("nobody"), headers=good)
        assert (status, json.loads(data)["error"]["code"]) == (404, "model_not_found")
        assert post(running.url + "/chat/completions/x?y=", headers=good)[0] == 404
        assert post(running.url, {"model": "alpha"}, headers=good)[0] == 400


def test_an_error_of_the_script_fails_the_test():
    """A script that raises is answered with 500 and reported when the server is closed."""
    running = Server(lambda _: 1 / 0).start()
    assert post(running.url)[0] == 500
    with pytest.raises(AssertionError, match="script failed") as caught:
        running.close()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_sent_only_as_far_as_the_client_reads(server, chunked):
    """50 MB, with or without its length; a client that hangs up early stops it."""
    server.play(faults.huge(chunked=chunked))

    async def main():
        async with (
            aiohttp.ClientSession(read_bufsize=2**16) as session,
            session.post(f"{server.url}/chat/completions", json=body()) as reply,
        ):
            assert len(await reply.content.readexactly(100_000)) == 100_000
            length = reply.headers.get("content-length")
            assert length is None if chunked else int(length) > 50_000_000

    asyncio.run(main())
    server.wait_idle()
    (call,) = server.calls
    assert call.lost
    assert 100_000 <= call.sent < 25_000_000
    assert not call.answered


# --- the connection ------------------------------------------------------------------------------


def test_resets_and_early_ends_differ_on_the_wire(server):
    """A reset is ECONNRESET, a quiet end is EOF; in the body some of it has come through."""
    seen = {}
    for name in ("reset_before_headers", "closed_before_headers", "closed_in_body"):
        server.play(getattr(faults, name)())
        try:
            seen[name] = raw_exchange(server)
        except ConnectionResetError:
            seen[name] = "reset"
    assert seen["reset_before_headers"] == "reset"
    assert seen["closed_before_headers"] == b""
    head, _, rest = seen["closed_in_body"].partition(b"\r\n\r\n")
    assert len(rest) == 20 < int(re.search(rb"content-length: (\d+)", head)[1])
    assert not any(call.answered for call in server.calls)

    async def main():
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{server.url}/chat/completions", json=body()) as reply,
        ):
            assert reply.status == 200
            with pytest.raises((aiohttp.ClientPayloadError, ConnectionResetError)):
                await reply.read()

    server.play(faults.reset_in_body())
    asyncio.run(main())


def test_a_client_that_hangs_up_is_noticed_while_its_answer_is_held(server):
    """Three answers held, the client gone: all three are recorded as lost, none as answered."""
    gate = server.hold()

    async def main():
        async with aiohttp.ClientSession() as session:
            tasks = [asyncio.create_task(_post(session, server.url, body())) for _ in range(3)]
            await server.until(3)
            await gate.until_held(3)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    server.wait_idle()
    assert [(call.lost, call.answered) for call in server.calls] == [(True, False)] * 3
    assert server.max_in_flight == 3
    assert gate.held == 0


def test_a_duplicate_reply_is_on_the_same_connection(server):
    """The wire carries two whole answers to one request."""
    server.play(in_turn(faults.duplicated("first", "stale"), text("second")))
    received = raw_exchange(server, 2)
    assert re.findall(rb'"content":"(\w+)"', received) == [b"first", b"stale", b"second"]


# --- scripts -------------------------------------------------------------------------------------


def test_steps_by_request_by_order_and_by_model(server):
    """`per_request` counts sendings of equal bytes, `in_turn` all, `by_model` chooses by name."""
    server.play(per_request(faults.server_error(503), text("one"), text("another")))
    order = [body("alpha"), body("beta"), body("alpha"), body("alpha"), body("alpha")]
    replies = [post(server.url, payload) for payload in order]
    assert [status for status, _, _ in replies] == [503, 503, 200, 200, 200]
    assert [said(data) for _, _, data in replies[2:]] == ["one", "another", "another"]
    server.play(by_model({"beta": faults.unauthorized()}))
    assert [post(server.url, body(model))[0] for model in ("alpha", "beta")] == [200, 401]


def test_flaky_fails_at_its_rate_and_the_same_for_the_same_seed(server):
    """About a tenth of the first attempts fail, the same ones in any order, others with a seed."""
    from tests.openai_server import Call

    calls = [
        Call(n, "POST", "/", {}, f"{n}".encode(), body(messages=[{"content": f"{n}"}]), 1)
        for n in range(2000)
    ]
    script, again, other = flaky(0.1, 1), flaky(0.1, 1), flaky(0.1, 2)
    failing = {call.n for call in calls if script(call) != converse(call)}
    assert 140 <= len(failing) <= 260
    assert failing == {call.n for call in reversed(calls) if again(call) != converse(call)}
    assert failing != {call.n for call in calls if other(call) != converse(call)}
    second = {call.n for call in calls if script(replace(call, repeat=2)) != converse(call)}
    assert len(second & failing) < len(failing) // 3


# --- strict models -------------------------------------------------------------------------------

SYSTEM, USER, BOT = (
    {"role": role, "content": f"I am the {role}"} for role in ("system", "user", "assistant")
)


@pytest.mark.parametrize(
    ("template", "messages", "says"),
    [
        ("gemma", [SYSTEM, USER], "System role not supported"),
        ("gemma", [USER, BOT, USER], None),
        ("mistral-v0.3", [SYSTEM, USER, BOT, USER], None),
        ("mistral-v0.3", [SYSTEM, USER, USER], "After the optional system message"),
        ("anthropic", [SYSTEM, BOT, USER], 'first message must use the "user" role'),
        ("last-user", [USER, BOT], "Expected last role User"),
        ("two-roles", [SYSTEM, USER], "Only user and assistant roles"),
        ("llama-2", [USER, SYSTEM], "must be at the beginning"),
    ],
)
def test_strict_templates_refuse_what_real_ones_refuse(template, messages, says):
    """400 in the template's own words, or an ordinary reply."""
    rules = {"alpha": templates.strict(template)}
    with Server(models=rules) as running:
        status, _, data = post(running.url, body(messages=messages))
    assert status == (200 if says is None else 400)
    assert says is None or says in json.loads(data)["message"]


def test_a_context_window_counts_prompt_and_reply(server):
    """A prompt that fits alone is refused with a reply that does not; the message has the sum."""
    for wording, field in (("openai", "error"), ("vllm", None)):
        server.models["alpha"] = Rules(context_window=20, overflow=wording)
        long = [{"role": "user", "content": "ten words " * 5}]
        assert post(server.url, body(messages=long))[0] == 200
        status, _, data = post(server.url, body(messages=long, max_tokens=10))
        told = json.loads(data)
        told = told[field] if field else told
        assert status == 400
        assert "maximum context length is 20 tokens" in told["message"]
        assert "requested 27 tokens (17 in the messages, 10 in the completion)" in told["message"]
        assert told["code"] == ("context_length_exceeded" if field else 400)
