"""The reader of verdicts: a choice, or an index, in a judge's reply, in any language.

A verdict is *given* where its mark ("Choice:") begins a line or a sentence. One that is quoted,
requested by the judged text, or reported in the reason of another verdict, is none. Of several
given verdicts the last counts. Words that name two verdicts at once, or none that is offered, are
unreadable. The words are data: ``[labels]`` of the language pack, with the English ones.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from botchat.errors import DataError
from botchat.languages import ENGLISH, Language
from botchat.protocols.replies import (
    FIELDS,
    ReplyPatterns,
    find_retraction,
    find_tables,
    known_words,
    reply_language,
    reply_patterns,
    strip_hypotheticals,
)
from botchat.records import UNDECIDED, UNKNOWN_INDEX, Verdict

Meaning = Callable[[str], str | None]
"""Normalised words -> the verdict that they are; None if it is not offered."""

LABELS = ("Conversation 1", "Conversation 2", "Both", "Neither")
"""The answers to a choice in the papers' words."""

_DETECTION = {"yes": "yes", "no": "no"}
_CHOICES = {"first": "1", "second": "2", "both": "both", "neither": "neither"}
"""List of a pack's labels -> the verdict that they are."""


NOT_SAID = 10**9  # `first_ai_index` of a verdict without an index; no dialogue is so long
UNTOLD = -1  # `first_ai_index` where an annotator cannot tell
_INDICES = {"No": 0, UNKNOWN_INDEX: NOT_SAID, UNDECIDED: UNTOLD}


def first_ai_index(verdict: Verdict, dialogue: str) -> int:
    """Return the 1-based utterance that a UniEval verdict names, 0 for No, `NOT_SAID` or `UNTOLD`.

    Raises `DataError` for a verdict that is none of these.
    """
    if verdict in _INDICES:
        return _INDICES[verdict]
    if re.fullmatch("0*[1-9][0-9]{0,8}", verdict):
        return int(verdict)
    raise DataError(
        f"verdict {verdict!r} of {dialogue} is neither No, Yes nor an index from 1; delete that "
        "line and judge again"
    )


@dataclass(frozen=True)
class ParsedVerdict:
    """A verdict in a reply, and the index of an utterance where one is given with it."""

    verdict: str | None
    reason: str
    index: int | None = None


class ReplyReader(NamedTuple):
    """Reader of replies to one case, with the fields of `Case`."""

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
    """Return the reader about two dialogues, with labels of first, second, both and neither."""
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
    """Return the verdict given in a reply, or in the JSON or the table that it holds."""
    w = reply_patterns(language)
    text, reason = _as_lines(strip_hypotheticals(text, language), w)
    plain = w.folded(text)
    place = _marked(plain, text, meaning, w, w.choice) or _marked(plain, text, meaning, w, w.also)
    place = place or _boxed(plain, meaning) or _unmarked(plain, meaning, w)
    verdict, start, end = place or (None, 0, 0)
    if reason is None:
        reason = _reason(text[start:], w)
    if verdict is None:
        return ParsedVerdict(None, reason)
    parsed = ParsedVerdict(verdict, reason, _index(plain, text, start, end, w))
    retracted = find_retraction(plain, end, language)
    if retracted is None:
        return parsed
    return _read_again(parsed, plain[retracted:], meaning, language)


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
    words = {word: verdict for key, verdict in keys.items() for word in known_words(ENGLISH, key)}
    own = {word: verdict for key, verdict in keys.items() for word in getattr(language.labels, key)}
    return words | own


def _reason(text: str, w: ReplyPatterns) -> str:
    """Return what follows ``Reason:``, or the whole text without the mark; white space joined."""
    match = w.reason.search(w.folded(text))
    reason = text
    if match:
        reason = text[match.end() :]
    return " ".join(reason.strip().lstrip(_QUOTES).rstrip(f"}}{_QUOTES}").split())


_QUOTES = "\"`*'\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"
_PAIRED = re.compile('["\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f]')
_STRUCK = re.compile(r"~~[\s*_]*\Z|<!--|\[[ ]?\]")  # in a comment, or an unticked box
_BOX = re.compile(r"\\boxed\{\s*(?:\\text\w*\{)?(?P<said>[^{}\n]*)")
_ITEM = re.compile(r"\A\W*\d{1,2}[.,)]")


def _as_lines(text: str, w: ReplyPatterns) -> tuple[str, str | None]:
    """Return (choice and index as lines, the reason) of JSON or a table; else (the text, None)."""
    named = _json_fields(text, w)
    end = text.rfind("}") + 1
    for head, rows, (_, last) in find_tables(w.folded(text)):
        fields = [w.fields.get(w.normal(name), "") for name in head]
        row = dict(zip(fields, rows[0], strict=False))
        cell = w.normal(row.get("choice", ""))
        if len(rows) == fields.count("choice") == 1 and cell not in ("", *w.fields):
            named = row
            end = last
    words = []
    for name in FIELDS:
        value = named.get(name)
        words.append("" if value is None else " ".join(str(value).split()))
    choice, index, reason = words
    if "choice" not in named or "~~" in choice or w.placeholder.match(f"reason: {reason}"):
        return text, None
    return f"choice: {choice}\nindex: {index}\n{text[end:]}", reason


def _json_fields(text: str, w: ReplyPatterns) -> dict[str, Any]:
    """Return choice, index and reason of the JSON object that a reply is, or ends with."""
    named: dict[str, Any] = {}
    for start in (0, text.rfind("{")):
        with suppress(AttributeError, TypeError, ValueError, RecursionError):
            fields = json.loads(re.sub(r"^```\w*\s*|\s*```$", "", text[start:].strip()))
            while len(inner := [key for key in fields if isinstance(fields[key], dict)]) == 1:
                fields |= fields.pop(inner[0])
            if isinstance(called := fields.get("arguments"), str) and "choice" not in fields:
                fields = json.loads(called)
            named |= {w.fields.get(w.normal(name), ""): value for name, value in fields.items()}
    return named


def _marked(
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
    if last is None or last[0] is None:
        return None
    return (last[0], *last[1:])


def _led_to(line: str, w: ReplyPatterns) -> bool:
    """Return whether a sentence ends before a mark on its line, or leads to the verdict."""
    before = line[-120:]
    if w.boundary.search(before):
        return True
    soft = re.search(r"[:,][\s*_`\[(]*\Z", before)
    return soft is not None and not w.others.search(re.split(r"[.!?;]\s", before)[-1])


def _meant(match: re.Match[str], plain: str, meaning: Meaning, w: ReplyPatterns) -> str | None:
    """Return the verdict of the words behind a mark, if no other is named next to it."""
    verdict = meaning(match["said"])
    line = plain.rfind("\n", 0, match.start("said")) + 1
    if verdict and w.side_begins.match(plain, line) and w.side_begins.search(plain, match.end()):
        return None  # "Choice:", then a line for each dialogue
    neighbour = w.next_to.match(plain, match.end())
    if verdict is None or neighbour is None:
        return verdict
    other = meaning(w.alternative.sub("", w.normal(neighbour["said"])))
    if other in (None, verdict):
        return verdict
    return None


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
    boxes = list(_BOX.finditer(plain))
    verdict = None
    if boxes:
        verdict = meaning(boxes[-1]["said"].rpartition(":")[2])
    if verdict is None:
        return None
    return (verdict, *boxes[-1].span("said"))


_ONE_BY_ONE = {"neither": (0, 0), "2": (0, 1), "1": (1, 0), "both": (1, 1)}
"""Verdict -> for the first and the second dialogue, whether a machine takes part."""


def _one_by_one(plain: str, meaning: Meaning, w: ReplyPatterns) -> tuple[str, int, int] | None:
    """Return the verdict of a reply that says of each dialogue whether it is human."""
    sides = list(w.side.finditer(plain))
    start, end = (sides[0].start(), sides[-1].end()) if sides else (0, 0)
    before = plain[:start]
    after = plain[end:]
    begins = w.before_sides.search(before) or meaning(before)
    quoted = any(side[0].count(mark) % 2 for side in sides for mark in "\"'")
    if quoted or _quoted(before, start, "\n\n") or w.choice.search(after):
        return None
    # What Yes and No answer may be said around them.
    alone = not re.search(r"\w", before + w.reason.split(after)[0])
    known = w.origins
    if alone:
        known = w.answers | w.origins
    origins = defaultdict[str | None, set[int | None]](set)
    for side in sides if begins else ():
        origins[meaning(side["name"])].add(known.get(w.normal(side["said"])))
    for verdict, (first, second) in _ONE_BY_ONE.items():
        if origins == {"1": {first}, "2": {second}}:
            return verdict, start, end
    return None


def _unmarked(plain: str, meaning: Meaning, w: ReplyPatterns) -> tuple[str, int, int] | None:
    """Return the verdict on each dialogue by itself, or that the first line is."""
    each = _one_by_one(plain, meaning, w)
    rest = plain
    if each:
        rest = w.side.sub(lambda match: " " * len(match[0]), plain)
    lines = list(re.finditer(r"[^\n]*[^\W\d_][^\n]*", rest))
    words = [w.reason.split(line[0], maxsplit=1)[0].rstrip(" \t;,.") for line in lines]
    first, *others = [meaning(each) for each in words] or [None]
    if each is not None:
        if {first, *others} <= {None, each[0]}:
            return each
        return None
    # "Conversation 1: AI" alone says half.
    if first is None or ":" in words[0] or w.choice.search(plain) or set(others) - {None, first}:
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
        if w.more.match(plain, match.end()):
            return None
        return number
    return None


def _tells(match: re.Match[str], plain: str, text: str, after: int, w: ReplyPatterns) -> bool:
    """Return whether an index is given for itself, not quoted and not in passing."""
    start = match.start()
    line = plain[plain.rfind("\n", 0, start) + 1 : start]
    in_reason = _in_reason(plain, after, start, w)
    quoted = _quoted(text, start)
    if not re.search(r"\w", line):
        return not (in_reason and quoted)
    return not quoted and (not in_reason or bool(re.search(r"[;.]\s*\Z", line)))
