"""Batch APIs that depart from OpenAI's: what they give is read, and nothing is paid for twice."""

import json
from base64 import b64encode
from dataclasses import replace

import pytest

from botchat.cli.main import main
from botchat.models import batch
from tests.commands import said
from tests.integration.test_batch import DONE, SENT, check, run, to_the_end
from tests.integration.test_batch import plain as plain
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import faults
from tests.openai_server.batches import BatchServer
from tests.openai_server.replies import talk


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("BOTCHAT_API_KEY", KEY)


class OddServer(BatchServer):
    """A Batch API that changes what it shows, and the files that it gives."""

    def __init__(self, script=talk, *, shown=(), page=(), change=None, **more):
        """``shown``: fields of a batch, None: none; ``page``: of a page; ``change``: of files."""
        super().__init__(script, **more)
        self.shown, self.page, self.change = dict(shown), dict(page), change
        self.seen = []
        self.uploads = []

    def received(self, call):
        """Every request is remembered."""
        self.seen.append(call)
        return super().received(call)

    def answer(self, call):
        """The same, changed."""
        answer = super().answer(call)
        body = answer.body
        if isinstance(body, bytes):
            return answer
        if body.get("object") == "batch":
            body = self.changed(body)
        elif "has_more" in body:
            body = {**body, "data": [self.changed(job) for job in body["data"]], **self.page}
        return replace(answer, body=body)

    def changed(self, shown):
        """A batch as this server shows it."""
        changes = {k: v(shown[k]) if callable(v) else v for k, v in self.shown.items()}
        return {k: v for k, v in (shown | changes).items() if v is not None or k not in changes}

    def _store(self, data):
        name = super()._store(data)
        if data.startswith(b'{"custom_id"'):
            self.uploads.append(data)
        elif self.change is not None:
            self._files[name] = self.change(data)
        return name


def each_line(change):
    """A change of files, line by line."""

    def changed(data):
        lines = [json.loads(line) for line in data.splitlines()]
        return b"".join([json.dumps(change(line)).encode() + b"\n" for line in lines])

    return changed


def response(**fields):
    """A change of each line's response; None leaves a field out."""

    def change(line):
        whole = line["response"] | fields
        return line | {"response": {k: v for k, v in whole.items() if v is not None}}

    return each_line(change)


def body_as_text(line):
    """The body as JSON in a string."""
    line["response"]["body"] = json.dumps(line["response"]["body"])
    return line


READ = {
    "as OpenAI": {},
    "states in capitals": {"shown": {"status": str.upper}},
    "no metadata": {"shown": {"metadata": None}},
    "no metadata, not listed": {"shown": {"metadata": None}, "page": {"data": []}},
    "metadata of others": {"shown": {"metadata": {"botchat": "x", "y": 1}}},
    "more for ever": {"page": {"has_more": True}},
    "more for ever, no metadata": {"page": {"has_more": True}, "shown": {"metadata": None}},
    "counts that are none": {"shown": {"request_counts": "3 of 3"}},
    "no counts, no errors": {"shown": {"request_counts": None, "errors": None}},
    "blank lines": {"change": lambda data: b"\n\n" + data.replace(b"\n", b"\n\n")},
    "lines of Windows": {"change": lambda data: data.replace(b"\n", b"\r\n")},
    "byte order mark": {"change": lambda data: b"\xef\xbb\xbf" + data},
    "lines that are none": {"change": lambda data: b'[]\nnull\n{"custom_id": 5}\n{\n' + data},
    "another's line": {"change": lambda data: b'{"custom_id": "x", "response": {}}\n' + data},
    "twice": {"change": lambda data: data + data},
    "no newline at the end": {"change": bytes.rstrip},
    "NaN": {"change": lambda data: data.replace(b'"error":null', b'"error":NaN')},
    "no status": {"change": response(status_code=None)},
    "status as text": {"change": response(status_code="200")},
    "status 201": {"change": response(status_code=201)},
    "body as text": {"change": each_line(body_as_text)},
}


@pytest.mark.parametrize("kind", READ.values(), ids=READ)
def test_what_a_batch_gives_is_read_in_its_layout(tmp_path, plain, kind):
    """The run is the one without batches; every call is paid for once; the list is not endless."""
    with OddServer(**kind) as server:
        folder = workspace(tmp_path / "w", server, 3, identity="here")
        assert run(folder, "--batch") == SENT
        (kept,) = folder.glob(".botchat/batches/*/*.batch")
        assert kept.read_text() == server.jobs[0].id
        assert to_the_end(folder) == 1
        check(server, folder, plain)
        n_pages = [call.path.split("?")[0] for call in server.seen].count("/v1/batches")
        assert n_pages <= 3 * batch.MAX_PAGES


def n_answers(capsys, folder):
    """Answers in the ledger."""
    return sum([row["calls"] for row in said(capsys, "ledger", "--dir", folder)["rows"]])


UNUSABLE = {
    "no custom_id": {"change": each_line(lambda line: {"response": line["response"]})},
    "unknown ids": {"change": each_line(lambda line: line | {"custom_id": "x"})},
    "a page": {"change": lambda _: b"<html><title>502 Bad Gateway</title></html>"},
    "nothing": {"change": lambda _: b""},
    "no file": {"shown": {"output_file_id": None}},
    "response null": {"change": each_line(lambda line: line | {"response": None})},
    "body null": {"change": response(body=None)},
    "an array": {"change": lambda data: b"[" + b",".join(data.splitlines()) + b"]"},
}


@pytest.mark.parametrize("kind", UNUSABLE.values(), ids=UNUSABLE)
def test_a_batch_whose_answers_cannot_be_read_is_said_and_not_paid_again(tmp_path, capsys, kind):
    """It is completed: its calls have failed, with a reason in one line, and are in no batch."""
    with OddServer(**kind) as server:
        folder = workspace(tmp_path / "w", server, 3)
        assert run(folder, "--batch") == SENT
        capsys.readouterr()
        assert run(folder, "--batch") == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "are in a batch" not in line
        assert (n_answers(capsys, folder), set(server.paid.values())) == (0, {1})


@pytest.mark.parametrize("word", ["ended", "succeeded", "done", "JOB_STATE_SUCCEEDED", "finished"])
def test_an_end_in_other_words_is_one(tmp_path, word):
    """All requests are done, and there is a file of answers."""
    shown = {"status": lambda status: word if status == "completed" else status}
    with OddServer(shown=shown) as server:
        folder = workspace(tmp_path / "w", server, 3)
        assert run(folder, "--batch") == SENT
        assert run(folder, "--batch") == SENT
        assert len(server.jobs) == 2


def refused_once(call):
    """Of three calls one is refused, as an account is used up."""
    return faults.insufficient_quota() if "talk 1" in str(call.messages) else talk(call)


def test_one_fatal_line_loses_no_answer_beside_it(tmp_path, capsys):
    """Its reason is said; the others are stored; when it can be paid, it alone is sent again."""
    with OddServer(refused_once) as server:
        folder = workspace(tmp_path / "w", server, 3)
        assert run(folder, "--batch") == SENT
        assert run(folder, "--batch") == 1
        assert "You exceeded your current quota" in capsys.readouterr().err
        assert n_answers(capsys, folder) == 2
        server.play(talk)
        to_the_end(folder)
        assert set(server.paid.values()) == {1}
        assert sum(server.paid.values()) == 6
        assert run(folder, "--batch") == DONE


PRICES = {"max_tokens": 2048, "price_input": 1.0, "price_output": 10.0}


@pytest.mark.parametrize(
    ("flags", "most"), [(("--max-usd", "0.05"), 4), (("--max-tokens", "9000"), 3)]
)
def test_a_limit_counts_what_is_pending(tmp_path, capsys, flags, most):
    """One run sends what the limit admits, at half the price, and no wave after it."""
    with OddServer() as server:
        folder = workspace(tmp_path / "w", server, 12, **PRICES)
        for n in range(1, 4):
            assert run(folder, "--batch", *flags) == SENT
            assert 0 < len(server.lines) <= n * most
        assert set(server.paid.values()) == {1}
    assert f"stopped at {flags[0]} {flags[1]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "most"), [("MAX_REQUESTS", 2), ("MAX_BYTES", 4000), ("MAX_BYTES", 10)]
)
def test_no_file_has_more_requests_or_bytes_than_an_endpoint_takes(
    tmp_path, monkeypatch, name, most
):
    """Several batches at once; a request that is larger by itself goes alone."""
    with OddServer() as server:
        plain = workspace(tmp_path / "plain", server, 7)
        assert run(plain) == DONE
        monkeypatch.setattr(batch, name, most)
        folder = workspace(tmp_path / "w", server, 7)
        to_the_end(folder)
        sizes = [len(data.splitlines()) for data in server.uploads]
        assert (sum(sizes), set(server.paid.values())) == (14, {1})
        assert stage_files(folder) == stage_files(plain)
        if name == "MAX_REQUESTS":
            assert max(sizes) == most
        elif most == 10:
            assert set(sizes) == {1}
        else:
            assert 1 < max(sizes) < 7
            assert max(map(len, server.uploads)) <= most


LOGIN = "someone:p4ss-w0rd-0123"
FORMS = {
    "none": ("", "", {}),
    "bearer": ("", 'api_key_env = "THE_KEY"', {"authorization": f"Bearer {KEY}"}),
    "own header": ("", 'headers = {api-key = "$THE_KEY"}', {"api-key": KEY}),
    "own scheme": (
        "",
        'headers = {Authorization = "Key $THE_KEY"}',
        {"authorization": f"Key {KEY}"},
    ),
    "login": (f"{LOGIN}@", "", {"authorization": f"Basic {b64encode(LOGIN.encode()).decode()}"}),
}


USES = [(form, way) for form in FORMS for way in ("chat", "batch")]
USES += [("none", "list"), ("bearer", "list"), ("login", "list")]


@pytest.mark.parametrize(("form", "way"), USES)
def test_every_form_of_authentication_goes_with_every_request(
    tmp_path, capsys, monkeypatch, form, way
):
    """Chat, lists of models, files and batches: what is set and nothing else, to the end."""
    login, line, expected = FORMS[form]
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("BOTCHAT_API_KEY", KEY if form + way == "bearerlist" else "")
    monkeypatch.setenv("THE_KEY", KEY)
    with OddServer() as server:
        server.listed = [{"id": "alpha"}]
        folder = workspace(tmp_path / "w", server, 2)
        settings = folder / "botchat.toml"
        url = server.url.replace("http://", f"http://{login}")
        settings.write_text(f'[models.alpha]\nmodel = "alpha"\nbase_url = "{url}"\n{line}\n')
        if way == "list":
            settings.unlink()
            assert main(["init", url, "--dir", str(folder)]) == DONE
        else:
            flags = ["--batch"] if way == "batch" else []
            codes = [run(folder, *flags) for _ in range(3)]
            assert set(codes[:2]) <= {DONE, SENT}
            assert codes[2] == DONE
        paths = {call.path.split("?")[0] for call in server.seen}
        assert ("/v1/batches" if way == "batch" else "/v1/models") in paths
        for call in server.seen:
            names = ("authorization", "api-key")
            sent = {name: call.headers[name] for name in names if name in call.headers}
            assert sent == expected
    printed = capsys.readouterr()
    for secret in (KEY, LOGIN.split(":")[1]):
        assert secret not in printed.out + printed.err
