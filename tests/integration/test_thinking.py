"""Models that think: a reply without visible text is asked once with room, and that is learnt."""

import pytest

from botchat.cli.main import main
from botchat.interfaces import OWN_PART, Decoding
from botchat.models.stored import rough_tokens
from tests.commands import said
from tests.integration.test_endpoints import ASK, ask
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Answer, Server, converse, templates, text
from tests.rows import rows

CAP = 50
ROOM = 8192
TWICE = [*ASK, *ASK]
COUNTED = {"prompt_tokens": 9, "completion_tokens": CAP, "total_tokens": 9 + CAP}
THOUGHT = {**COUNTED, "completion_tokens_details": {"reasoning_tokens": CAP}}


EMPTY = {name: Answer(body=body) for name, body in rows("bodies_that_show_nothing")}
VISIBLE_AND_CUT = text("<think>They ask.</think>Well, it", finish_reason="length", usage=THOUGHT)


def given_room(call):
    """Whether a request has more than the cap of its visible text."""
    return call.body.get("max_tokens", call.body.get("max_completion_tokens", ROOM)) > CAP


def thinker(empty):
    """A server whose model shows nothing without room."""
    return lambda call: text("fine") if given_room(call) else empty


def caps(server):
    """The caps of the requests, in their order."""
    return [call.body["max_tokens"] for call in server.calls]


@pytest.mark.parametrize(
    "empty", [*EMPTY.values(), VISIBLE_AND_CUT], ids=[*EMPTY, "visible and cut"]
)
def test_a_reply_without_visible_text_is_asked_once_with_room(tmp_path, empty):
    """Two requests, then one a call, in this run and in the next ones."""
    with Server(thinker(empty)) as server:
        asked = ask(server, tmp_path, ASK, TWICE)
        assert [reply.text for reply in asked.replies] == ["fine", "fine"]
        assert caps(server) == [CAP, CAP + ROOM, CAP + ROOM]
        assert asked.quirks == {"thinks": True}
        assert (asked.stored, asked.failed_attempts) == (2, 1)
        assert ask(server, tmp_path, [*TWICE, *ASK]).reply.text == "fine"
        assert caps(server)[3:] == [CAP + ROOM]
        ask(server, tmp_path, ASK, TWICE)
        assert server.n_received == 4


@pytest.mark.parametrize(("fields", "window", "room"), rows("rooms_for_thoughts"))
def test_the_room_is_what_is_set_and_at_most_half_of_the_window(tmp_path, fields, window, room):
    """Of a window that is set, or that the server tells."""
    with Server(thinker(EMPTY["field, cut"])) as server:
        server.listed = [{"id": "m", "max_model_len": window}] if window else []
        assert ask(server, tmp_path, **fields).reply.text == "fine"
        least = min(CAP, fields.get("context_window", 4096) // OWN_PART)
        assert caps(server) == [least, least + room]


def test_room_goes_with_the_name_that_the_cap_has(tmp_path):
    """A model that thinks and takes max_completion_tokens: both are learnt, each once."""
    script = thinker(EMPTY["count alone"])
    with Server(script, models={"m": templates.REASONING}) as server:
        asked = ask(server, tmp_path, ASK, TWICE)
        assert [reply.text for reply in asked.replies] == ["fine", "fine"]
        assert server.n_received == 5
        assert server.calls[-1].body["max_completion_tokens"] == CAP + ROOM


def test_what_was_stored_without_room_answers_the_same_call_later(tmp_path):
    """A call that showed text before the model thought is not asked again."""
    with Server(text("fine")) as server:
        assert ask(server, tmp_path).reply.text == "fine"
        server.play(thinker(EMPTY["field, cut"]))
        assert ask(server, tmp_path, TWICE).quirks == {"thinks": True}
        assert server.n_received == 3
        assert [reply.text for reply in ask(server, tmp_path, ASK, TWICE).replies] == ["fine"] * 2
        assert server.n_received == 3


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
def test_more_room_asks_an_empty_reply_again_and_less_does_not(tmp_path, empty):
    """A reply that used up what it had; its line names the key and a larger number."""
    with Server(empty) as server:
        asked = ask(server, tmp_path, reasoning_tokens=100)
        assert (asked.reply.outcome, server.n_received) == ("empty", 2)
        assert "reasoning_tokens" in asked.reply.detail
        for room, n_received in ((100, 2), (50, 2), (200, 3), (200, 3)):
            asked = ask(server, tmp_path, reasoning_tokens=room)
            assert (asked.reply.outcome, server.n_received) == ("empty", n_received)
        assert caps(server) == [CAP, CAP + 100, CAP + 200]
        server.play(text("fine"))
        assert ask(server, tmp_path, reasoning_tokens=400).reply.text == "fine"
        assert ask(server, tmp_path, reasoning_tokens=100).reply.text == "fine"


@pytest.mark.parametrize(
    "reply",
    [text("", usage={"prompt_tokens": 9, "completion_tokens": 2}), text(None, refusal="No.")],
    ids=["empty", "refused"],
)
def test_nothing_without_a_sign_of_thoughts_is_no_thinking(tmp_path, reply):
    """It ended by itself: one request, and nothing is learnt."""
    with Server(reply) as server:
        asked = ask(server, tmp_path, ASK, ASK)
        assert (server.n_received, asked.quirks) == (1, {})


LONG = "word " * 200


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("lead", ["", "<think>They ask.</think>\n"])
def test_the_room_is_none_for_the_text(tmp_path, finish, lead):
    """A text that is longer than max_tokens is cut there, now and from the ledger."""
    long = text(f"{lead}{LONG}", finish_reason=finish)
    with Server(lambda call: long if given_room(call) else EMPTY["blanks"]) as server:
        first, again = ask(server, tmp_path, ASK, ASK).replies
        assert (first.outcome, first.text) == (again.outcome, again.text)
        assert first.outcome == "truncated"
        assert LONG.startswith(first.text)
        assert CAP - 2 <= rough_tokens(first.text) <= CAP
        assert LONG.strip() in first.raw  # the ledger keeps it
        whole = ask(server, tmp_path, decoding=Decoding(max_tokens=None)).reply
        assert whole.text == LONG.strip()


def test_a_model_that_never_thought_is_not_cut(tmp_path):
    """Whatever it says is within its own cap, as the endpoint counts it."""
    with Server(text(LONG)) as server:
        assert ask(server, tmp_path).reply.text == LONG.strip()


@pytest.mark.parametrize("kind", ["field, cut", "field, ended", "open mark", "cut, no sign"])
def test_five_replies_of_thoughts_alone_end_the_run(tmp_path, capsys, monkeypatch, kind):
    """Not twenty; the line names what to set. The next run goes on behind them."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(EMPTY[kind]) as server:
        folder = workspace(tmp_path / "w", server, 20)
        generate = ["generate", "--seeds", "small", "--turns", "3", "--model", "alpha"]
        assert main([*generate, "--dir", str(folder)]) == 1
        assert server.n_received == 1 + 5
        line = capsys.readouterr().err.splitlines()[-1]
        assert "reasoning_tokens" in line
        assert "its first 5 replies hold no visible text" in line
        server.play(converse)
        assert main([*generate, "--dir", str(folder)]) == 0


def judge_that_thinks(call):
    """A judge that gives no verdict without room."""
    if call.model == "umpire" and call.body["max_tokens"] <= 512:
        return EMPTY["field, cut"]
    return converse(call)


def test_judge_learn_judge_asks_nothing_again(tmp_path, capsys, monkeypatch):
    """Verdicts from before the judge thought stay: no call, no other byte, nothing in the plan."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, 4)
        place = ["--seeds", "small", "--dir", str(folder)]
        assert main(["generate", "--turns", "4", "--model", "alpha", *place]) == 0
        unieval = ["judge", "unieval", "--judge", "umpire", *place]
        assert main(unieval) == 0
        before = stage_files(folder)
        server.play(judge_that_thinks)
        n_sent = server.n_received
        learnt = said(capsys, "judge", "arena", "--model", "alpha", "--judge", "umpire", *place,
                      "--turns", "4", "--model", "human")  # fmt: skip
        assert server.n_received - n_sent == learnt["rows"][0]["new"] + 1
        n_sent = server.n_received
        assert said(capsys, *unieval, "--plan")["rows"][-1]["calls"] == 0
        assert said(capsys, *unieval)["calls"] == 0
        assert server.n_received == n_sent
        after = stage_files(folder)
        assert {name: after[name] for name in before} == before


def test_what_a_check_prints_of_a_model_that_thinks(tmp_path, capsys, monkeypatch):
    """That it thinks, with the tokens that it told."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(text("fine", usage=THOUGHT)) as server:
        folder = workspace(tmp_path / "w", server, 1)
        rows = said(capsys, "models", "--check", "--dir", folder)["rows"]
    assert all(f"thinks ({CAP} tokens)" in row["answer"] for row in rows)
