"""What pre- and post-processing on a torch device must give, checked against the NumPy code on any device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from elements.inference.decoders import Sample, choose_decoder
from elements.inference.finish import finish
from elements.inference.frame import ArrayFrame, DevicePlanes
from elements.inference.gpu.detect import Detector, Suppress
from elements.inference.gpu.letterbox import TABLE_COLUMNS, Pixels, fill_table, letterbox
from elements.inference.letterbox import place, place_all
from elements.inference.preprocess import InputSpec, Preprocess, Preprocessor
from elements.inference.tasks import Task
from elements.metadata.placement import Placements
from elements.portable.color import BT601, BT709, BT2020, ColorSpace
from elements.portable.orientation import ORIENTATIONS, UPRIGHT, Orientation
from elements.portable.picture import Picture, plane_shapes
from tests.torch_models import padded

NETWORK = (320, 192)
ANCHORS = 40 * 24 + 20 * 12 + 10 * 6
CLASSES, MASKS = 5, 4
TASKS = [
    (layout, task)
    for layout, tasks in {
        "yolov8": ("obb", "segment", "pose"),
        "yolov8-transposed": ("obb", "segment", "pose"),
        "yolov5": ("segment",),
        "end2end": ("obb", "segment", "pose"),
    }.items()
    for task in tasks
]
LETTERBOXES = [
    Preprocess(mode, color, scale, pad)
    for mode, color, scale, pad in [
        ("center", "rgb", "0-1", 114),
        ("top-left", "bgr", "0-255", 114),
        ("stretch", "rgb", "0-1", 0),
        ("crop", "rgb", "-1-1", 0),
        ("center", "bgr", "imagenet", 114),
    ]
]
# down by a fraction, down by 2 and 3, up, one row, odd, portrait
SOURCES = [(640, 360), (640, 384), (960, 576), (100, 75), (333, 1), (517, 311), (360, 640)]


def textured(width: int, height: int) -> np.ndarray:
    """A picture with detail at every scale."""
    return np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)


def check_letterbox(
    device: str, options: Preprocess, dtype: torch.dtype, fused: bool, channels_last: bool = False
) -> None:
    """Pictures of several sizes in one batch come out as the host's letterbox makes them, within 1e-2 of the range."""
    number = np.dtype(str(dtype).removeprefix("torch."))
    spec = InputSpec("image", number, channels_last, None, NETWORK)
    if number == np.uint8 and options.scale != "0-255":
        return
    host = Preprocessor(spec, options)
    expected = host.tensor(len(SOURCES), NETWORK)
    pictures = [textured(*size) for size in SOURCES]
    for picture, slot in zip(pictures, expected, strict=True):
        host.fill(ArrayFrame(picture), slot, NETWORK)
    out = torch.full(spec.shape(len(SOURCES) + 1, NETWORK), 7, dtype=dtype, device=device)
    planes = out.permute(0, 3, 1, 2) if channels_last else out
    tensors = [padded(picture, device) for picture in pictures]
    placements = place_all(np.array(SOURCES), NETWORK, options.letterbox)
    if fused:
        from elements.inference.gpu.letterbox_triton import letterbox_fused

        table = torch.zeros((len(SOURCES), TABLE_COLUMNS), dtype=torch.int64)
        packed = fill_table([Pixels.of(tensor) for tensor in tensors], placements, table.numpy(), out.device)
        letterbox_fused(table.to(device), packed, len(SOURCES), planes, options)
    else:
        letterbox(tensors, placements, planes, options)
    got = out.cpu().numpy().astype(np.float32)
    tolerance = 2.55 * max(options.affine()[0])
    np.testing.assert_allclose(got[:-1], expected.astype(np.float32), atol=tolerance)
    assert (got[-1] == 7).all()  # rows without a picture are left alone


def raw_output(layout: str, seed: int, batch: int = 3, task: Task = "detect") -> np.ndarray:
    """A plausible output: clusters of overlapping boxes of several classes, and a few rows that are no numbers."""
    rng = np.random.default_rng(seed)
    rows = {"yolov5": ANCHORS * 3, "end2end": 300}.get(layout, ANCHORS)
    center = rng.choice(rng.uniform(20, 180, (12, 2)), (batch, rows)) + rng.normal(0, 4, (batch, rows, 2))
    size = rng.uniform(20, 60, (batch, rows, 2))
    scores = rng.beta(0.3, 3, (batch, rows, CLASSES))
    if layout == "end2end":
        number = rng.integers(0, CLASSES, (batch, rows, 1))
        boxes = [center, size] if task == "obb" else [center - size / 2, center + size / 2]
        output = np.concatenate([*boxes, scores[..., :1], number], 2)
    elif layout.startswith("yolov8"):
        output = np.concatenate([center, size, scores], 2)
    else:
        if layout == "yolox":
            size = np.log(size / 16)
            center = rng.uniform(-1, 1, (batch, rows, 2))
        output = np.concatenate([center, size, rng.beta(0.5, 1, (batch, rows, 1)), scores], 2)
    columns = {"obb": 1, "segment": MASKS, "pose": 6}.get(task, 0)
    output = np.concatenate([output, rng.normal(size=(batch, rows, columns))], 2)
    output[0, 3, 4:] = np.nan
    output[1, 5, 4:] = 0.9
    output[1, 5, :4] = np.inf
    output = output.astype(np.float32)
    return np.ascontiguousarray(output.transpose(0, 2, 1)) if layout == "yolov8" else output


def check_detect(
    device: str, layout: str, suppress: Suppress, seed: int, keep: frozenset[int] = frozenset(), task: Task = "detect"
) -> None:
    """The same objects in the same order as NumPy decoding and the host's suppression give."""
    output = raw_output(layout, seed, task=task)
    outputs = {"output": output}
    if task == "segment":
        outputs["prototypes"] = np.random.default_rng(seed).normal(size=(len(output), MASKS, 48, 80)).astype(np.float32)
    decoder = choose_decoder(Sample(outputs, NETWORK, CLASSES, task=task), layout)
    decoder.set_coordinates(normalized=False)
    placement = place((640, 360), NETWORK, "center")
    allowed = None
    if keep:
        allowed = torch.zeros(max(keep) + 1, dtype=torch.bool, device=device)
        allowed[list(keep)] = True
    detector = Detector(decoder, suppress, torch.tensor([0.3, 0.5], device=device), allowed)
    arrays = decoder.picked(outputs)
    packed = detector.pack([torch.from_numpy(array).to(device) for array in arrays], NETWORK, 512).cpu().numpy()
    assert not detector.overflow(packed)
    shapes = [array.shape[1:] for array in arrays]
    placements = Placements.of([placement] * len(output))
    found, invalid = detector.unpack(packed, shapes, placements, NETWORK, (0.3, 0.5))
    decoded = [decoder.decode([array[row] for array in arrays], NETWORK, 0.3) for row in range(len(output))]
    assert invalid == sum(candidates.invalid for candidates in decoded)
    for row, (got, candidates) in enumerate(zip(found, decoded, strict=True)):
        own = [array[row] for array in arrays]
        expected = finish(candidates, own, decoder, NETWORK, placement, 0.5, keep)
        assert 5 < len(expected) < 500
        np.testing.assert_array_equal(got.class_ids, expected.class_ids)
        np.testing.assert_allclose(got.scores, expected.scores, rtol=1e-6)
        np.testing.assert_allclose(got.boxes, expected.boxes, atol=1e-2)
        if task == "obb":
            np.testing.assert_allclose(got.angles, expected.angles, atol=1e-5)
        elif task == "pose":
            np.testing.assert_allclose(got.keypoints, expected.keypoints, atol=1e-2)
        elif task == "segment":
            for mask, wanted in zip(got.masks, expected.masks, strict=True):
                assert mask.shape == wanted.shape
                assert (mask != wanted).mean() < 0.01


PLANAR_SOURCES: list[tuple[str, tuple[int, int], ColorSpace]] = [
    ("I420", (64, 36), BT601),
    ("NV12", (43, 25), BT709),
    ("I420", (191, 107), BT2020),
    ("NV12", (80, 48), ColorSpace(BT601.kr, BT601.kb, True)),
    ("I420", (33, 7), BT709),
]
TURNED = [ORIENTATIONS["rotate-90"], ORIENTATIONS["rotate-180"], ORIENTATIONS["flip-rotate-180"]]
PLANAR_NETWORK = (20, 12)  # for Triton's interpreter, which takes a second for twenty rows


class PlanarFrame:
    """A 4:2:0 picture on a torch device, and the same for the host; rows are padded. Noise unless ``rgb`` is given."""

    source_id = frame_number = pts = 0

    def __init__(
        self,
        format: str,
        size: tuple[int, int],
        color: ColorSpace,
        device: str,
        rgb: np.ndarray | None = None,
        orientation: Orientation = UPRIGHT,
    ) -> None:
        self.width, self.height = size
        rng = np.random.default_rng(self.width)
        stored = [rng.integers(0, 256, shape, np.uint8) for shape in plane_shapes(format, *orientation.size(*size))]
        self.picture = Picture(format, tuple(np.ascontiguousarray(orientation.upright(p)) for p in stored), color)
        if rgb is not None:
            self.picture.write_rgb(rgb)
        memory = [torch.from_numpy(np.pad(p.reshape(len(p), -1), ((0, 0), (0, 14)))).to(device) for p in stored]
        blue = memory[1].data_ptr()
        red, step = (memory[2].data_ptr(), 1) if format == "I420" else (blue + 1, 2)
        half = (self.width + 1) // 2, (self.height + 1) // 2
        luma = orientation.walk(memory[0].data_ptr(), memory[0].stride(0), 1, *size)
        chroma = [orientation.walk(address, memory[1].stride(0), step, *half) for address in (blue, red)]
        places = luma[0], chroma[0][0], chroma[1][0], luma[1], chroma[0][1], luma[2], chroma[0][2]
        self.device_planes = DevicePlanes(*places, *size, color.to_rgb_fixed, 0, memory)

    def resized(self, width: int, height: int, out: Any = None, region: Any = None) -> Any:
        return self.picture.rgb(region or self.picture.whole, width, height, out)


def check_planar_letterbox(device: str, options: Preprocess, dtype: torch.dtype, fused: bool) -> None:
    """4:2:0 pictures come out as the host's letterbox makes them, bit for bit where that scales whole pictures."""
    number = np.dtype(str(dtype).removeprefix("torch."))
    spec = InputSpec("image", number, True, None, PLANAR_NETWORK)
    frames: list[Any] = [PlanarFrame(*source, device) for source in PLANAR_SOURCES]
    frames += [PlanarFrame("NV12", (30, 42), BT709, device, orientation=turned) for turned in TURNED]
    host = Preprocessor(spec, options)
    expected = host.tensor(len(frames), PLANAR_NETWORK)
    for frame, slot in zip(frames, expected, strict=True):
        host.fill(frame, slot, PLANAR_NETWORK)
    out = torch.full(spec.shape(len(frames) + 1, PLANAR_NETWORK), 7, dtype=dtype, device=device)
    sizes = np.array([(frame.width, frame.height) for frame in frames])
    places = place_all(sizes, PLANAR_NETWORK, options.letterbox)
    pictures = [frame.device_planes for frame in frames]
    if fused:
        from elements.inference.gpu.letterbox_triton import letterbox_fused

        table = torch.zeros((len(frames), TABLE_COLUMNS), dtype=torch.int64)
        assert fill_table(pictures, places, table.numpy(), out.device) == 0
        letterbox_fused(table.to(device), 0, len(frames), out.permute(0, 3, 1, 2), options)
    else:
        letterbox(pictures, places, out.permute(0, 3, 1, 2), options)
    got = out.cpu().numpy()
    assert (got[-1] == 7).all()
    if options.letterbox == "crop":
        # The host warps what stays; OpenCV then knows 32 places from pixel to pixel. Where that begins and ends between
        # two samples, it scales it alone and repeats its edges, which the device does with the whole picture's only.
        levels, inside = 256 / 32 + 2, np.s_[:-1, 1:-1, 1:-1]
        close = {"atol": levels * options.affine()[0][0]}
        np.testing.assert_allclose(got[inside].astype(float), expected[:, 1:-1, 1:-1].astype(float), **close)
    elif options.scale == "imagenet":  # the kernel rounds once, the host twice
        np.testing.assert_allclose(got[:-1].astype(float), expected.astype(float), atol=2e-3)
    else:
        np.testing.assert_array_equal(got[:-1], expected)
