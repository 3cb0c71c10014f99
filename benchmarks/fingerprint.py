"""How well machines are told from people by form, on people's public talks with machines.

    OPENBLAS_NUM_THREADS=1 python benchmarks/fingerprint.py PLACE [GENERATIONS SEEDS]

PLACE: of `botchat.papers.turing_files`. Of a machine nothing is
fitted on that it is tried on: Spot The Bot's bots are left out one by one, and where one of two
speakers is to be named, whole sources are. GENERATIONS and SEEDS: a folder and a file of a
workspace, whose models are told from its people as a board does it. Prints numbers only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from botchat.measures import references
from botchat.measures.fingerprint import FOLDS, auc, forms, lineup
from botchat.measures.intervals import of_share
from botchat.papers.turing_files import Chat, read
from botchat.papers.turing_form import ALONE, OTHERS, fingerprints, mean_words, which_of_two
from botchat.papers.turing_sources import accusations
from botchat.records import HUMAN, Dialogue, Seed
from botchat.verdicts import Floats

DOMAINS = {"spotbot-convai2": 10, "spotbot-dailydialog": 10, "spotbot-empathetic": 4}
"""Domain of Spot The Bot -> utterances after which people judged."""
PAIRS = ("dstc9", "convai2017", "convai2018", "ji2022", "fed", "abceval")
LABELS, DRAWS = 30, 300


def said(name: str, figure: Any) -> None:
    """One AUC with its interval."""
    low, high = figure.interval
    print(f"{name:44} {figure.values[0]:.3f} [{low:.3f}-{high:.3f}]")


def spot_the_bot(talks: Mapping[str, Sequence[Chat]]) -> None:
    """Bots left out, people alone, labels shuffled, and as people judge, by domain."""
    for domain, end in DOMAINS.items():
        some = [one.cut(end) for one in talks[domain]]
        machine = np.array([bool(one.machines) for one in some])
        print(f"{domain}: {(~machine).sum()} of people, {machine.sum()} of bots")
        scores, fold = fingerprints(some), np.arange(len(some)) % FOLDS
        for name in (OTHERS, ALONE):
            said(f"  {name}", _auc(scores[name], machine, fold))
        shuffled = []
        for seed in range(10):
            drawn = ~np.random.default_rng(seed).permutation(~machine)
            found = _auc(fingerprints(some, seed)[OTHERS], drawn, fold)
            shuffled.append(found.values[0])
        print(f"  labels shuffled, mean of 10 {np.mean(shuffled):.3f}")
        _as_people(some, scores[OTHERS])


def _auc(scores: Floats, machine: Any, fold: Any) -> Any:
    return auc(np.where(machine, scores, np.nan), np.where(machine, np.nan, scores), fold)


def _as_people(talks: Sequence[Chat], scores: Floats) -> None:
    """Width with the fingerprint as judge over the width of people's labels alone, and coverage.

    Of each system by itself, which it grades no better than chance; and of all talks together.
    """
    accused = np.array([np.mean(of) if (of := accusations(one)) else np.nan for one in talks])
    ranks = scores.argsort().argsort() / (len(scores) - 1)
    known, names = ~np.isnan(accused), sorted({name for one in talks for name in one.machines})
    systems = [np.array([bot in one.machines for one in talks]) & known for bot in names]
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


def two(talks: Mapping[str, Sequence[Chat]]) -> None:
    """Name the machine of two speakers; sources left out, and length alone beside it."""
    some = {name: [one for one in talks[name] if len(one.machines) == 1] for name in PAIRS}
    for source, scores in which_of_two(some).items():
        low, high = of_share((scores > 0).sum(), len(scores))
        longer = [_words(one, False) > _words(one, True) for one in some[source]]
        mean = (scores > 0).mean()
        print(f"{source:12} {mean:.3f} [{low:.3f}-{high:.3f}], longer one {np.mean(longer):.3f}")


def _words(talk: Chat, human: bool) -> float:
    said = zip(talk.speakers, talk.utterances, strict=True)
    return mean_words([text for by, text in said if (talk.who[by] == HUMAN) == human])


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


def main(place: Path, rest: Sequence[Path]) -> None:
    """Print all of it."""
    talks = read(place)
    spot_the_bot(talks)
    two(talks)
    if rest:
        workspace(*rest)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", type=Path, help="of `botchat.papers.turing_files`")
    parser.add_argument("rest", type=Path, nargs="*", help="generations and seeds of a set")
    main(**vars(parser.parse_args()))
