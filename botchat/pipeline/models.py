"""`botchat init` and `botchat models`: a first `botchat.toml`, and everything that can be named.

A new provider is a table of `workspace/providers.toml`, and the same lines in docs/providers.md.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib import resources
from pathlib import Path
from urllib.request import urlopen

from msgspec import UNSET

from botchat.errors import BotChatError, ConfigError, did_you_mean
from botchat.interfaces import Row, describe_quirks
from botchat.languages import ENGLISH
from botchat.metrics.reply_faults import find_mark
from botchat.models.bots import BASELINES
from botchat.models.endpoint import identity
from botchat.models.self_chat import PROMPT, chat_messages
from botchat.parallel import together
from botchat.pipeline.run.session import RULES, Session, in_session
from botchat.pipeline.run.work import Stops
from botchat.records import HUMAN
from botchat.requests import Beginning, ImportingSeeds, Naming
from botchat.requests.results import Told
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.jsonl import write_atomic
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.panels import PRESETS
from botchat.workspace.secrets import public_url
from botchat.workspace.usage import CHECK

_ENTRY = re.compile(r"^\[([a-z-]+)\.([a-z-]+)\]\n((?:(?!\[).*\n)*)", re.MULTILINE)
"""A table ``[PROVIDER.NAME]`` of ``providers.toml``, and its lines."""

_UNNAMED = 'model = "MODEL"'
"""Line of an entry whose server says what it serves."""

_FILE = """\
# BotChat's settings. Every key is optional; docs/settings.md has them all, and `botchat models`
# lists what can be named. Keys of accounts belong into the environment, never into this file.

{entries}# Defaults of `botchat run`; flags come first.
[run]
{about_seeds}seeds = "{seeds}"
# Contestants; the humans of the set are judged too.
models = {models}
{about_judge}judge = "{judge}"
# Only the first 20 seeds; delete the line for all of them.
limit = 20
{budget}"""

_NAMES = "# NAME in [models.NAME] is yours: it stands in flags and on the board.\n"

_BUDGET = """\
# USD: nothing is sent where the plan exceeds it, and a run stops there. It needs prices.
{comment}max_usd = 5.0
"""

_SAMPLE = """\
# Written for a demo, not by people. Real dialogues: botchat seeds import mutual --name mutual-test
"""

_REAL = """\
# Human dialogues: botchat seeds import mutual --name mutual-test. First look: run --seeds sample
"""

_OWN_JUDGE = """\
# CARE: this judge is a contestant, so it judges itself. Better name another model, or `rules`.
"""

_OFFLINE_JUDGE = """\
# `rules` is offline and only for a first look; name a stronger model than the contestants.
"""

CHECK_SEED = ("Hi! Did you sleep well?", "Not really, the neighbours had a party.")
"""ChatSEED that a check of a model asks it to continue."""

CHECK_TOKENS = 64
"""Longest reply of a check whose model sets none."""

MUTUAL = "mutual-test"
"""Name of MuTual's seed set."""


def templates() -> dict[str, tuple[str, str]]:
    """Return provider -> (name of the entry, its lines, comments included)."""
    text = resources.files("botchat.workspace").joinpath("providers.toml").read_text("utf-8")
    return {match[1]: (match[2], match[3].strip()) for match in _ENTRY.finditer(text)}


def init(request: Beginning, workspace: Workspace) -> Told:
    """Write ``botchat.toml``, for bots and the rules judge where no provider is named.

    Raises ConfigError for an unknown provider or a file that exists already; as `import_seeds`.
    """
    providers, data, known = request.providers, request.data, templates()
    if unknown := [name for name in providers if name not in known]:
        hint = did_you_mean(unknown[0], known)
        raise ConfigError(f"unknown provider {unknown[0]!r}{hint}; providers: {', '.join(known)}")
    path = workspace.root / "botchat.toml"
    if path.exists():
        raise ConfigError(f"{path} already exists and was not changed; edit it")
    seeds = MUTUAL if providers or data == "mutual" else SAMPLE
    if data is not None:
        if data != "mutual":
            seeds = re.sub(r"[^A-Za-z0-9]+", "-", Path(data).stem).strip("-")[:64]
        ImportingSeeds(data, seeds).run(workspace)
    text = settings_text(providers, seeds)
    write_atomic(path, text.encode())
    lines = [f"wrote {path}"]
    if _UNNAMED in text:
        lines.append('name the model: replace "MODEL" (the server does not tell one)')
    if seeds not in workspace.seed_sets():
        lines += [
            f"real dialogues: botchat seeds import mutual --name {MUTUAL} (or name a copy)",
            "first look: botchat run --seeds sample (written for a demo, not by people)",
        ]
    lines.append("next: look through it, then: botchat run --plan (the price), botchat run")
    return Told({"path": path}, lines)


def settings_text(providers: Sequence[str], seeds: str) -> str:
    """Return the text of a ``botchat.toml``; a local server is asked for its model and window."""
    known = templates()
    models = {known[name][0]: _with_served_model(known[name][1]) for name in providers}
    entries = "".join(f"[models.{name}]\n{lines}\n\n" for name, lines in models.items())
    matches = [re.search(r"(?m)^price_input = ([\d.]+)", text) for text in models.values()]
    prices = [price and float(price[1]) for price in matches]
    is_free = not any(price != 0 for price in prices)
    return _FILE.format(
        entries=f"{_NAMES}{entries}" if entries else "",
        about_seeds={SAMPLE: _SAMPLE, MUTUAL: _REAL}.get(seeds, ""),
        seeds=seeds,
        models=json.dumps([*models, "bot:parrot"] if models else ["bot:parrot", "bot:retrieval"]),
        about_judge=_OFFLINE_JUDGE if is_free else _OWN_JUDGE,
        judge=RULES if is_free else next(iter(models)),
        budget="" if is_free else _BUDGET.format(comment="# " if None in prices else ""),
    )


def _with_served_model(lines: str) -> str:
    """Fill in the model and the context window that a local server tells."""
    url = re.search(r'^base_url = "(http://localhost[^"]*)"', lines, re.MULTILINE)
    if url is None or _UNNAMED not in lines:
        return lines
    try:
        with urlopen(f"{url[1]}/models", timeout=2) as response:
            served = json.loads(response.read(2**20))["data"][0]
        lines = lines.replace(_UNNAMED, f"model = {json.dumps(str(served['id']))}")
        window = served.get("max_model_len") or (served.get("meta") or {}).get("n_ctx")
        line = f"context_window = {int(window)}" if window else "# context_window = 4096"
        return re.sub(r"# context_window = \d+", line, lines)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return lines


def models(request: Naming, workspace: Workspace) -> Told:
    """List everything that can be named, or call each configured model."""
    return check_models(workspace) if request.check else Told({"rows": model_rows(workspace)})


def check_models(workspace: Workspace) -> Told:
    """Ask each configured model for an utterance; the ledger never answers.

    ``failure`` names those that gave no answer. Raises ConfigError if none is configured.
    """
    entries = workspace.config.models
    if not entries:
        path = workspace.root / "botchat.toml"
        raise ConfigError(f"{path} has no [models.NAME] entry; botchat init PROVIDER writes one")

    async def ask(session: Session, _stops: Stops) -> list[Row]:
        return list(await together(_check(session, *item) for item in sorted(entries.items())))

    rows = in_session(workspace, (), None, None, ask)
    failed = [row["name"] for row in rows if not row["ok"]]
    failure = BotChatError(f"no answer from {', '.join(failed)}: see why above") if failed else None
    for row in rows:
        row["what"] = _described(entries[row["name"]])
    printed = [{name: row[name] for name in ("name", "answer", "what")} for row in rows]
    return Told({"rows": rows}, [printed], failure=failure)


async def _check(session: Session, name: str, settings: ModelSettings) -> Row:
    """Ask a model for an utterance as a run does; ``ok``: it gave an answer, even a refusal."""
    facts, ok = [], False
    try:
        speaker = session.speaker(name, CHECK)
        limit = settings.max_tokens if settings.max_tokens is not UNSET else CHECK_TOKENS
        # A sample number of its own: the ledger has no answer to it.
        decoding = replace(speaker.decoding, max_tokens=limit, sample=secrets.randbelow(2**31))
        system = speaker.system or ENGLISH.text(PROMPT)
        reply = await speaker.model.chat(chat_messages(system, CHECK_SEED), decoding)
        ok, window = reply.answered, speaker.model.context_window
        text = " ".join(reply.text.split())[:60]
        facts = [f"{text!r} in {reply.latency_s:.1f} s" if reply.usable else reply.outcome]
        facts += [reply.detail] if reply.detail and not reply.usable else []
        facts += [f"window {window}"] if window else []
        if mark := find_mark(reply.text):
            facts.append(f"template: it says {mark!r}, check the server's chat template")
    except BotChatError as error:
        facts = [str(error)]
    return {"name": name, "ok": ok, "answer": "; ".join(facts)}


def model_rows(workspace: Workspace) -> list[Row]:
    """Return configured models with window, prices and quirks; bots; forms of names; judges."""
    facts = ("context_window", "price_input", "price_output", "max_concurrency")
    own = workspace.config
    with closing(workspace.ledger(readonly=True)) as ledger:
        rows: list[Row] = [
            {"name": name, "kind": "endpoint", "what": _described(settings)}
            | {fact: getattr(settings, fact) for fact in facts}
            | {"adapted": ", ".join(describe_quirks(ledger.quirks(identity(settings)))) or None}
            for name, settings in sorted(own.models.items())
        ]
    judges = [(name, "judge", f"single judge, asks {j.model}") for name, j in own.judges.items()]
    panels = [
        (name, "panel", f"{p.strategy}, {(n := len(p.members))} judge{'s' * (n > 1)}")
        for name, p in (*sorted(own.panels.items()), *PRESETS.items())
    ]
    others = [
        *((f"bot:{name}", "bot", text) for name, text in BASELINES.items()),
        ("openai:MODEL", "form", "a model of OpenAI, key in OPENAI_API_KEY"),
        ("http://HOST:PORT/v1#MODEL", "form", "a model of any OpenAI-compatible server"),
        (HUMAN, "human", "the set's own dialogues; a contestant, never generated"),
        (RULES, "judge", "offline judge: thresholds from the set's human dialogues"),
        *sorted(judges),
        *panels,
    ]
    columns = ("name", "kind", "what")
    empty = dict.fromkeys((*facts, "adapted"))
    return rows + [dict(zip(columns, other, strict=True)) | empty for other in others]


def _described(settings: ModelSettings) -> str:
    return f"{settings.model} at {public_url(settings.base_url)}"
