"""Where errors are: quotes find their sentences; reports against people, place by place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.errors import DataError, MissingError
from botchat.papers import mateval_files
from botchat.papers.locations import ALL, ANYWHERE, compare, named
from botchat.protocols.texts import sentences
from tests.papers.test_bench import needs
from tests.rows import rows as examples

STORY = sentences(
    "Nora rowed to the old lighthouse. Dr. Pell was waiting on the stairs! The stairs were waiting "
    'too. "Did you bring the lamp?" he asked. She had brought a lamp and a rope.'
)
TALE = sentences("老渔夫每天早上都出海。他的猫坐在船头！“今天有鱼吗？”猫问他。")


def test_a_text_is_cut_into_sentences():
    """A title ends none; a question inside a sentence does."""
    assert STORY == [
        "Nora rowed to the old lighthouse.",
        "Dr. Pell was waiting on the stairs!",
        "The stairs were waiting too.",
        '"Did you bring the lamp?" he asked.',
        "She had brought a lamp and a rope.",
    ]
    assert TALE == ["老渔夫每天早上都出海。", "他的猫坐在船头！", "“今天有鱼吗？”", "猫问他。"]


@pytest.mark.parametrize(("code", "said", "at"), examples("a_quote_names_its_sentences"))
def test_a_quote_names_its_sentences(code, said, at):
    """Whole, in part, several, a word copied wrongly; talk about them and two words name none."""
    assert named(said, STORY if code == "en" else TALE, spaced=code == "en") == {*at}


@given(st.sets(st.sampled_from([0, 1, 2, 4]), min_size=1))
def test_sentences_name_themselves(at):
    """Quoted word for word, in any number."""
    chosen = " ".join(f"“{STORY[i]}”" for i in sorted(at))
    assert named(chosen, STORY, spaced=True) == at


PEOPLE = [
    {"REP": frozenset({0}), "ILC": None},
    {"REP": frozenset({1, 2}), "ILC": frozenset({1})},
    {"REP": None, "ILC": None},
]


def test_types_and_places_by_hand():
    """Found in the right text at the wrong place is half a success."""
    reports = [
        {"REP": frozenset({0, 3}), "ILC": frozenset()},
        {"REP": None, "ILC": frozenset({4})},
        {"REP": frozenset({5})},
    ]
    rows = {row["error_type"]: row for row in compare(PEOPLE, reports)}
    assert list(rows) == ["REP", "ILC", ALL, ANYWHERE]
    whole = rows[ALL]
    assert (whole["by_people"], whole["by_report"], whole["unplaced"]) == (3, 4, 1)
    assert whole["missing"] == 1
    assert [whole[f"type_{k}"] for k in ("precision", "recall", "f1")] == [2 / 4, 2 / 3, 4 / 7]
    assert [whole[f"place_{k}"] for k in ("precision", "recall")] == [1 / 4, 1 / 4]
    assert whole["located"] == 1 / 2
    assert rows["REP"]["place_recall"] == 1 / 3
    assert rows[ANYWHERE]["type_recall"] == 1
    assert whole["place_f1_low"] < whole["place_f1"] < whole["place_f1_high"]


_PLACES = st.dictionaries(
    st.sampled_from(["REP", "ILC", "FER"]), st.none() | st.frozensets(st.integers(0, 3)), min_size=3
)


@settings(max_examples=10)
@given(st.lists(st.tuples(_PLACES, _PLACES), min_size=1, max_size=5))
def test_precision_of_one_is_recall_of_the_other(both):
    """And whoever is compared with itself is right."""
    one, other = [a for a, _ in both], [b for _, b in both]
    there, back = compare(one, other), {row["error_type"]: row for row in compare(other, one)}
    for row in there:
        for level in ("type", "place"):
            assert row[f"{level}_precision"] == back[row["error_type"]][f"{level}_recall"]
            assert row[f"{level}_f1"] == back[row["error_type"]][f"{level}_f1"]
    same = [row[key] for row in compare(one, one) for key in ("type_f1", "place_f1", "located")]
    assert {*same} <= {1.0, None}


def _table(*errors):
    names = [f"Error {what}{n}" for n in (1, 2) for what in ("Location", "Type")]
    cells = [("A goat sang. Nobody heard the old goat sing.", *row) for row in errors]
    lines = [",".join(("Story", *names))]
    lines += [",".join(f'"{cell}"' for cell in row) for row in cells]
    return {"stories.csv": "\n".join(lines).encode()}


def test_peoples_columns():
    """A cell may name several types, in quotation marks; a type that nobody named is not there."""
    row = ("Nobody heard the old goat sing.", "\u201cDiscontinuity\u201d/Factual Errors", "", "")
    ((told, places),) = mateval_files.marked(_table(row))
    assert told == ["A goat sang.", "Nobody heard the old goat sing."]
    assert {code for code, at in places.items() if at == {1}} == {"DCONT", "FER"}
    assert [places[code] for code in ("REP", "LINC", "ILC")] == [None] * 3


def test_what_is_wrong_with_a_table_is_said():
    """The type in its line; a table without the columns."""
    with pytest.raises(DataError, match=r"csv:2: Error Type1: 'Typo' is none of .*Repetition"):
        mateval_files.marked(_table(("A goat sang.", "Typo", "", "")))
    with pytest.raises(MissingError, match="Error Location1"):
        mateval_files.marked({"stories.csv": b"Story,Score_new\n"})


@pytest.mark.parametrize(("name", "errors", "places"), [("ROC", 506, 634), ("LOT", 529, 667)])
def test_every_place_that_people_named_is_found(name, errors, places):
    """All but one of MATEval's 1,035: the quote there is not from the story."""
    files = {one.name: one.read_bytes() for one in needs("mateval", name).glob("*.csv")}
    found = mateval_files.marked(files)
    named = [at for _, of in found for at in of.values() if at is not None]
    assert (len(named), sum(map(len, named))) == (errors, places)
    assert sum(not at for at in named) == (name == "LOT")
