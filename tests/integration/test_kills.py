"""`benchmarks/kills.py` in short: nothing is lost or paid twice, whenever a run is ended."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT


def test_a_dozen_kills_lose_nothing():
    """KILL, TERM, HUP, INT over generate, a judge, a panel, a cascade and an adaptive Arena."""
    command = [sys.executable, "benchmarks/kills.py", "--kills", "12", "--n-seeds", "8"]
    ran = subprocess.run(
        [*command, "--latency-ms", "2"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split(" | ") for line in ran.stdout.splitlines()[1:-1]]
    assert [row[0] for row in rows] == ["generate", "single", "panel", "cascade", "adaptive"]
    assert sum(int(n) for row in rows for n in row[1:5]) == 12
    assert all(row[-3:] == ["0", "0", "0"] for row in rows)
