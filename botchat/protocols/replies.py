"""The words of a judge's reply: patterns made of a language pack's words, and the part that counts.

First comes the judge's own turn: without thoughts, without suppositions, up to where somebody else
speaks. What does not count is blanked out, so that places in the text stay the same. Only then are
marks looked for, and the last given one is read. Each pattern of ``reply_patterns.toml`` has the
sentences that it reads, which a test reads.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, groupby, pairwise
from typing import TypeAlias

import msgspec
from msgspec.structs import asdict

from botchat.frames import TomlTable, package_text, package_toml
from botchat.interfaces import VerdictReason
from botchat.languages import ENGLISH, PLAIN, Language, Words, built_in
from botchat.thoughts import find_thoughts

FIELDS = ("choice", "index", "reason")


def patterns_of(words: Iterable[str], joints: str = "_-") -> list[str]:
    """Return the patterns of words, longest first; blanks and ``joints`` may be any, or none."""
    ordered = sorted(sorted(set(words)), key=len, reverse=True)
    joint = rf"[\\s{joints}]*"
    return [re.sub(rf"(?:\\?[\s{joints}])+", joint, re.escape(word)) for word in ordered]


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of the words in plain marks; blanks in them may be any, or none.

    It is for use without regard to capitals, where `re` tries all alternatives at every letter of a
    text: words that begin alike are one.
    """
    plain = sorted((word.translate(PLAIN) for word in words), key=str.lower)
    groups = []
    for letter, alike in groupby(plain, lambda word: word.lower()[:1]):
        ends = "|".join(patterns_of([word[1:] for word in alike], ""))
        groups.append(f"{re.escape(letter)}(?:{ends})")
    return "|".join(groups) or "(?!)"


def plain_name(name: str) -> str:
    """Return the plain letters and digits of a name, equal where only case differs."""
    return re.sub(r"[\W_]", "", name.translate(PLAIN).casefold())


def known_words(language: Language, key: str) -> list[str]:
    """Return a list of the pack, with the English and foreign words.

    Raises `KeyError` for a name that no list has: it would be a list without words.
    """
    words: list[str] = []
    for pack in dict.fromkeys((language, ENGLISH)):
        for part in (pack.labels, pack.reading, pack.pack.report):
            if part is not None:
                words += asdict(part).get(key, ())
    words += ENGLISH.reading.foreign.get(key, ())
    if not words:
        raise KeyError(key)
    return words


class _Template(TomlTable, frozen=True):
    """A pattern with names of parts, and sentences with what it finds in each."""

    pattern: str
    reads: list[tuple[str, str]]


class _Templates(TomlTable, frozen=True):
    """The whole ``reply_patterns.toml``."""

    parts: dict[str, str]
    frame: str
    spaced: dict[str, str]
    unspaced: dict[str, str]
    reply: dict[str, _Template]
    score: dict[str, _Template]
    report: dict[str, _Template]


TEMPLATES = package_toml("protocols/reply_patterns.toml", _Templates)

Pattern: TypeAlias = re.Pattern[str]


class _Columns(TomlTable, frozen=True):
    """Names of columns of texts and pairs."""

    texts: Words
    questions: Words
    ids: Words
    human_scores: Words
    human_verdicts: Words


class _Marks(TomlTable, frozen=True):
    """The whole ``marks.toml``."""

    end_like: Pattern
    speaker_like: Pattern
    verdict_like: Pattern
    label_like: Pattern
    template_like: Pattern
    one_word: Pattern
    breaks: Pattern
    invisible: Pattern
    turn: Pattern
    tag: Pattern
    not_own: Pattern
    template: Pattern
    boxed_mark: Pattern
    quoted_line: Pattern
    table: Pattern
    paired: Pattern
    struck: Pattern
    box: Pattern
    list_item: Pattern
    few_words: Pattern
    error_head: Pattern
    error_item: Pattern
    number_like: Pattern
    heading_like: Pattern
    text_lead: Pattern
    sentence_end: Pattern
    quote_begins: Pattern
    after_quote: Pattern
    total: Pattern
    elision: Pattern
    next_turn: Pattern
    answer_frame: Pattern
    answer_score: Pattern
    report_frame: Pattern
    answer_column: Pattern
    side: Pattern
    columns: _Columns


def _compiled(_: object, pattern: str) -> Pattern:
    return re.compile(pattern.replace("\n", ""))


MARKS = msgspec.toml.decode(
    package_text("protocols/marks.toml"),
    type=_Marks,
    dec_hook=_compiled,
)


class WordParts(dict[str, str]):
    """Parts of patterns by name, each made of others; any other name is a list of `known_words`."""

    def __init__(self, language: Language) -> None:
        """Take the parts that are no lists of words."""
        super().__init__()
        spacing = TEMPLATES.unspaced
        if language.spaced:
            spacing = TEMPLATES.spaced
        self._templates = TEMPLATES.parts | spacing
        self._language = language

    def __missing__(self, key: str) -> str:
        """Return the pattern of a part, or of a list."""
        if key in self._templates:
            self[key] = self.filled(self._templates[key])
        else:
            self[key] = any_of(known_words(self._language, key))
        return self[key]

    def filled(self, template: str) -> str:
        """Return a template, which may have several lines, with its parts."""
        return template.replace("\n", "").format_map(self)

    def compile_into(self, patterns: object, templates: Mapping[str, _Template]) -> None:
        """Set the patterns of an object, which declares their names."""
        for name, template in templates.items():
            setattr(patterns, name, re.compile(f"(?im){self.filled(template.pattern)}"))


class ReplyPatterns:
    """Patterns of a language's words, with the English ones; of texts that are `folded`."""

    tag: Pattern
    framed: Pattern
    judge: Pattern
    role: Pattern
    next_question: Pattern
    withdrawn: Pattern
    undecided: Pattern
    supposed: Pattern
    quoted: Pattern
    others: Pattern
    marks: Pattern
    choice: Pattern
    also: Pattern
    index: Pattern
    index_at_once: Pattern
    reason: Pattern
    placeholder: Pattern
    next_to: Pattern
    either: Pattern
    abstains: Pattern
    gloss: Pattern
    side_origin: Pattern
    more: Pattern
    boundary: Pattern
    anew: Pattern
    side_begins: Pattern
    side: Pattern
    before_sides: Pattern
    before: Pattern
    after: Pattern
    alternative: Pattern
    gloss_begins: Pattern
    gloss_ends: Pattern

    def __init__(self, language: Language) -> None:
        self._known = partial(known_words, language)
        self._plain = {**language.plain, **str.maketrans("\u201e\u00ab\u00bb", '"""')}
        self.numerals: dict[str, int] = {}
        self.ordinals: dict[str, int] = {}
        for pack in (language, ENGLISH):
            for n, word in enumerate(pack.labels.numerals, 1):
                self.numerals[word.lower()] = n
            for n, word in enumerate(pack.reading.nth, 1):
                self.ordinals |= {word: n, f"the {word}": n, f"the {word} utterance": n}
        labels = language.labels
        parts = WordParts(language)
        self._space = parts["space"]
        self.fields = self.table({name: name for name in FIELDS})
        self.origins = self.table({"person": "person", "machine": "machine"})
        self.answers = self.table({"no": "person", "yes": "machine"})
        names = self._known("first") + self._known("second")
        parts["side"] = any_of(name for name in names if len(name) > 1)
        parts["names"] = any_of(chain.from_iterable(language.reading.names.values()))
        parts["end_mark"] = re.escape(labels.end.strip("<>"))
        parts["own_marks"] = any_of(labels.choice + labels.index + labels.reason + labels.first)
        parts["own_numerals"] = any_of(labels.numerals)
        parts["signs"] = re.escape("".join(sorted(set("".join(labels.numerals))))) or "A-Za-z"
        for key in ("before", "after", "alternative", "gloss_begins", "gloss_ends"):
            parts[f"bare_{key}"] = any_of({self._bare(word) for word in self._known(key)})
        parts.compile_into(self, TEMPLATES.reply)

    def folded(self, text: str) -> str:
        """Return the text with plain digits and marks, as long as it was."""
        return text.translate(self._plain)

    def origin(self, words: str) -> str | None:
        """Return whether words say that a person or a machine takes part; None: neither."""
        bare = self.normal(words)
        begun = self.gloss_begins.sub("", bare)
        ended = self.gloss_ends.sub("", begun)
        return self.origins.get(bare) or self.origins.get(begun) or self.origins.get(ended)

    def origin_or_answer(self, words: str) -> str | None:
        """Return the same, where Yes and No answer whether a machine does."""
        return self.answers.get(self.normal(words)) or self.origin(words)

    def normal(self, words: str) -> str:
        """Return words without case, marks and surplus white space."""
        return self._bare(self.folded(words))

    def table(self, keys: Mapping[str, str]) -> dict[str, str]:
        """Return the meaning of each word of some lists, name of a list -> its meaning."""
        table: dict[str, str] = {}
        for key, meaning in keys.items():
            for word in self._known(key):
                table.setdefault(self._bare(word), meaning)
        return table

    def _bare(self, words: str) -> str:
        bare = " ".join(re.sub(r"[^\w\s/]+|_", " ", words.translate(PLAIN)).lower().split())
        return bare.replace(" ", self._space)


reply_patterns = cache(ReplyPatterns)


def read_as_seen(
    text: str, language: Language, read: Callable[[str], VerdictReason]
) -> VerdictReason:
    """Read a reply without invisible characters; of several judges whom it plays what all say."""
    text = MARKS.invisible.sub("", html.unescape(text))
    w = reply_patterns(language)
    starts = [match.start() for match in w.judge.finditer(w.folded(text))]
    if len(starts) < 2:
        return read(text)
    verdicts = {read(text[start:end])[0] for start, end in pairwise([*starts, len(text)])}
    verdict = verdicts.pop()
    if verdicts:
        verdict = None
    return verdict, " ".join(text.split())


def own_turn(text: str, language: Language, given: re.Pattern[str] | None = None) -> str:
    """Return `own_words` of a reply, without marks.

    ``given``: a mark of a verdict. Behind one, our own frame begins the next question.
    """
    return without_marks(own_words(text, language, given), language)


def own_words(text: str, language: Language, given: re.Pattern[str] | None = None) -> str:
    """Return a reply with blanks in place of thoughts and of what others say behind it."""
    for start, end in find_thoughts(text):
        text = _without(text, start, end)
    w = reply_patterns(language)
    text = w.framed.sub(_blank_line, _without_asides(MARKS.not_own.sub(blank, text), w))
    plain = text.translate(language.plain)
    others = [*MARKS.turn.finditer(text), *w.role.finditer(plain)]
    if given is not None:
        first = given.search(plain)
        if first is not None:
            others += w.next_question.finditer(plain, first.end())
    for end in sorted(map(re.Match.start, others)):
        if re.search(r"\w", text[:end]):
            text = _without(text, end, len(text))
            break
    return text


def without_marks(text: str, language: Language) -> str:
    """Return a reply with blanks in place of HTML, templates' marks and suppositions."""
    text = MARKS.tag.sub(_blank_tag, MARKS.template.sub(blank, text))
    text = MARKS.boxed_mark.sub(_blank_line, text)
    for match in reply_patterns(language).supposed.finditer(text.translate(language.plain)):
        text = _without(text, match.start(), match.end())
    return text


def _without(text: str, start: int, end: int) -> str:
    """Return a text with blanks in place of a part; lines stay lines."""
    return text[:start] + _blanks(text[start:end]) + text[end:]


def _without_asides(text: str, w: ReplyPatterns) -> str:
    """Blank what stands between tags of other names than those of an answer, such as <draft>."""
    opened: dict[str, int] = {}
    for tag in w.tag.finditer(text):
        name = tag["name"].lower()
        if not tag["closes"]:
            opened.setdefault(name, tag.start())
        elif name in opened:
            text = _without(text, opened.pop(name), tag.end())
    return text


def strip_quotes(text: str, language: Language) -> str:
    """Return the reply without quotations of others: behind "said", and on lines that quote."""
    text = reply_patterns(language).quoted.sub(blank, text)
    own = MARKS.quoted_line.sub(blank, text)
    if own.strip():
        return own
    return text


def find_retraction(plain: str, after: int, language: Language) -> int | None:
    """Return where words end that take back the verdict that ends at ``after``, if any do."""
    w = reply_patterns(language)
    for match in w.withdrawn.finditer(plain, after):
        skipped = plain[after : match.start("cue")]
        line = skipped.rpartition("\n")[2]
        begins = match["begins"] is not None and (match["cue"][0].isalnum() or not line.strip())
        at_once = not re.search(r"[^\W_]", skipped)
        if (at_once or begins) and line.count('"') % 2 == 0:
            return match.end("cue")
    undecided = w.undecided.search(plain, after)
    if undecided:
        return undecided.end()
    return None


def reply_language(text: str, language: Language) -> Language:
    """Return the built-in language without blanks that a reply is marked in, else ``language``."""
    if text.isascii() or not language.spaced:
        return language
    for pack in built_in().values():
        plain = text.translate(pack.plain)
        if not pack.spaced and reply_patterns(pack).marks.search(plain):
            return pack
    return language


def find_tables(plain: str) -> Iterator[tuple[list[str], list[list[str]], tuple[int, int]]]:
    """Return (cells of the heading, cells of each row, span) of every table."""
    for table in MARKS.table.finditer(plain):
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
