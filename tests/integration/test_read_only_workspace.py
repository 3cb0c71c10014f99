"""A workspace on a read-only disk or of somebody else: what only reads its ledger works."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from contextlib import suppress

import pytest

from botchat.cli.main import main
from tests.integration.test_forget import GENERATE, workspace
from tests.openai_server import Server, converse
from tests.processes import UNDRAWN, Started

# Root gives up every right of its own, so also to write what nobody may write (capset, version 3).
PLAIN_USER = """
import ctypes
assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="permissions of another kind")


@pytest.fixture
def place(tmp_path):
    """A folder that can be removed again."""
    yield tmp_path
    for path in tmp_path.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


def read_only(folder):
    """Take away every right to write."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222 | 0o444)


def botchat(folder, *command):
    """Exit code, stdout and stderr of a process that may not write there, root's or not."""
    started = Started([*command, "--json", "--dir", folder], PLAIN_USER + UNDRAWN)
    out, error = started.communicate()
    return started.returncode, out, error


def held(folder):
    """Every file with its bytes."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_read_only_workspace_is_counted_and_planned(place):
    """Stats and --plan of a finished run: exit 0, the same numbers, nothing written."""
    folder = place / "w"
    with Server(converse) as server:
        workspace(folder, server)
        assert main([*GENERATE, "--dir", str(folder)]) == 0
        # Of a copy: who reads leaves files beside the ledger where that is possible.
        shutil.copytree(folder, place / "copy")
        before = botchat(place / "copy", "ledger")[1]
        assert sorted(path.suffix for path in (folder / ".botchat").glob("ledger*")) == [".sqlite3"]
        read_only(folder)
        files = held(folder)
        assert botchat(folder, "ledger") == (0, before, "")
        code, told, error = botchat(folder, *GENERATE, "--plan")
        assert (code, error) == (0, "")
        assert {row["calls"] for row in json.loads(told)["rows"]} <= {0}
        assert held(folder) == files
        assert server.n_received == 80


def test_what_writes_says_that_it_cannot(place):
    """Forget on a read-only workspace: one line, nothing changed."""
    folder = place / "w"
    with Server(converse) as server:
        workspace(folder, server)
        assert main([*GENERATE, "--dir", str(folder)]) == 0
    with suppress(OSError):
        (folder / ".botchat" / "lock").unlink()
    read_only(folder)
    files = held(folder)
    code, _, error = botchat(folder, "ledger", "--forget", "--outcome", "ok")
    assert (code, error.count("\n")) == (1, 1)
    assert "cannot" in error
    assert held(folder) == files


def test_a_board_is_read_where_nothing_can_be_written(place):
    """A leaderboard with --out elsewhere: the same table, nothing written beside it."""
    folder, few = place / "w", ("--seeds", "sample")
    at = ("--dir", str(folder))
    models = ("--model", "bot:parrot", "--model", "bot:verbose")
    assert main(["generate", "--seeds", "sample", *models, "--turns", "8", *at]) == 0
    assert (
        main(["judge", "arena", "--seeds", "sample", "--judge", "rules", "--turns", "8", *at]) == 0
    )
    assert main(["leaderboard", *few, *at, "--out", str(place / "board")]) == 0
    read_only(folder)
    files = held(folder)
    code, _, error = botchat(folder, "leaderboard", *few, "--out", str(place / "out"))
    assert code == 0, error
    table = "arena-n8.csv"
    assert (place / "out" / table).read_bytes() == (place / "board" / table).read_bytes()
    assert (place / "out" / "index.html").is_file()
    assert held(folder) == files
