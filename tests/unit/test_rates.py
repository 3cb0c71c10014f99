"""Verdicts to results, rates and counts: what counts, and what is missing."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.judge_table import pair_rates
from botchat.boards.pairs import comparisons_of, covered, model_results, pair_results
from botchat.errors import DataError
from botchat.metrics.annotations import NOT_SAID, UNTOLD, accused_index
from botchat.protocols.catalogue import ARENA
from botchat.protocols.rates import passes, successes
from botchat.ratings.comparisons import Comparisons
from botchat.records import HUMAN, UNDECIDED, Dialogue, Judgment, Seed
from botchat.verdicts import Verdicts
from tests.boards import judgment


def dialogue(
    n: int, *, model: str = "m", seed_id: str = "S-1", status: str = "complete"
) -> Dialogue:
    """A dialogue of ``n`` utterances."""
    utterances = tuple(f"line {i}" for i in range(n))
    return Dialogue(seed_id, model, utterances, 2, (), status, "")


def seed(n: int, seed_id: str = "S-1") -> Seed:
    """A human dialogue of ``n`` utterances."""
    return Seed(seed_id, tuple(f"line {i}" for i in range(n)))


@pytest.mark.parametrize(
    ("verdict", "result"), [("1", 0.0), ("2", 1.0), ("both", 0.5), ("neither", 0.5), (None, None)]
)
def test_result_is_for_the_first_shown(verdict, result):
    """The contestant whose conversation alone is AI-involved loses; no verdict is no result."""
    assert ARENA.result(verdict) == result


@pytest.mark.parametrize("verdict", ["", "3", "No", "Both", "tie"])
def test_a_verdict_out_of_the_set_is_an_error(verdict):
    """Nothing that Arena does not offer is taken for a tie."""
    with pytest.raises(DataError, match="pairwise"):
        ARENA.result(verdict)


PASSES = """
    m 16 complete No 16 pass      m 16 complete 9 8 pass        m 16 complete 8 8 fail
    m 16 complete 3 16 fail       m 16 complete - 4 unknown
    m 6 stopped:x No 4 pass       m 6 stopped:x No 8 unknown
    m 6 stopped:x 5 4 pass        m 6 stopped:x 5 8 fail
    human 3 complete No 16 pass   human 3 complete 2 16 fail
    m 16 complete Yes 2 pass      m 16 complete Yes 3 unknown   m 16 complete Yes 15 unknown
    m 16 complete Yes 16 fail     m 8 complete Yes 16 fail      m 16 complete Undecided 4 unknown
""".split()  # noqa: SIM905
"""Model, utterances, status, verdict, N and result: as in the paper; of a dialogue that broke off;
of a human one, which is complete at its own length; AI-involved somewhere behind the ChatSEED."""


@pytest.mark.parametrize("row", [*zip(*[iter(PASSES)] * 6, strict=True)], ids=" ".join)
def test_a_dialogue_passes_up_to_the_accused_utterance(row):
    """Pass@N of every kind of dialogue and verdict."""
    model, n, status, verdict, turns, result = row
    case = dialogue(int(n), model=model, status=status)
    passed = passes(case, None if verdict == "-" else verdict, int(turns))
    assert passed is {"pass": True, "fail": False, "unknown": None}[result]


@pytest.mark.parametrize("verdict", ["yes", "0", "-1", "²", "1.5", ""])
def test_a_verdict_that_is_no_index_is_an_error(verdict):
    """UniEval offers No, Yes and the indices from 1."""
    with pytest.raises(DataError, match="UniEval"):
        passes(dialogue(16), verdict, 8)


def test_an_accused_index_is_one_of_four_kinds():
    """None, an utterance, not said from where, and an annotator who cannot tell."""
    verdicts = ("No", "7", "Yes", UNDECIDED)
    assert [accused_index(verdict, "x") for verdict in verdicts] == [0, 7, NOT_SAID, UNTOLD]
    with pytest.raises(DataError, match="neither No, Yes nor an index"):
        accused_index("perhaps", "x")


def test_success_counts_every_seed():
    """Without a dialogue, a judgment or a verdict a seed is missing, not failed."""
    seeds = [seed(4, f"S-{i}") for i in range(5)]
    dialogues = {f"S-{i}": dialogue(16, seed_id=f"S-{i}") for i in range(4)}
    verdicts = {"S-0": "No", "S-1": "7", "S-2": None}
    passed = {"S-0": True, "S-1": False, "S-2": None, "S-3": None, "S-4": None}
    assert successes(seeds, dialogues, verdicts, 8) == passed
    assert successes(seeds, dialogues, verdicts, 4) == passed | {"S-1": True}


def test_success_at_human_length_takes_each_seeds_own():
    """N is 4 for one seed and 9 for the other; a human dialogue of 3 utterances is left out."""
    seeds = [seed(4, "a"), seed(9, "b"), seed(3, "c")]
    dialogues = {s.id: dialogue(16, seed_id=s.id) for s in seeds}
    passed = successes(seeds, dialogues, dict.fromkeys(dialogues, "6"), None)
    assert passed == {"a": True, "b": False}


SHAPES = st.tuples(
    st.integers(2, 20), st.sampled_from(["complete", "stopped:empty"]), st.booleans()
)


@given(st.lists(SHAPES, min_size=1, max_size=12), st.data())
def test_success_never_rises_with_n(shapes, data):
    """Whatever the lengths, stops and verdicts, the rate at a greater N is not higher."""
    seeds = [seed(5, str(i)) for i in range(len(shapes))]
    dialogues, verdicts = {}, {}
    for i, (n, status, is_human) in enumerate(shapes):
        name = HUMAN if is_human else "m"
        dialogues[str(i)] = dialogue(n, model=name, seed_id=str(i), status=status)
        verdicts[str(i)] = data.draw(st.sampled_from([None, "No", *map(str, range(1, n + 1))]))
    passed = [successes(seeds, dialogues, verdicts, n) for n in range(1, 22)]
    known = [[one for one in each.values() if one is not None] for each in passed]
    rates = [sum(each) / len(each) for each in known if each]
    assert all(later <= earlier for earlier, later in pairwise(rates))
    assert all(len(each) == len(seeds) for each in passed)


KEYS = [(s, *pair) for s in ("s1", "s2", "s3") for pair in permutations("abc", 2)]
PAIRWISE = st.sampled_from(["1", "2", "both", "neither", None])


def compared(judgments: list[Judgment]) -> Comparisons:
    """The readable ones."""
    verdicts = Verdicts.of(judgments, ARENA)
    return comparisons_of(verdicts.only(verdicts.readable), np.arange(len(verdicts.seed_ids)))


@given(st.dictionaries(st.sampled_from(KEYS), PAIRWISE))
def test_pair_results_are_those_by_hand(verdicts):
    """Each pair's wins, ties and losses from both orders, the rest of the 6 comparisons missing."""
    comparisons = compared(
        [judgment("arena-n8", s, (a, b), verdict) for (s, a, b), verdict in verdicts.items()]
    )
    results = covered(pair_results(comparisons), list(permutations("abc", 2)), 6)
    for a, b in permutations("abc", 2):
        pair = [
            (first, v) for (_, first, second), v in verdicts.items() if {first, second} == {a, b}
        ]
        wins = sum(v == ("2" if first == a else "1") for first, v in pair)
        ties = sum(v in ("both", "neither") for _, v in pair)
        n = sum(v is not None for _, v in pair)
        row = results.loc[(a, b)]
        assert (row["n"], row["missing"]) == (n, 6 - n)
        if n:
            counts = [n * row[key] for key in ("win", "tie", "lose", "win_or_tie")]
            assert counts == pytest.approx([wins, ties, n - wins - ties, wins + ties])
        else:
            assert np.isnan(row["win"])
    models = covered(model_results(comparisons), "abc", 12)
    both = results.groupby(level=0)[["n", "missing"]].sum()
    assert models[["n", "missing"]].to_numpy().tolist() == both.to_numpy().tolist()


def test_a_pair_without_a_win_or_a_verdict_is_counted():
    """A model that never wins has a win rate of 0; a pair that was not judged has none."""
    judgments = [
        judgment("arena-n8", "s", ("a", "b"), "2"),
        judgment("arena-n8", "s", ("b", "a"), "1"),
    ]
    results = covered(pair_results(compared(judgments)), [("b", "a"), ("c", "a")], 2)
    assert results[["win", "n", "missing"]].iloc[0].tolist() == [0, 2, 0]
    assert results[["n", "missing"]].iloc[1].tolist() == [0, 2]
    assert np.isnan(results["win"].iloc[1])


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        # Always the second: it contradicts itself on every pair, and the first shown always wins.
        ("x ab 2, x ba 2, y ab 2, y ba 2", (0, 1, 0, 0)),
        # No order: mirrored verdicts and two ties agree; a pair readable in one order is missing.
        ("w ab 1, w ba 2, x ab both, x ba neither, y ab 1, y ba -, z ba 1",
         (1, 1 / 2, 2 / 6, 1 / 7)),
        ("w ab 1", (None, None, 0, 0)),
    ],
)  # fmt: skip
def test_verdict_rates_of_a_judge_by_hand(verdicts, expected):
    """Consistency, the first preferred, ties and unreadable verdicts."""
    rows = [row.split() for row in verdicts.split(", ")]
    judgments = [judgment("arena-n8", s, (p[0], p[1]), None if v == "-" else v) for s, p, v in rows]
    seen = Verdicts.of(judgments, ARENA)
    rates = pair_rates(seen, np.arange(len(seen.seed_ids)))
    names = ("consistency", "first_preferred", "ties", "unreadable_rate")
    assert tuple(rates[name] for name in names) == pytest.approx(expected)
    assert (rates["judged"], rates["unreadable"]) == (len(rows), verdicts.count("-"))
