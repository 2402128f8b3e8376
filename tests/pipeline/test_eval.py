"""`gstorch eval` as a user runs it."""

import json
import math
from pathlib import Path

import cv2
import pytest

from tests.clips import drifting, make_clip
from tests.gstorch_cli import Result, gstorch
from tests.onnx_models import finder, save
from tests.pictures import NAMES, boxes_in, picture
from tests.rotating_bar import DEGREES_PER_FRAME, LONG, SHORT, centre_at, make_rotating_clip

FRAMES, WIDTH, HEIGHT = 20, 320, 180  # no jump of `drifting` in them


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    names = {"names": str(dict(enumerate(NAMES)))}
    return save(finder("yolov8", (320, 320), metadata=names), tmp_path_factory.mktemp("model") / "finder.onnx")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip, with its truth as MOT files in the folder ``truth`` beside it."""
    folder = tmp_path_factory.mktemp("clip")
    boxes = make_clip(folder / "door.mp4", WIDTH, HEIGHT, FRAMES, drifting(WIDTH, HEIGHT))
    gt = folder / "truth" / "door" / "gt"
    gt.mkdir(parents=True)
    (gt / "labels.txt").write_text("\n".join(NAMES))
    info = f"[Sequence]\nseqLength={FRAMES}\nimWidth={WIDTH}\nimHeight={HEIGHT}\n"
    (gt.parent / "seqinfo.ini").write_text(info)
    rows = [
        f"{n + 1},{class_id + 10},{x1},{y1},{x2 - x1},{y2 - y1},1,{class_id + 1},1"
        for n in range(FRAMES)
        for class_id, (x1, y1, x2, y2) in boxes(n).items()
    ]
    (gt / "gt.txt").write_text("\n".join(rows))
    return folder / "door.mp4"


def numbers(done: Result) -> dict:
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_run_then_eval(clip: Path, model: str, tmp_path: Path) -> None:
    events, report = tmp_path / "e.jsonl", tmp_path / "report.html"
    assert gstorch("run", clip, "--model", model, "--events", events, "-q").code == 0
    done = gstorch("eval", events, "--truth", clip.parent / "truth", "--json", "--html", report)
    result = numbers(done)
    assert (result["frames"], result["sequences"], result["notes"]) == (FRAMES, 1, [])
    assert result["tracks"]["total"]["hota"] >= 0.80
    assert result["tracks"]["total"]["switches"] == 0
    assert result["boxes"]["map50"] == pytest.approx(91 / 101, abs=0.011)  # 2 of 20 until the tracker is sure
    assert result["boxes"]["classes"]["red"]["precision"] == 1
    assert result["confusion"]["names"] == ["red", "green", "nothing"]
    assert "<svg" in report.read_text()
    table = gstorch("eval", events, "--truth", clip.parent / "truth").stdout
    assert "HOTA" in table
    assert "red" in table


def test_a_model_on_a_clip(clip: Path, model: str) -> None:
    done = gstorch("eval", clip, "--model", model, "--truth", clip.parent / "truth", "--no-tracks", "--json")
    result = numbers(done)
    assert result["boxes"]["map50"] == 1
    assert result["boxes"]["map"] > 0.9
    assert result["tracks"] is None


def test_a_model_on_pictures_against_coco(model: str, tmp_path: Path) -> None:
    images, found = [], []
    for number, (width, height) in enumerate([(640, 360), (300, 500)]):
        image = picture(width, height, boxes_in(width, height), soft=3)
        cv2.imwrite(str(tmp_path / f"p{number}.png"), image[..., ::-1])
        images.append({"id": number, "file_name": f"train/p{number}.png", "width": width, "height": height})
        for class_id, (x1, y1, x2, y2) in boxes_in(width, height).items():
            found.append({"image_id": number, "category_id": class_id, "bbox": [x1, y1, x2 - x1, y2 - y1]})
    data = {
        "images": images,
        "annotations": found,
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)],
    }
    (tmp_path / "truth.json").write_text(json.dumps(data))
    result = numbers(gstorch("eval", tmp_path, "--model", model, "--truth", tmp_path / "truth.json", "--json"))
    assert (result["sequences"], result["boxes"]["map50"], result["rotated"]) == (2, 1, False)
    assert result["boxes"]["map"] > 0.9


def test_an_own_model_of_turned_boxes_against_events(tmp_path: Path) -> None:
    make_rotating_clip(tmp_path / "bar.mp4", 40)
    truth = []
    for n in range(40):
        x, y = centre_at(n)
        bar = {
            "bbox": [x - LONG / 2, y - SHORT / 2, x + LONG / 2, y + SHORT / 2],
            "angle": math.radians(DEGREES_PER_FRAME * n),
            "label": "bar",
            "track_id": 1,
        }
        event = {"source": "bar", "frame": n, "width": 320, "height": 180, "objects": [bar]}
        truth.append(json.dumps(event))
    (tmp_path / "truth.jsonl").write_text("\n".join(truth))
    model = "tests.rotating_bar:BarFinder"
    done = gstorch("eval", tmp_path / "bar.mp4", "--model", model, "--truth", tmp_path / "truth.jsonl", "--json")
    result = numbers(done)
    assert result["rotated"] is True
    total = result["tracks"]["total"]
    assert (total["predicted"], total["switches"]) == (1, 0)
    assert total["motp"] > 0.85
    assert result["boxes"]["map50"] > 0.85  # every ninth frame is missed, and the first


def test_errors(clip: Path, model: str, tmp_path: Path) -> None:
    truth = clip.parent / "truth"
    other = tmp_path / "other.mp4"
    other.touch()
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"source": "door"\n')
    two = tmp_path / "two.jsonl"
    lines = [{"source": name, "frame": 0, "width": WIDTH, "height": HEIGHT, "objects": []} for name in ("door", "yard")]
    thing = {"bbox": [1, 2, 30, 40], "class_id": 0, "label": "red", "confidence": 1, "track_id": None}
    lines[0]["objects"] = [thing]
    two.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for arguments, code, text in (
        ((clip, "--truth", two, "--model", "none.onnx"), 1, "error: the list of sources has nothing for 'yard' of "),
        ((clip, other, "--truth", truth, "--model", "none.onnx"), 1, "error: no truth for 'other': "),
        ((broken, "--truth", truth), 1, f"error: {broken}:1: not a line of JSON"),
        ((clip, "--truth", truth), 1, "give one event file (.jsonl), or --model"),
        ((broken, "--truth", truth, "--confidence", "0.5"), 2, "--confidence: only with --model"),
        ((broken, "--truth", truth, "--trust"), 2, "--trust: only with --model"),
        ((clip, "--truth", truth, "--model", "none.onnx"), 2, "none.onnx"),
    ):
        done = gstorch("eval", *arguments)
        assert (done.code, done.stdout) == (code, "")
        assert text in done.stderr
        assert "Traceback" not in done.stderr
