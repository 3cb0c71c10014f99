"""A board's rates beside what they are as people judge, from labels of some cases."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from botchat.boards.board import Board, build, evidence
from botchat.boards.references import cases
from botchat.boards.references import notes as notes_of
from botchat.measures.intervals import of_share
from botchat.measures.references import mean
from botchat.protocols.catalogue import BUILT_IN, UNIEVAL, Catalogue
from botchat.protocols.kinds import Protocol
from botchat.protocols.scores import Scale
from botchat.records import HUMAN, Judgment
from tests.boards import QUICK, Made, judgment, made


def board(
    some: Made,
    labels: Mapping[str, Sequence[Judgment]],
    judge: str = "rules",
    catalogue: Catalogue | None = None,
) -> Board:
    """The board of a judge with people's labels."""
    return build(
        some.seeds, some.dialogues, some.judgments, seed_set="made-up", judge=judge,
        elo=QUICK, labels=labels, catalogue=catalogue,
    )  # fmt: skip


def by(person: str, *said: Judgment) -> list[Judgment]:
    """Judgments as a person's."""
    return [msgspec.structs.replace(one, judge=f"human:{person}") for one in said]


def rows(found: Board, what: str, table: str = "as-people-judge") -> dict[str, dict[str, float]]:
    """Model -> its row of a number."""
    (shown,) = [one for one in found.tables if one.name == table]
    return {row["model"]: row for row in shown.records if row["number"] == what}


@pytest.fixture(scope="module")
def pairs() -> Made:
    """Two models on 60 seeds, everything readable."""
    return made({"a": 0.9, "b": 0.3}, 60, arena=(8,), unreadable=0.0)


@pytest.fixture(scope="module")
def some(pairs: Made) -> Made:
    """The same, each dialogue by itself."""
    return replace(pairs, judgments={"unieval": pairs.judgments["unieval"]})


def test_success_is_what_the_measure_makes_of_the_labels(some: Made) -> None:
    """By hand from the verdicts; of two people who labelled a dialogue it is the mean."""
    said = [one for one in some.judgments["unieval"] if one.contestants == ("a",)]
    first = by("amy", *(msgspec.structs.replace(one, verdict="5") for one in said[:10]))
    second = by("bob", *said[5:25])
    found = board(some, {"unieval": [*first, *second]})

    def passes(one: Judgment) -> float:
        return float(one.verdict == "No" or int(str(one.verdict)) > 8)

    judged = np.array([passes(one) for one in said])
    people = np.full(len(said), np.nan)
    people[:25] = judged[:25]
    people[:5] = 0
    people[5:10] = judged[5:10] / 2
    expected = mean(judged, people)
    row = rows(found, "UniEval: success @8")["a"]
    assert (row["judge"], row["labels"], row["cases"]) == (
        pytest.approx(judged.mean(), abs=1e-4),
        25,
        60,
    )
    assert [row[key] for key in ("people", "people_low", "people_high")] == pytest.approx(
        [expected.value, expected.low, expected.high], abs=1e-4
    )
    assert rows(found, "UniEval: success @8")["b"]["people"] is None
    main = found.main.values("success_n8")
    assert row["judge"] == pytest.approx(main["a"], abs=1e-4)


def test_three_people_have_an_interval_of_others_like_them(pairs: Made) -> None:
    """It is wider, on both sides of a pair; of fewer there is none, and a line says so."""
    said = pairs.judgments["arena-n8"]
    rng = random.Random(3)

    def labels(people: int) -> dict[str, list[Judgment]]:
        strict = [rng.choice("12") for _ in range(people)]
        return {"arena-n8": [
            one for person in range(people) for one in by(f"p{person}", *(
                msgspec.structs.replace(case, verdict=strict[person]) if i % 3 else case
                for i, case in enumerate(said[:60])))
        ]}  # fmt: skip

    two, three = board(pairs, labels(2)), board(pairs, labels(3))
    (table,) = three.as_people
    row, other = (rows(three, row["number"])[name] for row in table.records[:1] for name in "ab")
    assert row["others"] == row["people"]
    assert row["others_low"] < row["people_low"] < row["people_high"] < row["others_high"]
    assert other["others_low"] == pytest.approx(1 - row["others_high"], abs=2e-4)
    assert "(3 people: human:p0, human:p1, human:p2)" in table.note
    assert "others" not in two.as_people[0].frame
    assert "what others would say takes labels of 3 or more" in two.as_people[0].note


def test_dialogues_that_stop_before_n_are_no_cases_at_n(some: Made) -> None:
    """Neither those accused before, which alone would be there, nor the others."""
    short = {
        seed_id: msgspec.structs.replace(one, utterances=one.utterances[: 10 if i % 2 else 16])
        for i, (seed_id, one) in enumerate(some.dialogues["a"].items())
    }
    cut = replace(some, dialogues={**some.dialogues, "a": short})
    labels = by("amy", *(one for one in some.judgments["unieval"] if one.contestants == ("a",)))
    found = board(cut, {"unieval": labels})
    at_16, at_8 = (rows(found, f"UniEval: success @{n}")["a"] for n in (16, 8))
    assert (at_16["cases"], at_16["labels"]) == (30, 30)
    assert (at_8["cases"], at_8["labels"]) == (60, 60)


def test_win_rates_take_labels_in_either_order(pairs: Made) -> None:
    """A pair of dialogues is one case; a label of it counts for both models."""
    said = pairs.judgments["gteval"] + pairs.judgments["arena-n8"]
    labels: dict[str, list[Judgment]] = {"gteval": [], "arena-n8": []}
    for one in said:
        # People always find a better than b, and either better than people.
        worse = HUMAN if HUMAN in one.contestants else "b"
        verdict = str(one.contestants.index(worse) + 1)
        labels[one.protocol] += by("amy", msgspec.structs.replace(one, verdict=verdict))
    found = board(pairs, labels)
    arena = rows(found, "Arena @8: win + ½ tie")
    assert (arena["a"]["people"], arena["b"]["people"]) == (1.0, 0.0)
    assert arena["a"]["labels"] == arena["a"]["cases"] == len(pairs.judgments["arena-n8"]) / 2
    tables = {part.protocol.name: part.table for part in found.parts}
    for model in "ab":
        win, tie = (tables["arena-n8"].values(key)[model] for key in ("win", "tie"))
        assert arena[model]["judge"] == pytest.approx(win + tie / 2, abs=1e-4)
    beside = rows(found, "GTEval: win + ½ tie")
    assert set(beside) == {"a", "b"}
    assert beside["a"]["people"] == beside["b"]["people"] == 1.0
    # Every other order alone says the same of half of the labels.
    half = {name: of[::2] for name, of in labels.items()}
    again = rows(board(pairs, half), "Arena @8: win + ½ tie")
    assert again["a"] == arena["a"]


def test_models_that_change_place_are_named(some: Made) -> None:
    """Where people say the opposite; with few labels nothing is said in words."""
    labels = [
        msgspec.structs.replace(one, verdict="3" if one.contestants == ("a",) else "No")
        for one in some.judgments["unieval"]
    ]
    random.Random(1).shuffle(labels)
    (note,) = [n for n in board(some, {"unieval": by("amy", *labels)}).notes if "as people" in n]
    assert note.startswith("UniEval: success @16: as people judge, ")
    assert "b (100 [" in note
    assert "is above a (0 [" in note
    agreeing = by("amy", *some.judgments["unieval"])
    (note,) = [n for n in board(some, {"unieval": agreeing}).notes if "as people" in n]
    assert note == "UniEval: success @16: no two change place for sure as people judge."
    few = [n for n in board(some, {"unieval": by("amy", *labels[:30])}).notes if "as people" in n]
    assert few == []


def test_labels_of_what_the_judge_accused_are_not_a_random_draw(some: Made) -> None:
    """Then a note says so, and nothing is concluded; a random draw is taken for one."""
    said = some.judgments["unieval"]
    accused = by("amy", *[one for one in said if one.verdict != "No"][:40])
    notes = board(some, {"unieval": accused}).notes
    (note,) = [note for note in notes if "random" in note]
    assert "botchat label plan --seeds made-up --judge rules" in note
    rng = random.Random(3)
    made_by = evidence({"unieval": UNIEVAL}, some.judgments, some.seeds, some.dialogues)
    for _ in range(20):
        drawn = {"unieval": by("amy", *rng.sample(said, 40))}
        found = cases(made_by, drawn, some.seeds, some.dialogues)
        assert not any("random" in note for note in notes_of(found, "made-up", "rules"))


def test_without_labels_a_note_says_how_many_it_takes() -> None:
    """Within five points: as Wilson's interval of the judge's rate where it tells nothing."""
    many = made({"a": 0.97}, 320, arena=(), unreadable=0.0)
    found = board(replace(many, judgments={"unieval": many.judgments["unieval"]}), {})
    (note,) = [note for note in found.notes if "as people judge" in note]
    share = found.main.values("success_n16")["a"]
    worst = next(n for n in range(2, 320) if np.ptp(of_share(share * n, n)) <= 0.1)
    said = [int(word) for word in note.split() if word.isdecimal()]
    assert abs(said[-1] - worst) <= 2
    assert 20 < said[-2] < worst
    assert "botchat label plan --seeds made-up --judge rules" in note
    assert not any("as-people" in one.name for one in found.tables)


def test_scores_stand_in_a_table_of_their_own() -> None:
    """On their scale: people give two points less to everything."""
    scale = Scale(1, 9, ("Warmth",))
    warmth = Protocol("warmth", "Warmth", "score", "one", "how warm?", template="x", scale=scale)
    some = made({"a": 0.9, "b": 0.3}, 40, arena=())
    rng = random.Random(2)
    said = [
        judgment("warmth", seed.id, (model,), str(rng.randint(4, 9)))
        for model in ("a", "b")
        for seed in some.seeds
    ]
    labels = [
        msgspec.structs.replace(one, verdict=str(int(str(one.verdict)) - 2)) for one in said[::2]
    ]
    found = board(
        replace(some, judgments={"warmth": said}),
        {"warmth": by("amy", *labels)},
        catalogue=Catalogue((*BUILT_IN, warmth)),
    )
    told = rows(found, "Warmth: Warmth", "as-people-judge-scores")
    for row in told.values():
        assert row["people"] == pytest.approx(row["judge"] - 2, abs=0.5)
        assert row["people_low"] < row["people"] < row["people_high"] < row["judge"]
        assert (row["labels"], row["cases"]) == (20, 40)


def test_uneven_opponents_count_alike() -> None:
    """As on the board, for the judge and for people."""
    three = made({"a": 0.9, "b": 0.6, "c": 0.2}, 60, arena=(8,), unreadable=0.0)
    said = three.judgments["arena-n8"]
    few = [one for one in said if set(one.contestants) == {"a", "b"}][:20]
    rest = [one for one in said if set(one.contestants) != {"a", "b"}]
    uneven = replace(three, judgments={"arena-n8": [*few, *rest]})
    # As many labels of each pair, which are half of those of a and b and a tenth of the others'.
    labels = by("amy", *few[:10])
    for pair in ({"a", "c"}, {"b", "c"}):
        labels += by("amy", *[one for one in rest if set(one.contestants) == pair][:10])
    found = board(uneven, {"arena-n8": labels})
    (table,) = [part.table for part in found.parts]
    told = rows(found, "Arena @8: win + ½ tie")
    for model in "abc":
        win, tie = (table.values(key)[model] for key in ("win", "tie"))
        assert told[model]["judge"] == pytest.approx(win + tie / 2, abs=1e-4)
        assert told[model]["people"] == pytest.approx(told[model]["judge"], abs=0.15)
