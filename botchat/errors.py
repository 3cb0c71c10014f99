"""Every error BotChat raises on purpose.

A message says in one line what is wrong, which value, where, and what to do; it goes to stderr.
A model's bad answer (refusal, empty text, overflow, ...) is no exception: it is the ``outcome`` of
a `botchat.interfaces.Reply` and is recorded.
"""

import logging
import re
from collections.abc import Iterable
from typing import Any

log = logging.getLogger("botchat")
"""Warnings of a command that goes on."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'NAME'?)`` for one or two known names that are close, else empty."""
    from difflib import get_close_matches  # at an error only

    by_fold = {each.casefold(): each for each in known}
    asked = name.casefold()
    close = get_close_matches(asked, by_fold, 2, 0.8) or get_close_matches(asked, by_fold, 1)
    if not close:
        return ""
    return f" (did you mean {' or '.join(repr(by_fold[each]) for each in close)}?)"


def quoted(value: object) -> str:
    """Show a value in a message, shortened where it is long."""
    text = repr(value)
    if len(text) <= 60:
        return text
    return f"{text[:57]}..."


def listed(names: Iterable[str], most: int = 8) -> str:
    """Return at most ``most`` names, and how many more there are; empty without any."""
    known = list(names)
    first = ", ".join(known[:most])
    if known[most:]:
        return f"{first} and {len(known) - most:,} more"
    return first


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: ``1 vote``, ``1,120 votes``."""
    if n == 1:
        return f"1 {noun}"
    return f"{n:,} {noun}s"


def one_line(reason: object) -> str:
    """Return what an exception says, in one line; of one that says nothing its name."""
    text = " ".join(str(reason).split())
    text = re.sub(r"^(<urlopen error )?(?:\[Errno -?\d+\] )?(.*?)(?(1)>)$", r"\2", text)
    return text[:200] or type(reason).__name__


class BotChatError(Exception):
    """An expected failure with a one-line message."""

    exit_code = 1


class ConfigError(BotChatError):
    """A setting, flag or name cannot be used."""


class UsageError(ConfigError):
    """The command line alone shows that a flag or argument cannot be used."""

    exit_code = 2


class DataError(BotChatError):
    """A file cannot be read; the message names file and line."""


class NotWritten(BotChatError):
    """A file or folder that the system does not let us write."""


class MissingDataError(BotChatError):
    """Data that an earlier stage makes are missing."""


class WorkspaceLockedError(BotChatError):
    """Another process writes to the workspace; the message says which."""


class FatalModelError(BotChatError):
    """A model that no retry can make answer: wrong key, no quota, unknown model."""


class UnreadableReplies(BotChatError):
    """A judge whose replies to one protocol cannot be read, many in a row."""


class LimitReached(BotChatError):
    """--max-usd, --max-calls or --max-tokens is used up; everything so far is stored.

    ``partial_result``: what can be shown of it, if anything (of a benchmark its tables).
    """

    exit_code = 3
    partial_result: Any = None


class BatchPending(LimitReached):
    """Calls are in a batch; the same command collects their replies later."""


class GateFailed(BotChatError):
    """A gate: a model is worse than it was, a judge than it must be."""

    exit_code = 4
