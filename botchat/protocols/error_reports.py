"""Reports on the errors in a text, as judges write them: MATEval's one report (Li et al., §3.2).

The authors' form (``Question: … 'Repetition'?``, ``Answer: Yes``, ``Score for individual questions:
-1``), closing lines (``Repetition: -1``) and headings are read, in English and the words of a
language pack. Points are always taken off, also without a minus; there is no floor.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from msgspec.structs import asdict

from botchat.languages import ENGLISH, PLAIN, Language
from botchat.protocols.replies import TEMPLATES, Pattern, WordParts, patterns_of, plain_name


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
        answer = w.answer.match(plain)
        if answer and self.present is None:
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


class _ReportPatterns:
    """The patterns of a language's words, the English ones among them."""

    name: Pattern
    total: Pattern
    ends: Pattern
    kind_question: Pattern
    headed: Pattern
    answer: Pattern
    score: Pattern
    deduction: Pattern
    pair: Pattern
    closing: Pattern

    def __init__(self, language: Language) -> None:
        self.kinds: dict[str, int] = {}
        lists = defaultdict[str, list[str]](list)
        for pack in (each.pack for each in dict.fromkeys((ENGLISH, language))):
            if pack.labels:
                lists["minus"] += pack.labels.minus
            if pack.report:
                words = asdict(pack.report)
                for kind, names in enumerate(words.pop("kinds")):
                    self.kinds |= {plain_name(name): kind for name in names}
                    lists["name"] += names
                for key, listed in words.items():
                    lists[key] += listed
                    lists[f"first_{key}"] += listed[:1]
        parts = WordParts(language)
        for key, of_key in lists.items():
            parts[key] = _any_of(of_key)
        parts.compile_into(self, TEMPLATES.report)

    def heading(self, line: str) -> tuple[int | None, int]:
        """Return (kind, end of the heading) of a line that opens a part, (None, 0) of others."""
        match = self.headed.match(line)
        if match:
            return self.kinds[plain_name(match["name"])], match.end()
        end = line.find("?") + 1 or len(line)
        kinds = {self.kinds[plain_name(match[0])] for match in self.name.finditer(line, 0, end)}
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
        return [(self.kinds[plain_name(pair["name"])], _number(pair["number"])) for pair in pairs]


_patterns = cache(_ReportPatterns)


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, whose parts blanks or hyphens may part."""
    # No boundary parts the letters of a language that writes without blanks.
    patterns = patterns_of(words)
    return "|".join(rf"\b{pattern}\b" if pattern.isascii() else pattern for pattern in patterns)


def _number(text: str) -> float:
    """Return a number as it stands; a word for taking off is a minus."""
    ((before, digits),) = re.findall(r"\A(\D*)(\d+(?:\.\d+)?)", text)
    if before.strip():
        return -float(digits)
    return float(digits)
