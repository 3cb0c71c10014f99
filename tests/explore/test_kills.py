"""Kills of every kind of run at random moments, by hand; five of them: `tests/integration`."""

from __future__ import annotations

import pytest

from benchmarks import kills
from tests.explore import FROM, N

pytestmark = pytest.mark.explore


@pytest.mark.skipif(not N, reason="make explore: processes by the hundred")
def test_nothing_is_lost_or_paid_twice_whenever_a_run_is_ended():
    """Judges, panels, whole runs and batches."""
    flags = ["--kills", str(max(36, N // 5)), "--n-seeds", "6", "--latency-ms", "2"]
    assert kills.main([*flags, "--seed", str(FROM)]) == 0
