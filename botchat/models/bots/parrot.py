"""`bot:parrot`: says again what it has just heard and soon has nothing left but pleasantries.

Its failing: repetition and closing loops, thanks for thanks until somebody stops it (the
"repetitive phrasing" of BotChat's bad cases).
"""

from __future__ import annotations

import re

from botchat.models.bots.language import clauses, mid_sentence, reflect, sentence_case
from botchat.models.bots.speaker import Draw, Speaker

_MAX_ECHO, _MAX_CHARS = 12, 80
"""Words, and characters, of an echo; of anything longer it has kept the end."""
_FIRST_LOOP, _LAST_LOOP = 4, 8
"""The pleasantries begin after this many utterances at the earliest, and at the latest."""
_SAME_AGAIN = 0.7
"""How often a pleasantry is worded as every time before."""

_ECHOES = (
    "{0}.",
    "Yes, {0}.",
    "Oh, {0}.",
    "I see, {0}.",
    "Right, {0}.",
    "OK, {0}.",
    "{0}, yes.",
    "{0}? I see, {0}.",
)
_QUESTION_ECHOES = ("{0}", "Hm, {0}", "You ask me, {0}", "{0} Yes, {0}", "Well, {0}")
_NOTHING_HEARD = ("Yes.", "I see.", "OK.")

_OPENINGS = (
    "OK. Thank you.",
    "That's good to know, thank you very much.",
    "I see. I'm glad to hear that.",
    "That's great. I'm so glad.",
    "All right. Have a nice day.",
    "OK then, goodbye.",
    "You're right. I agree with you.",
)
"""First pleasantry; which one, and so which loop, depends on the ChatSEED."""
_LOOPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("good ?bye|bye|see you", ("Goodbye.", "Bye.", "See you.")),
    ("have a|take care", ("You too. Have a nice day.", "You too, take care.", "You too.")),
    ("you too|same to you", ("Thank you. Have a nice day.", "Thank you, you too.")),
    ("welcome|no problem", ("Thank you.", "Thank you very much.", "Thank you again.")),
    ("thank", ("You're welcome.", "You're welcome, no problem.", "You're very welcome.")),
    ("glad", ("I'm glad too.", "I'm glad that you're glad.", "I'm so glad.")),
    ("agree|you're right", ("I agree with you.", "Yes, I agree.", "I agree, you're right.")),
)
"""What it hears (first match counts) and the pleasantries that this calls for."""


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
