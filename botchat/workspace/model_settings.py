"""Settings of ``[models.NAME]``: an endpoint's model, its key, and headers from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote, unquote_plus, urlsplit

import msgspec

from botchat.errors import ConfigError
from botchat.interfaces import MOST_TOKENS, Identity, Quirks, Usage
from botchat.records import HUMAN, Names
from botchat.workspace.secrets import KEY, SECRET_NAME, Env, public, public_url

OPENAI_URL = "https://api.openai.com/v1"

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?|.*:.*", re.ASCII)
_URL_TEXT = re.compile(r"[!-\[\]-~]+")  # no blanks, no backslashes
# Header value that is an environment variable, alone or after a scheme such as Bearer
_HEADER_VARIABLE = re.compile(rf"(?:[A-Za-z]+ )?{_VARIABLE.pattern}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[ -~\xa0-\xff]*")  # latin-1 without control characters
_RESERVED_HEADER = re.compile(r"(?i)content-.*|proxy-.*|host|transfer-encoding|connection|upgrade")

SystemRole = Literal["auto", "system", "system-in-user"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
# The upper limit is there because TOML has inf.
Price = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Rate = Annotated[float, msgspec.Meta(gt=0, le=1e12)]

UTTERANCE_TOKENS = 256
VERDICT_TOKENS = 512
"""Longest utterance, and verdict without debate, by default; the paper states no limit."""


def changed(settings: msgspec.Struct) -> dict[str, object]:
    """Return the settings that are not the defaults, in the order of the fields."""
    values = msgspec.structs.asdict(settings)
    for field in msgspec.structs.fields(settings):
        if values[field.name] == field.default:
            del values[field.name]
    return values


class Prices(NamedTuple):
    """USD per million tokens; None is unknown, which is never free."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None  # read from the provider's cache; None: as input
    share: float = 1.0  # of these prices, that is paid

    def cost(self, prompt: int | None, completion: int | None, cached: int = 0) -> float | None:
        """Return the cost of a call's tokens in USD; None if a price or a count is unknown."""
        if self.input == self.output == 0:
            return 0.0
        if self.input is None or self.output is None or prompt is None or completion is None:
            return None
        price = self.input
        if self.cached is not None:
            price = self.cached
        usd = completion * self.output + cached * price + (prompt - cached) * self.input
        return usd * self.share / 1e6

    def cost_of(self, usage: Usage, reported: float | None) -> float | None:
        """Return USD that a call cost: the greater of what is reported and its tokens' price.

        None if unknown: also of a report alone, and of zero, where the model has a price.
        """
        cached = usage.cached_tokens or 0
        by_tokens = self.cost(usage.prompt_tokens, usage.completion_tokens, cached)
        if reported is None:
            return by_tokens
        if self.cost(1, 1) and (reported == 0 or by_tokens is None):
            return None
        return max(reported, by_tokens or 0.0)


FREE = Prices(0.0, 0.0)  # models on this machine


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[models.NAME]`` entry: an endpoint's model."""

    model: str
    """Name that the endpoint knows."""
    display_name: str | None = None
    """Name of the contestant (default: that of the entry)."""
    revision: str | None = None
    """Version of the model: part of its identity and of the contestant's name."""
    system_prompt: str | None = None
    """System prompt of its dialogues, in place of the paper's; judges do not get it."""
    base_url: str = OPENAI_URL
    """``$NAME`` in it stands for an environment variable, read when a call is made."""
    identity: str | None = None
    """Name of the endpoint in the ledger's keys, in place of the address."""
    api_key_env: str | None = None
    """Environment variable that holds the key; see `api_key`."""
    headers: dict[str, str] = {}
    """Sent with every request; ``$NAME`` stands for an environment variable."""
    context_window: Positive | None = None
    temperature: Price | None = 0.0
    """Paper §4.1: 0 where applicable; ``"none"`` leaves it out of the request."""
    max_tokens: Positive | msgspec.UnsetType | None = msgspec.UNSET
    """Longest reply (default: `UTTERANCE_TOKENS`; as a judge, `VERDICT_TOKENS`)."""
    reasoning_tokens: Positive = 8192
    """Tokens of room for the reasoning of a model that thinks, beyond ``max_tokens``; at most half
    of the window is used. No part of its identity."""
    message_layout: Literal["auto", "natural", "merge-leading", "placeholder-user"] = "auto"
    system_role: SystemRole = "auto"
    price_input: Price | None = None
    price_output: Price | None = None
    price_cached: Price | None = None
    """USD per million tokens, None if unknown. ``price_cached`` is for tokens read from the
    provider's cache (default: as input)."""
    max_concurrency: Positive = 64
    timeout_s: Rate = 300.0
    """Wall-clock seconds of one attempt."""
    extra_body: dict[str, Any] = {}
    """Fields added to every request body, such as ``top_p`` or ``reasoning_effort``."""

    def __post_init__(self) -> None:
        """Refuse what no request can have; a message begins with the key and holds no secret."""
        _check_names(self)
        fault = url_fault(self.base_url)
        if fault:
            raise ValueError(f"base_url: {fault}")
        if _VARIABLE.search(self.base_url) and self.identity is None:
            raise ValueError("base_url: with an environment variable in it, set identity too")
        _check_headers(self.headers)
        for key in sorted({"model", "messages", "stream"} & set(self.extra_body)):
            raise ValueError(f"extra_body: {key} is set by BotChat; leave it out")
        for key, value in self.extra_body.items():
            _check_field(key, value)

    @property
    def prices(self) -> Prices:
        """Prices of its calls."""
        return Prices(self.price_input, self.price_output, self.price_cached)


def identity(settings: ModelSettings) -> Identity:
    """Return what decides an endpoint model's answers besides the request; free of secrets."""
    plain = {name: value for name, value in settings.headers.items() if "$" not in value}
    known: Identity = {
        "model": settings.model,
        "base_url": settings.identity or public_url(settings.base_url),
        "temperature": settings.temperature is not None,
        "layout": settings.message_layout,
        "system": settings.system_role,
        "extra": settings.extra_body,
    }
    # Only where they are set: ledgers made before these existed keep their keys.
    if settings.revision is not None:
        known["revision"] = settings.revision
    if plain:
        known["headers"] = plain
    return known


def reasoning_room(settings: ModelSettings, quirks: Quirks) -> int:
    """Return the tokens that a model would have for reasoning: at most half of its window."""
    window = settings.context_window or quirks.window or MOST_TOKENS
    return min(settings.reasoning_tokens, window // 2)


def url_fault(url: str, shown: str = "") -> str | None:
    """Return why no endpoint can be at ``url``, or None. Parts of ``url`` may be variables.

    ``shown`` stands for it in the message (default: its public form).
    """
    plain = _VARIABLE.sub("1", url)
    shown = shown or repr(public(url))
    try:
        parts = urlsplit(plain)
        is_url = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        is_url = False
    if not (is_url and _HOST.fullmatch(parts.hostname or "") and _URL_TEXT.fullmatch(plain)):
        return f"{shown} is not a URL such as http://localhost:8000/v1"
    end = re.search(r"/(chat/completions|completions|responses|messages)/?$", parts.path)
    if end:
        return f"{shown} ends with {end[0]}, which is added to it; leave that out"
    return None


class Access(NamedTuple):
    """Address of a server and what lets requests in; it can be sent to another process."""

    base_url: str
    """Address without its query."""
    query: str = ""
    """Added to every URL, with its question mark."""
    headers: Mapping[str, str] = {}
    secrets: Names = ()
    """Redacted from everything the server says."""


def access(settings: ModelSettings, env: Env = os.environ) -> Access:
    """Read key, headers and address of an entry. Raises `ConfigError` if one of them is not set.

    Every value that comes from the environment or stands in the URL's query is a secret, whatever
    its variable or field is called.
    """
    key = api_key(settings, env)
    model = settings.model
    values: list[str] = []

    def filled(text: str, use: str) -> str:
        """Return a text with the values of its variables; raises `ConfigError`."""

        def value(match: re.Match[str]) -> str:
            values.append(_value(env, match[1], f"no {use} for {model}"))
            return values[-1]

        return _VARIABLE.sub(value, text)

    headers = {}
    for name, text in settings.headers.items():
        header = text
        match = _HEADER_VARIABLE.fullmatch(text)
        if match:
            header = filled(text, f"header {name}")
            if not _HEADER_VALUE.fullmatch(header):
                raise ConfigError(
                    f"no header {name} for {model}: {_variable_text(match[1])} has a character "
                    "that no header can have"
                )
        headers[name.lower()] = header
    address = filled(settings.base_url, "address")
    shown = f"{public(settings.base_url)!r} with the values of its variables"
    fault = url_fault(address, shown)
    if fault:
        raise ConfigError(f"the address of {model}: {fault}")
    url, _, query = address.partition("?")
    login = urlsplit(url).netloc.rpartition("@")[0]
    if key and not login:
        headers.setdefault("authorization", f"Bearer {key}")
    for field in query.split("&"):
        # The value as servers may read it; of a field without one its name.
        text = field.split("=", 1)[-1]
        values += [unquote(text), unquote_plus(text)]
    secrets = [key or "", login, *values]
    known = tuple(secret for secret in dict.fromkeys(secrets) if secret)
    return Access(url.rstrip("/"), query and f"?{query}", headers, known)


def _check_names(settings: ModelSettings) -> None:
    """Refuse each key that holds no name."""
    names = {
        "model": settings.model,
        "display_name": settings.display_name,
        "revision": settings.revision,
        "identity": settings.identity,
    }
    for key, name in names.items():
        if name is None:
            continue
        if public(name) != name:
            raise ValueError(f"{key}: a secret stands where a name belongs")
        if not name.strip() or not (name.isprintable() or key == "model"):
            raise ValueError(f"{key}: give a name of printable characters")
    if settings.model == HUMAN or settings.model.startswith("bot:"):
        raise ValueError(f"model: {settings.model!r} is no model of an endpoint")
    variable = settings.api_key_env
    if variable and (not re.fullmatch(r"[A-Za-z_]\w*", variable, re.A) or KEY.search(variable)):
        raise ValueError(
            "api_key_env: this is no name of an environment variable; put the key into one"
        )


def _check_headers(headers: Mapping[str, str]) -> None:
    """Refuse a header that cannot be sent, or should not."""
    names = [name.lower() for name in headers]
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"headers: {name!r} or its value has a character that no header can have"
            )
        if _RESERVED_HEADER.fullmatch(name) or names.count(name.lower()) > 1:
            raise ValueError(f"headers: {name} is set by BotChat, or twice; leave it out")
        is_secret = SECRET_NAME.search(name) or re.search(r"(?i)token|secret|key|auth|cookie", name)
        if (is_secret or KEY.search(value)) and not _HEADER_VARIABLE.fullmatch(value):
            raise ValueError(
                f"headers: {name} is a secret; put it into an environment variable and write "
                f'{name} = "$NAME"'
            )


def _check_field(key: str, value: object) -> None:
    """Refuse a field of a body that cannot be sent as JSON, or should not."""
    is_secret = KEY.search(key)
    if isinstance(value, str) and value:
        is_secret = is_secret or SECRET_NAME.search(key) or KEY.search(value)
    if is_secret:
        raise ValueError(
            f"extra_body: {key} is a secret; put it into the environment and name it in api_key_env"
        )
    if isinstance(value, dict):
        for name, item in value.items():
            _check_field(name, item)
    elif isinstance(value, list):
        for item in value:
            _check_field(key, item)
    elif not _is_json(value):
        raise ValueError(
            f"extra_body: {key} is {str(value)[:40]}, which JSON does not have; write it as text"
        )


def _is_json(value: object) -> bool:
    """Return whether JSON has a value that is no list or table."""
    if isinstance(value, int | float):
        return -(2**63) <= value < 2**64
    return value is None or isinstance(value, str)


def api_key(settings: ModelSettings, env: Env = os.environ) -> str | None:
    """Return the key for an endpoint, or None to call it without one.

    The variable named by ``api_key_env`` (for OpenAI: ``OPENAI_API_KEY``); else ``BOTCHAT_API_KEY``
    if set; else ``OPENAI_API_KEY``, but only for ``OPENAI_BASE_URL`` and this machine: a key is
    never sent to a host that it is not meant for. Raises ConfigError for none or no key.
    """
    variable = settings.api_key_env
    host = _host(settings.base_url)
    if variable is None and host == _host(OPENAI_URL):
        variable = "OPENAI_API_KEY"
    if variable is None:
        ours = (_host(env.get("OPENAI_BASE_URL", "")), "localhost", "127.0.0.1")
        names = ["BOTCHAT_API_KEY"]
        if host in ours:
            names.append("OPENAI_API_KEY")
        variable = next((name for name in names if env.get(name, "").strip()), None)
    if not variable:
        return None
    key = _value(env, variable, f"no key for {settings.model}")
    if not re.fullmatch(r"[!#-&(-~]+", key):  # no blanks, no quotation marks
        raise ConfigError(
            f"{_variable_text(variable)} has a character that no key can have; set it again"
        )
    return key


def _host(url: str) -> str | None:
    if url_fault(url):
        return None
    return urlsplit(url).hostname


def _value(env: Env, variable: str, missing: str) -> str:
    value = env.get(variable, "").strip()
    if value:
        return value
    raise ConfigError(f"{missing}: {_variable_text(variable)} is not set; set it and try again")


def _variable_text(variable: str) -> str:
    """Return a variable for messages, unless a key itself seems to stand where its name belongs."""
    if (variable.isupper() or SECRET_NAME.search(variable)) and not KEY.search(variable):
        return f"the environment variable {variable}"
    return "a variable of its entry"
