"""A workspace damaged anywhere: one line, or all as it was; never another verdict or utterance."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import shutil

import msgspec
import pytest

from botchat.cli.main import main
from botchat.errors import DataError
from botchat.records import Dialogue, Judgment
from botchat.workspace import files
from botchat.workspace.ledger import Ledger
from botchat.workspace.segments import since, take
from tests.explore import explore
from tests.explore.mutations import encoded, of_bytes, of_json
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Server, converse

pytestmark = pytest.mark.explore

GENERATE = ["generate", "--seeds", "small", "--turns", "4", "--model", "alpha", "--model", "beta"]
JUDGE = ["judge", "arena", "--seeds", "small", "--turns", "4", "--judge", "umpire"]
BOARD = ["leaderboard", "--seeds", "small", "--json"]
KINDS = {
    "seeds": "seeds/small.jsonl",
    "dialogues": "generations/small/alpha-*.jsonl",
    "judgments": "judgments/small/arena-n4/umpire-*.jsonl",
    "settings": "botchat.toml",
    "ledger": ".botchat/ledger.sqlite3",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run, and the server that answers it."""
    with pytest.MonkeyPatch.context() as patched, Server(converse) as server:
        patched.setenv("OPENAI_API_KEY", KEY)
        folder = workspace(tmp_path_factory.mktemp("whole") / "w", server, 6)
        for command in (GENERATE, JUDGE, BOARD):
            assert main([*command, "--dir", str(folder)]) == 0
        yield folder, server


def damaged(draw: random.Random, name: str, data: bytes) -> bytes:
    """A file with bytes changed, or a field of one of its lines."""
    if name == "ledger":  # of pages; its first one says what is in it
        at, n = draw.randrange(len(data)), draw.choice((1, 1, 16, 512, 4096))
        kind = draw.random()
        if kind < 0.1:
            return data[:at]
        return data[:at] + (draw.randbytes(n) if kind < 0.7 else bytes(n)) + data[at + n :]
    if name != "settings" and draw.random() < 0.4:
        lines = data.split(b"\n")
        n = draw.randrange(len(lines) - 1)
        lines[n] = encoded(of_json(draw, json.loads(lines[n])))
        return b"\n".join(lines)
    return of_bytes(draw, data)


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_workspace_is_told_of_or_mended(tmp_path, capsys, whole, name):
    """Boards are read or refused; a stage is made again from the ledger, or one line says why."""
    folder, server = whole
    before = stage_files(folder)
    (file,) = folder.glob(KINDS[name])
    place = file.relative_to(folder)

    def once(draw: random.Random) -> str:
        there = tmp_path / "w"
        shutil.rmtree(there, ignore_errors=True)
        shutil.copytree(folder, there)
        (there / place).write_bytes(damaged(draw, name, file.read_bytes()))
        n, codes = server.n_received, []
        for command in (BOARD, GENERATE, JUDGE):
            codes.append(main([*command, "--dir", str(there)]))
            error = capsys.readouterr().err
            assert codes[-1] in (0, 1), error
            assert "Traceback" not in error
            assert not codes[-1] or error.strip(), command
            assert not codes[-1] or len(error.splitlines()[-1]) < 1000, error
        sound(there)
        if any(codes):
            return f"refused by {codes.count(1)} commands"
        asked = " (asked again)" if server.n_received > n else ""
        return ("as it was" if stage_files(there) == before else "other bytes") + asked

    explore(1, once, name)


def sound(folder) -> None:
    """What can be read of the stage files is what could have been said."""
    for path in folder.glob("judgments/*/arena*/*.jsonl"):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                msgspec.json.decode(line, type=Judgment)
    for path in folder.glob("generations/*/*.jsonl"):
        with contextlib.suppress(files.DataError):
            files.read(path, Dialogue)


def test_a_damaged_segment_is_refused_whole(tmp_path, whole):
    """Changed bytes, inside its gzip too: what is taken is as it was, or nothing is."""
    path = whole[0] / ".botchat" / "ledger.sqlite3"
    with contextlib.closing(Ledger(path, readonly=True)) as ledger:
        segment = since(ledger)
        calls = {call.key: call for call in ledger.calls("")}

    def once(draw: random.Random) -> str:
        if draw.random() < 0.3:
            data = of_bytes(draw, segment)
        else:
            data = gzip.compress(damaged(draw, "segment", gzip.decompress(segment)), 1)
        with contextlib.closing(Ledger(None)) as ledger:
            said = ""
            try:
                take(ledger, data)
            except DataError as error:
                said = str(error)
            if said:
                assert len(said.splitlines()) == 1
                assert len(said) < 1000
                assert not list(ledger.calls(""))
                return "refused"
            taken = {call.key: call for call in ledger.calls("")}
            assert taken.keys() <= calls.keys()
            return "taken" if taken.items() <= calls.items() else "taken, changed"

    explore(5, once, "segment")
