"""The server: whom it lets in, what it saw, and how a test controls it.

It runs in a thread of its own with its own event loop, so a client may live in the test's loop, in
other threads or in another process. Everything public may be used from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from tests.openai_server import faults
from tests.openai_server.answers import Answer, Call, Script
from tests.openai_server.gates import PATIENCE_S, Gate
from tests.openai_server.replies import converse
from tests.openai_server.templates import Rules
from tests.openai_server.wire import Connection


class Server:
    """An OpenAI-compatible endpoint under the test's control."""

    def __init__(
        self,
        script: Script | Answer = converse,
        *,
        models: Mapping[str, Rules] | Iterable[str] = (),
        api_key: str | None = None,
        latency_s: float = 0.0,
        keep: bool = True,
        log: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """Make a server; `start` or ``with`` begins to listen on the loopback interface.

        Args:
            script: what to answer to a chat request that the model's rules let pass.
            models: known models, with their rules if any; with none, every name is answered.
            api_key: the only key accepted; ``None``: any, also none.
            latency_s: added before every answer.
            keep: remember requests in `calls`; off for long runs.
            log: called with a small dict for each request received.
        """
        self.play(script)
        self.models: dict[str, Rules] = (
            dict(models) if isinstance(models, Mapping) else {name: Rules() for name in models}
        )
        self.api_key = api_key
        self.latency_s = latency_s
        self.listed: list[dict[str, Any]] = []
        """Rows of the list of models, which is asked for without being counted."""
        self.max_in_flight = 0
        self.in_flight = 0
        self.port = 0
        self._keep = keep
        self._log = log
        self._changed = threading.Condition()
        self._calls: list[Call] = []
        self.n_received = 0
        """Requests received."""
        self._n_done = 0
        self.n_by_model: Counter[str] = Counter()
        """Chat requests received for each model."""
        self._by_digest: Counter[str] = Counter()
        self._gate: Gate | None = None
        self._error: BaseException | None = None
        self._connections: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="openai-server", daemon=True)
        self._listening: asyncio.Server | None = None

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> Server:
        """Begin to listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE_S)
        return self

    def close(self) -> None:
        """Reset every connection, let nothing hang, and report an error of the script.

        Raises:
            AssertionError: the script raised; its exception is the cause.
        """
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()
        if self._error is not None:
            raise AssertionError("the server's script failed") from self._error

    def __enter__(self) -> Server:
        """`start`."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """`close`."""
        self.close()

    @property
    def url(self) -> str:
        """The base URL for clients: ``http://127.0.0.1:PORT/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    # --- what it saw -----------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """Every request received, in order; the list is a copy, its items stay up to date."""
        with self._changed:
            return list(self._calls)

    @property
    def n_repeated(self) -> int:
        """Requests received beyond the first of exactly the same bytes."""
        with self._changed:
            return sum(n - 1 for n in self._by_digest.values())

    def wait_for(self, n: int, timeout_s: float = PATIENCE_S) -> None:
        """Block until ``n`` requests were received in all.

        Raises:
            TimeoutError: fewer came.
        """
        self._wait(lambda: self.n_received >= n, f"{n} requests received", timeout_s)

    def wait_idle(self, timeout_s: float = PATIENCE_S) -> None:
        """Block until every request received is answered, cut or lost."""
        self._wait(lambda: self._n_done >= self.n_received, "no request in flight", timeout_s)

    # --- control ---------------------------------------------------------------------------------

    def play(self, script: Script | Answer) -> None:
        """Answer by ``script`` from the next request on; an `Answer` is given to every request."""
        self._script: Script = script if callable(script) else lambda _: script

    def hold(self) -> Gate:
        """Hold every answer to requests that come from now on, until the gate lets it through."""
        self._gate = Gate()
        return self._gate

    def answer(self, call: Call) -> Answer:
        """What to do with a request: address, key and model first, then rules, then the script."""
        path = call.path.partition("?")[0]
        if self.is_stranger(call):
            return faults.unauthorized()
        if call.method == "GET" and path.endswith("/models") and self.listed:
            return Answer(body={"object": "list", "data": self.listed})
        if call.method != "POST" or not path.endswith("/chat/completions"):
            return faults.not_found()
        if not call.model or not call.messages:
            return faults.error(400, "Missing required parameter: 'messages' or 'model'.")
        if self.models and call.model not in self.models:
            return faults.model_not_found(call.model)
        rules = self.models.get(call.model)
        return (rules.refusal(call) if rules else None) or self._script(call)

    def is_stranger(self, call: Call) -> bool:
        """Whether a request lacks the key."""
        return bool(self.api_key) and call.headers.get("authorization") != f"Bearer {self.api_key}"

    # --- inside ----------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self) -> None:
        self._listening = await self._loop.create_server(
            lambda: Connection(self), "127.0.0.1", 0, backlog=2048
        )
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
        for connection in list(self._connections):
            connection.reset()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _wait(self, true: Callable[[], bool], what: str, timeout_s: float) -> None:
        with self._changed:
            if not self._changed.wait_for(true, timeout_s):
                raise TimeoutError(
                    f"waited {timeout_s:g} s for: {what}; received {self.n_received}, "
                    f"in flight {self.in_flight}"
                )

    def connected(self, connection: Connection) -> None:
        """Remember a new connection."""
        self._connections.add(connection)

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def received(self, call: Call) -> Answer:
        """Record a request and decide its answer, in the order of arrival."""
        if call.method == "GET" and call.path.partition("?")[0].endswith("/models"):
            return self.answer(call)
        with self._changed:
            self.n_received += 1
            call.n = self.n_received
            self._by_digest[call.digest] += 1
            call.repeat = self._by_digest[call.digest]
            if call.model:
                self.n_by_model[call.model] += 1
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
            if self._keep:
                self._calls.append(call)
            self._changed.notify_all()
        self.note(call)
        try:
            answer = self.answer(call)
        except Exception as error:  # reported by close(): the loop must live on
            self._error = error
            answer = faults.server_error()
        if self.latency_s:
            answer = replace(answer, latency_s=self.latency_s + answer.latency_s)
        if self._gate is not None and answer.gate is None:
            answer = answer.held(self._gate)
        return answer

    def note(self, call: Call) -> None:
        """Log a request."""
        if self._log:
            self._log({"event": "received", "model": call.model, "digest": call.digest})

    def done(self, call: Call) -> None:
        """Record that nothing more will be sent for ``call``."""
        if not call.n:
            return
        with self._changed:
            self.in_flight -= 1
            self._n_done += 1
            self._changed.notify_all()
