"""A set's board as records of Every Eval Ever: who its models and its judge are elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from botchat.errors import ConfigError
from botchat.hub import eval_records as every_eval_ever
from botchat.hub.eval_records import Source, Subject
from botchat.measures.annotations import is_person
from botchat.pipeline.run.contestants import panel_of
from botchat.pipeline.run.session import RULES
from botchat.records import HUMAN, Dialogues
from botchat.workspace import config
from botchat.workspace.entries import LOCAL, OPENAI_URL
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import CascadeSettings

if TYPE_CHECKING:
    from botchat.boards.board import Board

UNKNOWN = "unknown"
"""Organization of a run whose makers are not named."""


def records(
    workspace: Workspace, board: Board, dialogues: Dialogues, organization: str | None = None
) -> dict[str, str]:
    """Path -> content of a record for each model of a board; see `botchat.hub.eval_records`.

    ``organization``: who made the run.
    """
    files = workspace.judgment_files(board.seed_set)[board.judge].values()
    source = Source(
        partial(subject, workspace, dialogues),
        tuple(dict.fromkeys(_judges(workspace, board.judge))),
        organization or UNKNOWN,
        max(path.stat().st_mtime for path in files),
    )
    return every_eval_ever.files(board, source)


def subject(workspace: Workspace, dialogues: Dialogues, name: str) -> Subject:
    """Who a contestant or a judge's model is elsewhere, as far as its name or its entry says."""
    signature = next((one.signature for one in dialogues.get(name, {}).values()), "")
    entry = next((e for e in workspace.config.models.values() if e.label == name), None)
    try:
        named = config.model_name(name, workspace.config)
    except ConfigError:
        if entry is None:
            return Subject(name, signature=signature)
        named = config.ModelName("endpoint", name, entry)
    if named.kind == "bot":
        return Subject(f"botchat/{named.target}", "self_deployed", "open_weights", "", signature)
    if named.kind == "local":
        return Subject(
            named.name.removeprefix(LOCAL), "self_deployed", "open_weights", "", signature
        )
    if named.settings is None:
        return Subject(name, signature=signature)
    model = named.settings.model
    if named.settings.base_url.rstrip("/") == OPENAI_URL:
        id_ = f"openai/{model}"
        return Subject(id_, "externally_managed", "closed_weights", "OpenAI", signature)
    return Subject(model, signature=signature)


def _judges(workspace: Workspace, judge: str) -> Iterator[str]:
    """The models that a judge asks; none: rules, or people."""
    if judge == RULES or is_person(judge, HUMAN):
        return
    panel = panel_of(workspace, judge)
    if panel is None:
        entry = workspace.config.judges.get(judge)
        yield entry.model if entry else judge
    elif isinstance(panel, CascadeSettings):
        yield from _judges(workspace, panel.cheap)
        yield from _judges(workspace, panel.strong)
    else:
        default = judge.partition("@")[2] or panel.model or UNKNOWN
        yield from (member.model or default for member in panel.members)
