"""What classifiers said of an object, read through pyservicemaker's API."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Label:
    """One label; class number and probability (0 to 1) are ``None`` where they cannot be told."""

    text: str
    class_id: int | None
    probability: float | None


def labels_of(object_meta: Any) -> dict[str, list[Label]]:
    """The labels of an object by classifier, in the order in which the classifiers looked at it.

    A classifier without a name goes by its component's number: DeepStream loses the name where it copies a batch.
    Versions of pyservicemaker without ``get_label_info`` tell the texts only.

    Args:
        object_meta: ObjectMetadata.
    """
    found = [
        (meta.classifier_type or str(meta.unique_component_id), [_label(meta, i) for i in range(meta.n_labels)])
        for meta in object_meta.classifier_items
    ]
    return {name: labels for name, labels in reversed(found) if labels}


def _label(meta: Any, index: int) -> Label:
    if not hasattr(meta, "get_label_info"):
        return Label(meta.get_n_label(index), None, None)
    info = meta.get_label_info(index)
    return Label(info.label, int(info.class_id), float(info.prob) if math.isfinite(info.prob) else None)
