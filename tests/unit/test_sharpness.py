"""d′ and criterion: one sharpness, and three rates of success."""

from __future__ import annotations

from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.measures.facts import accusations, sharpness
from botchat.measures.intervals import share
from botchat.records import HUMAN, Judgment

CDF = NormalDist().cdf


def row_of(caught: int, machines: int, accused: int, people: int) -> dict[str, float]:
    """As a judge that is right so often has it."""
    row = share([i < caught for i in range(machines)], None, "machines_caught")
    row |= share([i < accused for i in range(people)], None, "people_accused")
    return sharpness(row, machines, people)


@pytest.mark.parametrize(
    ("counts", "d", "c"),
    [
        ((80, 100, 20, 100), 1.662, 0.0),  # z(80.5 / 101) and z(20.5 / 101)
        ((20, 20, 0, 20), 3.960, 0.0),
        ((50, 100, 50, 100), 0.0, 0.0),
        ((10, 100, 10, 100), 0.0, 1.260),
    ],
)
def test_by_hand(counts: tuple[int, int, int, int], d: float, c: float) -> None:
    """With half a case added to each kind, none is infinite."""
    found = row_of(*counts)
    assert found["d_prime"] == pytest.approx(d, abs=2e-3)
    assert found["criterion"] == pytest.approx(c, abs=2e-3)


def test_one_sharpness_and_three_rates_of_success() -> None:
    """Judges who differ in nothing but how readily they accuse."""
    found = []
    for c in (-0.5, 0.0, 0.5):
        caught, accused = CDF(0.6 / 2 - c), CDF(-0.6 / 2 - c)
        found.append(row_of(round(1000 * caught), 1000, round(1000 * accused), 1000))
    assert [one["d_prime"] for one in found] == pytest.approx([0.6] * 3, abs=0.01)
    assert [one["criterion"] for one in found] == pytest.approx([-0.5, 0, 0.5], abs=0.01)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 1), st.floats(0, 1))
def test_the_interval_holds_the_figure(n: int, m: int, one: float, other: float) -> None:
    """At any counts, and it has a width."""
    found = row_of(round(one * n), n, round(other * m), m)
    for key in ("d_prime", "criterion"):
        assert found[f"{key}_low"] < found[key] < found[f"{key}_high"]


def test_without_people_nothing_is_known() -> None:
    """And unreadable verdicts are nobody's."""
    made = [
        Judgment("unieval", f"s{i}", (who,), "j", verdict, "", 4, "", "")
        for i, (who, verdict) in enumerate([("m", "3"), ("m", None), ("m", "No"), (HUMAN, None)])
    ]
    assert accusations(made, "No")["d_prime"] is None
    known = accusations(
        [*made, Judgment("unieval", "s9", (HUMAN,), "j", "No", "", 4, "", "")], "No"
    )
    assert (known["people"], known["machines_caught"], known["people_accused"]) == (1, 0.5, 0.0)
    assert known["d_prime"] is not None
    assert accusations(made, None)["machines_caught"] is None
