"""`bot:eliza`: turns what it hears into a question (Weizenbaum, ELIZA, CACM 9(1), 1966).

Its failing: it knows nothing, answers nothing and asks back without end. What it hears comes back
with "I" and "you" exchanged, sometimes wrongly. Its rules and phrases are in ``eliza.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from botchat.models.bots.language import (
    PERSONS,
    clauses,
    content_words,
    fixed_part,
    indirect_question,
    is_statement,
    mid_sentence,
    noun_phrases,
    read_data,
    reflect,
    sentence_case,
    words,
)
from botchat.models.bots.speaker import Draw, Speaker

_MAX_ECHO = 14
"""Words of a clause; a longer one is not echoed."""
_MIN_TOLD = 3
"""Words of a statement; a shorter one is not given back."""
_MAX_RETURNS = 2
"""Earlier utterances that may already hold the words of an echo."""
_EVADES, _REMEMBERS = 0.6, 0.5
"""Probability to evade a question of its own kind; to prefer a memory to a low rank."""
_ASKED_RANK, _TOLD_RANK, _NAMED_RANK = 4, 4, 1


class _Rule(NamedTuple):
    rank: int
    pattern: re.Pattern[str]
    replies: list[str]


class _Script(NamedTuple):
    """What ``eliza.toml`` holds; it explains each list."""

    rules: list[_Rule]
    evasions: list[str]
    asked: list[str]
    told: list[str]
    named: list[str]
    remembered: list[str]
    own: list[str]
    anything: list[str]


def _read_script() -> _Script:
    data = read_data("eliza")
    kin = data.pop("kin")
    rules = [
        _Rule(
            rule["rank"],
            re.compile(rule["pattern"].replace("<kin>", kin), re.IGNORECASE),
            rule["replies"],
        )
        for rule in data.pop("rules")
    ]
    return _Script(rules, **data)


_SCRIPT = _read_script()
_QUESTIONS = frozenset(
    fixed_part(frame)
    for frame in chain(
        *(rule.replies for rule in _SCRIPT.rules),
        *(_SCRIPT.asked, _SCRIPT.told, _SCRIPT.named),
        *(_SCRIPT.remembered, _SCRIPT.own, _SCRIPT.anything),
    )
)
"""What tells that an utterance is one of its own questions."""


class Eliza(Speaker):
    """Pattern bot with ranked keywords, reflection and a memory of earlier statements.

    It has no state: what it has said already, and so does not say again while anything else is
    left, it reads from the dialogue. When it talks to itself it hears its own phrases; those it
    evades, and does not search for keywords.
    """

    bot = "eliza"
    version = 1

    def say(self, heard: tuple[str, ...], draw: Draw) -> str:
        """Reply to the best keyword, else a memory, else a phrase that fits anything."""
        said = "\n".join(heard).lower()
        past = [frozenset(words(text)) for text in heard[:-1]]

        def fresh(options: Sequence[tuple[str, str]]) -> list[str]:
            """Texts of ``(frame, echo)`` with a new frame and an echo that is not worn out."""
            return [
                frame.replace("{0}", echo)
                for frame, echo in options
                if fixed_part(frame) not in said and not _worn(echo, past)
            ]

        for options in _attempts(heard, draw):
            if texts := fresh(options):
                return sentence_case(draw.pick(texts))
        stock = _SCRIPT.anything + _SCRIPT.evasions
        return draw.pick([text for text in stock if text not in heard[-len(stock) // 2 :]])


def _attempts(heard: tuple[str, ...], draw: Draw) -> Iterator[list[tuple[str, str]]]:
    """Groups of ``(frame, echo)`` to choose from, the best group first."""
    last = heard[-1] if heard else ""
    if _is_own_question(last):
        if draw.chance(_EVADES):
            yield _plain(_SCRIPT.evasions)
    else:
        by_rank: dict[int, list[tuple[str, str]]] = {}
        for rank, frame, echo in _takes(last):
            by_rank.setdefault(rank, []).append((frame, echo))
        for rank in sorted(by_rank, reverse=True):
            if rank < _TOLD_RANK and draw.chance(_REMEMBERS):
                break
            yield by_rank[rank]
    yield list(_memories(heard))
    yield _plain(_SCRIPT.anything)
    yield _plain(_SCRIPT.evasions)


def _plain(stock: Sequence[str]) -> list[tuple[str, str]]:
    return [(phrase, "") for phrase in stock]


def _takes(text: str) -> Iterator[tuple[int, str, str]]:
    """Every reply to a part of ``text``: rank, reply with a ``{0}``, what goes there."""
    for clause in clauses(text):
        for rule in _SCRIPT.rules:
            if (match := rule.pattern.search(clause)) is None:
                continue
            echo = reflect(match[1]).strip(" ?") if match.re.groups else ""
            if len(echo.split()) <= _MAX_ECHO:
                yield from ((rule.rank, reply, echo) for reply in rule.replies)
        if (question := indirect_question(clause)) and len(question.split()) <= _MAX_ECHO:
            yield from ((_ASKED_RANK, reply, question) for reply in _SCRIPT.asked)
        if _tellable(clause):
            told = mid_sentence(reflect(clause))
            yield from ((_TOLD_RANK, reply, told) for reply in _SCRIPT.told)
    for noun in noun_phrases(text):
        yield from ((_NAMED_RANK, reply, noun) for reply in _SCRIPT.named)


def _is_own_question(text: str) -> bool:
    return any(phrase in text.lower() for phrase in _QUESTIONS)


def _tellable(clause: str) -> bool:
    """Whether ``clause`` can be given back after "that" as something that was said."""
    return is_statement(clause) and _MIN_TOLD <= len(clause.split()) <= _MAX_ECHO


def _memories(heard: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Statements made before the last utterance, in every frame that brings them back."""
    for back, text in enumerate(reversed(heard[:-1]), 1):
        if _is_own_question(text):
            continue
        theirs = back % 2 == 0
        for clause in filter(_tellable, clauses(text)):
            echo = mid_sentence(reflect(clause) if theirs else clause)
            yield from ((frame, echo) for frame in (_SCRIPT.remembered if theirs else _SCRIPT.own))


def _worn(echo: str, past: Sequence[frozenset[str]]) -> bool:
    """Whether too many earlier utterances hold the content of ``echo`` already."""
    content = frozenset(words(" ".join(content_words(echo))) or words(echo)) - PERSONS
    return bool(content) and sum(content <= utterance for utterance in past) >= _MAX_RETURNS
