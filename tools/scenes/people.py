"""People and cyclists: jointed figures of capsules that walk and pedal."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tools.scenes.light import Colour
from tools.scenes.shapes import Capsule, Point

_SKIN = [(0.86, 0.68, 0.56), (0.74, 0.54, 0.42), (0.55, 0.38, 0.28), (0.36, 0.24, 0.18)]
_HAIR = [(0.10, 0.08, 0.07), (0.26, 0.17, 0.11), (0.52, 0.40, 0.24), (0.50, 0.49, 0.48), (0.40, 0.20, 0.12)]
_TOPS = [
    (0.72, 0.14, 0.14), (0.14, 0.24, 0.50), (0.84, 0.84, 0.82), (0.12, 0.12, 0.13),
    (0.20, 0.42, 0.30), (0.86, 0.66, 0.16), (0.46, 0.46, 0.48), (0.82, 0.42, 0.18),
    (0.50, 0.70, 0.84), (0.56, 0.26, 0.48), (0.62, 0.54, 0.40), (0.30, 0.22, 0.18),
]  # fmt: skip
_BOTTOMS = [
    (0.16, 0.20, 0.32),
    (0.10, 0.10, 0.11),
    (0.30, 0.30, 0.32),
    (0.48, 0.42, 0.32),
    (0.22, 0.30, 0.44),
    (0.34, 0.24, 0.18),
]
_FRAMES = [
    (0.70, 0.12, 0.10),
    (0.12, 0.12, 0.13),
    (0.16, 0.34, 0.58),
    (0.80, 0.80, 0.78),
    (0.20, 0.50, 0.32),
    (0.86, 0.58, 0.14),
]
_SHOE: Colour = (0.12, 0.11, 0.11)
_TYRE: Colour = (0.08, 0.08, 0.08)


@dataclass(frozen=True)
class Looks:
    """Build and clothes of one person; `height` in metres, `build` scales the girth."""

    height: float
    build: float
    skin: Colour
    hair: Colour
    top: Colour
    bottom: Colour
    long_hair: bool
    skirt: bool
    backpack: Colour | None
    bag: Colour | None
    helmet: Colour | None
    frame: Colour


def random_looks(rng: np.random.Generator) -> Looks:
    """A random person; one in ten is a child."""

    def pick(colours: list[Colour]) -> Colour:
        red, green, blue = np.array(colours[rng.integers(len(colours))]) * rng.uniform(0.85, 1.12)
        return (float(red), float(green), float(blue))

    child = rng.random() < 0.1
    return Looks(
        height=float(rng.uniform(1.1, 1.4) if child else rng.normal(1.72, 0.08)),
        build=float(rng.uniform(0.9, 1.25)),
        skin=pick(_SKIN),
        hair=pick(_HAIR),
        top=pick(_TOPS),
        bottom=pick(_BOTTOMS),
        long_hair=bool(rng.random() < 0.4),
        skirt=bool(rng.random() < 0.18),
        backpack=pick(_TOPS) if rng.random() < 0.25 else None,
        bag=pick(_BOTTOMS) if rng.random() < 0.2 else None,
        helmet=pick(_FRAMES) if rng.random() < 0.6 else None,
        frame=pick(_FRAMES),
    )


def _from(start: Point, length: float, angle: float) -> Point:
    """The end of a limb of `length` that hangs from `start`, swung forward by `angle` radians."""
    return (start[0], start[1] - length * float(np.cos(angle)), start[2] + length * float(np.sin(angle)))


def pedestrian(looks: Looks, walked: float, walking: bool) -> list[Capsule]:
    """A person on foot.

    Args:
        looks: who it is.
        walked: metres walked so far; sets the phase of the step.
        walking: False for someone who stands.
    """
    size, girth = looks.height / 1.75, looks.build * looks.height / 1.75
    phase = walked / (1.42 * size) * 2 * np.pi
    swing = 0.50 if walking else 0.03
    bob = 0.025 * size * float(np.cos(2 * phase)) if walking else 0.0
    hip_y, shoulder_y = 0.90 * size + bob, 1.42 * size + bob
    lean = 0.04 if walking else 0.0
    body: list[Capsule] = []
    for side, shift in ((-1, 0.0), (1, np.pi)):
        thigh = swing * float(np.sin(phase + shift))
        knee_bend = (0.15 + 0.75 * max(0.0, float(np.cos(phase + shift)))) * swing * 1.5 if walking else 0.03
        hip = (side * 0.085 * girth, hip_y, 0.0)
        knee = _from(hip, 0.43 * size, thigh)
        ankle = _from(knee, 0.42 * size, thigh - knee_bend)
        ankle = (ankle[0], max(ankle[1], 0.05), ankle[2])
        leg = looks.skin if looks.skirt else looks.bottom
        body.append(Capsule(hip, knee, 0.088 * girth, 0.062 * girth, looks.bottom))
        body.append(Capsule(knee, ankle, 0.060 * girth, 0.045 * girth, leg))
        body.append(
            Capsule(
                (ankle[0], ankle[1], ankle[2]),
                (ankle[0], max(ankle[1] - 0.02, 0.03), ankle[2] + 0.15 * size),
                0.045 * size,
                0.036 * size,
                _SHOE,
            )
        )
        shoulder = (side * 0.185 * girth, shoulder_y - 0.02, lean)
        arm = -thigh * 0.8 if walking else 0.05
        elbow = _from((shoulder[0] + side * 0.03, shoulder[1], shoulder[2]), 0.29 * size, arm)
        hand = _from(elbow, 0.25 * size, arm + 0.35)
        body.append(Capsule(shoulder, elbow, 0.054 * girth, 0.044 * girth, looks.top))
        body.append(Capsule(elbow, hand, 0.042 * girth, 0.034 * girth, looks.top if not looks.skirt else looks.skin))
        body.append(Capsule(hand, hand, 0.042 * size, 0.042 * size, looks.skin))
        if side == 1 and looks.bag is not None:
            body.append(
                Capsule(
                    (hand[0], hand[1] - 0.16, hand[2] - 0.08),
                    (hand[0], hand[1] - 0.16, hand[2] + 0.08),
                    0.13 * size,
                    0.13 * size,
                    looks.bag,
                )
            )
    if looks.skirt:
        body.append(Capsule((0.0, hip_y, 0.0), (0.0, 0.58 * size, 0.0), 0.16 * girth, 0.20 * girth, looks.bottom))
    body += _torso(looks, (0.0, hip_y, 0.0), (0.0, shoulder_y, lean), size, girth)
    return body


def _torso(looks: Looks, hip: Point, neck: Point, size: float, girth: float) -> list[Capsule]:
    """Trunk, head, hair or helmet and backpack on the line from `hip` to `neck`."""
    up = np.subtract(neck, hip) / np.linalg.norm(np.subtract(neck, hip))
    back = np.array([0.0, up[2], -up[1]])

    def at(base: Point, along: float, behind: float = 0.0, side: float = 0.0) -> Point:
        x, y, z = np.array(base) + up * along + back * behind + np.array([side, 0.0, 0.0])
        return (float(x), float(y), float(z))

    head = (neck[0], neck[1] + 0.20 * size, neck[2] + 0.02)
    parts = [
        Capsule(at(hip, 0.02), at(neck, -0.12 * size), 0.135 * girth, 0.150 * girth, looks.top),
        Capsule(
            at(neck, -0.09 * size, side=-0.11 * girth),
            at(neck, -0.09 * size, side=0.11 * girth),
            0.085 * girth,
            0.085 * girth,
            looks.top,
        ),
        Capsule(at(neck, -0.02), head, 0.055 * size, 0.07 * size, looks.skin),
        Capsule(head, (head[0], head[1] + 0.04 * size, head[2]), 0.095 * size, 0.098 * size, looks.skin),
        Capsule(
            (head[0], head[1] + 0.05 * size, head[2] - 0.035),
            (head[0], head[1] + 0.065 * size, head[2] - 0.01),
            0.098 * size,
            0.090 * size,
            looks.hair,
        ),
    ]
    parts.append(
        Capsule(
            (head[0], head[1] + 0.045 * size, head[2] - 0.055),
            (head[0], head[1], head[2] - 0.045),
            0.088 * size,
            0.084 * size,
            looks.hair,
        )
    )
    if looks.long_hair:
        parts.append(
            Capsule(
                (head[0], head[1] + 0.02, head[2] - 0.07),
                (head[0], head[1] - 0.20 * size, head[2] - 0.10),
                0.085 * size,
                0.06 * size,
                looks.hair,
            )
        )
    if looks.backpack is not None:
        parts.append(
            Capsule(
                at(hip, 0.18 * size, 0.19 * girth),
                at(neck, -0.12 * size, 0.18 * girth),
                0.14 * size,
                0.12 * size,
                looks.backpack,
            )
        )
    return parts


def cyclist(looks: Looks, ridden: float) -> list[Capsule]:
    """A person on a bicycle; `ridden` metres turn wheels and pedals."""
    size, girth = max(looks.height, 1.5) / 1.75, looks.build * max(looks.height, 1.5) / 1.75
    radius, crank = 0.34, ridden / 5.2 * 2 * np.pi
    rear, front = (0.0, radius, -0.52), (0.0, radius, 0.52)
    bottom, saddle, bar = (0.0, 0.30, -0.06), (0.0, 0.95, -0.24), (0.0, 1.00, 0.36)
    parts: list[Capsule] = []
    angles = np.linspace(0, 2 * np.pi, 11)
    for hub in (rear, front):
        rim = [
            (0.0, hub[1] + radius * 0.96 * float(np.sin(a)), hub[2] + radius * 0.96 * float(np.cos(a))) for a in angles
        ]
        parts += [Capsule(a, b, 0.022, 0.022, _TYRE) for a, b in pairwise(rim)]
    for start, end in (
        (rear, bottom),
        (bottom, saddle),
        (saddle, rear),
        (saddle, (0.0, 0.86, 0.32)),
        (bottom, (0.0, 0.78, 0.34)),
        (bar, front),
    ):
        parts.append(Capsule(start, end, 0.022, 0.022, looks.frame))
    parts.append(Capsule((-0.24, 1.02, 0.36), (0.24, 1.02, 0.36), 0.02, 0.02, _SHOE))
    hip, neck = (0.0, 1.00 * size, -0.20), (0.0, 1.45 * size, 0.12)
    for side, shift in ((-1, 0.0), (1, np.pi)):
        pedal = (
            side * 0.10,
            bottom[1] + 0.17 * float(np.sin(crank + shift)),
            bottom[2] + 0.17 * float(np.cos(crank + shift)),
        )
        start = (side * 0.09 * girth, hip[1] - 0.03, hip[2])
        knee = _knee(start, (pedal[0], pedal[1] + 0.06, pedal[2] - 0.03), 0.45 * size, 0.46 * size)
        parts.append(Capsule(start, knee, 0.088 * girth, 0.062 * girth, looks.bottom))
        parts.append(
            Capsule(
                knee,
                (pedal[0], pedal[1] + 0.06, pedal[2] - 0.03),
                0.060 * girth,
                0.045 * girth,
                looks.skin if looks.skirt else looks.bottom,
            )
        )
        parts.append(
            Capsule(
                (pedal[0], pedal[1] + 0.03, pedal[2] - 0.06),
                (pedal[0], pedal[1] + 0.03, pedal[2] + 0.10),
                0.042,
                0.036,
                _SHOE,
            )
        )
        shoulder, hand = (side * 0.18 * girth, neck[1] - 0.04, neck[2]), (side * 0.22, 1.06, 0.36)
        elbow = (side * 0.25, (shoulder[1] + hand[1]) / 2 - 0.06, (shoulder[2] + hand[2]) / 2 - 0.02)
        parts.append(Capsule(shoulder, elbow, 0.054 * girth, 0.044 * girth, looks.top))
        parts.append(Capsule(elbow, hand, 0.042 * girth, 0.036 * girth, looks.top))
    parts += _torso(looks, hip, neck, size, girth)
    if looks.helmet is not None:
        parts.append(
            Capsule(
                (0.0, neck[1] + 0.27 * size, neck[2] - 0.05),
                (0.0, neck[1] + 0.28 * size, neck[2] + 0.08),
                0.105 * size,
                0.095 * size,
                looks.helmet,
            )
        )
    return parts


def _knee(hip: Point, ankle: Point, thigh: float, shin: float) -> Point:
    """The knee, bent forward, between hip and ankle (two-bone inverse kinematics in the plane of the leg)."""
    down, ahead = ankle[1] - hip[1], ankle[2] - hip[2]
    reach = min(float(np.hypot(down, ahead)), (thigh + shin) * 0.999)
    inner = float(np.arccos(np.clip((thigh**2 + reach**2 - shin**2) / (2 * thigh * reach), -1, 1)))
    direction = float(np.arctan2(ahead, -down)) + inner
    return (hip[0], hip[1] - thigh * float(np.cos(direction)), hip[2] + thigh * float(np.sin(direction)))
