"""The tables of every command at four widths, as files: tests/data/terminal.

A change that is meant is written with ``pytest tests/integration/test_tables_fit.py
--update-tables``; look at the difference before committing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from botchat.cli import layout, output
from botchat.cli.main import main
from botchat.records import Seed
from botchat.requests import requests
from botchat.workspace import files
from tests.openai_server import Server, text

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "terminal"
RATES = ROOT / "leaderboards" / "botchat-2023" / "arena_n16.csv"
WIDTHS = (60, 80, 120, 200)

BOTS = ("bot:eliza", "bot:parrot", "bot:retrieval", "bot:verbose")
MODELS = [word for bot in BOTS for word in ("--model", bot)]
SET = ["--seeds", "small"]
LONG = "a-judge-with-a-name-that-is-far-too-long-for-a-narrow-terminal"

COMMANDS = {
    "seeds-import": ["seeds", "import", "more.jsonl", "--name", "more"],
    "seeds-list": ["seeds", "list"],
    "seeds-show": ["seeds", "show", "small"],
    "seeds-show-one": ["seeds", "show", "small", "s1"],
    "models": ["models"],
    "generate-plan": ["generate", *SET, *MODELS, "--plan"],
    "generate": ["generate", *SET, *MODELS, "--turns", "8"],
    "judge-plan": ["judge", "arena", *SET, "--judge", LONG, "--turns", "8", "--plan"],
    "judge-arena": ["judge", "arena", *SET, "--judge", "rules", "--turns", "8"],
    "judge-unieval": ["judge", "unieval", *SET, "--judge", LONG],
    "judge-gteval": ["judge", "gteval", *SET, "--judge", "rules"],
    "judge-bridge": [
        "judge", "unieval", *SET, "--judge", "rules", "--bridge-from", LONG, "--budget", "25",
    ],
    "judge-adaptive": [
        "judge", "arena", *SET, "--judge", "rules", "--turns", "6", "--adaptive", "--budget", "40",
    ],
    "probe": ["bench", "probe", *SET, "--judge", "rules", "--limit", "3"],
    "leaderboard": ["leaderboard", *SET, "--judge", "rules"],
    "rank-rates": ["rank", str(RATES)],
    "compare": ["compare", "small", "leaderboards/small/leaderboard.json"],
    "label-plan": ["label", "plan", *SET, "--judge", "rules", "--budget", "20"],
    "agree": ["agree", *SET, "--protocol", "unieval"],
    "agree-bridge": ["agree", "bridge", LONG, "rules", *SET],
    "bench": [
        "bench", "faireval", "--data", "faireval", "--judge", LONG,
    ],
    "rank": ["rank", "votes.csv"],
    "evaluate": ["evaluate", "texts.txt", "--judge", "rules"],
    "dialogues-import": [
        "dialogues", "import", "told.jsonl", "--set", "told", "--model", "m", "--new-seeds",
    ],
    "export": ["share", "export", *SET, "--as", "jsonl", "--out", "dataset"],
    "label-import": ["label", "import", "amy.jsonl", *SET],
    "remove": ["remove", *SET, "--model", "bot:parrot"],
    "ledger-stats": ["ledger", "stats"],
    "ledger-export": ["ledger", "export", "calls.jsonl"],
    "ledger-import": ["ledger", "import", "calls.jsonl"],
    "ledger-rebuild": ["ledger", "rebuild", "store"],
    "ledger-forget": ["ledger", "forget", "--outcome", "ok"],
}  # fmt: skip
"""In an order in which each finds what it needs."""


def answers(call):
    """Scores for FairEval; else everybody passes."""
    if "Score" in call.messages[-1]["content"]:
        return text("Score of Assistant 1: 7\nScore of Assistant 2: 5")
    return text("Choice: No\nReason: fine")


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Iterator[dict[str, list[layout.Grid]]]:
    """Command -> the tables that it prints."""
    folder = tmp_path_factory.mktemp("everything")
    seeds = [
        Seed(f"s{n}", tuple(f"This is line {i} of the long talk number {n}." for i in range(8)))
        for n in range(8)
    ]
    files.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    (folder / "more.jsonl").write_bytes((folder / "seeds" / "small.jsonl").read_bytes())
    votes = [f"{'abc'[n % 3]},{'bca'[n % 3]},model_{'ab'[n % 2]}\n" for n in range(30)]
    (folder / "votes.csv").write_text("".join(["model_a,model_b,winner\n", *votes]))
    (folder / "texts.txt").write_text("A first text. It ends.\n\nAnother one.\n")
    (folder / "told.jsonl").write_text('{"utterances": ["one", "two", "three", "four"]}\n')
    faireval = folder / "faireval"
    for name in ("question", "answer/answer_gpt35", "answer/answer_vicuna-13b"):
        path = faireval / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [{"question_id": n, "text": f"{name[-3:]} says {n}"} for n in range(4)]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (faireval / "review").mkdir()
    labels = "CHATGPT\nVICUNA13B\nTIE\nTIE"
    (faireval / "review" / "review_gpt35_vicuna-13b_human.txt").write_text(labels)
    found: dict[str, list[layout.Grid]] = {}

    def same(table: layout.Grid) -> layout.Grid:
        """The table as on any machine: addresses and times are not."""

        def told(key: str, cell: str) -> str:
            if key in ("latency_s", "seconds", "kept"):
                return "0"
            return cell.replace(server.url, "http://server/v1").replace(str(ROOT), "/botchat")

        rows = (tuple(map(told, table.keys, row)) for row in table.cells)
        return replace(table, cells=tuple(rows))

    def keep(parts: Sequence[str | layout.Grid], _: object) -> None:
        found[command] = [same(part) for part in parts if isinstance(part, layout.Grid)]

    with Server(answers) as server, pytest.MonkeyPatch.context() as patched:
        (folder / "botchat.toml").write_text(
            f'[models.{LONG}]\nmodel = "m"\nbase_url = "{server.url}"\n'
            "price_input = 1.0\nprice_output = 2.0\n"
        )
        patched.chdir(folder)
        patched.setattr(output, "_print", keep)
        for command, words in COMMANDS.items():
            if command == "label-import":
                (judged,) = (folder / "judgments" / "small" / "unieval").glob("rules*.jsonl")
                said = judged.read_text("utf-8").replace('"judge":"rules"', '"judge":"human:amy"')
                (folder / "amy.jsonl").write_text(said, "utf-8")
            assert main(words) == 0, command
        yield found


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_are_as_they_were_and_fit(printed, command, pytestconfig):
    """At each width exactly what the file has; no line is wider than the terminal."""
    shown = []
    for width in WIDTHS:
        for table in printed[command]:
            drawn = table.drawn(width)
            if not table.is_record:  # a path stays whole
                assert max(map(cell_len, drawn.splitlines())) <= width
            shown.append(f"--- {width} columns\n{drawn}\n")
    path = GOLDEN / f"{command}.txt"
    if pytestconfig.getoption("update_tables"):
        path.write_text("".join(shown), "utf-8")
    assert path.read_text("utf-8") == "".join(shown)


def test_a_board_of_five_contestants_is_a_screen_at_80_columns(printed):
    """It was 90 lines. Place, name, and the first number of each protocol are there."""
    (board,) = printed["leaderboard"]
    lines = board.drawn(80).splitlines()
    assert len(board.cells) == 5
    assert len(lines) <= 15
    head = " ".join(lines[:2])
    assert all(word in head for word in ("Place", "Model", "Bradley–Terry", "Passes", "GTEval"))


def test_notes_are_broken_between_words_and_commands_stay_whole():
    """A full stop ends a command only before a blank: a file's name goes on."""
    command = "botchat agree votes.csv --truth human --seeds a-set-with-a-long-name --judge rules"
    note = f"Judge less other, on what both answered. Ask people as well: {command}; it costs time."
    told = layout.wrapped(f"{note}\n\n  short", 80).split("\n")
    assert told == [
        "Judge less other, on what both answered. Ask people as well:",
        f"{command};",
        "it costs time.",
        "",
        "  short",
    ]
    assert layout.wrapped(note, layout.UNLIMITED) == note
    signature = f"botchat:0.1.0|bench|truth:human labels|{'data:1|' * 12}bootstrap:1000"
    assert layout.wrapped(signature, 80) == signature


def test_every_command_with_a_table_is_there():
    """The others have none, or leaderboard's (demo, run); need a hub, or a model that writes."""
    known = requests()
    called = {
        two if (two := " ".join(words[:2])) in known else words[0] for words in COMMANDS.values()
    }
    others = {"demo", "run", "leaderboard page", "leaderboard figure", "init", "view", "label"}
    others |= {"share publish", "share fetch", "bench language"}
    assert {*known} == called | others
