"""The label page and its labels: what is drawn, filed and refused, and that no name is told."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from botchat import errors
from botchat.commands import leaderboard
from botchat.errors import BotChatError, ConfigError, MissingDataError
from botchat.interfaces import ShownDialogue, case_digest
from botchat.pipeline.agree import agree
from botchat.pipeline.label import label
from botchat.pipeline.load import load
from botchat.records import HUMAN, slug
from botchat.report import archive
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace, stage_order
from tests.boards import make_records
from tests.rows import rows

RECORDS = make_records({"m": 0.4, "o": 0.7}, 12, unreadable=0)
SEED = next(seed for seed in RECORDS.seeds if len(seed.utterances) >= 6)
OWN = """[protocols.warmth]
kind = "score"
prompt = "warmth.txt"
scores = ["Warmth"]
scale = [1, 5]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A set with two models, judged by nobody, and a criterion of its own."""
    (tmp_path / "botchat.toml").write_text(OWN)
    (tmp_path / "warmth.txt").write_text("{{conversation}}\nWarmth: a number from 1 to 5")
    found = Workspace(tmp_path)
    found.write_seeds("made-up", RECORDS.seeds)
    for name in ("m", "o"):
        dialogues = RECORDS.dialogues[name].values()
        jsonl.finish(found.dialogues_path("made-up", name), dialogues, stage_order)
    return found


def row(protocol: str, names: tuple[str, ...], verdict: str, **others: Any) -> dict[str, Any]:
    """A line as the page exports it."""
    n = {"arena-n8": 8, "gteval": len(SEED.utterances)}.get(protocol)
    shown = [ShownDialogue.of(RECORDS.dialogues[name][SEED.id], n) for name in names]
    line = {"protocol": protocol, "seed_id": SEED.id, "judge": "human:Amy", "verdict": verdict}
    return {**line, "case": case_digest(protocol, *shown), **others}


def filed(workspace: Workspace, *rows: dict[str, Any]) -> list[int]:
    """How many labels of a file were new, by judge and protocol."""
    path = workspace.root / "exported.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    return [one["new"] for one in label(workspace, "made-up", [path]).rows]


@pytest.mark.parametrize(("protocol", "names", "verdict"), rows("labels_of_cases"))
def test_a_label_is_filed_under_its_case(
    workspace: Workspace, protocol: str, names: list[str], verdict: str
) -> None:
    """The digest says what was shown; the judgment counts like any judge's, and is on the page."""
    assert filed(workspace, row(protocol, tuple(names), verdict)) == [1]
    data = load(workspace, "made-up", ["human:amy"])
    assert archive.build(data.seeds, data.dialogues, data.judgments, data.catalogue).files
    (label,) = data.judgments["human:amy"][protocol]
    assert (label.contestants, label.verdict, label.seed_id) == (tuple(names), verdict, SEED.id)
    shown = {"gteval": len(SEED.utterances), "arena-n8": 8}
    assert label.shown == shown.get(protocol, len(RECORDS.dialogues[names[0]][SEED.id].utterances))
    base, n = ("arena", "|n:8") if protocol == "arena-n8" else (protocol, "")
    signature = f"|{base}|set:made-up{n}|judge:human:amy|prompt:blind-page|orders:1"
    assert label.signature.endswith(signature)
    path = workspace.judgments_path("made-up", protocol, "human:amy")
    assert path.name == f"{slug('human:amy')}.jsonl"


@pytest.mark.parametrize(("change", "error", "says"), rows("labels_that_are_wrong"))
def test_one_wrong_label_files_none(
    workspace: Workspace, change: dict[str, Any], error: str, says: str
) -> None:
    """One line that says what is wrong; the right label beside it is not half a file."""
    right = row("unieval", ("m",), "No")
    with pytest.raises(getattr(errors, error), match=says) as raised:
        filed(workspace, right, right | change)
    assert "\n" not in str(raised.value)
    assert not (workspace.root / "judgments").exists()


def page(workspace: Workspace, protocol: str, most: int) -> tuple[str, list[Any]]:
    """The page as text, and its cases."""
    result = label(workspace, "made-up", protocol=protocol, most=most)
    text = Path(result.data["page"]).read_text("utf-8")
    return text, json.loads(text.partition('id="about">')[2].partition("</script>")[0])["cases"]


@pytest.mark.parametrize("protocol", ["unieval", "arena-n8", "gteval", "warmth"])
def test_a_page_is_blind_and_a_larger_one_begins_with_it(
    workspace: Workspace, protocol: str
) -> None:
    """No contestant's name; contestants take turns, a pair is in one of its orders."""
    text, cases = page(workspace, protocol, 6)
    assert '"m"' not in text
    assert "human:amy" not in text
    assert page(workspace, protocol, 20)[1][:6] == cases
    by_digest = {
        case_digest("unieval", ShownDialogue.of(dialogue)): name
        for name, by_seed in RECORDS.dialogues.items()
        for dialogue in by_seed.values()
    }
    if protocol == "unieval":
        assert Counter(by_digest[each["case"]] for each in cases) == {HUMAN: 3, "m": 1, "o": 2}
    verdict = {"unieval": "No", "warmth": "3"}.get(protocol, "neither")
    line = {"protocol": protocol, "judge": "human:b", "verdict": verdict}
    rows = [{**line, "seed_id": each["seed_id"], "case": each["case"]} for each in cases]
    assert filed(workspace, *rows) == [6]


def test_no_dialogue_is_told_by_its_length(workspace: Workspace) -> None:
    """Where enough people's have as many utterances, all cases have them."""
    seeds = [replace(SEED, id=str(i), utterances=("x",) * (4 + i % 9)) for i in range(40)]
    workspace.write_seeds("made-up", seeds)
    made = [replace(RECORDS.dialogues["m"][SEED.id], seed_id=seed.id) for seed in seeds]
    jsonl.finish(workspace.dialogues_path("made-up", "m"), made, stage_order)
    cases = page(workspace, "unieval", 30)[1]
    assert {len(said) for each in cases for said in each["dialogues"]} == {8}


def test_human_dialogues_are_of_seeds_that_a_model_was_given(workspace: Workspace) -> None:
    """No label is spent where no judge is asked (``--limit``)."""
    for name in ("m", "o"):
        few = [*RECORDS.dialogues[name].values()][:3]
        jsonl.finish(workspace.dialogues_path("made-up", name), few, stage_order)
    seeds = {each["seed_id"] for each in page(workspace, "unieval", 99)[1]}
    assert seeds == {dialogue.seed_id for dialogue in few}


def test_a_judge_whose_name_begins_so_is_no_person(workspace: Workspace) -> None:
    """Its protocol is labelled, it is ranked by, and human labels say how good it is."""
    filed(workspace, row("arena-n8", ("o", "m"), "both"), row("arena-n8", ("m", "o"), "1"))
    labels = load(workspace, "made-up").judgments["human:amy"]["arena-n8"]
    path = workspace.judgments_path("made-up", "arena-n8", "humanoid-7b")
    jsonl.finish(path, [replace(each, judge="humanoid-7b") for each in labels], stage_order)
    assert label(workspace, "made-up").data["protocol"] == "arena-n8"
    assert leaderboard(seeds="made-up", workspace=workspace).data["judge"]["name"] == "humanoid-7b"
    found = agree(workspace, seed_set="made-up", protocol="arena-n8").data
    assert [found["labels"], found["judges"][0]["judge"]] == ["human labels", "humanoid-7b"]


@pytest.mark.parametrize(
    ("error", "message", "flags"),
    [
        (ConfigError, "unknown protocol 'none'", {"protocol": "none"}),
        (ConfigError, "error reports cannot be labelled", {"protocol": "diagnosis"}),
        (ConfigError, "--cases 0", {"most": 0}),
        (MissingDataError, "name a protocol", {}),
        (MissingDataError, "no file", {"files": [Path("none.jsonl")]}),
        (MissingDataError, "no seed set 'other'", {"seed_set": "other"}),
    ],
)
def test_what_cannot_be_labelled_is_refused(
    workspace: Workspace, error: type[BotChatError], message: str, flags: dict[str, Any]
) -> None:
    """Before anything is written."""
    with pytest.raises(error, match=message):
        label(workspace, **{"seed_set": "made-up", **flags})
    assert not (workspace.root / "leaderboards").exists()
