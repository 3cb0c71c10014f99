"""``botchat.toml`` and names on the command line -> typed, frozen settings.

A new setting is a field of a struct, with the default of the papers and its source;
``docs/settings.md`` shows a whole file.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar, get_args

import msgspec

from botchat.errors import ConfigError, did_you_mean, listed
from botchat.frames import TomlTable, read_text
from botchat.records import HUMAN, N_SEED, RULES, SHUFFLED, Names
from botchat.workspace.criteria import CriterionSettings, is_reserved, with_prompt
from botchat.workspace.model_settings import (
    OPENAI_URL,
    ModelSettings,
    Positive,
    Price,
    Rate,
)
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings
from botchat.workspace.secrets import SECRET_NAME, Env, public, public_url

S = TypeVar("S", bound=msgspec.Struct)

Turns = Annotated[int, msgspec.Meta(gt=N_SEED)]


class JudgeSettings(TomlTable, frozen=True, kw_only=True):
    """One ``[judges.NAME]`` entry: a single model as judge, with its own decoding."""

    model: str
    temperature: Price | None = 0.0
    max_tokens: Positive | msgspec.UnsetType | None = msgspec.UNSET
    """Longest verdict (default: that of the model's entry, else `VERDICT_TOKENS`)."""
    samples: Positive = 1
    """Calls a case (FairEval's MEC); the votes count as an ensemble's."""

    def __post_init__(self) -> None:
        """Refuse several samples that are always the same."""
        if self.samples > 1 and self.temperature == 0:
            raise ValueError("samples: at temperature 0 all are the same; set temperature = 1.0")


class GenerationSettings(TomlTable, frozen=True, kw_only=True):
    """``[generation]``: stage 1."""

    turns: Turns = 16
    """Utterances of a finished dialogue, ChatSEED included (BotChat §4.1: 16)."""


class ArenaSettings(TomlTable, frozen=True, kw_only=True):
    """``[arena]``: BotChat Arena and its rating."""

    turns: Annotated[tuple[Turns, ...], msgspec.Meta(min_length=1)] = (8, 16)
    """Utterances shown of each dialogue (BotChat §4.2: 8 and 16)."""


LEAST_SHUFFLED = 20
"""Shuffled dialogues that tell anything of a judge."""


class RunSettings(TomlTable, frozen=True, kw_only=True):
    """``[run]``: defaults of the flags of ``botchat run``."""

    seeds: str | None = None
    models: Names = ()
    judge: str | None = None
    judge_model: str | None = None
    protocols: Names = ()
    limit: Positive | None = None
    shuffled: Annotated[int, msgspec.Meta(ge=0)] = 40
    """Shuffled dialogues that a judge is tested on, once; 0: none."""
    max_usd: Rate | None = None

    def __post_init__(self) -> None:
        """Refuse a test of too few dialogues to tell anything."""
        if 0 < self.shuffled < LEAST_SHUFFLED:
            raise ValueError(f"shuffled: 0 for none, or {LEAST_SHUFFLED} and more")


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole ``botchat.toml``."""

    models: dict[str, ModelSettings] = {}
    judges: dict[str, JudgeSettings] = {}
    panels: dict[str, PanelSettings] = {}
    protocols: dict[str, CriterionSettings] = {}
    generation: GenerationSettings = GenerationSettings()
    arena: ArenaSettings = ArenaSettings()
    run: RunSettings = RunSettings()


class ModelName(msgspec.Struct, frozen=True):
    """A model as named on the command line, resolved; ``settings`` of endpoints alone."""

    name: str
    settings: ModelSettings | None = None

    @property
    def is_bot(self) -> bool:
        """Whether it is offline."""
        return self.settings is None and self.name != HUMAN


def load(path: Path) -> Config:
    """Read ``botchat.toml``; an absent file gives the defaults. Raises ConfigError."""
    try:
        source = read_text(path.read_bytes(), path)
        data = tomllib.loads(source)
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; it is a text file") from None
    except (ValueError, RecursionError) as error:  # the message shows nothing of the line
        row = re.search(r"line (\d+)", str(error))
        raise ConfigError(
            f"{path}:{row[1] if row else 1}: not valid TOML ({public(str(error))[:200]}); "
            'write key = "text" or key = 1'
        ) from None
    file = TomlFile(path, source)
    for name in data.keys() - Config.__struct_fields__:
        raise file.error(name, "", unknown_key(name, Config.__struct_fields__))
    sections = {}
    for field in msgspec.structs.fields(Config):
        section = field.name
        value = data.get(section, {})
        kinds = get_args(field.type)
        if kinds:
            tables = file.table(section, value)
            value = {
                name: file.entry(f"{section}.{name}", tables[name], kinds[1]) for name in tables
            }
        else:
            value = file.entry(section, value, field.type)
        sections[section] = value
    config = msgspec.convert(sections, Config)
    _check_names(file, config.models)
    for name, criterion in config.protocols.items():
        config.protocols[name] = _read_prompt(file, name, criterion)
    return config


class TomlFile(NamedTuple):
    """A settings file whose mistakes are reported with file, line, table and key."""

    path: Path
    source: str

    def table(self, name: str, value: object) -> dict[str, object]:
        """Return the content of a table; raises ConfigError if it is none."""
        if isinstance(value, dict):
            return value
        raise self.error(name, "", "this is no table of keys and values")

    def entry(self, table: str, value: object, kind: type[S]) -> S:
        """Return the content of a table as its struct; raises ConfigError."""
        content = dict(self.table(table, value))
        # TOML has no null: the word "none" leaves a setting out of the request.
        for key in ("temperature", "max_tokens"):
            if content.get(key) == "none":
                content[key] = None
        try:
            return msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            key, fault = _explained(str(error), kind)
            raise self.error(table, key, fault) from None
        except RecursionError:
            raise self.error(table, "", "lists or tables are nested too deep") from None

    def error(self, table: str, key: str, fault: str) -> ConfigError:
        """Return an error about a key; what seems to be a secret is left out of it."""
        place = public(f"[{table}] {key}".strip())
        return ConfigError(f"{self.path}:{self._line(table, key)}: {place}: {public(fault)}")

    def _line(self, table: str, key: str) -> int:
        """Return the line (1-based) of a key, else of its table, else 1."""
        source = re.sub("[\"' ]", "", self.source)
        header = rf"(?m)^\[{re.escape(table.replace(' ', ''))}\]"
        # Before the next table.
        in_table = rf"{header}(?:.*\n(?!\[))+?{re.escape(key)}[=.]"
        place = re.search(in_table, source) or re.search(header, source)
        if place is None:
            return 1
        return source.count("\n", 0, place.end()) + 1


def unknown_key(name: str, known: Names) -> str:
    """Explain an unknown key, with a near match."""
    if "api_key_env" in known and SECRET_NAME.search(name):
        return "put the key into an environment variable, and its name into api_key_env"
    return f"unknown key{did_you_mean(name, known)}; known: {listed(known)}"


def _explained(message: str, kind: type[msgspec.Struct]) -> tuple[str, str]:
    """Return the key and the fault of a message of msgspec."""
    fault, _, place = message.partition(" - at `$")
    key = re.split(r"[`\[.]", place.lstrip("."))[0]
    field = re.search(r"(unknown|required) field `([^`]*)`", fault)
    if field:
        if field[1] == "required":
            return field[2], "this key is required"
        known = kind
        if key == "agents":
            known = AgentSettings
        return key or field[2], unknown_key(field[2], known.__struct_encode_fields__)
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    if fault.startswith("Invalid enum value") and key in types:
        literals = [part for part in (types[key], *get_args(types[key])) if get_args(part)]
        return key, f"{fault}; known: {', '.join(str(each) for each in get_args(literals[-1]))}"
    # A struct's own checks begin with the key they are about.
    first, _, rest = fault.partition(": ")
    if not key and first in types:
        return (first, rest)
    return (key, fault)


def _check_names(file: TomlFile, models: Mapping[str, ModelSettings]) -> None:
    """Refuse names of models that stand for something else."""
    labels = [model.display_name or name for name, model in models.items()]
    for name, model in models.items():
        table = f"models.{name}"
        label = model.display_name
        if _is_reserved(name):
            raise file.error(table, "", "this name stands for something else")
        is_other = label != name and label in models
        if label and (is_other or labels.count(label) > 1 or _is_reserved(label, " + ")):
            raise file.error(table, "display_name", f"{label!r} is the name of something else")


def _is_reserved(name: str, mark: str = ":") -> bool:
    return name in (HUMAN, RULES, SHUFFLED) or name in PRESETS or mark in name or not name.strip()


def _read_prompt(file: TomlFile, name: str, settings: CriterionSettings) -> CriterionSettings:
    """Return a criterion with the text of its prompt file."""
    table = f"protocols.{name}"
    if is_reserved(name) or not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise file.error(
            table,
            "",
            "a name is lower-case letters, digits and _ (at most 40), and none of BotChat's own",
        )
    try:
        return with_prompt(settings, (file.path.parent / settings.prompt).read_text("utf-8"))
    except OSError as error:
        fault = f"cannot read {settings.prompt}: {error.strerror}"
    except UnicodeDecodeError:
        fault = f"{settings.prompt} is not UTF-8; save it as UTF-8"
    except (ConfigError, ValueError) as error:
        fault = str(error)
    raise file.error(table, "prompt", fault)


def model_name(name: str, config: Config, env: Env = os.environ) -> ModelName:
    """Resolve the name of a model; raises ConfigError for an unknown form.

    ``NAME`` or ``NAME@REVISION`` of botchat.toml, ``openai:MODEL``, ``http(s)://host/v1#MODEL``,
    ``bot:NAME``, or ``human``.
    """
    scheme, _, rest = name.partition(":")
    url, _, model = name.partition("#")
    entry, _, revision = name.rpartition("@")
    place = f"model {name!r}"
    try:
        if name in config.models:
            return _entry(name, config.models[name])
        if entry in config.models:
            settings = msgspec.structs.replace(config.models[entry], revision=revision)
            return _entry(entry, settings)
        if name == HUMAN or (scheme == "bot" and rest):
            return ModelName(name)
        if scheme == "openai" and rest:
            place = "the environment variable OPENAI_BASE_URL"
            url = env.get("OPENAI_BASE_URL") or OPENAI_URL
            settings = ModelSettings(model=rest, base_url=url, api_key_env="OPENAI_API_KEY")
            return ModelName(name, settings)
        if scheme in ("http", "https"):
            settings = ModelSettings(model=model, base_url=url)
            return ModelName(f"{public_url(url)}#{model}", settings)
    except ValueError as error:
        raise ConfigError(
            f"{public(place)}: {public(str(error))}; an endpoint is named URL#MODEL, such as "
            "http://localhost:8000/v1#my-model"
        ) from None
    judges = (*config.judges, *config.panels, *PRESETS, RULES)
    if name in judges:
        raise ConfigError(f"model {name!r}: it is a judge; a contestant is a model")
    near = public(did_you_mean(name, [*config.models, *judges, HUMAN]))
    own = listed(sorted(config.models), 4) or "none in botchat.toml"
    raise ConfigError(
        f"unknown model {public(name)!r}{near}; models that can be named: {own}; and bot:NAME, "
        "openai:MODEL, URL#MODEL, human; a judge may be rules or a panel: botchat models lists all"
    )


def _entry(name: str, settings: ModelSettings) -> ModelName:
    suffix = ""
    if settings.revision is not None:
        suffix = f"@{settings.revision}"
    return ModelName(f"{settings.display_name or name}{suffix}", settings)


def server_concurrency(model: ModelSettings, config: Config) -> int:
    """Return the most calls in flight at a model's server: the largest of its models' own."""
    url = public_url(model.base_url)
    neighbours = [m for m in config.models.values() if public_url(m.base_url) == url]
    return max(m.max_concurrency for m in (model, *neighbours))
