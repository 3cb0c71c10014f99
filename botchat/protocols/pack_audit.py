"""Is a language pack whole, and are the labels that its prompts ask for read as what they mean?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from botchat.languages import Language, every_prompt
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.kinds import CHOICES, PLACES, Protocol

NEEDED = ("generation", "unieval", "unieval_examples", "arena", "gteval")
"""Prompts without which the paper's three protocols cannot be asked."""

_PARTS = ("labels", "words", "thresholds", "faults")

_INDEX, _LENGTH = 3, 16
"""Of the accusation that is tried, and of its dialogue."""


def lacks(language: Language) -> tuple[list[str], list[str]]:
    """(parts needed for UniEval, Arena, GTEval and this audit; other prompts) that are missing."""
    if language.english:
        return [], []
    parts = [f"[{part}]" for part in _PARTS if getattr(language.pack, part) is None]
    absent = every_prompt() - set(language.texts)
    needed = [f"prompts/{name}.txt" for name in NEEDED if name in absent]
    return [*needed, *parts], sorted(absent - set(NEEDED))


@dataclass(frozen=True)
class LabelsRead:
    """How a protocol's parser does on the labels of the pack."""

    protocol: str
    tried: int
    """Replies made of the pack's labels: each label once, with the reason behind and before."""
    not_read: tuple[str, ...]
    """Replies read as something else, or not at all."""
    not_asked: tuple[str, ...]
    """Answers made of the first label of each list that the prompt does not ask for."""


def labels_read(language: Language) -> list[LabelsRead]:
    """One for each of the paper's protocols; raises `ConfigError` for what the pack lacks."""
    return [_read(protocol.spoken(language)) for protocol in (UNIEVAL, ARENA, GTEVAL)]


def _read(protocol: Protocol) -> LabelsRead:
    said, labels = "\n".join(protocol.texts), protocol.language.labels
    colon = _colon(protocol)
    place = protocol.kind == "place"
    first = [f"{labels.reason[0]}{colon}", *([f"{labels.index[0]}{colon}"] if place else [])]
    for key in PLACES if place else CHOICES:
        first.append(f"{labels.choice[0]}{colon}{getattr(labels, key)[0]}")
    reading = protocol.reading(("",) * _LENGTH)
    replies = dict(_replies(protocol, colon))
    wrong = [reply for reply, verdict in replies.items() if reading.read(reply)[0] != verdict]
    return LabelsRead(
        protocol.title,
        len(replies),
        tuple(" / ".join(reply.split("\n")) for reply in wrong),
        tuple(word for word in first if word not in said),
    )


def _colon(protocol: Protocol) -> str:
    """What the prompt writes behind a label."""
    label = re.escape(protocol.language.labels.choice[0])
    found = re.search(rf"{label}([ \t]*[:\uff1a=][ \t]*)", "\n".join(protocol.texts))
    return found[1] if found else ": "


def _replies(protocol: Protocol, colon: str) -> Iterator[tuple[str, str]]:
    """Replies with the verdict that they mean."""
    labels = protocol.language.labels
    why = f"{labels.reason[0]}{colon}1 2 3"

    def told(verdict: str, meaning: str) -> Iterator[tuple[str, str]]:
        yield f"{verdict}\n{why}", meaning
        yield f"{why}\n{verdict}", meaning

    if protocol.kind == "choice":
        for key, meaning in CHOICES.items():
            for word in getattr(labels, key):
                yield from told(f"{labels.choice[0]}{colon}{word}", meaning)
        for head in labels.choice[1:]:
            yield from told(f"{head}{colon}{labels.both[0]}", "both")
        return
    for word in labels.no:
        yield from told(f"{labels.choice[0]}{colon}{word}", "No")
    at = str(_INDEX)
    numbers = [at, *labels.numerals[_INDEX - 1 : _INDEX]]
    numbers += [f"{word}{at}" for word in labels.ordinal]
    pairs = [(word, labels.index[0], at) for word in labels.yes]
    pairs += [(labels.yes[0], head, number) for head in labels.index for number in numbers]
    for word, head, number in pairs:
        yield from told(f"{labels.choice[0]}{colon}{word}\n{head}{colon}{number}", at)
