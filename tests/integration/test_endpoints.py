"""The real client against a real server that fails in every way: what becomes of each fault."""

import asyncio
import pickle
from dataclasses import replace

import msgspec
import pytest

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Usage
from botchat.models import connection
from botchat.models.endpoint import EndpointModel
from botchat.models.limits import Retry, ServerLimit
from botchat.models.paying import PayingModel
from botchat.models.retrying import RetryingModel
from botchat.models.stored import StoredModel
from botchat.protocols.generation import chat_messages
from botchat.workspace.ledger import Ledger, identity_key
from botchat.workspace.model_settings import Access, ModelSettings, Prices
from botchat.workspace.usage import stats
from tests.openai_server import (
    Answer,
    Gate,
    Server,
    completion,
    faults,
    per_request,
    templates,
    text,
)
from tests.rows import rows

KEY = "sk-canary-0123456789abcdef"
ASK = [Message(role="user", content="How was the match?")]
SAID_NOTHING = {"prompt_tokens": 9, "completion_tokens": 2}
QUICK = Retry(first_s=0.0, most=4)


def served(url):
    """The server at a URL, with the key."""
    headers = {"authorization": f"Bearer {KEY}"}
    return connection.Server(url, lambda: Access(url, headers=headers, secrets=(KEY,)))


class Asked:
    """What became of some calls, and what they left behind."""

    def __init__(self, replies, ledger, model):
        self.replies, self.reply = replies, replies[0]
        rows = stats(ledger)
        self.stored = sum(row.calls for row in rows)
        self.failed_attempts = sum(row.failed_attempts for row in rows)
        quirks = msgspec.to_builtins(ledger.quirks(identity_key(model.identity))).items()
        self.quirks = {name: value for name, value in quirks if value is not None}


def ask(server, tmp_path, *requests, prices=None, decoding=None, **settings):
    """Ask the server through the whole stack, one request after the other."""
    entry = ModelSettings(model="m", base_url=server.url, **settings)
    decoding = decoding or Decoding(max_tokens=50)

    async def run():
        ledger, http = Ledger(tmp_path / "ledger.sqlite3"), served(server.url)
        model = EndpointModel("m", entry, ledger, http)
        paying = PayingModel(model, ledger, "test", ServerLimit(8), prices or Prices())
        stored = StoredModel(RetryingModel(paying, QUICK))
        try:
            replies = [await stored.chat(request, decoding) for request in requests or (ASK,)]
            return Asked(replies, ledger, stored)
        finally:
            await stored.drain(5.0)
            await http.aclose()
            ledger.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("fault", "outcome", "said"),
    [
        (faults.truncated("cut off in"), "truncated", "cut off in"),
        (faults.content_filtered(), "filtered", ""),
        (faults.content_policy(), "filtered", ""),
        (faults.refused("I won't."), "refused", "I won't."),
        (text(None, usage=SAID_NOTHING), "empty", ""),
        (text("", usage=SAID_NOTHING), "empty", ""),
        (faults.invalid_utf8(), "ok", "caf\ufffd\ufffd"),
        (text([{"type": "text", "text": part} for part in ("two ", "parts")]), "ok", "two parts"),
        (faults.no_usage("fine"), "ok", "fine"),
        (text("<think>hm</think> Fine."), "ok", "Fine."),
        (text("<THINK>x</THINK>Hi <think>y</think>there"), "ok", "Hi there"),
        (text("the template ate the tag</think> Hello."), "ok", "Hello."),
        (text("  I think> that a < b  "), "ok", "I think> that a < b"),
    ],
)
def test_an_answer_is_typed_stored_and_asked_for_once(tmp_path, fault, outcome, said):
    """Whatever the endpoint answered for good is one request, one ledger entry, one outcome."""
    with Server(fault) as server:
        asked = ask(server, tmp_path, ASK, ASK)
        assert [reply.outcome for reply in asked.replies] == [outcome] * 2
        assert asked.reply.text == said
        assert (server.n_received, asked.stored, asked.failed_attempts) == (1, 1, 0)


@pytest.mark.parametrize(
    "fault",
    [
        faults.rate_limited(),
        faults.rate_limited("0.01"),
        faults.rate_limited("Mon, 01 Jan 2024 00:00:00 GMT"),
        faults.rate_limited("soon"),
        faults.server_error(500),
        faults.html(502, "Bad Gateway"),
        faults.cut(),
        faults.cut(20),
        faults.cut(20, reset=False),
        Answer(200, b'{"choices": [{"index": 0, "mess'),
        faults.html(),
        Answer(200, {"error": {"message": "Provider returned error", "code": 502}}),
        faults.no_choices(),
        completion([{"index": 0, "message": None, "finish_reason": "stop"}]),
        Answer(200, b'["a", "list"]'),
        Answer(body=b"SSH-2.0-OpenSSH_9.6\r\n\r\n", raw=True),
        replace(text("late"), headers=(("x-trace", "a" * 100_000),)),
        Answer(200, b"[" * 100_000 + b"]" * 100_000),
    ],
    ids=lambda fault: f"{fault.status}-{str(fault.body)[:30]}",
)
def test_a_passing_fault_is_tried_again_and_noted(tmp_path, fault):
    """One fault, then an answer: two requests, one answer, one failed attempt on record."""
    with Server(per_request(fault, text("fine"))) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.outcome, asked.reply.text) == ("ok", "fine")
        assert (server.n_received, asked.stored, asked.failed_attempts) == (2, 1, 1)


@pytest.mark.parametrize(
    "fault",
    [
        faults.unauthorized(),
        faults.unauthorized(echo=KEY),
        faults.forbidden(),
        faults.model_not_found(),
        faults.not_found(),
        faults.insufficient_quota(),
        faults.redirect("http://127.0.0.1:9/steal"),
    ],
    ids=["401", "401-echo", "403", "model", "404", "quota", "redirect"],
)
def test_a_fatal_fault_stops_the_model_at_once(tmp_path, fault):
    """One request, one line that says what to check, and never the key."""
    with Server(fault) as server:
        with pytest.raises(FatalModelError) as caught:
            ask(server, tmp_path)
        assert server.n_received == 1
    message = str(caught.value)
    assert "\n" not in message
    assert "m at http://127.0.0.1" in message
    assert KEY not in message
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args  # noqa: S301


@pytest.mark.parametrize("fault", [faults.huge(), faults.huge(chunked=True), faults.gzip_bomb()])
def test_a_body_is_read_no_further_than_the_cap(tmp_path, monkeypatch, fault):
    """Megabytes, plain or unpacked, are a malformed reply and not an answer."""
    monkeypatch.setattr(connection, "MAX_BODY", 1_000_000)
    with Server(per_request(fault, text("fine"))) as server:
        asked = ask(server, tmp_path)
        assert asked.reply.text == "fine"
        assert (server.n_received, asked.failed_attempts) == (2, 1)


@pytest.mark.parametrize("slow", ["hang", "drip"])
def test_a_slow_server_is_cut_at_the_deadline(tmp_path, slow):
    """Nothing at all, or a byte now and then: the deadline, timeout_s, is wall-clock."""
    gate = Gate()
    fault = faults.hang(gate) if slow == "hang" else replace(text("drop by drop"), pace_s=0.02)
    with Server(per_request(fault, text("fine"))) as server:
        asked = ask(server, tmp_path, timeout_s=0.2)
        gate.open()
        assert asked.reply.text == "fine"
        assert (server.n_received, asked.failed_attempts) == (2, 1)


def test_a_small_window_cuts_the_reply_before_the_prompt(tmp_path):
    """A window that prompt and max_tokens overflow together is learnt, and the prompt then fits."""
    rules = {"m": templates.Rules(context_window=2048, overflow="vllm")}
    with Server(text("fine"), models=rules) as server:
        asked = ask(server, tmp_path, decoding=Decoding(max_tokens=2048))
        assert asked.reply.text == "fine"
        assert server.calls[-1].body["max_tokens"] == 1024
        again = ask(server, tmp_path, [*ASK, *ASK], decoding=Decoding(max_tokens=2048))
        assert again.reply.text == "fine"
        assert server.n_received == 3


@pytest.mark.parametrize("name", sorted(templates.TEMPLATES))
def test_strict_chat_templates_are_pleased_once_and_for_all(tmp_path, name):
    """Even and odd histories arrive at every template; what it refuses is asked only once."""
    dialogue = ["one", "two", "three", "four", "five"]
    requests = [chat_messages("Speak.", dialogue[:n]) for n in (2, 3, 4, 5)]
    with Server(text("fine"), models={"m": templates.Rules(templates.TEMPLATES[name])}) as server:
        asked = ask(server, tmp_path, *requests)
        assert [reply.text for reply in asked.replies] == ["fine"] * 4
        refused = server.n_received - 4
        assert refused <= 5
        before = server.n_received
        later = ask(server, tmp_path, chat_messages("Speak.", [*dialogue, "six"]))
        assert later.reply.text == "fine"
        assert server.n_received == before + 1
    assert bool(asked.quirks) == bool(refused)


def test_what_the_environment_adds_for_openai_goes_to_openai_only(tmp_path, monkeypatch):
    """Organisation, project and custom headers of the environment are not sent elsewhere."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Inner: secret-header")
    with Server(text("fine")) as server:
        assert ask(server, tmp_path).reply.text == "fine"
        assert "secret" not in str(dict(server.calls[0].headers))


def test_two_callers_of_one_request_share_one_call(tmp_path):
    """Nothing is paid twice, also when the same is asked at the same time."""
    with Server(text("fine")) as server:
        gate = server.hold()

        async def run():
            ledger = Ledger(tmp_path / "l.sqlite3")
            http = served(server.url)
            entry = ModelSettings(model="m", base_url=server.url)
            sender = EndpointModel("m", entry, ledger, http)
            model = StoredModel(RetryingModel(PayingModel(sender, ledger, "t", ServerLimit(8))))
            calls = [asyncio.create_task(model.chat(ASK, Decoding())) for _ in range(5)]
            await asyncio.to_thread(server.wait_for, 1)
            gate.open()
            replies = await asyncio.gather(*calls)
            await http.aclose()
            ledger.close()
            return replies

        replies = asyncio.run(run())
        assert {reply.text for reply in replies} == {"fine"}
        assert server.n_received == 1


def test_money_is_what_the_endpoint_counted(tmp_path):
    """Cost = tokens billed x price, cached input at its own price; without usage it is unknown."""
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "total_tokens": 1200,
        "prompt_tokens_details": {"cached_tokens": 600},
    }
    with Server(per_request(text("fine", usage=usage))) as server:
        asked = ask(server, tmp_path, prices=Prices(input=2.0, output=10.0, cached=0.5))
    assert asked.reply.usage == Usage(1000, 200, 600)
    assert asked.reply.cost_usd == pytest.approx((400 * 2 + 600 * 0.5 + 200 * 10) / 1e6)
    with Server(faults.no_usage()) as server:
        assert ask(server, tmp_path / "b", prices=Prices(2.0, 10.0)).reply.cost_usd is None


@pytest.mark.parametrize(("facts", "window"), rows("windows_of_a_list"))
def test_the_first_call_learns_the_window_from_the_list_of_models(tmp_path, facts, window):
    """As llama.cpp, vLLM and routers tell it; asked once a ledger, also if it is not there."""
    with Server(text("fine")) as server:
        server.listed = [{"id": "other", "max_model_len": 4096}]
        server.listed += [] if facts is None else [{"id": "m"} | facts]
        asked = ask(server, tmp_path, decoding=Decoding(max_tokens=300))
        assert server.calls[-1].body["max_tokens"] == (256 if window else 300)
        assert asked.quirks == ({"context_window": 512} if window else {})
        server.listed = [{"id": "m", "max_model_len": 8192}]
        assert ask(server, tmp_path, [*ASK, *ASK]).quirks == asked.quirks
