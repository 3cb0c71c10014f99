"""The reader of verdicts: a choice, or an index, in a judge's reply, in any language.

A verdict is *given* where its mark ("Choice:") begins a line or a sentence. One that is quoted,
requested by the judged text, or reported in the reason of another verdict, is none. Of several
given verdicts the last counts. Words that name two verdicts at once, or none that is offered, are
unreadable. The words are data: ``[labels]`` of the language pack, with the English ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from botchat.languages import ENGLISH, Language
from botchat.protocols.replies import (
    FIELDS,
    ReplyPatterns,
    find_retraction,
    known,
    reply_language,
    reply_patterns,
    strip_hypotheticals,
)
from botchat.records import UNKNOWN_INDEX, Verdict

Meaning = Callable[[str], str | None]
"""Normalised words -> the verdict that they are; None if it is not offered."""

LABELS = ("Conversation 1", "Conversation 2", "Both", "Neither")
"""The answers to a choice in the papers' words."""

_DETECTION = {"yes": "yes", "no": "no"}
_CHOICES = {"first": "1", "second": "2", "both": "both", "neither": "neither"}
"""List of a pack's labels -> the verdict that they are."""


@dataclass(frozen=True)
class ParsedVerdict:
    """A verdict in a reply, and the index of an utterance where one is given with it."""

    verdict: str | None
    reason: str
    index: int | None = None


class ReplyReader(NamedTuple):
    """Reader of replies to one case; the fields are those of `Case`."""

    choices: Set[Verdict]
    read: Callable[[str], tuple[Verdict | None, str]]


@lru_cache(maxsize=256)
def detection_reader(n: int, language: Language) -> ReplyReader:
    """Return the reader about ``n`` utterances: ``"No"``, `UNKNOWN_INDEX` or a 1-based index."""
    meaning = cache(lambda spoken: _meanings(_labelled(spoken, _DETECTION), spoken))

    def read(text: str) -> tuple[Verdict | None, str]:
        spoken = reply_language(text, language)
        parsed = read_verdict(text, meaning(spoken), spoken)
        if parsed.verdict != "yes":
            return "No" if parsed.verdict == "no" else None, parsed.reason
        is_index = parsed.index is not None and 1 <= parsed.index <= n
        return str(parsed.index) if is_index else UNKNOWN_INDEX, parsed.reason

    return ReplyReader(frozenset({"No", UNKNOWN_INDEX, *map(str, range(1, n + 1))}), read)


@lru_cache(maxsize=64)
def choice_reader(labels: tuple[str, ...], language: Language) -> ReplyReader:
    """Return the reader about two dialogues; ``labels``: of first, second, both and neither."""
    own = dict(zip(labels, _CHOICES.values(), strict=False))
    ours = labels == LABELS

    @cache
    def meaning(spoken: Language) -> Meaning:
        return _meanings(_labelled(spoken, _CHOICES) if ours else own, spoken, phrases=ours)

    def read(text: str) -> tuple[Verdict | None, str]:
        spoken = reply_language(text, language)
        parsed = read_verdict(text, meaning(spoken), spoken)
        return parsed.verdict, parsed.reason

    return ReplyReader(frozenset(own.values()), read)


def read_verdict(text: str, meaning: Meaning, language: Language = ENGLISH) -> ParsedVerdict:
    """Return the verdict given in a reply, or in the JSON that it holds."""
    w = reply_patterns(language)
    text, reason = _as_lines(strip_hypotheticals(text, language), w)
    plain = w.folded(text)
    place = _given(plain, text, meaning, w, w.choice) or _given(plain, text, meaning, w, w.also)
    place = place or _boxed(plain, meaning) or _bare(plain, meaning, w)
    verdict, start, end = place or (None, 0, 0)
    reason = _reason(text[start:], w) if reason is None else reason
    if verdict is None:
        return ParsedVerdict(None, reason)
    parsed = ParsedVerdict(verdict, reason, _index(plain, text, start, end, w))
    retracted = find_retraction(plain, end, language)
    return (
        parsed if retracted is None else _read_again(parsed, plain[retracted:], meaning, language)
    )


def _read_again(
    parsed: ParsedVerdict, rest: str, meaning: Meaning, language: Language
) -> ParsedVerdict:
    """Return the verdict in the ``rest`` of a reply, behind the words that retract the first."""
    w = reply_patterns(language)
    again = read_verdict(rest, meaning, language)
    line = rest.partition("\n")[0]
    for match in (w.anew.match(rest), *w.choice.finditer(line)):
        if again.verdict is None and match and not _quoted(line, match.start()):
            again = ParsedVerdict(_meant(match, rest, meaning, w), parsed.reason)
    if again.verdict is None:
        number = re.match(r"\W*(\d{1,9})[ \t]*(?:[.,;\n]|$|is\b)", rest)
        index = _index(rest, rest, 0, 0, w) or (int(number[1]) if number else None)
        again = ParsedVerdict(parsed.verdict if index else None, parsed.reason, index)
    return again


def _meanings(table: Mapping[str, str], language: Language, *, phrases: bool = True) -> Meaning:
    """Return how words are understood: as a label of ``table``, label -> verdict.

    ``phrases``: words that may stand around a label are left out ("only …", "… is AI involved").
    """
    w = reply_patterns(language)
    labels = {w.normal(label).replace(" ", ""): verdict for label, verdict in table.items()}

    def meaning(words: str) -> str | None:
        words = w.normal(words).strip(" /")
        verdict = labels.get(words.replace(" ", ""))
        if verdict is not None or not phrases:
            return verdict
        return labels.get(w.after.sub("", w.before.sub("", words)).replace(" ", ""))

    return meaning


def _labelled(language: Language, keys: Mapping[str, str]) -> dict[str, str]:
    """Return the verdict of each word in the lists ``keys``, name of a list -> verdict."""
    words = {word: verdict for key, verdict in keys.items() for word in known(ENGLISH, key)}
    return words | {
        w: verdict for key, verdict in keys.items() for w in getattr(language.labels, key)
    }


def _reason(text: str, w: ReplyPatterns) -> str:
    """Return what follows ``Reason:``, or the whole text without the mark; white space joined."""
    match = w.reason.search(w.folded(text))
    reason = text[match.end() :] if match else text
    return " ".join(reason.strip().lstrip(_QUOTES).rstrip(f"}}{_QUOTES}").split())


# ---------------------------------------------------------------------------------- where

_QUOTES = "\"`*'\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"
_PAIRED = re.compile('["\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f]')
_STRUCK = re.compile(r"~~[\s*_]*\Z|<!--|\[[ ]?\]")
"""Struck out, in a comment, or a box that is not ticked."""
_BOX = re.compile(r"\\boxed\{\s*(?:\\text\w*\{)?(?P<said>[^{}\n]*)")
_NEAR = 120  # characters before a mark that may lead to it
_ITEM = re.compile(r"\A\W*\d{1,2}[.,)]")


def _as_lines(text: str, w: ReplyPatterns) -> tuple[str, str | None]:
    """Return (choice and index as lines, the reason) of a JSON object; else (the text, None)."""
    named: dict[str, object] = {}
    for start in (0, text.rfind("{")):
        whole = re.sub(r"^```\w*\s*|\s*```$", "", text[start:].strip())
        with suppress(AttributeError, TypeError, ValueError, RecursionError):
            fields = json.loads(whole)
            while len(inner := [key for key in fields if isinstance(fields[key], dict)]) == 1:
                fields |= fields.pop(inner[0])
            named |= {w.fields.get(w.normal(name), ""): value for name, value in fields.items()}
    if "choice" not in named:
        return text, None
    words = ["" if (value := named.get(name)) is None else str(value) for name in FIELDS]
    choice, index, reason = (" ".join(each.split()) for each in words)
    return f"choice: {choice}\nindex: {index}\n{text[text.rfind('}') + 1 :]}", reason


def _given(
    plain: str, text: str, meaning: Meaning, w: ReplyPatterns, marks: re.Pattern[str]
) -> tuple[str, int, int] | None:
    """Return (verdict, start, end of its words) of the last given verdict; none of a mere list."""
    last: tuple[str | None, int, int] | None = None
    for match in marks.finditer(plain):
        verdict = _meant(match, plain, meaning, w)
        if verdict is None or w.placeholder.match(plain, match.end()):
            continue
        start = match.start()
        line = plain[plain.rfind("\n", 0, start) + 1 : start]
        if _STRUCK.search(line):
            continue
        begins = not re.search(r"[^\W_]", _ITEM.sub("", line))
        own = begins and ">" not in line and not _quoted(text, start, "\n\n")
        if not begins and (match["sep"] is None or _quoted(text, start)):
            continue  # Without a colon only a line of its own is a verdict.
        if not own and last is not None and _in_reason(plain, last[2], start, w):
            continue
        if begins or _led_to(line, w):
            end = match.start("said") + len(match["said"].rstrip())
            listed = last is not None and not re.search(r"\w\w", plain[last[2] : start])
            differs = last is not None and last[0] != verdict
            last = (None if listed and differs else verdict, match.start("said"), end)
    return None if last is None or last[0] is None else (last[0], *last[1:])


def _led_to(line: str, w: ReplyPatterns) -> bool:
    """Return whether a sentence ends before a mark on its line, or leads to the verdict."""
    before = line[-_NEAR:]
    if w.boundary.search(before):
        return True
    soft = re.search(r"[:,][\s*_`\[(]*\Z", before)
    return soft is not None and not w.others.search(re.split(r"[.!?;]\s", before)[-1])


def _meant(match: re.Match[str], plain: str, meaning: Meaning, w: ReplyPatterns) -> str | None:
    """Return the verdict of the words behind a mark, if no other is named next to it."""
    verdict = meaning(match["said"])
    beside = w.beside.match(plain, match.end())
    if verdict is None or beside is None:
        return verdict
    other = meaning(w.alternative.sub("", w.normal(beside["said"])))
    return verdict if other in (None, verdict) else None


def _quoted(text: str, start: int, since: str = "\n") -> bool:
    """Return whether a mark stands in quotation marks opened on its line, or ``since``."""
    line = text[text.rfind(since, 0, start) + 1 : start]
    opened = len(_PAIRED.findall(line)) % 2 == 1
    return opened or line.rstrip("*_ ").endswith(("'", "`", "\u2018"))


def _in_reason(plain: str, after: int, start: int, w: ReplyPatterns) -> bool:
    """Return whether the reason of a verdict that ends at ``after`` goes on at ``start``."""
    reasons = list(w.reason.finditer(plain, after, start))
    return bool(reasons) and not re.search(r"\n[ \t]*\n", plain[reasons[-1].end() : start])


def _boxed(plain: str, meaning: Meaning) -> tuple[str, int, int] | None:
    """Return the verdict in the last box of LaTeX."""
    for match in list(_BOX.finditer(plain))[-1:]:
        verdict = meaning(match["said"].rpartition(":")[2])
        return None if verdict is None else (verdict, *match.span("said"))
    return None


def _bare(plain: str, meaning: Meaning, w: ReplyPatterns) -> tuple[str, int, int] | None:
    """Return the verdict that the first line is, where no verdict is marked."""
    lines = [*re.finditer(r"[^\n]*[^\W\d_][^\n]*", plain)]
    words = [w.reason.split(line[0], maxsplit=1)[0].rstrip(" \t;,.") for line in lines]
    verdicts = [*map(meaning, words)]
    if w.choice.search(plain) or not lines or {*verdicts} - {None} != {verdicts[0]}:
        return None
    if (first := verdicts[0]) is None or ":" in words[0]:  # "Conversation 1: AI" says half
        return None
    return first, lines[0].start(), lines[0].start() + len(words[0])


def _index(plain: str, text: str, start: int, end: int, w: ReplyPatterns) -> int | None:
    """Return the index behind a verdict, else on a line before it."""
    behind = [match for match in w.index.finditer(plain, end) if _tells(match, plain, text, end, w)]
    if not behind and (at_once := w.index_at_once.match(plain, end)):
        return int(at_once["said"] or at_once["other"])
    before = plain.rfind("\n\n", 0, start) + 1
    ahead = [
        match
        for match in w.index.finditer(plain, before, start)
        if not re.search(r"\w", plain[plain.rfind("\n", 0, match.start()) + 1 : match.start()])
    ]
    for match in behind[:1] or ahead[-1:]:
        words = match["said"].strip().lower()
        number = int(words) if re.fullmatch(r"\d{1,9}", words) else w.numerals.get(words)
        return None if w.more.match(plain, match.end()) else number
    return None


def _tells(match: re.Match[str], plain: str, text: str, after: int, w: ReplyPatterns) -> bool:
    """Return whether an index is given for itself, not quoted and not in passing."""
    start = match.start()
    line = plain[plain.rfind("\n", 0, start) + 1 : start]
    in_reason, quoted = _in_reason(plain, after, start, w), _quoted(text, start)
    if not re.search(r"\w", line):
        return not (in_reason and quoted)
    return not quoted and (not in_reason or bool(re.search(r"[;.]\s*\Z", line)))
