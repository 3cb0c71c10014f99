"""``python -m botchat``."""

from botchat.cli import entry

entry()
