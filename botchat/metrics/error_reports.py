"""Reports on the errors in a text, as judges write them: MATEval's one report (Li et al., §3.2).

A report answers one question for each kind of error: yes or no, where and why, points off. Read are
the authors' form (``Question: … 'Repetition'?``, ``Answer: Yes``, ``Score for individual questions:
-1``), closing lines (``Repetition: -1``), headings, tables and JSON, in English and the words of a
language pack. Points are always taken off, also without a minus; there is no floor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from botchat.languages import ENGLISH, PLAIN, Language


@dataclass(frozen=True)
class ToldKind:
    """What a report says about one kind of error."""

    kind: int
    """Place in the languages' lists of kinds, from 0."""
    present: bool | None
    """``None``: there is no answer."""
    score: float | None
    """Points off; ``None``: missing. The last one stated, else the sum of the deductions of its
    part, else 0 where the answer is No."""
    written: float | None = None
    """What the last score line says, its sign as it stands there."""
    said: tuple[str, ...] = ()
    """The lines of its part without question, answer and score; first what follows Yes or No."""


def read_kinds(text: str, language: Language = ENGLISH) -> list[ToldKind]:
    """What a report says, kind by kind in the order of the lists; of each the last part counts."""
    w = _words(language)
    parts: dict[int, _OfKind] = {}
    closing: dict[int, tuple[int, float]] = {}
    part = _OfKind()
    for at, told in enumerate(_lines(text)):
        line = told.translate(PLAIN)
        if scored := w.closings(line):
            closing |= {kind: (at, score) for kind, score in scored}
            part = _OfKind()
        elif w.total.match(line):
            part = _OfKind()
        elif head := w.heading(line):
            part, (kind, rest) = _OfKind(), head
            if kind is not None:
                parts[kind] = part
            part.read(told[rest:], at, w)
        else:
            part.read(told, at, w)
    found = []
    for kind in sorted({*parts, *closing}):
        one = parts.get(kind, _OfKind())
        stated = max(filter(None, (one.stated, closing.get(kind))), default=None)
        score = one.implied if stated is None else 0.0 - abs(stated[1])
        written = one.stated[1] if one.stated else None
        found.append(ToldKind(kind, one.present, score, written, tuple(one.said)))
    return found


def before(text: str, language: Language = ENGLISH) -> str:
    """What stands before scores that are nothing but closing lines; else everything."""
    w, lines = _words(language), text.splitlines()
    for at, line in enumerate(text.translate(PLAIN).splitlines()):
        if w.closings(line):
            said = "\n".join(lines[:at])
            return said if re.search(r"[^\W\d_]", said) else text
        if (head := w.heading(line)) and head[0] is not None:
            break
    return text


class _OfKind:
    """The lines about one kind, as they are read."""

    def __init__(self) -> None:
        self.present: bool | None = None
        self.stated: tuple[int, float] | None = None
        self.unclear = False
        """Whether the last score line states no score."""
        self.deducted: list[float] = []
        self.said: list[str] = []

    def read(self, told: str, at: int, w: _ReportPatterns) -> None:
        """One more line, the ``at``-th of the reply."""
        line = told.translate(PLAIN)
        if scored := [*w.score.finditer(line)] or [*w.cell.finditer(line)]:
            said = scored[-1]["number"]
            self.unclear = scored[-1].groupdict().get("unclear") is not None
            if not self.unclear:
                self.stated = at, 0.0 if said is None else _number(said)
            told = told[: scored[0].start()]
        else:
            self.deducted += [_number(match["number"]) for match in w.deduction.finditer(line)]
        if self.present is None and (match := w.answer.match(line)):
            self.present = match["yes"] is not None
            beside = w.beside.match(line, match.end())
            if beside and self.stated is None and not self.unclear:
                self.stated = at, _number(beside["number"])
            self.said.append(told[beside.end() if beside else match.end() :])
        elif told.strip():
            self.said += [told] if self.said else ["", told]

    @property
    def implied(self) -> float | None:
        """The score that no line states."""
        if self.deducted and not self.unclear:
            return -sum(map(abs, self.deducted))
        return 0.0 if self.present is False and not self.unclear else None


# All of these meet texts whose marks are plain.
_MARKS = r"[ \t*_`~'\"]*"
_LEAD = r"[ \t>*_#`{|([\u2022\u00b7-]*(?:\(?\d{1,2}[.,)][ \t*_#`]*)?" + _MARKS
_COLON = "[:=]"
_MINUS = r"[-\u2212\u2013\u2014]"
_ASIDE = r"(?:[ \t]*\([^()\n]*\))?"
_PAUSE = r"(?:[.,;)]|[ \t][-\u2013\u2014])[ \t]*"
_FENCE = re.compile(r"^```\w*\s*|\s*```$")


class _ReportPatterns:
    """The patterns of a language's words, the English ones among them."""

    def __init__(self, language: Language) -> None:
        both = [one.pack for one in dict.fromkeys((ENGLISH, language))]
        packs = [one.report for one in both if one.report]
        minus = _any_of(word for one in both if one.labels for word in one.labels.minus)

        def of(key: str, most: int | None = None) -> str:
            return _any_of(word for one in packs for word in getattr(one, key)[:most])

        spelled = [
            (name, place)
            for one in packs
            for place, names in enumerate(one.kinds)
            for name in names
        ]
        name = _any_of(name for name, _ in spelled)
        until = rf"[ \t]*(?:(?:{of('until')})[ \t]*{_MINUS}?|[-\u2013~]{_MINUS}?)[ \t]*\d"
        whole = rf"\d+(?:\.\d+)?(?![.\d]*\d)(?!{until})"
        signed = rf"(?:(?:{minus})[ \t]*{_MINUS}?|{_MINUS})[ \t]*{whole}"
        # Without its sign a number is a score only where its line ends, or an aside follows.
        stop = (
            rf"[ \t*_`]*(?:$|[,;(){{}}\]|'\"]|{of('aside')}|{_MINUS}[ \t]|[.][ \t*_`]*(?:$|{name}))"
        )
        plain = rf"{whole}(?=(?:[ \t]*/[ \t]*\d+)?(?:[ \t]*(?:{of('points')}))?{stop})"
        nought = rf"0(?:\.0)?(?![.\d]*\d)(?!{until})"
        number = rf"(?P<number>{signed}|{nought}|{plain})"
        sum_of = r"(?:[-+*\u00d7\d. \t]+=[ \t]*)?"
        to_number = rf"(?:[^:=\n\d.]{{0,60}}{_COLON})?{_MARKS}{sum_of}{number}"
        otherwise = rf"{_MARKS}{_COLON}{_MARKS}(?:{of('nothing')}|(?P<unclear>\S))"
        yes_or_no = rf"(?:(?P<no>{of('no')})|(?P<yes>{of('yes')}))"

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE)

        self.kinds = {_plain(name): place for name, place in spelled}
        self.name = compiled(name)
        # Begins a question, whatever it asks about.
        self.question = compiled(rf"{_LEAD}(?:{of('question', 1)}){_MARKS}{_COLON}")
        # Begins a question about a kind, or something else.
        self.perhaps = compiled(rf"{_LEAD}(?:{of('question')})")
        # A question that ends with a kind in quotation marks.
        self.quoted = compiled(rf"['\"][ \t]*(?:{name})[ \t]*['\"][ \t]*[?]")
        # A kind as a heading, perhaps with the answer.
        self.headed = compiled(
            rf"{_LEAD}(?P<name>{name}){_ASIDE}{_MARKS}(?:[?]"
            rf"|(?:{_COLON}|[|]|{_MINUS}){_MARKS}(?=[{{\[]?[ \t]*$|{yes_or_no})|[ \t]*$)"
        )
        self.answer = compiled(
            rf"{_LEAD}(?:(?:{of('answer')}){_MARKS}{_COLON})?{_MARKS}{yes_or_no}"
        )
        # Points off next to a Yes or No: "Yes (-1)".
        self.beside = compiled(
            rf"{_MARKS}[(,;:]{_MARKS}(?P<number>{signed}|{nought})"
            rf"(?:[ \t]*(?:{of('points')}))?[ \t)]*(?=$|[.,;)*_|]|{_MINUS})"
        )
        self.score = compiled(
            rf"(?:{of('score', 1)}|(?:^{_LEAD}|{_PAUSE})(?:{of('score')}))"
            rf"(?:{to_number}|{otherwise})"
        )
        # A score in the last cell of a row.
        self.cell = compiled(rf"\|{_MARKS}{number}{_MARKS}\|?[ \t]*$")
        self.deduction = compiled(rf"(?:{of('deduction')}){_MARKS}{_COLON}?{_MARKS}{number}")
        # Ends the last part.
        self.total = compiled(rf"{_LEAD}(?:{of('total')}){_MARKS}(?:$|{_COLON}|{_MINUS}|\d)")
        # A kind and its score.
        self.pair = compiled(
            rf"(?P<name>{name})(?:['\"]s)?(?:[ \t_-]*(?:{of('score')}))?"
            rf"{_ASIDE}{_MARKS}(?:{_COLON}|\|){_MARKS}{number}"
        )

    def heading(self, line: str) -> tuple[int | None, int] | None:
        """(kind, end of the heading) of a line that opens a part; ``None``: another kind's."""
        if match := self.headed.match(line):
            return self.kinds[_plain(match["name"])], match.end()
        mark = line.find("?") + 1
        end = mark or len(line)
        asked = line[:end]
        kinds = {self.kinds[_plain(match[0])] for match in self.name.finditer(asked)}
        kind = kinds.pop() if len(kinds) == 1 else None
        if self.question.match(line):
            return kind, end
        about = mark and (self.perhaps.match(line) or self.quoted.search(asked))
        return (kind, end) if about and kind is not None else None

    def closings(self, line: str) -> list[tuple[int, float]]:
        """(kind, score) of each pair of a line that begins with one."""
        start = _LEAD_IN.match(line)
        if start is None or not self.pair.match(line, start.end()):
            return []
        return [
            (self.kinds[_plain(match["name"])], _number(match["number"]))
            for match in self.pair.finditer(line)
        ]


_LEAD_IN = re.compile(_LEAD)
_words = lru_cache(maxsize=8)(_ReportPatterns)


def _lines(text: str) -> list[str]:
    """Of a reply that is JSON each field is a line."""
    bare = _FENCE.sub("", text.strip())
    if bare.startswith("{"):
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(bare), indent=1, ensure_ascii=False)
    # Some write the two characters where they mean a new line.
    return text.replace("\\n", "\n").splitlines()


def _any_of(words: Iterable[str]) -> str:
    """A pattern of the words, longest first; between their parts may be blanks or hyphens."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    spelled = (r"[\s_-]*".join(map(re.escape, word.split())) for word in ordered)
    # No boundary parts the letters of a language that writes without blanks.
    return "|".join(rf"\b{one}\b" if one.isascii() else one for one in spelled)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _number(said: str) -> float:
    """A number as it stands; a word for taking off is a minus."""
    digits = _DIGITS.search(said)
    assert digits is not None, said
    return float(digits[0]) * (-1 if said[: digits.start()].strip() else 1)


_DIGITS = re.compile(r"\d+(?:\.\d+)?")
