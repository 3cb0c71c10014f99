"""Sets in other languages, from import to board, with models that answer in them."""

import hashlib
import json
import re
from pathlib import Path

from botchat.cli.main import main
from botchat.records import Seed
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.commands import walk
from tests.openai_server import text

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "languages.md"


def run(capsys, *command):
    """Exit status, what ``--json`` printed, and what was said on stderr."""
    status = main([*command, "--json"])
    said = capsys.readouterr()
    return status, json.loads(said.out) if said.out else None, said.err


def answers(labels, say):
    """Speakers who say one of some sentences, and a judge who answers with a pack's labels."""

    def script(call):
        prompt = call.messages[-1]["content"]
        seed = f"{call.model}{call.messages}".encode()
        draw = int(hashlib.sha256(seed).hexdigest()[:8], 16)
        if call.model != "umpire":
            return text(say[draw % len(say)])
        if labels.first[0] not in prompt:
            verdict = (
                f"{labels.yes[0]}\n{labels.index[0]}: {3 + draw % 2}"
                if draw % 3
                else f"{labels.no[0]}\n{labels.index[0]}: –"
            )
        else:
            verdict = (labels.first, labels.second, labels.both, labels.neither)[draw % 4][0]
        return text(f"{labels.choice[0]}: {verdict}\n{labels.reason[0]}: {say[0]}")

    return script


def of_the_page(folder):
    """The files that docs/languages.md has a translator write; its pack is ``languages/de``."""
    page = DOCS.read_text("utf-8")
    for name, content in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return page


TALKS = [
    Seed(
        f"s{n}",
        (f"Wo ist {it} hin?", f"Vorhin lag {it} noch hier.", "Ich habe nichts.", "Danke, tschüss."),
    )
    for n, it in enumerate(("der Ball", "das Buch", "die Tasse", "der Schuh"))
]


def test_a_translators_pack_needs_no_code(tmp_path, monkeypatch, capsys, server):
    """A folder beside botchat.toml, or one that it names, is a language from seeds to board."""
    monkeypatch.chdir(tmp_path)
    of_the_page(tmp_path)
    entry = '[models.{0}]\nmodel = "{0}"\nbase_url = "{1}"\n'
    entries = (entry.format(name, server.url) for name in ("ada", "bob", "umpire"))
    (tmp_path / "botchat.toml").write_text("".join(entries))
    jsonl.finish(tmp_path / "talks.jsonl", TALKS, lambda seed: seed.id)
    own = ("import", "talks.jsonl", "--seeds", "own", "--language")
    assert run(capsys, *own, "de")[0] == 0
    labels = Workspace(tmp_path).language("own").labels
    server.play(answers(labels, ("Na ja, der Hund.", "Ich weiß nicht.")))
    place = ("--seeds", "own", "--turns", "4")
    assert run(capsys, "generate", *place, "--model", "ada", "--model", "bob")[0] == 0
    for protocol in ("unieval", "arena", "gteval"):
        words = place if protocol == "arena" else place[:2]
        status, made, said = run(capsys, "judge", protocol, *words, "--judge", "umpire")
        assert status == 0, said
        assert [row["unreadable"] for row in made["rows"]] == [0]
    assert "|lang:de" in run(capsys, "leaderboard", "--seeds", "own")[1]["signature"]
    status, _, complaint = run(capsys, "judge", "unieval", "--seeds", "own", "--judge", "rules")
    assert (status, "the judge rules reads English only, and this set is German" in complaint) == (
        1,
        True,
    )
    shown = [call.messages[-1]["content"] for call in server.calls if call.model == "umpire"]
    assert all("<Ende>" in prompt and "chat_end" not in prompt for prompt in shown)
    assert "unknown language 'qab'; languages: de, en, es, zh;" in run(capsys, *own, "qab")[2]


def test_what_cannot_be_is_one_line(tmp_path, monkeypatch, capsys):
    """An unknown language with those there are; a set of another one; bots, what a pack lacks."""
    monkeypatch.chdir(tmp_path)
    of_the_page(tmp_path)
    source = str(ROOT / "tests" / "data" / "zh.jsonl")
    status, _, said = run(capsys, "import", source, "--seeds", "a", "--language", "xx")
    assert status == 1
    assert "unknown language 'xx'; languages: de, en, es, zh; " in said
    assert said.count("\n") == 1
    assert not (tmp_path / "seeds").exists()
    assert run(capsys, "import", source, "--seeds", "a", "--language", "zh")[0] == 0
    assert run(capsys, "import", source, "--seeds", "b", "--language", "de")[0] == 0
    for command, complaint in (
        (("generate", "--seeds", "a", "--model", "bot:verbose"), "bot:verbose speaks English only"),
        (("judge", "diagnosis", "--seeds", "b", "--judge", "rules"), "no dialogues in"),
    ):
        status, _, said = run(capsys, *command)
        assert status == 1, command
        assert complaint in said
        assert said.count("\n") == 1
    assert (
        run(capsys, "generate", "--seeds", "b", "--model", "bot:retrieval", "--turns", "4")[0] == 0
    )
    status, _, said = run(
        capsys, "judge", "diagnosis", "--seeds", "b", "--judge", "http://127.0.0.1:9/v1#x"
    )
    assert status == 1
    assert "Diagnosis is asked in English only, and this set is German (de)" in said
    (tmp_path / "seeds" / "b.toml").write_text("language = 3\n")
    status, _, said = run(capsys, "seeds")
    assert status == 1
    assert "b.toml" in said
    # Imported as English again, a set is English again.
    (tmp_path / "seeds" / "b.toml").write_text('language = "de"\n')
    assert run(capsys, "import", source, "--seeds", "b")[1]["language"] == "en"
    assert not (tmp_path / "seeds" / "b.toml").exists()
    # What writes a set and says nothing of its language leaves it.
    workspace = Workspace(tmp_path)
    workspace.write_seeds("a", workspace.seeds("a")[:2])
    assert workspace.language("a").code == "zh"


def test_the_page_on_languages_runs_as_written(tmp_path, monkeypatch, capsys):
    """Every file and command of docs/languages.md, in an empty folder, in order."""
    monkeypatch.chdir(tmp_path)
    assert walk(of_the_page(tmp_path), capsys) >= 2
