"""`bot:parrot`: repeats what it has just heard and soon says nothing but pleasantries.

Its failing: repetition and closing loops, thanks for thanks without end (the "repetitive phrasing"
of BotChat's bad cases). Its phrases are in ``parrot.toml``.
"""

from __future__ import annotations

import re

from botchat.models.bots.language import clauses, mid_sentence, read_data, reflect, sentence_case
from botchat.models.bots.speaker import Draw, Speaker

_MAX_ECHO, _MAX_CHARS = 12, 80
"""Words, and characters, of an echo; of anything longer only the end is echoed."""
_FIRST_LOOP, _LAST_LOOP = 4, 8
"""Utterances after which the pleasantries begin, at the earliest and at the latest."""
_SAME_AGAIN = 0.7
"""Probability that a pleasantry is worded as the last time."""

_DATA = read_data("parrot")
_ECHOES: list[str] = _DATA["echoes"]
_QUESTION_ECHOES: list[str] = _DATA["question_echoes"]
_NOTHING_HEARD: list[str] = _DATA["nothing_heard"]
_OPENINGS: list[str] = _DATA["openings"]
_LOOPS: list[tuple[str, list[str]]] = [(loop["cue"], loop["replies"]) for loop in _DATA["loops"]]


class Parrot(Speaker):
    """Echo of the last clause with "I" and "you" exchanged, then a loop of pleasantries.

    A pleasantry always gets a pleasantry; without one, the loop begins after 4 to 8 utterances.
    """

    bot = "parrot"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Draw) -> str:
        """Return a pleasantry for a pleasantry or when it is time, else an echo."""
        if not heard:
            return draw.pick(_NOTHING_HEARD)
        seed = Draw(draw.sample, self.bot, heard[:2])
        for cue, replies in _LOOPS:
            if len(heard) > _FIRST_LOOP and re.search(rf"\b(?:{cue})", heard[-1], re.IGNORECASE):
                return seed.pick(replies) if draw.chance(_SAME_AGAIN) else draw.pick(replies)
        if len(heard) > _FIRST_LOOP + seed.below(_LAST_LOOP - _FIRST_LOOP + 1):
            return seed.pick(_OPENINGS)
        if not (found := clauses(heard[-1])):
            return draw.pick(_NOTHING_HEARD)
        clause = max(found[-2:], key=len)
        echo = " ".join(reflect(clause).split()[-_MAX_ECHO:])[-_MAX_CHARS:].strip()
        frame = draw.pick(_QUESTION_ECHOES if clause.endswith("?") else _ECHOES)
        return sentence_case(frame.replace("{0}", mid_sentence(echo)))
