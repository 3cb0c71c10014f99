"""The ledger's accounts: what was asked, what it cost, moving it to another machine."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from botchat.errors import MissingError
from botchat.workspace import ledger as stored
from botchat.workspace.folder import Workspace


def stats_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Calls, tokens, money and outcomes by model and stage. Unknown cost is ``None``."""
    with closing(_existing(workspace)) as ledger:
        return [asdict(one) for one in stored.stats(ledger)]


def export(workspace: Workspace, path: Path) -> int:
    """Write all calls to ``path`` (JSON lines, gzip for ``.gz``); how many."""
    with closing(_existing(workspace)) as ledger:
        return stored.export(ledger, path)


def import_(workspace: Workspace, path: Path) -> tuple[int, int]:
    """Add the calls of an exported ledger: (added, already here)."""
    if not path.exists():
        raise MissingError(f"no file {path}; make it with: botchat ledger export {path}")
    with workspace.locked(), closing(workspace.ledger()) as ledger:
        return stored.import_(ledger, path)


def _existing(workspace: Workspace) -> stored.Ledger:
    if not workspace.ledger_path.exists():
        raise MissingError(
            f"no ledger in {workspace.root}: no model has been called in this workspace yet"
        )
    return stored.Ledger(workspace.ledger_path, readonly=True)
