"""Offline speakers, each with its own failing: a floor for real leaderboards, and for the demo.

All four are deterministic and free, and can talk for any number of turns. A good judge should find
the failing of each. What they say is in the ``.toml`` file of their name; a bot's module and its
data are loaded when the bot is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from botchat.errors import ConfigError
from botchat.interfaces import ChatModel

__all__ = ["BASELINES", "baseline"]

BASELINES: Mapping[str, str] = {
    "eliza": "pattern bot in the manner of ELIZA: asks back without end and knows nothing",
    "retrieval": "a person's reply to the most similar context of the seed set, leave-one-out:"
    " human line by line, incoherent as a whole",
    "parrot": "repeats what it heard, then loops through thanks and goodbyes",
    "verbose": "assistant at its worst: long, formal, full of lists, says that it is an AI",
}
"""Name after ``bot:`` and what it is, in one line."""


def baseline(name: str, human_dialogues: Sequence[tuple[str, ...]]) -> ChatModel:
    """Make the offline speaker ``bot:<name>``.

    ``human_dialogues`` are those of the seed set (at least two); only ``retrieval`` uses them.
    Raises `ConfigError` for an unknown name or too few dialogues.
    """
    match name:
        case "eliza":
            from botchat.models.bots.eliza import Eliza

            return Eliza()
        case "retrieval":
            from botchat.models.bots.retrieval import Retrieval

            return Retrieval(human_dialogues)
        case "parrot":
            from botchat.models.bots.parrot import Parrot

            return Parrot()
        case "verbose":
            from botchat.models.bots.verbose import Verbose

            return Verbose()
    raise ConfigError(
        f"unknown offline bot bot:{name}: name one of"
        f" {', '.join(f'bot:{known}' for known in BASELINES)}"
    )
