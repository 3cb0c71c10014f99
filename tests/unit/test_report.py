"""The page: complete, self-contained, and inert whatever models say and are called."""

import base64
import dataclasses
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import chain
from typing import Any, get_args
from urllib.parse import parse_qsl

import msgspec
import pytest

from botchat.interfaces import Kind
from botchat.protocols.kinds import Answer
from botchat.records import HUMAN
from botchat.report import contract
from botchat.report.archive import SEEDS, Archive, build
from botchat.report.contract import PageIndex, PageSeed
from botchat.report.first_screen import axis_ticks
from botchat.report.page import ICON, View, files, join_files
from tests.boards import Records, make_records
from tests.browser import pages

HOSTILE = (*pages.HOSTILE, "{{ 7 * 7 }}{% raw %}")
VOID = {"link", "meta", "br", "img", "path", "use", "rect", "line", "circle", "input"}
BESIDE = re.compile(r"[a-z0-9-]+\.(csv|html)(#judge)?")
"""Files of the same folder."""


class Page(HTMLParser):
    """What a browser would see: elements with attributes, and the text of each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.unclosed: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.unclosed.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Every end fits the innermost beginning."""
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.texts.append(data)

    def attributes(self) -> Iterator[tuple[str, str]]:
        """Names and values of all attributes."""
        for _, attrs in self.elements:
            yield from ((name, value or "") for name, value in attrs.items())


def page_of(records: Records) -> str:
    """The whole page of some records."""
    board = records.board()
    chunks = build(records.seeds, records.dialogues, {board.judge: records.judgments})
    return files([View.of(board)], chunks)["index.html"]


@pytest.fixture(scope="module")
def html() -> str:
    """The page of three plain models."""
    return page_of(make_records({"best": 0.9, "good": 0.6, "poor": 0.1}, 12))


def test_every_column_is_explained(html: str) -> None:
    """Under Method, once, by the words of its heading."""
    heads = re.findall(r'<th scope="col"[^>]* data-key="\w+">.*?<b>(.*?)</b>', html)
    terms = ", ".join(re.findall("<dt>(.*?)</dt>", html)).split(", ")
    assert {"Rating", "Passes 16", "Same length", "vs human", "vs next", "n"} <= {*heads}
    assert {terms.count(head) for head in heads} == {1}


def test_no_number_has_a_minus_before_zero() -> None:
    """Neither on the page nor in a table, nor at an end of an interval."""
    records = make_records({"a": 0.9, "b": 0.1}, 12)
    board = records.board()
    for part in board.parts:
        part.table.frame[part.table.frame.select_dtypes("float").columns] = -1e-6
    chunks = build(records.seeds, records.dialogues, {board.judge: records.judgments})
    texts = Page(files([View.of(board)], chunks)["index.html"]).texts
    cells = [str(part.table.cells) for part in board.parts]
    assert any("0.0 (0–0)" in text for text in cells)
    assert not re.findall(r"(?<![\w.])[-−]0(?:\.0+)?(?![\w.])", " ".join([*texts, *cells]))


@pytest.fixture(scope="module")
def hostile() -> str:
    """A page whose every name, seed id, utterance and reason is an attack."""
    return page_of(pages.hostile_records(HOSTILE))


def test_the_page_is_well_formed(html: str, hostile: str) -> None:
    """Every element that begins ends, and no two have one id."""
    for text in (html, hostile):
        page = Page(text)
        assert page.unclosed == []
        ids = [value for name, value in page.attributes() if name == "id"]
        assert len(ids) == len(set(ids))
        views = {value for name, value in page.attributes() if name == "data-view"}
        names = {attrs.get("data-model") for _, attrs in page.elements}
        protocols = json.loads(re.findall(r'id="about">(.*?)</script>', text)[0])["protocols"]
        hrefs = {value for name, value in page.attributes() if name == "href"} - {ICON}
        for link in [value[1:] for value in hrefs if not BESIDE.fullmatch(value)]:
            if "=" not in link:
                assert link in ids
                continue
            asked = dict(parse_qsl(link))
            assert asked["view"] in views | {*protocols}
            assert asked.get("protocol", "unieval") in protocols
            assert {asked.get("a", HUMAN), asked.get("b", HUMAN)} <= names | {HUMAN}


def test_the_page_asks_for_nothing(html: str, hostile: str) -> None:
    """A policy forbids every load, and there is nothing to load: no link out, script or form."""
    for text in (html, hostile):
        page = Page(text)
        policy = next(attrs["content"] for tag, attrs in page.elements if "http-equiv" in attrs)
        assert policy is not None
        assert policy.startswith("default-src 'none';")
        (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}' 'self';" in policy
        assert "connect-src" not in policy
        tags = [tag for tag, _ in page.elements]
        assert tags.count("script") == 2
        assert not {*tags} & {"iframe", "object", "embed", "form", "img", "base"}
        for name, value in page.attributes():
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href", "action"):
                assert value.startswith("#") or value == ICON or BESIDE.fullmatch(value)
            assert "url(http" not in value
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        assert not re.search(r"@import|url\(", style)


def test_hostile_text_is_shown_as_text(hostile: str) -> None:
    """Names stand on the page as they are."""
    page = Page(hostile)
    said = "\n".join([*page.texts, *(value for _, value in page.attributes())])
    for name in HOSTILE:
        assert name in said
    assert "49" not in {text.strip() for text in page.texts if "7 * 7" in text}


def test_a_name_loses_its_last_instruct_alone() -> None:
    """In little room; one in the middle stays."""
    page = page_of(make_records({"x-instruct-v2-instruct": 0.9, "b": 0.1}, 6))
    assert '<bdi>x-instruct-v2<span class="tail">-instruct</span></bdi>' in page


def test_a_page_without_judgments_says_so() -> None:
    """Its table has the lengths."""
    nothing = make_records({"a": 0.9}, 6)
    text = page_of(Records(nothing.seeds, nothing.dialogues, {}))
    assert Page(text).unclosed == []
    assert "Nothing was judged yet." in text


@pytest.mark.parametrize(
    "scale", [(0.0, 100.0), (905.0, 1095.0), (480.0, 1257.0), (0.1, 0.2), (-3e7, 5e12)]
)
def test_an_axis_has_two_to_four_round_marks_in_its_order(scale: tuple[float, float]) -> None:
    """However wide it is."""
    at, texts = zip(*axis_ticks(scale), strict=True)
    assert 2 <= len(at) <= 4
    assert [0, *at, 100] == sorted([0, *at, 100])
    assert all(len(text) <= 6 for text in texts)


def unpacked(chunks: Archive, name: str, kind: Any) -> Any:
    """What the page reads from a chunk, by name."""
    text = chunks.files[f"chunks/{name}.js"]
    found = re.fullmatch(rf'botchat\.take\("{name}","([A-Za-z0-9+/=]+)"\)\n', text)
    assert found is not None
    return msgspec.json.decode(zlib.decompress(base64.b64decode(found[1])), type=kind)


def test_the_archive_holds_every_dialogue_and_verdict() -> None:
    """Each once, under its seed, also where the set takes several chunks."""
    records = make_records({"a": 0.9, "b": 0.2}, 24)
    chunks = build(records.seeds, records.dialogues, {"rules": records.judgments})
    index: PageIndex = unpacked(chunks, "index", PageIndex)
    assert len(chunks.files) == 3
    # Of a pair the result for who is shown first: in the Arena the one named loses.
    pairwise: Mapping[Any, Any] = {None: "?", "both": "t", "neither": "t", "1": "l", "2": "w"}
    single: Mapping[Any, Any] = {None: -1, "No": 0, **{str(i): i for i in range(1, 17)}}
    judged = chain(*records.judgments.values())
    told_of = {(j.protocol, j.seed_id, j.contestants): j.verdict for j in judged}
    for at, seed in enumerate(index.seeds):
        part: PageSeed = unpacked(chunks, f"seeds-{at // SEEDS}", list[PageSeed])[at % SEEDS]
        for name, told in zip(index.contestants, part.dialogues, strict=True):
            assert tuple(told.utterances) == records.dialogues[name][seed.id].utterances
        for given in part.verdicts:
            protocol = index.about[given.protocol].name
            names = tuple(index.contestants[i] for i in given.contestants)
            assert told_of.pop((protocol, seed.id, names)) == given.verdict
            key = ",".join(map(str, given.contestants))
            if len(names) == 2:
                assert index.judges[0].pairs[protocol][key][at] == pairwise[given.verdict]
            else:
                assert index.judges[0].single[protocol][key][at] == single[given.verdict]
    assert not told_of


def test_scripts_name_the_fields_of_what_they_load() -> None:
    """Each struct has one function of core.js with its fields in their order, and no other."""
    packed = {}
    for name, kind in vars(contract).items():
        if name.startswith("Page"):
            bracket = "[" if kind.__struct_config__.array_like else "{"
            packed[name.removeprefix("Page").lower()] = (bracket, list(kind.__struct_fields__))
    (readers,) = re.findall(r"\n  const read = (\{.*?)\n  \};", join_files(["core.js"]), re.S)
    read = {}
    reader = re.compile(r"\n    (\w+): \((.*?)\) =>(.*?)(?=\n    \w|$)", re.S)
    for name, taken, given in reader.findall(readers):
        fields = re.findall(r"(\w+)(?: = [^,]+)?(?:, | *[\]}])", taken)
        read[name] = (taken[0], fields)
        assert {*fields} <= {*re.findall(r"\w+", given)}, name
    assert read == packed


def test_scripts_know_every_kind_of_answer() -> None:
    """What a reader of one dialogue does with each, and the page for labels with those it has."""
    entry = re.compile(r"\n    (\w+): \{")
    known = {}
    for name in ("dialogues.js", "label.js"):
        (kinds,) = re.findall(r"\n  const KINDS = (\{.*?)\n  \};", join_files([name]), re.S)
        known[name] = {*entry.findall(kinds)}
    labelled = {kind.name for kind in get_args(Answer) if kind.is_labelled}
    # A choice is never about one dialogue.
    assert known == {"dialogues.js": {*get_args(Kind)} - {"choice"}, "label.js": labelled}


def test_every_judge_has_a_page_and_links_to_the_others() -> None:
    """Two boards, two pages: each names the other judge, and holds its own place."""
    records = make_records({"a": 0.9, "b": 0.2}, 8)
    board = records.board()
    other = dataclasses.replace(board, judge="<b>other")
    pages = files([View.of(each) for each in (board, other)])
    assert [*pages] == ["index.html", "judge-2.html"]
    for place, text in enumerate(pages.values()):
        page = Page(text)
        hrefs = {value for name, value in page.attributes() if name == "href"}
        assert {[*pages][1 - place]} < hrefs
        assert {board.judge, "<b>other"} <= {part.strip() for part in page.texts}
        about = json.loads(re.findall(r'id="about">(.*?)</script>', text)[0])
        assert about["judge"] == place
