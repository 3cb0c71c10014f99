"""Figures for a paper: all of a board as PDF, and one of them changed with matplotlib.

Run it in an empty folder: ``python figures.py``. Two bots stand for your models.
"""

from pathlib import Path

import botchat


def main() -> None:
    """Generate, judge and draw."""
    workspace = botchat.Workspace("figures")
    botchat.generate(
        workspace=workspace, seeds="sample", model=["bot:parrot", "bot:retrieval"], limit=10
    )
    for protocol in ("unieval", "arena", "gteval"):
        botchat.judge(protocol, workspace=workspace, seeds="sample", judge="rules", limit=10)
    paths = botchat.figure(
        workspace=workspace, seeds="sample", format="pdf", size="3.3", out=Path("pdf")
    )
    print(*paths.lines, sep="\n")
    curve = botchat.plot("success-curve", seeds="sample", size=(3.3, 2.2), workspace=workspace)
    curve.axes[0].set_title("Dialogues that pass for human")
    curve.savefig("success-curve.png", dpi=300)


if __name__ == "__main__":
    main()
