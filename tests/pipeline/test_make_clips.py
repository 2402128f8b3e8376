"""Demo clips: encoded, complete, with truth, and made only once."""

from pathlib import Path

import av
import numpy as np

from tools.scenes import Scene
from tools.scenes.make_clips import Clip, make_clip
from tools.scenes.truth import load_truth


def test_clip_has_every_frame_and_its_truth(tmp_path: Path) -> None:
    clip = Clip("small", 3, "street", 322, 180, duration=0.4)
    path = make_clip(clip, tmp_path)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.average_rate == 25
    assert len(frames) == 10
    scene = Scene(3, 322, 180, 25, "street")
    picture, objects = scene.render(4)
    assert np.abs(frames[4].astype(int) - picture).mean() < 8
    truth = load_truth(tmp_path / "small.truth.json")
    assert (truth.source, truth.width, truth.height, len(truth.frames)) == ("small.mp4", 322, 180, 10)
    assert truth.frames[4] == tuple(objects)


def test_a_clip_is_kept_until_its_recipe_changes(tmp_path: Path) -> None:
    clip = Clip("small", 3, "street", 160, 96, duration=0.08)
    made = make_clip(clip, tmp_path).stat().st_mtime_ns
    assert make_clip(clip, tmp_path).stat().st_mtime_ns == made
    other = Clip("small", 4, "street", 160, 96, duration=0.08)
    assert make_clip(other, tmp_path).stat().st_mtime_ns > made
