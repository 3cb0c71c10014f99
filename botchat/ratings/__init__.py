"""Comparisons in, ratings out: bootstrap Elo and Bradley-Terry, in plain numpy."""

from botchat.ratings.bradley_terry import (
    BradleyTerryResult,
    BradleyTerrySettings,
    PairFit,
    TieSensitivity,
    bootstrap,
    fit,
    pair_fit,
    tie_sensitivity,
)
from botchat.ratings.comparisons import Comparisons
from botchat.ratings.elo import EloResult, EloSettings, bootstrap_elo, play
from botchat.ratings.rate_table import comparisons_from_rates

__all__ = [
    "BradleyTerryResult",
    "BradleyTerrySettings",
    "Comparisons",
    "EloResult",
    "EloSettings",
    "PairFit",
    "TieSensitivity",
    "bootstrap",
    "bootstrap_elo",
    "comparisons_from_rates",
    "fit",
    "pair_fit",
    "play",
    "tie_sensitivity",
]
