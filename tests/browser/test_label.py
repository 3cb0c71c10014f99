"""From the page of blind cases to filed labels, as an annotator does it."""

from pathlib import Path

import pytest

import botchat
from botchat.records import Judgment
from botchat.workspace import jsonl
from botchat.workspace.folder import SAMPLE, Workspace
from tests.browser.conftest import SHOWN_AT, Browser, assert_fits, serious_faults
from tests.conftest import ROOT

OWN = ROOT / "tests" / "data" / "labelled_criteria.toml"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two bots' dialogues, and two criteria of one's own."""
    folder = tmp_path_factory.mktemp("label")
    (folder / "botchat.toml").write_bytes(OWN.read_bytes())
    (folder / "warmth.txt").write_text("{{conversation}}\nWarmth: 1 to 5")
    found = Workspace(folder)
    botchat.generate(workspace=found, seeds=SAMPLE, model=["bot:parrot", "bot:verbose"], limit=3)
    return found


CASES = {
    "unieval": (["1", "2", "line"], ["No", "Undecided", "3"]),
    "arena-n8": (["1", "3", "4"], ["1", "both", "neither"]),
    "gteval": (["2", "2", "1"], ["2", "2", "1"]),
    "warmth": (["4", "5", "1"], ["4", "5", "1"]),
    "style": (["numbers"] * 3, ["40 7.5"] * 3),
}


@pytest.mark.parametrize("protocol", CASES)
def test_from_the_page_to_filed_labels(
    browser: Browser, workspace: Workspace, protocol: str
) -> None:
    """By keys, a line or numbers; undone, kept over a reload, exported, filed once."""
    keys, verdicts = CASES[protocol]
    told = botchat.label(workspace=workspace, seeds=SAMPLE, protocol=protocol, cases=3)
    page = Path(told.data["page"])
    browser.open(page)
    browser.until(lambda: browser.text("#count") == "0 of 3")

    def answer(key: str, done: int) -> None:
        if key == "line":
            browser.click("#dialogues li:nth-child(3)")
        elif key == "numbers":
            for at, value in enumerate(("40", "7.5")):
                field = browser.driver.find_elements("css selector", "#answers input")[at]
                field.send_keys(value)
            browser.press("\ue007")
        else:
            browser.press(key)
        browser.until(lambda: browser.text("#count") == f"{done} of 3")

    answer(keys[0], 1)
    browser.run("document.activeElement.blur()")
    browser.press("u")
    browser.until(lambda: browser.text("#count") == "0 of 3")
    for done, key in enumerate(keys[:2], 1):
        answer(key, done)
    browser.driver.refresh()
    browser.until(lambda: browser.text("#count") == "2 of 3")
    answer(keys[2], 3)
    assert "All labelled" in browser.text("#question")
    browser.click("#export")
    assert browser.run("return document.activeElement.id") == "name"
    browser.driver.find_element("css selector", "#name").send_keys("Amy")
    browser.click("#export")
    exported = browser.downloads / f"{SAMPLE}-{protocol}.jsonl"
    browser.until(lambda: exported.exists() and exported.stat().st_size)
    assert browser.complaints() == []
    for new in (3, 0):
        (row,) = botchat.label(exported, workspace=workspace, seeds=SAMPLE).rows
        assert (row["judge"], row["new"]) == ("human:amy", new)
    path = workspace.judgments_path(SAMPLE, protocol, "human:amy")
    made = [one.verdict for one in jsonl.read(path, Judgment)]
    assert sorted(map(str, made)) == sorted(verdicts)


@pytest.mark.parametrize(("width", "dark"), SHOWN_AT)
def test_it_fits_and_is_accessible(
    browser: Browser, workspace: Workspace, width: int, dark: bool
) -> None:
    """Two dialogues at each width, light and dark."""
    told = botchat.label(workspace=workspace, seeds=SAMPLE, protocol="arena-n8", cases=3)
    browser.open(Path(told.data["page"]), width=width, dark=dark, fresh=True)
    browser.text("#dialogues li")
    assert_fits(browser)
    assert serious_faults(browser) == []
