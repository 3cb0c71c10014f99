"""Every request of a panel over HTTP beside the papers' algorithms, written here once more.

A request is (who is asked, for what, what it hears of whom); "A2" is A's second message.
"""

import re
from collections import Counter

import pytest

from botchat import prompts
from botchat.cli.main import main
from tests.integration.test_panel_runs import workspace
from tests.openai_server import Server, text
from tests.scripted import accusation

AGENTS = ("Ann", "Ben", "Cleo")
ROUNDS = 3


def one_by_one():
    """Agents take turns; each is given everything said before (the text of Appendix C)."""
    history = []
    for t in range(1, ROUNDS + 1):
        for name in AGENTS:
            yield name, "debate", list(history)
            history.append(f"{name}{t}")


def simultaneous(summarized):
    """All speak, then all are given the buffer, or the summary of it in place of their history."""
    history, buffer = [], []
    for t in range(1, ROUNDS + 1):
        for name in AGENTS:
            yield name, "debate", list(history)
            buffer.append(f"{name}{t}")
        history = list(buffer)
        if summarized:
            yield "Summarizer", "debate_summary", list(buffer)
            history = [f"Summarizer{t}"]


def mateval(reflects, decomposes):
    """Q is decomposed (CoT); each agent has an idea, reflects (SR), is heard; then feedback."""
    if decomposes:
        yield "", "discussion_parts", []
    history = []
    for i in range(1, ROUNDS + 1):
        for name in AGENTS:
            said = f"{name}{i}"
            yield name, "discussion_statement", list(history)
            if reflects:
                said = f"{name}{2 * i}"
                yield name, "discussion_reflection", [*history, f"own {name}{2 * i - 1}"]
            history.append(said)
        yield "", "discussion_feedback", list(history)
        history.append(f"Feedback{i}")
    yield "", "discussion_report", list(history)
    yield "", "discussion_prose", []


def single():
    """SA: one agent evaluates, no discussion."""
    yield "", "discussion_single", []
    yield "", "discussion_prose", []


STRATEGIES = {
    "one-by-one": list(one_by_one()),
    "simultaneous-talk": list(simultaneous(False)),
    "simultaneous-talk-with-summarizer": list(simultaneous(True)),
    "discussion-one-by-one": list(mateval(False, False)),
    "discussion-sr": list(mateval(True, False)),
    "discussion-cot": list(mateval(False, True)),
    "discussion-sr-cot": list(mateval(True, True)),
    "discussion-sa": list(single()),
}


def templates(*names):
    """Name of a prompt -> what matches it filled in, with its places as groups."""
    for name in names:
        parts = re.split(r"\{\{(\w+)\}\}", prompts.text(name))
        seen, pattern = set(), ""
        for i, part in enumerate(parts):
            once = i % 2 and part not in seen
            pattern += f"(?P<{part}>.*?)" if once else ".*?" if i % 2 else re.escape(part)
            seen |= {part} if once else set()
        if name in ("discussion_statement", "discussion_reflection"):  # CoT: of one sub-problem
            last = pattern.rpartition(re.escape("\n"))
            closing = re.escape(prompts.text("discussion_subquestion"))
            pattern = f"{last[0]}{last[1]}(?:{last[2]}|{closing})"
        yield name, re.compile(pattern, re.DOTALL)


TEMPLATES = dict(
    templates(
        *("debate", "debate_summary", "discussion_parts", "discussion_reflection"),
        *("discussion_statement", "discussion_feedback", "discussion_report", "discussion_prose"),
        "discussion_single",  # has places only, so it is tried last
    )
)
_SAID = re.compile(r"\b(Ann|Ben|Cleo|Feedback|Summarizer) says it for time (\d)")


def asked(prompt):
    """Name of the prompt, and what stands in its places."""
    return next((name, m) for name, regex in TEMPLATES.items() if (m := regex.fullmatch(prompt)))


def seen(prompt):
    """A request as the algorithms above tell it."""
    name, places = asked(prompt)
    found = places.groupdict()
    heard = found.get("history") or found.get("chat_history") or found.get("messages") or ""
    said = ["".join(one) for one in _SAID.findall(heard)]
    said += [f"own {who}{n}" for who, n in _SAID.findall(found.get("statement") or "")]
    return found.get("agent_name") or ("Summarizer" if "summary" in name else ""), name, said


def member(counts):
    """Replies in which every speaker says who it is, and how often it has spoken."""

    def reply(call):
        prompt = call.messages[-1]["content"]
        who, name, _ = seen(prompt)
        who = who or ("Feedback" if name == "discussion_feedback" else "")
        if name == "discussion_parts":
            return text("1. Is it long?\n2. Is it formal?\n3. Does it fit?")
        if not who:
            return text(f"A report.\n{accusation('3')}")
        counts[who] += 1
        said = f"{who} says it for time {counts[who]}."
        return text(said if who in ("Feedback", "Summarizer") else f"{said}\n{accusation('3')}")

    return reply


def recorded(folder, strategy):
    """The prompts of one case in the order in which they came."""
    members = ", ".join(f'{{ name = "{n}", text = "You are {n}." }}' for n in AGENTS)
    if strategy == "discussion-sa":
        members, turns = '{ name = "Ann", text = "You are Ann." }', ""
    else:
        turns = f"rounds = {ROUNDS}\n"
    panel = f'[panels.three]\nstrategy = "{strategy}"\n{turns}model = "umpire"\n'
    with Server(member(Counter())) as server:
        workspace(folder, server, f"{panel}agents = [{members}]\n", n_seeds=1)
        judge = ["judge", "unieval", "--seeds", "small", "--model", "bot:parrot"]
        assert main([*judge, "--judge", "three", "--dir", str(folder)]) == 0
        return [call.messages[-1]["content"] for call in server.calls]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_request_is_the_papers(tmp_path, strategy):
    """Who is asked, for what, in which order, hearing what; of those who speak at once any order.

    To think step by step is told in CoT and SR+CoT, with every statement, and nowhere else.
    """
    sent = recorded(tmp_path / "w", strategy)
    found, expected = list(map(seen, sent)), STRATEGIES[strategy]
    if strategy.startswith("simultaneous"):
        per_round = len(expected) // ROUNDS
        assert len(found) == len(expected)
        for start in range(0, len(expected), per_round):
            stop = start + per_round
            assert sorted(found[start:stop]) == sorted(expected[start:stop])
            if "summarizer" in strategy:
                assert found[stop - 1][0] == "Summarizer"
    else:
        assert found == expected
    told = [("step by step" in prompt, seen(prompt)[1]) for prompt in sent]
    steps = {name for step, name in told if step}
    assert steps == ({"discussion_statement"} if strategy.endswith("cot") else set())
    assert strategy.endswith("cot") == any(step for step, _ in told)
