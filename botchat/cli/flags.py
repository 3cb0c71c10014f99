"""The command line's program, the flags that several commands have, and their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

from cyclopts import App, CoercionError, Group, Parameter, Token, convert
from cyclopts.help import DefaultFormatter, PanelSpec
from rich import box

from botchat.errors import UsageError
from botchat.pipeline.spending import JudgeName, Meter, Spending
from botchat.records import VERSION, Texts

if TYPE_CHECKING:
    from botchat.pipeline.resolved import ResolvedRun
    from botchat.results import Result as Result
    from botchat.workspace.folder import Workspace
else:  # annotations are read when a command line is, and these are not imported for that
    Result = Workspace = object


def _value(kind: Any, tokens: Sequence[Token]) -> Any:
    """Read the words of a flag; cyclopts would round 2.5, and take no word for the folder here."""
    kinds = (kind, *get_args(kind))
    for token in tokens:
        if int in kinds and "." in token.value:
            raise CoercionError(token=token, target_type=int)
        if Path in kinds and not token.value:
            raise CoercionError(token=token, target_type=Path)
    return convert(kind, tokens)


FLAGS = Group("Flags", sort_key=8)
app = App(
    name="botchat",
    help="Can this model hold a human conversation over many turns, who is best, and can the judge "
    "be trusted?",
    help_epilogue="Everywhere: --dir PATH (workspace), --json (one object), --quiet (no progress)",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    version=f"botchat {VERSION}",
    version_flags=["--version"],
    help_flags=["--help"],
    default_parameter=Parameter(negative=(), show_default=False, converter=_value),
    help_formatter=DefaultFormatter(panel_spec=PanelSpec(box=box.SIMPLE_HEAD, padding=0)),
    group_parameters=FLAGS,
    group_arguments=Group("Arguments", sort_key=7),
)
app["--help"].group = app["--version"].group = FLAGS
DAILY, BEGIN, STEPS, JUDGES, SHARE = (
    Group(name, sort_key=i)
    for i, name in enumerate(("Every day", "Begin", "Step by step", "Judges", "Share"))
)


Here = Annotated[
    Workspace | str | Path | None, Parameter(parse=False, help="a folder (the current one)")
]
Progress = Annotated[Meter | None, Parameter(parse=False, help="counts calls, tells progress")]
Judge = Annotated[
    str, Parameter(help="rules, an entry, a panel, control:PANEL, a model, or PACKAGE:FUNCTION")
]
JudgeModel = Annotated[str | None, Parameter(help="model of a panel's agents without one")]
Judges = Annotated[Texts, Parameter(help="repeatable; only these judges")]
Models = Annotated[Texts, Parameter(help="repeatable; see models")]
Seeds = Annotated[str, Parameter(help="seed set ([run] seeds, or the only one)")]
Protocol = Annotated[str | None, Parameter(help="such as unieval, arena-n16, gteval")]
Limit = Annotated[int | None, Parameter(help="only the first K seeds or items ([run] limit)")]
Replace = Annotated[bool, Parameter(help="overwrite stored dialogues that differ")]
Out = Annotated[Path | None, Parameter(help="output folder (a folder of leaderboards)")]
Formats = Annotated[
    Sequence[Literal["csv", "md", "json", "tex", "parquet"]],
    Parameter(help="repeatable; files of tables (csv)"),
]
Costs = Annotated[
    Spending,
    Parameter(name="*", group=Group("Cost", sort_key=9), help="limits: Spending(max_usd=5)"),
]


def describe(command: Callable[..., Result]) -> None:
    """Add what several commands have to a command's docstring, for ``help`` in Python."""
    lines = [inspect.cleandoc(command.__doc__ or "")]
    if "Args:" not in lines[0]:
        lines.append("\nArgs:")
    for name, hint in get_type_hints(command, include_extras=True).items():
        for part in get_args(hint):
            if isinstance(part, Parameter):
                lines.append(f"    {name}: {part.help}")
    command.__doc__ = "\n".join(lines)


def workspace_at(workspace: Here) -> Workspace:
    """Return a workspace: itself, a folder's, or that of the current folder."""
    from botchat.workspace.folder import Workspace as Folder

    if isinstance(workspace, Folder):
        return workspace
    return Folder(Path(workspace or ""))


def set_named(workspace: Workspace, name: str) -> str:
    """Return the seed set of that name, or the usual one."""
    from botchat.pipeline.contestants import seed_set_of

    return seed_set_of(workspace, name)


def run_at(
    workspace: Here,
    seeds: str,
    spending: Spending,
    models: Texts,
    limit: int | None,
) -> ResolvedRun:
    """Return a run with what all commands on a seed set ask for; it is read here."""
    from botchat.pipeline.resolved import ResolvedRun, read_seed_set

    place = workspace_at(workspace)
    seed_set = read_seed_set(place, set_named(place, seeds))
    limits = spending.within(place)
    return ResolvedRun(place, seed_set, limits, models=each_of(models), limit=limit)


def path_of(place: Path | str | None) -> Path | None:
    """Return a path, if one is given; `UsageError` for an empty one, which is the folder here."""
    if place == "":
        raise UsageError("an empty path; name a file or folder")
    return None if place is None else Path(place)


def each_of(values: Any) -> tuple[Any, ...]:
    """Return several values also where one was given alone."""
    if isinstance(values, str | Path | int) or callable(values):
        return (values,)
    return tuple(values)


def judge_names(values: Any) -> list[str]:
    """Return the names of judges; a function has its own."""
    return [JudgeName(judge).text for judge in each_of(values)]
