"""Requests, outcomes of faulty replies, and seeds of files are as they were before the rewrite.

Recorded at 57ab8067: 72 request bodies with their ledger keys, the outcomes of the fault bodies of
`tests.integration.test_finality`, digests of seed sets and boards made from files of each format.
``pytest tests/golden/test_engine.py --update-golden`` records anew; a ledger key must never move.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pandas
import pytest

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Reply
from tests.golden.families import ROOT, SHARED, said
from tests.integration import test_finality
from tests.integration.test_endpoints import ask
from tests.openai_server import Server, faults, per_request, text

RECORDED = Path(__file__).parent / "engine.json"
FAULTS = [
    (f"{kind}: {name}", fault)
    for kind in ("NO_ANSWER", "FILTERED", "OVERFLOW", "ACCOUNT", "UNKNOWN", "QUIRKS")
    for name, fault in getattr(test_finality, kind).items()
]


def settle(request: pytest.FixtureRequest, part: str, found: Any) -> None:
    """Compare with what was recorded, or record it."""
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    found = json.loads(json.dumps(found))
    if request.config.getoption("--update-golden"):
        RECORDED.write_text(json.dumps(recorded | {part: found}, indent=0) + "\n")
        return
    assert found == recorded[part]


def dialogue(*utterances: str, system: str | None = "Be a person.") -> list[dict[str, str]]:
    """Messages in the natural layout; the last is the user's."""
    n = len(utterances)
    roles = ["user" if (n - i) % 2 else "assistant" for i in range(n)]
    head = [] if system is None else [{"role": "system", "content": system}]
    turns = [{"role": r, "content": u} for r, u in zip(roles, utterances, strict=True)]
    return head + turns


MESSAGES = {
    "even": dialogue("Hi! Any plans?", "Not yet.\nYou?"),
    "odd": dialogue("Hi!", "Hello, ¿qué tal? 你好 🙂", 'He said "no".'),
    "no system": dialogue("One", "Two", system=None),
}
ENTRIES: dict[str, dict[str, Any]] = {
    "extra": {"extra_body": {"top_p": 0.5, "max_tokens": 7, "nested": {"b": [1, None], "a": "ü"}}},
    "headers": {"headers": {"X-Plain": "yes", "X-Other": "${BOTCHAT_NOTHING}"}},
    "revision": {"revision": "2026-01-01"},
    "no temperature": {"temperature": None},
    "window": {"context_window": 400},
    "wide window": {"context_window": 100_000},
}
DECODINGS = {
    "greedy": Decoding(temperature=0.0, max_tokens=256),
    "sampled": Decoding(temperature=0.7, max_tokens=512, sample=3),
    "bare": Decoding(temperature=None),
}


def requests() -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Name, messages, decoding and settings of each request."""
    layouts = ("auto", "natural", "merge-leading", "placeholder-user")
    systems = ("auto", "system", "system-in-user")
    for layout, system, shape in itertools.product(layouts, systems, MESSAGES):
        entry = {"message_layout": layout, "system_role": system}
        yield f"{layout}, {system}, {shape}", shape, "greedy", entry
    for name, decoding, shape in itertools.product(ENTRIES, DECODINGS, ("even", "odd")):
        yield f"{name}, {decoding}, {shape}", shape, decoding, ENTRIES[name]


def test_request_bodies_and_ledger_keys(tmp_path, request):
    """Byte for byte: the key decides whether a call is paid twice."""
    found = {}
    for n, (name, shape, decoding, entry) in enumerate(requests()):
        folder = tmp_path / str(n)
        folder.mkdir()
        with Server(text("fine")) as server:
            ask(server, folder, MESSAGES[shape], decoding=DECODINGS[decoding],
                identity="http://recorded/v1", **entry)  # fmt: skip
            (call,) = server.calls
        found[name] = {"body": json.dumps(call.body, ensure_ascii=False), "keys": stored(folder)}
    assert len(found) == 72
    settle(request, "requests", found)


def stored(folder: Path) -> list[str]:
    """Keys of a ledger, which are digests of what was asked: text or bytes, as hex digits."""
    with sqlite3.connect(folder / "ledger.sqlite3") as db:
        keys = [key for (key,) in db.execute("SELECT key FROM calls ORDER BY key")]
    return [key.hex() if isinstance(key, bytes) else str(key) for key in keys]


def test_requests_after_a_refusal(tmp_path, request):
    """What an endpoint refuses is left out, renamed or arranged otherwise, in this order."""
    refusals = {
        name: faults.unsupported_parameter(name, "max_completion_tokens")
        for name in ("temperature", "max_tokens", "seed")
    } | {
        "alternate": faults.error(400, "Conversation roles must alternate user/assistant"),
        "no system": faults.error(400, "System role not supported"),
        "server template": faults.error(
            500, "Conversation roles must alternate user/assistant/user"
        ),
    }
    found = {}
    for name, refusal in refusals.items():
        folder = tmp_path / name
        folder.mkdir()
        with Server(per_request(refusal, refusal, text("fine"))) as server:
            asked = ask(server, folder, MESSAGES["even"], decoding=DECODINGS["sampled"],
                        identity="http://recorded/v1")  # fmt: skip
            bodies = [json.dumps(call.body) for call in server.calls]
        found[name] = {"bodies": bodies, "keys": stored(folder), "quirks": asked.quirks}
    settle(request, "refusals", found)


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[name for name, _ in FAULTS])
def test_outcomes_of_faulty_replies(tmp_path, name, fault, request):
    """Outcome, text, tokens, what is stored and how often it was asked."""
    with Server(fault) as server:
        try:
            asked = ask(server, tmp_path)
            reply, kept = asked.reply, asked.stored
        except FatalModelError as error:
            reply, kept = error.reply or Reply("malformed", "no reply"), None
        usage = msgspec.to_builtins(reply.usage)
        found = [reply.outcome, reply.text, reply.status, usage, kept, server.n_received]
    settle(request, f"fault {name}", found)


def seed_files(folder: Path) -> Iterator[Path]:
    """The sample and the tests' own sets in each format that can be imported."""
    yield ROOT / "seeds" / "sample.jsonl"
    yield from (ROOT / "tests" / "data" / name for name in ("zh.jsonl", "es.jsonl"))
    rows = [json.loads(row) for row in (ROOT / "seeds" / "sample.jsonl").read_text().splitlines()]
    utterances = [row["utterances"] for row in rows]
    ids = [row["id"] for row in rows]
    listed = pandas.DataFrame({"index": ids, "conv-GT": [json.dumps(u) for u in utterances]})
    listed.to_excel(folder / "listed.xlsx", index=False)
    listed.to_csv(folder / "listed.csv", index=False)
    listed.to_csv(folder / "listed.tsv", index=False, sep="\t")
    long = [
        {"dialogue_id": key, "turn": i, "speaker": "AB"[i % 2], "text": utterance}
        for key, dialog in zip(ids, utterances, strict=True)
        for i, utterance in enumerate(dialog)
    ]
    pandas.DataFrame(long).to_csv(folder / "long.csv", index=False)
    messages = [
        {"id": key, "messages": [{"role": ("user", "assistant")[i % 2], "content": u}
                                 for i, u in enumerate(dialog)]}
        for key, dialog in zip(ids, utterances, strict=True)
    ]  # fmt: skip
    (folder / "messages.jsonl").write_text("\n".join(map(json.dumps, messages)))
    sharegpt = [
        {"id": key, "conversations": [{"from": ("human", "gpt")[i % 2], "value": u}
                                      for i, u in enumerate(dialog)]}
        for key, dialog in zip(ids, utterances, strict=True)
    ]  # fmt: skip
    (folder / "sharegpt.json").write_text(json.dumps(sharegpt))
    names = ["listed.xlsx", "listed.csv", "listed.tsv", "long.csv"]
    yield from (folder / name for name in [*names, "messages.jsonl", "sharegpt.json"])


def test_seeds_of_files(tmp_path, request):
    """Digest and number of the seeds of each file."""
    found = {}
    for n, path in enumerate(seed_files(tmp_path)):
        found[path.name] = imported(tmp_path / f"w{n}", path)
    settle(request, "seeds", found)


@pytest.mark.parametrize("kind", ["raw", "published"])
def test_seeds_of_mutual(tmp_path, kind, request):
    """The same of MuTual, as its authors and as BotChat published it, where it is."""
    path = {"raw": "mutual/MuTual-master.zip", "published": "botchat/MuTual_test.xlsx"}[kind]
    if not (SHARED / path).exists():
        pytest.skip(f"no {path} in ../shared/data")
    source = SHARED / path
    if kind == "raw":
        with zipfile.ZipFile(source) as packed:
            packed.extractall(tmp_path / "raw")
        (source,) = (tmp_path / "raw").glob("*/data/mutual")
    settle(request, f"seeds of MuTual, {kind}", imported(tmp_path, source))


def imported(folder: Path, path: Path) -> list[object]:
    """Number and digest of the seeds that `seeds import` makes of a file."""
    folder.mkdir(exist_ok=True)
    said(folder, "import", "import", path, "--seeds", "made")
    rows = [json.loads(row) for row in (folder / "seeds" / "made.jsonl").read_text().splitlines()]
    told = sorted([row["id"], row["utterances"]] for row in rows)
    return [len(rows), hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]]
