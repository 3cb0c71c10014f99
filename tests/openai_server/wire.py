"""HTTP/1.1 by hand on asyncio, because a fault is a matter of single bytes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tests.openai_server import faults
from tests.openai_server.answers import Answer, Call, render

if TYPE_CHECKING:
    from tests.openai_server.server import Server

CHUNK = 64 * 1024
"""Bytes of a body that are written before the next wait for the client."""


class Connection(asyncio.Protocol):
    """One client's connection: requests one after the other, the next when the last is done."""

    def __init__(self, server: Server) -> None:
        """``server`` decides and records."""
        self._server = server
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._busy = False
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # An empty buffer is "writable": what was written is then with the kernel.
        transport.set_write_buffer_limits(high=0)
        self._server.connected(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The client, or the server, hung up: what is on its way is lost."""
        self._server.disconnected(self)
        if self._task is not None:
            self._task.cancel()
        self.resume_writing()

    def eof_received(self) -> None:
        """The client hung up (no HTTP client half-closes): asyncio closes the transport."""

    def pause_writing(self) -> None:
        """The kernel takes no more for now."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """The kernel has taken everything."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        self._buffer += data
        self._advance()

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        raw = self._transport.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _advance(self) -> None:
        while not self._busy and not self._transport.is_closing():
            if self._head is None:
                end = self._buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                self._head = _Head(bytes(self._buffer[:end]))
                del self._buffer[: end + 4]
            if len(self._buffer) < self._head.length:
                return
            head, self._head = self._head, None
            raw = bytes(self._buffer[: head.length])
            del self._buffer[: head.length]
            self._begin(head, raw)

    def _begin(self, head: _Head, raw: bytes) -> None:
        self._busy = True
        call = Call(
            n=0,
            method=head.method,
            path=head.path,
            headers=head.headers,
            raw=raw,
            body=_json_object(raw),
        )
        answer = self._server.received(call)
        if "transfer-encoding" in head.headers:
            answer = faults.error(411, "this server takes no chunked requests")
        if answer.plain and len(answer.body) <= CHUNK:
            call.answered = not self._transport.is_closing()
            self._transport.write(b"".join(render(answer, call)))
            self._end(call, answer)
        else:
            self._task = asyncio.get_running_loop().create_task(self._send_all(call, answer))

    async def _send_all(self, call: Call, answer: Answer) -> None:
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await self._send(call, answer)
        self._task = None
        self._end(call, answer)
        self._advance()

    async def _send(self, call: Call, answer: Answer) -> None:
        if answer.latency_s:
            await asyncio.sleep(answer.latency_s)
        if answer.gate is not None:
            await answer.gate.wait()
        if answer.cut is not None and answer.cut.after is None:
            self._cut(answer.cut.reset)
            return
        pieces = list(_pieces(answer, *render(answer, call)))
        for n, piece in enumerate(pieces, 1):
            await self._write(call, piece, last=n == len(pieces) and answer.cut is None)
            if answer.pace_s:
                await asyncio.sleep(answer.pace_s)
        if answer.cut is not None:
            self._cut(answer.cut.reset)

    async def _write(self, call: Call, data: bytes, *, last: bool) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError
        # Noted before the client can have the last byte, so that its test cannot look too early.
        call.answered = last
        self._transport.write(data)
        try:
            if self._writable is not None:
                await self._writable
            if self._transport.is_closing():
                raise ConnectionResetError
        except (asyncio.CancelledError, ConnectionError):
            call.answered = False
            raise

    def _end(self, call: Call, answer: Answer) -> None:
        self._busy = False
        asked = call.headers.get("connection", "").lower() == "close"
        if asked or ("connection", "close") in answer.headers:
            self._transport.close()
        self._server.done(call)

    def _cut(self, reset: bool) -> None:
        if reset:
            self.reset()
        else:
            self._transport.close()


def _pieces(answer: Answer, head: bytes, body: bytes) -> Iterator[bytes]:
    """The head, then the body in pieces as they are written one after the other."""
    if head:
        yield head
    body = body if answer.cut is None else body[: answer.cut.after]
    size = 1 if answer.pace_s else CHUNK
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(piece), piece) if answer.chunked else piece
    if answer.chunked and answer.cut is None:
        yield b"0\r\n\r\n"


class _Head:
    """A request's first line and headers."""

    def __init__(self, data: bytes) -> None:
        first, *lines = data.decode("latin-1").split("\r\n")
        self.method, self.path, _ = first.split(" ", 2)
        self.headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.length = int(self.headers.get("content-length", 0))


def _json_object(raw: bytes) -> Mapping[str, Any]:
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return body if isinstance(body, dict) else {}
