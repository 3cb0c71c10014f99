"""What stands under a board's first sentence has the sign, the share and the silence it should."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from botchat.boards.headline import headline
from botchat.boards.judge_checks import Beside, judge_trust
from botchat.boards.skill import SkillCases
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.protocol import Protocol
from botchat.records import Dialogue
from botchat.report.remarks import judge_remarks, stopped_remarks
from tests.judges import Judge, World, always
from tests.rows import rows

ARENA16 = ARENA.at(16)


@pytest.fixture(scope="module")
def world() -> World:
    """Three models far apart, the worse the longer, and a bot."""
    return World.of(24, {"bot:parrot": 0.0, "mill": 0.3, "brook": 0.6, "weir": 0.95})


def by_length(sign: int, quality: float = 0.0) -> Judge:
    """Calls the longer one AI (1) or the shorter one (-1), less often where it is south's."""
    rng = random.Random(1)

    def judge(_: Protocol, dialogues: Sequence[Dialogue]) -> str:
        first, second = (math.log(len(" ".join(each.utterances))) for each in dialogues)
        for_south = [quality * (each.contestant == "south") for each in dialogues]
        lead = sign * (first - second) - for_south[0] + for_south[1] + quality * rng.gauss(0, 0.3)
        return "1" if lead > 0 else "2"

    return judge


@pytest.mark.parametrize(
    ("judge", "lines"),
    [
        (by_length(1), ["The longer dialogue is called AI in 100 % of decided pairs."]),
        (by_length(-1), []),
        (always("No", "both"), []),
    ],
    ids=["longer", "shorter", "nobody"],
)
def test_which_dialogue_is_called_ai_by_its_length(world, judge, lines):
    """A result where it is the longer one, which the paper's prompt counts against a dialogue."""
    board = world.board(judge, (ARENA16,))
    assert judge_remarks(board, None) == lines


@pytest.mark.parametrize(("quality", "leads"), [(0.5, True), (0.0, False)])
def test_who_leads_at_equal_length(quality, leads):
    """North, whose dialogues are shorter, leads; south would, if it is better at equal length."""
    world = World.of(60, {"north": 0.95, "south": 0.6})
    board = world.board(by_length(1, quality), (ARENA16,))
    assert board.leaders == ["north"]
    assert ("At equal length south leads." in judge_remarks(board, "north")) == leads


@pytest.mark.parametrize(
    ("n_stopped", "verdict", "lines"), rows("between_what_ends_a_rate_is_where_dialogues_stopped")
)
def test_between_what_ends_a_rate_is_where_dialogues_stopped(world, n_stopped, verdict, lines):
    """The rate if all that stopped early were AI, and if none were; silent up to one in twenty."""
    judged = world.judgments(always("No", "1"), (UNIEVAL,))["unieval"]
    of_mill = [each for each in judged if each.contestants == ("mill",)]
    stopped = [replace(each, shown=8, verdict=verdict) for each in of_mill[:n_stopped]]
    others = [each for each in judged if each not in of_mill[:n_stopped]]
    assert stopped_remarks(world.board_of({"unieval": stopped + others})) == lines


@pytest.mark.parametrize(("word", "line"), rows("how_the_leader_stands_beside_people"))
def test_how_the_leader_stands_beside_people(world, word, line):
    """By the word for the whole interval; the ceiling is told beside the shuffled dialogues."""
    board = world.board(world.ideal(), (GTEVAL, ARENA16))
    values = np.array([1.0, 1.0, -1.0, 0.0])
    cases = SkillCases(values, ["a", "b", "c", "d"], {}, values > 0, values < 0)
    trust = judge_trust(board)._replace(leader=Beside("weir", cases, word))
    assert headline(board, trust).lead == line


@pytest.mark.parametrize(
    ("verdict", "people"), [("No", ", people in 100"), (None, "")], ids=["judged", "unreadable"]
)
def test_at_the_human_length_people_stand_beside_the_leader(world, verdict, people):
    """UniEval alone: both at the human dialogue's length, people as far as they were judged."""
    judged = world.judgments(world.ideal(), (UNIEVAL,))["unieval"]
    human = [replace(each, verdict=verdict) for each in judged if each.contestants == ("human",)]
    others = [each for each in judged if each.contestants != ("human",)]
    board = world.board_of({"unieval": human + others})
    trust = judge_trust(world.board(world.ideal(), (UNIEVAL,)))
    lead = f"Cut to the human dialogue's length weir passes in 100 of 100 dialogues{people}."
    assert headline(board, trust).lead == lead
