"""Keys and logins, in whatever spelling servers repeat them; they are never stored or shown."""

from __future__ import annotations

import os
import re
from array import array
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from urllib.parse import unquote, urlsplit, urlunsplit

GONE = "[key]"
"""Replaces a secret."""

SHORTEST = 4
"""Characters; what is shorter would be cut out of every text."""

# Forms that vendors give keys, and long words with a digit behind Bearer or Basic. Within JSON a
# key may follow an escape that ends in a letter, as in \nsk-…
_KEY_LIKE = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt]))(?:sk-[\w-]{12,}|(?:gsk_|xai-|r8_|csk-|pplx-|ghp_"
    r"|github_pat_)\w{16,}|hf_[A-Za-z0-9]{16,}|(?:nvapi-|tgp_v1_)[\w-]{16,}|(?:AIza|ya29\.)[\w-]{20,}"
    r"|AKIA[A-Z0-9]{16}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r"|[Bb]earer \s*(?=\S*\d)[\w.~+/=-]{16,}|[Bb]asic \s*(?=\S*[\d=])[\w+/=-]{16,})",
    re.ASCII,
)
_STARTS = (
    *("sk-", "gsk_", "hf_", "AIza", "ya29.", "xai-", "r8_", "pplx-", "nvapi-", "tgp_v1_", "ghp_"),
    *("github_pat_", "AKIA", "eyJ", "earer ", "asic "),
)
"""Parts of every key of such a form; to look for them is faster."""
# One character in another spelling. Runs are bounded, so that no server can make them costly.
_SPELT = re.compile(
    r"\\{1,31}(?:u(?P<u>[0-9a-f]{4})|x(?P<x>[0-9a-f]{2})|u\{0{0,4}(?P<braces>[0-9a-f]{2,4})\}"
    r"|(?P<plain>[^\w\s])|(?P<space>[bfnrt]))|%(?:25){0,9}(?P<percent>[0-9a-f]{2})"
    r"|&(?:amp;){0,9}(?P<html>#x0{0,6}[0-9a-f]{2,4}|#0{0,6}[0-9]{2,4}|amp|lt|gt|quot|apos);",
    re.IGNORECASE | re.ASCII,
)
_HAS_SPELT = re.compile(
    r"\\u00[2-7]|\\u\{|\\x[2-7]|\\/|%[2-7][0-9a-f]|&(?:#|amp;|lt;|gt;|quot;|apos;)", re.IGNORECASE
)
"""Without these a text has only the escapes of quotes, line ends and letters beyond ASCII."""
_NESTED = 6
"""Spellings within spellings that are undone, such as a URL in JSON in HTML."""


class Redactor:
    """Takes certain secrets, and whatever has the form of a key, out of texts."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        """Take keys, ``user:password`` and header values; what is shorter than `SHORTEST` stays."""
        self._secrets = _forms(secret for secret in secrets if secret)
        self._has_marks = any(not s.isascii() or set(s) & {'"', "'", "\\"} for s in self._secrets)
        known = [re.escape(secret) for secret in self._secrets]
        self._any = re.compile("|".join([*known, _KEY_LIKE.pattern]), re.ASCII)

    def clean(self, text: str) -> str:
        """Return valid UTF-8 with `GONE` in place of every secret, however it is spelt."""
        if self._may_be_spelt(text):
            text = self._clean_spelt(text)
        for secret in self._secrets:
            text = text.replace(secret, GONE)
        if any(start in text for start in _STARTS):
            text = _KEY_LIKE.sub(GONE, text)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    def _may_be_spelt(self, text: str) -> bool:
        if self._has_marks and re.search(r"[\\%&]", text):
            return True
        return _HAS_SPELT.search(text) is not None

    def _clean_spelt(self, text: str) -> str:
        """Cut out what reads as a secret once escapes are undone, layer by layer."""
        spans: list[tuple[int, int]] = []
        decoded, starts = text, array("q", range(len(text) + 1))
        for _ in range(_NESTED):
            decoded, starts = _decode(decoded, starts)
            spans += [(starts[m.start()], starts[m.end()]) for m in self._any.finditer(decoded)]
            if not self._may_be_spelt(decoded):
                break
        cleaned, end = "", 0
        for first, last in sorted(spans):
            cleaned += text[end:first] + GONE if first >= end else ""
            end = max(end, last)
        return cleaned + text[end:]


def _decode(text: str, starts: array[int]) -> tuple[str, array[int]]:
    """Undo one layer of escapes; ``starts``: where each character, and the end, stood at first."""
    pieces, kept, end = [], array("q"), 0
    for match in _SPELT.finditer(text):
        pieces += [text[end : match.start()], _character(str(match.lastgroup), match)]
        kept += starts[end : match.start() + 1]
        end = match.end()
    return "".join([*pieces, text[end:]]), kept + starts[end:]


def _character(group: str, match: re.Match[str]) -> str:
    spelt = match[group]
    if group in ("plain", "space"):
        return spelt if group == "plain" else " "
    return unescape(f"&{spelt.lower()};")[:1] if group == "html" else chr(int(spelt, 16))


def _forms(secrets: Iterable[str]) -> list[str]:
    """Return the secrets as they may stand in decoded text, the longest first."""
    forms: set[str] = set()
    for whole in secrets:
        scheme, _, value = whole.partition(" ")
        login = value.strip() if scheme.isalpha() and value.strip() else whole
        for secret in {whole, login, unquote(login)}:
            forms |= {secret, secret.partition(":")[2], _decode(secret, array("q"))[0]}
            if len(secret) >= SHORTEST:
                data = secret.encode("utf-8", "replace")
                forms |= {f(data).decode().rstrip("=") for f in (b64encode, urlsafe_b64encode)}
    # A percent sign spells one byte; a character beyond ASCII has several.
    forms |= {form.encode("utf-8", "replace").decode("latin-1") for form in forms}
    return sorted((form for form in forms if len(form) >= SHORTEST), key=lambda s: (-len(s), s))


def has_key(text: str) -> bool:
    """Return whether something in a text has the form of a key."""
    return _KEY_LIKE.search(text) is not None


_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:authorization|secrets?|passw(?:or)?d|passphrase|credentials?|bearer|cookies?"
    r"|apikey|authtoken|accesstoken)(?:_|$)|^keys?$|^token$"
    r"|(?:^|_)(?:api|access|private|subscription|account|auth|functions|service|license|master)"
    r"_keys?$"
    r"|(?:^|_)(?:access|api|auth|authentication|client|hf|id|identity|oauth|personal|refresh"
    r"|security|service|session|user)_token$"
)
_SECRET_VARIABLE = re.compile(r"(?i)(?:^|_)(?:key|token)$")


def names_secret(name: str) -> bool:
    """Return whether a field of that name holds a secret: api_key, but not max_tokens."""
    return bool(_SECRET_NAME.search("_".join(_WORD.findall(name)).lower()))


def public_url(url: str) -> str:
    """Return a URL without user, password and query, for messages, names and ledger keys."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return public(url)
    if not parts.netloc and "@" in url:
        return public(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", parts.fragment))


# A login may hold a slash that should have been escaped; what follows a host's colon is a number.
_LOGIN = re.compile(
    r"(?P<scheme>(?:(?<![\w.+-])[\w.+-]+:|(?<![\w:/]))//)"
    r"(?:[^\s@/?#]*@|[^\s:@/?#]*:(?!\d*(?:[/?#\s'\"]|$))[^\s@]*@)"
    r"|(?<![\w./@:#-])(?!(?:hf|openai|bot):)[^\s@/:?#'\"=]+:[^\s@/][^\s@]*@"
)
_QUERY = re.compile(r"(?P<url>://[^\s?#'\"]*)\?[^\s#'\"]*|\?[^\s#?'\"]*=[^\s#'\"]*")
_ANY_KEY = Redactor()


def public(text: str) -> str:
    """Return a text for a message: URLs without logins and queries, and nothing like a key."""
    text = _LOGIN.sub(lambda login: login["scheme"] or "", text)
    return _ANY_KEY.clean(_QUERY.sub(lambda query: query["url"] or "", text))


def public_arguments(arguments: Sequence[str], env: Mapping[str, str] = os.environ) -> str:
    """Return a command line without its secrets, in one line."""
    words, is_secret = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if is_secret and not argument.startswith("--"):
            words.append(GONE)
        elif equals and "://" not in name and names_secret(name):
            words.append(f"{name}={GONE}")
        else:
            words.append(public(argument))
        is_secret = argument.startswith("-") and names_secret(argument)
    return Redactor(secrets_in(env)).clean(" ".join(" ".join(words).split()))


def secrets_in(env: Mapping[str, str]) -> Iterator[str]:
    """Yield values of the environment that are secrets by their names."""
    for name, value in env.items():
        if (names_secret(name) or _SECRET_VARIABLE.search(name)) and len(value) >= 2 * SHORTEST:
            yield value
