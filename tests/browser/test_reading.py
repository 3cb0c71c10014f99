"""Head to head and the reader: every number opens its evidence, which is on the screen."""

import dataclasses
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from botchat.boards.board import JudgedSet, build_board
from botchat.records import HUMAN, Judgment, Remark, natural_sort_key
from botchat.report.archive import build
from botchat.report.page import View, files
from botchat.workspace.jsonl import write_all
from tests.boards import QUICK, Records, make_records
from tests.browser.conftest import SHOWN_AT, Browser, assert_fits, serious_faults
from tests.browser.pages import write_page
from tests.rows import rows

JUDGES = ("rules", "judge: B")
MODELS = ("alpha", "beta", "gamma-with-a-very-long-name-20241022-instruct", "模型一号")
LATE = "S-7"
"""The seed on which alpha is accused late, in a long dialogue."""


def judged() -> tuple[Records, dict[str, dict[str, list[Judgment]]]]:
    """Four models by two judges, the second a panel; alpha's words are long on one seed."""
    records = make_records(
        dict(zip(MODELS, (0.9, 0.6, 0.4, 0.1), strict=True)), 24, arena=(16,), rng_seed=4
    )
    other = make_records(dict(zip(MODELS, (0.2, 0.5, 0.7, 0.9), strict=True)), 24, arena=(16,))
    late = records.dialogues["alpha"][LATE]
    long = tuple(f"{said} " * 12 if i > 1 else said for i, said in enumerate(late.utterances))
    dialogues = {**records.dialogues}
    dialogues["alpha"] = {
        **dialogues["alpha"],
        LATE: msgspec.structs.replace(late, utterances=(*long[:-1], "A xylophone, at last.")),
    }
    unieval = [
        msgspec.structs.replace(one, verdict="13", reason="A reason of many words. " * 30)
        if (one.contestants, one.seed_id) == (("alpha",), LATE)
        else one
        for one in records.judgments["unieval"]
    ]
    talk = (
        Remark("critic", "No, I think.", verdict="No"),
        Remark("author", "Look at 5.", verdict="5"),
        Remark("critic", "You are right.", verdict="5"),
    )
    panel = {
        protocol: [
            msgspec.structs.replace(
                one, judge=JUDGES[1], transcript=talk if protocol == "unieval" else ()
            )
            for one in said
        ]
        for protocol, said in other.judgments.items()
    }
    first = {**records.judgments, "unieval": unieval}
    return Records(records.seeds, dialogues, first), {JUDGES[0]: first, JUDGES[1]: panel}


@pytest.fixture(scope="module")
def known() -> tuple[Records, dict[str, dict[str, list[Judgment]]]]:
    """What is on the page."""
    return judged()


@pytest.fixture(scope="module")
def shown(
    known: tuple[Records, dict[str, dict[str, list[Judgment]]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Its page."""
    folder = tmp_path_factory.mktemp("reading")
    records, by_judge = known
    judged_set = JudgedSet("made-up", records.seeds, records.dialogues)
    views = [
        View.of(build_board(judged_set, judge, said, QUICK)) for judge, said in by_judge.items()
    ]
    write_all(folder, files(views, build(records.seeds, records.dialogues, by_judge)))
    return folder / "index.html"


def state(browser: Browser) -> dict[str, str]:
    """The address of what is shown."""
    return dict(parse_qsl(browser.run("return location.hash.slice(1)")))


def wrong_link(browser: Browser) -> str:
    """What the page says of a link that does not fit."""
    return browser.text("#wrong-link:not([hidden])")


def results(said: list[Judgment], a: str, b: str) -> dict[str, list[str | None]]:
    """Seed -> what both orders say of the first, in words of the page."""
    found: dict[str, list[str | None]] = {}
    for at, pair in enumerate([(a, b), (b, a)]):
        for one in said:
            if one.contestants == pair:
                winner = {"1": pair[1], "2": pair[0]}.get(one.verdict or "")
                told = f"{winner} is more human" if winner else "tie" if one.verdict else None
                found.setdefault(one.seed_id, [None, None])[at] = told
    return found


def test_a_pair_opens_at_what_both_orders_decide_in_names(
    browser: Browser, shown: Path, known: Any
) -> None:
    """Also where the link names one model: its neighbour on the board is the rival."""
    said = known[1]["rules"]["arena-n16"]
    is_first = []
    for name in MODELS:
        browser.open(shown, f"#view=pair&protocol=arena-n16&a={name}")
        browser.text(".ruling .said b")
        order = [one for one in browser.run("return botchat.about.order") if one != HUMAN]
        rival = state(browser)["b"]
        assert abs(order.index(rival) - order.index(name)) == 1
        told = results(said, name, rival)
        seeds = sorted(told, key=natural_sort_key)
        decided = [s for s in seeds if told[s][0] == told[s][1] not in (None, "tie")]
        assert state(browser)["seed"] == decided[0]
        is_first.append(decided[0] == seeds[0])
        verdicts = browser.texts(".ruling .said b")
        assert [one.split(":")[0] for one in verdicts] == [
            (one or "").replace(name, short(name)).replace(rival, short(rival))
            for one in told[decided[0]]
        ]
        whole = browser.text("#pair .case")
        assert "first wins" not in whole
        assert "onversation 1" not in whole
        assert browser.run(
            "return [...document.querySelectorAll('.columns h4 bdi')].map((e) => e.title)"
        ) == [name, rival]
        assert len(browser.texts(".shared .bubble")) == 2
    assert not all(is_first)
    assert browser.complaints() == []


def short(name: str) -> str:
    """A name in little room."""
    name = name.removesuffix("-instruct") if len(name) > 34 else name
    return name if len(name) <= 34 else f"{name[:33]}…"


def test_what_the_judge_said_of_places_is_said_of_names(
    browser: Browser, tmp_path: Path, known: Any
) -> None:
    """A reason's "conversation 2" is whom it saw there; what it did not see is folded."""
    records, by_judge = known
    arena = [
        msgspec.structs.replace(one, reason="Conversation 2 is stiff.", shown=9)
        for one in by_judge["rules"]["arena-n16"]
        if set(one.contestants) == {"alpha", "beta"}
    ]
    alone = dataclasses.replace(records, judgments={"arena-n16": arena})
    page = write_page(alone, tmp_path)
    browser.open(page, "#view=pair&a=alpha&b=beta")
    browser.text(".case .columns")
    assert browser.texts(".ruling .reason") == ["beta is stiff.", "alpha is stiff."]
    seen = (
        "return [...document.querySelectorAll('.case > .columns [data-at]')].map(e => e.dataset.at)"
    )
    assert {int(at) for at in browser.run(seen)} == set(range(3, 10))
    assert browser.text(".unseen summary") == "Not shown to the judge: from utterance 10 on"


def test_cells_open_their_pair(browser: Browser, shown: Path) -> None:
    """By click and by keyboard, models alone; the table is one stop for Tab."""
    browser.open(shown, "#view=pair")
    browser.text(".case .columns")
    order = browser.run("return botchat.about.order")
    assert len(browser.texts(".matrix tbody th")) == 4
    cells = browser.run(
        "return [...document.querySelectorAll('.matrix a')].map(a => [a.hash, a.title, a.tabIndex])"
    )
    assert len(cells) == 12
    assert sum(index == 0 for _, _, index in cells) == 1
    models = [name for name in order if name != HUMAN]
    assert (state(browser)["a"], state(browser)["b"]) == tuple(models[:2])
    for target, title, _ in cells:
        asked = dict(parse_qsl(target[1:]))
        assert asked["protocol"] == "arena-n16"
        assert title.startswith(f"{short(asked['a'])} against {short(asked['b'])}: ")
        assert "95 % interval" in title
    browser.run("document.querySelector('.matrix tr:last-child a').click()")
    browser.until(lambda: state(browser)["a"] == models[-1])
    browser.run("document.querySelector('.matrix tr a').click()")
    browser.until(lambda: state(browser)["a"] == models[0])
    browser.run("document.querySelector('.matrix [aria-current]').focus()")
    left = state(browser)["a"]
    browser.press("\ue015")  # arrow down
    browser.press("\n")
    browser.until(lambda: state(browser).get("a") != left)
    assert browser.run("return document.activeElement.closest('.matrix') !== null")


def test_the_score_and_the_boxes_are_those_of_the_verdicts(
    browser: Browser, shown: Path, known: Any
) -> None:
    """Wins, ties and losses of both orders; too few seeds say so."""
    browser.open(shown, "#view=pair&protocol=arena-n16&a=beta&b=alpha")
    browser.text(".case .columns")
    told = results(known[1]["rules"]["arena-n16"], "beta", "alpha")
    each = [one for both in told.values() for one in both if one]
    won, lost = (sum(one.startswith(name) for one in each) for name in ("beta", "alpha"))
    tied = each.count("tie")
    n = won + tied + lost
    sentence = browser.text(".duel .note")
    assert sentence.startswith(f"{won} won, {tied} tied, {lost} lost of {n} comparisons on")
    assert "too few seeds to say who is ahead" in sentence
    score = (won + tied / 2) / n
    assert browser.text(".score") == f"{round(100 * score)} : {100 - round(100 * score)}"
    assert browser.run("return document.querySelectorAll('.boxes a').length") == len(told)
    filled = "return document.querySelectorAll('.boxes i.' + arguments[0]).length"
    assert [browser.run(filled, kind) for kind in ("win", "tie", "lose")] == [won, tied, lost]
    assert not browser.texts(".matrix .ahead, .matrix .behind")
    assert browser.texts(".others p")[0].startswith("judge: B: beta first: ")


@pytest.mark.parametrize(("link", "what"), rows("a_link_that_does_not_fit_shows_nothing_else"))
def test_a_link_that_does_not_fit_shows_nothing_else(
    browser: Browser, shown: Path, link: str, what: str
) -> None:
    """It says what is not on the page; no other dialogue takes its place."""
    browser.open(shown, f"#{link}")
    assert what in wrong_link(browser)
    browser.text("#pairs .duel > *, .reading .note")
    assert browser.texts(".columns, .reading .dialogue") == []
    assert state(browser) == dict(parse_qsl(link))
    browser.run("location.hash = '#view=unieval&a=alpha&seed=S-1'")
    browser.text(".reading .dialogue")
    assert not browser.driver.find_element("id", "wrong-link").is_displayed()


IN_SIGHT = """
const box = document.querySelector('.reading li.first-ai .bubble').getBoundingClientRect();
const head = document.querySelector('.head').getBoundingClientRect();
return head.top >= -1 && box.top >= head.bottom - 1 && box.bottom <= innerHeight;
"""


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_the_accused_utterance_is_on_the_screen(
    browser: Browser, shown: Path, width: int, height: int
) -> None:
    """After opening a link, and again by its badge, under the verdict that stays on top."""
    browser.open(shown, f"#view=unieval&a=alpha&seed={LATE}", width, height)
    assert "utterance 13" in browser.text(".reading .stamp")
    browser.until(lambda: browser.run(IN_SIGHT))
    for _ in range(2):
        browser.run("scrollTo(0, 0); document.activeElement.blur()")
        browser.until(lambda: not browser.run(IN_SIGHT))
        browser.run("document.querySelector('.reading .stamp').click()")
        browser.until(lambda: browser.run(IN_SIGHT))
    assert state(browser)["at"] == "13"


def test_keys_go_through_dialogues(browser: Browser, shown: Path, known: Any) -> None:
    """Utterances by j and k, dialogues by n and p, accused ones by a, the talk by d, keys by ?."""
    browser.open(shown, f"#view=unieval&a=alpha&seed={LATE}&at=4")
    browser.until(lambda: browser.texts(".dialogue > .now .no"))
    for key, at in (("j", "5"), ("k", "4"), ("k", "3")):
        browser.press(key)
        assert state(browser)["at"] == at
        browser.until(lambda at=at: browser.texts(".dialogue > .now .no") == [f"utterance {at}"])
    said = {one.seed_id: one.verdict for one in known[1]["rules"]["unieval"]
            if one.contestants == ("alpha",)}  # fmt: skip
    number = int(LATE[2:])
    accused = next(f"S-{i}" for i in range(number + 1, 25) if said[f"S-{i}"] not in ("No", None))
    for key, seed in (("n", f"S-{number + 1}"), ("p", LATE), ("a", accused)):
        browser.press(key)
        browser.until(lambda seed=seed: f"· {seed}" in browser.text(".reading h3"))
        assert state(browser)["seed"] == seed
    browser.press("?")
    assert "next dialogue called AI" in browser.text("dialog[open]")
    browser.open(shown.with_name("judge-2.html"), "#view=unieval&a=alpha&seed=S-1")
    browser.text(".talk")
    opened = "return document.querySelector('.talk').open"
    assert browser.run(opened) is False
    browser.press("d")
    assert browser.run(opened) is True
    members = "return [...document.querySelector('.votes tbody').rows].map((r) => r.innerText)"
    assert browser.run(members) == ["critic\thuman\tat 5", "author\tat 5\tat 5"]


def test_an_utterance_shows_its_prompt(browser: Browser, shown: Path) -> None:
    """At its number, and a second time hides it: the other side is the user."""
    browser.open(shown, f"#view=unieval&a=alpha&seed={LATE}")
    browser.text(".reading button.no")
    assert len(browser.texts(".reading .dialogue > li > button.no")) == 14  # none of humans
    browser.click('.reading [data-at="4"] button.no')
    lines = browser.text(".reading .asked").splitlines()
    assert [line.partition(":")[0] for line in lines] == ["system", "user", "assistant", "user"]
    browser.click('.reading [data-at="4"] button.no')
    assert browser.texts(".reading .asked") == []


def test_filter_and_search_are_in_the_address(browser: Browser, shown: Path) -> None:
    """A link brings them back, with hits marked in the list and the text; so do the controls."""
    browser.open(shown, "#view=unieval&a=alpha&show=lose&q=XYLOPHONE")
    browser.until(lambda: browser.texts(".cases .id") == [LATE])
    assert browser.texts(".cases mark") == ["xylophone"]
    assert browser.texts(".cases .opening b") == ["16 "]
    browser.until(lambda: browser.texts(".reading .dialogue mark") == ["xylophone"])
    assert browser.text(".finder output") == "1 of 24"
    field = browser.driver.find_element("css selector", "#reader input[type=search]")
    assert field.get_property("value") == "XYLOPHONE"
    browser.choose("#reader [aria-label=Verdict]", "win")
    assert state(browser)["show"] == "win"
    assert browser.texts(".cases .id") == []
    field.clear()
    field.send_keys("river")
    assert state(browser)["q"] == "river"
    browser.until(lambda: len(browser.texts(".cases .id")) > 1)
    assert set(browser.texts(".cases .badge")) == {"human"}
    assert all(one.lower() == "river" for one in browser.texts(".cases mark"))
    address = browser.run("return location.hash")
    again = browser.texts(".cases .id")
    browser.open(shown, address)
    browser.until(lambda: browser.texts(".cases .id") == again)


def test_a_phone_has_the_list_behind_a_button(browser: Browser, shown: Path) -> None:
    """Previous, next and list are buttons; a choice closes the list."""
    browser.open(shown, "#view=unieval&a=alpha&seed=S-2", 390, 844)
    browser.text(".reading .dialogue")
    listing = browser.driver.find_element("css selector", ".finder")
    assert not listing.is_displayed()
    browser.driver.find_element("css selector", "[title='Next dialogue']").click()
    browser.until(lambda: state(browser)["seed"] == "S-3")
    browser.until(lambda: "S-3" in browser.text(".reading h3"))
    browser.driver.find_element("css selector", ".to-list").click()
    assert listing.is_displayed()
    browser.driver.find_element("css selector", ".cases [data-at='4']").click()
    browser.until(lambda: "S-5" in browser.text(".reading h3"))
    assert not listing.is_displayed()


def test_what_is_missing_is_said(browser: Browser, tmp_path: Path) -> None:
    """Nothing to compare, a verdict that nobody gave, and a chunk that is not beside the page."""
    records = make_records({"m": 0.5}, 4)
    alone = dataclasses.replace(records, judgments={"unieval": records.judgments["unieval"][4:]})
    page = write_page(alone, tmp_path)
    browser.open(page, "#view=pair")
    assert wrong_link(browser) == "Nothing on this page compares dialogues."
    browser.open(page, "#view=unieval&a=human&seed=S-1")
    assert browser.text(".reading .stamp") == "– Not judged"
    assert browser.text(".judges td") == "not judged"
    (tmp_path / "chunks" / "seeds-0.js").unlink()
    browser.open(page, "#view=unieval&a=m&seed=S-1")
    assert "chunks/seeds-0.js is not beside this page" in browser.text(".reading .warning")


@pytest.mark.parametrize(("width", "dark"), SHOWN_AT)
def test_both_views_fit_and_are_accessible(
    browser: Browser, shown: Path, width: int, dark: bool
) -> None:
    """Nothing is wider than the screen, no text below 11 px, no serious fault by axe."""
    for link, there in (
        ("#view=pair&protocol=arena-n16", ".case .columns"),
        (f"#view=unieval&a=alpha&seed={LATE}&q=bus", ".reading .dialogue mark"),
    ):
        browser.open(shown, link, width=width, dark=dark)
        browser.text(there)
        browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert_fits(browser)
        serious = serious_faults(browser) if width == 390 else []
        assert serious == [], json.dumps(serious, indent=1)
        assert browser.complaints() == []
