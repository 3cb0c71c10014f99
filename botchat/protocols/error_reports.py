"""Reports on the errors in a text, as judges write them: MATEval's one report (Li et al., §3.2).

The authors' form (``Question: … 'Repetition'?``, ``Answer: Yes``, ``Score for individual questions:
-1``), closing lines (``Repetition: -1``) and headings are read, in English and the words of a
language pack. Points are always taken off, also without a minus; there is no floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial

from botchat.languages import ENGLISH, PLAIN, Language


@dataclass
class KindReport:
    """Part of a report on one kind of error."""

    kind: int  # place in the languages' lists of kinds, from 0; -1: another kind, or none
    present: bool | None = None  # None: there is no answer
    written: float | None = None  # number of the last score or closing line, with its sign
    lines: list[str] = field(default_factory=list)
    """Lines of its part without question, answer and score; first what follows Yes or No."""
    deducted: float = 0.0
    unclear: bool = False  # the last score line has no number

    @property
    def score(self) -> float | None:
        """Points off: the last number stated, else the deductions, else 0 after a No, else None."""
        stated = self.written
        if stated is None and not self.unclear and (self.deducted or self.present is False):
            stated = self.deducted
        if stated is None:
            return None
        return 0.0 - abs(stated)

    def read(self, line: str, w: _ReportPatterns) -> None:
        """Read one more line of its part."""
        plain = line.translate(PLAIN)
        self.deducted += sum(abs(_number(each["number"])) for each in w.deduction.finditer(plain))
        scores = list(w.score.finditer(plain))
        if scores:
            self.unclear = scores[-1]["unclear"] is not None
            if not self.unclear:
                self.written = _number(scores[-1]["number"] or "0")
            line = line[: scores[0].start()]
        if self.present is None and (answer := w.answer.match(plain)):
            self.present = answer["yes"] is not None
            if answer["number"] and self.written is None and not self.unclear:
                self.written = _number(answer["number"])
            self.lines.append(line[answer.end() :])
        elif line.strip():
            self.lines += [line] if self.lines else ["", line]


def read_kinds(text: str, language: Language = ENGLISH) -> list[KindReport]:
    """Return what a report says, in the order of kinds; of each kind the last part counts."""
    w = _patterns(language)
    reports: dict[int, KindReport] = {}
    report = KindReport(-1)
    # Some write the two characters where they mean a new line.
    for line in text.replace("\\n", "\n").splitlines():
        plain = line.translate(PLAIN)
        scores = w.closing_scores(plain)
        if scores:
            for place, score in scores:
                reports.setdefault(place, KindReport(place)).written = score
            report = KindReport(-1)
        else:
            kind, end = w.heading(plain)
            if kind is not None:
                reports[kind] = report = KindReport(kind)
            report.read(line[end:], w)
    return [reports[kind] for kind in sorted(reports) if kind >= 0]


# The patterns meet texts whose marks are plain.
_MARKS = r"[ \t*_`~'\"]*"
_LEAD = r"[ \t>*_#`{|([\u2022\u00b7-]*(?:\(?\d{1,2}[.,)][ \t*_#`]*)?" + _MARKS
_COLON = "[:=]"
_MINUS = r"[-\u2212\u2013\u2014]"
_ASIDE = r"(?:[ \t]*\([^()\n]*\))?"
_compiled = partial(re.compile, flags=re.IGNORECASE)


class _ReportPatterns:
    """The patterns of a language's words, the English ones among them."""

    def __init__(self, language: Language) -> None:
        packs = [each.pack for each in dict.fromkeys((ENGLISH, language))]
        reports = [pack.report for pack in packs if pack.report]
        minus = _any_of(word for pack in packs if pack.labels for word in pack.labels.minus)

        def of(key: str, most: int | None = None) -> str:
            return _any_of(word for report in reports for word in getattr(report, key)[:most])

        kinds = [(kind, names) for report in reports for kind, names in enumerate(report.kinds)]
        self.kinds = {_plain(name): kind for kind, names in kinds for name in names}
        name = _any_of(name for _, names in kinds for name in names)
        until = rf"[ \t]*(?:(?:{of('until')})[ \t]*{_MINUS}?|[-\u2013~]{_MINUS}?)[ \t]*\d"
        last = rf"(?![.\d]*\d)(?!{until})"
        signed = rf"(?:(?:{minus})[ \t]*{_MINUS}?|{_MINUS})[ \t]*\d+(?:\.\d+)?{last}"
        # Without its sign a number is a score only where its line ends, or an aside follows.
        stop = (
            rf"[ \t*_`]*(?:$|[,;(){{}}\]|'\"]|{of('aside')}|{_MINUS}[ \t]|[.][ \t*_`]*(?:$|{name}))"
        )
        points = rf"(?:[ \t]*/[ \t]*\d+)?(?:[ \t]*(?:{of('points')}))?"
        unsigned = rf"0(?:\.0)?{last}|\d+(?:\.\d+)?{last}(?={points}{stop})"
        number = rf"(?P<number>{signed}|{unsigned})"
        to_number = (
            rf"(?:[^:=\n\d.]{{0,60}}{_COLON})?{_MARKS}(?:[-+*\u00d7\d. \t]+=[ \t]*)?{number}"
        )
        otherwise = rf"{_MARKS}{_COLON}{_MARKS}(?:{of('nothing')}|(?P<unclear>\S))"
        yes_or_no = rf"(?:(?P<no>{of('no')})|(?P<yes>{of('yes')}))"
        self.name = _compiled(name)
        # Ends a part: a line on the whole report, and a question, whatever it asks about.
        total = rf"(?:{of('total')}){_MARKS}(?:$|{_COLON}|{_MINUS}|\d)"
        self.total = _compiled(_LEAD + total)
        self.ends = _compiled(rf"{_LEAD}(?:{total}|(?:{of('question', 1)}){_MARKS}{_COLON})")
        self.kind_question = _compiled(
            rf"{_LEAD}(?:{of('question')})|.*['\"][ \t]*(?:{name})[ \t]*['\"][ \t]*[?]"
        )
        # A kind as a heading, perhaps with the answer.
        self.headed = _compiled(
            rf"{_LEAD}(?P<name>{name}){_ASIDE}{_MARKS}(?:[?]"
            rf"|(?:{_COLON}|[|]|{_MINUS}){_MARKS}(?=[{{\[]?[ \t]*$|{yes_or_no})|[ \t]*$)"
        )
        # Points off may stand next to it: "Yes (-1)".
        points_off = (
            rf"{_MARKS}[(,;:]{_MARKS}(?P<number>{signed}|0(?:\.0)?{last})"
            rf"(?:[ \t]*(?:{of('points')}))?[ \t)]*(?=$|[.,;)*_|]|{_MINUS})"
        )
        self.answer = _compiled(
            rf"{_LEAD}(?:(?:{of('answer')}){_MARKS}{_COLON})?{_MARKS}{yes_or_no}(?:{points_off})?"
        )
        begins = rf"(?:^{_LEAD}|(?:[.,;)]|[ \t][-\u2013\u2014])[ \t]*)"
        self.score = _compiled(
            rf"(?:{of('score', 1)}|{begins}(?:{of('score')}))(?:{to_number}|{otherwise})"
        )
        self.deduction = _compiled(rf"(?:{of('deduction')}){_MARKS}{_COLON}?{_MARKS}{number}")
        # A kind and its score.
        self.pair = _compiled(
            rf"(?P<name>{name})(?:['\"]s)?(?:[ \t_-]*(?:{of('score')}))?"
            rf"{_ASIDE}{_MARKS}(?:{_COLON}|\|){_MARKS}{number}"
        )
        self.closing = _compiled(_LEAD + self.pair.pattern)

    def heading(self, line: str) -> tuple[int | None, int]:
        """Return (kind, end of the heading) of a line that opens a part, (None, 0) of others."""
        match = self.headed.match(line)
        if match:
            return self.kinds[_plain(match["name"])], match.end()
        end = line.find("?") + 1 or len(line)
        kinds = {self.kinds[_plain(match[0])] for match in self.name.finditer(line, 0, end)}
        kind = -1
        if len(kinds) == 1 and not self.total.match(line):
            kind = kinds.pop()
        asks = kind >= 0 and "?" in line and self.kind_question.match(line, 0, end)
        if asks or self.ends.match(line):
            return (kind, end)
        return (None, 0)

    def closing_scores(self, line: str) -> list[tuple[int, float]]:
        """Return (kind, score) of each pair of a line that begins with one."""
        if not self.closing.match(line):
            return []
        pairs = self.pair.finditer(line)
        return [(self.kinds[_plain(pair["name"])], _number(pair["number"])) for pair in pairs]


_patterns = lru_cache(maxsize=8)(_ReportPatterns)


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, longest first; blanks or hyphens may part a word's parts."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    patterns = (r"[\s_-]*".join(map(re.escape, word.split())) for word in ordered)
    # No boundary parts the letters of a language that writes without blanks.
    return "|".join(rf"\b{pattern}\b" if pattern.isascii() else pattern for pattern in patterns)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _number(text: str) -> float:
    """Return a number as it stands; a word for taking off is a minus."""
    ((before, digits),) = re.findall(r"\A(\D*)(\d+(?:\.\d+)?)", text)
    if before.strip():
        return -float(digits)
    return float(digits)
