"""MQTT with TLS, user and password, QoS 2."""

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
from tests.delivery.services import HOST, TOPIC, Mosquitto, poll

SECRET = "pa#ss/w@rd"


class SecuredMosquitto(Mosquitto):
    def command(self) -> list[str]:
        command = super().command()
        authority = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ["-keyout", str(self.folder / "key.pem"), "-out", str(self.folder / "cert.pem")]
        names = ["-days", "2", "-subj", "/CN=broker", "-addext", f"subjectAltName=IP:{HOST}"]
        subprocess.run([*authority, *files, *names], check=True, capture_output=True)
        subprocess.run(
            ["mosquitto_passwd", "-c", "-b", str(self.folder / "users"), "guard", SECRET],
            check=True,
            capture_output=True,
        )
        with (self.folder / "conf").open("a") as conf:
            conf.write(f"certfile {self.folder}/cert.pem\nkeyfile {self.folder}/key.pem\n")
            conf.write(f"allow_anonymous false\npassword_file {self.folder}/users\n")
        return command


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredMosquitto]:
    service = SecuredMosquitto(tmp_path_factory.mktemp("mosquitto"))
    service.start()
    yield service
    service.stop()


def delivery_to(broker: SecuredMosquitto, folder: Path, password: str, ca: Path | None) -> Delivery:
    connection = parse_connection(
        "mqtt",
        f"mqtts://{HOST}:{broker.port}",
        topic=TOPIC,
        username="guard",
        password=SecretStr(password),
        tls=Tls(ca),
        options={"qos": "2"},
    )
    return Delivery(Settings(connection, folder / "outbox.db", timeout=5.0, backoff=Backoff(0.1, 0.2)))


def test_delivered_with_the_right_authority_and_password(broker, tmp_path):
    delivery = delivery_to(broker, tmp_path, SECRET, broker.folder / "cert.pem")
    delivery.put(numbered(TOPIC, range(100)))
    assert delivery.close(timeout=20).delivered == 100


@pytest.mark.parametrize(
    ("password", "trusted", "error"),
    [("wrong" + SECRET, True, "refuses the log-in: Not authorized"), (SECRET, False, "certificate verify failed")],
)
def test_a_wrong_log_in_is_named_without_the_password(broker, tmp_path, caplog, capfd, password, trusted, error):
    delivery = delivery_to(broker, tmp_path, password, broker.folder / "cert.pem" if trusted else None)
    try:
        delivery.put(numbered(TOPIC, range(3)))
        assert poll(lambda: error in delivery.status().error), delivery.status()
        assert poll(lambda: error in caplog.text)
        assert password not in repr(delivery.status()) + caplog.text + "".join(capfd.readouterr())
    finally:
        assert delivery.close(timeout=0).queued == 3


def test_no_password_on_the_senders_command_line(broker, tmp_path):
    delivery = delivery_to(broker, tmp_path, SECRET, broker.folder / "cert.pem")
    process = Path(f"/proc/{delivery.sender_pid}")
    assert SECRET not in (process / "cmdline").read_text() + (process / "environ").read_text()
    delivery.close(timeout=0)
