"""Published calls that nobody published: one line with file and line, and nothing is taken in."""

import gzip
import hashlib
import json
import re
from contextlib import closing

import pytest

from botchat.errors import DataError
from botchat.interfaces import Decoding
from botchat.workspace import ledger as storage
from botchat.workspace.ledger import Ledger, read_calls, request_json, request_key
from botchat.workspace.usage import stats
from tests.rows import rows

ASK = request_json({"model": "m"}, [{"role": "user", "content": "hi"}], Decoding()).decode()
DEEP = 200_000  # Python 3.12 and newer read 5,000


def line(request=ASK, **changed):
    """A line of a published run's calls; a value of bytes stands there as it is."""
    (call,) = rows("published_call")
    call |= {"key": request_key(request.encode()), "request": request.encode(), **changed}
    parts = [
        b'"%s":%s'
        % (name.encode(), value if isinstance(value, bytes) else json.dumps(value).encode())
        for name, value in call.items()
    ]
    return b"{" + b",".join(parts) + b"}\n"


def written(folder, lines):
    """A file of such lines."""
    path = folder / "calls.jsonl.gz"
    path.write_bytes(gzip.compress(lines))
    return path


def other(n):
    """A good line about another request."""
    ask = [{"role": "user", "content": f"{n}"}]
    return line(request_json({"model": "m"}, ask, Decoding()).decode())


def hostile():
    """What a line may have that no ledger wrote."""
    deep = b"[" * DEEP + b"]" * DEEP
    digits = b"9" * 5000
    for count in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        for value in (2**63, 2**64, 10**13, -1, 1.5, "3", True, [3]):
            yield f"{count}={value}", line(**{count: value})
        yield f"{count} of 5,000 digits", line(**{count: digits})
    for value in (b"NaN", b"Infinity", b"1e999", digits, deep, b"-1.0", b'"1"', b"{}"):
        yield f"cost {value[:9]!r}", line(cost_usd=value)
        yield f"latency {value[:9]!r}", line(latency_s=value)
    yield "latency null", line(latency_s=None)
    yield "time of 5,000 digits", line(at=digits)
    yield "time NaN", line(at=b"NaN")
    yield "deep sent", line(sent=b'{"layout":' + deep + b"}")
    yield "long number sent", line(sent=b'{"context_window":' + digits + b"}")
    yield "sent no object", line(sent=[1])
    yield "deep unknown field", line(more=deep)
    yield "deep request", line('{"messages":' + deep.decode() + "}")
    for request in ("[]", "5", '"x"', "{}", '{"messages":[]}', ASK.replace('"user"', '"tool"')):
        yield f"request {request[:20]}", line(request)
    yield "message without text", line(ASK.replace('"hi"', "null"))
    for name in ("key", "text", "outcome", "model", "stage", "raw", "detail", "finish_reason"):
        yield f"{name} a number", line(**{name: 5})
        yield f"{name} a half of a character", line(**{name: b'"\\ud800"'})
        yield f"{name} no UTF-8", line(**{name: b'"\xff"'})
    yield "no such outcome", line(outcome="splendid")
    yield "no answer", line(outcome="transport")
    yield "no answer either", line(outcome="malformed")
    yield "another key", line(key=hashlib.sha256(b"").hexdigest())
    yield "a field is missing", b'{"key":"x"}\n'
    yield "deep alone", deep + b"\n"
    yield "digits alone", digits + b"\n"
    yield "cut", line()[:-20] + b"\n"
    yield "empty line", b"\n"
    yield "zero bytes", b"\0" * 100 + b"\n"
    yield "two on a line", line().strip() * 2 + b"\n"
    yield "a byte order mark", b"\xef\xbb\xbf" + line()


HOSTILE = dict(hostile())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_is_one_line(tmp_path, name):
    """File and line are named; the good lines before and after it are not taken in either."""
    path = written(tmp_path, other(1) + other(2) + HOSTILE[name] + other(3))
    with closing(Ledger(None)) as ledger:
        with pytest.raises(DataError, match=rf"^{re.escape(str(path))}:3: [^\n]{{1,400}}$"):
            ledger.add_calls(call.row() for call in read_calls(path))
        assert stats(ledger) == []


def test_the_line_they_are_made_of_is_good(tmp_path):
    """Else the test above would test nothing; also of fields of earlier versions."""
    path = written(tmp_path, line(other=[1], cache_write_tokens=7) + other(1) + other(2).rstrip())
    with closing(Ledger(None)) as ledger:
        assert ledger.add_calls(call.row() for call in read_calls(path)) == 3
        assert ledger.get(request_key(ASK.encode())).text == "hello"
        assert len(ledger.recent("m", "judge", 9)) == 3


def test_a_line_without_end_is_not_read(tmp_path, monkeypatch):
    """Longer than any call: refused where the limit is reached."""
    monkeypatch.setattr(storage, "MAX_LINE", 1 << 20)
    path = written(tmp_path, other(1) + line(text="a" * (1 << 20)) + other(2))
    with closing(Ledger(None)) as ledger:
        with pytest.raises(DataError) as refused:
            ledger.add_calls(call.row() for call in read_calls(path))
        assert str(refused.value) == f"{path}:2: not a call of a published run: longer than 1 MiB"
        monkeypatch.setattr(storage, "MAX_LINE", 1 << 21)
        assert ledger.add_calls(call.row() for call in read_calls(path)) == 3


@pytest.mark.parametrize(
    "data",
    [
        b"no gzip at all",
        gzip.compress(line() * 9)[:-9],
        gzip.compress(line()) + b"more",
        b"\x1f\x8b",
    ],
    ids=["none", "cut", "more behind it", "two bytes"],
)
def test_what_is_no_archive_is_one_line(tmp_path, data):
    """Not gzip, gzip that is cut or goes on as something else."""
    path = tmp_path / "calls.jsonl.gz"
    path.write_bytes(data)
    with closing(Ledger(None)) as ledger:
        with pytest.raises(DataError, match=rf"^[^\n]*{re.escape(str(path))}[^\n]*$"):
            ledger.add_calls(call.row() for call in read_calls(path))
        assert stats(ledger) == []
