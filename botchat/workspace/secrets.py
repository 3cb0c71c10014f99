"""Secrets, taken out of everything that is stored, logged or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_KEY_LIKE = re.compile(r"\bsk-[A-Za-z0-9_-]{12,}")
"""A key of somebody else."""


class Redactor:
    """Takes secrets out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(s for s in secrets if s and len(s) > 3)

    def clean(self, text: str) -> str:
        """``text`` as valid UTF-8, without any secret."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return _KEY_LIKE.sub("[key]", text).encode("utf-8", "replace").decode("utf-8")
