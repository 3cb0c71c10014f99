"""What a reader of the page does, and what the page must never do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from botchat.protocols.reports import ERRORS
from botchat.records import Remark, Utterance
from tests.boards import Records, judgment, make_records
from tests.browser.conftest import Browser, serious_faults
from tests.browser.pages import HOSTILE, write_page


def test_what_happened_in_a_dialogue_is_shown(browser: Browser, tmp_path: Path) -> None:
    """Drops, odd calls, flags, why it stopped, and the panel's talk, folded."""
    plain = make_records({"m": 0.5}, 1)
    odd = msgspec.structs.replace(
        plain.dialogues["m"]["S-1"],
        utterances=("Hi.", "Hello.", "As an AI language model, I cannot say.", "Oh."),
        facts=(Utterance(dropped=2), Utterance(outcome="truncated")),
        status="stopped:refused",
        detail="the model would not",
    )
    talk = (Remark("critic", "It is <b>stiff</b>.", verdict="3"), Remark("author", "So it is."))
    verdict = msgspec.structs.replace(
        judgment("unieval", "S-1", ("m",), "3", 4), reason="It says so.", transcript=talk
    )
    records = Records(plain.seeds, {"m": {"S-1": odd}}, {"unieval": [verdict]})
    page = write_page(records, tmp_path)
    browser.open(page, "#view=unieval&a=m&seed=S-1")
    assert "stopped:refused. the model would not" in browser.text(".reading .warning")
    marks = browser.seen(".flags li")
    assert {"2 oldest not in the prompt", "truncated"} <= set(marks)
    members = "return [...document.querySelector('.votes tbody').rows].map(r => r.innerText)"
    assert browser.run(members) == ["critic\tat 3\tat 3"]
    folded = browser.driver.find_element("css selector", ".talk")
    assert not folded.find_element("css selector", ".turn").is_displayed()
    folded.find_element("css selector", "summary").click()
    turns = [e.text for e in folded.find_elements("css selector", ".turn")]
    assert turns == ["critic · votes at 3\nIt is <b>stiff</b>.", "author\nSo it is."]


def test_diagnosed_errors_stand_at_their_utterance(browser: Browser, tmp_path: Path) -> None:
    """Type, quote and explanation; a quote that nobody said is marked; the list filters by them."""
    records = make_records({"m": 0.5}, 2)
    said = records.dialogues["m"]["S-1"].utterances[2].split(".")[0]
    reason = "\n".join(
        f"{name}? " + (f'Yes\n- Utterance 3: "{said}" - again\n- Utterance 4: "<i>made up</i>" - x'
        if name == "Repetition" else "No")
        for name in ERRORS.values()
    )  # fmt: skip
    verdict = msgspec.structs.replace(judgment("diagnosis", "S-1", ("m",), "-2"), reason=reason)
    page = write_page(
        Records(records.seeds, records.dialogues, {**records.judgments, "diagnosis": [verdict]}),
        tmp_path,
    )
    browser.open(page, "#view=unieval&a=m&seed=S-1")
    assert "diagnosis -2" in browser.text(".reading .verdict")
    bubbles = browser.driver.find_elements("css selector", ".reading > .chat .bubble")
    found = {at: b.find_elements("css selector", ".error") for at, b in enumerate(bubbles, 1)}
    assert {at: len(errors) for at, errors in found.items() if errors} == {3: 1, 4: 1}
    assert found[3][0].text == f"Repetition: “{said}” – again"
    assert (
        found[4][0].text == "Repetition: “<i>made up</i>” (this quote is not in the dialogue) – x"
    )
    browser.choose("#reader [aria-label=Verdict]", "diagnosed")
    assert browser.seen(".cases .id") == ["S-1"]
    assert browser.complaints() == []


def test_own_scores_are_read_like_any_verdict(browser: Browser, own: Path) -> None:
    """Listed by title; the score stands in the list and at the dialogue; the list sorts by it."""
    browser.open(own, "#view=empathy&a=m&seed=S-2")
    assert browser.text(".reading .verdict").startswith("Empathy 7 by rules")
    assert "it says the same thing twice" in browser.text(".head .reason")
    views = "return [...document.querySelector('#reader select').options].map(o => o.textContent)"
    assert browser.run(views) == ["One dialogue", "Empathy", "Style", "First drift", "Faults"]
    shown = ["Empathy 4", "Empathy 7", "Empathy 9.5", "unreadable", "Empathy 2", "Empathy 6"]
    assert browser.seen(".cases .badge")[:6] == shown
    assert browser.seen(".cases .badge")[7] == "not judged"
    browser.choose("#reader [aria-label='Verdict']", "down-0")
    assert browser.seen(".cases .id") == ["S-3", "S-2", "S-6", "S-1", "S-7", "S-5"]
    browser.choose("#reader [aria-label='Verdict']", "up-0")
    assert browser.seen(".cases .id") == ["S-5", "S-7", "S-1", "S-6", "S-2", "S-3"]
    browser.choose("#reader [aria-label='Verdict']", "none")
    assert browser.seen(".cases .id") == ["S-4", "S-8"]
    browser.choose("#reader [aria-label='Verdict']", "")
    browser.choose("#reader [aria-label='What to read']", "style")
    browser.until(lambda: "Wit" in browser.text(".reading .verdict"))
    browser.choose("#reader [aria-label='Verdict']", "down-1")
    assert browser.seen(".cases .badge") == ["Wit 55.5, Tact 80", "Wit 40, Tact 7"]
    serious = serious_faults(browser)
    assert serious == [], json.dumps(serious, indent=1)
    assert browser.complaints() == []


def test_own_comparisons_say_who_wins(browser: Browser, own: Path) -> None:
    """Whom the judge names wins here, and so does the higher score; its words are shown."""
    browser.open(own, "#view=warmth-n16&a=m&b=o&seed=S-1")
    assert browser.text(".ruling .said b") == "m wins (“Left”)"
    orders = "return [...document.querySelectorAll('.boxes a')].map(a => a.firstChild.className)"
    assert browser.run(orders) == ["win", "lose", "tie", "none"]
    browser.choose("[aria-label='Which seeds']", "lose")
    browser.until(lambda: browser.run("return location.hash").endswith("show=lose&seed=S-2"))
    assert browser.until(lambda: browser.text(".ruling .said b") == "o wins (“Right”)")
    assert len(browser.seen(".boxes a:not(.dim)")) == 1
    browser.open(own, "#view=pair&protocol=depth-n16&a=o&b=m&seed=S-3")
    browser.text(".ruling .said b")
    assert browser.seen(".said b") == ["o wins (Depth: m 2, o 6.5)"]
    results = "return [...document.querySelectorAll('.boxes a')].map(a => a.lastChild.className)"
    assert browser.run(results) == ["lose", "tie", "win"]
    assert browser.complaints() == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_text(browser: Browser, hostile: Path, name: str) -> None:
    """Names, utterances and reasons are shown as they are; nothing of them runs or is asked for."""
    from urllib.parse import urlencode

    browser.open(hostile, "#" + urlencode({"view": "unieval", "a": name, "seed": "S-2"}))
    assert name in browser.text(".reading h3")
    assert browser.text(".reading .bubble p") == " ".join(HOSTILE)
    browser.open(hostile, "#" + urlencode({"view": "arena-n8", "a": name, "seed": "S-1"}))
    browser.text(".duel h3")
    browser.text(".case h4")
    assert browser.run("return window.pwned") is None
    assert browser.run("return document.querySelectorAll('img, iframe').length") == 0
    hrefs = browser.run(
        "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
    )
    assert all(href.startswith("#") for href in hrefs)
    asked = set(browser.requests())
    assert asked >= {
        (hostile.parent / "chunks" / name).as_uri() for name in ("index.js", "seeds-0.js")
    }
    assert all(url.startswith(hostile.parent.as_uri()) for url in asked)
    assert browser.complaints() == []


def test_the_policy_stops_what_is_planted(browser: Browser, page: Path, tmp_path: Path) -> None:
    """Scripts, handlers, images and requests that somebody put into the file do nothing."""
    planted = (
        "<script>window.pwned = 1</script>"
        "<img src='https://example.org/x' onerror='window.pwned=2'>"
        "<script src='https://example.org/x.js'></script><svg onload='window.pwned=3'></svg>"
    )
    copy = tmp_path / "leaderboard"
    shutil.copytree(page.parent, copy)
    infected = copy / "index.html"
    infected.write_text(page.read_text("utf-8").replace("<main>", f"<main>{planted}", 1), "utf-8")
    browser.open(infected)
    browser.until(lambda: browser.run("return document.readyState") == "complete")
    assert browser.run("return window.pwned") is None
    complaints = " ".join(browser.complaints())
    assert "Executing inline script violates" in complaints
    assert "Executing inline event handler violates" in complaints
    answer = browser.driver.execute_async_script(
        "const done = arguments[0];"
        "document.addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));"
        "const s = document.createElement('script');"
        "s.textContent = \"fetch('https://example.org').catch(() => 0)\";"
        "document.body.append(s); setTimeout(() => done('nothing'), 5000);"
    )
    assert answer.startswith("script-src")
