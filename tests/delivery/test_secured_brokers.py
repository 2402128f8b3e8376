"""TLS and log-ins: what is right is delivered, what is wrong is named, and no password is told."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipelines.delivery.connection import Tls, parse_connection
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.worker import Backoff
from tests.delivery.producer import numbered
from tests.delivery.services import TOPIC, Mosquitto, NatsServer, RedisServer, Service, poll
from tests.ports import HOST
from tests.waiting import LIMIT_S

SECRET = "pa#ss/w@rd"


class Secured(Service):
    """With a certificate of its own making and one user."""

    scheme = ""
    user: str | None = "guard"

    def certify(self) -> None:
        authority = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ["-keyout", str(self.key), "-out", str(self.certificate)]
        names = ["-days", "2", "-subj", "/CN=broker", "-addext", f"subjectAltName=IP:{HOST}"]
        subprocess.run([*authority, *files, *names], check=True, capture_output=True)

    @property
    def key(self) -> Path:
        return self.folder / "key.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "cert.pem"


class SecuredMosquitto(Secured, Mosquitto):
    scheme, options = "mqtts", {"qos": "2"}

    def command(self) -> list[str]:
        command = super().command()
        users = str(self.folder / "users")
        subprocess.run(["mosquitto_passwd", "-c", "-b", users, "guard", SECRET], check=True, capture_output=True)
        conf = self.folder / "conf"
        conf.write_text(
            conf.read_text().replace("allow_anonymous true", "allow_anonymous false")
            + f"password_file {users}\ncertfile {self.certificate}\nkeyfile {self.key}\n"
        )
        return command


class SecuredRedis(Secured, RedisServer):
    scheme, user = "rediss", None

    def command(self) -> list[str]:
        return [
            *("--bind", HOST, "--port", "0", "--tls-port", str(self.port), "--dir", str(self.folder), "--save", ""),
            *("--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key), "--tls-auth-clients", "no"),
            *("--requirepass", SECRET),
        ]


class SecuredNats(Secured, NatsServer):
    scheme = "tls"

    def command(self) -> list[str]:
        files = ["--tls", "--tlscert", str(self.certificate), "--tlskey", str(self.key)]
        return [*super().command(), *files, "--user", "guard", "--pass", SECRET]


@pytest.fixture(scope="module", params=[SecuredMosquitto, SecuredRedis, SecuredNats], ids=["mqtt", "redis", "nats"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    service: Secured = request.param(tmp_path_factory.mktemp("secured"))
    service.certify()
    service.start()
    yield service
    service.stop()


def delivery_to(broker: Secured, folder: Path, password: str, trusted: bool) -> Delivery:
    connection = parse_connection(
        broker.broker,
        f"{broker.scheme}://{HOST}:{broker.port}",
        topic=TOPIC,
        username=broker.user,
        password=SecretStr(password),
        tls=Tls(broker.certificate if trusted else None),
        options=broker.options,
    )
    return Delivery(Settings(connection, folder / "outbox.db", timeout=5.0, backoff=Backoff(0.1, 0.2)))


def test_delivered_with_the_right_authority_and_password(broker, tmp_path):
    delivery = delivery_to(broker, tmp_path, SECRET, trusted=True)
    process = Path(f"/proc/{delivery.sender_pid}")
    assert SECRET not in (process / "cmdline").read_text() + (process / "environ").read_text()
    delivery.put(numbered(TOPIC, range(100)))
    assert delivery.close(timeout=LIMIT_S).delivered == 100


@pytest.mark.parametrize(
    ("password", "trusted", "errors"),
    [
        ("wrong" + SECRET, True, ("Not authorized", "invalid username-password pair", "Authorization Violation")),
        (SECRET, False, ("certificate verify failed",)),
    ],
    ids=["password", "authority"],
)
def test_a_wrong_log_in_is_named_without_the_password(broker, tmp_path, caplog, capfd, password, trusted, errors):
    delivery = delivery_to(broker, tmp_path, password, trusted)
    try:
        delivery.put(numbered(TOPIC, range(3)))
        assert poll(lambda: any(error in delivery.status().error for error in errors)), delivery.status()
        assert poll(lambda: any(error in caplog.text for error in errors))
        assert password not in repr(delivery.status()) + caplog.text + "".join(capfd.readouterr())
    finally:
        assert delivery.close(timeout=0).queued == 3
