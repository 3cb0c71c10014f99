"""Two boards beside each other: what changed for each model, and whether one fell."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from botchat.errors import ConfigError, DataError, Fell, MissingError, did_you_mean
from botchat.interfaces import Row
from botchat.measures.changes import Change, Estimate, correlation, holm
from botchat.measures.intervals import entries, mean
from botchat.pipeline.leaderboard import BY_SEED
from botchat.records import HUMAN
from botchat.requests import Comparing
from botchat.requests.results import Differences
from botchat.verdicts import Floats
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.by_seed import Values
    from botchat.boards.tables import Kind, Table

_MOST_BYTES = 2**28
"""Of a board's file."""

POWER = 0.8
"""Of comparisons, that find the smallest fall that is said to be found."""

_RATING = re.compile(r"(bt|elo)(_n\d+)?")
"""Keys of ratings: relative to the contestants of a board."""

_RELATIVE = re.compile(rf"{_RATING.pattern}|bt_length(_n\d+)?|win|tie|lose|win_or_tie")
"""Keys of all that is: here a model falls, too, where another rises."""

WORSE = ("lose",)
"""Keys of what is worse where it is more."""


SURVIVED = re.compile(r"survived_n(\d+)")
"""The number by which a model falls, and its N: of all it alone finds falls at the beginning of
dialogues and at their end, whoever else is on the board (`benchmarks/coverage_changes.py`)."""


def compare(request: Comparing, workspace: Workspace) -> Differences:
    """Compare two boards: ``whole`` has ``rows``, ``by``, ``alpha``, ``tested`` and ``fell``.

    Lines say what is assumed, and what does not agree; ``failure`` names the models that fell.

    Raises:
        MissingError, DataError, ConfigError: no such board, none that can be compared, no such key
            or model.
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
    shared = both.models
    for name in models:
        if name not in shared:
            raise ConfigError(
                f"--model {name}: not on both boards{did_you_mean(name, shared)}; there are: "
                f"{', '.join(shared)}"
            )
    keys = _keys_of_both(both, request.by)
    changes = {key: _changes(key, both) for key in keys}
    by = keys[0]
    left_out = _untested(both, models or changes[by], named=bool(models))
    tested = {
        name: one.turned if by in WORSE else one
        for name, one in changes[by].items()
        if name not in left_out and (not models or name in models)
    }
    p = dict(zip(tested, holm([one.fell for one in tested.values()]), strict=True))
    lines = [*_notes(both, by), *_tested(tested, left_out, by, alpha)]
    if tested:
        paired = max(int((~np.isnan(both.said(by, m))).all(axis=0).sum()) for m in tested)
        lines.append(_assumed(alpha, tested, paired))
    fell = [name for name in tested if p[name] <= alpha]
    table = _table(changes, by, list(shared), p, f"{both.old.path} → {both.new.path}")
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
    rate = f"false alarms at most {100 * alpha:g} % over {_models(list(tested))} together"
    failure = Fell(f"fell in {by}: {', '.join(fell)} ({rate})") if fell else None
    return Differences(whole, [table, table.note, *lines, _verdict(whole)], failure=failure)


@dataclass(frozen=True)
class ToldBoard:
    """A board as its json tells it, and what lies beside it."""

    path: Path
    rows: Mapping[str, Row]
    """Model -> its row; people are none."""
    signatures: Sequence[str]
    judge: str
    """By whom; empty where the file does not say."""
    seeds: Sequence[str]
    """A digest of each, where the file beside it says."""
    by_seed: Values
    """What each says about each number."""
    dialogues: Mapping[str, str]
    """Model -> a digest of its dialogues."""
    asked: Mapping[tuple[str, str, str], Row]
    """Contestant or judge, stage, model -> what was asked; see `botchat.records.Provenance`."""

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
        return [
            key
            for key in keys
            if key != "rank" and any(estimate(row, key) for row in self.rows.values())
        ]


class _Boards:
    """Two boards, and who is on both: ``models``, each with its names there.

    The last revision of a model on the first board and its only new one on the second are one.
    Raises `DataError` where nobody is on both.
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

    def estimates(self, key: str, model: str) -> tuple[Estimate, Estimate] | None:
        """A number before and after; ``None`` where it has no interval on both."""
        before, after = self.models[model]
        found = estimate(self.old.rows[before], key), estimate(self.new.rows[after], key)
        return (found[0], found[1]) if found[0] and found[1] else None

    def said(self, key: str, model: str) -> Floats:
        """What every seed of either board says about a number on both, (2, seeds); nan: nothing."""
        seeds = list(dict.fromkeys((*self.old.seeds, *self.new.seeds)))
        told = []
        for board, name in zip((self.old, self.new), self.models[model], strict=True):
            said = board.by_seed.get(key, {}).get(name, ())
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
                    values = [one for one in said[name] if one is not None]
                    ends = mean(values, 0, int(survived[1]))
                    rows[name] |= entries(key, fmean(values or [math.nan]), *ends)
        judge = told.get("judge", {}).get("name", "")
        measured = told.get("tables", {}).get("measured", {}).get("rows", ())
        asked = {(row["name"], row["stage"], row["model"]): row for row in measured}
        return ToldBoard(path, rows, signatures, judge, *beside, asked)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is no board of botchat leaderboard; make it again") from None


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


def _keys_of_both(both: _Boards, by: str | None) -> list[str]:
    """Keys of the numbers of both boards, first the one by which a model falls."""
    known = [key for key in both.old.measures if key in both.new.measures]
    if not known or (by is not None and by not in known):
        hint = did_you_mean(by or "", known)
        raise ConfigError(
            f"--by {by}: no number with an interval on both boards{hint}; "
            f"there are: {', '.join(known) or 'none'}"
        )
    absolute = [key for key in known if not _RELATIVE.fullmatch(key) and key not in WORSE]
    survived = [key for key in known if SURVIVED.fullmatch(key)]
    by = by or (survived or absolute or known)[0]
    return [by, *(key for key in known if key != by)]


def _verdict(whole: Row) -> str:
    """The last line: who fell; where nothing was tested, that green means nothing."""
    if not whole["tested"]:
        return (
            "no model was tested, so --gate passes and says nothing of any; ask a model again with "
            "a revision, MODEL@2, test a floor bot with --model"
        )
    fell = ", ".join(whole["fell"])
    return f"fell: {fell}" if fell else f"no model fell in {whole['by']}"


def _untested(both: _Boards, models: Iterable[str], *, named: bool) -> dict[str, str]:
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
    tested: Mapping[str, Change], left_out: Mapping[str, str], by: str, alpha: float
) -> Iterator[str]:
    """Who is tested, who is not and why, and the smallest fall that is found."""
    reasons: dict[str, list[str]] = {}
    for name, why in left_out.items():
        reasons.setdefault(why, []).append(name)
    for why, names in reasons.items():
        yield f"not tested, {why}: {', '.join(names)}"
    if tested:
        least = max(one.smallest_found(alpha / len(tested), POWER) for one in tested.values())
        size = f"{least:.1f} utterances" if SURVIVED.fullmatch(by) else f"{least:.2f}"
        if _RATING.fullmatch(by) or _is_rate(tested.values()):
            size = f"{least if _RATING.fullmatch(by) else 100 * least:.0f} points"
        yield (
            f"Tested in {by}: {', '.join(tested)}. A fall by {size} would be found in "
            f"{100 * POWER:g} % of comparisons."
        )


_IDENTITY = ("asked", "answered", "revision", "host", "temperature", "system_prompt")
"""Of what was asked: who it was. Days and costs differ each time."""


def _asked_otherwise(both: _Boards) -> Iterator[str]:
    """Which models are others than they were, as far as both boards say who was asked."""
    for (name, stage, model), before in both.old.asked.items():
        after = both.new.asked.get((name, stage, model), before)
        apart = [key for key in _IDENTITY if before.get(key) != after.get(key)]
        if told := [f"{key} {before.get(key)} → {after.get(key)}" for key in apart]:
            yield f"{name} ({stage}) is another than it was: {', '.join(told)}"


def _changes(key: str, both: _Boards) -> dict[str, Change]:
    """Model -> how a number changed; ratings are moved to the same mean of the shared models."""
    pairs = {name: two for name in both.models if (two := both.estimates(key, name))}
    shift = 0.0
    if pairs and _RATING.fullmatch(key) and any(both.alone.values()):
        shift = fmean(after.value - before.value for before, after in pairs.values())
    return {
        name: Change(
            before,
            Estimate(*(end - shift for end in after)),
            correlation(*both.said(key, name)),
        )
        for name, (before, after) in pairs.items()
    }


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
        kind = "number" if SURVIVED.fullmatch(key) else kind
        if _is_rate(changed.values()):
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
                rows[name]["p_fell"] = p.get(name)
    note = "Rates in percent, their changes in points; in brackets 95 % intervals of the change."
    if SURVIVED.fullmatch(by):
        note = f"Survived: utterances until one is taken for a machine's, the seed's too. {note}"
    return table("changes", "Changes", columns, rows.values(), [signature], note, [f"{by}_change"])


def _is_rate(changes: Iterable[Change]) -> bool:
    return all(0 <= end <= 1 for one in changes for end in (*one.before, *one.after))


def _title(key: str) -> str:
    name, _, n = key.partition("_n")
    words = name.replace("_", " ").capitalize().replace("Gteval", "GTEval")
    named = {"bt": "Bradley–Terry", "elo": "Elo"}.get(name, words)
    return f"{named} @{n}" if n.isdigit() else named if not n else key


def _notes(both: _Boards, by: str) -> Iterator[str]:
    """What does not agree between the boards."""
    for what, names in both.alone.items():
        if names:
            yield f"{what}: {', '.join(names)}"
    if any(both.alone.values()) and _RATING.fullmatch(by):
        yield (
            "The contestants differ, so ratings are moved to the same mean of the models on both; "
            "how sure that mean is does not count in the intervals."
        )
    if _RELATIVE.fullmatch(by):
        yield f"{by} is relative: a model falls, too, where the others rise"
    yield from _asked_otherwise(both)
    made = both.old.made, both.new.made
    for subject, before in made[0].items():
        if subject not in made[1]:
            yield f"{subject}: only on the first board"
            continue
        after = made[1][subject]
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


def _assumed(alpha: float, tested: Collection[str], shared: int) -> str:
    paired = (
        f"Paired by the {shared:,} ChatSEEDs of both boards."
        if shared
        else "The boards are taken as independent: they share no ChatSEEDs, or were written before "
        f"{BY_SEED} was; where they do share them, intervals are wider than need be."
    )
    return (
        f"{paired} A model fell where p, after Holm over {_models(tested)}, is at most {alpha:g}: "
        f"if none is worse, at most {100 * alpha:g} % of comparisons name any."
    )
