"""``botchat dialogues import``: dialogues made elsewhere become a contestant's dialogues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Row, settings_digest
from botchat.pipeline.run.plan import text_length
from botchat.pipeline.seeds import MAX_TABLE_BYTES
from botchat.records import HUMAN, N_SEED, VERSION, Dialogue, Seed, Utterance
from botchat.seeds.dialogues import FORMATS, Collection, ToldDialogue, read_dialogues
from botchat.workspace import files
from botchat.workspace.folder import SAMPLE, Workspace, dialogue_order

_LONGEST_NAME = 200

NO_SEED = "that begin with no ChatSEED of the set (--new-seeds makes seeds of them)"
SECOND = "that begin with the ChatSEED of an earlier one"
TOO_SHORT = f"with nothing after the first {N_SEED} utterances"


@dataclass(frozen=True)
class Imported:
    """What `import_dialogues` stored."""

    set: str
    model: str
    format: str
    """What the files were taken for, a key of `FORMATS`."""
    read: int
    dialogues: int
    """Stored; ``read`` less those that were left out."""
    stopped: int
    """Of them, those that ended before their end."""
    left_out: dict[str, int]
    """Why -> how many."""
    system_messages: int
    """Passed over."""
    new_seeds: int
    signature: str
    path: Path

    @property
    def line(self) -> str:
        """What was read as what, and what became of it."""
        left = "; ".join(f"{n} {why}" for why, n in self.left_out.items()) or "none"
        passed = f"; {self.system_messages} system messages passed over"
        return (
            f"taken for {FORMATS[self.format]}: {self.read} read, {self.dialogues} imported; "
            f"left out: {left}{passed if self.system_messages else ''}"
        )

    @property
    def shown(self) -> list[str | list[Row]]:
        """As people read it."""
        keys = ("set", "model", "dialogues", "stopped", "new_seeds", "path")
        return [self.line, [{key: getattr(self, key) for key in keys}]]

    @property
    def whole(self) -> Row:
        """All of it."""
        return asdict(self)


def import_dialogues(
    workspace: Workspace,
    sources: Sequence[Path],
    seed_set: str,
    model: str,
    *,
    given_as: str | None = None,
    new_seeds: bool = False,
    replace: bool = False,
) -> Imported:
    """Store the dialogues of some files as those of ``model`` on a set.

    Each gets the seed whose first two utterances are its own, white space aside. With
    ``new_seeds``, or for a set that does not exist yet, the others become seeds, of these two
    utterances alone.
    ``given_as``: the format, where it is not to be told from the files. What a judge is shown, and
    every table, is as of generated dialogues; signatures say ``imported:DIGEST``.

    Raises before anything is written:
        ConfigError: a name that cannot be used, a model that has dialogues already (``replace``).
        DataError: see `botchat.seeds.dialogues.read_dialogues`.
        MissingError: none of the dialogues belongs to the set.
    """
    _check(model, given_as)
    workspace.seeds_path(seed_set)
    sources = [Path(source) for source in ([sources] if isinstance(sources, Path) else sources)]
    data = {str(source): files.content(source, MAX_TABLE_BYTES) for source in sources}
    found = read_dialogues(data, given_as)
    there = seed_set in workspace.seed_sets()
    if new_seeds and seed_set == SAMPLE:
        raise ConfigError(f"--new-seeds: {SAMPLE} is the built-in set; choose another --set")
    with workspace.locked():
        path = workspace.dialogues_path(seed_set, model)
        if path.exists() and not replace:
            raise ConfigError(
                f"--model {model}: it has dialogues on the set {seed_set} already; --replace puts "
                "these in their place"
            )
        known = workspace.seeds(seed_set) if there else []
        matched, made = _matched(found, known, new_seeds or not there)
        if not matched:
            why = "; ".join(f"{n} {why}" for why, n in found.left_out.items())
            raise MissingError(
                f"{', '.join(data)}: taken for {FORMATS[found.format]}, {found.read} read, and "
                f"none can be imported to {seed_set}: {why}"
            )
        told = [(seed.id, one.utterances, one.outcome) for seed, one in matched]
        signature = (
            f"botchat:{VERSION}|imported:{settings_digest(found.format, told)}|set:{seed_set}"
        )
        count = text_length().tokens
        dialogues = [_dialogue(seed, one, model, signature, count) for seed, one in matched]
        if made:
            workspace.write_seeds(seed_set, [*known, *made])
        files.finish(path, dialogues, dialogue_order)
    return Imported(
        seed_set,
        model,
        found.format,
        found.read,
        len(dialogues),
        sum(not one.complete for one in dialogues),
        dict(found.left_out),
        found.system_messages,
        len(made),
        signature,
        path,
    )


def _check(model: str, given: str | None) -> None:
    if not model.strip() or model == HUMAN or len(model) > _LONGEST_NAME or not model.isprintable():
        raise ConfigError(
            f"--model {model[:_LONGEST_NAME]!r}: give a printable name of at most {_LONGEST_NAME} "
            f"characters, and not {HUMAN}, which is the set's own dialogues (botchat seeds import)"
        )
    if given is not None and given not in FORMATS:
        raise ConfigError(f"--as {given}: no such format; formats: {', '.join(FORMATS)}")


def _matched(
    found: Collection, known: Sequence[Seed], making: bool
) -> tuple[list[tuple[Seed, ToldDialogue]], list[Seed]]:
    """Each dialogue that is stored with its seed, and the seeds that are new; counts the others."""
    by_start: dict[tuple[str, ...], list[Seed]] = {}
    for seed in known:
        by_start.setdefault(_start(seed.utterances), []).append(seed)
    ids, taken = {seed.id for seed in known}, set()
    matched: list[tuple[Seed, ToldDialogue]] = []
    made: list[Seed] = []
    for one in found.told:
        # One that stopped at once says something of the model; one that ended says nothing.
        if len(one.utterances) < N_SEED + (one.outcome in ("ok", "truncated")):
            found.left_out[TOO_SHORT] += 1
            continue
        start = _start(one.utterances)
        if start not in by_start and making:
            seed = _new_seed(one, ids)
            ids.add(seed.id)
            made.append(seed)
            by_start[start] = [seed]
        same = sorted(by_start.get(start, ()), key=lambda seed: seed.id != one.id)
        free = next((seed for seed in same if seed.id not in taken), None)
        if free is None:
            found.left_out[SECOND if same else NO_SEED] += 1
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
    said = one.utterances[N_SEED:]
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
        utterances=(*seed.utterances[:N_SEED], *said),
        n_seed=N_SEED,
        facts=facts,
        status="complete" if usable else f"stopped:{one.outcome}",
        signature=signature,
        detail="" if usable else f"imported: its utterance {len(one.utterances) + 1} is no reply",
    )
