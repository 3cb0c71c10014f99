"""`botchat label` for a team: an address for each person, and nothing without one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import botchat
from botchat.errors import ConfigError
from botchat.pipeline.labelling import TeamServer
from botchat.records import Judgment
from botchat.report.game import PREFIXES
from botchat.requests import Labelling, generate, judge
from botchat.workspace import files
from botchat.workspace.folder import SAMPLE, Workspace
from tests.view_door import ask, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """A plan of 16 cases, open on every address of this machine to ann and bob."""
    workspace = Workspace(tmp_path_factory.mktemp("team"))
    generate(workspace, SAMPLE, ["bot:eliza", "bot:parrot"], limit=8)
    judge(workspace, "unieval", SAMPLE, "rules")
    botchat.label_plan(workspace, SAMPLE, budget=16)
    made = Labelling(SAMPLE, names=["ann", " Bob"], host="0.0.0.0", plan=True).run(workspace)
    assert isinstance(made, TeamServer)
    with running(made):
        yield made


def place(server: TeamServer, name: str) -> str:
    """Path of a person's address."""
    (line,) = [one for one in server.starts if one.endswith(f" {name}")]
    found = re.fullmatch(rf"http://[\w.-]+:{server.server_port}(/\S+) {name}", line)
    assert found is not None
    return found[1]


def save(server: TeamServer, token: str, rows: list[dict[str, Any]], **changed: str) -> int:
    """Status of the answer to labels that are sent with a token."""
    sent = {"set": SAMPLE, "protocol": "unieval", "rows": rows}
    headers = {
        "Host": f"127.0.0.1:{server.server_port}",
        "Origin": f"http://127.0.0.1:{server.server_port}",
        "X-BotChat-Token": token,
        "Content-Type": "application/json",
    }
    body = json.dumps(sent).encode()
    return ask(server, "POST", "/labels", body, headers | changed)[0]


def cases(server: TeamServer, person: str) -> list[dict[str, Any]]:
    """A label of each case that rules has judged."""
    path = server.workspace.judgment_files(SAMPLE)["rules"]["unieval"]
    return [
        {"seed_id": one.seed_id, "judge": person, "verdict": "No", "case": one.case}
        for one in files.read(path, Judgment)
    ]


def labels(server: TeamServer, name: str) -> list[Judgment]:
    """What a person's file holds."""
    path = server.workspace.judgments_path(SAMPLE, "unieval", f"human:{name}")
    return files.read(path, Judgment)


def test_it_says_what_is_open_and_gives_everybody_an_address(server: TeamServer) -> None:
    """Tokens differ; one line says what is open to the network, and that it is read on the way."""
    assert place(server, "ann") != place(server, "bob")
    assert place(server, "ann").endswith(f"/{SAMPLE}/game.html?plan=1")
    (said,) = [one for one in server.starts if not one.startswith("http")]
    assert said.startswith("Open to the network (0.0.0.0)")
    assert "No TLS" in said


def test_an_address_shows_blind_cases_and_nothing_else(server: TeamServer) -> None:
    """No board, answer, dialogue, plan or live page, with a token or without."""
    page = place(server, "ann").split("?")[0]
    root = page.removesuffix("game.html")
    status, headers, text = ask(server, "GET", page)
    assert (status, headers["Referrer-Policy"]) == (200, "no-referrer")
    assert '<meta name="botchat-person" content="ann">' in text
    blind, told = (f"chunks/{prefix}0-0.js" for prefix in PREFIXES)
    assert ask(server, "GET", root + blind)[0] == 200
    assert (server.workspace.out(SAMPLE) / told).is_file()
    for name in (told, "", "index.html", "label-plan.jsonl", "leaderboard.json", "../", "%2e%2e/"):
        assert ask(server, "GET", root + name)[0] == 404, name
    for path in ("", SAMPLE, f"{SAMPLE}/game.html", "live", f"x{page[1:]}", f"{SAMPLE}/{blind}"):
        status, _, text = ask(server, "GET", f"/{path}")
        assert (status, "botchat-token" in text, "take(" in text) == (403, False, False), path
        assert ask(server, "HEAD", f"/{path}")[0] == 403, path


@pytest.mark.parametrize("name", ["evil.example", "", "127.0.0.1.evil.example", "1"])
def test_a_name_that_points_here_gets_nothing(server: TeamServer, name: str) -> None:
    """With the right token, too; an address of the network is answered."""
    at = place(server, "ann")
    port = server.server_port
    assert ask(server, "GET", at, headers={"Host": f"{name}:{port}"})[0] == 403
    assert ask(server, "GET", at, headers={"Host": "192.168.1.7:1"})[0] == 403
    assert ask(server, "GET", at, headers={"Host": f"192.168.1.7:{port}"})[0] == 200


def test_everybody_writes_under_one_name(server: TeamServer) -> None:
    """Their own: as another, without a token, from another site, into another set: nothing."""
    ann = place(server, "ann").split("/")[1]
    one = cases(server, "human:bob")[:1]
    before = labels(server, "bob"), labels(server, "ann")
    assert save(server, ann, one) == 422
    assert save(server, ann, cases(server, "human:ann")[:1] + one) == 422
    assert save(server, "", one) == save(server, "x" * 43, one) == 403
    assert save(server, server.token, one) == 403
    assert save(server, ann, cases(server, "human:ann")[:1], Origin="http://evil.example") == 403
    assert (labels(server, "bob"), labels(server, "ann")) == before


def test_two_at_once_lose_nothing_and_see_their_own(server: TeamServer) -> None:
    """A file holds all of one person; a page knows its own labels, and not whom they are of."""
    tokens = {name: place(server, name).split("/")[1] for name in ("ann", "bob")}
    sent = [(tokens[name], [one]) for name in tokens for one in cases(server, f"human:{name}")]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda one: save(server, *one), sent)) == {200}
    for name in tokens:
        found = labels(server, name)
        assert len(found) == len({one.case for one in found}) == len(sent) / 2
        assert {one.judge for one in found} == {f"human:{name}"}
    last = cases(server, "human:bob")[-1]
    assert save(server, tokens["bob"], [last | {"undone": True}]) == 200
    assert len(labels(server, "bob")) == len(sent) / 2 - 1
    text = ask(server, "GET", place(server, "bob"))[2]
    (told,) = re.findall(r'<meta name="botchat-labels" content="([^"]*)">', text)
    rows = json.loads(told.replace("&quot;", '"'))
    assert len(rows) == len(sent) / 2 - 1
    assert set(rows[0]) == {"protocol", "seed_id", "case", "verdict", "shown"}


def test_a_team_has_names(server: TeamServer) -> None:
    """One line; on this machine alone one person needs no token, and several have one each."""
    workspace = server.workspace
    with pytest.raises(ConfigError, match="say who labels, --name ann --name bob"):
        Labelling(SAMPLE, names=[], host="0.0.0.0", plan=True).run(workspace)
    with Labelling(SAMPLE, names=["ann", "bob"], host="127.0.0.1", plan=True).run(workspace) as two:
        assert two.starts[-1].startswith("Open to this machine")
    with Labelling(SAMPLE, names=["ann"], host="127.0.0.1", plan=True).run(workspace) as one:
        assert not isinstance(one, TeamServer)
        assert "rater=ann" in one.starts[0]


def test_one_person_has_one_name(server: TeamServer) -> None:
    """Two addresses of one person would look like two people."""
    workspace = Workspace(server.workspace.root)
    with pytest.raises(ConfigError, match="2 names of 1 people, since capitals do not count"):
        Labelling(SAMPLE, names=["ann", "Ann"], host="0.0.0.0", plan=True).run(workspace)
