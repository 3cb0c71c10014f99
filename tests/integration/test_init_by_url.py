"""``init URL``: what a server lists is read in any layout, and its key goes nowhere else."""

import json
import tomllib

import pytest

from botchat.cli.main import main
from botchat.models.reader import read_models
from tests.commands import refused
from tests.integration.test_endpoints import ASK, ask
from tests.openai_server import Answer, Server, faults
from tests.rows import cases, rows

KEY = "tok-canary-0123456789abcdef"


class Lister(Server):
    """A server whose list of models is anything, and which remembers who asked for it."""

    def __init__(self, answer=None, **more):
        """``answer``: to whoever asks for the list."""
        super().__init__(**more)
        self.list = answer or faults.not_found()
        self.asked = []

    def received(self, call):
        """Every request counts."""
        self.asked.append(call)
        is_list = call.method == "GET" and call.path.endswith("/models")
        return self.list if is_list else super().received(call)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("BOTCHAT_API_KEY", KEY)


def listed(*ids, **facts):
    """An answer with these models."""
    return Answer(200, {"object": "list", "data": [{"id": each, **facts} for each in ids]})


def entries(folder, url):
    """The models of a first ``botchat.toml``, which loads, with its text."""
    assert main(["init", url, "--dir", str(folder)]) == 0
    assert main(["models", "--dir", str(folder)]) == 0
    text = (folder / "botchat.toml").read_text("utf-8")
    return tomllib.loads(text)["models"], text


def refusal(folder, url, capsys):
    """The one line of an ``init`` that writes nothing."""
    line = refused(capsys, ["init", url, "--dir", str(folder)])
    assert not (folder / "botchat.toml").exists()
    return line


@pytest.mark.parametrize(("body", "models"), cases("lists_of_models", 2))
def test_a_list_is_read_in_the_layout_of_any_server(body, models):
    """Ids, windows in tokens, prices in USD per million; a row that names no model is left out."""
    assert [[*each] for each in read_models(json.dumps(body).encode())] == models


@pytest.mark.parametrize("frame", ["{}", "\ufeff{}", "{}\n", "data: {}\n\n", ": x\n\n{}"])
def test_a_list_is_written_as_entries_in_any_frame(tmp_path, frame):
    """A bare array or not; the window stands in its entry."""
    body = frame.format(json.dumps([{"id": "org/alpha-7b", "context_length": 8192}]))
    with Lister(Answer(200, body.encode())) as server:
        models, _ = entries(tmp_path, server.url)
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert models["alpha-7b"]["model"] == "org/alpha-7b"
    assert models["alpha-7b"]["context_window"] == 8192


def test_a_list_of_two_megabytes_is_read_whole(tmp_path):
    """A router's hundreds of models, with what each is good for."""
    ids = [f"org/model-{n}" for n in range(800)]
    with Lister(listed(*ids, description="good for " + "everything " * 240)) as server:
        assert len(server.list.body["data"]) == len(entries(tmp_path, server.url)[0]) == 800


@pytest.mark.parametrize("ids", rows("every_model_has_an_entry_of_its_own"))
def test_every_model_has_an_entry_of_its_own(tmp_path, ids):
    """Whatever of their names is equal, and whatever TOML means by their letters."""
    with Lister(listed(*ids)) as server:
        models, _ = entries(tmp_path, server.url)
    assert sorted([entry["model"] for entry in models.values()]) == sorted(ids)


@pytest.mark.parametrize("name", ["human", "bot:parrot"])
def test_a_model_of_a_name_that_is_ours_is_left_out(tmp_path, name):
    """The other entries can be used."""
    with Lister(listed(name, "alpha")) as server:
        assert "alpha" in entries(tmp_path, server.url)[0]


def test_a_server_that_repeats_the_key_writes_it_into_no_file(tmp_path):
    """As everywhere else."""
    with Lister(listed(f"m-{KEY}")) as server:
        assert KEY not in entries(tmp_path, server.url)[1]


@pytest.mark.parametrize(("status", "body", "words"), rows("bodies_that_are_no_list"))
def test_what_is_no_list_is_one_line_that_says_what_to_do(tmp_path, capsys, status, body, words):
    """A missing key, a page, no model: three things to do; never the key, never HTML."""
    content = body if isinstance(body, str) else json.dumps(body)
    with Lister(Answer(status, content.encode())) as server:
        line = refusal(tmp_path, server.url, capsys)
        assert len(server.asked) == 1
    assert all(word in line for word in words), line
    assert KEY not in line
    assert "<" not in line


@pytest.mark.parametrize("status", [200, 429, 500])
def test_an_error_of_the_list_names_its_reason(tmp_path, capsys, status):
    """A server that has models and fails lists not none."""
    with Lister(faults.error(status, "the tea pot is short")) as server:
        assert "tea pot" in refusal(tmp_path, server.url, capsys)


def test_an_address_without_its_end_is_said(tmp_path, capsys):
    """The list is below /v1."""
    with Lister(faults.not_found()) as server:
        line = refusal(tmp_path, server.url.removesuffix("/v1"), capsys)
    assert "name the address that ends with /v1" in line


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("command", ["init", "generate", "batch"])
def test_no_redirect_takes_the_key_to_another_host(tmp_path, capsys, status, command):
    """The other one sees no request; the line names where it leads."""
    with Lister(listed("thief")) as other, Lister() as server:
        place = other.url.replace("127.0.0.1", "localhost")
        leads = Answer(status, b"", (("location", f"{place}/models"),))
        server.list = leads
        if command == "init":
            line = refusal(tmp_path, server.url, capsys)
        else:
            server.answer = lambda _: leads
            settings = f'[models.m]\nmodel = "m"\nbase_url = "{server.url}"\n'
            (tmp_path / "botchat.toml").write_text(settings)
            flags = ["--batch"] * (command == "batch")
            generate = ["generate", "--seeds", "sample", "--limit", "1", "--model", "m", *flags]
            assert main([*generate, "--dir", str(tmp_path)]) == 1
            line = capsys.readouterr().err
        assert other.asked == []
        assert len(server.asked) >= 1
    if command != "batch":
        assert f"redirects to {place}" in line
    assert KEY not in line


@pytest.mark.parametrize(("facts", "prices"), rows("prices_of_a_list"))
def test_a_listed_price_is_written_and_nothing_is_free_by_mistake(tmp_path, facts, prices):
    """Of a server of this machine zero is right, unless it lists what it takes."""
    with Lister(listed("org/alpha", **facts)) as server:
        entry = entries(tmp_path, server.url)[0]["alpha"]
    assert [entry["price_input"], entry["price_output"]] == prices


def test_a_window_is_looked_for_again_where_the_list_failed(tmp_path):
    """While a server starts it lists nothing; later runs know what its model takes."""
    with Lister(faults.server_error(503)) as server:
        assert ask(server, tmp_path).quirks == {}
        server.list = listed("m", max_model_len=4096)
        assert ask(server, tmp_path, [*ASK, *ASK]).quirks == {"context_window": 4096}
