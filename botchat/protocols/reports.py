"""Reports on the errors of a dialogue or a text (MATEval: Li et al. 2024, §3.2, §4.2).

A judge answers a question for each error type: yes or no; after a yes every place of the error,
words quoted from it and an explanation. `parse` reads the report on a dialogue, `parse_text` the
one on a text; `as_text` writes either in canonical form, which is read back as the same report.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import Literal

import msgspec

from botchat.frames import TomlTable, fill, package_toml
from botchat.interfaces import Cells, VerdictReason
from botchat.languages import ENGLISH
from botchat.protocols.frame import END, neutralise
from botchat.protocols.replies import MARKS, own_words, plain_name, without_marks
from botchat.protocols.scores import read_kinds
from botchat.records import Judgment, Utterances, Verdict
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER


class _Words(TomlTable, frozen=True):
    """Error types of a dialogue or of a text, and the words of a paragraph on a report."""

    titles: dict[str, str]
    unit: str
    whole: str
    silent: str
    most_silent: int


class _ErrorTypes(TomlTable, frozen=True):
    """The whole ``error_types.toml``."""

    dialogue: _Words
    text: _Words
    codes: dict[str, tuple[str, str]]


_DATA = package_toml("protocols/error_types.toml", _ErrorTypes)

ERRORS = _DATA.dialogue.titles
"""Error types of a dialogue with their titles."""

ERROR_TYPES = _DATA.codes
"""Error types of a text in the order of MATEval's tables: code -> English and Chinese name."""

KINDS = tuple(_DATA.text.titles)
"""The five error types of a text, in the order of the verdict."""

Evidence = Literal["found", "elsewhere", "not found", "none"]
"""Whether quoted words are in the place named, only in another one, in none, or not given."""


class ReportedError(msgspec.Struct, frozen=True):
    """One error of a report."""

    place: int | None  # 1-based utterance, or sentence of a text; None: none that exists is named
    quote: str
    evidence: Evidence
    explanation: str


class ErrorTypeResult(msgspec.Struct, frozen=True):
    """A report's answer about one error type."""

    type: str  # a key of `ERRORS`; of a text one of `KINDS`
    present: bool | None  # None: this type is not judged, or has a score without an answer
    score: float | None  # points off: one an error of a dialogue; of a text as stated, or None
    errors: tuple[ReportedError, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """The answers of one judge, or one panel member, in the order of the error types."""

    results: tuple[ErrorTypeResult, ...]  # types without a readable answer are left out
    prose: str = ""  # the text report, where a panel wrote one

    @property
    def is_of_text(self) -> bool:
        """Whether it is on a text, not on a dialogue."""
        return any(result.type in KINDS for result in self.results)

    @property
    def points(self) -> float:
        """The sum of the scores that there are."""
        return sum([result.score or 0 for result in self.results])

    @property
    def score(self) -> float | None:
        """The sum over ten types; None where a type is unreadable, or no type was judged."""
        has_score = any(result.score is not None for result in self.results)
        if has_score and len(self.results) == len(ERRORS):
            return self.points
        return None


def reports(judgment: Judgment, parse: Callable[[str], Report]) -> dict[str, Report]:
    """Read the reports of a judgment again: who reported -> the report, empty if none can be read.

    Of a discussion it is the summariser's if that decided, with its running text; of any other
    panel each member's last; of a single judge its own.
    """
    by_name = {}
    summaries = []
    for remark in judgment.transcript:
        if remark.speaker == SUMMARIZER:
            summaries.append(remark)
        elif remark.speaker not in (FEEDBACK, DECOMPOSER):
            by_name[remark.speaker] = parse(remark.text)
    for remark, after in zip_longest(summaries, summaries[1:]):
        if remark.verdict == judgment.verdict is not None:
            report = parse(remark.text)
            if after and report.is_of_text:
                report = Report(report.results, " ".join(after.text.split()))
            by_name = {SUMMARIZER: report}
            break
    readable = {speaker: report for speaker, report in by_name.items() if report.results}
    if not readable:
        own = parse(judgment.reason)
        if own.results:
            return {judgment.judge: own}
    return readable


def as_text(report: Report) -> str:
    """Write questions and answers, which are read back as the same report."""
    return fill("protocols/report.txt", report=report, titles=ERRORS).rstrip("\n")


def as_prose(report: Report) -> str:
    """Write a paragraph: the errors with their places, the types without any, the score."""
    if report.prose:
        return report.prose
    words = _DATA.dialogue
    if report.is_of_text:
        words = _DATA.text
    scored = [result.type for result in report.results if result.score is not None]
    silent = [type_ for type_ in words.titles if type_ not in scored]
    prose = fill(
        "protocols/prose.txt",
        report=report,
        words=words,
        absent=[result.type for result in report.results if result.present is False],
        silent=silent,
        is_scored=len(report.results) == len(words.titles) and len(silent) <= words.most_silent,
    )
    return " ".join(prose.split())


def as_records(report: Report) -> list[Cells]:
    """Return one row an error, and one for each type without any; JSON-ready."""
    rows: list[Cells] = []
    for result in report.results:
        score = result.score
        if result.errors:
            score = -1
        for error in result.errors or (_NO_ERROR,):
            rows.append(
                {
                    "type": result.type,
                    "present": result.present,
                    "score": score,
                    "utterance": error.place,
                    "quote": error.quote,
                    "evidence": error.evidence,
                    "explanation": error.explanation,
                }
            )
    return rows


_NO_ERROR = ReportedError(None, "", "none", "")


_TYPES = {plain_name(name): type_ for type_, name in ERRORS.items()}


def numbered(utterances: Utterances) -> str:
    """Return utterances as a judge is shown them, with the numbers that it names errors by."""
    return "\n".join(
        f"[{n}] {'BA'[n % 2]}: {_as_shown(text)} {END}" for n, text in enumerate(utterances, 1)
    )


@lru_cache(maxsize=1 << 14)
def _as_shown(utterance: str) -> str:
    """Return an utterance that cannot be taken for the frame around it or a part of a report."""
    text = MARKS.number_like.sub(r"\1(\2)", neutralise(utterance))
    return MARKS.heading_like.sub(r"\1\2 -", text)


def parse(text: str, utterances: Utterances) -> Report:
    """Read the report on a dialogue: a judge's reply or its canonical form.

    The last answer to a type counts. Of several utterances that an error names it is the latest. A
    second error of one type in one utterance is not counted.
    """
    results = {}
    for head, block in _blocks(MARKS.error_head, own_words(text, ENGLISH)):
        type_ = _TYPES[plain_name(head["name"])]
        present = {"yes": True, "no": False}.get(head["answer"].lower())
        errors: tuple[ReportedError, ...] = ()
        score = None
        if present:
            errors = _errors(block, utterances)
        if present is not None:
            score = -len(errors)
        results[type_] = ErrorTypeResult(type_, present, score, errors)
    return Report(tuple([results[type_] for type_ in ERRORS if type_ in results]))


def _errors(block: str, utterances: Utterances) -> tuple[ReportedError, ...]:
    """Return the errors that follow a Yes, at least one."""
    errors: dict[int | None, ReportedError] = {}
    for item, body in _blocks(MARKS.error_item, block):
        numbers = [int(number) for number in re.findall(r"\d+", item["numbers"])]
        place = max((n for n in numbers if 1 <= n <= len(utterances)), default=None)
        quote, why = _split_quote(body, utterances)
        evidence = _evidence(quote, utterances, place)
        errors.setdefault(place, ReportedError(place, quote, evidence, why))
    return tuple(errors.values()) or (_NO_ERROR,)


def choices(n: int) -> frozenset[Verdict]:
    """Return every score of a report on ``n`` utterances: in each type each of them, and none."""
    return frozenset(str(-points) for points in range(len(ERRORS) * (n + 1) + 1))


def read_report(text: str, utterances: Utterances) -> VerdictReason:
    """Return (score, the report in canonical form) of a reply; its bare text if unreadable."""
    report = parse(text, utterances)
    if not report.results:
        return None, " ".join(text.split())
    verdict = None
    if report.score is not None:
        verdict = f"{report.score:g}"
    return verdict, as_text(report)


def _blocks(start: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Return each match of ``start`` with what follows it, up to the next.

    Marks do not hide a start, and stay in what follows: it may quote them.
    """
    matches = list(start.finditer(without_marks(text, ENGLISH)))
    ends = [match.start() for match in matches[1:]]
    for match, end in zip_longest(matches, ends):
        yield match, text[match.end() : end]


def parse_text(reply: str, text: str) -> Report:
    """Read the report on a text, as `read_kinds` finds it; places are sentences of the text.

    Errors after a Yes are the lines that quote, or else the words that follow it.
    """
    results = []
    written = own_words(reply, ENGLISH)
    seen = without_marks(written, ENGLISH)
    for part in read_kinds(seen):
        if part.present is None and part.score is None:
            continue
        errors = []
        lines = part.lines if part.present else []
        for n, line in enumerate(lines):
            words = MARKS.text_lead.sub("", line)
            # As it was written: what it quotes may have marks, which are blanks in ``seen``.
            end = seen.find(line) + len(line)
            quote, why = _split_quote(written[end - len(words) : end].strip(), (text,))
            if words.strip() and (quote or n == 0):
                evidence = _evidence(quote, (text,), 1)
                place = None
                if evidence == "found":
                    place = _sentence(quote, text)
                why = " ".join(without_marks(why, ENGLISH).split()).strip(" *_-\u2013\u2014:;,")
                errors.append(ReportedError(place, quote, evidence, why))
        results.append(ErrorTypeResult(KINDS[part.kind], part.present, part.score, tuple(errors)))
    return Report(tuple(results))


def _sentence(quote: str, text: str) -> int | None:
    """Return the sentence in which a quote of it begins; of several the last, the one too many."""
    # White space aside, since sentences may stand without any between them.
    parts = [_normal(sentence).replace(" ", "") for sentence in MARKS.sentence_end.split(text)]
    ends = accumulate(len(part) for part in parts if part)
    start = "".join(parts).rfind(MARKS.elision.split(_normal_quote(quote))[0].replace(" ", ""))
    return next((n for n, end in enumerate(ends, 1) if start < end), None)


_CLOSING = {"\u00ab": "\u00bb", "'": "'\u2019", "\u2018": "'\u2019", "\u2019": "'\u2019", "`": "`'"}
_MOST_QUOTES = 40  # ends of a quote that are tried, in a reply of a thousand quotation marks
_QUOTATION_MARKS = dict.fromkeys(
    (ord(each) for each in '\u201c\u201d\u201e\u00ab\u00bb`\u2018\u2019\u201a"'), "'"
)


def _split_quote(body: str, texts: Utterances) -> tuple[str, str]:
    """Return (quote, explanation) of the words about an error; the quote may be ''.

    The explanation goes up to a blank line or a total.
    """
    quote = ""
    before = ""
    start = MARKS.quote_begins.search(body)
    if start:
        before = body[: start.start()].strip()
        body = body[start.start() :]
        quote, end = _quote(body, texts)
        body = body[end:]
    rest = MARKS.total.split(body, maxsplit=1)[0]
    words = rest.removeprefix(" - ")
    if words == rest:
        words = rest.lstrip(" \t*_-\u2013\u2014:;|,.")
    return quote, " ".join(f"{before} {words}".split())


def _quote(body: str, texts: Utterances) -> tuple[str, int]:
    """Return (quote, its end) where a text begins with one: JSON's, or as judges write it."""
    with suppress(json.JSONDecodeError):
        quote, end = json.JSONDecoder().raw_decode(body)
        if MARKS.after_quote.match(body, end):
            # An escaped half of a surrogate pair is no text and could not be stored.
            return quote.encode("utf-8", "replace").decode(), end
    closing = _CLOSING.get(body[0], '"\u201c\u201d')
    marks = [i for i, char in enumerate(body) if i and char in closing][:_MOST_QUOTES]
    quotes = [i for i in marks if _evidence(body[1:i], texts, None) == "elsewhere"]
    likely = [i for i in marks if MARKS.after_quote.match(body, i + 1)]
    marks = quotes[-1:] + likely + marks
    end = len(body.partition("\n")[0])
    if marks:
        end = marks[0]
    return body[1:end].strip(), end + 1


def _evidence(quote: str, utterances: Utterances, place: int | None) -> Evidence:
    wanted = _normal_quote(quote)
    if not MARKS.elision.sub("", wanted).strip():
        return "none"
    if place is not None and _within(wanted, utterances[place - 1]):
        return "found"
    if any(_within(wanted, text) for text in utterances):
        return "elsewhere"
    return "not found"


def _within(wanted: str, text: str) -> bool:
    """Return whether normalised words, or their parts around an elision, are in a text."""
    # The judge saw the utterance in another form, not to the letter.
    texts = (_normal(text), _normal(_as_shown(text)))
    parts = [re.escape(part.strip()) for part in MARKS.elision.split(wanted)]
    in_order = "".join(f"(?>.*?{part})" for part in parts)
    return any(wanted in each or (len(parts) > 1 and re.match(in_order, each)) for each in texts)


def _normal_quote(quote: str) -> str:
    return _normal(quote).strip("' ").rstrip(".,;")


@lru_cache(maxsize=1 << 14)
def _normal(text: str) -> str:
    """Return a text without differences of case, white space and kinds of quotation marks."""
    return " ".join(text.translate(_QUOTATION_MARKS).casefold().split())
