"""Commands that print a key: only those of the user's own ``botchat.toml`` run, and are shown.

What a store, a shard or a published run brings is text, never a `KeyCommand`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from botchat.errors import BotChatError, ConfigError
from botchat.workspace import files
from botchat.workspace.secrets import public_arguments

log = logging.getLogger("botchat")

COMMAND_S = 60.0
"""Seconds that a command has to print its key."""

_TOLD = "botchat/commands"

OTHERS = stat.S_IWGRP | stat.S_IWOTH


class KeyCommand(str):
    """An ``api_key_command`` as it was read from a settings file."""

    file: Path
    fault: str
    """Why it must not run; empty: it may."""

    @classmethod
    def of(cls, command: str, file: Path, status: os.stat_result) -> KeyCommand:
        """``status``: of the file while it was read."""
        made = cls(command)
        made.file, made.fault = file.absolute(), ""
        if (user := getattr(os, "geteuid", None)) is None:  # Windows has rights of another kind
            return made
        if status.st_uid != user():
            made.fault = f"{file} belongs to somebody else (user {status.st_uid}); copy it"
        elif status.st_mode & OTHERS:
            made.fault = f"others may write {file}; run: chmod go-w {shlex.quote(str(file))}"
        return made


def printed(command: str, model: str, env: Mapping[str, str]) -> str:
    """What a command prints; `ConfigError`, without it or its errors, where it is no key."""
    failed = f"no key for {model}: its api_key_command"
    if not isinstance(command, KeyCommand):
        raise ConfigError(f"{failed} is in no botchat.toml of this machine, and is not run")
    if command.fault:
        raise ConfigError(f"{failed} is not run: {command.fault}")
    _show(command, model, env)
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


def _show(command: KeyCommand, model: str, env: Mapping[str, str]) -> None:
    """Tell the command before its first use in a workspace."""
    digest = hashlib.sha256(f"{command.file}\0{command}".encode(errors="replace")).hexdigest()
    # Digests of what was told are in the user's own state: a workspace may come from elsewhere.
    state = env.get("XDG_STATE_HOME") or env.get("LOCALAPPDATA") or "~/.local/state"
    known: list[str] = []
    with suppress(OSError, ValueError, RuntimeError):
        known = (Path(state).expanduser() / _TOLD).read_text("ascii").split()
    if digest in known:
        return
    shown = public_arguments(shlex.split(command), env)
    log.warning("%s: the key of %s is what this command prints: %s", command.file, model, shown)
    with suppress(BotChatError, RuntimeError):  # it is told again
        told = Path(state).expanduser() / _TOLD
        files.write_atomic(told, "\n".join([*known, digest, ""]).encode(), mode=0o600)
