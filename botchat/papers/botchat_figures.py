"""BotChat's own Figures 3 to 6, drawn as a board's from the numbers that it published.

No dialogue was published, so lengths have a mean and no spread; Figure 7's numbers stand nowhere.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

import pandas as pd

from botchat.errors import DataError, MissingDataError, listed
from botchat.importers.tables import read_table
from botchat.interfaces import Cells
from botchat.metrics.statistics import wilson
from botchat.ratings.comparisons import COLUMNS
from botchat.records import Names
from botchat.report.drawing import dots, matrix, stacks
from botchat.report.figures import Chart, captions, svg_files
from botchat.results import Result
from botchat.workspace.jsonl import write_all

DIALOGUES = 547  # a model's in UniEval (§4.1)
SEEDS = 222  # compared in both orders (§4.2)


def bench_botchat(data: Path | None, folder: Path) -> Result:
    """Draw every figure whose columns a file of ``data`` has, as svg; return a row for each.

    Raises `MissingDataError`, with the columns, without any, and `DataError` for a number.
    """
    if data is None or not data.exists():
        raise MissingDataError(f"--data {data}: no such folder; name the one with the tables")
    charts = []
    rows: list[Cells] = []
    tables = sorted(data.rglob("*.csv"))
    if data.is_file():
        tables = [data]
    for path in tables:
        signature = f"{path.name} | sha256:{sha256(path.read_bytes()).hexdigest()[:12]}"
        for number, (columns, drawings) in FIGURES.items():
            frame = read_columns(path, columns)
            if frame is None:
                continue
            # Figure 5 has two matrices.
            for letter, chart in zip(("", "b"), drawings(frame), strict=False):
                name = f"figure-{number}{letter}-{path.stem}"
                caption = f"{chart.caption} BotChat (Duan et al. 2023), Figure {number}."
                charts.append(replace(chart, name=name, caption=caption, signatures=[signature]))
                rows.append({"figure": number, "shows": chart.title, "file": f"{name}.svg"})
    if not charts:
        wanted = dict.fromkeys(chain.from_iterable(columns for columns, _ in FIGURES.values()))
        raise MissingDataError(
            f"--data {data}: no csv file has a figure's columns of {listed(wanted)}"
        )
    write_all(folder, {**svg_files(charts), **captions(charts, "svg")})
    return Result({"rows": rows}, [rows, f"Figures, captions.md and captions.tex: {folder}"])


def read_columns(path: Path, columns: Names) -> pd.DataFrame | None:
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


def _lengths(frame: pd.DataFrame) -> Iterator[Chart]:
    means = frame.set_index("model").set_axis(["value"], axis=1).assign(low=math.nan, high=math.nan)
    yield Chart(
        "lengths",
        "Mean length of a generated utterance",
        "Tokens of cl100k_base; no spread was published.",
        [],
        partial(dots, {"": means}, "mean tokens per utterance", {}),
        len(means),
    )


def _success(frame: pd.DataFrame) -> Iterator[Chart]:
    shares = frame.set_index("model")
    shares = shares.sort_values("success_percent_n16", ascending=False, kind="stable")
    series = {}
    for n in (16, 8):
        share = shares[f"success_percent_n{n}"]
        low, high = wilson(share, 1 / DIALOGUES)
        series[f"N = {n}"] = 100 * pd.DataFrame({"value": share, "low": low, "high": high})
    yield Chart(
        "success",
        "UniEval: success rate at N",
        f"{DIALOGUES} dialogues a model, with 95 % intervals.",
        [],
        partial(dots, series, "success rate (%)", {}),
        len(shares),
    )


def _win_rates(frame: pd.DataFrame) -> Iterator[Chart]:
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
        yield Chart(key, title, caption, [], partial(matrix, rates), cells=order)


def _vs_human(frame: pd.DataFrame) -> Iterator[Chart]:
    rates = frame.set_index("model").set_axis(["win", "tie", "lose"], axis=1)
    yield Chart(
        "vs-human",
        "GTEval: model vs human dialogue",
        "A model wins where the judge takes the human dialogue for AI.",
        [],
        partial(stacks, rates),
        len(rates),
    )


FIGURES = {
    "3": (("model", "mean_tokens"), _lengths),
    "4": (("model", "success_percent_n8", "success_percent_n16"), _success),
    "5": (COLUMNS, _win_rates),
    "6": (("model", "win_percent", "tie_percent", "lose_percent"), _vs_human),
}
"""Number -> columns of its file, and its figures."""
