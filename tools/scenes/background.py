"""The static picture of an empty street: sky, buildings and ground, one ray per sample."""

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.scenes.camera import Array, Camera
from tools.scenes.light import Light, to_bytes
from tools.scenes.street import STREET_END, Buildings, Street, sunlit

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Background:
    """What does not move.

    Attributes:
        picture: (H, W, 3) uint8 RGB.
        ground: (H, W) uint8, 255 where the ground is seen.
        sun: (H, W) uint8, 255 where the ground is in full sun.
    """

    picture: NDArray[np.uint8]
    ground: NDArray[np.uint8]
    sun: NDArray[np.uint8]


class Noise:
    """Fractal noise in about -1..1 that repeats every `size` cells."""

    def __init__(self, rng: np.random.Generator, size: int = 512) -> None:
        total = np.zeros((size, size), np.float32)
        for octave in range(1, 7):
            cells = 4 * 2**octave
            grid = rng.standard_normal((cells, cells)).astype(np.float32)
            wrapped = np.pad(grid, 2, mode="wrap")
            scale = size // cells
            total += (
                cv2.resize(wrapped, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)[
                    2 * scale : 2 * scale + size, 2 * scale : 2 * scale + size
                ]
                * 0.75**octave
            )
        self._texture = total / total.std() * 0.5

    def at(self, u: Array | Floats, v: Array | Floats) -> Floats:
        """Noise at texture coordinates in cells, any shape (N,)."""
        if not len(u):
            return np.zeros(0, np.float32)
        columns = np.mod(u, 511.0).astype(np.float32).reshape(1, -1)
        rows = np.mod(v, 511.0).astype(np.float32).reshape(1, -1)
        # cv2.remap takes maps below 32768 in both directions, so the samples are folded into rows.
        width = 8192
        count = columns.shape[1]
        padded = -(-count // width) * width
        columns = np.pad(columns, ((0, 0), (0, padded - count))).reshape(-1, width)
        rows = np.pad(rows, ((0, 0), (0, padded - count))).reshape(-1, width)
        values: Floats = cv2.remap(self._texture, columns, rows, cv2.INTER_LINEAR).reshape(-1)[:count]
        return values


def paint_background(street: Street, camera: Camera, light: Light, rng: np.random.Generator) -> Background:
    """Ray-casts the empty street with four samples per pixel."""
    painter = _Painter(street, camera, light, rng)
    rays = camera.rays(camera.width * 2, camera.height * 2)
    picture = np.empty((camera.height, camera.width, 3), np.uint8)
    ground = np.empty((camera.height, camera.width), np.uint8)
    sun = np.empty_like(ground)
    rows = 16  # samples of a band stay in the processor's cache
    for top in range(0, camera.height, rows):
        band = rays[top * 2 : (top + rows) * 2]
        for target, samples in zip((picture, ground, sun), painter.paint(band.reshape(-1, 3)), strict=True):
            shaped = samples.reshape(*band.shape[:2], -1)
            size = (camera.width, band.shape[0] // 2)
            target[top : top + rows] = to_bytes(cv2.resize(shaped, size, interpolation=cv2.INTER_AREA))
    return Background(picture, ground, sun)


class _Painter:
    def __init__(self, street: Street, camera: Camera, light: Light, rng: np.random.Generator) -> None:
        self._street, self._light = street, light
        self._eye = np.array(camera.position, np.float32)
        self._noise = Noise(rng)
        self._far_roofs = rng.uniform(9, 17, 9)
        self._covers = [(rng.uniform(-street.road * 0.8, street.road * 0.8), rng.uniform(6, 45)) for _ in range(5)]

    def paint(self, rays: Floats) -> tuple[Floats, Floats, Floats]:
        """Colour (N, 3), whether it is ground (N,) and sunlight on the ground (N,) along rays (N, 3)."""
        street, light, noise, eye = self._street, self._light, self._noise, self._eye
        picture = _sky(rays, light, noise)
        nearest = np.full(len(rays), 1e6, np.float32)
        ground, sun = np.zeros(len(rays), np.float32), np.zeros(len(rays), np.float32)

        def cover(distance: Floats, valid: NDArray[np.bool_]) -> NDArray[np.intp]:
            seen = np.flatnonzero(valid & (distance < nearest))
            nearest[seen] = distance[seen]
            return seen

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for buildings in (street.left, street.right):
                distance = (np.float32(buildings.x) - eye[0]) / rays[:, 0]
                y, z = eye[1] + rays[:, 1] * distance, eye[2] + rays[:, 2] * distance
                roof = buildings.heights[buildings.lot(z)]
                seen = cover(distance, (distance > 0) & (y > 0) & (y < roof) & (z < STREET_END))
                colours = _wall(buildings, z[seen], y[seen], distance[seen], light, noise)
                points = np.stack([np.full(len(seen), buildings.x * 0.999), y[seen], z[seen]], axis=1)
                lit = sunlit(street, light, points) * max(0.0, -np.sign(buildings.x) * light.sun[0])
                picture[seen] = light.through_air(_lit(colours, lit, light), distance[seen, None])
            distance = (np.float32(STREET_END) - eye[2]) / rays[:, 2]
            x, y = eye[0] + rays[:, 0] * distance, eye[1] + rays[:, 1] * distance
            roof = np.interp(x, np.linspace(-30, 30, 9), self._far_roofs)
            seen = cover(distance, (distance > 0) & (y > 0) & (y < roof))
            colours = _wall(street.left, x[seen] + 37.0, y[seen], distance[seen], light, noise)
            picture[seen] = light.through_air(_lit(colours, np.zeros(len(seen)), light), distance[seen, None])
            distance = -eye[1] / rays[:, 1]
            seen = cover(distance, distance > 0)
        x, z = eye[0] + rays[seen, 0] * nearest[seen], eye[2] + rays[seen, 2] * nearest[seen]
        colours = _ground(street, x, z, nearest[seen], noise, self._covers)
        lit = sunlit(street, light, np.stack([x, np.zeros_like(x), z], axis=1))
        picture[seen] = light.through_air(_lit(colours, lit * light.sun[1], light), nearest[seen, None])
        ground[seen], sun[seen] = 1.0, lit
        return picture, ground, sun


def _lit(colours: Floats, direct: Array, light: Light) -> Array:
    return colours * (direct[:, None] * light.sun_colour + light.sky_colour)


def _fade(distance: Floats, reach: float) -> Floats:
    """Weight of a detail that a pixel can no longer resolve beyond `reach` metres."""
    weight: Floats = np.clip(2.0 - distance / reach, 0.0, 1.0)
    return weight


def _sky(rays: Floats, light: Light, noise: Noise) -> Floats:
    rise = np.clip(rays[:, 1] / np.linalg.norm(rays, axis=1), 0.0, 1.0)
    blend = np.sqrt(rise)[:, None]
    colours = light.horizon * (1 - blend) + light.zenith * blend
    lift = np.maximum(rise, 0.03)
    clouds = noise.at(rays[:, 0] / lift * 6 + 90, rays[:, 2] / lift * 6 + 33)
    cover = np.clip(clouds * 0.9, 0.0, 0.75)[:, None] * np.clip(rise * 6, 0, 1)[:, None]
    sky: Floats = ((colours * (1 - cover) + np.minimum(light.horizon * 1.05, 1.0) * cover) * light.exposure).astype(
        np.float32
    )
    return sky


def _wall(buildings: Buildings, along: Floats, y: Floats, distance: Floats, light: Light, noise: Noise) -> Floats:
    """Facade colours (N, 3) at `along` metres along the wall and `y` metres up."""
    lot = buildings.lot(along)
    colours = (
        buildings.walls[lot]
        * (1.0 + 0.10 * noise.at(along * 9, y * 9) * _fade(distance, 30) + 0.07 * noise.at(along * 0.7, y * 0.7))[
            :, None
        ]
    )
    course = np.mod(y, 0.24) < 0.03  # bricks or boards
    colours = np.where((course & (lot % 3 == 1))[:, None], colours * (1 - 0.22 * _fade(distance, 18))[:, None], colours)
    start, end = buildings.edges[lot], buildings.edges[lot + 1]
    pitch, part_wide, part_high = buildings.windows[lot].T
    pitch = (end - start) / np.maximum(np.round((end - start) / pitch), 1)
    shop = y < 3.6
    pitch = np.where(shop, pitch * 1.0, pitch)
    part_wide = np.where(shop, 0.84, part_wide)
    part_high = np.where(shop, 0.66, part_high)
    floor = np.where(shop, y / 3.6, np.mod((y - 3.6) / 3.1, 1.0))
    column = np.mod((along - start) / pitch, 1.0)
    across, up = np.abs(column - 0.5) * 2, np.abs(floor - 0.5) * 2
    frame = (across < part_wide + 0.09) & (up < part_high + 0.07)
    glass = (across < part_wide) & (up < part_high) & (np.abs(column - 0.5) > 0.012)
    colours = np.where(shop[:, None], colours * 0.25 + buildings.trims[lot] * 0.6, colours)
    colours = np.where((frame & ~shop)[:, None], np.clip(buildings.trims[lot] * 0.4 + 0.4, 0, 1), colours)
    cell = np.floor((along - start) / pitch) * 12.9 + np.floor(y / 3.1) * 78.2 + lot * 37.7
    mood = np.mod(np.sin(cell) * 4375.5, 1.0)[:, None]
    reflection = (light.zenith * 0.45 + light.horizon * 0.12) * (0.5 + 0.5 * up[:, None]) * (0.5 + mood)
    curtain = np.array([0.62, 0.56, 0.46]) * (0.5 + 0.4 * mood)
    pane = np.where((mood > 0.72) & ~shop[:, None], curtain, reflection)
    colours = np.where(glass[:, None], pane, colours)
    sill = (y > 3.4) & (y < 3.75)
    colours = np.where(sill[:, None], buildings.trims[lot] * 0.5 + 0.2, colours)
    roof = buildings.heights[lot]
    colours = np.where((y > roof - 0.5)[:, None], colours * 0.35 + 0.3, colours)
    seam = np.minimum(along - start, end - along) < 0.12
    colours = np.where(seam[:, None], colours * 0.7, colours)
    # Dirt near the pavement, and less sky light low in the canyon.
    darkened: Floats = (colours * np.clip(0.72 + 0.04 * y, 0.0, 1.0)[:, None]).astype(np.float32)
    return darkened


def _ground(
    street: Street, x: Floats, z: Floats, distance: Floats, noise: Noise, covers: list[tuple[float, float]]
) -> Floats:
    """Ground colours (N, 3)."""
    side = np.abs(x)
    on_road = side < street.road
    fine = noise.at(x * 40, z * 40) * _fade(distance, 25)
    broad = noise.at(x * 1.6 + 7, z * 1.1)
    road = np.broadcast_to(street.ground[0], (len(x), 3)) * (1 + 0.10 * fine + 0.10 * broad)[:, None]
    if street.style == "street":
        for lane, _ in street.lanes:
            tracks = np.exp(-(((np.abs(x - lane) - 0.75) / 0.28) ** 2))
            road = road * (1 - 0.10 * tracks)[:, None]
        worn = (0.78 + 0.18 * np.clip(noise.at(x * 14, z * 14), -1, 1))[:, None]
        road = np.where(_markings(street, x, z)[:, None], np.array([0.80, 0.80, 0.77]) * worn, road)
    else:
        row = np.floor(z / 0.30)
        stone = (np.mod(z, 0.30) < 0.05) | (np.mod(x + row * 0.17, 0.34) < 0.05)
        tint = np.mod(np.sin(row * 12.9 + np.floor((x + row * 0.17) / 0.34) * 78.2) * 437.5, 1.0)
        detail = _fade(distance, 9)
        road = road * (1 + detail * (0.24 * (tint - 0.5) - 0.28 * stone))[:, None]
    joint = (np.mod(side, street.paving) < 0.03) | (np.mod(z, street.paving) < 0.03)
    slab = np.mod(np.sin(np.floor(side / street.paving) * 12.9 + np.floor(z / street.paving) * 78.2) * 437.5, 1.0)
    detail = _fade(distance, 14)
    pavement = (
        np.broadcast_to(street.ground[1], (len(x), 3))
        * (1 + 0.06 * fine + 0.08 * broad + detail * (0.10 * (slab - 0.5) - 0.22 * joint))[:, None]
    )
    kerb = np.broadcast_to(street.ground[2], (len(x), 3)) * (1 + 0.08 * fine)[:, None]
    colours = np.where(on_road[:, None], road, np.where((side < street.road + 0.24)[:, None], kerb, pavement))
    gutter = np.exp(-np.maximum(street.road - side, 0.0) / 0.25) * on_road
    colours = colours * (1 - 0.35 * gutter)[:, None]
    for cx, cz in covers:
        radius = np.hypot(x - cx, z - cz)
        colours = np.where((radius < 0.36)[:, None], colours * np.where(radius > 0.30, 0.45, 0.72)[:, None], colours)
    # Less sky reaches the ground beside a wall.
    near_wall = np.exp(-np.maximum(street.right.x - side, 0.0) / 0.5)
    return (colours * (1 - 0.4 * near_wall)[:, None]).astype(np.float32)


def _markings(street: Street, x: Floats, z: Floats) -> NDArray[np.bool_]:
    """Where the carriageway is painted."""
    half = 0.07
    lane_xs = sorted(lane for lane, _ in street.lanes)
    edge = street.road - (street.road - lane_xs[-1]) * 0.45
    painted = np.abs(np.abs(x) - edge) < half
    dashed = np.mod(z, 9.0) < 3.0
    for first, second in pairwise(lane_xs):
        middle = (first + second) / 2
        solid = abs(middle) < 0.2 and len(lane_xs) > 2
        painted |= (np.abs(x - middle) < half) & (dashed | solid)
    if street.crossing is None:
        return painted
    ahead = z - street.crossing
    stripes = (np.mod(x, 1.0) < 0.5) & (ahead > 0) & (ahead < 3.2) & (np.abs(x) < street.road - 0.2)
    clear = (ahead > -1.6) & (ahead < 4.8)
    stop = (np.abs(ahead + 1.4) < 0.18) & (x > 0.1) & (x < edge) | (np.abs(ahead - 4.6) < 0.18) & (x < -0.1) & (
        x > -edge
    )
    marked: NDArray[np.bool_] = (painted & ~clear) | stripes | stop
    return marked
