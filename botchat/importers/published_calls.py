"""Calls of a published run: every line is a call of a ledger, whoever wrote it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from botchat.errors import DataError, one_line
from botchat.interfaces import MOST_TOKENS
from botchat.records import UNANSWERED
from botchat.workspace.ledger import CanonicalRequest, StoredCall, request_key

MAX_LINE = 64 << 20
"""Bytes of a call; a reply's body has at most a quarter of them."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None
_Positive: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=2.5e11)]


class PublishedCall(StoredCall, frozen=True):
    """A line of a published run's calls: what no provider can have counted is refused."""

    prompt_tokens: _Count
    completion_tokens: _Count
    cached_tokens: _Count
    latency_s: _Positive
    cost_usd: _Positive | None


def read_calls(path: Path) -> Iterator[StoredCall]:
    """Yield a published run's calls. Raises DataError, with file and line.

    Every key is checked against its request: an edited request cannot answer for another.
    """
    place = str(path)
    try:
        with gzip.open(path) as file:
            for n, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
                place = f"{path}:{n}"
                if len(line) > MAX_LINE:
                    raise ValueError(f"longer than {MAX_LINE >> 20} MiB")
                call = msgspec.json.decode(line, type=PublishedCall)
                if request_key(bytes(call.request)) != call.key:
                    raise ValueError(f"the request does not match its key {call.key[:12]}…")
                if call.outcome in UNANSWERED:
                    raise ValueError(f"the outcome {call.outcome} is no answer")
                msgspec.json.decode(call.request, type=CanonicalRequest)
                yield call
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    except Exception as error:
        raise DataError(f"{place}: not a call of a published run: {one_line(error)}") from None
