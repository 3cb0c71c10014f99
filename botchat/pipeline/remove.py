"""``botchat remove``: a contestant or judge out of a set; the ledger keeps what they said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from botchat.errors import BotChatError, ConfigError, MissingError, did_you_mean
from botchat.pipeline.run.contestants import full_name
from botchat.pipeline.run.results import Told
from botchat.records import HUMAN, Judgment
from botchat.requests import Removing
from botchat.workspace import files
from botchat.workspace.folder import Workspace, judgment_order, read_dialogues


def remove(request: Removing, workspace: Workspace) -> Told:
    """Delete a contestant's dialogues with every judgment of them, or all judgments of a judge.

    Made again, both cost nothing: the replies are in the ledger. A run that was killed here is
    finished by the same call.

    Raises:
        ConfigError: not one of the two, or ``human``.
        MissingError: no such set, contestant or judge.
    """
    seed_set, model, judge = request.seed_set, request.model, request.judge
    if (model is None) == (judge is None):
        raise ConfigError("remove needs either --model MODEL or --judge JUDGE")
    if model == HUMAN:
        raise ConfigError("human is the set's own dialogues, which are not removed from it")
    workspace.seeds(seed_set)
    name = str(model if judge is None else judge)
    with workspace.locked():
        for filed in dict.fromkeys((name, full_name(name, workspace))):
            found = (_judge if model is None else _contestant)(workspace, seed_set, filed)
            if found is not None:
                return found
    what = "dialogues or judgments of" if model else "judgments by"
    known = workspace.all_dialogues(seed_set) if model else workspace.judgment_files(seed_set)
    raise MissingError(
        f"no {what} {name!r} on the set {seed_set!r}{did_you_mean(name, known)}; "
        f"there are: {', '.join(known) or 'none'}; nothing was removed"
    )


def _contestant(workspace: Workspace, seed_set: str, name: str) -> Told | None:
    path = workspace.dialogues_path(seed_set, name)
    there, said = path.exists(), read_dialogues(path)
    judged = _take_out(workspace, seed_set, lambda one: name in one.contestants)
    _delete(path)
    return _told(seed_set, name, len(said), judged) if there or judged else None


def _judge(workspace: Workspace, seed_set: str, name: str) -> Told | None:
    judged = _take_out(workspace, seed_set, lambda one: one.judge == name)
    return _told(seed_set, name, 0, judged) if judged else None


def _told(seed_set: str, name: str, dialogues: int, judgments: int) -> Told:
    return Told({"set": seed_set, "removed": name, "dialogues": dialogues, "judgments": judgments})


def _take_out(workspace: Workspace, seed_set: str, those: Callable[[Judgment], bool]) -> int:
    """Remove some judgments from every stage file of a set; how many."""
    removed = 0
    for path in sorted((workspace.root / "judgments" / seed_set).glob("*/*.jsonl")):
        made = workspace.judgments(path).values()
        kept = [one for one in made if not those(one)]
        if len(kept) < len(made):
            removed += len(made) - len(kept)
            if kept:
                files.finish(path, kept, judgment_order)
            else:
                _delete(path)
    return removed


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BotChatError(f"cannot delete {path}: {error.strerror}") from None
