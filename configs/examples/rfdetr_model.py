"""RF-DETR (pip install rfdetr; its code and its models up to Large are Apache-2.0) as a model of one's own.

    gstorch run configs/examples/rfdetr.yaml, with PYTHONPATH=configs/examples

An ONNX export of it (`model.export()`) runs without this, as layout rfdetr; so this is for what the package alone
can do, and an example of a library behind the three hooks. Tried with rfdetr 1.11.2 on a CPU with random weights, not
with trained ones.
"""

from __future__ import annotations

from typing import Literal

from elements.inference.errors import ModelError
from elements.metadata.detections import Detections


class RfDetr:
    """RF-DETR from its own package, detection or segmentation.

    Args:
        variant: class of the package, without ``RFDETR``.
        weights: a checkpoint. Without one the package takes its own, which it downloads if it has to.
        threshold: lowest score that counts.
        labels: names of the classes of the checkpoint; default: COCO's.
        resolution: side of the network's input, pixels; default: the variant's.
        half: compute in fp16, for GPUs.
    """

    def __init__(
        self,
        variant: Literal["Nano", "Small", "Medium", "Base", "Large", "SegNano", "SegSmall", "SegMedium"] = "Medium",
        weights: str | None = None,
        threshold: float = 0.5,
        labels: list[str] | None = None,
        resolution: int | None = None,
        half: bool = False,
    ) -> None:
        self.threshold = threshold
        self.names: tuple[str, ...] = tuple(labels or ())
        self._variant, self._half = variant, half
        self._options = {"pretrain_weights": weights, "resolution": resolution}
        self._model = None

    def load(self) -> None:
        """Import the package, which takes seconds, and load the network."""
        try:
            import rfdetr
        except ImportError as error:
            raise ModelError("RF-DETR is not installed: pip install rfdetr") from error
        options = {name: value for name, value in self._options.items() if value is not None}
        self._model = getattr(rfdetr, f"RFDETR{self._variant}")(**options)
        self.names = self.names or _coco_names()
        if self._half:
            self._model.inference(compile=False, dtype="float16")

    def infer(self, frames) -> list[Detections]:
        """The package scales the pictures itself and gives boxes in their pixels."""
        assert self._model is not None
        pictures = [frame.array for frame in frames]
        found = self._model.predict(pictures, threshold=self.threshold, include_source_image=False)
        return [_detections(one) for one in (found if isinstance(found, list) else [found])]

    def close(self) -> None:
        """Let the network go."""
        self._model = None


def _detections(found) -> Detections:
    """From supervision's type, whose masks are for whole frames."""
    return Detections(found.xyxy, found.confidence, found.class_id, masks=found.mask)


def _coco_names() -> tuple[str, ...]:
    """COCO's names by its own numbers, which have gaps."""
    try:
        from rfdetr.assets.coco_classes import COCO_CLASSES
    except ImportError:  # before version 1.5
        from rfdetr.util.coco_classes import COCO_CLASSES
    names = dict(COCO_CLASSES) if isinstance(COCO_CLASSES, dict) else dict(enumerate(COCO_CLASSES))
    return tuple(names.get(number, str(number)) for number in range(max(names) + 1))
