"""BotChat's own Figures 3 to 6, drawn as a board's from the numbers that it published.

No dialogue was published, so lengths have a mean and no spread; Figure 7's numbers stand nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.metrics.intervals import wilson
from botchat.papers.requests import Benching
from botchat.ratings.rate_table import COLUMNS
from botchat.report.figures import FORMATS, Chart, dots, matrix, stacks
from botchat.results import Result
from botchat.workspace.folder import Workspace
from botchat.workspace.jsonl import write_atomic

DIALOGUES, SEEDS = 547, 222
"""A model's in UniEval; those compared in both orders in the Arena and in GTEval (§§4.1, 4.2)."""


Parts = tuple[str, str, Callable[[Figure], None], int]
"""Title, caption, what draws it, and its number of rows, as a `Chart` takes them."""


class PublishedFigure(NamedTuple):
    """What one figure of the paper is made of."""

    names: tuple[tuple[str, ...], ...]
    """What files call the columns of contestants, each the ways that are known."""
    numbers: tuple[tuple[str, ...], ...]
    """Likewise of numbers."""
    parts: Callable[[pd.DataFrame], list[Parts]]
    """Of rows under the first name of each column; one a figure."""


def bench_botchat(request: Benching, workspace: Workspace) -> Result:
    """Draw every figure whose numbers a file has; paths of what was written.

    Raises `MissingDataError`, which says the columns, without any, and `DataError` for a number.
    """
    if unused := [name for name in ("judges", "limit", "published") if getattr(request, name)]:
        flag = unused[0].removesuffix("s")
        raise ConfigError(f"--{flag}: bench botchat draws published numbers; leave it out")
    data = request.data
    if data is None or not data.exists():
        raise MissingDataError(f"--data {data}: no such folder; name the one with the tables")
    paths = [data] if data.is_file() else sorted(data.rglob("*.csv"))
    folder, files = request.out or workspace.out("bench-botchat"), list[Path]()
    for number, of in FIGURES.items():
        tables = {path: frame for path in paths if (frame := _read(path, of)) is not None}
        for path, frame in tables.items():
            signature = f"{path.name} | sha256:{sha256(path.read_bytes()).hexdigest()[:12]}"
            source = f"BotChat (Duan et al. 2023), Figure {number}"
            for i, (title, caption, draw, n_rows) in enumerate(of.parts(frame)):
                name = f"figure-{number}" + "b" * i
                name += f"-{path.stem}" if len(tables) > 1 else ""
                about = f"{caption} {source}."
                chart = Chart(name, title, about, [signature], draw, n_rows)
                for form in FORMATS:
                    files.append(folder / f"{name}.{form}")
                    write_atomic(files[-1], chart.render(form))
    if not files:
        each = (" or ".join(names) for of in FIGURES.values() for names in (*of.names, *of.numbers))
        wanted = ", ".join(dict.fromkeys(each))
        raise MissingDataError(f"--data {data}: no csv file has a figure's columns of {wanted}")
    return Result({"paths": files}, [str(file) for file in files])


def _read(path: Path, of: PublishedFigure) -> pd.DataFrame | None:
    """Its columns under their first names; ``None``: it is not the figure's file."""
    try:
        table = pd.read_csv(path, dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except ValueError:
        return None
    every = (*of.names, *of.numbers)
    known = {names[0]: next((name for name in names if name in table), None) for names in every}
    if None in known.values():
        return None
    frame = table[[*known.values()]].set_axis([*known], axis=1)
    for key in (names[0] for names in of.numbers):
        values = pd.to_numeric(frame[key], errors="coerce")
        wrong = ~values.between(0, math.inf, "left")
        if wrong.any():
            n = int(wrong.argmax())
            cell = frame[key].iloc[n]
            raise DataError(f"{path.name}:{n + 2}: {cell!r} is no number from 0 on; correct it")
        frame[key] = values
    return frame


def _with_ends(shares: pd.Series[float], n: int) -> pd.DataFrame:
    """Shares with their intervals, of so many seeds."""
    low, high = wilson(shares, 1 / n)
    return pd.DataFrame({"value": shares, "low": low, "high": high})


def _shares(numbers: pd.DataFrame) -> pd.DataFrame:
    """Of 1, where they are percent."""
    return numbers / 100 if (numbers.to_numpy() > 1).any() else numbers


def _lengths(frame: pd.DataFrame) -> list[Parts]:
    means = frame.set_index("model").set_axis(["value"], axis=1).assign(low=math.nan, high=math.nan)
    caption = "Tokens of cl100k_base; no spread was published."
    draw = partial(dots, {"": means}, "mean tokens per utterance", {})
    return [("Mean length of a generated utterance", caption, draw, len(means))]


def _success(frame: pd.DataFrame) -> list[Parts]:
    shares = _shares(frame.set_index("model").iloc[:, ::-1])
    shares = shares.sort_values("success_n16", ascending=False, kind="stable")
    values = {f"N = {str(key).rpartition('_n')[2]}": 100 * _with_ends(shares[key], DIALOGUES)
              for key in shares}  # fmt: skip
    caption = f"{DIALOGUES} dialogues a model, with 95 % intervals."
    draw = partial(dots, values, "success rate (%)", {})
    return [("UniEval: success rate at N", caption, draw, len(shares))]


def _win_rates(frame: pd.DataFrame) -> list[Parts]:
    frame[["win_rate", "win_or_tie_rate"]] = _shares(frame[["win_rate", "win_or_tie_rate"]])
    mirrored = pd.DataFrame(
        {"model_a": frame["model_b"], "model_b": frame["model_a"],
         "win_rate": 1 - frame["win_or_tie_rate"], "win_or_tie_rate": 1 - frame["win_rate"]}
    )  # fmt: skip
    both = pd.concat([frame, mirrored]).drop_duplicates(["model_a", "model_b"])
    points = (both["win_rate"] + both["win_or_tie_rate"]).groupby(both["model_a"]).mean()
    order = list(points.sort_values(ascending=False).index)
    caption = f"The row's model against the column's; {2 * SEEDS} comparisons a pair."
    parts: list[Parts] = []
    for key, title in (("win_rate", "Win rate (%)"), ("win_or_tie_rate", "Win + tie rate (%)")):
        rates = both.pivot(index="model_a", columns="model_b", values=key).loc[order, order]
        parts.append((title, caption, partial(matrix, rates), 4 + len(order)))
    return parts


def _vs_human(frame: pd.DataFrame) -> list[Parts]:
    rates = _shares(frame.set_index("model"))
    caption = "A model wins where the judge takes the human dialogue for AI."
    title = "GTEval: model vs human dialogue"
    return [(title, caption, partial(stacks, rates), len(rates))]


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
    "6": PublishedFigure(_MODEL, _RESULTS, _vs_human),
}
"""Number -> what it is made of."""
