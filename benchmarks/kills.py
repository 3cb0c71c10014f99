"""Runs killed at random moments: what is lost, what is paid twice, and whether files are the same.

    python benchmarks/kills.py [--kills 200] [--seed 0] [--latency-ms 5]

KILL, TERM, HUP and INT in turn, over generate, a single judge, a panel, a judge whose calls are
made by worker processes, a whole run and batches, against the suite's server as a process of its
own. A killed command is run again until it is done; a stage that is done while kills are left
begins anew in a fresh workspace. Counted are what the server received and what is in the ledger:

- lost: replies to requests of a run that was ended politely which are not in the ledger;
- in flight: the same of a run that was KILLed, at most as many as may be under way;
- twice: requests received again beyond those in flight at a KILL;
- other bytes: stage files that differ from those of a run that nothing disturbed.

Exits with 1 where anything is lost, paid twice or different.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
IN_FLIGHT = 8

MODELS = [part for name in ("alpha", "beta", "gamma") for part in ("--model", name)]
ARENA = ["judge", "arena", "--seeds", "small", "--turns", "6", "--judge"]
GENERATE = ["generate", "--seeds", "small", "--turns", "6", *MODELS]
STAGES = {
    "generate": GENERATE,
    "single": [*ARENA, "umpire"],
    "panel": [*ARENA, "pair", "--judge-model", "umpire"],
    "workers": [*ARENA, "umpire", "--executor", "loky:2"],
    "run": ["run", "--seeds", "small", *MODELS, "--protocol", "unieval", "--judge", "umpire"],
    "batch": [*GENERATE, "--batch"],
}
"""Stage -> command."""

JUDGING = ("single", "panel", "workers")
PENDING = 3
"""Exit code of a command whose calls are in a batch that has not ended."""
"""Those that need dialogues."""

_PROGRAM = "from botchat.cli.main import entry; entry()"

_PANELS = """
[generation]
turns = 6

[panels.pair]
strategy = "one-by-one"
"""


@dataclass
class Server:
    """The suite's server under way, and what it has logged."""

    url: str
    log: Path
    digests: list[str] = field(default_factory=list)
    """Of each request received, in order."""
    _read: int = 0

    def n_received(self) -> int:
        """Requests received by now."""
        with self.log.open("rb") as file:
            file.seek(self._read)
            whole = file.read().rpartition(b"\n")[0]
        if whole:
            self._read += len(whole) + 1
            events = map(msgspec.json.decode, whole.split(b"\n"))
            # What is asked of a model, alone or in a batch; no files, no looks.
            asked = (e for e in events if e["event"] == "received" and e["model"])
            self.digests += [e["digest"] for e in asked]
        return len(self.digests)


@dataclass
class Account:
    """What became of one stage's runs."""

    kills: Counter[str] = field(default_factory=Counter)
    laps: int = 0
    requests: int = 0
    lost: int = 0
    in_flight: int = 0
    twice: int = 0
    other_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    """Endings that were none of those expected."""

    @property
    def violated(self) -> bool:
        """Whether anything is not as it must be."""
        return bool(self.lost or self.twice or self.other_bytes or self.faults)


@contextlib.contextmanager
def serving(folder: Path, latency_ms: float) -> Iterator[Server]:
    """The server as a process of its own."""
    log = folder / "server.jsonl"
    log.touch()
    command = [sys.executable, "-m", "tests.server", "--batches", "--log", str(log)]
    process = subprocess.Popen(
        [*command, "--latency-ms", str(latency_ms)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            yield Server(process.stdout.readline().strip(), log)
        finally:
            process.terminate()


def prepare(folder: Path, server: Server, n_seeds: int) -> None:
    """A workspace with a small set, models of the server and two panels."""
    (folder / "seeds").mkdir(parents=True)
    lines = [
        msgspec.json.encode(
            {"id": f"s{n}", "utterances": [f"line {i} of talk {n}" for i in range(4)]}
        )
        for n in range(n_seeds)
    ]
    (folder / "seeds" / "small.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    entries = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\nidentity = "http://kills"\n'
        f"max_concurrency = {IN_FLIGHT}\n"
        for name in ("alpha", "beta", "gamma", "umpire")
    ]
    (folder / "botchat.toml").write_text("\n".join(entries) + _PANELS)


def begin(folder: Path, command: Sequence[str]) -> subprocess.Popen[str]:
    """One command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *command, "--dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "OPENAI_API_KEY": "sk-none"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def stored(folder: Path) -> int:
    """Replies in a workspace's ledger."""
    path = folder / ".botchat" / "ledger.sqlite3"
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(path)) as ledger:
        tables = ledger.execute("SELECT count(*) FROM sqlite_master WHERE name = 'calls'")
        if not tables.fetchone()[0]:
            return 0
        return int(ledger.execute("SELECT count(*) FROM calls").fetchone()[0])


def stage_files(folder: Path) -> dict[str, bytes]:
    """Every stage file's bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for stage in ("generations", "judgments")
        for path in sorted((folder / stage).rglob("*.jsonl"))
    }


def finish(folder: Path, command: Sequence[str]) -> None:
    """A run that nothing disturbs."""
    code = PENDING
    while code == PENDING:
        process = begin(folder, command)
        _, error = process.communicate()
        code = process.returncode
    if code != 0:
        raise SystemExit(f"{' '.join(command)} ended with {code}: {error}")


def disturb(
    account: Account,
    server: Server,
    folder: Path,
    command: Sequence[str],
    signals: list[signal.Signals],
    rng: random.Random,
) -> None:
    """One run and its resumptions to the end; takes what it uses off ``signals``."""
    account.laps += 1
    first, held = server.n_received(), stored(folder)
    excused, later = 0, "--batch" in command
    while True:
        before, known = server.n_received(), stored(folder)
        process = begin(folder, command)
        kind = None
        if signals:
            # Now and then while it starts or reads; else behind so many requests.
            early = rng.random() < 0.15
            until = time.monotonic() + rng.random() if early else float("inf")
            after = before + rng.randrange(1, 40)
            while process.poll() is None and time.monotonic() < until:
                if not early and server.n_received() >= after:
                    break
                time.sleep(0.002)
            if process.poll() is None:
                kind = signals.pop(0)
                account.kills[kind.name] += 1
                process.send_signal(kind)
        _, error = process.communicate()
        # A request that a killed process just sent may still be on its way into the log.
        time.sleep(0.05)
        received, kept = server.n_received() - before, stored(folder) - known
        missing = received - kept
        if later:  # what was answered is fetched by a later run; see below
            pass
        elif kind is signal.SIGKILL:
            account.in_flight += missing
            excused += missing
            account.lost += max(0, missing - IN_FLIGHT)
        else:
            account.lost += missing
        code = process.returncode
        expected = {0} if kind is None else {0, -kind if kind is signal.SIGKILL else 130}
        expected |= {PENDING} if later else set()
        # While it is loaded, before it takes signals, it ends as any other Python does.
        loading = kind is not None and not received and code in (-kind, -signal.SIGINT)
        if not loading and (code not in expected or "Traceback" in error):
            account.faults.append(f"{kind.name if kind else 'none'}: {code}: {error[-200:]}")
        if code == 0:
            break
        if (
            kind is None and code not in expected
        ):  # Begun again it would fail again: without its server, for ever.
            raise SystemExit(f"{' '.join(command)}, undisturbed, ended with {code}: {error[-300:]}")
    sent = server.digests[first:]
    if later:
        account.lost += len(set(sent)) - (stored(folder) - held)
    account.requests += len(sent)
    account.twice += max(0, len(sent) - len(set(sent)) - excused)


def measure(
    n_kills: int, seed: int, latency_ms: float, n_seeds: int, names: Sequence[str]
) -> dict[str, Account]:
    """The account of these stages, ``n_kills`` shared out among them and the signals."""
    rng = random.Random(seed)
    plan: dict[str, list[signal.Signals]] = {name: [] for name in names}
    for n in range(n_kills):
        plan[names[n % len(names)]].append(SIGNALS[(n + n // len(names)) % len(SIGNALS)])
    accounts = {name: Account() for name in names}
    with tempfile.TemporaryDirectory() as there, serving(Path(there), latency_ms) as server:
        empty, ready = Path(there, "empty"), Path(there, "ready")
        prepare(empty, server, n_seeds)
        shutil.copytree(empty, ready)
        finish(ready, GENERATE)
        for name in names:
            command = STAGES[name]
            start = ready if name in JUDGING else empty
            whole = Path(there, f"{name}-whole")
            shutil.copytree(start, whole)
            finish(whole, command)
            signals = plan[name]
            while signals:
                folder = Path(there, f"{name}-{accounts[name].laps}")
                shutil.copytree(start, folder)
                with contextlib.ExitStack() as stack:
                    own = server
                    if name == "batch":  # another server would have the batches of this run
                        (folder / "log").mkdir()
                        own = stack.enter_context(serving(folder / "log", latency_ms))
                        settings = folder / "botchat.toml"
                        settings.write_text(settings.read_text().replace(server.url, own.url))
                    disturb(accounts[name], own, folder, command, signals, rng)
                accounts[name].other_bytes += stage_files(folder) != stage_files(whole)
    return accounts


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=5.0)
    parser.add_argument("--n-seeds", type=int, default=24, help="of the set")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=[*STAGES])
    options = parser.parse_args(arguments)
    began = time.monotonic()
    accounts = measure(
        options.kills, options.seed, options.latency_ms, options.n_seeds, options.stages
    )
    head = ("stage", "KILL", "TERM", "HUP", "INT", "runs", "requests", "in flight at KILL")
    print(*head, "lost", "twice", "other bytes", sep=" | ")
    for name, one in accounts.items():
        kills = [one.kills[kind.name] for kind in SIGNALS]
        counts = (one.laps, one.requests, one.in_flight, one.lost, one.twice, one.other_bytes)
        print(name, *kills, *counts, sep=" | ")
        for fault in one.faults:
            print(f"  {fault}")
    total = sum(sum(one.kills.values()) for one in accounts.values())
    print(f"{total} kills in {time.monotonic() - began:.0f} s, seed {options.seed}")
    return int(any(one.violated for one in accounts.values()))


if __name__ == "__main__":
    sys.exit(main())
