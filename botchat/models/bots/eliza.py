"""`bot:eliza`: turns what it hears into a question (Weizenbaum, ELIZA, CACM 9(1), 1966).

Its failing: it knows nothing, answers nothing and asks back without end; what it hears comes back
with "I" and "you" exchanged, now and then clumsily.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from botchat.models.bots import eliza_phrases as phrases
from botchat.models.bots.eliza_rules import RULES
from botchat.models.bots.language import (
    PERSONS,
    clauses,
    content_words,
    fixed_part,
    indirect_question,
    is_statement,
    mid_sentence,
    noun_phrases,
    reflect,
    sentence_case,
    words,
)
from botchat.models.bots.speaker import Draw, Speaker

_MAX_ECHO = 14
"""Words of the other's clause it can hold; a longer clause is not taken up."""
_MIN_TOLD = 3
_MAX_RETURNS = 2
"""Earlier utterances that may hold an echo's words already; more would be going in circles."""
_EVADES, _REMEMBERS = 0.6, 0.5
"""How often its own kind of question is evaded, and a weak keyword passed over for a memory."""
_ASKED_RANK, _TOLD_RANK, _NAMED_RANK = 4, 4, 1


class Eliza(Speaker):
    """Pattern bot with ranked keywords, reflection and a memory of earlier statements.

    It has no state: what has been said already, and so is not said again while anything else is
    left, it reads off the dialogue. Talking to its like, it hears its own phrases: those it evades
    instead of searching them for keywords.
    """

    bot = "eliza"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Draw) -> str:
        """Best keyword's reply, else a memory, else a phrase that fits anything."""
        said = "\n".join(heard).lower()
        past = [frozenset(words(text)) for text in heard[:-1]]

        def fresh(options: Sequence[tuple[str, str]]) -> list[str]:
            """Texts of ``(frame, echo)`` that are new in frame and not worn out in echo."""
            return [
                frame.replace("{0}", echo)
                for frame, echo in options
                if fixed_part(frame) not in said and not _worn(echo, past)
            ]

        for options in _attempts(heard, draw):
            if texts := fresh(options):
                return sentence_case(draw.pick(texts))
        stock = phrases.ANYTHING + phrases.EVASIONS
        return draw.pick([text for text in stock if text not in heard[-len(stock) // 2 :]])


def _attempts(heard: tuple[str, ...], draw: Draw) -> Iterator[list[tuple[str, str]]]:
    """Groups of ``(frame, echo)`` to choose from, the best group first."""
    last = heard[-1] if heard else ""
    if any(phrase in last.lower() for phrase in _QUESTIONS):
        if draw.chance(_EVADES):
            yield _plain(phrases.EVASIONS)
    else:
        by_rank: dict[int, list[tuple[str, str]]] = {}
        for rank, frame, echo in _takes(last):
            by_rank.setdefault(rank, []).append((frame, echo))
        for rank in sorted(by_rank, reverse=True):
            if rank < _TOLD_RANK and draw.chance(_REMEMBERS):
                break
            yield by_rank[rank]
    yield list(_memories(heard))
    yield _plain(phrases.ANYTHING)
    yield _plain(phrases.EVASIONS)


def _plain(stock: Sequence[str]) -> list[tuple[str, str]]:
    return [(phrase, "") for phrase in stock]


def _takes(text: str) -> Iterator[tuple[int, str, str]]:
    """Every way to take ``text`` up: rank, reply with a ``{0}``, what goes there."""
    for clause in clauses(text):
        for rule in RULES:
            if (match := rule.pattern.search(clause)) is None:
                continue
            echo = reflect(match[1]).strip(" ?") if match.re.groups else ""
            if len(echo.split()) <= _MAX_ECHO:
                yield from ((rule.rank, reply, echo) for reply in rule.replies)
        if (question := indirect_question(clause)) and len(question.split()) <= _MAX_ECHO:
            yield from ((_ASKED_RANK, reply, question) for reply in phrases.ASKED)
        if _tellable(clause):
            told = mid_sentence(reflect(clause))
            yield from ((_TOLD_RANK, reply, told) for reply in phrases.TOLD)
    yield from (
        (_NAMED_RANK, reply, noun) for noun in noun_phrases(text) for reply in phrases.NAMED
    )


def _tellable(clause: str) -> bool:
    """Whether ``clause`` can be given back after "that" as something that was said."""
    return is_statement(clause) and _MIN_TOLD <= len(clause.split()) <= _MAX_ECHO


def _memories(heard: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Statements made before the last utterance, in every frame that brings them back."""
    for back, text in enumerate(reversed(heard[:-1]), 1):
        if any(phrase in text.lower() for phrase in _QUESTIONS):
            continue
        theirs = back % 2 == 0
        for clause in filter(_tellable, clauses(text)):
            echo = mid_sentence(reflect(clause) if theirs else clause)
            yield from ((frame, echo) for frame in (phrases.REMEMBERED if theirs else phrases.OWN))


def _worn(echo: str, past: Sequence[frozenset[str]]) -> bool:
    """Whether the content of ``echo`` has gone to and fro often enough."""
    content = frozenset(words(" ".join(content_words(echo))) or words(echo)) - PERSONS
    return bool(content) and sum(content <= utterance for utterance in past) >= _MAX_RETURNS


_QUESTIONS = frozenset(
    fixed_part(frame)
    for frames in (
        *(rule.replies for rule in RULES),
        *(phrases.ASKED, phrases.TOLD, phrases.NAMED),
        *(phrases.REMEMBERED, phrases.OWN, phrases.ANYTHING),
    )
    for frame in frames
)
"""What tells that an utterance is one of its own questions."""
