"""The house that the code keeps: one direction, no circles, one name for one thing."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def modules() -> dict[str, str]:
    """The source of every module of the package and of every benchmark, by its dotted name."""
    found = {}
    for path in sorted([*(ROOT / "botchat").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[1:] if parts[0] == "benchmarks" else parts  # they import each other as files
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text("utf-8")
    return found


IMPORT = re.compile(r"^ *(?:import ([\w.]+)|from ([\w.]+) import (\([^)]*\)|.*))", re.M)


def imported(source: str) -> Iterator[str]:
    """Modules of ours that a file names anywhere: at its top, in a function, for types."""
    for plain, of, names in IMPORT.findall(source):
        if plain in modules():
            yield plain
        for name in re.findall(r"(\w+)(?: as \w+)?", names) if of in modules() else ():
            yield f"{of}.{name}" if f"{of}.{name}" in modules() else of


def test_no_file_needs_itself():
    """Imports of files have no circle, also not inside a room, in a function or for types alone."""
    needs = {name: {*imported(source)} - {name} for name, source in modules().items()}
    try:
        order = [*TopologicalSorter(needs).static_order()]
    except CycleError as error:
        raise AssertionError(f"a circle of files: {' <- '.join(error.args[1])}") from None
    assert order.index("botchat.errors") < order.index("botchat.cli.main")


def test_a_class_name_stands_for_one_class_and_rooms_are_few():
    """A leading underscore makes no other name; the landing is seen at once; a verb is a file."""
    homes = defaultdict(list)
    for module, source in modules().items():
        if not module.startswith("botchat"):
            continue
        for name in re.findall(r"^class _*(\w+)", source, re.M):
            homes[name].append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
    landing = {name.split(".")[1] for name in modules() if "." in name} - {"__main__"}
    assert len(landing) <= 22
    verbs = [name for name in modules() if name.startswith("botchat.pipeline.")]
    assert len(verbs) <= 32
