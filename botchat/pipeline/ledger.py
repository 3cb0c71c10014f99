"""The ledger's accounts: what was asked, what it cost, moving it to another machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from botchat.errors import MissingError
from botchat.workspace import ledger as ledger_archive
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger, stats


def stats_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Calls, tokens, money and outcomes by model and stage. Unknown cost is ``None``."""
    ledger = _existing(workspace)
    try:
        return [asdict(one) for one in stats(ledger)]
    finally:
        ledger.close()


def export(workspace: Workspace, path: Path) -> int:
    """Write all calls to ``path`` (JSON lines, gzip for ``.gz``); how many."""
    ledger = _existing(workspace)
    try:
        return ledger_archive.export(ledger, path)
    finally:
        ledger.close()


def import_(workspace: Workspace, path: Path) -> tuple[int, int]:
    """Add the calls of an exported ledger: (added, already here)."""
    if not path.exists():
        raise MissingError(f"no file {path}; make it with: botchat ledger export {path}")
    with workspace.locked():
        ledger = workspace.ledger()
        try:
            return ledger_archive.import_(ledger, path)
        finally:
            ledger.close()


def _existing(workspace: Workspace) -> Ledger:
    if not workspace.ledger_path.exists():
        raise MissingError(
            f"no ledger in {workspace.root}: no model has been called in this workspace yet"
        )
    return Ledger(workspace.ledger_path, readonly=True)
