"""Leaves can be taken away (import-linter: no other room imports one): the others work on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from botchat.errors import ConfigError
from botchat.requests.leaves import LEAVES, leaf
from tests.processes import UNDRAWN

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [f"botchat/{name.replace('.', '/')}" for name in LEAVES]

WITHOUT = f"""{UNDRAWN}
from botchat.cli.main import main
def botchat(*words):
    try:
        return main([*words])
    except SystemExit as ended:
        return ended.code
assert botchat("--help") == 0
models = ("--model", "bot:parrot", "--model", "bot:verbose")
assert botchat("generate", "--seeds", "sample", "--limit", "3", *models) == 0
for protocol in ("arena", "unieval"):
    assert botchat("judge", protocol, "--seeds", "sample", "--judge", "rules", "--limit", "3") == 0
assert botchat("leaderboard", "--seeds", "sample", "--no-png") == 0
assert botchat("share", "export", "--seeds", "sample", "--as", "jsonl", "--out", "out") == 0
"""


def test_without_leaves_everything_else_works(tmp_path):
    """A run in a copy that lacks them all; what needs one says so in one line.

    None imports another (import-linter), so each alone can be taken away, too.
    """
    for path in (ROOT / "botchat").rglob("*"):
        place = path.relative_to(ROOT)
        if path.is_dir() or any(place.is_relative_to(folder) for folder in FOLDERS):
            continue
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(path)
    (tmp_path / "seeds").symlink_to(ROOT / "seeds")
    (tmp_path / "run").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path / "run",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_a_leaf_that_is_broken_is_not_said_to_be_missing(monkeypatch):
    """Only its own folder is; another package that it needs is named as ever."""
    monkeypatch.delitem(sys.modules, "botchat.hub.publish", raising=False)
    monkeypatch.setitem(sys.modules, "botchat.hub", None)
    with pytest.raises(ConfigError, match="publish needs botchat's part hub"):
        leaf("hub.publish", "publish")
    monkeypatch.setitem(sys.modules, "dataclasses", None)
    monkeypatch.delitem(sys.modules, "botchat.papers.bench", raising=False)
    with pytest.raises(ModuleNotFoundError, match="dataclasses"):
        leaf("papers.bench", "bench")
