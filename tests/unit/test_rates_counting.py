"""Verdicts to results, rates and tallies: what counts, and what is missing."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.results import Tallies, comparisons_of
from botchat.errors import DataError
from botchat.interfaces import Row
from botchat.metrics.annotations import NOT_SAID, accused_index
from botchat.metrics.intervals import figures
from botchat.metrics.judge_bias import facts
from botchat.protocols.catalogue import ARENA
from botchat.protocols.rates import Rate, WinTieLose, passes, success
from botchat.records import HUMAN, Dialogue, Judgment, Seed
from botchat.verdicts import Verdicts
from tests.boards import judgment

PAIRWISE = st.sampled_from(["1", "2", "both", "neither", None])


def dialogue(
    n: int, *, model: str = "m", seed_id: str = "S-1", status: str = "complete"
) -> Dialogue:
    """A dialogue of ``n`` utterances."""
    return Dialogue(
        seed_id=seed_id,
        model=model,
        utterances=tuple(f"line {i}" for i in range(n)),
        n_seed=2,
        facts=(),
        status=status,
        signature="",
    )


def seed(n: int, seed_id: str = "S-1") -> Seed:
    """A human dialogue of ``n`` utterances."""
    return Seed(seed_id, tuple(f"line {i}" for i in range(n)))


@pytest.mark.parametrize(
    ("verdict", "score"), [("1", 0.0), ("2", 1.0), ("both", 0.5), ("neither", 0.5), (None, None)]
)
def test_result_is_for_the_first_shown(verdict: str | None, score: float | None) -> None:
    """The contestant whose conversation alone is AI-involved loses; no verdict is no result."""
    assert ARENA.result(verdict) == score


@pytest.mark.parametrize("verdict", ["", "3", "No", "Both", "tie"])
def test_a_verdict_out_of_the_set_is_an_error(verdict: str) -> None:
    """Nothing that Arena does not offer is taken for a tie."""
    with pytest.raises(DataError, match="pairwise"):
        ARENA.result(verdict)


@pytest.mark.parametrize(
    ("verdict", "turns", "result"),
    [("No", 16, True), ("9", 8, True), ("8", 8, False), ("3", 16, False), (None, 4, None)],
)
def test_a_dialogue_passes_up_to_the_accused_utterance(
    verdict: str | None, turns: int, result: bool | None
) -> None:
    """Pass@N means "No" or an index above N; without a verdict nothing is known."""
    assert passes(dialogue(16), verdict, turns) is result


def test_a_stopped_dialogue_shows_nothing_beyond_its_end() -> None:
    """Accused it has failed for good; not accused, it is unknown at any N that it did not reach."""
    stopped = dialogue(6, status="stopped:refused")
    assert passes(stopped, "No", 4) is True
    assert passes(stopped, "No", 8) is None
    assert passes(stopped, "5", 4) is True
    assert passes(stopped, "5", 8) is False


def test_a_human_dialogue_is_complete_at_its_own_length() -> None:
    """A dialogue of three human utterances passes at N = 16 where nobody accuses it."""
    assert passes(dialogue(3, model=HUMAN), "No", 16) is True
    assert passes(dialogue(3, model=HUMAN), "2", 16) is False


@pytest.mark.parametrize("verdict", ["yes", "0", "-1", "²", "1.5", ""])
def test_a_verdict_that_is_no_index_is_an_error(verdict: str) -> None:
    """UniEval offers No and the indices from 1."""
    with pytest.raises(DataError, match="UniEval"):
        passes(dialogue(16), verdict, 8)


def test_a_rate_has_coverage() -> None:
    """Three hits of four covered with one missing: 0.75, 80 % covered."""
    rate = Rate(hits=3, n=4, missing=1)
    assert (rate.value, rate.coverage) == (0.75, 0.8)


def test_a_rate_of_nothing_is_nan() -> None:
    """Nothing covered gives no number."""
    assert math.isnan(Rate(0, 0, 0).value)
    assert math.isnan(Rate(0, 0, 0).coverage)


def test_success_counts_every_seed() -> None:
    """Without a dialogue, a judgment or a verdict a seed is missing, not failed."""
    seeds = [seed(4, f"S-{i}") for i in range(5)]
    dialogues = {f"S-{i}": dialogue(16, seed_id=f"S-{i}") for i in range(4)}
    verdicts = {"S-0": "No", "S-1": "7", "S-2": None}
    assert success(seeds, dialogues, verdicts, 8) == Rate(1, 2, 3)
    assert success(seeds, dialogues, verdicts, 4) == Rate(2, 2, 3)


def test_success_at_human_length_takes_each_seeds_own() -> None:
    """N is 4 for one seed and 9 for the other; a human dialogue of 3 utterances is left out."""
    seeds = [seed(4, "a"), seed(9, "b"), seed(3, "c")]
    dialogues = {s.id: dialogue(16, seed_id=s.id) for s in seeds}
    verdicts = dict.fromkeys(dialogues, "6")
    assert success(seeds, dialogues, verdicts, None) == Rate(1, 2, 0)


@given(
    st.lists(
        st.tuples(
            st.integers(2, 20), st.sampled_from(["complete", "stopped:empty"]), st.booleans()
        ),
        min_size=1,
        max_size=12,
    ),
    st.data(),
)
def test_success_never_rises_with_n(
    shapes: list[tuple[int, str, bool]], data: st.DataObject
) -> None:
    """Whatever the lengths, stops and verdicts, the rate at a greater N is not higher."""
    seeds = [seed(5, str(i)) for i in range(len(shapes))]
    dialogues, verdicts = {}, {}
    for i, (n, status, human) in enumerate(shapes):
        dialogues[str(i)] = dialogue(
            n, model=HUMAN if human else "m", seed_id=str(i), status=status
        )
        verdicts[str(i)] = data.draw(
            st.sampled_from([None, "No", *map(str, range(1, n + 1))]), label="verdict"
        )
    rates = [success(seeds, dialogues, verdicts, n) for n in range(1, 22)]
    known = [rate.value for rate in rates if rate.n]
    assert all(later <= earlier for earlier, later in pairwise(known))
    assert all(rate.n + rate.missing == len(seeds) for rate in rates)


def all_judgments(
    verdicts: dict[tuple[str, str, str], str | None],
) -> list[Judgment]:
    """Judgments by seed, first and second shown."""
    return [judgment("arena-n8", s, (a, b), verdict) for (s, a, b), verdict in verdicts.items()]


@st.composite
def judged(draw: st.DrawFn) -> dict[tuple[str, str, str], str | None]:
    """Some orders of some pairs of three models on three seeds, judged anyhow."""
    keys = [
        (s, *shown)
        for s in ("s1", "s2", "s3")
        for a, b in combinations("abc", 2)
        for shown in ((a, b), (b, a))
    ]
    chosen = draw(st.lists(st.sampled_from(keys), unique=True))
    return {key: draw(PAIRWISE) for key in chosen}


def tallies(made: list[Judgment], n_seeds: int) -> Tallies:
    """Of three contestants, each two compared on every seed in both orders."""
    verdicts = Verdicts.of(made, ARENA)
    return Tallies.of(comparisons_of(verdicts.only(verdicts.readable)), "abc", 2 * n_seeds)


@given(judged())
def test_tallies_are_what_one_counts_by_hand(
    verdicts: dict[tuple[str, str, str], str | None],
) -> None:
    """Each pair's wins, ties and losses from both orders, the rest of the 6 comparisons missing."""
    found = tallies(all_judgments(verdicts), 3)
    for a, b in [(x, y) for x in "abc" for y in "abc" if x != y]:
        wins = sum(v == ("2" if one == a else "1") for (_, one, two), v in verdicts.items()
                   if {one, two} == {a, b})  # fmt: skip
        ties = sum(v in ("both", "neither") for (_, *pair), v in verdicts.items()
                   if set(pair) == {a, b})  # fmt: skip
        readable = sum(v is not None for (_, *pair), v in verdicts.items() if set(pair) == {a, b})
        assert found.of_pair(a, b) == WinTieLose(wins, ties, readable - wins - ties, 6 - readable)


def said_of(verdicts: Verdicts) -> Row:
    """What they say of their judge."""
    made = verdicts.both_orders()
    return figures(facts(made.results, made.seed))


def test_a_pair_without_a_win_or_a_verdict_is_there() -> None:
    """A model that never wins has a win rate of 0; a pair that was not judged has none."""
    made = [judgment("arena-n8", "s", ("a", "b"), "2"), judgment("arena-n8", "s", ("b", "a"), "1")]
    found = tallies(made, 1)
    assert found.of_pair("b", "a").win == Rate(0, 2, 0)
    assert found.of_pair("c", "a").win == Rate(0, 0, 2)


def test_steadiness_of_a_judge_that_always_takes_the_second() -> None:
    """It contradicts itself on every pair, and the first shown always wins."""
    made = [
        judgment("arena-n8", s, shown, "2") for s in "xyz" for shown in (("a", "b"), ("b", "a"))
    ]
    found = said_of(Verdicts.of(made, ARENA))
    assert [found[name] for name in ("consistency", "same_winner", "first_preferred")] == [0, 0, 1]


def test_steadiness_of_a_judge_that_sees_no_order() -> None:
    """Mirrored verdicts and two ties agree; a pair with an unreadable or no second is missing."""
    made = [
        judgment("arena-n8", "w", ("a", "b"), "1"),
        judgment("arena-n8", "w", ("b", "a"), "2"),
        judgment("arena-n8", "x", ("a", "b"), "both"),
        judgment("arena-n8", "x", ("b", "a"), "neither"),
        judgment("arena-n8", "y", ("a", "b"), "1"),
        judgment("arena-n8", "y", ("b", "a"), None),
        judgment("arena-n8", "z", ("b", "a"), "1"),
    ]
    found = said_of(Verdicts.of(made, ARENA))
    names = ("consistency", "same_winner", "first_preferred", "ties", "unreadable_rate")
    assert [found[name] for name in names] == [1, 1, 1 / 2, 2 / 6, 1 / 7]


def test_accusations_without_an_index_fail_at_the_end_and_are_unknown_before() -> None:
    """``Yes``: AI-involved somewhere behind the ChatSEED."""

    def passing(n: int, turns: int) -> bool | None:
        dialogue = Dialogue("s1", "m", ("x",) * n, 2, (), "complete", "")
        return passes(dialogue, "Yes", turns)

    assert [passing(16, n) for n in (2, 3, 8, 15, 16)] == [True, None, None, None, False]
    assert passing(8, 16) is False
    assert [accused_index(verdict, "x") for verdict in ("No", "7", "Yes")] == [0, 7, NOT_SAID]
    with pytest.raises(DataError, match="neither No, Yes nor an index"):
        accused_index("perhaps", "x")
