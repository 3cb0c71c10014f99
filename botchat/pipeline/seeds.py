"""Import seed sets, and dialogues of a model that were generated elsewhere."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from botchat.errors import ConfigError, DataError, MissingDataError
from botchat.importers import hub, tables
from botchat.importers.dialogues import ImportedDialogue, read_dialogues, read_seeds
from botchat.importers.mutual import MUTUAL_FILE, read_mutual
from botchat.interfaces import Row, settings_digest
from botchat.pipeline.run.plan import token_counter
from botchat.records import HUMAN, MIN_HUMAN, N_SEED, SIGNED, Dialogue, Seed, Utterance
from botchat.requests import ImportingDialogues, ImportingSeeds, ListingSeeds, ShowingSeeds
from botchat.requests.results import Told
from botchat.workspace import jsonl
from botchat.workspace.folder import SAMPLE, Workspace, stage_order

ACCEPTED = (
    f"mutual (downloads it), a folder in MuTual's layout, a file ({', '.join(tables.SUFFIXES)}), "
    f"or {hub.SYNTAX}"
)
"""Sources of seeds, in words."""

_LONGEST_NAME = 200

log = logging.getLogger("botchat")

NO_SEED = "that begin with no ChatSEED of the set (--new-seeds makes seeds of them)"
SECOND = "that begin with the ChatSEED of an earlier one"
TOO_SHORT = f"with nothing after the first {N_SEED} utterances"


def import_seeds(request: ImportingSeeds, workspace: Workspace) -> Told:
    """Store the seeds of a source as a set, with its language and, of a hub's dataset, the commit.

    Raises ConfigError where the set has other seeds already, unless it is to be replaced.
    """
    source, name, language = request.source, request.name, request.language
    if name == SAMPLE:
        raise ConfigError(f"--name {SAMPLE}: that is the built-in set; choose another")
    path = workspace.seeds_path(name)
    workspace.language_named(language)
    origin = hub.pin_revision(source) if source.startswith("hf://") else None
    seeds = read_source(origin or source, workspace.hidden)
    if not request.replace and path.exists() and {*workspace.seeds(name)} != {*seeds}:
        raise ConfigError(
            f"the set {name} has {len(workspace.seeds(name))} other seeds already; choose another "
            "--name, or overwrite them with --replace"
        )
    with workspace.locked():
        workspace.write_seeds(name, seeds, language, origin)
    return Told(_set_row(workspace, name, path))


def list_seed_sets(_: ListingSeeds, workspace: Workspace) -> Told:
    """List the seed sets."""
    sets = workspace.seed_sets().items()
    return Told({"rows": [_set_row(workspace, name, path) for name, path in sets]})


def show_seed_set(request: ShowingSeeds, workspace: Workspace) -> Told:
    """Show a set, or one dialogue of it."""
    name, seed_id = request.name, request.seed_id
    seeds = workspace.seeds(name)
    if seed_id is None:
        rows: list[Row] = [
            {"id": s.id, "utterances": len(s.utterances), "begins": "".join(s.utterances[:1])}
            for s in seeds
        ]
        short = [row | {"begins": str(row["begins"])[:70]} for row in rows]
        return Told({"set": name, "rows": rows}, [short])
    utterances = {seed.id: seed.utterances for seed in seeds}.get(seed_id)
    if utterances is None:
        raise MissingDataError(f"no dialogue {seed_id!r} in {name}; see: botchat seeds show {name}")
    rows = [
        {"n": n, "speaker": "BA"[n % 2], "part": "seed" if n <= N_SEED else "human", "said": text}
        for n, text in enumerate(utterances, 1)
    ]
    return Told({"set": name, "id": seed_id, "rows": rows})


def _set_row(workspace: Workspace, name: str, path: Path) -> Row:
    seeds = workspace.seeds(name)
    row: Row = {
        "set": name,
        "n_seeds": len(seeds),
        "n_min4": sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds),
        "language": workspace.language(name).code,
        "invented": workspace.about(name).invented,
        "path": path,
    }
    return row | ({"source": source} if (source := workspace.about(name).source) else {})


def read_source(source: str, cache_dir: Path) -> list[Seed]:
    """Read the seeds of a source, see `ACCEPTED`; downloads go to ``cache_dir``.

    Raises ConfigError for no source, DataError for one that cannot be read.
    """
    if source == "mutual":
        source = str(hub.fetch_mutual(cache_dir))
    if source.startswith("hf://"):
        return read_seeds(tables.rows_of(hub.load_rows(source), source), source)
    path = Path(source).expanduser()
    if path.is_dir():
        files = {file.relative_to(path).as_posix(): file for file in path.rglob("test_*.txt")}
        kept = {name: file for name, file in files.items() if MUTUAL_FILE.fullmatch(name)}
        content = {name: jsonl.content(file) for name, file in kept.items()}
        return read_mutual(content, str(path))
    if not path.is_file() or path.suffix.lower() not in tables.SUFFIXES:
        raise ConfigError(f"seeds source {source!r} is not a file of this kind: {ACCEPTED}")
    return read_seeds(tables.rows(jsonl.content(path), str(path)), str(path))


def import_dialogues(request: ImportingDialogues, workspace: Workspace) -> Told:
    """Store the dialogues of some files as those of a model on a set.

    Each gets the seed whose first two utterances are its own, white space aside. With
    ``new_seeds``, or for a new set, the others become seeds of these two utterances alone.
    Signatures say ``imported:DIGEST``. Raises before anything is written: ConfigError for a name
    that cannot be used, or a model that has dialogues already; DataError for an invalid file;
    MissingDataError if no dialogue belongs to the set.
    """
    seed_set, model = request.seed_set, request.model
    workspace.seeds_path(seed_set)
    if len(model) > _LONGEST_NAME or not model.isprintable() or model.strip() in ("", HUMAN):
        fault = f"give a printable name of at most {_LONGEST_NAME} characters other than {HUMAN}"
        raise ConfigError(f"--model {model[:_LONGEST_NAME]!r}: {fault}")
    if request.new_seeds and seed_set == SAMPLE:
        raise ConfigError(f"--new-seeds: {SAMPLE} is the built-in set; choose another --set")
    files = ", ".join(map(str, request.sources))
    contents = ((jsonl.content(path), str(path)) for path in request.sources)
    rows = (row for data, where in contents for row in tables.rows(data, where))
    imported = read_dialogues(rows, files)
    is_new = seed_set not in workspace.seed_sets()
    with workspace.locked():
        known = [] if is_new else workspace.seeds(seed_set)
        matches, new_seeds, left_out = _matches(
            imported.dialogues, known, request.new_seeds or is_new
        )
        left = "; ".join(f"{n} {why}" for why, n in left_out.items())
        if not matches:
            raise MissingDataError(f"{files}: no dialogue can be imported to {seed_set}: {left}")
        digest = settings_digest(
            imported.format, [(seed.id, d.utterances, d.outcome) for seed, d in matches]
        )
        signature = f"{SIGNED}|imported:{digest}|set:{seed_set}"
        count = token_counter().exact
        dialogues = [_dialogue(*match, model, signature, count) for match in matches]
        path = workspace.dialogues_path(seed_set, model)
        if not request.replace and path.exists():
            raise ConfigError(
                f"--model {model} has dialogues on the set {seed_set} already; --replace "
                "overwrites them"
            )
        if new_seeds:
            workspace.write_seeds(seed_set, [*known, *new_seeds])
        jsonl.finish(path, dialogues, stage_order)
    n_read = len(imported.dialogues)
    row: Row = {
        "set": seed_set,
        "model": model,
        "dialogues": len(matches),
        "stopped": sum(not dialogue.complete for dialogue in dialogues),
        "new_seeds": len(new_seeds),
        "path": path,
    }
    more: Row = {
        "format": imported.format,
        "read": n_read,
        "left_out": dict(left_out),
        "system_messages": imported.system_messages,
        "signature": signature,
    }
    counts = f"{n_read} dialogues read ({imported.format}), {len(matches)} imported"
    return Told(row | more, [f"{counts}; left out: {left or 'none'}", [row]])


def _matches(
    dialogues: Iterable[ImportedDialogue], known: Sequence[Seed], new: bool
) -> tuple[list[tuple[Seed, ImportedDialogue]], list[Seed], Counter[str]]:
    """Match dialogues with seeds.

    Returns the pairs, the seeds that are new (with ``new``), and why how many were left out.
    """
    seeds: dict[tuple[str, ...], list[Seed]] = {}  # by their ChatSEED, those not used yet
    for seed in known:
        seeds.setdefault(_start(seed.utterances), []).append(seed)
    ids = {seed.id for seed in known}
    matches, new_seeds, left_out = [], [], Counter[str]()
    for dialogue in dialogues:
        # One that stopped at once says something of the model; one that ended says nothing.
        if len(dialogue.utterances) < N_SEED + (dialogue.outcome == "ok"):
            left_out[TOO_SHORT] += 1
            continue
        start = _start(dialogue.utterances)
        if start not in seeds and new:
            new_seeds.append(_new_seed(dialogue, ids))
            ids.add(new_seeds[-1].id)
            seeds[start] = [new_seeds[-1]]
        if not (unused := seeds.get(start)):
            left_out[NO_SEED if unused is None else SECOND] += 1
            continue
        match = min(unused, key=lambda seed: seed.id != dialogue.id)
        unused.remove(match)
        matches.append((match, dialogue))
    return matches, new_seeds, left_out


def _start(utterances: Sequence[str]) -> tuple[str, ...]:
    """Return the ChatSEED, white space aside."""
    return tuple(" ".join(text.split()) for text in utterances[:N_SEED])


def _new_seed(dialogue: ImportedDialogue, ids: set[str]) -> Seed:
    start = "\0".join(_start(dialogue.utterances))
    digest = sha256(start.encode("utf-8", "replace")).hexdigest()[:8]
    names = [dialogue.id, f"{dialogue.id or 'seed'}-{digest}"]
    id_ = next((name for name in names if name and name not in ids), None)
    if id_ is None:
        raise DataError(f"{dialogue.place}: the id {dialogue.id!r} occurs twice; change it")
    return Seed(id_, dialogue.utterances[:N_SEED])


def _dialogue(
    seed: Seed,
    imported: ImportedDialogue,
    model: str,
    signature: str,
    count: Callable[[str], int] | None,
) -> Dialogue:
    """Make the record, with the seed's own spelling of the ChatSEED and no ledger keys."""
    start, is_ok = seed.utterances[:N_SEED], imported.outcome == "ok"
    replies = imported.utterances[len(start) :]
    n_next = len(imported.utterances) + 1
    return Dialogue(
        seed_id=seed.id,
        model=model,
        utterances=(*start, *replies),
        n_seed=len(start),
        facts=tuple(Utterance(tokens=count(text) if count else None) for text in replies),
        status="complete" if is_ok else f"stopped:{imported.outcome}",
        signature=signature,
        detail="" if is_ok else f"imported: its utterance {n_next} is no reply",
    )
