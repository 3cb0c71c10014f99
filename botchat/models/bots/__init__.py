"""Offline speakers, each with its own failing: a floor for real leaderboards, and for the demo.

All are deterministic and free, and can talk for any number of turns. A good judge should find
the failing of each. Their modules and data are loaded when the first bot is made.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from botchat.errors import ConfigError, did_you_mean
from botchat.interfaces import ChatModel, Decoding, Message, Reply
from botchat.languages import ENGLISH, Language

BASELINES: Mapping[str, str] = {
    "eliza": "pattern bot in the manner of ELIZA: asks back without end and knows nothing",
    "retrieval": "a person's reply to the most similar context of the seed set, leave-one-out:"
    " human line by line, incoherent as a whole",
    "parrot": "repeats what it heard, then loops through thanks and goodbyes",
    "verbose": "assistant at its worst: long, formal, full of lists, says that it is an AI",
}
"""Name after ``bot:`` (`Bot.bot` of its class) and what it is, in one line."""


def baseline(
    name: str, human_dialogues: Sequence[tuple[str, ...]], language: Language = ENGLISH
) -> ChatModel:
    """Make the offline speaker ``bot:<name>``.

    ``human_dialogues`` are those of the seed set (at least two); only ``retrieval`` uses them.
    Raises `ConfigError` for an unknown name, too few dialogues, or a ``language`` it cannot speak.
    """
    from botchat.models.bots import scripted
    from botchat.models.bots.retrieval import Retrieval

    if name not in BASELINES:
        raise ConfigError(
            f"unknown offline bot bot:{name}"
            f"{did_you_mean(f'bot:{name}', [f'bot:{one}' for one in BASELINES])}: name one of"
            f" {', '.join(f'bot:{known}' for known in BASELINES)}"
        )
    if name == Retrieval.bot:
        return Retrieval(human_dialogues, language)
    if not language.english:
        raise ConfigError(
            f"bot:{name} speaks English only and this set is {language.name} ({language.code}); "
            f"name a model, or bot:{Retrieval.bot}"
        )
    classes = (one for one in vars(scripted).values() if isinstance(one, type))
    speakers = {one.bot: one for one in classes if issubclass(one, Bot) and one is not Bot}
    return speakers[name]()


# ------------------------------------------- what they share: hearing, drawing at random, answering

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
