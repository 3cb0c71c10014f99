"""`report`, `plot` and `view` on a workspace, as a user runs them."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import matplotlib as mpl
import msgspec
import pytest

import botchat
from botchat.cli.main import main
from botchat.errors import ConfigError, MissingError
from botchat.pipeline import leaderboard as publishing
from botchat.pipeline.live import Live
from botchat.pipeline.view import Server
from botchat.report.live import News, State, render
from botchat.requests import Paging, Plotting, generate, judge
from botchat.workspace.folder import SAMPLE, Workspace
from tests.processes import Started

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two bots on three seeds, judged in UniEval."""
    found = Workspace(tmp_path_factory.mktemp("workspace"))
    generate(found, SAMPLE, ["bot:parrot", "bot:eliza"], limit=3)
    judge(found, "unieval", SAMPLE, "rules")
    return found


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[Server]:
    """The workspace on loopback, its page made."""
    Paging(SAMPLE).run(workspace)
    running = Server(workspace, SAMPLE)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def get(server: Server, path: str, host: str | None = None) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of an answer."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def test_report_writes_the_page_and_its_chunks_alone(workspace: Workspace, tmp_path: Path) -> None:
    """No tables, no figures; twice the same bytes; chunks of a larger page go."""
    page = Paging(SAMPLE, out=tmp_path).run(workspace).whole["page"]
    left = tmp_path / "chunks" / "seeds-99.js"
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))}
    left.write_text("old", "utf-8")
    assert Paging(SAMPLE, out=tmp_path).run(workspace).whole == {"page": page}
    assert page == tmp_path / "index.html"
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))} == before
    names = {path.relative_to(tmp_path).as_posix() for path in before}
    cases = {f"chunks/{kind}-{i}-0.js" for kind in ("game", "answers") for i in range(2)}
    seeds = {f"chunks/seeds-{i}.js" for i in range(3)}
    pages = {"index.html", "og.png", "badge.svg", "game.html", "game.png", "chunks/index.js"}
    assert names == pages | seeds | cases


def test_of_many_contestants_the_page_has_samples_and_says_so(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No chunk is written; one judge's verdicts on pairs are then read in columns."""
    monkeypatch.setattr(publishing, "MOST_READ", 1)
    page = Paging(SAMPLE, out=tmp_path).run(workspace).whole["page"]
    assert "every dialogue of at most 1 contestants, and here are 2" in caplog.text
    assert not (tmp_path / "chunks").exists()
    assert '<div class="samples">' in page.read_text("utf-8")
    board = botchat.leaderboard(workspace, SAMPLE, out=tmp_path, png=False)
    assert any("The page has samples: its reader has" in line for line in board.lines)


def test_plot_writes_one_figure(workspace: Workspace, tmp_path: Path) -> None:
    """As its ending or the format says, twice the same bytes; what cannot be is refused."""
    svg = Plotting("success-rates", SAMPLE, tmp_path / "one.svg").run(workspace).whole["path"]
    assert "UniEval success rate" in svg.read_text("utf-8")
    png = Plotting("human-lengths", SAMPLE, tmp_path / "two.PNG").run(workspace).whole["path"]
    assert png.read_bytes().startswith(PNG)
    pdfs = [
        Plotting("survival", SAMPLE, tmp_path / name).run(workspace).whole["path"].read_bytes()
        for name in ("one.pdf", "two.pdf")
    ]
    assert pdfs[0] == pdfs[1]
    assert pdfs[0].startswith(b"%PDF")
    assert b"CreationDate" not in pdfs[0]
    with pytest.raises(ConfigError, match="written as svg, png, pdf"):
        Plotting("success-rates", SAMPLE, tmp_path / "one.gif").run(workspace)
    with pytest.raises(MissingError, match="there are: mask, length, given-away, "):
        Plotting("elo", SAMPLE, tmp_path / "one.svg").run(workspace)
    with pytest.raises(MissingError, match="fewer than two judges"):
        Plotting("judges-calibration-unieval", SAMPLE, tmp_path / "one.svg").run(workspace)


def test_the_python_api_returns_the_figure(workspace: Workspace) -> None:
    """Of the size that was asked for; the caller's settings stay as they are."""
    before = dict(mpl.rcParams)  # the backend among them
    made = botchat.plot(
        workspace, SAMPLE, "success-rates", size=(5, 4), highlight=["bot:parrot"]
    )  # fmt: skip
    assert tuple(made.get_size_inches()) == pytest.approx((5, 4))
    assert "success rate" in made._repr_svg_()
    (name,) = [text for text in made.axes[0].texts if text.get_text() == "bot:parrot"]
    assert name.get_weight() == "bold"
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--size", "7x"], "--size 7x: give width and height in inches, such as 7x4.5"),
        (["--size", "7x900"], "--size: 900 inches; a side has 1 to 100 inches"),
        (["--size", "7x1"], "needs a height of"),
        (["--size", "1.5x9"], "needs a width of"),
        (["--size", "nanx4"], "--size: nan inches"),
        (["--highlight", "bot:nobody"], "--highlight bot:nobody: sample has no such contestant"),
        (["--out", "a.gif"], "--out a.gif: a figure is written as svg, png, pdf"),
    ],
)
def test_plot_refuses_what_cannot_be(
    workspace: Workspace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    said: str,
) -> None:
    """One clear line, and no file."""
    common = ["--seeds", SAMPLE, "--dir", str(workspace.root), "--out", str(tmp_path / "x.svg")]
    assert main(["leaderboard", "figure", "success-rates", *common, *flags]) == 1
    told = capsys.readouterr().err.strip()
    assert said in told
    assert "\n" not in told
    assert not (tmp_path / "x.svg").exists()


def test_view_serves_pages_and_nothing_else(server: Server) -> None:
    """The page and its chunks with safe headers; no listing, no file of the workspace above."""
    assert server.server_address[0] == "127.0.0.1"
    status, headers, text = get(server, f"/{SAMPLE}/")
    assert status == 200
    assert text.startswith("<!doctype html>")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    status, headers, _ = get(server, f"/{SAMPLE}/chunks/index.js")
    assert (status, headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    for path in ("/../seeds/sample.jsonl", "/%2e%2e/botchat.toml", f"/{SAMPLE}/chunks/"):
        assert get(server, path)[0] == 404


def test_a_path_that_no_page_has_is_404_and_no_traceback(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """NUL, half characters, bad escapes, ways out: nothing in the log."""
    paths = "x%00.html live%00 %ed%a0%80 %ff%fe %zz % ../../etc/passwd %2e%2e/%2e%2e/botchat.toml"
    paths = f"{paths} /[x sample/%0d%0aX:%20y {'a' * 60_000} {'a/' * 3_000}"
    for path in paths.split():
        assert get(server, f"/{path}")[0] == 404, path[:40]
    assert get(server, "/live")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_broken_file_is_told_on_the_live_page(
    server: Server, workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    """503 with the line that is wrong; the server goes on."""
    own = workspace.seeds_path(SAMPLE)
    own.parent.mkdir(exist_ok=True)
    own.write_text('{"id":\n')
    try:
        status, _, text = get(server, "/live")
        assert status == 503
        assert f"{own.name}:1" in text
    finally:
        own.unlink()
    assert get(server, "/live")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_browser_that_goes_away_is_no_traceback(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """The connection is reset before the answer."""
    for _ in range(5):
        gone = socket.create_connection(("127.0.0.1", server.server_port))
        gone.sendall(f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
    assert get(server, "/live")[0] == 200
    assert capfd.readouterr().err == ""


def test_view_answers_its_own_machine_only(server: Server) -> None:
    """A name of somebody else's that points to loopback gets nothing."""
    assert get(server, f"/{SAMPLE}/", "evil.example")[0] == 403
    assert get(server, "/live", f"evil.example:{server.server_port}")[0] == 403
    assert get(server, "/live", f"localhost:{server.server_port}")[0] == 200


def test_the_live_page_follows_a_run(server: Server, workspace: Workspace) -> None:
    """Who is at work, progress, calls and the newest, renewed by the browser itself."""
    status, headers, text = get(server, "/live")
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert '<noscript><meta http-equiv="refresh"' in text
    found = " ".join(re.sub("<[^>]*>", " ", text).split())
    assert "✓ Finished 46 of 46 verdicts" in found
    assert "– Dialogues · bot:eliza 3 of 40 dialogues 42 $0.00 –" in found
    # Two bots' three dialogues and the set's forty.
    assert "✓ UniEval · rules 46 of at most 46 verdicts 0 $0.00 –" in found
    assert "84 calls," in found
    assert "sample-40 · rules" in found
    assert f'<a href="/{SAMPLE}/">Leaderboard</a>' in text
    with workspace.locked():
        assert "Now at work: <bdi>process " in get(server, "/live")[2]
        assert server.url.endswith("/live")
    assert server.url.endswith(f"/{SAMPLE}/")


def dialogues(found: State) -> dict[str, int]:
    """Contestant -> its dialogues."""
    return {one.by: one.done for one in found.steps if one.name == "Dialogues"}


def test_the_live_page_bears_what_is_half_written(workspace: Workspace) -> None:
    """A line that is being written is not there yet; one that is no record is passed over."""
    path = workspace.dialogues_path(SAMPLE, "bot:parrot")
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:-30])
        found = Live(workspace, SAMPLE).state()
        assert dialogues(found) == {"bot:eliza": 3, "bot:parrot": 2}
        assert ("bot:parrot", "sample-2") in {(one.contestant, one.seed_id) for one in found.said}
        path.write_bytes(b"{}\n")
        assert dialogues(Live(workspace, SAMPLE).state()) == {"bot:eliza": 3}
    finally:
        path.write_bytes(whole)


def test_the_live_page_shows_hostile_text_as_text(workspace: Workspace) -> None:
    """Names, utterances and reasons cannot end their element."""
    attack = "</p><script>alert(1)</script>"
    found = Live(workspace, SAMPLE).state()
    said = [msgspec.structs.replace(found.said[0], model=attack, utterances=(attack, attack))]
    news = [News([(attack, True), (attack, False)], attack, attack, f'"{attack}')]
    steps = [replace(found.steps[0], by=attack, failed=attack)]
    assert found.run is not None
    step = msgspec.structs.replace(found.run.steps[0], failures={attack: (1, attack)})
    run = msgspec.structs.replace(found.run, command=attack, why=attack, steps=[step])
    text = render(replace(found, said=said, verdicts=(), failed=news, steps=steps, run=run))
    text += render(replace(found, run=None, running=attack, verdicts=news))
    assert text.count("<script") == 2
    assert text.count("&lt;script&gt;") == 21


def test_a_run_that_was_killed_is_not_going_on(workspace: Workspace) -> None:
    """A name left behind by a process that is gone is nobody's; another machine's is believed."""
    left = workspace.hidden / "lock-holder"
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    try:
        left.write_text(f"process {int(gone.stdout)} on {socket.gethostname()}: botchat judge\n")
        assert workspace.writer() is None
        left.write_text("process 1 on elsewhere: botchat judge\n")
        assert workspace.writer() == "process 1 on elsewhere: botchat judge"
    finally:
        left.unlink()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_kill_ends_what_a_script_left_in_the_background(workspace: Workspace) -> None:
    """Such a process ignores Ctrl-C from birth; `kill` ends it all the same, and cleanly."""
    command = ["view", "--seeds", SAMPLE, "--no-browser", "--dir", workspace.root]
    viewing = Started(command, "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert viewing.stdout.readline().startswith("http://127.0.0.1:")
    viewing.terminate()
    viewing.communicate()
    assert viewing.returncode == 0


def test_without_png_a_board_has_svg_alone(workspace: Workspace, tmp_path: Path) -> None:
    """What an earlier board left as png is gone, not stale; all else is the same."""
    command = ["leaderboard", "--dir", str(workspace.root), "--seeds", SAMPLE]
    command += ["--out", str(tmp_path)]
    assert main(command) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert main([*command, "--no-png"]) == 0
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert {name for name in before if name.endswith(".png")} - {"og.png", "game.png"}
    assert after == {name: before[name] for name in before if name in after}
    assert {name for name in after if name.endswith(".png")} == {"og.png", "game.png"}
    assert {name for name in before if not name.endswith(".png")} <= after.keys()
