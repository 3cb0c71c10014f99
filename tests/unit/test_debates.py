"""Anatomy of debates: judges of whom it is known what moves them, and by how much."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re

import msgspec
import pytest

from botchat.boards import debates
from botchat.boards.judge_agreement import Findings
from botchat.judges.panel import build_panel
from botchat.measures.annotations import Opinions
from botchat.protocols.catalogue import ARENA
from botchat.protocols.items import ANSWERS, AnswerPair, pair_cases, pair_labels
from botchat.records import Judgment, Remark
from botchat.report.figures import agreement as figures
from botchat.workspace.panels import FEEDBACK, PRESETS, SUMMARIZER, DebateSettings
from tests.scripted import Scripted
from tests.unit.test_controls import judgment

_SAID = re.compile(r"^\[(?P<who>[\w ]+)\]: I weigh (\S+) and (\S+)\.\n.*: (\S+)\n.*: (\S+)$", re.M)
_ME = re.compile(r"short and clear, ([\w ]+) !")


def member(verdict: float, evidence: float, noise: float = 0.3):
    """Opens by what it sees; then it moves so far to others' verdicts and to what they weigh."""

    def say(prompt: str) -> str:
        me = _ME.search(prompt)[1]
        question = re.search(r"quality (\S+) (\S+)", prompt)
        seed = hashlib.sha256(f"{me}{question[0]}".encode()).digest()
        seen = random.Random(seed)
        own = [min(10, max(1, float(q) + seen.gauss(0, 1.5))) for q in question.groups()]
        said = {m["who"]: [*map(float, m.groups()[1:])] for m in _SAID.finditer(prompt)}
        weigh, before = own, said.pop(me, None)
        if before and said:
            own = before[2:]
            mean = [sum(one[i] for one in said.values()) / len(said) for i in range(4)]
            own = [
                was + evidence * (mean[i] - was) + verdict * (mean[2 + i] - was)
                + seen.gauss(0, noise)
                for i, was in enumerate(own)
            ]  # fmt: skip
        one, two = own
        return (
            f"I weigh {weigh[0]:.3f} and {weigh[1]:.3f}.\n"
            f"Score of Assistant 1: {one:.3f}\nScore of Assistant 2: {two:.3f}"
        )

    return say


def talked(settings, say, n=100):
    """Judgments of n questions in both orders, and people, who prefer the better answer."""
    rng = random.Random(1)
    pairs = []
    for i in range(n):
        one, two = rng.uniform(3, 8), rng.uniform(3, 8)
        answers = f"quality {one:.3f} {two:.3f}", "as told there"
        label = "1" if one > two else "2"
        pairs.append(AnswerPair(f"q{i}", "Which?", ("a", "b"), answers, label))
    makes = [make for i, make in enumerate(pair_cases(pairs)) if i % 2 == 0]
    model = Scripted(say, name="m")
    panel = build_panel("p", settings, lambda _: model, "m").among(makes)
    made = []
    for make in makes:
        case = make()
        answer = asyncio.run(panel.answer(case))
        made.append(
            Judgment(
                "answers", case.seed_id, case.contestants, "p", answer.verdict, "", 2, case.digest,
                "s", transcript=answer.transcript, calls=answer.calls,
            )
        )  # fmt: skip
    grid = Opinions.of(pair_labels(pairs), "human")
    strategy = settings.strategy.startswith("simultaneous")
    return debates.rows("p", made, ANSWERS, debates.truth_of(grid), at_once=strategy), model


STRATEGIES = ("one-by-one", "simultaneous-talk")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_judge_that_moves_two_fifths_of_the_way_is_found_to(strategy):
    """Of all members and of each; who is right more often in the end is counted as it is."""
    agents = ("general-public", "critic", "news-author")
    (everybody, *members), _ = talked(
        DebateSettings(strategy=strategy, agents=agents), member(0.4, 0.0)
    )
    assert everybody["toward"] == pytest.approx(0.40, abs=0.015)
    assert everybody["toward_low"] < 0.4 < everybody["toward_high"]
    assert everybody["toward_high"] - everybody["toward_low"] < 0.06
    assert [one["spoke"] for one in members] == [1, 2, 3]
    assert sum(one["n"] for one in members) == everybody["n"] == 300
    gained = everybody["wrong_to_right"] - everybody["right_to_wrong"]
    assert gained > 0
    assert gained == pytest.approx(300 * (everybody["last_right"] - everybody["first_right"]))
    found = Findings(
        subject="made up", truth="people", signature="s", debates=(everybody, *members)
    )
    (said,) = found.talk
    assert f"{everybody['wrong_to_right']} from wrong to right" in said
    assert f"(General Public, who speaks first: {members[0]['wrong_to_right']} and" in said
    (figure,) = figures.draw(found)
    assert figure.name == "debates-turns"
    assert "300 votes" in figure.caption


PLACEBOS = {"placebo-swapped-verdicts": (0.3, 0.2), "placebo-another-question": (0.5, 0.0)}
"""A judge of whom a verdict moves .3 and an argument .2: both are another question's there."""


@pytest.mark.parametrize("preset", PLACEBOS)
def test_placebos_tell_a_verdict_from_its_evidence(preset):
    """Both slopes, whatever the votes' noise; openings are asked once, for both uses."""
    plain = msgspec.structs.replace(PRESETS[preset], position_calibration=False)
    (everybody, *_), model = talked(plain, member(0.3, 0.2, noise=0.1))
    for name, slope in zip(("verdict_slope", "evidence_slope"), PLACEBOS[preset], strict=True):
        assert everybody[f"{name}_low"] - 0.02 < slope < everybody[f"{name}_high"] + 0.02
        assert everybody[name] == pytest.approx(slope, abs=0.05)
    assert len({*model.prompts}) == 6 * 100


def test_votes_that_are_only_noise_move_toward_others_and_not_by_what_was_told():
    """The reason for placebos: regression to the mean is no influence."""

    def again(prompt: str) -> str:
        noise = random.Random(prompt)
        one, two = (noise.uniform(1, 10) for _ in range(2))
        return f"I weigh 5 and 5.\nScore of Assistant 1: {one:.3f}\nScore of Assistant 2: {two:.3f}"

    plain = msgspec.structs.replace(PRESETS["placebo-another-question"], position_calibration=False)
    (everybody, *_), _ = talked(plain, again)
    assert everybody["toward_low"] > 0.5
    assert everybody["verdict_slope_low"] < 0 < everybody["verdict_slope_high"]


def turn(speaker, vote):
    """A remark."""
    return Remark(speaker, "said", "k", "ok", vote)


def test_a_report_that_overrules_its_discussion_is_a_row_of_its_own():
    """Reflections are part of a turn, feedback is nobody's, no vote is no turn."""
    talk = [turn("A", "1"), turn("A", "2"), turn("B", "1"), turn(FEEDBACK, None)]
    talk += [turn("A", "2"), turn("B", "2"), turn("C", None), turn(SUMMARIZER, "1")]
    made = [judgment(talk, "1"), judgment([turn("A", None), *talk[2:]], "2")]
    truth = {("s1", "a", "b"): "1"}
    found = debates.rows("p", made, ARENA.at(4), truth, at_once=False)
    by = {row["member"]: row for row in found}
    assert [*by] == [debates.EVERYBODY, "A", "B", debates.CLOSING]
    assert (by["A"]["n"], by["B"]["n"]) == (1, 2)
    assert (by["A"]["moved"], by["B"]["moved"]) == (0.0, 1.0)
    # "1" accuses the first, so who is right says 2.
    assert (by["B"]["wrong_to_right"], by["B"]["right_to_wrong"]) == (2, 0)
    closing = by[debates.CLOSING]
    assert (closing["n"], closing["moved"], closing["right_to_wrong"]) == (2, 0.5, 1)
    assert closing["spoke"] is None
