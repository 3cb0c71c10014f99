"""The reader of verdicts: a choice, or an index, in a judge's reply, in any language.

A verdict is *given* where its mark ("Choice:") begins a line or a sentence. One that is quoted,
requested by the judged text, or reported in the reason of another verdict, is none. Of several
given verdicts the last counts. Words that name two verdicts at once, or none that is offered, are
unreadable. The words are data: ``[labels]`` of the language pack, with the English ones.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple

from botchat.errors import DataError
from botchat.interfaces import VerdictReason
from botchat.languages import Language
from botchat.protocols.replies import (
    FIELDS,
    MARKS,
    ReplyPatterns,
    blank,
    find_retraction,
    find_tables,
    line_before,
    own_turn,
    read_as_seen,
    reply_language,
    reply_patterns,
)
from botchat.records import UNDECIDED, UNKNOWN_INDEX, Names, Verdict
from botchat.workspace.criteria import LABELS

Meaning = Callable[[str], str | None]
"""Normalised words -> the verdict that they are; None if it is not offered."""

_DETECTION = (("yes", UNKNOWN_INDEX), ("no", "No"))
# Lists of a pack's labels, each with the verdict that they are
_CHOICES = (("first", "1"), ("second", "2"), ("both", "both"), ("neither", "neither"))


NOT_SAID = 10**9  # `first_ai_index` of a verdict without an index; no dialogue is so long
UNTOLD = -1  # `first_ai_index` where an annotator cannot tell
_INDICES = {"No": 0, UNKNOWN_INDEX: NOT_SAID, UNDECIDED: UNTOLD}


def first_ai_index(verdict: Verdict) -> int:
    """Return the 1-based utterance that a UniEval verdict names, 0 for No, `NOT_SAID` or `UNTOLD`.

    Raises `DataError` for a verdict that is none of these.
    """
    if verdict in _INDICES:
        return _INDICES[verdict]
    if re.fullmatch("0*[1-9][0-9]{0,8}", verdict):
        return int(verdict)
    raise DataError(
        f"verdict {verdict!r} is neither No, Yes nor an index from 1; delete that line and judge "
        "again"
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
    read: Callable[[str], VerdictReason]


class _Place(NamedTuple):
    """Words of a reply that are a verdict; None: they name none, or several."""

    verdict: str | None
    start: int
    end: int


_NOWHERE = _Place(None, 0, 0)


@cache
def detection_reader(n: int, language: Language) -> ReplyReader:
    """Return the reader about ``n`` utterances: ``"No"``, `UNKNOWN_INDEX` or a 1-based index."""
    choices = {"No", UNKNOWN_INDEX} | {str(index) for index in range(1, n + 1)}
    return _reader(choices, language, partial(_meaning, keys=_DETECTION))


@cache
def choice_reader(labels: Names, language: Language) -> ReplyReader:
    """Return the reader about two dialogues, with labels of first, second, both and neither."""
    keys = _CHOICES[: len(labels)]
    own: Names = ()
    if labels != LABELS:
        own = labels
    choices = [verdict for _, verdict in keys]
    return _reader(choices, language, partial(_meaning, keys=keys, own=own))


def _reader(
    choices: Iterable[Verdict], language: Language, meaning: Callable[[Language], Meaning]
) -> ReplyReader:
    """Return the reader of verdicts, whose words mean one of ``choices`` in a language."""
    offered = frozenset(choices)

    def read_turn(text: str) -> VerdictReason:
        spoken = reply_language(text, language)
        parsed = read_verdict(text, meaning(spoken), spoken)
        index = str(parsed.index)
        if parsed.verdict == UNKNOWN_INDEX and index in offered:
            return index, parsed.reason
        return parsed.verdict, parsed.reason

    # Judges often say the same
    read = lru_cache(1 << 10)(partial(read_as_seen, language=language, read=read_turn))
    return ReplyReader(offered, read)


def read_verdict(text: str, meaning: Meaning, language: Language) -> ParsedVerdict:
    """Return the verdict given in a reply, or in the JSON or the table that it holds."""
    w = reply_patterns(language)
    text, reason = _as_lines(own_turn(text, language, w.choice), w)
    plain = w.folded(text)
    place = _marked(plain, text, meaning, w)
    place = _boxed(plain, meaning, place) or place or _unmarked(plain, meaning, w) or _NOWHERE
    if reason is None:
        reason = _reason(text[place.start :], w)
    if place.verdict is None:
        return ParsedVerdict(None, reason)
    parsed = ParsedVerdict(place.verdict, reason, _index(plain, text, place, w))
    retracted = find_retraction(plain, place.end, language)
    if retracted is None:
        return parsed
    return _read_again(parsed, plain[retracted:], meaning, language)


def _read_again(
    parsed: ParsedVerdict, rest: str, meaning: Meaning, language: Language
) -> ParsedVerdict:
    """Return the verdict in the ``rest`` of a reply, behind the words that retract the first."""
    w = reply_patterns(language)
    again = read_verdict(rest, meaning, language)
    if again.verdict is not None:
        return again
    line = rest.partition("\n")[0]
    for match in (w.anew.match(rest), *w.choice.finditer(line)):
        if match and not _quoted(line, match.start()):
            verdict = _meant(match, rest, meaning, w)
            if verdict is not None:
                return ParsedVerdict(verdict, parsed.reason)
    index = _index(rest, rest, _NOWHERE, w)
    number = re.match(r"\W*(\d{1,9})[ \t]*(?:[.,;\n]|$|is\b)", rest)
    if number and not index:
        index = int(number[1])
    if index:
        return ParsedVerdict(parsed.verdict, parsed.reason, index)
    return ParsedVerdict(None, parsed.reason)


@cache
def _meaning(language: Language, keys: tuple[tuple[str, str], ...], own: Names = ()) -> Meaning:
    """Return how words are understood: as labels in lists; ``keys``: (list, its verdict).

    ``own``: a criterion's labels, in place of lists. Words that may stand around one of a list are
    left out ("only …", "… is AI involved").
    """
    w = reply_patterns(language)
    table = w.table(dict(keys))
    if own:
        table = {label: verdict for label, (_, verdict) in zip(own, keys, strict=True)}
    labels = {w.normal(label).replace(" ", ""): verdict for label, verdict in table.items()}

    def meaning(words: str) -> str | None:
        words = w.normal(words).strip(" /")
        verdict = labels.get(words.replace(" ", ""))
        if verdict is not None or own:
            return verdict
        return labels.get(w.after.sub("", w.before.sub("", words)).replace(" ", ""))

    return meaning


def _reason(text: str, w: ReplyPatterns) -> str:
    """Return what follows ``Reason:``, or the whole text without the mark; white space joined."""
    match = w.reason.search(w.folded(text))
    reason = text
    if match:
        reason = text[match.end() :]
    return " ".join(reason.strip().lstrip(_QUOTES).rstrip(f"}}{_QUOTES}").split())


_QUOTES = "\"`*'\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"


def _as_lines(text: str, w: ReplyPatterns) -> tuple[str, str | None]:
    """Return (choice and index as lines, the reason) of JSON or a table; else (the text, None)."""
    named: Mapping[str, object] = _json_fields(text, w)
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


def _json_fields(text: str, w: ReplyPatterns) -> dict[str, object]:
    """Return choice, index and reason of the JSON object that a reply is, or ends with."""
    named: dict[str, object] = {}
    if "{" not in text:
        return named  # as most replies are: no error of a parser is made
    for start in (0, text.rfind("{")):
        with suppress(AttributeError, TypeError, ValueError, RecursionError):
            fields = json.loads(re.sub(r"^```\w*\s*|\s*```$", "", text[start:].strip()))
            while True:
                inner = [key for key, value in fields.items() if isinstance(value, dict)]
                if len(inner) != 1:
                    break
                fields = fields.pop(inner[0]) | fields
            called = fields.get("arguments")
            if isinstance(called, str) and "choice" not in fields:
                fields = json.loads(called)
            named |= {w.fields.get(w.normal(name), ""): value for name, value in fields.items()}
    return named


def _marked(plain: str, text: str, meaning: Meaning, w: ReplyPatterns) -> _Place | None:
    """Return the last given verdict, which may be unreadable, as of a mere list."""
    last = None
    label_before = ""
    matches = sorted([*w.choice.finditer(plain), *w.also.finditer(plain)], key=re.Match.start)
    for match in matches[-_MOST_MARKS:]:
        verdict = _meant(match, plain, meaning, w)
        if not _is_given(match, plain, text, last, w):
            continue
        if verdict is None and (last is None or not _is_final(match, plain, w)):
            continue  # words about a choice
        label = match[0].lower().partition(":")[0]
        if last is not None and last.verdict != verdict:
            between = plain[last.end : match.start()]
            is_list = label == label_before and w.either.search(between)
            if is_list or MARKS.few_words.fullmatch(line_before(plain, match.start())):
                verdict = None  # one of what may be answered; a second thought, or the second best
        label_before = label
        start = match.start("said")
        last = _Place(verdict, start, start + len(match["said"].rstrip()))
    return last


def _is_final(match: re.Match[str], plain: str, w: ReplyPatterns) -> bool:
    """Return whether a mark behind a verdict takes its place, whatever it says."""
    if w.abstains.match(plain, match.start("said")):
        return True
    if match.re is not w.choice or match["sep"] is None or not match["said"].strip():
        return False
    own = r"(?i)[\W_]*(?:(?:my )?[^\W\d_]+ )?"
    return re.fullmatch(own, line_before(plain, match.start())) is not None


def _is_given(
    match: re.Match[str], plain: str, text: str, last: _Place | None, w: ReplyPatterns
) -> bool:
    """Return whether a mark gives a verdict of the judge's own, behind the ``last`` one."""
    start = match.start()
    line = line_before(plain, start)
    if w.placeholder.match(plain, match.end()) or MARKS.struck.search(line):
        return False
    if re.search(r"[^\W_]", MARKS.list_item.sub("", line)):
        # Without a colon only a line of its own is a verdict.
        if match["sep"] is None or _quoted(text, start) or not _led_to(line, w):
            return False
    elif ">" not in line and not _quoted(text, start, "\n\n"):
        return True
    return last is None or not _in_reason(plain, last.end, start, w)


def _led_to(line: str, w: ReplyPatterns) -> bool:
    """Return whether a sentence ends before a mark on its line, or leads to the verdict."""
    before = line[-120:]
    if w.boundary.search(before):
        return True
    if MARKS.few_words.fullmatch(line):
        return not w.others.search(line)
    soft = re.search(r"[:,][\s*_`\[(]*\Z", before)
    return soft is not None and not w.others.search(re.split(r"[.!?;]\s", before)[-1])


def _meant(match: re.Match[str], plain: str, meaning: Meaning, w: ReplyPatterns) -> str | None:
    """Return the verdict of the words behind a mark, if nothing next to them says another."""
    verdict = meaning(match["said"])
    if verdict is None:
        return None
    start = match.start("said")
    line = plain.rfind("\n", 0, start) + 1
    if w.side_begins.match(plain, line) and w.side_begins.search(plain, match.end()):
        return None  # "Choice:", then a line for each dialogue
    line_after = plain[start : start + _NEARBY].partition("\n")[0]
    sides = list(w.side_origin.finditer(line_after))
    each = _told_by_side(sides, meaning, w.origin)
    if each is not None:
        return each
    gloss = w.gloss.match(plain, match.end())
    if gloss is not None:
        origins = {w.origin(words) for words in gloss["said"].split(",")}
        if _OPPOSITE.get(verdict, "person") in origins:
            return None
    neighbour = w.next_to.match(plain, match.end())
    if neighbour is None:
        return verdict
    other = meaning(w.alternative.sub("", w.normal(neighbour["said"])))
    if other in (None, verdict):
        return verdict
    if neighbour["denied"]:
        return other
    return None


_MOST_MARKS = 200  # of a reply in a loop the last are read: each looks back on its line
_NEARBY = 1_000  # characters behind a mark that tell more: a reply may be one endless line

# Verdict -> who, if that is said of it, is its opposite; of all others a person
_OPPOSITE = {"neither": "machine", "No": "machine"}


def _told_by_side(sides: Sequence[re.Match[str]], meaning: Meaning, origin: Meaning) -> str | None:
    """Return the verdict of whose each of two dialogues is, if that is said of both."""
    by_side = {(meaning(side["name"]), origin(side["said"])) for side in sides}
    for verdict, (first, second) in _ONE_BY_ONE.items():
        if by_side == {("1", first), ("2", second)}:
            return verdict
    return None


def _quoted(text: str, start: int, since: str = "\n") -> bool:
    """Return whether a mark stands in quotation marks opened on its line, or ``since``."""
    line = line_before(text, start, since)
    opened = len(MARKS.paired.findall(line)) % 2 == 1
    return opened or line.rstrip("*_ ").endswith(("'", "`", "\u2018"))


def _in_reason(plain: str, after: int, start: int, w: ReplyPatterns) -> bool:
    """Return whether the reason of a verdict that ends at ``after`` goes on at ``start``."""
    reasons = list(w.reason.finditer(plain, after, start))
    return bool(reasons) and not re.search(r"\n[ \t]*\n", plain[reasons[-1].end() : start])


def _boxed(plain: str, meaning: Meaning, marked: _Place | None) -> _Place | None:
    """Return the verdict in the last box of LaTeX, if none is marked behind it."""
    after = 0
    if marked is not None:
        after = marked.end
    for box in list(MARKS.box.finditer(plain, after))[-1:]:
        verdict = meaning(box["said"].rpartition(":")[2])
        if verdict is not None:
            return _Place(verdict, box.start("said"), box.end("said"))
    return None


# Verdict -> who takes part in the first and the second dialogue besides people
_ONE_BY_ONE = {
    "neither": ("person", "person"),
    "2": ("person", "machine"),
    "1": ("machine", "person"),
    "both": ("machine", "machine"),
}


def _one_by_one(plain: str, meaning: Meaning, w: ReplyPatterns) -> _Place | None:
    """Return the verdict of a reply that says of each dialogue whether it is human."""
    sides = list(w.side.finditer(plain))
    if not sides:
        return None
    start = sides[0].start()
    end = sides[-1].end()
    before = plain[:start]
    after = plain[end:]
    if not w.before_sides.search(before) and not meaning(before):
        return None
    if _quoted(before, start, "\n\n") or w.choice.search(after):
        return None
    origin = w.origin
    # What Yes and No answer may be said around them.
    if not re.search(r"\w", before + w.reason.split(after)[0]):
        origin = w.origin_or_answer
    if any(side[0].count('"') % 2 or side[0].count("'") % 2 for side in sides):
        return None
    verdict = _told_by_side(sides, meaning, origin)
    if verdict is None:
        return None
    return _Place(verdict, start, end)


def _unmarked(plain: str, meaning: Meaning, w: ReplyPatterns) -> _Place | None:
    """Return the verdict on each dialogue by itself, or that the first line is."""
    each = _one_by_one(plain, meaning, w)
    rest = plain
    if each is not None:
        rest = w.side.sub(blank, plain)
    lines = list(re.finditer(r"(?m)^[^\n]*[^\W\d_][^\n]*", rest))
    words = [w.reason.split(line[0], maxsplit=1)[0].rstrip(" \t;,.") for line in lines]
    verdicts = [meaning(each) for each in words]
    named = set(verdicts) - {None}
    if each is not None:
        if named <= {each.verdict}:
            return each
        return None
    # "Conversation 1: AI" alone says half.
    if not named or named != set(verdicts[:1]) or ":" in words[0] or w.choice.search(plain):
        return None
    start = lines[0].start()
    return _Place(verdicts[0], start, start + len(words[0]))


def _index(plain: str, text: str, place: _Place, w: ReplyPatterns) -> int | None:
    """Return the index behind a verdict, else on a line before it."""
    end = place.end
    behind = [match for match in w.index.finditer(plain, end) if _tells(match, plain, text, end, w)]
    at_once = w.index_at_once.match(plain, end)
    if at_once and not behind:
        return int(at_once["said"] or at_once["other"])
    before = plain.rfind("\n\n", 0, place.start) + 1
    ahead = [
        match
        for match in w.index.finditer(plain, before, place.start)
        if not re.search(r"\w", line_before(plain, match.start()))
    ]
    again = [match for match in behind if match["again"]]
    for match in again[-1:] or behind[:1] or ahead[-1:]:
        return _number_behind(match, plain, w)
    return None


def _number_behind(match: re.Match[str], plain: str, w: ReplyPatterns) -> int | None:
    """Return the number that an index says, or the only one in its words."""
    words = match["said"].strip().lower()
    if w.more.match(plain, match.end()):
        return None
    if re.fullmatch(r"\d{1,9}", words):
        after = re.match(r"\s*,\s*(\d{1,9})", plain[match.end() :])
        if after is not None and int(after[1]) < int(words):
            return None  # a list begins with the first
        return int(words)
    phrase = re.split(r"[;\n|}]", plain[match.start("said") :], maxsplit=1)[0]
    phrase = w.reason.split(phrase)[0].lower()
    numbers = re.findall(r"(?<![\w.-])\d{1,9}(?=(?:st|nd|rd|th)?(?![\w.]))", phrase)
    if len(numbers) == 1:
        return int(numbers[0])
    return w.numerals.get(words) or w.ordinals.get(w.normal(phrase))


def _tells(match: re.Match[str], plain: str, text: str, after: int, w: ReplyPatterns) -> bool:
    """Return whether an index is given for itself, not quoted and not in passing."""
    start = match.start()
    line = line_before(plain, start)
    in_reason = _in_reason(plain, after, start, w)
    quoted = _quoted(text, start)
    if not re.search(r"\w", line):
        return not (in_reason and quoted)
    return not quoted and (not in_reason or bool(re.search(r"[;.]\s*\Z", line)))
