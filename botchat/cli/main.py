"""The command line: flags -> one pipeline call. Heavy imports stay inside the commands.

stdout carries what was made (tables, or one JSON object with ``--json``), stderr progress and
errors. Exit 0 done, 1 expected error, 2 usage, 3 stopped by a limit (resumable), 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from botchat import __version__
from botchat.cli import ask, show, workspace
from botchat.errors import BotChatError


def entry() -> NoReturn:
    """Console script: `main`, with its result as exit code."""
    code = main()
    # The system takes all memory back at once; looking through it for garbage takes longer.
    gc.freeze()
    gc.disable()
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = _parser().parse_args(argv)
    # Matrices here are small: more threads of numpy's library only wait for each other, busily.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    logging.basicConfig(format="botchat: %(message)s", level=logging.WARNING, stream=sys.stderr)
    # What a second Ctrl-C leaves behind is nobody's news.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    # A script's background job is born deaf to Ctrl-C, and would be to a kill that becomes one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A polite kill ends a run like Ctrl-C does: replies in flight are stored first.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        arguments.command(arguments)
    except BotChatError as error:
        print(f"botchat: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            "botchat: interrupted; everything received is stored, run the same command to go on",
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away; silence the flush at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="botchat",
        description="Can this model hold a human conversation over many turns, who is best, "
        "and can the judge be trusted?",
    )
    parser.add_argument("--version", action="version", version=f"botchat {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = _command(
        commands, "demo", show.demo, "everything offline: sample seeds, bots, rules judge"
    )
    demo.set_defaults(dir=Path("botchat-demo"))

    seeds = commands.add_parser("seeds", help="import, list and show seed sets")
    kinds = seeds.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = _command(kinds, "import", workspace.seeds_import, "import human dialogues as a seed set")
    add.add_argument(
        "source",
        help="MuTual archive or folder, BotChat xlsx, .jsonl, .csv, hf://NAME, or `mutual` "
        "(downloads it)",
    )
    add.add_argument("--name", required=True, help="name of the set")
    _command(kinds, "list", workspace.seeds_list, "the sets of this workspace")
    one = _command(kinds, "show", workspace.seeds_show, "a set, or one dialogue of it")
    one.add_argument("name", metavar="SET")
    one.add_argument("seed_id", metavar="SEED_ID", nargs="?")

    models = _command(
        commands, "models", workspace.models, "what can be named as a model or a judge"
    )
    models.add_argument(
        "--check", action="store_true", help="send one tiny call to each configured model"
    )

    generate = _command(commands, "generate", ask.generate, "stage 1: let models extend the seeds")
    _seeds_flag(generate)
    generate.add_argument(
        "--model", action="append", required=True, metavar="MODEL", help="repeatable; see models"
    )
    generate.add_argument("--partner", metavar="MODEL", help="second speaker (cross-play)")
    generate.add_argument("--turns", type=int, help="utterances, the two seeds included (16)")
    generate.add_argument("--limit", type=int, metavar="K", help="only the first K seeds")
    _limits(generate)

    judge = _command(commands, "judge", ask.judge, "stage 2: judge the dialogues")
    judge.add_argument("protocol", help="the question, see below")
    _list_protocols(judge)
    _seeds_flag(judge)
    judge.add_argument(
        "--judge",
        required=True,
        metavar="JUDGE",
        help="rules (offline), a [judges] or [panels] entry, a preset panel, any model",
    )
    judge.add_argument(
        "--judge-model", metavar="MODEL", help="model of a panel's agents that name none"
    )
    judge.add_argument(
        "--model", action="append", default=[], metavar="MODEL", help="contestants (all)"
    )
    judge.add_argument(
        "--turns", type=int, action="append", default=[], metavar="N", help="arena: N (8 and 16)"
    )
    _samples_flag(judge)
    judge.add_argument(
        "--control",
        action="store_true",
        help="beside a panel, a single judge's vote that makes as many calls",
    )
    judge.add_argument(
        "--adaptive",
        action="store_true",
        help="arena: ask only what the ranking takes, and say how sure it is",
    )
    judge.add_argument(
        "--target",
        metavar="TEXT",
        help="when that is enough: at most SWAPS pairs more than GAP Elo apart in the wrong order "
        "(gap=10,swaps=2,confidence=0.95)",
    )
    judge.add_argument(
        "--budget", type=int, metavar="K", help="or after K comparisons, those made included"
    )
    judge.add_argument(
        "--add", metavar="MODEL", help="arena: place one model on the board there is (K: 400)"
    )
    judge.add_argument("--seed", type=int, help="of what an adaptive Arena asks (0)")
    _limits(judge)

    probe = _command(commands, "probe", ask.probe, "does a judge find faults planted on purpose?")
    probe.add_argument("--seeds", default="sample", metavar="SET", help="human dialogues (sample)")
    probe.add_argument("--judge", required=True, metavar="JUDGE", help="as of judge")
    probe.add_argument("--judge-model", metavar="MODEL", help="as of judge")
    _samples_flag(probe)
    probe.add_argument("--limit", type=int, metavar="K", help="only the first K dialogues")
    probe.add_argument("--seed", type=int, default=0, help="of where the faults go (0)")
    _limits(probe)

    board = _command(commands, "leaderboard", show.leaderboard, "stage 3: tables, figures, a page")
    board.add_argument("--seeds", metavar="SET", help="the seed set")
    board.add_argument("--judge", metavar="JUDGE", help="whose verdicts (needed if there are two)")
    board.add_argument("--out", type=Path, metavar="DIR", help="where to (leaderboards/SET)")
    board.add_argument(
        "--pairwise-rates",
        type=Path,
        metavar="CSV",
        help="rank from a published table instead: model_a,model_b,win_rate,win_or_tie_rate",
    )
    board.add_argument(
        "--per-pair", type=int, metavar="N", help="comparisons a pair of that table (444)"
    )
    board.add_argument("--seed", type=int, default=0, help="of the Elo shuffles (0)")
    board.add_argument("--shuffles", type=int, default=1000, help="Elo shuffles a run (1000)")
    board.add_argument("--runs", type=int, default=10, help="Elo runs that are averaged (10)")

    simulate = _command(
        commands, "simulate", show.simulate, "what an adaptive Arena would cost and find"
    )
    simulate.add_argument(
        "--rates", type=Path, metavar="CSV", help="truth: a table as of leaderboard"
    )
    simulate.add_argument(
        "--per-pair", type=int, metavar="N", help="comparisons a pair of that table (444)"
    )
    simulate.add_argument("--seeds", metavar="SET", help="truth: the finished Arena of this set")
    simulate.add_argument("--judge", metavar="JUDGE", help="by whom (needed if there are two)")
    simulate.add_argument("--turns", type=int, metavar="N", help="at N (needed if there are two)")
    simulate.add_argument(
        "--gap", type=float, default=10.0, help="pairs more than so many Elo apart count (10)"
    )
    simulate.add_argument(
        "--swaps", type=int, default=2, help="of these, at most so many in the wrong order (2)"
    )
    simulate.add_argument("--confidence", type=float, default=0.95, help="this surely (0.95)")
    simulate.add_argument(
        "--budget",
        type=int,
        action="append",
        default=[],
        metavar="K",
        help="repeatable; each design with K comparisons, too",
    )
    simulate.add_argument(
        "--add",
        nargs="?",
        const="all",
        metavar="MODEL",
        help="instead, place this model, or each in turn, on the board of the others (K: 400)",
    )
    simulate.add_argument("--runs", type=int, default=200, help="of each design (200)")
    simulate.add_argument("--seed", type=int, default=0, help="of all runs (0)")

    page = _command(
        commands, "report", show.report, "write a set's page alone, of one or more judges"
    )
    _seeds_flag(page)
    page.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="JUDGE",
        help="repeatable; first shown (all)",
    )
    page.add_argument("--out", type=Path, metavar="DIR", help="where to (leaderboards/SET)")

    figure = _command(commands, "plot", show.plot, "write one figure, as svg or png")
    figure.add_argument("name", metavar="NAME", help="such as elo; a wrong name lists them all")
    _seeds_flag(figure)
    figure.add_argument("--judge", metavar="JUDGE", help="whose verdicts (needed if there are two)")
    figure.add_argument("--out", type=Path, required=True, metavar="FILE", help="FILE.svg or .png")

    view = _command(commands, "view", show.view, "serve the pages on 127.0.0.1, live during a run")
    _seeds_flag(view)
    view.add_argument("--port", type=int, default=0, help="0 takes a free one (0)")
    view.add_argument("--no-browser", action="store_true", help="only print the address")

    agree = _command(commands, "agree", show.agree, "judges against people and each other")
    agree.add_argument(
        "files", type=Path, nargs="*", metavar="FILE.csv", help="item,first,second,judge,verdict"
    )
    agree.add_argument("--seeds", metavar="SET", help="take stage files of this set too")
    agree.add_argument(
        "--protocol",
        metavar="PROTOCOL",
        help="of these, as its folder is called: arena-n16, gteval, …",
    )
    agree.add_argument(
        "--judge", action="append", default=[], metavar="JUDGE", help="repeatable (all)"
    )
    agree.add_argument(
        "--truth",
        metavar="PREFIX",
        help="names that begin so are people (human; gteval, unieval: who wrote what)",
    )
    agree.add_argument(
        "--out", type=Path, metavar="DIR", help="where to (leaderboards/SET/agreement-PROTOCOL)"
    )
    _bootstrap(agree)

    bench = _command(commands, "bench", ask.bench, "let a judge answer a benchmark of judges")
    bench.add_argument("benchmark", help="faireval, mateval or topicalchat")
    bench.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with upstream's files"
    )
    bench.add_argument("--judge", metavar="JUDGE", help="as of judge (none: show who has judged)")
    bench.add_argument("--judge-model", metavar="MODEL", help="as of judge")
    _samples_flag(bench)
    bench.add_argument("--control", action="store_true", help="as of judge")
    bench.add_argument(
        "--recorded", action="store_true", help="mateval: read upstream's recorded discussions"
    )
    bench.add_argument(
        "--out", type=Path, metavar="DIR", help="where to (leaderboards/bench-BENCHMARK)"
    )
    _bootstrap(bench)
    _limits(bench)

    ledger = commands.add_parser("ledger", help="the record of every model call")
    kinds = ledger.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _command(kinds, "stats", workspace.ledger_stats, "calls, tokens and money by model")
    export = _command(
        kinds, "export", workspace.ledger_export, "write all calls to a .jsonl(.gz) file"
    )
    export.add_argument("file", type=Path)
    import_ = _command(
        kinds, "import", workspace.ledger_import, "add the calls of an exported file"
    )
    import_.add_argument("file", type=Path)
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], what: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=what, description=what)
    parser.set_defaults(command=run)
    parser.add_argument("--dir", type=Path, default=Path(), help="the workspace (this folder)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _list_protocols(parser: argparse.ArgumentParser) -> None:
    """Let ``--help`` end with what can be asked; the catalogue is not imported before."""
    plain = parser.format_help

    def format_help() -> str:
        from botchat.protocols.catalogue import Catalogue

        listed = "; ".join(f"{one.name}: {one.question}" for one in Catalogue())
        parser.epilog = f"Protocols. {listed}; or one of your own (docs/criteria.md)."
        return plain()

    parser.format_help = format_help  # type: ignore[method-assign]


def _seeds_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", required=True, metavar="SET", help="the seed set")


def _samples_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--samples",
        type=int,
        default=1,
        metavar="K",
        help="ask a single judge K times a case; the majority decides (1)",
    )


def _limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plan", action="store_true", help="calls, tokens and money, before anything is sent"
    )
    parser.add_argument(
        "--batch", action="store_true", help="at half price, in minutes to hours: the Batch API"
    )
    parser.add_argument("--max-usd", type=float, help="stop cleanly (exit 3) at this cost")
    parser.add_argument("--max-calls", type=int, help="stop cleanly after so many calls")
    parser.add_argument("--max-tokens", type=int, help="stop cleanly after so many tokens")


def _bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--resamples", type=int, default=1000, help="of the bootstrap over items (1000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (0)")
