"""Speed and memory beside peers: what other scripts print in one run, kept in docs/scale.md.

    python benchmarks/speed.py [--write docs/scale.md]

Runs them one after another, each beside its peers in turns, and puts what they print between the
two lines of the file that name this script. Run it on a machine with nothing else to do. Fails
where one of them does, after all have run: they fail above their aims.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

COMMANDS = ("client_overhead.py", "ratings.py", "votes.py", "agree.py", "commands.py")
MARK = "<!-- speed.py -->\n"


def main() -> None:
    """Run all, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="put what they print into this file")
    arguments = parser.parse_args()
    parts, failed = [], []
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
