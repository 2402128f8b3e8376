"""A pinhole camera over a flat street.

World frame: x to the right across the street, y up, z along the street, in metres, ground at y = 0.
Camera frame: x right, y down, z forward (depth). Pixels: (0, 0) is the outer corner of the first pixel.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

NEAR = 0.5
"""Depth in metres of the near plane; nothing closer is drawn."""


@dataclass(frozen=True)
class Camera:
    """A fixed camera.

    Attributes:
        width, height: picture size in pixels.
        focal: focal length in pixels.
        position: (x, y, z) of the optical centre in metres.
        yaw: radians, positive looks towards +x.
        pitch: radians, positive looks down.
    """

    width: int
    height: int
    focal: float
    position: tuple[float, float, float]
    yaw: float
    pitch: float

    @cached_property
    def rotation(self) -> Array:
        """(3, 3), rows are the camera's right, down and forward axes in the world frame."""
        sin_yaw, cos_yaw = np.sin(self.yaw), np.cos(self.yaw)
        sin_pitch, cos_pitch = np.sin(self.pitch), np.cos(self.pitch)
        ahead = np.array([sin_yaw, 0.0, cos_yaw])
        up = np.array([0.0, 1.0, 0.0])
        right = np.array([cos_yaw, 0.0, -sin_yaw])
        return np.stack([right, -(sin_pitch * ahead + cos_pitch * up), cos_pitch * ahead - sin_pitch * up])

    @cached_property
    def origin(self) -> Array:
        """(3,) optical centre in metres."""
        return np.array(self.position)

    def to_camera(self, points: Array) -> Array:
        """World points (..., 3) to the camera frame (..., 3)."""
        relative: Array = (points - self.origin) @ self.rotation.T
        return relative

    def to_pixels(self, points: Array) -> Array:
        """Camera-frame points (..., 3) with depth of at least `NEAR` to pixels (..., 2)."""
        centre = np.array([self.width / 2, self.height / 2])
        pixels = points[..., :2] * (self.focal / points[..., 2:]) + centre
        # Keeps coordinates inside OpenCV's fixed-point range for polygons that end right before the camera.
        clipped: Array = np.minimum(np.maximum(pixels, -8000.0), 8000.0)
        return clipped

    def rays(self, width: int, height: int) -> NDArray[np.float32]:
        """World directions (height, width, 3), one per pixel of a picture of this view with another size."""
        columns = ((np.arange(width) + 0.5) / width - 0.5) * self.width / self.focal
        rows = ((np.arange(height) + 0.5) / height - 0.5) * self.height / self.focal
        directions = np.empty((height, width, 3), np.float32)
        for axis in range(3):
            right, down, forward = self.rotation[:, axis]
            directions[..., axis] = columns * right + rows[:, None] * down + forward
        return directions
