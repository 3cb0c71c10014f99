"""The formats that votes come in, each a value: which columns it is known by, what they mean.

Names of fields are those of FastChat (LMArena, MT-Bench), Arena-Hard-Auto, AlpacaEval and
JudgeArena. Only what is named here is read; times, prompts, metadata are passed over.

A new format is a value in `FORMATS` and a row of ``docs/votes.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from botchat.errors import ConfigError, DataError
from botchat.measures.votes import MOST_TEXTS, Texts, Votes
from botchat.seeds.vote_rows import (
    ARENA_HARD_BASELINE,
    Row,
    Vote,
    WrongCellError,
    arena_hard,
    finite,
    judge_arena,
    mt_bench,
    one_hot,
    short,
)
from botchat.seeds.vote_tables import OpenTable, names_in, objects, opened, texts
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
    """One format; ``needs``: the columns that it is known by, in lower case."""

    name: str
    """For ``--as``."""
    title: str
    needs: tuple[str, ...]
    first: str = ""
    second: str = ""
    verdict: str = ""
    means: Mapping[str, float] = field(default_factory=lambda: _SIDES)
    spread: Callable[[Row], Iterator[Vote]] | None = None
    """The votes of a row that holds several, or none in a column of its own."""
    also: tuple[str, ...] = ()
    """Columns that it is given where they are there."""
    number: tuple[float, float] | None = None
    """The verdict is a number: what says first, and what says second."""
    said: str = ""
    """What a reader must know of how it was read."""


@dataclass(frozen=True)
class VotesFile:
    """A file as it was understood."""

    votes: Votes
    said: str
    """One line: what it was taken for, how many rows were read, what was left out and why."""
    ours: bool
    """It is a file of verdicts, which a judge gives once."""


def read_votes(data: bytes, where: str, name: str | None = None) -> VotesFile:
    """The votes of a file; ``name``: of its format, by default what its columns say.

    Raises:
        ConfigError: no format has that name.
        DataError: a file of no known format, or a row that its format does not allow.
    """
    source = opened(data, where)
    return _taken(source, _format(source, name))


def known_by(names: Set[str]) -> str | None:
    """The name of the format that has these columns, in lower case."""
    return next((one.name for one in FORMATS if names >= set(one.needs)), None)


def _format(source: OpenTable, name: str | None) -> Format:
    there = {one.lower() for one in source.names}
    by_name = {one.name: one for one in FORMATS}
    if name is not None:
        found = by_name.get(name)
        if found is None:
            raise ConfigError(
                f"--as {name}: no such format; there are: {', '.join(one.name for one in FORMATS)},"
                " rates, matrix"
            )
        if missing := [one for one in found.needs if one not in there]:
            raise DataError(
                f"{source.where}: row 1, column {missing[0]}: there is none; {found.title} has "
                f"{', '.join(found.needs)}, and here are: {_listed(source.names)}"
            )
        return found
    if (recognised := known_by(there)) is not None:
        return by_name[recognised]
    known = "; ".join(",".join(one.needs) for one in FORMATS)
    beside_people = any(name.startswith("tie_") for name in there) and "model" in there
    hint = "bench botchat --data FILE draws rates beside people; " * beside_people
    raise DataError(
        f"{source.where}: row 1: the columns {_listed(source.names)} are no known format of votes; "
        f"{hint}known by: {known}; model_a,model_b,win_rate,win_or_tie_rate; a square of win rates"
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
    needs = [actual[one] for one in (*form.needs, *form.also) if one in actual]
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

    notes = [form.said]
    if form.spread is None:
        row, weight = np.arange(n_rows), np.ones(n_rows, np.intp)
        contestants, shown = names_in([texts(cells[actual[n]]) for n in (form.first, form.second)])
    else:
        at, votes_of = _spread(source, form.spread, {n.lower(): objects(cells[n]) for n in needs})
        row, weight = np.array(at), np.array([one.weight for one in votes_of], np.intp)
        firsts, seconds = ([one[i] for one in votes_of] for i in (0, 1))
        contestants, shown = names_in([texts(firsts), texts(seconds)])
        if form.spread is arena_hard:
            baselines = objects(cells[actual["baseline"]]) if "baseline" in actual else [None]
            assumed = f"the baseline is taken to be {ARENA_HARD_BASELINE}"
            notes.append(assumed if None in baselines else "")
    _check_names(source, form, contestants, shown, row)
    if form.spread is None:
        words = column(actual[form.verdict])
        result, sure = _results(source, form, *words, contestants, shown)
        soft = "soft preferences count for the side they lean to"
        notes.append(soft if (sure == sure).any() else "")
    else:
        result = np.array([one.verdict for one in votes_of], np.float64)
        sure = np.full(len(row), np.nan)
    (items, of_item), (told, of_judge) = column(item), column(judge)
    if form.means is _OURS:
        for name, numbers in ((item, of_item), (judge, of_judge)):
            if (numbers < 0).any():
                what = "empty; every verdict needs one"
                raise source.fault(int(np.argmax(numbers < 0)), str(name), what)
    judges, of_judge = _named(told, of_judge)
    of_turn = np.maximum(column(turn)[1], 0)
    votes = Votes(
        contestants, items, judges, of_item[row], of_turn[row], shown[0], shown[1], of_judge[row],
        result, weight, sure,
        asked=_ITEMS[item.lower()] if item else "items",
        who=_JUDGES[judge.lower()] if judge else "judges",
        texts=_texts(cells, sides, row) if sides else None,
    )  # fmt: skip
    parts = []
    kept = votes.first != votes.second
    if own := int((~kept).sum()):
        parts.append(f"left out {own:,} of a model against itself")
    if anonymous:
        told_so = texts(cells[anonymous]).to_pylist()
        known = np.array([one is None or one.lower() != "false" for one in told_so])[row]
        if named := int((kept & ~known).sum()):
            parts.append(f"left out {named:,} not anonymous")
        kept &= known
    votes = votes if kept.all() else votes.only(kept)
    if unread := int((~votes.readable).sum()):
        parts.append(f"{unread:,} without a readable verdict")
    if said := " ".join(filter(None, notes)):
        parts.append(said)
    counted = f"{n_rows:,} rows" + (f", {len(row):,} votes" if len(row) != n_rows else "")
    line = f"{source.where}: {form.title}: {counted} read; {'; '.join(parts) or 'nothing left out'}"
    if not len(votes):
        raise DataError(f"{line}: nothing is left to rank")
    return VotesFile(votes, line, form.means is _OURS)


def _spread(
    source: OpenTable, votes_of: Callable[[Row], Iterator[Vote]], cells: Mapping[str, list[Any]]
) -> tuple[list[int], list[Vote]]:
    """The votes of all rows, and the row that each is of."""
    at: list[int] = []
    votes: list[Vote] = []
    for n, row in enumerate(zip(*cells.values(), strict=True)):
        try:
            votes += votes_of(dict(zip(cells, row, strict=True)))
        except WrongCellError as error:
            raise source.fault(n, *error.args) from None
        at += [n] * (len(votes) - len(at))
    return at, votes


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
    row: Indices,
) -> None:
    columns = (form.first or form.needs[0], form.second or form.needs[1])

    def refuse(number: int, what: str) -> None:
        for column, numbers in zip(columns, sides, strict=True):
            if (numbers == number).any():
                raise source.fault(int(row[np.argmax(numbers == number)]), column, what)

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
) -> tuple[Floats, Floats]:
    """Result of the first in each vote, and the judge's confidence where it is soft."""
    result, sure = np.full(len(said), np.nan), np.full(len(words) + 1, np.nan)
    meaning = sure.copy()
    for number, word in enumerate(words):
        here = said == number
        key = re.sub(r"\.0$", "", word.lower())
        if form.number is not None:
            lean = _lean(word, *form.number)
            if lean is None:
                told = "{} is no preference from {:g} (first) to {:g} (second)"
                told = told.format(short(word), *form.number)
                raise source.fault(int(np.argmax(here)), form.verdict, told)
            meaning[number] = 0.5 if lean == 0.5 else float(lean < 0.5)
            if lean not in (0, 0.5, 1):
                sure[number] = max(lean, 1 - lean)
        # A model whose name is also that of a side is meant by its name; ours are sides alone.
        elif word in contestants and form.means is not _OURS:
            who = contestants.index(word)
            result[here & (sides[0] == who)], result[here & (sides[1] == who)] = 1.0, 0.0
            if (other := here & (sides[0] != who) & (sides[1] != who)).any():
                told = f"{short(word)} won, which is neither of the two models"
                raise source.fault(int(np.argmax(other)), form.verdict, told)
        elif key in form.means:
            meaning[number] = form.means[key]
        else:
            shown = [one for one, value in form.means.items() if value == value]
            told = f"{short(word)} is none of {', '.join(shown[:14])}, nor a model of the row"
            raise source.fault(int(np.argmax(here)), form.verdict, told)
    return np.where(np.isnan(result), meaning[said], result), sure[said]


def _lean(word: str, low: float, high: float) -> float | None:
    """From 0, wholly for the first, to 1; ``None``: it is no preference. 0 of 1 to 2 is a tie."""
    value = finite(word)
    if value == 0 and low == 1:
        return 0.5
    return (value - low) / (high - low) if value is not None and low <= value <= high else None


def _texts(cells: Mapping[str, Any], names: Sequence[str], row: Indices) -> tuple[Texts, Texts]:
    """What both said, of at most `MOST_TEXTS` rows, evenly spread: texts are long."""
    one, two = (cells[name] for name in names)
    step = max(1, -(-len(one) // MOST_TEXTS))
    first, second = ([_said(value) for value in objects(side[::step])] for side in (one, two))
    at = [None if i % step else i // step for i in row.tolist()]
    return (
        [None if i is None else first[i] for i in at],
        [None if i is None else second[i] for i in at],
    )


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


FORMATS = (
    Format(
        "botchat", "verdicts of BotChat", ("item", "first", "second", "judge", "verdict"),
        "first", "second", "verdict", _OURS,
    ),
    Format(
        "arena-hard", "judgments of Arena-Hard", ("model", "games", "judge"), spread=arena_hard,
        also=("baseline",),
        said="a verdict such as A>>B counts three times, as there",
    ),
    Format(
        "mt-bench", "pair judgments of MT-Bench",
        ("model_1", "model_2", "g1_winner", "g2_winner"), spread=mt_bench,
    ),
    Format(
        "alpaca-eval", "annotations of AlpacaEval", ("generator_1", "generator_2", "preference"),
        "generator_1", "generator_2", "preference", number=(1, 2),
    ),
    Format(
        "judgearena", "annotations of JudgeArena", ("model_a", "model_b", "judge_completion"),
        spread=judge_arena, also=("parsed", "pref"),
    ),
    Format(
        "one-hot", "battles with a column for each outcome",
        ("model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie"), spread=one_hot,
    ),
    Format(
        "battles", "battles as of LMArena", ("model_a", "model_b", "winner"),
        "model_a", "model_b", "winner",
    ),
    Format("crowd", "votes of a crowd", ("left", "right", "winner"), "left", "right", "winner"),
)  # fmt: skip
"""The most specific first."""
