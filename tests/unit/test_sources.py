"""``prompts/sources.toml``: every prompt is in it and quotes what it says; `SOURCES.md` of it."""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import pytest

from botchat import prompts
from botchat.languages import built_in
from botchat.protocols.catalogue import UNIEVAL
from botchat.protocols.frame import prompt_frame as wording_of

FOLDER = Path(prompts.__file__).parent
ROOT = FOLDER.parents[1]
PAPERS = ROOT.parent / "shared" / "papers"
TABLE = tomllib.loads((FOLDER / "sources.toml").read_text("utf-8"))
PROMPTS = TABLE["prompts"]
QUOTING = [row for row in PROMPTS if row["wording"] != "ours"]


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
    lines = (ROOT / "tests/data/sources_head.md").read_text("utf-8").splitlines()
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


def test_the_document_is_what_the_table_makes(pytestconfig):
    """SOURCES.md, whole."""
    page = FOLDER / "SOURCES.md"
    if pytestconfig.getoption("update_tables"):
        page.write_text(sources(), "utf-8")
    assert page.read_text("utf-8") == sources()


def test_every_deviation_says_what_theirs_ours_and_its_effect():
    """Four filled columns a row of docs/papers.md, under each of the three papers."""
    page = (ROOT / "docs" / "papers.md").read_text("utf-8")
    papers = re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in papers] == ["BotChat", "ChatEval", "MATEval"]
    for _, section in papers:
        rows = [line.strip("|").split("|") for line in section.splitlines() if line[:1] == "|"]
        assert rows[0] == [" what ", " theirs ", " ours ", " effect "]
        assert len(rows) > 10
        assert all(len(row) == 4 and all(map(str.strip, row)) for row in rows)


# UniEval's in-context examples: our own dialogues, in the composition of the authors' code.


LANGUAGES = [built_in()[code] for code in ("en", "zh")]


def examples(language):
    """(utterances, response) of every example."""
    end = "<chat_end>" if language.english else language.labels.end
    heads = {"en": ("Conversation:", "Response:"), "zh": ("对话：", "回答：")}[language.code]
    for part in language.text("unieval_examples").split(f"\n{heads[0]}\n")[1:]:
        said, _, response = part.partition(f"\n{heads[1]}\n")
        lines = said.split("\n")
        for i, line in enumerate(lines):
            assert line.startswith(f"{'AB'[i % 2]}: ")
            assert line.endswith(f" {end}")
        yield [line[3:].removesuffix(end).strip() for line in lines], response.strip()


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.code)
def test_the_composition_is_upstreams(language):
    """No at 4, Yes at 11 of 15, Yes at 9 of 14, No at 12, as the judge's own reader reads them."""
    found = []
    for said, response in examples(language):
        verdict, why = UNIEVAL.spoken(language).reading(tuple(said)).read(response)
        assert why
        found.append((verdict, len(said)))
    assert found == [("No", 4), ("11", 15), ("9", 14), ("No", 12)]


def test_the_frame_is_the_one_around_what_is_judged():
    """An example looks like the dialogue that follows it."""
    for language in LANGUAGES:
        wording = wording_of(language)
        for said, _ in examples(language):
            assert wording.conversation(said) in language.text("unieval_examples")
