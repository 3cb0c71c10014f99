"""The rules judge: what it accuses, where, why, and whom it leaves in peace."""

import asyncio
import json
import random
import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.interfaces import Case, Judge, JudgeAnswer, ShownDialogue
from botchat.judges.criteria import flags
from botchat.judges.rules import RulesJudge

ROOT = Path(__file__).resolve().parents[2]
BOTCHAT = ROOT.parent / "shared" / "data" / "botchat"
COMPARISON = frozenset({"1", "2", "both", "neither"})
Utterances = tuple[str, ...]

BAD: dict[str, tuple[str, int, Utterances]] = {}
GOOD: dict[str, Utterances] = {}
"""Dialogues by what they are: what is accused of which utterance; and ordinary talk."""
for line in (ROOT / "tests" / "data" / "dialogues.jsonl").read_text("utf-8").splitlines():
    talk = json.loads(line)
    said = tuple(talk["utterances"])
    if "criterion" in talk:
        BAD[talk["name"]] = talk["criterion"], talk["index"], said
    else:
        GOOD[talk["name"]] = said


def case(choices: frozenset[str], *dialogues: Utterances) -> Case:
    """A case about dialogues."""
    shown = tuple(ShownDialogue(name, each) for name, each in zip("ab", dialogues, strict=False))
    return Case("asked", "x", shown, "…", choices, lambda _: (None, ""), about_ai=True)


def unieval(*utterances: str) -> Case:
    """A UniEval case about one dialogue."""
    return case(frozenset({"No", *map(str, range(1, len(utterances) + 1))}), utterances)


def pair(a: Utterances, b: Utterances) -> Case:
    """A comparison of two dialogues."""
    return case(COMPARISON, a, b)


def answer(judge: Judge, case: Case) -> JudgeAnswer:
    """The answer, without an event loop of one's own."""
    return asyncio.run(judge.answer(case))


def accused(judge: RulesJudge, dialogues: Iterable[Utterances]) -> list[Utterances]:
    """Those dialogues that UniEval finds AI-involved."""
    return [d for d in dialogues if answer(judge, unieval(*d)).verdict != "No"]


FLOORS = RulesJudge([])


@pytest.mark.parametrize("name", BAD)
def test_accuses_the_right_utterance_for_the_right_reason(name: str):
    """Each kind of fault is found at its first utterance by the criterion made for it."""
    criterion, index, utterances = BAD[name]
    first = flags(utterances, FLOORS.thresholds)[0]
    assert (first.criterion, first.index) == (criterion, index), first
    found = answer(FLOORS, unieval(*utterances))
    assert found.verdict == str(index)
    assert found.reason.startswith(f"utterance {index}: ")


@pytest.mark.parametrize("name", GOOD)
def test_leaves_ordinary_talk_in_peace(name: str):
    """Talk as people talk is not accused, though it brushes against each criterion."""
    assert answer(FLOORS, unieval(*GOOD[name])).verdict == "No"


def test_seed_utterances_are_never_accused():
    """The ChatSEED is human, whatever it looks like."""
    wild = "As an AI, " + "furthermore, " * 200
    assert answer(FLOORS, unieval(wild, wild)).verdict == "No"
    assert answer(FLOORS, unieval(wild, wild, "How odd.")).verdict == "No"


def test_comparison_accuses_each_dialogue_by_itself():
    """One accused gives its number, two "both", none "neither"."""
    good, bad = GOOD["plans"], BAD["as an AI"][2]
    assert answer(FLOORS, pair(bad, good)).verdict == "1"
    assert answer(FLOORS, pair(good, bad)).verdict == "2"
    assert answer(FLOORS, pair(bad, BAD["long"][2])).verdict == "both"
    assert answer(FLOORS, pair(good, GOOD["echo"])).verdict == "neither"


PHRASES = st.sampled_from(
    [u for _, _, talk in BAD.values() for u in talk] + [u for talk in GOOD.values() for u in talk]
)
TALK = st.lists(PHRASES | st.text(max_size=40), min_size=2, max_size=12).map(tuple)
MIRROR = {"1": "2", "2": "1"}


@given(TALK, TALK)
def test_swapping_the_dialogues_swaps_the_verdict(a: Utterances, b: Utterances):
    """Sides do not matter."""
    there, back = answer(FLOORS, pair(a, b)), answer(FLOORS, pair(b, a))
    assert there.verdict in COMPARISON
    assert back.verdict == MIRROR.get(there.verdict, there.verdict)
    assert (back.outcome, back.transcript, back.calls) == ("ok", (), ())


HOSTILE = ["", "\0", "😀😀", "你好吗?", "\ud800", "'", "<", "**", "i am a ", "bye "]


@settings(max_examples=10)
@given(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=6), st.sampled_from([1, 3, 5_000]))
def test_hostile_text_never_raises(parts: list[str], times: int):
    """Empty, enormous, unprintable or foreign utterances are judged like any others."""
    talk = tuple(part * times for part in parts) * 2
    found = answer(FLOORS, unieval(*talk))
    assert found.verdict in unieval(*talk).choices
    assert len(found.reason) < 400
    assert found.reason.isprintable()


def sample() -> list[Utterances]:
    """The sample dialogues."""
    lines = (ROOT / "seeds" / "sample.jsonl").read_text("utf-8").splitlines()
    return [tuple(json.loads(line)["utterances"]) for line in lines]


def test_the_sample_set_is_rarely_accused():
    """With thresholds from one half of the sample dialogues, at most 8 % of the other half."""
    talks = sample()
    found = sum(len(accused(RulesJudge(talks[side::2]), talks[1 - side :: 2])) for side in (0, 1))
    assert found <= 0.08 * len(talks)


@pytest.fixture(scope="module")
def humans() -> list[Utterances]:
    """MuTual's 547 human dialogues as BotChat cleaned them."""
    openpyxl = pytest.importorskip("openpyxl")
    path = BOTCHAT / "MuTual_test.xlsx"
    if not path.exists():
        pytest.skip("MuTual_test.xlsx is not here")
    with closing(openpyxl.load_workbook(path, read_only=True)) as book:
        header, *rows = book.active.iter_rows(values_only=True)
    return [tuple(json.loads(row[header.index("conv-GT")])) for row in rows]


def examples(kind: str) -> list[Utterances]:
    """BotChat's labelled dialogues of one kind."""
    path = BOTCHAT / "examples" / f"{kind}.md"
    if not path.exists():
        pytest.skip("BotChat's labelled examples are not here")
    talks = []
    for block in re.split(r"^---\s*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        rows = re.findall(r"^\|\s*[AB]\s*\|(.*?)\|?\s*$", block, flags=re.MULTILINE)
        talks.append(tuple(row.strip().replace("<br>", "\n") for row in rows))
    return [talk for talk in talks if talk]


KINDS = "AISelf-Identification ContextualCofusion ExcessiveLength FormalTone RepetitivePhrasing"


@pytest.mark.parametrize("n", [547, 55, 0])
def test_the_labelled_examples_are_told_apart(n: int, humans: list[Utterances]):
    """Bad ones are accused, good ones not; with a tenth of the humans' thresholds, or none, too."""
    judge = RulesJudge(humans[:n])
    for kind in KINDS.split():
        bad = examples(kind)
        assert len(bad) == 2
        assert accused(judge, bad) == bad
    assert accused(judge, examples("GoodCases")) == []


def test_false_alarms_on_people(humans: list[Utterances]):
    """At most 6 % of those the thresholds come from, and of the half they do not come from.

    And 8 % of the sample dialogues.
    """
    assert len(humans) == 547
    assert len(accused(RulesJudge(humans), sample())) <= 0.08 * len(sample())
    assert len(accused(RulesJudge(humans), humans)) <= 0.06 * len(humans)
    shuffled = random.Random(7).sample(humans, len(humans))
    fitted, held_out = shuffled[:273], shuffled[273:]
    assert len(accused(RulesJudge(fitted), held_out)) <= 0.06 * len(held_out)
