"""What the harness costs beside the endpoint: calls a second and CPU a call, against its peers.

    python benchmarks/client_overhead.py [--calls 2500] [--in-flight 256] [--latency-ms 50]

All clients ask the same local server (a process of its own) the same 13-message dialogues in one
run; the harness does all it does in a real run: ledger, retry, validation, concurrency control.
Ratios are to the ``openai`` client used plainly. Inspect AI is measured where it is installed.
Fails below `CALLS` times the plain client's calls a second or above `CPU` times raw aiohttp's CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
import openai

from botchat.interfaces import Decoding
from botchat.models.connection import server_of
from botchat.models.endpoint import EndpointModel
from botchat.models.limits import ServerLimit
from botchat.models.paying import PayingModel
from botchat.models.retrying import RetryingModel
from botchat.models.stored import StoredModel
from botchat.parallel import run_sync
from botchat.protocols.generation import chat_messages
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.usage import stats

ROOT = Path(__file__).resolve().parents[1]
CALLS, CPU = 7.5, 3.3
SPOKEN = [
    f"I think we should go before the shop closes, it gets crowded later on, {i}."
    for i in range(12)
]


def messages(n):
    """A request of 13 messages, each ``n`` another one."""
    return chat_messages(
        "You are having a conversation with a human. " * 10, [*SPOKEN[1:], f"Call {n}."]
    )


async def spread(n_calls: int, in_flight: int, call: Callable[[int], Awaitable[object]]) -> None:
    """Make the calls, so many at once."""
    numbers = iter(range(n_calls))

    async def worker():
        for n in numbers:
            await call(n)

    await asyncio.gather(*(worker() for _ in range(in_flight)))


def harness(url, n_calls, in_flight):
    """BotChat as it runs."""

    async def run():
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder) / "ledger.sqlite3")
            settings = ModelSettings(model="m", base_url=url)
            server = server_of(settings)
            sender = EndpointModel("m", settings, ledger, server)
            paying = PayingModel(sender, ledger, "bench", ServerLimit(in_flight))
            model = StoredModel(RetryingModel(paying))

            async def call(n):
                reply = await model.chat(messages(n), Decoding(0.0, 256))
                assert reply.outcome == "ok", reply

            await spread(n_calls, in_flight, call)
            assert sum(row.calls for row in stats(ledger)) == n_calls
            await server.aclose()
            ledger.close()

    run_sync(run)


def plain(url, n_calls, in_flight):
    """The openai client as its manual shows it, asynchronous."""

    async def run():
        async with openai.AsyncOpenAI(
            base_url=url,
            api_key="sk-none",
            http_client=openai.DefaultAsyncHttpxClient(timeout=None),
        ) as client:

            async def call(n):
                reply = await client.chat.completions.create(
                    model="m", messages=messages(n), temperature=0, max_tokens=256
                )
                assert reply.choices[0].message.content

            await spread(n_calls, in_flight, call)

    asyncio.run(run())


def raw(url, n_calls, in_flight):
    """Nothing but HTTP and JSON: the floor."""

    async def run():
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def call(n):
                body = {"model": "m", "messages": messages(n), "temperature": 0, "max_tokens": 256}
                async with session.post(
                    f"{url}/chat/completions",
                    data=msgspec.json.encode(body),
                    headers={"content-type": "application/json"},
                ) as reply:
                    assert msgspec.json.decode(await reply.read())["choices"]

            await spread(n_calls, in_flight, call)

    asyncio.run(run())


def inspect(url, n_calls, in_flight):
    """Inspect AI's model call."""
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        get_model,
    )

    kinds = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }

    async def run():
        config = GenerateConfig(temperature=0, max_tokens=256, max_connections=in_flight)
        async with get_model(
            "openai/m", base_url=url, api_key="sk-none", config=config, responses_api=False
        ) as model:

            async def call(n):
                asked = [kinds[m["role"]](content=m["content"]) for m in messages(n)]
                reply = await model.generate(asked)
                assert reply.completion

            await spread(n_calls, in_flight, call)

    asyncio.run(run())


CLIENTS = {
    "openai client, plainly": plain,
    "Inspect AI": inspect,
    "BotChat, everything": harness,
    "raw aiohttp": raw,
}


def measured(run, url, n_calls, in_flight):
    """(calls a second, CPU milliseconds a call)."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    run(url, n_calls, in_flight)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return n_calls / seconds, 1000 * cpu / n_calls


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=2500)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.server", "--latency-ms", str(options.latency_ms)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    print(
        f"{options.calls} calls of 13 messages, {options.in_flight} in flight, "
        f"{options.latency_ms:g} ms latency, best of {options.repeats}"
    )
    runs: dict[str, list[tuple[float, float]]] = {}
    try:
        for name, run in CLIENTS.items():
            try:
                run(url, options.in_flight, options.in_flight)  # warm up
                runs[name] = []
            except ImportError as error:
                print(f"{name:26} not installed ({error.name})", file=sys.stderr)
        for _ in range(options.repeats):  # in turn: the machine's load is the same for all
            for name, done in runs.items():
                done.append(measured(CLIENTS[name], url, options.calls, options.in_flight))
    finally:
        server.terminate()
        server.wait()
    found = {
        name: (max(r for r, _ in done), min(c for _, c in done)) for name, done in runs.items()
    }
    base = found["openai client, plainly"]
    for name, (rate, cpu) in found.items():
        print(
            f"{name:26} {rate:7.0f} calls/s  {cpu:5.2f} ms CPU a call   "
            f"calls x{rate / base[0]:.2f}  CPU x{cpu / base[1]:.2f}"
        )
    ours, floor = found["BotChat, everything"], found["raw aiohttp"]
    calls, cpu = ours[0] / base[0], ours[1] / floor[1]
    print(f"{calls:.1f} times the plain client's calls, {cpu:.2f} times raw aiohttp's CPU")
    if calls < CALLS or cpu > CPU:
        sys.exit(f"less than {CALLS:g} times the calls, or more than {CPU:g} times the CPU")


if __name__ == "__main__":
    main()
