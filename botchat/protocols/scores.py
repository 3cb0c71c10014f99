"""Scores: what a judge may give, how they are read from its reply, and what a verdict holds.

A verdict is the scores themselves: decimals in the order shown, joined by a space (``"8 7.5"`` for
two answers). A panel's is the mean of its members' (ChatEval, Appendix B). Of points off by kind of
error each counts by itself: one that cannot be read is missing (``"-1 0 ? 0 0"``), the rest stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from botchat.errors import DataError
from botchat.languages import ENGLISH, PLAIN, Language
from botchat.measures import error_reports
from botchat.measures.correlation import Rating
from botchat.protocols.verdicts import any_of
from botchat.records import Judgment, Verdict


@dataclass(frozen=True)
class Scale:
    """The numbers that a judge is asked for, each on a line ``NAME: number``, kept to a tenth."""

    lowest: int
    highest: int
    names: tuple[str, ...]
    """As the judge writes them, in the order of the verdict."""
    points_off: bool = False
    """The numbers are points off for MATEval's kinds of error, in the order of the languages'
    ``[report]``, and a reply is a report on them (`botchat.measures.error_reports`)."""

    def part(self, number: float) -> float:
        """A number with the ends of the scale as 0 and 1."""
        return (number - self.lowest) / (self.highest - self.lowest)

    @property
    def steps(self) -> list[str]:
        """Every score there is, as a verdict spells it."""
        return [f"{tenth / 10:g}" for tenth in range(10 * self.lowest, 10 * self.highest + 1)]


MISSING = "?"
"""Stands in a verdict for points off that the reply does not tell."""


@dataclass(frozen=True)
class ScoreChoices(Set[Verdict]):
    """Every verdict on a scale, without a list of them: three numbers from 1 to 10 have 753,571."""

    scale: Scale

    def __contains__(self, verdict: object) -> bool:
        """Whether it is as many scores as are asked for, each on the scale and spelled as here."""
        said = str(verdict).split(" ")
        told = set(said) - {MISSING} if self.scale.points_off else set(said)
        return len(said) == len(self.scale.names) and bool(told) and told <= _steps(self.scale)

    def __iter__(self) -> Iterator[Verdict]:
        """One after the other, lowest first; without those that lack a number."""
        return map(" ".join, product(self.scale.steps, repeat=len(self.scale.names)))

    def __len__(self) -> int:
        """How many there are."""
        n: int = len(self.scale.steps) ** len(self.scale.names)
        return n


def read(text: str, scale: Scale, language: Language = ENGLISH) -> tuple[Verdict | None, str]:
    """(scores, reason) of a judge's reply; ``None`` unless all are there and on the scale.

    Of each number the last line that names it counts; where a number is not named at all, the last
    line that holds nothing but all the numbers (FairEval's form). Points off: see `Scale`.
    """
    if scale.points_off:
        return _points_off(text, scale, language)
    plain = text.translate(PLAIN)
    named = {_plain(match["name"]): match for match in _pattern(scale, language).finditer(plain)}
    if len(named) == len(scale.names):
        found = [named[_plain(name)]["number"] for name in scale.names]
        start = min(match.start() for match in named.values())
        end = max(match.end() for match in named.values())
    elif bare := list(_bare(len(scale.names)).finditer(plain)):
        found, (start, end) = re.findall(_NUMBER, bare[-1][0]), bare[-1].span()
    else:
        return None, " ".join(text.split())
    return _verdict(found, scale), _reason(text, start, end)


def _points_off(text: str, scale: Scale, language: Language) -> tuple[Verdict | None, str]:
    found = {one.kind: one.score for one in error_reports.read_kinds(text, language)}
    verdict = points([found.get(kind) for kind in range(len(scale.names))], scale)
    reason = error_reports.before(text, language) if verdict else text
    return verdict, " ".join(reason.split())


def points(given: Iterable[float | None], scale: Scale) -> Verdict | None:
    """The verdict of some scores, `MISSING` where there is none on the scale; ``None``: nowhere."""
    spelled = ["" if score is None else f"{round(score, 1) + 0.0:g}" for score in given]
    verdict = [score if score in _steps(scale) else MISSING for score in spelled]
    return None if set(verdict) == {MISSING} else " ".join(verdict)


def scores(verdict: Verdict, n: int) -> tuple[float, ...]:
    """The ``n`` scores of a verdict, in their order; raises `DataError` if it is not that."""
    try:
        found = tuple(float(score) for score in verdict.split())
    except ValueError:
        found = ()
    if len(found) != n:
        raise DataError(f"verdict {verdict!r} is not {n} scores; delete that line and judge again")
    return found


def ratings(judgments: Iterable[Judgment], n: int = 1, place: int = 0) -> list[Rating]:
    """One of the ``n`` `scores` of judgments of single texts, the one at ``place`` from 0."""
    return [
        Rating(
            judgment.seed_id,
            judgment.contestants[0],
            judgment.judge,
            None if judgment.verdict is None else told(judgment.verdict, n)[place],
        )
        for judgment in judgments
    ]


def told(verdict: Verdict, n: int) -> tuple[float | None, ...]:
    """As `scores`, of a verdict in which some may be `MISSING`."""
    given = verdict.split()
    known = iter(scores(" ".join(one for one in given if one != MISSING), n - given.count(MISSING)))
    return tuple(None if one == MISSING else next(known) for one in given)


def harmless(text: str, scale: Scale) -> str:
    """A judged text that cannot be taken for a score: a name before a colon loses the colon."""
    return _score_like(scale).sub(r"\1 -", text)


_NUMBER = r"[-\u2212\u2013\u2014]?\d+(?:\.\d+)?"
_MARKS = r"[\"'`*_~\s]*"
_SCORE_LABEL = re.compile(r"(?:\bthe\s)?\bscore\sof\Z", re.IGNORECASE)
_TRIMMED = " \t\r\n-*_#>{\"'`"
_ITEM = re.compile(r"(?:^|\n)[ \t>*_#.)(\d\u2022-]*\Z")


@lru_cache(maxsize=64)
def _steps(scale: Scale) -> frozenset[str]:
    return frozenset(scale.steps)


@lru_cache(maxsize=64)
def _pattern(scale: Scale, language: Language = ENGLISH) -> re.Pattern[str]:
    packs = dict.fromkeys((ENGLISH, language))

    def of(key: str) -> str:
        return any_of(word for one in packs for word in getattr(one.labels, key))

    names = _any_of(scale.names)
    # A number is a score only where nothing but an end, an aside or the next one follows it.
    aside = any_of(word for one in packs if one.pack.report for word in one.pack.report.aside)
    ends = rf"$|[\r.,;|()}}\]]|[-\u2013\u2014][ \t]|(?:{aside}|{of('score')}|{names})(?![A-Za-z])"
    return re.compile(
        rf"{_start(scale)}(?P<name>{names})(?:['\"]s)?(?:[\s_-]*(?:{of('score')}))?"
        rf"(?:\s*\([^()\n]*\))?{_MARKS}[:=]{_MARKS}(?P<number>{_NUMBER})"
        rf"(?:[ \t]*(?:/|{of('out_of')})[ \t]*\d+(?:\.0)?)?(?:[ \t]*(?:{of('points')}))?"
        rf"(?=[ \t\"'`*_~]*(?:{ends}))",
        re.IGNORECASE | re.MULTILINE,
    )


@lru_cache(maxsize=8)
def _bare(n: int) -> re.Pattern[str]:
    if n == 1:  # a reply that is a number
        return re.compile(rf"\A\s*[*_]*{_NUMBER}[*_]*\s*\Z")
    return re.compile(rf"^[ \t]*{_NUMBER}(?:[ \t,]+{_NUMBER}){{{n - 1}}}[ \t]*\r?$", re.MULTILINE)


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


def _verdict(found: Sequence[str], scale: Scale) -> Verdict | None:
    given = []
    for text in found:
        value = float(re.sub(r"[\u2212\u2013\u2014]", "-", text))
        value = round(value, 1)
        if not scale.lowest <= value <= scale.highest:
            return None
        given.append(f"{value + 0.0:g}")
    return " ".join(given)


def _reason(text: str, start: int, end: int) -> str:
    """What stands before the scores, or after them where nothing does."""
    before = _ITEM.sub("", text[:start]).rstrip(_TRIMMED)
    before = _SCORE_LABEL.sub("", before).rstrip(_TRIMMED)
    said = next((part for part in (before, text[end:]) if re.search(r"[^\W\d_]", part)), text)
    return " ".join(said.split())
