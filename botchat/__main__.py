"""``python -m botchat``, and the console script; an interrupt while it is imported is a line."""

import sys

try:
    from botchat.cli.main import entry
except KeyboardInterrupt:
    sys.stderr.write("botchat: interrupted\n")
    sys.exit(130)

if __name__ == "__main__":
    entry()
