"""Records and rows as data frames, with the columns of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pandas as pd


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row each, with the keys of the first as columns, in their order."""
    return pd.DataFrame(list(rows))


def records(made: Iterable[msgspec.Struct], kind: type[msgspec.Struct]) -> pd.DataFrame:
    """A row a record and a column a field, as in a stage file; what is not known is missing."""
    rows = [msgspec.to_builtins(one) for one in made]
    return pd.DataFrame(rows, columns=list(kind.__struct_fields__))
