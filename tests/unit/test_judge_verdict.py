"""Judges of which it is known what they are worth get the word that they deserve."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards import judge_verdict
from botchat.boards.board import Board
from botchat.boards.judge_verdict import RULES, JudgeVerdict
from botchat.boards.names import is_floor_bot
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL, Catalogue
from botchat.protocols.protocol import Protocol
from botchat.protocols.scores import Scale
from tests.judges import USELESS, World, renamed

MODELS = {f"model-{i:02}": 0.25 + 0.06 * i for i in range(5)}
OWN = Protocol(
    "warmth",
    "Warmth",
    "score",
    "one",
    "how warm?",
    template="{conversation}",
    scale=Scale(1, 5, ("warmth",)),
)


@pytest.fixture(scope="module")
def world() -> World:
    """Seven contestants, two of them floor bots, on 25 seeds."""
    return World.of(25, {"bot:verbose": 0.0, "bot:parrot": 0.0, **MODELS})


@pytest.fixture(scope="module")
def ideal(world: World) -> Board:
    """What an ideal judge says."""
    return world.board(world.ideal(), judge="ideal")


@pytest.fixture(scope="module")
def second(world: World) -> Board:
    """Another one, whose slips are its own."""
    return world.board(world.ideal(seed=9), judge="second")


def states(verdict: JudgeVerdict) -> dict[str, str]:
    """Check -> its state."""
    return {check.key: check.state for check in verdict.checks}


@pytest.mark.parametrize("name", USELESS)
def test_a_useless_judge_is_not_trusted(world: World, ideal: Board, name: str) -> None:
    """Never, always, coin, first, second, tie; beside an ideal judge, and alone."""
    board = world.board(USELESS[name])
    for others in ([], [ideal]):
        found = judge_verdict.of(board, others)
        assert (found.word, bool(found.reasons)) == ("do not trust", True)
    # Nor does it make the ideal one better: what fails by itself is no second opinion.
    assert judge_verdict.of(ideal, [board]).word == "with care"


def test_never_accusing_is_no_perfect_card(world: World) -> None:
    """No person accused and the same in both orders, and still each of its faults is said."""
    found = states(judge_verdict.of(world.board(USELESS["never accuses"])))
    assert found["people_accused"] == "passes"
    assert found["same_winner"] == "unknown"  # two ties are no evidence
    for key in ("bots_caught", "machine_picked", "ties", "best_floor_bot"):
        assert found[key] == "fails"


def test_an_ideal_judge_is_trusted_beside_a_second_one_only(ideal: Board, second: Board) -> None:
    """Alone there is nobody to say that its order of the models is right."""
    assert judge_verdict.of(ideal, [second]).word == "trust"
    alone = judge_verdict.of(ideal)
    assert (alone.word, len(alone.reasons)) == ("with care", 1)
    assert "second judge" in alone.reasons[0]


def test_people_make_up_for_a_second_judge(ideal: Board) -> None:
    """By the interval of kappa, never by kappa itself."""
    for low, high, word in (
        (0.4, 0.7, "trust"),
        (0.1, 0.9, "with care"),
        (-0.2, 0.05, "do not trust"),
    ):
        row = {"kappa": (low + high) / 2, "kappa_low": low, "kappa_high": high}
        assert judge_verdict.of(ideal, people=row).word == word


def test_a_mirror_is_no_second_opinion(world: World, ideal: Board) -> None:
    """The same verdicts under another name, but for one in two hundred."""
    rng, said = random.Random(5), world.judged(world.ideal())
    copied = {
        name: [
            one if rng.random() > 0.005 else one.__class__(**{**_fields(one), "verdict": None})
            for one in made
        ]
        for name, made in renamed(said, "mirror").items()
    }
    mirror = world.board_of(copied, "mirror")
    for one, other in ((ideal, mirror), (mirror, ideal)):
        found = judge_verdict.of(one, [other])
        assert found.word == "with care"
        assert f"{other.judge} gives the same verdicts" in found.reasons[-1]
        assert states(found)["other_judges"] == "unknown"


def _fields(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__struct_fields__}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("share", "worst"), [(0.25, "with care"), (0.9, "do not trust")])
def test_a_noisy_judge_is_never_trusted(
    world: World, ideal: Board, share: float, worst: str
) -> None:
    """A coin for a quarter of its verdicts, and for nine in ten."""
    assert judge_verdict.of(world.board(world.noisy(share)), [ideal]).word == worst


def test_the_rules_see_form_only() -> None:
    """They catch the floor bots, which were made to trip them."""
    small = World.of(20, {"bot:parrot": 0.0, "one": 0.3, "two": 0.6})
    said = small.judged(small.rules())
    found = judge_verdict.of(small.board_of(said, "rules"), [small.board(small.ideal())])
    assert found.word != "trust"
    assert any("form" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    "protocols",
    [(UNIEVAL,), (ARENA.at(16),), (GTEVAL,), (UNIEVAL, GTEVAL)],
    ids=["unieval", "arena", "gteval", "no arena"],
)
def test_one_protocol_alone(world: World, protocols: Sequence[Protocol]) -> None:
    """What was not asked is not known, and a useless judge is seen all the same."""
    found = judge_verdict.of(world.board(world.ideal(), protocols))
    unknown = {key for key, state in states(found).items() if state == "unknown"}
    assert found.word == "with care"
    if protocols == (ARENA.at(16),):
        assert {"people_accused", "machine_picked"} <= unknown
    else:
        assert "best_floor_bot" in unknown
    assert judge_verdict.of(world.board(USELESS["never accuses"], protocols)).word == "do not trust"


def test_nothing_known_was_asked(world: World) -> None:
    """A criterion of one's own says nothing about who wrote what."""
    catalogue = Catalogue((UNIEVAL, ARENA, GTEVAL, OWN))
    found = judge_verdict.of(world.board(lambda *_: "4", [OWN], catalogue=catalogue))
    assert found.word == "not tested"
    assert {state for key, state in states(found).items() if key != "own_model"} == {"unknown"}
    assert "nothing that has a known answer" in found.reasons[0]


@pytest.mark.parametrize("quality", [MODELS, {"model-01": 0.5}], ids=["no bot", "one model"])
def test_without_a_floor_bot_no_judge_is_trusted(quality: dict[str, float]) -> None:
    """What it would let pass is not known, however well it does on models."""
    small = World.of(25, quality)
    found = judge_verdict.of(small.board(small.ideal()), [small.board(small.ideal(seed=9))])
    assert found.word == "with care"
    assert any("No script" in reason for reason in found.reasons)
    assert {"machines_caught"} <= states(found).keys()


def test_no_judge_is_trusted_below_20_people() -> None:
    """19 human conversations pass every line by their interval, and still are too few."""
    small = World.of(19, {"bot:parrot": 0.0, **MODELS})
    ideal = small.board(small.ideal())
    found = judge_verdict.of(ideal, [small.board(small.ideal(seed=9))])
    assert judge_verdict.of(small.board_of({}), [ideal]).word == "not tested"
    assert found.word == "with care"
    assert any("19 human conversations" in reason for reason in found.reasons)


def test_judges_who_contradict_each_other() -> None:
    """Of two that pass everything else, and turn the models' order round, neither is trusted."""
    world = World.of(25)
    straight = world.ideal(seed=3)

    def turned(protocol: Protocol, dialogues: Sequence[object]) -> str | None:
        names = [one.contestant for one in dialogues]  # type: ignore[attr-defined]
        said = straight(protocol, dialogues)  # type: ignore[arg-type]
        models_only = protocol.shows == "pair" and not any(map(is_floor_bot, names))
        return {"1": "2", "2": "1"}.get(said or "", said) if models_only else said

    other = world.board(turned, judge="turned")
    found = judge_verdict.of(world.board(world.ideal(), judge="ideal"), [other])
    assert states(found)["other_judges"] == "fails"
    assert found.word == "do not trust"


def test_every_line_of_the_card_says_what_a_good_judge_does(ideal: Board, world: World) -> None:
    """More is better in each number that is drawn; a good judge's are higher than a useless one's.

    ``first_preferred`` is good in the middle.
    """
    good, bad = ideal, world.board(USELESS["always accuses"])
    drawn = [
        {check.key: check.well for check in judge_verdict.of(board).checks if check.well}
        for board in (good, bad)
    ]
    assert {"people_accused", "ties", "unreadable_rate", "bots_caught"} <= drawn[0].keys()
    for key in (drawn[0].keys() & drawn[1].keys()) - {"first_preferred", "best_floor_bot"}:
        value, low, high = drawn[0][key]
        assert low <= value <= high
        assert value >= drawn[1][key][0]
    (alone,) = (c for c in judge_verdict.of(good).checks if c.key == "people_accused")
    assert (alone.name, alone.number) == ("Leaves people alone", "25 of 25")
    assert alone.value == 0


@given(
    st.text(max_size=60),
    st.lists(st.text(st.characters(categories=["L", "Nd", "Zs"]), max_size=50), max_size=6),
    st.sampled_from(["trust", "with care", "do not trust"]),
)
def test_the_line_fits_a_terminal(judge: str, short: list[str], word: str) -> None:
    """80 columns, however many reasons and however long the name."""
    line = JudgeVerdict(word, short, (), short).line(judge)  # type: ignore[arg-type]
    assert len(line) <= 80
    assert word in line


@given(st.sampled_from(sorted(RULES)), st.floats(0, 1), st.floats(0, 1))
def test_a_wider_interval_never_says_more(key: str, value: float, more: float) -> None:
    """From a point to everything: what fails or passes becomes a warning, and nothing else."""
    rule, state = RULES[key], partial(judge_verdict._state, RULES[key])
    point, wider = state(value, value), state(max(0, value - more), min(1, value + more))
    assert wider in (point, "warns")
    assert state(-1, 1 + 1e-9) == "warns"
    assert rule.passes is not None
