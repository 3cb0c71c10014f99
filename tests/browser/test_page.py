"""What a reader of the page does, and what the page must never do."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from botchat.protocols.reports import ERRORS
from botchat.records import Remark, Utterance
from botchat.report.archive import build
from botchat.report.contract import PageCall, PageMessage
from botchat.report.page import View, files
from botchat.workspace.jsonl import write_all
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
    assert {"– 2 oldest not in the prompt", "– truncated"} <= set(marks)
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
    bubbles = browser.driver.find_elements("css selector", ".reading > .dialogue .bubble")
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
    browser.choose("#reader [aria-label='Protocol']", "style")
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


def test_prompt_reply_tokens_and_price_are_one_click_away(browser: Browser, tmp_path: Path) -> None:
    """Of every call of a verdict, as the ledger has it; loaded when it is opened, shown as text."""
    records = make_records({"m": 0.5, "o": 0.4}, 30, arena=(16,))
    judged = {
        protocol: [
            msgspec.structs.replace(each, calls=(f"{protocol}{i}",)) for i, each in enumerate(given)
        ]
        for protocol, given in records.judgments.items()
    }

    def calls(keys: Sequence[str]) -> dict[str, PageCall]:
        asked = {key: [PageMessage("user", f"<b>{key}</b>?")] for key in keys}
        return {key: PageCall(asked[key], f"No, {key}.", 1234, 0.00123) for key in keys}

    archive = build(records.seeds, records.dialogues, {"rules": judged}, calls=calls)
    write_all(tmp_path, files([View.of(records.board())], archive))
    page = tmp_path / "index.html"
    at = next(
        i for i, j in enumerate(judged["unieval"]) if (j.seed_id, j.contestants) == ("S-25", ("m",))
    )
    browser.open(page, "#view=unieval&a=m&seed=S-25")
    browser.text(".beside-reading .calls")
    chunk = (tmp_path / "chunks" / "calls-1.js").as_uri()
    assert chunk not in browser.requests()
    browser.click(".beside-reading .calls summary")
    browser.until(lambda: browser.seen(".calls pre"))
    assert chunk in browser.requests()
    assert browser.seen(".calls .note") == ["1,234 tokens, USD 0.00123"]
    assert browser.seen(".calls pre") == [f"<b>unieval{at}</b>?", f"No, unieval{at}."]
    browser.open(page, "#view=pair&protocol=arena-n16&a=m&b=o")
    browser.text(".case .calls")
    assert len(browser.seen(".ruling .calls summary")) == 2
    assert browser.complaints() == []


def test_what_the_judge_has_wrong_is_a_filter(browser: Browser, tmp_path: Path) -> None:
    """By the majority of the human annotators, where there are some; they are judges beside it."""
    records = make_records({"m": 0.5, "o": 0.4}, 12, arena=(16,), unreadable=0)
    flip = {"No": "3", "1": "2", "2": "1", "both": "1", "neither": "1"}
    labels = {
        protocol: [
            msgspec.structs.replace(
                each,
                judge="human:ann",
                verdict=each.verdict
                if each.seed_id != "S-2"
                else flip.get(each.verdict or "", "No"),
            )
            for each in given
        ]
        for protocol, given in records.judgments.items()
    }
    judged = {"rules": records.judgments, "human:ann": labels}
    write_all(
        tmp_path, files([View.of(records.board())], build(records.seeds, records.dialogues, judged))
    )
    browser.open(tmp_path / "index.html", "#view=unieval&a=m&show=wrong")
    browser.text(".reading h3")
    assert browser.seen(".cases .id") == ["S-2"]
    assert browser.texts(".judges tbody th") == ["rules", "human:ann", "truth"]
    pairs = [j.seed_id for j in records.judgments["arena-n16"]]
    wrong = [seed for seed in ("S-2",) if seed in pairs]
    browser.open(tmp_path / "index.html", "#view=pair&protocol=arena-n16&a=m&b=o&show=wrong")
    browser.text(".duel .note")
    assert len(browser.texts(".boxes a:not(.dim)")) == len(wrong)
    assert browser.complaints() == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_text(browser: Browser, hostile: Path, name: str) -> None:
    """Names, utterances and reasons are shown as they are; nothing of them runs or is asked for."""
    from urllib.parse import urlencode

    browser.open(hostile, "#" + urlencode({"view": "unieval", "a": name, "seed": "S-2"}))
    assert name in browser.text(".reading h3")
    assert browser.text(".reading .bubble p") == " ".join(HOSTILE)
    second = "#" + urlencode({"view": "arena-n8", "a": name, "seed": "S-1"})
    browser.run("location.hash = arguments[0]", second)
    browser.text(".duel h3")
    browser.text(".case h4")
    assert browser.run("return window.pwned") is None
    assert browser.run("return document.querySelectorAll('img, iframe').length") == 0
    hrefs = browser.run(
        "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
    )
    own = re.compile(r"#|[a-z0-9-]+\.(csv|html#judge)$")
    assert [href for href in hrefs if not own.match(href)] == []
    asked = set(browser.requests())
    assert asked >= {
        (hostile.parent / "chunks" / name).as_uri() for name in ("index.js", "seeds-0.js")
    }
    ours = (hostile.parent.as_uri(), "data:image/png;base64,")
    assert [url for url in asked if not url.startswith(ours)] == []
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
