"""``python -m botchat``."""

from botchat.cli.main import entry

entry()
