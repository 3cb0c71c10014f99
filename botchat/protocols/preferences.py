"""Which contestant is better, by any judge in any protocol: what judges are compared on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import UnsetType

from botchat.errors import DataError
from botchat.measures.annotations import NOBODY, Annotation
from botchat.protocols.kinds import Protocol
from botchat.records import Judgment

_BETTER = {1.0: "1", 0.0: "2", 0.5: "tie", None: None}


def preferences(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """What judgments of one protocol say about who is better.

    - pairs: the winner (`Protocol.result`), as shown.
    - a place: the dialogue alone, beside `NOBODY`: better (``"1"``) where nothing is accused.
    - scores and reports of single dialogues: of any two dialogues of one seed the one with the
      higher sum, in the order of their names.

    Raises:
        DataError: a verdict that the protocol does not offer.
    """
    if protocol.shows == "one" and protocol.kind != "place":
        return list(_by_score(judgments, protocol))
    return [
        Annotation(
            made.seed_id,
            made.contestants[0],
            NOBODY if protocol.shows == "one" else made.contestants[1],
            made.judge,
            _of_place(made) if protocol.shows == "one" else _BETTER[protocol.result(made.verdict)],
            None if isinstance(made.confidence, UnsetType) else made.confidence,
        )
        for made in judgments
    ]


def _by_score(judgments: Iterable[Judgment], protocol: Protocol) -> Iterator[Annotation]:
    given: dict[tuple[str, str], dict[str, float | None]] = {}
    for made in judgments:
        numbers = protocol.numbers(made.verdict)
        total = None if numbers is None else sum(numbers)
        given.setdefault((made.judge, made.seed_id), {})[made.contestants[0]] = total
    for (judge, seed_id), totals in given.items():
        for first, second in combinations(sorted(totals), 2):
            one, two = totals[first], totals[second]
            better = None
            if one is not None and two is not None:
                better = "tie" if abs(one - two) < 1e-9 else "1" if one > two else "2"
            yield Annotation(seed_id, first, second, judge, better)


def _of_place(made: Judgment) -> str | None:
    if made.verdict is None:
        return None
    if made.verdict != "No" and not made.verdict.isdecimal():
        raise DataError(
            f"verdict {made.verdict!r} of {made.judge} on seed {made.seed_id} ({made.protocol}) "
            "is neither No nor an index; delete that line and judge again"
        )
    return "1" if made.verdict == "No" else "2"
