"""`benchmarks/kills.py` in short: nothing is lost or paid twice, whenever a run is ended."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT


def test_a_kill_of_every_kind_of_run_loses_nothing():
    """KILL, TERM, HUP, INT over generate, a judge, a panel, a cascade and an adaptive Arena."""
    command = [sys.executable, "benchmarks/kills.py", "--kills", "5", "--n-seeds", "6"]
    ran = subprocess.run(
        [*command, "--latency-ms", "2"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = [line.split(" | ") for line in ran.stdout.splitlines()[1:-1]]
    assert [row[0] for row in rows] == ["generate", "single", "panel", "cascade", "adaptive"]
    kills = [[int(n) for n in row[1:5]] for row in rows]
    assert [sum(of_stage) for of_stage in kills] == [1] * 5
    assert min(map(sum, zip(*kills, strict=True))) == 1
    assert all(row[-3:] == ["0", "0", "0"] for row in rows)
