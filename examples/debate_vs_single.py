"""Is a debate worth its price? A judge alone, a debate, and the same agents' votes before it.

Run it in an empty folder. To ask a model in place of a coin, change its entry.
"""

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
        said = b"Choice: Conversation %d; Reason: tossed" % (1 + zlib.crc32(prompt) % 2)
        body = b'{"choices": [{"message": {"content": "%s"}}]}' % said
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)

    do_GET = do_POST  # noqa: N815


def main() -> None:
    """Compare both judges with the truth of GTEval: who wrote the dialogues."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Coin)
    Thread(target=server.serve_forever, daemon=True).start()
    entry = f'[models.coin]\nmodel = "coin"\nbase_url = "http://127.0.0.1:{server.server_port}/v1"'
    Path("botchat.toml").write_text(entry)
    botchat.generate(model="bot:retrieval", turns=8, seeds="sample")
    botchat.judge("gteval", judge="coin", seeds="sample")
    botchat.judge("gteval", judge="chateval-default", judge_model="coin", seeds="sample")
    print(repr(botchat.agree(protocol="gteval", seeds="sample")))


if __name__ == "__main__":
    main()
