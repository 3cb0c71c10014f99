"""Pages of made-up records: hostile text in every place, and somebody's own criteria."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec

from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.protocols.reports import ERRORS
from botchat.report.archive import build
from botchat.report.page import View, files
from botchat.workspace.criteria import CriterionSettings
from botchat.workspace.jsonl import write_all
from tests.boards import Records, judgment, make_records

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</style></script><img src=x onerror='window.pwned = 2'>",
    "\"quoted\" 'name' & `tick` ${7*7}",
    "javascript:window.pwned=3//",
    "\u202eesrever\u2066 نموذج",
    "👩‍🚀🏳️‍🌈 emoji 名前",
    "__proto__",
    "#view=unieval&a=x&seed=y",
)


def hostile_records(attacks: Sequence[str], tail: str = "") -> Records:
    """Records whose every name, utterance and reason is an attack."""
    plain = make_records(dict.fromkeys(attacks, 0.4), 6)
    attack = " ".join(attacks)
    dialogues = {
        name: {
            seed_id: msgspec.structs.replace(
                one, utterances=(*[attack] * (len(one.utterances) - 1), attack + tail)
            )
            for seed_id, one in by_seed.items()
        }
        for name, by_seed in plain.dialogues.items()
    }
    judgments = {
        protocol: [msgspec.structs.replace(j, reason=attack, judge=attacks[0]) for j in said]
        for protocol, said in plain.judgments.items()
    }
    return Records(plain.seeds, dialogues, judgments)


def hostile_page(folder: Path) -> Path:
    """A page of such records, each dialogue with an utterance 10 kB long."""
    return write_page(hostile_records(HOSTILE, "x" * 10_000), folder, HOSTILE[1])


def own_page(folder: Path) -> Path:
    """A page with somebody's own criteria of every kind, beside UniEval."""
    one = "{{conversation}}"
    two = "{{conversation_1}} {{conversation_2}}"
    known = catalogue(
        {
            "empathy": CriterionSettings(
                kind="score", prompt=one, title="Empathy", question="How warm?",
                scores=("Empathy",), scale=(1, 10),
            ),
            "style": CriterionSettings(
                kind="score", prompt=one, scores=("Wit", "Tact"), scale=(0, 100)
            ),
            "drift": CriterionSettings(kind="detection", prompt=one, title="First drift"),
            "faults": CriterionSettings(kind="report", prompt=one, title="Faults"),
            "warmth": CriterionSettings(
                kind="pairwise", shows="pair", prompt=two, title="Warmth",
                labels=("Left", "Right", "Level"),
            ),
            "depth": CriterionSettings(
                kind="score", shows="pair", prompt=two, scores=("Depth",),
                scale=(1, 10),
            ),
        }
    )  # fmt: skip
    records = make_records({"m": 0.5, "o": 0.5}, 8)
    said = records.dialogues["m"]["S-2"].utterances[2].split(".")[0]
    report = "\n".join(
        f"{name}? " + (f'Yes\n- Utterance 3: "{said}" - again' if name == "Repetition" else "No")
        for name in ERRORS.values()
    )
    verdicts: dict[str, tuple[tuple[str, ...], list[str | None]]] = {
        "empathy": (("m",), ["4", "7", "9.5", None, "2", "6", "3"]),
        "style": (("m",), ["40 7", "55.5 80"]),
        "drift": (("m",), ["No", "5", "3", None]),
        "faults": (("m",), ["0", "-1", None]),
        "warmth-n16": (("m", "o"), ["1", "2", "both", None]),
        "depth-n16": (("m", "o"), ["8 3", "4 4", "2 6.5"]),
    }
    judgments = {
        protocol: [judgment(protocol, f"S-{i}", shown, v) for i, v in enumerate(given, 1)]
        for protocol, (shown, given) in verdicts.items()
    }
    judgments["faults"][1] = msgspec.structs.replace(judgments["faults"][1], reason=report)
    made_up = Records(records.seeds, records.dialogues, {**records.judgments, **judgments})
    return write_page(made_up, folder, known=known)


def write_page(
    records: Records, folder: Path, judge: str = "rules", known: Catalogue | None = None
) -> Path:
    """The page of some records with its chunks."""
    archive = build(records.seeds, records.dialogues, {judge: records.judgments}, known)
    write_all(folder, files([View.of(records.board())], archive))
    return folder / "index.html"


def write_boards(
    folder: Path, records: Records, judges: Sequence[str], costs: dict[str, float]
) -> Path:
    """Write the page of some records, a board a judge."""
    board = records.board()
    views = [View.of(dataclasses.replace(board, judge=name), None, costs, 3.04) for name in judges]
    judged = dict.fromkeys(judges, records.judgments)
    write_all(folder, files(views, build(records.seeds, records.dialogues, judged)))
    return folder / "index.html"
