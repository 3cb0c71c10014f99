"""Local weights with an entry in botchat.toml, and what they are called; needs no torch."""

from __future__ import annotations

import json

import pytest

from botchat.boards.names import labels
from botchat.cli.main import main
from botchat.errors import ConfigError
from botchat.pipeline.run.session import Session
from botchat.records import Dialogue, Seed, Utterance
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger


def named(folder, *names):
    """What speaks under each name in a workspace, with its decoding."""
    session = Session(Workspace(folder), (), Ledger(None), Spending(), Meter())
    return [(one.model.model, one.decoding) for one in map(session.speaker, names)]


def test_an_entry_says_how_local_weights_run(tmp_path, monkeypatch):
    """Device, dtype, batch size and decoding; under its own name, its label, or its folder's."""
    for name in ("a/tiny", "b/tiny"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "botchat.toml").write_text(
        '[models.one]\nmodel = "hf:a/tiny"\nmax_tokens = 9\ntemperature = 0.5\n'
        'device = "cuda:1"\ndtype = "float16"\nbatch_size = 8\n'
        '[models.two]\nmodel = "hf:b/tiny"\nlabel = "The other"\n'
    )
    (one, decoding), (two, _), (plain, paper) = named(
        tmp_path, "one", "two", f"hf:{tmp_path}/a/tiny"
    )
    assert (one.name, one.device, one.dtype, one.batch_size) == ("one", "cuda:1", "float16", 8)
    assert (decoding.temperature, decoding.max_tokens) == (0.5, 9)
    assert one.parallel == 4 * 8
    assert (two.name, two.dtype) == ("The other", "auto")
    assert (plain.name, plain.batch_size) == ("hf:tiny", 32)
    assert (paper.temperature, paper.max_tokens) == (0, None)
    # One folder by two names is one model; two folders of one name are not.
    monkeypatch.chdir(tmp_path)
    (again, _), (absolute, _) = named(tmp_path, "hf:a/tiny", f"hf:{tmp_path}/a/tiny")
    assert again is absolute
    with pytest.raises(ConfigError, match="two folders of weights are both called hf:tiny"):
        named(tmp_path, "hf:a/tiny", "hf:b/tiny")


def test_an_entry_of_local_weights_is_no_endpoint(tmp_path, capsys):
    """It is listed as what it is, without a path, and takes nothing that endpoints have."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "botchat.toml").write_text(
        '[models.q]\nmodel = "hf:tiny"\n[judges.j]\nmodel = "q"\nlogprobs = 2\n'
    )
    assert main(["models", "--json", "--dir", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    row = json.loads(listed)["rows"][0]
    assert (row["name"], row["kind"], row["what"]) == ("q", "local", "local weights hf:tiny")
    assert row["max_concurrency"] is None
    assert str(tmp_path) not in listed
    flags = ["--seeds", "sample", "--dir", str(tmp_path)]
    assert main(["generate", "--model", "bot:parrot", "--limit", "1", *flags]) == 0
    capsys.readouterr()
    assert main(["judge", "unieval", "--judge", "j", *flags]) == 1
    assert "for models of endpoints, which q is not" in capsys.readouterr().err
    assert main(["judge", "unieval", "--judge", "q", "--batch", *flags]) == 1
    assert "q is on no endpoint" in capsys.readouterr().err


def test_files_of_models_named_by_a_path_stay_readable(tmp_path, capsys):
    """Named by the path as they were; figures and pages show the last part."""
    old = "hf:/home/me/models/x"
    seed = Seed("s1", ("a", "b", "c", "d"))
    store.finish(tmp_path / "seeds" / "small.jsonl", [seed], lambda one: one.id)
    facts = (Utterance(), Utterance())
    made = Dialogue("s1", old, ("a", "b", "c", "d"), 2, facts, "complete", "signature")
    space = Workspace(tmp_path)
    store.finish(space.dialogues_path("small", old), [made], lambda one: one.seed_id)
    flags = ["--seeds", "small", "--judge", "rules", "--dir", str(tmp_path)]
    assert main(["judge", "unieval", *flags, "--model", old]) == 0
    assert main(["leaderboard", *flags, "--json"]) == 0
    assert labels([old, f"{old} + hf:./y", "hf:ORG/NAME@v1"]) == [
        "hf:x",
        "hf:x + hf:y",
        "hf:ORG/NAME@v1",
    ]
