"""What lets a model's requests in: its key, and headers from the environment."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botchat.errors import ConfigError
from botchat.workspace.secrets import has_key, names_secret

if TYPE_CHECKING:
    from botchat.workspace.config import ModelSettings

OPENAI_URL = "https://api.openai.com/v1"

COMMAND_S = 60.0
"""Seconds that a command has to print its key."""

OF_ENVIRONMENT = re.compile(r"(?:(?P<scheme>[A-Za-z]+) )?\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
"""A header's value that is an environment variable, alone or after a scheme such as Bearer."""


def api_key(settings: ModelSettings, env: Mapping[str, str] = os.environ) -> str | None:
    """The key for an endpoint, or ``None`` to ask without one.

    What ``api_key_command`` prints, the content of ``api_key_file``, or of the variable named by
    ``api_key_env`` (for OpenAI itself: ``OPENAI_API_KEY``); else ``BOTCHAT_API_KEY`` if set; else
    ``OPENAI_API_KEY``, but only for ``OPENAI_BASE_URL`` and this machine: a key is never sent to a
    host that it is not meant for. A command runs at every call, for at most `COMMAND_S`.
    Raises `ConfigError`, with the variable's name, where a key is required and not set.
    """
    if settings.api_key_command is not None:
        key = _printed(settings.api_key_command, settings.model, env)
        return _checked(key, "what its api_key_command prints")
    if settings.api_key_file is not None:
        return _checked(_key_in(settings.api_key_file, settings.model), "its api_key_file")
    named = settings.api_key_env
    if named is None and host(settings.base_url) == host(OPENAI_URL):
        named = "OPENAI_API_KEY"
    if named:
        key = env.get(named, "").strip()
        if not key:
            raise ConfigError(f"no key for {settings.model}: {unset(named, 'api_key_env')}")
        return _checked(key, shown_variable(named, "api_key_env"))
    if key := env.get("BOTCHAT_API_KEY", "").strip():
        return _checked(key, "BOTCHAT_API_KEY")
    ours = {host(env.get("OPENAI_BASE_URL", "")), "localhost", "127.0.0.1"}
    if host(settings.base_url) in ours and (key := env.get("OPENAI_API_KEY", "").strip()):
        return _checked(key, "OPENAI_API_KEY")
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
            secret = env.get(variable, "").strip()
            if not secret:
                raise ConfigError(
                    f"no header {name} for {settings.model}: {unset(variable, 'headers')}"
                )
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
    try:
        key = Path(file).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ConfigError(f"no key for {model}: its api_key_file is not text") from None
        why = error.strerror if isinstance(error, OSError) else "no file can have this name"
        raise ConfigError(
            f"no key for {model}: its api_key_file cannot be read ({why}); the path is "
            "relative to botchat.toml"
        ) from None
    if not key:
        raise ConfigError(f"no key for {model}: its api_key_file is empty; put the key into it")
    return key


def _printed(command: str, model: str, env: Mapping[str, str]) -> str:
    """What a command prints. Nothing of it, of its errors or of the command itself is shown."""
    failed = f"no key for {model}: its api_key_command"
    hint = "run it yourself to see why"
    try:
        # Not subprocess.run: after a timeout it waits for whoever else holds the pipe.
        with subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env),
        ) as process:
            try:
                said, _ = process.communicate(timeout=COMMAND_S)
            except BaseException:
                process.kill()
                raise
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{failed} gave no key within {COMMAND_S:g} s; {hint}") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no command can have this name"
        raise ConfigError(f"{failed} cannot be run ({why})") from None
    if process.returncode:
        raise ConfigError(f"{failed} ended with exit status {process.returncode}; {hint}")
    try:
        key = said.decode().strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{failed} printed no text; {hint}") from None
    if not key:
        raise ConfigError(f"{failed} printed nothing; {hint}")
    return key


def _checked(key: str, where: str) -> str:
    if not key.isascii() or not key.isprintable() or set(key) & set(" \"'"):
        raise ConfigError(
            f"the key in {where} has a character that no key can have (a blank, a quote mark?); "
            "set it again"
        )
    return key
