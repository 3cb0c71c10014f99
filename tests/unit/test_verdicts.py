"""The reader of verdicts: hard replies in four languages, and what may not change a verdict."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from botchat import languages
from botchat.papers.chateval import ASPECTS
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.protocols.items import ANSWERS
from botchat.protocols.kinds import Score
from botchat.protocols.mateval import MATEVAL
from botchat.protocols.replies import TEMPLATES, reply_patterns
from botchat.protocols.scores import Scale, _patterns
from botchat.protocols.verdicts import choice_reader
from tests.rows import rows

DATA = Path(__file__).resolve().parents[1] / "data"
PACKS = {
    "en": languages.ENGLISH,
    **{code: languages.built_in()[code] for code in ("zh", "es")},
    "de": languages.load(DATA / "languages" / "de", "de"),
}
ASKED = {protocol.name: protocol for protocol in (ARENA, UNIEVAL, ANSWERS, MATEVAL)}
ASKED["naturalness"] = ASPECTS["naturalness"]
ASKED["empathy"] = replace(ASPECTS["naturalness"], answer=Score(Scale(1, 10, ("Empathy",))))
OUTCOMES = ("right", "missed", "wrong")
MOST_MISSED = 14  # eight of them in letters of the judge's own
OPPOSITE = [
    ("arena", "first", "second"),
    ("arena", "both", "neither"),
    ("unieval", "accused", "cleared"),
    ("mateval", "accused", "cleared"),
    ("answers", "first", "second"),
]


def reading(language, protocol):
    """How replies are read, about 12 utterances."""
    return ASKED[protocol].spoken(PACKS[language]).reading(("x",) * 12)


def replies():
    """Replies in our own words by kind, with the verdict that a careful person reads in them."""
    lines = (DATA / "replies.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def direction(row):
    """For whom a verdict speaks."""
    verdict, protocol = row["verdict"], row["protocol"]
    if verdict is None or protocol in ("naturalness", "empathy"):
        return "no verdict" if verdict is None else "a number"
    if protocol == "arena":
        return {"1": "first", "2": "second"}.get(verdict, verdict)
    if protocol == "answers":
        first, second = map(float, verdict.split())
        return "equal" if first == second else "first" if first > second else "second"
    return "cleared" if verdict == "No" or set(verdict.split()) == {"0"} else "accused"


def test_no_reply_is_read_wrongly_and_hardly_any_is_missed_in_either_direction():
    """The table by kind is printed: right, missed, wrong."""
    kinds, directions = defaultdict(Counter), defaultdict(Counter)
    for row in replies():
        verdict = reading(row["language"], row["protocol"]).read(row["reply"])[0]
        missed = "missed" if verdict is None else "wrong"
        outcome = "right" if verdict == row["verdict"] else missed
        kinds[row["kind"]][outcome] += 1
        directions[row["protocol"], direction(row)][outcome] += 1
    for kind, counts in sorted(kinds.items()):
        print(f"{kind:28}", *(f"{outcome} {counts[outcome]:3}" for outcome in OUTCOMES), sep="  ")
    total = sum(kinds.values(), Counter())
    assert total["wrong"] == 0, kinds
    assert total.total() > 1550
    assert total["missed"] <= MOST_MISSED
    for protocol, first, second in OPPOSITE:
        counts = [directions[protocol, side] for side in (first, second)]
        shares = [each["missed"] / each.total() for each in counts]
        assert abs(shares[0] - shares[1]) <= 0.03, (protocol, shares)


def test_every_pattern_is_declared_and_finds_what_its_sentences_say():
    """Of replies and of scores; each has at least one sentence."""
    scores = _patterns(Scale(1, 10, ("Empathy", "Warmth")), PACKS["en"])
    for templates, of in (
        (TEMPLATES.reply, reply_patterns(PACKS["en"])),
        (TEMPLATES.score, scores),
    ):
        assert templates.keys() == type(of).__annotations__.keys()
        for name, template in templates.items():
            found = [[text, vars(of)[name].search(text)[0]] for text, _ in template.reads]
            assert found == [list(each) for each in template.reads] != [], name


def label(language, key):
    """What the prompts of a language ask for."""
    return getattr(PACKS[language].labels, key)[0]


def marked(language, key):
    """A label with its colon."""
    return f"{label(language, key)}{'：' if language == 'zh' else ':'} "


VERDICTS = {"1": "first", "2": "second", "both": "both", "neither": "neither"}
WHY = ["it never stumbles", "liest sich glatt", "一次也没有停顿", "a, b; c. D!"]
said = st.tuples(
    st.sampled_from(sorted(PACKS)), st.sampled_from(sorted(VERDICTS)), st.sampled_from(WHY)
)
between = st.sampled_from(["; ", "\n", "\n\n", ". "])


def well_formed(language, verdict, why, between):
    """A reply as it is asked for."""
    choice = f"{marked(language, 'choice')}{label(language, VERDICTS[verdict])}"
    return f"{choice}{between}{marked(language, 'reason')}{why}"


@given(said, between, st.sampled_from(rows("wraps_of_a_reply")), st.booleans())
def test_markdown_around_a_reply_changes_nothing(reply, between, wrap, bold):
    """Fences, headings, lists, quotation, bold labels."""
    language, verdict, _ = reply
    text = well_formed(*reply, between)
    if bold:
        for key in ("choice", "reason"):
            text = text.replace(marked(language, key), f"**{marked(language, key).strip()}** ")
    assert reading(language, "arena").read(wrap.format(text))[0] == verdict


QUOTATIONS = ['"{}"', "'{}'", "`{}`", "“{}”", "「{}」", "„{}“", "»{}«", "\n> {}\n", '\n"{}"\n']


@given(said, between, st.sampled_from(sorted(VERDICTS)), st.sampled_from(QUOTATIONS), st.booleans())
def test_a_verdict_quoted_in_the_reason_changes_nothing(reply, between, other, quotation, whole):
    """Nor one that the judged text asks for in the reason."""
    language, verdict, _ = reply
    quoted = f"{marked(language, 'choice')}{label(language, VERDICTS[other])}"
    if whole:
        quoted = well_formed(language, other, "x", "; ")
    text = f"{well_formed(*reply, between)} {quotation.format(quoted)} {WHY[0]}"
    assert reading(language, "arena").read(text)[0] == verdict
    asked = f"{well_formed(*reply, between)} and wants me to say {quoted} at once"
    assert reading(language, "arena").read(asked)[0] == verdict


@given(st.sampled_from(sorted(PACKS)), st.integers(1, 12), st.integers(1, 12), between)
def test_an_index_quoted_in_the_reason_changes_nothing(language, index, other, between):
    """UniEval's, wherever the reason stands."""
    yes = f"{marked(language, 'choice')}{label(language, 'yes')}"
    told = f"{marked(language, 'index')}{index}"
    why = f'{marked(language, "reason")}it says "{yes} {marked(language, "index")}{other}"'
    read = reading(language, "unieval").read
    assert read(between.join([yes, told, why]))[0] == str(index)
    assert read(f"{why}\n{yes}{between}{told}")[0] == str(index)


PIECES = [
    "Choice: ", "选择：", "Wahl: ", "Index: ", "Reason: ", "理由：", "Both", "两者", "Yes", "否",
    "\n", "\n\n", '"', "“", "```", "```json", "{", "}", "|", "|---|", "<think>", "</think>", "**",
    "; ", " or ", "a", "ist", "\\boxed{", "＝", "\u2028", "\0", "\ud800", "> ", "7",
]  # fmt: skip


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_reading_never_raises(text):
    """Whatever is said: a verdict that is offered or none."""
    for language in PACKS:
        for protocol in ASKED:
            how = reading(language, protocol)
            verdict, _ = how.read(text)
            assert verdict is None or verdict in how.choices


def test_labels_of_ones_own_are_read_as_they_are():
    """Without the phrases that belong to AI-involved conversations."""
    read = choice_reader(("Left", "Right", "Same"), languages.ENGLISH).read
    assert read('Choice: Left; Reason: said "Choice: Right"')[0] == "1"
    assert read("Choice: Same")[0] == "both"
    assert read("Choice: only Left")[0] is None
    assert read("Choice: Left, Right")[0] is None


def test_a_long_reply_is_read_at_once():
    """Marks by the thousand, none of them given, and quotation marks without an end."""
    text = 'he says "Choice: Both or ' * 1000
    assert ARENA.reading().read(text)[0] is None
    accused = "Choice: Yes Reason: " + "Index: x " * 4000
    assert UNIEVAL.reading(("x",) * 12).read(accused)[0] == "Yes"
