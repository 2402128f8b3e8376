"""Durable delivery under load, to real brokers on loopback (`make test-services` installs them).

    python -m benchmarks.delivery throughput [--messages 300000]     to a Kafka mock cluster: messages/s
    python -m benchmarks.delivery outage BROKER [--rate 1000] [--seconds 30]
    python -m benchmarks.delivery away [--rate 600] [--seconds 600]  nobody answers: memory and disk over time
    python -m benchmarks.delivery video CLIP [--rate 1000]           frames/s without, with and with an absent broker

Each prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelines.delivery.connection import Connection, parse_connection
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.store import Message
from tests.delivery.services import HOST, SERVICES, TOPIC, Consumer, Service, free_port, poll

KEYS = tuple(f"camera{n}" for n in range(8))
PADDING = "x" * 350  # a payload is then about as long as a full-schema one without its objects
BATCH = 8


def messages(first: int, number: int) -> list[Message]:
    """Numbered messages of eight sources, JSON made one by one as a message stage does."""
    found = []
    for n in range(first, first + number):
        key = KEYS[n % len(KEYS)]
        found.append(Message(key, TOPIC, json.dumps({"key": key, "n": n, "padding": PADDING}).encode()))
    return found


def put_at(delivery: Delivery, rate: float, seconds: float, first: int = 0) -> tuple[int, float]:
    """Put batches at a steady rate; returns how many messages, and the longest put in seconds."""
    started, longest, n = time.monotonic(), 0.0, first
    while (now := time.monotonic()) < started + seconds:
        due = first + int((now - started) * rate)
        while n < due:
            batch = messages(n, BATCH)
            before = time.perf_counter()
            delivery.put(batch)
            longest = max(longest, time.perf_counter() - before)
            n += BATCH
        time.sleep(BATCH / rate / 2)
    return n - first, longest


@contextmanager
def service(name: str, folder: Path) -> Iterator[tuple[Service, Consumer]]:
    """A broker and its consumer."""
    running = SERVICES[name](folder)
    consumer = Consumer(running, folder)
    try:
        running.start()
        consumer.start()
        yield running, consumer
    finally:
        consumer.stop()
        running.stop()


def throughput(folder: Path, number: int) -> dict[str, Any]:
    """Metadata to delivered Kafka message: JSON, outbox, sender, acknowledgement."""
    kafka = SERVICES["kafka"](folder)
    try:
        kafka.start()
        delivery = Delivery(Settings(kafka.connection(), folder / "outbox.db"))
        poll(lambda: delivery.status().state == "connected")
        started = time.monotonic()
        putting = 0.0
        for n in range(0, number, 64):
            batch = messages(n, 64)
            before = time.perf_counter()
            delivery.put(batch)
            putting += time.perf_counter() - before
        made = time.monotonic() - started
        poll(lambda: delivery.status().counters.queued == 0, 300)
        delivered = time.monotonic() - started
        counters = delivery.close()
    finally:
        kafka.stop()
    return {
        "counters": asdict(counters),
        "messages_per_s": round(counters.delivered / delivered),
        "made_in_s": round(made, 2),
        "put_us_per_message": round(putting / number * 1e6, 2),
    }


def outage(folder: Path, name: str, rate: float, seconds: float) -> dict[str, Any]:
    """5 s of load, the broker killed for ``seconds`` under load, 5 s more; what the consumer saw."""
    with service(name, folder) as (broker, consumer):
        delivery = Delivery(Settings(broker.connection(), folder / "outbox.db"))
        number, _ = put_at(delivery, rate, 5)
        broker.kill()
        if name == "webhook":
            consumer.stop()
        away, longest = put_at(delivery, rate, seconds, number)
        status = delivery.status()
        broker.start()
        if name == "webhook":
            consumer.start()
        back = time.monotonic()
        after, _ = put_at(delivery, rate, 5, number + away)
        caught_up = poll(lambda: delivery.status().counters.queued == 0, 120)
        catch_up = time.monotonic() - back
        counters = delivery.close()
        total = number + away + after
        poll(lambda: len({json.loads(line)["n"] for line in consumer.lines()}) >= total, 60)
        seen = [json.loads(line) for line in consumer.lines()]
    first_copies = {key: list(dict.fromkeys(m["n"] for m in seen if m["key"] == key)) for key in KEYS}
    return {
        "broker": name,
        "made": counters.made,
        "delivered": counters.delivered,
        "dropped": sum(counters.dropped.values()),
        "queued_at_return": status.counters.queued,
        "state_while_away": f"{status.state}: {status.error}",
        "arrived": len({m["n"] for m in seen}),
        "missing": total - len({m["n"] for m in seen}),
        "duplicates": len(seen) - len({m["n"] for m in seen}),
        "in_order": all(numbers == sorted(numbers) for numbers in first_copies.values()),
        "caught_up": caught_up,
        "catch_up_s": round(catch_up, 1),
        "longest_put_ms": round(longest * 1e3, 2),
    }


def away(folder: Path, rate: float, seconds: float) -> dict[str, Any]:
    """Nobody listens: resident memory of pipeline and sender, and the outbox's size, every 30 s."""
    delivery = Delivery(Settings(parse_connection("kafka", f"{HOST};{free_port()}", topic=TOPIC), folder / "outbox.db"))
    samples: list[dict[str, float]] = []

    def sample() -> None:
        while not done.wait(min(30.0, seconds / 10)):
            files = sum(file.stat().st_size for file in folder.glob("outbox.db*"))
            samples.append(
                {
                    "queued": delivery.status().counters.queued,
                    "pipeline_mib": resident("self"),
                    "sender_mib": resident(str(delivery.sender_pid)),
                    "disk_mib": round(files / 2**20, 1),
                }
            )

    done = threading.Event()
    watcher = threading.Thread(target=sample)
    watcher.start()
    number, longest = put_at(delivery, rate, seconds)
    done.set()
    watcher.join()
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    counters = delivery.close(0)
    sender = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "put": number,
        "queued": counters.queued,
        "longest_put_ms": round(longest * 1e3, 2),
        "pipeline_cpu_s": round(cpu.ru_utime + cpu.ru_stime, 1),
        "sender_cpu_s": round(sender.ru_utime + sender.ru_stime, 1),
        "samples": samples,
    }


def resident(process: str) -> float:
    """Resident memory in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1)


def video(folder: Path, clip: str, rate: float) -> dict[str, Any]:
    """Frames/s of decoding a clip in this process: alone, with messages to a broker, with messages to an absent one."""
    with service("mqtt", folder) as (broker, _):
        absent = parse_connection("mqtt", f"{HOST};{free_port()}", topic=TOPIC)
        rates: dict[str, list[float]] = {"alone": [], "delivering": [], "broker_absent": []}
        for round_number in range(3):
            rates["alone"].append(_frames_per_s(clip, None))
            for state, connection in (("delivering", broker.connection()), ("broker_absent", absent)):
                rates[state].append(_with_messages(clip, connection, folder / f"{state}{round_number}.db", rate))
    best = {state: max(values) for state, values in rates.items()}
    return {
        "frames_per_s": {state: round(value, 1) for state, value in best.items()},
        "ratio_delivering": round(best["delivering"] / best["alone"], 3),
        "ratio_broker_absent": round(best["broker_absent"] / best["alone"], 3),
    }


def _with_messages(clip: str, connection: Connection, outbox: Path, rate: float) -> float:
    delivery = Delivery(Settings(connection, outbox))
    poll(lambda: delivery.status().state in ("connected", "waiting"))
    try:
        return _frames_per_s(clip, (delivery, rate))
    finally:
        delivery.close(0)


def _frames_per_s(clip: str, load: tuple[Delivery, float] | None) -> float:
    """Decode through GStreamer at 25 frames/s x realtime limits off; messages are put from the streaming thread."""
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst

    Gst.init(None)
    pipeline = Gst.parse_launch(f"uridecodebin uri={Path(clip).absolute().as_uri()} ! videoconvert ! fakesink name=out")
    count, sent, started = 0, 0, 0.0

    def on_buffer(_pad: Any, _info: Any) -> Any:
        nonlocal count, sent, started
        now = time.monotonic()
        started = started or now
        count += 1
        if load is not None and (due := int((now - started) * load[1])) > sent:
            load[0].put(messages(sent, due - sent))
            sent = due
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, on_buffer)
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    elapsed = time.monotonic() - started
    pipeline.set_state(Gst.State.NULL)
    return count / elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throughput", "outage", "away", "video"))
    parser.add_argument("subject", nargs="?", default="kafka", help="the broker, or the clip")
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "throughput":
            result = throughput(folder, given.messages)
        elif given.what == "outage":
            result = outage(folder, given.subject, given.rate or 1000, given.seconds or 30)
        elif given.what == "away":
            result = away(folder, given.rate or 600, given.seconds or 600)
        else:
            result = video(folder, given.subject, given.rate or 1000)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
