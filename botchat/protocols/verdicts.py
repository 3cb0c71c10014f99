"""The one reader of verdicts: a choice, or a place, in what a judge says, in any language.

A verdict is *given* where its mark ("Choice:") begins a line or a sentence. One that is quoted, or
asked for by the judged text, or told in the reason of another verdict, is none. Of several that are
given the last counts. What names two verdicts at once, or none that is offered, is unreadable. The
words are data: ``[labels]`` of the language pack, the English ones beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from botchat.languages import ENGLISH, PLAIN, Language
from botchat.languages.text import longest
from botchat.protocols.own_words import any_known, any_of, known, numerals, own, withdrawn

Meaning = Callable[[str], str | None]
"""Normalised words -> the verdict that they are, ``None``: none that is offered."""


@dataclass(frozen=True)
class Found:
    """A verdict in a reply."""

    verdict: str | None
    reason: str
    index: int | None = None
    """Of an utterance, where one is told with the verdict."""


def read_verdict(
    text: str, meaning: Meaning, language: Language = ENGLISH, *, sides: bool = False
) -> Found:
    """The verdict given in a reply, or in the JSON or the table that it holds; never raises.

    ``sides``: also where each of two conversations is said to be a machine's or a person's.
    """
    w = _words(language)
    said = own(text, language)
    plain = w.folded(said)
    found, end = _read(plain, said, meaning, w, sides)
    after = withdrawn(plain, end, language) if found.verdict is not None else None
    return found if after is None else _anew(found, plain, after, meaning, language)


def _read(
    plain: str, text: str, meaning: Meaning, w: _VerdictPatterns, sides: bool
) -> tuple[Found, int]:
    """The last verdict that is given, and where its words end."""
    if (fields := _fields(plain, json_fields(text), w)) is not None:
        return _of_fields(fields, meaning, w), max(text.rfind("}"), text.rfind("|")) + 1
    given = _given(plain, text, meaning, w, w.choice) or _given(plain, text, meaning, w, w.also)
    ends = text.rstrip().rfind("{")
    if given is None and (fields := _fields("", json_fields(text[ends:]), w)) is not None:
        return _of_fields(fields, meaning, w), len(text)
    given = given or _boxed(plain, meaning) or _bare(plain, meaning, w)
    if given is None:
        return Found(w.one_by_one(plain) if sides else None, reason(text, w)), len(text)
    verdict, start, end = given
    index = _index(plain, text, start, end, w)
    return Found(verdict, reason(text[start:], w), index), end


def _anew(found: Found, plain: str, after: int, meaning: Meaning, language: Language) -> Found:
    """What a reply says behind ``after``, where its verdict is withdrawn."""
    w, rest = _words(language), plain[after:]
    again = read_verdict(rest, meaning, language)
    line = rest.partition("\n")[0]
    for said in (w.anew.match(rest), *w.choice.finditer(line)):
        if again.verdict is None and said and not _quoted(line, said.start()):
            again = Found(_meant(said, rest, meaning, w), found.reason)
    if again.verdict is None:
        bare = re.match(r"\W*(\d{1,9})[ \t]*(?:[.,;\n]|$|is\b)", rest)
        index = _index(rest, rest, 0, 0, w) or (int(bare[1]) if bare else None)
        again = Found(found.verdict if index else None, found.reason, index)
    return again


def meanings(table: Mapping[str, str], language: Language, *, phrases: bool = True) -> Meaning:
    """How words are understood: as a label of ``table``, label -> verdict.

    ``phrases``: what may stand before and after a label is passed over ("only …", "… is AI
    involved").
    """
    w = _words(language)
    labels = {w.normal(label).replace(" ", ""): verdict for label, verdict in table.items()}

    def meaning(words: str) -> str | None:
        said = w.normal(words).strip(" /")
        verdict = labels.get(said.replace(" ", ""))
        if verdict is not None or not phrases:
            return verdict
        said = w.after.sub("", w.before.sub("", said))
        return labels.get(said.replace(" ", ""))

    return meaning


def reason(text: str, w: _VerdictPatterns) -> str:
    """What follows ``Reason:``, or the whole text where the mark is missing; white space joined."""
    match = w.reason.search(w.folded(text))
    said = text[match.end() :] if match else text
    return " ".join(said.strip().lstrip(_QUOTES).rstrip(f"}}{_QUOTES}").split())


def json_fields(text: str) -> dict[str, Any]:
    """The fields of the JSON object that a reply is, or ends with; by lower-case name.

    Of a call of a tool those of its arguments.
    """
    if "{" not in text:
        return {}
    bare = _FENCE.sub("", text.strip())
    if not bare.startswith("{") and (blocks := _BLOCK.findall(text)):
        bare = blocks[-1].strip()
    if not bare.startswith("{"):
        return {}
    try:
        fields = json.loads(bare)
        for name in _CALLED & fields.keys():
            called = fields[name]
            fields = json.loads(called) if isinstance(called, str) else called
        while len(inner := [name for name in fields if isinstance(fields[name], dict)]) == 1:
            fields |= fields.pop(inner[0])
        return {name.lower(): value for name, value in fields.items()}
    except (AttributeError, ValueError, RecursionError):
        return {}


def labelled(language: Language, keys: Mapping[str, str]) -> dict[str, str]:
    """What the verdicts of ``keys``, name of a list of labels -> verdict, are written as.

    English labels are read beside the pack's, since judges fall back on them; the pack's decide.
    """
    foreign = ENGLISH.reading.foreign
    packs = (partial(getattr, pack.labels) for pack in (ENGLISH, language))
    return {
        word: verdict
        for words in (foreign.get, *packs)
        for key, verdict in keys.items()
        for word in words(key) or ()
    }


# ---------------------------------------------------------------------------------- where

_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_CALLED = frozenset({"arguments", "parameters"})
_BLOCK = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL | re.IGNORECASE)
_FIELDS = ("choice", "index", "reason")
_QUOTES = "\"`*'\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"
_PAIRED = re.compile('["\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f]')
_MARKS = r"[\"'`*_~\s\[\]]*"
_STRUCK = re.compile(r"~~[\s*_]*\Z|<!--|\[[ ]?\]")
"""Struck out, in a comment, or a box that is not ticked."""
_BOX = re.compile(r"\\boxed\{\s*(?:\\text\w*\{)?(?P<said>[^{}\n]*)")
_RULE = re.compile(r"\s*\|?[\s|:-]*-[\s|:-]*")


def _given(
    plain: str, text: str, meaning: Meaning, w: _VerdictPatterns, marks: re.Pattern[str]
) -> tuple[str, int, int] | None:
    """(verdict, start, end of its words) of the last verdict that is given; none of a mere list."""
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


def _led_to(line: str, w: _VerdictPatterns) -> bool:
    """Whether what stands before a mark on its line ends a sentence, or leads to one's verdict."""
    before = line[-_NEAR:]
    if w.boundary.search(before):
        return True
    soft = re.search(r"[:,][\s*_`\[(]*\Z", before)
    return soft is not None and not w.others.search(re.split(r"[.!?;]\s", before)[-1])


def _meant(match: re.Match[str], plain: str, meaning: Meaning, w: _VerdictPatterns) -> str | None:
    """The verdict of the words behind a mark, if it is one and no other is named beside it."""
    verdict = meaning(match["said"])
    beside = w.beside.match(plain, match.end())
    if verdict is None or beside is None:
        return verdict
    other = meaning(w.alternative.sub("", w.normal(beside["said"])))
    return verdict if other in (None, verdict) else None


def _quoted(text: str, start: int, since: str = "\n") -> bool:
    """Whether a mark stands in quotation marks that were opened on its line, or ``since``."""
    line = text[text.rfind(since, 0, start) + 1 : start]
    opened = len(_PAIRED.findall(line)) % 2 == 1
    return opened or line.rstrip("*_ ").endswith(("'", "`", "\u2018"))


def _in_reason(plain: str, after: int, start: int, w: _VerdictPatterns) -> bool:
    """Whether the reason of a verdict, told since ``after``, is still going on at ``start``."""
    told = list(w.reason.finditer(plain, after, start))
    return bool(told) and not re.search(r"\n[ \t]*\n", plain[told[-1].end() : start])


def _boxed(plain: str, meaning: Meaning) -> tuple[str, int, int] | None:
    """The verdict in the last box of LaTeX."""
    for match in list(_BOX.finditer(plain))[-1:]:
        if (verdict := meaning(match["said"].rpartition(":")[2])) is not None:
            return verdict, *match.span("said")
    return None


def _bare(plain: str, meaning: Meaning, w: _VerdictPatterns) -> tuple[str, int, int] | None:
    """The verdict that the first line is, where no verdict is marked."""
    if w.choice.search(plain):
        return None
    found = []
    for match in re.finditer(r"[^\n]+", plain):
        if not re.search(r"[^\W\d_]", match[0]):
            continue
        line = w.reason.split(match[0], maxsplit=1)[0].rstrip(" \t;,.")
        found.append((meaning(line), match.start(), match.start() + len(line)))
    verdicts = {verdict for verdict, _, _ in found if verdict is not None}
    return found[0] if found and found[0][0] is not None and len(verdicts) == 1 else None  # type: ignore[return-value]


def _index(plain: str, text: str, start: int, end: int, w: _VerdictPatterns) -> int | None:
    """The index that is told behind a verdict, else on a line before it."""
    behind = [match for match in w.index.finditer(plain, end) if _tells(match, plain, text, end, w)]
    if not behind and (at_once := w.index_at_once.match(plain, end)):
        return int(at_once["said"] or at_once["other"])
    before = plain.rfind("\n\n", 0, start) + 1
    ahead = [
        match
        for match in w.index.finditer(plain, before, start)
        if not re.search(r"\w", plain[plain.rfind("\n", 0, match.start()) + 1 : match.start()])
    ]
    for match in (*behind[:1], *([] if behind else ahead[-1:])):
        said = match["said"].strip()
        number = w.numerals.get(said.lower())
        if number is None and re.fullmatch(r"\d{1,9}", said):
            number = int(said)
        return None if w.more.match(plain, match.end()) else number
    return None


def _tells(match: re.Match[str], plain: str, text: str, after: int, w: _VerdictPatterns) -> bool:
    """Whether an index is told for itself, not quoted and not in passing."""
    start = match.start()
    line = plain[plain.rfind("\n", 0, start) + 1 : start]
    if not re.search(r"\w", line):
        return not _in_reason(plain, after, start, w) or not _quoted(text, start)
    if _quoted(text, start):
        return False
    return not _in_reason(plain, after, start, w) or bool(re.search(r"[;.]\s*\Z", line))


# ------------------------------------------------------------------------- JSON and tables


def _fields(plain: str, told: Mapping[str, Any], w: _VerdictPatterns) -> dict[str, Any] | None:
    """Those of a JSON object, or of the first table with a column for the verdict and one row."""
    found = {w.fields.get(w.normal(name), name): value for name, value in told.items()}
    if "choice" in found:
        return found
    lines = plain.splitlines() if "|" in plain else []
    for head, rule, row, *rest in zip(lines, lines[1:], lines[2:], [*lines[3:], ""], strict=False):
        names = [w.fields.get(w.normal(cell)) for cell in _cells(head)]
        one_row = _RULE.fullmatch(rule) and not rest[0].strip().startswith("|")
        told = {name: cell for name, cell in zip(names, _cells(row), strict=False) if name}
        if one_row and w.normal(told.get("choice", "")) not in (*w.fields, ""):
            return told
    return None


def _cells(row: str) -> list[str]:
    return row.strip().strip("|").split("|") if "|" in row else []


def _of_fields(fields: Mapping[str, Any], meaning: Meaning, w: _VerdictPatterns) -> Found:
    said = " ".join(str(fields.get("reason") or "").split())
    told = "" if fields["choice"] is None else fields["choice"]
    value = w.choice.search(w.folded(f"choice: {told}"))
    verdict = _meant(value, value.string, meaning, w) if value else None
    told = f"index: {fields.get('index')}"
    index = _index(w.folded(told), told, 0, 0, w)
    return Found(verdict, said, index)


# ---------------------------------------------------------------------------------- words


class _VerdictPatterns:
    """The patterns of a language's labels, English beside them; of texts that are `folded`."""

    def __init__(self, language: Language) -> None:
        own, self._spaced = language.labels, language.pack.units == "words"
        self._plain = {**language.plain, **dict.fromkeys(map(ord, "\u201e\u00ab\u00bb"), '"')}

        of, any_ = partial(known, language), partial(any_known, language)

        def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | flags)

        spaced = self._spaced
        edge = r"(?<![^\W\d_])" if spaced else "(?<![A-Za-z])"
        choice, index, why = map(any_, _FIELDS)
        # A number in words does not go on, and without blanks digits do not go on in words.
        signs = "A-Za-z" if spaced else re.escape("".join({*"".join(own.numerals)})) or "A-Za-z"
        digits = rf"-?\d+(?![\d{'' if spaced else signs}])"
        number = rf"{digits}|(?:{any_of(own.numerals)})(?![{signs}\d])"
        blank = r"[ \t]+" if spaced else r"[ \t]*"
        is_ = rf"{blank}(?:{any_('copula')}){blank}"
        ends = r"(?:[:=]|(?!\w))" if spaced else "[:=]"
        next_label = rf"{edge}(?:{index}|{why}){_MARKS}{ends}"
        said = (
            rf"(?P<said>(?:(?!{next_label}|[ \t]-[ \t]|[-=]>)"
            r"[^\n;,.(}\"'`*|<\u2013\u2014\u2192])*)"
        )

        def mark(words: str) -> re.Pattern[str]:
            # Without its colon, on a line of its own: a table, brackets, "is", a dash, a heading.
            other = (
                rf"[ \t*_`]*\|[ \t*_`]*|\][ \t]*|{is_}|[ \t]*[\u2013\u2014][ \t]*|(?<=\w)>[ \t]*"
            )
            heading = r"[ \t*_#]*\n\s*(?=[\"'*_`\[]*\w)"
            sep = rf"{_MARKS}(?P<sep>[:=]){_MARKS}|{other}|{heading}"
            return compiled(rf"{edge}(?:{words})(?:{sep}){_LEFT}{said}")

        def phrases(key: str) -> str:
            plain = longest({self._bare(word) for word in of(key)})
            return "|".join(map(re.escape, plain)) or "(?!)"

        space = " " if spaced else ""
        self.choice = mark(choice)
        # A verdict's mark only where nothing else is one.
        self.also = mark(any_("also"))
        self.index = compiled(
            rf"{edge}(?:{index})(?:{_MARKS}[:=]|[ \t*_`]*\||(?<=\w)>)[\s\"'`*_~\[(#]*"
            rf"(?:(?:{any_('ordinal')})[\s.#\[(]*)*(?P<said>{number}|[^\n;,}}|<]*)"
        )
        # An index without its label, directly behind a verdict.
        self.index_at_once = compiled(
            rf"[ \t]*\((?P<said>\d{{1,9}})\)|[ \t,;(]*(?:{any_('since')})[ \t]*"
            rf"(?:{any_('ordinal')})[ \t#]*(?P<other>\d{{1,9}})"
        )
        self.reason = compiled(rf"{edge}(?:{why}){_MARKS}(?:[:=]|(?<=\])|(?<=\w)>|[ \t]*\|)\s*")
        # A field of a reply in JSON, and what its names mean.
        self.value = compiled(
            rf"(?<!\\)\"(?P<key>{choice}|{index})\"\s*:\s*\"?(?P<value>[^\",}}\n]*)"
        )
        self.fields = {self._bare(name): key for key in _FIELDS for name in of(key)}
        self.numerals = numerals(language)
        self.before = re.compile(rf"\A(?:(?:{phrases('before')}){space})+")
        self.after = re.compile(rf"{space}(?:{phrases('after')})\Z")
        # What stands next to a verdict's words, on its line.
        self.beside = compiled(
            rf"{_CHANCE}[\"'`*_ \t]*"
            rf"(?:[,;(/\u2013\u2014-]|(?=(?:{any_('alternative')})[ \t]))[\"'`*_ \t]*{said}"
        )
        self.alternative = re.compile(rf"\A(?:(?:{phrases('alternative')}){space})+")
        # The form of a reply, as the prompt gives it, behind a verdict in it.
        self.placeholder = compiled(
            rf"(?:\W*(?:{index}){_MARKS}[:=][^\n]*)?\W*{edge}(?:{why}){_MARKS}[:=]{_MARKS}(?:{any_('placeholder')})"
        )
        # Another number, or the rest of one, behind a number.
        self.more = compiled(rf"[.]\d|\s*(?:{any_('alternative')})\s*\d")
        # What ends a sentence, or leads to one's own verdict.
        self.boundary = compiled(
            rf"(?:[.!?;]|[^\W\d_]\)|{edge}(?:{any_('lead')})[ \t]*[:,]?)[\s*_`\[(]*\Z"
        )
        # What others say, or ask for.
        self.others = compiled(
            rf"{edge if spaced else ''}(?:{any_('others')})(?![A-Za-z])"
            r"|(?<!\w)[AB][*_ ]*:[\s*_`]*\Z"
        )
        # The verdict behind a withdrawn one, and what leads to it.
        self.anew = compiled(rf"\W*(?:(?:{any_('anew')})\W{'+' if spaced else '*'})*{said}")
        # One of two conversations, and whose it is said to be: 0 of people, 1 of machines.
        self.sides = compiled(
            rf"^[^\w\n]*(?:(?P<first>{any_('first')})|{any_('second')})"
            r"[\"'`*_ \t]*(?:[:=|\u2013\u2014]|[ \t]-[ \t])[\"'`*_ \t]*(?P<said>[^\n.,;(|]*)",
            re.MULTILINE,
        )
        self.who = {
            self._bare(word): who
            for who, key in enumerate(("person", "machine"))
            for word in of(key)
        }

    def folded(self, text: str) -> str:
        """The text with plain digits and marks, as long as it was."""
        return text.translate(self._plain)

    def normal(self, words: str) -> str:
        """Words of a judge without case, marks and surplus white space."""
        return self._bare(self.folded(words))

    def _bare(self, words: str) -> str:
        found = " ".join(re.sub(r"[^\w\s/]+|_", " ", words.translate(PLAIN)).lower().split())
        return found if self._spaced else found.replace(" ", "")

    def one_by_one(self, plain: str) -> str | None:
        """The verdict on two of which each is said to be a person's or not, and no more."""
        said: tuple[set[int | None], set[int | None]] = (set(), set())
        for match in self.sides.finditer(plain):
            said[match["first"] is None].add(self.who.get(self.normal(match["said"]).strip()))
        if None in said[0] | said[1] or not len(said[0]) == len(said[1]) == 1:
            return None
        return ("neither", "2", "1", "both")[2 * said[0].pop() + said[1].pop()]  # type: ignore[operator]


_words = lru_cache(maxsize=16)(_VerdictPatterns)


_NEAR = 120
"""Characters before a mark that may lead to it."""
_CHANCE = r"(?:[ \t*_]*[-:=(\u2013]*[ \t]*(?:0?[.]\d+|\d+(?:[.]\d+)?[ \t]*%)[ \t]*\)?)?"
"""How likely a verdict is; one with another beside it is none."""
_LEFT = r"[\"'`*_~ \t\[(<$\\{]*"
_ITEM = re.compile(r"\A\W*\d{1,2}[.,)]")
