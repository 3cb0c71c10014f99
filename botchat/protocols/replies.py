"""The words of a judge's reply: patterns made of a language pack's words, and the part that counts.

What does not count (reasoning, suppositions, quotations, further speakers) is blanked out, so that
places in the text stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain

from msgspec.structs import asdict

from botchat.languages import ENGLISH, PLAIN, Language, built_in

FIELDS = ("choice", "index", "reason")
MARKS = r"[\"'`*_~\s\[\]]*"
SENTENCE = r"(?:\A|(?<=\n)|(?<=[.!?;]))[\s*_`>#(-]{0,20}"
_CHANCE = r"(?:[ \t*_]*[-:=(\u2013]*[ \t]*(?:0?[.]\d+|\d+(?:[.]\d+)?[ \t]*%)[ \t]*\)?)?"
"""Probability of a verdict; one with another next to it is none."""
_LEFT = r"[\"'`*_~ \t\[(<$\\{]*"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, longest first; blanks in them may be any, or none."""
    plain = sorted(sorted({word.translate(PLAIN) for word in words}), key=len, reverse=True)
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


def plain_name(name: str) -> str:
    """Return the plain letters and digits of a name, equal where only case differs."""
    return re.sub(r"[\W_]", "", name.translate(PLAIN).casefold())


def known_words(language: Language, key: str) -> list[str]:
    """Return a list of the pack, with the English and foreign words."""
    words: list[str] = []
    for pack in dict.fromkeys((language, ENGLISH)):
        for part in (pack.labels, pack.reading, pack.pack.report):
            if part is not None:
                words += asdict(part).get(key, ())
    return words + list(ENGLISH.reading.foreign.get(key, ()))


def any_known(language: Language, key: str) -> str:
    """Return a pattern of the words of `known_words`."""
    return any_of(known_words(language, key))


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


class ReplyPatterns:
    """Patterns of a language's words, with the English ones; of texts that are `folded`."""

    def __init__(self, language: Language) -> None:
        self._known = partial(known_words, language)
        self._any = partial(any_known, language)
        self._spaced = language.pack.units == "words"
        quotes = str.maketrans("\u201e\u00ab\u00bb", '"""')
        self._plain = {**language.plain, **quotes}
        self._edge = r"(?<![^\W\d_])" if self._spaced else "(?<![A-Za-z])"
        self.numerals: dict[str, int] = {}
        for pack in (language, ENGLISH):
            for n, word in enumerate(pack.labels.numerals, 1):
                self.numerals[word.lower()] = n
        self.fields = self._table(dict(zip(FIELDS, FIELDS, strict=True)))
        self.origins = self._table({"person": "person", "machine": "machine"})
        self.answers = self._table({"no": "person", "yes": "machine"})
        self._set_what_counts(language)
        self._set_labels(language)
        self._set_words()

    def _set_what_counts(self, language: Language) -> None:
        """Set the patterns of text that is no verdict of the judge's own."""
        any_ = self._any
        end = r"(?![A-Za-z])"
        line = r"\n[^\n:]{0,40}[:=][ \t]*[^\s:][^\n]*"
        sentence = r"(?:[^\n.!?;]|[.](?=\d)){0,400}"
        begins = rf"(?P<begins>{SENTENCE}(?:\w{{1,8}}[,.!\u2026]+\s*){{0,2}})?"
        self.withdrawn = _compiled(rf"{begins}(?P<cue>{any_('withdrawn')})")
        self.undecided = _compiled(rf'{SENTENCE}[^\n.!?;:"]{{0,40}}(?:{any_("undecided")})')
        self.supposed = _compiled(
            rf"{SENTENCE}(?!(?:{any_('insists')}){end})(?:{any_('supposed')}){end}{sentence}"
            rf"(?:{any_('would')}){end}"
            rf"(?:{sentence}(?:{any_('say')})[ \t]*:?[ \t]*(?:{line})+|{sentence})"
        )
        # Where a reply goes on as another speaker of a debate.
        role = rf"(?:{any_('roles')})(?:[ #]*\d+)?"
        names = rf"(?:{any_('speakers')})[*_]*"
        self.role = _compiled(rf"^[ \t>*_#-]*(?:\[{role}\][^\n:]{{0,30}}|{names}):")
        # A quotation of others, and what others say, or ask for.
        self.quoted = _compiled(rf'(?:{any_("others")}){end}[^\n".]{{0,20}}"[^"]*"')
        self.others = _compiled(
            rf"{self._edge if self._spaced else ''}(?:{any_('others')})(?![A-Za-z])"
            r"|(?<!\w)[AB][*_ ]*:[\s*_`]*\Z"
        )
        # What only an answer in this language has.
        labels = language.labels
        marks = any_of(labels.choice + labels.index + labels.reason + labels.first)
        names = any_of(chain.from_iterable(language.reading.names.values()))
        self.marks = _compiled(
            rf"(?:{marks}|{any_('withdrawn')})[\"'`*_~\s]*:|(?:{names})[ \t]*[12]"
        )

    def _set_labels(self, language: Language) -> None:
        """Set the patterns of labelled verdicts, indices and reasons."""
        any_ = self._any
        edge = self._edge
        spaced = self._spaced
        index = any_("index")
        why = any_("reason")
        # A number in words does not go on, and without blanks digits do not go on in words.
        letters = "".join(set("".join(language.labels.numerals)))
        signs = "A-Za-z" if spaced else re.escape(letters) or "A-Za-z"
        digits = rf"-?\d+(?![\d{'' if spaced else signs}])"
        number = rf"{digits}|(?:{any_of(language.labels.numerals)})(?![{signs}\d])"
        ends = "[:=]"
        if spaced:
            ends = r"(?:[:=]|(?!\w))"
        next_label = rf"{edge}(?:{index}|{why}){MARKS}{ends}|[ \t]-[ \t]|[-=]>"
        self._words = rf"(?P<said>(?:(?!{next_label})[^\n;,.(}}\"'`*|<\u2013\u2014\u2192])*)"
        self.choice = self._mark(any_("choice"))
        self.also = self._mark(any_("also"))  # only where nothing else marks a verdict
        self.index = _compiled(
            rf"{edge}(?:{index})(?:{MARKS}[:=]|[ \t*_`]*\||(?<=\w)>)[\s\"'`*_~\[(#]*"
            rf"(?:(?:{any_('ordinal')})[\s.#\[(]*)*(?P<said>{number}|[^\n;,}}|<]*)"
        )
        # An index without its label, directly behind a verdict.
        self.index_at_once = _compiled(
            rf"[ \t]*\((?P<said>\d{{1,9}})\)|[ \t,;(]*(?:{any_('since')})[ \t]*"
            rf"(?:{any_('ordinal')})[ \t#]*(?P<other>\d{{1,9}})"
        )
        self.reason = _compiled(rf"{edge}(?:{why}){MARKS}(?:[:=]|(?<=\])|(?<=\w)>|[ \t]*\|)\s*")
        # The form of a reply, as the prompt gives it, behind a verdict in it.
        self.placeholder = _compiled(
            rf"(?:\W*(?:{index}){MARKS}[:=][^\n]*)?\W*{edge}(?:{why}){MARKS}[:=]{MARKS}"
            rf"(?:{any_('placeholder')})"
        )

    def _mark(self, words: str) -> re.Pattern[str]:
        # Without its colon, on a line of its own: a table, brackets, "is", a dash, a heading.
        blank = r"[ \t]*"
        if self._spaced:
            blank = r"[ \t]+"
        other = (
            rf"[ \t*_`]*\|[ \t*_`]*|\][ \t]*|{blank}(?:{self._any('copula')}){blank}"
            r"|[ \t]*[\u2013\u2014][ \t]*|(?<=\w)>[ \t]*"
        )
        heading = r"[ \t*_#]*\n\s*(?=[\"'*_`\[]*\w)"
        sep = rf"{MARKS}(?P<sep>[:=]){MARKS}|{other}|{heading}"
        return _compiled(rf"{self._edge}(?:{words})(?:{sep}){_LEFT}{self._words}")

    def _set_words(self) -> None:
        """Set the patterns of the words of a verdict and of the words next to them."""
        any_ = self._any
        space = ""
        if self._spaced:
            space = " "

        def phrases(key: str) -> str:
            return any_of({self._bare(word) for word in self._known(key)})

        self.before = re.compile(rf"\A(?:(?:{phrases('before')}){space})+")
        self.after = re.compile(rf"{space}(?:{phrases('after')})\Z")
        self.alternative = re.compile(rf"\A(?:(?:{phrases('alternative')}){space})+")
        marks = r"[\"'`*_ \t]*"
        self.next_to = _compiled(
            rf"{_CHANCE}{marks}(?:[,;(/|\u2013\u2014-]|\s*(?:{any_('alternative')})\s+)"
            rf"{marks}{self._words}"
        )
        # Another number, or the rest of one, behind a number.
        self.more = _compiled(rf"[.]\d|\s*(?:{any_('alternative')})\s*\d")
        # What ends a sentence, or leads to one's own verdict.
        self.boundary = _compiled(
            rf"(?:[.!?;]|[^\W\d_]\)|{self._edge}(?:{any_('lead')})[ \t]*[:,]?)[\s*_`\[(]*\Z"
        )
        # The verdict behind a withdrawn one, and what leads to it.
        gap = "*"
        if self._spaced:
            gap = "+"
        self.anew = _compiled(rf"\W*(?:(?:{any_('anew')})\W{gap})*{self._words}")
        # One of two dialogues and whose it is, on a line that says nothing else.
        words = self._known("first") + self._known("second")
        name = rf"(?P<name>{any_of(word for word in words if len(word) > 1)})"
        begins = rf"^[^\w\n>\[~]*(?:\d[.)][^\w\n>\[~]*)?{name}[\"'`*_ \t]*"
        self.side_begins = _compiled(rf"{begins}(?:[:=|\u2013\u2014]+|[ \t]-[ \t])")
        self.side = _compiled(self.side_begins.pattern + r"(?P<said>[^\n?%:|;,./(]*+)[^\w\n?%]*$")
        label = rf"^[\W_]*(?:{any_('choice')}|{any_('also')})[*_ \t]*[:\n]"
        self.before_sides = _compiled(rf"(?:\A|[.!?;]|[-|=`{{]\n|{label})[\s*_]*\Z")

    def folded(self, text: str) -> str:
        """Return the text with plain digits and marks, as long as it was."""
        return text.translate(self._plain)

    def normal(self, words: str) -> str:
        """Return words without case, marks and surplus white space."""
        return self._bare(self.folded(words))

    def _table(self, keys: Mapping[str, str]) -> dict[str, str]:
        """Return the meaning of each word of some lists, name of a list -> its meaning."""
        table = {}
        for key, meaning in keys.items():
            for word in self._known(key):
                table[self._bare(word)] = meaning
        return table

    def _bare(self, words: str) -> str:
        bare = " ".join(re.sub(r"[^\w\s/]+|_", " ", words.translate(PLAIN)).lower().split())
        if self._spaced:
            return bare
        return bare.replace(" ", "")


reply_patterns = lru_cache(maxsize=16)(ReplyPatterns)


_THOUGHTS = re.compile(
    r"\A.*(?:</think(?:ing)?>|\[/think\])|\A.*<\|channel\|>final\b|\Aanalysis.*assistantfinal"
    r"|(?:<think(?:ing)?>|\[think\]|<\|channel\|>|\Aanalysis(?=[A-Z<])).*",
    re.DOTALL | re.IGNORECASE,
)
"""Reasoning, and the channels of a chat template up to the final one."""
_TAG = re.compile(
    r"</?(?:(?P<block>p|div|br|li|ul|ol|tr|table|body|html|h[1-6]|tool_call)"
    r"|b|i|u|em|strong|span|font|code|mark|td|th)(?:\s[^<>\n]*)?/?>",
    re.IGNORECASE,
)
_NOT_OWN = re.compile(r"<(blockquote|q|del|s|strike)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_TEMPLATE = re.compile(r"<\|[^|<>\n]{1,40}\|>")
_BOXED_MARK = re.compile(r"\\boxed\{(?=[^{}\n]*:)")


def strip_hypotheticals(text: str, language: Language = ENGLISH) -> str:
    """Return the reply without reasoning, HTML, further speakers and suppositions."""
    for pattern in (_THOUGHTS, _NOT_OWN, _TEMPLATE):
        text = pattern.sub(blank, text)
    text = _TAG.sub(_blank_tag, text)
    text = _BOXED_MARK.sub(_blank_line, text)
    w = reply_patterns(language)
    for match in w.role.finditer(text):
        start = match.start()
        if text[:start].strip():
            text = text[:start] + _blanks(text[start:])
            break
    for match in w.supposed.finditer(text.translate(language.plain)):
        text = f"{text[: match.start()]}{blank(match)}{text[match.end() :]}"
    return text


def strip_quotes(text: str, language: Language = ENGLISH) -> str:
    """Return the reply without quotations of others: behind "said", and on lines that quote."""
    text = reply_patterns(language).quoted.sub(blank, text)
    own = ""
    for line in text.splitlines(keepends=True):
        own += _blanks(line) if line.lstrip().startswith(">") else line
    if own.strip():
        return own
    return text


def find_retraction(plain: str, after: int, language: Language = ENGLISH) -> int | None:
    """Return where words end that take back the verdict that ends at ``after``, if any do."""
    w = reply_patterns(language)
    undecided = w.undecided.search(plain, after)
    for match in w.withdrawn.finditer(plain, after):
        skipped = plain[after : match.start("cue")]
        line = line_before(skipped, len(skipped))
        begins = match["begins"] is not None and (match["cue"][0].isalnum() or not line.strip())
        at_once = not re.search(r"[^\W_]", skipped)
        if (at_once or begins) and line.count('"') % 2 == 0:
            return match.end("cue")
    if undecided:
        return undecided.end()
    return None


def reply_language(text: str, language: Language) -> Language:
    """Return the built-in language without blanks that a reply is marked in, else ``language``."""
    if text.isascii() or language.pack.units == "characters":
        return language
    others = [pack for pack in built_in().values() if pack.pack.units == "characters"]
    marked = (
        pack for pack in others if reply_patterns(pack).marks.search(text.translate(pack.plain))
    )
    return next(marked, language)


_TABLE = re.compile(r"^.*\|.*\n(?=.*\|)[ \t|:-]*-[ \t|:-]*\r?(?:\n.*\|.*)+$", re.MULTILINE)


def find_tables(plain: str) -> Iterator[tuple[list[str], list[list[str]], tuple[int, int]]]:
    """Return (cells of the heading, cells of each row, span) of every table."""
    for table in _TABLE.finditer(plain):
        lines = [line.strip().strip("|").split("|") for line in table[0].splitlines()]
        yield lines[0], lines[2:], table.span()


def line_before(text: str, end: int, since: str = "\n") -> str:
    """Return the line of a text that ``end`` stands on, or what follows ``since``, up to there."""
    return text[text.rfind(since, 0, end) + 1 : end]


def blank(match: re.Match[str]) -> str:
    """Return blanks in place of a match; its lines stay lines."""
    return _blanks(match[0])


def _blank_line(match: re.Match[str]) -> str:
    return f"\n{_blanks(match[0])[1:]}"


def _blank_tag(match: re.Match[str]) -> str:
    if match["block"]:
        return _blank_line(match)
    return blank(match)


def _blanks(words: str) -> str:
    return " " + re.sub(r"[^\n]", " ", words[1:])
