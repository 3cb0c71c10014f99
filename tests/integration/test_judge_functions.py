"""Whatever can be called with a case is a judge; what cannot, or fails, is one line."""

import html
import inspect
import threading
from functools import partial
from pathlib import Path

import pytest

import botchat
from botchat.errors import BotChatError, ConfigError, FatalModelError, MissingDataError
from botchat.interfaces import settings_digest
from botchat.judges.function import JudgeFunction
from tests.processes import Started
from tests.rows import rows

TEXT = "Choice: No\nIndex: None\nReason: natural."


async def asynchronous(case):
    """A coroutine."""
    return TEXT


def plain(case):
    """A plain function."""
    return TEXT


def later(case):
    """A plain function that gives a coroutine."""
    return asynchronous(case)


def says(text, case):
    """A function of two arguments, for a partial."""
    return text


class Grader:
    """An object, called or asked by a method."""

    def __init__(self, text=TEXT):
        self.text = text

    def __len__(self):
        """Nothing: an empty object is a judge, too."""
        return 0

    def __call__(self, case):
        """The text."""
        return self.text

    def grade(self, case):
        """Likewise."""
        return self.text


# A name as a <lambda>'s, of an object that has none of its own and counts as nothing.
MARKED = type("<Grader>", (Grader,), {})()


class AsyncGrader:
    """An object whose call is a coroutine."""

    async def __call__(self, case):
        """The text, later."""
        return TEXT


def typed_in(source):
    """The function ``judge`` of a source on no disk, as at a console."""
    names = {"__name__": "console"}
    exec(source, names)
    return names["judge"]


JUDGES = {
    "asynchronous": asynchronous,
    "plain": plain,
    "says": partial(says, TEXT),
    "Grader": Grader(),
    "grade": Grader().grade,
    "AsyncGrader": AsyncGrader(),
    "<lambda>": lambda case: TEXT,
    "later": later,
    "typed": typed_in("async def typed(case): return 'Choice: No'\njudge = typed"),
    "broken": typed_in("def broken(case): return 'Choice: No \\ud800'\njudge = broken"),
}
"""Name of a judge -> the judge."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workspace with two dialogues."""
    folder = tmp_path_factory.mktemp("judged")
    botchat.generate(seeds="sample", model="bot:parrot", limit=2, workspace=folder)
    return folder


@pytest.mark.parametrize("name", JUDGES)
def test_whatever_can_be_called_with_a_case_is_a_judge(name, folder):
    """In `judge` and in `run`, which says its name; asked once, as its digest stays."""
    wanted = {"seeds": "sample", "judge": JUDGES[name], "limit": 1, "workspace": folder}
    for new in (2, 0):
        (row,) = botchat.judge("unieval", model=["bot:parrot", "human"], **wanted).rows
        assert (row["judge"], row["cases"], row["new"], row["unreadable"]) == (name, 2, new, 0)
    ran = botchat.run(model="bot:parrot", protocol="unieval", **wanted)
    assert [row["new"] for row in ran.data["judged"]] == [0]
    assert ran.data["judge"]["name"] == name


@pytest.mark.parametrize("name", ["says", "<Grader>"])
def test_a_function_names_its_verdicts(name, folder, tmp_path):
    """In `leaderboard`, `figure`, `agree`, `rank`, `plot` and the board of a run that is read."""
    judge, more = {**JUDGES, "<Grader>": MARKED}[name], {"seeds": "sample", "workspace": folder}
    for each in (judge, JUDGES["plain"]):
        botchat.judge("unieval", judge=each, limit=2, **more)
    assert botchat.leaderboard(judge=judge, **more).data["judge"]["name"] == name
    both = botchat.leaderboard(judge=[JUDGES["plain"], judge], **more)
    assert both.data["judge"]["name"] == "plain"
    page = Path(both.data["page"]).read_text("utf-8")
    assert f'Also judged by <a href="judge-2.html"><bdi>{html.escape(name)}</bdi>' in page
    assert botchat.figure("lengths", judge=judge, **more).rows
    agreed = botchat.agree(judge=[judge, JUDGES["plain"]], protocol="unieval", **more)
    assert {row["judge"] for row in agreed.data["judges"]} == {name, "plain"}
    place = botchat.Workspace(folder)
    assert botchat.plot("lengths", seeds="sample", judge=judge, workspace=place.root).axes
    assert botchat.read(place.root, "sample").board(judge).judge == name
    votes = tmp_path / "votes.csv"
    votes.write_text("item,first,second,judge,verdict\n1,a,b,somebody,first\n")
    with pytest.raises(MissingDataError, match=f"no votes of the judge '{name}'"):
        botchat.rank(votes, judge=judge, workspace=folder)


@pytest.mark.parametrize("name", ["says", "Grader"])
def test_a_model_beside_a_function_is_refused(name, folder):
    """In one line; the model of [run] is for panels and stays out of it."""
    more = {"seeds": "sample", "judge": JUDGES[name], "limit": 1, "workspace": folder}
    asks = [partial(botchat.judge, "unieval"), partial(botchat.run, model="bot:parrot")]
    for ask in asks:
        with pytest.raises(ConfigError) as caught:
            ask(judge_model="gpt", **more)
        assert str(caught.value) == (
            f"--judge-model gpt: the judge {name} is a function and asks no model of ours; leave "
            "it out"
        )
    settings = folder / "botchat.toml"
    settings.write_text('[run]\njudge_model = "gpt"\nprotocols = ["unieval"]\n')
    for ask in asks:
        ask(**more)
    settings.unlink()


def test_run_says_the_name_of_a_function(folder, capsys):
    """Not its place in memory."""
    more = {"seeds": "sample", "limit": 1, "workspace": folder, "protocol": "unieval"}
    botchat.run(model="bot:verbose", judge=JUDGES["says"], **more)
    assert "judge says" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (lambda: TEXT, "the judge function <lambda> cannot be called with a case alone: too many"),
        (says, "function says cannot be called with a case alone: missing a required arg"),
        (lambda case, *, mode: TEXT, "cannot be called with a case alone: missing a required"),
        (partial(plain, None), "function plain cannot be called with a case alone: too many"),
        (3, "the judge '3' is neither a name nor a function; give the name of a judge, or"),
        (["rules"], "is neither a name nor a function"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_the_door(judge, message, folder):
    """Before anything is generated or judged."""
    more = {"seeds": "sample", "judge": judge, "workspace": folder}
    before = sorted(folder.rglob("*"))
    for ask in (partial(botchat.judge, "unieval"), partial(botchat.run, model="bot:verbose")):
        with pytest.raises(ConfigError) as caught:
            ask(**more)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    assert sorted(folder.rglob("*")) == before


def fails(case):
    """Raise, in two lines."""
    raise ValueError("no\nluck")


async def fails_later(case):
    """Raise what no other task may see."""
    raise KeyError("x")


def stops(case):
    """Raise what no future can hold."""
    return next(iter(()))


async def yields(case):
    """Be a generator."""
    yield TEXT


WHERE = "test_judge_functions.py, line"


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (fails, f"fails failed on sample-1 (bot:parrot): ValueError: no luck ({WHERE}"),
        (fails_later, f"fails_later failed on sample-1 (bot:parrot): KeyError: 'x' ({WHERE}"),
        (stops, f"stops failed on sample-1 (bot:parrot): StopIteration: ({WHERE}"),
        (yields, "yields returned no text but async_generator"),
        (lambda case: None, "<lambda> returned no text but NoneType None; return the text of a"),
        (lambda case: 7, "<lambda> returned no text but int 7"),
        (lambda case: b"Choice: No", "<lambda> returned no text but bytes b'Choice: No'"),
        (Grader, "Grader returned no text but Grader"),
        (len, "len failed on sample-1 (bot:parrot): TypeError: object of type 'Case' has no len"),
    ],
)
def test_a_function_that_fails_is_one_line_that_names_it(judge, message, folder):
    """In `judge` and in `run`; nothing is stored of the case."""
    more = {"seeds": "sample", "judge": judge, "limit": 1, "workspace": folder}
    for ask in (
        partial(botchat.judge, "unieval", model="bot:parrot"),
        partial(botchat.run, model="bot:parrot", protocol="unieval"),
    ):
        with pytest.raises(BotChatError) as caught:
            ask(**more)
        assert f"the judge function {message}" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert isinstance(caught.value, FatalModelError)


def test_a_plain_function_is_called_for_one_case_at_a_time(folder):
    """Also where two protocols ask it; it need not be made for threads."""
    inside = []
    overlaps = []
    here = threading.current_thread()

    def slow(case):
        inside.append(case)
        overlaps.append(len(inside) > 1 or threading.current_thread() is here)
        inside.remove(case)
        return "Choice: Both"

    more = {"seeds": "sample", "workspace": folder, "judge": slow}
    botchat.generate(seeds="sample", model="bot:verbose", limit=2, workspace=folder)
    botchat.judge("arena", turns=[4, 8, 16], **more)
    assert overlaps == [False] * 12


# The digest says when to ask again.


@pytest.mark.parametrize("judge", [asynchronous, plain, Grader().grade, JUDGES["<lambda>"]])
def test_a_function_in_a_file_has_the_digest_of_its_source(judge):
    """Judgments that were stored stay as they are."""
    assert JudgeFunction(judge).digest == settings_digest(inspect.getsource(judge))


CHANGES = rows("changes_of_a_judge")
"""Sources that define ``judge``, and the same with one change."""


def test_without_a_source_the_digest_changes_with_the_code_alone():
    """Of a function at a console, an object and a partial; in every process it is the same."""
    changed = [[JudgeFunction(typed_in(code)).digest for code in pair] for pair in CHANGES]
    assert [n for n, (before, after) in enumerate(changed) if before == after] == []
    show = "from tests.integration.test_judge_functions import CHANGES, JudgeFunction, typed_in\n"
    show += "for pair in CHANGES: print(*(JudgeFunction(typed_in(code)).digest for code in pair))"
    said = Started(["--version"], before=show).communicate()[0]  # of another hash seed
    assert [line.split() for line in said.splitlines()[:-1]] == changed


def test_an_object_that_changes_while_it_judges_is_the_judge_it_was(folder):
    """A counter or a cache makes no other judge of it: the digest is of when it was named."""

    class Counting(Grader):
        n = 0

        def __call__(self, case):
            self.n += 1
            return self.text

    more = {"seeds": "sample", "workspace": folder, "model": "bot:parrot", "limit": 2}
    for n in (1, 2):
        more["limit"] = n
        assert botchat.judge("unieval", judge=Counting(), **more).rows[0]["new"] == 1
