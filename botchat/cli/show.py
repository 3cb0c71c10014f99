"""Commands that ask no models: they show results, and what a workspace has."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.cli.output import formats_of, progress, read_from, say, workspace_of
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Row
from botchat.leaves import leaf

if TYPE_CHECKING:
    from botchat.workspace.folder import Workspace


def demo(arguments: argparse.Namespace) -> None:
    """Run everything offline and show the board."""
    from botchat.pipeline import leaderboard as everything

    with progress(arguments) as meter:
        board = everything.demo(workspace_of(arguments), meter)
    say(arguments, board.whole, board.table, *board.lines)


def init(arguments: argparse.Namespace) -> None:
    """Write a botchat.toml to begin with."""
    from botchat.pipeline import init as beginning

    path = beginning.init(workspace_of(arguments), arguments.provider)
    then = "next: look through it, then: botchat run --plan (the price), botchat run"
    say(arguments, {"path": path}, f"wrote {path}", then)


def leaderboard(arguments: argparse.Namespace) -> None:
    """Rank, from judgments or from a published rate table."""
    from botchat.parallel import collect_seldom
    from botchat.pipeline import leaderboard as publishing
    from botchat.ratings.elo import EloSettings

    collect_seldom()
    formats = formats_of(arguments)
    elo = EloSettings.of_board(arguments.shuffles, arguments.runs, arguments.seed)
    if arguments.pairwise_rates is not None:
        if arguments.store is not None:
            raise ConfigError("--store has stage files, --pairwise-rates is a table: leave one out")
        board = publishing.rank_rates(
            arguments.pairwise_rates, arguments.per_pair, elo, arguments.out, formats
        )
    elif arguments.seeds is None:
        raise ConfigError("leaderboard needs --seeds SET, or --pairwise-rates FILE.csv")
    else:
        judges = [] if arguments.judge is None else [arguments.judge]
        if judges:
            folder = arguments.out or workspace_of(arguments).out(arguments.seeds)
            judges += publishing.on_page(folder, arguments.seeds)
        with (
            read_from(arguments, judges) as workspace,
            progress(arguments) as meter,
        ):
            board = publishing.leaderboard(
                workspace,
                arguments.seeds,
                arguments.judge,
                arguments.out,
                elo,
                meter,
                formats,
                png=not arguments.no_png,
            )
    say(arguments, board.whole, board.table, *board.lines)


def compare(arguments: argparse.Namespace) -> None:
    """Show what changed between two boards; a gate if asked."""
    from botchat.pipeline import compare as comparing

    found = comparing.compare(
        workspace_of(arguments), arguments.before, arguments.after, arguments.by, arguments.alpha
    )
    say(arguments, found.whole, found.table, found.table.note, *found.lines)
    if arguments.gate:
        found.gate()


def rank(arguments: argparse.Namespace) -> None:
    """Rank from files of votes."""
    from botchat.pipeline import rank as ranking
    from botchat.ratings.elo import EloSettings

    with progress(arguments) as meter:
        board = ranking.rank(
            workspace_of(arguments),
            arguments.files,
            form=arguments.form,
            judges=arguments.judge,
            per_pair=arguments.per_pair,
            out=arguments.out,
            elo=EloSettings.of_board(arguments.shuffles, arguments.runs, arguments.seed),
            meter=meter,
            formats=formats_of(arguments),
        )
    say(arguments, board.whole, board.table, *board.lines)


def export(arguments: argparse.Namespace) -> None:
    """Write a set's run as a dataset."""
    from botchat.pipeline.export import EEE, JSONL, PARQUET
    from botchat.pipeline.export import export as write

    asked = {PARQUET: arguments.parquet, JSONL: arguments.jsonl, EEE: arguments.eee}
    given = [(form, out) for form, out in asked.items() if out is not None]
    if len(given) != 1:
        raise ConfigError(
            "export needs one of --parquet DIR, --jsonl DIR (the stage files as they are) and "
            "--eee DIR (the board as records of Every Eval Ever)"
        )
    ((form, out),) = given
    judges = [] if arguments.judge is None else [arguments.judge]
    with read_from(arguments, judges, judged=form == EEE) as workspace:
        made = write(
            workspace,
            arguments.seeds,
            out,
            form,
            judge=arguments.judge,
            organization=arguments.organization,
        )
    say(arguments, {"rows": made.rows, "out": out}, made.rows, made.line)


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


def label_plan(arguments: argparse.Namespace) -> None:
    """Draw what people should label, and say what that buys."""
    from botchat.pipeline.label import label_plan as draw

    plan = draw(
        workspace_of(arguments),
        arguments.seeds,
        arguments.judge,
        budget=arguments.budget,
        protocol=arguments.protocol,
        rng_seed=arguments.seed,
    )
    whole = {
        "path": plan.path,
        "protocol": plan.protocol,
        "planned": len(plan.planned),
        "rows": plan.table.records,
    }
    said = f"{len(plan.planned):,} cases to label: {plan.path}"
    say(arguments, whole, plan.table, plan.table.note, said)


def report(arguments: argparse.Namespace) -> None:
    """Write a set's page."""
    from botchat.parallel import collect_seldom
    from botchat.pipeline import leaderboard as reporting

    collect_seldom()
    with (
        read_from(arguments, arguments.judge) as workspace,
        progress(arguments) as meter,
    ):
        page = reporting.report(
            workspace,
            arguments.seeds,
            arguments.judge,
            arguments.out,
            meter=meter,
            url=arguments.url or "",
        )
    say(arguments, {"page": page})


def plot(arguments: argparse.Namespace) -> None:
    """Write one figure."""
    from botchat.pipeline import plot as plotting

    judges = [] if arguments.judge is None else [arguments.judge]
    with read_from(arguments, judges) as workspace:
        path = plotting.write_plot(
            workspace,
            arguments.seeds,
            arguments.name,
            arguments.out,
            arguments.judge,
            size=arguments.size and plotting.read_size(arguments.size),
            highlight=arguments.highlight,
        )
    say(arguments, {"path": path})


def view(arguments: argparse.Namespace) -> None:
    """Serve the pages until Ctrl-C."""
    import webbrowser
    from contextlib import suppress

    from botchat.pipeline.view import Server, room_of
    from botchat.requests import Limits

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


def agree(arguments: argparse.Namespace) -> None:
    """Compare judges with people and with each other, or put one in the place of another."""
    from botchat.boards.writers import Formats
    from botchat.pipeline import agree as agreeing
    from botchat.pipeline.agree import Options
    from botchat.pipeline.bridge import bridge

    judges = arguments.bridge or arguments.judge
    with read_from(arguments, judges, arguments.protocol) as workspace:
        if arguments.bridge is not None:
            found = bridge(
                workspace,
                arguments.seeds,
                *arguments.bridge,
                protocol=arguments.protocol,
                files=arguments.files,
                rng_seed=arguments.seed,
                out=arguments.out,
                formats=formats_of(arguments),
            )
        else:
            found = agreeing.agree(
                workspace,
                arguments.files,
                seed_set=arguments.seeds,
                protocol=arguments.protocol,
                judges=arguments.judge,
                truth=arguments.truth,
                out=arguments.out,
                options=Options(
                    arguments.resamples, arguments.seed, formats_of(arguments) or Formats()
                ),
            )
    say(arguments, found.whole, *found.shown)


def seeds_import(arguments: argparse.Namespace) -> None:
    """Import a seed set."""
    from botchat.pipeline.seeds import import_seeds

    workspace = workspace_of(arguments)
    path = import_seeds(
        workspace,
        arguments.source,
        arguments.name,
        arguments.language,
        replace=arguments.replace,
    )
    say(arguments, _set_row(workspace, arguments.name, path))


def seeds_list(arguments: argparse.Namespace) -> None:
    """List the seed sets."""
    workspace = workspace_of(arguments)
    rows = [_set_row(workspace, name, path) for name, path in workspace.seed_sets().items()]
    say(arguments, {"rows": rows})


def seeds_show(arguments: argparse.Namespace) -> None:
    """Show a set, or one dialogue of it."""
    from botchat.records import N_SEED

    seeds = workspace_of(arguments).seeds(arguments.name)
    if arguments.seed_id is None:
        rows = [
            {"id": s.id, "utterances": len(s.utterances), "begins": next(iter(s.utterances), "")}
            for s in seeds
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


def dialogues_import(arguments: argparse.Namespace) -> None:
    """Store dialogues made elsewhere."""
    from botchat.pipeline.dialogues import import_dialogues

    made = import_dialogues(
        workspace_of(arguments),
        arguments.files,
        arguments.set,
        arguments.model,
        given=arguments.given,
        new_seeds=arguments.new_seeds,
        replace=arguments.replace,
    )
    say(arguments, made.whole, made.line, [made.shown])


def _set_row(workspace: Workspace, name: str, path: Path) -> Row:
    from botchat.records import MIN_HUMAN

    seeds = workspace.seeds(name)
    long = sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds)
    spoken = workspace.language(name).code
    row = {"set": name, "n_seeds": len(seeds), "n_min4": long, "language": spoken, "path": path}
    return row | ({"source": source} if (source := workspace.source(name)) else {})


def remove(arguments: argparse.Namespace) -> None:
    """Take a model or a judge out of a set."""
    from botchat.pipeline.remove import remove as removing

    found = removing(workspace_of(arguments), arguments.seeds, arguments.model, arguments.judge)
    say(arguments, {"set": arguments.seeds, **asdict(found)})


def models(arguments: argparse.Namespace) -> None:
    """List what can be named, or forget what one model's endpoint refused."""
    from botchat.pipeline.models import forget_quirks, model_rows

    if arguments.forget_quirks is not None:
        forgotten = forget_quirks(workspace_of(arguments), arguments.forget_quirks)
        whole = {"model": arguments.forget_quirks, "forgotten": forgotten}
        said = ", ".join(forgotten) or "nothing: it was asked as it was asked for"
        say(arguments, whole, [whole | {"forgotten": said}])
        return
    say(arguments, {"rows": model_rows(workspace_of(arguments), check=arguments.check)})


def ledger_stats(arguments: argparse.Namespace) -> None:
    """Show the ledger's accounts."""
    from botchat.pipeline.ledger import stats_rows

    rows = stats_rows(workspace_of(arguments))
    never = [
        name for name in ("cache_write_tokens", "superseded") if not any(r[name] for r in rows)
    ]
    shown = [{name: row[name] for name in row if name not in never} for row in rows]
    say(arguments, {"rows": rows}, shown)


def ledger_export(arguments: argparse.Namespace) -> None:
    """Write the ledger to a file."""
    from botchat.pipeline.ledger import export

    calls = export(workspace_of(arguments), arguments.file, arguments.since)
    say(arguments, {"path": arguments.file, "calls": calls})


def ledger_import(arguments: argparse.Namespace) -> None:
    """Add an exported ledger."""
    from botchat.pipeline.ledger import import_

    added, known = import_(workspace_of(arguments), arguments.file)
    say(arguments, {"path": arguments.file, "added": added, "known": known})


def ledger_push(arguments: argparse.Namespace) -> None:
    """Leave the ledger's calls and the stage files in a store."""
    from botchat.pipeline.ledger import push

    pushed, records = push(workspace_of(arguments), arguments.place)
    say(arguments, {"pushed": pushed, "records": records})


def ledger_pull(arguments: argparse.Namespace) -> None:
    """Add a store's calls and stage files."""
    from botchat.pipeline.ledger import pull

    added, records = pull(workspace_of(arguments), arguments.place)
    say(arguments, {"added": added, "records": records})


def ledger_rebuild(arguments: argparse.Namespace) -> None:
    """Make the ledger anew of a store."""
    from botchat.pipeline.ledger import rebuild

    calls, kept = rebuild(workspace_of(arguments), arguments.place)
    say(arguments, {"calls": calls, "kept": kept})


def ledger_forget(arguments: argparse.Namespace) -> None:
    """Make calls askable again."""
    from botchat.pipeline.ledger import forget

    forgotten = forget(
        workspace_of(arguments),
        arguments.outcome,
        arguments.model,
        arguments.stage,
        damaged=arguments.damaged,
    )
    again = "the commands that made them ask these calls again, and replay all others"
    say(arguments, vars(forgotten), [vars(forgotten)], *([again] if forgotten.calls else []))
