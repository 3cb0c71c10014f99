"""``botchat remove``: a contestant or judge out of a set; the ledger keeps what they said."""

from __future__ import annotations

from functools import partial

from botchat.errors import ConfigError, MissingError, did_you_mean
from botchat.pipeline.ledger import delete, leave_out
from botchat.pipeline.run.contestants import full_name
from botchat.records import HUMAN, Judgment
from botchat.requests import Removing
from botchat.requests.results import Told
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
            there, said = False, 0
            if model is not None:
                path = workspace.dialogues_path(seed_set, filed)
                there, said = path.exists(), len(read_dialogues(path))
            judged = leave_out(
                (workspace.root / "judgments" / seed_set).glob("*/*.jsonl"),
                workspace.judgments,
                partial(_is_of, model is None, filed),
                judgment_order,
            )
            if model is not None:
                delete(path)
            if there or judged:
                whole = {"set": seed_set, "removed": filed, "dialogues": said, "judgments": judged}
                return Told(whole)
    what = "dialogues or judgments of" if model else "judgments by"
    known = workspace.all_dialogues(seed_set) if model else workspace.judgment_files(seed_set)
    raise MissingError(
        f"no {what} {name!r} on the set {seed_set!r}{did_you_mean(name, known)}; "
        f"there are: {', '.join(known) or 'none'}; nothing was removed"
    )


def _is_of(judge: bool, name: str, one: Judgment) -> bool:
    """Whether a judgment is by a judge, or of a contestant."""
    return one.judge == name if judge else name in one.contestants
