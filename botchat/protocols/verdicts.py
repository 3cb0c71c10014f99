"""The reader of verdicts: a choice, or an index, in a judge's reply, in any language.

A verdict is *given* where its mark ("Choice:") begins a line or a sentence. One that is quoted,
requested by the judged text, or reported in the reason of another verdict, is none. Of several
given verdicts the last counts. Words that name two verdicts at once, or none that is offered, are
unreadable. The words are data: ``[labels]`` of the language pack, with the English ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from botchat.languages import ENGLISH, Language
from botchat.protocols.replies import (
    ReplyPatterns,
    find_retraction,
    find_tables,
    json_fields,
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
        parsed = read_verdict(text, meaning(spoken), spoken, sides=ours)
        return parsed.verdict, parsed.reason

    return ReplyReader(frozenset(own.values()), read)


def read_verdict(
    text: str, meaning: Meaning, language: Language = ENGLISH, *, sides: bool = False
) -> ParsedVerdict:
    """Return the verdict given in a reply, or in the JSON or the table that it holds.

    ``sides``: also where each of two dialogues is said to be human or AI. Never raises.
    """
    w = reply_patterns(language)
    text = strip_hypotheticals(text, language)
    plain = w.folded(text)
    parsed, end = _read(plain, text, meaning, w, sides)
    retracted = find_retraction(plain, end, language) if parsed.verdict is not None else None
    if retracted is None:
        return parsed
    return _read_again(parsed, plain[retracted:], meaning, language)


def _read(
    plain: str, text: str, meaning: Meaning, w: ReplyPatterns, sides: bool
) -> tuple[ParsedVerdict, int]:
    """Return the last verdict that is given, and where its words end."""
    if (fields := _fields(plain, json_fields(text), w)) is not None:
        return _of_fields(fields, meaning, w), max(text.rfind("}"), text.rfind("|")) + 1
    place = _given(plain, text, meaning, w, w.choice) or _given(plain, text, meaning, w, w.also)
    last = text.rstrip().rfind("{")
    if place is None and (fields := _fields("", json_fields(text[last:]), w)) is not None:
        return _of_fields(fields, meaning, w), len(text)
    place = place or _boxed(plain, meaning) or _bare(plain, meaning, w)
    if place is None:
        verdict = w.one_by_one(plain) if sides else None
        return ParsedVerdict(verdict, _reason(text, w)), len(text)
    verdict, start, end = place
    index = _index(plain, text, start, end, w)
    return ParsedVerdict(verdict, _reason(text[start:], w), index), end


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
    """Return the verdict of each word in the lists ``keys``, name of a list -> verdict.

    English and foreign labels are read too, since judges fall back on them; the pack's decide.
    """
    foreign = ENGLISH.reading.foreign
    words = {word: verdict for key, verdict in keys.items() for word in foreign.get(key, ())}
    for pack in (ENGLISH, language):
        for key, verdict in keys.items():
            words |= dict.fromkeys(getattr(pack.labels, key), verdict)
    return words


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
    if w.choice.search(plain):
        return None
    first: tuple[str, int, int] | None = None
    verdicts = list[str | None]()
    for match in re.finditer(r"[^\n]*[^\W\d_][^\n]*", plain):
        line = w.reason.split(match[0], maxsplit=1)[0].rstrip(" \t;,.")
        verdicts.append(verdict := meaning(line))
        if len(verdicts) == 1 and verdict is not None:
            first = verdict, match.start(), match.start() + len(line)
    return first if len({*verdicts} - {None}) == 1 else None


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


# ------------------------------------------------------------------------- JSON and tables


def _fields(plain: str, fields: Mapping[str, Any], w: ReplyPatterns) -> dict[str, Any] | None:
    """Return the fields of a JSON object, or of the first table of one row with a verdict."""
    named = {w.fields.get(w.normal(name), name): value for name, value in fields.items()}
    if "choice" in named:
        return named
    for head, rows, _ in find_tables(plain):
        names = [w.fields.get(w.normal(cell)) for cell in head]
        named = {name: cell for name, cell in zip(names, rows[0], strict=False) if name}
        if len(rows) == 1 and w.normal(named.get("choice", "")) not in (*w.fields, ""):
            return named
    return None


def _of_fields(fields: Mapping[str, Any], meaning: Meaning, w: ReplyPatterns) -> ParsedVerdict:
    reason = " ".join(str(fields.get("reason") or "").split())
    choice = "" if fields["choice"] is None else fields["choice"]
    match = w.choice.search(w.folded(f"choice: {choice}"))
    verdict = _meant(match, match.string, meaning, w) if match else None
    index = f"index: {fields.get('index')}"
    return ParsedVerdict(verdict, reason, _index(w.folded(index), index, 0, 0, w))


_NEAR = 120
"""Characters before a mark that may lead to it."""
_ITEM = re.compile(r"\A\W*\d{1,2}[.,)]")
