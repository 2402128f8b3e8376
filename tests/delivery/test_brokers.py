"""Every adapter against its real broker: absent, silent, killed under load; and the pipeline killed."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.delivery.connection import parse_connection
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.store import Message
from pipelines.delivery.worker import Backoff
from tests.delivery.producer import KEYS, numbered
from tests.delivery.services import ROOT, SERVICES, TOPIC, black_hole, poll
from tests.ports import HOST
from tests.waiting import LIMIT_S, SOON_S

QUICK = Backoff(first=0.1, longest=0.3)


def settings_of(running, folder: Path) -> Settings:
    return Settings(running.service.connection(), folder / "outbox.db", timeout=2.0, backoff=QUICK)


class Seen:
    """What the consumer has got since now."""

    def __init__(self, running) -> None:
        self._consumer = running.consumer
        self._start = len(self._consumer.lines())

    def messages(self) -> list[dict]:
        return [json.loads(line) for line in self._consumer.lines()[self._start :]]

    def numbers(self) -> set[int]:
        return {message["n"] for message in self.messages()}

    def check(self, expected: range, duplicates: int) -> None:
        """All there, the first copies of each source in order, an id per number, few duplicates."""
        assert poll(lambda: self.numbers() >= set(expected)), f"{len(self.numbers())} of {len(expected)} arrived"
        messages = self.messages()
        assert self.numbers() == set(expected)
        for key in KEYS:
            numbers = [message["n"] for message in messages if message["key"] == key]
            first_copies = list(dict.fromkeys(numbers))
            assert first_copies == sorted(first_copies)
        assert (
            len({message["id"] for message in messages}) == len(expected) == len({(m["id"], m["n"]) for m in messages})
        )
        assert len(messages) - len(expected) <= duplicates


def put_steadily(delivery: Delivery, numbers: range) -> None:
    for n in numbers[::10]:
        delivery.put(numbered(TOPIC, range(n, n + 10)))
        time.sleep(0.005)


def test_broker_absent_at_start_then_killed_under_load(running, tmp_path):
    running.never_started()
    seen = Seen(running)
    delivery = Delivery(settings_of(running, tmp_path))
    try:
        delivery.put(numbered(TOPIC, range(500)))
        assert poll(lambda: delivery.status().state == "waiting")
        assert delivery.status().counters.queued == 500

        running.start()
        put_steadily(delivery, range(500, 1000))
        assert poll(lambda: delivery.status().counters.delivered >= 600)

        running.kill()
        put_steadily(delivery, range(1000, 1500))
        assert poll(lambda: delivery.status().state == "waiting")
        running.start()
        seen.check(range(1500), duplicates=1000)
        assert poll(lambda: delivery.status().counters.queued == 0)
    finally:
        counters = delivery.close()
    assert (counters.made, counters.delivered, sum(counters.dropped.values())) == (1500, 1500, 0)


def test_pipeline_killed_in_mid_run_and_started_again(running, tmp_path):
    running.start()
    seen = Seen(running)
    pickled = tmp_path / "settings"
    pickled.write_bytes(pickle.dumps(settings_of(running, tmp_path)))
    command = [sys.executable, "-m", "tests.delivery.producer", str(pickled)]

    first = subprocess.Popen([*command, "0", "100000"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    for line in first.stdout:
        if int(line) >= 1000:
            break
    first.send_signal(signal.SIGKILL)
    said = [int(line) for line in first.stdout.read().split("\n")[:-1]]
    first.wait()
    put = said[-1] if said else 1000

    # The call that was under way when the signal came may have been carried out: then its ten messages count too.
    time.sleep(0.1)
    second = subprocess.run([*command, str(put + 10), "500"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert second.stderr == ""
    wanted = set(range(put)) | set(range(put + 10, put + 510))
    assert poll(lambda: seen.numbers() >= wanted)
    assert seen.numbers() - wanted <= set(range(put, put + 10))
    seen.check(range(put + 510) if len(seen.numbers()) == put + 510 else sorted(wanted), duplicates=2000)


@pytest.mark.parametrize("broker", SERVICES)
def test_broker_that_accepts_and_never_answers(broker, tmp_path):
    pytest.importorskip(
        {"kafka": "confluent_kafka", "mqtt": "paho", "amqp": "pika", "webhook": "urllib3"}.get(broker, broker)
    )
    with black_hole() as port:
        address = f"http://{HOST}:{port}/" if broker == "webhook" else f"{HOST};{port}"
        delivery = Delivery(
            Settings(parse_connection(broker, address), tmp_path / "outbox.db", timeout=0.5, backoff=QUICK)
        )
        try:
            delivery.put(numbered(TOPIC, range(100)))
            assert poll(lambda: delivery.status().state == "waiting"), delivery.status()
            assert "no " in delivery.status().error
        finally:
            started = time.monotonic()
            counters = delivery.close(timeout=0.2)
    assert time.monotonic() - started < SOON_S
    assert (counters.made, counters.queued, counters.delivered) == (100, 100, 0)


def test_a_second_run_sends_what_the_first_one_left(running, tmp_path):
    running.start()
    seen = Seen(running)
    real = settings_of(running, tmp_path)
    with black_hole() as port:
        away = replace(real.connection, hosts=((HOST, port),))
        delivery = Delivery(replace(real, connection=away, timeout=0.3))
        delivery.put(numbered(TOPIC, range(50)))
        assert delivery.close(timeout=0).queued == 50
    delivery = Delivery(real)
    delivery.put(numbered(TOPIC, range(50, 60)))
    counters = delivery.close(timeout=LIMIT_S)
    assert (counters.made, counters.delivered, counters.queued) == (60, 60, 0)
    seen.check(range(60), duplicates=0)


@pytest.mark.parametrize("running", ["kafka", "nats"], indirect=True, scope="session")
def test_a_message_that_is_too_large_is_counted_and_holds_nothing_up(running, tmp_path):
    running.start()
    seen = Seen(running)
    delivery = Delivery(settings_of(running, tmp_path))
    delivery.put([*numbered(TOPIC, range(5)), Message("door", TOPIC, b" " * 3_000_000), *numbered(TOPIC, range(5, 10))])
    counters = delivery.close(timeout=LIMIT_S)
    assert (counters.made, counters.delivered, counters.dropped["refused"], counters.queued) == (11, 10, 1, 0)
    seen.check(range(10), duplicates=0)
