"""The room to talk in: real requests, bots, the scripted server, one budget, saved seeds."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from botchat.cli.main import main
from botchat.errors import ConfigError
from botchat.models.self_chat import history
from botchat.pipeline.view import Server as View
from botchat.pipeline.view import room_of
from botchat.prompts import text as prompt
from botchat.requests import generate
from botchat.requests.arguments import Limits
from botchat.talk.room import LONGEST, TalkRoom
from botchat.workspace.accounts import stats
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.ledger import Ledger
from tests.integration.test_runs import workspace as with_models
from tests.openai_server import Gate, Server, converse, faults, in_turn, per_request, text
from tests.view_door import ask, post, running, token_in

HELLO = ["Shall we go for a walk?", "Gladly, it is warm out."]


@contextlib.contextmanager
def room(
    workspace: Workspace, seed_set: str = SAMPLE, limits: Limits | None = None, models=()
) -> Iterator[View]:
    """A running view with its room."""
    with running(
        View(workspace, seed_set, room=TalkRoom(workspace, seed_set, limits, models))
    ) as view:
        yield view


def say(view: View, model: str, *utterances: str, **more: Any) -> tuple[int, Any]:
    """What the room answers to a request for the next utterance."""
    return post(view.talk or view, "/talk/say", {"model": model, "utterances": utterances, **more})


def calls(workspace: Workspace) -> dict[str, int]:
    """Model and stage -> calls in the ledger."""
    with contextlib.closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        return {f"{row.model} {row.stage}": row.calls for row in stats(ledger)}


def test_there_is_no_room_unless_it_is_asked_for(tmp_path: Path) -> None:
    """No page, no route; flags of the room alone are refused."""
    workspace = Workspace(tmp_path)
    with running(View(workspace, SAMPLE)) as view:
        status, _, text = ask(view, "GET", "/talk")
        assert (status, "botchat view --talk" in text) == (404, True)
        assert say(view, "bot:eliza", "Hello")[0] == 404
        assert "talk" not in ask(view, "GET", "/live")[2]
    assert room_of(workspace, SAMPLE, Limits(), opened=False) is None
    with pytest.raises(ConfigError, match="add --talk"):
        room_of(workspace, SAMPLE, Limits(max_usd=1.0), opened=False)
    assert main(["view", "--seeds", SAMPLE, "--model", "bot:eliza", "--dir", str(tmp_path)]) == 1


def test_the_page_offers_what_the_workspace_knows_and_nothing_runs_but_its_script(
    tmp_path: Path,
) -> None:
    """Entries of botchat.toml, models of the command line, bots; never a login in an address."""
    with Server(converse) as server:
        workspace = Workspace(with_models(tmp_path, server))
        secret = server.url.replace("http://", "http://amy:hunter22@")
        with room(workspace, "small", Limits(max_usd=2.0), [f"{secret}#own"]) as view:
            assert view.talk is not None
            status, headers, text = ask(view.talk, "GET", "/talk")
            assert view.url == f"{view.talk.root}talk"
            assert f'href="{view.url}"' in ask(view, "GET", "/live")[2]
            assert f'href="{view.root}live"' in text
    assert status == 200
    assert token_in(text) == view.talk.token != view.token
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'self'" in policy
    assert not re.search(r"\son\w+=", text.split("<script>")[0])
    offered = re.findall(r'<option value="([^"]+)" title', text)[:9]
    assert offered[0] == f"{server.url}#own"
    assert offered[1:5] == ["alpha", "beta", "gamma", "umpire"]
    assert offered[5:] == [f"bot:{name}" for name in ("eliza", "retrieval", "parrot", "verbose")]
    assert "hunter22" not in text
    assert "of $2.00" in text


def test_two_bots_talk_as_generate_lets_them(tmp_path: Path) -> None:
    """The same requests: what is in the ledger is not asked again, and the utterances are equal."""
    workspace = Workspace(tmp_path)
    generate(workspace, SAMPLE, ["bot:eliza"], partner="bot:parrot", turns=6, limit=1)
    ((seed_id, dialogue),) = workspace.dialogues(SAMPLE, "bot:eliza + bot:parrot").items()
    before = calls(workspace)
    with room(workspace) as view:
        status, begun = post(view.talk or view, "/talk/seed", {"id": seed_id})
        assert (status, begun) == (
            200,
            {"id": seed_id, "utterances": list(dialogue.utterances[:2])},
        )
        said = begun["utterances"]
        for n in range(4):
            status, told = say(view, ["bot:eliza", "bot:parrot"][n % 2], *said)
            assert (status, told["replayed"]) == (200, True)
            said.append(told["text"])
        assert tuple(said) == dialogue.utterances
        assert calls(workspace) == before
        # Beyond what there is: a new call, and again a new one, as another sample.
        assert not say(view, "bot:eliza", *said)[1]["replayed"]
        assert say(view, "bot:eliza", *said)[1]["replayed"]
        assert not say(view, "bot:eliza", *said, again=True)[1]["replayed"]
        assert not say(view, "bot:eliza", *said, again=True)[1]["replayed"]
        assert calls(workspace)["bot:eliza generate"] == before["bot:eliza generate"] + 3
        assert post(view.talk or view, "/talk/seed", {})[1]["id"].startswith("sample-")
        assert post(view.talk or view, "/talk/seed", {"id": "no"})[0] == 422
    assert workspace.writer() is None


def test_a_model_of_an_endpoint_is_asked_in_the_benchmarks_words(tmp_path: Path) -> None:
    """One line of a person, the system prompt of self-chat; an error is one line; Retry helps."""
    with Server(converse) as server:
        workspace = Workspace(with_models(tmp_path, server, price_input=1.0, price_output=10.0))
        with room(workspace, "small", Limits(max_usd=1.0)) as view:
            status, told = say(view, "alpha", "Hello <b>you</b>")
            assert status == 200
            (call,) = server.calls
            assert call.body["messages"] == history(prompt("generation"), ["Hello <b>you</b>"])
            assert "seed" not in call.body
            assert told["spent"]["usd"] == pytest.approx(told["cost_usd"])
            assert told["spent"]["calls"] == 1
            # It is the one conversation of the workspace that a run can share.
            assert say(view, "alpha", "Hello <b>you</b>")[1]["replayed"]
            assert server.n_received == 1
            again = say(view, "alpha", "Hello <b>you</b>", again=True)[1]
            assert not again["replayed"]
            assert server.calls[1].body["seed"] > 0
            assert again["spent"]["calls"] == 2
    assert calls(workspace) == {"alpha generate": 2}


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (faults.refused(), "refused"),
        (faults.content_filtered(), "filtered"),
        (faults.unauthorized(), "alpha"),
    ],
)
def test_an_endpoint_that_does_not_answer_is_one_line_and_can_be_tried_again(
    tmp_path: Path, fault: Any, why: str
) -> None:
    """Nothing is said; the next try reaches the endpoint once more."""
    with Server(in_turn(fault, converse)) as server:
        workspace = Workspace(with_models(tmp_path, server))
        with room(workspace, "small", Limits(max_calls=9)) as view:
            status, told = say(view, "alpha", "Hello")
            assert status == 422
            assert why in told["error"]
            assert "\n" not in told["error"]
            assert say(view, "alpha", "Hello", again=True)[0] == 200


def test_one_budget_for_the_life_of_the_server(tmp_path: Path) -> None:
    """Used up: said, and nothing is sent; what the ledger has is still free, and so are bots."""
    with Server(converse) as server:
        workspace = Workspace(with_models(tmp_path, server))
        with room(workspace, "small", Limits(max_calls=2)) as view:
            assert say(view, "alpha", "one")[0] == 200
            assert say(view, "beta", "two")[0] == 200
            status, told = say(view, "alpha", "three")
            assert (status, "--max-calls 2" in told["error"]) == (422, True)
            assert server.n_received == 2
            assert say(view, "alpha", "one")[1]["replayed"]
            assert say(view, "bot:eliza", "three")[0] == 200
        with room(workspace, "small") as view:  # a limit of money is never absent
            status, told = say(view, "alpha", "three")
            assert (status, "--max-usd 1 cannot be kept" in told["error"]) == (422, True)
        assert server.n_received == 2


def test_several_are_answered_at_once_and_the_workspace_is_free_in_between(tmp_path: Path) -> None:
    """One slow endpoint holds nobody up; a run can begin when nothing is out, not before."""
    gate = Gate()
    held = replace(text("Late."), gate=gate)
    with Server(per_request(held, converse)) as server, ThreadPoolExecutor(2) as pool:
        workspace = Workspace(with_models(tmp_path, server))
        with room(workspace, "small", Limits(max_calls=9)) as view:
            slow = pool.submit(say, view, "alpha", "Hello")
            gate.wait_held(1)
            assert say(view, "bot:eliza", "Hello")[0] == 200
            command = ["generate", "--seeds", "small", "--model", "bot:eliza", "--limit", "1"]
            assert main([*command, "--dir", str(tmp_path)]) == 1
            gate.open()
            assert slow.result()[0] == 200
            generate(workspace, "small", ["bot:eliza"], limit=1)


BAD: dict[str, tuple[str, Any, str]] = {
    "a model that is not offered": (
        "/talk/say",
        {"model": "http://127.0.0.1:9/v1#x", "utterances": ["a"]},
        "is not offered",
    ),
    "nobody": ("/talk/say", {"model": "", "utterances": ["a"]}, "is not offered"),
    "people": ("/talk/say", {"model": "human", "utterances": ["a"]}, "is not offered"),
    "nothing said": ("/talk/say", {"model": "bot:eliza", "utterances": []}, "length >= 1"),
    "an empty line": ("/talk/say", {"model": "bot:eliza", "utterances": ["a", " \n"]}, "matching"),
    "a book": ("/talk/say", {"model": "bot:eliza", "utterances": ["a" * (LONGEST + 1)]}, "length"),
    "no text": ("/talk/say", {"model": "bot:eliza", "utterances": [1]}, "str"),
    "a talk without end": ("/talk/say", {"model": "bot:eliza", "utterances": ["a"] * 1001}, "1000"),
    "another key": ("/talk/say", {"model": "m", "utterances": ["a"], "system": "x"}, "system"),
    "no set": ("/talk/save", {"set": "", "utterances": HELLO}, "seed set ''"),
    "a path": ("/talk/save", {"set": "../x", "utterances": HELLO}, "a name is letters"),
    "the sample": ("/talk/save", {"set": SAMPLE, "utterances": HELLO}, "not made in this room"),
    "one line": ("/talk/save", {"set": "own", "utterances": HELLO[:1]}, "length"),
    "three": ("/talk/save", {"set": "own", "utterances": [*HELLO, "So."]}, "length"),
}


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """A room with bots alone."""
    with room(Workspace(tmp_path_factory.mktemp("offline"))) as view:
        yield view


@pytest.mark.parametrize("why", BAD)
def test_what_the_room_does_not_take_is_one_line(offline: View, why: str) -> None:
    """422 with the reason; nothing is called or written."""
    path, sent, reason = BAD[why]
    status, told = post(offline.talk or offline, path, sent)
    assert status == 422
    assert reason in told["error"]
    assert "\n" not in told["error"]
    assert not (offline.workspace.root / "seeds").exists()


def test_saved_seeds_are_a_set_like_any_other(tmp_path: Path) -> None:
    """Added, never changed, the same one once; `generate` goes on from them."""
    workspace = Workspace(tmp_path)
    theirs = workspace.seeds_path("theirs")
    theirs.parent.mkdir()
    theirs.write_text('{"id":"MT-1","utterances":["a","b"]}\n')
    with room(workspace) as view:

        def save(name: str, *utterances: str) -> tuple[int, Any]:
            return post(view.talk or view, "/talk/save", {"set": name, "utterances": utterances})

        first = {"set": "own", "id": "talk-1", "n_seeds": 1, "new": True}
        assert save("own", *HELLO) == (200, first)
        before = workspace.seeds_path("own").read_bytes()
        assert save("own", *HELLO) == (200, first | {"new": False})
        assert save("own", "Ü\n<script>", "مرحبا")[1]["id"] == "talk-2"
        assert workspace.seeds_path("own").read_bytes().startswith(before)
        status, told = save("theirs", *HELLO)
        assert (status, "give another name" in told["error"]) == (422, True)
        assert theirs.read_text() == '{"id":"MT-1","utterances":["a","b"]}\n'
    (made,) = generate(workspace, "own", ["bot:eliza"], turns=4)
    assert made.complete == 2
    assert workspace.dialogues("own", "bot:eliza")["talk-1"].utterances[:2] == tuple(HELLO)
