"""Reports on the errors in a text, as judges write them: MATEval's one report (Li et al., §3.2).

A report answers one question for each kind of error: yes or no, where and why, points off. The
authors' form (``Question: … 'Repetition'?``, ``Answer: Yes``, ``Score for individual questions:
-1``), closing lines (``Repetition: -1``), headings, tables and JSON are read, in English and the
words of a language pack. Points are always taken off, also without a minus; there is no floor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial

from botchat.languages import ENGLISH, PLAIN, Language


@dataclass
class KindReport:
    """What a report says about one kind of error."""

    kind: int
    """Place in the languages' lists of kinds, from 0; -1: another kind of error, or none."""
    present: bool | None = None
    """None: there is no answer."""
    written: float | None = None
    """Number of the last score line, with its sign."""
    lines: list[str] = field(default_factory=list)
    """Lines of its part without question, answer and score; first what follows Yes or No."""
    deducted: float = 0.0
    unclear: bool = False
    """Whether the last score line has no number."""
    closing: float | None = None
    """Number of a closing line after the last score line."""

    @property
    def score(self) -> float | None:
        """Points off: the last number stated, else the deductions, else 0 after a No, else None."""
        stated = self.written if self.closing is None else self.closing
        if stated is None and not self.unclear and (self.deducted or self.present is False):
            stated = self.deducted
        return None if stated is None else 0.0 - abs(stated)

    def read(self, line: str, w: _ReportPatterns) -> None:
        """Read one more line of its part."""
        plain = line.translate(PLAIN)
        if scores := [*w.score.finditer(plain)] or [*w.cell.finditer(plain)]:
            last = scores[-1].groupdict()
            self.unclear = last.get("unclear") is not None
            if not self.unclear:
                self.written, self.closing = _number(last["number"] or "0"), None
            line = line[: scores[0].start()]
        else:
            numbers = [_number(match["number"]) for match in w.deduction.finditer(plain)]
            self.deducted += sum(map(abs, numbers))
        if self.present is None and (answer := w.answer.match(plain)):
            self.present = answer["yes"] is not None
            if answer["number"] and self.written is None and not self.unclear:
                self.written, self.closing = _number(answer["number"]), None
            self.lines.append(line[answer.end() :])
        elif line.strip():
            self.lines += [line] if self.lines else ["", line]


def read_kinds(text: str, language: Language = ENGLISH) -> list[KindReport]:
    """Return what a report says, in the order of kinds; of each kind the last part counts."""
    w = _patterns(language)
    reports: dict[int, KindReport] = {}
    report = KindReport(-1)
    for line in _lines(text):
        plain = line.translate(PLAIN)
        if scores := w.closing_scores(plain):
            for kind, score in scores:
                reports.setdefault(kind, KindReport(kind)).closing = score
            report = KindReport(-1)
        elif w.total.match(plain):
            report = KindReport(-1)
        elif heading := w.heading(plain):
            kind, end = heading
            report = KindReport(kind)
            if kind >= 0:
                report.closing = reports[kind].closing if kind in reports else None
                reports[kind] = report
            report.read(line[end:], w)
        else:
            report.read(line, w)
    return [reports[kind] for kind in sorted(reports)]


def before_scores(text: str, language: Language = ENGLISH) -> str:
    """Return what stands before the first closing line; the text where that is no word."""
    lines, w = text.splitlines(keepends=True), _patterns(language)
    plain = (line.translate(PLAIN) for line in lines)
    end = next((n for n, line in enumerate(plain) if w.closing_scores(line)), None)
    reason = "".join(lines[:end])
    return reason if re.search(r"[^\W\d_]", reason) else text


# The patterns meet texts whose marks are plain.
_MARKS = r"[ \t*_`~'\"]*"
_LEAD = r"[ \t>*_#`{|([\u2022\u00b7-]*(?:\(?\d{1,2}[.,)][ \t*_#`]*)?" + _MARKS
_COLON = "[:=]"
_MINUS = r"[-\u2212\u2013\u2014]"
_ASIDE = r"(?:[ \t]*\([^()\n]*\))?"
_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_compiled = partial(re.compile, flags=re.IGNORECASE)


class _ReportPatterns:
    """The patterns of a language's words, the English ones among them."""

    def __init__(self, language: Language) -> None:
        packs = [each.pack for each in dict.fromkeys((ENGLISH, language))]
        reports = [pack.report for pack in packs if pack.report]
        minus = _any_of(word for pack in packs if pack.labels for word in pack.labels.minus)

        def of(key: str, most: int | None = None) -> str:
            return _any_of(word for report in reports for word in getattr(report, key)[:most])

        self.kinds = {
            _plain(name): kind
            for report in reports
            for kind, names in enumerate(report.kinds)
            for name in names
        }
        name = _any_of(name for report in reports for names in report.kinds for name in names)
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
        # Begins a question, whatever it asks about; and a question about a kind, or something else.
        self.question = _compiled(rf"{_LEAD}(?:{of('question', 1)}){_MARKS}{_COLON}")
        self.kind_question = _compiled(
            rf"{_LEAD}(?:{of('question')})|.*['\"][ \t]*(?:{name})[ \t]*['\"][ \t]*[?]"
        )
        # A kind as a heading, perhaps with the answer.
        self.headed = _compiled(
            rf"{_LEAD}(?P<name>{name}){_ASIDE}{_MARKS}(?:[?]"
            rf"|(?:{_COLON}|[|]|{_MINUS}){_MARKS}(?=[{{\[]?[ \t]*$|{yes_or_no})|[ \t]*$)"
        )
        # Points off may stand next to it: "Yes (-1)".
        beside = (
            rf"{_MARKS}[(,;:]{_MARKS}(?P<number>{signed}|0(?:\.0)?{last})"
            rf"(?:[ \t]*(?:{of('points')}))?[ \t)]*(?=$|[.,;)*_|]|{_MINUS})"
        )
        self.answer = _compiled(
            rf"{_LEAD}(?:(?:{of('answer')}){_MARKS}{_COLON})?{_MARKS}{yes_or_no}(?:{beside})?"
        )
        begins = rf"(?:^{_LEAD}|(?:[.,;)]|[ \t][-\u2013\u2014])[ \t]*)"
        self.score = _compiled(
            rf"(?:{of('score', 1)}|{begins}(?:{of('score')}))(?:{to_number}|{otherwise})"
        )
        # A score in the last cell of a row.
        self.cell = _compiled(rf"\|{_MARKS}{number}{_MARKS}\|?[ \t]*$")
        self.deduction = _compiled(rf"(?:{of('deduction')}){_MARKS}{_COLON}?{_MARKS}{number}")
        # Ends the last part.
        self.total = _compiled(rf"{_LEAD}(?:{of('total')}){_MARKS}(?:$|{_COLON}|{_MINUS}|\d)")
        # A kind and its score.
        self.pair = _compiled(
            rf"(?P<name>{name})(?:['\"]s)?(?:[ \t_-]*(?:{of('score')}))?"
            rf"{_ASIDE}{_MARKS}(?:{_COLON}|\|){_MARKS}{number}"
        )

    def heading(self, line: str) -> tuple[int, int] | None:
        """Return (kind, end of the heading) of a line that opens a part."""
        if match := self.headed.match(line):
            return self.kinds[_plain(match["name"])], match.end()
        end = line.find("?") + 1 or len(line)
        kinds = {self.kinds[_plain(match[0])] for match in self.name.finditer(line, 0, end)}
        kind = kinds.pop() if len(kinds) == 1 else -1
        asks = self.question.match(line)
        if kind >= 0 and "?" in line:
            asks = asks or self.kind_question.match(line, 0, end)
        return (kind, end) if asks else None

    def closing_scores(self, line: str) -> list[tuple[int, float]]:
        """Return (kind, score) of each pair of a line that begins with one."""
        start = _compiled(_LEAD).match(line)
        if start is None or not self.pair.match(line, start.end()):
            return []
        return [
            (self.kinds[_plain(match["name"])], _number(match["number"]))
            for match in self.pair.finditer(line)
        ]


_patterns = lru_cache(maxsize=8)(_ReportPatterns)


def _lines(text: str) -> list[str]:
    """Return the lines of a reply, or the fields of a reply that is JSON."""
    bare = _FENCE.sub("", text.strip())
    if bare.startswith("{"):
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(bare), indent=1, ensure_ascii=False)
    # Some write the two characters where they mean a new line.
    return text.replace("\\n", "\n").splitlines()


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
    digits = _DIGITS.search(text)
    assert digits is not None, text
    return float(digits[0]) * (-1 if text[: digits.start()].strip() else 1)
