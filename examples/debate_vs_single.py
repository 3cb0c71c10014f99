"""Is a debate worth its price? A judge alone, a debate, and the same agents' votes before it.

Run it in an empty folder. To ask a model in place of a coin, change the address and its name.
"""

import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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


def main() -> None:
    """Compare both judges with the truth of GTEval: who wrote the dialogues."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Coin)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    Path("debate").mkdir(exist_ok=True)
    Path("debate/botchat.toml").write_text(f'[models.coin]\nmodel = "coin"\nbase_url = "{url}"\n')
    own = {"workspace": "debate", "seeds": "sample"}
    botchat.generate(model="bot:retrieval", turns=8, **own)
    botchat.judge("gteval", judge="coin", **own)
    botchat.judge("gteval", judge="chateval-default", judge_model="coin", **own)
    print(*botchat.agree(protocol="gteval", **own).lines, sep="\n")


if __name__ == "__main__":
    main()
