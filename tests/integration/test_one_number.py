"""One number has one value and one interval, wherever it stands: tables, JSON, page.

Everything that a run with two judges writes and prints is walked. A number is known by who judged,
in which protocol or table, of whom, and by its key; on the page by its heading.
"""

import csv
import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from botchat.pipeline.load import load
from botchat.records import HUMAN
from botchat.workspace.folder import Workspace
from tests.commands import said

JUDGES = ("rules", "noisy")
SUBJECTS = ("length", "model", "model_a", "model_b", "contestant", "judge_a", "judge_b")
ENDS = ("", "_low", "_high")
_ROUNDED = 0.51, 0.51, 0.51
"""How far a number and its ends on the page, rounded for people, may be from those in files."""


class Places:
    """Every number that was met: judge, protocol, contestants, key -> its ends -> where."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], dict[tuple[float, ...], set[str]]]
        self.numbers = defaultdict(lambda: defaultdict(set))

    def row(self, judge: str, protocol: str, row: Mapping[str, Any], place: str) -> None:
        """Add each entry of a row that has its ends beside it."""
        judge, protocol = row.get("judge") or judge, row.get("protocol") or protocol
        subject = "|".join(str(row[key]) for key in SUBJECTS if key in row)
        for key in row:
            ends = [row.get(f"{key}{end}") for end in ENDS]
            if all(end not in (None, "") for end in ends):
                rounded = tuple(round(float(end), 4) for end in ends)
                self.numbers[judge, protocol, subject, key][rounded].add(place)

    def walk(self, judge: str, protocol: str, content: Any, place: str) -> None:
        """Add every mapping of JSON; a check of a judge is a number under its key."""
        if isinstance(content, dict):
            if {"key", "value", "low", "high"} <= content.keys():
                ends = zip(ENDS, ("value", "low", "high"), strict=True)
                row = {f"{content['key']}{end}": content[name] for end, name in ends}
                row["model"] = content["model"]
                self.row(judge, content["protocol"] or protocol, row, place)
            self.row(judge, protocol, content, place)
            for name, part in content.items():
                table = isinstance(part, dict) and "rows" in part
                self.walk(judge, name if table else protocol, part, f"{place}/{name}")
        elif isinstance(content, list):
            for part in content:
                self.walk(judge, protocol, part, place)


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, judged a second time by a judge who errs, and skips one case in twenty."""
    folder = shutil.copytree(demo_folder, tmp_path_factory.mktemp("one") / "w")
    rng = random.Random(0)
    other = {"1": "2", "2": "1", "No": "3", "neither": "1", "both": "2"}
    for path in sorted((folder / "judgments" / "sample").glob("*/*.jsonl")):
        lines = []
        for line in path.read_text("utf-8").splitlines():
            judgment = json.loads(line)
            verdict, chance = judgment["verdict"], rng.random()
            wrong = other.get(verdict, "No") if chance < 0.3 else verdict
            changed = {"judge": "noisy", "verdict": None if chance < 0.05 else wrong}
            lines.append(json.dumps(judgment | changed) + "\n")
        path.with_name("noisy.jsonl").write_text("".join(lines), "utf-8")
    return folder


def cells(page: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Model, key, and number with its interval, of each cell of a page's main table."""
    for model, row in re.findall(r'<tr class="\w*" data-model="(.*?)">(.*?)</tr>', page, re.DOTALL):
        for key, cell in re.findall(r'<td [^>]*data-key="(\w+)"[^>]*>(.*?)</td>', row, re.DOTALL):
            text = " ".join(re.sub(r"<.*?>", " ", cell).split())
            if shown := re.fullmatch(r"(-?[\d.]+) (-?\d+)–(-?\d+)", text):
                yield model, key, shown.groups()


def test_a_number_has_one_interval_everywhere(folder: Path, capsys: Any) -> None:
    """Of each judge, protocol and contestant: one value, one lower and one upper end."""
    places = Places()
    everyone = load(Workspace(folder), "sample", JUDGES)
    where = ["--seeds", "sample", "--dir", folder]
    for judge in JUDGES:
        board, out = everyone.board(judge), folder / judge
        printed = said(capsys, "leaderboard", *where, "--judge", judge, "--out", out)
        quoted = {
            part.quote(column).key: (part.table.name, column.key)
            for part in board.parts
            for column in part.table.columns
        }
        for path in sorted(out.glob("*.csv")):
            for row in csv.DictReader(path.read_text("utf-8").splitlines()):
                if path.stem != "leaderboard":
                    places.row(judge, path.stem, row, path.name)
                for key, (protocol, own) in quoted.items() if path.stem == "leaderboard" else ():
                    ends = {f"{own}{end}": row.get(f"{key}{end}") for end in ENDS}
                    places.row(judge, protocol, {"model": row["model"], **ends}, path.name)
        written = json.loads((out / "leaderboard.json").read_text("utf-8"))
        places.walk(judge, "", {"tables": written["tables"], "judge": written["judge"]}, "file")
        places.walk(judge, "", printed["judge"], "leaderboard --json")
        on_page = 0
        for model, key, texts in cells((out / "index.html").read_text("utf-8")):
            protocol, own = quoted[key]
            (ends,) = places.numbers[judge, protocol, model, own]
            scale = 1 if own in ("bt", "elo") else 100
            for end, text, most in zip(ends, texts, _ROUNDED, strict=True):
                assert abs(scale * end - float(text)) <= most, (model, key, texts, ends)
            on_page += 1
        assert on_page > 15
    for protocol in ("arena-n16", "arena-n8", "gteval", "unieval"):
        printed = said(capsys, "agree", *where, "--protocol", protocol)
        places.walk("", protocol, [*printed["judges"], *printed["pairs"]], "agree --json")
    numbers = {key for _, _, _, key in places.numbers}
    rates = {"consistency", "first_preferred", "ties", "unreadable_rate"}
    assert rates <= numbers
    twice = {number: dict(ends) for number, ends in places.numbers.items() if len(ends) > 1}
    assert not twice, twice


def test_numbers_of_a_judge_do_not_depend_on_what_others_judged(
    folder: Path, tmp_path: Path
) -> None:
    """Models were given 30 seeds; another judge has judged the human dialogues of 10 more."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    late = {f'"seed_id":"{seed.id}"' for seed in Workspace(tmp_path).seeds("sample")[30:]}
    for path in [*tmp_path.glob("generations/*/*"), *tmp_path.glob("judgments/*/*/*.jsonl")]:
        kept = [
            line
            for line in path.read_text("utf-8").splitlines(keepends=True)
            if not any(seed in line.replace(": ", ":") for seed in late)
            or (path.name == "noisy.jsonl" and f'["{HUMAN}"]' in line)
        ]
        path.write_text("".join(kept), "utf-8")
    alone, together = (load(Workspace(tmp_path), "sample", by) for by in (["rules"], JUDGES))
    assert (
        len(together.judgments["noisy"]["unieval"])
        == len(together.judgments["rules"]["unieval"]) + 10
    )
    boards = [data.board("rules") for data in (alone, together)]
    for one, other in zip(*(board.every_table for board in boards), strict=True):
        assert one.signatures == other.signatures
        assert one.frame.equals(other.frame)
