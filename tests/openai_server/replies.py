"""Scripts: deterministic talk and judging, and ways to combine answers.

`converse` is a pure function of model and messages, so a run gives the same files whatever the
order, the number or the timing of its requests.
"""

import hashlib
import re
from collections.abc import Mapping

from tests.openai_server.answers import Answer, Call, Script, content_text, text

Step = Answer | Script


def converse(call: Call) -> Answer:
    """`judge` where a judgment is asked for (the prompt says ``Choice:``), otherwise `talk`."""
    asked = any("Choice:" in content_text(message.get("content")) for message in call.messages)
    return judge(call) if asked else talk(call)


def talk(call: Call) -> Answer:
    """An everyday sentence or three; a function of model and messages alone."""
    last = content_text(call.messages[-1].get("content")) if call.messages else ""
    digest = _digest(call)
    words = re.findall(r"[A-Za-z]{4,12}", last)
    subject = words[digest[3] % len(words)].lower() if words else "that"
    said = [_OPENERS[digest[0] % len(_OPENERS)]]
    said.append(_MIDDLES[digest[1] % len(_MIDDLES)].format(subject))
    if digest[4] % 3:
        said.append(_ENDINGS[digest[2] % len(_ENDINGS)])
    return text(" ".join(said))


def judge(call: Call) -> Answer:
    """A verdict in the paper's format, one of those the prompt offers, drawn by its hash."""
    return _judged(call, _digest(call))


def drawn(call: Call) -> Answer:
    """`judge` at a temperature: each ``seed`` draws another verdict."""
    seed = str(call.body.get("seed", 0))
    return _judged(call, hashlib.sha256(_digest(call) + seed.encode()).digest())


def _judged(call: Call, digest: bytes) -> Answer:
    prompt = "\n".join(content_text(message.get("content")) for message in call.messages)
    offered = list(dict.fromkeys(_OFFERED.findall(prompt))) or ["Neither"]
    choice = offered[digest[0] % len(offered)]
    said: dict[str, object] = {"choice": choice}
    if "Yes" in offered:
        n_utterances = prompt.rpartition("Conversation:")[2].count("<chat_end>") or 1
        said["index"] = 1 + digest[2] % n_utterances if choice == "Yes" else None
    said["reason"] = _REASONS[digest[1] % len(_REASONS)]
    if "Yes" in offered:
        reply = "\n".join(f"{name.capitalize()}: {value}" for name, value in said.items())
    else:
        reply = f"Choice: {choice}; Reason: {said['reason']}"
    return text(reply)


def per_request(*steps: Step) -> Script:
    """The same for each distinct request: the first step at its first sending, and so on."""
    return lambda call: _done(steps[min(call.repeat, len(steps)) - 1], call)


def by_model(steps: Mapping[str, Step], otherwise: Step = converse) -> Script:
    """A step for each model."""
    return lambda call: _done(steps.get(call.model, otherwise), call)


def _done(step: Step, call: Call) -> Answer:
    return step if isinstance(step, Answer) else step(call)


def _digest(call: Call) -> bytes:
    state = hashlib.sha256(call.model.encode())
    for message in call.messages:
        content = content_text(message.get("content"))
        state.update(f"\0{message.get('role')}\0{content}".encode("utf-8", "surrogatepass"))
    return state.digest()


_OFFERED = re.compile(r"Choice: (Yes|No|Conversation 1|Conversation 2|Both|Neither)\b")

_OPENERS = ("Oh, really?", "Sounds good to me.", "Hm, I'm not so sure.", "Well, it depends.")
_MIDDLES = (
    "My sister said the same about {}.",
    "We tried {} once and it went better than we thought.",
    "Nobody told me about {}.",
    "Honestly, {} is the least of it.",
)
_ENDINGS = ("Are you coming along?", "What did you do then?", "Shall I ask him?")
_REASONS = (
    "It reads like two people who know each other.",
    "One side keeps answering in the same pattern.",
    "The subject changes without anybody noticing.",
    "Nothing stands out in either direction.",
)
