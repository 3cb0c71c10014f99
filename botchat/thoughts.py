"""Thoughts of a model in the text of a reply: where they stand, and the text without them.

Their marks are in ``thoughts.toml``. A new kind is an entry of that file, with an example in
``tests/data/rows/thoughts_are_no_speech.jsonl``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from botchat.frames import Tables, TomlTable, package_toml


class ThoughtMarks(TomlTable, frozen=True):
    """Marks of one kind of thoughts; a group holds the name, where there is one."""

    open: re.Pattern[str]
    close: re.Pattern[str]
    open_alone: bool = True
    """A thought that never closes goes on to the end of the text."""
    close_alone: bool = True
    """A thought that never opened begins where the text does."""


class _Data(TomlTable, frozen=True):
    """The whole file."""

    marks: list[ThoughtMarks]
    frames: dict[str, re.Pattern[str]]


class _Mark(NamedTuple):
    """A mark as it stands in a text."""

    start: int
    end: int
    key: tuple[int, str]  # kind and name, which opening and closing of one thought share
    opens: bool


def _read() -> _Data:
    """Return the kinds of marks, and the frames of what is spoken."""
    table = package_toml("thoughts.toml", Tables)
    parts = table.pop("parts")

    def compiled(_: object, pattern: str) -> re.Pattern[str]:
        for word, part in parts.items():
            pattern = pattern.replace(word, part)
        return re.compile(pattern, re.IGNORECASE | re.DOTALL)

    return msgspec.convert(table, _Data, dec_hook=compiled)


_DATA = _read()

# Stands in every mark: most texts have none, and are looked through once
_MAY_BE_ONE = re.compile(
    r"[<\[&\\◁＜〈⟨【]|[{(‹«:]/|^```\s*\w|\A\s*(?:analysis|[Hh]ere|[Tt]hinking)|assistantfinal",
    re.MULTILINE,
)


def find_thoughts(text: str) -> list[tuple[int, int]]:
    """Return where thoughts stand, marks included: (start, end) in order, none within another.

    The text before the first mark that closes nothing is a thought too: its opening stood in the
    prompt.
    """
    if not _MAY_BE_ONE.search(text):
        return []
    spans = []
    opening: _Mark | None = None
    is_first_unopened = True
    for mark in _without_strays(_all_marks(text)):
        if opening is None and mark.opens:
            opening = mark
        elif opening is None:
            if is_first_unopened and _DATA.marks[mark.key[0]].close_alone:
                spans = [(0, mark.end)]  # the thoughts before it are a part of this one
                is_first_unopened = False
        elif not mark.opens and mark.key == opening.key:
            spans.append((opening.start, mark.end))
            opening = None
    if opening is not None:
        spans.append((opening.start, len(text)))
    return spans


def strip_thoughts(text: str) -> str:
    """Return what is spoken: the text without thoughts, the frame of the rest, and outer blanks.

    Empty if all of it was thought. A text without marks only loses its outer blanks.
    """
    spans = find_thoughts(text)
    if not spans:
        return text.strip()
    spoken = ""
    end_before = 0
    for start, end in spans:
        spoken += text[end_before:start]
        end_before = end
    spoken = (spoken + text[end_before:]).strip()
    for frame in _DATA.frames.values():
        framed = frame.fullmatch(spoken)
        if framed is not None:
            spoken = framed["spoken"].strip()
    return spoken


def _all_marks(text: str) -> list[_Mark]:
    """Return all marks in order; of two readings of one place the first."""
    readings = []
    for kind, marks in enumerate(_DATA.marks):
        for pattern, opens in ((marks.open, True), (marks.close, False)):
            for match in pattern.finditer(text):
                name = "".join(match.groups("")).lower()
                readings.append(_Mark(match.start(), match.end(), (kind, name), opens))
    kept: list[_Mark] = []
    for mark in sorted(readings):
        if not kept or mark.start >= kept[-1].end:
            kept.append(mark)
    return kept


def _without_strays(marks: Sequence[_Mark]) -> Iterator[_Mark]:
    """Yield marks but those that mean nothing without their partner and have none."""
    first_openings = {mark.key: mark.start for mark in reversed(marks) if mark.opens}
    last_closings = {mark.key: mark.start for mark in marks if not mark.opens}
    for mark in marks:
        kind = _DATA.marks[mark.key[0]]
        if mark.opens:
            has_partner = last_closings.get(mark.key, -1) > mark.start
            may_be_alone = kind.open_alone
        else:
            has_partner = first_openings.get(mark.key, mark.end) < mark.start
            may_be_alone = kind.close_alone
        if has_partner or may_be_alone:
            yield mark
