"""The bots that talk from a script: the parrot, and the assistant that cannot chat.

The phrases of each are in the ``.toml`` file of its name, which explains each list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from botchat.models.bots.language import (
    Bot,
    Dice,
    clauses,
    content_words,
    fixed_part,
    mid_sentence,
    noun_phrases,
    read_data,
    reflect,
    sentence_case,
    words,
)
from botchat.records import N_SEED

_ECHO_WORDS, _ECHO_CHARS = 12, 80
"""Most words and characters of the parrot's echo; of anything longer only the end is echoed."""
_FIRST_LOOP, _LAST_LOOP = 4, 8
"""Utterances after which the pleasantries begin, at the earliest and at the latest."""
_SAME_AGAIN = 0.7
"""Probability that a pleasantry is worded as the last time."""

_PARROT: dict[str, Any] = read_data("parrot")
_NOTHING_HEARD: list[str] = _PARROT["nothing_heard"]
_LOOPS: list[tuple[str, list[str]]] = [(loop["cue"], loop["replies"]) for loop in _PARROT["loops"]]
_LOOP_OPENINGS: list[str] = _PARROT["openings"]


class Parrot(Bot):
    """`bot:parrot`: an echo of the last clause ("I" and "you" exchanged), then a loop.

    Its failing: repetition, and thanks for thanks without end (BotChat's "repetitive phrasing"). A
    pleasantry always gets a pleasantry; without one, the loop begins after 4 to 8 utterances.
    """

    bot = "parrot"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Dice) -> str:
        """Return a pleasantry for a pleasantry or when it is time, else an echo."""
        if not heard:
            return draw.pick(_NOTHING_HEARD)
        seed = Dice(draw.sample, self.bot, heard[:2])
        for cue, replies in _LOOPS:
            if len(heard) > _FIRST_LOOP and re.search(rf"\b(?:{cue})", heard[-1], re.IGNORECASE):
                return seed.pick(replies) if draw.chance(_SAME_AGAIN) else draw.pick(replies)
        if len(heard) > _FIRST_LOOP + seed.below(_LAST_LOOP - _FIRST_LOOP + 1):
            return seed.pick(_LOOP_OPENINGS)
        if not (found := clauses(heard[-1])):
            return draw.pick(_NOTHING_HEARD)
        clause = max(found[-2:], key=len)
        echo = " ".join(reflect(clause).split()[-_ECHO_WORDS:])[-_ECHO_CHARS:].strip()
        frame = draw.pick(_PARROT["question_echoes" if clause.endswith("?") else "echoes"])
        return sentence_case(frame.replace("{0}", mid_sentence(echo)))


_LEAST_WORDS, _MOST_WORDS = 60, 160
"""Words to aim at; the last point may go beyond."""
_IDENTIFIES, _LISTS, _IN_LINES = 0.3, 0.55, 0.4
"""Probability to call itself an AI, to list its points, and to give each a line (Markdown)."""
_LEAST_POINTS = 2
_TOPIC_CHARS = 40
_VERBOSE: dict[str, Any] = read_data("verbose")
_OWN_WORDS = frozenset(
    word
    for said in _VERBOSE.values()
    for word in words(said if isinstance(said, str) else " ".join(said))
)


class Verbose(Bot):
    """`bot:verbose`: opening, considerations, closing offer, on what the last utterance was about.

    Its failings (three of BotChat's bad cases): length, 60 to 200 words where people use about 14;
    formality and lists, in Markdown of several lines; sometimes it says that it is an AI language
    model. It takes up only words that are not its own, so when it talks to itself it stays with the
    words of the ChatSEED.
    """

    bot = "verbose"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Dice) -> str:
        """Fill sentences that are new in this dialogue until the length drawn is reached."""
        said = "\n".join(heard).lower()
        recent = next(filter(None, map(_topics, reversed(heard))), [_VERBOSE["any_topic"]])
        topic = draw.pick(recent)
        other = draw.pick([t for t in _topics(" ".join(heard[:N_SEED])) if t != topic] or recent)

        def fill(sentences: Sequence[str]) -> str:
            new = [sentence for sentence in sentences if fixed_part(sentence) not in said]
            return draw.pick(new or sentences).replace("{0}", topic).replace("{1}", other)

        opening = fill(_VERBOSE["openings"])
        if draw.chance(_IDENTIFIES):
            opening += " " + fill(_VERBOSE["identities"])
        closing = fill(_VERBOSE["closings"])
        aim = _LEAST_WORDS + draw.below(_MOST_WORDS - _LEAST_WORDS + 1)
        points: list[str] = []
        length = len(f"{opening} {closing}".split())
        while len(points) < (len(_VERBOSE["links"]) if length < aim else _LEAST_POINTS):
            so_far = " ".join(points)
            points.append(fill([p for p in _VERBOSE["points"] if fixed_part(p) not in so_far]))
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


def _laid_out(opening: str, points: Sequence[str], closing: str, draw: Dice) -> str:
    """Text of a reply: points in Markdown lines, numbered in line, or as running text."""
    if not draw.chance(_LISTS):
        links = [*_VERBOSE["links"][: len(points) - 1], _VERBOSE["last_link"]]
        running = (f"{link} {point}" for link, point in zip(links, points, strict=True))
        return " ".join([opening, *running, closing])
    intro = draw.pick(_VERBOSE["list_intros"])
    numbered = [f"{number}. {sentence_case(point)}" for number, point in enumerate(points, 1)]
    separator = "\n" if draw.chance(_IN_LINES) else " "
    return separator.join([f"{opening} {intro}", *numbered, closing])
