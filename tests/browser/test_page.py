"""What a reader of the page does, and what the page must never do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from botchat.pipeline.run.read_set import read
from botchat.protocols.reports import ERRORS
from botchat.records import Remark, Utterance
from botchat.workspace.folder import Workspace
from tests.boards import Records, judgment, make_records
from tests.browser.conftest import Browser, serious_faults
from tests.browser.pages import HOSTILE, write_page


def test_a_link_opens_one_dialogue_with_the_accused_utterance(
    browser: Browser, page: Path, demo_workspace: Workspace
) -> None:
    """The marked utterance is the judge's, and is the only one; its reason stays on top."""
    judged = read(demo_workspace, "sample").judged["rules"]["unieval"]
    accused = next(j for j in judged if j.verdict not in ("No", None))
    (name,) = accused.contestants
    dialogue = demo_workspace.dialogues("sample", name)[accused.seed_id]
    browser.open(page, f"#view=unieval&a={name}&seed={accused.seed_id}")
    assert accused.seed_id in browser.text(".reading h3")
    marked = browser.driver.find_elements("css selector", ".reading li.accused .bubble")
    assert len(marked) == 1
    assert dialogue.utterances[int(accused.verdict or 0) - 1] in marked[0].text
    assert browser.text(".head .reason") == accused.reason
    bubbles = browser.driver.find_elements("css selector", ".reading > .chat .bubble")
    assert len(bubbles) == len(dialogue.utterances)
    assert browser.complaints() == []


def test_two_dialogues_stand_side_by_side(browser: Browser, page: Path) -> None:
    """Of an Arena pair both dialogues and both orders' rulings; the next seed takes their place."""
    browser.open(page, "#view=arena-n16&a=bot:parrot&b=bot:verbose&seed=sample-3")
    assert "sample-3" in browser.text(".case .part")
    names = browser.seen(".columns h4")
    assert names == ["bot:parrot", "bot:verbose"]
    assert len(browser.driver.find_elements("css selector", ".ruling .said b")) == 2
    browser.run("document.querySelector('[title=\"Next seed\"]').click()")
    browser.until(lambda: "sample-4" in browser.text(".case .part"))


def test_search_finds_what_was_said(
    browser: Browser, page: Path, demo_workspace: Workspace
) -> None:
    """After all texts are loaded, words of a late utterance find their dialogue."""
    dialogue = demo_workspace.dialogues("sample", "bot:retrieval")["sample-37"]
    words = " ".join(dialogue.utterances[9].lower().split()[:5])  # each key searches all
    browser.open(page, "#view=unieval&a=bot:retrieval")
    browser.text(".cases a")
    everywhere = browser.driver.find_element("css selector", "#reader .tools button")
    everywhere.click()
    browser.until(lambda: everywhere.text == "Searching all utterances")
    browser.driver.find_element("css selector", "#reader input[type=search]").send_keys(words)
    ids = browser.until(lambda: browser.seen(".cases .id"))
    assert "sample-37" in ids
    assert len(ids) < 40
    assert {mark.lower() for mark in browser.texts(".cases mark")} == {words}


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


def test_own_places_and_reports_are_read_like_the_built_in_ones(
    browser: Browser, own: Path
) -> None:
    """The utterance named is marked, but nobody is accused; errors stand where they are."""
    browser.open(own, "#view=drift&a=m&seed=S-2")
    assert browser.text(".reading .verdict").startswith("✕ Found from utterance 5 on by rules")
    assert "faults -1" in browser.text(".reading .verdict")
    assert browser.seen(".reading [data-at='5'].accused .here") == ["Found from here on"]
    assert len(browser.seen(".reading > .chat > [data-at='3'] .error")) == 1
    badges = ["nothing found", "found at 5", "found at 3", "unreadable"]
    assert browser.seen(".cases .badge")[:4] == badges
    browser.choose("#reader [aria-label='Verdict']", "lose")
    assert browser.seen(".cases .id") == ["S-2", "S-3"]
    browser.open(own, "#view=faults&a=m&seed=S-2")
    assert browser.text(".reading .verdict") == "✕ faults -1 by rules"
    assert browser.seen(".reading .error b") == ["Repetition"]
    assert browser.seen(".cases .badge")[:4] == ["no errors", "−1", "unreadable", "not judged"]
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
