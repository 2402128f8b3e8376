"""A seeded street scene with truth: any frame by its number."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.scenes.background import paint_background
from tools.scenes.camera import Array
from tools.scenes.furniture import furnish
from tools.scenes.light import random_light
from tools.scenes.raster import Patch, compose, draw, extent, solid
from tools.scenes.shapes import Figure, Polygons, Pose, figure_polygons, figure_shadow, footprint
from tools.scenes.street import STREET_END, Style, random_camera, random_street, sunlit
from tools.scenes.traffic import Actor, Label, plan_traffic
from tools.scenes.truth import TruthObject

_FADE_IN = 8.0
"""Metres from the far end over which traffic appears."""

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class _Drawn:
    """One figure of a frame before it is laid into the picture."""

    depth: float
    patch: Patch
    opacity: float
    actor: Actor | None
    whole: float  # part of the figure's box that lies inside the picture
    sun: list[Array]  # outlines of its shadow, in pixels
    contact: list[Array]  # outlines of the ground below it


class Scene:
    """A street seen by one fixed camera.

    The same arguments give the same frames; `render` may be called in any order.

    Args:
        seed: chooses street, camera, light, traffic and noise.
        width, height: picture size in pixels.
        fps: frames per second.
        style: "street" or "alley"; by default chosen by the seed.
    """

    def __init__(self, seed: int, width: int, height: int, fps: float, style: Style | None = None) -> None:
        rng = np.random.default_rng(seed)
        chosen: Style = "street" if rng.random() < 0.65 else "alley"
        self.width, self.height, self.fps = width, height, fps
        self.street = random_street(rng, style or chosen)
        self.camera = random_camera(rng, self.street, width, height)
        self.light = random_light(rng)
        self._belts = plan_traffic(self.street, seed, rng)
        background = paint_background(self.street, self.camera, self.light, rng)
        self._background = background.picture
        self._shadow_size = (max(width // 2, 1), max(height // 2, 1))
        sky_part = float(self.light.sky_colour.mean())
        sun_part = float(self.light.sun_colour.mean() * self.light.sun[1])
        self._sun_weight = self._half(background.sun, sun_part / (sun_part + sky_part))
        self._ground_weight = self._half(background.ground, 0.55)
        self._still: dict[int, list[_Drawn]] = {}
        self._furniture: list[_Drawn] = []
        self._still_shadow = np.zeros(self._shadow_size[::-1], np.uint8)
        for pose, figure in furnish(self.street, rng):
            drawn = self._draw(figure, pose, None, 1.0)
            if drawn is not None:
                self._furniture.append(drawn)
                self._fill(self._still_shadow, figure_shadow(figure, pose, self.camera, self.light))
        self._noise = self._make_noise(rng)
        self._noise_seed = seed
        self._blur = float(rng.uniform(0.45, 0.85)) * max(width, height) / 1280

    def render(self, frame: int) -> tuple[Picture, list[TruthObject]]:
        """Renders one frame.

        Args:
            frame: number from 0; its time is `frame / fps`.

        Returns:
            The picture, (height, width, 3) uint8 RGB, and what is in it, nearest last.
        """
        drawn = list(self._furniture)
        for belt in self._belts:
            for actor, pose, travelled in belt.at(frame / self.fps):
                if self._may_see(pose, reach=actor.length + 1.0):
                    drawn += self._appear(actor, pose, travelled)
        drawn.sort(key=lambda figure: -figure.depth)
        picture = self._shadowed(drawn)
        owners = np.zeros((self.height, self.width), np.uint16)
        for number, figure in enumerate(drawn, start=1):
            compose(picture, figure.patch, figure.opacity)
            owners[figure.patch.window][solid(figure.patch)] = number
        truth = [self._truth(figure, number, owners) for number, figure in enumerate(drawn, start=1) if figure.actor]
        return self._sensor(picture, frame), [item for item in truth if item is not None]

    def _appear(self, actor: Actor, pose: Pose, travelled: float) -> list[_Drawn]:
        """The actor drawn, in a list that is empty when nothing of it is in the picture."""
        if actor.track_id in self._still:
            return self._still[actor.track_id]
        opacity = 1.0 if actor.still else float(np.clip((STREET_END - pose.z) / _FADE_IN, 0.0, 1.0))
        drawn = self._draw(actor.figure(travelled), pose, actor, opacity)
        result = [] if drawn is None else [drawn]
        if actor.still:
            self._still[actor.track_id] = result
        return result

    def _may_see(self, pose: Pose, reach: float) -> bool:
        """Whether a figure within `reach` metres around its place can be in the picture."""
        across, _, depth = self.camera.to_camera(np.array([pose.x, 0.0, pose.z]))
        slope = self.width / 2 / self.camera.focal
        return bool(depth > -reach and abs(across) - reach * 1.5 < slope * max(depth, 0.0))

    def _lit(self, pose: Pose) -> float:
        if not self.light.sun_colour.any():
            return 0.0
        return float(sunlit(self.street, self.light, np.array([pose.x, 0.9, pose.z])))

    def _draw(self, figure: Figure, pose: Pose, actor: Actor | None, opacity: float) -> _Drawn | None:
        lit = self._lit(pose)
        polygons = figure_polygons(figure, pose, self.camera, self.light, lit)
        patch = draw(polygons, self.width, self.height)
        if patch is None:
            return None
        sun: list[Array] = []
        contact: list[Array] = []
        if actor is not None:
            contact = footprint(actor.width, actor.length, pose, self.camera)
            if lit > 0:
                sun = figure_shadow(figure, pose, self.camera, self.light)
        depth = float(self.camera.to_camera(np.array([pose.x, 0.0, pose.z]))[2])
        return _Drawn(depth, patch, opacity, actor, self._part_inside(polygons), sun, contact)

    def _part_inside(self, polygons: Polygons) -> float:
        corners = np.concatenate(polygons.points)
        low, high = corners.min(axis=0), corners.max(axis=0)
        inside = np.minimum(high, (self.width, self.height)) - np.maximum(low, 0)
        return min(float(np.prod(np.maximum(inside, 0)) / max(np.prod(high - low), 1e-6)), 1.0)

    def _truth(self, figure: _Drawn, number: int, owners: NDArray[np.uint16]) -> TruthObject | None:
        box = extent(figure.patch)
        if box is None or figure.actor is None or figure.opacity <= 0.5:
            return None
        seen = int((owners[figure.patch.window] == number).sum()) / int(solid(figure.patch).sum())
        label: Label = figure.actor.label
        return TruthObject.judged(figure.actor.track_id, label, box, seen * figure.whole, max(self.width, self.height))

    def _half(self, mask: Picture, weight: float) -> Picture:
        small: Picture = cv2.convertScaleAbs(
            cv2.resize(mask, self._shadow_size, interpolation=cv2.INTER_AREA), alpha=weight
        )
        return small

    def _fill(self, mask: Picture, outlines: list[Array]) -> None:
        if not outlines:
            return
        scale = np.array([self._shadow_size[0] / self.width, self._shadow_size[1] / self.height])
        corners = ((np.concatenate(outlines) * scale - 0.5) * 16).astype(np.int32)
        start = 0
        for outline in outlines:
            cv2.fillConvexPoly(mask, corners[start : start + len(outline)], 255, cv2.LINE_8, 4)
            start += len(outline)

    def _shadowed(self, drawn: list[_Drawn]) -> Picture:
        """The empty street darkened where figures keep off the sun or, below them, the sky."""
        sun, contact = self._still_shadow.copy(), np.zeros_like(self._still_shadow)
        for figure in drawn:
            self._fill(sun, figure.sun)
            self._fill(contact, figure.contact)
        scale = max(self.width, self.height) / 1280
        sun = cv2.GaussianBlur(sun, (0, 0), 0.8 * scale)
        contact = cv2.GaussianBlur(contact, (0, 0), 2.5 * scale)
        keep_sun = 255 - cv2.multiply(sun, self._sun_weight, scale=1 / 255)
        keep_sky = 255 - cv2.multiply(contact, self._ground_weight, scale=1 / 255)
        keep = cv2.multiply(keep_sun, keep_sky, scale=1 / 255)
        keep = cv2.resize(keep, (self.width, self.height), interpolation=cv2.INTER_LINEAR)
        darkened: Picture = cv2.multiply(self._background, cv2.cvtColor(keep, cv2.COLOR_GRAY2RGB), scale=1 / 255)
        return darkened

    def _make_noise(self, rng: np.random.Generator) -> Picture:
        strength = rng.uniform(1.2, 4.5)
        grain = rng.standard_normal((self.height + 64, self.width + 64, 3), dtype=np.float32)
        grain = cv2.GaussianBlur(grain, (0, 0), 0.6)
        noise: Picture = np.clip(grain / grain.std() * strength + 128.5, 0, 255).astype(np.uint8)
        return noise

    def _sensor(self, picture: Picture, frame: int) -> Picture:
        """Lens blur and sensor noise."""
        if self._blur > 0.3:
            picture = cv2.GaussianBlur(picture, (3, 3), self._blur)
        row, column = np.random.default_rng([self._noise_seed, frame]).integers(0, 64, 2)
        grain = self._noise[row : row + self.height, column : column + self.width]
        noisy: Picture = cv2.addWeighted(picture, 1.0, grain, 1.0, -128.0)
        return noisy
