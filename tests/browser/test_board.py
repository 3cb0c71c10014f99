"""The first screen: what it shows at once, what its table and menus do, and each part's form."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from botchat.records import HUMAN, natural_sort_key
from tests.boards import make_records
from tests.browser.conftest import SHOWN_AT, Browser, assert_fits, serious_faults
from tests.browser.pages import write_boards

TABLE = "#ranking table.board"
ROWS = (
    "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
    ".filter((row) => !row.hidden).map((row) => row.dataset.model)"
)
HEADS = (
    "return [...document.querySelectorAll(arguments[0] + ' thead th')]"
    ".filter((head) => head.getClientRects().length).map((head) => head.dataset.key || 'model')"
)


@pytest.mark.parametrize(("width", "height", "rows"), [(1440, 900, 15), (390, 844, 5)])
def test_many_models_are_in_sight_at_once(
    browser: Browser, large: Path, width: int, height: int, rows: int
) -> None:
    """With the sentence and the judge's word above them; rows are of one line."""
    browser.open(large, width=width, height=height)
    boxes = "[...document.querySelectorAll(arguments[0])].map((e) => e.getBoundingClientRect())"
    tall = browser.run(f"return {boxes}.map((box) => [box.height, box.bottom])", f"{TABLE} tr")
    assert max(height for height, _ in tall[1:]) <= (36 if width > 600 else 70)
    assert sum(bottom <= height for _, bottom in tall[1:]) >= rows
    for part in ("h1", ".stamp", "thead"):
        seen = f"return {boxes}.some((b) => b.width && b.top >= 0 && b.bottom < innerHeight)"
        assert browser.run(seen, f"#ranking {part}"), part
    assert browser.complaints() == []


def test_the_first_screen_answers_in_three_lines(browser: Browser, three: Path) -> None:
    """Who leads by how much, how far from human, what was done; the human has one number."""
    browser.open(three, width=1440, height=900)
    title = browser.seen("#ranking h1")[0]
    assert re.fullmatch(r"model-0 leads.* \(.*won \d+, tied \d+, lost \d+.*\)\.", title)
    assert browser.seen(".gist")[0].endswith("the judge tells model-0 from people.")
    assert browser.seen(".done") == ["48 dialogues of made-up, 4 models, judge rules, USD 3.04."]
    assert browser.run(HEADS, TABLE) == [
        "rank", "model", "bt_n16", "success_n16", "success_human_length", "gteval_win_or_tie",
        "usd_per_dialogue", "n", "vs_next",
    ]  # fmt: skip
    human = f"{TABLE} tr.human td"
    values = browser.run(
        f"return [...document.querySelectorAll('{human}')].filter((e) => e.offsetWidth)"
        ".map((e) => e.innerText.trim())"
    )
    # Of dialogues of 16 utterances there are too few; one number is at the same length.
    assert sorted({text for text in values if text != "–"}) == ["96\n82–99"]
    lines = browser.run("return document.querySelectorAll('.plot g').length")
    assert lines == 5
    assert browser.run("return document.querySelectorAll('#ranking .checks li').length") <= 5
    others = "return [...document.querySelectorAll('.trust p a')].map((a) => a.textContent)"
    assert browser.run(others) == ["B", "C"]


@pytest.mark.parametrize(("width", "dark"), SHOWN_AT)
def test_it_fits_is_legible_and_accessible(
    browser: Browser, large: Path, page: Path, width: int, dark: bool
) -> None:
    """Nothing is wider than the screen, no text below 11 px, no serious fault by axe."""
    for each in (large, page):
        browser.open(each, width=width, height=900, dark=dark)
        assert_fits(browser)
    assert width != 390 or serious_faults(browser) == []


@pytest.mark.parametrize("view", ["", "pair", "read", "figures", "judge"])
def test_every_view_is_accessible(browser: Browser, three: Path, view: str) -> None:
    """No fault by axe, one first heading; the skip link leads to the table in two more keys."""
    browser.open(three, width=1440, height=900, fragment=f"#view={view}" if view else "")
    if view in ("pair", "read"):
        browser.text(".duel h3, .reading h3")
    assert serious_faults(browser, every=True) == []
    heads = "return [...document.querySelectorAll('h1')].filter((e) => e.offsetWidth).length"
    assert browser.run(heads) == 1
    tab = "return document.querySelector('nav [aria-current]').textContent"
    names = {"": "Ranking", "pair": "Compare", "read": "Read", "figures": "Figures"}
    assert browser.run(tab) == names.get(view, "Judge")
    spoken = "return [...document.querySelectorAll('.dialogue .bubble > p')].every((e) => e.lang)"
    assert browser.run(spoken)
    if not view:
        for key in ("\ue004", "\ue007", "\ue004"):  # Tab, Enter, Tab
            browser.press(key)
        assert browser.run("return Boolean(document.activeElement.closest('table.board'))")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_everything_that_opens_is_on_the_screen(browser: Browser, three: Path, width: int) -> None:
    """Each menu, fold and dialog of each view is opened, and its box looked at."""
    browser.open(three, width=width, height=900)
    assert boxes_outside(browser) == []
    assert browser.run("return document.querySelector('.menu').open")
    for view, there in (("read", ".reading h3"), ("pair", ".case h4"), ("judge", "#judge h2")):
        browser.run("document.querySelector('dialog')?.close(); location.hash = arguments[0]",
                    f"view={view}")  # fmt: skip
        browser.text(there)
        if view != "judge":
            browser.press("?")
            browser.text("dialog[open]")
        assert boxes_outside(browser) == []


def boxes_outside(browser: Browser) -> list[object]:
    """What sticks out of the screen of all that opens in the view that is shown."""
    return browser.run(
        "const boxes = [];"
        "for (const fold of document.querySelectorAll('details, dialog[open]')) {"
        "  if (!fold.checkVisibility()) continue;"
        "  fold.open = true;"
        "  for (const part of [fold, ...fold.querySelectorAll(':scope > *, .menu label')]) {"
        "    const box = part.getBoundingClientRect();"
        "    if (box.width && (box.left < 0 || box.right > innerWidth + .5))"
        "      boxes.push([part.outerHTML.slice(0, 90), box.left, box.right]);"
        "  }"
        "}"
        "return boxes"
    )


def test_more_columns_are_shown_and_hidden(browser: Browser, three: Path) -> None:
    """The menu tells what is shown at this width; the table scrolls alone."""
    browser.open(three, width=390, height=844)
    shown = browser.run(HEADS, TABLE)
    assert shown == ["rank", "model", "bt_n16", "success_n16"]
    browser.run("document.querySelector('.menu').open = true")
    boxes = "return [...document.querySelectorAll('.menu input')].filter((e) => e.checked).length"
    browser.until(lambda: browser.run(boxes) == 0)
    browser.click(".menu [value=elo_n16]")
    browser.click(".menu [value=vs_next]")
    assert set(browser.run(HEADS, TABLE)) == {*shown, "elo_n16", "vs_next"}
    assert_fits(browser)
    browser.click(".menu [value=vs_next]")
    assert browser.run(HEADS, TABLE) == [*shown, "elo_n16"]
    browser.click("h1")
    assert not browser.run("return document.querySelector('.menu').open")


def test_every_column_sorts_both_ways(browser: Browser, large: Path) -> None:
    """By the keyboard too; missing values stay last, and the order is told to screen readers."""
    browser.open(large, width=1440, height=900)
    value = (
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) =>"
        "arguments[1] === 'model' ? row.dataset.model :"
        "row.querySelector(`[data-key='${arguments[1]}']`).dataset.value)"
    )
    keys = browser.run(HEADS, TABLE)
    assert len(keys) == 9
    for key in keys:
        orders = []
        for _ in range(2):
            which = ".name" if key == "model" else f"[data-key='{key}']"
            head = browser.driver.find_element("css selector", f"{TABLE} th{which}")
            head.find_element("css selector", "button").send_keys("\n")
            orders.append(head.get_attribute("aria-sort"))
            values = browser.run(value, TABLE, key)
            known = [each for each in values if each]
            assert values[: len(known)] == known
            sort: Callable[[str], Any] = float
            if key == "model":
                known = [each for each in known if each.isascii()]
                sort = lambda text: natural_sort_key(text.lower())  # noqa: E731
            found = [sort(each) for each in known]
            assert found == sorted(found, reverse=orders[-1] == "descending")
        assert sorted(map(str, orders)) == ["ascending", "descending"]


def test_models_are_found_and_judges_have_a_page(browser: Browser, large: Path) -> None:
    """A field from 13 rows on; the other judge's page shows the same table."""
    browser.open(large, width=1440, height=900)
    browser.driver.find_element("css selector", ".tools input[type=search]").send_keys("MODEL-1")
    found = {"model-1", *(f"model-{i}" for i in range(10, 20))}
    assert set(browser.run(ROWS, TABLE)) == found
    browser.click(".trust p a")
    browser.until(lambda: browser.run("return location.pathname").endswith("/judge-2.html"))
    assert browser.text(".trust h2") == "Judge judge: B"
    assert len(browser.run(ROWS, TABLE)) == 25


def test_paper_has_the_columns_of_the_screen_and_no_controls(browser: Browser, three: Path) -> None:
    """Printed, every figure is there, and nothing to press."""
    browser.open(three, width=1440, height=900)
    shown = browser.run(HEADS, TABLE)
    browser.open(three, width=720, height=900)
    browser.command("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.run(HEADS, TABLE) == shown
        heads = "[...document.querySelectorAll('.board thead th')]"
        printed = f"{heads}.filter((e) => e.getClientRects().length)"
        assert browser.run(f"return {printed}.every((e) => e.innerText.trim())")
        box = "getComputedStyle(document.querySelector('.scroll'))"
        assert browser.run(f"return {box}.overflowX") == "visible"
        pressable = "return [...document.querySelectorAll('nav, .tools, .quiet')]"
        assert not browser.run(f"{pressable}.some((e) => e.getClientRects().length)")
        assert browser.run("return document.getElementById('judge').getClientRects().length")
    finally:
        browser.command("Emulation.setEmulatedMedia", {"media": ""})


def test_the_page_reads_without_scripts(browser: Browser, page: Path) -> None:
    """Judge, table, curve and figures are there, and nothing that needs a script."""
    browser.command("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(page)
        for selector, n in ((f"{TABLE} tbody tr", 4), (".trust .stamp", 1), (".plot path", 4)):
            shown = browser.driver.find_elements("css selector", selector)
            assert len(shown) >= n
            assert all(each.is_displayed() for each in shown)
        assert len(browser.driver.find_elements("css selector", ".figures figure svg")) >= 7
        assert browser.driver.find_element("css selector", ".checked").is_displayed()
        assert not browser.driver.find_element("css selector", ".menu").is_displayed()
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_failed_judge_takes_the_first_screen(browser: Browser, tmp_path: Path) -> None:
    """Sentence and title are its fault, nobody has a rank, models are grey and bots are not."""
    records = make_records({"bot:parrot": 0.1, "good": 0.9, "poor": 0.2}, 40, unreadable=0)
    never = {"unieval": "No"}
    judged = {
        protocol: [
            msgspec.structs.replace(each, verdict=never.get(protocol, "neither")) for each in given
        ]
        for protocol, given in records.judgments.items()
    }
    page = write_boards(tmp_path, dataclasses.replace(records, judgments=judged), ("never",), {})
    browser.open(page, width=1440, height=900)
    fault = "No ranking: it passes bots as human"
    assert browser.text("h1") == f"{fault}."
    assert fault in browser.driver.title
    assert "Do not trust" in browser.text(".trust .stamp")
    assert browser.run(HEADS, TABLE)[:2] == ["model", "success_n16"]
    weight = "return getComputedStyle(document.querySelector(arguments[0])).color"
    colors = [browser.run(weight, f"{TABLE} tr[data-model='{name}'] .est")
              for name in ("good", "poor", "bot:parrot")]  # fmt: skip
    assert colors[0] == colors[1] != colors[2]
    lines = "[...document.querySelectorAll('.plot g')]"
    kinds = browser.run(f"return {lines}.map((g) => [g.dataset.model, g.classList[0]])")
    assert dict(kinds) == {"good": "faint", "poor": "faint", "bot:parrot": None, HUMAN: "human"}
    assert browser.complaints() == []
