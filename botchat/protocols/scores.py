"""Scores: what a judge may give, how they are read from its reply, and what a verdict holds.

A verdict is the scores themselves: decimals in the order shown, joined by a space (``"8 7.5"`` for
two answers). A panel's is the mean of its members' (ChatEval, Appendix B). Of points off by kind of
error each counts by itself: one that cannot be read is missing (``"-1 0 ? 0 0"``), the rest stays.

Points off stand in a report on the errors of a text, as judges write it: MATEval's one report (Li
et al., §3.2). The authors' form (``Question: … 'Repetition'?``, ``Answer: Yes``, ``Score for
individual questions: -1``), closing lines (``Repetition: -1``) and headings are read, in English
and the words of a language pack. Points are always taken off, also without a minus; there is no
floor.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby, product
from typing import NamedTuple

from msgspec.structs import asdict

from botchat.errors import DataError
from botchat.interfaces import VerdictReason
from botchat.languages import ENGLISH, PLAIN, Language
from botchat.protocols import replies
from botchat.protocols.replies import TEMPLATES, Pattern, WordParts, any_of, patterns_of, plain_name
from botchat.records import MISSING, Names, Verdict


@dataclass(frozen=True)
class Scale:
    """The numbers that a judge is asked for, each on a line ``NAME: number``, kept to a tenth."""

    lowest: int
    highest: int
    names: Names  # as the judge writes them, in the order of the verdict
    points_off: bool = False  # for MATEval's kinds of error, and a reply is a report on them


@cache
def _steps(scale: Scale) -> dict[Verdict, None]:
    """Return every score there is, as a verdict spells it, in order."""
    return {f"{n / 10:g}": None for n in range(10 * scale.lowest, 10 * scale.highest + 1)}


@dataclass(frozen=True)
class ScoreVerdicts(Set[Verdict]):
    """Every verdict on a scale, without a list of them: three scores from 1 to 10 have 753,571."""

    scale: Scale

    def __contains__(self, verdict: object) -> bool:
        """Return whether it has all scores; points off may be missing, but not all of them."""
        words = str(verdict)
        if MISSING in words and not self.scale.points_off:
            return False
        with suppress(DataError):
            return encode_scores(decode_scores(words, len(self.scale.names)), self.scale) == verdict
        return False

    def __iter__(self) -> Iterator[Verdict]:
        """Return the verdicts without missing scores, in order."""
        for words in product(_steps(self.scale), repeat=len(self.scale.names)):
            yield " ".join(words)

    def __len__(self) -> int:
        """Return the number of verdicts without missing scores."""
        return int(len(_steps(self.scale)) ** len(self.scale.names))


def encode_scores(numbers: Iterable[float | None], scale: Scale) -> Verdict | None:
    """Return the verdict of scores, `MISSING` for one off the scale; None if all are missing."""
    spelled = ["" if score is None else f"{round(score, 1) + 0.0:g}" for score in numbers]
    words = [score if score in _steps(scale) else MISSING for score in spelled]
    if set(words) <= {MISSING}:
        return None
    return " ".join(words)


def decode_scores(verdict: Verdict, n: int) -> tuple[float | None, ...]:
    """Return the ``n`` scores of a verdict, None for a missing one; else raise `DataError`."""
    with suppress(ValueError):
        values = [None if word == MISSING else float(word) for word in verdict.split()]
        if len(values) == n:
            return tuple(values)
    raise DataError(f"verdict {verdict!r} is not {n} scores; delete that line and judge again")


def neutralise_labels(text: str, scale: Scale) -> str:
    """Return a judged text that cannot be taken for a score: names lose the colon behind them."""
    names = "|".join(patterns_of(scale.names))
    return re.sub(rf"(?i){_start(scale)}({names})\s*[:\uff1a=]", r"\1 -", text)


def read_scores(text: str, scale: Scale, language: Language) -> VerdictReason:
    """Return (scores, reason) of a judge's reply; None unless all are there and on the scale.

    Of each number the last line that names it counts, also in a table or JSON; where a number is
    not named at all, the last line that holds nothing but all the numbers (FairEval's form).
    """
    read = partial(_read_numbers, scale=scale, language=language)
    if scale.points_off:
        read = partial(_read_points_off, scale=scale, language=language)
    return replies.read_as_seen(text, language, read)


def _read_numbers(text: str, scale: Scale, language: Language) -> VerdictReason:
    """Return (scores, reason) of one judge's reply."""
    spoken = replies.reply_language(text, language)
    w = _patterns(scale, spoken)
    plain = replies.own_turn(text, spoken, w.label).translate(spoken.plain)
    # What a box of LaTeX holds stands on a line of its own; places stay the same.
    plain = w.boxed.sub(_as_line, plain)
    plain = re.sub(r"\\boxed\{([^{}\n]*)\}((?:[ \t]*/[ \t]*\d+)?)", r"\n      \1\2\n", plain)
    scores = w.find(replies.strip_quotes(plain, spoken))
    after = replies.find_retraction(plain, scores.end, spoken)
    if scores.numbers and after is not None:
        return _read_numbers(text[after:], scale, language)
    verdict = encode_scores(scores.numbers, scale)
    before = text[: scores.start]
    for tail in (r"(?:^|\n)[ \t>*_#.)(\d\u2022-]*\Z", r"(?i)(?:\bthe\s)?\bscore\sof\Z"):
        before = re.sub(tail, "", before).rstrip(" \t\r\n-*_#>{\"'`")
    reasons = (part for part in (before, text[scores.end :]) if re.search(r"[^\W\d_]", part))
    reason = " ".join(next(reasons, text).split())
    if w.has_other_scale(plain) or MISSING in (verdict or ""):
        verdict = None
    return verdict, reason


def _as_line(box: re.Match[str]) -> str:
    return f"\n{box[2]}: {box[1]}\n".ljust(len(box[0]))


def _read_points_off(text: str, scale: Scale, language: Language) -> VerdictReason:
    """Return (points off, reason) of a report, or of one number for every error type."""
    own = replies.own_turn(text, language)
    values = {part.kind: part.score for part in read_kinds(own, language)}
    w = _patterns(scale, language)
    if not values:
        for alike in w.each.finditer(own.translate(language.plain)):
            values = dict.fromkeys(range(w.n), 0.0 - abs(w.number(alike["number"])))
    verdict = encode_scores([values.get(kind) for kind in range(w.n)], scale)
    return verdict, " ".join(text.split())


# Of a reply in a loop the last are read: each looks back on its line
_MOST_LABELS = 200
# Characters behind a name that take the place of its score; more are a sentence
_LONGEST_SCORE = 30


class _Named(NamedTuple):
    """Score of a name in a reply, None where it cannot be read, and where it stands."""

    place: int
    number: float | None
    start: int
    end: int


class _Scores(NamedTuple):
    """Numbers in a reply, none if not all are there, and where they stand."""

    numbers: Sequence[float | None] = ()
    start: int = 0
    end: int = 0


class _ScorePatterns:
    """The forms in which scores are given; of texts with plain marks."""

    begins: Pattern
    label: Pattern
    value: Pattern
    other_scale: Pattern
    aside: Pattern
    each: Pattern
    boxed: Pattern
    bare: Pattern

    def __init__(self, scale: Scale, language: Language) -> None:
        places = {name: place for place, name in enumerate(scale.names)}
        for head, others in language.reading.names.items():  # what "Assistant 1" is called
            known = list(places.items())
            for other in others:
                places |= {name.replace(head, other): place for name, place in known}
        self.n = len(scale.names)
        self._ends: Set[float | None] = {float(scale.lowest), float(scale.highest)}
        self._places = {plain_name(name): place for name, place in places.items()}
        self._totals = {plain_name(each) for each in replies.known_words(language, "total")}
        self._words = replies.reply_patterns(language)
        parts = WordParts(language)
        parts["start"] = ""
        if language.spaced:
            parts["start"] = _start(scale)
        parts["names"] = "|".join(patterns_of(places))
        in_words = self._words.numerals
        parts["in_words"] = any_of(in_words)
        highest = [word for word, number in in_words.items() if number == scale.highest]
        parts["highest"] = any_of([str(scale.highest), *highest])
        parts["more"] = str(self.n - 1)
        parts["bare"] = parts["bare_one"]
        if self.n > 1:
            parts["bare"] = parts["bare_several"]
        parts.compile_into(self, TEMPLATES.score)

    def find(self, plain: str) -> _Scores:
        """Return the scores in the first of the forms that has all of them."""
        scores = self._by_name(plain)
        if scores.numbers:
            return scores
        for lines, start, end in self._as_lines(plain):
            numbers = self._by_name(lines).numbers
            if numbers:
                return _Scores(numbers, start, end)
        for match in self.bare.finditer(plain):
            on_line = [
                self.number(each) for each in re.findall(TEMPLATES.parts["digits"], match[0])
            ]
            scores = _Scores(on_line, match.start(), match.end())
        if self.n > 1:
            for match in self.each.finditer(plain):
                number = self.number(match["number"])
                scores = _Scores([number for _ in range(self.n)], match.start(), match.end())
        return scores

    def has_other_scale(self, plain: str) -> bool:
        """Return whether words, or a column in the last row of a table, name another scale."""
        for head, rows, _ in replies.find_tables(plain):
            plain += "".join(map("\n{{{}: {}".format, head, rows[-1]))
        return self.other_scale.search(plain) is not None

    def _by_name(self, lines: str) -> _Scores:
        """Return the last score of each name."""
        last = {named.place: named for named in self._without_legends(self._named(lines), lines)}
        if len(last) < self.n:
            return _Scores()
        numbers = [last[place].number for place in range(self.n)]
        start = min(named.start for named in last.values())
        return _Scores(numbers, start, max(named.end for named in last.values()))

    def _named(self, lines: str) -> Iterator[_Named]:
        """Yield every name with what stands behind it, if that is a score or takes its place."""
        for label in list(self.label.finditer(lines))[-_MOST_LABELS:]:
            before = replies.line_before(lines, label.start())
            is_other = label["sep"] and not self.begins.search(before)
            if is_other or before.count('"') % 2:
                continue
            place = self._places[plain_name(label["name"])]
            value = self.value.match(lines, label.end())
            if value is not None:
                yield _Named(place, self._score(label, value), label.start(), value.end())
                continue
            rest = lines[label.end() :].partition("\n")[0]
            # A score that cannot be read, or a sentence on the name.
            is_short = 0 < len(rest.strip()) <= _LONGEST_SCORE and label["sep"] is not None
            if self._words.abstains.match(rest) or (is_short and self.begins.fullmatch(before)):
                yield _Named(place, None, label.start(), label.end() + len(rest))

    def _without_legends(self, named: Iterable[_Named], lines: str) -> Iterator[_Named]:
        """Leave out lines, one below the other, that explain a name from one end to the other."""

        def run_of(numbered: tuple[int, _Named]) -> tuple[int, int]:
            n, each = numbered
            return each.place, lines.count("\n", 0, each.start) - n

        for _, numbered in groupby(enumerate(named), run_of):
            run = [each for _, each in numbered]
            if not self._ends <= {each.number for each in run}:
                yield from run

    def _score(self, label: re.Match[str], value: re.Match[str]) -> float | None:
        """Return a score on its own scale; None on another, or beside another number."""
        if label["other"] or value["of"] or self.aside.match(value.string, value.end()):
            return None
        return self.number(value["number"])

    def _as_lines(self, plain: str) -> Iterator[tuple[str, int, int]]:
        """Write tables, then JSON, as lines ``name: number``, with (start, end)."""
        for head, rows, (start, end) in replies.find_tables(plain):
            yield "\n".join(self._cells(head, rows)), start, end
        for first, last in ("{}", "[]"):
            start = plain.find(first)
            end = plain.rfind(last) + 1
            with suppress(ValueError, RecursionError):
                yield "\n".join(self._json_lines(json.loads(plain[start:end]))), start, len(plain)

    def _cells(self, head: list[str], rows: list[list[str]]) -> list[str]:
        """Write the column of overall scores of a table, or its only or overall row."""
        for column, name in enumerate(head):
            if column and self._is_total(name):
                return [f"{row[0]}: {row[column]}" for row in rows if len(row) > column]
        cells = []
        for row in rows:
            if len(rows) == 1 or self._is_total(row[0]):
                cells += [f"{name}: {cell}" for name, cell in zip(head, row, strict=False)]
        return cells

    def _json_lines(self, value: object, name: str = "") -> Iterator[str]:
        """Write the numbers of JSON; a named object is worth its overall score."""
        if isinstance(value, list):
            value = dict(enumerate(value))
        if not isinstance(value, dict):
            yield f"{name.replace('_', ' ')}: {value}"
            return
        totals = [each for key, each in value.items() if self._is_total(str(key))][:1]
        for key, each in value.items():
            yield from self._json_lines(each, str(key))
            yield from (f"{key} {each}: {total}" for total in totals)  # "assistant": 1
        yield from (f"{name}: {total}" for total in totals)

    def _is_total(self, name: str) -> bool:
        return plain_name(name) in self._totals

    def number(self, text: str) -> float:
        """Return a number in digits or in words."""
        digits = re.sub(r"[\u2212\u2013\u2014]", "-", text).replace(",", ".")
        return float(self._words.numerals.get(digits.lower(), digits))


_patterns = cache(_ScorePatterns)


def _start(scale: Scale) -> str:
    # No boundary parts letters without blanks.
    if "".join(scale.names).isascii():
        return r"\b"
    return ""


# ---------------------------------------------------------------------- reports on a text


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
    w = _report_patterns(language)
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
        for pack in dict.fromkeys((ENGLISH, language)):
            lists["minus"] += pack.labels.minus
            if pack.pack.report:
                words = asdict(pack.pack.report)
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


_report_patterns = cache(_ReportPatterns)


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
