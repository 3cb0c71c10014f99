"""What can be named as a model or a judge in a workspace, and whether it answers."""

from __future__ import annotations

import secrets
from typing import Any

from botchat.errors import BotChatError
from botchat.interfaces import Message, Sampling
from botchat.models.bots import BASELINES
from botchat.pipeline.run import Meter, run_now
from botchat.pipeline.session import RULES, Limits, Session, open_session
from botchat.records import HUMAN
from botchat.workspace.config import public_url
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import PRESETS

Row = dict[str, Any]


def model_rows(workspace: Workspace, *, check: bool) -> list[Row]:
    """Configured models with window, prices and limits; bots; forms of names; judges.

    With ``check`` each configured model is asked for one word, at most 16 tokens.
    """
    rows = [
        _row(
            name,
            "endpoint",
            f"{settings.model} at {public_url(settings.base_url)}",
            context_window=settings.context_window,
            price_input=settings.price_input,
            price_output=settings.price_output,
            max_concurrency=settings.max_concurrency,
        )
        for name, settings in sorted(workspace.config.models.items())
    ]
    if check:
        rows = run_now(_checked(workspace, rows))
    rows += [_row(f"bot:{name}", "bot", what) for name, what in BASELINES.items()]
    rows += [
        _row("openai:MODEL", "form", "a model of OpenAI, key in OPENAI_API_KEY"),
        _row("http://HOST:PORT/v1#MODEL", "form", "a model of any OpenAI-compatible server"),
        _row("hf:ORG/NAME, hf:FOLDER", "form", "local weights, with the extra botchat[hf]"),
        _row(HUMAN, "human", "the set's own dialogues; a contestant, never generated"),
        _row(RULES, "judge", "offline judge: thresholds from the set's human dialogues"),
    ]
    rows += [
        _row(name, "judge", f"single judge, asks {entry.model}")
        for name, entry in sorted(workspace.config.judges.items())
    ]
    rows += [
        _row(name, "panel", f"{panel.strategy}, {len(panel.members) or 2} judges")
        for name, panel in (*sorted(workspace.config.panels.items()), *PRESETS.items())
    ]
    return rows


def _row(name: str, kind: str, what: str, **facts: Any) -> Row:
    empty = dict.fromkeys(("context_window", "price_input", "price_output", "max_concurrency"))
    return {"name": name, "kind": kind, "what": what, **empty, **facts}


async def _checked(workspace: Workspace, rows: list[Row]) -> list[Row]:
    with workspace.locked():
        async with open_session(workspace, (), Limits(), Meter()) as session:
            return [row | {"check": await _check(session, row["name"])} for row in rows]


async def _check(session: Session, name: str) -> str:
    ask = [Message(role="user", content="Say hello in one word.")]
    try:
        # A sample number of its own: a check that the ledger answers checks nothing.
        once = Sampling(None, 16, sample=secrets.randbelow(2**31))
        reply = await session.speaker(name).model.chat(ask, once)
    except BotChatError as error:
        return str(error)
    said = f": {reply.detail}" if reply.detail else ""
    return f"{reply.outcome} in {reply.latency_s:.1f} s{said}"
