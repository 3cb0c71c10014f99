"""The exact wording of every prompt: one text file each, sources in ``SOURCES.md``.

A new prompt is a text file here and a row of ``sources.toml``: ``files``, ``wording``, ``paper``,
``section`` and ``why``. ``pytest tests/unit/test_sources.py --update-tables`` makes ``SOURCES.md``
of it. Prompts in other languages are in their packs.
"""

import re
from collections.abc import Mapping, Set
from functools import cache
from importlib import resources

from botchat.errors import ConfigError
from botchat.frames import package_text

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@cache
def text(name: str) -> str:
    """Return the wording of a prompt (its file name without ``.txt``), outer newlines removed."""
    return package_text(f"prompts/{name}.txt").strip("\n")


def names(folder: str = "") -> set[str]:
    """Return the names of all prompts here, or in a folder such as ``roles/``."""
    files = resources.files(__name__).joinpath(folder).iterdir()
    return {f"{folder}{f.name.removesuffix('.txt')}" for f in files if f.name.endswith(".txt")}


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a wording with every ``{{placeholder}}`` replaced, in one pass.

    What is filled in is never searched for placeholders itself. Raises `ValueError` for a
    placeholder without a value, or a value without a placeholder.
    """
    wanted = places(template)
    if wanted != set(values):
        raise ValueError(f"placeholders {sorted(wanted)}, values {sorted(values)}: {template:.80}")
    return _PLACEHOLDER.sub(lambda place: values[place[1]], template)


def places(template: str) -> set[str]:
    """Return the names of the ``{{placeholder}}``s of a wording."""
    return set(_PLACEHOLDER.findall(template))


def refuse_places(template: str, wanted: Set[str], fault: str) -> None:
    """Raise `ConfigError` for other places than are wanted; ``fault`` begins its message."""
    if places(template) != wanted:
        needed = " and ".join(f"{{{{{place}}}}}" for place in sorted(wanted))
        raise ConfigError(f"{fault} {needed}, and no other place")
