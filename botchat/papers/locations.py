"""Where errors are: what reports name, type by type and sentence by sentence, against people.

People and reports quote passages of a text; a quote names the sentences that it shares most of its
words with (MATEval's columns ``Error Location`` and ``Error Type``, Li et al. 2024, §3.1, §4.7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from botchat.interfaces import Row
from botchat.languages.text import split
from botchat.measures.intervals import Statistic, figures, left_out
from botchat.measures.statistics import ratio
from botchat.verdicts import Floats

Places = Mapping[str, frozenset[int] | None]
"""Error type -> numbers from 0 of the sentences that have it, none for a No; an error whose place
is not known has an empty set, ``None``: the text has no such error. A type that is not there was
not judged."""

_QUOTED = re.compile(
    r"\"([^\"\n]+)[\"\n]|\u201c([^\u201c\u201d\n]+)[\u201c\u201d\n\"]|\u300c([^\u300d\n]+)\u300d"
    r"|(?<!\w)['\u2018]((?:[^'\u2019\n]|(?<=\w)['\u2019](?=\w))+)['\u2019](?!\w)"
)
_PARTS = re.compile(r"\s*(?:/|\n|\.{3,}|\u2026+|(?<!\d)\d[.\u3001](?=\s*\D))\s*")
_SHARED = 0.6
"""Share of a sentence's, or of a quote's, pairs of neighbouring words that must be in the other."""
_SHORTEST = {True: 3, False: 4}
"""Words (characters, where blanks part no words) that a quote needs to name a place."""


def named(said: str, told: Sequence[str], spaced: bool) -> frozenset[int]:
    """Numbers of the sentences ``told`` that a passage, or a text that quotes them, names.

    A sentence is named if most of it is repeated, or if most of a quote in ``said`` is from it.
    ``spaced``: blanks part words.
    """
    quotes = [next(filter(None, found)) for found in _QUOTED.findall(said)] or [said]
    parts = [split(part, spaced) for quote in quotes for part in _PARTS.split(quote)]
    pieces = [_pairs(part) for part in parts if len(part) >= _SHORTEST[spaced]]
    whole = _pairs(split(said, spaced))
    return frozenset(
        at
        for at, sentence in enumerate(map(_pairs, (split(one, spaced) for one in told)))
        if sentence
        and (
            len(sentence & whole) >= _SHARED * len(sentence)
            or any(len(piece & sentence) >= _SHARED * len(piece) for piece in pieces)
        )
    )


def _pairs(words: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(pairwise(words)) if len(words) > 1 else frozenset(zip(words))


ALL, ANYWHERE = "all", "anywhere"
"""In place of an error type: all of them, each for itself; any of them, whichever."""


def compare(people: Sequence[Places], reports: Sequence[Places]) -> list[Row]:
    """How reports on texts agree with people: a row an error type of people's, `ALL`, `ANYWHERE`.

    The two are of the same texts in the same order. Precision, recall and F1, each with its
    interval by text, are of saying that a text has the error (``type_…``) and of the sentences that
    are named with it (``place_…``). ``located``: share of the errors found by both, with a place,
    that name a sentence in common. ``by_people``, ``by_report``: how often it was found;
    ``unplaced``: by the report, without a place; ``missing``: answers, which count on neither side.
    """
    codes = list(dict.fromkeys(chain.from_iterable(people)))
    kept = [
        ({code: has for code, has in true.items() if code in said}, said)
        for true, said in zip(people, reports, strict=True)
    ]
    rows: list[Row] = []
    for title in (*codes, ALL, ANYWHERE):
        among = [title] if title in codes else codes
        merged = [(_anywhere(a), _anywhere(b)) for a, b in kept] if title == ANYWHERE else kept
        counted = [ANYWHERE] if title == ANYWHERE else among
        counts = np.array([_count(a, b, counted) for a, b in merged], np.float64).reshape(-1, 9)
        hit, placed = counts[:, 6], counts[:, 7]
        rows.append(
            {
                "error_type": title,
                "by_people": int(counts[:, 2].sum()),
                "by_report": int(counts[:, 1].sum()),
                "unplaced": int(counts[:, 8].sum()),
                "missing": sum(code not in said for said in reports for code in among),
                **_agreement("type", *counts[:, :3].T),
                **_agreement("place", *counts[:, 3:6].T),
                **figures({"located": _rate(hit, placed)}),
            }
        )
    return rows


def _anywhere(places: Places) -> Places:
    """All error types as one."""
    there = [one for one in places.values() if one is not None]
    return {ANYWHERE: frozenset(chain.from_iterable(there)) if there else None} if places else {}


def _count(people: Places, report: Places, among: Sequence[str]) -> Floats:
    """Of one text, 9 numbers.

    Types by both, the report, people; places by both, the report, people; located, of how many;
    unplaced.
    """
    counts = np.zeros(9)
    for code in among:
        if code not in report or code not in people:
            continue
        true, said = people[code], report[code]
        counts[:3] += (None not in (true, said), said is not None, true is not None)
        counts[8] += said == frozenset()
        true, said = true or frozenset(), said or frozenset()
        counts[3:6] += (len(true & said), len(said), len(true))
        counts[6:8] += (bool(true & said), bool(true and said))
    return counts


def _agreement(name: str, both: Floats, said: Floats, true: Floats) -> Row:
    """Precision, recall and F1 of counts by text: by both, the report, people."""
    rates = {"precision": (both, said), "recall": (both, true), "f1": (2 * both, said + true)}
    return figures({f"{name}_{rate}": _rate(*of) for rate, of in rates.items()})


def _rate(part: Floats, whole: Floats) -> Statistic:
    return Statistic(ratio(left_out(part), left_out(whole)), int((whole > 0).sum()))
