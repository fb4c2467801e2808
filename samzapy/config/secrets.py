"""Which keys hold secrets, and texts without them.

Only `kafka`, `params`, `spark`, `schema_registry` and `web` can hold secrets; there, whatever a key's words say (`sasl.password`, `apiToken`, `db.secret`) is taken
for one too often rather than too rarely: what is taken for a secret is not shown, and travels unresolved.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable, Sequence

HIDDEN = "***"
SHORTEST = 6  # a shorter text is in many a message by itself
SECTIONS = frozenset({"kafka", "params", "spark", "schema_registry", "web"})
WORDS = frozenset(
    {
        "password", "passwd", "passphrase", "pwd", "pass", "pw", "secret", "secrets", "token", "tokens", "credential", "credentials", "jaas", "apikey",
        "auth", "authorization", "bearer", "cookie", "sig", "signature",
    }
)  # fmt: skip
ENDS = ("password", "passwd", "secret")  # of words as PGPASSWORD
PAIRS = frozenset(
    {
        ("private", "key"), ("api", "key"), ("access", "key"), ("account", "key"), ("shared", "key"), ("signing", "key"), ("ssl", "key"), ("ssl", "keystore"),
        ("encryption", "key"), ("connection", "string"), ("user", "info"),
    }
)  # fmt: skip
PUBLIC = frozenset({"sasl.mechanism", "sasl.mechanisms", "sasl.kerberos.service.name", "sasl.username"})

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPLIT = re.compile(r"[^A-Za-z0-9]+")
_kept_out: set[str] = set()
_LOGIN = re.compile(  # a name of 20 characters and more without a password is a token
    r"(?<![a-z0-9+.\-])[a-z0-9+.\-]+://(?:[^\s/@:]*:(?P<password>[^\s/@]+)|(?P<name>[^\s/@:]{20,}))@|\A(?:bearer|basic)\s+(?P<token>\S+)\Z"
    r"|(?P<pem>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*)"
    # A JSON Web Token (RFC 7519), and what GitHub, GitLab, Slack, Google, Stripe and Amazon give out: these begin in a way of their own.
    r"|(?<![\w\-])(?P<known>(?-i:eyJ[\w\-]{10,}\.eyJ[\w\-]{10,}\.[\w\-]{10,}|gh[pousr]_\w{30,}|github_pat_\w{30,}|glpat-[\w\-]{20,}|xox[abprs]-[\w\-]{10,}"
    r"|AIza[\w\-]{30,}|[rs]k_(?:live|test)_\w{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}))",
    re.IGNORECASE | re.DOTALL,
)
_PAIR = re.compile(r"(?<![\w.\-])(?P<key>[\w.\-]+)[ \t]*=(?![=>])[ \t]*(?P<value>'[^']+'|\"[^\"]+\"|\{[^}]+\}|(?:\$\{[^}]*\}|[^\s;&,'\"{}])+)")
_REFERENCE = r"\$\{(?:file:[^{}]+|[A-Za-z_][A-Za-z0-9_]*(?::-)?)\}"
_REFERRED = re.compile(rf"\s*(?:(?:bearer|basic)\s+)?{_REFERENCE}(?:[\s:@/]?{_REFERENCE})*\s*", re.IGNORECASE | re.ASCII)
_KEY = re.compile(r"(?P<key>[\w.\-]+)[\"']?\s*[:=]")


def is_secret_key(key: str) -> bool:
    """Whether a key's name says that its value is a secret."""
    if key in PUBLIC:
        return False
    words = _words(key)
    pairs = itertools.pairwise(words)
    has_word = not WORDS.isdisjoint(words) or any(word.endswith(ENDS) for word in words)
    return key.lower().startswith("sasl.") or has_word or not PAIRS.isdisjoint(pairs)


def _words(key: str) -> list[str]:
    """The words of a key, in lower case; of `passwords` or `password2`, `password`."""
    words = [word.lower().rstrip("0123456789") or word for word in _SPLIT.split(_CAMEL.sub("_", key)) if word]
    return [word if word in WORDS or not word.endswith("s") or word.endswith("ss") else word[:-1] for word in words]


def logins(text: str) -> list[str]:
    """The passwords and tokens in a text that is, or holds, a URL with a login (`postgres://user:password@host`), the header of one (`Bearer …`),
    a private key, a token that is known by its beginning, or keys with values, as drivers of databases and queries of URLs have them
    (`user=me password=…`, `?access_token=…`)."""
    pairs = [value.strip("'\"") for key, value in _PAIR.findall(text) if is_secret_key(key)]
    pairs = [value[1:-1] if value[:1] + value[-1:] == "{}" else value for value in pairs]
    return [match[match.lastgroup or 0] for match in _LOGIN.finditer(text)] + [value for value in pairs if value]


def is_referred(text: str, key: str = "") -> bool:
    """Whether a secret consists of references only, so that it may be shown as it is written. A text around them, a default, and `$${`, which stands for
    a literal `${`, may be a part of the secret. Not so a user's name before a colon, where the key says that it is one, and `Bearer`."""
    secret = text.partition(":")[2] if tuple(_words(key)[-2:]) == ("user", "info") and not text.lstrip().startswith("$") else text
    return _REFERRED.fullmatch(secret) is not None


def is_unreferred(path: Sequence[str | int], value: object) -> bool:
    """Whether a value of a job file, as it is written, holds a secret that is not a reference."""
    text = "" if value is None else str(value)
    if not is_secret(path, value):
        return False
    is_by_key = any(is_secret_key(part) for part in path[1:] if isinstance(part, str))
    return (is_by_key and not is_referred(text, str(path[-1]))) or any(not is_referred(login) for login in logins(text))


def is_written_secret(path: Sequence[str | int], value: object) -> bool:
    """Whether a value of a job file is a password itself: one of its keys ends in such a word, and it is no reference; or it holds a login."""
    if not is_unreferred(path, value) or not str(value).strip():
        return False
    return ends_as_secret(path, value) or any(not is_referred(login) for login in logins(str(value)))


def ends_as_secret(path: Sequence[str | int], value: object) -> bool:
    """Whether a value is a password by one of its keys: `ssl.key.password` says that it is one, `ssl.key.location` does not."""
    if not path or path[0] not in SECTIONS or value is None or isinstance(value, bool):
        return False
    keys = [key for key in path[1:] if isinstance(key, str) and key not in PUBLIC]
    if not isinstance(value, str):  # `max_tokens: 100` is no secret
        keys = [key for key in keys if not key.lower().endswith("tokens")]
    return any(_ends_as_secret(_words(key)) for key in keys)


def _ends_as_secret(words: list[str]) -> bool:
    return bool(words) and (words[-1] in WORDS or words[-1].endswith(ENDS) or tuple(words[-2:]) in PAIRS)


def is_secret_name(variable: str) -> bool:
    """Whether an environment variable's name says that it holds a secret."""
    words = set(variable.lower().split("_"))
    return is_secret_key(variable.lower()) or "key" in words


def is_secret(path: Sequence[str | int], value: object = "") -> bool:
    """Whether what lies at this path of a job file is a secret, by its keys, or by itself."""
    if not path or path[0] not in SECTIONS:
        return False
    return any(is_secret_key(part) for part in path[1:] if isinstance(part, str)) or (isinstance(value, str) and bool(logins(value)))


def hide_in_line(line: str) -> str:
    """A line of a file that could not be parsed, cut off where the value of a secret key begins: where it ends is not known."""
    first = next((match.end() for match in _KEY.finditer(line) if is_secret_key(match["key"])), None)
    return line if first is None else f"{line[:first]} {HIDDEN}"


def keep_out(texts: Iterable[str]) -> None:
    """From now on these are left out of what this process logs, and of what it tells of errors of the user's."""
    _kept_out.update(form for text in texts if len(text) >= SHORTEST for form in (text, repr(text)[1:-1]))


def without_secrets(text: str) -> str:
    """A text in which every secret that `keep_out` was told of is hidden; the longest first, since one may be a part of another."""
    for secret in sorted(_kept_out, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


class SecretsHidden(logging.Filter):
    """Of a log's handler: neither a message nor a traceback shows a secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _kept_out:
            record.msg, record.args = without_secrets(record.getMessage()), ()
            if record.exc_info:
                record.exc_text = without_secrets(record.exc_text or logging.Formatter().formatException(record.exc_info))
        return True
