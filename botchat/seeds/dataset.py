"""A run as a Hugging Face dataset: features of the stage files, Parquet of their records, a card.

`datasets` guesses a type for each column from a file's first rows, so that a file that begins with
nulls or empty lists cannot stand before one that has values. Features say what is there.
"""

from __future__ import annotations

import io
import typing
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from botchat.errors import ConfigError
from botchat.records import VERSION, Dialogue, Judgment, Seed

if TYPE_CHECKING:
    from datasets import Features

STAGES: Mapping[str, type[msgspec.Struct]] = {
    "seeds": Seed,
    "generations": Dialogue,
    "judgments": Judgment,
}
"""Folder of a workspace, and configuration of the dataset -> what a line of it is."""


class Winner(msgspec.Struct, frozen=True):
    """What a verdict comes to, beside it in Parquet: what ``"1"`` means, its protocol says."""

    winner: str | None = None
    """The contestant that is better, or ``tie``; ``None``: unreadable, or only one was shown."""
    score: float | None = None
    """Of a dialogue alone: the mean of the points; where a machine is looked for 1: none found."""


WHOLE = "run"
"""The configuration that has each of `STAGES` as a split."""

TAG = "botchat"
"""Of a card; a folder with a card that has it is ours to write again."""

_ROWS = 1_000
"""Records of a row group."""

_DTYPES = {str: "string", int: "int64", float: "float64", bool: "bool"}


def features(stage: str, *, results: bool = False) -> Features:
    """What `datasets` reads a stage's jsonl with: ``load_dataset("json", …, features=…)``.

    ``stage``: of `STAGES`, or `WHOLE`, the columns of all of them. ``results``: of Parquet, where
    judgments have those of `Winner`, too.
    """
    from datasets import Features

    if stage == WHOLE:
        parts = (features(one, results=results) for one in STAGES)
        return Features({key: of for part in parts for key, of in part.items()})
    if stage not in STAGES:
        raise ConfigError(f"no stage {stage!r}; give one of {', '.join([*STAGES, WHOLE])}")
    beside = _fields(Winner) if results and stage == "judgments" else {}
    return Features({**_fields(STAGES[stage]), **beside})


def parquet(
    stage: str,
    records: Iterable[msgspec.Struct],
    result: Callable[[Judgment], Winner] = lambda _: Winner(),
) -> bytes:
    """A Parquet file of a stage's records, with its features whatever the records have.

    ``result``: what a judgment comes to.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    def row(one: msgspec.Struct) -> dict[str, Any]:
        beside = msgspec.to_builtins(result(one)) if isinstance(one, Judgment) else {}
        return {**msgspec.to_builtins(one), **beside}

    schema = features(stage, results=True).arrow_schema
    file = io.BytesIO()
    rest = iter(records)
    with ParquetWriter(file, schema) as writer:
        while rows := [row(one) for one in islice(rest, _ROWS)]:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return file.getvalue()


def card(title: str, text: str, suffix: str, stages: Iterable[str]) -> str:
    """The ``README.md`` of a dataset whose files lie as in a workspace and end in ``suffix``.

    ``text``: Markdown below its title. ``stages``: those that have files.
    """
    from huggingface_hub import DatasetCardData

    paths = {stage: f"{stage}/**/*.{suffix}" for stage in stages}
    configs: list[dict[str, Any]] = [
        {
            "config_name": WHOLE,
            "default": True,
            "data_files": [{"split": stage, "path": path} for stage, path in paths.items()],
        },
        *(
            {"config_name": stage, "data_files": [{"split": "train", "path": path}]}
            for stage, path in paths.items()
        ),
    ]
    known = {name: features(name, results=suffix == "parquet") for name in (WHOLE, *paths)}
    info = [{"config_name": name, "features": of._to_yaml_list()} for name, of in known.items()]
    data = DatasetCardData(
        pretty_name=title,
        tags=[TAG, "llm-as-a-judge", "dialogue"],
        configs=configs,
        dataset_info=info,
        botchat={"version": VERSION},
    )
    return f"---\n{data.to_yaml()}\n---\n\n# {title}\n\n{text}"


def is_ours(card_text: str) -> bool:
    """Whether `card` has made it."""
    head = card_text.split("\n---\n", 1)[0].splitlines()
    return head[:1] == ["---"] and f"- {TAG}" in [line.strip() for line in head]


def _fields(record: type[msgspec.Struct]) -> dict[str, Any]:
    """Name -> feature, of a struct's fields in their order."""
    hints = typing.get_type_hints(record)
    return {name: _feature(hints[name]) for name in record.__struct_fields__}


def _feature(hint: Any) -> Any:
    """What `datasets` calls a type of `botchat.records`; whatever may be missing is nullable."""
    from datasets import List, Value

    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _fields(hint)
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind in (UnionType, typing.Union):
        known = [one for one in inner if one not in (type(None), msgspec.UnsetType)]
        return _feature(known[0])
    if kind is Literal:
        return Value("string")
    if kind is tuple:
        return List(_feature(inner[0]))
    return Value(_DTYPES[hint])
