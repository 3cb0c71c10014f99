"""Tables of a comparison of judges: agreement with people and with each other, and its price.

A new column is a `Column` here, and its value in a row of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from botchat.boards import which_judge
from botchat.boards.judge_health import SURENESS
from botchat.boards.tables import (
    Column,
    Getter,
    Kind,
    Table,
    explained,
    record,
    table,
    with_ends,
    with_interval,
)
from botchat.boards.which_judge import control_of
from botchat.interfaces import Row
from botchat.metrics import lengths
from botchat.metrics.agreement import Agreement
from botchat.metrics.annotations import NOBODY, Opinions
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons
from botchat.records import Dialogues, Judgment
from botchat.verdicts import ABSENT, UNREADABLE


@dataclass(frozen=True, kw_only=True)
class Findings(Agreement):
    """A comparison of judges with its title and signature; rows have the price of verdicts too."""

    subject: str
    """What was judged, for titles."""
    truth: str
    """What judges are compared with, in a few words; empty: only with each other."""
    signature: str
    notes: Sequence[str] = ()
    """What a reader must know, a sentence each."""

    @property
    def controls(self) -> list[Row]:
        """What talk, or a panel instead of one judge asked as often, changed; see `_CONTROLS`."""
        return [
            record(_CONTROLS, pair)
            for pair in self.pairs
            if control_of(pair["judge_b"]) == pair["judge_a"]
        ]

    @property
    def answer(self) -> list[str]:
        """Which judge to take, at what price."""
        return which_judge.answer(self)

    @property
    def talk(self) -> list[str]:
        """What the talk of each panel adds, at what price, a line each."""
        return [*which_judge.talk_adds(self)]


def ratings(grid: Opinions, truth_prefix: str | None) -> dict[tuple[str, str], float]:
    """(judge, contestant) -> Bradley-Terry rating by that judge; empty for single dialogues.

    The majority of people is the judge ``truth_prefix``.
    """
    if NOBODY in grid.contestants or not len(grid.item):
        return {}
    said = {judge: grid.said[judge] for judge in grid.judges}
    if truth_prefix is not None and grid.people:
        once = grid.majority(grid.people)
        once[:, 1] = ABSENT
        said[truth_prefix] = once
    found = {}
    for judge, codes in said.items():
        row, order = np.nonzero(codes < UNREADABLE)
        if not len(row):
            continue
        shown = np.stack([grid.sides[row, order], grid.sides[row, 1 - order]])
        there = sorted(np.unique(shown).tolist(), key=grid.contestants.__getitem__)
        number = np.zeros(len(grid.contestants), np.intp)
        number[there] = np.arange(len(there))
        names, result = tuple(grid.contestants[i] for i in there), (1 + codes[row, order]) / 2
        first, second = number[shown]
        rated = fit(Comparisons(names, first, second, result, grid.item[row]))
        for model, rating in zip(rated.models, rated.rating.tolist(), strict=True):
            found[judge, model] = rating
    return found


def shown_lengths(
    dialogues: Dialogues, judged: Mapping[str, Sequence[Judgment]]
) -> dict[tuple[str, str], float]:
    """(seed, contestant) -> words an utterance of what was shown in comparisons."""
    shown: dict[tuple[str, str], int] = {}
    for made in judged.values():
        for judgment in made:
            for name in judgment.contestants if len(judgment.contestants) > 1 else ():
                key = (judgment.seed_id, name)
                if shown.get(key, -1) < judgment.shown:
                    shown[key] = judgment.shown
    found = {}
    for (seed_id, name), n in shown.items():
        said = dialogues[name][seed_id].utterances[:n]
        found[seed_id, name] = sum(map(lengths.words, said)) / max(1, len(said))
    return found


def tables(found: Findings) -> list[Table]:
    """Judges, controls, people, groups, pairs and rankings, as far as there are any."""
    # One person alone has no others to agree with.
    people = found.annotators if len(found.annotators) > 1 else ()
    by_truth = f"against {found.truth}" if found.truth else "against each other"
    judges = _JUDGES if found.truth else [column for column in _JUDGES if column.key != "n"]
    kinds = (
        ("judges", f"Judges {by_truth}: {found.subject}", judges, found.rows, _HOW_READ),
        ("controls", "Panels beside their controls", _CONTROLS, found.controls, _HOW_CHANGED),
        ("annotators", "People against the majority of the others", judges, people, ""),
        ("groups", "Agreement within groups", _GROUPS, found.groups, ""),
        ("pairs", "Judges against each other", _PAIRS, found.pairs, _HOW_PAIRED),
        ("rankings", "The ranking by each judge", _RANKINGS, found.rankings, ""),
    )  # fmt: skip
    made = [
        table(name, title, columns, rows, [found.signature], note)
        for name, title, columns, rows, note in kinds
    ]
    return [part.filled() for part in made if len(part.frame)]


def as_json(found: Findings) -> dict[str, Any]:
    """All of it, JSON-ready."""
    names = "answer rows pairs groups annotators rankings controls talk notes"
    return {
        "subject": found.subject,
        "truth": found.truth or None,
        **{name: list(getattr(found, name)) for name in names.split()},
        "signature": found.signature,
    }


def _headline(key: str, heading: str, kind: Kind, meaning: str = "") -> tuple[Column, ...]:
    """A figure; the ends of its interval are for machines only."""
    return with_interval(Column(key, heading, kind, meaning=meaning))


PRICE = (
    Column("calls", "Calls", "number"),
    Column("tokens", "Tokens", "number"),
    Column(
        "usd_per_1000",
        "USD / 1000",
        "decimal",
        getter=lambda row: None if row.get("usd") is None else 1000 * row["usd"],
    ),
    Column("seconds", "Seconds", "decimal"),
)
"""Of one verdict; money of a thousand, since that of one has too many decimals."""

*_SAMPLED, _CUT = SURENESS

_FIGURES = [
    *with_ends(Column("accuracy", "Accuracy", "rate")),
    *with_ends(Column("kappa", "Kappa", "decimal")),
    *_headline("fleiss_kappa", "Fleiss", "decimal"),
    *_headline("machines_caught", "Machines caught", "rate"),
    *_headline("exact_index_rate", "Right index", "rate"),
    *_headline("people_accused", "People accused", "rate"),
    *_headline(
        "consistency",
        "Same in both orders",
        "rate",
        "by construction 100 where a judge is asked in both orders for every verdict",
    ),
    *_headline("same_winner", "Same winner in both orders", "rate"),
    *_headline(
        "first_preferred",
        "First shown wins",
        "rate",
        "of the decided verdicts on what is read in both orders, 50 is no preference",
    ),
    *_headline("ties", "Ties", "rate"),
    *_headline("unreadable_rate", "Unreadable", "rate"),
    *_headline("spearman", "Spearman", "decimal"),
    *_headline("kendall", "Kendall", "decimal"),
    *_headline("length_preference", "Prefers longer", "decimal"),
    *_headline("self_preference", "Prefers itself", "decimal"),
]
_JUDGES = [
    Column("judge", "Judge", "name"),
    Column("n", "With truth", "count"),
    Column("verdicts", "Verdicts", "count"),
    *_FIGURES,
    *_SAMPLED,
    *with_interval(_CUT),
    Column("accuracy_worst", "Accuracy, worst", "rate", detail=True),
    Column("accuracy_best", "Accuracy, best", "rate", detail=True),
    *PRICE,
]


def _if_known(key: str) -> Getter:
    """A number of a pair where the truth is known, else ``None``."""
    return lambda pair: None if pair["sign_flip_p"] is None else pair[key]


def _unlike(key: str) -> Getter:
    return lambda pair: None if pair[key] is None else 1 - pair[key]


_CONTROLS = [
    Column("judge", "Judge", "name", getter=lambda pair: pair["judge_a"]),
    Column(
        "control",
        "Control",
        "name",
        meaning="before the talk, or single judges asked as often",
        getter=lambda pair: pair["judge_b"],
    ),
    Column("n", "Verdicts", "count"),
    *with_ends(
        Column("changed", "Changed", "rate", getter=_unlike("agreement")),
        detail=True,
        low=_unlike("agreement_high"),
        high=_unlike("agreement_low"),
    ),
    Column("wrong_to_right", "Wrong to right", "count", getter=_if_known("only_a_right")),
    Column("right_to_wrong", "Right to wrong", "count", getter=_if_known("only_b_right")),
    *with_ends(Column("accuracy_difference", "Accuracy +", "rate", meaning="judge less control")),
    *_headline("kappa_difference", "Kappa +", "decimal"),
    Column("sign_flip_p", "p", "exact"),
]
"""Of the pair of a judge and its control."""

_GROUPS = [
    Column("group", "Group", "name"),
    Column("raters", "Raters", "count"),
    Column("units", "Units", "count"),
    *with_ends(Column("fleiss_kappa", "Fleiss", "decimal")),
    *with_ends(Column("krippendorff_alpha", "Alpha", "decimal")),
]
_PAIRS = [
    Column("judge_a", "Judge", "name"),
    Column("judge_b", "Against", "name"),
    Column("n", "Verdicts", "count"),
    *with_ends(Column("agreement", "Agreement", "rate")),
    *_headline("agreement_kappa", "Kappa", "decimal"),
    *_headline(
        "ranking_kendall", "Rankings", "decimal", "Kendall's tau of the contestants' scores"
    ),
    *with_ends(Column("accuracy_difference", "Accuracy +", "rate")),
    *(
        part
        for figure in _FIGURES
        if figure.role == "value" and figure.key != "accuracy"
        for part in with_ends(
            Column(f"{figure.key}_difference", f"{figure.key} +", "decimal", True)
        )
    ),
    Column("only_a_right", "Only it right", "count"),
    Column("only_b_right", "Only the other", "count"),
    Column("sign_flip_p", "p", "exact"),
]
_RANKINGS = [
    Column("judge", "Judge", "name"),
    Column("rank", "Rank", "count", role="rank", of="score"),
    Column("contestant", "Contestant", "name"),
    *with_ends(Column("score", "Score", "rate")),
    Column("bt", "Bradley–Terry", "rating"),
    Column("n", "Comparisons", "count"),
]
_HOW_READ = (
    f"Rates in percent. {explained(_JUDGES)} "
    "Prefers longer, prefers itself: score given beyond what the truth gives, -1 to 1. Calls, "
    "tokens, seconds: of one verdict. Low, high: 95 % interval by item (docs/judges.md)."
)
_HOW_CHANGED = (
    "From the control to the judge. Before talk: the same members' opening votes. "
    f"{explained(_CONTROLS)}"
)
_HOW_PAIRED = (
    f"On what both have a verdict on. {explained(_PAIRS)} +: the first judge less the other. "
    "p: of a sign-flip test by item that both are right as often; of many pairs some are small by "
    "chance."
)
