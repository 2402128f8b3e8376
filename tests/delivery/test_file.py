"""The file adapter, and what happens to a sender that dies."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from pipelines.delivery.backlog import Queued
from pipelines.delivery.connection import parse_connection
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.file import File
from pipelines.delivery.worker import Backoff
from tests.delivery.producer import numbered
from tests.delivery.services import poll


def settings(folder: Path, target: Path, **options: str) -> Settings:
    place = parse_connection("file", str(target), options=options)
    return Settings(place, folder / "outbox.db", backoff=Backoff(0.1, 0.2))


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["payload"]["n"] for line in path.read_text().splitlines()]


def test_lines_and_a_line_that_a_crash_cut_off(tmp_path):
    target = tmp_path / "out" / "messages.jsonl"
    delivery = Delivery(settings(tmp_path, target))
    delivery.put(numbered("t", range(5)))
    delivery.close()
    with target.open("a") as file:
        file.write('{"id": "cut')
    delivery = Delivery(settings(tmp_path, target))
    delivery.put(numbered("t", range(5, 8)))
    delivery.close()
    assert numbers(target) == list(range(8))


def test_rotation_by_size_keeps_so_many(tmp_path):
    adapter = File(parse_connection("file", str(tmp_path / "m.jsonl"), options={"rotate_mb": "1", "keep": "2"}))
    adapter.connect()
    for number in range(8):
        payload = json.dumps({"n": number, "text": "x" * 600_000}).encode()
        assert [r.number for r in adapter.send([Queued(number, f"i-{number}", "door", "t", payload, 0.0)])] == [number]
    adapter.close()
    assert {p.name: numbers(p) for p in tmp_path.glob("m.jsonl*")} == {
        "m.jsonl": [],
        "m.jsonl.1": [6, 7],
        "m.jsonl.2": [4, 5],
    }


def test_a_target_that_cannot_be_written_is_named_and_messages_wait(tmp_path):
    (tmp_path / "taken").write_text("")
    delivery = Delivery(settings(tmp_path, tmp_path / "taken" / "m.jsonl"))
    delivery.put(numbered("t", range(3)))
    assert poll(
        lambda: "taken/m.jsonl': File exists" in delivery.status().error or "Not a directory" in delivery.status().error
    )
    assert delivery.close(timeout=0).queued == 3


def test_a_sender_that_is_killed_is_started_again(tmp_path, caplog):
    delivery = Delivery(settings(tmp_path, tmp_path / "m.jsonl"))
    assert poll(lambda: delivery.status().state == "connected")
    was = delivery.sender_pid
    os.kill(was, signal.SIGKILL)
    delivery.put(numbered("t", range(10)))
    assert poll(lambda: delivery.status().counters.delivered == 10)
    assert delivery.sender_pid != was
    assert "ended with status -9; started again" in caplog.text
    delivery.close()
    assert numbers(tmp_path / "m.jsonl") == list(range(10))


def test_messages_of_an_outbox_that_is_deleted_are_counted_as_dropped(tmp_path, caplog):
    delivery = Delivery(settings(tmp_path, tmp_path))
    delivery.put(numbered("t", range(5)))
    (tmp_path / "outbox.db").unlink()
    counters = delivery.close(0.1)
    assert (counters.made, counters.delivered, counters.queued, sum(counters.dropped.values())) == (5, 0, 0, 5)
    assert "5 messages for file" in caplog.text
    assert "are lost: the outbox" in caplog.text
