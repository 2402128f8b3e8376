"""Go on training from an exported detector."""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from tools.detector.network import Detector


def load_exported(detector: Detector, path: Path) -> None:
    """Gives a detector the weights of an ONNX file that `export` has written.

    The export has merged each batch norm into the convolution before it. Here the convolution gets the merged weights,
    and the norm nothing to do but add their bias. Norms must stay in evaluation mode from then on (`freeze_norms`).

    Raises:
        ValueError: if the file is of another network.
    """
    graph = onnx.load(str(path)).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    stored = [[values[name] for name in node.input[1:]] for node in graph.node if node.op_type == "Conv"]
    layers = _in_order(detector)
    if len(stored) != len(layers):
        raise ValueError(f"{path}: has {len(stored)} convolutions, the network has {len(layers)}")
    with torch.no_grad():
        for (conv, norm), (weight, bias) in zip(layers, stored, strict=True):
            if weight.shape != tuple(conv.weight.shape):
                raise ValueError(f"{path}: a convolution of {weight.shape} where the network has {conv.weight.shape}")
            conv.weight.copy_(_tensor(weight))
            if norm is None:
                assert conv.bias is not None
                conv.bias.copy_(_tensor(bias))
                continue
            norm.weight.fill_(1)
            norm.bias.copy_(_tensor(bias))
            assert norm.running_mean is not None and norm.running_var is not None
            norm.running_mean.zero_()
            norm.running_var.fill_(1 - norm.eps)


def freeze_norms(detector: Detector) -> None:
    """Keep what the batch norms do as it is; their factors and biases are still trained."""
    for module in detector.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()


def _in_order(detector: Detector) -> list[tuple[nn.Conv2d, nn.BatchNorm2d | None]]:
    """Convolutions in the order in which they run, which is theirs in the file, each with its norm."""
    ran: list[nn.Conv2d] = []
    norms: dict[nn.Conv2d, nn.BatchNorm2d] = {}
    hooks = []
    for module in detector.modules():
        if isinstance(module, nn.Conv2d):
            hooks.append(module.register_forward_hook(lambda conv, _inputs, _output: ran.append(conv)))
        elif isinstance(module, nn.BatchNorm2d):
            hooks.append(module.register_forward_hook(lambda norm, _inputs, _output: norms.update({ran[-1]: norm})))
    training = detector.training
    detector.eval()
    with torch.no_grad():
        detector(torch.zeros(1, 3, 64, 64, device=next(detector.parameters()).device))
    detector.train(training)
    for hook in hooks:
        hook.remove()
    return [(conv, norms.get(conv)) for conv in ran]


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(values))
