"""Files of seeds: the seeds in them, or a fault in one line."""

import io
import json
import re
import zipfile
from hashlib import sha256
from pathlib import Path
from shutil import copytree, make_archive

import msgspec
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError, DataError
from botchat.importers import hub, tables
from botchat.importers.dialogues import read_seeds
from botchat.interfaces import visible
from botchat.pipeline.seeds import import_seeds, read_source
from botchat.records import Seed
from botchat.workspace.folder import Workspace
from tests.rows import cases, rows
from tests.unit.test_votes import as_parquet

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
WORKBOOK = DATA / "botchat" / "MuTual_test.xlsx"

seeds_of_any_text = st.lists(
    st.builds(
        Seed,
        id=st.text(min_size=1, max_size=8).filter(str.strip),
        utterances=st.lists(
            st.text(min_size=1, max_size=12).filter(visible), min_size=2, max_size=4
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


@pytest.mark.parametrize(
    ("path", "name", "n_min4"),
    [
        (WORKBOOK, "mutual-test", 222),
        (DATA / "mutual" / "MuTual-master.zip", "mutual-test-raw", 220),
    ],
)
def test_mutual_is_the_papers(path: Path, name: str, n_min4: int, tmp_path: Path) -> None:
    """547 dialogues, from BotChat's table and from the raw files; their texts give the name."""
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    assert path != WORKBOOK or sha256(path.read_bytes()).hexdigest() == hub.MUTUAL_DIGEST
    result = import_seeds(Workspace(tmp_path), str(path))
    assert (result.data["set"], result.data["n_seeds"]) == (name, 547)
    assert result.data["n_min4"] == n_min4
    assert ("not the paper's texts" in result.data.get("note", "")) == (path != WORKBOOK)
    other = tmp_path / "again.json"
    other.write_bytes(msgspec.json.encode(Workspace(tmp_path).seeds(name)))
    assert import_seeds(Workspace(tmp_path), str(other)).data["set"] == name


@pytest.fixture(scope="module")
def raw_mutual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with MuTual's layout, and its zip beside it; texts are made up."""
    root = tmp_path_factory.mktemp("raw") / "MuTual-master"
    for folder in ("mutual/test", "mutual/dev", "mutual_plus/test"):
        (root / "data" / folder).mkdir(parents=True)
    for n in range(1, 887):
        content = item(f"item {n} .", "hi  there .", "bye .")
        (root / "data" / "mutual" / "test" / f"test_{n}.txt").write_bytes(content)
    (root / "data" / "mutual_plus" / "test" / "test_1.txt").write_bytes(b"broken")
    make_archive(str(root), "zip", root.parent, root.name)
    return root


class TestRawMutual:
    """Items made up here."""

    @pytest.mark.parametrize("source", [".zip", "", "/data", "/data/mutual", "/data/mutual/test"])
    def test_at_any_height_it_is_the_papers_dialogues(self, raw_mutual: Path, source: str) -> None:
        """547 of 886 items, in order; case and blanks stay as they are."""
        seeds = read_source(f"{raw_mutual}{source}", Path())
        assert (len(seeds), seeds[1]) == (547, Seed("MT-4", ("item 4 .", "hi there .", "bye .")))
        assert seeds[-1].id == "MT-886"

    @pytest.mark.parametrize(
        "content", [None, b"", b"\xff", b"[1]", b'{"article": 5}', b'{"article": "m :"}']
    )
    def test_a_broken_or_missing_item_is_named(
        self, raw_mutual: Path, content: bytes | None, tmp_path: Path
    ) -> None:
        """What is not MuTual's layout is one line with folder and file."""
        copytree(raw_mutual / "data" / "mutual" / "test", tmp_path / "test")
        path = tmp_path / "test" / "test_4.txt"
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DataError, match=r": test_4\.txt: [^\n]*; give MuTual's own folder"):
            read_source(str(tmp_path), Path())


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

    @pytest.mark.parametrize("row", rows("common_field_names"))
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

    @pytest.mark.parametrize(("data", "message"), rows("a_bad_table_is_one_line"))
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

    def test_a_table_that_is_too_large_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """By bytes before anything is unpacked, and by cells."""
        book = openpyxl.Workbook()
        assert book.active is not None
        for cell in ("A1", "XFD1", "A1048576"):
            book.active[cell] = "x"
        book.save(out := io.BytesIO())
        with pytest.raises(DataError, match="more than 8,388,608 cells; split"):
            from_table(out.getvalue(), "f.xlsx")
        monkeypatch.setattr(tables, "MAX_UNPACKED", 100)
        with pytest.raises(DataError, match="bytes; split"):
            from_table(workbook(["id"]), "f.xlsx")
        monkeypatch.setattr(tables, "MAX_CELLS", 3)
        with pytest.raises(DataError, match="it has 4 cells; split"):
            from_table(as_parquet([{"id": "1", "text": "a"}] * 2), "f.parquet")

    def test_a_topic_is_kept(self) -> None:
        """Of a whole dialogue, and of the first of its utterances."""
        (seed,) = from_table(b'{"id": 1, "utterances": ["x", "y"], "Topic": "food"}', "f.jsonl")
        (other,) = from_table(b"id,text,topic\n1,x,food\n1,y,\n", "f.csv")
        assert seed == other == Seed("1", ("x", "y"), "food")
        assert msgspec.json.encode(seed).endswith(b'"topic":"food"}')
        assert msgspec.json.encode(Seed("1", ("x", "y"))) == b'{"id":"1","utterances":["x","y"]}'


class TestReadSource:
    """What a source string means."""

    @pytest.mark.parametrize("source", ["what", "s.docx", "nowhere/s.csv", "no.zip", ""])
    def test_what_is_no_source_is_told_what_is(self, source: str, tmp_path: Path) -> None:
        """An unknown or missing source is one line with everything that is accepted."""
        (tmp_path / "s.docx").touch()
        full = str(tmp_path / source) if source else "s"
        with pytest.raises(ConfigError, match=r"^seeds source .*mutual.*\.csv.*hf://[^\n]*$"):
            read_source(full, tmp_path)
