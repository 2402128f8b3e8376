"""Objects that turn, through the whole program."""

import math
from pathlib import Path

import pytest

from tests.gstorch_cli import events, gstorch
from tests.rotating_bar import DEGREES_PER_FRAME, LONG, SHORT, centre_at, make_rotating_clip

FRAMES = 75  # a turn and a quarter


def test_a_bar_keeps_its_id_through_a_full_turn(tmp_path: Path) -> None:
    make_rotating_clip(tmp_path / "bar.mp4", FRAMES)
    done = gstorch(
        "run", tmp_path / "bar.mp4", "--model", "tests.rotating_bar:BarFinder", "--events", tmp_path / "bar.jsonl"
    )
    assert done.code == 0, done.stderr
    lines = events(tmp_path / "bar.jsonl")
    seen = {event["frame"]: item for event in lines for item in event["objects"]}
    assert len(lines) == FRAMES
    assert sorted(seen) == [n for n in range(FRAMES) if n % 9 != 8 and n > 0]  # confirmed at 15 frames/s in two
    assert {item["track_id"] for item in seen.values()} == {1}

    first = min(seen)
    start = angle_of(seen[first]) - DEGREES_PER_FRAME * first
    assert start % 90 == pytest.approx(0, abs=2) or start % 90 == pytest.approx(90, abs=2)
    for n, item in seen.items():
        turned = (angle_of(item) - start - DEGREES_PER_FRAME * n + 180) % 360 - 180
        assert turned == pytest.approx(0, abs=3), n
        x1, y1, x2, y2 = item["bbox"]
        assert ((x1 + x2) / 2, (y1 + y2) / 2) == pytest.approx(centre_at(n), abs=2)
        assert sorted((x2 - x1, y2 - y1)) == pytest.approx([SHORT, LONG], abs=3)
        assert (x2 - x1 > y2 - y1) == (seen[first]["bbox"][2] - seen[first]["bbox"][0] > 60)


def angle_of(item: dict) -> float:
    """Degrees."""
    return math.degrees(item.get("angle", 0.0))
