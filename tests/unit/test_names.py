"""Class names: where they come from, and what is refused."""

import pytest

from elements.inference.coco import COCO_NAMES
from elements.inference.errors import ModelError
from elements.inference.names import choose_names, class_ids_of, names_of_metadata, read_labels


def test_coco_has_80_names_in_order():
    assert len(COCO_NAMES) == len(set(COCO_NAMES)) == 80
    assert (COCO_NAMES[0], COCO_NAMES[2], COCO_NAMES[16], COCO_NAMES[79]) == ("person", "car", "dog", "toothbrush")


@pytest.mark.parametrize("text", ["{0: 'car', 1: 'bus'}", "{1: 'bus', 0: 'car'}", "['car', 'bus']"])
def test_metadata(text):
    assert names_of_metadata({"names": text}) == ("car", "bus")


@pytest.mark.parametrize("text", ["__import__('os')", "{0: 'car', 2: 'bus'}", "3", "['car'"])
def test_unreadable_metadata(text):
    with pytest.raises(ModelError, match="'names'"):
        names_of_metadata({"names": text})


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.txt", "car\nbus\n"),
        ("a.txt", "\ufeffcar\r\n\r\n  bus  \r\n\r\n"),
        ("a.yaml", "- car\n- bus\n"),
        ("a.yml", "names:\n  0: car\n  1: bus\n"),
    ],
)
def test_label_files(tmp_path, file, text):
    (tmp_path / file).write_bytes(text.encode())
    assert read_labels(str(tmp_path / file)) == ("car", "bus")


def test_label_list():
    assert read_labels(["car", "bus"]) == ("car", "bus")


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("no.txt", None, "No such file"),
        ("a.txt", b"\n\n", "holds no names"),
        ("a.txt", b"\xff\xfe\x00", "not UTF-8"),
        ("a.yaml", b"car: 1", "expected a YAML list"),
    ],
)
def test_bad_label_files(tmp_path, file, data, message):
    if data is not None:
        (tmp_path / file).write_bytes(data)
    with pytest.raises(ModelError, match=message) as raised:
        read_labels(str(tmp_path / file))
    assert file in str(raised.value)


def test_the_models_own_names_come_first(caplog):
    assert choose_names({"names": "['a', 'b']"}, ["x", "y"], 2) == ("a", "b")
    assert "labels are not used" in caplog.text


def test_coco_is_said(caplog):
    caplog.set_level("INFO")
    assert choose_names({}, None, 80) == COCO_NAMES
    assert "COCO" in caplog.text


def test_numbers_serve_as_names():
    assert choose_names({}, None, 3) == ("0", "1", "2")
    assert choose_names({}, None, None) == ()


def test_classes_by_name_and_number():
    assert class_ids_of(["bus", 0, "2"], ("car", "bus", "van")) == {0, 1, 2}


@pytest.mark.parametrize(("entry", "message"), [("buss", "did you mean 'bus'"), (7, "the model has: car, bus")])
def test_unknown_class(entry, message):
    with pytest.raises(ModelError, match=message):
        class_ids_of([entry], ("car", "bus"))
