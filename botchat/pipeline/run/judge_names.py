"""Who a judge is, by the name that its judgments are filed under."""

from __future__ import annotations

from botchat.judges.controls import BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED
from botchat.judges.samples import asked_once
from botchat.pipeline.run.contestants import full_name
from botchat.workspace import panels
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import PanelSettings


def method(workspace: Workspace, judge: str) -> tuple[str, str]:
    """(model asked, how it is asked)."""
    base = _bare(judge)
    how = judge[len(base) :]
    if panel_of(workspace, base) is None:
        return base, f"single{how}"
    name, _, model = base.partition("@")
    return model or own_name(workspace, base), f"{name}{how}"


def own_name(workspace: Workspace, judge: str) -> str:
    """The contestant that a judge is itself: its model, where it has but one."""
    base = _bare(judge)
    if (settings := panel_of(workspace, base)) is not None:
        models = {member.model for member in settings.members if member.model}
        named = models.pop() if len(models) == 1 else ""
        base = base.partition("@")[2] or named or base
    elif base in workspace.config.judges:
        base = workspace.config.judges[base].model
    return full_name(base, workspace)


def _bare(judge: str) -> str:
    """The judge itself, of a name that says in what other way it was asked."""
    for ending in (BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED):
        judge = judge.removesuffix(ending)
    return asked_once(panels.run_of(judge)[0])


def panel_of(workspace: Workspace, judge: str) -> PanelSettings | None:
    """The settings of a panel; ``None`` of a judge that is none."""
    return panels.find(panels.run_of(judge)[0].partition("@")[0], workspace.config.panels)
