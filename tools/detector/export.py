"""A trained detector to ONNX."""

from pathlib import Path

import onnx
import torch

from tools.detector.network import Detector, Exported
from tools.detector.pictures import LONG, SHORT
from tools.scenes import CLASSES

METADATA = {
    "description": "gstorch demo detector, trained on generated street scenes",
    "license": "Apache-2.0",
    "task": "detect",
    "stride": "32",
    "batch": "1",
    "imgsz": str([LONG, LONG]),
    "names": str(dict(enumerate(CLASSES))),
}
"""Metadata in the keys that YOLOv8 exports use."""


def export(detector: Detector, path: Path) -> None:
    """Writes the detector with dynamic batch, height and width; checks the file."""
    model = Exported(detector).eval()
    example = torch.zeros(1, 3, SHORT, LONG, device=next(model.parameters()).device)
    torch.onnx.export(
        model,
        (example,),
        str(path),
        input_names=["images"],
        output_names=["output0"],
        dynamic_axes={"images": {0: "batch", 2: "height", 3: "width"}, "output0": {0: "batch", 2: "anchors"}},
        opset_version=17,
        dynamo=False,
    )
    exported = onnx.load(str(path))
    # The exporter loses the one output size that does not change, by which loaders know the layout.
    exported.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4 + len(CLASSES)
    for key, value in METADATA.items():
        entry = exported.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(exported)
    onnx.save(exported, str(path))
