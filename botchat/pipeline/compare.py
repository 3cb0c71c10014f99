"""Two boards beside each other: what changed for each model, and whether one fell."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from botchat.errors import ConfigError, DataError, Fell, did_you_mean
from botchat.interfaces import Row
from botchat.measures.changes import Change, Estimate, correlation, holm
from botchat.pipeline.leaderboard import BY_SEED
from botchat.pipeline.told_board import SURVIVED, ToldBoard, estimate, read_board
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.tables import Kind, Table

ALPHA = 0.05
POWER = 0.8
"""Of comparisons, that find the smallest fall that is said to be found."""

_RATING = re.compile(r"(bt|elo)(_n\d+)?")
"""Keys of ratings: relative to the contestants of a board."""

_RELATIVE = re.compile(rf"{_RATING.pattern}|bt_style(_n\d+)?|win|tie|lose|win_or_tie")
"""Keys of all that is: here a model falls, too, where another rises."""

WORSE = ("flagged", "lose")
"""Keys of what is worse where it is more."""


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
                f"{100 * self.whole['alpha']:g} % over {_models(self.whole['tested'])} together)"
            )


def compare(
    workspace: Workspace,
    before: str,
    after: str,
    by: str | None = None,
    alpha: float = ALPHA,
    models: Sequence[str] = (),
    *,
    anyway: bool = False,
) -> Differences:
    """Compare two boards, each a set of the workspace, SET/NAME, a folder or a json file.

    ``by``: key of the number by which a model falls, default utterances survived, else the first
    that does not depend on the other contestants, else a rating.
    ``alpha``: how often any model is said to have fallen where none has, over all models together.
    ``models``: to test; default all but floor bots. One with the same dialogues on both is not.
    ``anyway``: also boards of other seeds, judges, prompts or N.

    Raises:
        MissingError, DataError, ConfigError: no such board, none that can be compared, no such key
            or model.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"--alpha {alpha:g}: give a rate between 0 and 1, such as 0.05")
    old, new = _revised(read_board(workspace, before), read_board(workspace, after))
    if (why := list(_apart(old, new))) and not anyway:
        raise DataError(
            f"{before} and {after} do not measure the same: {'; '.join(why)}; make both alike, or "
            "compare them all the same with --anyway"
        )
    shared, keys = _models_of_both(old, new, models), _keys_of_both(old, new, by)
    changes = {key: _changes(key, old, new, shared) for key in keys}
    by = keys[0]
    left_out = _untested(old, new, models or changes[by], named=bool(models))
    tested = {
        name: one.turned if by in WORSE else one
        for name, one in changes[by].items()
        if name not in left_out and (not models or name in models)
    }
    p = dict(zip(tested, holm([one.fell for one in tested.values()]), strict=True))
    lines = [*_notes(old, new, by), *_tested(tested, left_out, by, alpha)]
    if tested:
        lines.append(_assumed(alpha, tested, max(_shared(by, old, new, m) for m in tested)))
    table = _table(changes, by, shared, p, f"{old.path} → {new.path}")
    whole = {
        "rows": table.records,
        "by": by,
        "alpha": alpha,
        "tested": list(tested),
        "fell": [name for name in tested if p[name] <= alpha],
        "notes": lines,
        "before": str(old.path),
        "after": str(new.path),
    }
    return Differences(table, [*lines, _verdict(whole)], whole)


def _models_of_both(old: ToldBoard, new: ToldBoard, named: Iterable[str]) -> list[str]:
    """Models on both boards; raises where there is none, or one that was named is not."""
    shared = [model for model in old.rows if model in new.rows]
    if not shared:
        raise DataError(f"no model is on both boards: {old.path} and {new.path}")
    for name in named:
        if name not in shared:
            raise ConfigError(
                f"--model {name}: not on both boards{did_you_mean(name, shared)}; there are: "
                f"{', '.join(shared)}"
            )
    return shared


def _keys_of_both(old: ToldBoard, new: ToldBoard, by: str | None) -> list[str]:
    """Keys of the numbers of both boards, first the one by which a model falls."""
    both = [key for key in old.measures if key in new.measures]
    if not both or (by is not None and by not in both):
        hint = did_you_mean(by or "", both)
        raise ConfigError(
            f"--by {by}: no number with an interval on both boards{hint}; "
            f"there are: {', '.join(both) or 'none'}"
        )
    absolute = [key for key in both if not _RELATIVE.fullmatch(key) and key not in WORSE]
    survived = [key for key in both if SURVIVED.fullmatch(key)]
    by = by or (survived or absolute or both)[0]
    return [by, *(key for key in both if key != by)]


def _verdict(whole: Mapping[str, Any]) -> str:
    """The last line: who fell; where nothing was tested, that green means nothing."""
    if not whole["tested"]:
        return (
            "no model was tested, so --gate passes and says nothing of any; ask a model again with "
            "botchat run --fresh MODEL, test a floor bot with --model"
        )
    fell = ", ".join(whole["fell"])
    return f"fell: {fell}" if fell else f"no model fell in {whole['by']}"


def _untested(
    old: ToldBoard, new: ToldBoard, models: Iterable[str], *, named: bool
) -> dict[str, str]:
    """Model -> why nothing is to be tested of it."""
    from botchat.boards.names import is_floor_bot

    why = {}
    for name in models:
        if name in old.dialogues and old.dialogues[name] == new.dialogues.get(name):
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


def _revised(old: ToldBoard, new: ToldBoard) -> tuple[ToldBoard, ToldBoard]:
    """The boards with the last revision of a model on the first and its new one under one name."""

    def base(name: str) -> str:
        return name.rpartition("@")[0] or name

    added = [name for name in new.rows if name not in old.rows]
    for name in added:
        before = sorted(one for one in old.rows if base(one) == base(name))
        if before and [base(one) for one in added].count(base(name)) == 1:
            both = f"{before[-1]} → {name}"
            old = old.called(before[-1], both, keep=before[-1] in new.rows)
            new = new.called(name, both, keep=False)
    return old, new


_IDENTITY = ("asked", "answered", "revision", "host", "api", "temperature", "system_prompt")
"""Of what was asked: who it was. Days and costs differ each time."""


def _asked_otherwise(old: ToldBoard, new: ToldBoard) -> Iterator[str]:
    """Which models are others than they were, as far as both boards say who was asked."""
    for (name, stage, model), before in old.asked.items():
        after = new.asked.get((name, stage, model), before)
        apart = [key for key in _IDENTITY if before.get(key) != after.get(key)]
        if told := [f"{key} {before.get(key)} → {after.get(key)}" for key in apart]:
            yield f"{name} ({stage}) is another than it was: {', '.join(told)}"


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
    yield from _asked_otherwise(old, new)
    made = old.made(), new.made()
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


def _apart(old: ToldBoard, new: ToldBoard) -> Iterator[str]:
    """Why no difference of two boards is a model's: other seeds, judges, prompts or N."""
    known = bool(old.seeds and new.seeds)
    if known and not set(old.seeds) & set(new.seeds):
        yield "they share no ChatSEED"
    if old.n != new.n:
        yield f"N is {old.n} before, {new.n} after"
    labels = ("judge", "prompt") if known else ("set", "judge", "prompt")
    made = old.made(), new.made()
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
