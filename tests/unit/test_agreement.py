"""Judges against people: the statistics, the annotation file, and the tables made of them."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats
from sklearn.metrics import accuracy_score, cohen_kappa_score

from botchat.errors import DataError, MissingDataError
from botchat.importers import vote_files
from botchat.metrics import statistics
from botchat.metrics.agreement import compare, detection
from botchat.metrics.annotations import NOBODY, Annotation
from botchat.metrics.correlation import Rating, compare_scores
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.protocols.rates import preferences
from botchat.records import HUMAN, Judgment

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
MIRROR = {"1": "2", "2": "1", "tie": "tie", None: None}
VERDICTS = st.sampled_from(["1", "2", "tie", None])


# ------------------------------------------------------------------------------ statistics

FLEISS_1971 = """
    0 0 0 0 14   0 2 6 4 2   0 0 3 5 6   0 3 9 2 0   2 2 8 1 1
    7 7 0 0 0    3 2 6 3 0   2 5 3 2 2   6 5 2 1 0   0 2 2 3 7
"""

KRIPPENDORFF_2011 = [
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
]


def test_kappa_and_alpha_of_the_textbook_examples():
    """Ten subjects by fourteen raters: 0.210; four observers who leave units out: 0.743."""
    counts = np.array(FLEISS_1971.split(), float).reshape(10, 5)
    agreement = statistics.agreeing_pairs(counts).mean()
    assert statistics.fleiss_kappa(agreement, counts.sum(0)) == pytest.approx(0.20993, abs=1e-5)
    rows = [row.split() for row in KRIPPENDORFF_2011]
    counts = np.array(
        [[column.count(value) for value in "12345"] for column in zip(*rows, strict=True)], float
    )
    total = statistics.coincidences(counts).sum(0)
    assert statistics.krippendorff_alpha(total) == pytest.approx(0.743, abs=5e-4)


@given(st.lists(st.tuples(*[st.sampled_from([0, 1, 2])] * 2), min_size=2, max_size=40))
def test_cohen_kappa_equals_scikit_learn(labels):
    """For any labels of two raters; not defined for both at the same time only."""
    one, two = zip(*labels, strict=True)
    confusion = np.zeros((3, 3))
    np.add.at(confusion, (one, two), 1)
    expected = np.nan if len({*one, *two}) == 1 else cohen_kappa_score(one, two)
    assert statistics.cohen_kappa(confusion) == pytest.approx(expected, nan_ok=True)
    assert statistics.accuracy(confusion) == pytest.approx(accuracy_score(one, two))


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 3)),
        min_size=2,
        max_size=25,
    )
)
def test_rank_correlations_equal_scipy_also_where_entries_count_several_times(entries):
    """Ties at their mean rank; a weight is the same as repeating the entry; NaN if constant."""
    x, y, w = np.array(entries, float).T
    many_x, many_y = np.repeat(x, w.astype(int)), np.repeat(y, w.astype(int))
    weights = np.stack([np.ones_like(w), w])
    for ours, theirs in (
        (statistics.spearman, stats.spearmanr),
        (statistics.kendall, stats.kendalltau),
    ):
        found = ours(x, y, weights)
        for value, (one, two) in zip(found, [(x, y), (many_x, many_y)], strict=True):
            constant = len(set(one)) < 2 or len(set(two)) < 2
            expected = np.nan if constant else theirs(one, two)[0]
            assert value == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_items_of_one_kind_are_drawn_together_as_often_as_each_alone():
    """Sums of resamples by kind vary as those by item do; the first is the sample's."""
    counts = np.array([500, 1, 30, 2])
    sums = np.array([[1.0, 0.5], [2, 1], [1, 0], [3, 3]])
    by_kind = statistics.resampled(statistics.kind_weights(counts, 4000, 0), sums)
    one_each = statistics.kind_weights(np.ones(counts.sum(), np.intp), 4000, 1)
    by_item = statistics.resampled(one_each, np.repeat(sums, counts, axis=0))
    np.testing.assert_array_equal(by_kind[0], counts @ sums)
    np.testing.assert_array_equal(by_item[0], by_kind[0])
    np.testing.assert_allclose(by_kind[1:].mean(0), by_kind[0], rtol=2e-3)
    covariances = [np.cov(drawn[1:].T) for drawn in (by_kind, by_item)]
    np.testing.assert_allclose(*covariances, rtol=0.1)


@given(seed=st.integers(0, 99), n_items=st.integers(2, 12))
def test_correlations_of_rankings_do_not_depend_on_how_many_items_are_alike(seed, n_items):
    """The figure is that of all items, whatever their kinds; in any order, with several pairs."""
    rng = np.random.default_rng(seed)
    rows = [
        Annotation(f"q{item}", *pair, judge, str(rng.choice(["1", "2", "tie"])))
        for item in range(n_items)
        for pair in ([("a", "b")], [("a", "b"), ("b", "c")], [("c", "a")])[rng.integers(3)]
        for judge in ("human", "judge")
    ]
    (row,) = compare(rows, resamples=10).rows
    apart = [structs.replace(one, item=f"{one.item}-{n // 2}") for n, one in enumerate(rows)]
    (other,) = compare(apart, resamples=10).rows
    assert (row["spearman"], row["kendall"]) == (other["spearman"], other["kendall"])


def judgment(verdict, *contestants, judge="j", protocol="arena-n8"):
    """A stage record."""
    return Judgment(protocol, "s1", contestants, judge, verdict, "", 8, "digest", "sig")


def test_of_two_dialogues_the_accused_one_is_worse():
    """Stage records name the AI side; an annotation names the better one."""
    said = {"1": "2", "2": "1", "both": "tie", "neither": "tie", None: None}
    records = [judgment(verdict, "a", "b") for verdict in said]
    assert [a.verdict for a in preferences(records, ARENA)] == list(said.values())


def test_a_dialogue_judged_alone_is_better_than_nobody_unless_accused():
    """UniEval records take part too; no contestant is made up for the rankings."""
    records = [
        judgment(verdict, model, judge=judge, protocol="unieval")
        for judge, model, verdict in [
            ("human", "a", "No"),
            ("human", "b", "4"),
            ("j", "a", "No"),
            ("j", "b", "16"),
        ]
    ]
    assert {a.second for a in preferences(records, UNIEVAL)} == {NOBODY}
    found = compare(preferences(records, UNIEVAL), resamples=20)
    assert found.rows[0]["accuracy"] == 1.0
    assert found.rows[0]["consistency"] is None
    assert [row["contestant"] for row in found.rankings if row["judge"] == "j"] == ["a", "b"]


def test_a_verdict_of_another_kind_is_refused():
    """Scores, and labels of another protocol: one line with the judge, the seed and the value."""
    with pytest.raises(DataError, match="'8 7' of a pairwise judgment"):
        preferences([judgment("8 7", "a", "b")], ARENA)
    with pytest.raises(DataError, match="'both' of j on seed s1"):
        preferences([judgment("both", "a")], UNIEVAL)
    with pytest.raises(DataError, match="'both' of j on seed s1"):
        detection([accusation("s1", "m", "both")], first_ai)


# -------------------------------------------------------------------------- the comparison


def lines(text):
    """Annotations from ``item first second judge verdict`` lines; ``-`` is unreadable."""
    return [
        Annotation(*words[:4], None if words[4] == "-" else words[4])
        for words in map(str.split, text.strip().splitlines())
    ]


def row_of(found, judge):
    """The row of one judge."""
    return next(row for row in found.rows if row["judge"] == judge)


@pytest.mark.parametrize(
    ("votes", "majority"),
    [
        ("1 1 2", "1"),
        ("1 tie tie", "1"),
        ("1 2 tie", "tie"),
        ("tie tie", "tie"),
        ("1 -", "1"),
        ("- - 2", "2"),
    ],
)
def test_people_decide_by_the_side_that_more_of_them_prefer(votes, majority):
    """Ties count for neither side, a level vote is a tie, the order of people does not matter."""
    for order in set(permutations(votes.split())):
        said = [Annotation("1", "a", "b", "j", majority), Annotation("1", "b", "a", "j", None)]
        said += [
            Annotation("1", "a", "b", f"human-{i}", None if vote == "-" else vote)
            for i, vote in enumerate(order)
        ]
        assert row_of(compare(said, resamples=10), "j")["accuracy"] == 1.0


SMALL = """
    1 a b human 1
    2 b a human 2
    3 a b human tie
    1 a b j 1
    1 b a j 2
    2 a b j 1
    2 b a j 1
    3 a b j tie
    3 b a j -
    4 a b j 2
"""


def test_every_figure_of_a_small_example_by_hand():
    """Three items that people know, one they do not, one unreadable verdict."""
    lengths = {("1", "a"): 9, ("1", "b"): 5, ("2", "a"): 4, ("2", "b"): 6, ("3", "a"): 1}
    found = compare(lines(SMALL), resamples=50, lengths=lengths, selves={"j": "b"})
    row = row_of(found, "j")
    # Readable with a known truth: item 1 twice right, item 2 once right and once wrong, item 3
    # right in the one order that is readable.
    assert (row["n"], row["verdicts"], row["unreadable"]) == (5, 6, 1)
    assert row["accuracy"] == pytest.approx(4 / 5)
    assert (row["accuracy_worst"], row["accuracy_best"]) == (4 / 6, 5 / 6)
    # Truth in the order shown: 1 2 1 2 tie; said: 1 2 1 1 tie.
    truth, said = ["1", "2", "1", "2", "tie"], ["1", "2", "1", "1", "tie"]
    assert row["kappa"] == pytest.approx(cohen_kappa_score(truth, said))
    chance = sum(((truth + said).count(label) / 10) ** 2 for label in ("1", "2", "tie"))
    assert row["fleiss_kappa"] == pytest.approx((0.8 - chance) / (1 - chance))
    # Both orders readable: items 1 (consistent) and 2 (first shown, twice).
    assert row["consistency"] == 1 / 2
    assert row["first_preferred"] == 3 / 4
    assert row["ties"] == pytest.approx(1 / 6)
    assert row["unreadable_rate"] == pytest.approx(1 / 7)
    # Longer: a on item 1 (both give it all), b on item 2 (people nothing, the judge half).
    assert row["length_preference"] == pytest.approx(1 / 4)
    # Itself, b: nothing from people on items 1 and 2, half on average from the judge on 2.
    assert row["self_preference"] == pytest.approx(1 / 4)
    assert (row["spearman"], row["kendall"]) == (1.0, 1.0)


def test_a_judge_that_favours_itself_in_any_position_is_told_from_one_that_favours_the_first():
    """Self-preference without position: the first-position judge has none, its copy has all."""
    said = []
    for i in range(6):
        for first, second in (("vain", "x"), ("x", "vain")):
            said.append(Annotation(str(i), first, second, "human", "tie"))
            said.append(Annotation(str(i), first, second, "vain", "1" if first == "vain" else "2"))
            said.append(Annotation(str(i), first, second, "lazy", "1"))
    found = compare(said, resamples=10, selves={"lazy": "vain"})
    assert row_of(found, "vain")["self_preference"] == 1 / 2
    assert row_of(found, "lazy")["self_preference"] == 0
    assert row_of(found, "vain")["first_preferred"] == 1 / 2
    assert row_of(found, "lazy")["first_preferred"] == 1


@st.composite
def annotated(draw):
    """Verdicts of two judges and two people on up to five items and three contestants."""
    pairs = list(permutations("abc", 2))
    keys = draw(
        st.lists(
            st.tuples(
                st.sampled_from("12345"),
                st.sampled_from(pairs),
                st.sampled_from(["j", "k", "human-1", "human-2"]),
            ),
            unique=True,
            max_size=30,
        )
    )
    anchors = [("1", ("a", "b"), judge) for judge in ("j", "k", "human-1")]
    return [
        Annotation(item, *pair, judge, draw(VERDICTS))
        for item, pair, judge in dict.fromkeys(anchors + keys)
    ]


def figures(found):
    """The figures of every judge, without what is a share of positions."""
    return {
        (row["judge"], name): row[name]
        for row in found.rows
        for name in row
        if f"{name}_low" in row and name != "first_preferred"
    }


@settings(max_examples=8, deadline=None)
@given(annotated(), st.randoms(use_true_random=False))
def test_neither_the_order_of_lines_nor_the_side_of_showing_changes_a_figure(said, shuffler):
    """Lines shuffled: all the same. All sides swapped: position preference mirrored, no more."""
    found = compare(said, resamples=5)
    shuffled = list(said)
    shuffler.shuffle(shuffled)
    again = compare(shuffled, resamples=5)
    for row in again.rows:
        assert row == pytest.approx(row_of(found, row["judge"]), nan_ok=True)
    swapped = compare(
        [Annotation(a.item, a.second, a.first, a.judge, MIRROR[a.verdict]) for a in said],
        resamples=5,
    )
    assert figures(swapped) == pytest.approx(figures(found), nan_ok=True)
    for row in swapped.rows:
        was, now = (r["first_preferred"] for r in (row_of(found, row["judge"]), row))
        assert (was is None and now is None) or now == pytest.approx(1 - was)


def test_ends_of_kappas_where_few_items_have_most_verdicts():
    """Pinned numbers, and what items are called changes none."""
    for names in ("012345", "543210"):
        rng = random.Random(16)
        said = [
            Annotation(item, *way, judge, rng.choice(["1", "1", "1", "2", "tie"]))
            for item in names
            for judge in ("human", "j", "k")
            for way in ("ab", "ba")[: 1 if judge == "human" else 1 + (rng.random() < 0.5)]
        ]
        found = compare(said, resamples=5)
        ends = [row[f"fleiss_kappa_{end}"] for row in (row_of(found, "j"), found.groups[0])
                for end in ("low", "high")]  # fmt: skip
        assert ends == pytest.approx([-0.533, 0.631, -0.475, 0.996], abs=5e-4)


def coin(n, judge, rng, right):
    """A judge that is right with probability ``right`` about ``n`` items, where first is better."""
    return [
        Annotation(str(i), "a", "b", judge, "1" if rng.random() < right else "2") for i in range(n)
    ]


def test_two_judges_on_the_same_items_are_compared_pairwise():
    """A copy differs by nothing; against a worse judge the difference has an interval."""
    rng = random.Random(5)
    good = coin(200, "good", rng, 0.8)
    bad = coin(200, "bad", rng, 0.55)
    copy = [Annotation(a.item, a.first, a.second, "copy", a.verdict) for a in good]
    human = [Annotation(a.item, "a", "b", "human", "1") for a in good]
    found = compare(good + copy + bad + human)
    same, other, _ = found.pairs
    assert (same["judge_a"], same["judge_b"], same["sign_flip_p"]) == ("good", "copy", 1.0)
    assert same["accuracy_difference"] == 0
    # 200 verdicts alike leave room for a few that are not.
    assert -0.02 < same["accuracy_difference_low"] < 0 < same["accuracy_difference_high"] < 0.02
    assert same["agreement"] == same["agreement_kappa"] == 1.0
    gap = row_of(found, "good")["accuracy"] - row_of(found, "bad")["accuracy"]
    assert other["accuracy_difference"] == pytest.approx(gap)
    assert 0 < other["accuracy_difference_low"] < gap < other["accuracy_difference_high"]
    assert other["only_a_right"] - other["only_b_right"] == round(200 * gap)
    assert other["sign_flip_p"] < 0.001


def test_an_annotator_is_measured_against_the_others_only():
    """Alone, nobody is left to agree with; beside one who disagrees, nothing is right."""
    alone = compare(lines("1 a b human 1\n1 a b j 1"), resamples=5)
    assert alone.annotators[0]["n"] == 0
    two = compare(lines("1 a b human-1 1\n1 a b human-2 2\n1 a b j tie"), resamples=5)
    assert [row["accuracy"] for row in two.annotators] == [0.0, 0.0]
    assert two.rows[0]["accuracy"] == 1.0


def test_rankings_stand_beside_each_other():
    """Mean scores of every contestant, people first; equal scores share a rank."""
    said = lines("""
        1 a b human 1
        1 b c human 1
        1 a c human 1
        1 a b j 2
        1 b c j 1
        1 a c j tie
    """)
    found = compare(said, resamples=5)
    ranks = {
        (row["judge"], row["contestant"]): (row["rank"], row["score"]) for row in found.rankings
    }
    assert ranks["human", "a"] == (1, 1.0)
    assert ranks["human", "c"] == (3, 0.0)
    assert ranks["j", "b"] == (1, 1.0)
    assert ranks["j", "a"] == ranks["j", "c"] == (2, 0.25)
    row = row_of(found, "j")
    expected = stats.kendalltau([0.25, 1.0, 0.25], [1.0, 0.5, 0.0])[0]
    assert row["kendall"] == pytest.approx(expected, nan_ok=True)


def test_judges_are_compared_without_people_too():
    """No truth: no accuracy, but consistency, agreement and rankings."""
    said = lines("1 a b j 1\n1 b a j 2\n1 a b k 2\n1 b a k 2\n2 a b j 1\n2 a b k 1")
    found = compare(said, truth_prefix=None, resamples=5)
    assert row_of(found, "j")["accuracy"] is None
    assert row_of(found, "j")["consistency"] == 1.0
    # No lengths, no contestant of the judge's name: no figure, rather than a zero.
    assert row_of(found, "j")["length_preference"] is row_of(found, "j")["self_preference"] is None
    assert found.pairs[0]["agreement"] == pytest.approx(2 / 3)
    assert found.pairs[0]["sign_flip_p"] is None
    json.dumps([found.rows, found.pairs, found.groups, found.rankings], allow_nan=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 a b human 1", "no judge to compare \\(human\\)"),
        ("1 a b j 1", "no annotator: no judge's name starts with 'human' \\(j\\)"),
        ("", "no judge to compare \\(no verdicts\\)"),
        ("1 a b j 1\n1 a b j 2\n1 a b human 1", "j has judged item 1, a before b, twice"),
    ],
)
def test_a_comparison_needs_judges_and_people(text, message):
    """The message says who there is."""
    with pytest.raises((MissingDataError, DataError), match=message):
        compare(lines(text))


# ---------------------------------------------------------------------------------- scores


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=3, max_size=30),
    st.integers(0, 4),
)
def test_scores_are_correlated_as_scipy_does_with_unreadable_ones_counted(given_scores, unread):
    """Mean of the people against each judge, over the texts it has a readable score for."""
    ratings = []
    for i, (people, judge) in enumerate(given_scores):
        ratings.append(Rating(str(i), "m", "human-1", people))
        ratings.append(Rating(str(i), "m", "human-2", people + 2))
        ratings.append(Rating(str(i), "m", "j", float(judge)))
    ratings += [Rating(f"x{i}", "m", "human-1", 1.0) for i in range(unread)]
    ratings += [Rating(f"x{i}", "m", "j", None) for i in range(unread)]
    row = compare_scores(ratings).rows[0]
    assert (row["judge"], row["n"], row["unreadable"]) == ("j", len(given_scores), unread)
    people, judge = zip(*given_scores, strict=True)
    if len(set(people)) > 1 and len(set(judge)) > 1:
        assert row["spearman"] == pytest.approx(stats.spearmanr(people, judge)[0])
        assert row["kendall"] == pytest.approx(stats.kendalltau(people, judge)[0])
        assert row["spearman_low"] is None or row["spearman_low"] <= row["spearman_high"]
    else:
        assert row["spearman"] is None


def test_differences_of_scores_are_taken_on_the_texts_both_have_scored():
    """A copy differs by nothing; scores without people, or given twice, are refused."""
    ratings = []
    for i in range(12):
        ratings += [
            Rating(str(i), "m", "human", i),
            Rating(str(i), "m", "good", i // 2),
            Rating(str(i), "m", "copy", i // 2),
            Rating(str(i), "m", "bad", -(i // 2)),
        ]
    found = compare_scores(ratings)
    rho = found.rows[0]["spearman"]
    gaps = {(row["judge_a"], row["judge_b"]): row["spearman_difference"] for row in found.pairs}
    assert gaps["good", "copy"] == 0
    assert gaps["good", "bad"] == pytest.approx(2 * rho)
    with pytest.raises(MissingDataError, match="found j"):
        compare_scores([Rating("1", "m", "j", 1.0)])
    with pytest.raises(DataError, match="j has scored m on item 1 twice"):
        compare_scores([Rating("1", "m", "j", 1.0), Rating("1", "m", "j", 2.0)])


# ------------------------------------------------------------------------ published numbers


@pytest.fixture(scope="module")
def prd():
    """PRD's verdicts on Vicuna80: five judges in both orders, up to three people."""
    path = DATA / "prd" / "verdicts.csv"
    if not path.exists():
        pytest.skip("PRD's verdicts are not beside this checkout")
    return vote_files.read_votes(path.read_bytes(), path.name).votes.annotations(once=True)[0]


def test_prd_as_its_authors_counted(prd):
    """Per-order accuracy and Fleiss' kappa against the human majority (Li et al. 2023)."""
    found = compare(prd)
    assert [row["judge"] for row in found.rows] == ["gpt4", "claude", "gpt35", "vicuna-13b", "bard"]
    for judge, accuracy, kappa in [
        ("gpt4", 0.6425, 0.4062941),
        ("claude", 0.606875, 0.3194360),
        ("gpt35", 0.620625, 0.3873769),
    ]:
        row = row_of(found, judge)
        assert row["n"] == 1600
        assert row["accuracy"] == pytest.approx(accuracy)
        assert row["fleiss_kappa"] == pytest.approx(kappa, abs=1e-6)
    assert found.groups[0]["raters"] == 5
    everything = [found.rows, found.annotators, found.pairs, found.groups, found.rankings]
    assert all(everything)
    json.dumps(everything, allow_nan=False)


def test_prd_consistency_and_position_counted_one_by_one(prd):
    """The arrays say what a plain loop over the file says."""
    found = row_of(compare(prd, resamples=10), "bard")
    said = {(a.item, a.first, a.second): a.verdict for a in prd if a.judge == "bard"}
    same = [said[i, b, a] == MIRROR[verdict] for (i, a, b), verdict in said.items()]
    decided = [verdict for verdict in said.values() if verdict != "tie"]
    assert found["consistency"] == pytest.approx(sum(same) / len(same))
    assert found["first_preferred"] == pytest.approx(decided.count("1") / len(decided))


# UniEval against who wrote what: detection, index, false alarms.


def accusation(seed, contestant, verdict, judge="j"):
    """One UniEval judgment."""
    return Judgment("unieval", seed, (contestant,), judge, verdict, "", 8, "d", "s")


def first_ai(made):
    """People write all of theirs, models all but the ChatSEED."""
    return None if made.contestants == (HUMAN,) else 3


def test_detection_of_a_small_example_by_hand():
    """Unreadable verdicts count for nothing; a difference is paired, where both can be read."""
    said = ["3", "3", "5", "2", "No", None]
    rows = [accusation(f"s{n}", "m", verdict) for n, verdict in enumerate(said)]
    rows += [accusation(f"s{n}", HUMAN, v) for n, v in enumerate(["No", "4", "No", None])]
    found, _ = detection(rows, first_ai)
    row = found["j"]
    assert row["machines_caught"] == pytest.approx(4 / 5)
    assert row["exact_index_rate"] == pytest.approx(2 / 5)
    assert row["people_accused"] == pytest.approx(1 / 3)
    assert row["machines_caught_low"] <= 4 / 5 <= row["machines_caught_high"]
    a = [
        accusation("s1", "m", "3", "a"),
        accusation("s2", "m", "No", "a"),
        accusation("s3", "m", "3", "a"),
    ]
    b = [
        accusation("s1", "m", "No", "b"),
        accusation("s2", "m", "No", "b"),
        accusation("s3", "m", None, "b"),
    ]
    _, pairs = detection([*a, *b], first_ai)
    assert list(pairs) == [("a", "b")]
    assert pairs["a", "b"]["machines_caught_difference"] == pytest.approx(1 / 2)
    assert pairs["a", "b"]["people_accused_difference"] is None
