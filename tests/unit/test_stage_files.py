"""Lines of stage files: a torn one is cut and said, a whole one is never lost, whoever wrote it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from botchat.errors import BotChatError, DataError
from botchat.records import Seed
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.rows import rows

MARK = b"\xef\xbb\xbf"
ONE = b'{"id":"1","utterances":["a","b"]}'
TWO = b'{"id":"2","utterances":["c","d"]}'
NEW = Seed("3", ("e", "f"))


def ids(path: Path) -> list[str]:
    """Return the ids of the lines."""
    return [seed.id for seed in jsonl.read(path, Seed)]


@pytest.mark.parametrize(("text", "kept", "torn"), rows("last_lines_of_a_file"))
def test_a_whole_last_line_is_kept_and_a_torn_one_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, kept: list[str], torn: int
) -> None:
    """When it is read, when a line is appended, and when it is published; what is torn is said."""
    content = text.encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert ids(path) == kept
    messages = [record.message for record in caplog.records]
    assert (f"{path}: the last line is torn ({torn} bytes) and left out" in messages) == (torn > 0)
    assert len(messages) == (torn > 0)
    assert jsonl.whole_lines(content).count(b"\n") == len(kept)
    caplog.clear()
    with jsonl.Appender[Seed](path) as file:
        file.append(NEW)
    assert ids(path) == [*kept, "3"]
    assert path.read_bytes().endswith(b"\n")
    messages = [record.message for record in caplog.records]
    assert (f"{path}: cut off a torn last line ({torn} bytes)" in messages) == (torn > 0)
    assert len(messages) == (torn > 0)


@pytest.mark.parametrize("last", [b'{"id":"2"}', b'{"id":"2","utterances":["a"]}', b'{"a":"\xff"}'])
def test_a_whole_last_line_that_is_no_record_is_named(tmp_path: Path, last: bytes) -> None:
    """It was written by hand, so it is not cut off."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(ONE + b"\n" + last)
    with pytest.raises(DataError, match=r"a\.jsonl:2: [^\n]*correct or delete this line"):
        jsonl.read(path, Seed)
    assert path.read_bytes() == ONE + b"\n" + last


def test_a_seed_set_that_an_editor_saved(tmp_path: Path) -> None:
    """With a byte order mark and without the last newline, all of its seeds are there."""
    workspace = Workspace(tmp_path)
    path = workspace.seeds_path("s")
    path.parent.mkdir()
    path.write_bytes(MARK + ONE + b"\r\n" + TWO)
    assert [seed.id for seed in workspace.seeds("s")] == ["1", "2"]


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the mask of new files for one test."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
@pytest.mark.parametrize("umask", [0o077, 0o022, 0o027], indirect=True)
def test_the_umask_says_who_may_read(tmp_path: Path, umask: int) -> None:
    """Of a file that is replaced, and of one that lines are appended to."""
    workspace = Workspace(tmp_path)
    written = workspace.write_seeds("s", [NEW])
    appended = tmp_path / "a.jsonl"
    with jsonl.Appender[Seed](appended) as file:
        file.append(NEW)
    for path in (written, appended):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """A folder in the way: one line, and no file beside it."""
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(BotChatError, match=r"^cannot write .*a\.jsonl: Is a directory$"):
        jsonl.write_atomic(tmp_path / "a.jsonl", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
