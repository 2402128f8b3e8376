"""torchvision's SSDlite with its own post-processing, and its network as an ONNX file through layout ssd.

Skipped where torchvision (dev only) or the clips are missing. Weights are random. There is one class beside the
background, as torchvision reports a box once for each class that it may be, and layout ssd for its best one.
"""

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
try:
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large
except (ImportError, RuntimeError) as missing:  # it is built for one version of torch
    pytest.skip(f"needs a torchvision that fits the torch: {missing}", allow_module_level=True)

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.model import DetectionModel  # noqa: E402
from elements.metadata.detections import Detections  # noqa: E402
from tests.parity import Comparison, bgr_frames, rgb_frame, slightly_other  # noqa: E402
from tests.yolos import settle_norms  # noqa: E402

SIZE, IOU = 320, 0.45
FOUND = 0.05  # share of the anchors whose score reaches the threshold


class Network(torch.nn.Module):
    """The network alone: boxes from 0 to 1, and softmax scores. torchvision cuts boxes at the edges before suppression,
    ours afterwards, so they are cut here already."""

    def __init__(self, detector):
        super().__init__()
        self.detector = detector
        sizes = detector.backbone(torch.zeros(1, 3, SIZE, SIZE))
        grids = [tuple(map_.shape[2:]) for map_ in sizes.values()]
        anchors = detector.anchor_generator._grid_default_boxes(grids, torch.tensor([[SIZE, SIZE]]))
        x, y, w, h = (anchors * SIZE).unbind(1)
        self.register_buffer("anchors", torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], dim=1))

    def forward(self, pictures):
        found = self.detector.head(list(self.detector.backbone((pictures - 0.5) / 0.5).values()))
        boxes = self.detector.box_coder.decode_single(found["bbox_regression"][0], self.anchors)
        return boxes.clamp(0, SIZE)[None] / SIZE, found["cls_logits"].softmax(dim=-1)


def test_ssdlite(shared_data, tmp_path):
    torch.manual_seed(0)
    detector = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=2).eval()
    clip = shared_data / "videos" / "one-by-one-person-detection.mp4"
    frames = [cv2.resize(frame, (SIZE, SIZE)) for frame in bgr_frames(clip, 400, 4)]
    tensors = [torch.from_numpy(np.ascontiguousarray(f[..., ::-1].transpose(2, 0, 1))).float() / 255 for f in frames]
    with torch.no_grad():
        network = Network(detector)
        settle_norms(network, torch.stack(tensors))
        scores = torch.cat([network(tensor[None])[1][0, :, 1] for tensor in tensors])
    confidence = float(torch.quantile(scores, 1 - FOUND))
    path = tmp_path / "ssdlite.onnx"
    torch.onnx.export(network, tensors[0][None], path, dynamo=False, output_names=["boxes", "scores"])
    detector.score_thresh, detector.nms_thresh = confidence, IOU
    model = DetectionModel(ModelConfig(str(path), confidence=confidence, iou=IOU, labels=["thing"], layout="ssd"))
    model.load()
    sums = Comparison(confidence, IOU)
    with torch.inference_mode():
        for frame, theirs in zip(frames, detector(tensors), strict=True):
            picture = rgb_frame(frame)
            (ours,) = model.infer([picture])
            wanted = Detections(theirs["boxes"].numpy(), theirs["scores"].numpy(), theirs["labels"].numpy() - 1)
            sums.add(ours, wanted, slightly_other(model, picture))
    assert sums.paired > 50
    assert not sums.reasons["unexplained"], sums.reasons
    assert sums.theirs - sums.paired <= 0.1 * sums.theirs, sums.reasons
    assert max(sums.shifts) <= 0.5
