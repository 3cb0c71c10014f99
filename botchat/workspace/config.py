"""``botchat.toml`` and names on the command line -> typed, frozen settings.

The paper's defaults live here, each with its source. Example:

    [models.gpt-4]
    base_url = "https://api.openai.com/v1"
    model = "gpt-4-0613"
    api_key_env = "OPENAI_API_KEY"
    context_window = 8192
    price_input = 30.0        # USD per million tokens
    price_output = 60.0

    [judges.strict]
    model = "gpt-4"           # a [models] entry or any model name
    max_tokens = 512
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from botchat.errors import ConfigError
from botchat.records import HUMAN, N_SEED
from botchat.workspace.criteria import TAKEN, CriterionSettings, with_prompt
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings, circle, with_texts

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
    wire: str = "chat"
    """How requests look: a name in `botchat.models.endpoint.WIRE_FORMATS`."""
    api_key_env: str | None = None
    """Environment variable that holds the key; ``None``: see `api_key`."""
    api_key_file: str | None = None
    """File that holds nothing but the key, relative to ``botchat.toml``."""
    context_window: Positive | None = None
    temperature: Price | None = 0.0
    """Paper §4.1: 0 where applicable; ``"none"`` leaves it out of the request."""
    max_tokens: Positive | None = 2048
    """Longest reply asked for. The paper does not state one; 2048 cuts runaway replies only."""
    layout: Layout = "auto"
    system: SystemRole = "auto"
    price_input: Price | None = None
    price_output: Price | None = None
    price_cached: Price | None = None
    """USD per million tokens; unknown stays unknown."""
    max_concurrency: Positive = 64
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    """Wall clock for one attempt, slow drips included."""
    extra: dict[str, Any] = {}
    """Fields added to every request body, such as ``top_p`` or ``reasoning_effort``."""


class EndpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[endpoints.NAME]`` entry: what a server can take, all models and stages together."""

    base_url: str
    """Holds for every model with this URL."""
    max_concurrency: Positive | None = None
    """Most calls in flight; default: the largest that one of its models names."""
    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None


class JudgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[judges.NAME]`` entry: a single model as judge, with its own decoding."""

    model: str
    temperature: float | None = 0.0
    max_tokens: Positive | None = 1024
    structured: bool = False
    """Ask for the verdict as JSON that follows a schema (``response_format``), where the protocol
    has one. Off by default: the papers' prompts ask for plain text."""
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    """Ask for the log-probability of every token, and of so many alternatives to each."""


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


_SECTIONS: dict[str, tuple[type[Any], bool]] = {
    "models": (ModelSettings, True),
    "endpoints": (EndpointSettings, True),
    "judges": (JudgeSettings, True),
    "panels": (PanelSettings, True),
    "protocols": (CriterionSettings, True),
    "generation": (GenerationSettings, False),
    "arena": (ArenaSettings, False),
}
"""Table -> its struct, and whether it holds named entries."""


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

    Raises:
        ConfigError: malformed TOML, an unknown key or a bad value; names file, line and key.
    """
    try:
        source = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{number}: not UTF-8; save the file as UTF-8") from None
    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        row = int(line[1]) if line else len(source.splitlines())
        text = source.splitlines()[row - 1].strip() if 0 < row <= len(source.splitlines()) else ""
        key = text.split("=")[0].strip()
        raise ConfigError(f"{path}:{row}: not valid TOML at `{key}`: {error}") from None
    unknown = sorted(set(data) - set(_SECTIONS))
    if unknown:
        raise ConfigError(
            f"{path}:{_line_of(source, unknown[0])}: unknown table or key `{unknown[0]}`; "
            f"known: {', '.join(_SECTIONS)}"
        )
    sections: dict[str, Any] = {}
    for section, (kind, named) in _SECTIONS.items():
        table = data.get(section, {})
        if named and isinstance(table, dict):
            sections[section] = {
                name: _entry(path, source, f"{section}.{name}", entry, kind)
                for name, entry in table.items()
            }
        else:
            sections[section] = _entry(path, source, section, table, kind)
    for name, model in sections["models"].items():
        _check_model(path, source, name, model)
        if model.api_key_file is not None:
            key_file = str(path.parent / model.api_key_file)
            sections["models"][name] = msgspec.structs.replace(model, api_key_file=key_file)
    sections["panels"] = {
        name: _read_roles(path, source, name, panel) for name, panel in sections["panels"].items()
    }
    sections["protocols"] = {
        name: _read_prompt(path, source, name, own) for name, own in sections["protocols"].items()
    }
    if names := circle(sections["panels"]):
        place = f"{path}:{_line_of(source, f'panels.{names[0]}')}"
        raise ConfigError(f"{place}: panels: a cascade leads back to itself: {' -> '.join(names)}")
    return Config(**sections)


def model_name(name: str, config: Config, env: Mapping[str, str] = os.environ) -> ModelName:
    """What a model name stands for (DESIGN §5).

    ``NAME`` from botchat.toml · ``openai:MODEL`` · ``http(s)://host/v1#MODEL`` · ``hf:ORG/MODEL``
    · ``bot:NAME`` · ``human``.

    Raises:
        ConfigError: none of these; lists what can be named.
    """
    if name in config.models:
        return ModelName("endpoint", name, config.models[name])
    if name == HUMAN:
        return ModelName("human", name)
    scheme, colon, rest = name.partition(":")
    if colon and scheme == "bot" and rest:
        return ModelName("bot", name, target=rest)
    if colon and scheme == "hf" and rest:
        return ModelName("local", name, target=rest)
    if colon and scheme == "openai" and rest:
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
    """The key for an endpoint, or ``None`` if it is to be asked without one.

    What is in ``api_key_file``, or in the variable named by ``api_key_env`` (for OpenAI itself:
    ``OPENAI_API_KEY``); elsewhere ``BOTCHAT_API_KEY`` if set; else ``OPENAI_API_KEY``, but only for
    ``OPENAI_BASE_URL`` and for this machine: a key is never sent to a host it was not meant for.

    Raises:
        ConfigError: a key is required and not set; names the variable or file.
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
    # Its name is not told: who has put the key itself there must not find it in a log.
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
    """The limits of a model's server, its concurrency filled in."""
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


def _entry(path: Path, source: str, table: str, value: Any, kind: type[Any]) -> Any:
    """One table of the file as its struct; errors name file, line, key and allowed keys."""
    if isinstance(value, dict):
        # TOML has no null: the word "none" leaves a setting out of the request.
        none = {key: None for key in ("temperature", "max_tokens") if value.get(key) == "none"}
        value = {**value, **none}
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = str(error)
        place = re.search(r" - at `\$\.?([^`\[]*)[^`]*`$", message)
        field = re.search(r"(unknown|required) field `([^`]+)`", message)
        inside = place[1] if place else ""
        key = field[2] if field and field[1] == "unknown" and not inside else inside
        if field:
            owner = AgentSettings if inside == "agents" else kind
            fields = ", ".join(owner.__struct_fields__)
            said = f"{field[1]} key `{field[2]}`; keys of this table: {fields}"
        else:
            said = message[: place.start()] if place else message
            # A table's own checks begin with the key they are about.
            first, _, rest = said.partition(": ")
            if not key and first in kind.__struct_fields__:
                key, said = first, rest
        full = f"{table}.{key}" if key else table
        raise ConfigError(f"{path}:{_line_of(source, full)}: {full}: {said}") from None


def _read_roles(path: Path, source: str, name: str, panel: PanelSettings) -> PanelSettings:
    """A panel with the texts of its role files, which stand beside botchat.toml."""

    def read(file: str) -> str:
        try:
            return (path.parent / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            line = _line_of(source, f"panels.{name}")
            raise ConfigError(
                f"{path}:{line}: panels.{name}: cannot read the role text {file}: {error}"
            ) from None

    return with_texts(panel, read)


def _read_prompt(
    path: Path, source: str, name: str, settings: CriterionSettings
) -> CriterionSettings:
    """A criterion with the text of its prompt file, which stands beside botchat.toml."""
    table = f"protocols.{name}"
    if name in TAKEN or not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise ConfigError(
            f"{path}:{_line_of(source, table)}: {table}: a name is lower-case letters, digits and _"
            f" (at most 40), and none of {', '.join(TAKEN)}"
        )
    try:
        return with_prompt(settings, (path.parent / settings.prompt).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        said = f"cannot read {settings.prompt}: {getattr(error, 'strerror', None) or 'not UTF-8'}"
    except ValueError as error:
        said = str(error).removeprefix("prompt: ")
    key = f"{table}.prompt"
    raise ConfigError(f"{path}:{_line_of(source, key)}: {key}: {said}")


def _check_model(path: Path, source: str, name: str, model: ModelSettings) -> None:
    table = f"models.{name}"
    if name in (HUMAN, "rules") or name in PRESETS or ":" in name or not name.strip():
        raise ConfigError(
            f"{path}:{_line_of(source, table)}: {table}: this name stands for something else; "
            "choose another, without a colon"
        )
    if model.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", model.api_key_env):
        key = f"{table}.api_key_env"
        raise ConfigError(
            f"{path}:{_line_of(source, key)}: {key}: this is not the name of an environment "
            "variable; put the key itself into one, and its name here"
        )
    if model.api_key_env is not None and model.api_key_file is not None:
        key = f"{table}.api_key_file"
        raise ConfigError(
            f"{path}:{_line_of(source, key)}: {key}: the key is in api_key_env already; keep one"
        )
    if taken := sorted({"model", "messages", "stream"} & set(model.extra)):
        key = f"{table}.extra"
        raise ConfigError(
            f"{path}:{_line_of(source, key)}: {key}: {taken[0]} is set by BotChat; leave it out"
        )
    if urlsplit(model.base_url).scheme not in ("http", "https") or not _host(model.base_url):
        key = f"{table}.base_url"
        raise ConfigError(
            f"{path}:{_line_of(source, key)}: {key}: {model.base_url!r} is not an http(s) URL"
        )


def _line_of(source: str, dotted: str) -> int:
    """The line on which a dotted key or table of a valid TOML text stands (1-based).

    Falls back to the enclosing table's line, then to 1: tomllib keeps no positions.
    """
    table, found = "", 1
    for number, line in enumerate(source.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            table = header[1].replace('"', "").replace("'", "").replace(" . ", ".")
            here = table
        elif assigned := re.match(r"\s*([\w.\"' -]+?)\s*=", line):
            key = assigned[1].replace('"', "").replace("'", "")
            here = f"{table}.{key}" if table else key
        else:
            continue
        if here == dotted:
            return number
        if dotted.startswith(f"{here}."):
            found = number
    return found
