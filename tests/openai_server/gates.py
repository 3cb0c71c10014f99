"""What an answer waits at: opened from any thread, awaited in the server's event loop."""

import asyncio
import threading
from collections import deque

PATIENCE_S = 120.0
"""Longest any wait of a test lasts before it fails; never reached when the code is right."""


class Gate:
    """A turnstile: each wait takes one permit; `open` lets everyone through for good."""

    def __init__(self) -> None:
        """Closed, with no permits."""
        self._changed = threading.Condition()
        self._open = False
        self._permits = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    def open(self) -> None:
        """Let everyone through, now and later."""
        with self._changed:
            self._open = True
            while self._waiting:
                self._let_through()

    def release(self, n: int = 1) -> None:
        """Let the next ``n`` through, those that wait now first, in the order they came."""
        with self._changed:
            self._permits += n
            while self._permits and self._waiting:
                self._permits -= 1
                self._let_through()

    async def wait(self) -> None:
        """Take a permit; wait for one if there is none."""
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._open:
                return
            if self._permits:
                self._permits -= 1
                return
            place = (loop, loop.create_future())
            self._waiting.append(place)
            self._changed.notify_all()
        try:
            await place[1]
        finally:
            with self._changed:
                if place in self._waiting:
                    self._waiting.remove(place)

    def wait_held(self, n: int, timeout_s: float = PATIENCE_S) -> None:
        """Block until ``n`` answers wait here.

        Raises:
            TimeoutError: fewer came.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._waiting) >= n, timeout_s):
                raise TimeoutError(f"{len(self._waiting)} of {n} answers held at the gate")

    def _let_through(self) -> None:
        loop, future = self._waiting.popleft()
        loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
