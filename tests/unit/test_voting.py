"""How votes become one verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.judges.voting import aggregate, is_tie, mirrored, opening_votes
from botchat.protocols.catalogue import ARENA
from botchat.records import Remark
from tests.rows import rows

INDICES = frozenset({"No", *map(str, range(1, 17))})
SCALE = frozenset(map(str, range(1, 11)))
PAIRS = frozenset(f"{a} {b}" for a in range(1, 11) for b in range(1, 11))


@pytest.mark.parametrize(
    ("votes", "verdict"),
    rows("labels_go_to_the_most_frequent_and_splits_to_each_dialogue_by_itself"),
)
def test_labels_go_to_the_most_frequent_and_splits_to_each_dialogue_by_itself(votes, verdict):
    """The plurality wins; in an even split a dialogue is accused by more than half or not."""
    assert aggregate(votes.split(), ARENA.reading().choices) == verdict


def test_an_even_split_without_a_tie_to_name_is_no_verdict():
    """Answer comparison offers a tie; a question that offers none is left without a verdict."""
    assert aggregate(["1", "2"], {"1", "2", "tie"}) == "tie"
    assert aggregate(["1", "2"], {"1", "2"}) is None
    assert aggregate(["1", "2", "2"], {"1", "2"}) == "2"


def test_missing_votes_are_not_counted():
    """Nobody's vote is no verdict; an absent voter changes nothing for the others."""
    assert aggregate([None, None], ARENA.reading().choices) is None
    assert aggregate([], INDICES) is None
    assert aggregate([None, "2", None], ARENA.reading().choices) == "2"
    assert aggregate([None, "4", "No", "9"], INDICES) == "9"


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ("3 5 No", "5"),
        ("3 No", "No"),
        ("3 5", "5"),
        ("3 3 7 No", "7"),
        ("No No 1", "No"),
        ("10 9 2", "9"),
    ],
)
def test_indices_go_to_the_utterance_by_which_more_than_half_accuse(votes, verdict):
    """The worked examples of the definition; 10 is behind 9."""
    assert aggregate(votes.split(), INDICES) == verdict


@given(st.lists(st.sampled_from(sorted(INDICES)), min_size=1, max_size=9))
def test_the_panels_pass_at_n_is_the_majority_of_its_members(votes):
    """At every N the panel accuses by N exactly if more than half of the members do."""

    def accuses(vote, n):
        return vote != "No" and int(vote) <= n

    verdict = aggregate(votes, INDICES)
    for n in range(1, 17):
        assert accuses(verdict, n) == (sum(accuses(vote, n) for vote in votes) > len(votes) / 2)


def test_scores_are_averaged_each_for_itself():
    """ChatEval: the mean; a pair of scores stays a pair; majority takes them for labels."""
    assert aggregate(["7", "8"], SCALE) == "7.5"
    assert aggregate(["10", "10"], SCALE) == "10"
    assert aggregate(["8 6", "7 6", "6 9"], PAIRS) == "7 7"
    assert aggregate(["1", "1", "2"], SCALE) == "1.3333"
    assert aggregate(["1", "1", "2"], SCALE, "majority") == "1"
    assert aggregate(["8", "8.5"], SCALE | {"8.5"}) == "8.25"


@pytest.mark.parametrize("choices", [ARENA.reading().choices, INDICES, SCALE, PAIRS])
@given(data=st.data())
def test_the_order_of_the_votes_never_matters(choices, data):
    """Any permutation of any votes gives the same verdict."""
    ballot = st.sampled_from([None, *sorted(choices)])
    votes = data.draw(st.lists(ballot, max_size=8))
    assert aggregate(data.draw(st.permutations(votes)), choices) == aggregate(votes, choices)


@pytest.mark.parametrize("choices", [ARENA.reading().choices, PAIRS, frozenset({"1", "2", "tie"})])
@given(data=st.data())
def test_swapping_the_sides_of_every_vote_swaps_the_verdict(choices, data):
    """No position is preferred, also not by the rule for even splits."""
    votes = data.draw(st.lists(st.sampled_from(sorted(choices)), max_size=8))
    swapped = aggregate([mirrored(vote) for vote in votes], choices)
    assert swapped == mirrored(aggregate(votes, choices))


def test_ties_prefer_neither_side():
    """Both, Neither, tie and equal scores are ties."""
    assert all(map(is_tie, ["both", "neither", "tie", "7 7"]))
    assert not any(map(is_tie, ["1", "2", "7 8", "7"]))


def test_opening_votes_are_the_first_of_each_member_in_the_order_of_the_case():
    """Speakers without a vote are left out; votes on the swapped order are mirrored back."""
    talk = (
        Remark("Decomposer", "1. a"),
        Remark("Critic", "x", verdict="1"),
        Remark("Scientist", "", outcome="refused"),
        Remark("Summarizer", "s"),
        Remark("Critic", "y", verdict="2"),
        Remark("Critic (swapped)", "z", verdict="1"),
        Remark("Feedback (swapped)", "f"),
        Remark("Critic (swapped)", "z", verdict="2"),
    )
    assert opening_votes(talk) == ("1", None, "2")
