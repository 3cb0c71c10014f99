"""A whole answer in another frame than ours is an answer, paid for once; half of one is none."""

import json

import pytest

from botchat.frames import read_json
from tests.integration.test_endpoints import ask
from tests.openai_server import Answer, Server, text
from tests.rows import rows

SAID = "Good morning.\nSlept well?"
WHOLE = json.dumps(text(SAID, usage={"prompt_tokens": 5, "completion_tokens": 7}).body)
PLAIN = "Good evening."


def whole(finish="stop", content=SAID, **choice):
    """The bytes of a completion."""
    message = {"role": "assistant", "content": content}
    return json.dumps(
        {"choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}]}
    ).encode()


def chunk(finish=None, index=0, **delta):
    """The JSON of a chunk of a stream, its letters as they are."""
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return json.dumps({"object": "chat.completion.chunk", "choices": [choice]}, ensure_ascii=False)


FIRST = chunk(role="assistant", content=SAID[:5])
LAST = chunk("stop")


def stream(*chunks, lead="data: ", end="\n\n", done=True):
    """An event stream of these chunks."""
    events = [lead + each for each in (*chunks, *["[DONE]"] * done)]
    return "".join([event + end for event in events]).encode("utf-8", "surrogatepass")


def bodies(name):
    """Name -> bytes, also of what is not UTF-8."""
    return {each: body.encode("utf-8", "surrogateescape") for each, body in rows(name)}


FRAMES = bodies("frames_of_an_answer")
FRAMES["blanks that keep alive"] = b" \n" * 2000 + WHOLE.encode()
HALVES = bodies("frames_of_no_answer")


def each(frames):
    """A test with bodies."""
    return pytest.mark.parametrize("body", frames.values(), ids=frames)


@each(FRAMES)
def test_a_whole_answer_is_read_in_any_frame(tmp_path, body):
    """One request, the whole text, kept as an answer."""
    with Server(Answer(200, body)) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.outcome, asked.reply.text) == ("ok", SAID)
        assert (server.n_received, asked.stored, asked.failed_attempts) == (1, 1, 0)


@pytest.mark.parametrize("status", [200, 201, 202, 203, 206])
def test_every_status_of_success_is_one(tmp_path, status):
    """What stands in the body counts."""
    with Server(Answer(status, WHOLE.encode())) as server:
        assert ask(server, tmp_path).reply.text == SAID
        assert server.n_received == 1


@pytest.mark.parametrize("half", ["Good luck \\ud83d", "\\ude42 Good luck", "Good\\ud83dluck"])
def test_half_a_character_is_a_replacement(tmp_path, half):
    """Cut in an emoji, the rest of the text is kept, and it can be stored and judged."""
    body = WHOLE.replace(json.dumps(SAID)[1:-1], half)
    with Server(Answer(200, body.encode())) as server:
        said = ask(server, tmp_path).reply.text
        assert said.replace("\ufffd", "").split() in (["Good", "luck"], ["Goodluck"])
        assert said.count("\ufffd") == 1
        assert server.n_received == 1


def test_halves_of_a_character_in_two_chunks_are_joined(tmp_path):
    """As a server streams that escapes what it sends."""
    chunks = [chunk(content="\ud83d"), chunk(content="\ude42 Hi"), LAST]
    escaped = [json.dumps(json.loads(each)) for each in chunks]
    with Server(Answer(200, stream(*escaped))) as server:
        assert ask(server, tmp_path).reply.text == "\U0001f642 Hi"


@pytest.mark.parametrize("end", [None, "", "null", "unknown", "none", "kernel_panic", 0])
def test_an_end_that_tells_nothing_is_asked_twice_and_the_text_is_kept(tmp_path, end):
    """It is paid for twice at most, and the line names the field and its value."""
    with Server(Answer(200, whole(end))) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.outcome, asked.reply.text) == ("ok", SAID)
        assert asked.reply.detail == f"unknown finish_reason {end or 'null'}"
        assert (server.n_received, asked.stored) == (2, 1)
        assert ask(server, tmp_path).reply.text == SAID
        assert server.n_received == 2


@each(HALVES)
def test_half_an_answer_is_none(tmp_path, body):
    """It is asked again, and nothing of it is kept."""
    answers = iter([Answer(200, body)])
    with Server(lambda _: next(answers, text(PLAIN))) as server:
        asked = ask(server, tmp_path)
        assert asked.reply.text == PLAIN
        assert (server.n_received, asked.stored, asked.failed_attempts) == (2, 1, 1)


@pytest.mark.parametrize(
    "chunks", [(FIRST,), (chunk(content="Good"),), (chunk(content="Say [DONE]"),)]
)
def test_a_stream_that_breaks_off_is_no_whole_text(tmp_path, chunks):
    """Neither an end nor [DONE]: what is there is half a sentence, however often it is asked."""
    with Server(Answer(200, stream(*chunks, done=False))) as server:
        asked = ask(server, tmp_path)
        assert (asked.reply.outcome, asked.stored) == ("malformed", 0)


def test_a_header_of_a_gateway_may_be_long(tmp_path):
    """Policies and traces of 60 kB; a completion without a length that the connection ends."""
    long = (("x-policy", "p" * 60_000), ("connection", "close"))
    with Server(Answer(200, WHOLE.encode(), long)) as server:
        assert ask(server, tmp_path).reply.text == SAID
    raw = b"HTTP/1.0 200 OK\r\nconnection: close\r\n\r\n" + WHOLE.encode()
    with Server(Answer(body=raw, raw=True, headers=long[1:])) as server:
        assert ask(server, tmp_path / "b").reply.text == SAID
        assert server.n_received == 1


@pytest.mark.parametrize("body", [*FRAMES.values(), *HALVES.values()])
def test_a_body_that_is_cut_anywhere_raises_nothing(body):
    """Whatever is left of it is read, and can be stored, or is nothing."""
    for end in range(0, len(body), 1 + len(body) // 200):
        for part in (body[:end], body[end:]):
            json.dumps(read_json(part), ensure_ascii=False).encode()
