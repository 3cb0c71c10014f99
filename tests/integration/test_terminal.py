"""What servers, names and files say cannot steer the terminal: no escape sequence gets there."""

import json
import logging
import os
import re
import sys
import time

import pytest

from botchat.cli.main import main
from botchat.cli.output import LogHandler, _progress, printable
from botchat.pipeline.spending import Meter
from botchat.records import Seed
from botchat.workspace import jsonl
from tests.openai_server import Server, faults

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\r\b\x9b5mC1\x7f\x90\u202eback\u2066"
"""Sets the title, clears the screen, colours, overwrites, and turns the writing round."""

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def steering(text):
    """Characters that would steer a terminal, but for the tables' own bold."""
    return STEERING.findall(re.sub("\x1b\\[(0|1)?m", "", text))


def workspace(folder, server):
    """Seeds and names that hold escape sequences, and a model."""
    seeds = [Seed(f"s{n}{EVIL}", (f"hello {EVIL}", "b", "c", "d")) for n in range(2)]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    (folder / "botchat.toml").write_text(
        f'[models.{json.dumps("m" + EVIL)}]\nmodel = "m"\nbase_url = "{server.url}"\n'
        f'[models.plain]\nmodel = {json.dumps("m" + EVIL)}\nbase_url = "{server.url}"\n'
    )
    return folder


def commands(server):
    """Whatever prints texts of others."""
    named = f"{server.url}#m{EVIL}"
    generate = ["generate", "--seeds", "small", "--turns", "3", "--model"]
    yield [*generate, named, "--plan"]
    yield [*generate, named]
    yield [*generate, "plain"]
    yield [*generate, f"m{EVIL}"]
    yield [*generate, f"nothing{EVIL}"]
    yield ["judge", "unieval", "--seeds", "small", "--judge", named]
    yield ["judge", "unieval", "--seeds", "small", "--judge", f"nothing{EVIL}"]
    yield ["judge", "unieval", "--seeds", "small", "--judge", "rules", "--model", f"no{EVIL}"]
    yield ["models", "--check"]
    yield ["seeds", "small"]
    yield ["seeds", "small", f"s0{EVIL}"]
    yield ["seeds", f"no{EVIL}"]
    yield ["ledger"]
    yield ["leaderboard", "--seeds", "small", "--judge", f"nothing{EVIL}"]


@pytest.mark.parametrize("json_flag", [(), ("--json",)])
def test_nothing_that_is_printed_steers_the_terminal(tmp_path, capfd, json_flag):
    """Errors and replies of a server, names of models, texts of seeds: as people and as JSON."""
    with Server(faults.error(418, f"a teapot {EVIL}")) as server:
        folder = workspace(tmp_path, server)
        seen = ""
        for command in commands(server):
            main([*command, *json_flag, "--dir", str(folder)])
            printed = capfd.readouterr()
            assert not steering(printed.out), command
            assert not steering(printed.err), command
            assert "Traceback" not in printed.err
            if json_flag and printed.out:
                assert json.loads(printed.out)
            seen += printed.out + printed.err
        assert server.n_received
    assert "teapot" in seen
    assert "\\x1b]0;owned" in seen or "\\u001b]0;owned" in seen


def test_file_names_and_arguments_that_are_no_text_are_printed(tmp_path, capfd):
    """A name in the command line may hold bytes that are no character."""
    name = os.fsdecode(b"caf\xe9\x1b[2J")
    for more in ([], ["--json"]):
        assert main(["models", "--dir", str(tmp_path / name), *more]) == 0
        capfd.readouterr()
    assert main(["generate", "--seeds", "sample", "--model", name, "--dir", str(tmp_path)]) == 2
    assert not steering(error := capfd.readouterr().err)
    assert "is not UTF-8" in error
    assert main(["generate", "--limit", name]) == 2
    assert not steering(capfd.readouterr().err)


def test_the_log_and_the_progress_are_printable_lines(capsys):
    """One line each, whatever they quote; no key, no login."""
    record = logging.LogRecord("botchat", 30, "x", 1, "%s\nsk-0123456789abcdef", (EVIL,), None)
    LogHandler().emit(record)
    line = capsys.readouterr().err
    assert not steering(line)
    assert line.index("\n") == len(line) - 1
    assert "0123456789" not in line
    meter = Meter(calls=2)
    meter.failures[EVIL] += 1
    assert not steering(printable(meter.bill))


@pytest.mark.parametrize("columns", ["120", "80", "60"])
def test_the_bar_keeps_its_numbers(capsys, monkeypatch, columns):
    """Names and the bar give way to them; brackets in a name are no markup."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with _progress(quiet=False) as meter:
        meter.begin("generate · deep-north, tag-south[/b] and 4 more", 3360)
        meter.done = meter.calls = 1871
        time.sleep(0.3)
    bar = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "1871/3360 " in bar
    assert "1,871 c" in bar
