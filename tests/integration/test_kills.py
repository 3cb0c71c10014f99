"""`benchmarks/kills.py` in short: nothing is lost or paid twice, whenever a run is ended."""

from benchmarks import kills
from tests.processes import Started

STAGES = ["generate", "single", "panel"]


def test_a_kill_of_every_kind_of_run_loses_nothing(monkeypatch, capsys):
    """KILL, TERM, HUP, INT over generate, a judge and a panel."""

    def begin(folder, command):
        return Started([*command, "--dir", folder], OPENAI_API_KEY="sk-none")

    monkeypatch.setattr(kills, "begin", begin)
    flags = ["--kills", "3", "--n-seeds", "6", "--latency-ms", "2", "--stages", *STAGES]
    assert kills.main(flags) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert [row[0] for row in rows] == STAGES
    counts = [[int(n) for n in row[1:5]] for row in rows]
    assert [sum(of_stage) for of_stage in counts] == [1] * 3
    assert min(map(sum, zip(*counts, strict=True))) <= 1
    assert all(row[-3:] == ["0", "0", "0"] for row in rows)
