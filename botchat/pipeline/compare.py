"""Two boards beside each other: what changed for each model, and whether one fell."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from botchat.errors import ConfigError, DataError, GateFailed, MissingDataError, did_you_mean
from botchat.interfaces import Row
from botchat.metrics.changes import Change, Estimate, correlation, holm
from botchat.metrics.intervals import entries, mean
from botchat.pipeline.leaderboard import BY_SEED
from botchat.records import HUMAN
from botchat.requests import Comparing
from botchat.requests.results import Differences
from botchat.verdicts import Floats
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.tables import Kind, Table

POWER = 0.8
"""Of comparisons, that find the smallest fall that is said to be found."""

_RATING = re.compile(r"(bt|elo)(_n\d+)?")
"""Keys of ratings: relative to the contestants of a board."""

_RELATIVE = re.compile(rf"{_RATING.pattern}|bt_length(_n\d+)?|win|tie|lose|win_or_tie")
"""Keys of all that is: here a model falls, too, where another rises."""

SURVIVED = re.compile(r"survived_n(\d+)")
"""The number by which a model falls, and its N: of all it alone finds falls at the beginning of
dialogues and at their end, whoever else is on the board."""

_IDENTITY = ("asked", "answered", "revision", "host", "temperature", "system_prompt")
"""Of what was asked: who it was. Days and costs differ each time."""


def compare(request: Comparing, workspace: Workspace) -> Differences:
    """Compare two boards: ``whole`` has ``rows``, ``by``, ``alpha``, ``tested`` and ``fell``.

    Lines say what is assumed, and what does not agree; ``failure`` names the models that fell.

    Raises:
        MissingDataError, DataError, ConfigError: no such board, none that can be compared, no such
            model.
    """
    before, after, alpha, models = request.before, request.after, request.alpha, request.models
    if not 0 < alpha < 1:
        raise ConfigError(f"--alpha {alpha:g}: give a rate between 0 and 1, such as 0.05")
    both = _Boards(read_board(workspace, before), read_board(workspace, after))
    if (why := list(_apart(both))) and not request.anyway:
        raise DataError(
            f"{before} and {after} do not measure the same: {'; '.join(why)}; make both alike, or "
            "compare them all the same with --anyway"
        )
    for name in models:
        if name not in both.models:
            raise ConfigError(
                f"--model {name}: not on both boards{did_you_mean(name, both.models)}; there are: "
                f"{', '.join(both.models)}"
            )
    changes, by = both.changes, both.key
    left_out = _untested(both, models or changes, named=bool(models))
    tested = {
        name: one
        for name, one in changes.items()
        if name not in left_out and (not models or name in models)
    }
    p = dict(zip(tested, holm([one.fell for one in tested.values()]), strict=True))
    fell = [name for name in tested if p[name] <= alpha]
    lines = [*_notes(both), *_tested(both, tested, left_out, alpha)]
    table = _table(both, p)
    whole = {
        "rows": table.records,
        "by": by,
        "alpha": alpha,
        "tested": list(tested),
        "fell": fell,
        "notes": lines,
        "before": str(both.old.path),
        "after": str(both.new.path),
    }
    verdict = f"fell: {', '.join(fell)}" if fell else f"no model fell in {by}"
    if not tested:
        verdict = (
            "no model was tested, so --gate passes and says nothing of any; ask a model again with "
            "a revision, MODEL@2, test a floor bot with --model"
        )
    rate = f"false alarms at most {100 * alpha:g} % over {_models(tested)} together"
    failure = GateFailed(f"fell in {by}: {', '.join(fell)} ({rate})") if fell else None
    return Differences(whole, [table, table.note, *lines, verdict], failure=failure)


@dataclass(frozen=True)
class ToldBoard:
    """A board as its json tells it, and what lies beside it."""

    path: Path
    rows: Mapping[str, Row]
    """Model -> its row; people are none."""
    signatures: Sequence[str]
    asked: Mapping[tuple[str, str, str], Row]
    """Contestant or judge, stage, model -> what was asked; see `botchat.records.Provenance`."""
    seeds: Sequence[str] = ()
    """A digest of each, where the file beside it says."""
    by_seed: Mapping[str, Mapping[str, Sequence[float | None]]] = field(default_factory=dict)
    """Key of a number -> model -> its value by seed; ``None``: the seed says nothing."""
    dialogues: Mapping[str, str] = field(default_factory=dict)
    """Model -> a digest of its dialogues."""

    @property
    def n(self) -> int:
        """The largest N of its numbers; 0 where none is at an N."""
        told = (re.search(r"_n(\d+)$", key) for row in self.rows.values() for key in row)
        return max((int(found[1]) for found in told if found), default=0)

    @property
    def made(self) -> dict[str, dict[str, str]]:
        """Protocol and N -> what its signature says: label -> field."""
        found = {}
        for one in self.signatures:
            told = {part.partition(":")[0]: part for part in one.split("|")}
            subject = (one.split("|")[1:2] or [one])[0]
            found[f"{subject} {told['n']}" if "n" in told else subject] = told
        return found

    @property
    def measures(self) -> list[str]:
        """Keys of the numbers that have intervals, most important first."""
        keys = dict.fromkeys(key for row in self.rows.values() for key in row)
        keys.pop("rank", None)
        known = [key for key in keys if any(estimate(row, key) for row in self.rows.values())]
        relative = [key for key in known if _RELATIVE.fullmatch(key)]
        return sorted(known, key=lambda key: (not SURVIVED.fullmatch(key), key in relative))


class _Boards:
    """Two boards, and who is on both: ``models``, each with its names there.

    The last revision of a model on the first board and its only new one on the second are one.
    ``key``: the number by which a model falls. Raises `DataError` where both share none.
    """

    def __init__(self, old: ToldBoard, new: ToldBoard) -> None:
        self.old, self.new = old, new
        self.models = {name: (name, name) for name in old.rows if name in new.rows}
        added = [name for name in new.rows if name not in old.rows]
        bases = [_base(name) for name in added]
        for name, base in zip(added, bases, strict=True):
            before = sorted(one for one in old.rows if _base(one) == base)
            if before and bases.count(base) == 1:
                self.models[f"{before[-1]} → {name}"] = (before[-1], name)
        if not self.models:
            raise DataError(f"no model is on both boards: {old.path} and {new.path}")
        shared = [{*names} for names in zip(*self.models.values(), strict=True)]
        self.alone = {
            "gone": [name for name in old.rows if name not in shared[0]],
            "new": [name for name in new.rows if name not in shared[1]],
        }
        self.key = next((key for key in old.measures if key in new.measures), "")
        if not self.key:
            raise DataError(f"no number has an interval on both boards: {old.path} and {new.path}")

    @cached_property
    def changes(self) -> dict[str, Change]:
        """Model -> how `key` changed; ratings are moved to the same mean of the shared models."""
        pairs: dict[str, tuple[Estimate, Estimate]] = {}
        for name, (old, new) in self.models.items():
            before = estimate(self.old.rows[old], self.key)
            if before and (after := estimate(self.new.rows[new], self.key)):
                pairs[name] = before, after
        shift = 0.0
        if pairs and _RATING.fullmatch(self.key) and any(self.alone.values()):
            shift = fmean(after.value - before.value for before, after in pairs.values())
        return {
            name: Change(
                before, Estimate(*(end - shift for end in after)), correlation(*self.said(name))
            )
            for name, (before, after) in pairs.items()
        }

    @property
    def kind(self) -> Kind:
        """What `key` is shown as."""
        if SURVIVED.fullmatch(self.key):
            return "number"
        if _RATING.fullmatch(self.key):
            return "rating"
        ends = (end for one in self.changes.values() for end in (*one.before, *one.after))
        return "rate" if all(0 <= end <= 1 for end in ends) else "decimal"

    def said(self, model: str) -> Floats:
        """What every seed of either board says about `key` on both, (2, seeds); nan: nothing."""
        seeds = list(dict.fromkeys((*self.old.seeds, *self.new.seeds)))
        told = []
        for board, name in zip((self.old, self.new), self.models[model], strict=True):
            said = board.by_seed.get(self.key, {}).get(name, ())
            known = dict(zip(board.seeds, said, strict=False))
            told.append([known.get(seed) for seed in seeds])
        return np.array(told, dtype=np.float64)


def _base(name: str) -> str:
    """A model, of a name with its revision."""
    return name.rpartition("@")[0] or name


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
        raise MissingDataError(
            f"no board {name!r}{did_you_mean(name, there)}; name a set with a leaderboard "
            f"({', '.join(there) or 'there is none here'}), a folder with leaderboard.json, or "
            "such a file"
        )
    reading, beside = path, path.with_name(BY_SEED)
    try:
        told = json.loads(jsonl.content(path))
        rows = {row["model"]: row for row in told["rows"] if row["model"] != HUMAN}
        signatures = told.get("signatures") or [told["signature"]]
        measured = told.get("tables", {}).get("measured", {}).get("rows", ())
        asked = {(row["name"], row["stage"], row["model"]): row for row in measured}
        if not beside.is_file():
            return ToldBoard(path, rows, signatures, asked)
        reading = beside
        told = json.loads(jsonl.content(beside))
        values = {key: dict(said) for key, said in told["values"].items()}
        for key, said in values.items():
            if survived := SURVIVED.fullmatch(key):
                for name in said.keys() & rows.keys():
                    known = [one for one in said[name] if one is not None]
                    ends = mean(known, 0, int(survived[1]))
                    rows[name] |= entries(key, fmean(known or [math.nan]), *ends)
        seeds, dialogues = list(map(str, told["seeds"])), dict(told.get("dialogues", {}))
        return ToldBoard(path, rows, signatures, asked, seeds, values, dialogues)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{reading} is not what leaderboard writes; make the board again") from None


def estimate(row: Row, key: str) -> Estimate | None:
    """A number of a row with its interval; ``None`` where it has none."""
    found = [row.get(name) for name in (key, f"{key}_low", f"{key}_high")]
    return None if any(not isinstance(one, int | float) for one in found) else Estimate(*found)  # type: ignore[arg-type]


def _untested(both: _Boards, models: Collection[str], *, named: bool) -> dict[str, str]:
    """Model -> why nothing is to be tested of it."""
    from botchat.boards.names import is_floor_bot

    why = {}
    for name in models:
        before, after = both.models[name]
        digest = both.old.dialogues.get(before)
        if digest is not None and digest == both.new.dialogues.get(after):
            why[name] = "the same dialogues on both boards"
        elif is_floor_bot(name) and not named:
            why[name] = "floor bot"
    return why


def _tested(
    both: _Boards, tested: Mapping[str, Change], left_out: Mapping[str, str], alpha: float
) -> Iterator[str]:
    """Who is tested, who is not and why, the smallest fall that is found, and what is assumed."""
    for why in dict.fromkeys(left_out.values()):
        names = (name for name in left_out if left_out[name] == why)
        yield f"not tested, {why}: {', '.join(names)}"
    if not tested:
        return
    least = max(one.smallest_found(alpha / len(tested), POWER) for one in tested.values())
    size = {
        "number": f"{least:.1f} utterances",
        "rating": f"{least:.0f} points",
        "rate": f"{100 * least:.0f} points",
    }.get(both.kind, f"{least:.2f}")
    yield (
        f"Tested in {both.key}: {', '.join(tested)}. A fall by {size} would be found in "
        f"{100 * POWER:g} % of comparisons."
    )
    shared = max(int((~np.isnan(both.said(name))).all(axis=0).sum()) for name in tested)
    paired = (
        f"Paired by the {shared:,} ChatSEEDs of both boards."
        if shared
        else f"The boards are taken as independent, since no {BY_SEED} says how far a model came "
        "on each ChatSEED; of the same ChatSEEDs, intervals are wider than need be."
    )
    yield (
        f"{paired} A model fell where p, after Holm over {_models(tested)}, is at most {alpha:g}: "
        f"if none is worse, at most {100 * alpha:g} % of comparisons name any."
    )


def _table(both: _Boards, p: Mapping[str, float]) -> Table:
    from botchat.boards.tables import Column, table, with_interval

    key, kind = both.key, both.kind
    name, _, n = key.partition("_n")
    words = name.replace("_", " ").capitalize().replace("Gteval", "GTEval")
    words = {"bt": "Bradley–Terry", "elo": "Elo"}.get(name, words)
    title = f"{words} @{n}" if n.isdigit() else words if not n else key
    columns = [
        Column("model", "Model", "name"),
        Column(f"{key}_before", f"{title} before", kind),
        Column(f"{key}_after", f"{title} after", kind),
        *with_interval(Column(f"{key}_change", f"{title} change", kind)),
        Column("p_fell", "p that it did not fall", "decimal"),
    ]
    rows: dict[str, Row] = {name: {"model": name} for name in both.models}
    for name, one in both.changes.items():
        rows[name] |= {
            f"{key}_before": one.before.value,
            f"{key}_after": one.after.value,
            **entries(f"{key}_change", one.value, one.low, one.high),
            "p_fell": p.get(name),
        }
    note = "Rates in percent, their changes in points; in brackets 95 % intervals of the change."
    if SURVIVED.fullmatch(key):
        note = f"Survived: utterances until one is taken for a machine's, the seed's too. {note}"
    signature = f"{both.old.path} → {both.new.path}"
    return table("changes", "Changes", columns, rows.values(), [signature], note, [f"{key}_change"])


def _notes(both: _Boards) -> Iterator[str]:
    """What does not agree between the boards."""
    for what, names in both.alone.items():
        if names:
            yield f"{what}: {', '.join(names)}"
    if any(both.alone.values()) and _RATING.fullmatch(both.key):
        yield (
            "The contestants differ, so ratings are moved to the same mean of the models on both; "
            "how sure that mean is does not count in the intervals."
        )
    if _RELATIVE.fullmatch(both.key):
        yield f"{both.key} is relative: a model falls, too, where the others rise"
    for (name, stage, model), asked in both.old.asked.items():
        now = both.new.asked.get((name, stage, model), asked)
        told = [
            f"{key} {asked.get(key)} → {now.get(key)}"
            for key in _IDENTITY
            if asked.get(key) != now.get(key)
        ]
        if told:
            yield f"{name} ({stage}) is another than it was: {', '.join(told)}"
    made = both.new.made
    for subject, before in both.old.made.items():
        if subject not in made:
            yield f"{subject}: only on the first board"
            continue
        after = made[subject]
        apart = [
            " and ".join(part for part in one.values() if part not in other.values()) or "nothing"
            for one, other in ((before, after), (after, before))
        ]
        if apart[0] != apart[1]:
            yield (
                f"{subject} was made differently, so a change may be due to that: {apart[0]} "
                f"before, {apart[1]} after"
            )


def _apart(both: _Boards) -> Iterator[str]:
    """Why no difference of two boards is a model's: other seeds, judges, prompts or N."""
    old, new = both.old, both.new
    known = bool(old.seeds and new.seeds)
    if known and not set(old.seeds) & set(new.seeds):
        yield "they share no ChatSEED"
    if old.n != new.n:
        yield f"N is {old.n} before, {new.n} after"
    labels = ("judge", "prompt") if known else ("set", "judge", "prompt")
    made = old.made, new.made
    told = {}
    for subject, label in product(made[0].keys() & made[1].keys(), labels):
        before, after = made[0][subject], made[1][subject]
        if (one := before.get(label)) != (other := after.get(label)):
            whose = f" of {subject}" if label == "prompt" else ""
            told[f"{one} before, {other} after{whose}"] = label
    yield from sorted(told, key=lambda line: (told[line], line))


def _models(names: Collection[str]) -> str:
    return f"{len(names)} model{'s' * (len(names) != 1)}"
