"""`bot:verbose`: the assistant that cannot chat.

Its failings: length (60 to 200 words where people use about 14), formality, lists, and now and then
it says that it is an AI language model (three of BotChat's bad cases).
"""

from __future__ import annotations

from collections.abc import Sequence

from botchat.models.bots import verbose_script as script
from botchat.models.bots.language import (
    content_words,
    fixed_part,
    noun_phrases,
    sentence_case,
    words,
)
from botchat.models.bots.speaker import Draw, Speaker
from botchat.records import N_SEED

_LEAST_WORDS, _MOST_WORDS = 60, 160
"""Range of the words aimed at; the last point may go beyond."""
_IDENTIFIES, _LISTS, _IN_LINES = 0.3, 0.55, 0.4
"""How often it names itself an AI; makes its points a list; gives each a line (Markdown)."""
_LEAST_POINTS, _MOST_POINTS = 2, len(script.LINKS)
_TOPIC_CHARS = 40


class Verbose(Speaker):
    """Opening, considerations, closing offer, on what the last utterance was about.

    It takes up words that are not its own, so talking to its like it stays with the ChatSEED's.
    A reply has 60 to 200 words; a list in Markdown runs over several lines.
    """

    bot = "verbose"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Draw) -> str:
        """Fill sentences that are new in this dialogue until the length drawn is reached."""
        said = "\n".join(heard).lower()
        recent = next(filter(None, map(_topics, reversed(heard))), [script.ANY_TOPIC])
        topic = draw.pick(recent)
        other = draw.pick([t for t in _topics(" ".join(heard[:N_SEED])) if t != topic] or recent)

        def fill(sentences: Sequence[str]) -> str:
            new = [sentence for sentence in sentences if fixed_part(sentence) not in said]
            return draw.pick(new or sentences).replace("{0}", topic).replace("{1}", other)

        opening = fill(script.OPENINGS)
        if draw.chance(_IDENTIFIES):
            opening += " " + fill(script.IDENTITIES)
        closing = fill(script.CLOSINGS)
        aim = _LEAST_WORDS + draw.below(_MOST_WORDS - _LEAST_WORDS + 1)
        points: list[str] = []
        length = len(f"{opening} {closing}".split())
        while len(points) < (_MOST_POINTS if length < aim else _LEAST_POINTS):
            so_far = " ".join(points)
            points.append(fill([p for p in script.POINTS if fixed_part(p) not in so_far]))
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
        links = [*script.LINKS[: len(points) - 1], script.LAST_LINK]
        running = (f"{link} {point}" for link, point in zip(links, points, strict=True))
        return " ".join([opening, *running, closing])
    intro = draw.pick(script.LIST_INTROS)
    numbered = [f"{number}. {sentence_case(point)}" for number, point in enumerate(points, 1)]
    separator = "\n" if draw.chance(_IN_LINES) else " "
    return separator.join([f"{opening} {intro}", *numbered, closing])


_OWN_WORDS = frozenset(
    word
    for sentences in (
        *(
            script.OPENINGS,
            script.IDENTITIES,
            script.LIST_INTROS,
            script.LINKS,
            (script.LAST_LINK,),
        ),
        *(script.POINTS, script.CLOSINGS, (script.ANY_TOPIC,)),
    )
    for sentence in sentences
    for word in words(sentence)
)
