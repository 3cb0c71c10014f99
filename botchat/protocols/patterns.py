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
"""How likely a verdict is; one with another beside it is none."""
_LEFT = r"[\"'`*_~ \t\[(<$\\{]*"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, longest first; blanks in them may be any, or none."""
    plain = longest({word.translate(PLAIN) for word in words})
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


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


class ReplyPatterns:
    """Patterns of a language, with English; of texts with plain marks."""

    def __init__(self, language: Language) -> None:
        of = partial(any_known, language)

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

        edge, line = r"(?![A-Za-z])", r"\n[^\n:]{0,40}[:=][ \t]*[^\s:][^\n]*"
        sentence = r"(?:[^\n.!?;]|[.](?=\d)){0,400}"
        begins = rf"(?P<begins>{SENTENCE}(?:\w{{1,8}}[,.!\u2026]+\s*){{0,2}})?"
        self.withdrawn = compiled(rf"{begins}(?P<cue>{of('withdrawn')})")
        self.undecided = compiled(rf'{SENTENCE}[^\n.!?;:"]{{0,40}}(?:{of("undecided")})')
        self.supposed = compiled(
            rf"{SENTENCE}(?!(?:{of('insists')}){edge})(?:{of('supposed')}){edge}{sentence}"
            rf"(?:{of('would')}){edge}"
            rf"(?:{sentence}(?:{of('say')})[ \t]*:?[ \t]*(?:{line})+|{sentence})"
        )
        # Where a reply goes on as another speaker of a debate.
        roles = rf"(?:{of('roles')})(?:[ #]*\d+)?"
        self.role = compiled(
            rf"^[ \t>*_#-]*(?:\[{roles}\][^\n:]{{0,30}}|(?:{of('speakers')})[*_]*):"
        )
        # A quotation, and who is said to have said it.
        self.quoted = compiled(rf'(?:{of("others")}){edge}[^\n".]{{0,20}}"[^"]*"')
        # What only an answer in this language has.
        labels = language.labels
        marks = any_of((*labels.choice, *labels.index, *labels.reason, *labels.first))
        names = any_of(word for words in language.reading.names.values() for word in words)
        self.marks = compiled(rf"(?:{marks}|{of('withdrawn')})[\"'`*_~\s]*:|(?:{names})[ \t]*[12]")


class VerdictPatterns:
    """The patterns of a language's labels, English beside them; of texts that are `folded`."""

    def __init__(self, language: Language) -> None:
        labels, self._spaced = language.labels, language.pack.units == "words"
        self._plain = {**language.plain, **dict.fromkeys(map(ord, "\u201e\u00ab\u00bb"), '"')}

        of, any_ = partial(known, language), partial(any_known, language)

        def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | flags)

        spaced = self._spaced
        edge = r"(?<![^\W\d_])" if spaced else "(?<![A-Za-z])"
        choice, index, why = map(any_, FIELDS)
        # A number in words does not go on, and without blanks digits do not go on in words.
        signs = "A-Za-z" if spaced else re.escape("".join({*"".join(labels.numerals)})) or "A-Za-z"
        digits = rf"-?\d+(?![\d{'' if spaced else signs}])"
        number = rf"{digits}|(?:{any_of(labels.numerals)})(?![{signs}\d])"
        blank = r"[ \t]+" if spaced else r"[ \t]*"
        is_ = rf"{blank}(?:{any_('copula')}){blank}"
        ends = r"(?:[:=]|(?!\w))" if spaced else "[:=]"
        next_label = rf"{edge}(?:{index}|{why}){MARKS}{ends}"
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
            sep = rf"{MARKS}(?P<sep>[:=]){MARKS}|{other}|{heading}"
            return compiled(rf"{edge}(?:{words})(?:{sep}){_LEFT}{said}")

        def phrases(key: str) -> str:
            plain = longest({self._bare(word) for word in of(key)})
            return "|".join(map(re.escape, plain)) or "(?!)"

        space = " " if spaced else ""
        self.choice = mark(choice)
        # A verdict's mark only where nothing else is one.
        self.also = mark(any_("also"))
        self.index = compiled(
            rf"{edge}(?:{index})(?:{MARKS}[:=]|[ \t*_`]*\||(?<=\w)>)[\s\"'`*_~\[(#]*"
            rf"(?:(?:{any_('ordinal')})[\s.#\[(]*)*(?P<said>{number}|[^\n;,}}|<]*)"
        )
        # An index without its label, directly behind a verdict.
        self.index_at_once = compiled(
            rf"[ \t]*\((?P<said>\d{{1,9}})\)|[ \t,;(]*(?:{any_('since')})[ \t]*"
            rf"(?:{any_('ordinal')})[ \t#]*(?P<other>\d{{1,9}})"
        )
        self.reason = compiled(rf"{edge}(?:{why}){MARKS}(?:[:=]|(?<=\])|(?<=\w)>|[ \t]*\|)\s*")
        self.fields = {self._bare(name): key for key in FIELDS for name in of(key)}
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
            rf"(?:\W*(?:{index}){MARKS}[:=][^\n]*)?\W*{edge}(?:{why}){MARKS}[:=]{MARKS}(?:{any_('placeholder')})"
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
verdict_patterns = lru_cache(maxsize=16)(VerdictPatterns)
