"""Scores: what a judge may give, how they are read from its reply, and what a verdict holds.

A verdict is the scores themselves: decimals in the order shown, joined by a space (``"8 7.5"`` for
two answers). A panel's is the mean of its members' (ChatEval, Appendix B). Of points off by kind of
error each counts by itself: one that cannot be read is missing (``"-1 0 ? 0 0"``), the rest stays.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import product

from botchat.errors import DataError
from botchat.languages import ENGLISH, Language
from botchat.metrics import error_reports
from botchat.metrics.correlation import Rating
from botchat.protocols.patterns import any_known, any_of, known, numerals
from botchat.protocols.replies import (
    find_retraction,
    reply_language,
    spell_letters,
    strip_hypotheticals,
    strip_quotes,
)
from botchat.records import MISSING, Judgment, Verdict


@dataclass(frozen=True)
class Scale:
    """The numbers that a judge is asked for, each on a line ``NAME: number``, kept to a tenth."""

    lowest: int
    highest: int
    names: tuple[str, ...]
    """As the judge writes them, in the order of the verdict."""
    points_off: bool = False
    """The numbers are points off for MATEval's kinds of error, in the order of the languages'
    ``[report]``, and a reply is a report on them (`botchat.metrics.error_reports`)."""

    def part(self, number: float) -> float:
        """A number with the ends of the scale as 0 and 1."""
        return (number - self.lowest) / (self.highest - self.lowest)


@lru_cache(maxsize=64)
def _steps(scale: Scale) -> tuple[Verdict, ...]:
    """Every score there is, as a verdict spells it."""
    return tuple(f"{tenth / 10:g}" for tenth in range(10 * scale.lowest, 10 * scale.highest + 1))


@lru_cache(maxsize=64)
def choices(scale: Scale) -> Combinations:
    """Every verdict on a scale; those that lack a number are known, and not listed."""
    return Combinations((_steps(scale),) * len(scale.names), scale.points_off)


@dataclass(frozen=True)
class Combinations(Set[Verdict]):
    """Verdicts of several words without a list of them: three scores from 1 to 10 have 753,571."""

    offered: tuple[tuple[str, ...], ...]
    """What each of the words may be."""
    may_lack: bool = False
    """Whether words, but not all of them, may be `MISSING`."""

    def __contains__(self, verdict: object) -> bool:
        """Whether it is as many words as are asked for, each of them offered at its place."""
        words = str(verdict).split(" ")
        lacks = words.count(MISSING) if self.may_lack else 0
        return lacks < len(words) == len(self.offered) and all(
            word in known or (lacks > 0 and word == MISSING)
            for word, known in zip(words, self._known, strict=True)
        )

    @cached_property
    def _known(self) -> list[frozenset[str]]:
        return [*map(frozenset, self.offered)]

    def __iter__(self) -> Iterator[Verdict]:
        """One after the other, in the order of the lists."""
        return map(" ".join, product(*self.offered))

    def __len__(self) -> int:
        """How many there are."""
        return math.prod(map(len, self.offered))


def read_scores(
    text: str, scale: Scale, language: Language = ENGLISH
) -> tuple[Verdict | None, str]:
    """(scores, reason) of a judge's reply; ``None`` unless all are there and on the scale.

    Of each number the last line that names it counts; where a number is not named at all, the last
    line that holds nothing but all the numbers (FairEval's form). Points off: see `Scale`.
    """
    if scale.points_off:
        return _points_off(text, scale, language)
    spoken = reply_language(text, language)
    text = spell_letters(text, [[name] for name in scale.names])
    plain = _BOX.sub(_on_its_own, strip_hypotheticals(text, spoken).translate(spoken.plain))
    numbers = _given(strip_quotes(plain, spoken), scale, spoken)
    if numbers is None:
        return None, " ".join(text.split())
    values, start, end = numbers
    if (after := find_retraction(plain, end, spoken)) is not None:
        return read_scores(text[after:], scale, language)
    return _verdict(values, scale), _reason(text, start, end)


Given = tuple[Sequence[float], int, int]
"""The numbers in their order, and where the first begins and the last ends."""


def _given(plain: str, scale: Scale, language: Language) -> Given | None:
    """The scores that a reply gives, in the first of the forms that has all of them."""
    w = _patterns(scale, language)
    for pattern in (w.named, w.told):
        named = {w.names[_plain(match["name"])]: match for match in pattern.finditer(plain)}
        if len(named) == len(scale.names):
            values = [w.number(named[place]["number"]) for place in range(len(named))]
            ends = [match.span() for match in named.values()]
            return values, min(start for start, _ in ends), max(end for _, end in ends)
    for match in _TABLE.finditer(plain):
        if (numbers := _table_scores(match, w)) is not None:
            return numbers, *match.span()
    if (numbers := _json_scores(plain, w)) is not None:
        return numbers, plain.find("{"), len(plain)
    if w.n > 1 and (alike := list(w.each.finditer(plain))):
        return [w.number(alike[-1]["number"])] * w.n, *alike[-1].span()
    if bare := list(w.bare.finditer(plain)):
        return [w.number(one) for one in re.findall(_NUMBER, bare[-1][0])], *bare[-1].span()
    return None


def _table_scores(table: re.Match[str], w: _ScorePatterns) -> list[float] | None:
    """Return the scores of a table: of its only row, or of its row or column of whole scores."""
    rows = [[*map(_plain, line.strip().strip("|").split("|"))] for line in table[0].splitlines()]
    head, _, *body = [line.strip().strip("|").split("|") for line in table[0].splitlines()]
    by_name: dict[int | None, str] = {}
    whole = next((i for i, name in enumerate(rows[0]) if i and name in w.total), None)
    if whole is not None:
        by_name = {w.names.get(_plain(row[0])): row[whole] for row in body if len(row) > whole}
    else:
        chosen = body if len(body) == 1 else [row for row in body if _plain(row[0]) in w.total]
        for row in chosen:
            by_name = dict(zip(map(w.names.get, map(_plain, head)), row, strict=False))
    cells = [_CELL.fullmatch(by_name.get(i, "")) for i in range(w.n)]
    return [w.number(cell[1]) for cell in cells if cell] if all(cells) else None


def _json_scores(plain: str, w: _ScorePatterns) -> list[float] | None:
    """Return the scores of an object in JSON: named, or the whole score of a named object."""
    values: dict[int, float] = {}

    def keep(name: object, value: object) -> None:
        place = w.names.get(re.sub(r"^score(of)?|score$", "", _plain(str(name))))
        if isinstance(value, dict):
            totals = [each for key, each in value.items() if _plain(key) in w.total]
            for key, each in value.items():
                keep(key, each)
                if totals:
                    keep(f"{key} {each}", totals[0])
            value = totals[0] if totals else None
        for each in value if isinstance(value, list) else ():
            keep("", each)
        if place is not None and re.fullmatch(_NUMBER, str(value)):
            values[place] = w.number(str(value))

    for first, last in ("{}", "[]"):
        with suppress(ValueError, RecursionError):
            keep("", json.loads(plain[plain.find(first) : plain.rfind(last) + 1]))
    return [values[i] for i in range(w.n)] if len(values) == w.n else None


def _on_its_own(box: re.Match[str]) -> str:
    """What a box of LaTeX holds, on a line of its own, as long as it was."""
    return "\n" + " " * (box.start(1) - box.start() - 1) + box[1] + "\n" * (box.end() - box.end(1))


def _points_off(text: str, scale: Scale, language: Language) -> tuple[Verdict | None, str]:
    values = {one.kind: one.score for one in error_reports.read_kinds(text, language)}
    w = _patterns(scale, language)
    alike = list(w.each.finditer(strip_hypotheticals(text, language).translate(language.plain)))
    if not values and alike:
        values = dict.fromkeys(range(w.n), 0.0 - abs(w.number(alike[-1]["number"])))
    verdict = encode_scores([values.get(kind) for kind in range(w.n)], scale)
    reason = error_reports.before(text, language) if verdict else text
    return verdict, " ".join(reason.split())


def encode_scores(numbers: Iterable[float | None], scale: Scale) -> Verdict | None:
    """The verdict of some scores, `MISSING` where there is none on the scale; ``None``: nowhere."""
    known = choices(scale)._known[0]
    spelled = ["" if score is None else f"{round(score, 1) + 0.0:g}" for score in numbers]
    verdict = [score if score in known else MISSING for score in spelled]
    return None if set(verdict) == {MISSING} else " ".join(verdict)


def ratings(judgments: Iterable[Judgment], n: int = 1, place: int = 0) -> list[Rating]:
    """One of the ``n`` scores of judgments of single texts, the one at ``place`` from 0."""
    return [
        Rating(
            made.seed_id,
            made.contestants[0],
            made.judge,
            None if made.verdict is None else decode_scores(made.verdict, n)[place],
        )
        for made in judgments
    ]


def decode_scores(verdict: Verdict, n: int) -> tuple[float | None, ...]:
    """The ``n`` scores of a verdict, in their order, ``None``: `MISSING`.

    Raises `DataError` if it is not that.
    """
    try:
        values = [None if one == MISSING else float(one) for one in verdict.split()]
    except ValueError:
        values = []
    if len(values) != n:
        raise DataError(f"verdict {verdict!r} is not {n} scores; delete that line and judge again")
    return tuple(values)


def neutralise_labels(text: str, scale: Scale) -> str:
    """A judged text that cannot be taken for a score: a name before a colon loses the colon."""
    return _score_like(scale).sub(r"\1 -", text)


_NUMBER = r"[-\u2212\u2013\u2014]?\d+(?:\.\d+)?"
_MARKS = r"[\"'`*_~\s]*"
_BOX = re.compile(r"\\boxed\{\s*(?:\\text\w*\{)?([^{}\n]*)\}+")
_TABLE = re.compile(r"^.*\|.*\n(?=.*\|)[ \t|:-]*-[ \t|:-]*\r?(?:\n.*\|.*)+$", re.MULTILINE)
_CELL = re.compile(rf"[\s*_]*({_NUMBER})(?:[ ]*/[ ]*10(?:\.0)?)?[\s*_]*")
_SCORE_LABEL = re.compile(r"(?:\bthe\s)?\bscore\sof\Z", re.IGNORECASE)
_TRIMMED = " \t\r\n-*_#>{\"'`"
_ITEM = re.compile(r"(?:^|\n)[ \t>*_#.)(\d\u2022-]*\Z")


class _ScorePatterns:
    """The forms in which scores are given; of texts with plain marks."""

    def __init__(self, scale: Scale, language: Language = ENGLISH) -> None:
        of = partial(any_known, language)
        called = {name: place for place, name in enumerate(scale.names)}
        called |= {
            f"{other} {name.removeprefix(head).strip()}": place
            for head, others in language.reading.names.items()
            for other in others
            for name, place in called.items()
            if name.startswith(head)
        }
        self.n = len(scale.names)
        self.names = {_plain(name): place for name, place in called.items()}
        self.total = {*map(_plain, known(language, "total"))}
        self._numerals = numerals(language)
        in_words, names = any_of(self._numerals), _any_of(list(called))
        number = rf"(?P<number>{_NUMBER}|(?:{in_words})(?!\w))"
        # A number is a score only where nothing but an end, an aside or the next one follows it.
        reports = [one.pack.report for one in (ENGLISH, language) if one.pack.report]
        aside = any_of(word for one in reports for word in one.aside)
        ends = (
            rf"$|[\r.,;|()}}\]]|[-\u2013\u2014][ \t]|(?:{aside}|{of('score')}|{names})(?![A-Za-z])"
        )
        most = rf"(?:[ \t]*(?:/|{of('out_of')})[ \t]*(?:\d+(?:\.0)?|{in_words}))?"
        behind = rf"{most}(?:[ \t]*(?:{of('points')}))?(?=[ \t\"'`*_~]*(?:{ends}))"
        changed = rf"(?:{_NUMBER}[ \t]*(?:[-=]>|[\u2192\u21d2])[ \t]*)?"
        cell = r"\|(?=[^|\n]*(?:\|[^\d\n]*)?$)"  # the only one of its row with a number
        numbers = rf"(?:{_MARKS}(?:{of('given')})(?![A-Za-z]))+{_MARKS}"
        start = _start(scale) if len(called) == self.n else ""
        name = rf"{start}(?P<name>{names})"

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

        self.named = compiled(
            rf"{name}(?:['\"]s)?(?:[\s_-]*(?:{of('score')}))?(?:\s*\([^()\n]*\))?"
            rf"{_MARKS}(?:[:=]|{cell}){_MARKS}{changed}{number}{behind}"
        )
        # In a sentence: "gets a 7"; and one number for all.
        self.told = compiled(rf"{name}{numbers}{number}{behind}")
        self.each = compiled(rf"(?<!\w)(?:{of('each')}){numbers}[:=]?{_MARKS}{number}{behind}")
        # Nothing but the numbers on a line; one number alone must be the whole reply.
        line = rf"^[ \t]*{_NUMBER}(?:[ \t,]+{_NUMBER}){{{self.n - 1}}}[ \t]*\r?$"
        self.bare = compiled(line if self.n > 1 else rf"\A\s*[*_]*{_NUMBER}[*_]*\s*\Z")

    def number(self, said: str) -> float:
        """A number in digits or in words."""
        in_words = self._numerals.get(said.lower())
        return float(re.sub(r"[\u2212\u2013\u2014]", "-", said)) if in_words is None else in_words


_patterns = lru_cache(maxsize=64)(_ScorePatterns)


@lru_cache(maxsize=64)
def _score_like(scale: Scale) -> re.Pattern[str]:
    return re.compile(rf"{_start(scale)}({_any_of(scale.names)})\s*[:\uff1a=]", re.IGNORECASE)


def _start(scale: Scale) -> str:
    # No boundary parts the letters of a language that writes without blanks.
    return r"\b" if "".join(scale.names).isascii() else ""


def _any_of(names: Sequence[str]) -> str:
    """The names as judges write them: with spaces, hyphens or underscores."""
    return "|".join(re.sub(r"(?:\\ |[ _-])+", r"[\\s_-]*", re.escape(name)) for name in names)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _verdict(values: Sequence[float], scale: Scale) -> Verdict | None:
    numbers = [round(value, 1) for value in values]
    if not all(scale.lowest <= value <= scale.highest for value in numbers):
        return None
    return " ".join(f"{value + 0.0:g}" for value in numbers)


def _reason(text: str, start: int, end: int) -> str:
    """What stands before the scores, or after them where nothing does."""
    before = _ITEM.sub("", text[:start]).rstrip(_TRIMMED)
    before = _SCORE_LABEL.sub("", before).rstrip(_TRIMMED)
    said = next((part for part in (before, text[end:]) if re.search(r"[^\W\d_]", part)), text)
    return " ".join(said.split())
