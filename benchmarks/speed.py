"""Speed and memory beside peers: what other scripts print in one run, kept in docs/scale.md.

    python benchmarks/speed.py [--write docs/scale.md]

Runs them one after another, each beside its peers in turns, and puts what they print between the
two lines of the file that name this script, after a yardstick: the CPU seconds of an import of
pandas, by which runs on other machines compare. It writes nothing where the machine has other work.
Fails where one of them does, after all have run: they fail above their aims.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

COMMANDS = ("client_overhead.py", "ratings.py", "votes.py", "agree.py", "commands.py")
MARK = "<!-- speed.py -->\n"
MOST_LOAD = 0.5
"""Processes of others, on average of the last minute, beside which nothing is written."""


def yardstick() -> str:
    """CPU seconds of an import of pandas, the least of three."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import pandas"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return f"Yardstick: `import pandas` {min(seconds):.2f} s of CPU.\n"


def main() -> None:
    """Run all, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="put what they print into this file")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if arguments.write is not None and load > MOST_LOAD:
        sys.exit(f"the machine has other work (load {load:.1f}): its numbers would be wrong")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles what it imports
    parts, failed = [yardstick()], []
    for name in COMMANDS:
        path = Path(__file__).parent / name
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
        said = re.sub(r"\n{2,}", "\n", done.stdout).strip()
        parts.append(f"`benchmarks/{name}`:\n\n```text\n{said}\n```\n")
        print(parts[-1], done.stderr[-2000:], flush=True)
        failed += [name] if done.returncode else []
    if arguments.write is not None:
        before, _, rest = arguments.write.read_text("utf-8").partition(MARK)
        _, _, after = rest.partition(MARK)
        arguments.write.write_text(
            before + MARK + "\n" + "\n".join(parts) + "\n" + MARK + after, "utf-8"
        )
    if failed:
        sys.exit(f"above an aim: {', '.join(failed)}")


if __name__ == "__main__":
    main()
