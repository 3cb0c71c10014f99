"""Requests, their ledger keys and MuTual's seeds are as they were before the rewrite.

Recorded at 57ab8067: 72 request bodies with their ledger keys, requests after a refusal, digests of
MuTual. ``pytest tests/golden/test_engine.py --update-golden`` records anew; a key must never move.
"""

import hashlib
import itertools
import json
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from botchat.interfaces import Decoding
from tests.golden.families import SHARED, said
from tests.integration.test_endpoints import ask
from tests.openai_server import Server, faults, per_request, text

RECORDED = Path(__file__).parent / "engine.json"


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


def test_seeds_of_mutual(tmp_path, request):
    """The same number and digest of MuTual as its authors published it, where it is."""
    path = SHARED / "mutual" / "MuTual-master.zip"
    if not path.exists():
        pytest.skip(f"no {path.name} in ../shared/data")
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "raw")
    (source,) = (tmp_path / "raw").glob("*/data/mutual")
    said(tmp_path, "import", "import", source, "--seeds", "made")
    lines = (tmp_path / "seeds" / "made.jsonl").read_text().splitlines()
    rows = sorted([row["id"], row["utterances"]] for row in map(json.loads, lines))
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
    settle(request, "seeds of MuTual, raw", [len(rows), digest])
