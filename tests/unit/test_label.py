"""Labels that a page sends: what is kept, what is refused, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import BotChatError, ConfigError, DataError
from botchat.interfaces import Shown, case_digest
from botchat.pipeline.label import rater, save
from botchat.pipeline.run.read_set import read
from botchat.records import HUMAN, Judgment, slug
from botchat.workspace import files
from botchat.workspace.folder import Workspace, dialogue_order
from tests.boards import made

RECORDS = made({"m": 0.4, "o": 0.7}, 12, unreadable=0)
SEED = next(seed for seed in RECORDS.seeds if len(seed.utterances) >= 6)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A set with two models, judged by nobody."""
    found = Workspace(tmp_path)
    found.write_seeds("made-up", RECORDS.seeds)
    for name in ("m", "o"):
        dialogues = RECORDS.dialogues[name].values()
        files.finish(found.dialogues_path("made-up", name), dialogues, dialogue_order)
    return found


def row(protocol: str, names: tuple[str, ...], verdict: str, **others: Any) -> dict[str, Any]:
    """A label as the page sends it, without names."""
    n = {"arena-n8": 8, "gteval": len(SEED.utterances)}.get(protocol)
    shown = [Shown.of(RECORDS.dialogues[name][SEED.id], n) for name in names]
    case = case_digest(protocol, *shown)
    return {"seed_id": SEED.id, "judge": "human:Amy", "verdict": verdict, "case": case, **others}


def sent(protocol: str, *rows: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a POST."""
    return {"set": "made-up", "protocol": protocol, "rows": list(rows)}


@pytest.mark.parametrize(
    ("protocol", "names", "verdict"),
    [
        ("unieval", ("m",), "No"),
        ("unieval", (HUMAN,), "3"),
        ("arena-n8", ("o", "m"), "both"),
        ("gteval", (HUMAN, "o"), "2"),
    ],
)
def test_a_label_without_names_is_filed_under_its_case(
    workspace: Workspace, protocol: str, names: tuple[str, ...], verdict: str
) -> None:
    """The digest says what was shown; the judgment counts like any judge's."""
    assert save(workspace, sent(protocol, row(protocol, names, verdict))) == 1
    judged = read(workspace, "made-up", ["human:amy"]).judged
    (label,) = judged["human:amy"][protocol]
    assert (label.contestants, label.verdict, label.seed_id) == (names, verdict, SEED.id)
    shown = {"unieval": len(RECORDS.dialogues[names[0]][SEED.id].utterances), "arena-n8": 8}
    assert label.shown == shown.get(protocol, len(SEED.utterances))
    base, n = ("arena", "|n:8") if protocol == "arena-n8" else (protocol, "")
    assert label.signature.endswith(
        f"|{base}|set:made-up{n}|judge:human:amy|prompt:blind-page|orders:1"
    )
    path = workspace.judgments_path("made-up", protocol, "human:amy")
    assert path.name == f"{slug('human:amy')}.jsonl"


def test_a_second_answer_is_appended_and_counts(workspace: Workspace) -> None:
    """Nothing is rewritten; the newest line of a case is the label; an exported file goes on.

    What a page sends twice, because it was left before the answer came, is there once.
    """
    for verdict in ("No", "4", "4"):
        save(workspace, sent("unieval", row("unieval", ("m",), verdict)))
    path = workspace.judgments_path("made-up", "unieval", "human:amy")
    assert [one.verdict for one in files.read(path, Judgment)] == ["No", "4"]
    assert [one.verdict for one in workspace.judgments(path).values()] == ["4"]
    exported = path.rename(path.with_name("unieval.human-amy.jsonl"))
    save(workspace, sent("unieval", row("unieval", ("o",), "No", judge="human: AMY ")))
    assert not path.exists()
    assert len(files.read(exported, Judgment)) == 3


def test_what_is_taken_back_is_gone_and_nothing_else(workspace: Workspace) -> None:
    """Every line of the case by that person; other cases' and other people's stay as they are."""
    kept = [row("unieval", ("o",), "No"), row("unieval", ("m",), "No", judge="human:bob")]
    save(workspace, sent("unieval", *kept))
    path = workspace.judgments_path("made-up", "unieval", "human:amy")
    before = path.read_bytes()
    for verdict in ("No", "4"):
        save(workspace, sent("unieval", row("unieval", ("m",), verdict)))
    save(workspace, sent("unieval", row("unieval", ("m",), "4", undone=True)))
    assert path.read_bytes() == before
    bobs = workspace.judgments_path("made-up", "unieval", "human:bob")
    assert len(files.read(bobs, Judgment)) == 1
    save(workspace, sent("unieval", row("unieval", ("o",), "No", undone=True)))
    assert "human:amy" not in read(workspace, "made-up").judged
    save(workspace, sent("gteval", row("gteval", (HUMAN, "o"), "2", undone=True)))


WRONG: list[tuple[dict[str, Any], type[BotChatError], str]] = [
    ({"judge": "rules"}, ConfigError, "human:NAME"),
    ({"judge": "human:"}, ConfigError, "name ''"),
    ({"judge": "human:a\nb" + "x" * 90}, ConfigError, "1 to 60"),
    ({"judge": "human:\u202eyma"}, ConfigError, "can be shown"),
    ({"verdict": "17"}, DataError, "does not offer '17'"),
    ({"verdict": "both"}, DataError, "does not offer 'both'"),
    ({"case": "0" * 16}, DataError, "make the page again"),
    ({"seed_id": "S-99"}, DataError, "no dialogues of now"),
    ({"contestants": ["o"]}, DataError, "no dialogues of now"),
    ({"contestants": ["m", "o"]}, DataError, "no dialogues of now"),
    ({"verdict": None}, DataError, r"rows\[1\].verdict"),
]


@pytest.mark.parametrize(("change", "error", "says"), WRONG)
def test_one_wrong_label_writes_none(
    workspace: Workspace, change: dict[str, Any], error: type[BotChatError], says: str
) -> None:
    """One line that says what is wrong; the right label beside it is not half a request."""
    right = row("unieval", ("m",), "No")
    with pytest.raises(error, match=says) as raised:
        save(workspace, sent("unieval", right, right | change))
    assert "\n" not in str(raised.value)
    assert not (workspace.root / "judgments").exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"set": "made-up"},
        sent("diagnosis"),
        sent(".."),
        {**sent("unieval"), "rows": "x"},
        {**sent("unieval"), "set": "../x"},
    ],
)
def test_what_is_no_labels_is_refused(workspace: Workspace, body: dict[str, Any]) -> None:
    """Of a protocol that nobody labels, of no such set, of another form."""
    with pytest.raises(BotChatError):
        save(workspace, body)
    assert not (workspace.root / "judgments").exists()


def test_two_spellings_are_one_person() -> None:
    """Case, white space and the form of letters are no part of a name."""
    assert {rater(name) for name in ("Amy", " amy\t", "AMY", "\uff21my")} == {"amy"}
    assert rater("Jose\u0301  Maria") == rater("JOS\u00c9 MARIA")
    assert rater("Straße") == rater("STRASSE")


@given(st.text(max_size=70))
def test_a_name_is_folded_once(name: str) -> None:
    """Folding again changes nothing, whatever the name."""
    try:
        folded = rater(name)
    except ConfigError:
        return
    assert rater(folded) == folded
