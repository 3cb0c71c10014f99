"""Reports: what is wrong with one dialogue, where, and what shows it.

After MATEval (Li et al. 2024, §3.2, §4.2), with the bad cases of BotChat (Appendix C). A judge
answers ten questions, one an error type: yes or no; after a yes every erroneous utterance, words
quoted from it and an explanation. Each error takes one point off, from 0; scores are counted here,
because judges miscount. The verdict is the score of the whole dialogue (``"-3"``).

The report itself is, of a single judge, in canonical form, in the judgment's reason, of a panel in
the transcript; `reports` reads it again whenever a table is made. Deviation: MATEval's summariser
writes the running text as well; `as_prose` makes it from the report, so that it says no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from botchat.protocols.verdicts import json_fields
from botchat.protocols.wording import END, neutral
from botchat.records import Judgment, Verdict
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER

ERRORS: Mapping[str, str] = {
    "repetition": "Repetition",
    "logical_inconsistency": "Logical inconsistency",
    "discontinuity": "Discontinuity",
    "lexical_choice": "Inappropriate lexical choice",
    "factual_error": "Factual error",
    "ai_self_identification": "AI self-identification",
    "contextual_confusion": "Contextual confusion",
    "excessive_length": "Excessive length",
    "formal_tone": "Formal tone",
    "repetitive_phrasing": "Repetitive phrasing",
}
"""Error types by name: MATEval's five (§4.2), then BotChat's five (Appendix C)."""

Evidence = Literal["found", "elsewhere", "not found", "none"]
"""Whether quoted words are in the utterance named, only in another one, in none, or not given."""


class FoundError(msgspec.Struct, frozen=True):
    """One erroneous utterance."""

    utterance: int | None
    """1-based; ``None``: the judge named none that there is."""
    quote: str
    evidence: Evidence
    explanation: str


class TypeAnswer(msgspec.Struct, frozen=True):
    """What a report says about one error type."""

    type: str
    """A key of `ERRORS`."""
    present: bool | None
    """``None``: the judge says that it does not judge this type."""
    errors: tuple[FoundError, ...] = ()
    """At least one where ``present``, at most one for each utterance; else none."""

    @property
    def score(self) -> int | None:
        """0, or one point less for each error."""
        return None if self.present is None else -len(self.errors)


class Report(msgspec.Struct, frozen=True):
    """One judge's, or one panel member's, answers in the order of `ERRORS`."""

    answers: tuple[TypeAnswer, ...]
    """Types without a readable answer are left out."""

    @property
    def score(self) -> int | None:
        """Sum over the types; ``None`` where a type is unreadable, or no type was judged."""
        given = [answer.score for answer in self.answers if answer.score is not None]
        return sum(given) if given and len(self.answers) == len(ERRORS) else None


def choices(n: int) -> frozenset[Verdict]:
    """Every score that a report on ``n`` utterances can have."""
    # In each type every utterance once, and once an error without one.
    return frozenset(str(-points) for points in range(len(ERRORS) * (n + 1) + 1))


def read_diagnosis(text: str, utterances: tuple[str, ...]) -> tuple[Verdict | None, str]:
    """(score, the report in canonical form) of a reply; the bare text where nothing is readable."""
    report = parse(text, utterances)
    if not report.answers:
        return None, " ".join(text.split())
    return None if report.score is None else str(report.score), as_text(report)


def parse(text: str, utterances: Sequence[str]) -> Report:
    """The report in a text: a judge's reply, in JSON or not, or what `as_text` made of a report.

    The last answer to a type counts. Of several utterances that an error names it is the latest. A
    second error of one type in one utterance is not counted.
    """
    fields = json_fields(text)
    if fields.keys() & ERRORS.keys():
        text = "\n".join(_in_words(fields))
    heads = list(_HEAD.finditer(text))
    found: dict[str, TypeAnswer] = {}
    for head, end in zip(heads, _ends(heads, text), strict=True):
        type_ = _CODES[re.sub(r"\W+", "", head["name"]).lower()]
        said = head["answer"].lower()
        if said != "yes":
            found[type_] = TypeAnswer(type_, False if said == "no" else None)
            continue
        errors: dict[int | None, FoundError] = {}
        for error in _errors(text[head.end() : end], utterances):
            errors.setdefault(error.utterance, error)
        listed = tuple(errors.values()) or (FoundError(None, "", "none", ""),)
        found[type_] = TypeAnswer(type_, True, listed)
    return Report(tuple(found[type_] for type_ in ERRORS if type_ in found))


def reports(judgment: Judgment, utterances: Sequence[str]) -> dict[str, Report]:
    """Who reported on a dialogue -> the report, read again from the judgment.

    Of a discussion it is the summariser's if that decided, of any other panel each member's last
    word, of a single judge its own. Empty where nothing is readable.
    """
    spoken = {}
    for turn in judgment.transcript:
        if turn.speaker == SUMMARIZER and turn.verdict is not None:
            if turn.verdict == judgment.verdict:
                spoken = {turn.speaker: turn.text}
                break
        elif turn.speaker not in (SUMMARIZER, FEEDBACK, DECOMPOSER):
            spoken[turn.speaker] = turn.text
    read_from = {who: parse(text, utterances) for who, text in spoken.items()}
    found = {who: report for who, report in read_from.items() if report.answers}
    if not found and (own := parse(judgment.reason, utterances)).answers:
        found[judgment.judge] = own
    return found


def as_records(report: Report) -> list[dict[str, Any]]:
    """One row an error, and one for each type without any; JSON-ready."""
    nothing = FoundError(None, "", "none", "")
    return [
        {
            "type": answer.type,
            "present": answer.present,
            "score": -1 if answer.errors else answer.score,
            **msgspec.structs.asdict(error),
        }
        for answer in report.answers
        for error in answer.errors or (nothing,)
    ]


def as_text(report: Report) -> str:
    """Questions and answers, which `parse` reads back as the same report."""
    lines = []
    for answer in report.answers:
        lines.append(f"{ERRORS[answer.type]}? {_ANSWERS[answer.present]}")
        for error in answer.errors:
            lines.append(_listed(error.utterance or "?", error.quote, error.explanation))
        if answer.score is not None:
            lines.append(f"Score: {answer.score}")
    return "\n".join(lines)


def as_prose(report: Report) -> str:
    """One paragraph for people who want to know what is wrong, where, and how badly."""
    sentences = []
    for answer in report.answers:
        if answer.errors:
            told = "; ".join(map(_told, answer.errors))
            sentences.append(f"{ERRORS[answer.type]}: {told}.")
    judged = {answer.type: answer.present for answer in report.answers}
    if free := [type_ for type_, present in judged.items() if present is False]:
        sentences.append(f"No {_named(free, 'or')}.")
    if silent := [type_ for type_ in ERRORS if judged.get(type_) is None]:
        sentences.append(f"Not judged: {_named(silent, 'and')}.")
    if report.score is not None:
        sentences.append(f"Score: {report.score}.")
    return " ".join(sentences)


_ANSWERS = {True: "Yes", False: "No", None: "Not judged"}
_MARKED = {
    "found": "",
    "elsewhere": " (not in this utterance)",
    "not found": " (not in the dialogue)",
}

_NAMES = "|".join(re.sub(r"[ -]", r"[\\s-]+", name) for name in ERRORS.values())
_LEAD = r"^[ \t>*_#.)(\d\u2022\u00b7-]*"
_HEAD = re.compile(
    rf"{_LEAD}(?P<name>{_NAMES})[\"'*_ \t]*[?:\uff1f\uff1a][\"'*_ \t?:\uff1f\uff1a]*"
    r"(?P<answer>yes|not[ \t]+judged|no|n/a)\b(?![ \t]*(?:/|or\b))",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = r"\d{1,6}"
_ITEM = re.compile(
    rf"{_LEAD}(?:(?:utterances?|chats?)[ \t*_#]*\[?|\[)[ \t]*"
    rf"(?P<numbers>\?|{_NUMBER}(?:[ \t]*(?:,|;|&|and|to|-|\u2013)[ \t]*{_NUMBER})*)\]?"
    r"(?:[ \t]*\([^()\n]{0,20}\))?"
    r"(?:[*_ \t]*[:\uff1a.)\u2013\u2014-]+[*_ \t]*|[*_ \t]+(?=[\"'\u2018\u201c\u00ab])|[*_ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING_LINE = re.compile(rf"{_LEAD}(?:score|total|overall)\b", re.IGNORECASE | re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_OPENING = "\"\u201c\u201d\u201e\u00ab'\u2018\u2019`"
_CLOSING = {"\u00ab": "\u00bb", "'": "'\u2019", "\u2018": "'\u2019", "\u2019": "'\u2019", "`": "`'"}
_ENDS = re.compile(r"[ \t*_]*(?:$|\n|[-\u2013\u2014:;|,.(])")
_MOST_QUOTES = 40
"""Ends of a quote that are tried: a reply of a thousand quotation marks is not worth more."""

_CODES = {re.sub(r"\W+", "", name).lower(): type_ for type_, name in ERRORS.items()}
_FRAME_LIKE = re.compile(
    rf"^([ \t>*_#-]*)\[(\d+)\]|({_NAMES})[ \t*_]*[?:\uff1f\uff1a]"
    r"|^([ \t>*_#-]*(?:utterance|chat)s?[ \t]*\d+)[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTATION_MARKS = str.maketrans(
    dict.fromkeys('\u201c\u201d\u201e\u00ab\u00bb`\u2018\u2019\u201a"', "'")
)
ELISION = re.compile(r"\.{3,}|\u2026|\[\.*\]")


def numbered(utterances: Sequence[str]) -> str:
    """Utterances as a judge is shown them, with the numbers that it names errors by."""
    return "\n".join(
        f"[{n}] {'BA'[n % 2]}: {_shown(text)} {END}" for n, text in enumerate(utterances, 1)
    )


@lru_cache(maxsize=1 << 14)
def _shown(utterance: str) -> str:
    """An utterance that cannot be taken for the frame around it or for a part of a report."""
    return _FRAME_LIKE.sub(_defused, neutral(utterance))


def _defused(match: re.Match[str]) -> str:
    if match[2]:
        return f"{match[1]}({match[2]})"
    return f"{match[3] or match[4]} -"


def _errors(block: str, utterances: Sequence[str]) -> Iterator[FoundError]:
    """The errors listed below a Yes."""
    items = list(_ITEM.finditer(block))
    for item, end in zip(items, _ends(items, block), strict=True):
        numbers = [int(number) for number in re.findall(r"\d+", item["numbers"])]
        inside = [n for n in numbers if 1 <= n <= len(utterances)]
        at = max(inside, default=None)
        quote, explanation = _quoted(block[item.end() : end], utterances, at)
        yield FoundError(at, quote, _evidence(quote, utterances, at), explanation)


def _ends(starts: Sequence[re.Match[str]], text: str) -> list[int]:
    """Where the part that each match begins is over."""
    return [*(match.start() for match in starts), len(text)][1:]


def _quoted(body: str, utterances: Sequence[str], at: int | None) -> tuple[str, str]:
    """The quote that a text begins with, and what follows it on its own lines."""
    if not body or body[0] not in _OPENING:
        return "", _explanation(body)
    quote, end = in_json(body)
    if quote is not None and _ENDS.match(body, end):
        return quote, _explanation(body[end:])
    closing = _CLOSING.get(body[0], '"\u201c\u201d')
    marks = [i for i, char in enumerate(body) if i and char in closing][:_MOST_QUOTES]
    said = [i for i in marks if _evidence(body[1:i], utterances, at) in ("found", "elsewhere")]
    likely = [i for i in marks if _ENDS.match(body, i + 1)]
    end = next(iter((*said[-1:], *likely, *marks)), len(body.partition("\n")[0]))
    return body[1:end].strip(), _explanation(body[end + 1 :])


def in_json(text: str) -> tuple[str | None, int]:
    """(the string in JSON that a text begins with, its end); ``None``: it begins with none.

    So `as_text` writes a quote, and most judges do; a quotation mark inside is escaped.
    """
    try:
        quote, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError:
        return None, 0
    # An escaped half of a surrogate pair is no text and could not be stored.
    return quote.encode("utf-8", "replace").decode() if isinstance(quote, str) else None, end


def _explanation(rest: str) -> str:
    cut = _CLOSING_LINE.search(rest, rest.find("\n") + 1) if "\n" in rest else None
    rest = _BLANK_LINE.split(rest[: cut.start()] if cut else rest, maxsplit=1)[0]
    said = rest[3:] if rest.startswith(" - ") else rest.lstrip(" \t*_-\u2013\u2014:;|,.")
    return " ".join(said.split())


def _evidence(quote: str, utterances: Sequence[str], at: int | None) -> Evidence:
    wanted = normal(quote).strip("' ").rstrip(".,;")
    if not _parts(wanted):
        return "none"
    if at is not None and within(wanted, utterances[at - 1]):
        return "found"
    return "elsewhere" if any(within(wanted, text) for text in utterances) else "not found"


def within(quote: str, utterance: str) -> bool:
    """Whether normalised words stand in an utterance, or their parts around an elision do."""
    # What the judge saw is not to the letter what was said.
    texts = (normal(utterance), normal(_shown(utterance)))
    return any(quote in text or _in_order(_parts(quote), text) for text in texts)


def _parts(quote: str) -> list[str]:
    return [part.strip() for part in ELISION.split(quote) if part.strip()]


def _in_order(parts: Iterable[str], text: str) -> bool:
    at = 0
    for part in parts:
        start = text.find(part, at)
        if start < 0:
            return False
        at = start + len(part)
    return True


@lru_cache(maxsize=1 << 14)
def normal(text: str) -> str:
    """Without differences of case, white space and kinds of quotation marks."""
    return " ".join(text.translate(_QUOTATION_MARKS).casefold().split())


def _listed(utterance: int | str, quote: str, explanation: str) -> str:
    """The line of one error, as the question asks for it."""
    why = f" - {explanation}" if explanation else ""
    return f"- Utterance {utterance}: {json.dumps(quote, ensure_ascii=False)}{why}"


def _in_words(fields: Mapping[str, Any]) -> Iterator[str]:
    """A reply in JSON in the form that the question asks for."""
    for type_, name in ERRORS.items():
        if not isinstance(errors := fields.get(type_), list):
            continue
        yield f"{name}? {'Yes' if errors else 'No'}"
        for told in (error if isinstance(error, dict) else {} for error in errors):
            at = str(told.get("utterance"))
            why = " ".join(str(told.get("explanation") or "").split())
            at = at if re.fullmatch(_NUMBER, at) else "?"
            yield _listed(at, str(told.get("quote") or ""), why)


def _told(error: FoundError) -> str:
    where = "no utterance named" if error.utterance is None else f"utterance {error.utterance}"
    quote = f', "{" ".join(error.quote.split())}"{_MARKED[error.evidence]}' if error.quote else ""
    why = f": {error.explanation.rstrip('. ')}" if error.explanation else ""
    return f"{where}{quote}{why}"


def _named(types: Iterable[str], joint: str) -> str:
    names = [ERRORS[type_] for type_ in types]
    *most, last = (name if name[:2].isupper() else name.lower() for name in names)
    return f"{', '.join(most)} {joint} {last}" if most else last
