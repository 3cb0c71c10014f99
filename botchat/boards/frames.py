"""Records and rows as data frames, with the columns of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import pandas as pd

R = TypeVar("R")


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row each, with the keys of the first as columns, in their order."""
    return pd.DataFrame(list(rows))


def records(made: Iterable[msgspec.Struct], kind: type[msgspec.Struct]) -> pd.DataFrame:
    """A row a record and a column a field, as in a stage file; what is not known is missing."""
    rows = [msgspec.to_builtins(one) for one in made]
    return pd.DataFrame(rows, columns=list(kind.__struct_fields__))


class Results(list[R]):
    """What a command made, one for each contestant or protocol, with all of it as a frame."""

    def __init__(self, made: Iterable[R], rows: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(made)
        self.frame = frame_of(rows)
