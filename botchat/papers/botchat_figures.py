"""BotChat's own Figures 3 to 6, drawn again from the numbers that it published.

Each is the figure that a board draws of the same numbers. No dialogue was published, so lengths
have a mean and no spread (Figure 3 is a violin plot); Figure 7's numbers stand nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.metrics.intervals import of_share
from botchat.papers.requests import Benching
from botchat.pipeline.plot import FORMATS, written
from botchat.ratings.rate_table import COLUMNS
from botchat.report.figures import cells, rows
from botchat.report.figures.cells import Cells
from botchat.report.figures.chart import chart
from botchat.report.figures.sheet import WIDE, Look
from botchat.requests.results import Told
from botchat.workspace.folder import Workspace

DIALOGUES, SEEDS = 547, 222
"""A model's in UniEval; those compared in both orders in the Arena and in GTEval (§§4.1, 4.2)."""


Parts = tuple[Any, ...]
"""Title, caption, number of cases, and what draws it with its data, as `chart` takes them."""


class PublishedFigure(NamedTuple):
    """What one figure of the paper is made of."""

    names: tuple[tuple[str, ...], ...]
    """What files call the columns of contestants, each the ways that are known."""
    numbers: tuple[tuple[str, ...], ...]
    """Likewise of numbers."""
    parts: Callable[[pd.DataFrame], Parts]
    """Of rows under the first name of each column."""


def bench_botchat(request: Benching, workspace: Workspace) -> Told:
    """Draw every figure whose numbers a file has; paths of what was written.

    Raises:
        MissingDataError: no file has the columns of a figure; says which.
        DataError: a number that is none.
    """
    asking = ("judge", "judge_model", "limit", "from_recorded")
    if unused := [name for name in asking if getattr(request, name)]:
        flag = unused[0].removeprefix("from_").replace("_", "-")
        raise ConfigError(f"--{flag}: bench botchat draws published numbers; leave it out")
    if not request.data.exists():
        raise MissingDataError(
            f"--data {request.data}: no such folder; name the one with the published tables"
        )
    paths = [request.data] if request.data.is_file() else sorted(request.data.rglob("*.csv"))
    look, folder = Look(WIDE, None), request.out or workspace.out("bench-botchat")
    made = []
    for number, of in FIGURES.items():
        found = {path: frame for path in paths if (frame := _read(path, of)) is not None}
        for path, frame in found.items():
            name = f"figure-{number}" + (f"-{path.stem}" if len(found) > 1 else "")
            signature = f"{path.name} | sha256:{sha256(path.read_bytes()).hexdigest()[:12]}"
            title, caption, count, *drawing = of.parts(frame)
            source = f"BotChat (Duan et al. 2023), Figure {number}"
            shown = chart(name, title, caption, count, source, [signature], *drawing)
            made += [written(shown, look, folder / f"{name}.{form}") for form in FORMATS]
    if not made:
        each = (" or ".join(names) for of in FIGURES.values() for names in (*of.names, *of.numbers))
        wanted = ", ".join(dict.fromkeys(each))
        raise MissingDataError(
            f"--data {request.data}: no csv file has a figure's columns of {wanted}"
        )
    files = list(dict.fromkeys(file for one in made for file in one.whole.values()))
    return Told({"paths": files}, [str(file) for file in files])


def _read(path: Path, of: PublishedFigure) -> pd.DataFrame | None:
    """Its columns under their first names; ``None``: it is not the figure's file."""
    try:
        there = pd.read_csv(path, dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except ValueError:
        return None
    known = {names[0]: next((n for n in names if n in there), None)
             for names in (*of.names, *of.numbers)}  # fmt: skip
    if None in known.values():
        return None
    frame = there[[*known.values()]].set_axis([*known], axis=1)
    for key in (names[0] for names in of.numbers):
        values = pd.to_numeric(frame[key], errors="coerce")
        right = values.between(0, math.inf, "left")
        for line, (cell, good) in enumerate(zip(frame[key], right, strict=True), 2):
            if not good:
                raise DataError(f"{path.name}:{line}: {cell!r} is no number from 0 on; correct it")
        frame[key] = values
    return frame


def _with_ends(shares: pd.Series[float], n: int) -> pd.DataFrame:
    """Shares with their intervals, of so many seeds."""
    ends = [of_share(share * n, n) for share in shares]
    low, high = zip(*ends, strict=True)
    return pd.DataFrame({shares.name: shares, "low": low, "high": high}, index=shares.index)


def _shares(numbers: pd.DataFrame) -> pd.DataFrame:
    """Of 1, where they are percent."""
    return numbers / 100 if (numbers.to_numpy() > 1).any() else numbers


def _lengths(frame: pd.DataFrame) -> Parts:
    means = frame.set_index("model").assign(low=math.nan, high=math.nan)
    means = means.rename(columns={"mean_tokens": "tokens"})
    return (
        "Mean length of a generated utterance", "Tokens of cl100k_base; no spread was published.",
        f"{len(means)} models", rows.series, {"tokens": means}, "Tokens", "{:.1f}",
    )  # fmt: skip


def _success(frame: pd.DataFrame) -> Parts:
    shares = _shares(frame.set_index("model").iloc[:, ::-1])
    shares = shares.sort_values("success_n16", ascending=False, kind="stable")
    values = {f"N = {str(key).rpartition('_n')[2]}": 100 * _with_ends(shares[key], DIALOGUES)
              for key in shares}  # fmt: skip
    return (
        "Dialogues that pass for people's", "UniEval's success rate at N, with 95 % intervals.",
        f"{DIALOGUES} dialogues a model", rows.series, values, "Success (%)", "{:.1f}",
    )  # fmt: skip


def _win_rates(frame: pd.DataFrame) -> Parts:
    frame[["win_rate", "win_or_tie_rate"]] = _shares(frame[["win_rate", "win_or_tie_rate"]])
    mirrored = pd.DataFrame(
        {"model_a": frame["model_b"], "model_b": frame["model_a"],
         "win_rate": 1 - frame["win_or_tie_rate"], "win_or_tie_rate": 1 - frame["win_rate"]}
    )  # fmt: skip
    both = pd.concat([frame, mirrored]).drop_duplicates(["model_a", "model_b"])
    points = (both["win_rate"] + both["win_or_tie_rate"]).groupby(both["model_a"]).mean()
    order = list(points.sort_values(ascending=False).index)
    parts = [
        Cells(title, both.pivot(index="model_a", columns="model_b", values=key).loc[order, order])
        for key, title in (("win_rate", "Win rate (%)"), ("win_or_tie_rate", "Win + tie rate (%)"))
    ]
    return (
        "Win rates between models",
        "How often the row's model wins, or at least ties, against the column's; by mean.",
        f"{2 * SEEDS} comparisons a pair", cells.squares, parts, "row against column",
    )  # fmt: skip


def _beside_people(frame: pd.DataFrame) -> Parts:
    rates = _shares(frame.set_index("model"))
    score = (rates["win"] + rates["tie"] / 2).sort_values(ascending=False, kind="stable")
    return (
        "GTEval: models against the human dialogue",
        "A model wins where the judge takes the human one for AI; centred on ties.",
        f"{2 * SEEDS} comparisons a model", rows.wings, rates.loc[score.index],
    )  # fmt: skip


_MODEL = (("model", "Model"),)
_SUCCESS = (
    ("success_n8", "success_percent_n8", "Uni_Eval_8"),
    ("success_n16", "success_percent_n16", "Uni_Eval_16"),
)
_SIDES = tuple((name,) for name in COLUMNS[:2])
_RATES = tuple((name,) for name in COLUMNS[2:])
_RESULTS = tuple((name, f"{name}_percent", f"{name}_rate") for name in ("win", "tie", "lose"))

FIGURES = {
    "3": PublishedFigure(_MODEL, (("mean_tokens", "Length"),), _lengths),
    "4": PublishedFigure(_MODEL, _SUCCESS, _success),
    "5": PublishedFigure(_SIDES, _RATES, _win_rates),
    "6": PublishedFigure(_MODEL, _RESULTS, _beside_people),
}
"""Number -> what it is made of."""
