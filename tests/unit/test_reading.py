"""A set read from disk: in columns it gives the board that it gives in records."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from botchat.boards.board import Board, JudgedSet, build_board
from botchat.errors import DataError
from botchat.interfaces import ShownDialogue, case_digest
from botchat.metrics.verdicts import PairVerdicts
from botchat.pipeline.contestants import human_dialogues
from botchat.pipeline.load import CurrentCases, load
from botchat.protocols.catalogue import Catalogue
from botchat.records import HUMAN, Dialogue, Judgment, Remark
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.boards import Records, make_records

JUDGE = "rules"


def current(records: Records, judgment: Judgment) -> Judgment:
    """The judgment with the digest of what the dialogues are now."""
    end = judgment.shown if len(judgment.contestants) > 1 else None
    cases = (
        ShownDialogue.of(records.dialogues[c][judgment.seed_id], end) for c in judgment.contestants
    )
    return msgspec.structs.replace(judgment, case=case_digest(judgment.protocol, *cases))


@pytest.fixture
def records() -> Records:
    """Three models on 12 seeds in every protocol, as judgments of the dialogues as they are."""
    plain = make_records({"good": 0.8, "fair": 0.5, "poor": 0.2}, 12, unreadable=0.1)
    judgments = {name: [current(plain, j) for j in js] for name, js in plain.judgments.items()}
    return replace(plain, judgments=judgments)


@pytest.fixture
def workspace(tmp_path: Path, records: Records) -> Workspace:
    """The same on disk."""
    workspace = Workspace(tmp_path)
    workspace.write_seeds("set", records.seeds)
    for name, dialogues in records.dialogues.items():
        if name != HUMAN:
            append(workspace.dialogues_path("set", name), *dialogues.values())
    for protocol, judgments in records.judgments.items():
        append(workspace.judgments_path("set", protocol, JUDGE), *judgments)
    return workspace


def append(path: Path, *lines: Dialogue | Judgment) -> None:
    """Add lines to a stage file."""
    with jsonl.Appender[Dialogue | Judgment](path) as file:
        for line in lines:
            file.append(line)


def boards(workspace: Workspace) -> list[Board]:
    """The board of the judge: of the verdicts on pairs in columns, and of all judgments."""
    data = load(workspace, "set", [JUDGE])
    judgments = data.judgments[JUDGE]
    of_rows = build_board(JudgedSet("set", data.seeds, data.dialogues), JUDGE, judgments)
    return [data.board(JUDGE), of_rows]


def tables(board: Board) -> dict[str, object]:
    """Every table and signature, but for groups, which are boards of their own."""
    every = [part for part in board.every_table if part.name != "by-length"]
    return {part.name: (part.records, part.signatures) for part in every}


def change_dialogue(workspace: Workspace, records: Records, seed_id: str) -> Dialogue:
    """Write another dialogue of the model ``good``."""
    old = records.dialogues["good"][seed_id]
    new = msgspec.structs.replace(old, utterances=(*old.utterances[:2], *["Yes, I do."] * 14))
    append(workspace.dialogues_path("set", "good"), new)
    return new


def columns(workspace: Workspace, protocol: str) -> tuple[PairVerdicts, int]:
    """The file of one protocol in columns, and how many of its judgments are stale."""
    dialogues = {HUMAN: human_dialogues(workspace.seeds("set")), **workspace.all_dialogues("set")}
    path = workspace.judgments_path("set", protocol, JUDGE)
    asked = Catalogue().among([protocol])[protocol]
    pairs = CurrentCases(dialogues).read_pairs(asked, path)
    whole = CurrentCases(dialogues).read(protocol, asked, path)
    assert (len(whole.judgments), whole.n_outdated) == (len(pairs.verdicts), pairs.n_outdated)
    return pairs.verdicts, pairs.n_outdated


def test_the_board_is_the_same_after_changes(workspace, records):
    """A dialogue made anew, one lost, and some cases judged again, in another way, twice."""
    first, second, *_ = [s.id for s in records.seeds if len(s.utterances) >= 4]
    new = change_dialogue(workspace, records, first)
    kept = [d for seed_id, d in records.dialogues["poor"].items() if seed_id != second]
    jsonl.finish(workspace.dialogues_path("set", "poor"), kept, lambda dialogue: dialogue.seed_id)
    anew = replace(records, dialogues={**records.dialogues, "good": {first: new}})
    for protocol in ("arena-n8", "arena-n16"):
        again = next(
            current(anew, msgspec.structs.replace(j, signature="another way"))
            for j in records.judgments[protocol]
            if j.seed_id == first and set(j.contestants) == {"good", "fair"}
        )
        append(
            workspace.judgments_path("set", protocol, JUDGE),
            *(msgspec.structs.replace(again, verdict=verdict) for verdict in ("1", "2")),
        )
    by_columns, by_rows = boards(workspace)
    assert tables(by_columns) == tables(by_rows)
    assert any("judgments on dialogues that have changed" in note for note in by_columns.notes)
    assert any("judged with 2 different settings" in note for note in by_columns.notes)


def test_it_is_known_which_verdicts_had_no_room(workspace, records):
    """From the outcome of the judge's reply, or of the votes of its panel."""
    votes = (Remark("a", "so", outcome="truncated"), Remark("b", "1", verdict="1"))
    ends = [("empty", ()), ("truncated", ()), ("ok", votes), ("ok", ()), ("filtered", ())]
    for protocol in ("unieval", "arena-n8"):
        cases = records.judgments[protocol][: len(ends)]
        for judgment, (outcome, votes) in zip(cases, ends, strict=True):
            again = msgspec.structs.replace(
                judgment, verdict=None, outcome=outcome, transcript=votes
            )
            append(workspace.judgments_path("set", protocol, JUDGE), again)
    for board in boards(workspace):
        counts = {name: facts.without_room for name, facts in board.judge_facts.items()}
        assert counts == {"unieval": 3, "arena-n8": 3, "arena-n16": 0, "gteval": 0}


def test_the_last_line_on_a_case_is_the_one_that_counts(workspace, records):
    """Its verdict and its signature, also where it is stale: then nothing on the case counts."""
    first, second, *_ = records.judgments["arena-n8"]
    before, _ = columns(workspace, "arena-n8")
    append(
        workspace.judgments_path("set", "arena-n8", JUDGE),
        msgspec.structs.replace(first, verdict="2", signature="new"),
        msgspec.structs.replace(second, case="of another dialogue"),
    )
    after, stale = columns(workspace, "arena-n8")
    assert (len(after), stale) == (len(before) - 1, 1)
    assert after.signatures["new"] == 1
    assert sum(after.signatures.values()) == len(after)
    (place,) = np.flatnonzero(after.signature == after.known_signatures.index("new"))
    assert after.result[place] == 1.0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"seed_id":"S-1","contestants":["a"]}', r"rules-\w+\.jsonl:2: "),
        (b'{"seed_id":"S-1","contestants":["a","b"],"shown":65537}', r"<= 65536 - at `\$\.shown`"),
        (b'{"seed_id":"S-1",', r"rules-\w+\.jsonl:2: "),
        ({"verdict": "perhaps"}, "'perhaps'"),  # never taken for a tie
        ({"contestants": ("good",)}, "1 contestants where arena-n8 shows 2"),
    ],
)
def test_a_line_that_is_no_judgment_is_named(workspace, records, line, message):
    """File and line, or the verdict."""
    path = workspace.judgments_path("set", "arena-n8", JUDGE)
    if isinstance(line, dict):
        wrong = msgspec.structs.replace(records.judgments["arena-n8"][0], **line)
        line = msgspec.json.encode(wrong)
    first, *others = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([first, line, *others]))
    with pytest.raises(DataError, match=message):
        load(workspace, "set", [JUDGE])


def test_two_files_of_one_are_an_error(workspace):
    """Of two, as a copy or a fetched run brings them, one would hide the other."""
    for path in sorted(workspace.root.glob("[gj]*/set/**/*.jsonl")):
        path.with_stem("copy").write_bytes(path.read_bytes())
        with pytest.raises(DataError, match=r"\.jsonl: a second file of .+; keep one"):
            load(workspace, "set")
        path.with_stem("copy").unlink()
