"""How often rates "as people judge" hold on people's real labels, as `leaderboard` gives them.

    python benchmarks/coverage_exam.py PLACE [DRAWS] [PART_OF_A_NAME]

PLACE: a folder with Spot The Bot (`botchat.papers.turing_files`). Of each domain a set is made, a
bot a contestant with the chats it took part in, judged by ``rules``. In each draw 30 chats of every
bot get the verdict of one rater, drawn at random, as a person's label; the board is made as the
command makes it, and its interval of the success rate holds, or does not, what all raters say of
all chats. Prints numbers only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from botchat.boards import references
from botchat.cli.main import main as botchat
from botchat.papers.turing_files import Chat, read
from botchat.papers.turing_sources import SOURCES, accusations
from botchat.pipeline.run import read_set
from botchat.records import Dialogue, Seed
from botchat.workspace import files
from botchat.workspace.folder import Workspace, judgment_order

LABELS, DRAWS = 30, 300


def domain(name: str, talks: Sequence[Chat], draws: int) -> None:
    """Coverage of each bot's interval."""
    end = SOURCES[name].end
    assert end is not None
    chats = [one.cut(end) for one in talks if one.machines]
    chats = [one for one in chats if accusations(one)]
    bots = sorted({bot for one in chats for bot in one.machines})
    of = {bot: [one for one in chats if bot in one.machines] for bot in bots}
    of = {bot: some for bot, some in of.items() if len(some) > LABELS}
    with TemporaryDirectory() as place:
        workspace = Workspace(Path(place))
        seeds = [Seed(one.id, one.utterances) for one in chats]
        files.finish(workspace.seeds_path(name), seeds, lambda one: one.id)
        for bot, some in of.items():
            made = [Dialogue(o.id, bot, o.utterances, 2, (), "complete", "made") for o in some]
            files.finish(workspace.dialogues_path(name, bot), made, lambda one: one.seed_id)
        judged = botchat(["--dir", place, "judge", "unieval", "--seeds", name, "--judge", "rules"])
        assert judged == 0
        made_by = workspace.judgments(workspace.judgments_path(name, "unieval", "rules"))
        rng = np.random.default_rng(0)
        truth = {bot: np.mean([1 - np.mean(accusations(o)) for o in some])
                 for bot, some in of.items()}  # fmt: skip
        held, width = ({bot: [] for bot in of} for _ in range(2))
        once = None
        for _ in range(draws):
            labels = []
            for bot, some in of.items():
                for at in rng.choice(len(some), LABELS, replace=False):
                    accuses = rng.choice(accusations(some[at]))
                    base = made_by[some[at].id, (bot,)]
                    labels.append(msgspec.structs.replace(
                        base, judge="human", verdict="3" if accuses else "No", reason="",
                        signature=base.signature.replace("judge:rules", "judge:human"),
                    ))  # fmt: skip
            path = workspace.judgments_path(name, "unieval", "human")
            files.finish(path, labels, judgment_order)
            if once is None:  # what the command shows, and from then on what it is made by
                once = read_set.read(workspace, name, ["rules"], for_boards=True)
                shown = once.board("rules")
            given = references.cases(
                shown.evidence, {"unieval": labels}, once.seeds, once.dialogues
            )
            (table,) = references.as_people(given, "rules")
            if not width[bots[-1]]:
                assert table.records == shown.as_people[0].records
            for row in (row for row in table.records if row["model"] in of):
                low, high = row["people_low"], row["people_high"]
                held[row["model"]].append(low <= truth[row["model"]] <= high)
                width[row["model"]].append(high - low)
    for bot in of:
        print(f"{name:22} {bot:22} {len(of[bot]):4} chats, says {truth[bot]:.3f}, covers "
              f"{np.mean(held[bot]):.3f}, width {np.mean(width[bot]):.3f}")  # fmt: skip


def main(place: Path, draws: int, part: str) -> None:
    """Every domain, or those whose name has a part."""
    for name, talks in read(place).items():
        if name.startswith("spotbot") and part in name:
            domain(name, talks, draws)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", type=Path, help="a folder with Spot The Bot")
    parser.add_argument("draws", type=int, nargs="?", default=DRAWS)
    parser.add_argument("part", nargs="?", default="spotbot", help="of a domain's name")
    main(**vars(parser.parse_args()))
