"""A workspace: the folder that holds seeds, generations, judgments, leaderboards and the ledger."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import socket
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from importlib import resources
from pathlib import Path

import msgspec

from botchat import languages
from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    MissingDataError,
    WorkspaceLockedError,
    did_you_mean,
)
from botchat.languages import Language
from botchat.records import (
    N_SEED,
    UNANSWERED,
    Dialogue,
    Judgment,
    Provenance,
    Seed,
    Unread,
    natural_sort_key,
    slug,
)
from botchat.workspace import config, jsonl
from botchat.workspace.ledger import Ledger
from botchat.workspace.secrets import public_arguments

log = logging.getLogger("botchat")

SAMPLE = "sample"
"""The seed set that comes with the package; every workspace has it."""

INVENTED = (
    "The set {} is invented: its dialogues were written for a demo, not by people. Never publish a "
    "ranking from it."
)

_HOLDER = "lock-holder"
"""File that says which process writes."""


class AboutSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``seeds/<set>.toml``: what is not in the lines of the set."""

    language: str = languages.EN
    source: str | None = None
    """The dataset on a hub that it was made from, at its commit."""
    invented: bool = False
    """Whether its dialogues were made up: its "people" are nobody."""


class Workspace:
    """Paths and records of one workspace. ``root`` is made when something is first written."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    @cached_property
    def config(self) -> config.Config:
        """``botchat.toml`` of this workspace, or the defaults."""
        return config.load(self.root / "botchat.toml")

    @property
    def hidden(self) -> Path:
        """Folder of what is not in git."""
        return self.root / ".botchat"

    @property
    def ledger_path(self) -> Path:
        """The call ledger."""
        return self.hidden / "ledger.sqlite3"

    def ledger(self, *, readonly: bool = False) -> Ledger:
        """The ledger, opened for writing under `locked`; to read, an empty one where none is."""
        if readonly and not self.ledger_path.exists():
            return Ledger(None)
        return Ledger(self.ledger_path, readonly=readonly)

    def seeds_path(self, name: str) -> Path:
        """File of the set ``name``."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise ConfigError(
                f"seed set {name!r}: a name is letters, digits, '.', '_' and '-' (at most 64)"
            )
        return self.root / "seeds" / f"{name}.jsonl"

    def about_path(self, name: str) -> Path:
        """File of what is not in the lines of the set ``name``, if anything is not."""
        return self.seed_sets().get(name, self.seeds_path(name)).with_suffix(".toml")

    def seed_sets(self) -> dict[str, Path]:
        """Every seed set with its file."""
        # The sample is inside the installed package, or beside it in a source checkout.
        package = Path(str(resources.files("botchat")))
        packaged = package / "data" / "sample.jsonl"
        sample = packaged if packaged.exists() else package.parent / "seeds" / "sample.jsonl"
        listed = sorted((self.root / "seeds").glob("*.jsonl"))
        return {SAMPLE: sample, **{path.stem: path for path in listed}}

    def seeds(self, name: str) -> list[Seed]:
        """The seeds of a set; `MissingDataError` if absent or empty, `DataError` as `read`."""
        folder, sets = self.seeds_path(name).parent, self.seed_sets()
        if (path := sets.get(name)) is None:
            raise MissingDataError(
                f"no seed set {name!r} in {folder}{did_you_mean(name, sets)} "
                f"(there are: {', '.join(sorted(sets))}); "
                f"make it with: botchat seeds import SOURCE --name {name}"
            )
        seeds = jsonl.read(path, Seed)
        if not seeds:
            raise MissingDataError(f"the seed set {path} is empty; import it again")
        twice, count = Counter(seed.id for seed in seeds).most_common(1)[0]
        if count > 1:
            raise DataError(f"{path}: seed id {twice!r} stands there {count} times; keep one")
        return seeds

    def write_seeds(
        self, name: str, seeds: list[Seed], language: str | None = None, source: str | None = None
    ) -> Path:
        """Store a set, in natural order of the ids.

        ``language`` (unless English) and ``source`` are stored beside it; where ``language`` is
        ``None``, what is there remains.
        """
        path = self.seeds_path(name)
        beside = path.with_suffix(".toml")
        try:
            invented = path.exists() and self.invented(name)
        except DataError:  # what cannot be read is written anew
            invented = False
        other = language if language != languages.EN else None
        said = {"language": other, "source": source, "invented": invented}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in said.items() if value]
        if lines:
            jsonl.write_atomic(beside, "".join(lines).encode())
        jsonl.finish(path, seeds, lambda seed: natural_sort_key(seed.id))
        if language == languages.EN and not lines:
            beside.unlink(missing_ok=True)
        return path

    def language(self, seed_set: str) -> Language:
        """The language of a set; raises `ConfigError` if there is no pack of it."""
        return self.language_named(self._about(seed_set).language)

    def source(self, seed_set: str) -> str | None:
        """The dataset on a hub that a set was made from, at its commit; see `seeds.hub.SYNTAX`."""
        return self._about(seed_set).source

    def invented(self, seed_set: str) -> bool:
        """Whether the dialogues of a set were made up: nothing there is of people."""
        return self._about(seed_set).invented

    def _about(self, seed_set: str) -> AboutSet:
        path = self.about_path(seed_set)
        try:
            return msgspec.toml.decode(path.read_bytes(), type=AboutSet)
        except FileNotFoundError:
            return AboutSet()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f'{path}: {error}; it has lines such as language = "zh"') from None

    def language_named(self, code: str) -> Language:
        """The language pack of that code: the workspace's own, or one that comes with BotChat."""
        folder = self.root / "languages" / code
        if code == languages.EN:
            return languages.ENGLISH
        if languages.CODE.fullmatch(code) and folder.is_dir():
            return languages.load(folder, code)
        if (found := languages.built_in().get(code)) is not None:
            return found
        beside = (self.root / "languages").glob(f"*/{languages.FILE}")
        here = {path.parent.name for path in beside}
        known = sorted({*languages.built_in(), *here})
        raise ConfigError(
            f"unknown language {code!r}; languages: {', '.join(known)}; a pack of your own is a "
            f"folder {self.root / 'languages' / 'CODE'}, see docs/languages.md"
        )

    def dialogues_path(self, seed_set: str, contestant: str) -> Path:
        """File of a contestant's dialogues."""
        return self.root / "generations" / seed_set / f"{slug(contestant)}.jsonl"

    def dialogues(self, seed_set: str, contestant: str) -> dict[str, Dialogue]:
        """A generated contestant's dialogues by seed id."""
        return read_dialogues(self.dialogues_path(seed_set, contestant))

    def all_dialogues(
        self, seed_set: str, *, unanswered: bool = False, held: bool = True
    ) -> dict[str, Mapping[str, Dialogue]]:
        """Every generated contestant's dialogues: contestant -> seed id -> dialogue.

        A model that has answered in none is no contestant, except with ``unanswered``. ``held``:
        in memory; else each contestant's are read when they are asked for.
        Those that do not begin with a ChatSEED of the set as it is now are left out and reported.
        """
        seeds = {seed.id: seed.utterances[:N_SEED] for seed in self.seeds(seed_set)}
        found: dict[str, Mapping[str, Dialogue]] = {}

        def current(dialogues: Mapping[str, Dialogue]) -> dict[str, Dialogue]:
            return {
                i: one
                for i, one in dialogues.items()
                if i in seeds and one.utterances[: len(seeds[i])] == seeds[i]
            }

        again = lru_cache(maxsize=1)(lambda path: current(read_dialogues(path)))
        for path in self.dialogue_files(seed_set):
            now = current(there := read_dialogues(path))
            if len(now) < len(there):
                log.warning(
                    "%s: %d dialogues do not belong to the set %s as it is now and do not count; "
                    "run generate again",
                    path,
                    len(there) - len(now),
                    seed_set,
                )
            if any(unanswered or one.answered for one in now.values()):
                name = next(iter(now.values())).contestant
                found[name] = now if held else Unread(partial(again, path), now)
        return dict(sorted(found.items()))

    def dialogue_files(self, seed_set: str) -> list[Path]:
        """The files of all generated contestants."""
        return sorted((self.root / "generations" / seed_set).glob("*.jsonl"))

    def judgments_path(self, seed_set: str, protocol: str, judge: str) -> Path:
        """File of a judge's judgments in a protocol."""
        return self.root / "judgments" / seed_set / protocol / f"{slug(judge)}.jsonl"

    def judgments(self, path: Path) -> dict[tuple[str, tuple[str, ...]], Judgment]:
        """A stage file's judgments by seed id and contestants in the order shown."""
        return jsonl.latest(jsonl.read(path, Judgment), judgment_key)

    def judgment_files(self, seed_set: str) -> dict[str, dict[str, Path]]:
        """Judge -> protocol -> stage file, of all judgments on a set; reads only first lines."""
        found: dict[str, dict[str, Path]] = {}
        for path in sorted((self.root / "judgments" / seed_set).glob("*/*.jsonl")):
            first = jsonl.first(path, Judgment)
            if first is not None and first.outcome in UNANSWERED:  # in every case?
                made = jsonl.read(path, Judgment)
                first = next((one for one in made if one.outcome not in UNANSWERED), None)
            if first is not None:
                found.setdefault(first.judge, {})[first.protocol] = path
        return found

    def measured_path(self, seed_set: str) -> Path:
        """File of what was asked for a set."""
        return self.root / "measured" / f"{seed_set}.jsonl"

    def measured(self, seed_set: str) -> dict[tuple[str, str, str], Provenance]:
        """What was asked for a set, by stage, contestant or judge, and model."""
        made = jsonl.read(self.measured_path(seed_set), Provenance)
        return {(one.stage, one.name, one.model): one for one in made}

    def out(self, seed_set: str) -> Path:
        """Default folder of a set's tables and figures."""
        return self.root / "leaderboards" / seed_set

    def _holder(self) -> str:
        with suppress(OSError):
            return (self.hidden / _HOLDER).read_text("utf-8").strip()
        return ""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer; `WorkspaceLockedError`, with its name, if another process is."""
        jsonl.make_folder(self.hidden)
        holder = self.hidden / _HOLDER
        try:
            lock = sqlite3.connect(
                self.hidden / "lock", timeout=0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise BotChatError(f"cannot lock {self.hidden}: {error}") from None
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            lock.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise BotChatError(f"cannot lock {self.hidden}: {error}") from None
            who = self._holder() or "another process"
            raise WorkspaceLockedError(
                f"the workspace {self.root} is in use by {who}; wait for it or stop it"
            ) from None
        try:
            for left in self.hidden.glob(f".{_HOLDER}.*"):  # by a process killed while it wrote
                left.unlink()
            said = f"botchat {public_arguments(sys.argv[1:])}"[:200]
            line = f"process {os.getpid()} on {socket.gethostname()}: {said}\n"
            jsonl.write_atomic(holder, line.encode("utf-8", "backslashreplace"), mode=0o600)
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.close()


def _digest(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def read_dialogues(path: Path) -> dict[str, Dialogue]:
    """A stage file's dialogues by seed id."""
    return jsonl.latest(jsonl.read(path, Dialogue), lambda dialogue: dialogue.seed_id)


def in_order(seeds: Iterable[Seed]) -> list[Seed]:
    """Seeds in the order of a set's file."""
    return sorted(seeds, key=lambda seed: natural_sort_key(seed.id))


def judgment_key(judgment: Judgment) -> tuple[str, tuple[str, ...]]:
    """What a judgment is about."""
    return (judgment.seed_id, judgment.contestants)


def judgment_order(judgment: Judgment) -> tuple[object, ...]:
    """Canonical order of a judgments file."""
    return (natural_sort_key(judgment.seed_id), judgment.contestants)


def dialogue_order(dialogue: Dialogue) -> tuple[object, ...]:
    """Canonical order of a generations file."""
    return natural_sort_key(dialogue.seed_id)
