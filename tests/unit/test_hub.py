"""`botchat.importers.hub`: dataset rows, and the download of MuTual, from a real local server."""

import hashlib
import io
import json
import zipfile

import pyarrow as pa
import pytest
from pyarrow import parquet

import botchat
from botchat.errors import ConfigError, DataError
from botchat.importers import hub
from botchat.workspace.folder import Workspace
from tests.hub_server import serving
from tests.openai_server import Answer, Server
from tests.rows import rows

MUTUAL = b"a" * 90
DIGEST = hashlib.sha256(MUTUAL).hexdigest()


class Table(Server):
    """Answers from a table: path -> status, headers, body."""

    def __init__(self):
        super().__init__()
        self.answers = {}
        self.asked = []

    def answer(self, call):
        """What stands there, and the connection ends."""
        path = call.path.partition("?")[0].removeprefix("/v1")
        self.asked.append(path)
        status, headers, body = self.answers.get(path, (404, {}, b""))
        return Answer(status, body, (*headers.items(), ("connection", "close")))


@pytest.fixture
def server():
    """A real HTTP server on a free port."""
    with Table() as running:
        yield running


@pytest.fixture
def table(server, monkeypatch):
    """The server has BotChat's table of MuTual."""
    monkeypatch.setattr(hub, "MUTUAL_URL", f"{server.url}/a")
    monkeypatch.setattr(hub, "MUTUAL_DIGEST", DIGEST)
    return server


def test_a_download_is_kept_and_not_made_again(table, tmp_path):
    """Behind a redirect; a copy that was damaged is replaced, a good one asks nobody."""
    table.answers["/a"] = (302, {"Location": f"{table.url}/b"}, b"")
    table.answers["/b"] = (200, {}, MUTUAL)
    (tmp_path / "MuTual_test.xlsx").write_bytes(b"damaged")
    for _ in range(2):
        found = hub.fetch_mutual(tmp_path)
        assert (found.name, found.read_bytes()) == ("MuTual_test.xlsx", MUTUAL)
    assert table.asked == ["/a", "/b"]
    assert list(tmp_path.iterdir()) == [found]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, {}, b"no"), "404: Not Found"),
        ((200, {"Content-Length": "90"}, b"a" * 50), "not the file expected"),
        ((200, {}, b"a" * 50), "not the file expected"),
        ((200, {}, b"x" * 5000), "not the file expected"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "'file://"),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "refused"),
    ],
)
def test_a_bad_answer_leaves_nothing_behind(answer, reason, table, tmp_path):
    """One line says what came back and how to get the table by hand."""
    table.answers["/a"] = answer
    with pytest.raises(DataError) as caught:
        hub.fetch_mutual(tmp_path)
    assert reason in str(caught.value)
    assert "; download it by hand" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "uri", ["hf://", "hf://name", "hf://a/b/c/d", "hf://a/b@c@d", "hf://a/@b", "hf://a/b#c#d"]
)
def test_a_malformed_name_is_told_the_syntax(uri):
    """What cannot be a dataset is not asked for."""
    syntax = r"is not hf://ORG/NAME\[@REVISION\]\[/CONFIG\]\[#SPLIT\]"
    with pytest.raises(ConfigError, match=syntax):
        list(hub.load_rows(uri))


@pytest.mark.parametrize(("status", "code", "message"), rows("what_the_hub_refuses_is_one_line"))
def test_what_the_hub_refuses_is_one_line(status, code, message, server, monkeypatch, tmp_path):
    """Unknown, gated and failing: what to do in each case; it is asked once."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.url)
    path = "/api/datasets/some/thing/revision/v1"
    server.answers[path] = (status, {"X-Error-Code": code}, b"{}")
    with pytest.raises(DataError, match=message) as caught:
        list(hub.load_rows("hf://datasets/some/thing@v1/config#test"))
    assert "\n" not in str(caught.value)
    assert server.asked.count(path) == 1


NAME = "datasets/some/talk"
CARD = (
    b"---\nconfigs:\n"
    b"- config_name: short\n  data_files:\n"
    b"  - {split: test, path: short/test.jsonl}\n  - {split: train, path: short/train.jsonl}\n"
    b"- config_name: long\n  data_files:\n  - {split: test, path: long/*.jsonl}\n---\n"
)


def talk(first):
    """A dataset of one dialogue."""
    return json.dumps({"id": "1", "dialog": [first, "Yes.", "So?", "No."]}).encode() + b"\n"


@pytest.fixture
def theirs(monkeypatch, tmp_path):
    """A hub with two commits of a dataset, the older one tagged; and a video."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    with serving(monkeypatch, tmp_path / "cache") as running:
        files = {
            "README.md": CARD,
            "short/test.jsonl": talk("Old."),
            "short/train.jsonl": talk("Train."),
            "long/test.jsonl": talk("Long."),
            "film.mp4": b"0" * 2000,
        }
        running.tags["v1"] = running.commit(NAME, files)
        running.commit(NAME, {**files, "short/test.jsonl": talk("New.")})
        yield running


def first(uri):
    """The first utterance of the only dialogue."""
    (row,) = hub.load_rows(uri)
    return row["dialog"][0]


def test_a_revision_configuration_and_split_are_chosen(theirs):
    """A tag, a commit and the newest; what is not there is said, and no film is taken."""
    tagged = theirs.tags["v1"]
    assert first("hf://some/talk/short") == "New."
    assert first("hf://some/talk@v1/short") == "Old."
    assert first(f"hf://datasets/some/talk@{tagged}/short#train") == "Train."
    assert first("hf://some/talk@v1/long") == "Long."
    assert not [path for path in theirs.asked if "film" in path]
    with pytest.raises(DataError, match=r"Config name is missing.*'short', 'long'"):
        list(hub.load_rows("hf://some/talk"))
    with pytest.raises(DataError, match=r"'tall' not found. Available: .*'short', 'long'"):
        list(hub.load_rows("hf://some/talk/tall"))
    with pytest.raises(DataError, match="no such revision"):
        list(hub.load_rows("hf://some/talk@nine/short"))


def test_offline_the_cache_of_an_earlier_import_is_used(theirs, monkeypatch):
    """The commit that was the newest then; nobody is asked; what was not taken is one line."""
    pin = hub.pin_revision("hf://some/talk/short")
    assert pin == f"hf://some/talk@{theirs.sha(NAME, 'main')}/short"
    n_asked = len(theirs.asked)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    theirs.commit(NAME, {"README.md": CARD, "short/test.jsonl": talk("Newer.")})
    assert hub.pin_revision("hf://some/talk/short") == pin
    assert first("hf://some/talk/short") == first(pin) == "New."
    assert first("hf://some/talk/long") == "Long."
    for uri in ("hf://some/talk@v1/short", "hf://some/other"):
        with pytest.raises(DataError, match="cannot reach the hub, and it is not in the cache"):
            list(hub.load_rows(uri))
    assert len(theirs.asked) == n_asked


def test_what_would_fill_the_disk_is_not_taken(theirs, monkeypatch):
    """Its size is known before anything is downloaded."""
    monkeypatch.setattr(hub, "MAX_DATASET_BYTES", 100)
    with pytest.raises(ConfigError, match=r"^some/talk: \d+ bytes, more than 100"):
        hub.pin_revision("hf://some/talk/short")
    assert not [path for path in theirs.asked if "resolve" in path]


def test_the_set_keeps_its_commit(theirs, tmp_path):
    """Beside the language; a set made again from elsewhere has none."""
    workspace = Workspace(tmp_path / "w")
    botchat.import_("hf://some/talk@v1/short", workspace=workspace, seeds="s", language="zh")
    pin = f"hf://some/talk@{theirs.tags['v1']}/short"
    assert (workspace.root / "seeds/s.toml").read_text() == f'language = "zh"\nsource = "{pin}"\n'
    botchat.import_(pin, workspace=workspace, seeds="s")
    assert (workspace.about("s").source, workspace.language("s").code) == (pin, "en")
    (tmp_path / "s.jsonl").write_bytes(talk("Old."))
    botchat.import_(str(tmp_path / "s.jsonl"), workspace=workspace, seeds="s", replace=True)
    assert not (workspace.root / "seeds/s.toml").exists()


def card(data_files):
    """The card of a dataset with one configuration."""
    return f"---\nconfigs:\n- config_name: default\n  {data_files}\n---\n".encode()


@pytest.mark.parametrize("named", rows("a_card_reads_no_other_file"))
@pytest.mark.parametrize("place", ["README.md", ".huggingface.yaml"])
def test_a_card_reads_no_other_file_and_asks_nobody(named, place, theirs, tmp_path):
    """Whatever it names outside of the dataset: one line, before anything is looked for."""
    with Table() as host:
        (tmp_path / "mine.jsonl").write_bytes(talk("Mine."))
        named = named.replace("FOLDER", str(tmp_path)).replace("URL", host.url)
        content = card(named)
        if place != "README.md":
            content = content.removeprefix(b"---\n").removesuffix(b"---\n")
        theirs.commit(NAME, {"README.md": b"# Talk\n", "test.jsonl": talk("A."), place: content})
        if place != "README.md":
            pin = hub.pin_revision("hf://some/talk").rpartition("@")[2]
            snapshot = tmp_path / "cache" / "datasets--some--talk" / "snapshots" / pin
            (snapshot / place).write_bytes(content)  # another program took it
        with pytest.raises(DataError, match=r"^hf://some/talk: it names '.*', which is no"):
            list(hub.load_rows("hf://some/talk"))
        assert host.asked == []


def test_a_link_out_of_the_dataset_is_not_followed(theirs, tmp_path):
    """Links of the cache lead to what was downloaded, and those are read."""
    theirs.commit(NAME, {"test.jsonl": talk("A.")})
    assert first("hf://some/talk") == "A."
    (tmp_path / "mine.jsonl").write_bytes(talk("Mine."))
    pin = hub.pin_revision("hf://some/talk").rpartition("@")[2]
    snapshot = tmp_path / "cache" / "datasets--some--talk" / "snapshots" / pin
    assert (snapshot / "test.jsonl").is_symlink()
    (snapshot / "test-2.jsonl").symlink_to(tmp_path / "mine.jsonl")
    with pytest.raises(DataError, match=r"test-2\.jsonl', which is no file of the dataset"):
        list(hub.load_rows("hf://some/talk"))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_row_that_names_a_picture_asks_nobody(kind, theirs):
    """Nor is the picture of a path opened."""
    with Table() as host:
        row = {"id": "1", "dialog": ["A.", "B."], "seen": {"path": f"{host.url}/a.png"}}
        if kind == "jsonl":
            features = "[{name: id, dtype: string}, {name: seen, dtype: image},"
            features += " {name: dialog, sequence: string}]"
            about = f"---\ndataset_info: {{features: {features}}}\n---\n"
            files = {"README.md": about.encode(), "test.jsonl": json.dumps(row).encode() + b"\n"}
        else:
            text = {"dtype": "string", "_type": "Value"}
            features = {"id": text, "seen": {"_type": "Image"}}
            features["dialog"] = {"feature": text, "_type": "List"}
            about = {"huggingface": json.dumps({"info": {"features": features}})}
            rows = pa.Table.from_pylist([{**row, "seen": {"bytes": None, **row["seen"]}}])
            packed = io.BytesIO()
            parquet.write_table(rows.replace_schema_metadata(about), packed)
            files = {"test.parquet": packed.getvalue()}
        theirs.commit(NAME, files)
        (found,) = hub.load_rows("hf://some/talk")
        assert found["dialog"] == ["A.", "B."]
        assert found["seen"]["path"] == f"{host.url}/a.png"
        assert host.asked == []


def test_what_has_no_rows_is_not_read(theirs):
    """Other formats of `datasets` may refer to other files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", "Hello.")
    theirs.commit(NAME, {"a.zip": packed.getvalue()})
    with pytest.raises(
        DataError, match=r"none of its files has rows \(arrow, csv, json, parquet\)"
    ):
        list(hub.load_rows("hf://some/talk"))
