"""The first screen: what it shows at once, what its table does, and that its address keeps it."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from botchat.boards.board import build_board
from botchat.records import natural_sort_key
from botchat.report import View, files, render
from botchat.report.archive import build
from botchat.workspace.jsonl import write_all
from tests.boards import QUICK, make_records
from tests.browser.conftest import SHOWN_AT, Browser, assert_fits, serious_faults

TABLE = "#board > [data-judge='0'] table.board"
SHOWN = (
    "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
    ".filter((row) => !row.hidden).map((row) => row.dataset.model)"
)
IN_SIGHT = (
    "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].filter((row) => {"
    "const box = row.getBoundingClientRect();"
    "return box.top >= 0 && box.bottom <= innerHeight}).length"
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 contestants by two judges on 8 seeds, with costs."""
    folder = tmp_path_factory.mktemp("large")
    names = ["bot:eliza", "bot:parrot", "模型一号", f"a-model-with-a-very-long-name{'-2024' * 4}"]
    names += [f"model-{i}" for i in range(20)]
    skills = {name: random.Random(name).random() for name in names}
    first = make_records(skills, 8, arena=(16,))
    other = make_records({name: 1 - skill for name, skill in skills.items()}, 8, arena=(16,))
    renamed = {
        protocol: [msgspec.structs.replace(one, judge="judge: B") for one in said]
        for protocol, said in other.judgments.items()
    }
    boards = [
        build_board(
            first.seeds, first.dialogues, judged, seed_set="made-up", judge=judge, elo=QUICK
        )
        for judge, judged in (("rules", first.judgments), ("judge: B", renamed))
    ]
    views = [View.of(board) for board in boards]
    judged = {"rules": first.judgments, "judge: B": renamed}
    write_all(folder, files(views, build(first.seeds, first.dialogues, judged)))
    return folder / "index.html"


@pytest.mark.parametrize(("width", "height", "rows"), [(1440, 900, 15), (390, 844, 5)])
def test_many_models_are_in_sight_at_once(
    browser: Browser, large: Path, width: int, height: int, rows: int
) -> None:
    """With the judge's verdict and the sentence above them; rows are of one line."""
    browser.open(large, width=width, height=height)
    assert browser.run(IN_SIGHT, TABLE) >= rows
    tall = browser.run(
        "return Math.max(...[...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".map((row) => row.getBoundingClientRect().height))",
        TABLE,
    )
    assert tall <= 34
    for part in ("h1", ".stamp", "thead"):
        boxes = "[...document.querySelectorAll('#board ' + arguments[0])].map((one) => "
        boxes += "one.getBoundingClientRect())"
        seen = f"return {boxes}.some((b) => b.width && b.top >= 0 && b.bottom < innerHeight)"
        assert browser.run(seen, part), part
    assert browser.complaints() == []


@pytest.mark.parametrize(("width", "dark"), SHOWN_AT)
def test_it_fits_is_legible_and_accessible(
    browser: Browser, large: Path, page: Path, width: int, dark: bool
) -> None:
    """Nothing is wider than the screen, no text below 11 px, no serious fault by axe."""
    for one in (large, page):
        browser.open(one, width=width, height=900, dark=dark)
        assert_fits(browser)
    assert width == 1024 or serious_faults(browser) == []


@pytest.mark.parametrize("view", ["", "pair", "read", "figures", "judges", "tables"])
def test_every_view_is_accessible(browser: Browser, three: Path, view: str) -> None:
    """No fault by axe, one first heading; the skip link leads to the table in two more keys."""
    browser.open(three, width=1440, height=900, fragment=f"#view={view}" if view else "")
    if view in ("pair", "read"):
        browser.text(".duel h3, .reading h3")
    assert serious_faults(browser, every=True) == []
    heads = "return [...document.querySelectorAll('h1')].filter((one) => one.offsetWidth).length"
    assert browser.run(heads) == 1
    said = "return [...document.querySelectorAll('.chat .bubble > p')].every((one) => one.lang)"
    assert browser.run(said)
    if not view:
        for key in ("\ue004", "\ue007", "\ue004"):  # Tab, Enter, Tab
            browser.press(key)
        assert browser.run("return Boolean(document.activeElement.closest('table.board'))")


def test_every_column_sorts_both_ways_and_the_address_keeps_it(
    browser: Browser, large: Path
) -> None:
    """By the keyboard too; missing values stay last, and the order is told to screen readers."""
    browser.open(large, width=1440, height=900)
    value = (
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) =>"
        "arguments[1] === 'model' ? row.dataset.model : row.cells[[...document.querySelectorAll("
        "arguments[0] + ' thead th')].findIndex((h) => h.dataset.key === arguments[1])]"
        ".dataset.value)"
    )
    keys = browser.run(
        "return [...document.querySelectorAll(arguments[0] + ' thead th')]"
        ".map((head) => head.dataset.key)",
        TABLE,
    )
    assert len(keys) == 6
    for key in keys:
        orders = []
        for _ in range(2):
            head = browser.driver.find_element("css selector", f"{TABLE} th[data-key='{key}']")
            head.find_element("css selector", "button").send_keys("\n")
            orders.append(head.get_attribute("aria-sort"))
            values = browser.run(value, TABLE, key)
            known = [one for one in values if one]
            assert values[: len(known)] == known
            sort: Callable[[str], Any] = (
                (lambda text: natural_sort_key(text.lower())) if key == "model" else float
            )
            if key == "model":
                known = [one for one in known if one.isascii()]
            found = [sort(one) for one in known]
            assert found == sorted(found, reverse=orders[-1] == "descending")
        assert sorted(map(str, orders)) == ["ascending", "descending"]
        shown = browser.run(SHOWN, TABLE)
        fragment = browser.run("return location.hash")
        browser.open(large, fragment)
        browser.until(lambda shown=shown: browser.run(SHOWN, TABLE) == shown)


def test_filter_and_judge_are_in_the_address(browser: Browser, large: Path) -> None:
    """Opened again they show the same; what is at its default is not in it."""
    browser.open(large, width=1440, height=900)
    field = browser.driver.find_element("css selector", "#board input[type=search]")
    field.send_keys("ELIZA, model-1")
    shown = browser.run(SHOWN, TABLE)
    assert set(shown) == {"bot:eliza", "model-1", *(f"model-{i}" for i in range(10, 20))}
    assert browser.text("#board output") == "12 of 25"
    browser.choose(".switch select", "1")
    fragment = browser.run("return location.hash")
    for part in ("filter=ELIZA", "judge=judge"):
        assert part in fragment
    browser.open(large, fragment)
    second = TABLE.replace("'0'", "'1'")
    browser.until(lambda: set(browser.run(SHOWN, second)) == set(shown))
    assert [one for one in browser.requests() if "judge-" in one] == [
        (large.parent / "chunks" / "judge-1.js").as_uri()
    ]
    assert browser.run("return document.querySelector(arguments[0]).offsetWidth > 0", second)
    assert browser.run("return document.getElementById('wrong-link').hidden")
    browser.open(large, "#filter=eliza")
    field = browser.driver.find_element("css selector", "#board input[type=search]")
    assert field.get_attribute("value") == "eliza"
    field.clear()
    field.send_keys(" \b")
    assert browser.run("return location.hash") in ("", "#")


def judged(folder: Path, n_models: int, n_judges: int) -> Path:
    """A page of so many contestants and judges, with the figures of the first judge."""
    records = make_records({f"model-{i}": 0.95 - i / 15 for i in range(n_models)}, 16)
    first = records.board()
    boards = [first, *(dataclasses.replace(first, judge=f"judge {i}") for i in range(1, n_judges))]
    views = [View.of(board) for board in boards]
    said = {board.judge: records.judgments for board in boards}
    write_all(folder, files(views, build(records.seeds, records.dialogues, said)))
    return folder / "index.html"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 contestants by three judges: everything that a large page has, which axe reads sooner."""
    return judged(tmp_path_factory.mktemp("three"), 4, 3)


def test_paper_has_the_columns_of_the_screen_and_no_controls(browser: Browser, large: Path) -> None:
    """Printed, every figure is there, and nothing to press."""
    browser.open(large, width=1440, height=900)
    heads = (
        "return [...document.querySelectorAll(arguments[0] + ' thead th')]"
        ".filter((head) => head.getClientRects().length).map((head) => head.dataset.key)"
    )
    shown = browser.run(heads, TABLE)
    browser.command("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.run(heads, TABLE) == shown
        pressable = "return [...document.querySelectorAll('nav, .tools, .quiet')]"
        assert not browser.run(f"{pressable}.some((one) => one.getClientRects().length)")
        assert browser.run("return document.getElementById('tables').getClientRects().length")
    finally:
        browser.command("Emulation.setEmulatedMedia", {"media": ""})


def test_the_page_reads_without_scripts(browser: Browser, page: Path) -> None:
    """Verdict, table, figures and prompts are there."""
    browser.command("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(page)
        shown = browser.driver.find_elements("css selector", f"{TABLE} tbody tr")
        assert len(shown) == 4
        assert all(row.is_displayed() for row in shown)
        assert browser.driver.find_element("css selector", ".judge .stamp").is_displayed()
        figures = browser.driver.find_elements("css selector", ".figures figure svg")
        assert len(figures) >= 8
        assert browser.driver.find_element("css selector", "#tables details").is_displayed()
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_failed_judge_takes_the_first_screen(browser: Browser, tmp_path: Path) -> None:
    """Sentence and title are its fault, the table fades, another judge and an example are there."""
    records = make_records({"bot:eliza": 0.1, "good": 0.9, "poor": 0.2}, 60, unreadable=0)
    never = {"place": "No", "pair": "neither"}
    said = {
        protocol: [
            msgspec.structs.replace(
                one, verdict=never["place" if protocol == "unieval" else "pair"], judge="never"
            )
            for one in given
        ]
        for protocol, given in records.judgments.items()
    }
    boards = [
        build_board(
            records.seeds, records.dialogues, told, seed_set="made-up", judge=judge, elo=QUICK
        )
        for judge, told in (("never", said), ("rules", records.judgments))
    ]
    views = [View.of(board) for board in boards]
    page = tmp_path / "index.html"
    page.write_text(render(views))
    browser.open(page, width=1440, height=900)
    fault = "No ranking: the judge passes bots as human"
    assert browser.text("h1") == f"{fault}."
    assert fault in browser.driver.title
    assert "Do not trust" in browser.text(".stamp")
    assert browser.run("return !!document.querySelector('table.board.faded')")
    browser.run("document.querySelector('.sub a').click()")
    browser.until(lambda: browser.run("return location.hash") == "#judge=rules")
    assert not browser.run("return !!document.querySelector('[data-judge=\"1\"] .faded')")
    assert json.dumps(browser.complaints()) == "[]"
