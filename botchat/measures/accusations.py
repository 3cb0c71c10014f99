"""UniEval against what is known without asking people: who wrote what (BotChat §3.2).

A human dialogue that is accused is a false alarm; a generated one should be accused, and its first
AI utterance is the one after the ChatSEED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from botchat.errors import DataError
from botchat.measures import statistics
from botchat.measures.statistics import Flags, Floats, Indices, Row, figure, ratio
from botchat.records import Judgment, natural_key

FIGURES = ("detection_rate", "exact_index_rate", "false_alarm_rate")
"""What is said of a judge, of its readable verdicts: generated dialogues accused, generated
dialogues accused from their first AI utterance on, human dialogues accused."""

_UNKNOWN = -1
"""No readable verdict; else 0 for No, or the index accused."""


def detection(
    judgments: Iterable[Judgment],
    first_ai: Callable[[Judgment], int | None],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[dict[str, Row], dict[tuple[str, str], Row]]:
    """`FIGURES` of every judge, and the differences of every two where both are readable.

    Args:
        judgments: of UniEval, at most one a judge, seed and contestant.
        first_ai: index of the first AI utterance of a judged dialogue, from 1; ``None``: human.
        resamples: of the bootstrap over seeds.
        seed: of the bootstrap.

    Returns:
        judge -> `FIGURES`; (judge, judge) -> ``<figure>_difference``, all with intervals.
    """
    rows = list(judgments)
    seeds = sorted({row.seed_id for row in rows}, key=natural_key)
    items = {seed_id: i for i, seed_id in enumerate(seeds)}
    cases: dict[tuple[str, str], int] = {}
    for row in rows:
        cases.setdefault((row.seed_id, row.contestants[0]), len(cases))
    judges = list(dict.fromkeys(row.judge for row in rows))
    said = {judge: np.full(len(cases), _UNKNOWN, np.intp) for judge in judges}
    true = np.zeros(len(cases), np.intp)
    for row in rows:
        place = cases[row.seed_id, row.contestants[0]]
        true[place] = first_ai(row) or 0
        said[row.judge][place] = _index(row)
    item = np.array([items[seed_id] for seed_id, _ in cases], np.intp)
    weights = statistics.item_weights(len(items), resamples, seed)

    def measured(judge: str, on: Flags) -> dict[str, Floats]:
        return _figures(said[judge], true, on, item, weights)

    found = {judge: _row(measured(judge, said[judge] > _UNKNOWN), "{}") for judge in judges}
    differences = {}
    for a, b in combinations(judges, 2):
        both = (said[a] > _UNKNOWN) & (said[b] > _UNKNOWN)
        of_a, of_b = measured(a, both), measured(b, both)
        differences[a, b] = _row({name: of_a[name] - of_b[name] for name in of_a}, "{}_difference")
    return found, differences


def _figures(
    said: Indices, true: Indices, on: Flags, item: Indices, weights: Floats
) -> dict[str, Floats]:
    """Each of shape (resamples + 1,)."""

    def share(hit: Flags, of: Flags) -> Floats:
        n = weights.shape[1]
        hits = np.bincount(item[hit & of], minlength=n)
        return ratio(weights @ hits, weights @ np.bincount(item[of], minlength=n))

    generated, human = on & (true > 0), on & (true == 0)
    values = (share(said > 0, generated), share(said == true, generated), share(said > 0, human))
    return dict(zip(FIGURES, values, strict=True))


def _row(values: dict[str, Floats], form: str) -> Row:
    row: Row = {}
    for name, each in values.items():
        row |= figure(form.format(name), each)
    return row


def _index(judgment: Judgment) -> int:
    verdict = judgment.verdict
    if verdict is None:
        return _UNKNOWN
    if verdict == "No":
        return 0
    if verdict.isascii() and verdict.isdigit() and int(verdict) > 0:
        return int(verdict)
    raise DataError(
        f"verdict {verdict!r} of {judgment.judge} on seed {judgment.seed_id} is neither No nor an "
        "index from 1; delete that line and judge again"
    )
