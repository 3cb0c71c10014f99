"""``botchat.toml`` and names on the command line -> typed, frozen settings.

The defaults are the papers', each with its source; ``docs/settings.md`` shows a whole file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit, urlunsplit

import msgspec

from botchat.errors import ConfigError
from botchat.records import HUMAN, N_SEED
from botchat.workspace.criteria import CriterionSettings, is_taken, with_prompt
from botchat.workspace.panels import (
    KINDS,
    PRESETS,
    AgentSettings,
    PanelSettings,
    circle,
    with_texts,
)

OPENAI_URL = "https://api.openai.com/v1"

Layout = Literal["auto", "natural", "merge-leading", "placeholder-user"]
SystemRole = Literal["auto", "system", "system-in-user"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Price = Annotated[float, msgspec.Meta(ge=0)]
Rate = Annotated[float, msgspec.Meta(gt=0)]


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[models.NAME]`` entry: an OpenAI-compatible endpoint's model."""

    model: str
    base_url: str = OPENAI_URL
    api: str = "chat"
    """How requests look: a name in `botchat.models.endpoint.WIRE_FORMATS`."""
    stream: bool = False
    """Ask for the reply as a stream of events, for servers that answer in no other way."""
    identity: str | None = None
    """Who answers, in place of the address, in the ledger's keys."""
    api_key_env: str | None = None
    """Environment variable that holds the key; ``None``: see `api_key`."""
    api_key_file: str | None = None
    """File that holds nothing but the key, relative to ``botchat.toml``."""
    api_key_command: str | None = None
    """Command that prints the key; it is run again when the endpoint refuses the key."""
    key_header: str | None = None
    """Header that holds nothing but the key; ``None``: that of the API."""
    headers: dict[str, str] = {}
    """Sent with every request; ``$NAME`` stands for an environment variable."""
    context_window: Positive | None = None
    temperature: Price | None = 0.0
    """Paper §4.1: 0 where applicable; ``"none"`` leaves it out of the request."""
    max_tokens: Positive | None = 2048
    """Longest reply asked for. The paper states none; 2048 cuts only replies that never end."""
    layout: Layout = "auto"
    system: SystemRole = "auto"
    price_input: Price | None = None
    price_output: Price | None = None
    price_cached: Price | None = None
    """USD per million tokens; unknown stays unknown. ``price_cached``: of tokens read from the
    provider's cache; without it, as input."""
    price_cache_write: Price | None = None
    """Of tokens written to the provider's cache; without it, as input."""
    price_tiers: dict[str, Price] = {}
    """Service tier, as a reply names it -> its prices / those above."""
    max_concurrency: Positive = 64
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    """Wall-clock time of one attempt."""
    extra: dict[str, Any] = {}
    """Fields added to every request body, such as ``top_p`` or ``reasoning_effort``."""


class EndpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[endpoints.NAME]`` entry: limits of a server, for all models and stages together."""

    base_url: str
    """Of every model that the limits hold for."""
    max_concurrency: Positive | None = None
    """Most calls in flight; default: the largest of its models' own."""
    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None


class JudgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[judges.NAME]`` entry: a single model as judge, with its own decoding."""

    model: str
    temperature: float | None = 0.0
    max_tokens: Positive | None = 1024
    structured: bool = False
    """Ask for JSON by the protocol's schema (``response_format``), where it has one. Off, since the
    papers' prompts ask for plain text."""
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    """Ask for the log-probability of every token and of this many alternatives."""


class GenerationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[generation]``: stage 1."""

    turns: Annotated[int, msgspec.Meta(gt=N_SEED)] = 16
    """Utterances of a finished dialogue, ChatSEED included (BotChat §4.1: 16)."""


class ArenaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[arena]``: BotChat Arena and its rating."""

    turns: Annotated[
        tuple[Annotated[int, msgspec.Meta(gt=N_SEED)], ...], msgspec.Meta(min_length=1)
    ] = (8, 16)
    """Utterances shown of each dialogue (BotChat §4.2: 8 and 16)."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole ``botchat.toml``."""

    models: dict[str, ModelSettings] = {}
    endpoints: dict[str, EndpointSettings] = {}
    judges: dict[str, JudgeSettings] = {}
    panels: dict[str, PanelSettings] = {}
    protocols: dict[str, CriterionSettings] = {}
    generation: GenerationSettings = GenerationSettings()
    arena: ArenaSettings = ArenaSettings()


Kind: TypeAlias = type[Any] | Mapping[str, type[Any]]
"""The struct of a table; or strategy -> struct, where the key ``strategy`` decides."""


class ModelName(msgspec.Struct, frozen=True):
    """A model as named on the command line, resolved to what it stands for."""

    kind: Literal["endpoint", "bot", "local", "human"]
    name: str
    settings: ModelSettings | None = None
    """For endpoints."""
    target: str = ""
    """Bot name or local weights."""


def load(path: Path) -> Config:
    """Read ``botchat.toml``; an absent file gives the defaults.

    Raises `ConfigError`, with file, line and key: malformed TOML, an unknown key, a bad value.
    """
    try:
        file = TomlFile(path, path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{number}: not UTF-8; save the file as UTF-8") from None
    data = _parsed(file)
    known = Config.__struct_fields__
    if unknown := sorted(set(data) - set(known)):
        line = file.line_of(unknown[0])
        raise ConfigError(
            f"{path}:{line}: unknown table or key `{unknown[0]}`; known: {', '.join(known)}"
        )
    sections: dict[str, Any] = {}
    for field in msgspec.structs.fields(Config):
        section, table = field.name, data.get(field.name, {})
        *_, kind = get_args(field.type) or [field.type]
        if get_args(field.type) and isinstance(table, dict):  # named entries
            kind = KINDS if section == "panels" else kind
            sections[section] = {
                name: file.entry(f"{section}.{name}", entry, kind) for name, entry in table.items()
            }
        else:
            sections[section] = file.entry(section, table, kind)
    for name, model in sections["models"].items():
        _check_model(file, name, model)
        if model.api_key_file is not None:
            key_file = str(path.parent / model.api_key_file)
            sections["models"][name] = msgspec.structs.replace(model, api_key_file=key_file)
    for name, panel in sections["panels"].items():
        read = partial(file.text_beside, f"panels.{name}", "role text")
        sections["panels"][name] = with_texts(panel, read)
    for name, own in sections["protocols"].items():
        sections["protocols"][name] = _read_prompt(file, f"protocols.{name}", name, own)
    if names := circle(sections["panels"]):
        line = file.line_of(f"panels.{names[0]}")
        said = f"a cascade leads back to itself: {' -> '.join(names)}"
        raise ConfigError(f"{path}:{line}: panels: {said}")
    return Config(**sections)


def _parsed(file: TomlFile) -> dict[str, Any]:
    try:
        return tomllib.loads(file.source)
    except tomllib.TOMLDecodeError as error:
        lines = file.source.splitlines()
        line = re.search(r"line (\d+)", str(error))
        row = int(line[1]) if line else len(lines)
        key = lines[row - 1].split("=")[0].strip() if 0 < row <= len(lines) else ""
        raise ConfigError(f"{file.path}:{row}: not valid TOML at `{key}`: {error}") from None


@dataclass(frozen=True)
class TomlFile:
    """A settings file whose mistakes are reported with file, line, key and what is allowed."""

    path: Path
    source: str

    def entry(self, table: str, value: Any, kind: Kind) -> Any:
        """``value``, the content of the table named ``table``, as its struct; or a ConfigError."""
        if not isinstance(value, dict):
            raise self.error(table, "Expected `object`: a table of keys and values")
        kinds: Mapping[str, type[Any]] = {}
        if isinstance(kind, Mapping):
            kinds, known = kind, f"strategies: {', '.join(kind)}"
            if "strategy" not in value:
                raise self.error(table, f"required key `strategy`; {known}")
            if value["strategy"] not in list(kinds):
                raise self.error(f"{table}.strategy", f"{value['strategy']!r} is unknown; {known}")
            kind = kinds[value["strategy"]]
        # TOML has no null: the word "none" leaves a setting out of the request.
        none = {key: None for key in ("temperature", "max_tokens") if value.get(key) == "none"}
        try:
            return msgspec.convert({**value, **none}, kind)
        except msgspec.ValidationError as error:
            key, said = _explained(str(error), kind, kinds)
            raise self.error(f"{table}.{key}" if key else table, said) from None

    def text_beside(self, key: str, what: str, file: str) -> str:
        """The text of a file that ``key`` names, relative to this file; or a ConfigError."""
        try:
            return (self.path.parent / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.error(key, f"cannot read the {what} {file}: {error}") from None

    def error(self, key: str, said: str) -> ConfigError:
        """An error about a dotted key."""
        return ConfigError(f"{self.path}:{self.line_of(key)}: {key}: {said}")

    def line_of(self, dotted: str) -> int:
        """The line (1-based) of a dotted key or table, else of the table around it, else 1.

        It is searched in the text because tomllib keeps no positions.
        """
        table, found = "", 1
        for number, line in enumerate(self.source.splitlines(), 1):
            bare = re.sub("[\"']", "", line)
            if header := re.match(r"\s*\[\s*([^\]]+?)\s*\]", bare):
                here = table = header[1].replace(" . ", ".")
            elif assigned := re.match(r"\s*([\w. -]+?)\s*=", bare):
                here = f"{table}.{assigned[1]}" if table else assigned[1]
            else:
                continue
            if here == dotted:
                return number
            if dotted.startswith(f"{here}."):
                found = number
        return found


def _explained(message: str, kind: type[Any], kinds: Mapping[str, type[Any]]) -> tuple[str, str]:
    """(key of the table, what is wrong and what is allowed) of a message of msgspec."""
    place = re.search(r" - at `\$\.?([^`\[]*)[^`]*`$", message)
    inside = place[1] if place else ""
    said = message[: place.start()] if place else message
    if field := re.search(r"(unknown|required) field `([^`]+)`", message):
        owner = AgentSettings if inside == "agents" else kind
        known = ", ".join(owner.__struct_encode_fields__)
        said = f"{field[1]} key `{field[2]}`; keys of this table: {known}"
        if inside or field[1] == "required":
            return inside, said
        owners = [s for s, other in kinds.items() if field[2] in other.__struct_encode_fields__]
        if owners:
            said += f"; `{field[2]}` belongs to {', '.join(owners)}"
        return field[2], said
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    if said.startswith("Invalid enum value") and inside in types:
        return inside, f"{said}; known: {', '.join(map(str, get_args(types[inside])))}"
    # A table's own checks begin with the key they are about.
    first, _, rest = said.partition(": ")
    return (first, rest) if not inside and first in types else (inside, said)


def model_name(name: str, config: Config, env: Mapping[str, str] = os.environ) -> ModelName:
    """What a model name stands for (DESIGN §7).

    ``NAME`` from botchat.toml · ``openai:MODEL`` · ``http(s)://host/v1#MODEL`` · ``hf:ORG/MODEL``
    · ``bot:NAME`` · ``human``.
    Raises `ConfigError` for any other; lists what can be named.
    """
    if name in config.models:
        return ModelName("endpoint", name, config.models[name])
    if name == HUMAN:
        return ModelName("human", name)
    scheme, _, rest = name.partition(":")
    if scheme in ("bot", "hf") and rest:
        return ModelName("bot" if scheme == "bot" else "local", name, target=rest)
    if scheme == "openai" and rest:
        url = env.get("OPENAI_BASE_URL") or OPENAI_URL
        settings = ModelSettings(model=rest, base_url=url, api_key_env="OPENAI_API_KEY")
        return ModelName("endpoint", name, settings)
    if scheme in ("http", "https"):
        url, sharp, model = name.partition("#")
        if not sharp or not model or not urlsplit(url).hostname:
            raise ConfigError(
                f"model {public_url(name)!r}: an endpoint is named URL#MODEL, "
                "for example http://localhost:8000/v1#my-model"
            )
        return ModelName(
            "endpoint", f"{public_url(url)}#{model}", ModelSettings(model=model, base_url=url)
        )
    known = ", ".join(
        [*sorted(config.models), "bot:NAME", "openai:MODEL", "URL#MODEL", "hf:NAME", HUMAN]
    )
    raise ConfigError(f"unknown model {name!r}; models that can be named: {known}")


def api_key(settings: ModelSettings, env: Mapping[str, str] = os.environ) -> str | None:
    """The key for an endpoint, or ``None`` to ask without one.

    The content of ``api_key_file``, or of the variable named by ``api_key_env`` (for OpenAI itself:
    ``OPENAI_API_KEY``); else ``BOTCHAT_API_KEY`` if set; else ``OPENAI_API_KEY``, but only for
    ``OPENAI_BASE_URL`` and this machine: a key is never sent to a host that it is not meant for.
    Raises `ConfigError`, with the variable's name, where a key is required and not set.
    """
    if settings.api_key_file is not None:
        return _checked_key(_key_in(settings.api_key_file, settings.model), "its api_key_file")
    named = settings.api_key_env
    if named is None and _host(settings.base_url) == _host(OPENAI_URL):
        named = "OPENAI_API_KEY"
    if named:
        key = env.get(named, "").strip()
        if not key:
            raise ConfigError(
                f"no key for {settings.model}: the environment variable {named} is not set; "
                "set it and run the command again"
            )
        return _checked_key(key, named)
    if key := env.get("BOTCHAT_API_KEY", "").strip():
        return _checked_key(key, "BOTCHAT_API_KEY")
    ours = {_host(env.get("OPENAI_BASE_URL", "")), "localhost", "127.0.0.1"}
    if _host(settings.base_url) in ours:
        return env.get("OPENAI_API_KEY", "").strip() or None
    return None


def _key_in(file: str, model: str) -> str:
    # The message does not name the file: users put the key itself there by mistake.
    try:
        key = Path(file).read_text("utf-8").strip()
    except OSError as error:
        raise ConfigError(
            f"no key for {model}: its api_key_file cannot be read ({error.strerror}); the path is "
            "relative to botchat.toml"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"no key for {model}: its api_key_file is not text") from None
    if not key:
        raise ConfigError(f"no key for {model}: its api_key_file is empty; put the key into it")
    return key


def _checked_key(key: str, variable: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"the key in {variable} has a character that no key can have (a blank, a quote mark "
            "from a text editor?); set it again"
        )
    return key


def endpoint_settings(model: ModelSettings, config: Config) -> EndpointSettings:
    """The limits of a model's server, with its concurrency filled in."""
    here = public_url(model.base_url)
    found = (e for e in config.endpoints.values() if public_url(e.base_url) == here)
    endpoint = next(found, EndpointSettings(base_url=model.base_url))
    if endpoint.max_concurrency is not None:
        return endpoint
    beside = [m for m in config.models.values() if public_url(m.base_url) == here]
    most = max(m.max_concurrency for m in (model, *beside))
    return msgspec.structs.replace(endpoint, max_concurrency=most)


def public_url(url: str) -> str:
    """``url`` without user, password and query, for messages, names and ledger keys."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", parts.fragment))


def _host(url: str) -> str | None:
    return urlsplit(url).hostname


def _read_prompt(
    file: TomlFile, table: str, name: str, settings: CriterionSettings
) -> CriterionSettings:
    """A criterion with the text of its prompt file."""
    if is_taken(name) or not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise file.error(
            table,
            "a name is lower-case letters, digits and _ (at most 40), and none of BotChat's own,"
            " such as arena, unieval or probe",
        )
    text = file.text_beside(table, "prompt", settings.prompt)
    try:
        return with_prompt(settings, text)
    except ValueError as error:
        raise file.error(f"{table}.prompt", str(error)) from None


def _check_model(file: TomlFile, name: str, model: ModelSettings) -> None:
    table = f"models.{name}"
    if name in (HUMAN, "rules") or name in PRESETS or ":" in name or not name.strip():
        raise file.error(
            table, "this name stands for something else; choose another, without a colon"
        )
    if model.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", model.api_key_env):
        raise file.error(
            f"{table}.api_key_env",
            "this is not the name of an environment variable; put the key itself into one, and its "
            "name here",
        )
    if model.api_key_env is not None and model.api_key_file is not None:
        raise file.error(f"{table}.api_key_file", "the key is in api_key_env already; keep one")
    if taken := sorted({"model", "messages", "stream"} & set(model.extra)):
        raise file.error(f"{table}.extra", f"{taken[0]} is set by BotChat; leave it out")
    if urlsplit(model.base_url).scheme not in ("http", "https") or not _host(model.base_url):
        raise file.error(f"{table}.base_url", f"{model.base_url!r} is not an http(s) URL")
