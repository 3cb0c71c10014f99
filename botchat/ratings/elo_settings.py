"""How bootstrap Elo is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from botchat.errors import ConfigError

MOST_GAMES = 2_000_000_000
"""Games of a board that nobody chose shuffles for: one and a half minutes on a core."""


@dataclass(frozen=True)
class EloSettings:
    """How bootstrap Elo is computed; the defaults are the paper's (§4.2, Appendix A).

    Raises `ConfigError` for values that define no rating.
    """

    init: float = 1000.0
    scale: float = 400.0
    k: float = 32.0
    shuffles: int = 1000
    runs: int = 10
    seed: int = 0
    resample: bool = False
    """Draw comparisons with replacement instead of shuffling them (not the paper's protocol)."""
    most_games: int | None = None
    """Play fewer shuffles where ``shuffles`` in each run would be more games, of all runs together;
    `MOST_GAMES` for boards of any size. ``None``: never."""
    per_pair: int | None = None
    """Draw so many of every compared pair, on average: a pair at random, then one of its
    comparisons, with replacement (not the paper's protocol). Estimates the Elo of a whole design
    from a part that has more of some pairs than of others."""

    @classmethod
    def of_board(
        cls, shuffles: int | None = None, runs: int | None = None, seed: int = 0
    ) -> EloSettings:
        """Of a board: who names neither shuffles nor runs gets no more than `MOST_GAMES`."""
        most = MOST_GAMES if shuffles is None and runs is None else None
        shuffles = cls.shuffles if shuffles is None else shuffles
        runs = cls.runs if runs is None else runs
        return cls(shuffles=shuffles, runs=runs, seed=seed, most_games=most)

    def __post_init__(self) -> None:
        """Check ranges."""
        if not math.isfinite(self.init):
            raise ConfigError(f"Elo init {self.init}: give a finite rating such as 1000")
        for name in ("scale", "k"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"Elo {name} {value}: give a number above 0")
        for name in ("shuffles", "runs", "seed", "most_games", "per_pair"):
            least = 0 if name == "seed" else 1
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"Elo {name} {value}: give at least {least}")
