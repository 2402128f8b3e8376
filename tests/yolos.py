"""ultralytics' networks with made-up weights that find plenty of things in given pictures, for comparisons with it.

Nothing is trained or downloaded. Weights are random. Batch statistics are those of the pictures, so that the signal
does not die on its way; then the last convolutions are scaled so that boxes differ in place and size and about
``found`` of the anchors reach the confidence of 0.25.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

CLASSES = 3
CONFIDENCE = 0.25
SIZE = (320, 192)  # (width, height) to which pictures are stretched
SPREAD = 1.0  # standard deviation of the class logits


def yolo_file(
    kind: str, folder: Path, pictures: Sequence[NDArray[np.uint8]], found: float = 0.02, seed: int = 0
) -> Path:
    """Write a checkpoint. Pictures should be of all kinds that will come, or the network overflows on the others.

    Args:
        kind: name of one of ultralytics' definitions, such as ``yolo11n-seg``.
        folder: where the file goes.
        pictures: (H, W, 3) uint8 BGR.
        found: share of the anchors that reach `CONFIDENCE`.
        seed: of the weights.

    Returns:
        Path of the ``.pt`` file.
    """
    import torch
    import ultralytics

    torch.manual_seed(seed)
    yolo = ultralytics.YOLO(f"{kind}.yaml")
    network = type(yolo.model)(f"{kind}.yaml", nc=CLASSES, verbose=False)
    network.args, network.task, network.names = yolo.model.args, yolo.task, dict(enumerate("abc"))
    yolo.model = network
    batch = torch.from_numpy(np.stack([_input(picture) for picture in pictures]))
    with torch.no_grad():
        settle_norms(network, batch)
        _settle_head(network, batch, found)
    path = folder / f"{kind}.pt"
    yolo.save(path)
    return path


def _input(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    rgb = cv2.resize(picture, SIZE)[..., ::-1]
    return np.ascontiguousarray(rgb.transpose(2, 0, 1), np.float32) / np.float32(255)


def settle_norms(network: Any, batch: Any) -> None:
    """Running statistics of all batch normalisations become those of ``batch``."""
    norms = [module for module in network.modules() if hasattr(module, "running_mean")]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    network.train()(batch)
    network.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def _settle_head(network: Any, batch: Any, found: float) -> None:
    """Scale the convolutions that give boxes, classes, and what the task adds."""
    import torch

    head = network.model[-1]
    lasts = {
        name: [branch[-1] for branch in branches]
        for name, branches in head.named_children()
        if "cv" in name and isinstance(branches, torch.nn.ModuleList) and isinstance(branches[0][-1], torch.nn.Conv2d)
    }
    given: dict[Any, Any] = {}
    hooks = [
        conv.register_forward_hook(lambda module, _, output: given.__setitem__(module, output))
        for convs in lasts.values()
        for conv in convs
    ]
    network(batch)
    for hook in hooks:
        hook.remove()
    for name, convs in lasts.items():
        scores = name.endswith("cv3")
        bins = getattr(head, "reg_max", 1) > 1
        spread, middle = (SPREAD, 0.0) if scores else (3.0, 0.0) if name.endswith("cv2") and bins else (1.0, 0.0)
        if name.endswith("cv2") and not bins:
            middle = 3.0  # distances to the edges in strides
        best = []
        for conv in convs:
            output = given[conv]
            gain = spread / output.std((0, 2, 3)).clamp(1e-6)
            conv.weight *= gain[:, None, None, None]
            conv.bias.copy_((conv.bias - output.mean((0, 2, 3))) * gain + middle)
            best.append(((output - output.mean((0, 2, 3), keepdim=True)) * gain[:, None, None]).amax(1).flatten())
        if scores:
            logit = float(np.log(CONFIDENCE / (1 - CONFIDENCE)))
            shift = logit - torch.quantile(torch.cat(best), 1 - found)
            for conv in convs:
                conv.bias += shift
