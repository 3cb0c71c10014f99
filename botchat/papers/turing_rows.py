"""What answers in the exam are worth: arrays of chats in, rows and tables out.

Every interval is by chat (`botchat.measures.intervals`); where a figure jumps (a place on a curve,
a rank among a few systems) it is the percentiles of a bootstrap over chats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.interfaces import Row
from botchat.measures.intervals import Statistic, figures, left_out, share
from botchat.measures.statistics import (
    cohen_kappa,
    kendall,
    kind_weights,
    ratio,
    spearman,
)
from botchat.verdicts import Flags, Floats, Indices

ACCUSED = 0.05
"""Of people, where machines are counted that are caught."""
_DRAWS = 500


@dataclass(frozen=True, eq=False)
class Chats:
    """Whole chats of several sources; shape (chats,) each."""

    source: Indices
    machine: Flags
    majority: Floats
    """Of people: 1 accuses, 0 does not; nan of a tie, or where nobody was asked."""

    def row(self, score: Floats, accuses: Floats) -> Row:
        """Figures of all that is known of; see `_COLUMNS`.

        ``score``: the higher the more of a machine; ``accuses``: 1 or 0; nan: not known.
        """
        wins, pairs, drawn = np.zeros(len(score)), np.zeros(len(score)), []
        for one in np.unique(self.source):
            of = (self.source == one) & ~np.isnan(score)
            m, p = np.flatnonzero(of & self.machine), np.flatnonzero(of & ~self.machine)
            if not len(m) or not len(p):
                continue
            won = (np.sign(score[m][:, None] - score[p]) + 1) / 2
            for at, axis in ((m, 1), (p, 0)):
                wins[at], pairs[at] = won.sum(axis), won.shape[axis]
            drawn.append(caught(score[m], score[p]))
        known, both = ~np.isnan(accuses), self.majority >= 0
        total = np.array([wins[self.machine].sum(), pairs[self.machine].sum()])
        without = np.stack([total[0] - wins, total[1] - pairs])
        found = {
            "auc": Statistic(ratio(*np.column_stack([total, without])), int((pairs > 0).sum()))
        }
        if drawn:
            found["caught"] = Statistic(np.mean(drawn, 0), kind="drawn")
        if (asked := known & both).any():
            found["kappa"] = kappa(accuses[asked], self.majority[asked])
        right = (accuses == self.machine)[known]
        return {
            "machines": int((self.machine & ~np.isnan(score)).sum()),
            "people": int((~self.machine & ~np.isnan(score)).sum()),
            **figures(found),
            **share(right, None, "truth"),
            **accused(accuses[known], self.machine[known]),
        }


def accused(accuses: Floats, machine: Flags, item: Indices | None = None) -> Row:
    """Shares of machines' and of people's chats; ``item``: the chat of each verdict, if several."""
    row: Row = {}
    for name, of in (("machines_accused", machine), ("people_accused", ~machine)):
        row |= share(accuses[of], None if item is None else item[of], name)
    return row


def caught(machine: Floats, people: Floats) -> Floats:
    """Share of machines above what 5 % of people reach, then in each resample of both; (n + 1,).

    Between two scores, and within ties, as if those there were drawn by lot.
    """
    scores = np.unique(np.concatenate([machine, people]))[::-1]
    shares = []
    for seed, of in enumerate((people, machine)):
        order = np.argsort(-of)
        weights = kind_weights(np.ones(len(of), np.intp), _DRAWS, seed)[:, order]
        sums = np.column_stack([np.zeros(len(weights)), weights.cumsum(1)]) / len(of)
        reached = np.searchsorted(-of[order], -scores, side="right")
        shares.append(np.column_stack([np.zeros(len(weights)), sums[:, reached]]))
    return np.array([np.interp(ACCUSED, x, y) for x, y in zip(*shares, strict=True)])


def kappa(one: Floats, other: Floats, item: Indices | None = None) -> Statistic:
    """Cohen's kappa of marks of 0 and 1, shape (verdicts,); ``item``: the chat of each."""
    item = np.arange(len(one)) if item is None else item
    table = np.zeros((int(item.max()) + 1, 2, 2))
    np.add.at(table, (item, one.astype(np.intp), other.astype(np.intp)), 1)
    counted = left_out(table)
    return Statistic(cohen_kappa(counted), len(table), float(cohen_kappa(counted[0], 0)))


def of_raters(accuses: Floats, others: Floats, machine: Flags, item: Indices) -> Row:
    """One rater against the rest: all have shape (verdicts,).

    ``others``: the majority of the talk's other raters, nan of a tie; ``item``: the talk.
    """
    each = np.zeros((int(item.max()) + 1, 2, 2))
    np.add.at(each, (item, machine.astype(np.intp), accuses.astype(np.intp)), 1)
    sums = left_out(each)
    people, caught = (ratio(sums[:, k, 1], sums[:, k].sum(-1)) for k in (0, 1))
    above = caught + (1 - caught) * ratio(ACCUSED - people, 1 - people)
    at = np.where(people > ACCUSED, caught * ratio(ACCUSED, people), above)
    figure = {"auc": (1 + caught - people) / 2, "caught": at}
    found = {name: Statistic(values, len(each)) for name, values in figure.items()}
    if (tell := ~np.isnan(others)).any():
        again = np.unique(item[tell], return_inverse=True)[1]
        found["kappa"] = kappa(accuses[tell], others[tell], again)
    return {
        "machines": len(np.unique(item[machine])),
        "people": len(np.unique(item[~machine])),
        **figures(found),
        **share(accuses == machine, item, "truth"),
        **accused(accuses, machine, item),
    }


def of_turns(marks: Floats, raters: Floats, item: Indices) -> Row:
    """Marks of utterances beside two raters' of the same; shapes (turns,), (turns, 2), (turns,).

    ``f1``: with either rater, the mean. ``auc``: an utterance that a rater marks is marked, rather
    than one that none does.
    """
    someone = raters.any(1)
    columns = [marks, *(marks[:, None] * raters).T, *raters.T, marks * someone, someone,
               np.ones(len(marks))]  # fmt: skip
    each = np.zeros((int(item.max()) + 1, len(columns)))
    np.add.at(each, item, np.stack(columns, 1))
    said, hit_1, hit_2, one, other, caught, true, n = left_out(each).T
    f1 = (ratio(2 * hit_1, said + one) + ratio(2 * hit_2, said + other)) / 2
    auc = (1 + ratio(caught, true) - ratio(said - caught, n - true)) / 2
    found = {name: Statistic(value, len(each)) for name, value in (("f1", f1), ("auc", auc))}
    return {"chats": len(each), "turns": len(marks), **figures(found)}


def by_system(value: Floats, rating: Floats, member: Floats) -> Row:
    """Rank correlations of systems' means with people's.

    ``value``, ``rating``: of each chat, nan where unknown; ``member``: (chats, systems), 1 where
    a system takes part in a chat.
    """
    known = ~np.isnan(value + rating)
    of = member[known][:, member[known].any(0)] * 1.0  # of a few chats some systems have none
    weights = kind_weights(np.ones(len(of), np.intp), _DRAWS, 0).astype(np.float64)
    mean = [ratio((weights * x[known]) @ of, weights @ of) for x in (value, rating)]
    # A system that no draw has is at the end of both orders by chance alone: leave that draw out.
    whole = ~np.isnan(mean[0] + mean[1]).any(1)
    found = {
        name: Statistic(measure(mean[0][whole], mean[1][whole]), kind="drawn")
        for name, measure in (("spearman", spearman), ("kendall", kendall))
    }
    return {"systems": of.shape[1], "chats": int(known.sum()), **figures(found)}


_COLUMNS = (
    Column("source", "Source", "name"),
    Column("who", "Who", "name"),
    Column("after", "After", "count", meaning="so many utterances"),
    Column("quality", "People rated", "name"),
    Column("f1", "F1", "rate", meaning="with either of two raters, the mean"),
    Column("auc", "AUC", "decimal",
           meaning="what is a machine's is taken for more of one than what is a person's"),
    Column("caught", "Caught at 5 %", "rate", meaning="machines, where 5 % of people are accused"),
    Column("kappa", "Kappa", "decimal", meaning="with the majority of people"),
    Column("truth", "Right", "rate"),
    Column("machines_accused", "Machines accused", "rate"),
    Column("people_accused", "People accused", "rate"),
    Column("right", "Right", "rate", meaning="of two chats a tie is half of one"),
    Column("spearman", "Spearman", "decimal"),
    Column("kendall", "Kendall", "decimal"),
    Column("calls_right", "Calls", "number", meaning="of one right answer"),
    Column("usd_right", "USD / 1000 right", "decimal", priority=1),
    Column("machines", "Machines", "count", priority=2),
    Column("people", "People", "count", priority=2),
    Column("turns", "Utterances", "count"),
    Column("systems", "Systems", "count"),
    Column("chats", "Chats", "count", priority=2),
    Column("era", "Era", "name", priority=2),
    Column("cut", "Cut", "name", priority=3),
)  # fmt: skip
TASKS = {
    "whole": "The exam: is a machine in this chat?",
    "prefixes": "The exam, from which utterance on: accused by then",
    "speakers": "The exam: which speaker is the machine?",
    "pairs": "The exam: which of two chats has a machine in it?",
    "turns": "The exam: which utterances say again what was said?",
    "systems": "The exam: the order of the systems, beside people's ratings",
}
"""Task -> title of its table."""


def table_of(task: str, rows: Sequence[Row], signed: str) -> Table:
    """The table of a task: the columns that its rows have."""
    known = {key for row in rows for key in row}
    columns = [one for one in _COLUMNS if one.key in known]
    if task == "pairs":
        columns = [replace(c, heading="Cases") if c.key == "chats" else c for c in columns]
    ended = (with_interval(c) if f"{c.key}_low" in known else (c,) for c in columns)
    said = f"{explained(columns)} In brackets the 95 % interval, by chat.".strip()
    made = table(f"exam-{task}", TASKS[task], [*chain.from_iterable(ended)], rows, [signed], said)
    return made.filled()
