"""A workspace: the folder that holds seeds, generations, judgments, leaderboards and the ledger."""

import json
import os
import re
import socket
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from importlib import resources
from itertools import chain
from pathlib import Path, PurePath
from typing import TypeAlias

import msgspec

from botchat import languages
from botchat.errors import (
    BotChatError,
    ConfigError,
    DataError,
    MissingDataError,
    WorkspaceLockedError,
    did_you_mean,
    listed,
    log,
    one_line,
)
from botchat.frames import TomlTable
from botchat.interfaces import KnownCase
from botchat.languages import Language
from botchat.records import (
    N_SEED,
    UNANSWERED,
    Dialogue,
    Dialogues,
    Judgment,
    Names,
    Provenance,
    Seed,
    Seeds,
    natural_sort_key,
    slug,
)
from botchat.workspace import config, jsonl
from botchat.workspace.ledger import Ledger

SAMPLE = "sample"
"""The seed set that comes with the package; every workspace has it."""

INVENTED = "The set {} is invented, not human dialogues: never publish a ranking from it."


PORTABLE = r"(?!(?i:con|prn|aux|nul|(?:com|lpt)[1-9\u00b9\u00b2\u00b3])(?:\.|$)|.*\.$)"
"""Begins a pattern of names; none that Windows refuses, as ``con.csv`` and ``a.``, matches it."""


CaseKey: TypeAlias = tuple[str, Names]
"""Seed id and contestants, in the order shown, of a case in one protocol."""

JudgmentFiles: TypeAlias = dict[str, dict[str, Path]]
"""Judge -> protocol -> stage file."""

# Bytes of a stage file that tell whose it is
_FIRST_LINES = 1 << 12


class AboutSet(TomlTable, frozen=True, omit_defaults=True):
    """``seeds/<set>.toml``: facts about a set that its lines lack."""

    language: str = languages.EN
    source: str | None = None
    """The dataset of a hub that it was imported from, at its commit."""
    invented: bool = False
    """Whether its dialogues were written for a demo, not by people."""


def shipped(path: str) -> Path:
    """Return a data file of the project: of the package, or of its clone."""
    package = Path(str(resources.files("botchat")))
    packed = package / "data" / PurePath(path).name
    if packed.exists():
        return packed
    return package.parent / path


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
        """Folder of files that are not for git."""
        return self.root / ".botchat"

    @property
    def ledger_path(self) -> Path:
        """The call ledger."""
        return self.hidden / "ledger.sqlite3"

    def ledger(self, *, readonly: bool = False) -> Ledger:
        """Open the ledger, for writing under `locked`; to read, an empty one where none is."""
        if readonly and not self.ledger_path.exists():
            return Ledger(None)
        return Ledger(self.ledger_path, readonly=readonly)

    def seeds_path(self, name: str) -> Path:
        """Return the file of a set."""
        if not re.fullmatch(PORTABLE + r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise ConfigError(
                f"seed set {name!r}: a name is letters, digits, '.', '_' and '-' (at most 64) that "
                "Windows allows"
            )
        return self.root / "seeds" / f"{name}.jsonl"

    def about_path(self, name: str) -> Path:
        """Return the file of `AboutSet`."""
        return self.seed_sets().get(name, self.seeds_path(name)).with_suffix(".toml")

    def seed_sets(self) -> dict[str, Path]:
        """Return every seed set with its file; the sample's is in the package, or in its clone."""
        own = sorted((self.root / "seeds").glob("*.jsonl"))
        return {SAMPLE: shipped("seeds/sample.jsonl"), **{path.stem: path for path in own}}

    def seeds(self, name: str) -> list[Seed]:
        """Read a set; raises MissingDataError if it is unknown or empty, DataError if invalid."""
        self.seeds_path(name)
        sets = self.seed_sets()
        path = sets.get(name)
        if path is None:
            raise MissingDataError(
                f"no seed set {name!r}{did_you_mean(name, sets)}; sets: {listed(sorted(sets))}; "
                f"import it with: botchat import SOURCE --seeds {name}"
            )
        seeds = jsonl.read(path, Seed)
        if not seeds:
            raise MissingDataError(f"the seed set {path} is empty; import it again")
        seed_id, count = Counter(seed.id for seed in seeds).most_common(1)[0]
        if count > 1:
            raise DataError(f"{path}: seed id {seed_id!r} occurs {count} times; keep one")
        return seeds

    def write_seeds(
        self, name: str, seeds: list[Seed], language: str | None = None, source: str | None = None
    ) -> Path:
        """Store a set, in natural order of ids; its ``.toml`` changes only with a ``language``."""
        path = self.seeds_path(name)
        if language is not None:
            facts = msgspec.to_builtins(AboutSet(language, source, self.about(name).invented))
            lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in facts.items())
            if lines:
                jsonl.write_atomic(path.with_suffix(".toml"), lines.encode())
            else:
                path.with_suffix(".toml").unlink(missing_ok=True)
        jsonl.finish(path, seeds, lambda seed: natural_sort_key(seed.id))
        return path

    def about(self, seed_set: str) -> AboutSet:
        """Return the facts of a set."""
        path = self.about_path(seed_set)
        try:
            return msgspec.toml.decode(path.read_bytes(), type=AboutSet)
        except FileNotFoundError:
            return AboutSet()
        except Exception as error:
            raise DataError(
                f'{path}: {one_line(error)}; it has lines such as language = "zh"'
            ) from None

    def language(self, seed_set: str) -> Language:
        """Return the language of a set; raises ConfigError if there is no pack of it."""
        return self.language_named(self.about(seed_set).language)

    def language_named(self, code: str) -> Language:
        """Return the language pack of a code: the workspace's own, or one of BotChat."""
        folder = self.root / "languages"
        packs = languages.built_in()
        if code != languages.EN and languages.CODE.fullmatch(code) and (folder / code).is_dir():
            return languages.load(folder / code, code)
        if code in packs:
            return packs[code]
        own = [path.parent.name for path in folder.glob(f"*/{languages.FILE}")]
        raise ConfigError(
            f"unknown language {code!r}; languages: {', '.join(sorted(packs.keys() | own))}; "
            f"{folder / 'CODE'} may have a pack of your own, see docs/languages.md"
        )

    def dialogues_path(self, seed_set: str, contestant: str) -> Path:
        """Return the file of a contestant's dialogues."""
        return self.root / "generations" / seed_set / f"{slug(contestant)}.jsonl"

    def dialogues(self, seed_set: str, contestant: str) -> dict[str, Dialogue]:
        """Read a generated contestant's dialogues by seed id."""
        return read_dialogues(self.dialogues_path(seed_set, contestant))

    def all_dialogues(
        self, seed_set: str, seeds: Seeds | None = None, *, unanswered: bool = False
    ) -> Dialogues:
        """Return every generated contestant's dialogues.

        Left out are models without any answered dialogue, except with ``unanswered``, and
        dialogues that begin with no ChatSEED of the set. ``seeds``: the set, if it was read.
        """
        if seeds is None:
            seeds = self.seeds(seed_set)
        starts = {seed.id: seed.utterances[:N_SEED] for seed in seeds}
        contestants = {}
        for path in self.dialogue_files(seed_set):
            stored = read_dialogues(path)
            dialogues = {}
            for key, dialogue in stored.items():
                start = starts.get(key)
                if start is not None and dialogue.utterances[: len(start)] == start:
                    dialogues[key] = dialogue
            n_other = len(stored) - len(dialogues)
            if n_other:
                log.warning(
                    f"{path}: {n_other} dialogues do not belong to the set {seed_set} and do not "
                    "count; generate again"
                )
            if any(unanswered or dialogue.answered for dialogue in dialogues.values()):
                name = next(iter(dialogues.values())).contestant
                if name in contestants:
                    raise DataError(f"{path}: a second file of {name}; keep one")
                contestants[name] = dialogues
        return dict(sorted(contestants.items()))

    def dialogue_files(self, seed_set: str) -> list[Path]:
        """Return the files of all generated contestants."""
        return sorted((self.root / "generations" / seed_set).glob("*.jsonl"))

    def judgments_path(self, seed_set: str, protocol: str, judge: str) -> Path:
        """Return the file of a judge's judgments in a protocol."""
        return self.root / "judgments" / seed_set / protocol / f"{slug(judge)}.jsonl"

    def judgments(self, path: Path) -> dict[CaseKey, Judgment]:
        """Read a stage file's judgments by seed id and contestants in the order shown."""
        return {judgment_key(judgment): judgment for judgment in jsonl.read(path, Judgment)}

    def judgment_files(self, seed_set: str) -> JudgmentFiles:
        """Return the stage files that have an answered judgment, which is all that is read."""
        files: JudgmentFiles = {}
        for path in sorted((self.root / "judgments" / seed_set).glob("*/*.jsonl")):
            for judgment in chain.from_iterable(jsonl.blocks(path, Judgment, _FIRST_LINES)):
                if judgment.outcome not in UNANSWERED:
                    by_protocol = files.setdefault(judgment.judge, {})
                    if by_protocol.setdefault(judgment.protocol, path) != path:
                        raise DataError(f"{path}: a second file of {judgment.judge}; keep one")
                    break
        return files

    def measured_path(self, seed_set: str) -> Path:
        """Return the file of `Provenance` of a set."""
        return self.root / "measured" / f"{seed_set}.jsonl"

    def measured(self, seed_set: str) -> list[Provenance]:
        """Read who answered for a set."""
        return jsonl.read(self.measured_path(seed_set), Provenance)

    def out(self, seed_set: str) -> Path:
        """Return the default folder of a set's tables and figures."""
        return self.root / "leaderboards" / seed_set

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer; raises WorkspaceLockedError, with its name, if another process is."""
        jsonl.make_folder(self.hidden)
        holder = self.hidden / "lock-holder"
        with ExitStack() as stack:
            try:
                lock = sqlite3.connect(
                    self.hidden / "lock", timeout=0, isolation_level=None, check_same_thread=False
                )
                stack.callback(lock.close)
                lock.execute("BEGIN EXCLUSIVE")
                holder.write_text(f"process {os.getpid()} on {socket.gethostname()}", "utf-8")
                stack.callback(holder.unlink, missing_ok=True)
            except sqlite3.Error as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise BotChatError(f"cannot lock {self.hidden}: {error}") from None
                who = "another process"
                with suppress(OSError, ValueError):  # it may be about to write so, or to end
                    who = holder.read_text("utf-8")
                raise WorkspaceLockedError(
                    f"the workspace {self.root} is in use by {who}; wait for it or stop it"
                ) from None
            except OSError as error:
                raise BotChatError(
                    f"cannot write {holder}: {error.strerror}; make the folder writable"
                ) from None
            yield


def read_dialogues(path: Path) -> dict[str, Dialogue]:
    """Read a stage file's dialogues by seed id."""
    return {dialogue.seed_id: dialogue for dialogue in jsonl.read(path, Dialogue)}


def judgment_key(judgment: Judgment | KnownCase) -> CaseKey:
    """Return seed id and contestants of a judgment, or of its case."""
    return (judgment.seed_id, judgment.contestants)


def settle(path: Path, records: Collection[Dialogue | Judgment]) -> None:
    """Put a stage file into its order; delete it where no record of it is answered as yet."""
    if all(record.outcome in UNANSWERED for record in records):
        with jsonl.doing(f"delete {path}"):
            path.unlink(missing_ok=True)
        return
    jsonl.finish(path, records, stage_order)


def stage_order(record: Dialogue | Judgment) -> tuple[object, ...]:
    """Return the sort key of a record in its stage file."""
    place = natural_sort_key(record.seed_id)
    if isinstance(record, Judgment):
        return (place, record.contestants)
    return (place,)
