"""The frame in which a dialogue is shown to a judge, out of which its text cannot break."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources

from botchat.languages import PLAIN, Language
from botchat.protocols.replies import FIELDS, TEMPLATES, WordParts, any_of
from botchat.records import Utterances

END = "<chat_end>"

_END_LIKE = re.compile(r"(?i)<\s*(/?)\s*chat[_\s-]*end\s*/?\s*>")
_SPEAKER_LIKE = re.compile(r"(?m)^([\s>*_#-]*)([AB])([*_]*)\s*[:\uff1a]")
_VERDICT_LIKE = re.compile(rf"(?i)\b({'|'.join(FIELDS)})([\"'*_\s]*)[:\uff1a]")
_LABEL_LIKE = re.compile(r"(?im)^([\s>*_#]*)(conversation)\s*([12])\b")
_NAMES = tomllib.loads(resources.files(__package__).joinpath("marks.toml").read_text("utf-8"))
_TEMPLATE_LIKE = re.compile(
    r"<\s*\|([^|<>\n]{0,60})\|\s*>|<\uff5c([^\uff5c<>\n]{0,60})\uff5c>"
    rf"|<(/?(?:{'|'.join(_NAMES['angles'])}))>|\[(/?(?:{'|'.join(_NAMES['squares'])}))\]"
    r"|<<(/?SYS)>>|[<\[]\|(/?[\w:-]{1,60})\|?[>\]]|<(/?[\w:-]{1,60})\|>"
    r"|(?<![\w\])>])<(/?[^\W\d_]+[:_][\w:-]{1,60})>"
)
# In talk any other mark of one word may be a token, too; a text may have code, where it is none.
_ONE_WORD = re.compile(r"<(/?[^\W\d][\w:-]{0,60})/?>|\[(/?[^\W\d][\w:-]{0,60})\]")
_BREAKS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@lru_cache(maxsize=1 << 16)
def neutralise(utterance: str) -> str:
    """Return an utterance that cannot be taken for the frame around it, its words unchanged.

    The end of an utterance and template marks lose their brackets, speakers and verdicts the colon.
    """
    text = _END_LIKE.sub(r"(\1chat end)", _BREAKS.sub("\n", utterance))
    text = _ONE_WORD.sub(_in_round_brackets, neutralise_template(text))
    text = _SPEAKER_LIKE.sub(r"\1\2\3 -", text)
    return _LABEL_LIKE.sub(r"\1(\2 \3)", _VERDICT_LIKE.sub(r"\1\2 -", text))


def template_mark(text: str) -> str:
    """Return the first mark of a chat template in a text, or ''."""
    match = _TEMPLATE_LIKE.search(text)
    if match:
        return match[0]
    return ""


def neutralise_template(text: str) -> str:
    """Return a judged text in which no mark can be a control token for the judge.

    Every text that is judged goes through it on its way into a prompt.
    """
    return _TEMPLATE_LIKE.sub(_in_round_brackets, text.replace("\0", ""))


def _in_round_brackets(mark: re.Match[str]) -> str:
    return f"({mark[mark.lastindex or 0]})"


class PromptFrame:
    """The frame around what a judge is shown, in one language; English marks are in every one."""

    def __init__(self, language: Language) -> None:
        labels = language.labels
        self.end = labels.end
        parts = WordParts(language, {})
        parts["own_end"] = re.escape(labels.end.strip("<>[]() "))
        parts["own_marks"] = any_of(FIELDS + labels.choice + labels.index + labels.reason)
        parts["own_side"] = any_of(word for word in labels.first + labels.second if len(word) > 1)
        frame = "(?!)"  # `neutralise` knows the English marks
        if not language.english:
            frame = parts.filled(TEMPLATES.frame)
        self._like = re.compile(f"(?im){frame}")

    def conversation(self, utterances: Utterances) -> str:
        """Return lines ``A: … <chat_end>`` and ``B: … <chat_end>`` (BotChat Appendix B)."""
        lines = []
        for n, utterance in enumerate(utterances):
            lines.append(f"{'AB'[n % 2]}: {self.neutralise(utterance)} {self.end}")
        return "\n".join(lines)

    def neutralise(self, utterance: str) -> str:
        """Neutralise the marks of the language's own frame as well as the English ones."""
        text = neutralise(utterance)
        matches = list(self._like.finditer(text.translate(PLAIN)))
        for match in reversed(matches):  # places before stay
            start, end = match.span()
            label = match.start("label")
            mark = f"({text[start + 1 : end - 1]})"
            if match.lastgroup == "colon":
                mark = f"{text[start : end - 1]} -"
            elif match.lastgroup == "label":
                mark = f"{text[start:label]}({text[label:end]})"
            text = f"{text[:start]}{mark}{text[end:]}"
        return text


prompt_frame = cache(PromptFrame)
