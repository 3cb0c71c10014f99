"""The words of a judge's reply: patterns made of a language pack's words, and the part that counts.

What does not count (reasoning, suppositions, quotations, further speakers) is blanked out, so that
places in the text stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain

from botchat.languages import ENGLISH, PLAIN, Language, built_in

FIELDS = ("choice", "index", "reason")
MARKS = r"[\"'`*_~\s\[\]]*"
SENTENCE = r"(?:\A|(?<=\n)|(?<=[.!?;]))[\s*_`>#(-]{0,20}"
_CHANCE = r"(?:[ \t*_]*[-:=(\u2013]*[ \t]*(?:0?[.]\d+|\d+(?:[.]\d+)?[ \t]*%)[ \t]*\)?)?"
"""Probability of a verdict; one with another next to it is none."""
_LEFT = r"[\"'`*_~ \t\[(<$\\{]*"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, longest first; blanks in them may be any, or none."""
    plain = sorted({word.translate(PLAIN) for word in words}, key=lambda word: (-len(word), word))
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[\W_]", "", name.lower())


def known_words(language: Language, key: str) -> list[str]:
    """Return a list of the pack, with the English and foreign words."""
    packs = dict.fromkeys((language, ENGLISH))
    parts = [part for pack in packs for part in (pack.labels, pack.reading, pack.pack.report)]
    of_key = (getattr(part, key, ()) for part in parts)
    return [*chain.from_iterable(of_key), *ENGLISH.reading.foreign.get(key, ())]


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
        numerals = [list(enumerate(pack.labels.numerals, 1)) for pack in (language, ENGLISH)]
        self.numerals = {word.lower(): n for words in numerals for n, word in words}
        self.fields = {self._bare(name): key for key in FIELDS for name in self._known(key)}
        self.origins = self._table("person", "machine")
        self.answers = self._table("no", "yes")
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
        marks = any_of((*labels.choice, *labels.index, *labels.reason, *labels.first))
        names = any_of(word for words in language.reading.names.values() for word in words)
        self.marks = _compiled(
            rf"(?:{marks}|{any_('withdrawn')})[\"'`*_~\s]*:|(?:{names})[ \t]*[12]"
        )

    def _set_labels(self, language: Language) -> None:
        """Set the patterns of labelled verdicts, indices and reasons."""
        any_ = self._any
        edge = self._edge
        spaced = self._spaced
        choice, index, why = map(any_, FIELDS)
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
        self.choice = self._mark(choice)
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
        words = (word for key in ("first", "second") for word in self._known(key))
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

    def _table(self, *keys: str) -> dict[str, int]:
        return {self._bare(word): n for n, key in enumerate(keys) for word in self._known(key)}

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
        text = pattern.sub(lambda match: _blank(match[0]), text)
    text = _TAG.sub(lambda match: _blank(match[0], "\n" if match["block"] else " "), text)
    text = _BOXED_MARK.sub(lambda match: _blank(match[0], "\n"), text)
    others = reply_patterns(language).role.finditer(text)
    start = next((at.start() for at in others if text[: at.start()].strip()), 0)
    if start:
        text = text[:start] + _blank(text[start:])
    for match in reply_patterns(language).supposed.finditer(text.translate(language.plain)):
        text = f"{text[: match.start()]}{_blank(match[0])}{text[match.end() :]}"
    return text


def strip_quotes(text: str, language: Language = ENGLISH) -> str:
    """Return the reply without quotations of others: behind "said", and on lines that quote."""
    text = reply_patterns(language).quoted.sub(lambda match: _blank(match[0]), text)
    lines = text.splitlines(keepends=True)
    if all(line.lstrip().startswith(">") or not line.strip() for line in lines):
        return text
    return "".join(_blank(line) if line.lstrip().startswith(">") else line for line in lines)


def find_retraction(plain: str, after: int, language: Language = ENGLISH) -> int | None:
    """Return where words end that take back the verdict that ends at ``after``, if any do."""
    w = reply_patterns(language)
    undecided = w.undecided.search(plain, after)
    for match in w.withdrawn.finditer(plain, after):
        start = match.start("cue")
        line = plain[max(after, plain.rfind("\n", 0, start) + 1) : start]
        at_once = not re.search(r"[^\W_]", plain[after:start])
        begins = match["begins"] is not None and (plain[start].isalnum() or not line.strip())
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
        head, _, *rows = [line.strip().strip("|").split("|") for line in table[0].splitlines()]
        yield head, rows, table.span()


def _blank(words: str, first: str = " ") -> str:
    return first + re.sub(r"[^\n]", " ", words[1:])
