"""What every command does with its flags and its result."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botchat.errors import BotChatError, LimitReached

if TYPE_CHECKING:
    from botchat.judges.cascade import Escalations
    from botchat.pipeline.leaderboard import Published
    from botchat.pipeline.plan import Planned
    from botchat.pipeline.run import Meter
    from botchat.workspace.folder import Workspace

Row = dict[str, Any]


def workspace_of(arguments: argparse.Namespace) -> Workspace:
    """The workspace that ``--dir`` names."""
    from botchat.workspace.folder import Workspace

    return Workspace(arguments.dir)


def limits_of(arguments: argparse.Namespace) -> Any:
    """What the run may cost."""
    from botchat.pipeline.session import Limits

    return Limits(arguments.max_usd, arguments.max_calls, arguments.max_tokens)


@contextmanager
def progress(arguments: argparse.Namespace, *, by_steps: bool = False) -> Iterator[Meter]:
    """A meter for a long step, shown on stderr; see `botchat.cli.display.progress`.

    A run that a limit stops still says with ``--json`` what it took; its rows are in the files.
    """
    from botchat.cli import display

    with display.progress(by_steps=by_steps) as meter:
        try:
            yield meter
        except LimitReached as limit:
            if arguments.json:
                display.print_json({**spent(meter), "stopped": str(limit)})
            raise


def spent(meter: Meter) -> Row:
    """What a run took, for ``--json``."""
    return {
        "calls": meter.calls,
        "replayed": meter.replayed,
        "tokens": meter.tokens,
        "cost_usd": None if meter.unpriced else meter.cost_usd,
    }


def counts(by_kind: dict[str, int]) -> str:
    """Counts in words."""
    return ", ".join(f"{n} {what}" for what, n in by_kind.items()) or "-"


def escalated(account: Escalations) -> str:
    """What a cascade did, in words."""
    parts = [f"{account.accepted} of {account.n} verdicts are the cheap judge's"]
    parts += [f"{n} went on ({cause})" for cause, n in account.causes.items()]
    if account.checked:
        parts.append(f"of {account.checked} checked the strong judge agreed on {account.agreed}")
    return "; ".join(parts)


def say_plan(arguments: argparse.Namespace, planned: Sequence[Planned]) -> None:
    """One row a model and level; a total of money where every price is known."""
    from botchat.pipeline.plan import LEVELS

    rows = [
        {
            "model": one.model,
            "level": level,
            "calls": one.calls[n],
            "prompt_tokens": one.prompt_tokens[n],
            "completion_tokens": one.completion_tokens[n],
            "cost_usd": one.cost_usd[n],
        }
        for one in planned
        for n, level in enumerate(LEVELS)
    ]
    shown = [row | {"cost_usd": _money(row["cost_usd"])} for row in rows]
    say(arguments, {"rows": rows}, shown)


def _money(usd: Any) -> str:
    return "unknown price" if usd is None else f"${usd:,.4f}"


def unanswered(n: int, what: str, meter: Meter) -> None:
    """End with an error where an endpoint left something unanswered, with the commonest reason."""
    if n:
        why = "".join(f" ({n}x {reason})" for reason, n in meter.failures.most_common(1))
        raise BotChatError(
            f"{n} {what} are missing because the endpoint gave no usable reply{why}; run the same "
            "command again to try these"
        )


def say(
    arguments: argparse.Namespace, whole: Row, rows: Sequence[Row], meter: Meter | None = None
) -> None:
    """Print the result: one JSON object, or a table for people."""
    from botchat.cli.display import print_json, print_table, spent_line

    if arguments.json:
        print_json(whole)
        return
    print_table(rows)
    if meter is not None and (line := spent_line(meter)):
        print(line)


def show_board(arguments: argparse.Namespace, board: Published) -> None:
    """Print a leaderboard."""
    from botchat.cli.display import print_json, print_table

    if arguments.json:
        print_json(board.whole)
        return
    print_table(board.rows)
    for line in board.lines:
        print(line)
