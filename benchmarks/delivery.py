"""Durable delivery under load, to real brokers on loopback (`make test-services` installs them).

    python -m benchmarks.delivery throughput [--messages 300000]     to a Kafka mock cluster: messages/s
    python -m benchmarks.delivery outage BROKER [--rate 1000] [--seconds 30]
    python -m benchmarks.delivery away [--rate 600] [--seconds 600]  nobody answers: memory and disk over time
    python -m benchmarks.delivery video BROKER [--live] [--seconds 10]     frames/s before, during, after an outage

Each prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelines.delivery.connection import parse_connection
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.store import Message
from tests.delivery.services import SERVICES, TOPIC, Running, poll
from tests.ports import HOST, free_port

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
    broker = Running(name, folder)
    try:
        broker.start()
        delivery = Delivery(Settings(broker.service.connection(), folder / "outbox.db"))
        number, _ = put_at(delivery, rate, 5)
        broker.kill()
        away, longest = put_at(delivery, rate, seconds, number)
        status = delivery.status()
        broker.start()
        back = time.monotonic()
        after, _ = put_at(delivery, rate, 5, number + away)
        caught_up = poll(lambda: delivery.status().counters.queued == 0, 120)
        catch_up = time.monotonic() - back
        counters = delivery.close()
        total = number + away + after
        poll(lambda: len({json.loads(line)["n"] for line in broker.consumer.lines()}) >= total, 60)
        seen = [json.loads(line) for line in broker.consumer.lines()]
    finally:
        broker.stop()
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


def video(folder: Path, name: str, rate: float, seconds: float, live: bool) -> dict[str, Any]:
    """Frames/s of encoding and decoding in this process, in one run: without messages, with them, with the broker
    killed, and while the sender catches up. Messages are put from the streaming thread. Where other programs take
    the cores, frames per CPU second of this process say more than frames per second."""
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst

    Gst.init(None)
    broker = Running(name, folder)
    frames, sent, since = 0, 0, 0.0
    delivery: Delivery | None = None

    def on_buffer(_pad: Any, _info: Any) -> Any:
        nonlocal frames, sent
        frames += 1
        due = int((time.monotonic() - since) * rate)
        if delivery is not None and due > sent:
            delivery.put(messages(sent, due - sent))
            sent = due
        return Gst.PadProbeReturn.OK

    def phase() -> tuple[float, float]:
        time.sleep(1)
        before, started, cpu = frames, time.monotonic(), time.process_time()
        time.sleep(seconds)
        done = frames - before
        return done / (time.monotonic() - started), done / (time.process_time() - cpu)

    pipeline = Gst.parse_launch(
        f"videotestsrc is-live={live} ! video/x-raw,width=640,height=360,framerate=60/1 "
        f"! queue max-size-buffers=3 leaky={'downstream' if live else 'no'} ! x264enc speed-preset=ultrafast "
        "tune=zerolatency threads=1 ! avdec_h264 max-threads=1 ! fakesink name=out sync=false"
    )
    pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, on_buffer)
    try:
        broker.start()
        pipeline.set_state(Gst.State.PLAYING)
        found = {"alone": phase()}
        since = time.monotonic()
        delivery = Delivery(Settings(broker.service.connection(), folder / "outbox.db"))
        found["delivering"] = phase()
        broker.kill()
        found["broker_away"] = phase()
        broker.start()
        found["catching_up"] = phase()
    finally:
        pipeline.set_state(Gst.State.NULL)
        if delivery is not None:
            delivery.close(0)
        broker.stop()
    return {
        what: {state: round(values[index], 1) for state, values in found.items()}
        | {"ratios": [round(values[index] / found["alone"][index], 3) for values in found.values()]}
        for index, what in enumerate(("frames_per_s", "frames_per_cpu_s_of_the_pipeline"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throughput", "outage", "away", "video"))
    parser.add_argument("subject", nargs="?", default="kafka", help="the broker")
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--live", action="store_true", help="video: a source of 60 frames/s that waits for nobody")
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
            result = video(folder, given.subject, given.rate or 1000, given.seconds or 10, given.live)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
