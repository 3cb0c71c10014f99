"""What is kept for good and what is asked again: an outcome is final only on evidence."""

from contextlib import closing

import pytest

from botchat.cli.main import main
from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Usage, visible
from botchat.models import reader
from botchat.models.limits import Retry
from botchat.pipeline import session
from botchat.workspace.ledger import Ledger
from tests.integration.test_endpoints import ASK, ask
from tests.integration.test_runs import workspace
from tests.openai_server import Answer, Server, faults, per_request, text
from tests.rows import cases, rows

FINE = text("fine")
ERRORS = rows("errors_of_providers")
BODIES = rows("bodies_of_providers")


def of(status, message, code=None, param=None):
    """An error in OpenAI's layout."""
    return faults.error(status, message, code=code, param=param)


def each(kind):
    """A test with each error or body of a kind, in the words of providers."""
    known = {name: of(*error) for of_kind, name, *error in ERRORS if of_kind == kind}
    known |= {name: Answer(body=body) for of_kind, name, body in BODIES if of_kind == kind}
    return pytest.mark.parametrize("fault", known.values(), ids=known)


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@each("NO_ANSWER")
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
    monkeypatch.setattr(session, "Retry", lambda: Retry(first_s=0.0))
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


@each("FILTERED")
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


@pytest.mark.parametrize(("prompt", "completion", "more", "read"), rows("counts_that_are_billed"))
def test_tokens_are_what_is_billed_or_nothing(tmp_path, prompt, completion, more, read):
    """Thoughts outside completion_tokens count; a count that cannot be is none; nothing is lost."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage = [1] if more is None else usage | more  # a list is none
    with Server(per_request(text("fine", usage=usage))) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.text, asked.reply.usage) == ("fine", Usage(*read))
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


@pytest.mark.parametrize("said", cases("texts_that_show_nothing", 1))
def test_a_text_that_shows_nothing_is_empty(tmp_path, said):
    """Zero-width, control, format and blank characters are no utterance."""
    assert not visible(said)
    assert visible(f"{said}x")
    with Server(per_request(text(said))) as server:
        assert ask(server, tmp_path).reply.outcome == "empty"


@pytest.mark.parametrize("said", cases("texts_that_show_something", 1))
def test_a_text_of_characters_that_python_does_not_know_is_one(said):
    """What is newer than its Unicode is seen all the same."""
    assert visible(said)
