"""`bot:verbose`: the assistant that cannot chat.

Its failings (three of BotChat's bad cases): length (60 to 200 words where people use about 14),
formality and lists, and sometimes it says that it is an AI language model. Its sentences are in
``verbose.toml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from botchat.models.bots.language import (
    content_words,
    fixed_part,
    noun_phrases,
    read_data,
    sentence_case,
    words,
)
from botchat.models.bots.speaker import Draw, Speaker
from botchat.records import N_SEED

_LEAST_WORDS, _MOST_WORDS = 60, 160
"""Words to aim at; the last point may go beyond."""
_IDENTIFIES, _LISTS, _IN_LINES = 0.3, 0.55, 0.4
"""Probability to call itself an AI, to list its points, and to give each a line (Markdown)."""
_LEAST_POINTS = 2
_TOPIC_CHARS = 40


class _Script(NamedTuple):
    """What ``verbose.toml`` holds; it explains each list."""

    any_topic: str
    openings: list[str]
    identities: list[str]
    list_intros: list[str]
    links: list[str]
    last_link: str
    points: list[str]
    closings: list[str]


_SCRIPT = _Script(**read_data("verbose"))
_OWN_WORDS = frozenset(
    word for said in _SCRIPT for word in words(said if isinstance(said, str) else " ".join(said))
)


class Verbose(Speaker):
    """Opening, considerations, closing offer, on what the last utterance was about.

    It takes up only words that are not its own, so when it talks to itself it stays with the
    words of the ChatSEED. A reply has 60 to 200 words; a list in Markdown has several lines.
    """

    bot = "verbose"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Draw) -> str:
        """Fill sentences that are new in this dialogue until the length drawn is reached."""
        said = "\n".join(heard).lower()
        recent = next(filter(None, map(_topics, reversed(heard))), [_SCRIPT.any_topic])
        topic = draw.pick(recent)
        other = draw.pick([t for t in _topics(" ".join(heard[:N_SEED])) if t != topic] or recent)

        def fill(sentences: Sequence[str]) -> str:
            new = [sentence for sentence in sentences if fixed_part(sentence) not in said]
            return draw.pick(new or sentences).replace("{0}", topic).replace("{1}", other)

        opening = fill(_SCRIPT.openings)
        if draw.chance(_IDENTIFIES):
            opening += " " + fill(_SCRIPT.identities)
        closing = fill(_SCRIPT.closings)
        aim = _LEAST_WORDS + draw.below(_MOST_WORDS - _LEAST_WORDS + 1)
        points: list[str] = []
        length = len(f"{opening} {closing}".split())
        while len(points) < (len(_SCRIPT.links) if length < aim else _LEAST_POINTS):
            so_far = " ".join(points)
            points.append(fill([p for p in _SCRIPT.points if fixed_part(p) not in so_far]))
            length += len(points[-1].split())
        return _laid_out(sentence_case(opening), points, closing, draw)


def _topics(text: str) -> list[str]:
    """Subjects of ``text`` that are not the bot's own vocabulary: noun phrases, else words."""
    nouns = [f"the {noun}" for noun in noun_phrases(text) if _OWN_WORDS.isdisjoint(noun.split())]
    others = [
        word if word[0].isupper() else f'"{word}"'
        for word in content_words(text)
        if word.lower() not in _OWN_WORDS
    ]
    return [topic for topic in nouns or others if len(topic) <= _TOPIC_CHARS]


def _laid_out(opening: str, points: Sequence[str], closing: str, draw: Draw) -> str:
    """Text of a reply: points in Markdown lines, numbered in line, or as running text."""
    if not draw.chance(_LISTS):
        links = [*_SCRIPT.links[: len(points) - 1], _SCRIPT.last_link]
        running = (f"{link} {point}" for link, point in zip(links, points, strict=True))
        return " ".join([opening, *running, closing])
    intro = draw.pick(_SCRIPT.list_intros)
    numbered = [f"{number}. {sentence_case(point)}" for number, point in enumerate(points, 1)]
    separator = "\n" if draw.chance(_IN_LINES) else " "
    return separator.join([f"{opening} {intro}", *numbered, closing])
