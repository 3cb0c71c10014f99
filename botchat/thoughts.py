"""Thoughts of a model that stand in the text of a reply; `thoughts.toml` has their marks.

A new kind is an entry of that file, with an example in ``tests/data/rows/thoughts_are_no_speech``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

import msgspec


class ThoughtMarks(NamedTuple):
    """How thoughts of one kind open and close; a group holds the name, where there is one."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    open_alone: bool
    """A thought that never closes goes on to the end of the text."""
    close_alone: bool
    """A thought that never opened begins where the text does."""


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of ``[[marks]]``."""

    open: str
    close: str
    open_alone: bool = True
    close_alone: bool = True


class _Data(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    names: list[str]
    parts: dict[str, str]
    marks: list[_Entry]
    frames: dict[str, str]


class _Mark(NamedTuple):
    """A mark as it stands in a text."""

    start: int
    end: int
    kind: int
    name: str
    opens: bool

    @property
    def key(self) -> tuple[int, str]:
        """What opening and closing of one thought have in common."""
        return self.kind, self.name


def _read() -> tuple[list[ThoughtMarks], list[re.Pattern[str]]]:
    """Return the kinds of marks, and the frames of what is said."""
    text = resources.files("botchat").joinpath("thoughts.toml").read_text("utf-8")
    data = msgspec.convert(tomllib.loads(text), _Data)
    name = rf"((?:(?:[^\W_]|[.-]){{1,30}}:)?(?:{'|'.join(data.names)}))"

    def compiled(pattern: str) -> re.Pattern[str]:
        for word, part in data.parts.items():
            pattern = pattern.replace(word, part)
        return re.compile(pattern.replace("NAME", name), re.IGNORECASE | re.DOTALL)

    marks = []
    for entry in data.marks:
        opening = compiled(entry.open)
        closing = compiled(entry.close)
        marks.append(ThoughtMarks(opening, closing, entry.open_alone, entry.close_alone))
    return marks, [compiled(pattern) for pattern in data.frames.values()]


MARKS, _FRAMES = _read()
"""Every kind of marks."""

_MAY_BE_ONE = re.compile(r"[<\[&\\◁＜〈⟨【]|\A\s*analysis|assistantfinal")
"""Stands in every mark: most texts have none, and are looked through once."""


def find_thoughts(text: str) -> list[tuple[int, int]]:
    """Return where thoughts stand, marks included: (start, end) in order, none within another.

    The text before the first mark that closes nothing is a thought too: its opening stood in the
    prompt.
    """
    if not _MAY_BE_ONE.search(text):
        return []
    spans = []
    unopened_end = 0
    position = 0
    opening: _Mark | None = None
    for mark in _marks(text):
        if opening is None and mark.start < position:
            continue  # another kind's reading of the mark before
        if opening is None and mark.opens:
            opening = mark
        elif opening is None:
            unopened_end = unopened_end or mark.end
            position = mark.end
        elif not mark.opens and mark.key == opening.key:
            spans.append((opening.start, mark.end))
            position = mark.end
            opening = None
    if opening is not None:
        spans.append((opening.start, len(text)))
    if unopened_end:
        spans = [span for span in spans if span[0] >= unopened_end]
        spans.insert(0, (0, unopened_end))
    return spans


def strip_thoughts(text: str) -> str:
    """Return what is said: the text without thoughts, the frame around the rest, and outer blanks.

    Empty if all of it was thought. A text without marks only loses its outer blanks.
    """
    spans = find_thoughts(text)
    if not spans:
        return text.strip()
    said = ""
    end_before = 0
    for start, end in spans:
        said += text[end_before:start]
        end_before = end
    said = (said + text[end_before:]).strip()
    for frame in _FRAMES:
        framed = frame.fullmatch(said)
        if framed is not None:
            said = framed["said"].strip()
    return said


def _marks(text: str) -> list[_Mark]:
    """Return all marks in order, without those that mean nothing alone and are."""
    marks = sorted(_all_marks(text))
    first_openings: dict[tuple[int, str], int] = {}
    last_closings: dict[tuple[int, str], int] = {}
    for mark in marks:
        if mark.opens:
            first_openings.setdefault(mark.key, mark.start)
        else:
            last_closings[mark.key] = mark.start
    kept = []
    for mark in marks:
        kind = MARKS[mark.kind]
        if mark.opens:
            has_sense = kind.open_alone or last_closings.get(mark.key, -1) > mark.start
        else:
            has_sense = kind.close_alone or first_openings.get(mark.key, mark.end) < mark.start
        if has_sense:
            kept.append(mark)
    return kept


def _all_marks(text: str) -> Iterator[_Mark]:
    for kind, marks in enumerate(MARKS):
        for match in marks.opening.finditer(text):
            yield _Mark(match.start(), match.end(), kind, _name(match), opens=True)
        for match in marks.closing.finditer(text):
            yield _Mark(match.start(), match.end(), kind, _name(match), opens=False)


def _name(match: re.Match[str]) -> str:
    """Return the name in a mark, empty where its kind has none."""
    for name in match.groups():
        if name:
            return name.lower()
    return ""
