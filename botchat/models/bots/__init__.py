"""Offline speakers, each with its own failing: floors for real leaderboards, and for the demo.

All four are deterministic and free. They talk to themselves for any number of turns, and a judge
worth its price should find each of them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from botchat.errors import ConfigError
from botchat.interfaces import ChatModel
from botchat.models.bots.eliza import Eliza
from botchat.models.bots.parrot import Parrot
from botchat.models.bots.verbose import Verbose

__all__ = ["BASELINES", "baseline"]

BASELINES: Mapping[str, str] = {
    "eliza": "pattern bot in the manner of ELIZA: asks back without end and knows nothing",
    "retrieval": "a person's reply to the most similar context of the seed set, leave-one-out:"
    " human line by line, incoherent as a whole",
    "parrot": "repeats what it heard, then loops through thanks and goodbyes",
    "verbose": "assistant at its worst: long, formal, full of lists, says that it is an AI",
}
"""Name after ``bot:`` and what it is, in one line."""


def _retrieval(human_dialogues: Sequence[tuple[str, ...]]) -> ChatModel:
    # Here, so that naming the bots, as `--help` may, does not load numpy.
    from botchat.models.bots.retrieval import Retrieval

    return Retrieval(human_dialogues)


_MAKERS: Mapping[str, Callable[[Sequence[tuple[str, ...]]], ChatModel]] = {
    "eliza": lambda _: Eliza(),
    "retrieval": _retrieval,
    "parrot": lambda _: Parrot(),
    "verbose": lambda _: Verbose(),
}


def baseline(name: str, human_dialogues: Sequence[tuple[str, ...]]) -> ChatModel:
    """Make the offline speaker ``bot:<name>``.

    ``human_dialogues`` are the whole seed set's (used by ``retrieval`` only, at least two).
    Raises `ConfigError` for an unknown name or too few dialogues.
    """
    if name not in _MAKERS:
        raise ConfigError(
            f"unknown offline bot bot:{name}: name one of"
            f" {', '.join(f'bot:{known}' for known in BASELINES)}"
        )
    return _MAKERS[name](human_dialogues)
