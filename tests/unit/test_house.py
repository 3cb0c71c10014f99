"""The house that the code keeps: one direction, no circles, one name for one thing."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from botchat.requests.leaves import LEAVES

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed, by its dotted name."""
    found = {}
    for path in sorted((ROOT / "botchat").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imported(module: str, tree: ast.Module) -> Iterator[str]:
    """Modules of ours that a file names anywhere: at its top, in a function, for types.

    Requests name what commands give for type checkers alone: who does them they know as text.
    """
    if module.endswith("requests") or ".requests." in module:
        tree = ast.Module([node for node in tree.body if not isinstance(node, ast.If)], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            for one in node.names:
                below = f"{node.module}.{one.name}"
                yield below if below in modules() else node.module


def test_no_file_needs_itself():
    """Imports of files have no circle, also not inside a room, in a function or for types alone."""
    needs = {name: {*imported(name, tree)} - {name} for name, tree in modules().items()}
    try:
        order = [*TopologicalSorter(needs).static_order()]
    except CycleError as error:
        raise AssertionError(f"a circle of files: {' <- '.join(error.args[1])}") from None
    assert order.index("botchat.errors") < order.index("botchat.cli.main")


def test_a_class_name_stands_for_one_class():
    """Whoever reads a name knows which it is; a leading underscore makes no other name."""
    homes = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_rooms_are_few():
    """What stands on the landing, leaves aside, is seen at once; a verb is a file."""
    landing = {name.split(".")[1] for name in modules() if "." in name} - {"__main__"}
    assert len(landing - {*LEAVES}) <= 20
    verbs = [name for name in modules() if name.startswith("botchat.pipeline.")]
    assert len(verbs) <= 32
