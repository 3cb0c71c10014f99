"""Keys and logins, in whatever spelling servers repeat them; they are never stored or shown."""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html import unescape
from typing import TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from botchat.records import Texts

Env: TypeAlias = Mapping[str, str]
"""Variables of the environment."""

GONE = "[key]"
SHORTEST = 4
"""Characters of a secret that is taken out of messages; a shorter one is a part of every text."""
SHORTEST_IN_REPLY = 12
"""Characters of a secret that is taken out of what a model says; a shorter one may be a word."""
LONGEST_WORD = 20  # letters

_STARTS = (  # looked for first, which is faster than the pattern alone
    *("sk-", "csk-", "gsk_", "hf_", "xai-", "r8_", "pplx-", "nvapi-", "tgp_v1_", "ghp_", "AIza"),
    *("github_pat_", "ya29.", "AKIA", "eyJ", "Bearer ", "bearer ", "Basic ", "basic "),
)
KEY = re.compile(  # the form of a key
    rf"(?<![A-Za-z0-9])(?:{'|'.join(re.escape(each) for each in _STARTS)})\s*(?=\S*[A-Z0-9])"
    r"(?:[\w.~+/=-]|\\+u[0-9A-Fa-f]{4}|&#x?[0-9A-Fa-f]+;){12,}"
)
_SPELT = re.compile(  # one character in the spelling of JSON, JavaScript, a URL or HTML
    # Its branches begin with a character each, and not ``(?i)``: so `re` finds the next one fast.
    r"(?a)\\\\*(?:[uU]([0-9a-fA-F]{4})|[xX]([0-9a-fA-F]{2})|(_|[^\w\s])|[bfnrtBFNRT])"
    r"|%(?:25)*(?:u00)?([0-9a-fA-F]{2})|&(#[xX]?[0-9a-fA-F]{1,8};?|[A-Za-z]{2,8};)"
    r"|[\xad\u200b-\u200f\u2060-\u2064\ufe0f\ufeff]"
)
SECRET_NAME = re.compile(  # api_key, but not max_tokens
    r"(?i)(authorization|bearer|secret|passw(or)?d|passphrase|credential|cookie)s?$"
    r"|(^|(api|access|private|subscription|account|auth|service|license|master)[_-]?)keys?$"
    r"|(^|(access|api|auth|client|hf|id|oauth|refresh|session)[_-]?)token$"
)
_LOGIN = re.compile(  # it may hold a slash; what follows a host's colon is a number
    r"(//)(?:[^\s@/?#]*@|[^\s:@/?#]*:(?!\d*(?:[/?#\s'\"]|$))[^\s@]*@)"
    r"|(?<![\w./@:#-])(?!(?:hf|openai|bot):)[^\s@/:?#'\"=]+:[^\s@/][^\s@]*@"
)
_QUERY = re.compile(r"(://[^\s?#'\"]*)\?[^\s#'\"]*|\?[^\s#?'\"]*=[^\s#'\"]*")


class Redactor:
    """Takes keys, ``user:password``, headers and what has the form of a key out of texts."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # A percent sign spells one byte; a character beyond ASCII has several.
        forms |= {form.encode("utf-8", "replace").decode("latin-1") for form in forms}
        longest_first = sorted(forms, key=len, reverse=True)
        self._in_messages = [form for form in longest_first if len(form) >= SHORTEST]
        self._in_replies = [
            form for form in longest_first if len(form) >= SHORTEST_IN_REPLY and not _is_words(form)
        ]
        self._is_clean_part = lru_cache(1 << 16)(lambda text: self.clean(text) == text)

    def clean(self, text: str) -> str:
        """Return a message with `GONE` for every secret; where one was escaped, unescaped.

        The result is valid UTF-8.
        """
        return _cleaned(text, self._in_messages)

    def clean_reply(self, text: str) -> str:
        """Return what a model said with `GONE` for every secret that is no word of a dialogue.

        A shorter secret than `SHORTEST_IN_REPLY` and one of plain words stay: whoever has ``test``
        for a key may have a test tomorrow. Else as in messages; the result is valid UTF-8.
        """
        return _cleaned(text, self._in_replies)

    def is_clean(self, text: str) -> bool:
        """Return whether a text holds no secret, as `clean` finds it.

        Messages that many texts hold, as calls of a dialogue do, are looked at once.
        """
        if any(form in text for form in self._in_messages):
            return False
        return all(map(self._is_clean_part, text.split("},{")))  # which no key holds


def _is_words(text: str) -> bool:
    """Return whether a text is plain words, as keys are that a server only pretends to need.

    Such as ``not-needed`` or ``your-api-key-here``: no digit, and no capital within a word.
    """
    for word in re.split(r"[-_. ]+", text.strip("-_. ")):
        if not word.isalpha() or len(word) > LONGEST_WORD:
            return False
        if word not in (word.lower(), word.upper(), word.capitalize()):
            return False
    return True


def _cleaned(text: str, forms: Texts) -> str:
    cleaned = plain = _hidden(text, forms)
    for _ in range(7):  # spellings within spellings, such as a URL in JSON in HTML
        decoded = _SPELT.sub(_character, plain)
        if decoded == plain:
            break
        plain = _hidden(decoded, forms)
        if plain != decoded:
            cleaned = plain
    return cleaned.encode("utf-8", "replace").decode()


def _hidden(text: str, forms: Texts) -> str:
    for form in forms:
        text = text.replace(form, GONE)
    if any(start in text for start in _STARTS):
        text = KEY.sub(GONE, text)
    return text


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[4]
    if code:
        return chr(int(code, 16))
    if match[5]:
        return unescape(f"&{match[5]}")
    if match[0].isascii():
        return match[3] or " "
    return ""  # without ink


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret, and what may stand of it alone, as in decoded text."""
    login = re.sub(r"^[A-Za-z]+ +(?=\S)", "", secret)  # after Bearer or Basic
    for form in {secret, login, unquote(login)}:
        yield from (form, form.partition(":")[2], _SPELT.sub(_character, form))
        data = form.encode("utf-8", "replace")
        yield from (encode(data).decode().rstrip("=") for encode in (b64encode, urlsafe_b64encode))


def secrets_in(env: Env) -> list[str]:
    """Return values of the environment that are secrets by their names."""
    named = [name for name in env if SECRET_NAME.search(name) or name.endswith(("_KEY", "_TOKEN"))]
    return [env[name] for name in named if len(env[name]) >= 2 * SHORTEST]


def public_url(url: str) -> str:
    """Return a URL without user, password and query, for messages, names and ledger keys."""
    scheme, host, path, _, fragment = urlsplit(url)
    return urlunsplit((scheme, host.rpartition("@")[2], path.rstrip("/"), "", fragment))


def public(text: str) -> str:
    """Return a text for a message: URLs without logins and queries, and nothing like a key."""
    return Redactor().clean(_QUERY.sub(r"\1", _LOGIN.sub(r"\1", text)))
