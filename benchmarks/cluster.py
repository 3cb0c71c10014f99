"""Workers: what a kill costs, whether limits hold, and what they bring.

    python benchmarks/cluster.py [--engine loky] [--workers 4] [--kills 20] [--laps 3]
    DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0 python benchmarks/cluster.py --engine dask

Against the suite's server, as a process of its own:

- `kill -9` of a random worker, ``--kills`` times, then of the head: calls paid twice, and whether
  the stage files have the bytes of a run that nothing disturbed, so that nothing is lost; a head
  that is stuck: whose server has received nothing for `STUCK_S` (it is killed then);
- requests a minute at the server, for one limit over all workers, after their first second;
- dollars that the server bills, of runs that reach ``--max-usd`` while their workers are killed;
- generation with workers beside one process.

Exits with 1 where a head is stuck, other bytes come out, a kill costs more than K calls a worker
beyond those in flight, the rate is 5 % off, or the limit is exceeded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.openai_server import Billed, Server  # noqa: E402

K, IN_FLIGHT = 8, 4
STUCK_S = 40.0
MODELS = ("alpha", "beta", "gamma", "delta")


class Serving:
    """The suite's server under way, and what it has received."""

    def __init__(self, folder: Path, latency_ms: float) -> None:
        self.log = folder / f"server-{latency_ms}.jsonl"
        self.log.touch()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.server",
                "--log",
                self.log,
                "--latency-ms",
                str(latency_ms),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self._from = 0

    def begin(self) -> None:
        """Count anew."""
        self._from = self.log.stat().st_size

    def received(self) -> list[dict[str, object]]:
        """Requests since `begin`."""
        with self.log.open("rb") as file:
            file.seek(self._from)
            whole = file.read().rpartition(b"\n")[0]
        events = map(json.loads, whole.split(b"\n") if whole else [])
        return [event for event in events if event["event"] == "received"]


def workspace(
    folder: Path,
    url: str,
    more: str = "",
    concurrency: int = IN_FLIGHT,
    models: Sequence[str] = MODELS,
) -> Path:
    """A workspace with the server's models; their price is $1 a million tokens."""
    folder.mkdir()
    entries = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{url}"\nidentity = "one"\n'
        f"max_concurrency = {concurrency}\nprice_input = 1.0\nprice_output = 1.0\nmax_tokens = 64\n"
        for name in models
    ]
    (folder / "botchat.toml").write_text("\n".join([*entries, more]))
    return folder


def command(
    folder: Path,
    options: argparse.Namespace,
    seeds: int,
    *more: str,
    turns: int = 8,
    models: Sequence[str] = MODELS,
) -> list[str]:
    """``botchat generate`` with workers."""
    named = [part for name in models for part in ("--model", name)]
    where = ["--engine", options.engine, "--workers", str(options.workers)]
    asked = ["--seeds", "sample", "--limit", str(seeds), "--turns", str(turns), "--quiet"]
    run = [sys.executable, "-m", "botchat", "--dir", str(folder), "generate"]
    return [*run, *asked, *named, *(where if options.workers else []), *more]


def files(folder: Path) -> dict[str, bytes]:
    """Every stage file."""
    found = sorted((folder / "generations").rglob("*.jsonl"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def workers_of(head: int) -> list[int]:
    """The processes that an engine has started for a head."""
    parents, words = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                words[int(entry.name)] = (entry / "cmdline").read_text()
                parents[int(entry.name)] = int(stat[1])
            except OSError:
                pass  # it has ended

    def under(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == head:
                return True
        return False

    marks = ("popen_loky_posix", "spawn_main", "ray::")
    return [p for p in parents if under(p) and any(mark in words[p] for mark in marks)]


def killed(
    server: Serving, folder: Path, options: argparse.Namespace, whom: str, whole: dict[str, bytes]
) -> tuple[str, bool]:
    """Kill workers, or heads, at random moments of as many runs as it takes."""
    rng, asked = random.Random(0), len(whole) * 6 * 6
    kills = laps = twice = most = other = stuck = 0
    while kills < options.kills:
        laps += 1
        place = workspace(
            folder / f"{whom}-{laps}", server.url, f"[cluster]\nhand_in_calls = {K}\n"
        )
        server.begin()
        done, before = False, kills
        while not done:
            head = subprocess.Popen(
                command(place, options, 6), cwd=ROOT, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            goal = len({e["digest"] for e in server.received()}) + rng.randint(1, asked // 4)
            size, since = 0, time.monotonic()
            while head.poll() is None:
                time.sleep(0.005)
                if (grown := server.log.stat().st_size) != size:
                    size, since = grown, time.monotonic()
                if time.monotonic() - since > STUCK_S:
                    stuck += 1
                    os.killpg(head.pid, signal.SIGKILL)
                    head.wait()
                if kills < options.kills and len({e["digest"] for e in server.received()}) >= goal:
                    targets = workers_of(head.pid) if whom == "worker" else [head.pid]
                    if targets:
                        os.kill(rng.choice(targets), signal.SIGKILL)
                        kills += 1
                        goal += asked // 3
            done = head.returncode == 0
        again = Counter(event["digest"] for event in server.received())
        paid = sum(n - 1 for n in again.values())
        twice += paid
        most = max(most, -(-paid // max(1, kills - before)))
        other += files(place) != whole
    allowed = options.workers * (K + IN_FLIGHT)
    said = (
        f"{whom} | {kills} kills | {laps} runs | {asked * laps} calls | {stuck} stuck | "
        f"{twice} paid twice | at most {most} a kill (allowed {allowed}) | {other} with other bytes"
    )
    return said, bool(other or stuck) or most > allowed


def rate(server: Serving, folder: Path, options: argparse.Namespace) -> tuple[str, bool]:
    """Requests a minute, of a limit of 1,200."""
    limit = 1_200
    more = f'[endpoints.it]\nbase_url = "{server.url}"\nrequests_per_minute = {limit}\n'
    place = workspace(folder / "rate", server.url, more, 64)
    server.begin()
    subprocess.run(command(place, options, 12), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    at = sorted(float(str(event["at"])) for event in server.received())
    # From all workers' first second to where the first may have run out of shards.
    inner = at[len(at) // 5 : -len(at) // 5]
    found = (len(inner) - 1) / (inner[-1] - inner[0]) * 60
    off = found / limit - 1
    return f"rate | limit {limit} | {found:.0f} a minute | {100 * off:+.1f} %", abs(off) > 0.05


def dollars(folder: Path, options: argparse.Namespace) -> tuple[str, bool]:
    """What the server bills, counted there, of runs that reach a limit and whose workers die."""
    rng, limit, kills, laps, most, ended = random.Random(0), 0.02, 0, 0, 0.0, []
    bill = Billed()
    with Server(bill, latency_s=options.latency_ms / 1000, keep=False) as server:
        while kills < options.kills:
            laps += 1
            place = workspace(
                folder / f"dollars-{laps}", server.url, f"[cluster]\nhand_in_calls = {K}\n"
            )
            before, received = bill.tokens, server.n_received
            head = subprocess.Popen(
                command(place, options, 12, "--max-usd", str(limit)), cwd=ROOT,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            goal = received + rng.randint(1, 60)
            while head.poll() is None:
                time.sleep(0.005)
                if server.n_received >= goal and (targets := workers_of(head.pid)):
                    os.kill(rng.choice(targets), signal.SIGKILL)
                    kills += 1
                    goal = server.n_received + rng.randint(5, 40)
            server.wait_idle()
            most = max(most, (bill.tokens - before) / 1e6)
            ended.append(head.returncode)
    said = (
        f"dollars | limit {limit} | {kills} kills in {laps} runs | at most ${most:.5f} billed by "
        f"the server | exit {sorted(set(ended))}"
    )
    return said, most > limit or set(ended) != {3}


def speed(server: Serving, folder: Path, options: argparse.Namespace) -> tuple[str, bool]:
    """Seconds and CPU seconds of generation by workers, and by one process, in turns.

    All may have as many calls in flight, more than there are dialogues, so that only CPU and the
    start of processes tell them apart. What the server takes is not counted, but is taken here.
    """
    found: dict[int, list[tuple[float, float]]] = {0: [], options.workers: []}
    models = [f"m{n}" for n in range(16)]
    for lap in range(options.laps):
        for workers, runs in found.items():
            name = f"speed-{workers}-{lap}"
            place = workspace(folder / name, server.url, concurrency=1024, models=models)
            asked = argparse.Namespace(engine=options.engine, workers=workers)
            server.begin()
            begun, before = time.monotonic(), spent()
            run = command(place, asked, 40, turns=16, models=models)
            subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            runs.append((time.monotonic() - begun, spent() - before))
            calls = len(server.received())
    wall, cpu = (
        {workers: statistics.median(run[of] for run in runs) for workers, runs in found.items()}
        for of in (0, 1)
    )
    return (
        f"speed | {calls} calls | one process {wall[0]:.1f} s, {cpu[0]:.1f} s CPU | "
        f"{options.workers} workers {wall[options.workers]:.1f} s, {cpu[options.workers]:.1f} s CPU"
        f" | {wall[0] / wall[options.workers]:.2f} times as fast",
        False,
    )


def spent() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="loky")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--laps", type=int, default=1, help="of speed")
    parser.add_argument("--only", default="", help="worker, head, rate, dollars or speed")
    options = parser.parse_args()
    violated = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Serving(folder, options.latency_ms)
        try:
            place = workspace(folder / "whole", server.url)
            alone = argparse.Namespace(engine="", workers=0)
            run = command(place, alone, 6)
            subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            whole = files(place)
            parts = {
                "worker": lambda: killed(server, folder, options, "worker", whole),
                "head": lambda: killed(server, folder, options, "head", whole),
                "rate": lambda: rate(server, folder, options),
                "dollars": lambda: dollars(folder, options),
                "speed": lambda: speed(server, folder, options),
            }
            for part, measure in parts.items():
                if options.only in ("", part):
                    said, wrong = measure()
                    print(said + (" | VIOLATED" if wrong else ""), flush=True)
                    violated |= wrong
        finally:
            server.process.terminate()
            server.process.wait()
    return int(violated)


if __name__ == "__main__":
    sys.exit(main())
