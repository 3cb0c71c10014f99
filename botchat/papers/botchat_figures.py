"""BotChat's own Figures 3 to 6, drawn as a board's from the numbers that it published.

No dialogue was published, so lengths have a mean and no spread; Figure 7's numbers stand nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from botchat.errors import DataError, MissingDataError, listed
from botchat.importers.tables import read_table
from botchat.metrics.statistics import wilson
from botchat.ratings.comparisons import COLUMNS
from botchat.report.figures import FORMATS, Chart, dots, matrix, stacks
from botchat.results import Result
from botchat.workspace.jsonl import write_atomic

DIALOGUES = 547  # a model's in UniEval (§4.1)
SEEDS = 222  # compared in both orders (§4.2)


Drawing = tuple[str, str, Callable[[Axes], None], int]
"""Title, caption, drawing function and number of rows, as a `Chart` takes them."""


def bench_botchat(data: Path | None, folder: Path) -> Result:
    """Draw every figure whose columns a file of ``data`` has; return the paths of the figures.

    Raises `MissingDataError`, with the columns, without any, and `DataError` for a number.
    """
    if data is None or not data.exists():
        raise MissingDataError(f"--data {data}: no such folder; name the one with the tables")
    files = []
    tables = sorted(data.rglob("*.csv"))
    if data.is_file():
        tables = [data]
    for path in tables:
        signature = f"{path.name} | sha256:{sha256(path.read_bytes()).hexdigest()[:12]}"
        for number, (columns, drawings) in FIGURES.items():
            frame = read_columns(path, columns)
            if frame is None:
                continue
            for letter, drawing in zip(("", "b"), drawings(frame), strict=False):
                title, caption, draw, n_rows = drawing
                name = f"figure-{number}{letter}-{path.stem}"
                caption += f" BotChat (Duan et al. 2023), Figure {number}."
                chart = Chart(name, title, caption, [signature], draw, n_rows)
                for form in FORMATS:
                    files.append(folder / f"{name}.{form}")
                    write_atomic(files[-1], chart.render(form))
    if not files:
        wanted = dict.fromkeys(chain.from_iterable(columns for columns, _ in FIGURES.values()))
        raise MissingDataError(
            f"--data {data}: no csv file has a figure's columns of {listed(wanted)}"
        )
    return Result({"paths": files}, [str(file) for file in files])


def read_columns(path: Path, columns: tuple[str, ...]) -> pd.DataFrame | None:
    """Read names and numbers of a csv file, percent as shares; None if it lacks a column."""
    frame = read_table(path.read_bytes(), path.name).frame
    if not set(columns) <= set(frame):
        return None
    frame = frame[list(columns)].copy()
    for key in columns:
        if key.startswith("model"):
            continue
        values = pd.to_numeric(frame[key], errors="coerce")
        for row, cell in frame[key][~values.between(0, math.inf, "left")].items():
            raise DataError(f"{path.name}:{row}: {cell!r:.60} is no number from 0 on; correct it")
        if "percent" in key:
            values = values / 100
        frame[key] = values
    return frame


def _lengths(frame: pd.DataFrame) -> Iterator[Drawing]:
    means = frame.set_index("model").set_axis(["value"], axis=1).assign(low=math.nan, high=math.nan)
    yield (
        "Mean length of a generated utterance",
        "Tokens of cl100k_base; no spread was published.",
        partial(dots, {"": means}, "mean tokens per utterance", {}),
        len(means),
    )


def _success(frame: pd.DataFrame) -> Iterator[Drawing]:
    shares = frame.set_index("model")
    shares = shares.sort_values("success_percent_n16", ascending=False, kind="stable")
    series = {}
    for n in (16, 8):
        share = shares[f"success_percent_n{n}"]
        low, high = wilson(share, 1 / DIALOGUES)
        series[f"N = {n}"] = 100 * pd.DataFrame({"value": share, "low": low, "high": high})
    yield (
        "UniEval: success rate at N",
        f"{DIALOGUES} dialogues a model, with 95 % intervals.",
        partial(dots, series, "success rate (%)", {}),
        len(shares),
    )


def _win_rates(frame: pd.DataFrame) -> Iterator[Drawing]:
    mirrored = pd.DataFrame(
        {
            "model_a": frame["model_b"],
            "model_b": frame["model_a"],
            "win_rate": 1 - frame["win_or_tie_rate"],
            "win_or_tie_rate": 1 - frame["win_rate"],
        }
    )
    both = pd.concat([frame, mirrored]).drop_duplicates(["model_a", "model_b"])
    points = (both["win_rate"] + both["win_or_tie_rate"]).groupby(both["model_a"]).mean()
    order = list(points.sort_values(ascending=False).index)
    caption = f"The row's model against the column's; {2 * SEEDS} comparisons a pair."
    for key, title in (("win_rate", "Win rate (%)"), ("win_or_tie_rate", "Win + tie rate (%)")):
        rates = both.pivot(index="model_a", columns="model_b", values=key).loc[order, order]
        yield (title, caption, partial(matrix, rates), 4 + len(order))


def _vs_human(frame: pd.DataFrame) -> Iterator[Drawing]:
    rates = frame.set_index("model").set_axis(["win", "tie", "lose"], axis=1)
    yield (
        "GTEval: model vs human dialogue",
        "A model wins where the judge takes the human dialogue for AI.",
        partial(stacks, rates),
        len(rates),
    )


FIGURES = {
    "3": (("model", "mean_tokens"), _lengths),
    "4": (("model", "success_percent_n8", "success_percent_n16"), _success),
    "5": (COLUMNS, _win_rates),
    "6": (("model", "win_percent", "tie_percent", "lose_percent"), _vs_human),
}
"""Number -> columns of its file, and its drawings."""
