"""Two judges of a set, of whom the new one has judged a part: what the board would be by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from botchat.boards import bridge as boards
from botchat.boards.tables import document, table_files, to_json
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import settings_digest
from botchat.measures import bridge as measures
from botchat.pipeline.agree import Compared
from botchat.pipeline.judge import judge_named
from botchat.pipeline.read_set import read
from botchat.protocols.kinds import Protocol
from botchat.records import HUMAN, VERSION, Judgment
from botchat.workspace.files import write_atomic
from botchat.workspace.folder import Workspace


def bridge(
    workspace: Workspace,
    seed_set: str | None,
    old: str,
    new: str,
    *,
    protocol: str | None = None,
    files: Sequence[Path] = (),
    out: Path | None = None,
) -> Compared:
    """The board of ``old`` as ``new`` would judge it, from the cases that both have judged.

    ``protocol``: default the one that both have judged. ``out``: folder to write to; default
    ``leaderboards/<set>/bridge-<protocol>``. Raises `ConfigError` for the same judge twice or a
    protocol to choose, `MissingError` for a judge without verdicts, or nothing in common.
    """
    if seed_set is None or files:
        raise ConfigError("--bridge is about stage files: give --seeds SET and no FILE.csv")
    names = [judge_named(workspace, seed_set, name) for name in (old, new)]
    if names[0] == names[1]:
        raise ConfigError(f"--bridge {old} {new}: a bridge is between two judges; name another")
    found = read(workspace, seed_set, names)
    old, new = names
    common = [
        name
        for name in sorted(found.judged[old])
        if found.judged[new].get(name) and found.catalogue.find(name) is not None
    ]
    if protocol is None and len(common) == 1:
        protocol = common[0]
    if protocol not in common:
        raise ConfigError(
            f"--protocol {protocol or 'is missing'}: what both {old} and {new} have judged on "
            f"{seed_set}: {', '.join(common) or 'nothing'}"
        )
    asked = found.catalogue.named(protocol)
    sides = [_values(found.judged[name][protocol], asked) for name in (old, new)]
    models = sorted({key[0] for key in sides[0]})
    known = [key for key in sides[0] if key in sides[1]]
    unknown = [model for model in models if not any(key[0] == model for key in known)]
    if unknown:
        raise MissingError(
            f"{new} has judged no case of {', '.join(unknown)} that {old} has; draw some with: "
            f"botchat judge {asked.base} --seeds {seed_set} --judge {new} --bridge-from {old} "
            "--budget 300"
        )
    keys = sorted(sides[0])
    row = np.array([models.index(key[0]) for key in keys], dtype=np.intp)
    seed = np.unique([key[1] for key in keys], return_inverse=True)[1].astype(np.intp)
    among = ["\n".join(sorted(key[2])) for key in keys]
    stratum = np.unique(among, return_inverse=True)[1].astype(np.intp)
    by_old = np.array([sides[0][key] for key in keys])
    by_new = np.array([sides[1].get(key, np.nan) for key in keys])
    made = measures.bridge(row, seed, by_old, by_new, stratum)
    rows = boards.board_rows(models, made, np.bincount(row))
    mapping = boards.mapping_rows(by_old, by_new, seed)
    data = settings_digest([[key, sides[0][key], sides[1].get(key)] for key in keys])
    signature = (
        f"botchat:{VERSION}|bridge|set:{seed_set}|protocol:{protocol}"
        f"|old:{old}|new:{new}|data:{data}"
    )
    subject = f"{old} to {new}: {protocol} on {seed_set}"
    tables = boards.tables(subject, rows, mapping, signature, _unit(asked))
    said = list(boards.sentences(rows, old, new))
    out = out or workspace.out(seed_set) / f"bridge-{protocol}"
    whole = {
        "old": old,
        "new": new,
        "protocol": protocol,
        "rows": rows,
        "mapping": mapping,
        "notes": said,
        "signature": signature,
        "out": str(out),
    }
    for file, text in table_files(tables).items():
        write_atomic(out / file, text.encode())
    write_atomic(out / "bridge.md", document(f"From {subject}", said, tables).encode())
    write_atomic(out / "bridge.json", to_json(whole).encode())
    return Compared(tables, [*said, signature, f"written to: {out}"], whole, out)


Key = tuple[str, str, tuple[str, ...]]
"""Contestant, seed id, contestants in the order shown."""


def _values(judgments: Sequence[Judgment], protocol: Protocol) -> dict[Key, float]:
    """What each readable verdict gives each model that it is about, 0 to 1."""
    found: dict[Key, float] = {}
    for judgment in judgments:
        for name, value in _of_verdict(judgment, protocol):
            found[name, judgment.seed_id, judgment.contestants] = value
    return found


def _of_verdict(judgment: Judgment, protocol: Protocol) -> list[tuple[str, float]]:
    verdict, shown = judgment.verdict, judgment.contestants
    if verdict is None:
        return []
    if protocol.shows != "one":
        result = protocol.result(verdict)
        both = [] if result is None else list(zip(shown, (result, 1 - result), strict=True))
        return [one for one in both if one[0] != HUMAN or protocol.shows == "pair"]
    if protocol.innocent is not None:
        return [(shown[0], float(verdict == protocol.innocent))]
    numbers, scale = protocol.numbers(verdict), protocol.asked_scale
    assert numbers is not None
    mean = sum(numbers) / len(numbers)
    return [(shown[0], (mean - scale.lowest) / (scale.highest - scale.lowest))]


def _unit(protocol: Protocol) -> str:
    """What a rate is of, a sentence."""
    if protocol.shows != "one":
        return "Mean result in percent: a win 100, a tie 50."
    if protocol.innocent is not None:
        return "Dialogues with nothing found, in percent."
    return "Mean score, in percent of the scale."
