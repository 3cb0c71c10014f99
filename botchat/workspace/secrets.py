"""Keys and logins, in whatever spelling servers repeat them; they are never stored or shown."""

from __future__ import annotations

import re
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
    *("sk-", "gsk_", "hf_", "AIza", "ya29.", "xai-", "r8_", "pplx-", "nvapi-", "tgp_v1_"),
    *("ghp_", "github_pat_", "AKIA", "eyJ", "earer ", "asic "),
)
"""Parts of every key of such a form; to look for them is faster."""
# One character in another spelling. Runs are bounded, so that no server can make them costly.
_SPELT = re.compile(
    r"\\{1,31}(?:u(?P<u>[0-9a-f]{4})|x(?P<x>[0-9a-f]{2})|u\{0{0,4}(?P<braces>[0-9a-f]{2,4})\}"
    r"|(?P<plain>[^\w\s])|(?P<space>[bfnrt]))|%(?:25){0,9}(?P<percent>[0-9a-f]{2})"
    r"|&(?:amp;){0,9}(?P<html>#x0{0,6}[0-9a-f]{2,4}|#0{0,6}[0-9]{2,4}|amp|lt|gt|quot|apos);",
    re.IGNORECASE | re.ASCII,
)
_NESTED = 7
"""Spellings within spellings that are looked at, such as a URL in JSON in HTML."""


class Redactor:
    """Takes certain secrets, and whatever has the form of a key, out of texts."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        """Take keys, ``user:password`` and header values; what is shorter than `SHORTEST` stays."""
        forms = _forms(secret for secret in secrets if secret)
        known = [((form,), re.compile(re.escape(form))) for form in forms]
        self._patterns: list[tuple[Sequence[str], re.Pattern[str]]] = [*known, (_STARTS, _KEY_LIKE)]

    def clean(self, text: str) -> str:
        """Return valid UTF-8 with `GONE` in place of every secret, however it is spelt."""
        spans: list[tuple[int, int]] = []
        decoded, starts = text, [*range(len(text) + 1)]
        for _ in range(_NESTED):
            for parts, pattern in self._patterns:
                hits = pattern.finditer(decoded) if any(p in decoded for p in parts) else ()
                spans += [(starts[hit.start()], starts[hit.end()]) for hit in hits]
            if not _SPELT.search(decoded):
                break
            decoded, starts = _decode(decoded, starts)
        cleaned, end = "", 0
        for first, last in sorted(spans):
            cleaned += text[end:first] + GONE if first >= end else ""
            end = max(end, last)
        return (cleaned + text[end:]).encode("utf-8", "replace").decode()


def _decode(text: str, starts: list[int]) -> tuple[str, list[int]]:
    """Undo one layer of escapes; ``starts``: where each character, and the end, stood at first."""
    pieces, kept, end = [], [], 0
    for match in _SPELT.finditer(text):
        group = str(match.lastgroup)
        spelt = match[group]
        if group == "html":
            character = unescape(f"&{spelt.lower()};")[:1]
        else:
            character = {"plain": spelt, "space": " "}.get(group) or chr(int(spelt, 16))
        pieces += [text[end : match.start()], character]
        kept += starts[end : match.start() + 1]
        end = match.end()
    return "".join([*pieces, text[end:]]), kept + starts[end:]


def _forms(secrets: Iterable[str]) -> list[str]:
    """Return the secrets as they may stand in decoded text, the longest first."""
    forms: set[str] = set()
    for whole in secrets:
        scheme, _, value = whole.partition(" ")
        login = value.strip() if scheme.isalpha() and value.strip() else whole
        for secret in {whole, login, unquote(login)}:
            forms |= {secret, secret.partition(":")[2], _decode(secret, [0] * (len(secret) + 1))[0]}
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
    r"|apikey|authtoken|accesstoken)(?:_|$)|^keys?$|^token$|(?:^|_)(?:api|access|private"
    r"|subscription|account|auth|functions|service|license|master)_keys?$"
    r"|(?:^|_)(?:access|api|auth|authentication|client|hf|id|identity|oauth|personal|refresh"
    r"|security|service|session|user)_token$"
)


def names_secret(name: str) -> bool:
    """Return whether a field of that name holds a secret: api_key, but not max_tokens."""
    return bool(_SECRET_NAME.search("_".join(_WORD.findall(name)).lower()))


def secrets_in(env: Mapping[str, str]) -> Iterator[str]:
    """Yield values of the environment that are secrets by their names."""
    for name, value in env.items():
        is_secret = names_secret(name) or re.search(r"(?i)(?:^|_)(?:key|token)$", name)
        if is_secret and len(value) >= 2 * SHORTEST:
            yield value


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
