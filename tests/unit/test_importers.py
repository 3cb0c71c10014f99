"""Files of seeds: the seeds in them, or a fault in one line."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from pathlib import Path

import msgspec
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError, DataError
from botchat.importers import hub, tables
from botchat.importers.dialogues import read_mutual, read_seeds
from botchat.pipeline.seeds import read_source
from botchat.records import MIN_HUMAN, Seed
from tests.rows import cases, rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
WORKBOOK = DATA / "botchat" / "MuTual_test.xlsx"

seeds_of_any_text = st.lists(
    st.builds(
        Seed,
        id=st.text(min_size=1, max_size=8).filter(str.strip),
        utterances=st.lists(
            st.text(min_size=1, max_size=12).filter(str.strip), min_size=2, max_size=4
        ).map(tuple),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda seed: seed.id,
)


def from_table(data: bytes, name: str) -> list[Seed]:
    """Seeds of a file."""
    return read_seeds(tables.rows(data, name), name)


def item(*turns: str) -> bytes:
    """A raw MuTual file whose speakers take turns."""
    article = " ".join(f"{'mf'[n % 2]} : {turn}" for n, turn in enumerate(turns))
    return json.dumps({"answers": " ", "options": [], "article": article, "id": "x"}).encode()


def texts(*items: tuple[str, bytes]) -> dict[str, tuple[str, ...]]:
    """Import raw items; id -> utterances."""
    return {seed.id: seed.utterances for seed in read_mutual(dict(items), "here")}


def test_mutual_is_botchats_table() -> None:
    """A download is held against the published file: 547 dialogues, 222 of 4 and more."""
    if not WORKBOOK.exists():
        pytest.skip(f"{WORKBOOK.name} is not beside this checkout")
    assert hashlib.sha256(WORKBOOK.read_bytes()).hexdigest() == hub.MUTUAL_DIGEST
    found = read_source(str(WORKBOOK), Path())
    assert (len(found), sum(len(one.utterances) >= MIN_HUMAN for one in found)) == (547, 222)


class TestMutualRules:
    """The rules on items made up here."""

    def test_of_cuts_and_copies_of_one_dialogue_one_stays(self) -> None:
        """The longest, the first; a cut ends between words, and numbers are in order."""
        said = [
            (7, ("good morning .", "hello there .", "nice hat .")),
            (8, ("good morning .", "hello there .")),
            (9, ("good morning .", "hello there .", "nice hat .")),
            (3, ("do you like the", "cat")),
            (1, ("do you like the", "cats .")),
        ]
        found = texts(*((f"test/test_{n}.txt", item(*each)) for n, each in said))
        assert list(found) == ["MT-1", "MT-3", "MT-7"]
        assert found["MT-7"] == ("good morning .", "hello there .", "nice hat .")

    @pytest.mark.parametrize(
        "content", [b"", b"\xff", b"[1]", b'{"article": 5}', b'{"article": "m :"}']
    )
    def test_a_broken_item_is_named(self, content: bytes) -> None:
        """What is not MuTual's layout is one line with folder and file."""
        with pytest.raises(DataError, match=r"^here: test/test_4\.txt: [^\n]*$"):
            texts(("test/test_4.txt", content))


def workbook(*rows: list[object]) -> bytes:
    """An xlsx file with one sheet."""
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


class TestTables:
    """JSON lines, JSON, CSV, xlsx and rows."""

    @given(seeds_of_any_text)
    def test_jsonl_round_trip(self, seeds: list[Seed]) -> None:
        """What is written as our own JSON lines is read back the same, any characters."""
        data = b"".join(msgspec.json.encode(seed) + b"\n" for seed in seeds)
        assert from_table(data, "f.jsonl") == seeds
        assert from_table(msgspec.json.encode(seeds), "f.json") == seeds
        assert read_seeds(tables.rows_of(map(msgspec.to_builtins, seeds), "f"), "f") == seeds

    @pytest.mark.parametrize(
        "row",
        rows("common_field_names"),
    )
    def test_common_field_names(self, row: dict[str, object]) -> None:
        """The layouts in use elsewhere give the same seed."""
        data = json.dumps(row).encode()
        assert from_table(b"\xef\xbb\xbf" + data + b"\r\n\n", "f.json") == [
            Seed("a", ("One.", "Two."))
        ]

    @pytest.mark.parametrize(("name", "text", "expected"), cases("layouts_of_seed_files", 3))
    def test_layouts(self, name: str, text: str, expected: dict[str, list[str]]) -> None:
        """Of JSON and CSV, with or without ids and turns."""
        read = from_table(text.encode(), name)
        assert read == [Seed(id_, tuple(said)) for id_, said in expected.items()]

    def test_a_workbook_with_blank_rows_and_numbers_as_ids(self) -> None:
        """Ids are whole numbers."""
        lines = [["index", "conv-GT"], [3, '["One.", "Two."]'], [None, None], [4.0, '["a", "b"]']]
        read = from_table(workbook(*lines), "f.xlsx")
        assert read == [Seed("3", ("One.", "Two.")), Seed("4", ("a", "b"))]

    @pytest.mark.parametrize(
        ("data", "message"),
        rows("a_bad_table_is_one_line"),
    )
    def test_a_bad_table_is_one_line(self, data: str, message: str) -> None:
        """File, row, value and remedy, on one line; bytes are written as Latin-1."""
        suffix = re.search(r"\.(csv|parquet)", message)
        name = f"f{suffix[0]}" if suffix else "f.json"
        with pytest.raises(DataError, match=message) as caught:
            from_table(data.encode("latin-1"), name)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300

    def test_bad_xlsx_is_one_line(self) -> None:
        """Neither text, nor another zip, nor a damaged or empty workbook passes for a table."""
        good = workbook(["id", "utterances"], ["a", '["x", "y"]'])
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("a.txt", "x")
        for data in (b"id,text", b"", other.getvalue(), good[: len(good) // 2]):
            with pytest.raises(DataError, match=r"^f.xlsx: not readable as xlsx [^\n]*$"):
                from_table(data, "f.xlsx")
        with pytest.raises(DataError, match=r"f.xlsx: no dialogue"):
            from_table(workbook(), "f.xlsx")
        with pytest.raises(DataError, match=r"f.xlsx row 3: id 'a' is taken by f.xlsx row 2"):
            from_table(workbook(["id", "utterances"], *[["a", '["x", "y"]']] * 2), "f.xlsx")

    def test_a_workbook_that_is_too_large_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything is unpacked."""
        monkeypatch.setattr(tables, "MAX_UNPACKED", 100)
        with pytest.raises(DataError, match="split"):
            from_table(workbook(["id"]), "f.xlsx")

    def test_a_topic_is_kept(self) -> None:
        """Of a whole dialogue, and of the first of its utterances."""
        (seed,) = from_table(b'{"id": 1, "utterances": ["x", "y"], "Topic": "food"}', "f.jsonl")
        (other,) = from_table(b"id,text,topic\n1,x,food\n1,y,\n", "f.csv")
        assert seed == other == Seed("1", ("x", "y"), "food")
        assert msgspec.json.encode(seed).endswith(b'"topic":"food"}')
        assert msgspec.json.encode(Seed("1", ("x", "y"))) == b'{"id":"1","utterances":["x","y"]}'


class TestReadSource:
    """What a source string means."""

    def test_folders_of_mutual(self, tmp_path: Path) -> None:
        """A folder at any height is the same set; nothing else in it is read."""
        raw = {"test_1.txt": item("hi .", "hi ."), "test_2.txt": item("hi .", "hi .", "bye .")}
        for name, content in raw.items():
            for folder in ("mutual/test", "mutual/dev", "mutual_plus/test"):
                path = tmp_path / "data" / folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if folder == "mutual/test" else b"broken")
        expected = [Seed("MT-2", ("hi .", "hi .", "bye ."))]
        for source in ("data", "data/mutual", "data/mutual/test"):
            assert read_source(str(tmp_path / source), tmp_path) == expected

    @pytest.mark.parametrize("source", ["what", "s.docx", "nowhere/s.csv", "no.zip", ""])
    def test_what_is_no_source_is_told_what_is(self, source: str, tmp_path: Path) -> None:
        """An unknown or missing source is one line with everything that is accepted."""
        (tmp_path / "s.docx").touch()
        full = str(tmp_path / source) if source else "s"
        with pytest.raises(ConfigError, match=r"^seeds source .*mutual.*\.csv.*hf://[^\n]*$"):
            read_source(full, tmp_path)
