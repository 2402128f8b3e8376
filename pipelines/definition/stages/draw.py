"""The draw stage."""

from __future__ import annotations

from typing import ClassVar

from pipelines.definition.fields import Boolean, Integer
from pipelines.definition.sections import OneKey, option


class DrawStage(OneKey):
    """Draw boxes, labels, masks and key points into the frames (nvdsosd)."""

    KEY: ClassVar[str] = "draw"

    boxes: Boolean = option(True, description="Draw the boxes.")
    labels: Boolean = option(True, description="Draw the class names.")
    confidence: Boolean = option(False, description="Add the confidence to the label.")
    ids: Boolean = option(True, description="Add the track id to the label.")
    masks: Boolean = option(True, description="Tint the objects' masks.")
    keypoints: Boolean = option(True, description="Draw the key points, with COCO's skeleton where there are 17.")
    attributes: Boolean = option(True, description="Add the labels of classifiers to the label.")
    line_width: Integer = option(3, ge=1, le=64, description="Width of borders and skeletons, pixels of the output.")
    font_size: Integer = option(12, ge=4, le=200, description="Size of label text, points.")
