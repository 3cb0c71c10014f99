"""Commands in this process: what they print with ``--json``, and the line of those that refuse."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from botchat.cli.main import main


def said(capsys: pytest.CaptureFixture[str], *command: object) -> Any:
    """What a command prints with ``--json``."""
    capsys.readouterr()
    assert main([*map(str, command), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], words: Sequence[str], code: int = 1) -> str:
    """The one line of a command that ends with this exit code."""
    capsys.readouterr()
    assert main([*words]) == code
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


def stage_files(folder: Path) -> dict[str, bytes]:
    """What the two paid stages wrote, by its place in a workspace."""
    paths = [
        path for stage in ("generations", "judgments") for path in folder.glob(f"{stage}/**/*")
    ]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(paths)
        if path.is_file()
    }


def walk(page: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Write the files of a page of docs/ here and run its commands; how many these are."""
    for name, content in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL):
        Path(name).write_text(content)
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = (line for block in blocks for line in block.splitlines())
    commands = [line for line in lines if line.startswith("botchat ")]
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
        assert capsys.readouterr().out, command
    return len(commands)
