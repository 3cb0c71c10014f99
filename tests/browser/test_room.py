"""The served pages in a browser: the room to talk in, the live view of a run, and its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from botchat.pipeline.run import progress
from botchat.pipeline.view import Server as View
from botchat.report import live
from botchat.requests import generate
from botchat.requests.arguments import Limits
from botchat.talk.room import TalkRoom
from botchat.workspace.folder import SAMPLE, Workspace
from tests.browser.conftest import Browser, assert_fits, serious_faults
from tests.integration.test_runs import workspace as with_models
from tests.openai_server import Gate, Server, converse, text
from tests.view_door import running


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """A room with bots alone."""
    workspace = Workspace(tmp_path_factory.mktemp("room"))
    with running(View(workspace, SAMPLE, room=TalkRoom(workspace, SAMPLE))) as view:
        yield view


def choose(browser: Browser, **chosen: str) -> None:
    """Set fields by id."""
    for name, value in chosen.items():
        browser.choose(f"#{name}", value)


def said(browser: Browser) -> list[tuple[str, str, str]]:
    """What stands in the conversation: side, speaker, text."""
    lines = browser.run(
        "return [...document.querySelectorAll('#said li')].map((one) => [one.className,"
        "one.querySelector('bdi').textContent, one.querySelector('p').textContent])"
    )
    return [(side, by, words) for side, by, words in lines]


def status(browser: Browser) -> str:
    """What the room says."""
    return str(browser.run("return document.getElementById('status').textContent"))


def test_two_bots_talk_are_asked_again_and_a_seed_is_saved(browser: Browser, room: View) -> None:
    """From a seed to 16 utterances; nothing is asked for but this server, nothing is complained."""
    browser.open(room.url)
    choose(browser, a="bot:eliza", b="bot:parrot", seed="sample-3")
    browser.click("#start button")
    browser.until(lambda: status(browser).startswith("16 utterances"))
    lines = said(browser)
    assert [by for _, by, _ in lines] == ["sample-3"] * 2 + ["bot:eliza", "bot:parrot"] * 7
    assert [side for side, _, _ in lines] == ["A person", "B person"] + ["A", "B"] * 7
    seed = next(one for one in room.workspace.seeds(SAMPLE) if one.id == "sample-3")
    assert tuple(words for *_, words in lines[:2]) == seed.utterances[:2]
    browser.click("#again")
    browser.until(lambda: status(browser).startswith("16 utterances"))
    assert said(browser)[:15] == lines[:15]
    browser.click("#on")
    browser.until(lambda: status(browser).startswith("18 utterances"))
    choose(browser, set="mine")
    browser.click("#save button")
    browser.until(lambda: "talk-1 of mine" in browser.text("#saved"))
    assert [one.utterances for one in room.workspace.seeds("mine")] == [seed.utterances[:2]]
    choose(browser, set=SAMPLE)
    browser.click("#save button")
    browser.until(lambda: "not made in this room" in browser.text("#saved"))
    assert [one.partition(" - ")[0][-10:] for one in browser.complaints()] == ["/talk/save"]
    root = room.url.removesuffix("talk")
    asked = {url for url in browser.requests() if not url.startswith("about:")}
    assert asked == {f"{root}talk", f"{root}talk/seed", f"{root}talk/say", f"{root}talk/save"}


def test_a_person_takes_a_side(browser: Browser, room: View) -> None:
    """Own words, by keyboard; what is written is shown as text, never as markup."""
    browser.open(room.url)
    browser.click("input[value=own]")
    browser.driver.find_element("id", "own-a").send_keys("<img src=x onerror=alert(1)> Hi!")
    choose(browser, b="bot:eliza")
    browser.click("#start button")
    browser.until(lambda: status(browser) == "Your turn." and len(said(browser)) == 2)
    assert said(browser)[0] == ("A person", "you", "<img src=x onerror=alert(1)> Hi!")
    assert browser.run("return document.querySelectorAll('main img').length") == 0
    browser.until(lambda: browser.run("return document.activeElement.id") == "words")
    browser.press("I feel")
    key = {"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
    browser.command("Input.dispatchKeyEvent", key | {"modifiers": 8, "text": "\r"})  # with Shift
    browser.press(" fine\ue007")
    browser.until(lambda: len(said(browser)) == 4 and status(browser) == "Your turn.")
    assert said(browser)[2] == ("A person", "you", "I feel\n fine")
    assert browser.complaints() == []


def test_stop_limit_and_faults_are_one_line_each(browser: Browser, tmp_path: Path) -> None:
    """A held reply is stopped; the budget is used up; a hostile reply is text."""
    gate = Gate()
    attack = "</p><script>alert(1)</script>"

    def script(call: Any) -> Any:
        return replace(converse(call), gate=gate) if call.n == 2 else text(attack)

    with Server(script) as server:
        workspace = Workspace(with_models(tmp_path, server))
        made = TalkRoom(workspace, "small", Limits(max_calls=2))
        with running(View(workspace, "small", room=made)) as view:
            browser.open(view.url)
            choose(browser, a="alpha", b="beta")
            browser.click("#start button")
            gate.wait_held(1)
            browser.until(lambda: "beta is asked" in status(browser))
            browser.click("#stop")
            browser.until(lambda: status(browser).startswith("Stopped."))
            assert said(browser)[2][2] == attack
            gate.open()
            # The stopped call was made all the same: it is in the ledger, and the next is too many.
            browser.click("#on")
            browser.until(lambda: "--max-calls 2" in status(browser))
            assert len(said(browser)) == 4
            assert server.n_received == 2
            browser.click("#again")
            browser.until(lambda: "--max-calls 2" in status(browser))
            assert len(said(browser)) == 4
            assert browser.text("#calls") == "2"
        choose(browser, b="bot:eliza")
        browser.click("#again")
        browser.until(lambda: "botchat view does not answer" in status(browser))
        browser.complaints()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
@pytest.mark.parametrize("path", ["talk", "live"])
def test_the_served_pages_fit_and_are_accessible(
    browser: Browser, room: View, path: str, width: int, dark: bool
) -> None:
    """Nothing is wider than the screen, no text is below 11 px, and axe finds no serious fault."""
    if path == "live":
        generate(room.workspace, SAMPLE, ["bot:eliza"], turns=4, limit=2)
    browser.open(room.url if path == "talk" else f"{room.root}live", "", width, dark=dark)
    if path == "talk":
        browser.click("#start button")
        browser.until(lambda: len(said(browser)) == 2 and status(browser) == "Your turn.")
        browser.driver.find_element("id", "words").send_keys("Well.\ue007")
        browser.until(lambda: len(said(browser)) == 4 and status(browser) == "Your turn.")
        third = "document.querySelectorAll('#said li')[2].offsetWidth"
        assert browser.run(f"return {third} < 100"), "a bubble is as wide as its words"
    assert browser.run("return document.querySelector('header').offsetHeight") < 50, "one row"
    assert_fits(browser)
    assert serious_faults(browser) == []


def test_the_live_view_follows_a_run_and_says_when_its_server_is_gone(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls, projection and limit while replies are held; then the banner, and back again."""
    monkeypatch.setattr(live, "RUNNING_S", 0.05)
    monkeypatch.setattr(live, "RESTING_S", 0.05)
    monkeypatch.setattr(progress, "EVERY_S", 0.05)
    gate = Gate()
    prices = {"price_input": 1000.0, "price_output": 1000.0}
    with Server(lambda call: replace(converse(call), gate=gate)) as server:
        workspace = Workspace(with_models(tmp_path, server, n_seeds=4, **prices, max_tokens=50))
        with ThreadPoolExecutor(1) as pool:
            view = View(workspace, "small")
            with running(view):
                asked = pool.submit(
                    generate, workspace, "small", ["alpha"], turns=6, limits=Limits(max_usd=90.0)
                )
                gate.wait_held(1)
                gate.release(4)
                browser.open(f"http://127.0.0.1:{view.server_port}/live")
                browser.until(lambda: "25 % done" in browser.text("h1"))
                assert "4 of 16 calls" in browser.text(".first")
                found = progress.read(workspace)
                assert found is not None
                amounts = [
                    float(one[1:].replace(",", ""))
                    for one in browser.run(
                        "return [...document.querySelectorAll('#now .big')].slice(0, 2)"
                        ".map((one) => one.textContent)"
                    )
                ]
                assert amounts == [
                    pytest.approx(found.spent_usd, abs=0.01),
                    pytest.approx(4 * found.spent_usd, abs=0.01),
                ]
                assert re.search(r"limit \$90\.00", browser.text("#now"))
                assert browser.run("return document.querySelector('.cost s').style.cssText")
                gate.open()
                asked.result()
                browser.until(lambda: "Finished" in browser.text("h1"))
                assert browser.complaints() == []
            browser.until(lambda: "No answer for" in browser.text("#gone"))
            assert browser.driver.find_element("id", "gone").is_displayed()
            assert "Finished" in browser.text("h1")
            with running(View(workspace, "small", view.server_port)):
                # It may have come back by itself already.
                browser.run("document.querySelector('#gone button').click()")
                browser.until(lambda: not browser.driver.find_element("id", "gone").is_displayed())
            browser.driver.get("about:blank")
            browser.complaints()
