"""What a model's name and entry in ``botchat.toml`` stand for, and what is wrong with them.

Also what lets its requests in: its key, and headers from the environment.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from botchat.errors import ConfigError, did_you_mean
from botchat.records import HUMAN
from botchat.workspace.secrets import has_key, names_secret, public

OPENAI_URL = "https://api.openai.com/v1"

OF_ENVIRONMENT = re.compile(r"(?:(?P<scheme>[A-Za-z]+) )?\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
"""A header's value that is an environment variable, alone or after a scheme such as Bearer."""

DEEPEST = 64
"""Tables and lists within each other that a request may hold."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = re.compile(
    r"(?i)(content-.*|proxy-.*|host|transfer-encoding|connection|keep-alive|accept|accept-encoding"
    r"|expect|te|trailer|upgrade)"
)
"""Headers that carry the request itself."""

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
"""Part of a ``base_url`` that is an environment variable."""

_KEY_PLACES = "put the secret into the environment or a file, and name it in"

Layout = Literal["auto", "natural", "merge-leading", "placeholder-user"]
SystemRole = Literal["auto", "system", "system-in-user"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
# The upper limit is there because TOML has inf.
Price = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Rate = Annotated[float, msgspec.Meta(gt=0, le=1e12)]


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[models.NAME]`` entry: an endpoint's model."""

    model: str
    """As the endpoint knows it."""
    label: str | None = None
    """Name of the contestant; ``None``: that of the entry."""
    revision: str | None = None
    """Of what answers under this name: part of who that is, and of the contestant's name."""
    system_prompt: str | None = None
    """What it is told before a dialogue, in place of the paper's words; no judge is told it."""
    system_prompt_file: str | None = None
    """A file with that text, relative to ``botchat.toml``."""
    base_url: str = OPENAI_URL
    """``$NAME`` in it stands for an environment variable, where the call is made."""
    identity: str | None = None
    """Who answers, in place of the address, in the ledger's keys."""
    api_key_env: str | None = None
    """Environment variable that holds the key; ``None``: see `api_key`."""
    api_key_file: str | None = None
    """File that holds nothing but the key, relative to ``botchat.toml``."""
    key_header: str | None = None
    """Header that holds nothing but the key; ``None``: ``authorization``, with ``Bearer``."""
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
    max_concurrency: Positive = 64
    timeout_s: Rate = 300.0
    """Wall-clock time of one attempt."""
    extra: dict[str, Any] = {}
    """Fields added to every request body, such as ``top_p`` or ``reasoning_effort``."""


_SLIPS = (
    ("[“”„«»‘’]", '; write straight quotes: "…"'),
    (r"^\s*[\w.-]+\s*:", "; write = between a key and its value"),
    (r"=\s*\d+,\d+\s*(#.*)?$", "; write a decimal point, no comma"),
    (r"^\s*\[[\w.]*[\w ]* [\w ]*\]", '; a name with blanks stands in quotes: [models."my model"]'),
    (r"""=\s*('[^']*|"[^"]*)$""", "; close the quotes"),
    (r"=\s*[A-Za-z]", '; text stands in quotes: "…"'),
)
"""What a line looks like that is no TOML -> what to do about it."""


def slip(line: str) -> str:
    """What to do about a line that is no TOML, to end a message with; empty where it is unclear."""
    return next((told for how, told in _SLIPS if re.search(how, line)), "")


def url_fault(url: str) -> str | None:
    """Why an endpoint cannot be at ``url``; ``None``: it can. The text holds no login or query."""
    shown, name = public(url), ""
    if any(c.isspace() or not c.isprintable() or c == "\\" for c in url):
        return "a URL has no blanks, backslashes or control characters"
    wrong = f"{shown!r} is not an http(s) URL"
    try:
        parts = urlsplit(url)
        name = parts.hostname or ""
        name.encode("idna")  # as it is looked up: no empty part, none that is too long
        readable = ":" in name or re.fullmatch(r"[\w.-]*", name)
    except ValueError:
        readable = None
    if not readable:
        return f"{wrong}: its host cannot be read"
    if parts.scheme not in ("http", "https"):
        return f"{wrong}, such as http://localhost:8000/v1"
    if not name:
        return f"{wrong}: it has no host"
    with suppress(ValueError):
        if parts.port != 0:
            end = re.search(r"/(chat/completions|completions|responses|messages)/?$", parts.path)
            added = "which is added to it; leave that out"
            return f"{shown!r} ends with {end[0]}, {added}" if end else None
    return f"{shown!r}: a port is a number from 1 to 65535"


def entry_url_fault(url: str) -> str | None:
    """As `url_fault`, of an entry's ``base_url``, parts of which may be environment variables."""
    fault = url_fault(_VARIABLE.sub("1", url))
    return fault and (url_fault(url) or fault)


def address(settings: ModelSettings, env: Mapping[str, str] = os.environ) -> str:
    """Where a model is asked: its ``base_url`` with the values of environment variables.

    Raises `ConfigError`, with the variable's name: it is not set, or the address is no URL then.
    """
    missing = f"no address for {settings.model}"
    found = _VARIABLE.sub(lambda name: _value(env, name[1], "base_url", missing), settings.base_url)
    if found != settings.base_url and (fault := url_fault(found)):
        raise ConfigError(f"the address of {settings.model}, {settings.base_url}: {fault}")
    return found


def _value(env: Mapping[str, str], variable: str, setting: str, missing: str) -> str:
    """The value of a variable that a setting names; `ConfigError`: what is ``missing`` then."""
    if not (value := env.get(variable, "").strip()):
        raise ConfigError(f"{missing}: {unset(variable, setting)}")
    return value


def unknown_model(name: str, models: Collection[str], judges: Collection[str]) -> str:
    """What may have been meant by a name that is of no model, and what can be named."""
    if name in judges:
        return ": it is a judge; a contestant is a model"
    forms = [*sorted(models), "bot:NAME", "openai:MODEL", "URL#MODEL", HUMAN]
    known = f"; models that can be named: {', '.join(forms)}; judges: see botchat models"
    for looks_so, meant in _MEANT:
        if told := re.match(looks_so, name):
            return public(meant.format(*told.groups())) + known
    return f"{did_you_mean(name, [*models, *judges, HUMAN])}{known}"


_SCHEMES = ("bot", "openai")
_MEANT = (
    (r".*#|[\w.-]+:\d+(?:/|$)", ": an endpoint begins with http:// or https://"),
    (r"openai/(.*)", " (did you mean openai:{}?)"),
    (r"([\w.-]+/[\w.-]+)$", " (a served model is URL#{0})"),
    (r".*,", "; --model takes one name and is repeatable"),
    (r"((?:gpt|chatgpt|o\d)\b.*)", " (did you mean openai:{}?)"),
    *((rf"(?i){scheme}:(.+)", f" (did you mean {scheme}:{{}}?)") for scheme in _SCHEMES),
)
"""What a name looks like that is of no model -> what may have been meant."""


def model_faults(settings: ModelSettings) -> Iterator[tuple[str, str]]:
    """(key, what is wrong with it) of an entry.

    No text holds what may be a secret.
    """
    model, prompt, url = settings.model, settings.system_prompt, settings.base_url
    for key in ("label", "revision", "identity"):
        if fault := _name_fault(getattr(settings, key)):
            yield key, fault
    if prompt is not None and not prompt.strip():
        yield "system_prompt", "there is no text in it"
    if prompt is not None and settings.system_prompt_file is not None:
        yield "system_prompt_file", "the text is in system_prompt already; keep one"
    if model == HUMAN or model.startswith("bot:"):
        yield "model", f"{model} needs no entry; name it as it is"
    if not model.strip():
        yield "model", "the name that the endpoint knows is missing"
    if fault := entry_url_fault(url):
        yield "base_url", fault
    elif _VARIABLE.search(url) and settings.identity is None:
        yield "base_url", "with an environment variable in it, set identity too: who answers there"
    yield from _key_faults(settings)
    yield from _header_faults(settings)
    if taken := sorted({"model", "messages", "stream"} & set(settings.extra)):
        yield "extra", f"{taken[0]} is set by BotChat; leave it out"
    if fault := extra_fault(settings.extra):
        yield "extra", fault


def _key_faults(settings: ModelSettings) -> Iterator[tuple[str, str]]:
    named = settings.api_key_env
    if named and settings.api_key_file:
        yield "api_key_file", "the key is in api_key_env already; keep one"
    if named is not None and (not re.fullmatch(r"[A-Za-z_]\w*", named, re.A) or has_key(named)):
        said = "this is not the name of an environment variable; put the key itself into one, and "
        yield "api_key_env", f"{said}its name here"
    if settings.key_header is not None and (fault := _header_fault(settings.key_header)):
        yield "key_header", fault


def _header_faults(settings: ModelSettings) -> Iterator[tuple[str, str]]:
    taken = {(settings.key_header or "").lower()}
    for name, value in settings.headers.items():
        if fault := _header_fault(name):
            yield "headers", fault
        elif name.lower() in taken:
            yield "headers", f"{name} is set twice, here or by key_header; keep one"
        elif not fits_header(value):
            yield "headers", f"{name} has a character that no header can have"
        elif OF_ENVIRONMENT.fullmatch(value):
            pass
        elif names_secret(name) or re.search(r"(?i)token|secret|key|auth|cookie", name):
            yield (
                "headers",
                f"{name} is a secret: put it into the environment and write {name} = "
                '"$NAME of the variable" here',
            )
        elif has_key(value):
            yield "headers", f"{name} holds a key; put it into the environment and its $NAME here"
        taken.add(name.lower())


def _header_fault(name: str) -> str | None:
    if has_key(name):
        return "a key stands where the name of a header belongs"
    if not _TOKEN.fullmatch(name):
        return f"{name!r} is not the name of a header"
    if _OURS.fullmatch(name):
        return f"{name} is set by BotChat; leave it out"
    return None


def extra_fault(extra: dict[str, Any]) -> str | None:
    """Why ``extra`` cannot be sent as JSON, or should not; ``None``: it can."""
    waiting: list[tuple[str, Any, int]] = [(key, extra[key], 1) for key in extra]
    while waiting:
        key, value, depth = waiting.pop()
        if has_key(key):
            return "a key stands where a name belongs"
        if isinstance(value, str) and value and names_secret(key):
            return f"{key} is a secret: {_KEY_PLACES} api_key_env, api_key_file or headers"
        if isinstance(value, str) and has_key(value):
            return f"{key} holds a key: {_KEY_PLACES} api_key_env, api_key_file or headers"
        if depth > DEEPEST:
            return f"tables and lists are more than {DEEPEST} deep"
        if isinstance(value, dict):
            waiting += [(name, one, depth + 1) for name, one in value.items()]
        elif isinstance(value, list):
            waiting += [(key, one, depth + 1) for one in value]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{key} is {value}, which JSON does not have"
        elif isinstance(value, int) and not -(2**63) <= value < 2**64:
            return f"{key} is a whole number beyond 64 bits"
        elif not isinstance(value, str | int | float):
            return f"{key} is a {type(value).__name__}, which JSON does not have; write it as text"
    return None


def _name_fault(name: str | None) -> str | None:
    """Why ``name`` is no name for others to see."""
    if name is None:
        return None
    if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > 100:
        return "give a name of 1 to 100 printable characters"
    if has_key(name) or public(name) != name:
        return "a secret stands where a name belongs"
    return None


def api_key(settings: ModelSettings, env: Mapping[str, str] = os.environ) -> str | None:
    """The key for an endpoint, or ``None`` to ask without one.

    The content of ``api_key_file``, or of the variable named by ``api_key_env`` (for OpenAI itself:
    ``OPENAI_API_KEY``); else ``BOTCHAT_API_KEY`` if set; else ``OPENAI_API_KEY``, but only for
    ``OPENAI_BASE_URL`` and this machine: a key is never sent to a host that it is not meant for.
    Raises `ConfigError`, with the variable's name, where a key is required and not set.
    """
    if settings.api_key_file is not None:
        return _checked(_key_in(settings.api_key_file, settings.model), "its api_key_file")
    named = settings.api_key_env
    if named is None and host(settings.base_url) == host(OPENAI_URL):
        named = "OPENAI_API_KEY"
    if named:
        key = _value(env, named, "api_key_env", f"no key for {settings.model}")
        return _checked(key, shown_variable(named, "api_key_env"))
    ours = {host(env.get("OPENAI_BASE_URL", "")), "localhost", "127.0.0.1"}
    here = host(settings.base_url) in ours
    for variable in ("BOTCHAT_API_KEY", *(["OPENAI_API_KEY"] if here else [])):
        if key := env.get(variable, "").strip():
            return _checked(key, variable)
    return None


def header_values(
    settings: ModelSettings, env: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The headers of a model's requests, and those of their values that are secrets.

    Raises `ConfigError`, with the variable's name: it is not set, or holds what no header can.
    """
    found, secrets = {}, []
    for name, value in settings.headers.items():
        found[name] = value
        if asked := OF_ENVIRONMENT.fullmatch(value):
            variable = asked["name"]
            secret = _value(env, variable, "headers", f"no header {name} for {settings.model}")
            if not fits_header(secret):
                raise ConfigError(
                    f"the header {name} for {settings.model}: "
                    f"{shown_variable(variable, 'headers')} has a character that no header can have"
                )
            found[name] = f"{asked['scheme']} {secret}" if asked["scheme"] else secret
            secrets.append(secret)
    return found, tuple(secrets)


def fits_header(value: str) -> bool:
    """Whether a text can be a header's value: latin-1 without control characters."""
    return all("\x20" <= c <= "\x7e" or "\xa0" <= c <= "\xff" for c in value)


def host(url: str) -> str | None:
    """The host of a URL; ``None``: it has none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def shown_variable(name: str, setting: str) -> str:
    """A variable for messages, unless a key itself seems to stand where its name belongs."""
    plain = re.fullmatch(r"[A-Z_][A-Z0-9_]{0,59}", name) or names_secret(name)
    return name if plain and not has_key(name) else f"the variable that {setting} names"


def unset(variable: str, setting: str) -> str:
    """What is wrong, and what to do, where a variable that ``setting`` names has no value."""
    shown = shown_variable(variable, setting)
    what = f"the environment variable {shown}" if shown == variable else shown
    return f"{what} is not set; set it and run the command again"


def _key_in(file: str, model: str) -> str:
    # The message does not name the file: users put the key itself there by mistake.
    said = f"no key for {model}: its api_key_file"
    try:
        key = Path(file).read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{said} is not text") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no file can have this name"
        raise ConfigError(
            f"{said} cannot be read ({why}); the path is relative to botchat.toml"
        ) from None
    if not key:
        raise ConfigError(f"{said} is empty; put the key into it")
    return key


def _checked(key: str, where: str) -> str:
    if not key.isascii() or not key.isprintable() or set(key) & set(" \"'"):
        raise ConfigError(
            f"the key in {where} has a character that no key can have (a blank, a quote mark?); "
            "set it again"
        )
    return key
