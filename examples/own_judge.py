"""A judge in Python: an async function from a case to the text of a reply, in the form asked for.

Run it in an empty folder: ``python own_judge.py``. It needs no model and no key.
"""

import botchat
from botchat.interfaces import Case


async def longest(case: Case) -> str:
    """Take the dialogue with the longest utterance for the AI's."""
    first, second = (max(map(len, dialogue.utterances)) for dialogue in case.dialogues)
    if first == second:
        return "Choice: Neither; Reason: equally long"
    return f"Choice: Conversation {1 if first > second else 2}; Reason: a longer utterance"


def main() -> None:
    """Judge two bots on the bundled sample, and rank them."""
    workspace = botchat.Workspace("own-judge")
    botchat.generate(
        workspace=workspace, seeds="sample", model=["bot:parrot", "bot:verbose"], turns=8
    )
    botchat.judge("arena", workspace=workspace, seeds="sample", judge=longest, turns=[8])
    board = botchat.leaderboard(workspace=workspace, seeds="sample", judge=longest)
    print(*board.lines, sep="\n")


if __name__ == "__main__":
    main()
