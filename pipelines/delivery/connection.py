"""Where a broker is and how to log in: DeepStream's ``host;port[;topic]`` and URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one adapter is addressed.

    Attributes:
        port: where the address names none.
        schemes: URL schemes, and whether each means TLS.
        fields: what may follow ``host;port;`` in DeepStream's form.
    """

    port: int
    schemes: Mapping[str, bool]
    fields: tuple[str, ...] = ()


SCHEMES: dict[str, Scheme] = {
    "kafka": Scheme(9092, {"kafka": False, "kafkas": True}, ("topic",)),
    "mqtt": Scheme(1883, {"mqtt": False, "mqtts": True}, ("topic",)),
    "amqp": Scheme(5672, {"amqp": False, "amqps": True}, ("username", "password")),
    "redis": Scheme(6379, {"redis": False, "rediss": True}, ("topic",)),
    "nats": Scheme(4222, {"nats": False, "tls": True}, ("topic",)),
    "webhook": Scheme(80, {"http": False, "https": True}),
    "file": Scheme(0, {"file": False}),
}
TLS_PORTS = {"mqtts": 8883, "amqps": 5671, "https": 443}
REDACTED = "***"


class AddressError(ValueError):
    """An address that cannot be read. The message does not repeat the address, which may hold a password."""


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS files (PEM).

    Attributes:
        ca: certificate authorities to trust; None: the system's.
        cert: the client's certificate, if the broker asks for one.
        key: its private key.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """A broker's address and log-in. Its repr and `name` hold no secret.

    Attributes:
        broker: the adapter's name.
        hosts: host and port; several for Kafka and NATS.
        topic: where messages go that name no topic of their own.
        username: who logs in.
        password: with what; for webhook without a username, a bearer token.
        tls: None: without TLS.
        path: virtual host (AMQP), database (Redis), path and query (webhook), file (file).
        options: the adapter's own, each described there.
    """

    broker: str
    hosts: tuple[tuple[str, int], ...] = ()
    topic: str = ""
    username: str | None = None
    password: SecretStr | None = None
    tls: Tls | None = None
    path: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """For people: ``kafka at localhost:9092``."""
        if self.broker == "file":
            return f"file '{self.path}'"
        return f"{self.broker} at " + ",".join(joined(host, port) for host, port in self.hosts)

    @property
    def secret(self) -> str | None:
        """The password in plain text, for the client library only."""
        return None if self.password is None else self.password.get_secret_value()

    def redact(self, text: str) -> str:
        """The text without the password (as it is and percent-encoded) and without a webhook's path, often a secret."""
        hidden = [self.secret, quote(self.secret, safe="")] if self.secret else []
        if self.broker == "webhook" and len(self.path) > 1:
            hidden.append(self.path)
        for secret in hidden:
            text = text.replace(secret, REDACTED)
        return text


def joined(host: str, port: int) -> str:
    """``host:port``, with brackets round an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_connection(
    broker: str,
    address: str,
    *,
    topic: str = "",
    username: str | None = None,
    password: SecretStr | None = None,
    tls: Tls | None = None,
    options: Mapping[str, str] | None = None,
) -> Connection:
    """Read an address.

    Args:
        broker: an adapter's name.
        address: ``host;port``, with ``;topic`` (Kafka, MQTT, Redis, NATS) or ``;user;password`` (AMQP); or
            ``host:port``, several with commas for Kafka and NATS; or a URL such as ``amqps://user:password@host/vhost``;
            for file, a path.
        topic: wins over the address's; and so do ``username``, ``password`` and ``tls``.
        options: the adapter's own.

    Raises:
        AddressError: with what was expected, without the address.
    """
    if broker not in SCHEMES:
        raise AddressError(f"'{broker}' is no broker; known are {', '.join(SCHEMES)}")
    given = {"topic": topic, "username": username, "password": password, "tls": tls}
    found = _parse(broker, address.strip())
    found.update({name: value for name, value in given.items() if value})
    return Connection(broker, options=dict(options or {}), **found)  # type: ignore[arg-type]


def _parse(broker: str, address: str) -> dict[str, object]:
    if not address:
        raise AddressError(f"the connection of {broker} is empty; write {expected(broker)}")
    if broker == "file":
        return {"path": address.removeprefix("file://")}
    if "://" in address:
        return _parse_url(broker, address)
    if broker == "webhook":
        raise AddressError(f"the connection of webhook is no URL; write {expected(broker)}")
    if ";" in address:
        return _parse_deepstream(broker, address)
    return {"hosts": _hosts(broker, address, SCHEMES[broker].port)}


def _parse_deepstream(broker: str, address: str) -> dict[str, object]:
    fields = SCHEMES[broker].fields
    host, port, *rest = address.split(";", 1 + len(fields))
    if not host or not _is_port(port) or len(rest) > len(fields):
        raise AddressError(f"the connection of {broker} cannot be read; write {expected(broker)}")
    found: dict[str, object] = {name: value for name, value in zip(fields, rest, strict=False) if value}
    if "password" in found:
        found["password"] = SecretStr(str(found["password"]))
    return {"hosts": ((host.strip("[]"), int(port)),), **found}


def _parse_url(broker: str, address: str) -> dict[str, object]:
    scheme, rest = address.split("://", 1)
    known = SCHEMES[broker]
    if scheme.lower() not in known.schemes:
        raise AddressError(f"the connection of {broker} has the scheme '{scheme}'; write {expected(broker)}")
    authority, slash, path = rest.partition("/")
    user_info, at, hosts = authority.rpartition("@")
    if "@" in path and not at and not re.fullmatch(r"[^:]*(:\d+)?|\[.*\](:\d+)?", authority):
        raise AddressError(f"a '/' in the password of {broker} hides where the host begins; write it as %2F")
    username, colon, password = user_info.partition(":")
    found: dict[str, object] = {"hosts": _hosts(broker, hosts, TLS_PORTS.get(scheme.lower(), known.port))}
    if known.schemes[scheme.lower()]:
        found["tls"] = Tls()
    if username:
        found["username"] = unquote(username)
    if colon:
        found["password"] = SecretStr(unquote(password))
    path = unquote(path) if broker != "webhook" else slash + path
    name = "topic" if "topic" in known.fields and broker != "redis" else "path"
    return {**found, name: path}


def _hosts(broker: str, text: str, default_port: int) -> tuple[tuple[str, int], ...]:
    parts = text.split(",") if broker in ("kafka", "nats") else [text]
    found = []
    for part in parts:
        try:
            split = urlsplit("//" + part.strip())
            host, port = split.hostname, split.port
        except ValueError:
            host, port = None, None
        if not host or split.path or "@" in part:
            raise AddressError(f"the host of {broker} cannot be read; write {expected(broker)}")
        found.append((host, port if port is not None else default_port))
    return tuple(found)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text) < 65536


def expected(broker: str) -> str:
    """The forms of an adapter's address, for messages."""
    if broker == "file":
        return "the path of a .jsonl file"
    if broker == "webhook":
        return "https://host/path"
    known = SCHEMES[broker]
    tail = "".join(f"[;{name}" for name in known.fields) + "]" * len(known.fields)
    return f"host;port{tail}, host:port or {next(iter(known.schemes))}://host:port"
