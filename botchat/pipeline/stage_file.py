"""A judge's stage file during a run: stored judgments are found, new ones are appended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from botchat.interfaces import Case, Judge
from botchat.judges.cascade import Escalations, escalations
from botchat.judges.samples import Stability, stability
from botchat.records import UNANSWERED, Judgment
from botchat.workspace import files
from botchat.workspace.folder import Workspace, judgment_key, judgment_order


@dataclass(frozen=True)
class Judged:
    """What a run made in one protocol."""

    protocol: str
    judge: str
    path: Path
    cases: int
    """Cases that the dialogues allow; of an adaptive run, those asked."""
    new: int
    unreadable: int
    """Cases without a verdict, for whatever reason."""
    unanswered: int
    """Of these, the ones another run may still get an answer for."""
    escalations: Escalations | None = None
    """What a cascade did with its cases."""
    stability: Stability | None = None
    """How far the answers of a judge that was sampled agree."""


class Filing:
    """One judge's judgments in one protocol. Cases may be settled side by side."""

    def __init__(
        self,
        workspace: Workspace,
        seed_set: str,
        protocol: str,
        answering: Judge,
        signature: str,
        chosen: str = "",
    ) -> None:
        """Read the stored judgments; those with another ``signature`` are made again.

        ``chosen``: of `botchat.records.Judgment`, for new ones.
        """
        self.protocol, self.answering, self.signature = protocol, answering, signature
        self.path = workspace.judgments_path(seed_set, protocol, answering.name)
        self._have = workspace.judgments(self.path)
        self._asked: list[tuple[str, tuple[str, ...]]] = []
        self._new = 0
        self._chosen = chosen
        self._file = files.Appender[Judgment](self.path)

    def __enter__(self) -> Self:
        """Open for new judgments."""
        self._file.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the file; put it into canonical order unless something was raised."""
        self._file.__exit__(None, None, None)
        if raised[0] is None and self._have:
            files.finish(self.path, self._have.values(), judgment_order)

    @property
    def judgments(self) -> Iterable[Judgment]:
        """All stored judgments, also of dialogues or settings that have changed."""
        return self._have.values()

    def stored(self, case: Case) -> Judgment | None:
        """The stored judgment of this case, if it is final."""
        found = self._have.get((case.seed_id, case.contestants))
        return found if found is not None and self.holds(found, case.digest) else None

    def holds(self, judgment: Judgment, digest: str) -> bool:
        """Whether a judgment is a final answer to the case of that digest, as it is asked now."""
        return (
            judgment.case == digest
            and judgment.signature == self.signature
            and judgment.outcome not in UNANSWERED
        )

    async def settle(self, case: Case) -> Judgment:
        """The stored judgment, or a new one, which is stored."""
        judgment = self.stored(case)
        if judgment is None:
            answer = await self.answering.answer(case)
            judgment = Judgment(
                protocol=case.protocol,
                seed_id=case.seed_id,
                contestants=case.contestants,
                judge=self.answering.name,
                verdict=answer.verdict,
                reason=answer.reason,
                shown=len(case.dialogues[0].utterances),
                case=case.digest,
                signature=self.signature,
                outcome=answer.outcome,
                transcript=answer.transcript,
                calls=answer.calls,
                chosen=self._chosen,
                confidence=msgspec.UNSET if answer.confidence is None else answer.confidence,
            )
            self._file.append(judgment)
            self._have[judgment_key(judgment)] = judgment
            self._new += 1
        self._asked.append(judgment_key(judgment))
        return judgment

    @property
    def n_asked(self) -> int:
        """Cases settled."""
        return len(self._asked)

    def whole(self) -> None:
        """Every case has been settled: remove the mark of those that an adaptive run chose.

        So a file has the same bytes whether an adaptive run came first or not.
        """
        for key in self._asked:
            if self._have[key].chosen:
                self._have[key] = msgspec.structs.replace(self._have[key], chosen="")

    def judged(self) -> Judged:
        """What was asked and answered."""
        found = [self._have[key] for key in self._asked]
        account = escalations(judgment.transcript for judgment in found)
        return Judged(
            protocol=self.protocol,
            judge=self.answering.name,
            path=self.path,
            cases=len(found),
            new=self._new,
            unreadable=sum(judgment.verdict is None for judgment in found),
            unanswered=sum(judgment.outcome in UNANSWERED for judgment in found),
            escalations=account if account.n else None,
            stability=stability(judgment.transcript for judgment in found),
        )
