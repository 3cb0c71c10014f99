"""A real HTTP server that speaks the OpenAI chat API and fails in every way that real ones do.

    with Server(per_request(faults.rate_limited("0"), converse)) as server:
        ...                              # talk to server.url
    assert len(server.calls) == 2

A *script* looks at a `Call` and returns an `Answer`; `faults` has constructors of faults,
`replies` the scripts, `templates` the models that refuse role layouts, parameters and long
prompts. A `Gate` holds answers until the test opens it, so no test needs to sleep.
"""

from tests.openai_server import faults, templates
from tests.openai_server.answers import Answer, Cut, completion, text
from tests.openai_server.gates import Gate
from tests.openai_server.replies import (
    converse,
    drawn,
    per_request,
)
from tests.openai_server.server import Server

__all__ = [
    "Answer", "Cut", "Gate", "Server", "completion",
    "converse", "drawn", "faults", "per_request", "templates", "text",
]  # fmt: skip
