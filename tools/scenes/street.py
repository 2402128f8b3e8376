"""The street itself: lanes, pavements, buildings along both sides, and where traffic runs."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tools.scenes.camera import Array, Camera
from tools.scenes.light import Light

Style = Literal["street", "alley"]

STREET_START, STREET_END = -15.0, 85.0
"""Stretch of the street, in metres along z, on which traffic exists; a building closes the far end."""


@dataclass(frozen=True)
class Buildings:
    """The row of houses on one side of the street, as arrays over its lots.

    Attributes:
        x: position of the wall in metres.
        edges: (L + 1,) z of the lot limits.
        heights: (L,) metres.
        walls, trims: (L, 3) colours of wall and of ground floor and window frames.
        windows: (L, 3) window pitch in metres, width and height as parts of the pitch and the floor.
    """

    x: float
    edges: Array
    heights: Array
    walls: Array
    trims: Array
    windows: Array

    def lot(self, z: Array) -> np.ndarray:
        """Index of the lot at each z."""
        return np.clip(np.searchsorted(self.edges, z, side="right") - 1, 0, len(self.heights) - 1)


@dataclass(frozen=True)
class Street:
    """Plan of one street; x positions in metres.

    Attributes:
        style: a street for cars, or an alley mostly for people.
        road: half width of the carriageway.
        pavement: width of each pavement.
        lanes: (x, direction) of each lane; direction +1 drives away towards +z.
        left, right: the buildings.
        crossing: z at which a zebra crossing begins, or None.
        paving: size of the pavement's slabs in metres.
        ground: (3, 3) colours of carriageway, pavement, kerb.
    """

    style: Style
    road: float
    pavement: float
    lanes: tuple[tuple[float, int], ...]
    left: Buildings
    right: Buildings
    crossing: float | None
    paving: float
    ground: Array


def random_street(rng: np.random.Generator, style: Style) -> Street:
    """A random street of the given style."""
    if style == "street":
        per_side = int(rng.choice([1, 1, 2]))
        lane = rng.uniform(3.2, 3.7)
        margin = rng.uniform(1.0, 2.4)  # room for cyclists
        offsets = [lane * (i + 0.5) for i in range(per_side)]
        lanes = tuple((x, 1) for x in offsets) + tuple((-x, -1) for x in offsets)
        road = per_side * lane + margin
        pavement = rng.uniform(2.6, 4.8)
    else:
        lanes = ((float(rng.uniform(-0.4, 0.4)), int(rng.choice([-1, 1]))),)
        road = rng.uniform(2.2, 3.0)
        pavement = rng.uniform(1.8, 2.8)
    wall = road + pavement
    tone = rng.uniform(0.85, 1.12)
    carriageway = (
        np.array([0.36, 0.365, 0.375]) if style == "street" else rng.uniform(0.36, 0.5) * np.array([1.05, 1.0, 0.94])
    )
    pavement_colour = rng.uniform(0.48, 0.62) * np.array([1.02, 1.0, 0.96])
    return Street(
        style=style,
        road=road,
        pavement=pavement,
        lanes=lanes,
        left=_random_buildings(rng, -wall, style),
        right=_random_buildings(rng, wall, style),
        crossing=float(rng.uniform(8, 26)) if style == "street" and rng.random() < 0.6 else None,
        paving=float(rng.choice([0.4, 0.6, 0.9])),
        ground=np.stack([carriageway * tone, pavement_colour * tone, np.array([0.62, 0.61, 0.59]) * tone]),
    )


def _random_buildings(rng: np.random.Generator, x: float, style: Style) -> Buildings:
    edges = [STREET_START - 30.0]
    while edges[-1] < STREET_END + 20.0:
        edges.append(edges[-1] + rng.uniform(7, 18))
    count = len(edges) - 1
    plaster = np.array(
        [
            (0.72, 0.66, 0.56),
            (0.60, 0.36, 0.28),
            (0.66, 0.62, 0.60),
            (0.78, 0.74, 0.68),
            (0.50, 0.42, 0.38),
            (0.74, 0.58, 0.42),
            (0.52, 0.58, 0.62),
        ]
    )
    trims = np.array(
        [(0.24, 0.28, 0.30), (0.85, 0.83, 0.80), (0.16, 0.30, 0.26), (0.42, 0.16, 0.14), (0.20, 0.26, 0.42)]
    )
    low, high = (8.0, 20.0) if style == "street" else (8.0, 15.0)
    return Buildings(
        x=x,
        edges=np.array(edges),
        heights=rng.uniform(low, high, count),
        walls=plaster[rng.integers(0, len(plaster), count)] * rng.uniform(0.85, 1.1, (count, 1)),
        trims=trims[rng.integers(0, len(trims), count)],
        windows=np.stack(
            [rng.uniform(1.8, 3.2, count), rng.uniform(0.42, 0.62, count), rng.uniform(0.45, 0.62, count)], axis=1
        ),
    )


def sunlit(street: Street, light: Light, points: Array) -> Array:
    """How much of the sun reaches each of `points` (..., 3) past the buildings: 1 lit, 0 in the shade."""
    across = light.sun[0]
    buildings = street.right if across > 0 else street.left
    if abs(across) < 1e-3:
        return np.ones(points.shape[:-1])
    steps = np.maximum((buildings.x - points[..., 0]) / across, 0.0)
    height = points[..., 1] + light.sun[1] * steps
    roof = buildings.heights[buildings.lot(points[..., 2] + light.sun[2] * steps)]
    # The sun's disc is half a degree wide, so the edge of a shadow is softer the further it falls.
    softness = 0.05 + 0.02 * steps
    lit: Array = np.clip((height - roof) / softness + 0.5, 0.0, 1.0)
    return lit


def random_camera(rng: np.random.Generator, street: Street, width: int, height: int) -> Camera:
    """A camera on a mast or a wall that looks along or across the street."""
    longest = max(width, height)
    focal = longest * rng.uniform(0.72, 1.05)
    limit = street.road + street.pavement - 0.6
    x = rng.uniform(-limit, limit)
    mast = rng.uniform(4.3, 7.5)
    # Looks back towards the middle of the street, more so when the view is wide.
    spread = np.radians(rng.uniform(0, 42 if street.style == "street" and width > height else 9))
    yaw = -np.sign(x) * spread
    # Horizon between 2 and 30 % of the height below the top of the picture.
    horizon = rng.uniform(0.02, 0.30)
    pitch = np.arctan((0.5 - horizon) * height / focal)
    return Camera(width, height, float(focal), (float(x), float(mast), 0.0), float(yaw), float(pitch))
