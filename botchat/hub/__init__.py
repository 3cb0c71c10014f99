"""Runs on the Hugging Face hub: the commands as values; see `botchat.requests`."""

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from botchat.requests.arguments import SHARE, Arg, Request, Word, verb

if TYPE_CHECKING:
    from botchat.requests.results import Told


class Publishing(Request["Told"]):
    """A set's run to the Hugging Face hub: a dataset, its page a Space."""

    words, does, group = "share publish", "hub.repository:publish", SHARE

    seed_set: Annotated[str, Arg("the seed set", "SET", "--seeds")]
    name: Annotated[str, Word(metavar="ORG/NAME")]
    _: KW_ONLY
    dry_run: Annotated[bool, Arg("say what would be sent, send nothing")] = False
    private: Annotated[bool, Arg("for those who may see it only")] = False


class Fetching(Request["Told"]):
    """A published run into this workspace."""

    words, does, group = "share fetch", "hub.repository:fetch", SHARE

    source: Annotated[str, Word(metavar="ORG/NAME[@REVISION]")]


publish = verb(Publishing)
fetch = verb(Fetching)
