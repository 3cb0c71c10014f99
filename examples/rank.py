"""Rank models by your own votes: who won each comparison, whoever judged it.

Run it in an empty folder: ``python rank.py``. Other forms of votes: docs/rank.md.
"""

from pathlib import Path

import botchat

VOTES = """item,model_a,model_b,winner
q1,north,south,model_a
q1,south,west,model_a
q1,north,west,tie
q2,north,south,model_a
q2,south,west,model_b
q2,north,west,model_a
q3,north,south,model_b
q3,south,west,model_a
q3,north,west,model_a
"""


def main() -> None:
    """Write the votes, rank the models, and show ratings with their 95 % intervals."""
    path = Path("votes.csv")
    path.write_text(VOTES, encoding="utf-8")
    board = botchat.rank(path)
    print(board.frame[["rank", "model", "bt", "bt_low", "bt_high"]].round().to_string(index=False))
    print(*board.lines, sep="\n")


if __name__ == "__main__":
    main()
