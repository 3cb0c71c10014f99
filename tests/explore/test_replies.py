"""Replies changed in any field: each is typed, no failure is said, nothing is paid twice."""

import json
import random
import re
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline import session
from botchat.records import UNANSWERED, Dialogue, Judgment
from botchat.workspace import jsonl
from botchat.workspace.ledger import Ledger
from tests.explore import N, explore
from tests.explore.mutations import encoded, of_bytes, of_json
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Answer, Cut, Server
from tests.openai_server.answers import Call, render

pytestmark = pytest.mark.explore

N_SEEDS = 8 if N else 4
GENERATE = ["generate", "--seeds", "small", "--turns", "4", "--model", "alpha"]
JUDGE = ["judge", "unieval", "--seeds", "small", "--judge", "umpire"]
N_CHANGED = 2 * N_SEEDS
"""Of the first command."""

STATUS = (
    200, 201, 202, 204, 206, 208, 226, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403,
    404, 405, 408, 409, 410, 413, 418, 422, 425, 429, 431, 451, 499, 500, 501, 502, 503, 504, 507,
    520, 529, 599, 600, 999,
)  # fmt: skip

HEADERS = (
    ("content-length", "1"), ("content-length", "0"), ("content-length", "99999"),
    ("content-length", "-1"), ("content-length", "x"), ("transfer-encoding", "chunked"),
    ("transfer-encoding", "gzip"), ("content-encoding", "gzip"), ("content-encoding", "br"),
    ("content-encoding", "x"), ("content-type", "text/event-stream"), ("content-type", "text/html"),
    ("content-type", "\xff"), ("content-type", "application/json; charset=utf-16"),
    ("retry-after", "-5"), ("retry-after", "nan"), ("retry-after", "x"), ("location", "//["),
    ("retry-after", "Sun, 99 Foo 2020"), ("retry-after-ms", "é"), ("x", "y" * 9000),
    ("set-cookie", "a=b; expires=never"), ("x", "a\r\nb: c"), ("", "x"),
)  # fmt: skip


def changed(draw: random.Random, answer: Answer, call: Call) -> Answer:
    """What a broken endpoint answers in the place of ``answer``."""
    body = render(answer, call, 0)[1]
    kind = draw.random()
    if kind < 0.65:
        return replace(answer, body=_field(draw, body))
    if kind < 0.75:
        return replace(answer, body=of_bytes(draw, body))
    if kind < 0.9:
        return replace(answer, body=draw.choice((body, b"", body)), status=draw.choice(STATUS))
    if kind < 0.95:
        more = (*answer.headers, draw.choice(HEADERS), ("connection", "close"))
        return replace(answer, body=body, headers=more)
    return replace(answer, body=body, cut=Cut(draw.randrange(len(body)), reset=draw.random() < 0.5))


def _field(draw: random.Random, body: bytes) -> bytes:
    try:
        return encoded(of_json(draw, json.loads(body)))
    except ValueError:
        return of_bytes(draw, body)


class Mutating(Server):
    """A server whose first answer to each request is changed; see ``sent``."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.sent: list[tuple[int, bytes]] = []

    def answer(self, call: Call) -> Answer:
        """The answer, once changed."""
        given = super().answer(call)
        if call.repeat == 1:
            given = changed(random.Random(f"{self.seed}|{call.digest}"), given, call)
        self.sent.append((given.status, render(given, call, 0)[1]))
        return given


@pytest.fixture
def fast(monkeypatch):
    """Nothing waits."""
    quick = Retry(first_s=0.0, most=3)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(session, "Retry", lambda: quick)


def letters(text: str) -> str:
    """What stays of a text whatever is done to its signs."""
    return "".join(re.findall("[A-Za-z]+", text.replace("<think>", "").replace("</think>", "")))


def may_be_said(status: int, body: bytes) -> str:
    """Letters of all contents that an answer's first value has; of an error nothing."""
    text = body.decode("utf-8", "replace").lstrip("\ufeff\r\n\t ")
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return ""
    is_answer = isinstance(found, dict) and 200 <= status < 300 and not found.get("error")
    return letters("".join(_contents(found))) if is_answer else ""


def _contents(value: Any, within: bool = False) -> list[str]:
    if isinstance(value, dict | list):
        named = value.items() if isinstance(value, dict) else enumerate(value)
        return [t for name, inner in named for t in _contents(inner, within or name == "content")]
    return [value] if within and isinstance(value, str) else []


def calls_and_attempts(folder) -> tuple[int, int]:
    """Answers in the ledger, and tries without one."""
    with closing(Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)) as ledger:
        ((calls,),) = ledger.select("SELECT count(*) FROM calls")
        ((failed,),) = ledger.select("SELECT count(*) FROM attempts")
        ((wrong,),) = ledger.select(
            "SELECT count(*) FROM calls WHERE cost_usd < 0 OR cost_usd > 1e3"
        )
        assert wrong == 0
        return calls, failed


def to_the_end(folder, command, capsys) -> None:
    """Run a command until it has nothing left to do; every time it says at most some lines."""
    error = ""
    for _ in range(2 * N_CHANGED):
        code = main([*command, "--dir", str(folder)])
        error = capsys.readouterr().err
        assert code in (0, 1), error
        assert "Traceback" not in error
        if code == 0 and all(answered(folder)):
            return
    raise AssertionError(f"does not come to its end: {error}")


def answered(folder):
    """Of each record whether it is final."""
    for path in folder.glob("generations/*/*.jsonl"):
        yield from (one.answered for one in jsonl.read(path, Dialogue))
    for path in folder.glob("judgments/*/*/*.jsonl"):
        yield from (one.outcome not in UNANSWERED for one in jsonl.read(path, Judgment))


@pytest.mark.usefixtures("fast")
def test_a_reply_changed_in_any_field_is_typed_and_paid_once(tmp_path, capsys):
    """Dialogues and verdicts come to their end; what was no answer is no utterance."""

    def once(draw: random.Random) -> str:
        seed = draw.randrange(2**32)
        folder = tmp_path / str(seed)
        with Mutating(seed) as server:
            workspace(folder, server, N_SEEDS, price_input=1.0, price_output=2.0, timeout_s=20)
            for command in (GENERATE, JUDGE):
                to_the_end(folder, command, capsys)
            server.wait_idle()
            n, made = server.n_received, stage_files(folder)
            calls, failed = calls_and_attempts(folder)
            assert (calls + failed, calls) == (n, n - failed)
            for command in (GENERATE, JUDGE):
                assert main([*command, "--dir", str(folder)]) == 0
            assert (server.n_received, stage_files(folder)) == (n, made)
            allowed = [may_be_said(*one) for one in server.sent]
        ends = []
        for path in folder.glob("generations/*/*.jsonl"):
            for one in jsonl.read(path, Dialogue):
                ends.append(one.status)
                for said in one.utterances[2:]:
                    assert said.strip()
                    assert any(letters(said) in one for one in allowed), said
        return "complete" if set(ends) == {"complete"} else "some stopped"

    explore(once, "chat", 1 / N_CHANGED / 2)
