"""Faults: each row of the module's table is a member, has an example, and ends as it says."""

import json
import re
import socket
from types import SimpleNamespace
from typing import get_args

import pytest

from botchat.errors import FatalModelError
from botchat.models import faults as faults_module
from botchat.models.faults import FACTS, Fault, classify, window_of
from botchat.models.reader import read_error
from tests.integration.test_endpoints import QUICK, ask
from tests.openai_server import Gate, Server, faults, text
from tests.rows import cases

ROW = re.compile(r"^\| ``(\w+)`` \| .+ \| (.+) \|$", re.MULTILINE)
TABLE = dict(ROW.findall(faults_module.__doc__ or ""))
"""Name of a fault -> what becomes of the call."""

ATTEMPTS = {"made twice": 2, "made three times": 3, "made six times": 6}


def test_each_row_of_the_table_is_a_member():
    """In the same order; none without the other."""
    assert list(TABLE) == list(get_args(Fault))


@pytest.mark.parametrize("fault", get_args(Fault))
def test_a_fault_is_what_its_row_says(fault):
    """Whether it ends the model, how long it is waited for, how often it is made."""
    becomes = TABLE[fault].split(":")[0]
    assert FACTS[fault].ends_the_model == (becomes == "ends the model")
    assert FACTS[fault].is_patient == becomes.startswith("waited")
    if becomes in ATTEMPTS:
        assert FACTS[fault].attempts == ATTEMPTS[becomes]
    if FACTS[fault].may_be_billed:
        assert FACTS[fault].attempts <= 3
        assert not FACTS[fault].is_patient


def rejected(name):
    """A server that refuses a field, and answers without it."""

    def script(call):
        return faults.unsupported_parameter(name) if name in call.body else text("fine")

    return script


def ordered(call):
    """A server whose chat template takes no system prompt."""
    is_refused = call.messages[0]["role"] == "system"
    words = "System role not supported"
    return faults.error(400, words) if is_refused else text("fine")


EXAMPLES = {
    "redirect": (faults.redirect("http://127.0.0.1:9/v1"), 1),
    "account": (faults.unauthorized(), 1),
    "busy": (faults.rate_limited(), QUICK.most),
    "loading": (faults.error(503, "no free slot"), QUICK.most),
    "server": (faults.html(502, "Bad Gateway"), 3),
    "absent": (faults.model_not_found(), 1),
    "filtered": (faults.content_policy(), 1),
    "overflow": (faults.error(400, "prompt is too long"), 1),
    "parameter": (rejected("temperature"), 2),
    "layout": (ordered, 2),
    "request": (faults.error(422, "the tea pot is short"), 1),
    "unreadable": (faults.html(200), 2),
    "timeout": (None, 2),
    "lost": (faults.cut(), 3),
    "unreachable": (None, 0),
    "setting": (None, 0),
}
SYSTEM = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello?"}]


def asked(script, folder, **settings):
    """The reply to a call, or the line that ends the model, and how many requests came."""
    with Server(script) as server:
        try:
            reply = ask(server, folder, SYSTEM, **settings).reply
        except FatalModelError as error:
            return "ends the model", str(error), server.n_received
        if server.n_received and reply.outcome == "ok":
            return "adapted, made again", reply.detail, server.n_received
        outcome = "an answer" if reply.answered else "given up"
        return outcome, reply.detail, server.n_received


@pytest.mark.parametrize("name", TABLE)
def test_each_fault_has_an_example(tmp_path, monkeypatch, name):
    """What its row says becomes of it, with the number of requests that it may cost."""
    script, n_requests = EXAMPLES[name]
    settings = {}
    gate = Gate()
    if name == "timeout":
        script, settings = faults.hang(gate), {"timeout_s": 0.1}
    if name == "setting":
        monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    if name == "unreachable":
        with socket.socket() as taken:  # by nobody who listens
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
            with pytest.raises(FatalModelError, match=r"nothing was sent .*tried 4 times"):
                ask(SimpleNamespace(url=url), tmp_path)
        return
    became, line, n_received = asked(script or text("fine"), tmp_path, **settings)
    gate.open()
    assert n_received == n_requests
    expected = TABLE[name].split(":")[0]
    if expected not in ("ends the model", "an answer", "adapted, made again"):
        expected = "given up"
    assert became == expected
    assert "\n" not in line


@pytest.mark.parametrize(("status", "body", "fault", "window"), cases("faults_of_errors", 4))
def test_an_error_is_the_fault_that_it_names(status, body, fault, window):
    """In the words of providers; an overflow tells its window, or none, but never a wrong one."""
    content = body if isinstance(body, str) else json.dumps(body)
    error = read_error(content.encode())
    assert classify(status, error) == fault
    if window != "any":
        assert window_of(error) == window


def test_no_page_and_no_text_of_any_status_is_an_answer():
    """Whatever words stand in it: an answer that is kept for good needs an error in JSON."""
    words = "content_filter: blocked by content policy; maximum context length is 4096 tokens"
    for body in (f"<html><title>{words}</title><body>{words}</body></html>", words):
        found = {classify(status, read_error(body.encode())) for status in range(300, 600)}
        assert not found & {"filtered", "overflow", "parameter"}
