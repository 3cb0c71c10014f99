"""The words of a judge's reply: patterns made of a language pack's words, and the part that counts.

First comes the judge's own turn: without thoughts, without suppositions, up to where somebody else
speaks. What does not count is blanked out, so that places in the text stay the same. Only then are
marks looked for, and the last given one is read. Each pattern has the sentences that it reads in
``tests/data/rows/parts_of_a_reply.jsonl``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain

from msgspec.structs import asdict

from botchat.interfaces import VerdictReason
from botchat.languages import ENGLISH, PLAIN, Language, built_in
from botchat.thoughts import find_thoughts

FIELDS = ("choice", "index", "reason")
MARKS = r"[\"'`*_~\s\[\]]*"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words, longest first; blanks in them may be any, or none."""
    plain = sorted(sorted({word.translate(PLAIN) for word in words}), key=len, reverse=True)
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


def plain_name(name: str) -> str:
    """Return the plain letters and digits of a name, equal where only case differs."""
    return re.sub(r"[\W_]", "", name.translate(PLAIN).casefold())


def known_words(language: Language, key: str) -> list[str]:
    """Return a list of the pack, with the English and foreign words.

    Raises `KeyError` for a name that no list has: it would be a list without words.
    """
    lists: list[Sequence[str]] = []
    for pack in dict.fromkeys((language, ENGLISH)):
        for part in (pack.labels, pack.reading, pack.pack.report):
            if part is not None:
                fields = asdict(part)
                if key in fields:
                    lists.append(fields[key])
    if not lists:
        raise KeyError(key)
    lists.append(ENGLISH.reading.foreign.get(key, ()))
    return list(chain.from_iterable(lists))


def compiled(template: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    """Return the pattern in which ``{name}`` stands for a part; its own braces are doubled."""
    return re.compile(f"(?im){template}".format_map(parts))


class WordParts(dict[str, str]):
    """Parts of patterns by name; any other name is a list of `known_words`."""

    def __init__(self, language: Language, parts: Mapping[str, str]) -> None:
        """Take the parts that are no lists of words."""
        super().__init__(parts)
        self._language = language

    def __missing__(self, key: str) -> str:
        """Return the pattern of a list."""
        return any_of(known_words(self._language, key))

    def add(self, name: str, template: str) -> None:
        """Add a part that is made of others."""
        self[name] = template.format_map(self)


_PARTS = {
    "MARKS": MARKS,
    "end": r"(?![A-Za-z])",
    "begins": r"(?:\A|(?<=\n)|(?<=[.!?;]))[\s*_`>#(-]{0,20}",
    "sentence": r"(?:[^\n.!?;]|[.](?=\d)){0,400}",
    "line": r"\n[^\n:]{0,40}[:=][ \t]*[^\s:][^\n]*",
    # A probability of a verdict; one with another next to it is none.
    "chance": r"(?:[ \t*_]*[-:=(\u2013]*[ \t]*(?:0?[.]\d+|\d+(?:[.]\d+)?[ \t]*%)[ \t]*\)?)?",
    "left": r"[\"'`*_~ \t\[(<$\\{]*",
}
_SPACED = {
    "edge": r"(?<![^\W\d_])",
    "others_begin": r"(?<![^\W\d_])",
    "label_ends": r"(?:[:=]|(?!\w))",
    "blanks": r"[ \t]+",
    "gap": "+",
}
_UNSPACED = {
    "edge": "(?<![A-Za-z])",
    "others_begin": "",
    "label_ends": "[:=]",
    "blanks": r"[ \t]*",
    "gap": "*",
}
"""Parts of a language in which blanks part words, and of another."""


class ReplyPatterns:
    """Patterns of a language's words, with the English ones; of texts that are `folded`."""

    def __init__(self, language: Language) -> None:
        self._known = partial(known_words, language)
        self._plain = {**language.plain, **str.maketrans("\u201e\u00ab\u00bb", '"""')}
        self._space = ""
        parts = _PARTS | _UNSPACED
        if language.pack.units == "words":
            self._space = " "
            parts = _PARTS | _SPACED
        self.numerals: dict[str, int] = {}
        for pack in (language, ENGLISH):
            for n, word in enumerate(pack.labels.numerals, 1):
                self.numerals[word.lower()] = n
        self.ordinals: dict[str, int] = {}
        for n, word in enumerate(self._known("nth"), 1):
            self.ordinals |= {word: n, f"the {word}": n}
        self.fields = self._table(dict(zip(FIELDS, FIELDS, strict=True)))
        self.origins = self._table({"person": "person", "machine": "machine"})
        self.answers = self._table({"no": "person", "yes": "machine"})
        self._set_patterns(language, WordParts(language, parts))

    def _set_patterns(self, language: Language, parts: WordParts) -> None:
        labels = language.labels
        names = self._known("first") + self._known("second")
        parts["side"] = any_of(name for name in names if len(name) > 1)
        parts["names"] = any_of(chain.from_iterable(language.reading.names.values()))
        parts["end_mark"] = re.escape(labels.end.strip("<>"))
        parts["own_marks"] = any_of(labels.choice + labels.index + labels.reason + labels.first)
        # A number in words does not go on, and without blanks digits do not go on in words.
        signs = "A-Za-z"
        digits = r"-?\d+(?!\d)"
        if not self._space:
            signs = re.escape("".join(sorted(set("".join(labels.numerals))))) or signs
            digits = rf"-?\d+(?![\d{signs}])"
        parts["number"] = rf"{digits}|(?:{any_of(labels.numerals)})(?![{signs}\d])"
        parts.add("next", r"{edge}(?:{index}|{reason}){MARKS}{label_ends}|[ \t]-[ \t]|[-=]>")
        parts.add("said", r"(?P<said>(?:(?!{next})[^\n;,.(}}\"'`*|<\u2013\u2014\u2192])*)")
        self._set_own_turn(parts)
        self._set_what_counts(parts)
        self._set_labels(parts)
        self._set_words(parts)

    def _set_own_turn(self, parts: WordParts) -> None:
        """Set the patterns of where the judge's own turn ends."""
        # Tags that a verdict may stand between; what stands between others was not said.
        self.tag = compiled(
            r"[<\[](?P<closes>/?)(?!(?:{choice}|{index}|{reason}|{also}|{answers})[ \]>])"
            r"(?P<name>[a-z][\w:.-]{{1,30}})(?:[ ][^<>\[\]\n]*)?[>\]]",
            parts,
        )
        self.framed = compiled(r"<(?:{answers}|{also})>(?=\s*[<\w][^\n:>]{{0,30}}[:>])", parts)
        # One of several judges whom a reply plays.
        self.judge = compiled(
            r"^[ \t>*_#-]*\[?(?:(?:{judges})[ \t]*#?(?:\d{{1,2}}|[A-E]|{numerals})\b"
            r"|(?:{nth})[ \t]+(?:{judges}))"
            r"\]?[*_]*(?:[ \t]*\([^()\n]{{0,30}}\))?[ \t]*:",
            parts,
        )
        # Where a reply goes on as another speaker of a debate.
        self.role = compiled(
            r"^[ \t>*_#-]*(?:\[(?:{roles})(?:[ #]*\d+)?\][^\n:]{{0,30}}|(?:{speakers})[*_]*):",
            parts,
        )
        # Where it goes on with the next question: our frame, a heading of instructions, a turn.
        self.next_question = compiled(
            r"^[ \t>*_]*A[*_]*[ \t]*:[^\n]*<(?:{end_mark}|chat_end)>"
            r"|^[^\n]{{0,40}}(?:{side}|{examples})[^\n]{{0,20}}\n+[ \t>*_]*A[*_]*[ \t]*:"
            r"|^[ \t]*(?:#+[ \t]*(?:{headings})\b|\[(?:{headings})\]"
            r"|(?:{headings})[ \t]*\d*[ \t]*:)",
            parts,
        )

    def _set_what_counts(self, parts: WordParts) -> None:
        """Set the patterns of text that is no verdict of the judge's own."""
        self.withdrawn = compiled(
            r"(?P<begins>{begins}(?:\w{{1,8}}[,.!\u2026]+\s*){{0,2}})?(?P<cue>{withdrawn})", parts
        )
        self.undecided = compiled(r'{begins}[^\n.!?;:"]{{0,40}}(?:{undecided})', parts)
        self.supposed = compiled(
            r"{begins}(?!(?:{insists}){end})(?:{supposed}){end}{sentence}(?:{would}){end}"
            r"(?:{sentence}(?:{say})[ \t]*:?[ \t]*(?:{line})+|{sentence})",
            parts,
        )
        # A quotation of others, and what others say, or ask for.
        self.quoted = compiled(r'(?:{others}){end}[^\n".]{{0,20}}"[^"]*"', parts)
        self.others = compiled(
            r"{others_begin}(?:{others}){end}|(?<!\w)[AB][*_ ]*:[\s*_`]*\Z", parts
        )
        # What only an answer in this language has.
        self.marks = compiled(
            r"(?:{own_marks}|{withdrawn})[\"'`*_~\s]*:|(?:{names})[ \t]*[12]", parts
        )

    def _set_labels(self, parts: WordParts) -> None:
        """Set the patterns of labelled verdicts, indices and reasons."""
        # Without its colon, on a line of its own: a table, brackets, "is", a dash, a heading.
        parts.add(
            "gives",
            r"(?:(?:{blanks}(?:{copula}))?{MARKS}(?P<sep>[:=]){MARKS}"
            r"|[ \t*_`]*\|[ \t*_`]*|\][ \t]*|{blanks}(?:{copula}){blanks}"
            r"|[ \t]*[\u2013\u2014][ \t]*|(?<=\w)>[ \t]*"
            r"|[ \t*_#]*\n\s*(?=[\"'*_`\[]*\w)){left}{said}",
        )
        self.choice = compiled(r"{edge}(?:{choice}){gives}", parts)
        self.also = compiled(r"{edge}(?:{also}){gives}", parts)  # where nothing else is a mark
        self.index = compiled(
            r"{edge}(?:{index})(?:{MARKS}[:=]|[ \t*_`]*\||(?<=\w)>)[\s\"'`*_~\[(#]*"
            r"(?:(?:{ordinal})[\s.#\[(]*)*(?P<said>{number}|[^\n;,}}|<]*)",
            parts,
        )
        # An index without its label, directly behind a verdict.
        self.index_at_once = compiled(
            r"[ \t]*\((?P<said>\d{{1,9}})\)|[ \t,;(]*(?:{since})[ \t]*"
            r"(?:{ordinal})[ \t#]*(?P<other>\d{{1,9}})",
            parts,
        )
        self.reason = compiled(
            r"{edge}(?:{reason}){MARKS}(?:[:=]|(?<=\])|(?<=\w)>|[ \t]*\|)\s*", parts
        )
        # The form of a reply, as the prompt gives it, behind a verdict in it.
        self.placeholder = compiled(
            r"(?:\W*(?:{index}){MARKS}[:=][^\n]*)?\W*{edge}(?:{reason}){MARKS}[:=]{MARKS}"
            r"(?:{placeholder})",
            parts,
        )

    def _set_words(self, parts: WordParts) -> None:
        """Set the patterns of the words of a verdict and of the words next to them."""
        space = self._space
        before = self._phrases("before")
        after = self._phrases("after")
        alternative = self._phrases("alternative")
        self.before = re.compile(rf"\A(?:(?:{before}){space})+")
        self.after = re.compile(rf"{space}(?:{after})\Z")
        self.alternative = re.compile(rf"\A(?:(?:{alternative}){space})+")
        self.next_to = compiled(
            r"{chance}[\"'`*_ \t]*(?:[,;(/|\u2013\u2014-]|\s*(?:{alternative})\s+)"
            r"[\"'`*_ \t]*{said}",
            parts,
        )
        # What says that there is no verdict, in place of one.
        self.abstains = compiled(r"{MARKS}(?:{abstains}|[?\u2013\u2014-]+)(?!\w)", parts)
        # What is said of a verdict right behind it, and the words next to whose it says it is.
        self.gloss = compiled(
            r"[\s\"'`*_]*[(\[,.;:=|\u2013\u2014-][\s\"'`*_(-]*(?P<said>[^\n.;,:()\]|\u2013\u2014]*)",
            parts,
        )
        self.gloss_begins = re.compile(rf"\A(?:(?:{self._phrases('gloss_begins')}){space})+")
        self.gloss_ends = re.compile(rf"(?:{space}(?:{self._phrases('gloss_ends')}))+\Z")
        # One of two dialogues and whose it is, both on one line.
        self.told = compiled(
            r"(?P<name>{side})[\"'`*_ \t]*(?:[(:=|\u2013\u2014-]|{blanks}(?:{copula}){blanks})"
            r"[\"'`*_ \t]*(?P<said>[^\n.;,:()|/\u2013\u2014]*)",
            parts,
        )
        # Another number, or the rest of one, behind a number.
        self.more = compiled(r"[.](?!0(?!\d))\d|,\d{{3}}(?!\d)|\s*(?:{alternative})\s*\d", parts)
        # What ends a sentence, or leads to one's own verdict.
        self.boundary = compiled(
            r"(?:[.!?;]|[^\W\d_]\)|{edge}(?:{lead})[ \t]*[:,]?)[\s*_`\[(]*\Z", parts
        )
        # The verdict behind a withdrawn one, and what leads to it.
        self.anew = compiled(r"\W*(?:(?:{anew})\W{gap})*{said}", parts)
        # One of two dialogues and whose it is, on a line that says nothing else.
        parts.add(
            "side_begins",
            r"^[^\w\n>\[~]*(?:\d[.)][^\w\n>\[~]*)?(?P<name>{side})[\"'`*_ \t]*"
            r"(?:[:=|\u2013\u2014]+|[ \t]-[ \t])",
        )
        self.side_begins = compiled("{side_begins}", parts)
        self.side = compiled(r"{side_begins}(?P<said>[^\n?%:|;,./(]*+)[^\w\n?%]*$", parts)
        self.before_sides = compiled(
            r"(?:\A|[.!?;]|[-|=`{{]\n|^[\W_]*(?:{choice}|{also})[*_ \t]*[:\n])[\s*_]*\Z", parts
        )

    def _phrases(self, key: str) -> str:
        return any_of({self._bare(word) for word in self._known(key)})

    def folded(self, text: str) -> str:
        """Return the text with plain digits and marks, as long as it was."""
        return text.translate(self._plain)

    def origin(self, words: str) -> str | None:
        """Return whether words say that a person or a machine takes part; None: neither."""
        bare = self.gloss_begins.sub("", self.normal(words))
        return self.origins.get(bare) or self.origins.get(self.gloss_ends.sub("", bare))

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
        return bare.replace(" ", self._space)


reply_patterns = cache(ReplyPatterns)


_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
    "|(?<=[\x00-\x7f])[\u200c\u200d\U000e0000-\U000e007f]"
    "|[\u200c\u200d\U000e0000-\U000e007f](?=[\x00-\x7f])"
)
"""Characters without ink; joiners count where they join other letters than those of ASCII."""
_TURN = re.compile(
    r"(?i)<[|\uff5c](?:im_start|im_end|end|e[ou][tm]|e[ot]m?_id|start_header_id|begin_of_text|user"
    r"|assistant|system|human|(?:end|start)[_\u2581]?of[_\u2581]?(?:text|turn|sentence)(?:_token)?"
    r"|(?:user|chatbot|system)_token|turn|sep)[|\uff5c]>|</?s>|<(?:start|end)_of_turn>"
    r"|<[be]os>|<\|turn>|<turn\|>|\[/?INST\]|<</?SYS>>"
)
"""Begins or ends somebody's turn, in the marks of chat templates."""
_TAG = re.compile(
    r"(?i)</?(?:(?P<block>p|div|br|li|ul|ol|tr|table|body|html|h[1-6]|tool_call)"
    r"|b|i|u|em|strong|span|font|code|mark|td|th)(?:\s[^<>\n]*)?/?>"
)
_NOT_OWN = re.compile(r"(?is)<(blockquote|q|del|s|strike)>.*?</\1>")
_TEMPLATE = re.compile(r"<\|[^|<>\n]{1,40}\|>")
_BOXED_MARK = re.compile(r"\\boxed\{(?=[^{}\n]*:)")


def read_as_seen(
    text: str, language: Language, read: Callable[[str], VerdictReason]
) -> VerdictReason:
    """Read a reply without invisible characters; of several judges whom it plays what all say."""
    text = _INVISIBLE.sub("", html.unescape(text))
    starts = [match.start() for match in reply_patterns(language).judge.finditer(text)]
    if len(starts) < 2:
        return read(text)
    ends = starts[1:] + [len(text)]
    verdicts = {read(text[start:end])[0] for start, end in zip(starts, ends, strict=True)}
    if len(verdicts) == 1:
        return verdicts.pop(), " ".join(text.split())
    return None, " ".join(text.split())


def own_turn(text: str, language: Language, given: re.Pattern[str] | None = None) -> str:
    """Return a reply without thoughts, HTML, suppositions and what others say behind it.

    ``given``: a mark of a verdict. Behind one, our own frame begins the next question.
    """
    for start, end in find_thoughts(text):
        text = text[:start] + _blanks(text[start:end]) + text[end:]
    w = reply_patterns(language)
    text = w.framed.sub(_blank_line, _without_asides(_NOT_OWN.sub(blank, text), w))
    ends = [match.start() for match in chain(_TURN.finditer(text), w.role.finditer(text))]
    if given is not None:
        first = given.search(text.translate(language.plain))
        if first is not None:
            ends += [match.start() for match in w.next_question.finditer(text, first.end())]
    for end in sorted(ends):
        if re.search(r"\w", text[:end]):
            text = text[:end] + _blanks(text[end:])
            break
    text = _TAG.sub(_blank_tag, _TEMPLATE.sub(blank, text))
    text = _BOXED_MARK.sub(_blank_line, text)
    for match in w.supposed.finditer(text.translate(language.plain)):
        text = f"{text[: match.start()]}{blank(match)}{text[match.end() :]}"
    return text


def _without_asides(text: str, w: ReplyPatterns) -> str:
    """Blank what stands between tags of other names than those of an answer, such as <draft>."""
    opened: dict[str, int] = {}
    for tag in w.tag.finditer(text):
        name = tag["name"].lower()
        if not tag["closes"]:
            opened.setdefault(name, tag.start())
        elif name in opened:
            start = opened.pop(name)
            text = text[:start] + _blanks(text[start : tag.end()]) + text[tag.end() :]
    return text


def strip_quotes(text: str, language: Language) -> str:
    """Return the reply without quotations of others: behind "said", and on lines that quote."""
    text = reply_patterns(language).quoted.sub(blank, text)
    own = ""
    for line in text.splitlines(keepends=True):
        own += _blanks(line) if line.lstrip().startswith(">") else line
    if own.strip():
        return own
    return text


def find_retraction(plain: str, after: int, language: Language) -> int | None:
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
    for pack in built_in().values():
        plain = text.translate(pack.plain)
        if pack.pack.units == "characters" and reply_patterns(pack).marks.search(plain):
            return pack
    return language


_TABLE = re.compile(r"(?m)^.*\|.*\n(?=.*\|)[ \t|:-]*-[ \t|:-]*\r?(?:\n.*\|.*)+$")


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
