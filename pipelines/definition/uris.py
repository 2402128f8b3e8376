"""Source addresses: plain paths as typed, ``file://``, ``rtsp://`` and ``http(s)://``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote, unquote

Kind = Literal["file", "rtsp", "http"]

SCHEMES: dict[str, Kind] = {
    "file": "file",
    "rtsp": "rtsp",
    "rtsps": "rtsp",
    "rtspt": "rtsp",
    "http": "http",
    "https": "http",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_AUTHORITY = re.compile(r"([^/?#]*)(.*)", re.DOTALL)
_LEGAL_IN_URI = "%/:?#[]@!$&'()*+,;=~"


def scheme_of(uri: str) -> str:
    """The scheme in lower case; empty for a plain path."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password as people type them (not percent-encoded)."""

    username: str | None
    password: str | None


def split_credentials(uri: str) -> tuple[str, Credentials | None]:
    """Take ``user:password@`` out of a network URI.

    Returns:
        The URI without them, and what was there (percent-decoded), or None.

    Raises:
        ValueError: if a character of the password (``/``, ``?``, ``#``) makes it unclear where the host begins.
    """
    scheme = scheme_of(uri)
    if SCHEMES.get(scheme, "file") == "file":
        return uri, None
    start = len(scheme) + len("://")
    authority, rest = _AUTHORITY.fullmatch(uri[start:]).groups()  # type: ignore[union-attr]
    user_info, at, host = authority.rpartition("@")
    if at:
        username, colon, password = user_info.partition(":")
        return uri[:start] + host + rest, Credentials(unquote(username), unquote(password) if colon else None)
    port = authority.rpartition(":")[2] if ":" in authority and not authority.endswith("]") else "0"
    if "@" in rest and not port.isdecimal():
        raise ValueError("a '/', '?' or '#' in the password hides where the host begins")
    return uri, None


def file_path(uri: str, base: Path) -> Path:
    """The path that a plain path (as typed) or ``file://`` URI (percent-decoded) names; relative ones from ``base``."""
    if scheme_of(uri) != "file":
        return base / uri
    text = os.fsdecode(unquote(uri[len("file://") :], errors="surrogateescape"))
    return base / text.removeprefix("localhost") if text.startswith("localhost/") else base / text


def file_uri(path: Path) -> str:
    """The ``file://`` URI of an absolute path, percent-encoded."""
    return "file://" + quote(os.fsencode(path))


def network_uri(uri: str, username: str | None, password: str | None) -> str:
    """A network URI with percent-encoded credentials put in."""
    start = uri.index("://") + len("://")
    user_info = quote(username or "", safe="")
    if password is not None:
        user_info += ":" + quote(password, safe="")
    rest = quote(uri[start:], safe=_LEGAL_IN_URI)
    return uri[:start] + (f"{user_info}@{rest}" if user_info else rest)


def default_name(uri: str) -> str:
    """A name for a source that was given none: the file's stem, or the host."""
    kind = SCHEMES.get(scheme_of(uri), "file")
    try:
        address = split_credentials(uri)[0]
    except ValueError:
        return "source"
    if kind == "file":
        name = file_path(address, Path()).stem
    else:
        authority, rest = _AUTHORITY.fullmatch(address.partition("://")[2]).groups()  # type: ignore[union-attr]
        page = PurePosixPath(unquote(re.split("[?#]", rest)[0]))
        name = page.stem if kind == "http" and page.suffix else re.sub(r":\d*$", "", authority)
    name = "".join(c if c.isprintable() and c != "/" else "_" for c in name).strip()
    return name or "source"


def unique_names(names: list[str | None], defaults: list[str]) -> list[str]:
    """Names with the missing ones filled in from ``defaults``, made unique with ``-2``, ``-3``."""
    taken = {name for name in names if name is not None}
    result = []
    for name, default in zip(names, defaults, strict=True):
        if name is None:
            candidates = (default if n == 1 else f"{default}-{n}" for n in range(1, len(names) + len(taken) + 2))
            name = next(candidate for candidate in candidates if candidate not in taken)
            taken.add(name)
        result.append(name)
    return result
