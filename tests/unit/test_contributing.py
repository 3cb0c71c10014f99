"""CONTRIBUTING's "Where does a change go?" is made of the modules' own first sentences."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN = "<!-- where:begin (made by tests/unit/test_contributing.py --update-tables) -->"
END = "<!-- where:end -->"

WHERE = {
    "a protocol": "protocols/catalogue.py",
    "a kind of answer, how it is read and shown": "protocols/kinds.py",
    "the wording of a prompt, a deviation from a paper": "prompts/__init__.py",
    "a language": "languages/__init__.py",
    "a fault that `bench probe` plants": "protocols/planting.py",
    "a judge strategy": "judges/panel.py",
    "its keys, a role, a preset": "workspace/panels.py",
    "the rules judge": "judges/rules.py",
    "what a judge is worth in a word": "boards/judge_verdict.py",
    "a judge's facts (ties, first preferred, …)": "measures/facts.py",
    "a column of the leaderboard": "boards/board.py",
    "a column of a protocol": "boards/protocols.py",
    "a column of `agree`": "boards/judge_agreement.py",
    "a format of tables": "boards/writers.py",
    "a figure": "report/figures/__init__.py",
    "the page": "report/__init__.py",
    "its first screen": "report/first_screen.py",
    "what people label, and the game": "report/game.py",
    "what `view` serves": "pipeline/view.py",
    "a command, a flag": "requests/__init__.py",
    "what is printed": "cli/output.py",
    "what `run` does, in which order": "pipeline/whole_run.py",
    "what a plan counts": "pipeline/run/plan.py",
    "a setting of botchat.toml, a default": "workspace/config.py",
    "what `init` writes, a provider's lines": "pipeline/models.py",
    "a provider with its own wire format": "models/endpoint/__init__.py",
    "an endpoint's errors and quirks": "models/endpoint/model.py",
    "retries, rates, money": "models/limits.py",
    "an offline bot": "models/bots/__init__.py",
    "a seed importer": "seeds/__init__.py",
    "a format of votes": "seeds/vote_formats.py",
    "a format of dialogues": "seeds/dialogues.py",
    "a table or figure of a paper": "papers/printed.py",
    "Bradley–Terry, Elo, places, the adaptive Arena": "ratings/__init__.py",
    "an interval": "measures/intervals.py",
    "rates as people judge": "measures/references.py",
    "fields on disk": "records.py",
    "the ledger": "workspace/ledger.py",
    "a part that can be taken away": "requests/leaves.py",
}
"""What people change, and the one file to open first; that file says which others go with it."""


def told(path: Path) -> str:
    """The first sentence of a module's docstring, and the paragraph on what a new one takes."""
    first, *others = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")
    new = [one for one in others if one.removeprefix("**").startswith("A new ")]
    said = " ".join(" ".join([first, *new]).split())
    return re.sub(r"(?<!`)``?(?!`)", "`", said).replace("|", "\\|")


def table() -> str:
    """The table of CONTRIBUTING."""
    lines = ["| to change or add | open in `botchat/` | which says |", "| --- | --- | --- |"]
    for change, name in WHERE.items():
        said = told(ROOT / "botchat" / name)
        lines.append(f"| {change} | `{name}` | {said} |")
    return "\n".join(lines)


def test_the_table_is_what_the_modules_say(request: pytest.FixtureRequest) -> None:
    """At most 40 rows, each a file that says in its first sentence what it is."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin
    assert end
    whole = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if request.config.getoption("update_tables"):
        PAGE.write_text(whole, "utf-8")
    assert len(WHERE) <= 40
    assert PAGE.read_text("utf-8") == whole, "write it anew: pytest FILE --update-tables"
