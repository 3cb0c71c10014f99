"""Stage files: whole records, repaired tails, canonical order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import DataError
from botchat.records import Seed, natural_key, slug
from botchat.workspace import files

texts = st.text(min_size=1).filter(
    lambda t: t.strip() and not any(0xD800 <= ord(c) < 0xE000 for c in t)
)
seeds = st.builds(Seed, id=texts, utterances=st.lists(texts, min_size=2, max_size=5).map(tuple))


@given(records=st.lists(seeds, max_size=8))
def test_write_then_read_is_identity(records, tmp_path_factory):
    """Whatever text is in them, records come back as they were appended."""
    path = tmp_path_factory.mktemp("s") / "x.jsonl"
    with files.Appender[Seed](path) as file:
        for record in records:
            file.append(record)
    assert files.read(path, Seed) == records


@given(records=st.lists(seeds, min_size=1, max_size=4), cut=st.integers(min_value=1, max_value=200))
def test_any_torn_tail_costs_only_the_torn_record(records, cut, tmp_path_factory):
    """Cut anywhere in the last line, the file reads as all records before it, and mends."""
    path = tmp_path_factory.mktemp("s") / "x.jsonl"
    with files.Appender[Seed](path) as file:
        for record in records:
            file.append(record)
    data = path.read_bytes()
    last = data[:-1].rfind(b"\n") + 1
    path.write_bytes(data[: max(last, len(data) - cut)])
    assert files.read(path, Seed) == records[:-1]
    with files.Appender[Seed](path) as file:
        file.append(records[-1])
    assert files.read(path, Seed) == records


def test_a_torn_tail_longer_than_one_block_is_cut_off(tmp_path, caplog):
    """The repair looks back as far as it must."""
    path = tmp_path / "x.jsonl"
    whole = Seed("a", ("x", "y"))
    with files.Appender[Seed](path) as file:
        file.append(whole)
    with path.open("ab") as raw:
        raw.write(b"z" * 200_000)
    with files.Appender[Seed](path) as file:
        file.append(whole)
    assert files.read(path, Seed) == [whole, whole]
    assert "torn" in caplog.text


def test_a_broken_line_is_named_with_file_and_number(tmp_path):
    """An error says which line of which file, and what stands there."""
    path = tmp_path / "set.jsonl"
    path.write_text('{"id":"a","utterances":["x","y"]}\n\n{"id":"b","utterances":["x"]}\n')
    with pytest.raises(DataError, match=r"set\.jsonl:3: .*at least 2"):
        files.read(path, Seed)


def test_finish_sorts_naturally_and_leaves_an_equal_file_alone(tmp_path):
    """Finished files are in canonical order; finishing twice writes once."""
    path = tmp_path / "x.jsonl"
    records = [Seed(f"MT-{n}", ("x", "y")) for n in (10, 2, 1)]
    assert files.finish(path, records, lambda s: natural_key(s.id))
    assert [s.id for s in files.read(path, Seed)] == ["MT-1", "MT-2", "MT-10"]
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert not files.finish(path, records, lambda s: natural_key(s.id))
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_a_full_disk_leaves_whole_records_only(tmp_path):
    """When the file may not grow, the record that does not fit is taken back and reported."""
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from botchat.workspace import files as store\nfrom botchat.records import Seed\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "file = store.Appender(Path(sys.argv[1]))\n"
        "file.append(Seed('a', ('x', 'y')))\n"
        "file.append(Seed('b', ('x' * 200, 'y')))\n"
    )
    path = tmp_path / "x.jsonl"
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert "BotChatError: cannot write" in ran.stderr
    assert [s.id for s in files.read(path, Seed)] == ["a"]
    assert path.read_bytes().endswith(b"\n")


@given(a=st.text(max_size=80), b=st.text(max_size=80))
def test_slugs_are_safe_and_distinct(a, b):
    """Any name is a safe file name; different names never share one, whatever their case."""
    assert slug(a) == slug(a)
    assert Path(slug(a)).name == slug(a)
    assert len(slug(a)) <= 73
    assert not slug(a).startswith(".")
    if a != b:
        assert slug(a).lower() != slug(b).lower()


@pytest.mark.parametrize("name", ["../x", "a/b", "CON", "x" * 300, "模型", "a\0b", "", ".", "A"])
def test_hostile_names_make_plain_files(name, tmp_path):
    """Names that would be dangerous as paths become ordinary files in the folder."""
    (tmp_path / f"{slug(name)}.jsonl").write_text("ok")
    assert len(list(tmp_path.iterdir())) == 1


def test_natural_order_is_total_for_mixed_names():
    """Names with and without numbers can always be sorted."""
    names = ["b", "a10", "a2", "10", "2", "", "a²"]
    assert sorted(names, key=natural_key)[:3] == ["", "2", "10"]
