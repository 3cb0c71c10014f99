"""Comparison of two boards: what changed for each model, and whether one fell."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from botchat.boards.changes import FIRST_N, Boards, SavedBoard
from botchat.boards.protocols import MODEL
from botchat.boards.tables import Column, Table, models_of, table
from botchat.errors import (
    ConfigError,
    DataError,
    GateFailed,
    MissingDataError,
    UsageError,
    did_you_mean,
    listed,
)
from botchat.frames import fill_lines
from botchat.interfaces import Row
from botchat.metrics.statistics import proportion
from botchat.records import Texts
from botchat.results import Piece, Result
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace


def compare(
    workspace: Workspace,
    before: str,
    after: str,
    *,
    models: Texts = (),
    alpha: float = 0.05,
) -> Result:
    """Compare two boards: ``data`` has ``rows``, ``alpha``, ``tested``, ``unchanged``, ``fell``.

    A model fell if its success rate at the largest N or at `FIRST_N` did, paired by seed: exact
    sign-flip tests, corrected by Holm for all models and both rates. ``failure`` names the models
    that fell, or says that nothing was tested. Raises `MissingDataError`, `DataError` or
    `ConfigError`: no such board, none that can be compared, no such model.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"--alpha {alpha:g}: give a rate between 0 and 1, such as 0.05")
    boards = Boards(read_board(workspace, before), read_board(workspace, after))
    # Why no difference is a model's: other seeds, judges, prompts or N.
    mismatches = dict.fromkeys(fill_lines("boards/mismatches.txt", old=boards.old, new=boards.new))
    if mismatches:
        raise DataError(f"{before} and {after} differ: {'; '.join(mismatches)}; make both alike")
    for name in models:
        if name not in boards.models:
            raise ConfigError(
                f"--model {name}: not on both boards{did_you_mean(name, boards.models)}; on both: "
                f"{listed(boards.models)}"
            )
    models = list(dict.fromkeys(models))
    p = boards.p_values(models or models_of(boards.models))
    fell = [name for name, value in p.items() if value <= alpha]
    lines = fill_lines(
        "pipeline/compare.txt",
        boards=boards,
        p=p,
        fell=fell,
        alpha=alpha,
        first_n=FIRST_N,
    )
    to_test = set(models or boards.changed).difference(boards.unchanged)
    changes = _table(boards, p)
    data = {
        "rows": changes.records,
        "alpha": alpha,
        "tested": list(p),
        "unchanged": boards.unchanged,
        "fell": fell,
        "notes": lines,
        "before": boards.old.path,
        "after": boards.new.path,
    }
    pieces: list[Piece] = []
    if boards.changed:
        pieces += [changes, changes.note]
    pieces += lines
    return Result(data, pieces, failure=_failure(boards, to_test, p, fell))


def _failure(
    boards: Boards, to_test: set[str], p: Mapping[str, float], fell: Texts
) -> GateFailed | None:
    """Return why the gate is shut, if it is."""
    for board in (boards.old, boards.new):
        if board.judge.get("trust") == "do not trust":
            return GateFailed(f"{board.path}: {board.headline}")
    if fell:
        return GateFailed(f"{len(fell)} of {len(p)} models fell")
    if to_test and not p:
        return GateFailed(
            "nothing was tested: no changed model has UniEval verdicts on seeds of both boards; "
            "judge UniEval, or name a model with --model"
        )
    if boards.gone:
        return GateFailed(f"not tested: {', '.join(boards.gone)}, not on the second board any more")
    return None


def read_board(workspace: Workspace, name: str) -> SavedBoard:
    """Read the board of a set, of a folder, or of a json file; raises as `compare`."""
    path = Path(name)
    if path.is_dir():
        path /= "leaderboard.json"
    if not path.is_file():
        path = workspace.out(name) / "leaderboard.json"
    if not path.is_file():
        boards = workspace.out("")
        known = sorted(p.parent.relative_to(boards).as_posix() for p in boards.rglob(path.name))
        raise MissingDataError(
            f"no board {name!r}{did_you_mean(name, known)}; name a set with a leaderboard "
            f"({listed(known) or 'there is none here'}), a folder with leaderboard.json, or "
            "such a file"
        )
    try:
        board = msgspec.json.decode(jsonl.content(path), type=SavedBoard)
    except msgspec.DecodeError:
        raise DataError(f"{path} is not what leaderboard writes; make the board again") from None
    return msgspec.structs.replace(board, path=str(path))


def _table(boards: Boards, p: Mapping[str, float]) -> Table:
    columns = [MODEL]
    rows: list[Row] = [{"model": name, "p": p.get(name)} for name in boards.changed]
    for n in boards.tested_n:
        key = f"change_n{n}"
        columns.append(Column(key, f"Success @{n}, change", "rate", interval=True))
        for row in rows:
            change, cluster = boards.changes(row["model"], n)
            row[key] = proportion(change, cluster, (-1.0, 1.0))
    columns.append(Column("p", "p (Holm)", "exact"))
    return table(
        "changes",
        "Changes",
        columns,
        rows,
        [f"{boards.old.path} → {boards.new.path}"],
        "Changes in points of success rate, with 95 % intervals; paired by seed.",
        [columns[1].key],
    )
