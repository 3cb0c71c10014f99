"""Verdicts to results, rates and counts: what counts, and what is missing."""

from __future__ import annotations

import math
from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.judge_table import judge_facts, judge_table, pair_facts
from botchat.boards.protocols import ProtocolVerdicts, model_results, pair_results, with_missing
from botchat.metrics.verdicts import PairVerdicts
from botchat.protocols.catalogue import ARENA
from botchat.protocols.rates import passes, successes
from botchat.ratings.comparisons import Comparisons, comparisons_of
from botchat.records import Dialogue, Judgment, Seed
from tests.boards import judgment, make_records


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


PASSES = """
    m 16 complete No 16 pass      m 16 complete 9 8 pass        m 16 complete 8 8 fail
    m 16 complete 3 16 fail       m 16 complete - 4 unknown
    m 6 stopped:x No 4 pass       m 6 stopped:x No 8 unknown
    m 6 stopped:x 5 4 pass        m 6 stopped:x 5 8 fail
    human 3 complete No 3 pass    human 3 complete No 16 unknown
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


KEYS = [(s, *pair) for s in ("s1", "s2", "s3") for pair in permutations("abc", 2)]
PAIRWISE = st.sampled_from(["1", "2", "both", "neither", None])


def compared(judgments: list[Judgment]) -> Comparisons:
    """The readable ones."""
    verdicts = PairVerdicts.of_judgments(judgments, ARENA)
    readable = verdicts.only(verdicts.readable)
    return comparisons_of(readable, readable.item)


@given(st.dictionaries(st.sampled_from(KEYS), PAIRWISE))
def test_pair_results_are_those_by_hand(verdicts):
    """Each pair's wins, ties and losses from both orders, the rest of the 6 comparisons missing."""
    comparisons = compared(
        [judgment("arena-n8", s, (a, b), verdict) for (s, a, b), verdict in verdicts.items()]
    )
    results = with_missing(pair_results(comparisons), list(permutations("abc", 2)), 6)
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
    models = with_missing(model_results(comparisons), "abc", 12)
    both = results.groupby(level=0)[["n", "missing"]].sum()
    assert models[["n", "missing"]].to_numpy().tolist() == both.to_numpy().tolist()


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        # Always the second: it contradicts itself on every pair, and the first shown always wins.
        ("x ab 2, x ba 2, y ab 2, y ba 2", (0, 1, 0, 0)),
        # No order: mirrored verdicts and two ties agree; a pair readable in one order is missing.
        ("w ab 1, w ba 2, x ab both, x ba neither, y ab 1, y ba -, z ba 1",
         (1, 1 / 2, 2 / 6, 1 / 7)),
        ("w ab 1", (math.nan, math.nan, 0, 0)),
    ],
)  # fmt: skip
def test_verdict_rates_of_a_judge_by_hand(verdicts, expected):
    """Consistency, the first preferred, ties and unreadable verdicts."""
    rows = [row.split() for row in verdicts.split(", ")]
    judgments = [judgment("arena-n8", s, (p[0], p[1]), None if v == "-" else v) for s, p, v in rows]
    seen = PairVerdicts.of_judgments(judgments, ARENA)
    facts = pair_facts(seen, seen.item)
    names = ("consistency", "first_preferred", "ties", "unreadable_rate")
    values = tuple(facts.rate(name).value for name in names)
    assert values == pytest.approx(expected, nan_ok=True)
    assert (facts.judged, facts.unreadable) == (len(rows), verdicts.count("-"))


# The judge's own table: lengths it prefers, and humans and machines it calls AI.


RECORDS = make_records({"short": 0.5, "long": 0.5}, 6)
DIALOGUES = {
    name: {
        seed_id: msgspec.structs.replace(
            dialogue, utterances=("Hi there.", "Hello.", *["word " * times] * 6)
        )
        for seed_id, dialogue in RECORDS.dialogues[name].items()
    }
    for name, times in (("short", 1), ("long", 3))
}


def row_of(judgments: list[Judgment]) -> dict[str, object]:
    """The row of one pairwise protocol."""
    judged = ProtocolVerdicts(ARENA.at(8), (), PairVerdicts.of_judgments(judgments, ARENA))
    (row,) = judge_table(judge_facts([judged], DIALOGUES).values(), ["x"]).records
    return row


def test_the_longer_dialogue_has_more_words_of_those_shown():
    """Of five: two for the longer, one for the shorter, a tie, an unreadable one."""
    verdicts = [("S-1", ("short", "long"), "1"), ("S-1", ("long", "short"), "2"),
                ("S-2", ("long", "short"), "1"), ("S-3", ("long", "short"), "both"),
                ("S-4", ("long", "short"), None)]  # fmt: skip
    judgments = [judgment("arena-n8", s, pair, verdict, 8) for s, pair, verdict in verdicts]
    row = row_of(judgments)
    assert row["longer_preferred"] == pytest.approx(2 / 3, abs=1e-4)
    assert (row["judged"], row["unreadable"], row["unreadable_rate"]) == (5, 1, 0.2)
    # Cut before the first generated utterance both are as long.
    cut = [msgspec.structs.replace(j, shown=2) for j in judgments]
    assert "longer_preferred" not in row_of(cut)
