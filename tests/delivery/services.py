"""Real brokers on loopback, each with its state in a folder of its own, that can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.delivery.connection import Connection, parse_connection
from tests.ports import HOST, free_port
from tests.waiting import LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "gstorch.test"
BINARY_FOLDERS = ("/usr/lib/rabbitmq/bin", "/usr/sbin")  # Debian's wrapper for RabbitMQ changes user and folder


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False


def poll(condition: Callable[[], object], seconds: float = LIMIT_S) -> bool:
    """Wait until ``condition()`` holds; False when it still does not after ``seconds``."""
    until = time.monotonic() + seconds
    while not (held := condition()) and time.monotonic() < until:
        time.sleep(0.02)
    return bool(held)


class Service:
    """A broker process."""

    broker = ""
    binary = ""
    options: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        program = shutil.which(self.binary, path=os.pathsep.join([*BINARY_FOLDERS, os.environ.get("PATH", "")]))
        if program is None:
            pytest.skip(f"{self.binary} is not installed: make test-services")
        self.program = program
        self._process: subprocess.Popen[Any] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment()},
                start_new_session=True,
            )
        assert poll(lambda: answers(self.port)), (self.folder / "log").read_text()[-2000:]

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._process.wait()
            self._process = None
            assert poll(lambda: not answers(self.port)), "it does not die"

    def stop(self) -> None:
        self.kill()

    def connection(self) -> Connection:
        return parse_connection(self.broker, f"{HOST};{self.port}", topic=TOPIC, options=self.options)


class Mosquitto(Service):
    broker, binary = "mqtt", "mosquitto"

    def command(self) -> list[str]:
        lines = [
            f"listener {self.port} {HOST}",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {self.folder}/",
            "max_queued_messages 0",
        ]
        if os.getuid() == 0:
            lines.append("user root")
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        return ["-c", str(self.folder / "conf")]

    def kill(self, number: int = signal.SIGTERM) -> None:
        """It writes its sessions when it is told to end; what it took before a SIGKILL it would lose by itself."""
        super().kill(number)


class RedisServer(Service):
    broker, binary = "redis", "redis-server"

    def command(self) -> list[str]:
        return [
            *("--bind", HOST, "--port", str(self.port), "--dir", str(self.folder)),
            *("--appendonly", "yes", "--save", ""),
        ]


class NatsServer(Service):
    broker, binary = "nats", "nats-server"
    options: Mapping[str, str] = {"stream": "gstorch-test"}

    def command(self) -> list[str]:
        return ["-a", HOST, "-p", str(self.port), "-js", "-sd", str(self.folder)]


class RabbitMq(Service):
    broker, binary = "amqp", "rabbitmq-server"
    options: Mapping[str, str] = {"queue": "gstorch-test"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._epmd_port = free_port()
        self._distribution_port = free_port()
        epmd = shutil.which("epmd")
        assert epmd is not None
        self._epmd = subprocess.Popen(
            [epmd, "-port", str(self._epmd_port), "-address", HOST],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def command(self) -> list[str]:
        return []

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": "gstorch@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def stop(self) -> None:
        self.kill()
        self._epmd.terminate()
        self._epmd.wait()


class KafkaCluster(Service):
    """librdkafka's mock cluster. "Killed" is the broker gone from the network: its state lives in its process."""

    broker, binary = "kafka", "true"

    def start(self) -> None:
        if self._process is not None:
            return self._say("up")
        pytest.importorskip("confluent_kafka")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.delivery.kafka_cluster", TOPIC],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rpartition(":")[2])
        return None

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._say("down")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _say(self, command: str) -> None:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == command


class Endpoint(Service):
    """A web server; its consumer is the server."""

    broker, binary = "webhook", "true"

    def start(self) -> None:
        """Nothing beside the consumer."""

    def connection(self) -> Connection:
        return parse_connection("webhook", f"http://{HOST}:{self.port}/hook", topic=TOPIC)


SERVICES = {s.broker: s for s in (KafkaCluster, Mosquitto, RabbitMq, RedisServer, NatsServer, Endpoint)}


class Consumer:
    """Messages as another process sees them."""

    def __init__(self, service: Service, folder: Path) -> None:
        self._service = service
        self._output = folder / "consumed"
        self._output.touch()
        self._process: subprocess.Popen[Any] | None = None

    def start(self) -> None:
        was = self._said_ready()
        command = [
            sys.executable,
            "-m",
            "tests.delivery.consumers",
            self._service.broker,
            HOST,
            str(self._service.port),
        ]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen([*command, TOPIC], stdout=output, cwd=ROOT)
        assert poll(lambda: self._said_ready() > was), "the consumer does not come up"

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def lines(self) -> list[str]:
        whole, _, _ = self._output.read_text().rpartition("\n")
        return [line for line in whole.split("\n") if line.startswith("{")]

    def _said_ready(self) -> int:
        return self._output.read_text().count("ready")


class Running:
    """A broker and its consumer."""

    def __init__(self, broker: str, folder: Path) -> None:
        self.service = SERVICES[broker](folder)
        self.consumer = Consumer(self.service, folder)
        self._up = self._consuming = False

    def start(self) -> None:
        """Bring it up, if it is not; the consumer stays through the broker's absence."""
        if not self._up:
            self.service.start()
            self._up = True
        if not self._consuming:
            self.consumer.start()
            self._consuming = True

    def kill(self) -> None:
        """Take it away."""
        self.service.kill()
        self._up = False
        if isinstance(self.service, Endpoint):
            self.consumer.stop()
            self._consuming = False

    def never_started(self) -> None:
        """Have it away, and messages waiting for the consumer all the same."""
        if isinstance(self.service, (Mosquitto, KafkaCluster)):
            self.start()  # MQTT: a session to collect in; Kafka: its port is known then
        if self._up:
            self.kill()

    def stop(self) -> None:
        self.consumer.stop()
        self.service.stop()


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.create_server((HOST, 0), backlog=128) as server:
        yield int(server.getsockname()[1])
