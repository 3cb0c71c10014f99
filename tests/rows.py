"""Tables of examples that are data: ``tests/data/rows``, a JSON value a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("data") / "rows"


def rows(name: str) -> list[Any]:
    """The arguments of each case of a test, in the order of the file that has its name."""
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
