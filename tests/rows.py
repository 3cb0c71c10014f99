"""Tables of examples that are data: ``tests/data/rows``, a JSON value a line."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("data") / "rows"


def rows(name: str) -> list[Any]:
    """The arguments of each case of a test, in the order of the file that has its name."""
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def cases(name: str, n: int) -> list[Any]:
    """The cases of a test with ``n`` arguments, each behind its name.

    What stands behind them says why the case fails today: it is mended where that goes away.
    """
    params = []
    for row in rows(name):
        marks = [pytest.mark.xfail(strict=True, reason=reason) for reason in row[n + 1 :]]
        params.append(pytest.param(*row[1 : n + 1], id=row[0], marks=marks))
    return params
