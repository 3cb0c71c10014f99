"""Brought in from anywhere: seeds, and dialogues of a contestant that were made elsewhere.

Opens what the pure importers in `botchat.importers` read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from botchat.errors import ConfigError, DataError, MissingError
from botchat.importers import hub
from botchat.importers.dialogues import FORMATS, Collection, ToldDialogue, read_dialogues
from botchat.importers.mutual import from_mutual, is_mutual_item
from botchat.importers.spreadsheets import SUFFIXES, from_rows, from_table
from botchat.interfaces import Row, settings_digest
from botchat.languages.text import spoken
from botchat.pipeline.run.plan import text_length
from botchat.records import (
    HUMAN,
    MIN_HUMAN,
    N_SEED,
    SIGNED,
    Dialogue,
    Seed,
    Utterance,
)
from botchat.requests import ImportingDialogues, ImportingSeeds, ListingSeeds, ShowingSeeds
from botchat.requests.results import Told
from botchat.workspace import jsonl
from botchat.workspace.folder import SAMPLE, Workspace, dialogue_order, in_order

MAX_TABLE_BYTES = 2**28
"""Of a table."""

ACCEPTED = (
    "mutual (downloads it), a folder in MuTual's layout, BotChat's "
    f"{', '.join(SUFFIXES)}, or {hub.SYNTAX}"
)
"""What `read_source` understands, in words."""

_LONGEST_NAME = 200

log = logging.getLogger("botchat")

NO_SEED = "that begin with no ChatSEED of the set (--new-seeds makes seeds of them)"
SECOND = "that begin with the ChatSEED of an earlier one"
TOO_SHORT = f"with nothing after the first {N_SEED} utterances"


def import_seeds(request: ImportingSeeds, workspace: Workspace) -> Told:
    """Store what a source holds as a seed set; what the set is. See `read_source`.

    The code of the language pack is kept with the set. A set that is there with other dialogues is
    a `ConfigError`, unless it is to be replaced, since dialogues and judgments of the seeds that
    are there would no longer count. A dataset of the hub is read at one commit, which is kept with
    the set too.
    """
    source, name, language = request.source, request.name, request.language
    if name == SAMPLE:
        raise ConfigError(
            f"--name {SAMPLE}: that is the built-in set, which this one would hide; choose another"
        )
    path = workspace.seeds_path(name)
    workspace.language_named(language)
    origin = hub.pinned(source) if source.startswith("hf://") else None
    found = read_source(origin or source, workspace.hidden)
    if (looks := spoken(text for seed in found for text in seed.utterances)) not in ("", language):
        log.warning(
            "the dialogues look like %s and are taken for %s; if that is wrong, import them again "
            "with --language %s",
            looks,
            language,
            looks,
        )
    if (
        not request.replace
        and path.exists()
        and (there := workspace.seeds(name)) != in_order(found)
    ):
        raise ConfigError(
            f"the set {name} is there already, with {len(there)} seeds, and {source!r} holds other "
            f"ones ({len(found)}); choose another --name, or take the new ones with --replace"
        )
    with workspace.locked():
        workspace.write_seeds(name, found, language, origin)
    return Told(_set_row(workspace, name, path))


def listed(_: ListingSeeds, workspace: Workspace) -> Told:
    """The seed sets."""
    sets = workspace.seed_sets().items()
    return Told({"rows": [_set_row(workspace, name, path) for name, path in sets]})


def shown(request: ShowingSeeds, workspace: Workspace) -> Told:
    """A set, or one dialogue of it."""
    name, seed_id = request.name, request.seed_id
    seeds = workspace.seeds(name)
    if seed_id is None:
        rows = [
            {"id": s.id, "utterances": len(s.utterances), "begins": "".join(s.utterances[:1])}
            for s in seeds
        ]
        short = [row | {"begins": str(row["begins"])[:70]} for row in rows]
        return Told({"set": name, "rows": rows}, [short])
    found = next((seed for seed in seeds if seed.id == seed_id), None)
    if found is None:
        raise MissingError(
            f"no dialogue {seed_id!r} in the set {name}; see: botchat seeds show {name}"
        )
    rows = [
        {"n": n, "speaker": "BA"[n % 2], "part": "seed" if n <= N_SEED else "human", "said": text}
        for n, text in enumerate(found.utterances, 1)
    ]
    return Told({"set": name, "id": found.id, "rows": rows})


def _set_row(workspace: Workspace, name: str, path: Path) -> Row:
    seeds = workspace.seeds(name)
    long = sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds)
    spoken = workspace.language(name).code
    row = {"set": name, "n_seeds": len(seeds), "n_min4": long, "language": spoken}
    row |= {"invented": workspace.invented(name), "path": path}
    return row | ({"source": source} if (source := workspace.source(name)) else {})


def read_source(source: str, cache_dir: Path) -> list[Seed]:
    """The seeds that ``source`` names, one of `ACCEPTED`; ``cache_dir``: for what is downloaded.

    Raises `ConfigError`: not a source, or it does not exist; `DataError`: it cannot be read.
    """
    if source == "mutual":
        source = str(hub.fetch_mutual(cache_dir))
    if source.startswith("hf://"):
        return from_rows(hub.load_rows(source), source)
    if source.startswith("hf:"):
        raise ConfigError(
            f"seeds source {source!r}: a dataset of the hub is hf://{source[3:].lstrip('/')}"
        )
    if source.startswith(("http://", "https://")):
        raise ConfigError(f"seeds source {source!r}: download it first, then name the file")
    path = Path(source).expanduser()
    if path.is_dir():
        items = {file.relative_to(path).as_posix(): file for file in path.rglob("test_*.txt")}
        found = {name: file for name, file in items.items() if is_mutual_item(name)}
        limit = hub.MAX_ITEM_BYTES
        return from_mutual({n: jsonl.content(f, limit) for n, f in found.items()}, str(path))
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        fault = "is none of these" if path.exists() else "does not exist and is none of these"
        raise ConfigError(f"seeds source {source!r} {fault}: {ACCEPTED}")
    if not path.is_file():
        raise ConfigError(f"seeds source {source!r} does not exist; accepted: {ACCEPTED}")
    return from_table(jsonl.content(path, MAX_TABLE_BYTES), str(path))


def import_dialogues(request: ImportingDialogues, workspace: Workspace) -> Told:
    """Store the dialogues of some files as those of ``model`` on a set.

    Each gets the seed whose first two utterances are its own, white space aside. With
    ``new_seeds``, or for a set that does not exist yet, the others become seeds, of these two
    utterances alone.
    What a judge is shown, and every table, is as of generated dialogues; signatures say
    ``imported:DIGEST``.

    Raises before anything is written:
        ConfigError: a name that cannot be used; a model that has dialogues already (``replace``).
        DataError: see `botchat.importers.dialogues.read_dialogues`.
        MissingError: none of the dialogues belongs to the set.
    """
    seed_set, model = request.seed_set, request.model
    workspace.seeds_path(seed_set)
    data = {str(source): jsonl.content(source, MAX_TABLE_BYTES) for source in request.sources}
    found = read_dialogues(data)
    _check_name(model)
    there = seed_set in workspace.seed_sets()
    if request.new_seeds and seed_set == SAMPLE:
        raise ConfigError(f"--new-seeds: {SAMPLE} is the built-in set; choose another --set")
    with workspace.locked():
        known = workspace.seeds(seed_set) if there else []
        matched, made = _matched(found, known, request.new_seeds or not there)
        if not matched:
            why = "; ".join(f"{n} {why}" for why, n in found.left_out.items())
            raise MissingError(
                f"{', '.join(data)}: taken for {FORMATS[found.format]}, {found.read} read, and "
                f"none can be imported to {seed_set}: {why}"
            )
        told = [(seed.id, one.utterances, one.outcome) for seed, one in matched]
        signature = f"{SIGNED}|imported:{settings_digest(found.format, told)}|set:{seed_set}"
        count = text_length().tokens
        dialogues = [_dialogue(seed, one, model, signature, count) for seed, one in matched]
        path = workspace.dialogues_path(seed_set, model)
        if not request.replace and path.exists():
            raise ConfigError(
                f"--model {model}: it has dialogues on the set {seed_set} already; --replace puts "
                "these in their place"
            )
        if made:
            workspace.write_seeds(seed_set, [*known, *made])
        jsonl.finish(path, dialogues, dialogue_order)
    row: Row = {
        "set": seed_set,
        "model": model,
        "dialogues": len(matched),
        "stopped": sum(not one.complete for one in dialogues),
        "new_seeds": len(made),
        "path": path,
    }
    more = {
        "format": found.format,
        "read": found.read,
        "left_out": dict(found.left_out),
        "system_messages": found.system_messages,
        "signature": signature,
    }
    return Told(row | more, [_taken(found, len(matched)), [row]])


def _taken(found: Collection, n: int) -> str:
    """What was read as what, and what became of it."""
    left = "; ".join(f"{n} {why}" for why, n in found.left_out.items()) or "none"
    passed = f"; {found.system_messages} system messages passed over"
    return (
        f"taken for {FORMATS[found.format]}: {found.read} read, {n} imported; "
        f"left out: {left}{passed if found.system_messages else ''}"
    )


def _check_name(name: str) -> None:
    odd = len(name) > _LONGEST_NAME or not name.isprintable() or not name.strip()
    if odd or name == HUMAN:
        raise ConfigError(
            f"--model {name[:_LONGEST_NAME]!r}: give a printable name of at most {_LONGEST_NAME} "
            f"characters, and not {HUMAN}, which is the set's own dialogues (botchat seeds import)"
        )


def _matched(
    found: Collection, known: Sequence[Seed], making: bool
) -> tuple[list[tuple[Seed, ToldDialogue]], list[Seed]]:
    """Each dialogue that is stored with its seed, and the seeds that are new; counts the others."""
    by_start: dict[tuple[str, ...], list[Seed]] = {}
    for seed in known:
        by_start.setdefault(_start(seed.utterances), []).append(seed)
    ids, taken = {seed.id for seed in known}, set[str]()
    matched: list[tuple[Seed, ToldDialogue]] = []
    made: list[Seed] = []
    for one in found.told:
        # One that stopped at once says something of the model; one that ended says nothing.
        if len(one.utterances) < N_SEED + (one.outcome in ("ok", "truncated")):
            found.left_out[TOO_SHORT] += 1
            continue
        there = by_start.setdefault(_start(one.utterances), [])
        if making and not there:
            seed = _new_seed(one, ids)
            ids.add(seed.id)
            made.append(seed)
            there.append(seed)
        same = sorted(there, key=lambda seed: seed.id != one.id)
        free = next((seed for seed in same if seed.id not in taken), None)
        if free is None:
            found.left_out[SECOND if there else NO_SEED] += 1
            continue
        taken.add(free.id)
        matched.append((free, one))
    return matched, made


def _start(utterances: Sequence[str]) -> tuple[str, ...]:
    """The ChatSEED, white space aside."""
    return tuple(" ".join(text.split()) for text in utterances[:N_SEED])


def _new_seed(one: ToldDialogue, ids: set[str]) -> Seed:
    digest = sha256("\0".join(_start(one.utterances)).encode("utf-8", "replace")).hexdigest()[:8]
    free = (id_ for id_ in (one.id, f"{one.id or 'seed'}-{digest}") if id_ and id_ not in ids)
    id_ = next(free, None)
    if id_ is None:
        raise DataError(f"{one.place}: the id {one.id!r} is taken twice in the set; change it")
    return Seed(id_, one.utterances[:N_SEED])


def _dialogue(
    seed: Seed, one: ToldDialogue, model: str, signature: str, count: Callable[[str], int] | None
) -> Dialogue:
    """The record, with the seed's own spelling of the ChatSEED and no ledger keys."""
    begun = seed.utterances[:N_SEED]
    said = one.utterances[len(begun) :]
    usable = one.outcome in ("ok", "truncated")
    facts = tuple(
        Utterance(
            outcome=one.outcome if usable and n == len(said) else "ok",
            tokens=count(text) if count else None,
        )
        for n, text in enumerate(said, 1)
    )
    return Dialogue(
        seed_id=seed.id,
        model=model,
        utterances=(*begun, *said),
        n_seed=len(begun),
        facts=facts,
        status="complete" if usable else f"stopped:{one.outcome}",
        signature=signature,
        detail="" if usable else f"imported: its utterance {len(one.utterances) + 1} is no reply",
    )
