"""Stage files in a store: parts that nobody changes, and one rule of what counts."""

from __future__ import annotations

import gzip
import os
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import BotChatError, ConfigError
from botchat.interfaces import Shown, case_digest
from botchat.records import Dialogue, Judgment, Seed, Utterance
from botchat.requests import Pulling, Pushing
from botchat.workspace import files, stages
from botchat.workspace import store as stores
from botchat.workspace.accounts import bills
from botchat.workspace.config import Config, ModelSettings, load
from botchat.workspace.folder import Workspace, dialogue_order, judgment_order
from botchat.workspace.from_store import from_store, with_entries
from botchat.workspace.stages import PartLine, StagePart
from botchat.workspace.store import ENDING, Store, named
from tests.unit.test_segments import put


class Head:
    """What `stages.push` and `stages.pull` do with one stage file, which has no place."""

    def __init__(self) -> None:
        self.here: stages.Lines = {}
        self.seen: list[str] = []

    def push(self, there: list[StagePart]) -> None:
        """Leave what the store lacks."""
        changed, _ = stages.compared(there, self.here, self.seen)
        self.seen += stages.held(there, self.here)
        if changed:
            at = len(there)
            name = f"part {at}"
            lines = {key: PartLine(at, record, b"", name) for key, record in changed.items()}
            there.append(StagePart(name, at, lines))
            self.seen.append(name)

    def pull(self, there: list[StagePart]) -> None:
        """Take what it has."""
        _, self.here = stages.compared(there, self.here, self.seen)
        self.seen = [part.name for part in there]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["push", "pull", "make", "make", "remove"]),
        st.integers(0, 4),
        st.integers(0, 3),
    ),
    max_size=25,
)


@given(STEPS, st.randoms(use_true_random=False))
def test_all_heads_end_with_the_same_and_nothing_is_lost(steps, rng):
    """Whoever makes, removes, pushes and pulls when: nobody undoes what he has not seen."""
    heads, there = [Head() for _ in range(3)], []
    made, removed = set(), set()
    for who, what, number, text in steps:
        head, key = heads[who], (str(number),)
        match what:
            case "make":
                head.here[key] = b'{"%d"}' % text
                made.add(key)
            case "remove":
                if head.here.pop(key, None):
                    removed.add(key)
            case _:
                getattr(head, what)(there)
    for head in heads * 2:
        head.push(there)
        head.pull(there)
    top = {key: line.record for key, line in stages.newest(there).items() if line.record}
    shuffled = rng.sample(there, len(there))
    assert {k: one.record for k, one in stages.newest(shuffled).items() if one.record} == top
    assert all(head.here == top for head in heads)
    n = len(there)
    for head in heads:
        head.push(there)
    assert len(there) == n
    assert set(top) >= made - removed


def test_who_has_an_old_line_does_not_bring_it_back():
    """Also where it does not know any more what it has seen."""
    first, other, there = Head(), Head(), []
    first.here = {("k",): b"{1}"}
    first.push(there)
    other.here = dict(first.here)
    first.here = {("k",): b"{2}"}
    first.push(there)
    other.push(there)
    assert len(there) == 2
    other.pull(there)
    assert other.here == first.here


def judgment(verdict: str, one: Dialogue, two: Dialogue, **more: object) -> Judgment:
    """Of two dialogues, at N = 3."""
    shown = [Shown.of(each, 3) for each in (one, two)]
    case = case_digest("arena-n3", *shown)
    facts = {"reason": verdict, "shown": 3, "case": case, "signature": "s", "calls": ("c1", "c2")}
    return Judgment("arena-n3", one.seed_id, (one.model, two.model), "j", verdict, **facts | more)


def dialogue(model: str, said: str, seed: str = "s1") -> Dialogue:
    """Of one utterance."""
    facts = (Utterance(call=f"call of {model} {said}"),)
    return Dialogue(seed, model, ("a", "b", said), 2, facts, "complete", "signed")


def write(workspace: Workspace, *records: Dialogue | Judgment) -> None:
    """Add records to the stage files of the set ``few``."""
    workspace.write_seeds("few", [Seed(f"s{n}", ("a", "b")) for n in range(1, 4)])
    for one in records:
        is_judgment = isinstance(one, Judgment)
        path = (
            workspace.judgments_path("few", one.protocol, one.judge)
            if is_judgment
            else workspace.dialogues_path("few", one.model)
        )
        order = judgment_order if is_judgment else dialogue_order
        kept = [old for old in files.read(path, type(one)) if order(old) != order(one)]
        files.finish(path, [*kept, one], order)


def push(workspace: Workspace, place: object, at: int | None = None) -> int:
    """Records that a workspace leaves; ``at``: seconds of the epoch when its files were made."""
    for path in workspace.root.rglob("*.jsonl") if at else ():
        os.utime(path, (at, at))
    with closing(workspace.ledger()) as ledger:
        return stages.push(workspace, Store(str(place)), ledger)


def read(place: object, path: str) -> bytes:
    """A stage file as a reader sees it."""
    with from_store(str(place), "few", judged=False) as found:
        return (found.root / path).read_bytes() if (found.root / path).exists() else b""


@pytest.fixture
def heads(tmp_path):
    """Two workspaces with the same dialogues, and a place for a store."""
    made = [Workspace(tmp_path / name) for name in "ab"]
    for one in made:
        write(one, *(dialogue(model, "x", f"s{n}") for model in "mn" for n in range(1, 4)))
    return *made, tmp_path / "store"


def test_heads_that_judge_the_same_set_at_once_do_not_hide_each_other(heads):
    """One stage file, different cases: readers see all, in the order of a run that made them."""
    one, other, store = heads
    m, n = ([dialogue(model, "x", f"s{i}") for i in (1, 2, 3)] for model in "mn")
    write(one, judgment("1", m[2], n[2]), judgment("1", m[0], n[0]))
    write(other, judgment("2", m[1], n[1]))
    assert push(one, store) == 3 + 6 + 2
    assert push(other, store) == 1
    whole = Workspace(one.root.parent / "whole")
    write(whole, *(judgment(v, m[i], n[i]) for i, v in enumerate("121")))
    path = whole.judgments_path("few", "arena-n3", "j")
    assert read(store, str(path.relative_to(whole.root))) == path.read_bytes()
    assert (push(one, store), push(other, store)) == (0, 0)
    for head in heads[:2]:
        stages.pull(head, Store(str(store)))
        assert (head.root / path.relative_to(whole.root)).read_bytes() == path.read_bytes()


def test_of_two_verdicts_that_on_the_dialogue_as_it_is_counts(heads):
    """Two heads made a model's dialogue anew: the newer one stays, and the verdict on it."""
    one, other, store = heads
    for head, said, verdict in ((one, "old", "1"), (other, "new", "2")):
        again = dialogue("m", said)
        write(head, again, judgment(verdict, again, dialogue("n", "x")))
    assert push(other, store, at=2_000)
    (other.judgments_path("few", "arena-n3", "j")).touch()
    for path in one.root.rglob("*.jsonl"):
        os.utime(path, (1_000, 1_000))
    os.utime(one.judgments_path("few", "arena-n3", "j"), (3_000, 3_000))
    push(one, store)
    path = other.judgments_path("few", "arena-n3", "j")
    assert b'"verdict":"2"' in read(store, str(path.relative_to(other.root)))
    assert b'"new"' in read(store, str(other.dialogues_path("few", "m").relative_to(other.root)))
    stages.pull(one, Store(str(store)))
    assert one.judgments_path("few", "arena-n3", "j").read_bytes() == path.read_bytes()


def test_what_is_made_again_replaces_what_was_and_what_is_removed_goes(heads):
    """A new signature; a judge that is taken out: also for readers."""
    one, _, store = heads
    m, n = dialogue("m", "x"), dialogue("n", "x")
    path = str(one.judgments_path("few", "arena-n3", "j").relative_to(one.root))
    write(one, judgment("1", m, n))
    push(one, store, at=5_000)
    for signature in ("other", "s"):  # and back again
        write(one, judgment("1", m, n, signature=signature))
        assert push(one, store, at=4_000) == 1
        assert f'"signature":"{signature}"'.encode() in read(store, path)
    (one.root / path).unlink()
    assert push(one, store) == 1
    assert read(store, path) == b""
    write(one, judgment("1", m, n))
    assert push(one, store) == 1
    assert read(store, path) == (one.root / path).read_bytes()


def test_readers_know_what_calls_took_without_the_ledger(heads, caplog):
    """What the ledger of the writer knew; the rest is said in one line."""
    one, _, store = heads
    with closing(one.ledger()) as ledger:
        key = put(ledger, "hello")
    made = dialogue("m", "x")
    facts = (Utterance(call=key), Utterance(call="never asked here"))
    write(one, msgspec.structs.replace(made, facts=facts))
    push(one, store)
    with from_store(str(store), "few", judged=False) as found, closing(found.ledger()) as ledger:
        assert ledger.select("SELECT count(*) FROM calls") == [(0,)]
        known = bills(ledger, [key, "never asked here"])
        assert known.keys() == {key}
        assert (known[key].tokens, known[key].cost_usd) == (5, 0.5)
    assert f"6 calls cost is not in the store {store}" in caplog.text
    assert f"botchat ledger pull {store}" in caplog.text
    with closing(one.ledger()) as ledger:
        ledger.note_bills([(key, key[:16] + 16 * "0", b"[[1,1.0,1.0],null]"), (key, key, b"[1")])
        assert bills(ledger, [key])[key].tokens == 5  # a call that is here says more


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8bno", "garbage", "other"])
def test_a_damaged_part_is_named_and_passed_over(heads, caplog, damage):
    """Torn, or of the right name and no part: everybody else's stay in sight."""
    one, other, store = heads
    m, n = ([dialogue(model, "x", f"s{i}") for i in (1, 2)] for model in "mn")
    path = one.judgments_path("few", "arena-n3", "j").relative_to(one.root)
    write(one, judgment("1", m[0], n[0]))
    push(one, store)
    (first,) = (store / "stages" / path).iterdir()
    write(other, judgment("2", m[1], n[1]))
    push(other, store)
    if isinstance(damage, str):
        lines = {"garbage": b"\xff\n", "other": b'{"at":1}\n{"seed_id":1}'}[damage]
        bad = gzip.compress(lines)
        first.unlink()
        first = first.with_name(named(bad))
        first.write_bytes(bad)
    else:
        first.write_bytes(damage)
    assert read(store, str(path)) == (other.root / path).read_bytes()
    assert first.name in caplog.text
    assert push(other, store) == 0
    os.utime(one.root / path)
    (one.hidden / "shared.json").unlink()
    push(one, store)
    assert len(read(store, str(path)).splitlines()) == 2


def test_parts_are_read_a_few_at_a_time_and_come_with_their_file(heads, monkeypatch, caplog):
    """However many a store has; one that is not whole takes no other's place."""
    one, _, place = heads
    push(one, place)
    for n in (1, 2):
        write(one, dialogue("m", f"said {n}"))
        push(one, place, at=2_000_000_000 + n)
    store, read_at_once, whole = Store(str(place)), [], Store.whole
    wanted = stages.parts(store)
    file = one.dialogues_path("few", "n").relative_to(one.root).as_posix()
    damaged = place / "stages" / file / wanted[file][0]
    damaged.write_bytes(b"torn")
    monkeypatch.setattr(stores, "BATCH_FILES", 2)
    monkeypatch.setattr(
        Store, "whole", lambda told, paths: read_at_once.append(len(paths)) or whole(told, paths)
    )
    left = {file: [part.name for part in made] for file, made in stages.read_parts(store, wanted)}
    assert left == {**wanted, file: []}
    assert max(read_at_once) == 2 < sum(map(len, wanted.values())) == sum(read_at_once)
    assert damaged.name in caplog.text


def test_settings_travel_without_keys_logins_or_headers(tmp_path, monkeypatch, caplog):
    """Readers get panels with their texts, protocols with their prompts, labels of models."""
    secret = "sk-abcdefghijkl0123"
    monkeypatch.setenv("MY_KEY", secret)
    made = Workspace(tmp_path / "w")
    write(made, dialogue("m", f"my key is {secret}"), dialogue("m", "x", "s2"))
    (made.root / "role.txt").write_text("You count commas.")
    (made.root / "warm.txt").write_text("How warm is this?\n{{conversation}}\n")
    (made.root / "botchat.toml").write_text(
        '[models.big]\nmodel = "m-1"\nlabel = "Big"\nbase_url = "http://me:hunter22@host/v1?k=v"\n'
        'headers = { X-Title = "our lab" }\napi_key_command = "print my-key"\n'
        '[judges.strict]\nmodel = "big"\ntemperature = "none"\n'
        '[panels.two]\nstrategy = "ensemble"\nagents = ["critic", { file = "role.txt" }]\n'
        '[protocols.warmth]\nkind = "score"\nprompt = "warm.txt"\nnumbers = ["Warmth"]\n'
        "lowest = 1\nhighest = 5\n"
    )
    assert push(made, tmp_path / "store") == 3 + 1 + 4
    assert "1 records of generations/few/" in caplog.text
    stored = b"".join(
        gzip.decompress(path.read_bytes()) for path in (tmp_path / "store").rglob("*.gz")
    )
    for hidden in (secret, "hunter22", "our lab", "my-key", "k=v"):
        assert hidden.encode() not in stored
    mine = load(made.root / "botchat.toml")
    with from_store(str(tmp_path / "store"), "few", judged=False) as found:
        told = found.config
    assert (told.judges, told.panels, told.protocols) == (mine.judges, mine.panels, mine.protocols)
    assert (told.models["big"].label, told.models["big"].base_url) == ("Big", "http://host/v1")
    odd = stages.ShownEntry("judges", "odd", {"model": 3})
    files.finish(tmp_path / "odd.jsonl", [odd], str)
    assert with_entries(mine, tmp_path / "odd.jsonl").judges == mine.judges
    assert "[judges.odd]" in caplog.text


def test_a_set_of_an_own_language_brings_its_pack(tmp_path):
    """From the store; else the reader's own."""
    made, reader = Workspace(tmp_path / "w"), Workspace(tmp_path / "r")
    write(made, dialogue("m", "x"))
    made.write_seeds("few", made.seeds("few"), "xx", "hf://a/b@c")
    pack = Path(__file__).parents[1] / "data" / "languages"
    some = next(path for path in sorted(pack.iterdir()) if (path / "language.toml").exists())
    for where in (made, reader):
        (where.root / "languages").mkdir(parents=True)
    (reader.root / "languages" / "xx").symlink_to(some)
    push(made, tmp_path / "one")
    with from_store(str(tmp_path / "one"), "few", reader=reader, judged=False) as found:
        expected = found.language("few")
    (made.root / "languages" / "xx").symlink_to(some)
    push(made, tmp_path / "two")
    with from_store(str(tmp_path / "two"), "few", judged=False) as found:
        assert found.language("few") == expected
        assert found.source("few") == "hf://a/b@c"


def interrupted(store: Path) -> KeyboardInterrupt:
    """A Ctrl-C, when the store has gone."""
    for path in (store / "ledger", store / "stages"):
        path.rename(path.with_name(f"{path.name}-was"))
        path.write_text("a file")
    return KeyboardInterrupt()


def test_a_store_is_left_what_there_is_also_when_a_run_is_interrupted(heads, caplog):
    """And what keeps the rest from it does not hide why the run ended; trying it leaves nothing."""
    one, other, store = heads
    Store(str(store)).ready()
    assert not [path for path in store.rglob("*") if path.is_file()]
    with (
        closing(one.ledger()) as ledger,
        pytest.raises(KeyboardInterrupt),
        stages.shared(one, ledger, str(store)),
    ):
        raise KeyboardInterrupt
    assert stages.parts(Store(str(store)))
    with (
        closing(other.ledger()) as ledger,
        pytest.raises(KeyboardInterrupt),
        stages.shared(other, ledger, str(store)),
    ):
        raise interrupted(store)
    assert "botchat ledger push" in caplog.text


def test_a_stage_file_with_a_bad_line_keeps_no_other_from_the_store(heads, caplog, monkeypatch):
    """It is named; and a store that is named otherwise is the same one."""
    one, _, store = heads
    path = one.dialogues_path("few", "m")
    whole = path.read_bytes()
    path.write_bytes(whole + b"oh\n")
    assert push(one, store) == 3 + 3
    assert f"generations/few/{path.name}: a line is no record" in caplog.text
    path.write_bytes(whole)
    monkeypatch.chdir(store.parent)
    assert push(one, store.name) == 3
    path.unlink()
    assert push(one, f"file://{store}") == 3


def plant(store: Path, file: str, *lines: bytes) -> None:
    """A whole part of a file that nobody's workspace has made."""
    data = gzip.compress(b"\n".join([b'{"at":1}', *lines]))
    path = store / "stages" / file / named(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


TOML = b'{"text":"[models.m]\\nmodel = \\"m\\"\\napi_key_command = \\"touch /tmp/x\\"\\n"}'
RECORD = msgspec.json.encode(Seed("s1", ("a", "b")))


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("botchat.toml", TOML),
        ("leaderboards/few/index.html", TOML),
        ("leaderboards/few/ratings.jsonl", RECORD),
        ("languages/xx/prompts.py", TOML),
        ("languages/xx/language.toml", TOML),
        ("seeds/few.toml", TOML),
        ("seeds/deep/few.jsonl", RECORD),
        ("seeds/other.jsonl", b"{}"),
        ("generations/few/x.jsonl", RECORD),
        ("judgments/few/arena-n3/.x.jsonl", RECORD),
        (".botchat/shared.json", TOML),
    ],
)
def test_what_is_no_stage_file_stays_in_the_store(tmp_path, caplog, file, line):
    """By its name or by what it holds: it is named, and the rest is read."""
    made, fresh, place = Workspace(tmp_path / "w"), Workspace(tmp_path / "f"), tmp_path / "store"
    write(made, dialogue("m", "x"))
    push(made, place)
    plant(place, file, line)
    assert Pulling(str(place)).run(fresh).whole == {"added": 0, "records": 4}
    there = {p.relative_to(fresh.root) for p in fresh.root.rglob("*") if p.is_file()}
    expected = {p.relative_to(made.root) for p in made.root.rglob("*.jsonl")}
    assert {p for p in there if p.parts[0] != ".botchat"} == expected
    assert file in caplog.text


@pytest.mark.parametrize(
    "file",
    [
        "seeds/../botchat.toml", "/seeds/a.jsonl", "seeds\\a.jsonl", "seeds/a\\..\\b.jsonl",
        "BOTCHAT.TOML", "Seeds/a.jsonl", "seeds/a.JSONL", "seeds/a.jsonl\n", "seeds/a\n.jsonl",
        "seeds/\u0430.jsonl", "seeds/a\uff0fb.jsonl", "seeds/..jsonl", "seeds/.jsonl",
        "generations/../x.jsonl", "generations/./x.jsonl", "judgments/a/../x.jsonl",
        "languages/../botchat.toml", "languages/zh/../../botchat.toml",
        "languages/zh/prompts/../../x.txt", "seeds/a.jsonl/b", f"seeds/{'a' * 200}.jsonl",
        "seeds//a.jsonl", "C:seeds/a.jsonl", "seeds/a:b.jsonl", "seeds/%2e%2e/a.jsonl", "",
    ],
)  # fmt: skip
def test_a_name_that_only_looks_like_a_stage_file_is_none(file):
    """Ways out, other slashes, other cases, look-alikes: no such file is written or even read."""
    assert stages.in_order([file, "languages/aa/language.toml"])[0] == file
    with pytest.raises(AssertionError):
        stages.check(file, b"{}")


def test_of_a_stores_settings_nothing_runs_or_is_sent(tmp_path):
    """A model is a name and an address there; no built-in protocol gets another meaning."""
    entries = [
        stages.ShownEntry("models", "m", {
            "model": "m", "label": None, "base_url": "http://127.0.0.1:9/v1",
            "api_key_command": "touch x", "api_key_env": "HOME", "headers": {"x": "$PATH"},
            "api_key_file": "/etc/passwd", "extra": {"tools": []}, "identity": "us",
        }),
        stages.ShownEntry("protocols", "unieval", {"kind": "place", "prompt": "{{conversation}}"}),
        stages.ShownEntry("cluster", "store", {"store": "s3://elsewhere"}),
    ]  # fmt: skip
    file = tmp_path / "settings.jsonl"
    file.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in entries))
    made = with_entries(Config(), file)
    plain = ModelSettings(model="m", base_url="http://127.0.0.1:9/v1")
    assert made == Config(models={"m": plain})


def test_nothing_of_a_store_is_written_through_a_link(heads, caplog):
    """A link may lead out of the workspace: it is named, and nothing changes where it leads."""
    one, _, store = heads
    push(one, store)
    outside, fresh = store.parent / "outside", Workspace(store.parent / "f")
    outside.mkdir()
    fresh.root.mkdir()
    (fresh.root / "generations").symlink_to(outside)
    assert Pulling(str(store)).run(fresh).whole == {"added": 0, "records": 3}
    assert not [*outside.iterdir()]
    assert f"{fresh.root / 'generations'} is a link" in caplog.text


def test_parts_of_a_wrong_name_are_none(tmp_path):
    """Whoever may write there may not write elsewhere."""
    name = f"{'0' * 64}{ENDING}"
    for path in (f"stages/{name}", f"stages/.botchat/x/{name}", f"stages/seeds/x.jsonl/{name[1:]}"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"")
    assert stages.parts(Store(str(tmp_path))) == {}


def test_a_workspace_without_a_ledger_can_be_pushed_and_pulled(tmp_path):
    """Imported dialogues and what people say rest on no call; an empty folder is a mistake."""
    made, fresh = Workspace(tmp_path / "w"), Workspace(tmp_path / "f")
    write(made, dialogue("m", "x"))
    assert Pushing(str(tmp_path / "store")).run(made).whole == {"pushed": 0, "records": 4}
    assert Pulling(str(tmp_path / "store")).run(fresh).whole == {"added": 0, "records": 4}
    assert Pulling(str(tmp_path / "store")).run(fresh).whole == {"added": 0, "records": 0}
    path = made.dialogues_path("few", "m").relative_to(made.root)
    assert (fresh.root / path).read_bytes() == (made.root / path).read_bytes()
    (fresh.root / path).unlink()
    assert Pulling(str(tmp_path / "store")).run(fresh).whole == {"added": 0, "records": 1}
    with pytest.raises(BotChatError, match="no ledger"):
        Pushing(str(tmp_path / "store")).run(Workspace(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="seed set"), from_store(str(tmp_path), "../few"):
        pass
