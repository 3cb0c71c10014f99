"""Errors put into stories by a model: how MATEval made its data (Li et al. 2024, §4.2).

The model is told which kinds to put in, one error of each, so that what is in a story is known and
not only claimed. What it sends back is checked against that.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from botchat.languages import Language
from botchat.languages.text import split
from botchat.papers.mateval_columns import COLUMNS
from botchat.papers.stories import STORIES
from botchat.protocols.scores import harmless
from botchat.protocols.texts import ERROR_TYPES, OwnText, sentences
from botchat.protocols.verdicts import json_fields

PROMPT = "injection"
WORDS = 200
"""Of a story, after which it is cut (MATEval §4.2, for WritingPrompts)."""


@dataclass(frozen=True)
class Planted:
    """One error."""

    code: str
    """A key of `ERROR_TYPES`."""
    passage: str
    """The sentence with the error, as it is in the story."""
    reason: str


@dataclass(frozen=True)
class Injected:
    """A story before and after."""

    original: str
    story: str
    errors: tuple[Planted, ...]


def cut(story: str, words: int, language: Language) -> str:
    """The first sentences of a story that have at most so many words together; at least one.

    Characters are words where blanks part none.
    """
    spaced = language.pack.units == "words"
    kept: list[str] = []
    for sentence in sentences(story):
        words -= len(split(sentence, spaced))
        if kept and words < 0:
            break
        kept.append(sentence)
    return language.joint.join(kept)


def kinds_of(story: OwnText, rng_seed: int) -> tuple[str, ...]:
    """Codes of the kinds that a story gets: each with probability 1/2, at least one."""
    rng = random.Random(f"{rng_seed}\0{story.id}\0{story.text}")
    chosen = [code for code in ERROR_TYPES if rng.random() < 0.5]
    return tuple(chosen or [rng.choice(list(ERROR_TYPES))])


def request(story: str, kinds: Sequence[str], language: Language) -> str:
    """What a model is asked."""
    told = harmless(story.replace("\0", ""), STORIES.asked_scale)
    joint = ", " if language.joint else "、"
    return language.fill(PROMPT, story=told, kinds=joint.join(_names(kinds, language)))


def read(reply: str, story: str, kinds: Sequence[str], language: Language) -> Injected | str:
    """The story with its errors, or in a few words why the reply cannot be used."""
    fields = json_fields(reply)
    made, listed = fields.get("story"), fields.get("errors")
    if not isinstance(made, str) or not isinstance(listed, list) or not made.strip():
        return "no JSON object with story and errors"
    codes = {name.casefold(): code for code, both in ERROR_TYPES.items() for name in both}
    spaced = language.pack.units == "words"
    before, after = (f" {' '.join(split(text, spaced))} " for text in (story, made))
    errors = []
    for one in listed:
        said = [one.get(key) for key in ("type", "passage", "reason")] if _is_error(one) else []
        kind, passage, reason = (" ".join(str(each).split()) for each in said or ("", "", ""))
        code = codes.get(kind.casefold())
        quoted = f" {' '.join(split(passage, spaced))} "
        if code is None:
            return f"{kind or one!r:.40} is no kind of error"
        if not quoted.strip() or quoted not in after:
            return f"{passage!r:.60} is not in its story"
        # What is repeated or in the wrong place was there before.
        if code not in ("REP", "DCONT") and quoted in before:
            return f"{passage!r:.60} was in the story before"
        errors.append(Planted(code, passage, reason))
    if sorted(one.code for one in errors) != sorted(kinds):
        got = ", ".join(one.code for one in errors) or "none"
        return f"it was to put in {', '.join(kinds)}, and says {got}"
    if before == after:
        return "the story is as it was"
    return Injected(story, " ".join(made.split()), tuple(errors))


def as_csv(made: Sequence[Injected], language: Language) -> str:
    """A table in MATEval's layout, which ``botchat bench mateval`` reads as people's."""
    names = dict(zip(ERROR_TYPES, _names(tuple(ERROR_TYPES), language), strict=True))
    columns = COLUMNS[language.code]
    most = max((len(one.errors) for one in made), default=0)
    numbered = [
        f"{name}{n}"
        for n in range(1, most + 1)
        for name in (columns.place, columns.error, columns.reason)
    ]
    written = io.StringIO(newline="")
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow([columns.original, columns.story, columns.scores, *numbered])
    for one in made:
        counts: Mapping[str, int] = {
            code: sum(error.code == code for error in one.errors) for code in ERROR_TYPES
        }
        scores = "\n".join(f"{names[code]}:{-n}" for code, n in counts.items())
        errors = chain.from_iterable(
            (error.passage, names[error.code], error.reason) for error in one.errors
        )
        rows.writerow([one.original, one.story, scores, *errors])
    return written.getvalue()


def _names(codes: Sequence[str], language: Language) -> list[str]:
    return [ERROR_TYPES[code][not language.english] for code in codes]


def _is_error(one: object) -> bool:
    return isinstance(one, dict) and all(
        isinstance(one.get(key), str) for key in ("type", "passage", "reason")
    )
