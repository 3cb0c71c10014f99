"""The reason of an error: what the server said deepest, in one line, wherever it stands."""

import json

import pytest

from botchat.cli.main import main
from botchat.models.limits import Retry
from botchat.pipeline import session
from tests.integration.test_runs import KEY, workspace
from tests.openai_server import Answer, Server, faults
from tests.rows import cases

GENERATE = ["generate", "--seeds", "small", "--turns", "3", "--model", "alpha", "--dir"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(session, "Retry", lambda: Retry(first_s=0.0, most=4))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def reason(server, folder, capsys):
    """The last line of a run whose every call fails."""
    workspace(folder, server, 1)
    capsys.readouterr()
    assert main([*GENERATE, str(folder)]) == 1
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("status", "body", "said"), cases("reasons_of_an_error", 3))
def test_the_line_names_the_deepest_reason_and_is_no_page(tmp_path, capsys, status, body, said):
    """At most four requests; a line that a person reads, without HTML."""
    content = body if isinstance(body, str) else json.dumps(body)
    with Server(Answer(status, content.encode())) as server:
        line = reason(server, tmp_path / "w", capsys)
        assert server.n_received <= 4
    assert said in line
    assert "<" not in line


@pytest.mark.parametrize("status", [400, 500, 200])
def test_a_body_without_a_reason_is_named_by_its_status(tmp_path, capsys, status):
    """Empty, or an empty object."""
    for n, body in enumerate((b"", b"{}", b"null")):
        with Server(Answer(status, body)) as server:
            line = reason(server, tmp_path / str(n), capsys)
        assert str(status) in line or "is no JSON" in line


LONG = "tea " * 5000


@pytest.mark.parametrize(
    "fault",
    [
        faults.error(400, LONG),
        faults.error(400, "\x1b[2J\x1b[1;31mred\x07\n\nbotchat: all is well"),
        Answer(400, LONG.encode()),
        Answer(200, LONG.encode()),
        faults.html(400, LONG),
        Answer(400, b'{"error":' * 3000 + b'"x"' + b"}" * 3000),
        Answer(400, b'{"errors":[' + b'"x",' * 30_000 + b'"y"]}'),
        faults.error(400, f"you sent {KEY}"),
    ],
    ids=["long", "controls", "long text", "200", "long title", "deep", "many", "key"],
)
def test_whatever_an_error_says_it_is_one_short_line(tmp_path, capsys, fault):
    """It steers no terminal, and holds no key."""
    with Server(fault) as server:
        line = reason(server, tmp_path / "w", capsys)
    assert line.startswith("botchat: ")
    assert len(line) < 900
    assert line.isprintable()
    assert KEY not in line
