"""What must not be stored or shown: keys and logins, in whatever spelling they come back.

Servers repeat what they were sent, in replies, errors and headers: as it is, inside JSON that was
escaped once or more, in a URL, in HTML. `Redactor` finds it in decoded text and cuts it out of the
text as it came. Keys of somebody else go too, as far as their form gives them away.
"""

from __future__ import annotations

import os
import re
from array import array
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote, urlsplit, urlunsplit

GONE = "[key]"
"""Stands where a secret was."""

SHORTEST = 4
"""Characters; what is shorter would be cut out of every text."""

# What a key begins with -> what the rest of it is made of, in the forms that vendors give out.
_FORMS = {
    "sk-": r"[\w-]{12,}",  # OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek, …
    "gsk_": r"\w{16,}",
    "hf_": r"[A-Za-z0-9]{16,}",
    "AIza": r"[\w-]{20,}",
    "ya29.": r"[\w-]{20,}",
    "xai-": r"\w{16,}",
    "r8_": r"\w{16,}",
    "csk-": r"\w{16,}",
    "pplx-": r"\w{16,}",
    "nvapi-": r"[\w-]{16,}",
    "tgp_v1_": r"[\w-]{16,}",
    "ghp_": r"\w{16,}",
    "github_pat_": r"\w{16,}",
    "AKIA": r"[A-Z0-9]{16}",
    "eyJ": r"[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
    # Of any vendor. Sentences with these words have no such long word with a digit after them.
    "earer ": r"\s*(?=\S*\d)[\w.~+/=-]{16,}",
    "asic ": r"\s*(?=\S*[\d=])[\w+/=-]{16,}",
}
_BEGIN = {"earer ": "[Bb]", "asic ": "[Bb]"}
# Within JSON a key may follow upon an escape that ends in a letter, as in \nsk-…
_KEY_LIKE = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt]))(?:"
    + "|".join(f"{_BEGIN.get(start, '')}{re.escape(start)}{rest}" for start, rest in _FORMS.items())
    + ")",
    re.ASCII,
)

# One character in another spelling. Runs are bounded, so that no server can make them costly.
_SPELT = re.compile(
    r"\\{1,31}(?:u(?P<u>[0-9a-f]{4})|x(?P<x>[0-9a-f]{2})|u\{0{0,4}(?P<braces>[0-9a-f]{2,4})\}"
    r"|(?P<plain>[^\w\s])|(?P<space>[bfnrt]))"
    r"|%(?:25){0,9}(?P<percent>[0-9a-f]{2})"
    r"|&(?:amp;){0,9}(?:#x0{0,6}(?P<hex>[0-9a-f]{2,4})|#0{0,6}(?P<decimal>[0-9]{2,4})"
    r"|(?P<named>amp|lt|gt|quot|apos));",
    re.IGNORECASE | re.ASCII,
)
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_HINTS = ("\\u00", "\\u{", "\\x", "\\/", "%", "&")
_ASCII_SPELT = re.compile(
    r"\\u00[2-7]|\\u\{|\\x[2-7]|\\/|%[2-7][0-9a-f]|&(?:#|amp;|lt;|gt;|quot;|apos;)", re.IGNORECASE
)
"""Without these a text holds only the escapes of quotes, line ends and letters beyond ASCII."""

_NESTED = 6
"""Spellings within spellings that are undone, as of a URL in JSON in HTML."""


class Redactor:
    """Takes certain secrets, and whatever has the form of a key, out of texts."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        """``secrets``: keys, ``user:password``, header values; shorter than `SHORTEST` is left."""
        self._secrets = _spellings(secret for secret in secrets if secret)
        self._odd = any(not one.isascii() or set(one) & {'"', "'", "\\"} for one in self._secrets)
        known = [re.escape(secret) for secret in self._secrets]
        self._any = re.compile("|".join([*known, _KEY_LIKE.pattern]), re.ASCII)

    def clean(self, text: str) -> str:
        """``text`` as valid UTF-8, with `GONE` in place of every secret, however it is spelt."""
        if not text:
            return text
        if self._spelt(text):
            text = self._clean_spelt(text)
        for secret in self._secrets:
            text = text.replace(secret, GONE)
        if any(start in text for start in _FORMS):
            text = _KEY_LIKE.sub(GONE, text)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    def _spelt(self, text: str) -> bool:
        """Whether a secret could stand in ``text`` otherwise than as it reads."""
        if self._odd:
            return "\\" in text or "%" in text or "&" in text
        return any(hint in text for hint in _HINTS) and _ASCII_SPELT.search(text) is not None

    def _clean_spelt(self, text: str) -> str:
        """``text`` without what reads as a secret once its escapes are undone."""
        found: list[tuple[int, int]] = []
        read, starts = text, array("q", range(len(text) + 1))
        for _ in range(_NESTED):
            read, starts = _decoded(read, starts)
            if any(one in read for one in (*self._secrets, *_FORMS)):
                for match in self._any.finditer(read):
                    found.append((starts[match.start()], starts[match.end()]))
            if not self._spelt(read):
                break
        cleaned, done = "", 0
        for start, end in sorted(found):
            cleaned += text[done:start] + GONE if start >= done else ""
            done = max(done, end)
        return cleaned + text[done:]


def _decoded(text: str, starts: array[int]) -> tuple[str, array[int]]:
    """A text with one layer of escapes undone, and where each of its characters came from.

    ``starts``: where each character of ``text``, and its end, stand in the text as it came.
    """
    pieces, kept, done = [], array("q"), 0
    for match in _SPELT.finditer(text):
        start, end = match.span()
        pieces += [text[done:start], _character(str(match.lastgroup), match[match.lastgroup or 0])]
        kept += starts[done : start + 1]
        done = end
    return "".join([*pieces, text[done:]]), kept + starts[done:]


def _character(how: str, spelt: str) -> str:
    """What the group of `_SPELT` that is called ``how`` stands for."""
    if how in ("plain", "space", "named"):
        return {"plain": spelt, "space": " "}.get(how) or _NAMED[spelt.lower()]
    return chr(int(spelt, 10 if how == "decimal" else 16))


def _spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets as they may stand in decoded text, the longest first."""
    found: set[str] = set()
    for whole in secrets:
        scheme, _, value = whole.partition(" ")
        login = value.strip() if scheme.isalpha() and value.strip() else whole
        for secret in {whole, login, unquote(login)}:
            _, _, password = secret.partition(":")
            found |= {secret, password, _decoded(secret, array("q"))[0]}
            if len(secret) >= SHORTEST:
                for encode in (b64encode, urlsafe_b64encode):
                    found.add(encode(secret.encode("utf-8", "replace")).decode().rstrip("="))
    # A percent sign spells one byte, a character beyond ASCII is several.
    found |= {secret.encode("utf-8", "replace").decode("latin-1") for secret in found}
    return tuple(sorted((s for s in found if len(s) >= SHORTEST), key=lambda s: (-len(s), s)))


def has_key(text: str) -> bool:
    """Whether something in ``text`` has the form of a key."""
    return _KEY_LIKE.search(text) is not None


_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:authorization|secrets?|passw(?:or)?d|passphrase|credentials?|bearer|cookies?"
    r"|apikey|authtoken|accesstoken)(?:_|$)"
    r"|(?:^|_)(?:api|access|private|subscription|account|auth|functions|service|license|master)"
    r"_keys?$|^keys?$"
    r"|(?:^|_)(?:access|api|auth|authentication|client|hf|id|identity|oauth|personal|refresh"
    r"|security|service|session|user)_token$|^token$"
)


_SECRET_VARIABLE = re.compile(r"(?i)(?:^|_)(?:key|token)$")


def names_secret(name: str) -> bool:
    """Whether a field of that name holds a secret, as api_key, Authorization or access-token do.

    Not ``max_tokens``, ``prompt_cache_key`` or ``eos_token``.
    """
    return bool(_SECRET_NAME.search("_".join(_WORD.findall(name)).lower()))


def public_url(url: str) -> str:
    """``url`` without user, password and query, for messages, names and ledger keys."""
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


def public(text: str) -> str:
    """``text`` for a message: its URLs without logins and queries, and nothing like a key.

    Also where a URL lacks its scheme or is otherwise wrong.
    """
    text = _LOGIN.sub(lambda login: login["scheme"] or "", text)
    text = _QUERY.sub(lambda query: query["url"] or "", text)
    return _NO_SECRETS.clean(text)


_NO_SECRETS = Redactor()


def public_arguments(arguments: Sequence[str], env: Mapping[str, str] = os.environ) -> str:
    """A command line for others to read, in one line."""
    return Redactor(secrets_in(env)).clean(" ".join(" ".join(_public(arguments)).split()))


def _public(arguments: Iterable[str]) -> Iterator[str]:
    named = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if named and not argument.startswith("--"):
            yield GONE
        elif equals and "://" not in name and names_secret(name):
            yield f"{name}={GONE}"
        else:
            yield public(argument)
        named = argument.startswith("-") and names_secret(argument)


def secrets_in(env: Mapping[str, str]) -> Iterator[str]:
    """Values of the environment that are secrets by their names."""
    for name, value in env.items():
        if (names_secret(name) or _SECRET_VARIABLE.search(name)) and len(value) >= 2 * SHORTEST:
            yield value
