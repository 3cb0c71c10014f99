"""The requests as functions: ``botchat.judge(workspace, "arena", "sample", "rules")``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.pipeline.evaluate import Evaluated, Evaluating
from botchat.pipeline.run.work import Meter
from botchat.requests import (
    JudgeName,
    Limits,
    Spending,
)
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from botchat.boards.writers import Formats


def evaluate(
    workspace: Workspace,
    file: Path,
    judge_name: str,
    *,
    criteria: Sequence[str] = (),
    judge_model: str | None = None,
    samples: int = 1,
    out: Path | None = None,
    formats: Formats | None = None,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Evaluated:
    """Let a judge report on the texts, or decide on the pairs, of a file; see `Evaluating`."""
    named = JudgeName(judge_name, judge_model, samples)
    request = Evaluating(Path(file), named, tuple(criteria), out, formats)
    return request.run(workspace, Spending(limits or Limits(), batch), meter)
