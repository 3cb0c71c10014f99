"""How a request is made of its fields: they are its flags, its ``--help`` and its parameters.

A request (`botchat.requests`, and ``requests.py`` of `botchat.hub` and `botchat.papers`) is a
frozen dataclass, made one when it is first used: 45 of them at once take 50 ms. It pickles, and
knows by name who does it (``does``), so that nothing heavy is imported before it runs. Annotations
are read while the program runs: these files do without ``annotations`` of the future.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
)

from botchat.errors import ConfigError

if TYPE_CHECKING:
    from botchat.boards.writers import Formats
    from botchat.requests.meter import Meter
    from botchat.requests.results import Plan
    from botchat.workspace.folder import Workspace

GROUPS = (
    "every day",
    "begin",
    "step by step",
    "people and judges",
    "bring your own, share",
    "look after",
)
"""Of commands, in the order of ``--help``."""

EVERY_DAY, BEGIN, STEPS, JUDGES, SHARE, CARE = GROUPS

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


@dataclass(frozen=True)
class Arg:
    """How a field is said on the command line."""

    help: str = ""
    metavar: str | None = None
    flag: str = ""
    """Default: the field's own name, as ``--judge-model``."""
    word: bool = False
    """It has no flag: its place says what it is."""
    most: float = 2**63 - 1
    """Greatest number, either way."""
    choices: tuple[str, ...] = ()
    many: bool = False
    """Several behind one flag; else the flag is repeated."""


Word = partial(Arg, word=True)


@dataclass(frozen=True)
class Option:
    """A field of a request as its annotation declares it."""

    field: Field[Any]
    arg: Arg
    kind: type
    """Of one value: ``str``, ``int``, ``float``, ``bool``, ``Path``."""
    values: int | None
    """1; a fixed number of them; ``None``: any number."""

    @property
    def name(self) -> str:
        """As it is given: ``--seeds``, or the name of its place."""
        return self.field.name if self.arg.word else self.arg.flag or _flag(self.field.name)

    @property
    def is_needed(self) -> bool:
        """Whether a request cannot be made without it."""
        return self.field.default is MISSING and self.field.default_factory is MISSING


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Request(Generic[R]):
    """What a command is asked; ``run`` does it."""

    words: ClassVar[str] = ""
    """What calls it on the command line; empty: Python alone."""
    does: ClassVar[str] = ""
    """Module and function that do it: ``pipeline.generate:generate``."""
    group: ClassVar[str] = STEPS
    usual_dir: ClassVar[str] = ""
    """The workspace where none is named: this folder."""
    metered: ClassVar[bool] = False
    """It takes long, and says to a meter how far it is."""
    _kw_only: ClassVar[bool] = False

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        """Remember how `fields_of` makes a dataclass of it."""
        cls._kw_only = kw_only

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Be a dataclass before the first is made."""
        fields_of(cls)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Take a list or one text for several, and a text for a path."""
        for flag in flags_of(type(self)):
            given = getattr(self, flag.field.name)
            object.__setattr__(self, flag.field.name, _taken(given, flag))

    def run(self, workspace: "Workspace", *, meter: "Meter | None" = None) -> R:
        """Do it, on a workspace."""
        told = (meter,) if self.metered else ()
        return cast(R, doing(self.does)(self, workspace, *told))


def _taken(given: Any, flag: Option) -> Any:
    if given is None:
        return given
    if flag.values == 1:
        return flag.kind(given) if flag.kind is Path else given
    return tuple(flag.kind(one) for one in ([given] if isinstance(given, str | Path) else given))


def doing(does: str, before: str = "") -> Callable[..., object]:
    """The function that does what a request asks; ``before`` its name: that plans it."""
    module, _, name = does.partition(":")
    found: Callable[..., object] = getattr(import_module(f"botchat.{module}"), f"{before}{name}")
    return found


@dataclass
class Limits:
    """What a run may cost; ``None`` is no limit."""

    max_usd: Annotated[float | None, Arg("stop cleanly (exit 3) at this cost", "USD")] = None
    max_calls: Annotated[int | None, Arg("stop cleanly after so many calls", "N")] = None
    max_tokens: Annotated[int | None, Arg("stop cleanly after so many tokens", "N")] = None

    def __post_init__(self) -> None:
        """Refuse limits of 0 and below, NaN and infinity."""
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and not 0 < value < math.inf:
                what = f"{_flag(one.name)} {value}"
                raise ConfigError(f"{what}: give a number above 0, or leave it out")


@dataclass(frozen=True)
class Spending:
    """What a run may cost, and how its calls are sent."""

    limits: Limits = field(default_factory=Limits)
    batch: bool = False
    """Send every call through its endpoint's Batch API."""
    executor: Any = None
    """Who makes the calls: see `botchat.models.executor.WorkerPool`."""


FORMATS = ("csv", "md", "json", "tex", "parquet", "html")
"""Those of `botchat.boards.writers.WRITERS`, which is not imported before a command runs."""


class Tabled(Request[R], kw_only=True):
    """A request that writes tables."""

    formats: Annotated[
        Sequence[str], Arg("repeatable; of files of tables (csv)", flag="--format", choices=FORMATS)
    ] = ()

    @property
    def table_formats(self) -> "Formats | None":
        """As tables know them; ``None``: as always."""
        from botchat.boards.writers import Formats  # which no other request needs

        return Formats(tuple(self.formats)) if self.formats else None


@dataclass(frozen=True)
class JudgeName:
    """A judge as it is named on the command line."""

    name: Any
    """``rules``, a ``[judges]`` or ``[panels]`` entry, a preset, any model; or an async function
    from a case to the text of a reply."""
    model: str | None = None
    """Of a panel's agents that name none (``--judge-model``)."""


class Asking(Request[R], kw_only=True):
    """A request that asks models, and so costs money."""

    limits: Limits = field(default_factory=Limits)
    batch: Annotated[bool, Arg("at half price, in minutes to hours: the Batch API")] = False
    executor: Annotated[
        str | None, Arg("make the calls by workers: loky:N or dask://HOST:PORT", "EXECUTOR")
    ] = None

    def spending(self, workspace: "Workspace") -> Spending:
        """What the request says of cost."""
        limits = self.limits
        if limits.max_usd is None:
            limits = replace(limits, max_usd=workspace.config.run.max_usd)
        return Spending(limits, self.batch, self.executor)

    def plan(self, workspace: "Workspace") -> "Plan":
        """What `run` would send; errors as there, and nothing is sent or written."""
        return cast("Plan", doing(self.does, "plan_")(self, workspace))

    def run(
        self,
        workspace: "Workspace",
        spending: Spending | None = None,
        meter: "Meter | None" = None,
    ) -> R:
        """Do it, on a workspace; ``spending``: in place of what the request says of it.

        Raises:
            ConfigError, MissingDataError, DataError: before anything is sent.
            FatalModelError: a model could not answer at all; the others are done.
            LimitReached: a limit was reached; the same request goes on where this one stopped.
        """
        spending = spending or self.spending(workspace)
        return cast(R, doing(self.does)(self, workspace, spending, meter))


class Judged(Asking[R], kw_only=True):
    """A request that puts questions to the judge in its field ``judge``."""

    judge_model: Annotated[str | None, Arg("model of a panel's agents that name none", "MODEL")] = (
        None
    )

    @property
    def judge_name(self) -> JudgeName:
        """The judge with all that is said of it; `ConfigError` where none is named."""
        if not (name := vars(self)["judge"]):
            raise ConfigError(f"{self.words} asks a judge: name one with --judge")
        return JudgeName(name, self.judge_model)


def fields_of(request: type[Any]) -> tuple[Field[Any], ...]:
    """Those of a request or a group of flags, which is made a dataclass if it is none yet."""
    for part in reversed(request.__mro__):
        if issubclass(part, Request) and "__dataclass_fields__" not in vars(part):
            dataclass(frozen=True, kw_only=part._kw_only)(part)
    return fields(request)


def flags_of(request: type) -> tuple[Option, ...]:
    """The flags of a class: its own, then those of the classes that it is made of."""
    declared = {one.name: flag for one in fields_of(request) if (flag := _flag_of(one)) is not None}
    own = dict.fromkeys(name for part in request.__mro__ for name in inspect.get_annotations(part))
    return tuple(declared[name] for name in own if name in declared)


def _flag_of(one: Field[Any]) -> Option | None:
    if get_origin(one.type) is not Annotated:
        return None
    of, arg = get_args(one.type)
    if get_origin(of) is UnionType:
        (of,) = (part for part in get_args(of) if part is not NoneType)
    kinds = get_args(of)
    if get_origin(of) is None:
        return Option(one, arg, of, 1)
    return Option(one, arg, kinds[0], len(kinds) if get_origin(of) is tuple else None)


def groups_of(request: type) -> dict[str, type]:
    """Fields that are themselves a few flags: `Limits`."""
    return {one.name: one.type for one in fields_of(request) if one.type is Limits}


def verb(request: Callable[P, Request[R]]) -> "Callable[Concatenate[Workspace, P], R]":
    """A request as a function of a workspace, with its fields as parameters."""

    def do(workspace: "Workspace", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return request(*args, **kwargs).run(workspace)

    do.__name__ = do.__qualname__ = cast("type[Request[R]]", request).does.partition(":")[2]
    vars(do).update(request=request)
    return do


def explained(do: Any) -> Any:
    """A `verb` with its parameters and what they mean, for ``help``; a request with its fields."""
    if isinstance(do, type) and issubclass(do, Request):
        fields_of(do)
    if (request := getattr(do, "request", None)) is None or hasattr(do, "__signature__"):
        return do
    flags = {flag.field.name: flag for flag in flags_of(request)}
    parameters = [inspect.Parameter("workspace", inspect.Parameter.POSITIONAL_ONLY)]
    for one in inspect.signature(request).parameters.values():
        kind = getattr(one.annotation, "__origin__", one.annotation)
        parameters.append(one.replace(annotation=kind) if one.name in flags else one)
    do.__signature__ = inspect.Signature(parameters)
    told = [f"    {name}: {flag.arg.help}" for name, flag in flags.items()]
    do.__doc__ = "\n".join([inspect.getdoc(request) or "", "", "Args:", *told, ""])
    return do
