"""Verdicts to results, rates and counts: what counts, and what is missing."""

import math
from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.judge_table import judge_facts, judge_table, pair_facts
from botchat.boards.protocols import (
    ProtocolVerdicts,
    detection_result,
    results,
    with_missing,
)
from botchat.boards.success import passes
from botchat.metrics.verdicts import PairVerdicts
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.ratings.comparisons import Comparisons, comparisons_of
from botchat.records import Dialogue, Judgment, Seed
from tests.boards import judgment, make_records


@pytest.mark.parametrize(
    ("verdict", "result"), [("1", 0.0), ("2", 1.0), ("both", 0.5), ("neither", 0.5), (None, None)]
)
def test_result_is_for_the_first_shown(verdict, result):
    """The contestant whose conversation alone is AI-involved loses; no verdict is no result."""
    assert ARENA.answer.result(verdict) == result


PASSES = """
    16 No 16 pass    16 9 8 pass    16 8 8 fail    16 3 16 fail    16 - 4 unknown
    6 No 4 pass      6 No 8 unknown    6 5 4 pass    6 5 8 fail    3 No 3 pass    3 No 16 unknown
    16 Yes 2 pass    16 Yes 3 unknown    16 Yes 15 unknown    16 Yes 16 fail    8 Yes 16 fail
    16 Undecided 4 unknown
""".split()  # noqa: SIM905
"""Utterances, verdict, N and result: as in the paper; of a dialogue that broke off, or is human and
complete at its own length; AI-involved somewhere behind the ChatSEED."""


@pytest.mark.parametrize("row", [*zip(*[iter(PASSES)] * 4, strict=True)], ids=" ".join)
def test_a_dialogue_passes_up_to_the_accused_utterance(row):
    """Pass@N of every kind of dialogue and verdict."""
    n, verdict, turns, result = row
    said = judgment("unieval", "S-1", ("m",), None if verdict == "-" else verdict, int(n))
    judged = ProtocolVerdicts(UNIEVAL, [said], PairVerdicts.of([]))
    (passed,) = passes(judged.ends, int(turns))
    expected = {"pass": 1, "fail": 0, "unknown": math.nan}[result]
    assert passed == pytest.approx(expected, nan_ok=True)


def test_success_counts_every_seed():
    """Without a judgment or a verdict a seed is missing, not failed; N may be each seed's own."""
    seeds = [Seed(f"S-{i}", ("x",) * n) for i, n in enumerate((4, 9, 3, 4, 4))]
    dialogues = {
        "m": {s.id: Dialogue(s.id, "m", ("x",) * 16, 2, (), "complete", "") for s in seeds}
    }
    said = [
        judgment("unieval", f"S-{i}", ("m",), each) for i, each in enumerate(["6", "7", "No", None])
    ]
    judged = ProtocolVerdicts(UNIEVAL, said, PairVerdicts.of([]), seeds, dialogues)
    (row,) = detection_result(judged).table.records
    assert (row["n"], row["missing"]) == (3, 2)
    assert row["success_n4"] == 1
    # Of those of 4 utterances or more: 6 is behind the fourth, 7 is not behind the ninth.
    assert row["success_human_length"] == 0.5


KEYS = [(s, *pair) for s in ("s1", "s2", "s3") for pair in permutations("abc", 2)]
PAIRWISE = st.sampled_from(["1", "2", "both", "neither", None])


def compared(judgments: list[Judgment]) -> Comparisons:
    """The readable ones."""
    verdicts = PairVerdicts.of_judgments(judgments, ARENA.answer)
    readable = verdicts.only(verdicts.readable)
    return comparisons_of(readable, readable.item)


@given(st.dictionaries(st.sampled_from(KEYS), PAIRWISE))
def test_pair_results_are_those_by_hand(verdicts):
    """Each pair's wins, ties and losses from both orders, the rest of the 6 comparisons missing."""
    comparisons = compared(
        [judgment("arena-n8", s, (a, b), verdict) for (s, a, b), verdict in verdicts.items()]
    )
    of_pairs = results(comparisons, of_pairs=True)
    pairs = with_missing(of_pairs, list(permutations("abc", 2)), 6)
    for a, b in permutations("abc", 2):
        pair = [
            (first, v) for (_, first, second), v in verdicts.items() if {first, second} == {a, b}
        ]
        wins = sum(v == ("2" if first == a else "1") for first, v in pair)
        ties = sum(v in ("both", "neither") for _, v in pair)
        n = sum(v is not None for _, v in pair)
        row = pairs.loc[(a, b)]
        assert (row["n"], row["missing"]) == (n, 6 - n)
        if n:
            counts = [n * row[key] for key in ("win", "tie", "lose", "win_or_tie")]
            assert counts == pytest.approx([wins, ties, n - wins - ties, wins + ties])
        else:
            assert np.isnan(row["win"])
    models = with_missing(results(comparisons), list("abc"), 12)
    both = pairs.groupby(level=0)[["n", "missing"]].sum()
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
    seen = PairVerdicts.of_judgments(judgments, ARENA.answer)
    facts = pair_facts(seen, seen.item, seen.item)
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
    verdicts = PairVerdicts.of_judgments(judgments, ARENA.answer)
    judged = ProtocolVerdicts(ARENA.at(8), (), verdicts, dialogues=DIALOGUES)
    (row,) = judge_table([judge_facts(judged)], ["x"]).records
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
