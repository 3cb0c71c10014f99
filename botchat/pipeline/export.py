"""A set's run as a dataset that `datasets.load_dataset` reads in one call: a folder with a card."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from botchat.errors import ConfigError
from botchat.interfaces import Row
from botchat.pipeline.run.session import catalogue_of
from botchat.protocols.catalogue import Catalogue
from botchat.records import Judgment
from botchat.requests import Exporting
from botchat.requests.leaves import leaf
from botchat.requests.results import Told
from botchat.seeds import dataset
from botchat.workspace import files as store
from botchat.workspace.folder import INVENTED, Workspace, judgment_key

CARD = "README.md"

_ABOUT: Mapping[str, Callable[[Any], Hashable]] = {
    "seeds": attrgetter("id"),
    "generations": attrgetter("seed_id"),
    "judgments": judgment_key,
}
"""Stage -> what a record is about; the newest counts."""


_TEXT = """\
Made with BotChat from the seed set `{seed_set}`.{invented}

{listed}

```python
from datasets import load_dataset

run = load_dataset("{folder}")                        # all of it, a stage a split
judgments = load_dataset("{folder}", "judgments")     # one stage, its own columns
```

In `run` every split has the columns of all stages; those of the other stages are null.
`verdict`: null is no readable verdict, never a tie; what "1" means, its protocol says, and in
Parquet `winner` and `score` what it comes to. `signature` says what made a row; rows compare only
where signatures agree.
"""


def export(request: Exporting, workspace: Workspace) -> Told:
    """Write seeds, generations and judgments of a set to a folder, with a card.

    Files lie as in a workspace: ``parquet`` with fixed features; ``jsonl``, the bytes of the stage
    files, whose features are in the card; ``eee``: instead the board of a judge as records of Every
    Eval Ever. An export that is there is written again; any other folder must be empty.

    Raises:
        ConfigError: ``out`` holds what is not of this export, which would be read with it.
        MissingError, DataError: no such set, or a line that is no record.
    """
    out, form = request.out, request.form
    if form == "eee":
        return _records(request, workspace)
    if request.judge is not None or request.organization is not None:
        raise ConfigError("--judge and --organization go with --as eee; leave them out")
    contents, rows = dataset_files(workspace, request.seed_set, form, out.name or ".")
    return _written(out, contents, rows, f'read it with: datasets.load_dataset("{out}")')


def _written(out: Path, contents: Mapping[str, str | bytes], rows: list[Row], how: str) -> Told:
    """Write an export; ``how``: to read it."""
    _check(out, contents)
    store.write_all(out, contents)
    return Told({"rows": rows, "out": out}, [rows, f"written to: {out}; {how}"])


def _records(request: Exporting, workspace: Workspace) -> Told:
    from botchat.pipeline.run.read_set import board_of

    found, board = board_of(workspace, request.seed_set, request.judge)
    records = leaf("hub.every_eval_ever", "--eee").records
    contents: dict[str, str] = records(workspace, board, found.dialogues, request.organization)
    rows: list[Row] = [{"record": path, "bytes": len(told)} for path, told in contents.items()]
    return _written(request.out, contents, rows, "check them with: every_eval_ever validate")


def dataset_files(
    workspace: Workspace, seed_set: str, form: str, called: str
) -> tuple[dict[str, bytes], list[Row]]:
    """Name -> content of every file, the card first; a row a stage. ``called``: how to load it."""
    found = stage_files(workspace, seed_set)
    contents: dict[str, bytes] = {}
    rows: list[Row] = []
    result = partial(_result, catalogue_of(workspace, seed_set))
    for stage, paths in found.items():
        n_records = 0
        for name, path in paths.items():
            records = store.latest(store.read(path, dataset.STAGES[stage]), _ABOUT[stage])
            n_records += len(records)
            contents[f"{stage}/{seed_set}{name}.{form}"] = (
                dataset.parquet(stage, records.values(), result)
                if form == "parquet"
                else _lines(path)
            )
        rows.append({"stage": stage, "files": len(paths), "records": n_records})
    listed = "\n".join(
        f"- `{row['stage']}`: {row['records']:,} records in {row['files']} files" for row in rows
    )
    invented = f" {INVENTED.format(seed_set)}" if workspace.invented(seed_set) else ""
    text = _TEXT.format(seed_set=seed_set, invented=invented, listed=listed, folder=called)
    asked = workspace.measured_path(seed_set)
    if asked.exists():
        contents[f"measured/{seed_set}.jsonl"] = _lines(asked)
        text += f"`measured/{seed_set}.jsonl`: which models were asked for all this, and when.\n"
    card = dataset.card(f"BotChat run on {seed_set}", text, form, found)
    return {CARD: card.encode(), **contents}, rows


def _result(known: Catalogue, one: Judgment) -> dataset.Winner:
    """What a verdict comes to, where its protocol is known."""
    protocol = known.find(one.protocol)
    if protocol is None or one.verdict is None:
        return dataset.Winner()
    if protocol.shows != "one":
        (_, won), *_ = protocol.values(one)
        return dataset.Winner({1.0: one.contestants[0], 0.0: one.contestants[1]}.get(won, "tie"))
    numbers = [value for _, value in protocol.values(one)]
    if protocol.kind not in ("place", "choice"):
        numbers = [*(protocol.numbers(one.verdict) or ())]
    return dataset.Winner(score=fmean(numbers) if numbers else None)


def stage_files(workspace: Workspace, seed_set: str) -> dict[str, dict[str, Path]]:
    """Stage -> what follows the set in the name of a file -> the file; without empty ones."""
    workspace.seeds(seed_set)  # so that it is said if there is no such set
    found: dict[str, dict[str, Path]] = {"seeds": {"": workspace.seed_sets()[seed_set]}}
    for stage in ("generations", "judgments"):
        folder = workspace.root / stage / seed_set
        paths = sorted(path for path in folder.rglob("*.jsonl") if path.stat().st_size)
        if paths:
            found[stage] = {
                f"/{path.relative_to(folder).with_suffix('').as_posix()}": path for path in paths
            }
    return found


def _lines(path: Path) -> bytes:
    """The bytes of a stage file, without a torn last line, which no run has finished."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def _check(out: Path, contents: Mapping[str, Any]) -> None:
    """Refuse a folder in which anything would be lost, or read beside what is written."""
    card = out / CARD
    ours = card.is_file() and dataset.is_ours(card.read_text("utf-8", errors="replace"))
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and (name not in contents or (path == card and not ours)):
            raise ConfigError(f"{out} holds {name}, which is not of this export; name a new folder")
