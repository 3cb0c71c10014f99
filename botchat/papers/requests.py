"""The commands of this part as values; see `botchat.requests`."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated

from botchat.arguments import JUDGES, Arg, Judged, verb

if TYPE_CHECKING:
    from botchat.papers.probe_polarity import Polarity


@dataclass(frozen=True)
class ProbingPolarity(Judged["Polarity"]):
    """Do a panel's roles pull against the question? A bot's dialogue beside the human one."""

    words, does, group = "bench polarity", "papers.probe_polarity:polarity", JUDGES

    seed_set: Annotated[str, Arg("human dialogues (sample)", "SET", "--seeds")] = "sample"
    judge: Annotated[str, Arg("as of judge", "JUDGE")] = ""
    _: KW_ONLY
    limit: Annotated[int | None, Arg("only the first K dialogues", "K")] = None


probe_polarity = verb(ProbingPolarity)
