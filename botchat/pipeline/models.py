"""`botchat init` and `botchat models`: a first `botchat.toml`, and everything that can be named.

A new provider is a table of `workspace/providers.toml`, and the same lines in docs/providers.md.
"""

from __future__ import annotations

import json
import re
import secrets
import tomllib
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botchat.errors import BotChatError, ConfigError, UsageError, did_you_mean, listed
from botchat.frames import (
    Tables,
    fill,
    fill_lines,
    fill_text,
    json_get,
    package_text,
    package_toml,
    read_json,
)
from botchat.interfaces import Cells
from botchat.languages import ENGLISH
from botchat.models.bots import BASELINES
from botchat.models.reader import ServedModel, read_error, read_models, reasoning_tokens
from botchat.models.watch import is_same_model
from botchat.parallel import EarlyStop, run_sync, together
from botchat.pipeline.resolved import ResolvedRun, SeedSet
from botchat.pipeline.seeds import import_seeds
from botchat.pipeline.session import Session, first_set, run_session
from botchat.pipeline.spending import Meter
from botchat.protocols.generation import PROMPT, chat_messages, find_mark
from botchat.records import RULES, Texts
from botchat.results import Result
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.jsonl import write_atomic
from botchat.workspace.ledger import identity_key
from botchat.workspace.model_settings import UTTERANCE_TOKENS, ModelSettings, identity
from botchat.workspace.panels import PRESETS
from botchat.workspace.secrets import public, public_url
from botchat.workspace.usage import CHECK

if TYPE_CHECKING:
    from botchat.models.connection import HttpResponse

# A table ``[PROVIDER.NAME]`` of ``providers.toml``, and its lines
_ENTRY = re.compile(r"^\[([a-z-]+)\.([a-z-]+)\]\n((?:(?!\[).*\n)*)", re.MULTILINE)
# Line of an entry whose server says what it serves
_UNNAMED = 'model = "MODEL"'
# Rows of `botchat models` that no setting makes
_LISTED = package_toml("workspace/listed.toml", Tables)["listed"]

# ChatSEED that a check of a model asks it to continue
_CHECK_SEED = ("Hi! Did you sleep well?", "Not really, the neighbours had a party.")
# Longest reply of a check whose model sets none
_CHECK_TOKENS = 64
_LIST_TIMEOUT_S = 20.0
# Models from which one judges the others
_LEAST_RANKED = 3
# Models of a server that a first ``[run]`` names
_MOST_RUN = 8


def templates() -> dict[str, dict[str, str]]:
    """Return provider -> name of an entry -> its lines, comments included; a judge comes last."""
    providers: dict[str, dict[str, str]] = {}
    for provider, name, lines in _ENTRY.findall(package_text("workspace/providers.toml")):
        providers.setdefault(provider, {})[name] = lines.strip()
    return providers


def init(workspace: Workspace, providers: Texts, data: str | None) -> Result:
    """Write ``botchat.toml``, for bots and the rules judge where no provider is named."""
    known = templates()
    for name in providers:
        if name not in known and not _is_url(name):
            raise UsageError(
                f"unknown provider {name!r}{did_you_mean(name, known)}; name a server's URL, or "
                f"one of: {listed(known)} (docs/providers.md)"
            )
    path = workspace.root / "botchat.toml"
    if path.exists():
        raise ConfigError(f"{path} already exists and was not changed; edit it")
    seeds = SAMPLE
    if providers:
        seeds = ""
    if data is not None:
        seeds = import_seeds(workspace, data).data["set"]
    text = settings_text(providers, seeds)
    write_atomic(path, text.encode())
    lines = fill_lines("pipeline/init.txt", file=path, is_unnamed=_UNNAMED in text, seeds=seeds)
    return Result({"path": path}, lines)


def settings_text(providers: Texts, seeds: str) -> str:
    """Return the text of a ``botchat.toml``; a server at a URL, or here, is asked what it serves.

    ``seeds``: name of the set; empty for the only one. Raises `ConfigError` if there is no server
    at a URL that was named.
    """
    known = templates()
    models: dict[str, str] = {}
    for provider in providers:
        if _is_url(provider):
            models |= _served_entries(provider)
        else:
            for name, lines in known[provider].items():
                models[name] = _with_served_model(lines)
    prices = {tomllib.loads(lines).get("price_input") for lines in models.values()}
    contestants = list(models)[:_MOST_RUN]
    judge = RULES
    if len(models) >= _LEAST_RANKED:
        judge = contestants.pop()
    contestants.append("bot:parrot")
    if not models:
        contestants.append("bot:retrieval")
    return fill(
        "workspace/first_settings.txt",
        models=models,
        prices=prices,
        contestants=contestants,
        judge=judge,
        seeds=seeds,
    )


def _is_url(provider: str) -> bool:
    return provider.startswith(("http://", "https://"))


def _served(url: str) -> list[ServedModel]:
    """Return the models that a server lists. Raises `ConfigError` if it lists none."""
    response = run_sync(partial(_ask_for_models, url))
    if response.status < 300:
        models = [model for model in read_models(response.content) if _is_usable(model, url)]
        if models:
            return models
    parsed = read_json(response.content)
    raise ConfigError(
        fill_text(
            "pipeline/no_models.txt",
            url=public(url),
            response=response,
            parsed=parsed,
            error=json_get(parsed, "error"),
            target=public_url(response.headers.get("location", "")),
            fault=read_error(response.content),
        )
    )


def _is_usable(model: ServedModel, url: str) -> bool:
    """Return whether an entry can name a model; some names stand for something else."""
    try:
        ModelSettings(model=model.id, base_url=url)
    except ValueError:
        return False
    return True


async def _ask_for_models(url: str) -> HttpResponse:
    """Ask a server for its models as a run would: with its key, and nowhere else."""
    from botchat.models.connection import Failure, server_of  # imports aiohttp

    server = server_of(ModelSettings(model="m", base_url=url))
    async with aclosing(server):
        response = await server.send("/models", None, _LIST_TIMEOUT_S)
        if isinstance(response, Failure):
            raise ConfigError(f"{public(url)}: {response.detail}")
        text = server.redactor.clean(response.content.decode("utf-8", "replace"))
        return response._replace(content=text.encode())


def _served_entries(url: str) -> dict[str, str]:
    """Return an entry for each model of a server; raises `ConfigError` if it serves none."""
    served = _served(url)
    tails = [_entry_name(model.id.rpartition("/")[2]) for model in served]
    entries: dict[str, str] = {}
    for model, name in zip(served, tails, strict=True):
        if tails.count(name) > 1:
            name = _entry_name(model.id)
        first = name
        while name in entries:
            name = f"{first}-{len(entries) + 1}"
        entries[name] = fill_text(
            "workspace/served_entry.txt",
            model=model,
            url=url,
            is_nearby=is_nearby(url),
            max_tokens=UTTERANCE_TOKENS,
        )
    return entries


def _entry_name(model: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", model).strip("-") or "model"


def is_nearby(url: str) -> bool:
    """Return whether a URL's host is this machine, or one of its own network."""
    host = urlsplit(url).hostname or ""
    try:
        return not ip_address(host).is_global
    except ValueError:  # a name
        return "." not in host or host.endswith(
            (".localhost", ".local", ".lan", ".internal", ".home.arpa")
        )


def _with_served_model(lines: str) -> str:
    """Fill in the model and the context window that a server on this machine tells."""
    url = re.search(r'^base_url = "(http://localhost[^"]*)"', lines, re.MULTILINE)
    if url is None or _UNNAMED not in lines:
        return lines
    try:
        served = _served(url[1])[0]
    except ConfigError:  # it does not run yet
        return lines
    lines = lines.replace(_UNNAMED, f"model = {json.dumps(served.id)}")
    line = "# context_window = 4096"
    if served.window:
        line = f"context_window = {served.window}"
    return re.sub(r"# context_window = \d+", line, lines)


def models(workspace: Workspace, *, check: bool) -> Result:
    """List everything that can be named, or ask each configured model for an utterance.

    ``failure`` names the models that gave no answer.
    """
    if not check:
        return _listed(_rows(workspace), "kind")
    entries = workspace.config.models
    if not entries:
        raise ConfigError(
            "botchat.toml has no [models.NAME] entry; botchat init PROVIDER writes one"
        )

    async def ask(session: Session, _stops: EarlyStop) -> list[Cells]:
        return await together(_check(session, name, entries[name]) for name in sorted(entries))

    rows = run_session(ResolvedRun(workspace, SeedSet("", ())), Meter(), ask)
    result = _listed(rows, "answer")
    failed = [str(row["name"]) for row in rows if not row["ok"]]
    if not failed:
        return result
    error = BotChatError(f"no answer from {', '.join(failed)}: see why above")
    return replace(result, failure=error)


def _listed(rows: list[Cells], key: str) -> Result:
    """Return rows that are printed with one of their facts."""
    printed = [{"name": row["name"], key: row[key], "what": row["what"]} for row in rows]
    return Result({"rows": rows}, [printed])


async def _check(session: Session, name: str, settings: ModelSettings) -> Cells:
    """Ask a model for an utterance as a run does; ``ok`` if it gave any answer, even a refusal."""
    row: Cells = {"name": name, "ok": False, "answer": "", "what": _described(settings)}
    try:
        speaker = session.speaker(name, CHECK)
        limit = first_set(settings.max_tokens, _CHECK_TOKENS)
        # A sample number of its own: the ledger has no answer to it.
        decoding = replace(speaker.decoding, max_tokens=limit, sample=secrets.randbelow(2**31))
        messages = chat_messages(speaker.system or ENGLISH.text(PROMPT), _CHECK_SEED)
        reply = await speaker.model.chat(messages, decoding)
    except BotChatError as error:
        return row | {"answer": str(error)}
    answer = fill_text(
        "pipeline/check.txt",
        reply=reply,
        n_reasoning=reasoning_tokens(reply.raw),
        is_other=reply.model and not is_same_model(settings.model, reply.model),
        mark=find_mark(reply.text),
        window=speaker.model.context_window,
    )
    return row | {"ok": reply.answered, "answer": answer}


def _rows(workspace: Workspace) -> list[Cells]:
    """Return models with window, prices and quirks, then bots, forms of names, and judges."""
    own = workspace.config
    rows = []
    with closing(workspace.ledger(readonly=True)) as ledger:
        for name, settings in sorted(own.models.items()):
            changes = ledger.quirks(identity_key(identity(settings))).changes
            more = {
                "context_window": settings.context_window,
                "price_input": settings.price_input,
                "price_output": settings.price_output,
                "max_concurrency": settings.max_concurrency,
                "adapted": ", ".join(changes) or None,
            }
            rows.append(_row(name, "endpoint", _described(settings)) | more)
    rows += [_row(f"bot:{name}", "bot", text) for name, text in BASELINES.items()]
    rows += _LISTED
    for name, judge in sorted(own.judges.items()):
        rows.append(_row(name, "judge", f"single judge, asks {judge.model}"))
    for name, panel in [*sorted(own.panels.items()), *PRESETS.items()]:
        rows.append(_row(name, "panel", f"{panel.strategy}, judges: {len(panel.members)}"))
    return rows


def _row(name: str, kind: str, what: str) -> Cells:
    return {"name": name, "kind": kind, "what": what}


def _described(settings: ModelSettings) -> str:
    return f"{settings.model} at {public_url(settings.base_url)}"
