"""Models that know a set, and models that answer to the point."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from scipy import stats

from botchat.boards import headline
from botchat.languages import ENGLISH, built_in
from botchat.languages.text import known_words
from botchat.measures.memory import _at_least, _runs, memory
from botchat.records import Dialogue, Seed
from tests.judges import World

WORDS = [f"word{n}" for n in range(300)]


def talk(rng, n=4, length=9):
    """Utterances of common words, as unlike each other as chance has it."""
    return tuple(" ".join(rng.sample(WORDS, k=length)) for _ in range(n))


def set_of(n=120, seed=0):
    """Seeds with human dialogues."""
    rng = random.Random(seed)
    return [Seed(f"s{i}", talk(rng)) for i in range(n)]


def openings(dialogues, language=ENGLISH):
    """Words of what is compared."""
    split = known_words(language).split
    return {i: tuple(split(text) for text in texts[:3]) for i, texts in dialogues.items()}


def beside(seeds, third, language=ENGLISH):
    """What is known of a model whose third utterance on each seed is ``third(seed)``."""
    people = openings({one.id: one.utterances for one in seeds}, language)
    said = openings({one.id: (*one.utterances[:2], third(one)) for one in seeds}, language)
    return memory(said, people, language)


def test_what_is_said_again_is_found_and_named():
    """Six of 120, two of them with a word changed and more behind; in order of their names."""
    seeds, rng = set_of(), random.Random(1)
    known = {"s3", "s17", "s40", "s41", "s99", "s100"}

    def third(one):
        if one.id in ("s3", "s17"):
            first, *_, last = words = one.utterances[2].split()
            return " ".join([*words[:4], "umbrella", *words[5:], "and so on", first, last])
        return one.utterances[2] if one.id in known else talk(rng)[0]

    found = beside(seeds, third)
    assert (found.n, found.seeds) == (120, ("s3", "s17", "s40", "s41", "s99", "s100"))
    assert found.share == pytest.approx(6 / 120, abs=0.002)
    assert found.p < 0.01


@pytest.mark.parametrize(
    ("third", "seeds"),
    [
        (lambda one: one.utterances[1], ()),
        (lambda one: " ".join(one.utterances[:2]), ()),
        (lambda one: one.utterances[3], ()),
        (lambda one: " ".join(one.utterances[2].split()[::-1]), ()),
        (lambda one: one.utterances[2] if one.id in ("s5", "s6") else "No.", ("s5", "s6")),
    ],
)
def test_an_echo_another_line_and_two_coincidences_are_no_memory(third, seeds):
    """The ChatSEED said again, people's later lines, the same words in another order."""
    found = beside(set_of(), third)
    assert (found.seeds, found.p > 0.01) == (seeds, True)
    assert found.p > 0.05 or seeds


def test_what_was_said_before_is_no_run_to_its_last_word():
    """Words of an utterance that stand together in no earlier one."""
    assert [*_runs(("abcd", "bcde"), 3)] == [(1, ("c", "d", "e"))]


def test_what_everybody_says_is_met_on_every_seed():
    """A closing that half of the people say is no knowledge of any seed."""
    seeds = [
        replace_third(one, "Well, thank you very much for your help.") if i % 2 else one
        for i, one in enumerate(set_of())
    ]
    found = beside(seeds, lambda _: "Well, thank you very much for your help.")
    assert len(found.seeds) == 60
    assert (found.share, found.p) == (pytest.approx(0, abs=0.01), pytest.approx(1, abs=0.1))


def replace_third(seed, text):
    """A seed whose people go on otherwise."""
    return Seed(seed.id, (*seed.utterances[:2], text, *seed.utterances[3:]))


def test_characters_are_words_where_blanks_part_none():
    """Chinese: runs and lengths are twice as long."""
    rng = random.Random(2)
    chinese = built_in()["zh"]
    signs = [chr(0x4E00 + i) for i in range(400)]
    seeds = [
        Seed(f"s{i}", tuple("".join(rng.choices(signs, k=14)) for _ in range(3))) for i in range(80)
    ]
    found = beside(seeds, lambda one: one.utterances[2] if one.id < "s3" else "好的", chinese)
    assert {*found.seeds} == {one.id for one in seeds if one.id < "s3"}
    assert found.p <= 0.001


def test_a_set_without_people_knows_nothing():
    """ChatSEEDs alone, and another ChatSEED than people's."""
    seeds = set_of(30)
    people = openings({one.id: one.utterances for one in seeds})
    said = {i: (["other"], *words[1:]) for i, words in people.items()}
    assert memory(said, people, ENGLISH) is None
    assert memory({}, {}, ENGLISH) is None


def test_every_board_of_human_dialogues_says_it():
    """A column, a line, and in the headline where somebody looks to know the set."""
    world = World.of(n_seeds=40, quality={"model-00": 0.3, "model-01": 0.6, "bot:eliza": 0.0})
    plain = world.board(world.ideal())
    assert any("No model goes on with people's own words" in note for note in plain.notes)
    by_id = {one.id: one.utterances for one in world.seeds}
    copied = {
        seed_id: replace_said(one, by_id[seed_id])
        for seed_id, one in world.dialogues["model-01"].items()
    }
    known = replace(world, dialogues={**world.dialogues, "model-01": copied})
    board = known.board(known.ideal())
    (note,) = [note for note in board.notes if "looks to remember" in note]
    assert note.startswith("model-01 looks to remember ")
    assert note in headline.of(board).sure
    shown = board.flags.frame.set_index("model")
    assert shown.loc["model-01", "memory_p"] < 0.05 < shown.loc["model-00", "memory_p"]


def replace_said(one, human):
    """A dialogue that goes on as people did."""
    return Dialogue(
        one.seed_id, one.model, (*one.utterances[:2], human[2], *one.utterances[3:]), 2, one.facts,
        one.status, one.signature,
    )  # fmt: skip


def test_a_chance_of_hundreds_is_no_overflow() -> None:
    """547 chats of a bot that says people's own lines; by Poisson's distribution."""
    for k in (0, 1, 3, 300, 547):
        assert _at_least(k, 5.47) == pytest.approx(stats.poisson.sf(k - 1, 5.47), abs=1e-12)
