"""The two formats that votes come in: battles as of LMArena, and verdicts of BotChat.

Only what is named here is read; times, prompts, metadata are passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from botchat.errors import DataError
from botchat.importers.vote_tables import OpenTable, names_in, objects, opened, texts
from botchat.metrics.vote_arrays import MOST_TEXTS, Texts, Votes
from botchat.verdicts import Floats, Indices

MOST_MODELS = 1000
MOST_NAME = 200
"""Characters of a name."""
_NOBODY = "votes"
"""The judge where the file names none."""

_SIDES = {
    **dict.fromkeys(("model_a", "model_1", "a", "left", "first", "1", "model a"), 1.0),
    **dict.fromkeys(("model_b", "model_2", "b", "right", "second", "2", "model b"), 0.0),
    **dict.fromkeys(
        ("tie", "tie (bothbad)", "both_bad", "bothbad", "both bad", "tie (both bad)", "both",
         "neither", "draw", "equal"),
        0.5,
    ),
    **dict.fromkeys(("error", "invalid", "unreadable", "none", "nan"), math.nan),
}  # fmt: skip
_OURS = {"1": 1.0, "2": 0.0, "tie": 0.5, "both": 0.5, "neither": 0.5}
_ITEMS = {
    "question_id": "questions",
    "item": "items",
    "uid": "questions",
    "instruction_index": "instructions",
    "instruction": "instructions",
    "prompt_id": "prompts",
    "prompt": "prompts",
    "question": "questions",
    "conversation_id": "conversations",
    "id": "items",
}
"""Columns that say what was asked, the first of them that there is, and what they are called."""
_JUDGES = {
    "judge_model": "judges",
    "judge": "judges",
    "annotator": "annotators",
    "worker": "workers",
    "worker_id": "workers",
    "judge_hash": "users",
    "user_id": "users",
    "user": "users",
}
_LISTED = re.compile(r"\[\s*[\"']([^\"']+)[\"']")
_TEXTS = (
    ("conversation_a", "conversation_b"),
    ("response_a", "response_b"),
    ("output_1", "output_2"),
    ("completion_a", "completion_b"),
    ("answer_a", "answer_b"),
    ("text_1", "text_2"),
)


@dataclass(frozen=True)
class Format:
    """One format, known by its columns, in lower case."""

    title: str
    needs: tuple[str, ...]
    first: str
    second: str
    verdict: str
    means: Mapping[str, float]


FORMATS = (
    Format(
        "verdicts of BotChat",
        ("item", "first", "second", "judge", "verdict"),
        *("first", "second", "verdict"),
        _OURS,
    ),
    Format(
        "battles as of LMArena",
        ("model_a", "model_b", "winner"),
        *("model_a", "model_b", "winner"),
        _SIDES,
    ),
)


@dataclass(frozen=True)
class VotesFile:
    """A file as it was understood."""

    votes: Votes
    said: str
    """One line: what it was taken for, how many rows were read, what was left out and why."""
    ours: bool
    """It is a file of verdicts, which a judge gives once."""


def read_votes(data: bytes, where: str) -> VotesFile:
    """The votes of a file.

    Raises:
        DataError: a file of no known format, or a row that its format does not allow.
    """
    source = opened(data, where)
    there = {one.lower() for one in source.names}
    for form in FORMATS:
        if there.issuperset(form.needs):
            return _taken(source, form)
    known = "; ".join(",".join(one.needs) for one in FORMATS)
    beside_people = any(name.startswith("tie_") for name in there) and "model" in there
    hint = "bench botchat --data FILE draws rates beside people; " * beside_people
    raise DataError(
        f"{source.where}: row 1: the columns {_listed(source.names)} are no known format of votes; "
        f"{hint}known by: {known}; model_a,model_b,win_rate,win_or_tie_rate (docs/votes.md)"
    )


def _listed(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _taken(source: OpenTable, form: Format) -> VotesFile:
    actual: dict[str, str] = {}
    for one in source.names:
        actual.setdefault(one.lower(), one)

    def first_of(names: Iterable[str]) -> str | None:
        return next((actual[one] for one in names if one in actual), None)

    item = first_of(k for k in (*form.needs, *_ITEMS)
                    if k in _ITEMS and k not in (form.first, form.second))  # fmt: skip
    judge = first_of(k for k in (*form.needs, *_JUDGES) if k in _JUDGES)
    turn, anonymous = actual.get("turn"), actual.get("anony")
    sides = next(([actual[a], actual[b]] for a, b in _TEXTS if a in actual and b in actual), [])
    needs = [actual[one] for one in form.needs]
    others = filter(None, (item, judge, turn, anonymous))
    cells = source.load(list(dict.fromkeys([*needs, *others, *sides])))
    n_rows = len(cells[needs[0]])
    if not n_rows:
        raise DataError(f"{source.where}: row 1: there are no votes below the names of columns")

    def column(name: str | None) -> tuple[tuple[str, ...], Indices]:
        if name is None:
            return (), np.full(n_rows, -1, np.intp)
        names, (numbers,) = names_in([texts(cells[name])])
        return names, numbers

    contestants, shown = names_in([texts(cells[actual[n]]) for n in (form.first, form.second)])
    _check_names(source, form, contestants, shown)
    result = _results(source, form, *column(actual[form.verdict]), contestants, shown)
    (items, of_item), (told, of_judge) = column(item), column(judge)
    if form.means is _OURS:
        for name, numbers in ((item, of_item), (judge, of_judge)):
            if (numbers < 0).any():
                what = "empty; every verdict needs one"
                raise source.fault(int(np.argmax(numbers < 0)), str(name), what)
    judges, of_judge = _named(told, of_judge)
    of_turn = np.maximum(column(turn)[1], 0)
    votes = Votes(
        contestants, items, judges, of_item, of_turn, shown[0], shown[1], of_judge, result,
        asked=_ITEMS[item.lower()] if item else "items",
        who=_JUDGES[judge.lower()] if judge else "judges",
        texts=_texts(cells, sides) if sides else None,
    )  # fmt: skip
    parts = []
    kept = votes.first != votes.second
    if own := int((~kept).sum()):
        parts.append(f"left out {own:,} of a model against itself")
    if anonymous:
        told_so = texts(cells[anonymous]).to_pylist()
        known = np.array([one is None or one.lower() != "false" for one in told_so])
        if named := int((kept & ~known).sum()):
            parts.append(f"left out {named:,} not anonymous")
        kept &= known
    votes = votes if kept.all() else votes.only(kept)
    if unread := int((~votes.readable).sum()):
        parts.append(f"{unread:,} without a readable verdict")
    left = "; ".join(parts) or "nothing left out"
    line = f"{source.where}: {form.title}: {n_rows:,} rows read; {left}"
    if not len(votes):
        raise DataError(f"{line}: nothing is left to rank")
    return VotesFile(votes, line, form.means is _OURS)


def _named(judges: tuple[str, ...], of: Indices) -> tuple[tuple[str, ...], Indices]:
    """Judges with a name for who has none; of a list, such as judge and prompt, the first."""
    known: dict[str, int] = {}
    short = [hit[1] if (hit := _LISTED.match(name)) else name for name in (*judges, _NOBODY)]
    if judges and (of >= 0).all():
        short.pop()
    place = np.array([known.setdefault(name, len(known)) for name in short], np.intp)
    return tuple(known), place[of]  # -1 is the last: who has no name


def _check_names(
    source: OpenTable,
    form: Format,
    contestants: tuple[str, ...],
    sides: Sequence[Indices],
) -> None:
    columns = (form.first, form.second)

    def refuse(number: int, what: str) -> None:
        for column, numbers in zip(columns, sides, strict=True):
            if (numbers == number).any():
                raise source.fault(int(np.argmax(numbers == number)), column, what)

    refuse(-1, "empty; every vote names two models")
    if len(contestants) > MOST_MODELS:
        raise DataError(
            f"{source.where}: {len(contestants):,} names in {' and '.join(columns)}; at most "
            f"{MOST_MODELS:,} models can be rated: are these their names?"
        )
    for number, name in enumerate(contestants):
        if len(name) > MOST_NAME:
            refuse(number, f"{name[:40]!r}… is no name: {len(name):,} characters")


def _results(
    source: OpenTable,
    form: Format,
    words: tuple[str, ...],
    said: Indices,
    contestants: tuple[str, ...],
    sides: Sequence[Indices],
) -> Floats:
    """Result of the first in each vote."""
    result, meaning = np.full(len(said), np.nan), np.full(len(words) + 1, np.nan)
    for number, word in enumerate(words):
        here = said == number
        key = re.sub(r"\.0$", "", word.lower())
        # A model whose name is also that of a side is meant by its name; ours are sides alone.
        if word in contestants and form.means is not _OURS:
            who = contestants.index(word)
            result[here & (sides[0] == who)], result[here & (sides[1] == who)] = 1.0, 0.0
            if (other := here & (sides[0] != who) & (sides[1] != who)).any():
                told = f"{_short(word)} won, which is neither of the two models"
                raise source.fault(int(np.argmax(other)), form.verdict, told)
        elif key in form.means:
            meaning[number] = form.means[key]
        else:
            shown = [one for one, value in form.means.items() if value == value]
            told = f"{_short(word)} is none of {', '.join(shown[:14])}, nor a model of the row"
            raise source.fault(int(np.argmax(here)), form.verdict, told)
    return np.where(np.isnan(result), meaning[said], result)


def _short(word: str) -> str:
    """A value as a message shows it."""
    return repr(word if len(word) <= 40 else f"{word[:37]}...")


def _texts(cells: Mapping[str, Any], names: Sequence[str]) -> tuple[Texts, Texts]:
    """What both said, of at most `MOST_TEXTS` rows, evenly spread: texts are long."""
    n = len(cells[names[0]])
    step = max(1, -(-n // MOST_TEXTS))
    found: list[list[tuple[str, ...] | None]] = []
    for name in names:
        told: list[tuple[str, ...] | None] = [None] * n
        told[::step] = [_said(value) for value in objects(cells[name][::step])]
        found.append(told)
    return found[0], found[1]


def _said(value: Any) -> tuple[str, ...] | None:
    """What a model said: a text, texts, or the messages of the assistant."""
    if isinstance(value, str):
        return (value,) if value.strip() else None
    if isinstance(value, list):
        found = [
            one.get("content") if isinstance(one, dict) else one
            for one in value
            if not isinstance(one, dict) or one.get("role") == "assistant"
        ]
        told = (" ".join(_parts(text)) if isinstance(text, list) else text for text in found)
        return tuple(text for text in told if isinstance(text, str) and text.strip()) or None
    return None


def _parts(content: list[Any]) -> list[str]:
    """The texts of a message that has several parts, pictures among them."""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return [text for text in texts if isinstance(text, str)]
