"""Serves the page of blind cases: to this machine, or to a team on its network.

For a team nothing is served without a token: each person's address has one, which is what their
labels are filed under. It serves blind cases only; what judges and the others say stays here.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec

from botchat.errors import ConfigError, DataError, MissingError
from botchat.interfaces import Row, case_digest
from botchat.measures.annotations import is_person
from botchat.measures.facts import accusations
from botchat.pipeline import label
from botchat.pipeline.run.session import catalogue_of
from botchat.pipeline.view import HOST, Answer, Refused, Server
from botchat.protocols.kinds import Protocol
from botchat.records import Judgment
from botchat.report.archive import FOLDER
from botchat.report.game import PREFIXES
from botchat.requests import ImportingLabels, Labelling
from botchat.requests.results import Told
from botchat.workspace import files
from botchat.workspace.folder import Workspace

_MOST_BYTES = 2**26
"""Of a file of labels."""


class TeamServer(Server):
    """Serves blind cases to people of a network, each by an address of their own."""

    def __init__(
        self, workspace: Workspace, seed_set: str, names: Sequence[str], host: str, port: int
    ) -> None:
        """Listen; raises as `Server`, and `ConfigError` for a name that cannot be one."""
        people = dict.fromkeys(map(label.rater, names))
        if len(people) < len(names):
            raise ConfigError(
                f"--name {' --name '.join(names)}: {len(names)} names of {len(people)} people, "
                "since capitals do not count; give each person a name"
            )
        super().__init__(workspace, seed_set, port, host=host)
        self.host = host
        self.made, self.posts = {}, {}
        self.tokens = {secrets.token_urlsafe(32): name for name in people}
        """Token -> person, of this start."""

    @property
    def starts(self) -> Sequence[str]:
        """An address for each person, and what is open to whom."""
        root = f"http://{_reachable(self.host)}:{self.server_port}/"
        where = "this machine" if self.host in (HOST, "localhost") else f"the network ({self.host})"
        return [
            *(f"{root}{token}{self.opens} {name}" for token, name in self.tokens.items()),
            f"Open to {where}: with an address, its person's blind cases and labels, else nothing. "
            "No TLS: who listens in on the network reads them. Ctrl-C ends it, and the addresses.",
        ]

    def is_ours(self, name: str) -> bool:
        """No other site can point an address, or this machine's own name, here."""
        with suppress(ValueError):
            return bool(ipaddress.IPv4Address(name))
        return name in (self.host, "localhost", socket.gethostname())

    def answers(self, token: str) -> Mapping[str, Answer]:
        """Labels of that person."""
        name = self._who(token)

        def save(sent: Mapping[str, Any]) -> Mapping[str, Any]:
            if sent.get("set") != self.seed_set:
                raise Refused(HTTPStatus.FORBIDDEN, f"labels of {self.seed_set} are taken here")
            return {"saved": label.save(self.workspace, sent, label.PERSON + name)}

        return {"/labels": save}

    def told(self, path: str) -> Mapping[str, str]:
        """Who it is, and what that person has said, but not of whom."""
        token = path.split("/")[1]
        name = self._who(token)
        said = self.workspace.judgment_files(self.seed_set).get(label.PERSON + name, {})
        fields = ("protocol", "seed_id", "case", "verdict", "shown")
        rows = [
            {field: getattr(one, field) for field in fields}
            for made in said.values()
            for one in files.read(made, Judgment)
        ]
        return {"token": token, "person": name, "labels": json.dumps(rows)}

    def file(self, path: str) -> Path | None:
        """The page or a chunk of cases; raises `Refused` for an address without a token."""
        token, _, rest = path.removeprefix("/").partition("/")
        self._who(token)
        file, page = super().file(rest), self.workspace.out(self.seed_set) / label.GAME
        if file is None or file == page:
            return file
        is_blind = file.parent == page.with_name(FOLDER) and file.name.startswith(PREFIXES[0])
        return file if is_blind else None

    def _who(self, token: str) -> str:
        for known, name in self.tokens.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                return name
        raise Refused(HTTPStatus.FORBIDDEN, "open the whole address that you were given")


def _reachable(host: str) -> str:
    """What others reach a host by: of all addresses its own in the network."""
    if host != "0.0.0.0":
        return host
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))  # sends nothing: a route is looked for
        return str(one.getsockname()[0])
    return socket.gethostname()


def label_page(request: Labelling, workspace: Workspace) -> Server:
    """A server, not yet at work, that opens at the page of blind cases.

    Several who label, or a ``host`` beyond this machine, get an address each. Raises as `Server`
    and `label.game_path`.
    """
    seed_set, names, host = request.seed_set, request.names, request.host
    is_team = len(names) > 1 or host != HOST
    if is_team and not names:
        raise ConfigError(
            f"--host {host}: say who labels, --name ann --name bob; each gets an address"
        )
    if is_team:
        server: Server = TeamServer(workspace, seed_set, names, host, request.port)
    else:
        server = Server(workspace, seed_set, request.port)
    try:
        name = names[0] if names and not is_team else None
        server.opens = label.game_path(
            workspace, seed_set, protocol=request.protocol, name=name, plan=request.plan
        )
    except BaseException:
        server.server_close()
        raise
    return server


def import_labels(request: ImportingLabels, workspace: Workspace) -> Told:
    """File the labels that a page exported, or of verdicts on chats; those there are not repeated.

    Raises as `botchat.pipeline.label.save` and `botchat.seeds.chat_verdicts.judgments`, and
    `MissingError` where there is no such file; of a protocol a file is taken whole or not.
    """
    sources, seed_set = request.sources, request.seed_set
    rows: list[Row] = []
    catalogue = catalogue_of(workspace, seed_set)
    there = {judge: dict(by) for judge, by in workspace.judgment_files(seed_set).items()}
    for path in sources:
        if not path.is_file():
            raise MissingError(f"no file {path}; name what the page of botchat label exported")
        given = _of_chats(workspace, path, seed_set)
        if not given and path.suffix in (".csv", ".tsv") and path.stat().st_size:
            raise DataError(f"{path}: verdicts on chats have the columns item,judge,verdict")
        given = given or files.read(path, Judgment)
        for name in dict.fromkeys(one.protocol for one in given):
            of_name = [one for one in given if one.protocol == name]
            filed = {judge: there.get(judge, {}).get(name) for judge in {j.judge for j in of_name}}
            known = {
                (judge, one.case, one.verdict)
                for judge, file in filed.items()
                if file and is_person(judge, label.PERSON)
                for one in files.read(file, Judgment)
            }
            new = [j for j in of_name if (j.judge, j.case, j.verdict) not in known]
            sent = [{**msgspec.to_builtins(j), "contestants": j.contestants} for j in new]
            label.save(workspace, {"set": seed_set, "protocol": name, "rows": sent})
            counts = Counter(j.judge for j in new)
            protocol, there = catalogue.find(name), workspace.judgment_files(seed_set)
            for judge in dict.fromkeys(j.judge for j in of_name):
                row = {"file": str(path), "judge": judge, "protocol": name, "labels": counts[judge]}
                rows.append(row | _told_apart(protocol, there.get(judge, {}).get(name)))
    if not rows:
        raise DataError(f"no labels in {', '.join(map(str, sources))}")
    return Told({"rows": rows}, [rows])


def _told_apart(protocol: Protocol | None, path: Path | None) -> Row:
    """d′ and criterion of all that a person has said of people and machines, where it is known."""
    said = files.read(path, Judgment) if path and protocol and protocol.about_ai else []
    whole = [
        msgspec.structs.replace(j, verdict=protocol.whole(j.verdict)) for j in said if protocol
    ]
    told = accusations(whole, protocol.innocent if protocol else None)
    return {key: told[key] for key in ("d_prime", "criterion")}


def _of_chats(workspace: Workspace, path: Path, seed_set: str) -> list[Judgment]:
    """The verdicts of a file of verdicts on chats, as people's; none where it is no such file."""
    from botchat.seeds.chat_verdicts import judgments, read_verdicts  # pyarrow

    rows = read_verdicts(files.content(path, _MOST_BYTES), str(path))
    if rows is None:
        return []
    catalogue = catalogue_of(workspace, seed_set)
    dialogues = label.dialogues_of(workspace, seed_set)
    labels = []
    for one in judgments(rows, dialogues):
        protocol = catalogue.find(one.protocol)
        assert protocol is not None, one.protocol
        (shown,) = protocol.shown(dialogues[one.contestants[0]][one.seed_id])
        judge = label.PERSON + label.rater(one.judge.removeprefix(label.PERSON))
        case = case_digest(protocol.name, shown)
        if one.verdict is not None:
            labels.append(msgspec.structs.replace(one, judge=judge, case=case))
    return labels
