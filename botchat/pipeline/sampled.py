"""What an adaptive run found: the ranking, how sure it is, what it cost; in rows and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from botchat.pipeline.stage_file import Judged
from botchat.ratings.adaptive import State, Target

Row = dict[str, Any]

_TOP = 5
"""Models that a line of progress names."""

_MANY = 0.05
"""Share of the pairs that a target had better not allow in the wrong order; of 14 models 2 are
2 %."""

_WIDE = 1.96
"""Standard errors on each side of a 95 % interval."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """The Arena at one N after an adaptive run, or while it goes on."""

    turns: int
    models: tuple[str, ...]
    state: State
    target: Target
    """What ``state.swaps`` and ``state.probability`` are about."""
    added: str | None
    """The model that was placed; pairs and comparisons are then those with it."""
    judged: Judged

    @property
    def saved(self) -> float:
        """Share of the whole Arena's comparisons that were not made."""
        return 1 - self.state.made / self.state.population

    @property
    def rows(self) -> list[Row]:
        """A model each, best first: ``place``, ``model``, ``rating``, ``error`` (standard)."""
        rating, error = self.state.rating, self.state.error
        order = np.argsort(-rating, kind="stable")
        return [
            {
                "place": place,
                "model": self.models[i],
                "rating": round(float(rating[i]), 2),
                "error": round(float(error[i]), 2),
            }
            for place, i in enumerate(order.tolist(), 1)
        ]

    @property
    def shown(self) -> list[Row]:
        """The same for people."""
        return [
            {
                "place": row["place"],
                "model": row["model"],
                "rating": f"{row['rating']:.0f}",
                "± 95 %": f"{_WIDE * row['error']:.0f}",
            }
            for row in self.rows
        ]

    @property
    def placed(self) -> Row | None:
        """The model that was added: its row, ``of`` how many, who is next ``above`` and ``below``.

        ``None`` where none was added.
        """
        rows = self.rows
        names = [row["model"] for row in rows]
        if self.added is None:
            return None
        i = names.index(self.added)
        return {
            **rows[i],
            "of": len(rows),
            "above": names[i - 1] if i else None,
            "below": names[i + 1] if i + 1 < len(names) else None,
        }

    @property
    def json(self) -> Row:
        """All of it, JSON-ready."""
        state, judged = self.state, self.judged
        return {
            "protocol": judged.protocol,
            "judge": judged.judge,
            "cases": judged.cases,
            "new": judged.new,
            "unreadable": judged.unreadable,
            "path": str(judged.path),
            "made": state.made,
            "population": state.population,
            "saved": round(self.saved, 4),
            "gap": self.target.gap,
            "confidence": self.target.confidence,
            "swaps": state.swaps,
            "probability": round(state.probability, 4),
            "stopped": state.finished,
            "warning": state.warning,
            "ratings": self.rows,
            "placed": self.placed,
            **({"escalations": asdict(judged.escalations)} if judged.escalations else {}),
            **({"stability": asdict(judged.stability)} if judged.stability else {}),
        }

    @property
    def lines(self) -> list[str]:
        """What it comes to, a sentence each."""
        state, target = self.state, self.target
        scope = f" with {self.added}" if self.added else ""
        said = [
            f"Arena at N = {self.turns}: {state.made:,} of {state.population:,} comparisons{scope} "
            f"made, {100 * self.saved:.1f} % saved; {state.finished or 'not finished'}",
            f"With {100 * target.confidence:g} % confidence, {_pairs(state.swaps)}{scope} more "
            f"than {target.gap:g} Elo apart on the whole Arena "
            f"{'are' if state.swaps > 1 else 'is'} in the wrong order "
            f"(at most {target.swaps}: {_percent(state.probability)})",
        ]
        placed = self.placed
        if placed is not None:
            beside = [
                f"{where} {placed[key]}"
                for key, where in (("above", "below"), ("below", "above"))
                if placed[key]
            ]
            said.append(
                f"{self.added}: {placed['rating']:.0f} ± {_WIDE * placed['error']:.0f} (95 %), "
                f"place {placed['place']} of {placed['of']}, {' and '.join(beside)}"
            )
            said += [_beyond(placed)] if len(beside) == 1 else []
        said += (
            [f"{self.judged.protocol}: {self.judged.stability}"] if self.judged.stability else []
        )
        n_pairs = pairs(len(self.models), self.added)
        if target.swaps > _MANY * n_pairs and state.finished == "target reached":
            said.append(
                f"Warning: the target allows {target.swaps} of {n_pairs} pairs in the wrong order; "
                "so few models need --target swaps=0"
            )
        return [*said, *([f"Warning: {state.warning}"] if state.warning else [])]

    @property
    def progress(self) -> str:
        """How it stands, in one line."""
        state, target = self.state, self.target
        top = ", ".join(
            f"{row['model']} {row['rating']:.0f} ± {_WIDE * row['error']:.0f}"
            for row in self.rows[:_TOP]
        )
        more = ", …" if len(self.models) > _TOP else ""
        return (
            f"N = {self.turns}: {state.made:,} of {state.population:,} "
            f"({100 * self.saved:.1f} % saved) · up to {state.swaps} swaps "
            f"(at most {target.swaps}: {_percent(state.probability)}) · {top}{more}"
        )


def pairs(n_models: int, added: str | None) -> int:
    """Pairs of models that a run asks about."""
    return n_models * (n_models - 1) // 2 if added is None else n_models - 1


def _pairs(n: int) -> str:
    return {0: "no pair", 1: "at most 1 pair"}.get(n, f"at most {n} pairs")


def _percent(probability: float) -> str:
    """Nothing is certain: draws end at a few in a thousand."""
    return "over 99 %" if probability > 0.99 else f"{100 * probability:.0f} %"


def _beyond(placed: Row) -> str:
    end = "best" if placed["above"] is None else "worst"
    return (
        f"Warning: {placed['model']} is the {end} of all: nobody beyond it tells how far it is "
        "from the others, so its rating may be further out than its error says"
    )
