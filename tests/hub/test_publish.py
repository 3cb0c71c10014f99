"""A run goes to a hub and comes back: the same bytes, nothing sent again, nothing tampered with."""

import gzip
import hashlib
import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import botchat
from botchat.cli.main import main
from botchat.errors import BotChatError
from botchat.hub.repository import MANIFEST
from botchat.records import Seed
from botchat.workspace.folder import Workspace
from tests.hub_server import TOKEN, Hub, serving
from tests.openai_server import Server
from tests.rows import rows

NAME = "some/run"
DATASET = f"datasets/{NAME}"
Files = dict[str, bytes]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub of one's own, with the right to write, and an empty cache."""
    with serving(monkeypatch, tmp_path / "hub") as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for all runs of this module."""
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Workspace:
    """A served model and a bot, judged by the served model, with some tables."""
    workspace = Workspace(tmp_path_factory.mktemp("made"))
    workspace.write_seeds("s", [Seed(str(n), ("Hi.", "Oh, hi.", "So?", "No!")) for n in (1, 2)])
    steps(workspace, server)
    board = workspace.out("s")
    board.mkdir(parents=True)
    (board / "leaderboard.csv").write_text('"model"\n"a"\n')
    (board / "index.html").write_text("<!doctype html><title>Page</title>")
    return workspace


@pytest.fixture
def run(tmp_path: Path, made: Workspace) -> Workspace:
    """A copy of it."""
    shutil.copytree(made.root, tmp_path / "mine")
    return Workspace(tmp_path / "mine")


def steps(workspace: Workspace, server: Server) -> None:
    """What makes the run, and sends nothing where it is done."""
    model = f"{server.url}#m"
    botchat.generate(workspace=workspace, seeds="s", model=[model, "bot:parrot"], turns=4)
    botchat.judge("unieval", workspace=workspace, seeds="s", judge=model)


def data(workspace: Workspace) -> dict[str, bytes]:
    """Every file that a stage made."""
    root = workspace.root
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for stage in ("seeds", "generations", "judgments")
        for path in (root / stage).rglob("*.jsonl")
    }


def test_there_and_back(run: Workspace, server: Server, hub: Hub, tmp_path: Path) -> None:
    """The same bytes, at a recorded revision; the run replays, from its files and its ledger."""
    sent = botchat.publish(NAME, workspace=run, seeds="s")
    revision = sent.rows[0]["revision"]
    n_sent, theirs = len(server.calls), Workspace(tmp_path / "theirs")
    got = botchat.fetch(NAME, workspace=theirs)
    assert (got.data["revision"], got.data["seed_set"]) == (revision, "s")
    assert data(theirs) == data(run)
    table = "leaderboards/s/leaderboard.csv"
    assert (theirs.root / table).read_bytes() == (run.root / table).read_bytes()
    assert not (theirs.root / "leaderboards/s/index.html").exists()
    record = json.loads((theirs.hidden / "fetched-s.json").read_text())
    assert (record["repository"], record["revision"]) == (NAME, revision)
    steps(theirs, server)
    for stage in ("generations", "judgments"):
        for path in (theirs.root / stage).rglob("*.jsonl"):
            path.unlink()
    steps(theirs, server)
    assert len(server.calls) == n_sent
    assert data(theirs) == data(run)


def test_what_is_published(run: Workspace, hub: Hub, server: Server) -> None:
    """A dataset that any tool reads, its page as a static Space; only calls of this set."""
    run.write_seeds("other", [Seed("1", ("Psst.", "What?"))])
    botchat.generate(workspace=run, seeds="other", model=[f"{server.url}#m"], turns=3)
    (run.root / "botchat.toml").write_text("# mine\n")
    (run.out("s") / "label-unieval.html").write_text("cases")
    botchat.publish(NAME, workspace=run, seeds="s", private=True)
    files = hub.files(DATASET)
    assert files is not None
    assert {path.split("/")[0] for path in files} == {
        ".gitattributes", "README.md", MANIFEST, "seeds", "generations", "judgments", "ledger",
        "leaderboards", "measured",
    }  # fmt: skip
    assert b"Psst" not in gzip.decompress(files["ledger/s.jsonl.gz"])
    assert not [path for path in files if "other" in path]
    page = hub.files(f"spaces/{NAME}")
    assert page is not None
    assert "label-unieval.html" not in page
    assert page["index.html"] == (run.out("s") / "index.html").read_bytes()
    assert b"sdk: static" in page["README.md"]
    assert [one.get("sdk") for one in hub.created] == [None, "static"]


def test_the_language_of_a_set_comes_along(hub: Hub, tmp_path: Path) -> None:
    """Without it a judge would be asked in English."""
    mine, theirs = Workspace(tmp_path / "mine"), Workspace(tmp_path / "theirs")
    mine.write_seeds("s", [Seed("1", ("你好。", "你好！"))], "zh", source="hf://a/b@0123")
    botchat.publish(NAME, workspace=mine, seeds="s")
    botchat.fetch(NAME, workspace=theirs)
    assert (theirs.language("s").code, theirs.about("s").source) == ("zh", "hf://a/b@0123")


def test_published_again_what_was_removed_is_gone(run: Workspace, hub: Hub, tmp_path: Path) -> None:
    """The newest commit is the run as it is now; the older one is there under its revision."""
    first = botchat.publish(NAME, workspace=run, seeds="s").rows[0]["revision"]
    before = data(run)
    run.dialogues_path("s", "bot:parrot").unlink()
    second = botchat.publish(NAME, workspace=run, seeds="s").rows[0]["revision"]
    assert first != second
    new, old = Workspace(tmp_path / "new"), Workspace(tmp_path / "old")
    assert botchat.fetch(NAME, workspace=new).data["revision"] == second
    assert botchat.fetch(f"{NAME}@{first}", workspace=old).data["revision"] == first
    assert data(new) == data(run)
    assert data(old) == before


@pytest.mark.parametrize("key", [TOKEN, "plain words of a file"])
def test_a_key_is_not_published(
    run: Workspace, hub: Hub, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Of the environment or of a file that botchat.toml names, whoever said it."""
    monkeypatch.setenv("WORDS", "plain-words-of-a-file")
    (run.root / "botchat.toml").write_text(
        '[models.x]\nmodel = "m"\nbase_url = "https://localhost/v1"\napi_key_env = "WORDS"\n'
    )
    path, said = run.root / "seeds" / "s.jsonl", key.replace(" ", "-").encode()
    path.write_bytes(path.read_bytes().replace(b"So?", b"My token is " + said))
    with pytest.raises(BotChatError, match=r"^seeds/s\.jsonl:1 holds a key, so nothing is sent"):
        botchat.publish(NAME, workspace=Workspace(run.root), seeds="s")
    assert hub.asked == []


def test_a_key_behind_an_escape_in_a_call_is_not_published(run: Workspace, hub: Hub) -> None:
    """In what a server said, as in what it was sent; the line of the packed file is named."""
    hidden = "".join(f"\\u{ord(letter):04x}" for letter in TOKEN)
    said = json.dumps([{"a": 1}, {"b": "so " + hidden}])
    with sqlite3.connect(run.hidden / "ledger.sqlite3") as db:
        db.execute("UPDATE calls SET raw = ?", (zlib.compress(said.encode()),))
    with pytest.raises(BotChatError, match=r"^ledger/s\.jsonl\.gz:1 holds a key, so nothing is"):
        botchat.publish(NAME, workspace=run, seeds="s")
    assert hub.asked == []


def test_offline_what_was_fetched_is_there(
    run: Workspace, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the cache, at its revision; what is not there is one line."""
    botchat.publish(NAME, workspace=run, seeds="s")
    botchat.fetch(NAME, workspace=Workspace(tmp_path / "a"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    n_asked, again = len(hub.asked), Workspace(tmp_path / "b")
    botchat.fetch(NAME, workspace=again)
    assert data(again) == data(run)
    with pytest.raises(BotChatError, match="cannot reach the hub, and it is not in the cache"):
        botchat.fetch("some/other", workspace=again)
    assert len(hub.asked) == n_asked


@pytest.fixture(scope="module")
def sent(made: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A published dataset, by path."""
    with pytest.MonkeyPatch.context() as patch, serving(patch, tmp_path_factory.mktemp("h")) as hub:
        botchat.publish(NAME, workspace=made, seeds="s")
        return dict(hub.files(DATASET) or {})


TAMPERED = [(stage, None, f"{stage}.* is not what {MANIFEST} says")
            for stage in ("seeds/", "judgments/", "ledger/")]  # fmt: skip
TAMPERED += [
    (file, content, f"{file}.*; nothing is taken")
    for file, content in (
        ("seeds/s.toml", b"[models.m]\napi_key_command = 'touch x'\n"),
        ("seeds/s.toml", b"\xff"),
        ("seeds/s.jsonl", b'{"id":"1","utterances":["a","b"]}\n{"id":'),
        ("generations/s/x.jsonl", b'{"id":"1","utterances":["a","b"]}\n'),
    )
]


@pytest.mark.parametrize(("file", "content", "said"), TAMPERED)
def test_a_file_that_was_tampered_with_is_refused(
    sent: Files, hub: Hub, tmp_path: Path, file: str, content: bytes | None, said: str
) -> None:
    """One byte is enough; a manifest that agrees with a wrong file does not make it right."""
    files, digests = {**sent}, json.loads(sent[MANIFEST])["files"]
    path = next((name for name in files if name.startswith(file)), file)
    files[path] = files[path][:-2] + b"x\n" if content is None else content
    if content is not None:
        digests[path] = hashlib.sha256(content).hexdigest()
    replant(hub, files, digests)
    theirs = Workspace(tmp_path / "theirs")
    with pytest.raises(BotChatError, match=said):
        botchat.fetch(NAME, workspace=theirs)
    assert not theirs.root.exists()


def test_a_manifest_names_no_file_outside(
    sent: Files, made: Workspace, hub: Hub, tmp_path: Path
) -> None:
    """Paths that lead elsewhere, other sets, and what a browser would run are passed over."""
    files, digests = {**sent}, json.loads(sent[MANIFEST])["files"]
    digests |= dict.fromkeys(
        ("../x.jsonl", "/tmp/x.jsonl", "generations/s/../../x.jsonl", "botchat.toml",
         "seeds/t.jsonl", "leaderboards/s/x.html", "leaderboards/s/x.js", ".botchat/lock"),
        digests["seeds/s.jsonl"],
    )  # fmt: skip
    replant(hub, files, digests)
    theirs = Workspace(tmp_path / "theirs")
    botchat.fetch(NAME, workspace=theirs)
    assert data(theirs) == data(made)
    assert {path.name for path in theirs.root.iterdir()} == {
        ".botchat", "seeds", "generations", "judgments", "leaderboards", "measured",
    }  # fmt: skip


def test_nothing_is_fetched_through_a_link(run: Workspace, hub: Hub, tmp_path: Path) -> None:
    """It may lead out of the workspace."""
    botchat.publish(NAME, workspace=run, seeds="s")
    theirs, outside = Workspace(tmp_path / "theirs"), tmp_path / "outside"
    outside.mkdir()
    theirs.root.mkdir()
    (theirs.root / "generations").symlink_to(outside)
    with pytest.raises(BotChatError, match="generations is a link"):
        botchat.fetch(NAME, workspace=theirs)
    assert not [*outside.iterdir()]


def test_what_is_there_is_not_lost(run: Workspace, hub: Hub, tmp_path: Path) -> None:
    """Neither in a workspace nor in a repository."""
    botchat.publish(NAME, workspace=run, seeds="s")
    theirs = Workspace(tmp_path / "theirs")
    theirs.write_seeds("s", [Seed("1", ("Mine.", "Yes."))])
    with pytest.raises(BotChatError, match=r"seeds/s\.jsonl exists and differs; fetch into"):
        botchat.fetch(NAME, workspace=theirs)
    assert theirs.seeds("s")[0].utterances[0] == "Mine."
    hub.commit("datasets/some/cats", {"cats.csv": b"1"})
    with pytest.raises(BotChatError, match=r"some/cats holds cats\.csv, and is no dataset of"):
        botchat.publish("some/cats", workspace=run, seeds="s")
    assert hub.files("datasets/some/cats") == {"cats.csv": b"1"}


def test_a_fetched_run_answers_no_other_calls(
    sent: Files, server: Server, hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Calls that none of its records names are left out, and that is said; my set asks for them."""
    mine = Workspace(tmp_path / "mine-too")
    mine.write_seeds("small", [Seed("1", ("Psst.", "What?"))])
    botchat.generate(workspace=mine, seeds="small", model=[f"{server.url}#m"], turns=4)
    files, digests = {**sent}, json.loads(sent[MANIFEST])["files"]
    with closing(mine.ledger(readonly=True)) as ledger:
        planted = msgspec.json.Encoder().encode_lines(ledger.calls(""))
    file = "ledger/s.jsonl.gz"
    files[file] = gzip.compress(gzip.decompress(files[file]) + planted)
    replant(hub, files, digests | {file: hashlib.sha256(files[file]).hexdigest()})
    theirs = Workspace(tmp_path / "theirs")
    got = botchat.fetch(NAME, workspace=theirs)
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "left out 2 calls that none of its records names"
    ]
    with closing(theirs.ledger(readonly=True)) as ledger:
        assert got.data["calls"] == len([*ledger.calls("")])
    n_sent = len(server.calls)
    theirs.write_seeds("small", mine.seeds("small"))
    steps(theirs, server)
    assert len(server.calls) == n_sent
    botchat.generate(workspace=theirs, seeds="small", model=[f"{server.url}#m"], turns=4)
    assert len(server.calls) == n_sent + 2


def replant(hub: Hub, files: dict[str, bytes], digests: dict[str, str]) -> None:
    """Commit a published run with other files, and a manifest that agrees with them."""
    manifest = {**json.loads(files[MANIFEST]), "files": digests}
    hub.commit(DATASET, {**files, MANIFEST: json.dumps(manifest).encode()})


def test_a_run_that_is_too_large_is_not_downloaded(
    run: Workspace, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is said before; it would be in memory."""
    botchat.publish(NAME, workspace=run, seeds="s")
    monkeypatch.setattr("botchat.hub.repository.MAX_RUN_BYTES", 1000)
    hub.asked.clear()
    theirs = Workspace(tmp_path / "theirs")
    with pytest.raises(BotChatError, match=rf"^{NAME}: [\d,]+ bytes, more than 1,000"):
        botchat.fetch(NAME, workspace=theirs)
    assert not [path for path in hub.asked if "resolve" in path]
    assert not theirs.root.exists()


@pytest.mark.parametrize(("seed_set", "file"), rows("a_name_that_windows_cannot_have_is_refused"))
def test_a_name_that_windows_cannot_have_is_refused(
    sent: Files, hub: Hub, tmp_path: Path, seed_set: str, file: str
) -> None:
    """Everywhere, so that what is fetched here can be fetched there."""
    files, digests = {**sent}, json.loads(sent[MANIFEST])["files"]
    files[file] = b""
    digests[file] = hashlib.sha256(b"").hexdigest()
    manifest = {**json.loads(files[MANIFEST]), "seed_set": seed_set, "files": digests}
    hub.commit(DATASET, {**files, MANIFEST: json.dumps(manifest).encode()})
    theirs = Workspace(tmp_path / "theirs")
    with pytest.raises(BotChatError, match="Windows"):
        botchat.fetch(NAME, workspace=theirs)
    assert not theirs.root.exists()


def test_a_run_that_was_edited_by_hand_is_published_whole(
    run: Workspace, hub: Hub, tmp_path: Path
) -> None:
    """A last line without a newline, a byte order mark, a board in a folder called as a file."""
    path = run.dialogues_path("s", "bot:parrot")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip(b"\n"))
    (run.out("s") / "v1.json").mkdir()
    botchat.publish(NAME, workspace=run, seeds="s")
    theirs = Workspace(tmp_path / "theirs")
    botchat.fetch(NAME, workspace=theirs)
    assert len(theirs.dialogues("s", "bot:parrot")) == 2
    assert theirs.dialogues("s", "bot:parrot") == run.dialogues("s", "bot:parrot")


@pytest.mark.parametrize(("source", "said"), rows("what_cannot_be_fetched_is_one_line"))
def test_what_cannot_be_fetched_is_one_line(
    source: str, said: str, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What, which, and what to do."""
    if source == "no/network":
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    hub.commit("datasets/some/cats", {"cats.csv": b"1"})
    hub.commit(DATASET, {MANIFEST: b"{}"})
    hub.commit("datasets/some/bare", {MANIFEST: b'{"botchat":"","seed_set":"s","files":{}}'})
    assert main(["fetch", source, "--dir", str(tmp_path / "w")]) == 1 + (source == "run")
    err = capsys.readouterr().err
    assert (said in err, err.count("\n")) == (True, 1), err
