"""COCO's run lengths, against strings that pycocotools 2.0.11 wrote."""

from __future__ import annotations

import numpy as np
import pytest

from elements.metadata.rle import decode, encode

COCO = [
    (["...", "..."], "6"),
    (["###", "###"], "06"),
    (["#..", "..#"], "0140"),
    ([".#.", "###", ".#."], "11120N0"),
    (["#"], "01"),
    ([".##.", "####", "####", ".##."], "12160J0"),
]
FULL_HD = "Xcl9Pi0h80_Ved1QWOaco[N"


@pytest.mark.parametrize(("rows", "counts"), COCO)
def test_strings_of_pycocotools(rows: list[str], counts: str) -> None:
    mask = np.array([[letter == "#" for letter in row] for row in rows])
    coded = encode(mask, (0, 0), (mask.shape[1], mask.shape[0]))
    assert coded == {"size": list(mask.shape), "counts": counts}
    assert np.array_equal(decode(coded), mask)


def test_long_runs() -> None:
    """Two whole columns but for their ends, and one pixel far away, in a frame of 1920 x 1080."""
    mask = np.zeros((1000, 1601), bool)
    mask[200:, :2] = mask[7, 1600] = True
    full = np.zeros((1080, 1920), bool)
    full[:1000, 300:1901] = mask
    coded = encode(mask, (300, 0), (1920, 1080))
    assert coded["counts"] == FULL_HD
    assert np.array_equal(decode(coded), full)


@pytest.mark.parametrize("fill", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_part_of_a_frame_is_as_the_frame(fill: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        height, width = random.integers(1, 20, 2).tolist()
        y1, x1 = int(random.integers(0, height + 1)), int(random.integers(0, width + 1))
        full = np.zeros((height, width), bool)
        full[y1:, x1:] = random.random((height - y1, width - x1)) < fill
        coded = encode(full[y1:, x1:], (x1, y1), (width, height))
        assert coded == encode(full, (0, 0), (width, height))
        assert np.array_equal(decode(coded), full)


def test_runs_that_do_not_fill_the_frame() -> None:
    with pytest.raises(ValueError, match="the runs fill 6 pixels, not 3 x 3"):
        decode({"size": [3, 3], "counts": "6"})
