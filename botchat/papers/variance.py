"""``botchat variance``: how far a result moves if it is asked in other words, of another judge.

A result is the mean difference of two contestants, from -1 to 1: how much more often one is
preferred, or, of dialogues judged alone, found free of faults. It is seen on questions (ChatSEEDs)
asked in all ways of a crossed design (`botchat.measures.variance`). Protocols, or files, are
wordings; what stands before ``@`` in the names of judges is a persona where each has each model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from msgspec.structs import astuple, replace

from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.boards.writers import table_files, to_json
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Row, portable, settings_digest
from botchat.judges.single import samples
from botchat.measures.annotations import NOBODY, Annotation, is_person
from botchat.measures.intervals import entries
from botchat.measures.variance import ITEM, ORDER, Crossed, Effect, standard_error
from botchat.papers.requests import Varying
from botchat.pipeline.agree import annotations_of, expenses
from botchat.pipeline.judge import asked as asked_by
from botchat.pipeline.run import ask
from botchat.pipeline.run.contestants import judge_named
from botchat.pipeline.run.read_set import read
from botchat.pipeline.run.session import catalogue_of
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import preferences
from botchat.records import HUMAN, SIGNED, Judgment
from botchat.requests import Judging
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter
from botchat.requests.results import Compared, Plan
from botchat.workspace import files
from botchat.workspace.folder import Workspace

FACETS = (ITEM, "wording", "persona", "judge", ORDER)
MORE = 4
"""One more level of questions is a quarter of them more."""
ONE, BOTH, NOW = "one of each", "one of each, both orders", "as it is"
LEAST = 0.005
"""The least share that is told in words."""

Cells = dict[tuple[str, str], dict[tuple[str, ...], list[float]]]
"""Two contestants -> level of each of `FACETS` -> what each draw says of the first, -1 to 1."""
Worded = tuple[str, Annotation]
"""A wording, and a verdict in it."""


def plan_variance(request: Varying, workspace: Workspace) -> Plan:
    """What `variance` would ask."""
    if not (asked := _asked(request, workspace)):
        raise ConfigError("--plan needs --seeds and judges to ask; name each with --judge")
    return ask.plan_all(asked, workspace)


def variance(
    request: Varying, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Compared:
    """Ask what is missing of the judges that are named, and tell what moves the verdicts there are.

    Raises `ConfigError`: nothing to read, or protocols that are no wordings of one question;
    `MissingError`: no two contestants were judged in all ways on two questions.
    """
    judges: Sequence[str] = request.judges
    if request.seed_set is None and (request.samples != 1 or request.limit is not None):
        raise ConfigError("--samples and --limit are of --seeds; of files leave them out")
    if asked := _asked(request, workspace):
        made = ask.ask_all(asked, workspace, spending, meter)
        judges = list(dict.fromkeys(one.judge for one in made))
    said = [(path.stem, one) for path in request.files for one in annotations_of(path)[0]]
    usd = None
    if request.seed_set is not None:
        of_set, usd = _of_set(request, workspace, judges)
        said += of_set
    elif not said:
        raise ConfigError("variance needs FILE.csv, or --seeds SET --protocol PROTOCOL")
    known = dict.fromkeys(one.judge for _, one in said).keys()
    people = all(is_person(judge, HUMAN) for judge in known)
    wanted = set(judges) or {judge for judge in known if people or not is_person(judge, HUMAN)}
    if unknown := sorted(wanted - known):
        raise MissingError(f"no verdicts of {', '.join(unknown)}; there are: {', '.join(known)}")
    crossed, notes = _crossed(_cells([one for one in said if one[1].judge in wanted]))
    of = "+".join([*request.protocols, *(path.name for path in request.files)])
    data = portable(sorted((wording, *astuple(one)[:5]) for wording, one in said))
    seeds = f"set:{request.seed_set}|" if request.seed_set else ""
    signed = f"{SIGNED}|variance|{seeds}of:{of}|data:{settings_digest(data)}"
    tables, lines = _tables(crossed, usd, signed)
    whole: Row = {one.name: one.records for one in tables}
    whole |= {"notes": [*lines, *notes], "signature": signed}
    out = request.out
    if out is None and request.seed_set is not None:
        out = workspace.out(request.seed_set) / f"variance-{'+'.join(request.protocols)}"
    if out is not None:
        made_of = table_files(tables, request.table_formats)
        files.write_all(out, made_of | {"variance.json": to_json(whole)})
        notes.append(f"written to: {out}")
    return Compared(tables, [*notes, signed], whole, out, lines)


def _protocols(request: Varying, workspace: Workspace) -> list[Protocol]:
    """The wordings, as they are filed."""
    catalogue = catalogue_of(workspace, str(request.seed_set))
    found = [catalogue.find(name) or catalogue.named(name) for name in request.protocols]
    if len({(one.kind, one.shows, one.n) for one in found}) != 1:
        raise ConfigError(
            f"--protocol {', '.join(request.protocols) or 'is missing'}: name one or more as their "
            "folders are (arena-n16) that show the same and are answered alike, a wording each"
        )
    return found


def _asked(request: Varying, workspace: Workspace) -> list[ask.Asked]:
    """Every wording put to every judge that is named."""
    if request.seed_set is None or not request.judges:
        return []
    found = []
    for protocol, judge in product(_protocols(request, workspace), request.judges):
        turns = () if protocol.n is None else (protocol.n,)
        judging = Judging(
            protocol.base, request.seed_set, judge, turns=turns,
            limit=request.limit, samples=request.samples,
        )  # fmt: skip
        found.append(asked_by(judging, workspace))
    return found


def _of_set(
    request: Varying, workspace: Workspace, judges: Iterable[str]
) -> tuple[list[Worded], float | None]:
    """The verdicts of a set, each draw by itself, and the dollars of one, where they are known."""
    seed_set, said = str(request.seed_set), list[Worded]()
    found = read(workspace, seed_set, [judge_named(workspace, seed_set, one) for one in judges])
    cost: list[float | None] = []
    for protocol in _protocols(request, workspace):
        judged = {
            judge: by[protocol.name] for judge, by in found.judged.items() if protocol.name in by
        }
        cost += [row["usd"] for row in expenses(workspace, judged).values()]
        for made in judged.values():
            drawn = [_draws(one) for one in made]
            for n in range(max(map(len, drawn), default=0)):
                told = preferences([one[n] for one in drawn if len(one) > n], protocol)
                said += [(protocol.name, one) for one in told]
    known = [usd for usd in cost if usd is not None]
    return said, sum(known) / len(known) if known and len(known) == len(cost) else None


def _draws(judgment: Judgment) -> list[Judgment]:
    """One for each sample that it was counted from, or itself."""
    drawn = samples(judgment.transcript).items()
    verdicts = [verdict for (_, swapped), given in drawn for verdict in given if not swapped]
    return [replace(judgment, verdict=verdict) for verdict in verdicts] or [judgment]


def _cells(said: Sequence[Worded]) -> Cells:
    """Verdicts by two contestants and how they were asked; unreadable ones are none."""
    split = {one.judge: one.judge.rpartition("@")[::2] for _, one in said}
    personas, models = ({names[i] for names in split.values()} for i in (0, 1))
    if len(personas) < 2 or len(split) != len(personas) * len(models):
        split = {judge: ("", judge) for judge in split}
    found: Cells = {}
    for wording, one in said:
        if one.verdict is None:
            continue
        turned = one.second != NOBODY and one.second < one.first
        pair = (one.second, one.first) if turned else (one.first, one.second)
        at = one.item, wording, *split[one.judge], "" if one.second == NOBODY else f"{1 + turned}"
        value = {"1": 1.0, "2": -1.0}.get(one.verdict, 0.0)
        found.setdefault(pair, {}).setdefault(at, []).append(-value if turned else value)
    alone = sorted(first for first, second in found if second == NOBODY)
    for first, second in combinations(alone, 2):
        mine, others = found[first, NOBODY], found[second, NOBODY]
        both = {at: zip(mine[at], others[at], strict=False) for at in mine if at in others}
        found[first, second] = {at: [(a - b) / 2 for a, b in ab] for at, ab in both.items()}
    return {pair: at for pair, at in found.items() if pair[1] != NOBODY}


def _crossed(cells: Cells) -> tuple[dict[tuple[str, str], Crossed], list[str]]:
    """What was asked in all ways, by two contestants; and what does not count."""
    levels = [sorted({at[i] for by in cells.values() for at in by}) for i in range(1, len(FACETS))]
    draws = max((len(one) for by in cells.values() for one in by.values()), default=0)
    ways, asked, found = [*product(*levels)], 0, {}
    for pair, by in sorted(cells.items()):
        items = sorted({at[0] for at in by})
        whole = [i for i in items if all(len(by.get((i, *way), ())) == draws for way in ways)]
        asked += len(items)
        if len(whole) > 1:
            values = np.array([by[item, *way] for item in whole for way in ways])
            found[pair] = Crossed(FACETS, values.reshape(-1, *map(len, levels), draws))
    if not found:
        there = "; ".join(
            f"{facet}: {', '.join(of[:5])}{f' and {len(of) - 5} more' if len(of) > 5 else ''}"
            for facet, of in zip(FACETS[1:], levels, strict=True) if any(of)
        )  # fmt: skip
        raise MissingError(
            "no two contestants were judged in all ways on two questions; name judges and "
            f"protocols that asked the same; ways: {there or 'no verdict compares two'}"
        )
    left = asked - sum(len(one.values) for one in found.values())
    said = f"{left:,} of {asked:,} questions of two contestants lack a verdict in some way."
    return found, [said] * bool(left)


def _tables(
    crossed: Mapping[tuple[str, str], Crossed], usd: float | None, signed: str
) -> tuple[list[Table], list[str]]:
    """Shares, what to ask next, and every mean difference; and what they say."""
    every = [*crossed.values()]
    parts, means = _mean_of(every), _mean_of([each.means for each in every])
    total, one = sum(parts.values()) or 1.0, every[0]
    last = None if () in parts else tuple(one.sizes)
    shares: list[Row] = [
        {
            "of": "residual" if effect == last else " × ".join(effect) or "draw",
            "share": part / total,
            "variance": part,
            "below": sum(each.components[effect] < 0 for each in every),
            "freedom": one.squares[effect][1],
        }
        for effect, part in sorted(parts.items(), key=lambda of: -of[1])
    ]
    again_only = {of: part for of, part in parts.items() if ITEM in of or not of}
    designs: list[Row] = []
    n = round(np.mean([each.sizes[ITEM] for each in every]))
    for name, (levels, draws) in _designs(one, n).items():
        verdicts = draws * math.prod(levels.values())
        both = levels.get(ORDER) == 2
        now = {**levels, ORDER: 1} if both else levels
        designs.append(
            {
                "design": name,
                "verdicts": verdicts,
                "se": standard_error(means if both else parts, now, draws),
                "se_again": standard_error(again_only, levels, draws),
                "usd": None if usd is None else usd * verdicts,
            }
        )
    differences: list[Row] = []
    for (first, second), each in crossed.items():
        mean, *ends = each.interval()
        anew, again = entries("mean", mean, *ends), entries("again", *each.interval([ITEM]))
        differences.append({"first": first, "second": second, **anew, **again})
    tables = [
        table("variance", "What moves a verdict", _SHARES, shares, [signed],
              f"Mean over {len(every)} pairs of contestants; what has few degrees of freedom is "
              f"rough. {explained(_SHARES)}"),
        table("variance-next", "What to ask next", _DESIGNS, designs, [signed],
              explained(_DESIGNS)).filled(),
        table("variance-means", "Mean differences", _MEANS, differences, [signed],
              explained(_MEANS)),
    ]  # fmt: skip
    return tables, [*_said(shares, designs, one)]


_SHARES = (
    Column("of", "Of", "name"),
    Column("share", "Share", "rate"),
    Column("variance", "Variance", "decimal"),
    Column("below", "Below 0", "count", meaning="pairs in which the estimate is, and counts as 0"),
    Column("freedom", "Degrees of freedom", "count"),
)
_DESIGNS = (
    Column("design", "Design", "name"),
    Column("verdicts", "Verdicts a pair", "count"),
    Column("se", "Standard error", "decimal", meaning="of a mean difference, -1 to 1, if all were "
           "drawn anew; with both orders from the means of both"),
    Column("se_again", "Questions alone", "decimal", meaning="the same if other questions were "
           "asked in these ways"),
    Column("usd", "USD a pair", "exact"),
)  # fmt: skip
_MEANS = (
    Column("first", "First", "name"),
    Column("second", "Second", "name"),
    *with_interval(Column("mean", "Difference", "decimal", meaning="with the interval for other "
                          "levels of all that was crossed")),
    *with_interval(Column("again", "Questions alone", "decimal", meaning="with that for other "
                          "questions asked in these ways")),
)  # fmt: skip


def _mean_of(every: Sequence[Crossed]) -> dict[Effect, float]:
    """Components, those below 0 as 0, in the mean over pairs of contestants."""
    effects = every[0].components
    return {of: float(np.mean([max(0.0, one.components[of]) for one in every])) for of in effects}


def _designs(one: Crossed, n: int) -> dict[str, tuple[dict[str, int], int]]:
    """What a result of ``n`` questions may be asked in: in words -> levels, draws."""
    draws, now = one.values.shape[-1], {**one.sizes, ITEM: n}
    found = {ONE: ({ITEM: n}, 1)}
    if ORDER in now:
        found[BOTH] = ({ITEM: n, ORDER: 2}, 1)
    found[NOW] = (now, draws)
    for facet, levels in now.items():
        more = levels + (max(1, levels // MORE) if facet == ITEM else 1)
        if facet != ORDER:
            found[f"{facet}: {more} for {levels}"] = ({**now, facet: more}, draws)
    return found


def _said(shares: Sequence[Row], designs: Sequence[Row], one: Crossed) -> Iterator[str]:
    """What a reader takes away, a sentence each."""
    told = [f"{row['of']} {100 * row['share']:.1f} %" for row in shares if row["share"] >= LEAST]
    yield f"What moves a verdict: {', '.join(told)}."
    by = {row["design"]: row for row in designs}
    first, now = by.pop(ONE), by.pop(NOW)
    two = by.pop(BOTH, None)
    both = f"; in both orders {two['se']:.3f} and {two['se_again']:.3f}" if two else ""
    yield (
        "With one of each, a mean difference has a standard error of "
        f"{first['se']:.3f}, not {first['se_again']:.3f} as other questions alone would show{both}."
    )
    best = max(
        by.values(), key=lambda row: (now["se"] - row["se"]) / (row["verdicts"] - now["verdicts"])
    )
    yield (
        f"{NOW.capitalize()} {now['se']:.3f}; best next: {best['design']}, {best['se']:.3f} for "
        f"{100 * (best['verdicts'] / now['verdicts'] - 1):.0f} % more verdicts."
    )
    if unseen := [facet for facet in FACETS if facet not in one.sizes]:
        yield f"Not seen, and in no interval: {', '.join(unseen)}."
