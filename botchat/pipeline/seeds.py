"""Import seed sets, and dialogues of a model that were generated elsewhere."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from botchat.errors import ConfigError, MissingDataError, UsageError, listed
from botchat.frames import fill_lines
from botchat.importers import dialogues, hub, tables
from botchat.importers.dialogues import MUTUAL, ImportedDialogue
from botchat.interfaces import Cells, settings_digest
from botchat.metrics.lengths import words_of
from botchat.pipeline.session import token_counter
from botchat.records import (
    HUMAN,
    MIN_HUMAN,
    N_SEED,
    SHUFFLED,
    SIGNED,
    Dialogue,
    Seed,
    Seeds,
    Utterance,
    Utterances,
)
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import SAMPLE, Workspace, stage_order

# Names that stand for dialogues of people
_TAKEN = (HUMAN, SHUFFLED)
_LONGEST_NAME = 200
# Share of a ChatSEED's triples of words that another has, if they are not independent
_SHARED = 0.2
# Share of such ChatSEEDs that is mentioned (MuTual: 0.03)
_ALIKE = 0.1


def import_seeds(
    workspace: Workspace,
    source: str,
    name: str = "",
    *,
    language: str = "en",
    replace: bool = False,
) -> Result:
    """Store the seeds of a source as a set, with its language and the commit of a hub's dataset."""
    workspace.seeds_path(name or name_of(source))
    workspace.language_named(language)
    origin = None
    if source.startswith("hf://"):
        origin = hub.pin_revision(source)
    seeds = read_source(origin or source, workspace.hidden)
    texts = msgspec.json.encode(sorted(seed.utterances for seed in seeds))
    # MuTual is known by its texts, from whatever file.
    known, note = MUTUAL["sets"].get(sha256(texts).hexdigest(), ("", ""))
    name = name or known or name_of(source)
    if name == SAMPLE:
        raise UsageError(f"--seeds {SAMPLE}: that is the built-in set; choose another")
    path = workspace.seeds_path(name)
    if path.exists() and not replace:
        stored = workspace.seeds(name)
        if set(stored) != set(seeds):
            raise ConfigError(
                f"the set {name} has {len(stored)} other seeds already; choose another --seeds, "
                "or overwrite them with --replace"
            )
    with workspace.locked():
        workspace.write_seeds(name, seeds, language, origin)
    row = _set_row(workspace, name, path)
    notes = fill_lines(
        "pipeline/seed_notes.txt",
        note=note,
        seeds=seeds,
        repeats=_repeats(seeds),
        n_alike=_n_alike(seeds),
    )
    note = " ".join(notes)
    if note:
        return Result(row | {"note": note}, [note, [row]])
    return Result(row)


def _repeats(seeds: Seeds) -> list[str]:
    """Return a clause on each dialogue whose texts an earlier one has."""
    ids: dict[Utterances, str] = {}
    repeats = []
    for seed in seeds:
        first = ids.setdefault(seed.utterances, seed.id)
        if seed.id != first:
            repeats.append(f"{seed.id} repeats {first}")
    return repeats


def _n_alike(seeds: Seeds) -> int:
    """Return how many seeds without a topic share much text with an earlier one; 0 if few do.

    Takes time in proportion to the text: of each three words the first seed that has them counts.
    """
    import numpy as np

    from botchat.metrics.verdicts import Numbers

    numbers = Numbers()
    words = [numbers.of(words_of(" ".join(each.utterances[:N_SEED]).casefold())) for each in seeds]
    n_words = np.array([len(each) for each in words])
    word = np.concatenate(words)
    seed = np.repeat(np.arange(len(seeds)), n_words)
    within = seed[:-2] == seed[2:]
    triple = (word[:-2] * len(numbers) + word[1:-1]) * len(numbers) + word[2:]
    seed = seed[2:][within]
    _, begin, number = np.unique(triple[within], return_index=True, return_inverse=True)
    owner = seed[begin][number]
    shared = (seed * len(seeds) + owner)[seed != owner]
    pairs, n_shared = np.unique(shared, return_counts=True)
    later = pairs // len(seeds)
    alike = set(later[n_shared > _SHARED * n_words[later]].tolist())
    n = sum(not seeds[i].topic for i in alike)
    if n <= _ALIKE * len(seeds):
        return 0
    return n


def show_seeds(workspace: Workspace, name: str, seed_id: str) -> Result:
    """List the seed sets, the dialogues of one, or the utterances of one dialogue."""
    if not name:
        sets = workspace.seed_sets().items()
        return Result({"rows": [_set_row(workspace, set_, path) for set_, path in sets]})
    rows = []
    seeds = {seed.id: seed.utterances for seed in workspace.seeds(name)}
    if not seed_id:
        for id_, utterances in seeds.items():
            begins = "".join(utterances[:1])[:70]
            rows.append({"id": id_, "utterances": len(utterances), "begins": begins})
        return Result({"set": name, "rows": rows})
    if seed_id not in seeds:
        raise MissingDataError(f"no dialogue {seed_id!r} in {name}; see: botchat seeds {name}")
    for n, text in enumerate(seeds[seed_id], 1):
        part = "seed" if n <= N_SEED else "human"
        rows.append({"n": n, "speaker": "BA"[n % 2], "part": part, "said": text})
    return Result({"set": name, "id": seed_id, "rows": rows})


def _set_row(workspace: Workspace, name: str, path: Path) -> Cells:
    seeds = workspace.seeds(name)
    about = workspace.about(name)
    row = {
        "set": name,
        "n_seeds": len(seeds),
        "n_min4": sum(len(seed.utterances) >= MIN_HUMAN for seed in seeds),
        "language": workspace.language(name).code,
        "invented": about.invented,
        "path": path,
    }
    if about.source:
        row["source"] = about.source
    return row


def read_source(source: str, cache_dir: Path) -> list[Seed]:
    """Read the seeds of a source; downloads go to ``cache_dir``."""
    if source == "mutual":
        source = str(hub.fetch_mutual(cache_dir))
    if source.startswith("hf://"):
        return dialogues.read_seeds(tables.rows_of(hub.load_rows(source), source), source)
    path = Path(source).expanduser()
    suffix = path.suffix.lower()
    if path.is_dir() or (path.is_file() and suffix == ".zip"):
        return dialogues.read_mutual(path)
    if not path.is_file() or suffix not in tables.SUFFIXES:
        raise ConfigError(
            f"seeds source {source!r}: no such file, or none of this kind: mutual, MuTual's folder "
            f"or zip, a file ({', '.join(tables.SUFFIXES)}), {hub.SYNTAX}"
        )
    return dialogues.read_seeds(tables.rows(jsonl.content(path), str(path)), str(path))


def import_dialogues(
    workspace: Workspace, source: str, seed_set: str, model: str, *, replace: bool
) -> Result:
    """Store the dialogues of a file as a model's dialogues on a set.

    Each gets the seed whose first two utterances are its own, white space aside. For a new set,
    the others become seeds of these two utterances alone. Signatures say ``imported:DIGEST``.
    Raises `BotChatError` before anything is written.
    """
    workspace.seeds_path(seed_set)
    _check_model(model)
    rows = tables.rows(jsonl.content(Path(source)), source)
    form, imported = dialogues.read_dialogues(rows, source)
    is_new = seed_set not in workspace.seed_sets()
    with workspace.locked():
        known = []
        if not is_new:
            known = workspace.seeds(seed_set)
        matches, left_out = _matches(imported, known, is_new)
        left = "; ".join(f"{n} {why}" for why, n in left_out.items())
        if not matches:
            raise MissingDataError(f"{source}: no dialogue can be imported to {seed_set}: {left}")
        content = [(seed.id, d.utterances, d.outcome) for seed, d in matches]
        signature = f"{SIGNED}|imported:{settings_digest(form, content)}|set:{seed_set}"
        records = [_record(seed, d, model, signature) for seed, d in matches]
        path = workspace.dialogues_path(seed_set, model)
        if not replace and path.exists():
            raise ConfigError(
                f"--model {model} has dialogues on the set {seed_set} already; --replace "
                "overwrites them"
            )
        n_new = 0
        if is_new:
            n_new = len(matches)
            workspace.write_seeds(seed_set, [seed for seed, _ in matches])
        jsonl.finish(path, records, stage_order)
    row = {
        "set": seed_set,
        "model": model,
        "dialogues": len(matches),
        "stopped": sum(not record.complete for record in records),
        "new_seeds": n_new,
        "path": path,
    }
    line = (
        f"{len(imported)} dialogues read ({form}), {len(matches)} imported; left out: "
        f"{left or 'none'}"
    )
    more = {"format": form, "read": len(imported), "left_out": left_out, "signature": signature}
    return Result(row | more, [line, [row]])


def _check_model(model: str) -> None:
    """Raise `ConfigError` for a name that no imported model can have."""
    if len(model) > _LONGEST_NAME or not model.isprintable() or model.strip() in ("", *_TAKEN):
        raise ConfigError(
            f"--model {model[:_LONGEST_NAME]!r}: give a printable name of at most {_LONGEST_NAME} "
            f"characters other than {listed(_TAKEN)}"
        )


def _matches(
    imported: Sequence[ImportedDialogue], known: Seeds, is_new: bool
) -> tuple[list[tuple[Seed, ImportedDialogue]], Counter[str]]:
    """Return dialogues with their seeds, of a new set with new ones, and why others are left out.

    A seed has one dialogue: those that are not used yet are held by their ChatSEED.
    """
    free = defaultdict[Utterances, list[Seed]](list)  # by their ChatSEED
    for seed in known:
        free[_start(seed.utterances)].append(seed)
    ids = set()
    matches = []
    left_out = Counter[str]()
    for dialogue in imported:
        start = _start(dialogue.utterances)
        seeds = free.get(start)
        # One that stopped at once says something of the model; one that ended says nothing.
        if len(dialogue.utterances) < N_SEED + (dialogue.outcome == "ok"):
            left_out[f"with nothing after the first {N_SEED} utterances"] += 1
        elif seeds:
            match = min(seeds, key=lambda seed: seed.id != dialogue.id)
            seeds.remove(match)
            matches.append((match, dialogue))
        elif seeds is not None:
            left_out["that begin with the ChatSEED of an earlier one"] += 1
        elif is_new:
            free[start] = []
            seed_id = dialogue.id
            if not seed_id or seed_id in ids:
                digest = sha256("\0".join(start).encode("utf-8", "replace")).hexdigest()
                seed_id = f"{seed_id or 'seed'}-{digest[:8]}"
            ids.add(seed_id)
            matches.append((Seed(seed_id, dialogue.utterances[:N_SEED]), dialogue))
        else:
            left_out["that begin with no ChatSEED of the set"] += 1
    return matches, left_out


def _start(utterances: Utterances) -> Utterances:
    """Return the ChatSEED, white space aside."""
    return tuple(" ".join(text.split()) for text in utterances[:N_SEED])


def _record(seed: Seed, imported: ImportedDialogue, model: str, signature: str) -> Dialogue:
    """Make the record, with the seed's own spelling of the ChatSEED and no ledger keys."""
    count = token_counter().exact
    replies = imported.utterances[N_SEED:]
    status = "complete"
    detail = ""
    if imported.outcome != "ok":
        status = f"stopped:{imported.outcome}"
        detail = f"imported: its utterance {len(imported.utterances) + 1} is no reply"
    return Dialogue(
        seed_id=seed.id,
        model=model,
        utterances=seed.utterances[:N_SEED] + replies,
        n_seed=N_SEED,
        facts=tuple(Utterance(tokens=count and count(text)) for text in replies),
        status=status,
        signature=signature,
        detail=detail,
    )


def name_of(source: str) -> str:
    """Return the name of the set that a source becomes where none is given."""
    stem = Path(source.partition("@")[0]).stem
    return re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:64]
