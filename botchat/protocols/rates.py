"""Counting verdicts: rates with their coverage, and preferences, on which judges are compared.

An unreadable verdict is no win, tie or loss and no success or failure: it is missing, and every
`Rate` and `WinTieLose` has the number of missing cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from botchat.metrics.annotations import NOBODY, NOT_SAID, UNTOLD, Annotation, accused_index
from botchat.metrics.statistics import share
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, N_SEED, Dialogue, Judgment, Seed, Verdict, eligible_seeds

PASS_AT = (4, 8, 12, 16)  # N of the success rates (BotChat §4.2, Figure 4)


@dataclass(frozen=True)
class Rate:
    """A share of the covered cases, and the number of cases that are not covered."""

    hits: int
    n: int  # covered cases: those with a readable verdict
    missing: int  # cases that the protocol has and that no readable verdict covers

    @property
    def value(self) -> float:
        """Share of hits among the covered, 0 to 1; NaN if nothing is covered."""
        return share(self.hits, self.n)

    @property
    def coverage(self) -> float:
        """Share of the cases that are covered, 0 to 1; NaN if there are no cases."""
        return share(self.n, self.n + self.missing)


@dataclass(frozen=True)
class WinTieLose:
    """Comparisons of one contestant with others, seen from its side, from both orders."""

    wins: int = 0
    ties: int = 0
    losses: int = 0
    missing: int = 0

    @property
    def n(self) -> int:
        """Comparisons with a readable verdict."""
        return self.wins + self.ties + self.losses

    @property
    def win(self) -> Rate:
        """Win rate."""
        return Rate(self.wins, self.n, self.missing)


def passes(dialogue: Dialogue, verdict: Verdict | None, turns: int) -> bool | None:
    """Return whether a dialogue passes at N = ``turns``: "No", or an AI utterance above N.

    None (unknown) where the verdict is unreadable or undecided, where a generated dialogue is
    shorter than N and has no AI utterance (a human one is complete at its own length), and where it
    is longer than N and the verdict has no index. Raises `DataError` for a verdict that UniEval
    does not offer.
    """
    if verdict is None:
        return None
    index = accused_index(verdict, "a UniEval judgment")
    if index == UNTOLD:
        return None
    if index == NOT_SAID and turns > N_SEED:
        return None if turns < len(dialogue.utterances) else False
    if 0 < index <= turns:
        return False
    return True if dialogue.model == HUMAN or len(dialogue.utterances) >= turns else None


def success(
    seeds: Sequence[Seed],
    dialogues: Mapping[str, Dialogue],
    verdicts: Mapping[str, Verdict | None],
    turns: int | None,
) -> Rate:
    """Return the success rate of one contestant at N = ``turns`` over all seeds of the set.

    ``turns`` None: N is the length of each human dialogue, of at least 4 utterances (Figure 7).
    ``dialogues`` are the contestant's and ``verdicts`` the judge's, by seed id; a seed without
    either, or without a readable verdict, is missing.
    """
    results = [
        passes(dialogues[seed.id], verdicts.get(seed.id), turns or len(seed.utterances))
        if seed.id in dialogues
        else None
        for seed in (seeds if turns else eligible_seeds(seeds))
        if turns or len(seed.utterances) > N_SEED
    ]
    missing = results.count(None)
    return Rate(results.count(True), len(results) - missing, missing)


def preference(lead: float) -> str | None:
    """Return the verdict of an `Annotation` from the lead of the first; NaN: unreadable."""
    if math.isnan(lead):
        return None
    return "tie" if abs(lead) < 1e-9 else "1" if lead > 0 else "2"


def preferences(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """Return which of two is better by each judgment of one protocol.

    Pairs give the winner (`Protocol.result`), as shown. A dialogue alone is compared with `NOBODY`:
    better (``"1"``) where it passes. Scores and reports compare any two dialogues of one seed, in
    the order of their names. Raises `DataError` for a verdict that the protocol does not offer.
    """
    if protocol.shows == "one" and protocol.kind != "place":
        return list(_by_score(judgments, protocol))
    annotations = []
    for judgment in judgments:
        first, second, *_ = (*judgment.contestants, NOBODY)
        values = protocol.values(judgment)
        better = preference(values[0][1] - 0.5 if values else math.nan)
        annotations.append(Annotation(judgment.seed_id, first, second, judgment.judge, better))
    return annotations


def _by_score(judgments: Iterable[Judgment], protocol: Protocol) -> Iterator[Annotation]:
    totals: dict[tuple[str, str], dict[str, float]] = {}
    for judgment in judgments:
        total = sum(protocol.numbers(judgment.verdict) or (math.nan,))
        by_name = totals.setdefault((judgment.judge, judgment.seed_id), {})
        by_name[judgment.contestants[0]] = total
    for (judge, seed_id), by_name in totals.items():
        for first, second in combinations(sorted(by_name), 2):
            better = preference(by_name[first] - by_name[second])
            yield Annotation(seed_id, first, second, judge, better)


def calibrated(judgments: Iterable[Judgment], protocol: Protocol) -> list[Annotation]:
    """Return which of two is better by the sum of the leads in both orders, one a judge and pair.

    Position calibration (ChatEval §3.2; Wang et al. 2023, BPC). Where one order is unreadable the
    result is (upstream: a tie); one order alone stands.
    """
    leads: dict[tuple[str, str, str, str], float] = {}
    for judgment in judgments:
        (first, second), lead = judgment.contestants, protocol.lead(judgment.verdict)
        swapped = (judgment.seed_id, second, first, judgment.judge)
        key = swapped if swapped in leads else (judgment.seed_id, first, second, judgment.judge)
        sign = -1 if swapped in leads else 1
        leads[key] = leads.get(key, 0.0) + sign * (math.nan if lead is None else lead)
    return [Annotation(*key, preference(lead)) for key, lead in leads.items()]


def truth(annotations: Iterable[Annotation], judge: str) -> Iterator[Annotation]:
    """Return what is known without a judge: which side, or dialogue, is human."""
    for item, first, second in dict.fromkeys((a.item, a.first, a.second) for a in annotations):
        if HUMAN in (first, second) or second == NOBODY:
            yield Annotation(item, first, second, judge, "1" if first == HUMAN else "2")
