"""A board as ``leaderboard.json`` tells it, and what lies beside it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from botchat.errors import DataError, MissingError, did_you_mean
from botchat.interfaces import Row
from botchat.measures.changes import Estimate
from botchat.measures.intervals import entries, mean
from botchat.pipeline.leaderboard import BY_SEED
from botchat.records import HUMAN
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.by_seed import Values

_MOST_BYTES = 2**28

SURVIVED = re.compile(r"survived_n(\d+)")
"""The number by which a model falls, and its N: of all it alone finds falls at the beginning of
dialogues and at their end, whoever else is on the board (`benchmarks/coverage_changes.py`)."""


@dataclass(frozen=True)
class ToldBoard:
    """A board as its json tells it."""

    path: Path
    rows: Mapping[str, Row]
    """Model -> its row; people are none."""
    signatures: Sequence[str]
    judge: str
    """By whom; empty where the file does not say."""
    seeds: Sequence[str] = ()
    """A digest of each, where the file beside it says."""
    by_seed: Values = field(default_factory=dict)
    """What each says about each number."""
    dialogues: Mapping[str, str] = field(default_factory=dict)
    """Model -> a digest of its dialogues."""
    asked: Mapping[tuple[str, str, str], Row] = field(default_factory=dict)
    """Contestant or judge, stage, model -> what was asked; see `botchat.records.Provenance`."""

    def called(self, name: str, other: str, *, keep: bool) -> ToldBoard:
        """The board with a model under another name; ``keep``: under its own, too."""

        def renamed(by_model: Mapping[str, Any]) -> dict[str, Any]:
            kept = {key: one for key, one in by_model.items() if keep or key != name}
            return {**kept, other: by_model[name]} if name in by_model else kept

        by_seed = {key: renamed(said) for key, said in self.by_seed.items()}
        asked = {(other if of == name else of, *at): row for (of, *at), row in self.asked.items()}
        return replace(
            self,
            rows=renamed(self.rows),
            by_seed=by_seed,
            dialogues=renamed(self.dialogues),
            asked=asked,  # type: ignore[arg-type]
        )

    def aligned(self, key: str, model: str, seeds: Sequence[str]) -> list[float]:
        """What each of some seeds says about a number; nan: nothing."""
        said = self.by_seed.get(key, {}).get(model, ())
        known = dict(zip(self.seeds, said, strict=False))
        return [math.nan if (one := known.get(seed)) is None else one for seed in seeds]

    @property
    def n(self) -> int:
        """The largest N of its numbers; 0 where none is at an N."""
        told = (re.search(r"_n(\d+)$", key) for row in self.rows.values() for key in row)
        return max((int(found[1]) for found in told if found), default=0)

    def made(self) -> dict[str, dict[str, str]]:
        """Protocol and N -> what its signature says: label -> field."""
        return {
            _subject(one): {part.partition(":")[0]: part for part in one.split("|")}
            for one in self.signatures
        }

    @property
    def measures(self) -> list[str]:
        """Keys of the numbers that have intervals, most important first."""
        keys = dict.fromkeys(key for row in self.rows.values() for key in row)
        return [
            key
            for key in keys
            if key != "rank" and any(estimate(row, key) for row in self.rows.values())
        ]


def read_board(workspace: Workspace, name: str) -> ToldBoard:
    """The board of a set, of a folder, or of a json file; raises as `compare`."""
    path = Path(name)
    if path.is_dir():
        path /= "leaderboard.json"
    if not path.is_file():
        path = workspace.out(name) / "leaderboard.json"
    if not path.is_file():
        boards = workspace.out("")
        there = sorted(
            at.parent.relative_to(boards).as_posix() for at in boards.rglob("leaderboard.json")
        )
        raise MissingError(
            f"no board {name!r}{did_you_mean(name, there)}; name a set with a leaderboard "
            f"({', '.join(there) or 'there is none here'}), a folder with leaderboard.json, or "
            "such a file"
        )
    try:
        told = json.loads(store.content(path, _MOST_BYTES))
        rows = {row["model"]: row for row in told["rows"] if row["model"] != HUMAN}
        signatures = told.get("signatures") or [told["signature"]]
        beside = _beside(path.with_name(BY_SEED))
        for key, said in beside[1].items():
            if survived := SURVIVED.fullmatch(key):
                for name in said.keys() & rows.keys():
                    rows[name] |= _mean(key, said[name], int(survived[1]))
        judge = told.get("judge", {}).get("name", "")
        measured = told.get("tables", {}).get("measured", {}).get("rows", ())
        asked = {(row["name"], row["stage"], row["model"]): row for row in measured}
        return ToldBoard(path, rows, signatures, judge, *beside, asked)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is no board of botchat leaderboard; make it again") from None


def _mean(key: str, said: Sequence[float | None], most: int) -> Row:
    """The mean of what seeds say, 0 to ``most``, with its interval."""
    values = [one for one in said if one is not None]
    return entries(key, fmean(values or [math.nan]), *mean(values, 0, most))


def _beside(path: Path) -> tuple[Sequence[str], Values, Mapping[str, str]]:
    """Seeds, what each says, and digests of dialogues; none where the file is not there."""
    if not path.is_file():
        return (), {}, {}
    try:
        told = json.loads(store.content(path, _MOST_BYTES))
        values = {key: dict(said) for key, said in told["values"].items()}
        return list(map(str, told["seeds"])), values, dict(told.get("dialogues", {}))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is not what leaderboard writes; make the board again") from None


def estimate(row: Row, key: str) -> Estimate | None:
    """A number of a row with its interval; ``None`` where it has none."""
    found = [row.get(name) for name in (key, f"{key}_low", f"{key}_high")]
    return None if any(not isinstance(one, int | float) for one in found) else Estimate(*found)  # type: ignore[arg-type]


def _subject(signature: str) -> str:
    """What a signature is of: the protocol, and N."""
    fields = signature.split("|")
    n = next((f" {field}" for field in fields if field.startswith("n:")), "")
    return f"{fields[1] if len(fields) > 1 else signature}{n}"
