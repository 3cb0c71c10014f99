"""Judges beside human labels and beside each other: figures by hand and by other people's code."""

import json
import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

from botchat.boards.judge_agreement import AgreementReport, agreement_json
from botchat.boards.tables import spread
from botchat.errors import DataError, MissingDataError
from botchat.estimates import Estimate, VerdictPrice
from botchat.importers.tables import read_table
from botchat.importers.vote_files import votes_of
from botchat.metrics.agreement import Agreement, ItemScore, compare, compare_scores
from botchat.metrics.statistics import skill, skill_difference
from botchat.metrics.verdicts import NO_CONTESTANT, PairVerdict, PairVerdicts
from botchat.protocols.catalogue import UNIEVAL
from botchat.protocols.protocol import preferences, truth
from botchat.records import HUMAN, Judgment
from tests.rows import rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def judgment(verdict, *contestants, judge="j", protocol="arena-n8", seed="s1"):
    """A stage record."""
    return Judgment(protocol, seed, contestants, judge, verdict, "", 8, "digest", "sig")


RESULTS = {"1": 1.0, "2": 0.0, "tie": 0.5, "-": math.nan}


def lines(text):
    """Verdicts from ``item first second judge verdict`` lines; ``-`` is unreadable."""
    rows = map(str.split, text.strip().splitlines())
    return PairVerdicts.of(PairVerdict(*words[:4], RESULTS[words[4]]) for words in rows)


def row_of(agreement: Agreement, judge: str):
    """The row of one judge."""
    return next(row for row in agreement.judges if row.judge == judge)


def report(agreement: Agreement) -> AgreementReport:
    """The comparison as it is published."""
    return AgreementReport(subject="votes", labels="labels", signature="s", agreement=agreement)


def test_dialogues_judged_alone_have_true_and_false_positives():
    """Positive: called AI; unreadable verdicts count for nothing; nobody is made up to rank."""
    verdicts = {"m": ["3", "3", "5", "No", None], HUMAN: ["No", "4", "No", None]}
    records = [
        judgment(verdict, name, protocol="unieval", seed=f"s{n}")
        for name in verdicts
        for n, verdict in enumerate(verdicts[name])
    ]
    rows = preferences(records, UNIEVAL)
    assert {row.second for row in rows} == {NO_CONTESTANT}
    verdicts = PairVerdicts.of(rows)
    agreement = compare(PairVerdicts.together([verdicts, truth(verdicts, "human")]))
    row = row_of(agreement, "j")
    assert (row.n, row.unreadable, row.accuracy.value) == (7, 2, pytest.approx(5 / 7))
    assert row.true_positive_rate.value == pytest.approx(3 / 4)
    assert row.false_positive_rate.value == pytest.approx(1 / 3)
    assert row.true_positive_rate.low < 3 / 4 < row.true_positive_rate.high
    assert not row.consistency.is_known
    assert [r.contestant for r in agreement.rankings if r.judge == "j"] == [HUMAN, "m"]


@pytest.mark.parametrize(
    "case", ["1 1 2 = 1", "1 tie tie = 1", "1 2 tie = tie", "tie tie = tie", "1 - = 1", "- - 2 = 2"]
)
def test_annotators_decide_by_the_side_that_more_of_them_prefer(case):
    """Ties count for neither side, a level vote is a tie, the order of annotators is no matter."""
    votes, majority = case.split(" = ")
    for order in set(permutations(votes.split())):
        labels = "\n".join(f"1 a b human:{i} {vote}" for i, vote in enumerate(order))
        agreement = compare(lines(f"1 a b j {majority}\n1 b a j -\n{labels}"))
        assert row_of(agreement, "j").accuracy.value == 1.0


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
    """Three items with labels, one without, one unreadable verdict."""
    lengths = {("1", "a"): 9, ("1", "b"): 5, ("2", "a"): 4, ("2", "b"): 6, ("3", "a"): 1}
    row = row_of(compare(lines(SMALL), lengths=lengths), "j")
    # Labels in the order shown: 1 2 1 2 tie; verdicts: 1 2 1 1 tie.
    kappa = cohen_kappa_score(["1", "2", "1", "2", "tie"], ["1", "2", "1", "1", "tie"])
    assert (row.n, row.unreadable, row.n_decided) == (5, 1, 4)
    expected = {
        # Right on both that the first side wins, on one of two that the second wins.
        "skill": (2 / 2 + 0 / 2) / 2,
        "accuracy": 4 / 5,
        "accuracy_decided": 3 / 4,
        "kappa": kappa,
        # Both orders readable: items 1 (consistent) and 2 (the first shown, twice).
        "consistency": 1 / 2,
        "first_preferred": 3 / 4,
        "ties": 1 / 6,
        "unreadable_rate": 1 / 7,
        # a is longer on item 1 (preferred twice), b on item 2 (once).
        "longer_preferred": 3 / 4,
        "spearman": 1,
        "kendall": 1,
    }
    assert {key: getattr(row, key).value for key in expected} == pytest.approx(expected)


def test_an_annotator_is_measured_against_the_others_only():
    """Alone, nobody is left to agree with; beside one who disagrees, nothing is right."""
    alone = compare(lines("1 a b human 1\n1 a b j 1"))
    assert (alone.annotators[0].n, alone.annotator_kappa) == (0, None)
    two = compare(lines("1 a b human:1 1\n1 a b human:2 2\n1 a b j tie"))
    assert [row.accuracy.value for row in two.annotators] == [0.0, 0.0]
    assert two.judges[0].accuracy.value == 1.0
    assert (two.annotator_kappa.raters, two.annotator_kappa.units) == (2, 1)
    twice = "1 a b human:1 1\n1 b a human:1 2\n1 a b human:2 1\n2 a b human:1 1\n2 a b human:2 2\n"
    kappa = compare(lines(twice + "2 a b j 1")).annotator_kappa.kappa
    assert kappa.value == pytest.approx(-1 / 15)  # half a label in each order


def test_skill_is_peirces_score_of_finleys_tornadoes():
    """28 of 51 tornadoes foretold, 72 false alarms in 2,752: 0.523 (Peirce, Science 4, 1884)."""
    labels = np.repeat([1, -1], [51, 2752]).astype(np.int8)
    verdicts = np.repeat([1, -1, 1, -1], [28, 23, 72, 2680]).astype(np.int8)
    score = skill(verdicts, labels, np.arange(2803))
    assert score.value == pytest.approx(0.523, abs=5e-4)
    assert score.low < 0.523 < score.high
    assert score.value == pytest.approx(2 * balanced_accuracy_score(labels, verdicts) - 1)
    for answers, value in ((labels, 1), (-labels, -1), (labels * 0 + 1, 0), (labels * 0, 0)):
        assert skill(answers, labels, np.arange(2803)).value == value
    assert not skill(verdicts[:51], labels[:51], np.arange(51)).is_known, "one class only"


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9983])
def test_a_difference_of_skill_has_the_interval_of_paired_differences(level):
    """Where classes are balanced and alike it is scipy's; the cases of an item count once."""
    labels = np.repeat([1, -1], 60).astype(np.int8)
    lead = labels * np.tile([0, 2, 0, -2, 2], 24).astype(np.int8)
    item = np.arange(120)
    theirs = stats.ttest_1samp(labels * lead, 0).confidence_interval(level)
    for times in (1, 2):
        cases = [np.tile(values, times) for values in (item, item, labels, lead)]
        found = skill_difference(*cases)
        ours = [*vars(found.at(level)).values()]
        assert ours == pytest.approx([0.4, theirs.low, theirs.high])
        assert (found.n_items, found.n_of_class) == (120, [60, 60])


def test_two_judges_on_the_same_items_are_compared_pairwise():
    """A copy differs by nothing; unreadable verdicts are ties; what one did not judge is out."""
    good = [PairVerdict(str(i), "a", "b", "good", float(i % 2 or i > 9)) for i in range(40)]
    human = [PairVerdict(str(i), "a", "b", "human", float(i % 2)) for i in range(30)]
    copy = [row._replace(judge="copy") for row in good[:25]]
    silent = [row._replace(judge="silent", result=math.nan) for row in good]
    same, other, _ = compare(PairVerdicts.of(good + copy + silent + human)).pairs
    assert (same.judge_a, same.judge_b, same.agreement.value) == ("good", "copy", 1.0)
    assert same.skill_difference == Estimate(0.0, 0.0, 0.0)
    # Always right where b is not better, on 5 of 15 where it is: 1 and -1/3.
    assert other.skill_difference.value == pytest.approx((1 - 1 / 3) / 2)
    assert other.skill_difference.low < 1 / 3 < other.skill_difference.high


def sentences(n, right, labels=0, second="b", topics=0, singles=(), **paid):
    """What is said of judges that are right in so many percent of n items.

    ``labels``: of 1, default half. ``singles``: of every debate. ``paid``: calls and USD.
    """
    verdicts, prices = [], {}
    for k, (judge, percent) in enumerate({"human": 100, **right}.items(), -1):
        for i in range(n):
            wrong = (37 * i + 14 * k) % 200 >= 2 * percent
            label = int(i < (labels or n // 2))
            verdicts.append(PairVerdict(str(i), "a", second, judge, label ^ wrong))
        calls, usd = (paid.get(key, {}).get(judge) for key in ("calls", "usd"))
        if calls or usd is not None:
            prices[judge] = VerdictPrice(calls or 1, None, usd, None)
    by_topic = {str(i): str(i % topics) for i in range(n * bool(topics))}
    compared = report(compare(PairVerdicts.of(verdicts), topics=by_topic))
    return replace(compared, prices=prices, singles=dict.fromkeys(right, singles)).sentences


@pytest.mark.parametrize(("spec", "expected"), rows("sentences_on_judges"))
def test_a_sentence_says_what_its_interval_says(spec, expected):
    """Of more, less, no and unknown difference; prices of 0 and unknown ones; too few items."""
    assert sentences(**spec) == expected


def test_rankings_stand_beside_each_other():
    """Mean results of every contestant, labels first; equal results share a rank."""
    agreement = compare(
        lines("""
        1 a b human 1
        1 b c human 1
        1 a c human 1
        1 a b j 2
        1 b c j 1
        1 a c j tie
    """)
    )
    ranks = {(r.judge, r.contestant): (r.rank, r.score.value) for r in agreement.rankings}
    assert ranks["human", "a"] == (1, 1.0)
    assert ranks["human", "c"] == (3, 0.0)
    assert ranks["j", "b"] == (1, 1.0)
    assert ranks["j", "a"] == ranks["j", "c"] == (2, 0.25)
    expected = stats.kendalltau([0.25, 1.0, 0.25], [1.0, 0.5, 0.0])[0]
    assert row_of(agreement, "j").kendall.value == pytest.approx(expected, nan_ok=True)


def test_judges_are_compared_without_labels_too():
    """No skill, but consistency, agreement and rankings."""
    text = "1 a b j 1\n1 b a j 2\n1 a b k 2\n1 b a k 2\n2 a b j 1\n2 a b k 1"
    agreement = compare(lines(text), truth_name=None)
    row = row_of(agreement, "j")
    assert not row.accuracy.is_known
    assert not row.skill.is_known
    assert row.consistency.value == 1.0
    assert not row.longer_preferred.is_known
    assert agreement.pairs[0].agreement.value == pytest.approx(2 / 3)
    assert not agreement.pairs[0].skill_difference.is_known
    json.dumps(agreement_json(report(agreement)), allow_nan=False)


@pytest.mark.parametrize(("text", "message"), rows("comparisons_of_nobody"))
def test_a_comparison_needs_judges_and_annotators(text, message):
    """The message names those that it has."""
    with pytest.raises((MissingDataError, DataError), match=message):
        compare(lines(text))


KEYS = st.tuples(
    st.sampled_from("12345"),
    st.sampled_from(list(permutations("abc", 2))),
    st.sampled_from(["j", "k", "human:1", "human:2"]),
)
ANNOTATED = st.tuples(
    st.lists(KEYS, max_size=30),
    st.lists(st.sampled_from([1.0, 0.0, 0.5, math.nan]), min_size=33, max_size=33),
)
"""Verdicts of two judges and two annotators on up to five items and three contestants."""


@settings(max_examples=8, deadline=None)
@given(ANNOTATED, st.randoms(use_true_random=False))
def test_neither_the_order_of_lines_nor_the_side_of_showing_changes_a_figure(annotated, shuffler):
    """Lines shuffled: all the same. All sides swapped: position bias mirrored, no more."""
    keys = dict.fromkeys([*(("1", ("a", "b"), j) for j in ("j", "k", "human:1")), *annotated[0]])
    rows = [
        PairVerdict(item, *pair, judge, result)
        for (item, pair, judge), result in zip(keys, annotated[1], strict=False)
    ]
    agreement = compare(PairVerdicts.of(rows))
    shuffled = compare(PairVerdicts.of(shuffler.sample(rows, len(rows))))
    swapped = compare(
        PairVerdicts.of(
            row._replace(first=row.second, second=row.first, result=1 - row.result) for row in rows
        )
    )
    for judge in agreement.judges:
        row = spread(vars(judge))
        assert spread(vars(row_of(shuffled, judge.judge))) == pytest.approx(row, nan_ok=True)
        other = spread(vars(row_of(swapped, judge.judge)))
        for key, value in row.items():
            if not key.startswith("first_preferred") and not key.endswith(("_low", "_high")):
                assert other[key] == pytest.approx(value, nan_ok=True)
        first, last = row["first_preferred"], other["first_preferred"]
        assert (first is None and last is None) or last == pytest.approx(1 - first)


def test_scores_without_labels_or_given_twice_are_refused():
    """The message names who scored."""
    with pytest.raises(MissingDataError, match="found j"):
        compare_scores([ItemScore("1", "m", "j", 1.0)])
    with pytest.raises(DataError, match="j has scored m on item 1 twice"):
        compare_scores([ItemScore("1", "m", "j", 1.0), ItemScore("1", "m", "j", 2.0)])


@pytest.fixture(scope="module")
def prd():
    """PRD's verdicts on Vicuna80, by five judges and four people, and their comparison."""
    path = DATA / "prd" / "verdicts.csv"
    if not path.exists():
        pytest.skip("PRD's verdicts are not beside this checkout")
    called = path.read_bytes().replace(b",human-", b",human:")
    votes = votes_of(read_table(called, path.name)).votes
    return votes, compare(votes)


@pytest.mark.parametrize(
    ("judge", "accuracy"), [("gpt4", 0.6425), ("claude", 0.606875), ("gpt35", 0.620625)]
)
def test_prd_as_its_authors_counted(prd, judge, accuracy):
    """Accuracy in each order against the human majority (Li et al. 2023); kappa by scikit-learn."""
    votes, agreement = prd
    names = ["gpt4", "claude", "gpt35", "vicuna-13b", "bard"]
    assert [row.judge for row in agreement.judges] == names
    row = row_of(agreement, judge)
    assert (row.n, row.accuracy.value) == (1600, pytest.approx(accuracy))
    rows = pd.DataFrame(
        {
            "item": np.array(votes.items)[votes.item],
            "first": np.array(votes.contestants)[votes.first],
            "second": np.array(votes.contestants)[votes.second],
            "judge": np.array(votes.judges)[votes.judge],
            "lead": np.sign(np.nan_to_num(votes.result, nan=0.5) - 0.5),
        }
    )
    case = ["item", "first", "second"]
    people = rows[rows["judge"].str.startswith("human")]
    swapped = people.rename(columns={"first": "second", "second": "first"})
    both = pd.concat([people, swapped.assign(lead=-swapped["lead"])])
    labels = np.sign(both.groupby(case)["lead"].sum())
    of_judge = rows[rows["judge"] == judge].set_index(case)["lead"]
    kappa = cohen_kappa_score(labels[of_judge.index], of_judge)
    assert row.kappa.value == pytest.approx(kappa)
    assert row.kappa.low < kappa < row.kappa.high
    assert agreement.annotator_kappa.raters == 4
    assert all([agreement.annotators, agreement.pairs, agreement.rankings])
    json.dumps(agreement_json(report(agreement)), allow_nan=False)
