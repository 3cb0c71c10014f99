"""The Batch API in front of a `Server`: files, batches, and everything that becomes of them.

    with BatchServer(fates=[Fate("expired", answered=3), Fate(looks=2)]) as server:
        ...                              # the first batch expires after three answers
    assert max(server.paid.values()) == 1

A batch's requests are answered by the server's script like any others, when the batch ends. It ends
at a look of the client, never by time, so a test decides how slow it is. `Fate` says what becomes
of a batch, `refuse`, `lose` and `gates` what becomes of the exchanges about it.
"""

import email
import email.policy
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.openai_server import faults
from tests.openai_server.answers import Answer, Call, Script, render
from tests.openai_server.gates import Gate
from tests.openai_server.replies import converse
from tests.openai_server.server import Server

ENDED = ("completed", "expired", "cancelled", "failed")


@dataclass(frozen=True)
class Fate:
    """What becomes of one batch."""

    status: str = "completed"
    """One of `ENDED`."""
    answered: int | None = None
    """Only the first so many requests are answered; ``None``: all."""
    looks: int = 0
    """Looks at it that find it under way before one finds it ended."""
    listed: bool = True
    """Unanswered requests stand in the error file; otherwise nowhere."""
    backwards: bool = False
    """Answers come in the reverse order, each of them twice."""
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

    def shown(self) -> dict[str, Any]:
        """The object that the API gives."""
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": self.file,
            "created_at": self.created_at,
            "status": self.status,
            "metadata": self.metadata,
            "errors": {"object": "list", "data": self.errors} if self.status == "failed" else None,
            "output_file_id": self.output,
            "error_file_id": self.error_output,
            "request_counts": {
                "total": len(self.requests),
                "completed": self.n_completed,
                "failed": self.n_failed,
            },
        }


class BatchServer(Server):
    """An endpoint with a Batch API, whose exchanges go wrong as a test says."""

    def __init__(
        self, script: Script | Answer = converse, *, fates: Sequence[Fate] = (), **more: Any
    ) -> None:
        """Fates of the first, second, … batch, the last for later ones; more as of `Server`."""
        super().__init__(script, **more)
        self.fates = list(fates) or [Fate()]
        self.jobs: list[Job] = []
        self.paid: Counter[str] = Counter()
        """Times each request was answered with status 200."""
        self.gates: dict[str, Gate] = {}
        """Step -> what its answers wait at, after its effect."""
        self._losses: defaultdict[str, list[Answer]] = defaultdict(list)
        self._refusals: defaultdict[str, list[Answer]] = defaultdict(list)
        self._files: dict[str, bytes] = {}
        self._repeats: Counter[bytes] = Counter()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every request of every batch."""
        return [request for job in self.jobs for request in job.requests]

    def refuse(self, step: str, *answers: Answer) -> None:
        """Give these answers to the next exchanges of a kind; nothing else happens then."""
        self._refusals[step] += answers

    def lose(self, step: str, *answers: Answer) -> None:
        """Do what the next exchanges of a kind ask for, but answer with these."""
        self._losses[step] += answers

    def answer(self, call: Call) -> Answer:
        """What to do with a request: files and batches here, everything else as any server."""
        step = _step(call)
        if step is None:
            return super().answer(call)
        if self.is_stranger(call):
            return faults.unauthorized()
        if self._refusals[step]:
            return self._refusals[step].pop(0)
        answer = self._done(step, call)
        if self._losses[step]:
            answer = self._losses[step].pop(0)
        gate = self.gates.get(step)
        return answer if gate is None else answer.held(gate)

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
        job = next((job for job in self.jobs if job.id == last[-1]), None)
        if job is None:
            return faults.error(404, f"No batch found with id '{last[-1]}'.")
        self._advance(job)
        return Answer(body=job.shown())

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
            fate=self.fates[min(len(self.jobs), len(self.fates) - 1)],
            file=call.body["input_file_id"],
            metadata=call.body.get("metadata") or {},
            requests=[msgspec.json.decode(line) for line in data.splitlines()],
        )
        job.errors = _problems(job)
        self.jobs.append(job)
        return Answer(body=job.shown())

    def _advance(self, job: Job) -> None:
        """One look further."""
        job.looks += 1
        if job.status in ENDED:
            return
        if job.errors:
            job.status = "failed"
        elif job.looks > job.fate.looks:
            self._end(job)
        else:
            job.status = "in_progress" if job.looks < job.fate.looks else "finalizing"

    def _end(self, job: Job) -> None:
        """Answer the first requests and write the files."""
        job.status = job.fate.status
        done = [self._answered(request) for request in job.requests[: job.fate.answered]]
        good = [line for line in done if line["response"]["status_code"] == 200]
        bad = [line for line in done if line["response"]["status_code"] != 200]
        if job.fate.listed:
            error = {"code": f"batch_{job.status}", "message": job.fate.message}
            bad += [
                {"id": "0", "custom_id": request["custom_id"], "response": None, "error": error}
                for request in job.requests[len(done) :]
            ]
        job.n_completed, job.n_failed = len(good), len(job.requests) - len(good)
        if job.fate.backwards:
            good, bad = (2 * lines[::-1] for lines in (good, bad))
        job.output = self._store(_jsonl(good)) if good else None
        job.error_output = self._store(_jsonl(bad)) if bad else None

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
            repeat=self._repeats[raw],
        )
        self.note(call)
        answer = super().answer(call)
        if answer.status == 200:
            self.paid[request["custom_id"]] += 1
        body = msgspec.Raw(render(answer, call)[1])
        return {
            "id": f"batch_req_{call.n}",
            "custom_id": request["custom_id"],
            "response": {"status_code": answer.status, "request_id": "req", "body": body},
            "error": None,
        }

    def _list(self, call: Call) -> Answer:
        query = parse_qs(urlsplit(call.path).query)
        jobs = self.jobs[::-1]
        after = query.get("after", [""])[0]
        start = next((n + 1 for n, job in enumerate(jobs) if job.id == after), 0)
        end = start + int(query.get("limit", [20])[0])
        for job in jobs[start:end]:
            self._advance(job)
        page = [job.shown() for job in jobs[start:end]]
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


def _problems(job: Job) -> list[dict[str, Any]]:
    """Why a batch is refused, as the real API checks it."""
    if job.fate.status == "failed":
        return [{"code": "invalid_request", "message": job.fate.message, "line": None}]
    keys = [request["custom_id"] for request in job.requests]
    wrong = {
        "duplicate_custom_id": len(set(keys)) < len(keys),
        "invalid_custom_id": any(not 0 < len(key) <= 64 for key in keys),
        "mismatched_model": len({request["body"]["model"] for request in job.requests}) != 1,
        "invalid_url": {(r["method"], r["url"]) for r in job.requests}
        != {("POST", "/v1/chat/completions")},
    }
    return [{"code": code, "message": code, "line": 1} for code, is_so in wrong.items() if is_so]


def _jsonl(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
