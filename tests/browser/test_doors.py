"""Doors of `botchat view`: a planted page spends nothing; hostile text stays text everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec
import pytest

from botchat.cli.main import main
from botchat.interfaces import Shown, case_digest
from botchat.pipeline.view import Server as View
from botchat.records import HUMAN, Judgment, Seed
from botchat.requests import generate
from botchat.requests.arguments import Limits
from botchat.talk.room import TalkRoom
from botchat.workspace import files
from botchat.workspace.folder import Workspace, dialogue_order, judgment_order
from tests.boards import made
from tests.browser.conftest import Browser
from tests.browser.pages import HOSTILE
from tests.integration.test_runs import workspace as with_models
from tests.openai_server import Server, converse, faults
from tests.view_door import ask, running

ATTACK = """
<button id="go">Go</button><script>
const room = "ROOM", body = '{"model":"alpha","utterances":["Hi"]}';
const kind = { "Content-Type": "application/json", "X-BotChat-Token": "x" };
const tried = () => [
  fetch(`${room}/say`, { method: "POST", headers: kind, body }),
  fetch(`${room}/say`, { method: "POST", mode: "no-cors", body }),
  fetch(`${room}/say`, { method: "POST", mode: "no-cors", body: new Blob([body]) }),
  fetch(room).then((one) => one.text()).then((page) => fetch(`${room}/say`, { method: "POST", body,
    headers: { ...kind, "X-BotChat-Token": page.match(/botchat-token" content="([^"]*)/)[1] } })),
  new Promise((done) => { const x = new XMLHttpRequest(); x.onloadend = done;
    x.open("POST", `${room}/say`); x.setRequestHeader("Content-Type", "application/json");
    x.send(body); }),
  new Promise((done) => { const i = new Image(); i.onload = i.onerror = done;
    i.src = `${room}/say?${body}`; }),
  new Promise((done) => { const f = document.createElement("iframe"); f.onload = done;
    f.src = room; document.body.append(f); }).then(() => frames[0].document.body.innerHTML),
];
document.getElementById("go").onclick = () => {
  navigator.sendBeacon(`${room}/say`, new Blob([body], { type: "application/json" }));
  const opened = window.open(room, "w");
  let token = "x";
  try { token = opened.document.querySelector("meta[name=botchat-token]").content; } catch {}
  const form = Object.assign(document.createElement("form"), { method: "POST",
    enctype: "text/plain", action: `${room}/say`, target: "v" });
  const name = '{"model":"alpha","utterances":["Hi"],"x":"';
  form.append(Object.assign(document.createElement("input"), { name, value: '"}' }));
  document.body.append(form);
  form.submit();
  Promise.allSettled(tried()).then((all) => { document.title = `tried ${all.length} ${token}`; });
};
document.title = "ran";
</script>"""

SVG = '<svg xmlns="http://www.w3.org/2000/svg">'

OPEN = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"script-src 'unsafe-inline'; connect-src *\">"
)


def test_a_planted_page_spends_nothing(browser: Browser, tmp_path: Path) -> None:
    """Not shown; were it noted as ours, its script would not run; if it did, it would be nobody."""
    with Server(converse) as server:
        workspace = Workspace(with_models(tmp_path, server))
        made_room = TalkRoom(workspace, "small", Limits(max_calls=9))
        folder = workspace.out("small")
        with running(View(workspace, "small", room=made_room)) as view:
            page = f"<!doctype html><html><head><title>x</title></head>{ATTACK}".replace(
                "ROOM", view.url
            )
            svg = f"{SVG}<script>document.documentElement.id = 'ran'</script></svg>"
            planted = {"index.html": page, "a.js": "document.title = 'ran'", "a.svg": svg}
            files.write_all(folder, planted)
            status, _, said = ask(view, "GET", "/small/")
            assert (status, "botchat leaderboard page" in said) == (404, True)
            assert ask(view, "GET", "/small/a.js")[0] == 404
            browser.driver.get(f"{view.root}small/a.svg")
            assert browser.run("return document.documentElement.id") == ""
            workspace.write_out(folder, {"index.html": page})
            browser.driver.get(f"{view.root}small/")
            assert browser.driver.title == "x"
            workspace.write_out(folder, {"index.html": page.replace("<head>", f"<head>{OPEN}", 1)})
            browser.driver.get(f"{view.root}small/")
            assert browser.driver.title == "ran"
            first = browser.driver.current_window_handle
            browser.driver.find_element("id", "go").click()
            browser.until(lambda: browser.driver.title == "tried 7 x")
            for handle in {*browser.driver.window_handles} - {first}:
                browser.driver.switch_to.window(handle)
                browser.driver.close()
            browser.driver.switch_to.window(first)
            browser.driver.get("about:blank")
            browser.complaints()
        assert server.n_received == 0


def hostile_workspace(root: Path) -> Workspace:
    """Hostile ids, names, utterances, reasons, judges and criteria, as a run would store them."""
    attack, workspace = " ".join(HOSTILE), Workspace(root)
    plain = made(dict.fromkeys(HOSTILE[:3], 0.4), 4, arena=(8,))
    ids = {seed.id: f"{seed.id} {HOSTILE[n]}" for n, seed in enumerate(plain.seeds)}
    seeds = [Seed(ids[one.id], (attack,) * len(one.utterances)) for one in plain.seeds]
    workspace.write_seeds("few", seeds)
    said: dict[str, dict[str, tuple[str, ...]]] = {HUMAN: {s.id: s.utterances for s in seeds}}
    for name in HOSTILE[:3]:
        replace = msgspec.structs.replace
        made_up = [
            replace(one, seed_id=ids[i], utterances=(attack,) * len(one.utterances))
            for i, one in plain.dialogues[name].items()
        ]
        files.finish(workspace.dialogues_path("few", name), made_up, dialogue_order)
        said[name] = {one.seed_id: one.utterances for one in made_up}
    own = [
        msgspec.structs.replace(one, protocol="warm", verdict="7")
        for one in plain.judgments["unieval"]
    ]
    for judge in HOSTILE[:2]:
        for protocol, given in {**plain.judgments, "warm": own}.items():
            ruled: list[Judgment] = []
            for one in given:
                i, end = ids[one.seed_id], one.shown if len(one.contestants) > 1 else None
                case = case_digest(protocol, *(Shown(c, said[c][i][:end]) for c in one.contestants))
                ruled.append(
                    msgspec.structs.replace(one, seed_id=i, judge=judge, reason=attack, case=case)
                )
            files.finish(workspace.judgments_path("few", protocol, judge), ruled, judgment_order)
    evil = attack.replace("\\", "").replace("'", "")
    (root / "warm.txt").write_text(f"{{{{conversation}}}} {attack}", "utf-8")
    (root / "botchat.toml").write_text(
        f"[protocols.warm]\nkind = 'score'\nprompt = 'warm.txt'\ntitle = '{evil}'\n"
        f"question = '{evil}'\nnumbers = ['Warmth']\nlowest = 1\nhighest = 10\n"
    )
    return workspace


@pytest.fixture(scope="module")
def hostile_view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """That workspace with everything made of it, served with a room."""
    root = tmp_path_factory.mktemp("doors")
    workspace = hostile_workspace(root)
    at = ("--seeds", "few", "--dir", str(root))
    with Server(faults.error(418, " ".join(HOSTILE))) as server:
        evil = f"{server.url}#{HOSTILE[0]}"
        generate(workspace, "few", [evil], limit=1)
        commands = ["leaderboard", "--format", "html", "--judge", HOSTILE[0]]
        assert main([*commands, *at]) == 0
        assert main(["leaderboard", "page", *at]) == 0
        assert main(["label", "plan", "--budget", "4", "--judge", HOSTILE[0], *at]) == 0
        made_room = TalkRoom(workspace, "few", models=[evil])
        with running(View(workspace, "few", room=made_room)) as view:
            yield view


VIEWS = {
    "board": "few/",
    "other judge": "few/#" + urlencode({"judge": HOSTILE[1]}),
    "dialogue": "few/#"
    + urlencode({"view": "unieval", "a": HOSTILE[0], "seed": f"S-1 {HOSTILE[0]}"}),
    "pair": "few/#" + urlencode({"view": "pair", "protocol": "arena-n8"}),
    "people": "few/#" + urlencode({"view": "pair", "protocol": "gteval"}),
    "own criterion": "few/#" + urlencode({"view": "warm", "a": HOSTILE[1]}),
    "search": "few/#" + urlencode({"view": "unieval", "q": HOSTILE[0]}),
    "wrong link": "few/#" + urlencode({"view": HOSTILE[0], "a": HOSTILE[1]}),
    "game": "few/game.html",
    "labels": "few/game.html?label=1&protocol=unieval&rater=" + quote(HOSTILE[0]),
    "plan": "few/game.html?plan=1",
    "live": "live",
    "talk": "talk",
    "table": "few/unieval.html",
    "figure": "few/FIGURE",
    "data": "few/leaderboard.json",
    "no page": quote(HOSTILE[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_hostile_text_is_text_in_every_view(
    browser: Browser, hostile_view: View, name: str
) -> None:
    """No script of it ran or was stopped by the policy, nothing else is asked for or linked to."""
    view = hostile_view
    assert view.talk is not None
    ours = view.talk.root if name == "talk" else view.root
    figure = next(view.workspace.out("few").glob("*.svg")).name
    browser.open(ours + VIEWS[name].replace("FIGURE", figure))
    browser.until(lambda: browser.run("return document.readyState") == "complete")
    if name in ("dialogue", "pair", "people", "own criterion"):
        browser.text(".bubble p, .case h4, .reading h3")
    assert browser.run("return window.pwned") is None
    assert browser.run("return document.querySelectorAll('iframe, img[onerror]').length") == 0
    links = browser.run("return [...document.querySelectorAll('a')].map((one) => one.href)")
    roots = (view.root, view.talk.root)
    assert all(link.startswith(roots) for link in links), links
    asked = [url for url in browser.requests() if not url.startswith(("about:", "data:"))]
    assert all(url.startswith(ours) for url in asked), asked
    expected = 1 if name == "no page" else 0
    assert len([one for one in browser.complaints() if "favicon" not in one]) == expected
