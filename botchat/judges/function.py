"""A Python function as judge: what can be one, how it is called, and what tells it from another."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType

from botchat.errors import ConfigError, FatalModelError, LimitReached
from botchat.interfaces import Case, JudgeAnswer, settings_digest
from botchat.records import Remark


class JudgeFunction:
    """A function from a case to the text of a reply, or anything that can be called like one.

    It is checked once, where it is named. An async function may be under way for several cases; a
    plain one is called in a thread, for one case at a time.
    """

    models = ()

    def __init__(self, function: Callable[..., object]) -> None:
        """Raises `ConfigError` if it cannot be called with a case."""
        self._function = function
        self._one_at_a_time = threading.Lock()
        called = function
        while isinstance(called, partial):
            called = called.func
        kind = type(called)
        try:
            self.name = called.__name__
        except AttributeError:
            self.name = kind.__name__
        # A plain function may give an awaitable, too, but later.
        self.is_async = inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
            kind.__call__
        )
        self.parallel = 1
        if self.is_async:
            self.parallel = 16
        self._check_parameters()
        self.digest = settings_digest(_content_of(function))
        """Digest of the function's source, or of its code: a changed function is asked again."""

    @classmethod
    def of(cls, function: object) -> JudgeFunction:
        """Return a judge from Python as one of these; raises `ConfigError` if it cannot be one."""
        if isinstance(function, JudgeFunction):
            return function
        if callable(function):
            return cls(function)
        raise ConfigError(
            f"the judge {str(function)[:80]!r} is neither a name nor a function; give the name of "
            "a judge, or a function from a case to the text of a reply"
        )

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    async def answer(self, case: Case) -> JudgeAnswer:
        """Ask the function and read its reply, which is kept whole where it has no verdict.

        Raises `FatalModelError`, which names the function, if it fails or returns no text.
        """
        text = await self._ask(case)
        verdict, reason = case.read(text)
        if verdict is None:
            return JudgeAnswer(None, reason, transcript=(Remark(self.name, text),))
        return JudgeAnswer(verdict, reason)

    async def _ask(self, case: Case) -> str:
        if self.is_async:
            result = self._call(case)
        else:
            result = await asyncio.to_thread(self._call, case)
        if inspect.isawaitable(result):
            try:
                result = await result
            except LimitReached:
                raise
            except Exception as error:
                raise self._failure(case, error) from error
        if not isinstance(result, str):
            returned = " ".join(f"{type(result).__name__} {result!r}".split())[:80]
            raise FatalModelError(
                f"the judge function {self.name} returned no text but {returned}; return the text "
                "of a reply, such as 'Choice: No'"
            )
        return result.encode("utf-8", "replace").decode()

    def _call(self, case: Case) -> object:
        # In the thread itself: no future can hold a StopIteration.
        try:
            with self._one_at_a_time:
                return self._function(case)
        except LimitReached:
            raise
        except Exception as error:
            raise self._failure(case, error) from error

    def _failure(self, case: Case, error: Exception) -> FatalModelError:
        frame = traceback.extract_tb(error.__traceback__)[:2][-1]
        place = f"{PurePath(frame.filename).name}, line {frame.lineno}"
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return FatalModelError(
            f"the judge function {self.name} failed on {case.seed_id} "
            f"({', '.join(case.contestants)}): {reason} ({place}); correct it and run again"
        )

    def _check_parameters(self) -> None:
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):
            return  # some of C have none
        try:
            signature.bind("the case")
        except TypeError as error:
            raise ConfigError(
                f"the judge function {self.name} cannot be called with a case alone: {error}; let "
                "it take one argument, the case"
            ) from None


def _content_of(function: Callable[..., object]) -> object:
    """Return what decides what a function answers, JSON-ready and the same in every process.

    The source of a function in a file. Else its bytecode and the constants, names and defaults in
    it; of a partial its arguments too, of an object its class and its attributes.
    """
    if isinstance(function, partial):
        arguments = [_plain(value) for value in function.args]
        return [_content_of(function.func), arguments, _plain_items(function.keywords)]
    is_class = inspect.isclass(function)
    if not is_class and not inspect.isroutine(function):
        classes = [_content_of(each) for each in type(function).__mro__[:-1]]
        try:
            return [classes, _plain_items(vars(function))]
        except TypeError:  # it has slots, or is of C
            return [classes, _plain(function)]
    with suppress(OSError, TypeError):
        # Of code in "<string>" Python 3.13 shows lines of the command that ran it.
        if not inspect.getfile(function).startswith("<"):
            return inspect.getsource(function)
    if is_class:
        return [function.__qualname__, _plain_items(vars(function))]
    return _plain(function)


def _plain_items(values: Mapping[str, object]) -> list[object]:
    return [[name, _plain(values[name])] for name in sorted(values)]


def _plain(value: object) -> object:
    """Return a value JSON-ready; of an object whose text names its place in memory, its class."""
    if isinstance(value, MethodType | staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, FunctionType):
        return [_plain(value.__code__), _plain(value.__defaults__), _plain(value.__kwdefaults__)]
    if isinstance(value, partial):
        return _content_of(value)
    if isinstance(value, CodeType):
        return [value.co_code.hex(), list(value.co_names), _plain(value.co_consts)]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [_plain(item) for item in value]]
    if isinstance(value, set | frozenset):
        return [type(value).__name__, sorted(str(_plain(item)) for item in value)]
    if isinstance(value, dict):
        return sorted(str([_plain(key), _plain(item)]) for key, item in value.items())
    text = repr(value)
    if " at 0x" in text:
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return text
