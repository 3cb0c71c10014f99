"""Commands about what a workspace has: seed sets, names, the ledger."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.cli.output import say, workspace_of
from botchat.interfaces import Row

if TYPE_CHECKING:
    from botchat.workspace.folder import Workspace


def seeds_import(arguments: argparse.Namespace) -> None:
    """Import a seed set."""
    from botchat.pipeline.seeds import import_seeds

    workspace = workspace_of(arguments)
    path = import_seeds(workspace, arguments.source, arguments.name)
    say(arguments, _set_row(workspace, arguments.name, path))


def seeds_list(arguments: argparse.Namespace) -> None:
    """List the seed sets."""
    workspace = workspace_of(arguments)
    rows = [_set_row(workspace, name, path) for name, path in workspace.seed_sets().items()]
    say(arguments, {"rows": rows})


def seeds_show(arguments: argparse.Namespace) -> None:
    """Show a set, or one dialogue of it."""
    from botchat.errors import MissingError
    from botchat.records import N_SEED

    seeds = workspace_of(arguments).seeds(arguments.name)
    if arguments.seed_id is None:
        rows = [
            {"id": s.id, "utterances": len(s.utterances), "begins": s.utterances[0]} for s in seeds
        ]
        shown = [row | {"begins": str(row["begins"])[:70]} for row in rows]
        say(arguments, {"set": arguments.name, "rows": rows}, shown)
        return
    found = next((seed for seed in seeds if seed.id == arguments.seed_id), None)
    if found is None:
        raise MissingError(
            f"no dialogue {arguments.seed_id!r} in the set {arguments.name}; "
            f"see: botchat seeds show {arguments.name}"
        )
    rows = [
        {"n": n, "speaker": "BA"[n % 2], "part": "seed" if n <= N_SEED else "human", "said": text}
        for n, text in enumerate(found.utterances, 1)
    ]
    say(arguments, {"set": arguments.name, "id": found.id, "rows": rows})


def _set_row(workspace: Workspace, name: str, path: Path) -> Row:
    from botchat.records import MIN_HUMAN

    seeds = workspace.seeds(name)
    long = sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds)
    return {"set": name, "n_seeds": len(seeds), "n_min4": long, "path": path}


def models(arguments: argparse.Namespace) -> None:
    """List what can be named."""
    from botchat.pipeline.session import model_rows

    say(arguments, {"rows": model_rows(workspace_of(arguments), check=arguments.check)})


def ledger_stats(arguments: argparse.Namespace) -> None:
    """Show the ledger's accounts."""
    from botchat.pipeline.ledger import stats_rows

    say(arguments, {"rows": stats_rows(workspace_of(arguments))})


def ledger_export(arguments: argparse.Namespace) -> None:
    """Write the ledger to a file."""
    from botchat.pipeline.ledger import export

    calls = export(workspace_of(arguments), arguments.file)
    say(arguments, {"path": arguments.file, "calls": calls})


def ledger_import(arguments: argparse.Namespace) -> None:
    """Add an exported ledger."""
    from botchat.pipeline.ledger import import_

    added, known = import_(workspace_of(arguments), arguments.file)
    say(arguments, {"path": arguments.file, "added": added, "known": known})
