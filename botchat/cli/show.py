"""Commands that ask no models: they show results, and what a workspace has."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from botchat.cli.output import say, workspace_of
from botchat.leaves import leaf

if TYPE_CHECKING:
    pass


def publish(arguments: argparse.Namespace) -> None:
    """Send a set's run to the hub."""
    sent = leaf("hub.publish", "publish").publish(
        workspace_of(arguments),
        arguments.seeds,
        arguments.name,
        dry_run=arguments.dry_run,
        private=arguments.private,
        eval_results=arguments.eval_results,
    )
    files: dict[str, list[str]] = {}
    for made in (sent.contents, sent.proposed):
        files |= {where: [*contents] for where, contents in made.items()}
    said = [f"{where}: {path}" for where in files for path in files[where]]
    said += [text.decode() for offered in sent.proposed.values() for text in offered.values()]
    say(arguments, {"rows": sent.rows, "files": files}, sent.rows, *said * arguments.dry_run)


def fetch(arguments: argparse.Namespace) -> None:
    """Take a published run."""
    take = leaf("hub.fetch", "fetch").fetch
    say(arguments, asdict(take(workspace_of(arguments), arguments.source)))


def view(arguments: argparse.Namespace) -> None:
    """Serve the pages until Ctrl-C."""
    import webbrowser
    from contextlib import suppress

    from botchat.arguments import Limits
    from botchat.pipeline.view import Server, room_of

    workspace = workspace_of(arguments)
    limits = Limits(arguments.max_usd, arguments.max_calls, arguments.max_tokens)
    room = room_of(
        workspace, arguments.seeds, limits, tuple(arguments.model), opened=arguments.talk
    )
    server = Server(workspace, arguments.seeds, arguments.port, room)
    with server, suppress(KeyboardInterrupt):
        print(f"{server.url} (Ctrl-C ends it)", flush=True)
        if not arguments.no_browser:
            webbrowser.open(server.url)
        server.serve_forever()


def label(arguments: argparse.Namespace) -> None:
    """Serve the page of blind cases until Ctrl-C."""
    import webbrowser
    from contextlib import suppress
    from urllib.parse import urljoin

    from botchat.pipeline.label import game_path
    from botchat.pipeline.view import Server

    workspace, seed_set = workspace_of(arguments), arguments.seeds
    asked = {"protocol": arguments.protocol, "name": arguments.name, "plan": arguments.plan}
    with Server(workspace, seed_set, arguments.port) as server, suppress(KeyboardInterrupt):
        url = urljoin(server.url, game_path(workspace, seed_set, **asked))
        print(f"{url} (Ctrl-C ends it)", flush=True)
        if not arguments.no_browser:
            webbrowser.open(url)
        server.serve_forever()
