"""What of a reply is its own: not a thought, a supposition, what others said, or withdrawn.

What does not count is blanked out, so that places in the text stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial

from botchat.languages import ENGLISH, PLAIN, Labels, Language, built_in
from botchat.languages.text import longest

_THOUGHTS = re.compile(
    r"\A.*(?:</think(?:ing)?>|\[/think\])|\A.*<\|channel\|>final\b|\Aanalysis.*assistantfinal"
    r"|(?:<think(?:ing)?>|\[think\]|<\|channel\|>|\Aanalysis(?=[A-Z<])).*",
    re.DOTALL | re.IGNORECASE,
)
"""Reasoning, and the channels of a chat template up to the final one."""
_TEMPLATE = re.compile(r"<\|[^|<>\n]{1,40}\|>")
_BOXED_MARK = re.compile(r"\\boxed\{(?=[^{}\n]*:)")
_TAG = re.compile(
    r"</?(?:(?P<block>p|div|br|li|ul|ol|tr|table|body|html|h[1-6]|tool_call)"
    r"|b|i|u|em|strong|span|font|code|mark|td|th)(?:\s[^<>\n]*)?/?>",
    re.IGNORECASE,
)
_SENTENCE = r"(?:\A|(?<=\n)|(?<=[.!?;]))[\s*_`>#(-]{0,20}"


def own(text: str, language: Language = ENGLISH) -> str:
    """The reply without thoughts, HTML and what is only supposed, as long as it was."""
    for pattern in (_THOUGHTS, _TEMPLATE):
        text = pattern.sub(lambda match: _blank(match[0]), text)
    text = _BOXED_MARK.sub(lambda match: _blank(match[0], "\n"), text)
    others = _phrases(language).role.finditer(text)
    if start := next((at.start() for at in others if text[: at.start()].strip()), 0):
        text = text[:start] + _blank(text[start:])
    if "<" in text:
        text = _TAG.sub(lambda match: _blank(match[0], "\n" if match["block"] else " "), text)
    found = _phrases(language).supposed.finditer(text.translate(language.plain))
    for start, end in [match.span() for match in found]:
        text = f"{text[:start]}{_blank(text[start:end])}{text[end:]}"
    return text


def without_others(text: str, language: Language = ENGLISH) -> str:
    """The same without what others are quoted with: behind "said", and on lines that quote."""
    told = _phrases(language).told
    text = told.sub(lambda match: _blank(match[0]), text)
    lines = text.splitlines(keepends=True)
    if all(line.lstrip().startswith(">") or not line.strip() for line in lines):
        return text
    return "".join(_blank(line) if line.lstrip().startswith(">") else line for line in lines)


def withdrawn(plain: str, after: int, language: Language = ENGLISH) -> int | None:
    """Where words end that take back the verdict that ends at ``after``; ``None``: none do."""
    w = _phrases(language)
    undecided = w.undecided.search(plain, after)
    for match in w.withdrawn.finditer(plain, after):
        start = match.start("cue")
        line = plain[max(after, plain.rfind("\n", 0, start) + 1) : start]
        at_once = not re.search(r"[^\W_]", plain[after:start])
        begins = match["begins"] is not None and (plain[start].isalnum() or not line.strip())
        if (at_once or begins) and line.count('"') % 2 == 0:
            return match.end("cue")
    return undecided.end() if undecided else None


def answered_in(text: str, language: Language) -> Language:
    """The language that a reply is marked in, where a built-in one that writes without blanks is.

    Else it is the one that was asked in.
    """
    if text.isascii() or language.pack.units == "characters":
        return language
    others = (one for one in built_in().values() if one.pack.units == "characters")
    marked = (one for one in others if _phrases(one).marks.search(text.translate(one.plain)))
    return next(marked, language)


def spell_letters(text: str, names: Sequence[Iterable[str]]) -> str:
    """Write the names for the letters that a reply defines for them: "A is Conversation 1".

    ``names``: the ways to write each of two names, the first of which takes the letter's place. A
    reply without two definitions stays as it is.
    """
    letters: dict[str, str] = {}
    call = r"(?i:\b(?:call|label|name|denote)\b)[^\n.]*?"
    for first, *others in names if len(names) == 2 else ():
        name = rf"(?i:{any_of([first, *others])})"
        define = re.compile(
            rf"\b([A-DXY])[\"')]*\s*(?:[:=]|is|for|means)\s*{name}(?!\w)"
            rf"|(?<!\w){name}\s*[\"']?\s*(?:\(|=|\bas\b)\s*[\"'(]?([A-DXY])\b"
            rf"|{call}(?<!\w){name}\s+[\"'(]?([A-DXY])\b",
        )
        found = {letter for match in define.finditer(text) for letter in match.groups() if letter}
        if len(found) == 1:
            letters[found.pop()] = first
    if len(letters) != 2:
        return text
    either = "".join(letters)
    used = rf"(?<=[:=])([ \t*_\"']*)([{either}])(?!\w)|^([ \t>*_#-]*)([{either}])(?=[*_]*\s*[:=])"
    return re.sub(
        used,
        lambda m: f"{m[1] or m[3] or ''}{letters[m[2] or m[4]]}",
        text,
        flags=re.MULTILINE,
    )


def any_of(words: Iterable[str]) -> str:
    """A pattern of the words, longest first; blanks in them may be any, or none."""
    plain = longest({word.translate(PLAIN) for word in words})
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


def known(language: Language, key: str) -> list[str]:
    """Return a list of ``[labels]`` or ``reading.toml``, with the English and foreign words."""
    part = "labels" if key in Labels.__struct_fields__ else "reading"
    packs = dict.fromkeys((language, ENGLISH))
    words = [word for one in packs for word in getattr(getattr(one, part), key)]
    return [*words, *ENGLISH.reading.foreign.get(key, ())]


def any_known(language: Language, key: str) -> str:
    """A pattern of them."""
    return any_of(known(language, key))


def numerals(language: Language) -> dict[str, int]:
    """Numbers in words -> what they are."""
    packs = dict.fromkeys((language, ENGLISH))
    return {word.lower(): n for one in packs for n, word in enumerate(one.labels.numerals, 1)}


class _OwnPatterns:
    """What is looked for in a language, English beside it; of texts with plain marks."""

    def __init__(self, language: Language) -> None:
        of = partial(any_known, language)

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

        edge, line = r"(?![A-Za-z])", r"\n[^\n:]{0,40}[:=][ \t]*[^\s:][^\n]*"
        sentence = r"(?:[^\n.!?;]|[.](?=\d)){0,400}"
        begins = rf"(?P<begins>{_SENTENCE}(?:\w{{1,8}}[,.!\u2026]+\s*){{0,2}})?"
        self.withdrawn = compiled(rf"{begins}(?P<cue>{of('withdrawn')})")
        self.undecided = compiled(rf'{_SENTENCE}[^\n.!?;:"]{{0,40}}(?:{of("undecided")})')
        self.supposed = compiled(
            rf"{_SENTENCE}(?!(?:{of('insists')}){edge})(?:{of('supposed')}){edge}{sentence}"
            rf"(?:{of('would')}){edge}"
            rf"(?:{sentence}(?:{of('say')})[ \t]*:?[ \t]*(?:{line})+|{sentence})"
        )
        # Where a reply goes on as another speaker of a debate.
        roles = rf"(?:{of('roles')})(?:[ #]*\d+)?"
        self.role = compiled(
            rf"^[ \t>*_#-]*(?:\[{roles}\][^\n:]{{0,30}}|(?:{of('speakers')})[*_]*):"
        )
        # A quotation, and who is said to have said it.
        self.told = compiled(rf'(?:{of("others")}){edge}[^\n".]{{0,20}}"[^"]*"')
        # What only an answer in this language has.
        labels = language.labels
        marks = any_of((*labels.choice, *labels.index, *labels.reason, *labels.first))
        names = any_of(word for one in language.reading.names.values() for word in one)
        self.marks = compiled(rf"(?:{marks}|{of('withdrawn')})[\"'`*_~\s]*:|(?:{names})[ \t]*[12]")


_phrases = lru_cache(maxsize=16)(_OwnPatterns)


def _blank(words: str, first: str = " ") -> str:
    return first + re.sub(r"[^\n]", " ", words[1:])
