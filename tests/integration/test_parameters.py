"""Parameters that an endpoint refuses: left out once, named, and never only for their value."""

import pytest

from botchat.interfaces import Decoding
from tests.integration.test_endpoints import ASK, ask
from tests.openai_server import Server, faults, text
from tests.rows import cases

THRICE = [ASK, [*ASK, *ASK], [*ASK, *ASK, *ASK]]


def asked(server, folder, **settings):
    """Three requests with each optional parameter in them."""
    return ask(server, folder, *THRICE, decoding=Decoding(0.0, 50, sample=3), **settings)


@pytest.mark.parametrize(
    ("field", "status", "words", "param"), cases("parameters_that_are_refused", 4)
)
def test_a_parameter_that_is_refused_is_left_out_once(
    tmp_path, caplog, field, status, words, param
):
    """One request more, for all later ones; what changes the meaning is said once, by name."""

    def script(call):
        return faults.error(status, words, param=param) if field in call.body else text("fine")

    with Server(script) as server:
        found = asked(server, tmp_path)
        assert [reply.text for reply in found.replies] == ["fine"] * 3
        assert server.n_received == 4
        assert list(found.quirks["parameters"]) == [field]
        others = {"max_tokens", "temperature", "seed", "stream"} - {field}
        assert others <= {*server.calls[-1].body}
    n_said = caplog.text.count(f"m is asked without {field} from now on")
    is_meant = field != "stream" and found.quirks["parameters"][field] is None
    assert n_said == is_meant


@pytest.mark.parametrize(("words", "param"), cases("values_that_are_refused", 2))
@pytest.mark.parametrize("status", [400, 422])
def test_a_cap_on_what_is_paid_is_never_lifted_for_its_value(tmp_path, status, words, param):
    """One request a call; nothing is learnt; the line names the key of botchat.toml."""
    with Server(faults.error(status, words, param=param)) as server:
        found = asked(server, tmp_path)
        assert server.n_received == 3
        assert all(call.body["max_tokens"] == 50 for call in server.calls)
    assert (found.quirks, found.stored) == ({}, 0)
    assert found.reply.outcome == "transport"
    assert "change max_tokens in its [models] entry of botchat.toml" in found.reply.detail


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("field", ["top_p", "reasoning_effort", "safety_mode"])
def test_an_own_parameter_is_named_and_stays(tmp_path, status, field):
    """``extra_body`` is the user's: what it means is not ours to change."""
    with Server(faults.error(status, f"{field} 'high' is not supported", param=field)) as server:
        found = asked(server, tmp_path, extra_body={field: "high"})
        assert server.n_received == 3
        assert all(call.body[field] == "high" for call in server.calls)
    assert found.quirks == {}
    assert "change extra_body in its [models] entry of botchat.toml" in found.reply.detail


@pytest.mark.parametrize("status", [429, 500, 502, 503])
@pytest.mark.parametrize("field", ["max_tokens", "temperature", "seed", "stream"])
def test_a_fault_that_passes_refuses_no_parameter(tmp_path, status, field):
    """Whatever it names."""
    fault = faults.error(status, f"{field} is not supported by node 3", param=field)
    answers = iter([fault])
    with Server(lambda _: next(answers, text("fine"))) as server:
        found = asked(server, tmp_path)
        assert [reply.text for reply in found.replies] == ["fine"] * 3
        assert server.calls[0].body == server.calls[1].body
    assert found.quirks == {}


def test_a_refusal_again_of_what_was_left_out_is_a_fault_of_the_request(tmp_path):
    """A server that refuses what it is not sent is asked twice, not for ever."""
    with Server(faults.unsupported_parameter("seed")) as server:
        found = asked(server, tmp_path)
        assert server.n_received == 4
        assert "seed" not in server.calls[-1].body
    assert found.reply.outcome == "transport"
    assert "Unsupported parameter: 'seed'" in found.reply.detail
