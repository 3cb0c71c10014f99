"""Told from people by form: what is counted, who is told, and when nothing is said."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.board import Board, build
from botchat.errors import ConfigError
from botchat.interfaces import Answer, Case, Shown
from botchat.judges.fingerprint import FingerprintJudge
from botchat.languages import built_in
from botchat.measures import fingerprint
from botchat.measures.fingerprint import (
    PEOPLE,
    Fingerprint,
    auc,
    distance,
    forms,
    lineup,
    tell,
    telling,
)
from botchat.measures.form import NAMES, form, matrix, usual
from botchat.measures.intervals import Statistic
from botchat.records import HUMAN, Dialogue, Judgment, Seed
from botchat.report import _shown
from botchat.report.main_table import Links

WORDS = ["river", "lamp", "garden", "train", "letter", "window", "music", "paper", "bread"]
SMALL = ["i", "you", "the", "and", "but", "so", "well", "it", "was", "to", "really", "had"]


def people(n: int, rng: random.Random) -> list[Seed]:
    """Made-up chats of six utterances."""
    return [Seed(f"s{at}", tuple(line(rng) for _ in range(6))) for at in range(n)]


def line(rng: random.Random, least: int = 2, small: list[str] = SMALL) -> str:
    """One utterance of words drawn at random."""
    n = rng.randint(least, 12)
    said = " ".join(rng.choice(small if rng.random() < 0.6 else WORDS) for _ in range(n))
    return said + rng.choice(".?!")


def chats(seeds: list[Seed], *lines: str, rng: random.Random) -> dict[str, Dialogue]:
    """Dialogues of a model: ``lines`` again and again, or as people speak."""

    def rest(seed: Seed) -> tuple[str, ...]:
        return tuple(rng.choice(lines) if lines else line(rng) for _ in range(4))

    return {
        seed.id: Dialogue(seed.id, "m", (*seed.utterances[:2], *rest(seed)), 2, (), "complete", "")
        for seed in seeds
    }


def number(name: str, *utterances: str, **how: object) -> float:
    """One number of a chat, by name."""
    return form(utterances, **how).numbers[list(NAMES).index(name)]  # type: ignore[arg-type]


def test_what_is_counted() -> None:
    """Each number is the root of the share that its name says; the seed is context."""
    said, written = form(["I don't know, it's late."]), form(["i do not know, it is late."])
    assert len(said.numbers) == len(NAMES)
    assert said == written
    assert number("questions_alone", "Why?", "I see. Why?") == pytest.approx(0.5**0.5)
    assert number("exact_again", "so it is", "no", "so it is", "no") == pytest.approx(0.5**0.5)
    assert number("runs_again", "a b c d", "a b c d") == pytest.approx(0.5**0.5)
    assert number("closings_again", "Goodbye!", "Bye, take care.") == 1
    assert number("within_again", "trains trains trains") == pytest.approx((2 / 3) ** 0.5)
    assert number("short", "no", "there was a long way to go") == pytest.approx(0.5**0.5)
    assert form(["hello there", "I am here"], n_seed=2).n_utterances == 0
    assert number("exact_again", "hello there", "hello there", n_seed=1) == 1


def test_several_in_a_row_are_kept_apart_and_speakers_told_apart() -> None:
    """Bursts stay what they were, and own words are not taken up."""
    talk = ["hello there", "how was the river", "cold", "why is that"]
    one = form(talk, speakers=[0, 1, 1, 0], of={1})
    assert one.n_utterances == 2
    assert number("taken_up", "the river", "that river", speakers=[0, 0], of={0}) == 0
    assert number("own_again", "the river", "that river", speakers=[0, 0], of={0}) > 0
    assert number("taken_up", "the river", "that river", n_seed=1) == 1


@given(st.lists(st.text(max_size=40), max_size=6), st.sampled_from(sorted(built_in())))
def test_any_text_of_any_language_has_finite_numbers(texts: list[str], code: str) -> None:
    """Empty, odd and foreign text is measured too."""
    found = form(texts, built_in()[code])
    shown = matrix([found], *usual([found]))
    assert np.isfinite(shown).all()
    assert shown[:, len(NAMES) :].max(initial=0) <= 1


def test_chinese_function_words_are_those_of_its_pack() -> None:
    """Without blanks, words are found by the pack's lists."""
    found = form(["你好，我觉得这个很好。", "是吗？"], built_in()["zh"])
    assert found.words["我"] == 1
    assert found.numbers[list(NAMES).index("questions")] == pytest.approx(0.5**0.5)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=12))
def test_an_auc_is_the_share_of_pairs_and_turns_round(pairs: list[tuple[float, float]]) -> None:
    """By definition, and what is left out is left out whole."""
    one, other = np.array(pairs).T
    fold = np.zeros(len(pairs), np.intp)
    found, back = auc(one, other, fold), auc(other, one, fold)
    ahead = [(a > b) + (a == b) / 2 for a in one for b in other]
    assert found.values[0] == pytest.approx(np.mean(ahead))
    assert found.values[0] + back.values[0] == pytest.approx(1)
    # Without a seed: as if it had never been there.
    assert found.values[1] == pytest.approx(auc(one[1:], other[1:], fold[1:]).values[0])


def test_fits_find_what_differs_and_nothing_in_noise() -> None:
    """The largest weight is on what was moved; what is wider is further."""
    rng = np.random.default_rng(0)
    x, machine = rng.normal(size=(400, 12)), np.arange(400) % 2 == 1
    x[machine, 3] += 1.5
    telling = tell(x, machine)
    assert np.abs(telling.weights).argmax() == 3
    near = distance(x[~machine])
    further = auc(near.scores(3 * x[~machine]), near.scores(x[~machine]), np.zeros(200, np.intp))
    assert further.values[0] > 0.9


def test_models_are_told_by_what_they_do_and_people_are_not() -> None:
    """With what gives a model away, and the chats."""
    rng = random.Random(0)
    seeds = people(PEOPLE, rng)
    made = {
        "loop": chats(seeds, "thank you so much, goodbye!", rng=rng),
        "loop2": chats(seeds, "thank you, goodbye!", "goodbye, take care!", rng=rng),
        "person": chats(seeds, rng=rng),
    }
    found = lineup(forms(seeds, made))
    assert not found.refused
    assert found.halves is not None
    assert found.halves.interval[0] < 0.5 < found.halves.interval[1]
    loop, person = found.models["loop"], found.models["person"]
    assert loop.told is not None
    assert loop.told.values[0] > 0.95
    assert loop.alone.values[0] > 0.95
    assert any("goodbyes" in given.number for given in loop.giveaways)
    assert len(loop.giveaways) == 5
    assert {given.seed_id for given in loop.giveaways} <= {seed.id for seed in seeds}
    assert 0.35 < person.alone.values[0] < 0.65


def test_too_few_people_are_refused_and_so_are_halves_that_differ() -> None:
    """In words."""
    rng = random.Random(1)
    seeds = people(PEOPLE - 1, rng)
    assert "99 chats of people" in lineup(forms(seeds, {})).refused
    odd = [
        Seed(f"o{at}", ("so", *(line(rng, 11, ["never"]) for _ in range(5))))
        for at in range(PEOPLE)
    ]
    assert "one half" in lineup(forms([*seeds, *odd], {})).refused


def test_chats_are_of_equal_length_by_construction() -> None:
    """What a model says beyond the person's last utterance is not read."""
    rng = random.Random(2)
    seeds = people(3, rng)
    made = chats(seeds, rng=rng)
    long = {
        seed_id: Dialogue(seed_id, "m", (*one.utterances, *["more"] * 9), 2, (), "complete", "")
        for seed_id, one in made.items()
    }
    found = forms(seeds, {"m": made, "long": long})
    assert found["m"] == found["long"]
    assert {one.n_utterances for one in found[HUMAN].values()} == {4}


def test_where_the_two_disagree_the_higher_is_read() -> None:
    """And the one fitted on others where they do not."""
    low = Statistic(np.array([0.2, *[0.2] * 50]), 50)
    high = Statistic(np.array([0.9, *[0.9] * 50]), 50)
    assert Fingerprint(low, high).read is high
    assert Fingerprint(high, low).read is high
    assert Fingerprint(None, low).read is low


def ask(judge: FingerprintJudge, *dialogues: tuple[str, ...], choices: str = "") -> Answer:
    """Its answer to a UniEval case, or about two."""
    offered = {"No", *(str(n) for n in range(1, 17))} if len(dialogues) == 1 else {*choices.split()}
    shown = tuple(Shown(f"m{n}", utterances) for n, utterances in enumerate(dialogues))
    case = Case("x", "s", shown, "…", offered, lambda _: (None, ""))
    return asyncio.run(judge.answer(case))


def test_the_judge_accuses_few_people_and_a_loop() -> None:
    """The whole chat: the first utterance behind the ChatSEED stands for it."""
    rng = random.Random(3)
    known, others = people(150, rng), people(100, rng)
    judge = FingerprintJudge(seed.utterances for seed in known)
    accused = [seed for seed in others if ask(judge, seed.utterances).verdict != "No"]
    assert len(accused) <= 20
    loop = (*others[0].utterances[:2], *["thank you so much, goodbye!"] * 4)
    person = next(seed for seed in others if seed not in accused).utterances
    assert ask(judge, loop).verdict == "3"
    assert "distance from people" in ask(judge, loop).reason
    both = "1 2 both neither"
    assert ask(judge, loop, person, choices=both).verdict == "1"
    assert ask(judge, person, loop, choices=both).verdict == "2"
    assert ask(judge, loop, loop, choices=both).verdict == "both"
    assert ask(judge, person, person, choices=both).verdict == "neither"
    assert ask(judge, person, loop, choices="1 2").verdict == "2"
    assert ask(judge, person[:2]).verdict == "No"
    assert ask(judge, loop, choices="").verdict == ask(judge, (*loop, "more", "of", "it")).verdict


def test_the_judge_needs_people_and_answers_what_it_can() -> None:
    """One line where there are too few; its digest is theirs."""
    seeds = [seed.utterances for seed in people(PEOPLE, random.Random(4))]
    with pytest.raises(ConfigError, match="99 chats of people go on"):
        FingerprintJudge(seeds[1:])
    assert FingerprintJudge(seeds).digest != FingerprintJudge([*seeds, seeds[0]]).digest
    assert FingerprintJudge(seeds).digest == FingerprintJudge(seeds).digest
    judge = FingerprintJudge(seed.utterances for seed in people(PEOPLE, random.Random(5)))
    shown = (Shown("m", ("a", "b", "c", "d")),)
    case = Case("x", "s", shown, "…", {"1", "2"}, lambda _: (None, ""), kind="score")
    assert asyncio.run(judge.answer(case)).verdict is None


def board_of(seeds: list[Seed], made: dict[str, dict[str, Dialogue]]) -> Board:
    """A board that one UniEval verdict a chat is enough for."""
    signed = "botchat:0|unieval|set:x|judge:j|prompt:p|orders:1"
    said = [
        Judgment("unieval", seed_id, (name,), "j", "No", "", 6, "", signed)
        for name, by_seed in made.items()
        for seed_id in by_seed
    ]
    return build(seeds, made, {"unieval": said}, seed_set="x", judge="j")


def test_the_board_has_a_column_a_table_and_examples_that_open_on_the_page() -> None:
    """The number that is read, both that it is of, and the set's people as the line."""
    rng = random.Random(6)
    seeds = people(PEOPLE, rng)
    made = {"loop": chats(seeds, "thank you so much, goodbye!", rng=rng),
            "person": chats(seeds, rng=rng)}  # fmt: skip
    board = board_of(seeds, made)
    told, because = board.told
    column = board.main.column("told_by_form")
    assert board.main.ends(column.key)
    assert board.main.values(column.key)["loop"] == told.values(column.key)["loop"] > 0.95
    rows = {row["model"]: row for row in told.records}
    assert [*rows] == ["loop", "person", HUMAN]
    assert rows["loop"]["read"] == "people alone"  # it is unlike the only other model
    assert rows["loop"]["others"] < rows["loop"]["alone"] == rows["loop"]["told_by_form"]
    assert rows[HUMAN]["told_by_form_low"] < 0.5 < rows[HUMAN]["told_by_form_high"]
    assert "detects and does not grade" in told.note
    assert "bot:retrieval" in told.note
    assert "|people:100|models:2" in told.signature
    assert {row["model"] for row in because.records} == {"loop"}  # nothing gives who is not told
    assert len(because.records) == 5
    first = because.records[0]
    page = _shown(because, Links("j", "unieval"))
    assert page[0][-1].href == f"#view=unieval&a=loop&seed={first['seed_id']}&judge=j"
    assert not _shown(because)[0][-1].href


@pytest.mark.parametrize(
    ("n", "others", "why"),
    [(PEOPLE - 1, 1, "99 chats of people"), (PEOPLE, 4, "here are 4"), (0, 1, "")],
)
def test_what_is_refused_is_not_read_and_said(
    n: int, others: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small set costs nothing; where nobody is human nothing is missing."""
    rng = random.Random(7)
    seeds = people(n, rng) if n else [Seed("s0", ("hello there", "how are you"))]
    made = {f"m{at}": chats(seeds[:1], rng=rng) for at in range(others)}
    monkeypatch.setattr(fingerprint, "form", None)
    monkeypatch.setattr(fingerprint, "MOST", 3)
    board = board_of(seeds, made)
    assert not board.told
    assert "told_by_form" not in board.main.frame
    said = [note for note in board.notes if "told from people by form" in note]
    assert [why in note for note in said] == ([True] if why else [])


def test_of_a_large_set_some_seeds_are_read_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of all."""
    rng = random.Random(8)
    monkeypatch.setattr(fingerprint, "CHATS", 3 * PEOPLE)
    seeds = people(2 * PEOPLE, rng)
    made = {f"m{at}": chats(seeds, rng=rng) for at in range(3)}
    found = telling(seeds, made)()
    assert found.people == PEOPLE
    assert {one.chats for one in found.models.values()} <= {PEOPLE}
