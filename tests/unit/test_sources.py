"""``prompts/sources.toml``: every prompt is in it and quotes what it says; documents made of it."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import pytest

from botchat import prompts

FOLDER = Path(prompts.__file__).parent
ROOT = FOLDER.parents[1]
PAPERS = ROOT.parent / "shared" / "papers"
TABLE = tomllib.loads((FOLDER / "sources.toml").read_text("utf-8"))
PROMPTS = TABLE["prompts"]
QUOTING = [row for row in PROMPTS if row["wording"] != "ours"]

BEGIN, END = (
    "<!-- deviations:begin (made of botchat/prompts/sources.toml) -->",
    "<!-- deviations:end -->",
)


def plain(text: str) -> str:
    """Without what a transcript of a page adds: line breaks, formulae, typographic quotes."""
    marks = str.maketrans({"’": "'", "“": '"', "”": '"', "$": "", "*": ""})
    text = text.replace("\\_", "_").replace("\\le", "≤").replace("\\#", "#").translate(marks)
    return " ".join(text.split()).replace("[ ", "[").replace(" ]", "]")


def quotations(row: dict) -> Iterator[str]:
    """The quoted passages of every file of a row."""
    for name in row["files"]:
        text = plain(prompts.text(name))
        for first, last in row.get("passages", [["", ""]]):
            start = text.index(plain(first))
            yield text[start : text.rindex(plain(last)) + len(plain(last))]


def digest(row: dict) -> str:
    """Of what a row quotes."""
    return hashlib.sha256("\0".join(quotations(row)).encode()).hexdigest()[:8]


def sources() -> str:
    """SOURCES.md."""
    lines = [
        "# Where the wording comes from",
        "",
        "Made of `sources.toml`; change that, and write this anew with",
        "`pytest tests/unit/test_sources.py --update-tables`.",
        "",
        "One text file a prompt. Placeholders are written `{{name}}`; `botchat.prompts` refuses to",
        "fill one that is unknown or to leave one open, and puts a digest of the files used into",
        "every signature.",
        "",
        "| file | wording | source | notes |",
        "| --- | --- | --- | --- |",
    ]
    for row in PROMPTS:
        files = ", ".join(f"`{name}.txt`" for name in row["files"])
        wording = {"in part": "quoted in part", "ours": "ours, after"}.get(row["wording"], "quoted")
        lines.append(f"| {files} | {wording} | {row['paper']}, {row['section']} | {row['why']} |")
    lines += ["", "Papers:", ""]
    lines += [f"- {name}: {cited}" for name, cited in TABLE["papers"].items()]
    for code, said in TABLE["languages"].items():
        told = f"`botchat/languages/{code}/prompts/`: {said}"
        lines += ["", fill(told, 100, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def deviations() -> str:
    """The part of docs/papers.md."""
    parts = []
    for paper, said in TABLE["deviations"].items():
        wrap = {"width": 105, "break_on_hyphens": False, "break_long_words": False}
        items = [fill(one, initial_indent="- ", subsequent_indent="  ", **wrap) for one in said]
        parts.append("\n".join([f"**{paper}** ({TABLE['papers'][paper]})", "", *items]))
    return "\n\n".join(parts)


def prompts_in(folder: Path) -> set[str]:
    """Names of a folder's prompts."""
    return {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.txt")}


def test_every_prompt_is_in_the_table_once():
    """And every file of the table is a prompt; other languages have files of the same names."""
    named = [name for row in PROMPTS for name in row["files"]]
    assert len(named) == len(set(named))
    assert set(named) == prompts_in(FOLDER)
    for pack in FOLDER.with_name("languages").glob("*/prompts"):
        assert pack.parent.name in TABLE["languages"]
        assert prompts_in(pack) <= set(named)


def test_every_row_says_what_it_is():
    """What is ours says why; what is quoted has the digest of the quotation."""
    for row in PROMPTS:
        assert row["wording"] in ("quoted", "in part", "ours")
        assert row["paper"] in TABLE["papers"]
        assert row["why"] or row["wording"] == "quoted"
        assert ("digest" in row) == (row["wording"] != "ours")
        assert ("passages" in row) == (row["wording"] == "in part")
    assert set(TABLE["deviations"]) == {"BotChat", "ChatEval", "MATEval"}


@pytest.mark.parametrize("row", QUOTING, ids=lambda row: row["files"][0])
def test_quotations_stay_as_they_are(row):
    """A change of one is a change of the benchmark: it needs a new digest here."""
    assert digest(row) == row["digest"], digest(row)


@pytest.mark.parametrize("row", QUOTING, ids=lambda row: row["files"][0])
def test_quotations_stand_in_the_paper(row):
    """Word for word; places to fill in may have other names there."""
    paper = PAPERS / {"BotChat": "botchat.md", "ChatEval": "chateval-v2.md"}[row["paper"]]
    if not paper.exists():
        pytest.skip("the papers' texts are not beside the project")
    printed = plain(paper.read_text("utf-8"))
    for quoted in quotations(row):
        parts = re.split(r"\{\{\w+\}\}", quoted)
        assert re.search(r"\{\w+\}".join(map(re.escape, parts)), printed), quoted


def test_both_documents_are_what_the_table_makes(pytestconfig):
    """SOURCES.md whole; of docs/papers.md what stands between its marks."""
    page, papers = FOLDER / "SOURCES.md", ROOT / "docs" / "papers.md"
    before, begin, rest = papers.read_text("utf-8").partition(BEGIN)
    assert begin
    _, end, after = rest.partition(END)
    whole = f"{before}{BEGIN}\n{deviations()}\n{END}{after}"
    if pytestconfig.getoption("update_tables"):
        page.write_text(sources(), "utf-8")
        papers.write_text(whole, "utf-8")
    assert end
    assert page.read_text("utf-8") == sources()
    assert papers.read_text("utf-8") == whole
