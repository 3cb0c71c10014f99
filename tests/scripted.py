"""Models that answer by script and remember what they were asked, and cases to ask them."""

import asyncio
from dataclasses import replace

import msgspec

from botchat.interfaces import Decoding, Message, Quirks, Reply, ShownDialogue
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.records import Dialogue

FAILED = {
    outcome: Reply(outcome, detail=f"it was {outcome}")
    for outcome in ("refused", "overflow", "empty", "transport", "malformed")
}


class Scripted:
    """A `ChatModel` whose n-th reply is the script's n-th entry, or what a function says."""

    context_window = None
    parallel = 4
    quirks = Quirks()
    room = 0

    def __init__(self, script, name="scripted"):
        """``script``: texts and replies in order, or a function of the prompt."""
        self.name = name
        self.identity = {"model": name}
        self.prompts: list[str] = []
        self.messages: list[list[Message]] = []
        self.samplings: list[Decoding] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._script = script

    async def chat(self, messages, decoding):
        """The next reply, given after everyone else had a chance to ask too."""
        number = len(self.prompts)
        self.prompts.append(messages[-1]["content"])
        self.messages.append(list(messages))
        self.samplings.append(decoding)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        for _ in range(3):
            await asyncio.sleep(0)
        self._in_flight -= 1
        said = self._script(self.prompts[number]) if callable(self._script) else self._script
        reply = said[number] if isinstance(said, list) else said
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            reply = Reply("ok", text=reply)
        return msgspec.structs.replace(reply, key=f"{self.name}-{number}")


def choice(verdict, reason="so"):
    """A judge's reply in the Arena's format."""
    words = {"1": "Conversation 1", "2": "Conversation 2", "both": "Both", "neither": "Neither"}
    return f"Choice: {words[verdict]}; Reason: {reason}"


def accusation(verdict, reason="so"):
    """A judge's reply in UniEval's format."""
    said = "No\nIndex: None" if verdict == "No" else f"Yes\nIndex: {verdict}"
    return f"Choice: {said}\nReason: {reason}"


def dialogue(model, *said):
    """A finished dialogue."""
    return Dialogue("s1", model, said, 2, (), "complete", "sig")


PLAIN = ("Hi.", "Hello.", "How are you?", "Fine.")


def arena_case(one=PLAIN, two=PLAIN, protocol=ARENA):
    """An Arena case that knows its mirror."""

    def made(first, second):
        asked = protocol if protocol is GTEVAL else protocol.at(4)
        made_case = asked.case("s1", ShownDialogue.of(first, 4), ShownDialogue.of(second, 4))
        return replace(made_case, mirror=lambda: made(second, first))

    return made(dialogue("a", *one), dialogue("b", *two))


def unieval_case(said=PLAIN):
    """A UniEval case."""
    return UNIEVAL.case("s1", ShownDialogue("a", said))
