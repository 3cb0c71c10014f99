"""Commands that show results: demo, agree, leaderboard, simulate, report, plot, view."""

from __future__ import annotations

import argparse

from botchat.cli.output import progress, say, say_compared, workspace_of
from botchat.errors import ConfigError


def demo(arguments: argparse.Namespace) -> None:
    """Run everything offline and show the board."""
    from botchat.pipeline import leaderboard as everything

    with progress(arguments) as meter:
        board = everything.demo(workspace_of(arguments), meter)
    say(arguments, board.whole, board.rows, lines=board.lines)


def leaderboard(arguments: argparse.Namespace) -> None:
    """Rank, from judgments or from a published rate table."""
    from botchat.parallel import spend_memory
    from botchat.pipeline import leaderboard as publishing
    from botchat.ratings.elo import EloSettings

    spend_memory()
    elo = EloSettings(shuffles=arguments.shuffles, runs=arguments.runs, seed=arguments.seed)
    if arguments.pairwise_rates is not None:
        board = publishing.rank_rates(
            arguments.pairwise_rates, arguments.per_pair, elo, arguments.out
        )
    elif arguments.seeds is None:
        raise ConfigError("leaderboard needs --seeds SET, or --pairwise-rates FILE.csv")
    else:
        with progress(arguments, by_steps=True) as meter:
            board = publishing.leaderboard(
                workspace_of(arguments), arguments.seeds, arguments.judge, arguments.out, elo, meter
            )
    say(arguments, board.whole, board.rows, lines=board.lines)


def simulate(arguments: argparse.Namespace) -> None:
    """Say what a part of a full board would have cost and found."""
    from botchat.pipeline import simulate as simulating
    from botchat.ratings.adaptive import Target

    with progress(arguments) as meter:
        found = simulating.simulate(
            workspace_of(arguments),
            rates=arguments.rates,
            per_pair=arguments.per_pair,
            seed_set=arguments.seeds,
            judge=arguments.judge,
            turns=arguments.turns,
            target=Target(arguments.gap, arguments.swaps, arguments.confidence),
            budgets=arguments.budget,
            add=arguments.add,
            runs=arguments.runs,
            seed=arguments.seed,
            meter=meter,
        )
    say(arguments, {"rows": found.rows}, found.shown)
    if not arguments.json:
        print(found.note)


def report(arguments: argparse.Namespace) -> None:
    """Write a set's page."""
    from botchat.parallel import spend_memory
    from botchat.pipeline import leaderboard as reporting

    spend_memory()
    with progress(arguments, by_steps=True) as meter:
        page = reporting.report(
            workspace_of(arguments), arguments.seeds, arguments.judge, arguments.out, meter=meter
        )
    say(arguments, {"page": page})


def plot(arguments: argparse.Namespace) -> None:
    """Write one figure."""
    from botchat.pipeline import leaderboard as reporting

    path = reporting.plot(
        workspace_of(arguments), arguments.seeds, arguments.name, arguments.out, arguments.judge
    )
    say(arguments, {"path": path})


def view(arguments: argparse.Namespace) -> None:
    """Serve the pages until Ctrl-C."""
    import webbrowser
    from contextlib import suppress

    from botchat.pipeline.view import serve

    server = serve(workspace_of(arguments), arguments.seeds, arguments.port)
    with server, suppress(KeyboardInterrupt):
        print(f"{server.url} (Ctrl-C ends it)", flush=True)
        if not arguments.no_browser:
            webbrowser.open(server.url)
        server.serve_forever()


def agree(arguments: argparse.Namespace) -> None:
    """Compare judges with people and with each other."""
    from botchat.pipeline import agree as agreeing
    from botchat.pipeline.agree import Options

    found = agreeing.agree(
        workspace_of(arguments),
        arguments.files,
        seed_set=arguments.seeds,
        protocol=arguments.protocol,
        judges=arguments.judge,
        truth=arguments.truth,
        out=arguments.out,
        options=Options(arguments.resamples, arguments.seed),
    )
    say_compared(arguments, found)
