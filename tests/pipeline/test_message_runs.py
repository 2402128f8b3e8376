"""Message stages in whole runs: what arrives, what waits, and that the video does not."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.clips import drifting, make_clip
from tests.delivery.services import Running
from tests.gstorch_cli import gstorch, gstorch_interrupted, line_count
from tests.onnx_models import finder, save
from tests.ports import HOST, free_port
from tests.waiting import SOON_S, wait_for

FRAMES = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clips and a model."""
    folder = tmp_path_factory.mktemp("messages")
    for index, name in enumerate(("door", "yard")):
        make_clip(folder / f"{name}.mp4", 320, 180, FRAMES, drifting(320, 180, index))
    save(finder("yolov8"), folder / "finder.onnx")
    return folder


def definition(folder: Path, target: Path, *stages: dict[str, Any]) -> Path:
    """A definition with these message stages behind a model and a tracker, outboxes in ``target``."""
    lines = [{"message": {"outbox": {"folder": str(target)}, **stage}} for stage in stages]
    document = {
        "pipeline": "p",
        "sources": [str(folder / "door.mp4"), str(folder / "yard.mp4")],
        "stages": [{"infer": {"model": str(folder / "finder.onnx")}}, {"track": {}}, *lines],
        "outputs": [{"events": {"path": str(target / "events.jsonl")}}],
    }
    path = target / "pipeline.yaml"
    path.write_text(json.dumps(document))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def adds_up(stats: dict[str, int]) -> bool:
    return stats["made"] == stats["delivered"] + stats["queued"] + stats["dropped"]


def test_messages_of_two_sources_say_what_the_event_file_says(folder: Path, tmp_path: Path) -> None:
    stages = [
        {"schema": schema, "name": schema, "broker": "file", "connection": str(tmp_path / f"to-{schema}.jsonl"),
         "sensors": {"door": {"id": "CAM_D"}, "yard": {"id": "CAM_Y"}}}
        for schema in ("events", "minimal", "full")
    ]  # fmt: skip
    result = gstorch("run", definition(folder, tmp_path, *stages), "--json", "-q")
    assert result.code == 0, result.stderr
    events = lines(tmp_path / "events.jsonl")
    objects = sum(len(event["objects"]) for event in events)
    operators = result.summary["operators"]
    assert [operators[name]["delivered"] for name in ("events", "minimal", "full")] == [60, 60, objects]
    assert all(adds_up(operators[name]) for name in ("events", "minimal", "full"))

    def of(name: str) -> list[dict[str, Any]]:
        return [message["payload"] for message in lines(tmp_path / f"to-{name}.jsonl")]

    sensors = {"door": "CAM_D", "yard": "CAM_Y"}
    for event, message in zip(events, of("events"), strict=True):
        assert message["sensor"]["id"] == sensors[event["source"]]
        assert {key: message[key] for key in event} == event
    for event, message in zip(events, of("minimal"), strict=True):
        assert (message["sensorId"], message["id"]) == (sensors[event["source"]], str(event["frame"]))
        assert message["@timestamp"] == event["time_utc"]
        assert [o.split("|")[0] for o in message["objects"]] == [str(o["track_id"]) for o in event["objects"]]
    found = [(m["sensor"]["id"], m["object"]["id"], m["object"]["bbox"]["topleftx"]) for m in of("full")]
    told = [(sensors[e["source"]], str(o["track_id"]), int(o["bbox"][0])) for e in events for o in e["objects"]]
    assert found == told
    assert len({m["messageid"] for m in of("full")}) == objects


def test_the_broker_is_away_the_video_is_not_and_a_later_delivery_catches_up(folder: Path, tmp_path: Path) -> None:
    broker = Running("nats", tmp_path)
    stage = {
        "broker": "nats", "connection": f"{HOST};{broker.service.port}", "topic": "gstorch.test", "timeout": "1s",
        "options": {"stream": "gstorch-test"},
    }  # fmt: skip
    path = definition(folder, tmp_path, stage)
    result = gstorch("run", path, "--json", "-q")
    assert result.code == 0, result.stderr
    assert result.summary["frames"] == 2 * FRAMES
    assert result.summary["operators"]["message"] == {"made": 60, "delivered": 0, "queued": 60, "dropped": 0}
    left = gstorch("deliver", path, "--timeout", "0.5", "-q", "--json")
    assert (left.code, left.summary["message"]["queued"]) == (3, 60)
    try:
        broker.start()
        result = gstorch("deliver", path, "--json")
        assert (result.code, result.summary["message"]["delivered"]) == (0, 60), result.stderr
        wait_for(lambda: len(broker.consumer.lines()) >= 60)
        assert [
            json.loads(line)["frame"] for line in broker.consumer.lines() if json.loads(line)["source_id"] == 0
        ] == [*range(FRAMES)]
    finally:
        broker.stop()


def test_ctrl_c_while_the_broker_is_away(folder: Path, tmp_path: Path) -> None:
    stage = {"broker": "kafka", "connection": f"{HOST};{free_port()}", "topic": "t"}
    path = definition(folder, tmp_path, stage)
    arguments = ("run", path, "--json", "-q", "--set", "sources.door.loop=true")
    events = tmp_path / "events.jsonl"
    result, seconds = gstorch_interrupted(arguments, signal.SIGINT, lambda: line_count(events) > 20)
    assert result.code in (0, 3), result.stderr
    assert seconds < SOON_S
    stats = result.summary["operators"]["message"]
    assert adds_up(stats) and stats["queued"] == stats["made"] == line_count(events)


def test_a_replay_makes_the_messages_again(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "messages.jsonl"
    path = definition(folder, tmp_path, {"broker": "file", "connection": str(out)})
    assert gstorch("run", path, "-q").code == 0
    recorded = (tmp_path / "events.jsonl").rename(tmp_path / "recorded.jsonl")
    first = [message["payload"] for message in lines(out)]
    result = gstorch("replay", recorded, path, "--json", "-q")
    assert result.code == 0, result.stderr
    assert result.summary["operators"]["message"]["delivered"] == 120  # of both runs
    again = [message["payload"] for message in lines(out)][60:]
    assert [message["id"] for message in again] == [message["id"] for message in first]
    assert [m["objects"] for m in again] == [m["objects"] for m in first]


def test_direct_delivery_by_the_stand_ins(folder: Path, tmp_path: Path) -> None:
    broker = Running("redis", tmp_path)
    config = Path(__file__).resolve().parents[2] / "configs/messages/msgconv.txt"
    stage = {
        "schema": "minimal", "delivery": "direct", "broker": "redis", "config": str(config), "frame_interval": 10,
        "connection": f"{HOST};{broker.service.port};gstorch.test",
    }  # fmt: skip
    path = definition(folder, tmp_path, {"outbox": {"folder": str(tmp_path)}})
    document = json.loads(path.read_text())
    document["stages"][2] = {"message": stage}
    path.write_text(json.dumps(document))
    try:
        broker.start()
        result = gstorch("run", path, "--json", "-q")
        assert result.code == 0, result.stderr
        assert result.summary["frames"] == 2 * FRAMES
        wait_for(lambda: len(broker.consumer.lines()) >= 6)
        told = [(m["sensorId"], m["id"]) for m in map(json.loads, broker.consumer.lines())]
        assert sorted(told) == sorted(
            [("CAM_42", n) for n in ("0", "10", "20")] + [("0", n) for n in ("0", "10", "20")]
        )
    finally:
        broker.stop()
    events = tmp_path / "events.jsonl"
    refused = gstorch("replay", events, path, "-q")
    assert (refused.code, "delivery: direct needs" in refused.stderr) == (1, True)


def test_what_cannot_be_delivered_is_told_at_the_start(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "p-message.db").write_text("no outbox")
    path = definition(folder, tmp_path, {"broker": "file", "connection": str(tmp_path / "out.jsonl")})
    result = gstorch("run", path, "-q")
    assert result.code == 1
    assert "pipeline.yaml:1: stages[2] 'message'" in result.stderr and "p-message.db" in result.stderr
