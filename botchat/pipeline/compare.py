"""Two boards beside each other: what changed for each model, and whether one fell."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botchat.errors import ConfigError, DataError, Fell, MissingError, did_you_mean
from botchat.interfaces import Row
from botchat.measures.changes import Change, Estimate, correlation, holm
from botchat.pipeline.leaderboard import BY_SEED
from botchat.records import HUMAN
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.by_seed import Values
    from botchat.boards.tables import Kind, Table

ALPHA = 0.05

MAX_BOARD_BYTES = 2**28

_RATING = re.compile(r"(bt|elo)(_n\d+)?")
"""Keys of ratings: relative to the contestants of a board."""

_RELATIVE = re.compile(rf"{_RATING.pattern}|bt_style(_n\d+)?|win|tie|lose|win_or_tie")
"""Keys of all that is: here a model falls, too, where another rises."""

WORSE = ("flagged", "lose")
"""Keys of what is worse where it is more."""


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

    def aligned(self, key: str, model: str, seeds: Sequence[str]) -> list[float]:
        """What each of some seeds says about a number; nan: nothing."""
        said = self.by_seed.get(key, {}).get(model, ())
        known = dict(zip(self.seeds, said, strict=False))
        return [math.nan if (one := known.get(seed)) is None else one for seed in seeds]

    @property
    def measures(self) -> list[str]:
        """Keys of the numbers that have intervals, most important first."""
        keys = dict.fromkeys(key for row in self.rows.values() for key in row)
        return [
            key
            for key in keys
            if key != "rank" and any(estimate(row, key) for row in self.rows.values())
        ]


@dataclass(frozen=True)
class Differences:
    """What changed from one board to another."""

    table: Table
    """A row for each model of both."""
    lines: Sequence[str]
    """What is assumed, and what does not agree."""
    whole: Mapping[str, Any]
    """``rows``, ``by``, ``alpha``, ``fell``, ``notes``, JSON-ready."""

    @property
    def shown(self) -> Sequence[str | Table]:
        """As people read it."""
        return [self.table, self.table.note, *self.lines]

    @property
    def fell(self) -> list[str]:
        """The models that fell."""
        return list(self.whole["fell"])

    def gate(self) -> None:
        """Raise `Fell` if a model fell."""
        if self.fell:
            raise Fell(
                f"fell in {self.whole['by']}: {', '.join(self.fell)} (false alarms at most "
                f"{100 * self.whole['alpha']:g} % over {len(self.table.frame)} models together)"
            )


def compare(
    workspace: Workspace, before: str, after: str, by: str | None = None, alpha: float = ALPHA
) -> Differences:
    """Compare two boards, each a set of the workspace, a folder or a json file of a leaderboard.

    ``by``: key of the number by which a model falls, default the first that does not depend on the
    other contestants, else a rating.
    ``alpha``: how often any model is said to have fallen where none has, over all models together.

    Raises:
        MissingError, DataError, ConfigError: no such board, none that can be compared, no such key.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"--alpha {alpha:g}: give a rate between 0 and 1, such as 0.05")
    old, new = read_board(workspace, before), read_board(workspace, after)
    models = [model for model in old.rows if model in new.rows]
    if not models:
        raise DataError(f"no model is on both boards: {old.path} and {new.path}")
    both = [key for key in old.measures if key in new.measures]
    if not both or (by is not None and by not in both):
        hint = did_you_mean(by or "", both)
        raise ConfigError(
            f"--by {by}: no number with an interval on both boards{hint}; "
            f"there are: {', '.join(both) or 'none'}"
        )
    absolute = [key for key in both if not _RELATIVE.fullmatch(key) and key not in WORSE]
    by = by or (absolute or both)[0]
    changes = {key: _changes(key, old, new, models) for key in [by, *(k for k in both if k != by)]}
    judged = list(changes[by])
    turned = by in WORSE
    p_each = [(one.turned if turned else one).fell for one in changes[by].values()]
    p = dict(zip(judged, holm(p_each), strict=True))
    fell = [name for name in judged if p[name] <= alpha]
    shared = max(_shared(by, old, new, model) for model in models)
    lines = [*_notes(old, new, by), _assumed(alpha, len(judged), shared)]
    table = _table(changes, by, models, p, f"{old.path} → {new.path}")
    whole = {
        "rows": table.records,
        "by": by,
        "alpha": alpha,
        "fell": fell,
        "notes": lines,
        "before": str(old.path),
        "after": str(new.path),
    }
    said = f"fell: {', '.join(fell)}" if fell else f"no model fell in {by}"
    return Differences(table, [*lines, said], whole)


def read_board(workspace: Workspace, name: str) -> ToldBoard:
    """The board of a set, of a folder, or of a json file; raises as `compare`."""
    path = Path(name)
    if path.is_dir():
        path /= "leaderboard.json"
    if not path.is_file():
        path = workspace.out(name) / "leaderboard.json"
    if not path.is_file():
        there = sorted(at.parent.name for at in path.parent.parent.glob("*/leaderboard.json"))
        raise MissingError(
            f"no board {name!r}{did_you_mean(name, there)}; name a set with a leaderboard "
            f"({', '.join(there) or 'there is none here'}), a folder with leaderboard.json, or "
            "such a file"
        )
    try:
        told = json.loads(store.content(path, MAX_BOARD_BYTES))
        rows = {row["model"]: row for row in told["rows"] if row["model"] != HUMAN}
        signatures = told.get("signatures") or [told["signature"]]
        return ToldBoard(
            path,
            rows,
            signatures,
            told.get("judge", {}).get("name", ""),
            *_beside(path.with_name(BY_SEED)),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is no board of botchat leaderboard; make it again") from None


def _beside(path: Path) -> tuple[Sequence[str], Values]:
    """Seeds, and what each says; neither where the file is not there."""
    if not path.is_file():
        return (), {}
    try:
        told = json.loads(store.content(path, MAX_BOARD_BYTES))
        return list(map(str, told["seeds"])), {k: dict(v) for k, v in told["values"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is not what leaderboard writes; make the board again") from None


def estimate(row: Row, key: str) -> Estimate | None:
    """A number of a row with its interval; ``None`` where it has none."""
    found = [row.get(name) for name in (key, f"{key}_low", f"{key}_high")]
    return None if any(not isinstance(one, int | float) for one in found) else Estimate(*found)  # type: ignore[arg-type]


def _changes(key: str, old: ToldBoard, new: ToldBoard, models: Sequence[str]) -> dict[str, Change]:
    """Model -> how a number changed; ratings are moved to the same mean of the shared models."""
    pairs = {
        name: (before, after)
        for name in models
        if (before := estimate(old.rows[name], key)) and (after := estimate(new.rows[name], key))
    }
    shift = 0.0
    if pairs and _RATING.fullmatch(key):
        shift = sum(a.value - b.value for b, a in pairs.values()) / len(pairs)
        shift = shift if set(old.rows) != set(new.rows) else 0.0
    return {
        name: Change(
            before,
            Estimate(*(end - shift for end in after)),
            correlation(*_said(key, old, new, name)),
        )
        for name, (before, after) in pairs.items()
    }


def _said(key: str, old: ToldBoard, new: ToldBoard, model: str) -> list[list[float]]:
    """What every seed of either board says about a number, on both."""
    seeds = list(dict.fromkeys((*old.seeds, *new.seeds)))
    return [board.aligned(key, model, seeds) for board in (old, new)]


def _shared(key: str, old: ToldBoard, new: ToldBoard, model: str) -> int:
    """Seeds that say something about a number on both boards."""
    both = zip(*_said(key, old, new, model), strict=True)
    return sum(not math.isnan(one + other) for one, other in both)


def _table(
    changes: Mapping[str, Mapping[str, Change]],
    by: str,
    models: Sequence[str],
    p: Mapping[str, float],
    signature: str,
) -> Table:
    from botchat.boards.tables import Column, table, with_interval

    columns = [Column("model", "Model", "name")]
    rows: dict[str, Row] = {name: {"model": name} for name in models}
    for key, changed in changes.items():
        kind: Kind = "rating" if _RATING.fullmatch(key) else "decimal"
        if all(0 <= end <= 1 for one in changed.values() for end in (*one.before, *one.after)):
            kind = "rate"
        main, title = key == by, _title(key)
        for when in ("before", "after"):
            columns.append(Column(f"{key}_{when}", f"{title} {when}", kind, not main))
        columns += with_interval(
            Column(f"{key}_change", f"{title} change", kind, priority=0 if main else 1)
        )
        if main:
            columns.append(Column("p_fell", "p that it did not fall", "decimal"))
        for name, one in changed.items():
            rows[name] |= {
                f"{key}_before": one.before.value,
                f"{key}_after": one.after.value,
                f"{key}_change": one.value,
                f"{key}_change_low": one.low,
                f"{key}_change_high": one.high,
            }
            if main:
                rows[name]["p_fell"] = p[name]
    note = "Rates in percent, their changes in points; in brackets 95 % intervals of the change."
    return table("changes", "Changes", columns, rows.values(), [signature], note, [f"{by}_change"])


def _title(key: str) -> str:
    name, _, n = key.partition("_n")
    named = {"bt": "Bradley–Terry", "elo": "Elo"}.get(name, _words(name))
    return f"{named} @{n}" if n.isdigit() else named if not n else key


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize().replace("Gteval", "GTEval")


def _notes(old: ToldBoard, new: ToldBoard, by: str) -> Iterator[str]:
    """What does not agree between the boards."""
    for here, there, what in ((old, new, "gone"), (new, old, "new")):
        if names := [name for name in here.rows if name not in there.rows]:
            yield f"{what}: {', '.join(names)}"
    if set(old.rows) != set(new.rows) and _RATING.fullmatch(by):
        yield (
            "The contestants differ, so ratings are moved to the same mean of the models on both; "
            "how sure that mean is does not count in the intervals."
        )
    if _RELATIVE.fullmatch(by):
        yield f"{by} is relative: a model falls, too, where the others rise"
    made = [{_subject(one): one for one in board.signatures} for board in (old, new)]
    for subject in made[0]:
        if subject not in made[1]:
            yield f"{subject}: only on the first board"
            continue
        fields = [made[i][subject].split("|") for i in (0, 1)]
        apart = [
            " and ".join(part for part in fields[i] if part not in fields[1 - i]) or "nothing"
            for i in (0, 1)
        ]
        if apart[0] != apart[1]:
            yield (
                f"{subject} was made differently, so a change may be due to that: {apart[0]} "
                f"before, {apart[1]} after"
            )


def _subject(signature: str) -> str:
    """What a signature is of: the protocol, and N."""
    fields = signature.split("|")
    n = next((f" {field}" for field in fields if field.startswith("n:")), "")
    return f"{fields[1] if len(fields) > 1 else signature}{n}"


def _assumed(alpha: float, n: int, shared: int) -> str:
    paired = (
        f"Paired by the {shared:,} ChatSEEDs of both boards."
        if shared
        else "The boards are taken as independent: they share no ChatSEEDs, or were written before "
        f"{BY_SEED} was; where they do share them, intervals are wider than need be."
    )
    return (
        f"{paired} A model fell where p, after Holm over {n} models, is at most {alpha:g}: if none "
        f"is worse, at most {100 * alpha:g} % of comparisons name any."
    )
