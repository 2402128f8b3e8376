"""Truth and predictions from files, and what is said when they are wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from elements.metadata.rle import encode
from pipelines.evaluation import EvaluationError, read_events, read_truth
from pipelines.evaluation.coco import filled


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def event(frame: int = 0, *objects: dict, **keys) -> str:
    head = {"source": "door", "frame": frame, "width": 640, "height": 480, "objects": list(objects)}
    return json.dumps(head | keys)


def item(**keys) -> dict:
    return {"bbox": [1, 2, 30, 40], "class_id": 0, "label": "cat", "confidence": 0.5, "track_id": 3} | keys


# --- events -----------------------------------------------------------------------------------------------------------


def test_events(tmp_path: Path) -> None:
    pixels = np.zeros((3, 2), bool)
    pixels[1:, 0] = True
    objects = [item(angle=0.5), item(confidence=None, track_id=None), item(mask=encode(pixels, (10, 20), (640, 480)))]
    path = write(tmp_path / "e.jsonl", f"{event(0, *objects)}\n\n{event(1)}\n{event(0, source='yard', width=32)}\n")
    found = read_events(path)
    assert {name: sequence.size for name, sequence in found.sequences.items()} == {
        "door": (640, 480),
        "yard": (32, 480),
    }
    assert list(found.sequences["door"].frames) == [0, 1]
    turned, continued, masked = found.sequences["door"].frames[0]
    assert turned[:5] == ("cat", (1, 2, 30, 40), 0.5, 3, 0.5)
    assert (continued.score, continued.track_id) == (0, -1)
    assert masked.mask is not None
    assert (masked.mask.x, masked.mask.y, masked.mask.pixels.tolist()) == (10, 21, [[True], [True]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": ', "e.jsonl:2: not a line of JSON: Expecting value (column"),
        ("[1, 2]", "e.jsonl:2: not an event: "),
        ('{"source": "door"}', "e.jsonl:2: not an event: the key 'width' is missing"),
        (event(1, {"bbox": [1, 2, 3, 4]}), "e.jsonl:2: not an event: the key 'label' is missing"),
        (event(1, item(bbox=[1, 2])), "e.jsonl:2: not an event: not enough values"),
        (event(1, item(mask={"size": [2, 2], "counts": "9"})), "e.jsonl:2: not an event: the runs fill 9 pixels"),
        (event(1, item(bbox=[1, 2, float("nan"), 4])), "e.jsonl:2: not an event: nan is not a finite number"),
        (event(1, item(bbox=[1, 2, 3, float("inf")])), "e.jsonl:2: not an event: inf is not a finite number"),
        (event(1, item(confidence=float("nan"))), "e.jsonl:2: not an event: nan is not a finite number"),
        (event(1, item(angle=float("nan"))), "e.jsonl:2: not an event: nan is not a finite number"),
        (event(1, item(track_id=2**64 - 1)), "e.jsonl:2: not an event: 18446744073709551615 is too large a number"),
        (event(1, width=float("inf")), "e.jsonl:2: not an event: inf is not a finite number"),
        (event(1, source=None), "e.jsonl:2: not an event: source None is not text"),
        (event(1, source=5), "e.jsonl:2: not an event: source 5 is not text"),
        ("[" * 100_000, "e.jsonl:2: not a line of JSON: nested too deeply"),
        (event(0), "e.jsonl:2: frame 0 of source 'door' is there for the second time"),
        (event(1, width=320), "e.jsonl:2: source 'door' changes its size"),
    ],
)
def test_lines_that_are_no_events(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(EvaluationError) as error:
        read_events(write(tmp_path / "e.jsonl", f"{event(0)}\n{line}\n"))
    assert message in str(error.value)


# --- COCO -------------------------------------------------------------------------------------------------------------


OUTLINE = [10, 20, 40, 20, 40, 25, 10, 25]


def coco(**keys) -> dict:
    return {
        "images": [{"id": 7, "file_name": "a/b.jpg", "width": 100, "height": 50}],
        "categories": [{"id": 3, "name": "cat"}, {"id": 5, "name": "dog"}],
        "annotations": [
            {
                "image_id": 7,
                "category_id": 3,
                "bbox": [10, 20, 30, 5],
                "segmentation": [[10, 20, 40, 20, 40, 25, 10, 25]],
            },
            {"image_id": 7, "category_id": 5, "bbox": [0, 0, 8, 4, 0.5], "iscrowd": 1},
        ],
    } | keys


def test_coco(tmp_path: Path) -> None:
    found = read_truth(write(tmp_path / "t.json", json.dumps(coco())))
    assert found.names == ("cat", "dog")
    assert found.sequences["b"].size == (100, 50)
    cat, dog = found.sequences["b"].frames[0]
    assert cat[:6] == ("cat", (10, 20, 40, 25), 1.0, -1, 0.0, False)
    assert cat.mask is not None
    assert (cat.mask.x, cat.mask.y, cat.mask.pixels.shape, cat.mask.pixels.all()) == (10, 20, (5, 30), True)
    assert (dog.ignore, dog.angle) == (True, 0.5)


def test_coco_of_videos(tmp_path: Path) -> None:
    images = [{"id": n, "file_name": f"{n}.jpg", "video_id": 1, "frame_id": n} for n in range(3)]
    boxes = [{"image_id": 2, "category_id": 3, "bbox": [0, 0, 5, 5], "track_id": 9}]
    data = coco(images=images, annotations=boxes, videos=[{"id": 1, "name": "clips/door.mp4"}])
    found = read_truth(write(tmp_path / "t.json", json.dumps(data)))
    assert {frame: len(rows) for frame, rows in found.sequences["door"].frames.items()} == {0: 0, 1: 0, 2: 1}
    assert found.sequences["door"].frames[2][0].track_id == 9


def cat(**keys) -> dict:
    return coco(annotations=[{"image_id": 7, "category_id": 3, "bbox": [0, 0, 1, 1]} | keys])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{\n"images": [\n}', "t.json:3: not JSON"),
        ("[]", "t.json: is a list, as COCO's results are"),
        ("3", "t.json: is no COCO file"),
        (coco(annotations={}), "t.json: annotations is not a list"),
        (
            coco(annotations=[{"image_id": 8, "category_id": 3, "bbox": [0, 0, 1, 1]}]),
            "t.json: annotations[0]: 8 is missing",
        ),
        (
            coco(annotations=[{"image_id": 7, "category_id": 3, "bbox": [0, 0, 1]}]),
            "t.json: annotations[0]: not enough",
        ),
        (cat(category_id=4), "t.json: annotations[0]: 4 is missing"),
        (cat(bbox=[0, 0, float("nan"), 1]), "t.json: annotations[0]: nan is not a finite number"),
        (cat(bbox=[0, 0, -1, 1]), "t.json: annotations[0]: bbox [0, 0, -1, 1] is not [x, y, width, height]"),
        (cat(track_id=2**63), "t.json: annotations[0]: 9223372036854775808 is too large a number"),
        (cat(segmentation=[[0, 0, float("nan"), 4, 5, 6]]), "t.json: annotations[0]: the outline of its mask"),
        (cat(segmentation=[[0, 0, 1e12, 4, 5, 6]]), "t.json: annotations[0]: the outline of its mask"),
        (coco(categories=[{"id": 3, "name": "cat"}] * 2), "t.json: categories[1]: id 3 is there for the second time"),
        (coco(images=coco()["images"] * 2), "t.json: images[1]: id 7 is there for the second time"),
        (coco(images=[{"id": 7, "file_name": None}]), "t.json: images[0]: file_name None is not text"),
        ("[" * 100_000, "t.json:1: not JSON: nested too deeply"),
        (coco(images=[{"id": 1}], annotations=[]), "t.json: images[0]: 'file_name' is missing"),
        (coco(annotations=[]), "t.json: the truth has no objects that count"),
    ],
)
def test_what_is_no_coco(tmp_path: Path, data: object, message: str) -> None:
    text = data if isinstance(data, str) else json.dumps(data)
    with pytest.raises(EvaluationError) as error:
        read_truth(write(tmp_path / "t.json", text))
    assert message in str(error.value)


def test_outlines_fill_the_pixels_of_which_half_is_inside() -> None:
    triangle = filled([np.array([[1.0, 1], [5, 1], [1, 5]])], (10, 10))
    assert (triangle.x, triangle.y) == (1, 1)
    assert np.count_nonzero(triangle.pixels) in range(6, 11)  # 8 pixels of area, of which 4 lie on the edge
    assert triangle.pixels[0, 0]
    assert not triangle.pixels[3, 3]
    cut = filled([np.array([[-5.0, -5], [3, -5], [3, 3], [-5, 3]])], (10, 10))
    assert (cut.x, cut.y, cut.pixels.shape) == (0, 0, (3, 3))
    assert filled([np.array([[20.0, 20], [30, 20], [30, 30]])], (10, 10)).pixels.size == 0


# --- MOT --------------------------------------------------------------------------------------------------------------

LINES = "1,4,10,20,30,40,1,1,0.9\n3,4,12,20,30,40,0,3,1\n"
INFO = "[Sequence]\nname=x\nseqLength=5\nimWidth=640\nimHeight=480\n"


def test_mot(tmp_path: Path) -> None:
    path = write(tmp_path / "MOT17-02" / "gt" / "gt.txt", LINES)
    write(tmp_path / "MOT17-02" / "seqinfo.ini", INFO)
    for place in (path, path.parent.parent, tmp_path):
        found = read_truth(place)
        sequence = found.sequences["MOT17-02"]
        assert (sequence.size, sequence.length, list(sequence.frames)) == ((640, 480), 5, [0, 2])
        assert sequence.frames[0][0][:6] == ("pedestrian", (10, 20, 40, 60), 1.0, 4, 0.0, False)
        assert sequence.frames[2][0][:6] == ("car", (12, 20, 42, 60), 1.0, 4, 0.0, True)


def test_mot_with_names_and_of_other_columns(tmp_path: Path) -> None:
    write(tmp_path / "door" / "gt" / "gt.txt", LINES)
    write(tmp_path / "door" / "gt" / "labels.txt", "cat\nfox\ndog\n")
    found = read_truth(tmp_path)
    assert found.names == ("cat", "fox", "dog")
    assert [row.label for row in found.rows()] == ["cat", "dog"]
    old = read_truth(write(tmp_path / "old.txt", "1,1,10,20,30,40,1,-1.5,2.5,0\n"))
    assert (list(old.sequences), old.rows()[0].label) == (["old"], "pedestrian")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,1,10,20,30\n", "gt.txt:1: a line needs at least frame, id, left, top, width, height"),
        ("1,1,10,20,30,40\n1,x,10,20,30,40\n", "gt.txt:2: not a number: 'x'"),
        ("0,1,10,20,30,40\n", "gt.txt:1: frames count from 1"),
        ("1,1,10,20,nan,40\n", "gt.txt:1: frames count from 1, and boxes are finite"),
        ("1,1,10,20,-3,40\n", "gt.txt:1: width -3 and height 40 are not from 0 on"),
        ("1,1,10,20,30,40,1,inf,1\n", "gt.txt:1: inf is not a finite number"),
        ("1e30,1,10,20,30,40\n", "gt.txt:1: 1e+30 is too large a number"),
        ("1,1,1,2,3,4\n1,1,5,6,7,8\n", "gt.txt:2: object 1 is in frame 1 for the second time"),
        ("", "the truth has no objects that count"),
    ],
)
def test_what_is_no_mot(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as error:
        read_truth(write(tmp_path / "door" / "gt" / "gt.txt", text))
    assert message in str(error.value)


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "t.xml").touch()
    for name, message in (
        ("none.json", "there is no such file"),
        ("gt", "there is no such file or folder"),
        ("t.xml", "truth is COCO"),
    ):
        with pytest.raises(EvaluationError, match=message):
            read_truth(tmp_path / name)
    with pytest.raises(EvaluationError, match=r"has neither gt/gt.txt nor"):
        read_truth(tmp_path)
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe1")
    with pytest.raises(EvaluationError, match="not UTF-8"):
        read_truth(tmp_path / "x.txt")
    write(tmp_path / "d" / "seqinfo.ini", "[Sequence]\nseqLength=many\n")
    with pytest.raises(EvaluationError, match=r"seqinfo.ini: needs imWidth"):
        read_truth(write(tmp_path / "d" / "gt" / "gt.txt", LINES))
