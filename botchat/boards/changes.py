"""Two boards side by side: what they share, and what changed between them."""

import math
from itertools import chain, product
from statistics import NormalDist

import msgspec
import numpy as np
import pandas as pd

from botchat.boards.success import passes
from botchat.errors import DataError
from botchat.estimates import Floats, Indices
from botchat.interfaces import Row
from botchat.metrics.statistics import holm, sign_flip
from botchat.protocols.protocol import PASS_AT
from botchat.records import HUMAN, Texts

FIRST_N = PASS_AT[0]
"""N of the second test: the largest N is blind where few dialogues get so far."""


class SavedBoard(msgspec.Struct, frozen=True):
    """A board as its ``leaderboard.json`` has it."""

    rows: list[Row]
    """A row a contestant."""
    signatures: list[str]
    by_seed: dict[str, dict[str, int | None]] = {}
    """Model -> seed id -> index of the first AI utterance; 0 if none, None if unknown."""
    dialogues: dict[str, str] = {}
    """Model -> digest of its dialogues."""
    topics: dict[str, str] = {}
    """Seed id -> topic, where it has one."""
    n: int = PASS_AT[-1]
    """The largest N of its success rates; older versions did not write it."""
    path: str = ""
    headline: str = ""
    judge: Row = {}
    """Level, reasons and checks of the judge."""

    @property
    def models(self) -> list[str]:
        """Contestants but for humans."""
        return [row["model"] for row in self.rows if row.get("model", HUMAN) != HUMAN]

    @property
    def seeds(self) -> set[str]:
        """Ids of the seeds that any model was judged on."""
        return set(chain.from_iterable(self.by_seed.values()))

    def success(self, model: str, n: int) -> pd.Series:
        """Return by seed 1 where no utterance up to N is AI's, else 0, where that is known."""
        first_ai = pd.Series(self.by_seed.get(model, {}), dtype=float)
        ends = pd.DataFrame({"first_ai": first_ai, "shown": max(n, self.n)})
        return passes(ends, n).dropna()

    @property
    def settings(self) -> dict[tuple[str, str], str | None]:
        """Judge and prompt of each signature: (label, protocol and N) -> part."""
        settings = {}
        for signature in self.signatures:
            parts = signature.split("|")
            by_label = {part.partition(":")[0]: part for part in parts}
            protocol = " ".join(parts[1:2])
            if "n" in by_label:
                protocol += f" {by_label['n']}"
            for label in ("judge", "prompt"):
                settings[label, protocol] = by_label.get(label)
        return settings


class Boards:
    """Two boards, and the models that are on both."""

    def __init__(self, old: SavedBoard, new: SavedBoard) -> None:
        """Raises `DataError` if no model is on both."""
        self.old = old
        self.new = new
        self.tested_n = dict.fromkeys((old.n, FIRST_N))
        self.models = [name for name in old.models if name in new.models]
        self.gone = [name for name in old.models if name not in new.models]
        if not self.models:
            raise DataError(f"no model is on both boards: {old.path} and {new.path}")
        same = dict(old.dialogues.items() & new.dialogues.items())
        self.changed = [name for name in self.models if name not in same]
        self.unchanged = [name for name in self.models if name in same]
        """Models whose dialogues are word for word the same on both boards."""

    def p_values(self, models: Texts) -> dict[str, float]:
        """Return model -> p that it fell at no N, of models that changed and have a seed (Holm)."""
        tests = {}
        for name, n in product(models, self.tested_n):
            changes, cluster = self.changes(name, n)
            if name in self.changed and len(changes):
                tests[name, n] = p_fell(changes, cluster)
        p: dict[str, float] = {}
        for (name, _), value in zip(tests, holm(list(tests.values())), strict=True):
            p[name] = min(value, p.get(name, 1.0))
        return p

    def power(self, models: Texts, alpha: float) -> float:
        """Return how often a gate on these finds that one fell from 65 to 35 % at one N.

        By the normal approximation of the test at Holm's first step. Seeds are as many as the model
        with the fewest has, topics once each.
        """
        n = min(len({*self.changes(name, self.old.n)[1]}) for name in models)
        z = NormalDist().inv_cdf(alpha / (len(models) * len(self.tested_n)))
        # Of the seeds 0.65² fall and 0.35² rise.
        return NormalDist(0.5, math.sqrt(0.455 * n)).cdf(0.3 * n + z * math.sqrt(0.545 * n))

    def changes(self, model: str, n: int) -> tuple[Floats, Indices]:
        """Return success at N after less before on each seed known on both, and its cluster."""
        success = self.new.success(model, n) - self.old.success(model, n)
        changes = success.dropna().sort_index()
        clusters = [self.new.topics.get(seed, seed) for seed in changes.index]
        return changes.to_numpy(), np.unique(clusters, return_inverse=True)[1]


def p_fell(changes: Floats, cluster: Indices) -> float:
    """Return the one-sided p that a model did not fall: where it did, half of the two-sided one."""
    sums = np.asarray(np.bincount(cluster, changes), np.float64)
    return sign_flip(sums) / 2 if changes.sum() < 0 else 1.0
