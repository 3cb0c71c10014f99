"""Stage files in a store: what workspaces have made, for all who read there.

``PLACE/stages/FILE/<SHA-256 of the part>.jsonl.gz`` are the parts of a stage file, as immutable as
the segments of a ledger. The first line of a part says when it was made. Each other line is a
record as in the stage file, and behind a tab what its calls took; or the key of a record that was
taken away. A part has only what no other had, and of all parts the newest line of a key counts. So
nobody who writes takes away what others have made, and all readers agree. Of two judgments of one
case, that which is on the dialogues as they are there counts.

Whoever may write to a store gives data, never settings, pages or programs: only what has the name
and the content of a stage file (`_KINDS`) is written here, and never through a link.

What a workspace has seen of a store is in ``.botchat/shared.json``: what it has changed since is
new, and what it has as somebody else has had it before is not.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from botchat.errors import BotChatError, DataError
from botchat.interfaces import Shown, case_digest, cut_at
from botchat.languages import Pack, ReadingWords
from botchat.records import (
    HUMAN,
    Dialogue,
    Dialogues,
    Judgment,
    Provenance,
    Seed,
    Utterance,
    human_dialogue,
    natural_key,
)
from botchat.workspace import accounts, files, segments
from botchat.workspace.config import Config
from botchat.workspace.folder import AboutSet, Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.secrets import Redactor, public_url, secrets_in
from botchat.workspace.store import Store, unpacked

log = logging.getLogger("botchat")

FOLDER = "stages"
"""Of a store, with its stage files."""

SETTINGS = "settings.jsonl"
"""The part of ``botchat.toml`` that readers need."""

SHOWN = ("model", "label", "base_url", "revision")
"""Of a model."""

Key: TypeAlias = tuple[str, ...]
"""What a record is about."""

Lines: TypeAlias = dict[Key, bytes]
"""A stage file's records; empty: it was taken away."""


class _PlainFile(msgspec.Struct, frozen=True):
    """A file that has no records."""

    text: str


class ShownEntry(msgspec.Struct, frozen=True):
    """``[TABLE.NAME]`` of ``botchat.toml``, as far as a board needs it and everybody may see it."""

    table: str
    name: str
    value: dict[str, Any]


def _toml(kind: type[Any]) -> Callable[[_PlainFile], Key]:
    """Key of a file that is TOML of this kind; it raises for what is none."""

    def key(one: _PlainFile) -> Key:
        msgspec.toml.decode(one.text, type=kind)
        return ()

    return key


def _of_case(one: Judgment) -> Key:
    return one.seed_id, *one.contestants


_KINDS: Mapping[re.Pattern[str], tuple[type[Any], Callable[[Any], Key]]] = {
    re.compile(named.replace("NAME", r"[A-Za-z0-9_][\w.+-]{0,127}"), re.A): kind
    for named, kind in {
        r"languages/NAME/language\.toml": (_PlainFile, _toml(Pack)),
        r"languages/NAME/reading\.toml": (_PlainFile, _toml(ReadingWords)),
        r"languages/NAME/prompts/NAME\.txt": (_PlainFile, lambda _: ()),
        r"seeds/NAME\.toml": (_PlainFile, _toml(AboutSet)),
        r"seeds/NAME\.jsonl": (Seed, lambda one: (one.id,)),
        r"generations/NAME/NAME\.jsonl": (Dialogue, lambda one: (one.seed_id,)),
        r"judgments/NAME/NAME/NAME\.jsonl": (Judgment, _of_case),
        r"anchors/NAME/NAME/NAME\.jsonl": (Judgment, _of_case),
        r"measured/NAME\.jsonl": (Provenance, lambda one: (one.stage, one.name, one.model)),
        re.escape(SETTINGS): (ShownEntry, lambda one: (one.table, one.name)),
    }.items()
}
"""Names of stage files -> their records and what these are about, each after those that it depends
on. ``NAME`` is the name of a file or folder, which begins with no dot."""

_UNREADABLE = (OSError, EOFError, zlib.error, ValueError, msgspec.MsgspecError, RecursionError)


class _PartHead(msgspec.Struct, frozen=True):
    """The first line of a part."""

    at: int
    """When its records were made, in nanoseconds of the epoch."""


class _Seen(msgspec.Struct, frozen=True):
    """What a workspace has seen of a stage file in a store."""

    digest: str = ""
    """SHA-256 of its own file then; empty: it has what the store lacks."""
    parts: list[str] = []


_Shared: TypeAlias = dict[str, dict[str, _Seen]]
"""Store -> stage file -> what was seen of it."""


class PartLine(NamedTuple):
    """A record in a part."""

    at: int
    record: bytes
    """Empty: it was taken away."""
    bills: bytes
    """What its calls took; see `accounts.took`."""
    part: str


class StagePart(NamedTuple):
    """A part of a stage file."""

    name: str
    at: int
    lines: dict[Key, PartLine]


Fits: TypeAlias = Callable[[bytes], bool]
"""Whether a record is on the dialogues as they are."""


def newest(made: Iterable[StagePart], fits: Fits = bool) -> dict[Key, PartLine]:
    """The line of each key that counts: one that fits, the newest, the greater one."""

    def rank(line: PartLine) -> tuple[bool, int, bytes]:
        return not line.record or fits(line.record), line.at, line.record

    found: dict[Key, PartLine] = {}
    for part in made:
        for key, line in part.lines.items():
            old = found.setdefault(key, line)
            if old.record == line.record:
                found[key] = max(old, line)
            elif rank(old) < rank(line):
                found[key] = line
    return found


def compared(
    made: Sequence[StagePart], here: Lines, seen: Collection[str], fits: Fits = bool
) -> tuple[Lines, Lines]:
    """What a workspace has changed in a stage file, and all of it with these changes.

    ``seen``: names of the parts that its own lines were made from.
    """
    top = newest(made, fits)
    ever = {(key, line.record) for part in made for key, line in part.lines.items()}
    changed: Lines = {
        key: record
        for key, record in here.items()
        if key not in top
        or (top[key].record != record and (top[key].part in seen or (key, record) not in ever))
    }
    for key, line in top.items():
        if line.record and key not in here and line.part in seen:
            changed[key] = b""
    whole = {key: line.record for key, line in top.items()} | changed
    return changed, {key: record for key, record in whole.items() if record}


def held(made: Iterable[StagePart], here: Lines) -> list[str]:
    """Names of the parts of which a workspace has every line."""
    return [
        part.name
        for part in made
        if all(here.get(key, b"") == line.record for key, line in part.lines.items())
    ]


def parts(store: Store, under: str = "") -> dict[str, list[str]]:
    """Stage file -> names of its parts; ``under``: only in a folder, or of one file.

    What is no stage file is said, and left there.
    """
    found: dict[str, list[str]] = {}
    odd = []
    for path in store.files(f"{FOLDER}/{under}".rstrip("/")):
        file, _, name = path.removeprefix(f"{FOLDER}/").rpartition("/")
        if _PART.fullmatch(name) and _kind(file):
            found.setdefault(file, []).append(name)
        else:
            odd.append(path)
    if odd:
        log.warning(
            "in the store %s are %d files that are no seeds, dialogues, verdicts or language "
            "packs, and are left there, such as %s",
            store.place,
            len(odd),
            ", ".join(map(repr, odd[:3])),
        )
    return found


_PART = re.compile(r"[0-9a-f]{64}\.jsonl\.gz")


def push(workspace: Workspace, store: Store, ledger: Ledger) -> int:
    """Leave in a store what it lacks of the stage files; how many records."""
    there, here, n = parts(store), paths(workspace), 0
    redactor = Redactor(secrets_in(os.environ))
    with _seen(workspace, store) as known:
        for file in sorted({*here, *filter(_kind, known)}):
            seen, names = known.get(file, _Seen()), there.get(file, [])
            still = [name for name in seen.parts if name in names]
            try:
                data = _content(workspace, file, here[file]) if file in here else b""
                digest = hashlib.sha256(data).hexdigest()
                if seen.digest == digest and len(still) == len(seen.parts):
                    continue
                lines = _lines(file, data)
            except DataError as error:
                log.warning("it is not left in the store %s: %s", store.place, error)
                continue
            ((_, old),) = read_parts(store, {file: names})
            changed, _ = compared(old, lines, still)
            secret = {
                k for k, one in changed.items() if redactor.clean(one.decode()) != one.decode()
            }
            if secret:
                log.warning(
                    "%d records of %s hold what looks like a key, and are not left in the store",
                    len(secret),
                    file,
                )
            ours = {*still, *held(old, lines)}
            if shown := {key: one for key, one in changed.items() if key not in secret}:
                made = here[file].stat().st_mtime_ns if file in here else time.time_ns()
                after = [part.at + 1 for part in old if part.name in still]
                part = _part(file, shown, max([made, *after]), ledger)
                ours.add(store.add(f"{FOLDER}/{file}", part).rpartition("/")[2])
                n += len(shown)
            known[file] = _Seen(digest, sorted(ours))
    return n


def pull(workspace: Workspace, store: Store) -> int:
    """Add to the stage files what a store has, and take away what it has not; how many records.

    What was changed here since, and not pushed, stays. ``botchat.toml`` is left as it is.
    """
    there, wanted, n = parts(store), dict[str, list[str]](), 0
    with _seen(workspace, store) as known:
        for file in in_order(there.keys() - {SETTINGS}):
            seen = sorted(known.get(file, _Seen()).parts)
            if link := link_in(workspace, file):
                log.warning("%s of the store %s is left there: %s is a link", file, store.url, link)
            elif seen != there[file] or not (workspace.root / file).exists():
                wanted[file] = there[file]
        for file, found in read_parts(store, wanted):
            path, seen = workspace.root / file, known.get(file, _Seen()).parts
            here = _lines(file, _content(workspace, file, path)) if path.exists() else {}
            changed, whole = compared(found, here, seen if here else (), fitting(workspace, file))
            n += sum(here.get(key) != whole.get(key) for key in {*here, *whole})
            if whole != here:
                write_lines(workspace, file, whole)
            data = _content(workspace, file, path) if path.exists() else b""
            digest = "" if changed else hashlib.sha256(data).hexdigest()
            known[file] = _Seen(digest, [part.name for part in found])
    return n


def link_in(workspace: Workspace, file: str) -> Path | None:
    """What of a stage file's path is a link: it may lead out of the workspace."""
    path = workspace.root / file
    ways = [path, *path.parents][: file.count("/") + 1]
    return next((way for way in ways if way.is_symlink()), None)


@contextmanager
def shared(workspace: Workspace, ledger: Ledger, place: str | None) -> Iterator[None]:
    """Read the ledger of a store before the block, and leave there what is new, however it ends.

    Raises `BotChatError` before the block: it cannot be read or written.
    """
    if place is None:
        yield
        return
    store = Store(place)
    store.ready()
    segments.pull(ledger, store)
    try:
        yield
    except BaseException:
        try:
            leave(workspace, store, ledger)
        except BotChatError as error:
            log.warning("%s", error)
        raise
    leave(workspace, store, ledger)


def leave(workspace: Workspace, store: Store, ledger: Ledger) -> tuple[int, int]:
    """Leave in a store what it lacks: how many calls, how many records of stage files."""
    try:
        return segments.push(ledger, store), push(workspace, store, ledger)
    except BotChatError as error:
        raise BotChatError(
            f"{error}; all is stored in {workspace.root}, and botchat ledger push leaves it there"
        ) from None


def paths(workspace: Workspace) -> dict[str, Path]:
    """Stage file -> where it is here; also what else readers need."""
    root = workspace.root
    folders = {name: root / name for name in ("seeds", "generations", "judgments", "measured")}
    folders |= {f"languages/{path.name}": path for path in root.glob("languages/*")}
    own = workspace.config.languages.items()
    folders |= {f"languages/{code}": root / pack.path for code, pack in own}
    found = {
        f"{name}/{path.relative_to(folder).as_posix()}": path
        for name, folder in folders.items()
        for path in folder.glob("**/*.*")
    }
    settings = {SETTINGS: root / "botchat.toml"}
    found = {file: path for file, path in found.items() if _kind(file)}
    return found | (settings if settings[SETTINGS].exists() else {})


def shown_settings(config: Config) -> Iterator[ShownEntry]:
    """Judges, panels and protocols as they are; of a model what it is called.

    No key, no header, and of a URL neither login nor query.
    """
    for name, model in config.models.items():
        told = {key: getattr(model, key) for key in SHOWN if key != "revision" or model.revision}
        yield ShownEntry("models", name, told | {"base_url": public_url(model.base_url)})
    for table in ("judges", "panels", "protocols"):
        for name, settings in getattr(config, table).items():
            yield ShownEntry(table, name, msgspec.to_builtins(settings))


def _content(workspace: Workspace, file: str, path: Path) -> bytes:
    """Its records a line each, as far as they are whole."""
    if file == SETTINGS:
        entries = shown_settings(workspace.config)
        return b"".join(msgspec.json.encode(one) + b"\n" for one in entries)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    return _whole(file, data)


def check(file: str, data: bytes) -> None:
    """Raise `DataError` unless the content of a stage file is what its name says."""
    _lines(file, _whole(file, data + b"\n"))  # its last line too


def _whole(file: str, data: bytes) -> bytes:
    if file.endswith(".jsonl"):
        return data[: data.rfind(b"\n") + 1]
    try:
        return msgspec.json.encode(_PlainFile(data.decode())) + b"\n"
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {file}: {error}") from None


def _lines(file: str, data: bytes) -> Lines:
    """Records by key, the last of each."""
    key = _key(file)
    try:
        return {key(line): line for line in data.split(b"\n") if line}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{file}: a line is no record: {error}") from None


def _kind(file: str) -> int | None:
    """The place in `_KINDS` of a file of that name; ``None``: it is no stage file."""
    return next((n for n, named in enumerate(_KINDS, 1) if named.fullmatch(file)), None)


def _key(file: str) -> Callable[[bytes], Key]:
    """What finds the key of a stage file's record; it raises for what is none."""
    kinds = [kind for named, kind in _KINDS.items() if named.fullmatch(file)]
    assert kinds, file
    ((record, key),) = kinds
    decode = msgspec.json.Decoder(record).decode
    return lambda line: key(decode(line))


def in_order(listed: Iterable[str]) -> list[str]:
    """Stage files, each after those that it depends on."""
    return sorted(listed, key=lambda file: (_kind(file) or 0, file))


def _part(file: str, lines: Lines, at: int, ledger: Ledger) -> bytes:
    """The part that holds these lines, with what their calls took."""
    asked = {key: calls_of(file, line) for key, line in lines.items()}
    paid = accounts.bills(ledger, chain.from_iterable(asked.values()))
    written = [msgspec.json.encode(_PartHead(at))]
    for key, line in lines.items():
        told = accounts.took(map(paid.get, asked[key]))
        written.append(line + b"\t" + told if asked[key] else line or msgspec.json.encode(key))
    return gzip.compress(b"\n".join(written), 6, mtime=0)


class _Rests(msgspec.Struct, frozen=True, gc=False):
    """What a dialogue or a judgment rests on."""

    facts: tuple[Utterance, ...] = ()
    calls: tuple[str, ...] = ()


_rests = msgspec.json.Decoder(_Rests)


def calls_of(file: str, line: bytes) -> Sequence[str]:
    """The calls that a record rests on."""
    if not line or not file.startswith(("generations/", "judgments/")):
        return ()
    told = _rests.decode(line)
    return [*(fact.call for fact in told.facts if fact.call), *told.calls]


def read_parts(
    store: Store, wanted: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, list[StagePart]]]:
    """Each stage file with its parts; those that are damaged are said and left out."""
    paths = (f"{FOLDER}/{file}/{name}" for file, names in wanted.items() for name in names)
    data = chain.from_iterable(batch.values() for batch in store.batches(paths))
    for file, names in wanted.items():
        found = (_decoded(store, file, name, next(data)) for name in names)
        yield file, [part for part in found if part is not None]


def _decoded(store: Store, file: str, name: str, data: bytes | None) -> StagePart | None:
    key, lines = _key(file), dict[Key, PartLine]()
    try:
        if data is None:
            raise ValueError("it is not whole")
        head, *rest = unpacked(data).split(b"\n")
        at = msgspec.json.decode(head, type=_PartHead).at
        for text in rest:
            record, _, told = text.partition(b"\t")
            if record.startswith(b"["):
                lines[msgspec.json.decode(record, type=Key)] = PartLine(at, b"", b"", name)
            else:
                lines[key(record)] = PartLine(at, record, told, name)
    except _UNREADABLE as error:
        where, said = f"{FOLDER}/{file}/{name}", " ".join(str(error).split())[:200]
        log.warning("the store %s: %s is damaged, and passed over: %s", store.place, where, said)
        return None
    return StagePart(name, at, lines)


def write_lines(workspace: Workspace, file: str, lines: Lines) -> None:
    """A stage file in canonical order; none where no record is left."""
    path = workspace.root / file
    if not lines:
        path.unlink(missing_ok=True)
    elif file.endswith(".jsonl"):
        ordered = sorted(lines, key=lambda key: (natural_key(key[0]), key[1:]))
        files.write_atomic(path, b"".join(lines[key] + b"\n" for key in ordered))
    else:
        files.write_atomic(path, msgspec.json.decode(lines[()], type=_PlainFile).text.encode())


def fitting(workspace: Workspace, file: str) -> Fits:
    """Whether a judgment is on the dialogues that a workspace has; anything else is."""
    kind, _, rest = file.partition("/")
    if kind != "judgments":
        return bool
    told: list[Dialogues] = []

    def fits(line: bytes) -> bool:
        if not told:  # few stage files have two judgments of one case
            told.append(_dialogues(workspace, rest.partition("/")[0]))
        judgment = msgspec.json.decode(line, type=Judgment)
        found = [told[0].get(name, {}).get(judgment.seed_id) for name in judgment.contestants]
        end = cut_at(judgment)
        shown = [Shown.of(one, end) for one in found if one is not None]
        whole = len(shown) == len(found)
        return whole and case_digest(judgment.protocol, *shown) == judgment.case

    return fits


def _dialogues(workspace: Workspace, seed_set: str) -> Dialogues:
    try:
        human = {seed.id: human_dialogue(seed) for seed in workspace.seeds(seed_set)}
        return {HUMAN: human, **workspace.all_dialogues(seed_set, unanswered=True)}
    except BotChatError:  # a benchmark has none
        return {}


@contextmanager
def _seen(workspace: Workspace, store: Store) -> Iterator[dict[str, _Seen]]:
    """Stage file -> what was seen of it in a store; what the block changes is kept."""
    path = workspace.hidden / "shared.json"
    try:
        shared = msgspec.json.decode(path.read_bytes(), type=_Shared)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError):
        shared = {}
    try:
        yield shared.setdefault(store.url, {})
    finally:
        files.write_atomic(path, msgspec.json.encode(shared))
