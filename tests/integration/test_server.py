"""The test server itself: it passes for an endpoint, and a fault is on the wire what it says."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from urllib.parse import urlsplit

import openai
import pytest

from botchat.languages import ENGLISH
from tests.openai_server import Rules, Server, faults

HELLO = [{"role": "user", "content": "Have you fed the tortoise?"}]


def ask(server, messages=HELLO, model="alpha", key="sk-test", **more):
    """One plain call with the real client, without its own retries."""

    async def main():
        async with openai.AsyncOpenAI(api_key=key, base_url=server.url, max_retries=0) as client:
            return await client.chat.completions.create(model=model, messages=messages, **more)

    return asyncio.run(main())


def test_the_openai_client_gets_a_completion_with_usage(server):
    """The real client parses an ordinary answer; the request is recorded."""
    reply = ask(server)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.choices[0].message.content
    assert reply.model == "alpha"
    assert reply.usage.prompt_tokens == 4 + 7  # 5 words × 1.3, rounded up, and the template's 4
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    ask(server)
    assert [(call.n, call.repeat, call.answered) for call in server.calls] == [
        (1, 1, True),
        (2, 2, True),
    ]
    assert (server.n_by_model, server.n_repeated) == ({"alpha": 2}, 1)
    assert server.calls[0].headers["authorization"] == "Bearer sk-test"


@pytest.mark.parametrize("protocol", ["unieval", "arena", "gteval"])
def test_judge_replies_are_in_the_papers_format(server, protocol):
    """To the real prompts it answers an offered verdict, an index within the dialogue, a reason."""
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
        judgment = ask(server, [{"role": "user", "content": prompt}]).choices[0].message.content
        match = re.fullmatch(wanted, judgment)
        assert match, judgment
        verdicts.add(match[1])
    assert len(verdicts) == 4


def test_strangers_unknown_models_and_long_prompts_are_refused_before_the_script():
    """401 without the key, 404 for a model that is not served, 400 beyond its window."""
    rules = {"alpha": Rules(context_window=20)}
    with Server(lambda _: 1 / 0, models=rules, api_key="sk-test") as running:
        for more in ({"key": "other"}, {"model": "nobody"}, {"max_tokens": 10}):
            with pytest.raises(openai.APIStatusError) as refused:
                ask(running, **more)
            assert refused.value.status_code == {"key": 401, "model": 404}.get(*more, 400)
    assert "requested 21 tokens (11 in the messages, 10 in the completion)" in str(refused.value)


def test_an_error_of_the_script_fails_the_test():
    """A script that raises is answered with 500 and reported when the server is closed."""
    running = Server(lambda _: 1 / 0).start()
    with pytest.raises(openai.InternalServerError):
        ask(running)
    with pytest.raises(AssertionError, match="script failed") as caught:
        running.close()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_resets_and_early_ends_differ_on_the_wire(server):
    """A reset is ECONNRESET, a quiet end is EOF; in the body some of it has come through."""
    payload = json.dumps({"model": "alpha", "messages": HELLO}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    address = urlsplit(server.url)
    seen = []
    for fault in (faults.cut(), faults.cut(reset=False), faults.cut(20, reset=False)):
        server.play(fault)
        with socket.create_connection((address.hostname, address.port), timeout=30) as wire:
            wire.sendall(head % len(payload) + payload)
            received = b""
            try:
                while piece := wire.recv(65536):
                    received += piece
            except ConnectionResetError:
                received = b"reset"
        seen.append(received)
    assert seen[:2] == [b"reset", b""]
    head, _, rest = seen[2].partition(b"\r\n\r\n")
    assert len(rest) == 20 < int(re.search(rb"content-length: (\d+)", head)[1])
    assert not any(call.answered for call in server.calls)
