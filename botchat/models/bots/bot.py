"""What offline speakers share: hearing a dialogue, drawing at random, answering."""

from __future__ import annotations

import hashlib
import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from botchat.interfaces import Decoding, Message, Reply

T = TypeVar("T")

HEARD_CHARS = 4000
"""Characters of an utterance that a bot hears."""

_UNSAYABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def one_line(text: str) -> str:
    """Make ``text`` sayable: one line, no control character or surrogate."""
    return _UNSAYABLE.sub(" ", text).strip()


def attend(text: str) -> str:
    """What a bot hears of an utterance: its first `HEARD_CHARS`, with straight apostrophes."""
    return one_line(text[:HEARD_CHARS]).replace("\u2019", "'")


class Dice:
    """Random choices that depend only on ``sample`` and ``key``, on every platform and Python."""

    def __init__(self, sample: int, *key: object) -> None:
        self.sample = sample
        seed = json.dumps([sample, key]).encode("ascii")
        self._random = random.Random(int.from_bytes(hashlib.sha256(seed).digest()[:8], "big"))

    def below(self, n: int) -> int:
        """Draw an index, ``0 <= index < n``."""
        # Of `random`, only random() promises the same numbers in every version of Python.
        return int(self._random.random() * n)

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of ``options``, which must not be empty."""
        return options[self.below(len(options))]

    def chance(self, probability: float) -> bool:
        """Draw true with ``probability``."""
        return self._random.random() < probability


class Bot(ABC):
    """An offline `botchat.interfaces.ChatModel`: no network, no state, no clock.

    The same utterances and ``decoding.sample`` always get the same reply; the system prompt and
    the other decoding parameters have no effect.
    """

    bot: str
    """Name after ``bot:``."""
    version: int
    """Raised with every change of any reply, because the ledger keeps replies under it."""
    context_window: int | None = None
    parallel = 8
    """Calls at once; a reply needs no waiting, so a few keep the ledger busy."""
    silence = "the bot had nothing to say"
    """Why `say` may come back empty."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return f"bot:{self.bot}"

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides its replies."""
        return {"bot": self.bot, "version": self.version}

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Continue the dialogue in ``messages``; never raises."""
        utterances = [m["content"] for m in messages if m["role"] != "system"]
        heard = tuple(map(attend, utterances))
        said = self.say(heard, Dice(decoding.sample, self.bot, utterances))
        if not said:
            return Reply(outcome="empty", finish_reason="stop", detail=self.silence)
        return Reply(outcome="ok", text=said, finish_reason="stop")

    @abstractmethod
    def say(self, heard: tuple[str, ...], draw: Dice) -> str:
        """Next utterance after ``heard`` (one line each, oldest first, possibly none)."""
