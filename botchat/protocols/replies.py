"""The part of a reply that counts: no reasoning, supposition, quotation or further speaker.

What does not count is blanked out, so that places in the text stay the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from botchat.languages import ENGLISH, Language, built_in
from botchat.protocols.patterns import any_of, reply_patterns

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


def strip_hypotheticals(text: str, language: Language = ENGLISH) -> str:
    """Return the reply without reasoning, HTML, further speakers and suppositions."""
    for pattern in (_THOUGHTS, _TEMPLATE):
        text = pattern.sub(lambda match: _blank(match[0]), text)
    text = _BOXED_MARK.sub(lambda match: _blank(match[0], "\n"), text)
    others = reply_patterns(language).role.finditer(text)
    if start := next((at.start() for at in others if text[: at.start()].strip()), 0):
        text = text[:start] + _blank(text[start:])
    if "<" in text:
        text = _TAG.sub(lambda match: _blank(match[0], "\n" if match["block"] else " "), text)
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
    return undecided.end() if undecided else None


def reply_language(text: str, language: Language) -> Language:
    """Return the built-in language without blanks that a reply is marked in, else ``language``."""
    if text.isascii() or language.pack.units == "characters":
        return language
    others = [pack for pack in built_in().values() if pack.pack.units == "characters"]
    marked = (
        pack for pack in others if reply_patterns(pack).marks.search(text.translate(pack.plain))
    )
    return next(marked, language)


def spell_letters(text: str, names: Sequence[Iterable[str]]) -> str:
    """Write the names for the letters that a reply defines for them: "A is Conversation 1".

    ``names``: the ways to write each of two names, the first of which takes the letter's place.
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
        defined = {letter for match in define.finditer(text) for letter in match.groups() if letter}
        if len(defined) == 1:
            letters[defined.pop()] = first
    if len(letters) != 2:
        return text
    either = "".join(letters)
    used = rf"(?<=[:=])([ \t*_\"']*)([{either}])(?!\w)|^([ \t>*_#-]*)([{either}])(?=[*_]*\s*[:=])"
    name_of = lambda m: f"{m[1] or m[3] or ''}{letters[m[2] or m[4]]}"  # noqa: E731
    return re.sub(used, name_of, text, flags=re.MULTILINE)


_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_CALLED = frozenset({"arguments", "parameters"})
_BLOCK = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL | re.IGNORECASE)


def json_fields(text: str) -> dict[str, Any]:
    """Return the fields of the JSON object that a reply is, or ends with; by lower-case name.

    Of a call of a tool its arguments; of an object in an object the fields of both.
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


_TABLE = re.compile(r"^.*\|.*\n(?=.*\|)[ \t|:-]*-[ \t|:-]*\r?(?:\n.*\|.*)+$", re.MULTILINE)


def find_tables(plain: str) -> Iterator[tuple[list[str], list[list[str]], tuple[int, int]]]:
    """Return (cells of the heading, cells of each row, span) of every table."""
    for match in _TABLE.finditer(plain) if "|" in plain else ():
        head, _, *rows = [line.strip().strip("|").split("|") for line in match[0].splitlines()]
        yield head, rows, match.span()


def _blank(words: str, first: str = " ") -> str:
    return first + re.sub(r"[^\n]", " ", words[1:])
