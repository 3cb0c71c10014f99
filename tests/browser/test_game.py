"""What people who judge see, in what order, and what becomes of their answers."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

import botchat
from botchat.pipeline.label import PLAN, game_path, rater, write_game
from botchat.pipeline.run.read_set import read
from botchat.pipeline.view import Server
from botchat.records import HUMAN, Judgment
from botchat.requests import Labelling, Paging
from botchat.workspace import files
from botchat.workspace.folder import Workspace
from tests.boards import QUICK
from tests.browser.conftest import Browser, serious_faults
from tests.browser.pages import HOSTILE
from tests.view_door import running

END = "h1.question"
COUNTED = ".counted"


@pytest.fixture
def workspace(demo_workspace: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the demo."""
    root = tmp_path / "workspace"
    shutil.copytree(demo_workspace.root, root)
    return Workspace(root)


@pytest.fixture
def game(browser: Browser, page: Path) -> Path:
    """The demo's game, in a browser that has kept nothing."""
    browser.open(page.with_name("game.html"), fresh=True)
    return page.with_name("game.html")


def start(browser: Browser, page: Path, query: str = "", name: str = "", **how: Any) -> None:
    """Open the game and begin."""
    browser.open(page, query, **how)
    browser.driver.find_element("id", "rater").send_keys(f"{name}\n")
    browser.text(".play h1")


def label(browser: Browser, answers: list[str]) -> None:
    """Press keys for one case after the other, without an end."""
    before = int(browser.text(COUNTED).split()[0])
    for n, keys in enumerate(answers, before + 1):
        browser.press(keys)
        browser.until(lambda n=n: browser.text(COUNTED).startswith(f"{n} labelled"))


def play(browser: Browser, answers: list[str]) -> None:
    """Press keys for every case of a deal."""
    for n, keys in enumerate(answers, 1):
        browser.until(lambda n=n: browser.text(COUNTED) == f"Case {n} of {len(answers)}")
        browser.press(keys)
    browser.until(lambda: browser.driver.find_elements("css selector", ".mid .question"))


def click(browser: Browser, label: str) -> None:
    """Press the button that says so, as soon as it is there."""
    path = f"//button[contains(., '{label}')]"
    browser.until(lambda: browser.driver.find_elements("xpath", path))[0].click()


def exported(browser: Browser, name: str) -> list[Judgment]:
    """The lines of a judge file that the page hands over."""
    path = browser.downloads / name
    path.unlink(missing_ok=True)
    click(browser, "Export")
    browser.until(lambda: path.exists() and path.stat().st_size > 0)
    return msgspec.json.Decoder(Judgment).decode_lines(path.read_bytes())


def chunk(page: Path, name: str) -> Any:
    """What a chunk holds."""
    packed = re.findall(r'"([^"]+)"', page.with_name("chunks").joinpath(name).read_text("utf-8"))
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


def dealt(page: Path, n: int = 10) -> list[str]:
    """Whose the cases of the first deal are."""
    return [names[0] for names, *_ in chunk(page, "answers-0-0.js")["cases"][:n]]


def test_nothing_tells_before_the_end(
    browser: Browser, game: Path, demo_workspace: Workspace
) -> None:
    """No link, name, verdict or count in the document or in any chunk that is loaded; then all."""
    names = {*demo_workspace.all_dialogues("sample"), "rules"}
    start(browser, game)
    # What is seen first is the case: it begins at the top of the screen.
    assert browser.run("return document.querySelector('.play h1').getBoundingClientRect().top") < 80
    asked = []
    for n in range(1, 11):
        browser.until(lambda n=n: browser.text(COUNTED) == f"Case {n} of 10")
        source = browser.run("return document.documentElement.outerHTML")
        assert not [name for name in names if name in source]
        assert browser.run("return document.links.length") == 0
        around = " ".join(browser.seen(".bar, .question, .act"))
        assert not re.search(r"%|agree|right|wrong|✓|✕", around)
        asked += browser.requests()
        if n < 10:
            browser.press("h")
    loaded = {url.rsplit("/", 1)[-1] for url in asked if url.endswith(".js")}
    assert loaded == {"game-0-0.js"}
    blind = json.dumps(chunk(game, "game-0-0.js"))
    assert not [name for name in (*names, '"No"', '"human"') if name in blind]
    browser.press("h")
    browser.until(lambda: browser.text(END).startswith("You: "))
    assert {url.rsplit("/", 1)[-1] for url in browser.requests()} == {"answers-0-0.js"}
    assert "rules" in browser.seen(".score th")
    assert browser.complaints() == []


def test_the_score_is_right(browser: Browser, game: Path, demo_workspace: Workspace) -> None:
    """Yours and the judge's on the same cut cases, its interval, what guessing does, and a text."""
    whose = dealt(game)
    assert whose.count(HUMAN) == 5
    right = ["h" if name == HUMAN else "mj\n" for name in whose]
    wrong = ["mj\n" if name == HUMAN else "h" for name in whose]
    start(browser, game)
    play(browser, [*right[:8], *wrong[8:]])
    browser.until(lambda: browser.text(END) == "You: 8 of 10")
    # 56 of 1,024 ways to guess have 8 and more; Wilson's interval of 8 in 10.
    assert "Guessing does that in 5 % of all tries." in browser.text(".beside")
    assert "49 to 94" in browser.text(".range")
    rows = {row[0]: row[1:] for row in map(str.split, browser.seen(".score tr"))}
    assert rows["truth"] == ["P" if name == HUMAN else "M" for name in whose]
    assert rows["you"] == [*"✓✓✓✓✓✓✓✓✕✕", "8/10"]
    cases = chunk(game, "game-0-0.js")[:10]
    said = {
        (one.seed_id, one.contestants[0]): one.verdict
        for one in read(demo_workspace, "sample").judged["rules"]["unieval"]
    }
    marks = []
    for name, (_, seed_id, _, (shown,)) in zip(whose, cases, strict=True):
        verdict = said[(seed_id, name)]
        accused = verdict not in (None, "No") and int(verdict) <= len(shown)
        marks.append("✓" if accused == (name != HUMAN) else "✕")
    assert rows["rules"] == [*marks, f"{marks.count('✓')}/10"]
    pasted = browser.run("return document.querySelector('textarea').value").split("\n")
    assert pasted[0] == "Can you tell? 8/10 · sample, deal 1"
    assert "■■■■■■■■□□ I 8/10" in pasted
    told = browser.seen(".told > li")
    assert [one.split(" · ")[0] for one in told] == [
        "people" if name == HUMAN else name for name in whose
    ]
    # Open, case by case: what was said of it, and in which line, as the judges say it.
    for name, mark, keys, lines in zip(whose, marks, [*right[:8], *wrong[8:]], told, strict=True):
        mine = "people" if keys == "h" else "a machine, from line 3 on"
        assert f"{'✓' if (keys == 'h') == (name == HUMAN) else '✕'} you: {mine}" in lines
        assert f"{mark} rules: " in lines
    browser.driver.find_element("css selector", ".told a").click()
    browser.until(lambda: browser.run("return location.pathname").endswith("index.html"))


def test_a_deal_goes_on_where_it_was_left(browser: Browser, game: Path) -> None:
    """Answers are kept; u takes back, one held key answers once; then there are ten others."""
    start(browser, game)
    first = browser.text(".chat")
    browser.run(
        "for (const repeat of [false, true, true])"
        "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'h', repeat}))"
    )
    browser.until(lambda: browser.text(COUNTED) == "Case 2 of 10")
    browser.press("u")
    browser.until(lambda: browser.text(COUNTED) == "Case 1 of 10")
    assert browser.text(".chat") == first
    browser.press("mu")  # back to the first question
    browser.press("mjjkj\n")
    browser.until(lambda: browser.text(COUNTED) == "Case 2 of 10")
    start(browser, game)
    assert browser.text(COUNTED) == "Case 2 of 10"
    browser.press("\ue00c")
    assert browser.driver.find_element("css selector", "dialog").is_displayed()
    browser.press("h")
    assert browser.text(COUNTED) == "Case 2 of 10"
    click(browser, "Stay")
    browser.press("u")
    browser.until(lambda: browser.text(COUNTED) == "Case 1 of 10")
    play(browser, ["h"] * 10)
    start(browser, game)
    assert browser.text(".chat") != first
    assert browser.text(".counted") == "Case 1 of 10"
    start(browser, game, "?deal=2")
    assert browser.text(".chat") != first


def test_a_link_that_does_not_fit_says_so(browser: Browser, game: Path) -> None:
    """No other case is shown in its place."""
    for query, says in {
        "?deal=99": "no deal 99 here; there are deals 1 to",
        "?deal=x": "no deal x",
        "?protocol=none": "no cases of none in this page; there are: unieval, arena-n16",
        "?plan=1": "botchat label plan --seeds sample",
    }.items():
        browser.open(game, query)
        assert says in browser.text("[role=alert]")
    assert browser.complaints() == []


def test_labels_become_a_judge(browser: Browser, workspace: Workspace, tmp_path: Path) -> None:
    """Five cases by keyboard, kept over a reload, exported, ranked by, and imported elsewhere."""
    page = workspace.out("sample") / "game.html"
    start(browser, page, "?label=1", "Amy", fresh=True)
    label(browser, ["n", "jjj\n", "n", "jj\n", "n"])
    click(browser, "Finish")
    assert "rules agrees with you in" in browser.text(".agreement")

    browser.open(page, "?label=1&rater=AMY")
    browser.press("\n")
    assert browser.text(COUNTED).startswith("5 labelled of 2")
    click(browser, "Finish")
    browser.text(".agreement")
    labels = exported(browser, "unieval.human-amy.jsonl")
    path = browser.downloads / "unieval.human-amy.jsonl"
    target = workspace.root / "judgments" / "sample" / "unieval" / path.name
    shutil.copy(path, target)
    assert [label.verdict for label in labels] == ["No", "3", "No", "2", "No"]
    assert {label.judge for label in labels} == {"human:amy"}
    assert list(json.loads(path.read_text("utf-8").split("\n")[0])) == [
        "protocol", "seed_id", "contestants", "judge", "verdict", "reason", "shown", "case",
        "signature", "outcome", "transcript", "calls",
    ]  # fmt: skip
    board = botchat.leaderboard(workspace, "sample", "human:amy", tmp_path / "out")
    assert [one for one in board.lines if "changed since" in one] == []
    found = botchat.agree(workspace, seed_set="sample", protocol="unieval", truth="built-in").whole
    assert {row["judge"]: row["n"] for row in found["rows"]} == {"human:amy": 5, "rules": 200}
    (pair,) = found["pairs"]
    accused = {(j.seed_id, j.contestants): j for j in labels}
    rules = read(workspace, "sample").judged["rules"]["unieval"]
    same = [
        (one.verdict == "No") == (accused[one.seed_id, one.contestants].verdict == "No")
        for one in rules
        if (one.seed_id, one.contestants) in accused
    ]
    assert (pair["n"], pair["agreement"]) == (5, sum(same) / 5)
    assert f"in {sum(same)} of 5" in browser.text(".agreement")

    browser.open(page, "?label=1", fresh=True)
    browser.run("document.querySelector('#import').closest('details').open = true")
    browser.driver.find_element("id", "import").send_keys(str(path))
    browser.until(lambda: browser.text(".status") == "5 labels of amy are here.")
    browser.driver.find_element("id", "rater").send_keys("\n")
    browser.until(lambda: browser.text(COUNTED).startswith("5 labelled"))
    written = Paging("sample", elo=QUICK).run(workspace).whole["page"]
    assert "human:amy" in written.read_text("utf-8")


def test_a_file_that_is_no_labels_is_refused(browser: Browser, game: Path, tmp_path: Path) -> None:
    """One line that names the line; nothing of it is taken."""
    row = {"protocol": "unieval", "seed_id": "s", "contestants": ["m"], "verdict": "No"}
    row["case"] = "0"
    wrong = {
        "line 2 is no label": [row | {"judge": "human:amy"}, {"a": 1}],
        "line 1 is of the judge rules": [row | {"judge": "rules"}],
        "line 2 is of another person": [row | {"judge": "human:amy"}, row | {"judge": "human:b"}],
        "it holds no labels": [],
    }
    browser.open(game, "?label=1", fresh=True)
    browser.run("document.querySelector('#import').closest('details').open = true")
    for i, (says, rows) in enumerate(wrong.items()):
        path = tmp_path / f"{i}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        browser.driver.find_element("id", "import").send_keys(str(path))
        browser.until(lambda says=says: says in browser.text(".status"))
    assert browser.run("return Object.keys(localStorage)") == []


def test_labels_of_pairs_are_people_to_agree_with(browser: Browser, workspace: Workspace) -> None:
    """Arena cases labelled by keyboard and exported: `agree` measures the judge against them."""
    page = workspace.out("sample") / "game.html"
    start(browser, page, "?protocol=arena&label=1", "Amy", fresh=True)
    # The second key comes before the next case is there; it must not change the first answer.
    browser.run(
        "for (const key of '1b') document.dispatchEvent(new KeyboardEvent('keydown', {key}));"
    )
    browser.until(lambda: browser.text(COUNTED).startswith("1 labelled"))
    label(browser, ["2", "b", "n", "1"])
    click(browser, "Finish")
    shown = browser.text(".agreement")
    labels = exported(browser, "arena-n16.human-amy.jsonl")
    path = browser.downloads / "arena-n16.human-amy.jsonl"
    shutil.copy(path, workspace.root / "judgments" / "sample" / "arena-n16" / path.name)
    assert [label.verdict for label in labels] == ["1", "2", "both", "neither", "1"]

    found = botchat.agree(workspace, seed_set="sample", protocol="arena-n16").whole
    assert found["truth"] == "people (human…)"
    (row,) = found["rows"]
    # What a person says of one order holds, mirrored, of the other, which the judge saw too.
    assert (row["judge"], row["n"]) == ("rules", 10)
    assert f"rules agrees with you in {round(5 * row['accuracy'])} of 5" in shown
    board = read(workspace, "sample", ["human:amy"]).board("human:amy", QUICK)
    assert board.arenas[0].comparisons.n == 5
    text = Paging("sample", elo=QUICK).run(workspace).whole["page"].read_text("utf-8")
    assert "Judges against people (human…): arena-n16 on sample" in text


def test_of_two_one_is_people_s(browser: Browser, game: Path) -> None:
    """GTEval knows the truth: a deal of it has a score; naming both is wrong."""
    cases = chunk_of(game, "gteval")[:10]
    right = [str(2 - names.index(HUMAN)) for names, *_ in cases]
    start(browser, game, "?protocol=gteval&deal=1")
    play(browser, [*right[:6], "b", "n", *right[8:]])
    browser.until(lambda: browser.text(END) == "You: 8 of 10")
    rows = {row[0]: row[1:] for row in map(str.split, browser.seen(".score tr"))}
    assert rows["truth"] == right
    assert rows["you"][-1] == "8/10"


def chunk_of(page: Path, protocol: str) -> list[Any]:
    """The first answers in everybody's order."""
    about = json.loads(page.read_text("utf-8").split('id="about">')[1].split("</script>")[0])
    place = about["lists"].index(
        next(one for one in about["lists"] if one[:2] == ["all", protocol])
    )
    return list(chunk(page, f"answers-{place}-0.js")["cases"])


def test_own_criteria_can_be_labelled(browser: Browser, own: Path) -> None:
    """A button or a field for each number, the judge's labels for two; reports are not offered."""
    page = own.with_name("game.html")
    start(browser, page, "?label=1&protocol=empathy", "Amy", fresh=True)
    assert browser.text(".play h1") == "How warm?"
    label(browser, ["7", "0", "1", "3", "5"])
    click(browser, "Finish")
    assert "rules differs from your scores by" in browser.text(".agreement")
    labels = exported(browser, "empathy.human-amy.jsonl")
    assert [one.verdict for one in labels] == ["7", "10", "1", "3", "5"]
    assert {one.protocol for one in labels} == {"empathy"}
    assert all("|empathy|set:made-up|judge:human:amy|" in one.signature for one in labels)

    browser.open(page)
    offered = (
        "return [...document.querySelectorAll('details li')].map(o => o.querySelector('a').href)"
    )
    assert [link.split("protocol=")[1] for link in browser.run(offered)] == [
        "unieval", "arena-n16", "arena-n8", "gteval", "empathy", "style", "drift", "warmth-n16",
        "depth-n16",
    ]  # fmt: skip
    start(browser, page, "?label=1&protocol=style")
    serious = serious_faults(browser)
    assert serious == [], json.dumps(serious, indent=1)
    wit, tact = browser.driver.find_elements("css selector", ".answers input")
    wit.send_keys("120")
    tact.send_keys("7.5\n")
    assert browser.text(COUNTED).startswith("0 labelled")
    wit.clear()
    wit.send_keys("12\n")
    browser.until(lambda: browser.text(COUNTED).startswith("1 labelled"))
    click(browser, "Finish")
    browser.text(".mid h1")
    assert [one.verdict for one in exported(browser, "style.human-amy.jsonl")] == ["12 7.5"]

    start(browser, page, "?label=1&protocol=warmth-n16")
    label(browser, ["1", "b"])
    click(browser, "Finish")
    labels = exported(browser, "warmth-n16.human-amy.jsonl")
    assert [one.verdict for one in labels] == ["1", "both"]
    assert {"|warmth|set:made-up|n:16|" in one.signature for one in labels} == {True}
    start(browser, page, "?label=1&protocol=drift")
    label(browser, ["n", "jj\n"])
    click(browser, "Finish")
    assert [one.verdict for one in exported(browser, "drift.human-amy.jsonl")] == ["No", "2"]
    assert browser.complaints() == []


def test_hostile_text_is_text(browser: Browser, hostile_own: Path, hostile: Path) -> None:
    """Utterances, names, questions and prompts run nowhere, to the end."""
    page = hostile_own.with_name("game.html")
    for protocol in ("empathy", "drift", "style"):
        start(browser, page, f"?label=1&protocol={protocol}", HOSTILE[1], fresh=True)
        assert HOSTILE[1] in browser.text("#game")
    start(browser, hostile.with_name("game.html"), "?label=1&protocol=unieval")
    assert HOSTILE[1] in browser.text(".chat")
    label(browser, ["h"])
    click(browser, "Finish")
    browser.text(".mid h1")
    assert browser.run("return window.pwned") is None
    assert browser.run("return document.querySelectorAll('img, iframe').length") == 0
    assert all(url.startswith(hostile.parent.as_uri()) for url in browser.requests())
    assert browser.complaints() == []


def test_the_plan_is_dealt(browser: Browser, workspace: Workspace) -> None:
    """Only what was drawn, of several protocols; each is exported by itself."""
    plan = [
        {"protocol": "unieval", "seed_id": "sample-3", "contestants": ["bot:eliza"], "n": None},
        {"protocol": "gteval", "seed_id": "sample-3", "contestants": ["human", "bot:parrot"]},
    ]
    folder = workspace.out("sample")
    (folder / PLAN).write_text("".join(json.dumps(row) + "\n" for row in plan), "utf-8")
    path = game_path(workspace, "sample", name="Cy", plan=True)
    assert path == "/sample/game.html?rater=cy&plan=1"
    browser.open(folder / "game.html", path.removeprefix("/sample/game.html"))
    browser.press("\n")
    browser.text(".play h1")
    for _ in plan:
        pair = browser.run("return Boolean(document.querySelector('.columns'))")
        before = browser.text("#game")
        browser.press("1" if pair else "h")
        browser.until(lambda before=before: browser.text("#game") != before)
    browser.until(lambda: browser.text(END) == "You labelled 2")
    buttons = [text for text in browser.seen("button") if text.startswith("Export")]
    assert sorted(buttons) == ["Export gteval", "Export unieval"]
    (folder / PLAN).unlink()
    write_game(workspace, read(workspace, "sample"), folder)
    browser.open(folder / "game.html", "?plan=1")
    assert "no label plan" in browser.text("[role=alert]")


def test_a_name_is_one_person_here_and_in_the_workspace(browser: Browser, game: Path) -> None:
    """The page folds names as `botchat.pipeline.label.rater` does."""
    browser.open(game)
    written = "Amy| AMY  b|José|JOSE\u0301|Straße|\uff21my|ΟΔΟΣ|İzmir|名前"
    for name in written.split("|"):
        assert browser.run("return botchat.labels.fold(arguments[0])", name) == rater(name)


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_it_fits_and_is_accessible(browser: Browser, game: Path, width: int, dark: bool) -> None:
    """Before, in and after a deal and for two: no wider than the screen, axe clean, big buttons."""
    seen = []

    def check() -> None:
        wide, room = browser.run(
            "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
        )
        assert wide <= room
        small = browser.run(
            "return [...document.querySelectorAll('button, input:not([type=file]), summary')]"
            ".filter(e => e.getClientRects().length && e.getBoundingClientRect().height < 43.5)"
            ".map(e => e.outerHTML)"
        )
        assert small == []
        seen.extend(serious_faults(browser))

    browser.open(game, width=width, dark=dark)
    check()
    start(browser, game, width=width, dark=dark)
    browser.press("jmj")
    focused = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.run(focused) == "solid"
    check()
    play(browser, ["mj\n"] * 10)
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    check()
    start(browser, game, "?protocol=arena-n8", width=width, dark=dark)
    check()
    assert seen == [], json.dumps(seen, indent=1)


def test_two_people_label_at_once(browser: Browser, workspace: Workspace) -> None:
    """Each by an address: under one name, with a count that is the file's, and told nothing."""
    botchat.label_plan(workspace, "sample", budget=12)
    names = ("ann", "bob")
    with running(
        Labelling("sample", names=names, host="0.0.0.0", plan=True).run(workspace)
    ) as server:
        urls = [one.split()[0] for one in server.starts[:2]]
        first = browser.driver.current_window_handle
        browser.complaints()
        tabs = []
        for url in urls:
            browser.driver.switch_to.new_window("tab")
            tabs.append(browser.driver.current_window_handle)
            browser.driver.get(url)
            browser.press("\n")
            browser.text(COUNTED)
        for keys in ("h", "j\n", "h"):
            for tab in tabs:
                browser.driver.switch_to.window(tab)
                label(browser, [keys])
        targets = [workspace.judgments_path("sample", "unieval", f"human:{one}") for one in names]
        for tab, url, target in zip(tabs, urls, targets, strict=True):
            browser.driver.switch_to.window(tab)
            browser.until(lambda target=target: len(files.read(target, Judgment)) == 3)
            browser.press("u")
            browser.until(lambda: browser.text(COUNTED).startswith("2 labelled of 12"))
            assert len(files.read(target, Judgment)) == 2
            browser.run("localStorage.clear()")  # as in another browser
            browser.driver.get("about:blank")
            browser.driver.get(url)
            browser.press("\n")
            browser.until(lambda: browser.text(COUNTED).startswith("2 labelled of 12"))
            click(browser, "Finish")
            browser.until(lambda: browser.text(END) == "You labelled 2 of 12")
            assert "rules" not in browser.text("#game")
            assert serious_faults(browser) == []
            assert [one for one in browser.complaints() if "favicon" not in one] == []
            browser.driver.close()
        browser.driver.switch_to.window(first)
        assert {one.judge for one in files.read(targets[0], Judgment)} == {"human:ann"}


def test_answers_are_saved_where_the_page_is_served(browser: Browser, workspace: Workspace) -> None:
    """Each at once; of a game, which shows less, none; the name is folded."""
    with running(Server(workspace, "sample")) as server:
        path = game_path(workspace, "sample", protocol="unieval", name="Dee")
        url = server.url.removesuffix("/sample/") + path
        browser.open(url)
        browser.text("h1")
        browser.press("\n")
        browser.text(COUNTED)
        label(browser, ["n", "jjj\n"])
        browser.until(lambda: browser.text(".status") == "Saved in the workspace as human:dee.")
        target = workspace.judgments_path("sample", "unieval", "human:dee")
        browser.until(lambda: len(files.read(target, Judgment)) == 2)
        assert [one.verdict for one in files.read(target, Judgment)] == ["No", "3"]
        second = browser.text(".chat")
        browser.press("s")
        browser.until(lambda: browser.text(".chat") != second)
        browser.press("u")
        browser.until(lambda: browser.text(".chat") == second)
        browser.press("u")
        browser.until(lambda: browser.text(COUNTED).startswith("1 labelled"))
        assert [one.verdict for one in files.read(target, Judgment)] == ["No"]
        undone = browser.text(".chat")
        browser.press("s")
        browser.until(lambda: browser.text(".chat") == second)
        browser.press("n")
        browser.until(lambda: browser.text(COUNTED).startswith("2 labelled"))
        browser.until(lambda: len(files.read(target, Judgment)) == 2)
        browser.driver.get(url)
        assert "saved in the workspace at once" in browser.text("#game")
        browser.press("\n")
        browser.until(lambda: browser.text(COUNTED).startswith("2 labelled"))
        assert browser.text(".chat") == undone
        assert [one.verdict for one in files.read(target, Judgment)] == ["No", "No"]
        browser.driver.get(url.split("?")[0] + "?rater=Dee")
        browser.text("h1")
        browser.press("\n")
        play(browser, ["h"] * 10)
        assert len(files.read(target, Judgment)) == 2
        found = read(workspace, "sample", ["human:dee"])
        assert found.stale["human:dee"] == 0
        assert browser.complaints() == []
        browser.driver.get("about:blank")
