"""A second answer on a kept connection is nobody's: every reply is the one to its own request."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message
from botchat.models.endpoint import EndpointModel
from botchat.models.limits import Retry, ServerLimit
from botchat.models.paying import PayingModel
from botchat.models.retrying import RetryingModel
from botchat.models.stored import StoredModel
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from tests.integration.test_endpoints import served

N = 12
WRONG = "a reply to somebody else"


def response(said):
    """The bytes of a whole response."""
    message = {"role": "assistant", "content": said}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice]}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


EXTRA = {
    "nothing": b"",
    "a whole answer": response(WRONG),
    "two": response(WRONG) * 2,
    "half of one": response(WRONG)[:60],
    "a time-out of a proxy": b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n",
    "rubbish": b"\0\0 \r\n oops",
}


class TwiceServer:
    """A server that repeats what it is asked, and then says more on the same connection."""

    def __init__(self, at_once):
        """``at_once``: bytes behind each answer, in the same packet."""
        self.at_once = at_once
        self.writers = []
        self.n_posts = 0
        self.tasks = set()

    async def serve(self, reader, writer):
        """Answer one request after the other."""
        self.writers.append(writer)
        self.tasks.add(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET"):
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                asked = json.loads(await reader.readexactly(length))
                self.n_posts += 1
                writer.write(response(asked["messages"][0]["content"]) + self.at_once)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def say_late(self, extra):
        """Say more on all connections that are open, and let the client take it."""
        for writer in self.writers:
            if extra and not writer.is_closing():
                writer.write(extra)
        for _ in range(50):
            await asyncio.sleep(0)


@asynccontextmanager
async def asking(server, place):
    """A model at a server, with its ledger."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    ledger, http = Ledger(place), served(url)
    sender = EndpointModel("m", ModelSettings(model="m", base_url=url), ledger, http)
    try:
        paying = PayingModel(sender, ledger, "t", ServerLimit(4))
        yield StoredModel(RetryingModel(paying, Retry(first_s=0.0)))
    finally:
        await http.aclose()
        ledger.close()
        listening.close()
        for task in server.tasks:
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)


def question(n):
    """A request that is answered with its own words."""
    return [Message(role="user", content=f"This is question {n}.")]


async def replies(server, place, late=b""):
    """The texts of the replies to N questions, one after the other; then again, as stored."""
    texts = []
    async with asking(server, place) as model:
        for n in [*range(N), *range(N)]:
            reply = await model.chat(question(n), Decoding(max_tokens=50))
            texts.append(reply.text)
            await server.say_late(late)
    return texts


OWN = [question(n)[0]["content"] for n in [*range(N), *range(N)]]


WHEN = []
for name in EXTRA:
    WHEN.append(pytest.param(EXTRA[name], "at once", id=f"{name}, at once"))
    WHEN.append(pytest.param(EXTRA[name], "late", id=f"{name}, late"))


@pytest.mark.parametrize(("extra", "when"), WHEN)
async def test_what_comes_behind_an_answer_is_no_answer(tmp_path, extra, when):
    """Whether it comes with it or while nothing is asked: no wrong text, and nothing sent twice.

    But rubbish in the packet of an answer: aiohttp throws both away, and the call is made again.
    """
    server = TwiceServer(extra if when == "at once" else b"")
    late = extra if when == "late" else b""
    is_lost = extra == EXTRA["rubbish"] and when == "at once"
    if is_lost:
        with pytest.raises(FatalModelError, match="no HTTP that can be read"):
            await replies(server, tmp_path / "ledger.sqlite3", late)
        return
    assert await replies(server, tmp_path / "ledger.sqlite3", late) == OWN
    assert server.n_posts == N
    if not extra:  # one connection is kept for all
        assert len(server.writers) == 1
