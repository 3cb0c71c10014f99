"""`botchat init` and `botchat models`: a `botchat.toml` to begin with, all that can be named.

A new provider is a table of `workspace/providers.toml`, and the same lines in docs/providers.md.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import resources
from pathlib import Path

from botchat.errors import BotChatError, ConfigError, did_you_mean
from botchat.interfaces import Decoding, Message, Row, changes
from botchat.models.bots import BASELINES
from botchat.models.endpoint import identity
from botchat.parallel import together
from botchat.pipeline.run.session import RULES, Session, in_session
from botchat.pipeline.run.work import Stops
from botchat.records import HUMAN
from botchat.requests import Beginning, ImportingSeeds, Naming
from botchat.requests.results import Told
from botchat.workspace import config
from botchat.workspace.config import ModelName, ModelSettings
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.panels import PRESETS, PanelSettings
from botchat.workspace.secrets import public_url
from botchat.workspace.usage import CHECK

_ENTRY = re.compile(r"^\[([a-z-]+)\.([a-z-]+)\]\n((?:(?!\[).*\n)*)", re.MULTILINE)
"""A table ``[PROVIDER.NAME]`` of ``providers.toml``, and its lines."""

_WHOLE = """\
# BotChat's settings: every key is optional, `botchat models` lists what can be named, and
# docs/settings.md has every key there is. Keys of accounts belong into the environment, never
# into this file.

{entry}# What `botchat run` does; its flags come before this.
[run]
{about_set}seeds = "{seeds}"
# Contestants; the people of the set are judged beside them.
models = {models}
{about_judge}judge = "{judge}"
# Only the first 20 seeds; take the line out for all of them.
limit = 20
# USD: nothing is sent where the plan is over it, and a run stops there. It needs prices.
{unpriced}max_usd = 5.0
"""


def templates() -> dict[str, tuple[str, str]]:
    """Provider -> (name of the entry, its lines, comments included)."""
    text = resources.files("botchat.workspace").joinpath("providers.toml").read_text("utf-8")
    return {one[1]: (one[2], one[3].strip()) for one in _ENTRY.finditer(text)}


_SAMPLE = """\
# `sample` comes with BotChat: 40 dialogues written for a demo, not by people; it is for a first
# look. Real ones: botchat seeds import mutual --name mutual-test, or of a file or folder of yours.
"""

_REAL = """\
# A set of dialogues between people. MuTual's: botchat seeds import mutual --name mutual-test (of a
# copy that you have: its folder in place of mutual). For a first look: botchat run --seeds sample
"""

_OWN_JUDGE = """\
# CARE: this judge is a contestant, and so judges itself. Better name a model that is none, with a
# [models] entry of its own. `rules` is offline.
"""

MUTUAL = "mutual-test"
"""What MuTual's set is called."""


def begin(request: Beginning, workspace: Workspace) -> Told:
    """Write ``botchat.toml``, for bots and the rules judge where no provider is named.

    Raises `ConfigError`: an unknown provider, or a file that is there already, which stays; as
    `import_seeds`.
    """
    providers, data, known = request.providers, request.data, templates()
    for provider in providers:
        if provider not in known:
            raise ConfigError(
                f"unknown provider {provider!r}{did_you_mean(provider, known)}; "
                f"providers: {', '.join(known)}"
            )
    path = workspace.root / "botchat.toml"
    seeds = MUTUAL if providers else SAMPLE
    if data is not None and not path.exists():
        seeds = (
            MUTUAL
            if data == "mutual"
            else re.sub(r"[^A-Za-z0-9]+", "-", Path(data).stem).strip("-")[:64]
        )
        ImportingSeeds(data, seeds).run(workspace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(settings_text(providers, seeds))
    except FileExistsError:
        raise ConfigError(f"{path} is there already and stays as it is; edit it") from None
    except OSError as error:
        raise BotChatError(f"cannot write {path}: {error.strerror}") from None
    said = [f"wrote {path}"]
    if config.load(path).run.seeds not in workspace.seed_sets():
        said += [
            f"real dialogues: botchat seeds import mutual --name {MUTUAL} (or name a copy)",
            "first look: botchat run --seeds sample (written for a demo, not by people)",
        ]
    then = "next: look through it, then: botchat run --plan (the price), botchat run"
    return Told({"path": path}, [*said, then])


def settings_text(named: Sequence[str], seeds: str) -> str:
    """The text of a ``botchat.toml`` for some providers, or for nobody in particular."""
    known = [templates()[provider] for provider in dict.fromkeys(named)]
    names = [name for name, _ in known]
    entry = "".join(f"[models.{name}]\n{lines}\n\n" for name, lines in known)
    if entry:
        entry = f"# Models: the name in [models.NAME] is yours, for flags and the board.\n{entry}"
    priced = all(re.search(r"^price_input", lines, re.MULTILINE) for _, lines in known)
    return _WHOLE.format(
        entry=entry,
        about_set=_SAMPLE if seeds == SAMPLE else _REAL if seeds == MUTUAL else "",
        seeds=seeds,
        models=json.dumps([*names, "bot:parrot"] if names else ["bot:parrot", "bot:retrieval"]),
        about_judge=_OWN_JUDGE if names else "# `rules` is offline; any model can judge.\n",
        judge=names[0] if names else RULES,
        unpriced="" if priced else "# ",
    )


def models(request: Naming, workspace: Workspace) -> Told:
    """Everything that can be named, or whether each configured model answers."""
    if request.check:
        return checked(workspace)
    return Told({"rows": model_rows(workspace)})


def checked(workspace: Workspace) -> Told:
    """Ask each configured model for one word, at most 16 tokens, which the ledger never answers.

    ``failure`` names those that gave no answer. Raises `ConfigError`: none is configured.
    """
    if not (names := sorted(workspace.config.models)):
        raise ConfigError(
            f"{workspace.root / 'botchat.toml'} has no [models.NAME] entry, so nothing was "
            "checked; botchat init PROVIDER writes one"
        )

    async def ask(session: Session, _stops: Stops) -> list[Row]:
        answers = await together(_check(session, name) for name in names)
        return [{"name": name, **said} for name, said in zip(names, answers, strict=True)]

    rows = in_session(workspace, (), None, None, ask)
    for row in rows:
        row["what"] = described(config.model_name(row["name"], workspace.config))
    failure = None
    if failed := [row["name"] for row in rows if not row["ok"]]:
        failure = BotChatError(f"no answer from {', '.join(failed)}: see why above")
    shown = [[{k: row[k] for k in row if k != "ok"} for row in rows]]
    return Told({"rows": rows}, shown, failure=failure)


def model_rows(workspace: Workspace) -> list[Row]:
    """Configured models with window, prices, limits and quirks; bots; forms of names; judges."""
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
    panels = (*sorted(workspace.config.panels.items()), *PRESETS.items())
    others = [
        *((f"bot:{name}", "bot", what) for name, what in BASELINES.items()),
        ("openai:MODEL", "form", "a model of OpenAI, key in OPENAI_API_KEY"),
        ("http://HOST:PORT/v1#MODEL", "form", "a model of any OpenAI-compatible server"),
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


def _adapted(workspace: Workspace, models: Mapping[str, ModelSettings]) -> dict[str, str]:
    """How each model's requests differ from what is asked for, since its endpoint refuses it."""
    with closing(workspace.ledger(readonly=True)) as ledger:
        return {
            name: ", ".join(changes(ledger.quirks(identity(of))))
            for name, of in models.items()
            if config.model_name(name, workspace.config).kind == "endpoint"
        }


def described(named: ModelName) -> str:
    """What an entry of ``[models]`` stands for, in words."""
    assert named.settings is not None, "an entry has settings"
    return f"{named.settings.model} at {public_url(named.settings.base_url)}"


def _of_panel(panel: PanelSettings) -> str:
    n = len(panel.members)
    return f"{panel.strategy}, {n} judge{'s' if n > 1 else ''}"


async def _check(session: Session, name: str) -> Row:
    """What a model says to one question; ``ok``: it gave an answer, if only a refusal."""
    ask = [Message(role="user", content="Say hello in one word.")]
    ok = False
    try:
        # A sample number of its own: a check that the ledger answers checks nothing.
        once = Decoding(None, 16, sample=secrets.randbelow(2**31))
        model = session.speaker(name, CHECK).model
        reply = await model.chat(ask, once)
        ok, why = reply.answered, f": {reply.detail}" if reply.detail else ""
        said = f"{reply.outcome} in {reply.latency_s:.1f} s{why}"
    except BotChatError as error:
        said = str(error)
    return {"ok": ok, "answer": said}
