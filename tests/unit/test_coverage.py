"""Coverage: every case without a readable verdict is counted once, by what it lacks first."""

from __future__ import annotations

import random

from botchat.boards.coverage import Gaps, of_pairs, of_single
from botchat.boards.protocols import Evidence
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.records import HUMAN, Dialogue, Seed
from botchat.verdicts import Verdicts
from tests.boards import Made, judgment, made


def dialogue(model: str, seed_id: str, n: int) -> Dialogue:
    """A dialogue of ``n`` utterances."""
    lines = tuple(f"Line {i} of {model}." for i in range(n))
    return Dialogue(seed_id, model, lines, 2, (), "complete", "")


def seeds_of(*lengths: int) -> list[Seed]:
    """A set with human dialogues of these lengths: ``S-0``, ``S-1`` ..."""
    return [Seed(f"S-{i}", tuple(f"Line {k}." for k in range(n))) for i, n in enumerate(lengths)]


def with_human(seeds: list[Seed], **models: dict[str, int]) -> dict[str, dict[str, Dialogue]]:
    """Dialogues of models, given as seed id -> length, and of people."""
    lengths = {HUMAN: {seed.id: len(seed.utterances) for seed in seeds}, **models}
    return {
        name: {seed_id: dialogue(name, seed_id, n) for seed_id, n in of.items()}
        for name, of in lengths.items()
    }


def test_each_way_to_be_missing_in_unieval() -> None:
    """No dialogue, one that stopped before N unaccused, one not judged, one answer unreadable."""
    seeds = seeds_of(2, 2, 2, 2, 2, 2)
    dialogues = with_human(seeds, a={"S-1": 6, "S-2": 16, "S-3": 16, "S-4": 6, "S-5": 16})
    said = {"S-1": "No", "S-3": None, "S-4": "5", "S-5": "No"}
    made = [judgment("unieval", seed_id, ("a",), verdict) for seed_id, verdict in said.items()]
    judged = Evidence(UNIEVAL, made, Verdicts.of([], UNIEVAL))
    assert of_single(seeds, dialogues, judged, 16) == {
        "a": Gaps(no_dialogue=1, too_short=1, not_judged=1, unreadable=1)
    }
    assert of_single(seeds, dialogues, judged) == {
        "a": Gaps(no_dialogue=1, not_judged=1, unreadable=1)
    }


def test_each_way_to_be_missing_in_the_arena() -> None:
    """Both contestants carry what one of them lacks, in both orders unless one was judged."""
    seeds = seeds_of(4, 4, 4, 4, 3)
    dialogues = with_human(
        seeds,
        a={"S-1": 16, "S-2": 16, "S-3": 16, "S-4": 16},
        b={"S-0": 16, "S-1": 9, "S-2": 16, "S-3": 16, "S-4": 16},
    )
    made = Verdicts.of(
        [
            judgment("arena-n16", "S-2", ("a", "b"), "1"),
            judgment("arena-n16", "S-3", ("a", "b"), "both"),
            judgment("arena-n16", "S-3", ("b", "a"), None),
        ],
        ARENA,
    )
    lacking = Gaps(no_dialogue=2, too_short=2, not_judged=1, unreadable=1)
    assert of_pairs(ARENA.at(16), seeds, dialogues, made) == {"a": lacking, "b": lacking}


def test_beside_people_a_model_needs_their_length_only() -> None:
    """GTEval cuts to the human dialogue; people lack nothing of their own."""
    seeds = seeds_of(4, 9, 5)
    dialogues = with_human(seeds, a={"S-0": 6, "S-1": 6, "S-2": 6}, b={"S-0": 6})
    made = Verdicts.of(
        [
            judgment("gteval", "S-0", ("a", HUMAN), "1", 4),
            judgment("gteval", "S-0", (HUMAN, "b"), None, 4),
        ],
        GTEVAL,
    )
    assert of_pairs(GTEVAL, seeds, dialogues, made) == {
        "a": Gaps(no_dialogue=0, too_short=2, not_judged=3, unreadable=0),
        "b": Gaps(no_dialogue=4, too_short=0, not_judged=1, unreadable=1),
    }


def test_what_is_missing_is_counted_by_what_it_lacks() -> None:
    """On every row of the coverage table, whatever was not made, cut, judged or read."""
    rng = random.Random(0)
    whole = made({"a": 0.9, "b": 0.5}, 8, arena=(8,), unreadable=0.3)
    for _ in range(3):
        dialogues = {
            name: {
                i: one if name == HUMAN else dialogue(name, i, rng.choice([3, 8, 16]))
                for i, one in by.items()
                if name == HUMAN or rng.random() < 0.7
            }
            for name, by in whole.dialogues.items()
        }
        judged = {
            name: [
                one
                for one in said
                if all(one.seed_id in dialogues[who] for who in one.contestants)
                and rng.random() < 0.7
            ]
            for name, said in whole.judgments.items()
        }
        board = Made(whole.seeds, dialogues, judged).board()
        assert board.coverage is not None
        for row in board.coverage.records:
            lacks = [row[key] for key in ("no_dialogue", "too_short", "not_judged", "unreadable")]
            assert sum(lacks) == row["missing"]


def test_a_board_says_what_it_lacks() -> None:
    """In one sentence, every case counted once; protocols that lack nothing are not in it."""
    seeds = seeds_of(4, 4)
    dialogues = with_human(seeds, a={"S-0": 8, "S-1": 8}, b={"S-0": 8})
    judged = [judgment("arena-n8", "S-0", pair, "1", 8) for pair in (("a", "b"), ("b", "a"))]
    single = [judgment("unieval", i, ("a",), v, 8) for i, v in (("S-0", "No"), ("S-1", "7"))]
    beside = [judgment("gteval", "S-0", ("a", HUMAN), None, 4)]
    made = {"arena-n8": judged, "unieval": single, "gteval": beside}
    assert [note for note in Made(seeds, dialogues, made).board().notes if "Cases" in note] == [
        "Cases without a readable verdict: arena-n8 2 of 4 (2 not generated); "
        "gteval 4 of 4 (3 not judged, 1 unreadable)."
    ]
