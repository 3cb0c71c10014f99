"""The first sentence of a board claims what its comparisons say, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards import headline, judge_verdict
from botchat.boards.board import Board
from botchat.boards.files import as_json
from botchat.boards.names import is_floor_bot
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, Dialogue
from tests.judges import USELESS, Say, World, always

QUALITY = {"bot:parrot": 0.0, "mill": 0.3, "brook": 0.6, "weir": 0.95}


@pytest.fixture(scope="module")
def world() -> World:
    """Three models far apart and a script."""
    return World.of(24, QUALITY)


def prefers(order: Sequence[str], n_ties: Sequence[int] = ()) -> Say:
    """Names the later one in an order as the machine; ties at each N of ``n_ties``."""
    place = {name: i for i, name in enumerate((HUMAN, *order))}

    def say(protocol: Protocol, dialogues: Sequence[Dialogue]) -> str:
        if protocol.shows == "one":
            return "No"
        first, second = (place[one.contestant] for one in dialogues)
        return "both" if protocol.n in n_ties else "1" if first > second else "2"

    return say


def test_a_best_one_is_named(world: World) -> None:
    """Clearly better than both others; a judge beside it counts, and a copy of it does not."""
    board = world.board(world.ideal(), judge="one")
    found = headline.of(board)
    assert found.best == "weir"
    share = board.main.values("success_n16")["weir"]
    told = f"weir passes for human in {100 * share:.0f} of 100 chats of 16 lines"
    assert found.sentence == f"{told}. No other model is level with it."
    assert found.title == f"made-up: {told}"
    assert ("weir", True) in found.pieces
    assert found.scope == (
        "3 chat models and 1 script got the first two lines of 24 real conversations and went on "
        "alone, speaking both parts. A judge, one, read each one: people, or a machine, and from "
        "which line on?"
    )
    assert found.sure.startswith("weir is first with 95 % confidence over all places at once")
    other = world.board(world.ideal(seed=9), judge="two")
    assert headline.of(board, [other]).sure.endswith("The other judge also puts it first.")
    both = [other, world.board(prefers(["mill", "brook", "weir", "bot:parrot"]), judge="three")]
    assert "1 of 2 other judges also put it first." in headline.of(board, both).sure
    copy = world.board(world.ideal(), judge="copy")
    assert "other judge" not in headline.of(board, [copy]).sure
    compared = world.board(world.ideal(), [ARENA.at(16)])
    assert "weir is called more human than an average model " in headline.of(compared).sentence


def test_nobody_is_named_among_ties(world: World) -> None:
    """Exact ties, a coin, or nobody judged: no winner."""
    found = headline.of(world.board(USELESS["always tie"]))
    assert found.sentence == "Nobody leads: every comparison came out even."
    assert (found.best, found.title) == (None, "made-up: nobody leads")
    found = headline.of(world.board(USELESS["coin"]))
    assert found.best is None
    assert not any(name in found.title for name in QUALITY)
    nothing = World.of(2, QUALITY).board_of({})
    assert headline.of(nothing).sentence == "Nothing was judged yet."


def test_a_smaller_n_leads_where_it_separates(world: World) -> None:
    """At N = 16 all are ties."""
    order = ["weir", "brook", "mill", "bot:parrot"]
    board = world.board(prefers(order, [16]), [ARENA.at(8), ARENA.at(16)])
    found = headline.of(board)
    assert found.sentence.startswith("weir is called more human than an average model ")
    assert (found.n, found.best) == (8, "weir")
    assert "At 16 lines nobody is told apart: this is of the first 8." in found.sure


def test_floor_bots_are_no_models(world: World) -> None:
    """One that comes first is said to be one, and the best model is named."""
    found = headline.of(world.board(prefers(["bot:parrot", "weir", "brook", "mill"])))
    assert found.best == "weir"
    assert found.sentence.endswith(" The script bot:parrot is clearly ahead of every model.")
    assert found.title == "made-up: a script leads"
    bots = World.of(24, {"bot:parrot": 0.0, "bot:verbose": 0.5})
    found = headline.of(bots.board(bots.ideal()))
    assert found.best is None
    assert found.sentence.endswith(
        "bot:verbose is ahead of the other scripts; no model takes part."
    )


def test_too_few_claim_nothing() -> None:
    """19 seeds separate all models; of one model what it survives is said, with its interval."""
    small = World.of(19, QUALITY)
    board = small.board(small.ideal())
    found = headline.of(board)
    assert board.leading is not None
    assert board.leading.separates
    assert (found.best, found.title) == (None, "made-up: too few to say who is best")
    passes = headline.of(small.board(small.ideal(), [UNIEVAL]))
    assert passes.best is None
    assert passes.sentence.startswith("Fewer than 20 chats of each were judged")
    one = World.of(24, {"mill": 0.3})
    found = headline.of(one.board(one.ideal(), [UNIEVAL, GTEVAL]))
    assert found.sentence == (
        "One model, nothing to rank: mill passes for human in 0 of 100 chats of 16 lines."
    )
    assert found.title == "made-up: one model, nothing to rank"


def test_without_an_arena_passes_decide(world: World) -> None:
    """Named only where no other has the first place open."""
    board = world.board(world.ideal(), [UNIEVAL])
    found = headline.of(board)
    assert found.best == "weir"
    assert found.sentence.startswith("weir passes for human in ")
    assert board.main.values("rank_low")["brook"] > 1
    level = headline.of(world.board(always("No", "both"), [UNIEVAL]))
    assert level.best is None
    assert level.sentence.startswith(
        "All 3 models share first place. At best they pass for human in 100 of 100 chats"
    )
    assert level.sentence.endswith(" The script bot:parrot is level with the best.")


def test_what_is_not_finished_is_so_far(world: World) -> None:
    """Half of the Arena is judged."""
    said = world.judged(world.ideal())
    said["arena-n16"] = [
        one for i, one in enumerate(said["arena-n16"]) if one.seed_id != world.seeds[0].id or i % 2
    ]
    board = world.board_of(said)
    assert headline.unfinished(board)
    found = headline.of(board)
    assert found.sentence.startswith("So far weir passes for human in ")
    assert "of 288 comparisons are judged." in found.sure
    assert "so far, " in found.title


@pytest.fixture(scope="module")
def boards(world: World) -> list[Board]:
    """Of many judges."""
    says = [USELESS["coin"], USELESS["always tie"], world.ideal(), world.noisy(0.8)]
    return [world.board(say, judge=f"judge-{i}") for i, say in enumerate(says)]


@settings(max_examples=10)
@given(st.data())
def test_the_best_is_better_than_every_other_model(
    boards: list[Board], data: st.DataObject
) -> None:
    """Whatever other judges say: who is named is clearly better by this one's own ratings."""
    board = data.draw(st.sampled_from(boards))
    others = data.draw(st.lists(st.sampled_from(boards), max_size=3))
    found = headline.of(board, [other for other in others if other is not board])
    assert found.sentence == "".join(text for text, _ in found.pieces)
    assert len(found.title) < 80
    if found.best is not None:
        assert board.leading is not None
        fitted = board.leading.strengths.fitted
        better = fitted.clearly_better
        place = {name: i for i, name in enumerate(fitted.models)}
        for one, other in combinations(place, 2):
            if found.best in (one, other) and not {one, other} & {"bot:parrot"}:
                rest = other if one == found.best else one
                assert better[place[found.best], place[rest]]


@settings(max_examples=4)
@given(
    st.lists(st.sampled_from([0.0, 0.3, 0.6, 0.95]), min_size=4, max_size=4),
    st.sampled_from([*USELESS, "ideal", "noisy"]),
    st.sampled_from([(UNIEVAL, ARENA.at(16), GTEVAL), (UNIEVAL,), (GTEVAL,), (ARENA.at(16),)]),
)
def test_sentence_order_and_verdict_never_contradict(qualities, judge, protocols) -> None:
    """Who is named stands first in the table, or the bot above it is named; not by a bad judge."""
    world = World.of(20, dict(zip(QUALITY, qualities, strict=True)))
    says = {**USELESS, "ideal": world.ideal(), "noisy": world.noisy(0.8)}
    board = world.board(says[judge], protocols)
    told = as_json(board)
    sentence, rank = told["headline"], board.main.column(role="rank").of
    rows = [row for row in told["rows"] if row["model"] != HUMAN]
    trusted = told["judge"]["verdict"] != "do not trust"
    assert sentence.startswith("No ranking: this judge ") != trusted
    assert ("there is no order" in sentence) == (not rank)
    best = headline.of(board, verdict=judge_verdict.of(board)).best
    if best is not None:
        assert trusted
        above = [row["model"] for row in rows[: [row["model"] for row in rows].index(best)]]
        assert all(is_floor_bot(name) for name in above)
    first = rows[0]
    if is_floor_bot(first["model"]) and first.get("rank_high") == 1 and len(protocols) != 1:
        said = f"The script {first['model']} is clearly ahead of every model"
        assert said in sentence or not trusted


@pytest.mark.parametrize(
    ("judge", "fault"),
    [
        ("never accuses", "takes scripts that understand nothing for people"),
        ("always accuses", "takes people for machines"),
    ],
)
def test_a_failed_judge_takes_the_headline(world: World, judge: str, fault: str) -> None:
    """And the title; nobody is called best by it."""
    board = world.board(USELESS[judge])
    found = headline.of(board, verdict=judge_verdict.of(board))
    assert found.sentence == f"No ranking: this judge {fault}."
    assert found.title == f"made-up: No ranking: this judge {fault}"
    first = world.board(prefers(["bot:parrot", "weir", "brook", "mill"]))
    said = headline.of(first, verdict=judge_verdict.of(first)).sentence
    assert said == "No ranking: this judge puts scripts that understand nothing first."
