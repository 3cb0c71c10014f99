"""The Batch API in front of a `Server`: files, batches, and everything that becomes of them.

    with BatchServer(fates=[Fate(status="expired", answered=3), Fate(looks=2)]) as server:
        ...                              # the first batch expires after three answers
    assert max(server.paid.values()) == 1

A batch's requests are answered by the server's script like any others, when the batch ends. It ends
at a look of the client, never by time, so a test decides how slow it is. `Fate` says what becomes
of a batch, `refuse`, `lose` and `gates` what becomes of the exchanges about it.
"""

from __future__ import annotations

import email
import email.policy
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.openai_server import faults
from tests.openai_server.answers import Answer, Call, Script, render
from tests.openai_server.replies import converse
from tests.openai_server.server import BatchingServer

MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
PAGE = 20
"""Batches on a page of the list, if the client asks for no other number."""


@dataclass(frozen=True)
class Fate:
    """What becomes of one batch."""

    status: str = "completed"
    """``completed``, ``expired``, ``cancelled`` or ``failed``."""
    answered: int | None = None
    """Only the first so many requests are answered; ``None``: all."""
    looks: int = 0
    """Looks at it that find it under way before one finds it ended."""
    listed: bool = True
    """Unanswered requests stand in the error file; otherwise nowhere."""
    backwards: bool = False
    """Answers come in the reverse order."""
    twice: bool = False
    """Each answer comes twice."""
    code: str = "invalid_request"
    message: str = "The batch cannot be processed, or not to its end."
    """Why a batch failed, or a request of it was not run."""


@dataclass
class Job:
    """One batch."""

    id: str
    fate: Fate
    file: str
    metadata: dict[str, str]
    requests: list[dict[str, Any]]
    status: str = "validating"
    looks: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    output: str | None = None
    error_output: str | None = None
    n_completed: int = 0
    n_failed: int = 0
    created_at: int = field(default_factory=lambda: int(time.time()))

    @property
    def keys(self) -> list[str]:
        """The requests' ids."""
        return [request["custom_id"] for request in self.requests]

    @property
    def ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.status in ("completed", "expired", "cancelled", "failed")


class BatchServer(BatchingServer):
    """An endpoint with a Batch API."""

    def __init__(
        self, script: Script | Answer = converse, *, fates: Sequence[Fate] = (), **more: Any
    ) -> None:
        """Make a server.

        Args:
            script: what to answer, to requests in batches too.
            fates: of the first, second, … batch; the last one is that of all later ones.
            more: as for `Server`.
        """
        super().__init__(script, fates or [Fate()], **more)
        self.room: int | None = None
        """Requests in batches under way together; a batch beyond that is refused."""
        self.jobs: list[Job] = []
        self.asked: Counter[str] = Counter()
        """Times each request was in a batch that was not refused."""
        self._files: dict[str, bytes] = {}
        self._repeats: Counter[bytes] = Counter()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every request of every batch."""
        return [request for job in self.jobs for request in job.requests]

    def file(self, job: Job) -> bytes:
        """The file that a batch was made from."""
        return self._files[job.file]

    def refuse(self, step: str, *answers: Answer) -> None:
        """Give these answers to the next exchanges of a kind; nothing else happens then."""
        self.refusals[step] += answers

    def lose(self, step: str, *answers: Answer) -> None:
        """Do what the next exchanges of a kind ask for, but answer with these."""
        self.losses[step] += answers

    def answer(self, call: Call) -> Answer:
        """What to do with a request: files and batches here, everything else as any server."""
        step = _step(call)
        if step is None:
            return super().answer(call)
        if self.is_stranger(call):
            return faults.unauthorized()
        return self.exchange(step, lambda: self._done(step, call))

    def _done(self, step: str, call: Call) -> Answer:
        last = urlsplit(call.path).path.split("/")
        if step == "upload":
            return self._upload(call)
        if step == "create":
            return self._create(call)
        if step == "list":
            return self._list(call)
        if step == "fetch":
            data = self._files.get(last[-2])
            headers = (("content-type", "application/octet-stream"),)
            return faults.not_found() if data is None else Answer(body=data, headers=headers)
        name = last[-2] if step == "cancel" else last[-1]
        job = next((job for job in self.jobs if job.id == name), None)
        if job is None:
            return faults.error(404, f"No batch found with id '{name}'.")
        if step == "cancel":
            self._end(job, "cancelled", job.fate.answered or 0)
        else:
            self._advance(job)
        return Answer(body=_shown(job))

    def _upload(self, call: Call) -> Answer:
        fields = _form(call)
        if fields.get("purpose") != b"batch" or "file" not in fields:
            return faults.error(400, "'purpose' must be 'batch' and 'file' a file.")
        name = self._store(fields["file"])
        return Answer(body={"id": name, "object": "file", "purpose": "batch"})

    def _create(self, call: Call) -> Answer:
        data = self._files.get(call.body.get("input_file_id", ""))
        if data is None or call.body.get("endpoint") != "/v1/chat/completions":
            return faults.error(400, "Invalid 'input_file_id' or 'endpoint'.")
        job = Job(
            id=f"batch_{len(self.jobs) + 1:04}",
            fate=self.fate(len(self.jobs)),
            file=call.body["input_file_id"],
            metadata=call.body.get("metadata") or {},
            requests=[msgspec.json.decode(line) for line in data.splitlines()],
        )
        job.errors = self._problems(job, data)
        self.jobs.append(job)
        if not job.errors:
            self.asked.update(job.keys)
        return Answer(body=_shown(job))

    def _problems(self, job: Job, data: bytes) -> list[dict[str, Any]]:
        """Why a batch is refused, as the real API checks it."""
        if job.fate.status == "failed":
            return [{"code": job.fate.code, "message": job.fate.message, "line": None}]
        under_way = sum(len(other.requests) for other in self.jobs if not other.ended)
        if self.room is not None and under_way + len(job.requests) > self.room:
            message = "Enqueued token limit reached for this model. Please try again later."
            return [{"code": "token_limit_exceeded", "message": message, "line": None}]
        wrong = {
            "duplicate_custom_id": len(set(job.keys)) < len(job.keys),
            "invalid_custom_id": any(not 0 < len(key) <= 64 for key in job.keys),
            "mismatched_model": len({request["body"]["model"] for request in job.requests}) != 1,
            "invalid_url": {(r["method"], r["url"]) for r in job.requests}
            != {("POST", "/v1/chat/completions")},
            "too_large": len(job.requests) > MAX_REQUESTS or len(data) > MAX_BYTES,
        }
        return [
            {"code": code, "message": code, "line": 1} for code, is_so in wrong.items() if is_so
        ]

    def _advance(self, job: Job) -> None:
        """One look further."""
        job.looks += 1
        if job.ended:
            return
        if job.errors:
            job.status = "failed"
        elif job.looks > job.fate.looks:
            n = len(job.requests) if job.fate.answered is None else job.fate.answered
            self._end(job, job.fate.status, n)
        else:
            job.status = "in_progress" if job.looks < job.fate.looks else "finalizing"

    def _end(self, job: Job, status: str, n: int) -> None:
        """Answer the first ``n`` requests and write the files."""
        job.status = status
        done = [self._answered(request) for request in job.requests[:n]]
        good = [line for line in done if line["response"]["status_code"] == 200]
        bad = [line for line in done if line["response"]["status_code"] != 200]
        if job.fate.listed:
            bad += [_unanswered(request, job) for request in job.requests[n:]]
        job.n_completed, job.n_failed = len(good), len(job.requests) - len(good)
        job.output = self._store(_jsonl(good, job.fate)) if good else None
        job.error_output = self._store(_jsonl(bad, job.fate)) if bad else None

    def _answered(self, request: dict[str, Any]) -> dict[str, Any]:
        raw = msgspec.json.encode(request["body"])
        self._repeats[raw] += 1
        call = Call(
            n=sum(self._repeats.values()),
            method=request["method"],
            path=request["url"],
            headers={"authorization": f"Bearer {self.api_key}"},
            raw=raw,
            body=request["body"],
            connection=0,
            repeat=self._repeats[raw],
        )
        if self._log:
            self._log({"event": "received", "model": call.model, "digest": call.digest})
        answer = super().answer(call)
        if answer.status == 200:
            self.paid[request["custom_id"]] += 1
        return {
            "id": f"batch_req_{call.n}",
            "custom_id": request["custom_id"],
            "response": {
                "status_code": answer.status,
                "request_id": f"req-{call.n}",
                "body": msgspec.Raw(render(answer, call)[1]),
            },
            "error": None,
        }

    def _list(self, call: Call) -> Answer:
        query = parse_qs(urlsplit(call.path).query)
        jobs = self.jobs[::-1]
        after = query.get("after", [""])[0]
        start = next((n + 1 for n, job in enumerate(jobs) if job.id == after), 0)
        end = start + min(int(query.get("limit", [PAGE])[0]), PAGE)
        for job in jobs[start:end]:
            self._advance(job)
        page = [_shown(job) for job in jobs[start:end]]
        return Answer(body={"object": "list", "data": page, "has_more": end < len(jobs)})

    def _store(self, data: bytes) -> str:
        name = f"file-{len(self._files) + 1:04}"
        self._files[name] = data
        return name


def _step(call: Call) -> str | None:
    """Which exchange about files or batches a request is; ``None``: another one."""
    parts = urlsplit(call.path).path.removeprefix("/v1/").split("/")
    match (call.method, *parts):
        case ("POST", "files"):
            return "upload"
        case ("GET", "files", _, "content"):
            return "fetch"
        case ("POST", "batches"):
            return "create"
        case ("GET", "batches"):
            return "list"
        case ("GET", "batches", _):
            return "look"
        case ("POST", "batches", _, "cancel"):
            return "cancel"
    return None


def _form(call: Call) -> dict[str, bytes]:
    """Fields of a multipart form."""
    head = f"Content-Type: {call.headers.get('content-type', '')}\r\n\r\n".encode()
    message = email.message_from_bytes(head + call.raw, policy=email.policy.HTTP)
    fields = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            fields[name] = content
    return fields


def _shown(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "input_file_id": job.file,
        "created_at": job.created_at,
        "status": job.status,
        "metadata": job.metadata,
        "errors": {"object": "list", "data": job.errors} if job.status == "failed" else None,
        "output_file_id": job.output,
        "error_file_id": job.error_output,
        "request_counts": {
            "total": len(job.requests),
            "completed": job.n_completed,
            "failed": job.n_failed,
        },
    }


def _unanswered(request: dict[str, Any], job: Job) -> dict[str, Any]:
    return {
        "id": "batch_req_0",
        "custom_id": request["custom_id"],
        "response": None,
        "error": {"code": f"batch_{job.status}", "message": job.fate.message},
    }


def _jsonl(lines: list[dict[str, Any]], fate: Fate) -> bytes:
    if fate.twice:
        lines = lines + lines
    if fate.backwards:
        lines = lines[::-1]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
