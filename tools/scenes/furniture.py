"""Things that stand on the pavement and hide what passes behind them: trees, lamp posts, bollards."""

import numpy as np

from tools.scenes.light import Colour
from tools.scenes.shapes import Capsule, Pose
from tools.scenes.street import Street

_IRON: Colour = (0.16, 0.18, 0.18)


def tree(rng: np.random.Generator) -> list[Capsule]:
    """A street tree."""
    height, crown = float(rng.uniform(2.6, 3.6)), float(rng.uniform(1.0, 1.7))
    green = np.array([0.22, 0.36, 0.14]) * rng.uniform(0.8, 1.25) + np.array([rng.uniform(0, 0.12), 0.0, 0.0])
    parts = [Capsule((0, 0, 0), (0.05, height, 0), 0.15, 0.09, (0.30, 0.24, 0.18))]
    for _ in range(150):
        direction = rng.standard_normal(3)
        x, y, z = direction / np.linalg.norm(direction) * crown * rng.uniform(0.3, 1.0) ** 0.5
        at = (float(x), float(height + crown * 0.75 + y * 0.95), float(z))
        red, leaf, blue = green * rng.uniform(0.75, 1.3)
        size = float(rng.uniform(0.12, 0.27))
        parts.append(Capsule(at, at, size, size, (float(red), float(leaf), float(blue))))
    return parts


def lamp_post(towards_road: float) -> list[Capsule]:
    """A lamp post whose arm points to x * `towards_road`."""
    return [
        Capsule((0, 0, 0), (0, 1.0, 0), 0.10, 0.09, _IRON),
        Capsule((0, 0.9, 0), (0, 6.2, 0), 0.065, 0.05, _IRON),
        Capsule((0, 6.2, 0), (1.1 * towards_road, 6.5, 0), 0.045, 0.04, _IRON),
        Capsule((0.9 * towards_road, 6.48, 0), (1.4 * towards_road, 6.5, 0), 0.09, 0.09, (0.62, 0.62, 0.60)),
    ]


def bollard() -> list[Capsule]:
    """A knee-high post."""
    return [
        Capsule((0, 0, 0), (0, 0.85, 0), 0.07, 0.07, _IRON),
        Capsule((0, 0.72, 0), (0, 0.76, 0), 0.075, 0.075, (0.75, 0.75, 0.72)),
    ]


def furnish(street: Street, rng: np.random.Generator) -> list[tuple[Pose, list[Capsule]]]:
    """Places furniture along both kerbs, clear of the crossing and of the camera."""
    placed: list[tuple[Pose, list[Capsule]]] = []
    green = rng.random() < 0.55
    for side in (-1.0, 1.0):
        x = side * (street.road + 0.45)
        for index, z in enumerate(np.arange(9.0 + rng.uniform(0, 8), 90.0, 9.0)):
            if street.crossing is not None and abs(z - street.crossing - 1.6) < 3.0:
                continue
            if index % 3 == 0:
                figure = lamp_post(-side)
            elif green and rng.random() < 0.6:
                figure = tree(rng)
            elif rng.random() < 0.4:
                figure = bollard()
            else:
                continue
            placed.append((Pose(float(x), float(z + rng.uniform(-1, 1)), 0.0), figure))
    return placed
