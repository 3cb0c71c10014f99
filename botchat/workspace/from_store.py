"""A set as it is in a store, as a workspace that can be read."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from botchat.errors import ConfigError, MissingError, did_you_mean
from botchat.languages import EN, Language
from botchat.records import HUMAN, slug
from botchat.workspace import accounts, config, files, stages
from botchat.workspace.config import Config, JudgeSettings, ModelSettings
from botchat.workspace.criteria import CriterionSettings, is_taken
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import KINDS
from botchat.workspace.store import Store

log = logging.getLogger("botchat")


class Stored(Workspace):
    """What a store has of a set; results go to the workspace of whoever reads it."""

    def __init__(self, root: Path, reader: Workspace, store: Store) -> None:
        super().__init__(root)
        self._reader, self.store = reader, store
        self._languages: dict[str, Language] = {}

    def out(self, seed_set: str) -> Path:
        """Default folder of a set's tables and figures: the reader's."""
        return self._reader.out(seed_set)

    def write_out(self, folder: Path, contents: Mapping[str, str | bytes]) -> None:
        """Write results; the reader notes the pages."""
        self._reader.write_out(folder, contents)

    def language_named(self, code: str) -> Language:
        """The language pack of that code: the store's, else as the reader has it."""
        if code not in self._languages:
            pack = {} if code == EN else stages.parts(self.store, f"languages/{code}")
            fetch(self, self.store, pack)
            known = super().language_named if pack else self._reader.language_named
            self._languages[code] = known(code)
        return self._languages[code]

    def filed(self, name: str) -> str:
        """A judge's name as its judgments are filed."""
        try:
            return config.model_name(name, self.config).name
        except ConfigError:
            return name


@contextmanager
def from_store(
    place: str,
    seed_set: str,
    judges: Sequence[str] = (),
    protocol: str | None = None,
    reader: Workspace | None = None,
    *,
    judged: bool = True,
) -> Iterator[Stored]:
    """A workspace with what a store has of a set, as long as the block lasts.

    Fetched are only the stage files of these ``judges`` (default: of all) and of people, and of
    ``protocol``, as its folder is called; of the ledger nothing, since stage files in a store say
    what their calls took. ``reader``: whose settings and language packs count where the store has
    none, and where results go (default: this folder). ``judged``: there must be judgments.

    Raises:
        ConfigError, BotChatError: no such store, or it cannot be read.
        MissingError: there is nothing of the set.
    """
    reader, store = reader or Workspace(Path()), Store(place)
    reader.seeds_path(seed_set)  # a name that can be one
    with tempfile.TemporaryDirectory(prefix="botchat-", ignore_cleanup_errors=True) as folder:
        made = Stored(Path(folder), reader, store)
        there = stages.parts(store, f"judgments/{seed_set}")
        generated = stages.parts(store, f"generations/{seed_set}")
        if not there and (judged or not generated):
            raise _nothing(store, seed_set, "judgments" if judged else "stage files")
        about: dict[str, list[str]] = {}
        of_set = (f"seeds/{seed_set}.jsonl", f"seeds/{seed_set}.toml", f"measured/{seed_set}.jsonl")
        for file in (stages.SETTINGS, *of_set):
            about |= stages.parts(store, file)
        unknown = fetch(made, store, about)
        made.config = with_entries(reader.config, made.root / stages.SETTINGS)
        names = [(name, made.filed(name)) for name in judges]
        unknown += fetch(made, store, generated | _asked(there, names, protocol))
        if unknown:
            log.warning(
                "what %s calls cost is not in the store %s; their ledger has it: botchat ledger "
                "pull %s",
                f"{unknown:,}",
                place,
                place,
            )
        yield made


def _asked(
    there: dict[str, list[str]], judges: Sequence[Sequence[str]], protocol: str | None
) -> dict[str, list[str]]:
    """Those of some judges, their controls and people, in one protocol; all where one is not there.

    ``judges``: the names that each may be filed as. What is filed of a judge begins as its name
    does, so some more may be among them.
    """
    names = {file: file.split("/")[3] for file in there if protocol in (None, file.split("/")[2])}
    begin = [tuple(f"{slug(name).rpartition('-')[0]}-" for name in named) for named in judges]
    starts = (*chain.from_iterable(begin), HUMAN)
    if begin and all(any(name.startswith(one) for name in names.values()) for one in begin):
        names = {file: name for file, name in names.items() if name.startswith(starts)}
    return {file: there[file] for file in names} or there


def _nothing(store: Store, seed_set: str, what: str) -> MissingError:
    """Names what is in the store instead."""
    made = ("judgments", "generations")
    sets = sorted({one for kind in made for one in store.folders(f"{stages.FOLDER}/{kind}")})
    if not sets:
        return MissingError(
            f"no stage files in the store {store.place}; a run with --store leaves them there, and "
            "so does botchat ledger push"
        )
    return MissingError(
        f"no {what} on {seed_set} in the store {store.place}{did_you_mean(seed_set, sets)}; it has "
        f"those on: {', '.join(sets)}"
    )


def fetch(workspace: Workspace, store: Store, wanted: Mapping[str, Sequence[str]]) -> int:
    """Write stage files of a store into an empty workspace, and note in its ledger what calls took.

    ``wanted``: stage file -> names of its parts. Returns of how many calls that is not known.
    """
    unknown, ordered = 0, {file: wanted[file] for file in stages.in_order(wanted)}
    with closing(workspace.ledger()) as ledger:
        for file, found in stages.read_parts(store, ordered):
            top = stages.newest(found, stages.fitting(workspace, file))
            stages.write_lines(
                workspace, file, {key: line.record for key, line in top.items() if line.record}
            )
            if (path := workspace.root / file).exists():
                at = max(part.at for part in found)
                os.utime(path, ns=(at, at))
            rows = []
            for line in top.values():
                if calls := stages.calls_of(file, line.record):
                    told = line.bills or b"[]"
                    if told == b"[]" or b"null" in told:
                        unknown += len(calls) - sum(map(bool, accounts.bills_told(told)))
                    rows.append((calls[0], "".join(c[: accounts.SHORT] for c in calls), told))
            ledger.note_bills(rows)
    return unknown


_TABLES = {"models": ModelSettings, "judges": JudgeSettings, "protocols": CriterionSettings}


def with_entries(config: Config, file: Path) -> Config:
    """The settings with those of a file in place of the same name, and without own languages."""
    found: dict[str, dict[str, Any]] = {}
    for one in files.read(file, stages.ShownEntry):
        kind, value = _TABLES.get(one.table) or KINDS.get(str(one.value.get("strategy"))), one.value
        if one.table == "models":  # no command, no header, no variable of the reader's
            value = {key: value[key] for key in stages.SHOWN if key in value}
        if kind is None or (one.table == "protocols" and is_taken(one.name)):
            continue
        try:
            found.setdefault(one.table, {})[one.name] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            log.warning("[%s.%s] of the store is passed over: %s", one.table, one.name, error)
    changed = {table: {**getattr(config, table), **new} for table, new in found.items()}
    return msgspec.structs.replace(config, languages={}, **changed)
