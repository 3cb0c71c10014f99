"""Why a model fails: shares of flags by hand, and where they agree with the judge."""

from __future__ import annotations

import numpy as np
import pytest

from botchat.boards import flags as failings
from botchat.languages import ENGLISH
from botchat.measures.flags import (
    CRITERIA,
    MEASURES,
    STYLE,
    Measured,
    Survey,
    floors,
    measure_all,
)

OPENING = ("Did you catch the bus this morning?", "No, I walked along the river instead.")


def survey(**contestants: Measured) -> Survey:
    """Of some contestants on ten seeds."""
    return Survey(floors(ENGLISH), 10, contestants)


def measured(*talks: tuple[str, ...]) -> Measured:
    """Dialogues that go on from one opening: ``S-0``, ``S-1`` ..."""
    dialogues = {f"S-{i}": (*OPENING, *talk) for i, talk in enumerate(talks)}
    return measure_all(dialogues, floors(ENGLISH), [4, 16])


def flagged_at(first: dict[str, dict[str, int]]) -> Measured:
    """Dialogues with nothing but first flags: seed id -> criterion -> utterance."""
    return Measured(
        tuple(first),
        np.full((len(first), len(MEASURES)), np.nan),
        np.array([at.get(c, 0) for at in first.values() for c in CRITERIA]).reshape(
            -1, len(CRITERIA)
        ),
        {},
    )


def test_what_a_dialogue_shows_stands_in_its_row() -> None:
    """Measures, first flags and style of each; one without anything of its own has no row."""
    found = measured(("I am an AI language model.", "I am an AI language model."), (), ("Nice.",))
    assert found.seed_ids == ("S-0", "S-2")
    of = dict(zip(CRITERIA, found.first[0].tolist(), strict=True))
    assert (of["ai_phrases"], of["exact_repeat"]) == (3, 4)
    assert found.first[1].tolist() == [0] * len(CRITERIA)
    values = dict(zip(MEASURES, found.measures[0].tolist(), strict=True))
    assert (values["n_utterances"], values["ai_phrases"], values["exact_rate"]) == (2, 2, 0.5)
    assert {n: style.shape for n, style in found.style.items()} == {
        4: (2, len(STYLE)), 16: (2, len(STYLE)),
    }  # fmt: skip


def test_style_is_of_the_dialogue_cut_to_n() -> None:
    """What comes after N changes nothing at N."""
    short = measured(("One word.", "Two words here?"))
    long = measured(("One word.", "Two words here?", *["And many, many, many more?"] * 6))
    assert short.style[4].tolist() == long.style[4].tolist()
    assert short.style[16].tolist() != long.style[16].tolist()


def test_shares_of_flags_by_hand() -> None:
    """Four dialogues: two say that they are programs, one of them repeats itself too."""
    first = {
        "S-0": {"ai_phrases": 3, "exact_repeat": 5},
        "S-1": {"ai_phrases": 6},
        "S-2": {},
        "S-3": {"words": 4},
    }
    fine = {"S-0": {}, "S-1": {}}
    table = failings.flags(survey(bot=flagged_at(first), person=flagged_at(fine)), 10, "signed")
    person, bot = table.records
    assert (person["model"], person["flagged"], person["why"]) == ("person", 0.0, None)
    assert (bot["model"], bot["flagged"], bot["measured"]) == ("bot", 0.75, 4)
    assert (bot["ai_phrases"], bot["exact_repeat"], bot["words"]) == (0.5, 0.25, 0.25)
    assert bot["why"] is None, "four dialogues are too few for words"
    assert (bot["flagged_low"], bot["flagged_high"]) == (0.3006, 0.9872)
    many = {f"S-{i}": first[f"S-{i % 4}"] for i in range(20)}
    (of_many,) = failings.flags(survey(bot=flagged_at(many)), 20, "signed").records
    assert of_many["why"] == "says it is an AI 50 %, repeats utterances 25 %"
    assert (bot["first_flag"], bot["first_ai_phrases"], bot["first_words"]) == (4.0, 4.5, 4.0)
    assert table.signature == "signed"


def test_someone_without_dialogues_has_no_shares() -> None:
    """And stands last."""
    table = failings.flags(survey(nobody=flagged_at({}), bot=flagged_at({"S-0": {}})), 10, "")
    assert [(row["model"], row["flagged"]) for row in table.records] == [
        ("bot", 0.0), ("nobody", None),
    ]  # fmt: skip


_ENDS = ("_low", "_high")


@pytest.mark.parametrize(
    ("flag", "verdict", "hit"),
    [
        (5, "5", {"same", "near"}),
        (5, "6", {"near"}),
        (5, "9", set()),
        (0, "No", {"neither"}),
        (0, "4", {"only_judge"}),
        (4, "No", {"only_flags"}),
    ],
)
def test_the_first_flag_beside_the_judge(flag: int, verdict: str, hit: set[str]) -> None:
    """One dialogue, one way to agree or not."""
    found = survey(bot=flagged_at({"S-0": {"words": flag, "drift": 12 if flag else 0}}))
    table = failings.agreement(found, {"bot": {"S-0": verdict}}, [""])
    assert table is not None
    (row,) = table.records
    assert {
        key
        for key in row
        if row[key] == 1.0 and key != "readable" and "_" + key.rpartition("_")[2] not in _ENDS
    } == hit


def test_dialogues_without_a_readable_verdict_do_not_count() -> None:
    """Three of four; a judge who has said nothing has no table."""
    found = survey(bot=flagged_at({f"S-{i}": {"words": 5} for i in range(4)}))
    said = {"S-0": "5", "S-1": "No", "S-2": None, "S-3": "5"}
    table = failings.agreement(found, {"bot": said}, [""])
    assert table is not None
    (row,) = table.records
    assert (row["readable"], row["same"], row["only_flags"]) == (3, round(2 / 3, 4), 0.3333)
    assert failings.agreement(found, {"bot": {"S-0": None}}, [""]) is None
