"""`botchat models`: everything that can be named, and what endpoints refuse of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import closing

from botchat.errors import BotChatError, ConfigError
from botchat.interfaces import Decoding, Message, Row, changes
from botchat.models.bots import BASELINES
from botchat.models.endpoint import identity
from botchat.pipeline.run.results import Told
from botchat.pipeline.run.session import RULES, Session, in_session
from botchat.pipeline.run.work import Stops
from botchat.records import HUMAN
from botchat.workspace import config
from botchat.workspace.config import ModelName, ModelSettings
from botchat.workspace.entries import weights
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.panels import PRESETS, PanelSettings
from botchat.workspace.secrets import public_url


def models(workspace: Workspace, *, check: bool, forget_quirks: str | None) -> Told:
    """Everything that can be named; with ``forget_quirks`` that model is asked as before instead.

    ``check``: each configured model is asked for one word, at most 16 tokens.
    """
    if forget_quirks is None:
        return Told({"rows": model_rows(workspace, check=check)})
    forgotten = _forget_quirks(workspace, forget_quirks)
    whole = {"model": forget_quirks, "forgotten": forgotten}
    said = ", ".join(forgotten) or "nothing: it was asked as it was asked for"
    return Told(whole, [[whole | {"forgotten": said}]])


def model_rows(workspace: Workspace, *, check: bool) -> list[Row]:
    """Configured models with window, prices, limits and quirks; bots; forms of names; judges.

    With ``check`` each configured model is asked for one word, at most 16 tokens.
    """
    facts = ("context_window", "price_input", "price_output", "max_concurrency", "adapted")
    known = _adapted(workspace, workspace.config.models)
    rows: list[Row] = [
        {
            "name": name,
            "kind": (named := config.model_name(name, workspace.config)).kind,
            "what": described(named),
            **{f: getattr(settings, f) if named.kind == "endpoint" else None for f in facts[:-1]},
            "adapted": known.get(name) or None,
        }
        for name, settings in sorted(workspace.config.models.items())
    ]
    if check:

        async def ask(session: Session, _stops: Stops) -> list[Row]:
            return [row | {"check": await _check(session, row["name"])} for row in rows]

        rows = in_session(workspace, (), None, None, ask)
    panels = (*sorted(workspace.config.panels.items()), *PRESETS.items())
    others = [
        *((f"bot:{name}", "bot", what) for name, what in BASELINES.items()),
        ("openai:MODEL", "form", "a model of OpenAI, key in OPENAI_API_KEY"),
        ("http://HOST:PORT/v1#MODEL", "form", "a model of any OpenAI-compatible server"),
        ("hf:ORG/NAME, hf:FOLDER", "form", "local weights, with the extra botchat-bench[hf]"),
        (HUMAN, "human", "the set's own dialogues; a contestant, never generated"),
        (RULES, "judge", "offline judge: thresholds from the set's human dialogues"),
        *(
            (name, "judge", f"single judge, asks {entry.model}")
            for name, entry in sorted(workspace.config.judges.items())
        ),
        *((name, "panel", _of_panel(panel)) for name, panel in panels),
    ]
    empty = dict.fromkeys(facts)
    return rows + [{"name": n, "kind": kind, "what": what, **empty} for n, kind, what in others]


def _forget_quirks(workspace: Workspace, name: str) -> list[str]:
    """Ask an endpoint's model as it was asked for again: what was changed until now.

    Raises `ConfigError`: the name is of no model of an endpoint.
    """
    named = config.model_name(name, workspace.config)
    if (settings := named.settings) is None or named.kind != "endpoint":
        raise ConfigError(f"--forget-quirks {name}: it is on no endpoint; nothing is left out")
    with workspace.locked(), closing(workspace.ledger()) as ledger:
        known = ledger.quirks(identity(settings))
        ledger.set_quirks(identity(settings), {})
    return changes(known)


def _adapted(workspace: Workspace, models: Mapping[str, ModelSettings]) -> dict[str, str]:
    """How each model's requests differ from what is asked for, since its endpoint refuses it."""
    if not workspace.ledger_path.exists():
        return {}
    with closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        return {
            name: ", ".join(changes(ledger.quirks(identity(of))))
            for name, of in models.items()
            if config.model_name(name, workspace.config).kind == "endpoint"
        }


def described(named: ModelName) -> str:
    """What an entry of ``[models]`` stands for, in words."""
    if named.settings is None or named.kind == "local":
        return f"local weights {weights(named.target)[0]}"
    return f"{named.settings.model} at {public_url(named.settings.base_url)}"


def _of_panel(panel: PanelSettings) -> str:
    n = len(panel.members) or 2  # a cascade's
    return f"{panel.strategy}, {n} judge{'s' if n > 1 else ''}"


async def _check(session: Session, name: str) -> str:
    ask = [Message(role="user", content="Say hello in one word.")]
    try:
        # A sample number of its own: a check that the ledger answers checks nothing.
        once = Decoding(None, 16, sample=secrets.randbelow(2**31))
        reply = await session.speaker(name).model.chat(ask, once)
    except BotChatError as error:
        return str(error)
    said = f": {reply.detail}" if reply.detail else ""
    return f"{reply.outcome} in {reply.latency_s:.1f} s{said}"
