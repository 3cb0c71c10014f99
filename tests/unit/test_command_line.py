"""The command line forgives: flags anywhere, misspelt words, and the shell completes the rest."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from botchat.cli.main import main
from botchat.errors import did_you_mean
from tests.rows import rows


@pytest.mark.parametrize(
    "words",
    [
        ["--dir", "{}", "--json", "seeds", "list"],
        ["seeds", "--dir", "{}", "--json", "list"],
        ["seeds", "list", "--json", "--dir", "{}"],
        ["--json", "seeds", "--dir={}", "list", "--quiet"],
    ],
)
def test_flags_of_every_command_may_stand_anywhere(words, tmp_path, capsys):
    """Before the command it was refused, or was worse: taken and forgotten."""
    (tmp_path / "seeds").mkdir()
    line = '{"id":"s1","utterances":["a","b","c","d"]}\n'
    (tmp_path / "seeds" / "mine.jsonl").write_text(line)
    assert main([word.format(tmp_path) for word in words]) == 0
    assert [row["set"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["sample", "mine"]


@pytest.mark.parametrize(
    ("words", "meant"),
    rows("a_misspelt_word_gets_the_one_that_is_meant"),
)
def test_a_misspelt_word_gets_the_one_that_is_meant(words, meant, capsys):
    """Commands, choices and flags; still a mistake of usage."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert meant in capsys.readouterr().err.splitlines()[-1]


def test_what_is_like_nothing_gets_no_guess(capsys):
    """A guess would mislead."""
    with pytest.raises(SystemExit):
        main(["zzz"])
    assert "did you mean" not in capsys.readouterr().err
    assert did_you_mean("zzz", ["arena"]) == ""
    assert did_you_mean("ARENA-N9", ["arena-n8", "gteval"]) == " (did you mean 'arena-n8'?)"


def test_columns_are_chosen_by_heading_or_key(tmp_path, capsys):
    """In the order that is asked for; a wrong one is told, with those there are."""
    place = ["seeds", "show", "sample", "--dir", str(tmp_path)]
    assert main([*place, "--columns", "utterances, ID"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Utterances", "Id"]
    assert lines[1].split() == ["9", "sample-1"]
    assert main([*place, "--columns", "utterance"]) == 1
    error = capsys.readouterr().err
    assert "no column 'utterance' (did you mean 'utterances'?)" in error
    assert "there are: Id, Utterances, Begins" in error


def test_without_shtab_completion_says_what_to_install(capsys, monkeypatch):
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 2
    assert "[completion]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "among"),
    [
        ("lead", "leaderboard"),
        ("--pri", "--print-completion"),
        ("ledger forget --out", "--outcome"),
        ("ledger forget --outcome ref", "refused"),
        ("seeds sh", "show"),
    ],
)
def test_bash_completes_commands_flags_and_choices(words, among, capsys):
    """What shtab writes, as bash runs it."""
    pytest.importorskip("shtab", reason="shtab is an extra: pip install 'botchat[completion]'")
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 0
    script = capsys.readouterr().out
    given = ["botchat", *words.split()]
    asked = f"COMP_WORDS=({' '.join(given)}); COMP_CWORD={len(given) - 1}; _shtab_botchat botchat "
    run = f"{script}\n{asked} '{given[-1]}' '{given[-2]}'; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
    assert among in done.stdout.split()
