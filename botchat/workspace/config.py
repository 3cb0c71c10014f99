"""``botchat.toml`` and names on the command line -> typed, frozen settings.

A new setting is a field of a struct here, with the default of the papers and its source;
``docs/settings.md`` shows a whole file. What is refused of models is in `entries`.
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

import msgspec

from botchat.errors import ConfigError, did_you_mean
from botchat.records import HUMAN, N_SEED
from botchat.workspace.criteria import CriterionSettings, is_taken, with_prompt
from botchat.workspace.model_settings import (
    OPENAI_URL,
    Positive,
    Price,
    Rate,
    entry_url_fault,
    model_faults,
    slip,
    unknown_model,
    url_fault,
)
from botchat.workspace.model_settings import ModelSettings as ModelSettings
from botchat.workspace.model_settings import api_key as api_key
from botchat.workspace.panels import (
    KINDS,
    PRESETS,
    AgentSettings,
    PanelSettings,
    with_texts,
)
from botchat.workspace.secrets import names_secret, public
from botchat.workspace.secrets import public_url as public_url

OFFLINE = ("rules",)
"""Names of the judges that ask nobody."""


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
    temperature: Price | None = 0.0
    max_tokens: Positive | None = 1024
    samples: Positive = 1
    """How often it is asked about each case (FairEval's MEC); its votes count as an ensemble's."""

    def __post_init__(self) -> None:
        """Refuse several samples of what is always the same."""
        if self.samples > 1 and self.temperature == 0:
            raise ValueError("samples: at temperature 0 all are the same; set temperature = 1.0")


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


class LanguageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[languages.CODE]`` entry: where a language pack is; docs/languages.md."""

    path: str
    """Its folder, relative to ``botchat.toml``."""


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[run]``: what ``botchat run`` does where its flags do not say otherwise."""

    seeds: str | None = None
    models: tuple[str, ...] = ()
    judge: str | None = None
    judge_model: str | None = None
    protocols: tuple[str, ...] = ()
    limit: Positive | None = None
    max_usd: Rate | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole ``botchat.toml``."""

    models: dict[str, ModelSettings] = {}
    endpoints: dict[str, EndpointSettings] = {}
    judges: dict[str, JudgeSettings] = {}
    panels: dict[str, PanelSettings] = {}
    protocols: dict[str, CriterionSettings] = {}
    generation: GenerationSettings = GenerationSettings()
    arena: ArenaSettings = ArenaSettings()
    languages: dict[str, LanguageSettings] = {}
    run: RunSettings = RunSettings()


_TABLES = (Config, ModelSettings, EndpointSettings, JudgeSettings, GenerationSettings)
_SETTINGS = frozenset(name for kind in _TABLES for name in kind.__struct_fields__)

Kind: TypeAlias = type[Any] | Mapping[str, type[Any]]
"""The struct of a table; or strategy -> struct, where the key ``strategy`` decides."""


class ModelName(msgspec.Struct, frozen=True):
    """A model as named on the command line, resolved to what it stands for."""

    kind: Literal["endpoint", "bot", "human"]
    name: str
    settings: ModelSettings | None = None
    """For endpoints."""
    target: str = ""
    """Of a bot: its name."""


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
    data, known = _parsed(file), Config.__struct_fields__
    for one in sorted(set(data) - set(known)):
        said = f"`{one}`{did_you_mean(one, known)}; known: {', '.join(known)}"
        raise ConfigError(f"{path}:{file.line_of(one)}: unknown table or key {said}")
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
        sections["models"][name] = _checked(file, name, model)
    _check_labels(file, sections["models"])
    for name, endpoint in sections["endpoints"].items():
        if fault := entry_url_fault(endpoint.base_url):
            raise file.error(f"endpoints.{name}.base_url", fault)
    for name, panel in sections["panels"].items():
        read = partial(file.text_beside, f"panels.{name}", "role text")
        sections["panels"][name] = with_texts(panel, read)
    for name, own in sections["protocols"].items():
        sections["protocols"][name] = _read_prompt(file, f"protocols.{name}", name, own)
    return Config(**sections)


def _parsed(file: TomlFile) -> dict[str, Any]:
    try:
        return tomllib.loads(file.source)
    except RecursionError:
        raise ConfigError(f"{file.path}: lists or tables are nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        lines = file.source.splitlines()
        line = re.search(r"line (\d+)", str(error))
        row = int(line[1]) if line else len(lines)
        wrong = lines[row - 1] if 0 < row <= len(lines) else ""
        # A line that is no setting may be a key or a password: it is not shown.
        at = f" at `{key}`" if (key := wrong.split("=")[0].strip()) in _SETTINGS else ""
        said = public(str(error)) + slip(wrong)
        raise ConfigError(f"{file.path}:{row}: not valid TOML{at}: {said}") from None
    except ValueError:
        raise ConfigError(f"{file.path}: a number has thousands of digits") from None


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
            if "rounds" in value and "turns" not in value and hasattr(kind, "rounds"):
                value = {"turns" if key == "rounds" else key: one for key, one in value.items()}
        # TOML has no null: the word "none" leaves a setting out of the request.
        none = {key: None for key in ("temperature", "max_tokens") if value.get(key) == "none"}
        try:
            return msgspec.convert({**value, **none}, kind)
        except msgspec.ValidationError as error:
            key, said = _explained(str(error), kind, kinds)
            raise self.error(f"{table}.{key}" if key else table, said) from None
        except RecursionError:
            raise self.error(table, "lists or tables are nested too deep") from None

    def text_beside(self, key: str, what: str, file: str) -> str:
        """The text of a file that ``key`` names, relative to this file; or a ConfigError."""
        try:
            return (self.path.parent / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.error(key, f"cannot read the {what} {file}: {error}") from None

    def error(self, key: str, said: str) -> ConfigError:
        """An error about a dotted key; what seems to be a secret is left out of it."""
        return ConfigError(f"{self.path}:{self.line_of(key)}: {public(key)}: {public(said)}")

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


_KINDS = {
    "str": 'text in quotes ("…")',
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in brackets ([…])",
    "object": "a table of keys and values",
    "null": "nothing",
    "datetime": "a date",
    "date": "a date",
    "time": "a time",
}
"""Words of msgspec for kinds of values, and what people write."""


def _explained(message: str, kind: type[Any], kinds: Mapping[str, type[Any]]) -> tuple[str, str]:
    """(key of the table, what is wrong and what is allowed) of a message of msgspec."""
    place = re.search(r" - at `\$\.?([^`\[]*)[^`]*`$", message)
    inside = place[1] if place else ""
    said = message[: place.start()] if place else message
    if field := re.search(r"(unknown|required) field `([^`]+)`", message):
        owner = AgentSettings if inside == "agents" else kind
        known = ", ".join(owner.__struct_encode_fields__)
        near = did_you_mean(field[2], owner.__struct_encode_fields__) if "un" in field[1] else ""
        said = f"{field[1]} key `{field[2]}`{near}; keys of this table: {known}"
        if field[1] == "unknown" and "api_key_env" in known and names_secret(field[2]):
            said = (
                f"unknown key `{field[2]}`; put the key into the environment and the variable's "
                "name into api_key_env, or the name of a file into api_key_file"
            )
        if inside or field[1] == "required":
            return inside, said
        owners = [s for s, other in kinds.items() if field[2] in other.__struct_encode_fields__]
        if owners:
            said += f"; `{field[2]}` belongs to {', '.join(owners)}"
        return field[2], said
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    if said.startswith("Invalid enum value") and inside in types:
        own = "; a text of your own is system_prompt" if inside == "system" else ""
        return inside, f"{said}; known: {', '.join(map(str, get_args(types[inside])))}{own}"
    if kinds_meant := re.match(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", said):
        wanted, given = (_KINDS.get(word, word) for word in kinds_meant.groups())
        none = ', or "none",' if inside in ("temperature", "max_tokens") else ""
        said = f"{said}: write {wanted}{none} here, not {given}"
    # A table's own checks begin with the key they are about.
    first, _, rest = said.partition(": ")
    return (first, rest) if not inside and first in types else (inside, said)


def model_name(
    name: str,
    config: Config,
    env: Mapping[str, str] = os.environ,
) -> ModelName:
    """What a model name stands for (DESIGN §7).

    ``NAME`` or ``NAME@REVISION`` from botchat.toml · ``openai:MODEL`` · ``http(s)://host/v1#MODEL``
    · ``bot:NAME`` · ``human``.
    Raises `ConfigError` for any other; lists what can be named, and what may be meant.
    """
    if (found := _entry(name, config)) is not None:
        called, entry = found
        return ModelName("endpoint", called, entry)
    if name == HUMAN:
        return ModelName("human", name)
    scheme, _, rest = name.partition(":")
    if scheme == "bot" and rest:
        return ModelName("bot", name, target=rest)
    if scheme == "openai" and rest:
        url = env.get("OPENAI_BASE_URL") or OPENAI_URL
        if fault := url_fault(url):
            raise ConfigError(f"the environment variable OPENAI_BASE_URL: {fault}")
        settings = ModelSettings(model=rest, base_url=url, api_key_env="OPENAI_API_KEY")
        return ModelName("endpoint", name, settings)
    if scheme in ("http", "https"):
        url, _, model = name.partition("#")
        fault = url_fault(url)
        if not model:
            fault = "no model is named"
        elif "?" in model and "=" in model:
            fault = "a query stands before the #"
        if fault:
            raise ConfigError(
                f"model {public(name)!r}: {fault}; an endpoint is named URL#MODEL, "
                "for example http://localhost:8000/v1#my-model"
            )
        return ModelName(
            "endpoint", f"{public_url(url)}#{model}", ModelSettings(model=model, base_url=url)
        )
    hint = unknown_model(name, config.models, (*config.judges, *config.panels, *PRESETS, *OFFLINE))
    raise ConfigError(f"unknown model {public(name)!r}{hint}")


def _entry(name: str, config: Config) -> tuple[str, ModelSettings] | None:
    """What ``NAME`` or ``NAME@REVISION`` is called, and its entry; ``None``: there is none."""
    entry = config.models.get(name)
    if entry is None:
        name, at, revision = name.rpartition("@")
        if not at or name not in config.models:
            return None
        entry = msgspec.structs.replace(config.models[name], revision=revision)
        for key, said in model_faults(entry):
            raise ConfigError(f"{public(name)}@{public(revision)}: {key}: {said}")
    revised = f"@{entry.revision}" if entry.revision is not None else ""
    return f"{entry.label or name}{revised}", entry


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


def _read_prompt(
    file: TomlFile, table: str, name: str, settings: CriterionSettings
) -> CriterionSettings:
    """A criterion with the text of its prompt file."""
    if is_taken(name) or not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise file.error(
            table,
            "a name is lower-case letters, digits and _ (at most 40), and none of BotChat's own,"
            " such as arena or unieval",
        )
    text = file.text_beside(table, "prompt", settings.prompt)
    try:
        return with_prompt(settings, text)
    except ValueError as error:
        raise file.error(f"{table}.prompt", str(error)) from None


def _checked(
    file: TomlFile,
    name: str,
    model: ModelSettings,
) -> ModelSettings:
    """An entry with the text of its ``system_prompt_file`` and whole paths of its other files.

    ``given``: its keys; ``status``: of the file.
    """
    table, folder = f"models.{name}", file.path.parent
    if _stands_for_else(name):
        raise file.error(
            table, "this name stands for something else; choose another, without a colon"
        )
    for key, said in model_faults(model):
        raise file.error(f"{table}.{key}", said)
    changed: dict[str, Any] = {}
    if model.system_prompt_file is not None:
        key = f"{table}.system_prompt_file"
        text = file.text_beside(key, "system prompt", model.system_prompt_file).strip()
        if not text:
            raise file.error(key, f"{model.system_prompt_file} is empty")
        changed |= {"system_prompt": text, "system_prompt_file": None}
    if model.api_key_file is not None:
        changed["api_key_file"] = str(folder / model.api_key_file)
    return msgspec.structs.replace(model, **changed)


def _check_labels(file: TomlFile, models: Mapping[str, ModelSettings]) -> None:
    """Refuse a label that is the name of something else."""
    names = {name: name for name, model in models.items() if model.label is None}
    for name, model in models.items():
        if (label := model.label) is None:
            continue
        if label in names or (label in models and label != name) or _stands_for_else(label, " + "):
            raise file.error(f"models.{name}.label", f"{label!r} is the name of something else")
        names[label] = name


def _stands_for_else(name: str, sign: str = ":") -> bool:
    return name in (HUMAN, *OFFLINE) or name in PRESETS or sign in name or not name.strip()
