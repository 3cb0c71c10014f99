"""The wire format ``chat``: chat completions of OpenAI, vLLM, Ollama and most other servers."""

from __future__ import annotations

from botchat.models.endpoint import WireFormat
from botchat.models.endpoint.batch import BatchModel
from botchat.models.endpoint.batch_endpoint import MAX_OUTPUT
from botchat.models.endpoint.openai_api import Connection, OpenAIModel, identity
from botchat.models.endpoint.replies import token_logprobs
from botchat.models.endpoint.transport import MAX_BODY

WIRE = WireFormat(
    identity=identity,
    connect=lambda base_url, key, batches: Connection(
        base_url, key, MAX_OUTPUT if batches else MAX_BODY
    ),
    model=OpenAIModel,
    token_logprobs=token_logprobs,
    in_batches=BatchModel,
)
