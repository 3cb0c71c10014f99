"""The first sentence of a board claims what its comparisons say, and no more."""

import dataclasses
import re
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from botchat.boards.board import Board
from botchat.boards.headline import headline
from botchat.boards.judge_checks import JudgeTrust, judge_trust
from botchat.boards.tables import is_floor_bot
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, SHUFFLED, Dialogue
from botchat.report.remarks import more_dialogues, protocol_agreement
from tests.judges import PROTOCOLS, USELESS, Judge, World, always
from tests.rows import rows

QUALITY = {"bot:parrot": 0.0, "mill": 0.3, "brook": 0.6, "weir": 0.95}


@pytest.fixture(scope="module")
def world() -> World:
    """Three models far apart and a bot."""
    return World.of(24, QUALITY)


def prefers(order: Sequence[str], n_ties: Sequence[int] = ()) -> Judge:
    """Calls the later one in an order AI; ties at each N of ``n_ties``."""
    place = {name: i for i, name in enumerate((HUMAN, *order, SHUFFLED))}

    def judge(protocol: Protocol, dialogues: Sequence[Dialogue]) -> str:
        if protocol.is_alone:
            return "No"
        first, second = (place[dialogue.contestant] for dialogue in dialogues)
        return "both" if protocol.n in n_ties else "1" if first > second else "2"

    return judge


def test_who_leads_and_how_it_is_put(world):
    """The sentence in pieces, the title, how far from human, and what was done."""
    board = world.board(world.ideal())
    heading = headline(board, judge_trust(board))
    wins, ties, losses = board.arenas[0].pair("weir", "brook")
    counts = f"won {wins}, tied {ties}, lost {losses}"
    assert wins > 40
    assert heading.sentence == f"weir leads clearly (next: brook, {counts})."
    assert ("weir", True) in [*heading.begin, *heading.rest]
    assert ("brook", True) in [*heading.begin, *heading.rest]
    assert heading.title == "made-up: weir leads clearly"
    assert heading.lead == (
        "24 dialogues are too few to say whether the judge tells weir from people."
    )
    assert heading.scope == "24 dialogues of made-up, 3 models, 1 bot, judge j."
    assert heading.leader == "weir"


@cache
def trust_of(n_seeds: int, qualities: tuple[tuple[str, float], ...]) -> JudgeTrust:
    """How far an ideal judge of such contestants is to be trusted."""
    world = World.of(n_seeds, dict(qualities))
    return judge_trust(world.board(world.ideal(), [UNIEVAL]))


ALL = ("weir", "brook", "mill")


@pytest.mark.parametrize(
    ("quality", "n_seeds", "judge", "protocols", "sentence", "leader"), rows("sentences_of_boards")
)
def test_the_sentence_of_each_kind_of_board(quality, n_seeds, judge, protocols, sentence, leader):
    """Whatever was judged, by whom, of how many."""
    world = World.of(n_seeds, quality)
    board = world.board_of({})
    if judge:
        judges = {"first": always("No", "1"), "nobody": always("No", "both")}
        known = prefers(*judge) if isinstance(judge, list) else judges.get(judge, world.ideal())
        parts = [each for each in (ARENA.at(8), *PROTOCOLS) if each.name in protocols]
        board = world.board(known, parts)
    heading = headline(board, trust_of(n_seeds, tuple(quality.items())))
    assert (heading.sentence, heading.leader) == (sentence, leader)
    short = (sentence.rpartition(" (")[0] or sentence).rstrip(".")
    assert heading.title == f"made-up: {short}"


def contrary(protocol: Protocol, dialogues: Sequence[Dialogue]) -> str:
    """Takes mill for AI, but weir next to humans."""
    names = [each.contestant for each in dialogues]
    if protocol.is_alone:
        return "3" if "mill" in names else "No"
    order = (
        ["weir", "brook", SHUFFLED, HUMAN, "mill"]
        if protocol.against_human
        else ["mill", "brook", "weir", SHUFFLED, HUMAN]
    )
    return str(1 + names.index(min(names, key=order.index)))


def board_by(quality: dict[str, float], judge: str, protocols: list[str]) -> Board:
    """A board of 24 seeds, by a judge of these names."""
    world = World.of(24, quality)
    judges = {"ideal": world.ideal(), "contrary": contrary, "nobody": always("No", "both")}
    return world.board(judges[judge], [each for each in PROTOCOLS if each.base in protocols])


@pytest.mark.parametrize(
    ("quality", "judge", "protocols", "usd", "line"), rows("what_more_dialogues_would_tell")
)
def test_what_more_dialogues_would_tell(quality, judge, protocols, usd, line):
    """Of models that are not ruled out, at the price until now."""
    board = board_by(quality, judge, protocols)
    assert more_dialogues(board, headline(board, judge_trust(board)).leader, usd) == line


@pytest.mark.parametrize(("quality", "judge", "protocols", "end"), rows("whether_protocols_agree"))
def test_whether_protocols_agree(quality, judge, protocols, end):
    """Three protocols on three models; bots are none."""
    line = protocol_agreement(board_by(quality, judge, protocols))
    assert line == (end and f"Three protocols on {end}")


@pytest.mark.parametrize(
    ("n_topics", "start", "is_ranked"),
    [(8, "weir leads clearly", True), (2, "Too few topics to rank: below 3.", False),
     (1, "Too few topics to rank: below 3.", False)],
)  # fmt: skip
def test_topics_are_not_dialogues(world, n_topics, start, is_ranked):
    """Twenty-four dialogues are enough, of how few topics ever; of two there is no rank."""
    seeds = [replace(seed, topic=f"t{i % n_topics}") for i, seed in enumerate(world.seeds)]
    of_topics = dataclasses.replace(world, seeds=seeds)
    board = of_topics.board(prefers([*ALL, "bot:parrot"]), (ARENA.at(16),))
    trusted = judge_trust(of_topics.board(world.ideal(), [UNIEVAL]))
    assert headline(board, trusted).sentence.startswith(start)
    assert board.main.frame["rank"].notna().all() == is_ranked
    by_ideal = judge_trust(of_topics.board(of_topics.ideal()))
    assert (by_ideal.level, by_ideal.checks[-1].state) == ("no fault found", "passes")


def test_an_imported_model_is_expected_on_its_own_dialogues(world):
    """Everything is judged: nothing is missing of anybody, and no note says so."""
    imported = {id_: replace(d, signature="imported:1") for id_, d in
                [*world.dialogues["mill"].items()][:12]}  # fmt: skip
    half = dataclasses.replace(world, dialogues={**world.dialogues, "mill": imported})
    judgments = {name: [j for j in each if "mill" not in j.contestants or j.seed_id in imported]
                 for name, each in world.judgments(world.ideal()).items()}  # fmt: skip
    board = half.board_of(judgments)
    assert (board.main.frame["coverage"] == 1).all()
    assert not any("comparisons were judged" in note for note in board.notes)
    fewer = {name: each[:-40] for name, each in judgments.items()}
    assert any("comparisons were judged" in note for note in half.board_of(fewer).notes)


def test_a_failed_judge_takes_the_headline(world):
    """And the title; it makes nobody the leader."""
    board = world.board(USELESS["never accuses"])
    heading = headline(board, judge_trust(board))
    assert heading.title == "made-up: No ranking: the judge does not notice shuffled dialogues"
    assert heading.leader is None


@settings(max_examples=5)
@given(
    st.lists(st.sampled_from([0.0, 0.3, 0.6, 0.95]), min_size=4, max_size=4),
    st.sampled_from([*USELESS, "ideal", "noisy"]),
    st.sampled_from([(UNIEVAL, ARENA.at(16), GTEVAL), (UNIEVAL,), (GTEVAL,), (ARENA.at(16),)]),
)
def test_sentence_table_and_trust_never_contradict(qualities, judge, protocols):
    """The leader stands first of the models; who is not ruled out may have the first rank."""
    world = World.of(20, dict(zip(QUALITY, qualities, strict=True)))
    judges = {**USELESS, "ideal": world.ideal(), "noisy": world.noisy(0.8)}
    board = world.board(judges[judge], protocols)
    trust = judge_trust(board)
    heading = headline(board, trust)
    assert len(heading.title) < 90
    is_trusted = trust.level != "do not trust"
    assert heading.sentence.startswith("No ranking: ") != is_trusted
    if not is_trusted:
        assert heading.leader is None
        return
    models = [name for name in board.main.frame["model"]
              if name != HUMAN and not is_floor_bot(name)]  # fmt: skip
    assert heading.leader == models[0]
    part = board.leading or board.ranked_by
    assert part is not None
    open_ = [name for name, may in zip(models, part.may_be_best(models), strict=True) if may][1:]
    assert ("leads clearly" in heading.sentence) == (not open_)
    if len(board.leaders) == 1:
        rivals = heading.sentence.partition("; ")[2].partition(" (")[0]
        assert re.findall("|".join(models), rivals) == open_
