"""What messages cost, from batch metadata on; no video, no model (`make test-services` installs what Kafka needs).

    python -m benchmarks.messages payloads                        CPU time per message, by schema and objects per frame
    python -m benchmarks.messages throughput [--messages 200000]  metadata to messages delivered to a Kafka mock cluster
    python -m benchmarks.messages edits                           CPU time per object of a metadata edit

Each prints one JSON object. Times are CPU times of this process, which other programs disturb less than the clock's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.scripted import ScriptedFrame, batch_of, objects_of, use_portable_api

use_portable_api()

from elements.messages.config import MessageConfig, load_message_config  # noqa: E402
from elements.metadata.edit import attach_json, classify, read_json, remove_objects  # noqa: E402
from pipelines.delivery.delivery import Settings  # noqa: E402
from pipelines.operators.content import Content  # noqa: E402
from pipelines.operators.message import MessageMaker, MessageSender  # noqa: E402
from tests.delivery.services import SERVICES, poll  # noqa: E402

CONFIG = Path(__file__).resolve().parents[1] / "configs/messages/msgconv.txt"
SOURCES = tuple(f"camera{n}" for n in range(8))
OBJECTS = 20
REPEAT_S = 1.0


def scripted(objects: int, sources: int = 1) -> Any:
    """A batch of tracked objects, one frame per source."""
    boxes = [(20.5 + 9 * n, 40.0 + n, 90.25 + 9 * n, 200.0 + n) for n in range(objects)]
    found = objects_of(*boxes, track_ids=np.arange(objects), class_ids=np.zeros(objects, np.int64))
    frames = [
        ScriptedFrame(found, ["person"] * objects, source_id=n, time_utc_ns=time.time_ns()) for n in range(sources)
    ]
    return batch_of(frames, mux=(1280, 720), padding=True)


def content(schema: str) -> Content:
    """As a message stage has it; every source is a configured sensor."""
    known = load_message_config(CONFIG)
    config = MessageConfig(*(dict.fromkeys(range(len(SOURCES)), group[0]) for group in groups(known)))
    return Content(schema, config_by_source=config)  # type: ignore[arg-type]


def groups(config: MessageConfig) -> tuple[Mapping[int, Any], ...]:
    """Sensors, places and analytics modules."""
    return config.sensors, config.places, config.analytics


def cpu_us(work: Callable[[], int]) -> tuple[float, int]:
    """CPU time of this process per item, in microseconds, and what one call of ``work`` counted."""
    work()
    started, items = time.process_time(), 0
    while time.process_time() < started + REPEAT_S:
        items += work()
    return (time.process_time() - started) / items * 1e6, items


def payloads() -> dict[str, Any]:
    """Batch metadata to JSON bytes."""
    results: dict[str, Any] = {}
    for schema in ("full", "minimal", "events"):
        maker = MessageMaker("message", "p", SOURCES, content(schema), padding=True)
        for objects in (1, 8, OBJECTS):
            batch = scripted(objects)
            sizes: list[int] = []

            def make(batch: Any = batch, maker: MessageMaker = maker, sizes: list[int] = sizes) -> int:
                made = [p for frame in batch.frame_items for p in maker.payloads(frame)]
                sizes[:] = map(len, made)
                return len(made)

            cost, _ = cpu_us(make)
            per_object = cost * len(sizes) / objects
            results[f"{schema}, {objects} objects"] = {
                "us_per_message": round(cost, 1), "us_per_object": round(per_object, 1), "bytes": sizes[0],
            }  # fmt: skip
    return results


def throughput(folder: Path, number: int) -> dict[str, Any]:
    """Metadata, full schema, JSON, outbox, sender, acknowledgement by Kafka."""
    kafka = SERVICES["kafka"](folder)
    problems: list[str] = []
    try:
        kafka.start()
        settings = Settings(kafka.connection(), folder / "outbox.db")
        sender = MessageSender(
            "message", "p", SOURCES, content("full"), settings, True, lambda text, _: problems.append(text)
        )
        poll(lambda: sender.delivery.status().state == "connected")
        batch = scripted(OBJECTS, len(SOURCES))
        started, cpu = time.monotonic(), time.process_time()
        for _ in range(number // (OBJECTS * len(SOURCES))):
            sender.handle_metadata(batch)
        made, made_cpu = time.monotonic() - started, time.process_time() - cpu
        poll(lambda: sender.stats["queued"] == 0, 300)
        delivered = time.monotonic() - started
        sender.close()
        stats = sender.stats
    finally:
        kafka.stop()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        **stats,
        "problems": problems,
        "messages_per_s": round(stats["delivered"] / delivered),
        "made_per_s": round(stats["made"] / made),
        "pipeline_cpu_us_per_message": round(made_cpu / stats["made"] * 1e6, 1),
        "sender_and_kafka_cpu_us_per_message": round(
            (children.ru_utime + children.ru_stime) / stats["delivered"] * 1e6, 1
        ),
    }


def edits() -> dict[str, Any]:
    """One edit of each object of fresh frames, on the portable runtime and on the real libnvds_meta behind a double of
    NVIDIA's pyservicemaker. What it costs to come to an object (the double is slow there) is told apart."""
    skip = importlib.import_module("tests.contract.nvds_double.native").SKIP
    batches = importlib.import_module("tests.contract.test_metadata_edit")

    def relabel(item: Any) -> None:
        item.label, item.class_id = "car", 2

    work: dict[str, Callable[[Any], Any]] = {
        "relabel": relabel,
        "attach_json": lambda item: attach_json(item, "plate", {"text": "AB 123", "score": 0.9}),
        "classify": lambda item: classify(item, "colour", "red", probability=0.9),
    }
    runtimes = {"portable": batches.Portable} | ({} if skip else {"libnvds_meta": batches.DeepStream})
    results: dict[str, dict[str, float]] = {}
    for name, runtime in runtimes.items():
        reaching = per_object(runtime, lambda item: None)
        costs = {what: per_object(runtime, edit) - reaching for what, edit in work.items()}
        costs["attach_json, read_json"] = (
            per_object(runtime, lambda item: (work["attach_json"](item), read_json(item, "plate"))) - reaching
        )
        costs["remove_objects"] = per_object(runtime, None) - reaching
        results[name] = {"reaching an object": reaching, **costs}
    return {name: {what: round(us, 1) for what, us in costs.items()} for name, costs in results.items()}


def per_object(runtime: Any, edit: Callable[[Any], Any] | None) -> float:
    """CPU time of an edit (None: removal) in microseconds per object, the least of ten rounds."""
    rounds = []
    for _ in range(10):
        batches = [runtime() for _ in range(40)]
        objects, started = 0, time.process_time()
        for batch in batches:
            for frame in batch.handle().frame_items:
                if edit is None:
                    objects += remove_objects(frame, lambda item: True)
                    continue
                for item in frame.object_items:
                    edit(item)
                    objects += 1
        rounds.append((time.process_time() - started) / objects)
    return min(rounds) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("payloads", "throughput", "edits"))
    parser.add_argument("--messages", type=int, default=200_000)
    given = parser.parse_args()
    if given.what == "throughput":
        with tempfile.TemporaryDirectory() as folder:
            result = throughput(Path(folder), given.messages)
    else:
        result = payloads() if given.what == "payloads" else edits()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
