"""Offline speakers, each with its own failing: a floor for real leaderboards, and for the demo.

All are deterministic and free, and can talk for any number of turns. A good judge should find
the failing of each. Their modules and data are loaded when the first bot is made.

A new bot is a class in `scripted`, its name and a line on it here; the demo runs every bot, so
the README's table changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from botchat.errors import ConfigError, did_you_mean
from botchat.interfaces import ChatModel
from botchat.languages import ENGLISH, Language

BASELINES: Mapping[str, str] = {
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
    from botchat.models.bots.retrieval import Retrieval
    from botchat.models.bots.scripted import Parrot, Verbose

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
    return {one.bot: one for one in (Parrot, Verbose)}[name]()
