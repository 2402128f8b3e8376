"""Daylight: sun, sky, haze and exposure, and the colour that a lit surface takes."""

from dataclasses import dataclass

import numpy as np

from tools.scenes.camera import Array

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Light:
    """The light of one scene; colours are RGB in 0..1 as displayed.

    Attributes:
        sun: (3,) unit vector towards the sun.
        sun_colour: colour of direct light; black when the sky is overcast.
        sky_colour: colour of light from above.
        zenith, horizon: colours of the visible sky.
        haze: part of the light lost per metre of distance.
        exposure: factor on everything.
    """

    sun: Array
    sun_colour: Array
    sky_colour: Array
    zenith: Array
    horizon: Array
    haze: float
    exposure: float

    def shade(self, colours: Array, normals: Array, lit: float) -> Array:
        """Colour of matt surfaces.

        Args:
            colours: (N, 3) surface colours.
            normals: (N, 3) unit normals in the world frame.
            lit: 1 in the sun, 0 in the shade of a building.

        Returns:
            (N, 3) light leaving the surfaces, without haze and exposure.
        """
        direct = np.maximum(normals @ self.sun, 0.0)[:, None] * self.sun_colour * lit
        diffuse = self.sky_colour * (0.72 + 0.28 * normals[:, 1:2])
        shaded: Array = colours * (direct + diffuse)
        return shaded

    def through_air(self, colours: Array, distance: Array) -> Array:
        """Adds haze over `distance` metres (broadcast against colours (..., 3)) and exposure."""
        clear = np.exp(-self.haze * np.asarray(distance))
        seen: Array = (colours * clear + self.horizon * (1.0 - clear)) * self.exposure
        return seen


def random_light(rng: np.random.Generator) -> Light:
    """One of four kinds of daylight: sunny, overcast, low warm sun, dusk."""
    kind = rng.choice(["sunny", "overcast", "golden", "dusk"], p=[0.42, 0.28, 0.18, 0.12])
    elevation = np.radians(rng.uniform(16, 28) if kind == "golden" else rng.uniform(35, 62))
    azimuth = rng.uniform(0, 2 * np.pi)
    sun = np.array([np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)])
    sun_colour, sky_colour, zenith, horizon = {
        "sunny": ((0.95, 0.88, 0.76), (0.56, 0.60, 0.68), (0.28, 0.48, 0.80), (0.74, 0.83, 0.92)),
        "overcast": ((0.0, 0.0, 0.0), (0.86, 0.88, 0.90), (0.70, 0.73, 0.77), (0.82, 0.84, 0.86)),
        "golden": ((1.05, 0.74, 0.44), (0.54, 0.53, 0.60), (0.38, 0.50, 0.72), (0.95, 0.80, 0.62)),
        "dusk": ((0.0, 0.0, 0.0), (0.58, 0.60, 0.72), (0.26, 0.32, 0.52), (0.66, 0.60, 0.64)),
    }[str(kind)]
    return Light(
        sun=sun,
        sun_colour=np.array(sun_colour),
        sky_colour=np.array(sky_colour),
        zenith=np.array(zenith),
        horizon=np.array(horizon),
        haze=float(rng.uniform(0.001, 0.005)),
        exposure=float(rng.uniform(0.95, 1.22)),
    )


def to_bytes(colours: Array) -> np.ndarray:
    """Colours in 0..1 (any shape) to uint8 with a soft shoulder instead of hard clipping."""
    soft = np.where(colours < 0.8, colours, 0.8 + 0.2 * np.tanh((colours - 0.8) / 0.2))
    return (np.clip(soft, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
