"""Patterns made of the words of a language pack, with the English and foreign ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache, partial

from botchat.languages import ENGLISH, PLAIN, Labels, Language
from botchat.languages.text import longest

FIELDS = ("choice", "index", "reason")
MARKS = r"[\"'`*_~\s\[\]]*"
SENTENCE = r"(?:\A|(?<=\n)|(?<=[.!?;]))[\s*_`>#(-]{0,20}"
_CHANCE = r"(?:[ \t*_]*[-:=(\u2013]*[ \t]*(?:0?[.]\d+|\d+(?:[.]\d+)?[ \t]*%)[ \t]*\)?)?"
"""Probability of a verdict; one with another beside it is none."""
_LEFT = r"[\"'`*_~ \t\[(<$\\{]*"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, longest first; blanks in them may be any, or none."""
    plain = longest({word.translate(PLAIN) for word in words})
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[\W_]", "", name.lower())


def known(language: Language, key: str) -> list[str]:
    """Return a list of ``[labels]`` or ``reading.toml``, with the English and foreign words."""
    part = "labels" if key in Labels.__struct_fields__ else "reading"
    packs = dict.fromkeys((language, ENGLISH))
    words = [word for pack in packs for word in getattr(getattr(pack, part), key)]
    return [*words, *ENGLISH.reading.foreign.get(key, ())]


def any_known(language: Language, key: str) -> str:
    """Return a pattern of the words of `known`."""
    return any_of(known(language, key))


def numerals(language: Language) -> dict[str, int]:
    """Return numbers in words -> their value."""
    packs = dict.fromkeys((language, ENGLISH))
    return {word.lower(): n for pack in packs for n, word in enumerate(pack.labels.numerals, 1)}


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


class ReplyPatterns:
    """Patterns of a language's words, with the English ones; of texts that are `folded`."""

    def __init__(self, language: Language) -> None:
        self._known, self._any = partial(known, language), partial(any_known, language)
        self._spaced = language.pack.units == "words"
        self._plain = {**language.plain, **dict.fromkeys(map(ord, "\u201e\u00ab\u00bb"), '"')}
        self._edge = r"(?<![^\W\d_])" if self._spaced else "(?<![A-Za-z])"
        self.numerals = numerals(language)
        self.fields = {self._bare(name): key for key in FIELDS for name in self._known(key)}
        authors = enumerate(("person", "machine"))
        self.who = {self._bare(word): who for who, key in authors for word in self._known(key)}
        self._set_what_counts(language)
        self._set_labels(language)
        self._set_words()

    def _set_what_counts(self, language: Language) -> None:
        """Set the patterns of what is no verdict of the judge's own."""
        any_, end, line = self._any, r"(?![A-Za-z])", r"\n[^\n:]{0,40}[:=][ \t]*[^\s:][^\n]*"
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
        role, names = rf"(?:{any_('roles')})(?:[ #]*\d+)?", rf"(?:{any_('speakers')})[*_]*"
        self.role = _compiled(rf"^[ \t>*_#-]*(?:\[{role}\][^\n:]{{0,30}}|{names}):")
        # A quotation, and who is said to have said it; what others say, or ask for.
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
        any_, edge, spaced = self._any, self._edge, self._spaced
        choice, index, why = map(any_, FIELDS)
        # A number in words does not go on, and without blanks digits do not go on in words.
        letters = "".join({*"".join(language.labels.numerals)})
        signs = "A-Za-z" if spaced else re.escape(letters) or "A-Za-z"
        digits = rf"-?\d+(?![\d{'' if spaced else signs}])"
        number = rf"{digits}|(?:{any_of(language.labels.numerals)})(?![{signs}\d])"
        ends = r"(?:[:=]|(?!\w))" if spaced else "[:=]"
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
        blank = r"[ \t]+" if self._spaced else r"[ \t]*"
        other = (
            rf"[ \t*_`]*\|[ \t*_`]*|\][ \t]*|{blank}(?:{self._any('copula')}){blank}"
            r"|[ \t]*[\u2013\u2014][ \t]*|(?<=\w)>[ \t]*"
        )
        heading = r"[ \t*_#]*\n\s*(?=[\"'*_`\[]*\w)"
        sep = rf"{MARKS}(?P<sep>[:=]){MARKS}|{other}|{heading}"
        return _compiled(rf"{self._edge}(?:{words})(?:{sep}){_LEFT}{self._words}")

    def _set_words(self) -> None:
        """Set the patterns of the words of a verdict and of what stands next to them."""
        any_, space = self._any, " " if self._spaced else ""

        def phrases(key: str) -> str:
            plain = longest({self._bare(word) for word in self._known(key)})
            return "|".join(map(re.escape, plain)) or "(?!)"

        self.before = re.compile(rf"\A(?:(?:{phrases('before')}){space})+")
        self.after = re.compile(rf"{space}(?:{phrases('after')})\Z")
        self.alternative = re.compile(rf"\A(?:(?:{phrases('alternative')}){space})+")
        self.beside = _compiled(
            rf"{_CHANCE}[\"'`*_ \t]*"
            rf"(?:[,;(/\u2013\u2014-]|(?=(?:{any_('alternative')})[ \t]))[\"'`*_ \t]*{self._words}"
        )
        # Another number, or the rest of one, behind a number.
        self.more = _compiled(rf"[.]\d|\s*(?:{any_('alternative')})\s*\d")
        # What ends a sentence, or leads to one's own verdict.
        self.boundary = _compiled(
            rf"(?:[.!?;]|[^\W\d_]\)|{self._edge}(?:{any_('lead')})[ \t]*[:,]?)[\s*_`\[(]*\Z"
        )
        # The verdict behind a withdrawn one, and what leads to it.
        gap = "+" if self._spaced else "*"
        self.anew = _compiled(rf"\W*(?:(?:{any_('anew')})\W{gap})*{self._words}")
        # One of two dialogues, and whose it is said to be: 0 of humans, 1 of models.
        self.sides = _compiled(
            rf"^[^\w\n]*(?:(?P<first>{any_('first')})|{any_('second')})"
            r"[\"'`*_ \t]*(?:[:=|\u2013\u2014]|[ \t]-[ \t])[\"'`*_ \t]*(?P<said>[^\n.,;(|]*)"
        )

    def folded(self, text: str) -> str:
        """Return the text with plain digits and marks, as long as it was."""
        return text.translate(self._plain)

    def normal(self, words: str) -> str:
        """Return words without case, marks and surplus white space."""
        return self._bare(self.folded(words))

    def _bare(self, words: str) -> str:
        bare = " ".join(re.sub(r"[^\w\s/]+|_", " ", words.translate(PLAIN)).lower().split())
        return bare if self._spaced else bare.replace(" ", "")

    def one_by_one(self, plain: str) -> str | None:
        """Return the verdict of a reply that says of each dialogue whether it is human."""
        authors: tuple[set[int | None], set[int | None]] = (set(), set())
        for match in self.sides.finditer(plain):
            author = self.who.get(self.normal(match["said"]).strip())
            authors[match["first"] is None].add(author)
        if None in authors[0] | authors[1] or not len(authors[0]) == len(authors[1]) == 1:
            return None
        return ("neither", "2", "1", "both")[2 * authors[0].pop() + authors[1].pop()]  # type: ignore[operator]


reply_patterns = lru_cache(maxsize=16)(ReplyPatterns)
