"""What ``botchat bench`` is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from botchat.pipeline.run.spending import JudgeName


@dataclass(frozen=True)
class Benching:
    """A benchmark of judges, and who answers it."""

    benchmark: str
    data: Path | None = None
    """Folder with upstream's files; a file of one's own needs none."""
    judges: Sequence[JudgeName] = ()
    """None: show who has judged."""
    published: bool = False
    """MATEval: read upstream's discussions, in place of asking."""
    limit: int | None = None
    """Only the first items."""
    out: Path | None = None
    formats: Sequence[str] = ()
