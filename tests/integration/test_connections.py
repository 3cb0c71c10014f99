"""Connections that come to nothing: a sentence for each kind, and what cannot help is not tried."""

import errno
import os
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from botchat.errors import FatalModelError
from tests.integration.test_endpoints import QUICK, ask
from tests.openai_server import Answer, Server, faults, text
from tests.rows import cases


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def nobody():
    """An address of this machine where nobody listens, and which nobody else gets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def answering(data):
    """The address of a plain server that says this to whatever comes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    client.recv(1 << 16)
                    client.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def line(url, folder):
    """The line that ends a model at a URL."""
    with pytest.raises(FatalModelError) as caught:
        ask(SimpleNamespace(url=url), folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_six_kinds_have_six_sentences(tmp_path, monkeypatch, nobody):
    """Each names what is wrong where, and what to correct; what was not sent is said not to be."""
    lines = {}
    lines["refused"] = line(f"http://{nobody}/v1", tmp_path / "a")
    lines["name"] = line("http://no-such-host.invalid/v1", tmp_path / "b")
    with answering(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n") as plain:
        lines["plain"] = line(f"https://{plain}/v1", tmp_path / "c")
    monkeypatch.setenv("http_proxy", f"http://user:pass-word-1@{nobody}")
    lines["proxy"] = line("http://example.invalid/v1", tmp_path / "d")
    monkeypatch.setenv("http_proxy", f"socks5://{nobody}")
    lines["socks"] = line("http://example.invalid/v1", tmp_path / "e")
    with Server() as server:  # it takes no CONNECT, for the list of models and the call
        monkeypatch.setenv("https_proxy", server.url)
        lines["tunnel"] = line("https://example.invalid/v1", tmp_path / "f")
        assert server.n_received == 2
    for kind, words in {
        "refused": (nobody, "nothing answers", "nothing was sent", "check host and port"),
        "name": ("no-such-host.invalid", "DNS", "base_url"),
        "plain": (plain, "does not speak TLS", "http:// in base_url"),
        "proxy": (f"the proxy http://{nobody} does not answer", "http_proxy", "no_proxy"),
        "socks": (f"the proxy socks5://{nobody} is no HTTP proxy", "http_proxy"),
        "tunnel": ("the proxy http://127.0.0.1", "refuses the connection"),
    }.items():
        assert all(word in lines[kind] for word in words), lines[kind]
    assert len({text.split("(tried")[0] for text in lines.values()}) == 6
    assert "pass-word-1" not in "".join(lines.values())
    for kind in ("refused", "name", "proxy"):  # may be there in a moment
        assert "has not answered once" in lines[kind]
        assert f"(tried {QUICK.most} times)" in lines[kind]
    for kind in ("plain", "socks", "tunnel"):
        assert "cannot be used" in lines[kind]
        assert "tried" not in lines[kind]


def test_a_machine_without_files_left_names_the_setting(tmp_path, monkeypatch, nobody):
    """Not the server, which was not asked."""

    async def full(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", full)
    assert "too many open files; lower max_concurrency" in line(f"http://{nobody}/v1", tmp_path)


def test_a_proxy_without_a_scheme_is_one(tmp_path, monkeypatch, nobody):
    """As curl and requests take it; where it is down, its address is named."""
    with Server(text("fine")) as proxy:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
        far = SimpleNamespace(url="http://example.invalid/v1")
        assert ask(far, tmp_path / "a").reply.text == "fine"
        assert proxy.calls[-1].path == "http://example.invalid/v1/chat/completions"
    monkeypatch.setenv("http_proxy", nobody)
    assert f"the proxy http://{nobody} does not answer" in line(far.url, tmp_path / "b")


@pytest.mark.parametrize("names", cases("hosts_without_a_proxy", 1))
@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY"])
def test_what_needs_no_proxy_is_asked_without_one(tmp_path, monkeypatch, nobody, names, variable):
    """Also where NO_PROXY names the port."""
    monkeypatch.setenv("http_proxy", f"http://{nobody}")
    with Server(text("fine")) as server:
        monkeypatch.setenv(variable, names.format(port=server.port))
        assert ask(server, tmp_path).reply.text == "fine"


@pytest.mark.parametrize("names", ["127.0.0.1:{other}", "localhost", "27.0.0.1", ""])
def test_what_is_not_named_goes_by_the_proxy(tmp_path, monkeypatch, nobody, names):
    """Another port of the host is not the one that is named."""
    monkeypatch.setenv("http_proxy", f"http://{nobody}")
    with Server(text("fine")) as server:
        monkeypatch.setenv("no_proxy", names.format(other=server.port + 1))
        assert "the proxy" in line(server.url, tmp_path)
        assert server.n_received == 0


def test_a_proxy_that_nobody_knows_is_the_one_that_is_named(tmp_path, monkeypatch):
    """Not the server, whose name is right."""
    monkeypatch.setenv("http_proxy", "http://no-such-proxy.invalid:3128")
    with Server() as server:
        said = line(server.url, tmp_path)
        assert "no-such-proxy.invalid" in said
        assert f"127.0.0.1:{server.port} (DNS)" not in said


@pytest.mark.parametrize("variable", ["all_proxy", "ALL_PROXY"])
def test_a_proxy_for_everything_is_one(tmp_path, monkeypatch, nobody, variable):
    """Where SOCKS proxies stand most often: nobody is asked directly who should not be."""
    monkeypatch.setenv(variable, f"socks5h://{nobody}")
    with Server(text("fine")) as server:
        assert "is no HTTP proxy" in line(server.url, tmp_path)
        assert server.n_received == 0


def test_a_proxy_that_wants_a_login_ends_the_model(tmp_path, monkeypatch):
    """407 is never the server's: one request, and the proxy is named."""
    with Server(Answer(407, b"Proxy Authentication Required")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert "proxy" in line("http://example.invalid/v1", tmp_path)
        assert proxy.n_received == 1


def test_tls_behind_http_is_said(tmp_path):
    """The other way round: base_url with http for a server that speaks TLS."""
    with answering(b"\x15\x03\x01\x00\x02\x02\x16") as tls:
        assert "https" in line(f"http://{tls}/v1", tmp_path)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (faults.cut(), "connection lost"),
        (faults.cut(reset=False), "connection lost"),
        (faults.cut(20), "the response broke off"),
        (Answer(body=b"SSH-2.0-OpenSSH_9.6\r\n\r\n", raw=True), "no HTTP that can be read"),
    ],
    ids=["reset", "closed", "broken off", "SSH"],
)
def test_what_was_sent_may_have_been_billed(tmp_path, fault, words):
    """The line says so; nothing is kept, so the next run asks again."""
    with Server(fault) as server:
        detail = ask(server, tmp_path).reply.detail
        server.play(text("back"))
        assert ask(server, tmp_path).reply.text == "back"
    assert words in detail
    assert "it may have been billed" in detail
