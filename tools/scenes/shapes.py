"""Solid shapes as flat-shaded faces and capsules, and their way to coloured polygons in the picture.

Model frame of a figure: x to its right, y up, z ahead, origin on the ground below its middle, in metres.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.scenes.camera import NEAR, Array, Camera
from tools.scenes.light import Colour, Light, to_bytes

Point = tuple[float, float, float]
Span = tuple[float, float]

_FLAT_RADIUS = 4.5
"""Pixels below which the shading of a limb cannot be seen and is left out."""

_CIRCLE = np.stack(
    [np.cos(np.linspace(0, 2 * np.pi, 12, endpoint=False)), np.sin(np.linspace(0, 2 * np.pi, 12, endpoint=False))],
    axis=1,
)


@dataclass(frozen=True)
class Pose:
    """Where a figure stands: (x, z) on the ground in metres, heading in radians (0 faces +z, positive to +x)."""

    x: float
    z: float
    heading: float

    def to_world(self, points: Array) -> Array:
        """Model points (..., 3) to world points (..., 3)."""
        world: Array = self.turn(points) + np.array([self.x, 0.0, self.z])
        return world

    def turn(self, vectors: Array) -> Array:
        """Model directions (..., 3) to world directions (..., 3)."""
        sin, cos = np.sin(self.heading), np.cos(self.heading)
        x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
        return np.stack([x * cos + z * sin, y, z * cos - x * sin], axis=-1)


@dataclass
class Mesh:
    """Flat faces in convex groups; faces that look away from the camera are skipped.

    Attributes:
        groups: convex pieces; drawn by layer, and within a layer the farther piece first.
    """

    groups: list["Group"] = field(default_factory=list)

    def group(self, inside: Point, layer: int = 0) -> "Group":
        """Adds an empty convex piece around the point `inside`."""
        self.groups.append(Group(np.array(inside), layer))
        return self.groups[-1]

    @cached_property
    def packed(self) -> "PackedFaces":
        """The finished faces as arrays; no face may be added afterwards."""
        faces = [face for group in self.groups for face in group.faces]
        ends = np.cumsum([len(face) for face in faces])
        return PackedFaces(
            vertices=np.concatenate(faces),
            starts=np.concatenate([[0], ends[:-1]]),
            ends=ends,
            centres=np.array([face.mean(axis=0) for face in faces]),
            normals=np.array([normal for group in self.groups for normal in group.normals]),
            colours=np.array([colour for group in self.groups for colour in group.colours]),
            group=np.repeat(np.arange(len(self.groups)), [len(group.faces) for group in self.groups]),
        )


@dataclass(frozen=True)
class PackedFaces:
    """Faces of a mesh; face i has `vertices[starts[i]:ends[i]]` and belongs to `groups[group[i]]`."""

    vertices: Array
    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    centres: Array
    normals: Array
    colours: Array
    group: NDArray[np.intp]


@dataclass
class Group:
    """A convex piece of a mesh: `faces`, (K, 3) polygons each, with `colours` and with `normals` pointing out."""

    inside: Array
    layer: int
    faces: list[Array] = field(default_factory=list)
    colours: list[Colour] = field(default_factory=list)
    normals: list[Array] = field(default_factory=list)

    def face(self, points: Sequence[Point], colour: Colour) -> None:
        """Adds one flat polygon."""
        vertices = np.array(points, float)
        following = np.roll(vertices, -1, axis=0)
        normal = np.cross(vertices - vertices[0], following - vertices[0]).sum(axis=0)
        normal /= np.linalg.norm(normal) + 1e-12
        if normal @ (vertices.mean(axis=0) - self.inside) < 0:
            normal = -normal
        self.faces.append(vertices)
        self.colours.append(colour)
        self.normals.append(normal)

    def crossways(self, x: Span, y: Span, z: Span, colour: Colour, top: float = 1.0) -> None:
        """Adds a panel that faces ahead, back or up: from y[0] at z[0] to y[1] at z[1], `top` times as wide there."""
        (x0, x1), (y0, y1), (z0, z1) = x, y, z
        self.face([(x0, y0, z0), (x1, y0, z0), (x1 * top, y1, z1), (x0 * top, y1, z1)], colour)

    def sideways(self, x: float, y: Span, z: Span, colour: Colour) -> None:
        """Adds an upright panel that faces to the side at `x`."""
        self.face([(x, y[0], z[0]), (x, y[1], z[0]), (x, y[1], z[1]), (x, y[0], z[1])], colour)

    def sweep(
        self, half: float, profile: Sequence[tuple[float, float]], colours: Sequence[Colour], side: Colour
    ) -> None:
        """Adds a body of width 2 * `half` with the given side view, (z, y) points from rear to front.

        Args:
            half: half of the width in metres.
            profile: outline seen from the side, without the underside.
            colours: of the panel after each point but the last.
            side: colour of both sides.
        """
        for (start, end), colour in zip(pairwise(profile), colours, strict=True):
            self.crossways((-half, half), (start[1], end[1]), (start[0], end[0]), colour)
        for x in (-half, half):
            self.face([(x, y, z) for z, y in profile], side)

    def box(self, x: Span, y: Span, z: Span, colour: Colour) -> None:
        """Adds the five faces of a box that can be seen from above the ground."""
        for end in z:
            self.crossways(x, y, (end, end), colour)
        for end in x:
            self.sideways(end, y, z, colour)
        self.crossways(x, (y[1], y[1]), z, colour)


class Capsule(NamedTuple):
    """A round limb from `start` to `end` (model frame) with a radius in metres at each end."""

    start: Point
    end: Point
    start_radius: float
    end_radius: float
    colour: Colour


Figure = Mesh | list[Capsule]
"""Anything that can be drawn."""


@dataclass
class Polygons:
    """Coloured polygons in drawing order: `points` (K, 2) float pixels each, `colours` (N, 3) uint8 RGB."""

    points: list[Array]
    colours: np.ndarray


def figure_polygons(figure: Figure, pose: Pose, camera: Camera, light: Light, lit: float) -> Polygons:
    """Projects and shades a figure; `lit` is 1 in the sun and 0 in the shade."""
    if isinstance(figure, Mesh):
        return _mesh_polygons(figure, pose, camera, light, lit)
    return _capsule_polygons(figure, pose, camera, light, lit)


def figure_shadow(figure: Figure, pose: Pose, camera: Camera, light: Light) -> list[Array]:
    """Convex outlines in pixels, (K, 2), that together are the sun's shadow of a figure on the ground."""
    if isinstance(figure, Mesh):
        return _mesh_shadow(figure, pose, camera, light)
    return _capsule_shadow(figure, pose, camera, light)


def _mesh_polygons(mesh: Mesh, pose: Pose, camera: Camera, light: Light, lit: float) -> Polygons:
    """Projects and shades the visible faces of a mesh."""
    faces = mesh.packed
    normals = pose.turn(faces.normals)
    towards_eye = camera.origin - pose.to_world(faces.centres)
    facing = np.flatnonzero((normals * towards_eye).sum(axis=1) > 0)
    normals, towards_eye = normals[facing], towards_eye[facing]
    distance = np.sqrt((towards_eye**2).sum(axis=1))
    shaded = light.shade(faces.colours[facing], normals, lit)
    # Lacquer and glass mirror the sky at flat angles.
    flat = (1.0 - (normals * towards_eye).sum(axis=1) / distance) ** 3
    shaded += (flat * 0.35 * np.clip(normals[:, 1] + 0.4, 0, 1))[:, None] * light.horizon
    colours = to_bytes(light.through_air(shaded, distance[:, None]))
    rank = _drawing_rank(mesh, pose, camera)[faces.group[facing]]
    order = np.argsort(rank, kind="stable")
    in_camera = camera.to_camera(pose.to_world(faces.vertices))
    starts, ends = faces.starts[facing[order]].tolist(), faces.ends[facing[order]].tolist()
    if in_camera[:, 2].min() >= NEAR:
        pixels = camera.to_pixels(in_camera)
        return Polygons([pixels[start:end] for start, end in zip(starts, ends, strict=True)], colours[order])
    clipped = [_clip_near(in_camera[start:end]) for start, end in zip(starts, ends, strict=True)]
    kept = [index for index, face in enumerate(clipped) if len(face) >= 3]
    return Polygons([camera.to_pixels(clipped[index]) for index in kept], colours[order][kept])


def _drawing_rank(mesh: Mesh, pose: Pose, camera: Camera) -> NDArray[np.intp]:
    """Position of each group in drawing order."""
    middles = pose.to_world(np.array([group.inside for group in mesh.groups])) - camera.origin
    distance = (middles**2).sum(axis=1)
    order = np.lexsort((-distance, [group.layer for group in mesh.groups]))
    return np.argsort(order)


def _clip_near(face: Array) -> Array:
    """The part of a camera-frame polygon (K, 3) beyond the near plane."""
    ahead = face[:, 2] >= NEAR
    if ahead.all():
        return face
    kept = []
    for point, following, inside, inside_next in zip(
        face, np.roll(face, -1, axis=0), ahead, np.roll(ahead, -1), strict=True
    ):
        if inside:
            kept.append(point)
        if inside != inside_next:
            kept.append(point + (following - point) * ((NEAR - point[2]) / (following[2] - point[2])))
    return np.array(kept).reshape(-1, 3)


def _capsule_polygons(capsules: Sequence[Capsule], pose: Pose, camera: Camera, light: Light, lit: float) -> Polygons:
    """Projects and shades capsules, far ones first; each gets a darker rim and a lighter side to look round."""
    ends = pose.to_world(np.array([(c.start, c.end) for c in capsules]))
    radii = np.array([(c.start_radius, c.end_radius) for c in capsules])
    base = np.array([c.colour for c in capsules])
    in_camera = camera.to_camera(ends)
    if in_camera[..., 2].min() < NEAR:
        return Polygons([], np.zeros((0, 3), np.uint8))
    pixels = camera.to_pixels(in_camera)
    radii = radii * camera.focal / in_camera[..., 2]
    distance = np.linalg.norm(in_camera, axis=-1).mean(axis=1)
    towards_eye = camera.origin - ends.mean(axis=1)
    towards_eye /= np.linalg.norm(towards_eye, axis=1, keepdims=True)
    bright = (
        light.sun + np.array([0.0, 0.8, 0.0]) if lit > 0.3 and light.sun_colour.any() else np.array([0.0, 1.0, 0.0])
    )
    bright = bright / np.linalg.norm(bright)
    lit_normals = bright * 0.7 + towards_eye * 0.7
    lit_normals /= np.linalg.norm(lit_normals, axis=1, keepdims=True)
    front = light.shade(base, lit_normals, lit)
    rim = light.shade(base * 0.74, towards_eye, lit * 0.5)
    colours = to_bytes(light.through_air(np.stack([rim, front], axis=1), distance[:, None, None]))
    order = np.argsort(-distance, kind="stable")
    outer = _outline(pixels[order], radii[order])
    if radii.max() < _FLAT_RADIUS:
        return Polygons(list(outer), to_bytes(light.through_air(front * 0.93, distance[:, None]))[order])
    across = camera.rotation[:2] @ bright
    inner = _outline((pixels + across * radii[..., None] * 0.28)[order], radii[order] * 0.70)
    points = np.stack([outer, inner], axis=1).reshape(-1, *outer.shape[1:])
    return Polygons(list(points), colours[order].reshape(-1, 3))


def _outline(pixels: Array, radii: Array) -> Array:
    """Convex outlines (N, 12, 2) of capsules with ends `pixels` (N, 2, 2) and `radii` (N, 2) in pixels."""
    along = pixels[:, 1] - pixels[:, 0]
    length = np.linalg.norm(along, axis=1)
    angle = np.where(length > 1e-6, np.arctan2(along[:, 1], along[:, 0]), 0.0)
    cos, sin = np.cos(angle), np.sin(angle)
    # Half of the circle's points, turned a little so that they are symmetric, belong to each end.
    x = _CIRCLE[:, 0] * np.cos(np.pi / 12) - _CIRCLE[:, 1] * np.sin(np.pi / 12)
    y = _CIRCLE[:, 0] * np.sin(np.pi / 12) + _CIRCLE[:, 1] * np.cos(np.pi / 12)
    at_end = x > 0
    radius = np.where(at_end, radii[:, 1:], radii[:, :1])
    centre = np.where(at_end[None, :, None], pixels[:, 1:], pixels[:, :1])
    turned = np.stack([cos[:, None] * x - sin[:, None] * y, sin[:, None] * x + cos[:, None] * y], axis=-1)
    outlines: Array = centre + turned * radius[..., None]
    return outlines


def _mesh_shadow(mesh: Mesh, pose: Pose, camera: Camera, light: Light) -> list[Array]:
    """Convex outlines in pixels, (K, 2), of the sun's shadow of a mesh on the ground, one per group."""
    faces = mesh.packed
    ground = camera.to_camera(_on_ground(pose.to_world(faces.vertices), light))
    if ground[:, 2].min() < NEAR:
        return []
    pixels = camera.to_pixels(ground).astype(np.float32)
    counts = np.bincount(faces.group, weights=faces.ends - faces.starts).astype(int)
    return [cv2.convexHull(piece)[:, 0] for piece in np.split(pixels, np.cumsum(counts)[:-1])]


def _capsule_shadow(capsules: Sequence[Capsule], pose: Pose, camera: Camera, light: Light) -> list[Array]:
    """Quadrilaterals in pixels, (4, 2), of the sun's shadows of capsules on the ground."""
    ends = _on_ground(pose.to_world(np.array([(c.start, c.end) for c in capsules])), light)
    radii = np.array([(c.start_radius, c.end_radius) for c in capsules])[..., None]
    along = ends[:, 1] - ends[:, 0]
    side = np.stack([along[:, 2], np.zeros(len(along)), -along[:, 0]], axis=1)
    length = np.linalg.norm(side, axis=1, keepdims=True)
    side = np.where(length > 1e-6, side / np.maximum(length, 1e-6), np.array([1.0, 0.0, 0.0]))[:, None]
    left, right = ends - side * radii, ends + side * radii
    quads = camera.to_camera(np.stack([left[:, 0], right[:, 0], right[:, 1], left[:, 1]], axis=1))
    return list(camera.to_pixels(quads)) if quads[..., 2].min() >= NEAR else []


def footprint(width: float, length: float, pose: Pose, camera: Camera) -> list[Array]:
    """The outline in pixels, (8, 2), of a figure's place on the ground, where the sky's light hardly reaches."""
    corner = np.array([(1, 0.8), (0.8, 1), (-0.8, 1), (-1, 0.8), (-1, -0.8), (-0.8, -1), (0.8, -1), (1, -0.8)])
    ground = np.stack([corner[:, 0] * width / 2, np.zeros(8), corner[:, 1] * length / 2], axis=1)
    in_camera = camera.to_camera(pose.to_world(ground))
    return [camera.to_pixels(in_camera)] if in_camera[:, 2].min() >= NEAR else []


def _on_ground(points: Array, light: Light) -> Array:
    """Where the shadow of each point (..., 3) falls."""
    ground: Array = points - light.sun * (points[..., 1:2] / light.sun[1])
    return ground
