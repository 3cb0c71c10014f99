"""How well machines are told from people by form, on people's public talks with machines.

    OPENBLAS_NUM_THREADS=1 python benchmarks/fingerprint.py PLACE [GENERATIONS SEEDS]

PLACE has a folder a source with ``*.jsonl.gz`` in a plain form: ``source``, ``id``, ``turns`` as
[[speaker, text], …], ``who`` {speaker: "human" or the machine}, ``labels``. Of a machine nothing is
fitted on that it is tried on: Spot The Bot's bots are left out one by one, and where one of two
speakers is to be named, whole sources are. GENERATIONS and SEEDS: a folder and a file of a
workspace, whose models are told from its people as a board does it. Prints numbers only.
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from botchat.measures import references
from botchat.measures.fingerprint import (
    FOLDS,
    RIDGE,
    auc,
    distance,
    forms,
    lineup,
    tell,
)
from botchat.measures.form import NAMES, Form, form, matrix, usual
from botchat.measures.intervals import of_share
from botchat.records import HUMAN, Dialogue, Seed
from botchat.verdicts import Flags, Floats

DOMAINS = {"spotbot-convai2": 10, "spotbot-dailydialog": 10, "spotbot-empathetic": 4}
"""Domain of Spot The Bot -> utterances after which people judged."""
PAIRS = ("dstc9", "convai2017", "convai2018", "ji2022", "fed", "abc-eval")
LABELS, DRAWS = 30, 300

Talk = Mapping[str, Any]


def read(place: Path, source: str) -> list[Talk]:
    """The dialogues of a source."""
    found: list[Talk] = []
    for path in sorted((place / source).glob("*.jsonl.gz")):
        with gzip.open(path, "rb") as lines:
            found += [msgspec.json.decode(line) for line in lines]
    return found


def form_of(talk: Talk, end: int | None = None, of: set[int] | None = None) -> Form:
    """Of a talk cut to ``end`` utterances, or of one of its speakers."""
    turns = talk["turns"][:end]
    return form([text for _, text in turns], speakers=[who for who, _ in turns], of=of)


def bots(talk: Talk) -> set[str]:
    """Machines that take part."""
    return {*talk["who"].values()} - {HUMAN}


def left_out(numbers: Floats, who: Sequence[set[str]], human: Flags, bot: str) -> Any:
    """Scores of a bot's talks and of people's, fitted without the bot and without their fold."""
    has, fold = np.array([bot in one for one in who]), np.arange(len(who)) % FOLDS
    scores = np.full(len(who), np.nan)
    for k in range(FOLDS):
        fitted = (fold != k) & ~has
        telling = tell(numbers[fitted], ~human[fitted])
        scores[fold == k] = telling.scores(numbers[fold == k])
    return scores, has, fold


def said(name: str, figure: Any) -> None:
    """One AUC with its interval."""
    low, high = figure.interval
    print(f"{name:44} {figure.values[0]:.3f} [{low:.3f}-{high:.3f}]")


def spot_the_bot(place: Path) -> None:
    """Bots left out, people alone, labels shuffled, and as people judge, by domain."""
    talks = read(place, "spot-the-bot")
    for domain, end in DOMAINS.items():
        some = [talk for talk in talks if talk["source"] == domain]
        read_, who = [form_of(talk, end) for talk in some], [bots(talk) for talk in some]
        human = np.array([not one for one in who])
        numbers = matrix(read_, *usual([f for f, h in zip(read_, human, strict=True) if h]))
        by_bot = {bot: left_out(numbers, who, human, bot) for bot in sorted(set().union(*who))}
        single = {bot: _auc(s, has, human, fold) for bot, (s, has, fold) in by_bot.items()}
        print(f"{domain}: {human.sum()} of people, {(~human).sum()} of bots;", end=" ")
        print(", ".join(f"{bot} {one.values[0]:.2f}" for bot, one in single.items()))
        print(f"  mean over bots {np.mean([one.values[0] for one in single.values()]):.3f}")
        mean = np.mean([s for s, _, _ in by_bot.values()], axis=0)
        own = np.array(
            [np.mean([by_bot[b][0][at] for b in one]) if one else mean[at]
             for at, one in enumerate(who)]
        )  # fmt: skip
        fold = np.arange(len(who)) % FOLDS
        said("  bots left out, a talk once", _auc(own, ~human, human, fold))
        said("  people alone", _auc(_alone(numbers, human, fold), ~human, human, fold))
        shuffled = [_shuffled(numbers, human, fold, seed) for seed in range(10)]
        print(f"  labels shuffled, mean of 10 {np.mean(shuffled):.3f}")
        alone = _alone(numbers, human, fold)
        _as_people(some, np.column_stack([_ranks(own), _ranks(alone), ~human]), who, end)


def _auc(scores: Floats, machine: Flags, human: Flags, fold: Any) -> Any:
    return auc(np.where(machine, scores, np.nan), np.where(human, scores, np.nan), fold)


def _alone(numbers: Floats, human: Flags, fold: Any) -> Floats:
    scores, form_only = np.zeros(len(numbers)), numbers[:, : len(NAMES)]
    for k in range(FOLDS):
        fitted = distance(form_only[human & (fold != k)])
        scores[fold == k] = fitted.scores(form_only[fold == k])
    return scores


def _shuffled(numbers: Floats, human: Flags, fold: Any, seed: int) -> float:
    drawn = np.random.default_rng(seed).permutation(human)
    scores = np.zeros(len(numbers))
    for k in range(FOLDS):
        scores[fold == k] = tell(numbers[fold != k], ~drawn[fold != k]).scores(numbers[fold == k])
    return float(_auc(scores, ~drawn, drawn, fold).values[0])


def _ranks(scores: Floats) -> Floats:
    return scores.argsort().argsort() / (len(scores) - 1)


def _as_people(talks: Sequence[Talk], judged: Floats, who: Sequence[set[str]], end: int) -> None:
    """Width with the fingerprint as judge over the width of people's labels alone, and coverage.

    Of each system by itself, which it grades no better than chance; and of all talks together.
    ``judged``: fitted on others, on people alone, and the truth, which is as good as can be;
    (talks, 3).
    """
    accused = np.array([_accused(talk, end) for talk in talks])
    ranks, known = judged[:, 0], ~np.isnan(accused)
    fit = np.column_stack([judged[known, :2], np.ones(known.sum())])
    left = accused[known] - fit @ np.linalg.lstsq(fit, accused[known], rcond=None)[0]
    found = _width(accused[known], judged[known, 2])[:, 0].mean()
    print(
        f"  R2 of both with people's labels {1 - left.var() / accused[known].var():.2f};", end=" "
    )
    print(f"width if the truth judged {found:.2f}")
    systems = [np.array([bot in one for one in who]) & known for bot in sorted(set().union(*who))]
    for name, some in ("by system", systems), ("all together", [known]):
        tried = [_width(accused[there], ranks[there]) for there in some if there.sum() > LABELS]
        width, covers = np.mean(np.concatenate(tried), axis=0) if tried else (np.nan, np.nan)
        print(f"  as people judge, {name}: width {width:.3f}, covers {covers:.3f}")


def _width(truth: Floats, judged: Floats) -> Floats:
    """Relative width, and whether the mean is covered, of each draw of labels; (draws, 2)."""
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        known = np.full(len(truth), np.nan)
        drawn = rng.choice(len(truth), LABELS, replace=False)
        known[drawn] = truth[drawn]
        with_judge = references.mean(judged, known)
        alone = references.mean(judged, known, power=0.0)
        width = (with_judge.high - with_judge.low) / (alone.high - alone.low)
        found.append((width, with_judge.low <= truth.mean() <= with_judge.high))
    return np.array(found, np.float64)


def _accused(talk: Talk, end: int) -> float:
    """Share of raters who call a speaker a machine; nan without a rater."""
    votes = [v["human"] for v in talk["labels"].get("verdicts", ()) if v["after"] == end]
    return float(np.mean([False in one for one in votes])) if votes else float("nan")


def which_of_two(place: Path) -> None:
    """Name the machine of two speakers; sources left out, and length alone beside it."""
    talks = {s: [t for t in read(place, s) if len(bots(t)) == 1] for s in PAIRS}
    by = {s: [_sides(talk) for talk in of] for s, of in talks.items()}
    words = usual([one for sides in by.values() for pair in sides for one in pair])
    apart = {
        s: matrix([m for m, _ in pairs], *words) - matrix([h for _, h in pairs], *words)
        for s, pairs in by.items()
    }
    for source, numbers in apart.items():
        others = np.concatenate([of for s, of in apart.items() if s != source])
        both = np.concatenate([others, -others])
        telling = tell(both, np.arange(len(both)) < len(others), RIDGE)
        hit = telling.scores(numbers) > 0
        low, high = of_share(hit.sum(), len(hit))
        length = np.mean(numbers[:, 0] > 0)
        print(f"{source:12} {hit.mean():.3f} [{low:.3f}-{high:.3f}], longer one {length:.3f}")


def _sides(talk: Talk) -> tuple[Form, Form]:
    """The machine's form, and the person's."""
    machine = next(int(key) for key, who in talk["who"].items() if who != HUMAN)
    person = next(int(key) for key, who in talk["who"].items() if who == HUMAN)
    return form_of(talk, None, {machine}), form_of(talk, None, {person})


def workspace(folder: Path, seeds_file: Path) -> None:
    """A set's models, as a board tells them from its people."""
    seeds = [msgspec.json.decode(line, type=Seed) for line in seeds_file.open("rb")]
    made: dict[str, dict[str, Dialogue]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.open("rb"):
            one = msgspec.json.decode(line, type=Dialogue)
            made.setdefault(one.contestant, {})[one.seed_id] = one
    start = time.process_time()
    found = lineup(forms(seeds, made))
    print(f"{len(made)} models, {found.people} people: {time.process_time() - start:.1f} s of CPU")
    if found.halves:
        said("people's halves", found.halves)
    print(found.refused)
    for name, model in found.models.items():
        if model.told:
            said(f"{name}, fitted on others", model.told)
        said(f"{name}, on people alone", model.alone)
        print("   ", "; ".join(map(str, model.giveaways)))


def main(places: Iterable[str]) -> None:
    """Print all of it."""
    place, *rest = map(Path, places)
    spot_the_bot(place)
    which_of_two(place)
    if rest:
        workspace(*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
