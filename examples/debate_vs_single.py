"""Is a debate worth its price? A judge alone, a debate, and the same agents' votes before it.

Run it in an empty folder. To ask a model in place of a coin, give its name to `main`.
"""

import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import botchat


class Coin(BaseHTTPRequestHandler):
    """A server of chat completions; the same prompt gets the same answer."""

    def do_POST(self) -> None:
        """Name one of the conversations."""
        prompt = self.rfile.read(int(self.headers.get("content-length", 0)))
        message = {"content": f"Choice: Conversation {1 + zlib.crc32(prompt) % 2}; Reason: tossed"}
        body = json.dumps({"choices": [{"message": message}]}).encode()
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)

    do_GET = do_POST  # noqa: N815


def main(model: str = "") -> None:
    """Compare both judges with the truth of GTEval: who wrote the dialogues."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Coin)
    Thread(target=server.serve_forever, daemon=True).start()
    own = {"workspace": "debate", "seeds": "sample"}
    model = model or f"http://127.0.0.1:{server.server_port}/v1#coin"
    botchat.generate(model="bot:retrieval", turns=8, **own)
    botchat.judge("gteval", judge=model, **own)
    botchat.judge("gteval", judge="chateval-default", judge_model=model, **own)
    print(*botchat.agree(protocol="gteval", **own).lines, sep="\n")


if __name__ == "__main__":
    main()
