"""The command line forgives: flags anywhere, misspelt words, and the shell completes the rest."""

from __future__ import annotations

import json

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
