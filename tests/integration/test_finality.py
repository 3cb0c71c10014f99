"""What is kept for good and what is asked again: an outcome is final only on evidence."""

from __future__ import annotations

from contextlib import closing

import pytest

from botchat.cli.main import main
from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Usage, visible
from botchat.models import reader
from botchat.models.limits import Retry
from botchat.pipeline import live_models
from botchat.workspace.ledger import Ledger
from tests.integration.test_endpoints import ASK, ask
from tests.integration.test_runs import workspace
from tests.openai_server import Answer, Server, completion, faults, per_request, text
from tests.rows import rows

FINE = text("fine")
ERRORS = rows("errors_of_providers")


def of(status, message, code=None, param=None):
    """An error in OpenAI's layout."""
    return faults.error(status, message, code=code, param=param)


def each(kind, **more):
    """A test with each error of a kind, in the words of providers, and with more faults."""
    known = {name: of(*error) for of_kind, name, *error in ERRORS if of_kind == kind} | more
    return pytest.mark.parametrize("fault", known.values(), ids=known)


def ended(reason, content="Half a sent", **choice):
    """A completion with this finish reason."""
    message = {"role": "assistant", "content": content}
    return completion([{"index": 0, "message": message, "finish_reason": reason, **choice}])


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
SAFE = {"hate": {"filtered": False, "severity": "safe"}}
HIGH = {"hate": {"filtered": True, "severity": "high"}}
NO_ANSWER = {
    "no choices, nothing filtered": Answer(
        200, {"choices": [], "prompt_filter_results": [{"content_filter_results": SAFE}]}
    ),
    "no message, nothing filtered": completion([{"index": 0, "content_filter_results": SAFE}]),
    "nothing of zero tokens": text(None, usage=ZERO),
    "no text of zero tokens": text("", usage=ZERO | {"prompt_tokens": 9}),
    "no parts of zero tokens": text([], usage=ZERO),
    "no message of zero tokens": completion([{"message": {}, "finish_reason": "stop"}], usage=ZERO),
    "an error in the choice": completion([{"index": 0, "error": {"message": "no", "code": 502}}]),
    "no text, unknown end": text("", finish_reason="panic", usage=None),
    "no text, no end": text("", finish_reason=None, usage=None),
    "finish error": ended("error"),
    "finish resource": ended("insufficient_system_resource"),
    "finish unknown": ended("kernel_panic"),
    "finish abort": ended("abort"),
    "finish error, no text": ended("error", ""),
    "finish null": ended(None),
    "another choice alone": completion(
        [{"index": 1, "message": {"role": "assistant", "content": "Half"}, "finish_reason": "stop"}]
    ),
    "a number in place of text": ended("stop", 5),
    "an object in place of text": ended("stop", {"text": "Half a sent"}),
    "a part without text": ended("stop", [{"type": "text", "text": None}]),
    "a part that is none": ended("stop", [None, {"type": "text", "text": "Half a sent"}]),
    "200 error": Answer(200, {"error": {"message": "content filter is down", "code": 503}}),
    "no choices": completion([]),
}


@each("NO_ANSWER", **NO_ANSWER)
def test_what_is_no_answer_is_asked_again_as_it_was(tmp_path, fault):
    """Nothing is stored as an answer, and nothing is left out of the next request."""
    with Server(per_request(fault, FINE)) as server:
        asked = ask(server, tmp_path)
        assert asked.reply.text == "fine"
        assert (server.n_received, asked.stored, asked.failed_attempts) == (2, 1, 1)
        assert server.calls[0].body == server.calls[1].body
    assert asked.quirks == {}


@pytest.mark.parametrize("usage", [ZERO, ZERO | {"prompt_tokens": 9}])
@pytest.mark.parametrize("content", [None, "", [], " \n"])
def test_nothing_of_zero_tokens_twice_is_kept_as_nothing(tmp_path, usage, content):
    """Asked once more, not for ever."""
    with Server(text(content, usage=usage)) as server:
        asked = ask(server, tmp_path, ASK, ASK)
        assert [reply.outcome for reply in asked.replies] == ["empty"] * 2
        assert (server.n_received, asked.stored) == (2, 1)


PAGE = "This request was blocked by the content policy of your company: context length exceeded"


@pytest.mark.parametrize("status", [200, 400, 403, 413, 451, 502])
@pytest.mark.parametrize("form", ["<html><title>Blocked</title><body>{}</body></html>", "{}"])
def test_a_page_of_a_company_is_nobodys_answer(tmp_path, monkeypatch, capsys, status, form):
    """Five dialogues behind it: one line, at most a request each, no outcome in the ledger."""
    monkeypatch.setattr(live_models, "Retry", lambda: Retry(first_s=0.0))
    generate = ["generate", "--seeds", "small", "--turns", "3", "--model", "alpha", "--dir"]
    with Server(Answer(status, form.format(PAGE).encode())) as server:
        folder = workspace(tmp_path / "w", server, 5)
        assert main([*generate, str(folder)]) == 1
        assert server.n_received <= {200: 8, 403: 1, 502: 15}.get(status, 5)
        said = capsys.readouterr().err
        with closing(Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)) as ledger:
            assert ledger.select("SELECT outcome FROM calls") == []
    assert "<" not in said
    assert said.count("botchat: ") == said.count("\n") <= 2


FILTERED = {
    "its field, prompt": Answer(
        200, {"choices": [], "prompt_filter_results": [{"content_filter_results": HIGH}]}
    ),
    "its field, reply": ended("stop", "", content_filter_results=HIGH),
    "finish, no message": completion([{"index": 0, "finish_reason": "content_filter"}]),
    "finish, null message": ended("content_filter", None),
    "native SAFETY": ended("error", "", native_finish_reason="SAFETY"),
    "finish SAFETY": completion([{"index": 0, "finish_reason": "SAFETY"}]),
    "block reason": Answer(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
    "200 with its code": Answer(200, {"error": {"message": "no", "code": "content_filter"}}),
}


@each("FILTERED", **FILTERED)
def test_a_filter_is_final(tmp_path, fault):
    """One request, however often it is asked."""
    with Server(fault) as server:
        asked = ask(server, tmp_path, ASK, ASK)
        assert [reply.outcome for reply in asked.replies] == ["filtered"] * 2
        assert (server.n_received, asked.stored) == (1, 1)


@each("OVERFLOW")
def test_an_overflow_is_known_in_every_wording(tmp_path, fault):
    """At most one more request, with the reply's share cut; the cap on paid output stays."""
    with Server(fault) as server:
        asked = ask(server, tmp_path, ASK, ASK, decoding=Decoding(max_tokens=2048))
        assert [reply.outcome for reply in asked.replies] == ["overflow"] * 2
        assert (server.n_received <= 2, asked.stored) == (True, 1)
        assert all(call.body["max_tokens"] <= 2048 for call in server.calls)
    assert "parameters" not in asked.quirks


@each("ACCOUNT")
def test_an_account_error_ends_the_model_with_one_line_and_is_on_record(tmp_path, fault):
    """Nothing is stored as an answer; the account's trouble is not the prompt's."""
    with Server(fault) as server:
        with pytest.raises(FatalModelError, match="cannot be used: HTTP 4"):
            ask(server, tmp_path)
        assert server.n_received == 1
        with closing(Ledger(tmp_path / "ledger.sqlite3", readonly=True)) as ledger:
            assert ledger.select("SELECT status FROM attempts") == [(fault.status,)]
        server.play(FINE)
        assert ask(server, tmp_path).reply.text == "fine"


@each("UNKNOWN")
def test_an_unknown_model_is_asked_for_once_whatever_the_status(tmp_path, fault):
    """Not once for every seed."""
    with Server(fault) as server:
        with pytest.raises(FatalModelError, match=r"cannot be used: HTTP 400: .*; check its model"):
            ask(server, tmp_path)
        assert server.n_received == 1


def test_a_server_that_refuses_everything_in_turn_is_asked_a_bounded_number_of_times(tmp_path):
    """Each parameter and layout once; then it is a failure like others."""

    def script(call):
        body = call.body
        for name in ("temperature", "max_tokens", "max_completion_tokens", "seed"):
            if name in body:
                return faults.unsupported_parameter(name, "max_completion_tokens")
        return of(400, "Conversation roles must alternate user/assistant")

    with Server(script) as server:
        asked = ask(server, tmp_path, [Message(role="user", content="one")])
        assert asked.reply.outcome == "transport"
        assert server.n_received <= 16


@pytest.mark.parametrize(
    ("prompt", "completion", "more", "read"),
    [
        (100, 10, {"total_tokens": 10_110}, Usage(100, 10_010)),
        (100, 10, {"total_tokens": 110}, Usage(100, 10)),
        (100, 10, {"total_tokens": 5}, Usage(100, 10)),
        (1.0, 2.0, {}, Usage(1, 2)),
        ("100", "10", {}, Usage(100, 10)),
        ("100", True, {}, Usage(100)),
        ("a few", "1e400", {}, Usage()),
        (-1, 2**63, {}, Usage()),
        (1.5, 10**400, {}, Usage()),
        (0, 0, {}, Usage()),
        (100, 10, {"prompt_tokens_details": {"cached_tokens": 60}}, Usage(100, 10, 60)),
        (9, 1, {"prompt_cache_hit_tokens": 6}, Usage(9, 1, 6)),
        (1, 2, None, Usage()),
    ],
)
def test_tokens_are_what_is_billed_or_nothing(tmp_path, prompt, completion, more, read):
    """Thoughts outside completion_tokens count; a count that cannot be is none; nothing is lost."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage = [1] if more is None else usage | more  # a list is none
    with Server(per_request(text("fine", usage=usage))) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.text, asked.reply.usage) == ("fine", read)
        assert asked.stored == 1


def test_a_routers_own_bill_is_read(tmp_path):
    """``usage.cost``; of a user's own key it is the router's fee only, so the bill is unknown."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
    own = usage | {"is_byok": True}
    told = [(usage, 0.25), (own, None), (usage | {"cost": -1}, None)]
    told.append((usage | {"cost": 10**308 * 10}, None))  # an integer that is no float
    for n, (said, billed) in enumerate(told):
        with Server(per_request(text("fine", usage=said))) as server:
            assert ask(server, tmp_path / str(n)).reply.cost_usd == billed


def test_whatever_fails_while_a_body_is_read_is_one_call_that_failed(tmp_path, monkeypatch):
    """It is asked again; the run goes on, and nothing of the failure is kept as an answer."""
    errors = iter([ZeroDivisionError("n")])

    def token_usage(*_):
        for error in errors:
            raise error
        return Usage(3, 1)

    monkeypatch.setattr(reader, "token_usage", token_usage)
    with Server(per_request(FINE, FINE, FINE)) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.text, asked.failed_attempts, asked.stored) == ("fine", 1, 1)


UNSEEN = {
    "zero width": "\u200b\u200d\ufeff\u2060",
    "control": "\0\0\x1b\x7f\x85",
    "blanks": " \n\t\u3000\u00a0\u2028",
    "direction": "\u200e\u202e\u2066\u2069",
    "fillers": "\u115f\u1160\u3164\uffa0\u2800",
    "tags": "\U000e0001\U000e0041",
    "combining": "\ufe0f\u034f\u0301\u20e3",
}
SEEN = {
    "full stop": ".",
    "Greek": "\u200b\u03bb",
    "replaced half": "\ufffd",
    "emoji": "\U0001f642\ufe0f",
    "emoji of 2024": "\U0001fae9",
    "emoji to come": "\U0001fadf\u200d",
    "Garay, a script of 2024": "\U00010d50\U00010d51",
    "Kirat Rai": "\U00016d43",
    "private": "\ue000",
    "two letters": "\u0e44\u0e17",
}


@pytest.mark.parametrize("said", UNSEEN.values(), ids=UNSEEN)
def test_a_text_that_shows_nothing_is_empty(tmp_path, said):
    """Zero-width, control, format and blank characters are no utterance."""
    assert not visible(said)
    assert visible(f"{said}x")
    with Server(per_request(text(said))) as server:
        assert ask(server, tmp_path).reply.outcome == "empty"


@pytest.mark.parametrize("said", SEEN.values(), ids=SEEN)
def test_a_text_of_characters_that_python_does_not_know_is_one(said):
    """What is newer than its Unicode is seen all the same."""
    assert visible(said)
