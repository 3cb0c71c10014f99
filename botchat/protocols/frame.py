"""The frame in which a dialogue is shown to a judge, out of which its text cannot break."""

import re
from functools import cache, lru_cache

from botchat.languages import PLAIN, Language
from botchat.protocols.replies import FIELDS, MARKS, TEMPLATES, WordParts, any_of
from botchat.records import Utterances

END = "<chat_end>"


def neutralise(utterance: str) -> str:
    """Return an utterance that cannot be taken for the frame around it, its words unchanged.

    The end of an utterance and template marks lose their brackets, speakers and verdicts the colon.
    """
    text = MARKS.end_like.sub(r"(\1chat end)", MARKS.breaks.sub("\n", utterance))
    text = MARKS.one_word.sub(_in_round_brackets, neutralise_template(text))
    text = MARKS.speaker_like.sub(r"\1\2\3 -", text)
    return MARKS.label_like.sub(r"\1(\2 \3)", MARKS.verdict_like.sub(r"\1\2 -", text))


def neutralise_template(text: str) -> str:
    """Return a judged text in which no mark can be a control token for the judge.

    Every text that is judged goes through it on its way into a prompt.
    """
    return MARKS.template_like.sub(_in_round_brackets, text.replace("\0", ""))


def _in_round_brackets(mark: re.Match[str]) -> str:
    return f"({mark[mark.lastindex or 0]})"


class PromptFrame:
    """The frame around what a judge is shown, in one language; English marks are in every one."""

    def __init__(self, language: Language) -> None:
        labels = language.labels
        self.end = labels.end
        parts = WordParts(language)
        parts["own_end"] = re.escape(labels.end.strip("<>[]() "))
        parts["own_marks"] = any_of(FIELDS + labels.choice + labels.index + labels.reason)
        parts["own_side"] = any_of(word for word in labels.first + labels.second if len(word) > 1)
        frame = "(?!)"  # `neutralise` knows the English marks
        if not language.english:
            frame = parts.filled(TEMPLATES.frame)
        self._like = re.compile(f"(?im){frame}")
        # Each utterance stands in many cases.
        self.neutralise = lru_cache(1 << 16)(self._neutralised)

    def conversation(self, utterances: Utterances) -> str:
        """Return lines ``A: … <chat_end>`` and ``B: … <chat_end>`` (BotChat Appendix B)."""
        lines = []
        for n, utterance in enumerate(utterances):
            lines.append(f"{'AB'[n % 2]}: {self.neutralise(utterance)} {self.end}")
        return "\n".join(lines)

    def _neutralised(self, utterance: str) -> str:
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
