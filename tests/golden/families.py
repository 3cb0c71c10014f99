"""Runs whose every file is digested: one function a family, which leaves files under a folder."""

import contextlib
import csv
import hashlib
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from botchat.cli.main import main
from botchat.protocols.reports import KINDS
from tests.openai_server import Server, text

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
Family = Callable[[Path], None]


def said(folder: Path, name: str, *command: object) -> None:
    """Run a command in a workspace; what it prints with ``--json`` is a file beside the others."""
    printed, complained = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained):
        status = main([*map(str, command), "--dir", str(folder), "--json"])
    assert status == 0, complained.getvalue()
    printed.seek(0)
    (folder / "said").mkdir(exist_ok=True)
    (folder / "said" / f"{name}.json").write_text(printed.read().replace(str(folder), "DIR"))


def demo(folder: Path) -> None:
    """Everything offline, where that has been done once already, and what `agree` says of it."""
    said(folder, "demo", "demo")
    said(folder, "agree", "agree", "--seeds", "sample", "--protocol", "arena-n16")


def botchat_2023(folder: Path) -> None:
    """Ratings of the paper's 14 models, from its published rates."""
    rates = folder / "arena_n16.csv"
    shutil.copy(ROOT / "leaderboards" / "botchat-2023" / rates.name, rates)
    said(folder, "board", "rank", rates, "--out", folder / "board")


def votes(folder: Path) -> None:
    """A crowd's file: two of three judges prefer x to y to z; some tie."""
    rng, path = np.random.default_rng(0), folder / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model_a", "model_b", "winner", "question_id", "judge"])
        for n in range(400):
            a, b = rng.choice(3, 2, replace=False).tolist()
            better = "ab"[int(rng.random() > 0.5 + (b - a) * 0.2)]
            winner = "tie" if rng.random() < 0.2 else f"model_{better}"
            writer.writerow(["xyz"[a], "xyz"[b], winner, n // 8, n % 3])
    said(folder, "rank", "rank", path)
    said(folder, "agree", "agree", path, "--out", folder / "agreed")


def chinese(folder: Path) -> None:
    """A set in Chinese: a model continues it, another judges it in Chinese."""
    said(folder, "import", "import", ROOT / "tests" / "data" / "zh.jsonl",
         "--seeds", "zh-set", "--language", "zh")  # fmt: skip
    with Server(umpire) as server:
        (folder / "botchat.toml").write_text(MODELS.format(url=server.url))
        asked = ["--model", "ada", "--judge", "umpire"]
        said(folder, "run", "run", "--seeds", "zh-set", *asked)
    (folder / "botchat.toml").unlink()  # it names a port


def papers(folder: Path) -> None:
    """The papers' own tables, from what their authors published."""
    for name, data, *more in (
        ("mateval", SHARED / "mateval" / "LOT", "--published"),
        ("topicalchat", SHARED / "topicalchat"),
    ):
        if not data.exists():
            pytest.skip(f"no {data.parent.name}/{data.name}: the data is not in this repository")
        said(folder, name, "bench", name, "--data", data, *more)
    path, votes = folder / "verdicts.csv", (SHARED / "prd" / "verdicts.csv").read_bytes()
    path.write_bytes(votes.replace(b",human-", b",human:"))
    said(folder, "prd", "agree", path)
    path.unlink()


MODELS = """
[models.ada]
model = "ada"
base_url = "{url}"
identity = "ada@here"

[models.umpire]
model = "umpire"
base_url = "{url}"
identity = "umpire@here"
"""

CRITERIA = (
    MODELS
    + """
[protocols.empathy]
kind = "score"
prompt = "empathy.txt"
scores = ["Empathy"]
scale = [1, 10]
title = "Empathy"

[protocols.warmth]
kind = "pairwise"
shows = "pair"
prompt = "warmth.txt"
labels = ["First", "Second", "Both"]
"""
)


def umpire(call: object) -> object:
    """Speaks as ada, judges as umpire; what it says depends on what it is shown only."""
    prompt = call.messages[-1]["content"]  # type: ignore[attr-defined]
    draw = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16)
    if "How warm" in prompt:
        return text(f"They differ.\nChoice: {('First', 'Second', 'Both')[draw % 3]}")
    if "Answer five" in prompt:
        lines = [f"Question: {kind}?\nScore: {-(draw >> i & 1)}" for i, kind in enumerate(KINDS)]
        return text("\n".join(lines[: 4 + draw % 2]))
    if "Assistant 1" in prompt:
        return text(f"Assistant 1: {1 + draw % 10}\nAssistant 2: {1 + draw // 10 % 10}")
    if "How much feeling" in prompt:
        return text(f"Some.\nEmpathy: {1 + draw % 10}")
    if "编号：n" in prompt:
        return text(f"选择：是\n编号：{3 + draw % 4}" if draw % 2 else "选择：否\n编号：无")
    if "选择：两者" in prompt:
        choice = ("对话1", "对话2", "两者", "都不是")[draw % 4]
        return text(f"选择：{choice}；理由：有些话不像人说的。")
    if "Index: n" in prompt:
        return text(
            f"Choice: Yes\nIndex: {3 + draw % 4}" if draw % 2 else "Choice: No\nIndex: None"
        )
    if "Choice: Both" in prompt:
        return text(f"Choice: {('Conversation 1', 'Conversation 2', 'Both', 'Neither')[draw % 4]}")
    return text(("I see.", "That is good to hear!", "What did you do then?")[draw % 3])


def criterion(folder: Path) -> None:
    """Two questions of one's own, a score and a choice, asked over HTTP."""
    ask = "How much feeling is in this?\n{{conversation}}\nEnd with: Empathy: 1 to 10\n"
    pair = "How warm?\n{{conversation_1}}\n\n{{conversation_2}}\nChoice: First, Second or Both\n"
    (folder / "empathy.txt").write_text(ask)
    (folder / "warmth.txt").write_text(pair)
    with Server(umpire) as server:
        (folder / "botchat.toml").write_text(CRITERIA.format(url=server.url))
        said(folder, "generate", "generate", "--seeds", "sample", "--limit", "6",
             "--model", "ada", "--model", "bot:parrot", "--model", "bot:verbose")  # fmt: skip
        for protocol in ("empathy", "warmth"):
            said(folder, protocol, "judge", protocol, "--seeds", "sample", "--judge", "umpire",
                 "--limit", "40")  # fmt: skip
    said(folder, "board", "leaderboard", "--seeds", "sample")
    (folder / "botchat.toml").unlink()  # it names a port


def bench_file(folder: Path) -> None:
    """One's own texts and pairs of answers, some with human labels, asked over HTTP."""
    texts = ["Kim had a cat. It slept.", "I like Rob. He left.", "A fish flew by.", "It was late."]
    labels = ["0", "-2", "-1", ""]
    rows = [
        {"text": one, "logical_inconsistency": label}
        for one, label in zip(texts, labels, strict=True)
    ]
    (folder / "stories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [
        {"question": f"A {one}?", "answer_1": "Water.", "answer_2": f"No {one}.", "winner": winner}
        for one, winner in (("lake", "1"), ("hill", "tie"), ("tree", "2"), ("road", "1"))
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    with Server(umpire) as server:
        (folder / "botchat.toml").write_text(MODELS.format(url=server.url))
        for name in ("stories", "answers"):
            said(folder, name, "bench", folder / f"{name}.jsonl", "--judge", "umpire")
        with contextlib.closing(sqlite3.connect(folder / ".botchat" / "ledger.sqlite3")) as db:
            db.execute("UPDATE calls SET latency_s = 1")
            db.commit()
        for name in ("stories", "answers"):  # again, with the same time of each call
            said(folder, name, "bench", folder / f"{name}.jsonl", "--judge", "umpire")
    (folder / "botchat.toml").unlink()  # it names a port


FAMILIES: dict[str, Family] = {
    "demo": demo,
    "botchat-2023": botchat_2023,
    "votes": votes,
    "zh": chinese,
    "papers": papers,
    "criterion": criterion,
    "bench-file": bench_file,
}
