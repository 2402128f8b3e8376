"""Cars and trucks as low-polygon meshes."""

from dataclasses import dataclass

import numpy as np

from tools.scenes.light import Colour
from tools.scenes.shapes import Group, Mesh

_GLASS: Colour = (0.10, 0.13, 0.16)
_RUBBER: Colour = (0.06, 0.06, 0.065)
_DARK: Colour = (0.09, 0.09, 0.10)
_RIM: Colour = (0.55, 0.56, 0.58)
_LAMP: Colour = (0.95, 0.94, 0.86)
_TAIL: Colour = (0.62, 0.05, 0.05)
_PLATE: Colour = (0.85, 0.84, 0.76)

_TRUCK_WHEEL = 0.47
"""Radius in metres."""

_PAINTS = np.array(
    [
        (0.82, 0.82, 0.82), (0.10, 0.10, 0.11), (0.55, 0.57, 0.60), (0.30, 0.32, 0.34), (0.62, 0.08, 0.08),
        (0.10, 0.20, 0.46), (0.16, 0.34, 0.30), (0.70, 0.62, 0.46), (0.24, 0.40, 0.62), (0.82, 0.62, 0.10),
        (0.40, 0.14, 0.16), (0.46, 0.52, 0.40),
    ]
)  # fmt: skip
_PAINT_SHARES = np.array([20, 14, 16, 12, 8, 8, 4, 4, 5, 3, 3, 3]) / 100

_CARGO = np.array(
    [
        (0.86, 0.86, 0.84),
        (0.80, 0.72, 0.52),
        (0.30, 0.42, 0.62),
        (0.66, 0.22, 0.16),
        (0.28, 0.46, 0.36),
        (0.62, 0.63, 0.65),
    ]
)


_Span = tuple[float, float]


@dataclass(frozen=True)
class Vehicle:
    """A vehicle's mesh and its width and length in metres."""

    mesh: Mesh
    width: float
    length: float


def _darker(colour: Colour, factor: float) -> Colour:
    return (colour[0] * factor, colour[1] * factor, colour[2] * factor)


def _paint(rng: np.random.Generator) -> Colour:
    red, green, blue = _PAINTS[rng.choice(len(_PAINTS), p=_PAINT_SHARES)] * rng.uniform(0.85, 1.1)
    return (float(red), float(green), float(blue))


def _cargo_colour(rng: np.random.Generator) -> Colour:
    red, green, blue = _CARGO[rng.integers(len(_CARGO))] * rng.uniform(0.9, 1.08)
    return (float(red), float(green), float(blue))


def _wheel(group: Group, x: float, z: float, radius: float) -> None:
    """A wheel seen from the side, with its dark arch."""
    angles = np.linspace(0, 2 * np.pi, 14, endpoint=False)
    for size, out, colour in ((1.16, 1.0, _DARK), (1.0, 1.01, _RUBBER), (0.64, 1.02, _RIM), (0.18, 1.03, _DARK)):
        rise, ahead = radius * size * np.sin(angles), radius * size * np.cos(angles)
        rim = zip(rise.tolist(), ahead.tolist(), strict=True)
        group.face([(x * out, max(radius + y, 0.0), z + shift) for y, shift in rim], colour)


def _tyres(group: Group, half: float, axles: tuple[float, ...], radius: float, width: float) -> None:
    """What is seen of the wheels from ahead and behind."""
    for z in axles:
        for x in (-half, half):
            group.box((x - width, x + width), (0.0, radius * 1.2), (z - radius * 0.9, z + radius * 0.9), _RUBBER)


@dataclass(frozen=True)
class _CarPlan:
    """Measures of a car in metres; z of points along its length from the middle."""

    half: float
    rear: float
    front: float
    belt: float
    nose: float
    roof: float
    roof_span: _Span
    screens: _Span
    wheel: float
    axles: _Span
    paint: Colour


def _plan_car(rng: np.random.Generator) -> _CarPlan:
    paint = _paint(rng)
    body = str(rng.choice(["hatchback", "saloon", "estate"], p=[0.42, 0.30, 0.28]))
    length = float(rng.uniform(3.7, 4.2) if body == "hatchback" else rng.uniform(4.4, 4.9))
    width = float(rng.uniform(1.70, 1.88))
    height = float(rng.uniform(1.58, 1.75) if body == "estate" else rng.uniform(1.40, 1.52))
    belt = height * float(rng.uniform(0.60, 0.64))
    wheel = float(rng.uniform(0.30, 0.35))
    rear, front = -length / 2, length / 2
    roof_rear, rear_screen = {"hatchback": (0.12, 0.03), "saloon": (0.27, 0.15), "estate": (0.08, 0.02)}[body]
    return _CarPlan(
        half=width / 2,
        rear=rear,
        front=front,
        belt=belt,
        nose=belt * 0.80,
        roof=height,
        roof_span=(rear + length * roof_rear, front - length * 0.44),
        screens=(rear + length * rear_screen, front - length * 0.27),
        wheel=wheel,
        axles=(rear + length * 0.19, front - length * 0.185),
        paint=paint,
    )


def car(rng: np.random.Generator) -> Vehicle:
    """A random car: hatchback, saloon or estate."""
    plan = _plan_car(rng)
    mesh = Mesh()
    _tyres(mesh.group((0, plan.wheel, 0)), plan.half - 0.14, plan.axles, plan.wheel, 0.11)
    shell = mesh.group((0, plan.belt * 0.55, 0), layer=1)
    _car_shell(shell, plan)
    _car_ends(shell, plan)
    _car_top(mesh.group((0, plan.belt, sum(plan.roof_span) / 2), layer=2), plan)
    screen = plan.screens[1]
    for x in (-plan.half - 0.07, plan.half + 0.07):
        mirror = mesh.group((x, plan.belt, screen - 0.3), layer=2)
        y = (plan.belt - 0.02, plan.belt + 0.13)
        mirror.box((x - 0.08, x + 0.08), y, (screen - 0.36, screen - 0.24), _darker(plan.paint, 0.8))
    return Vehicle(mesh, plan.half * 2, plan.front - plan.rear)


def _car_shell(shell: Group, plan: _CarPlan) -> None:
    """The body below the windows, with sill, trim, door gaps and wheels."""
    half, rear, front, belt, nose, paint = plan.half, plan.rear, plan.front, plan.belt, plan.nose, plan.paint
    rear_screen, windscreen = plan.screens
    profile = [(rear + 0.06, 0.24), (rear, 0.42), (rear + 0.04, belt * 0.92), (rear_screen, belt), (windscreen, belt)]
    profile += [(front - 0.22, nose), (front, nose * 0.72), (front - 0.05, 0.22)]
    bumper = _darker(paint, 0.45)
    shell.sweep(half, profile, [bumper, paint, paint, paint, paint, paint, bumper], paint)
    roof_middle = sum(plan.roof_span) / 2
    for x in (-half * 1.001, half * 1.001):
        shell.sideways(x, (0.22, 0.34), (rear + 0.1, front - 0.1), _darker(paint, 0.35))
        shell.sideways(x, (belt * 0.93, belt * 0.97), (rear + 0.1, windscreen), _darker(paint, 1.2))
        for z in (plan.roof_span[1] - 0.1, roof_middle - 0.08):
            shell.sideways(x, (0.36, belt), (z, z - 0.025), _darker(paint, 0.5))
        for z in plan.axles:
            _wheel(shell, x, z, plan.wheel)


def _car_ends(shell: Group, plan: _CarPlan) -> None:
    """Lamps, grille and number plates."""
    half, belt, nose = plan.half, plan.belt, plan.nose
    ahead, behind = plan.front + 0.005, plan.rear - 0.005
    for side in (-1, 1):
        lamp, tail = (side * half * 0.56, side * half * 0.96), (side * half * 0.66, side * half * 0.96)
        shell.crossways(lamp, (nose * 0.72, nose * 0.94), (ahead, plan.front - 0.18), _LAMP)
        shell.crossways(tail, (belt * 0.65, belt * 0.88), (behind, behind + 0.03), _TAIL)
    shell.crossways((-half * 0.5, half * 0.5), (nose * 0.56, nose * 0.72), (ahead, ahead), _DARK, top=0.92)
    shell.crossways((-0.26, 0.26), (0.36, 0.47), (ahead, ahead), _PLATE)
    shell.crossways((-0.26, 0.26), (0.52, 0.63), (behind, behind), _PLATE)


def _car_top(top: Group, plan: _CarPlan) -> None:
    """Roof, pillars and windows."""
    half, belt, roof, paint = plan.half, plan.belt, plan.roof, plan.paint
    (rear_screen, windscreen), (roof_rear, roof_front) = plan.screens, plan.roof_span
    middle = (roof_front + roof_rear) / 2 - 0.08
    panes = (
        (windscreen - 0.26, roof_front - 0.06, middle + 0.05, middle + 0.05),
        (middle - 0.05, middle - 0.05, rear_screen + 0.22, roof_rear + 0.16),
    )
    for side in (-1, 1):

        def at(part: float, low: float, high: float, out: float = 1.0, side: int = side) -> tuple[float, float, float]:
            """A point of the side, `part` of the way from the belt to the roof."""
            x = side * half * (0.97 + (0.80 - 0.97) * part) * out
            return (x, belt + (roof - belt) * part, low + (high - low) * part)

        corners = [at(0, rear_screen, 0), at(1, 0, roof_rear), at(1, 0, roof_front), at(0, windscreen, 0)]
        top.face(corners, _darker(paint, 0.92))
        for first, first_top, last, last_top in panes:
            ends = [at(part, first, first_top, 1.01) for part in (0.06, 0.86)]
            top.face(ends + [at(part, last, last_top, 1.01) for part in (0.86, 0.06)], _GLASS)
    inset = half * 0.80
    top.crossways((-inset, inset), (roof, roof), (roof_rear, roof_front), paint)
    pillars = (-half * 0.92, half * 0.92)
    slope = inset / pillars[1]
    top.crossways(pillars, (belt, roof), (windscreen, roof_front), _darker(paint, 0.8), slope)
    glass = (-half * 0.86, half * 0.86)
    top.crossways(glass, (belt + 0.04, roof - 0.05), (windscreen - 0.04, roof_front + 0.05), _GLASS, 0.86)
    top.crossways(pillars, (belt, roof), (rear_screen, roof_rear), _darker(paint, 0.8), slope)
    glass = (-half * 0.80, half * 0.80)
    top.crossways(glass, (belt + 0.06, roof - 0.07), (rear_screen + 0.02, roof_rear - 0.02), _GLASS, 0.88)


def truck(rng: np.random.Generator) -> Vehicle:
    """A random lorry: a cab before a box or an open load bed."""
    paint, cargo = _paint(rng), _cargo_colour(rng)
    length, width = float(rng.uniform(6.2, 8.4)), float(rng.uniform(2.20, 2.45))
    tipper = rng.random() < 0.25
    cab_height = float(rng.uniform(2.4, 2.8))
    height = float(rng.uniform(1.9, 2.2)) if tipper else float(rng.uniform(3.0, 3.5))
    rear, front, half = -length / 2, length / 2, width / 2
    cab_rear = front - float(rng.uniform(1.7, 2.0))
    bed = (rear, cab_rear - 0.15)
    axles: tuple[float, ...] = (rear + length * 0.16, front - 0.95)
    if length >= 7.2:
        axles = (rear + length * 0.13, rear + length * 0.13 + 1.1, front - 0.95)
    mesh = Mesh()
    chassis = mesh.group((0, 0.6, 0))
    chassis.box((-half * 0.9, half * 0.9), (0.45, 0.95), (rear + 0.1, cab_rear + 0.2), _DARK)
    _tyres(chassis, half * 0.86, axles, _TRUCK_WHEEL, 0.16)
    load = mesh.group((0, 1.8, sum(bed) / 2), layer=1)
    load.box((-half, half), (0.95, height), bed, cargo)
    if tipper:
        _tipper(load, cargo, half, bed, height)
    else:
        _livery(load, rng, cargo, half, bed, height)
    for side in (-1, 1):
        load.crossways((side * half * 0.70, side * half * 0.95), (0.98, 1.12), (rear - 0.01, rear - 0.01), _TAIL)
    _cab(mesh.group((0, 1.4, (cab_rear + front) / 2), layer=1), paint, half * 0.97, (cab_rear, front), cab_height)
    wheels = mesh.group((0, _TRUCK_WHEEL, 0), layer=2)
    for z in axles:
        for x in (-half, half):
            _wheel(wheels, x, z, _TRUCK_WHEEL)
    return Vehicle(mesh, width, length)


def _tipper(load: Group, cargo: Colour, half: float, bed: _Span, height: float) -> None:
    """Earth in an open bed, and ribs on its sides."""
    load.crossways((-half * 0.93, half * 0.93), (height, height), (bed[0] + 0.1, bed[1] - 0.1), (0.36, 0.30, 0.23))
    for z in np.arange(bed[0] + 0.6, bed[1] - 0.25, 0.9).tolist():
        for x in (-half * 1.001, half * 1.001):
            load.sideways(x, (0.95, height), (z, z + 0.12), _darker(cargo, 0.72))


def _livery(load: Group, rng: np.random.Generator, cargo: Colour, half: float, bed: _Span, height: float) -> None:
    """Rear doors, roof edge and a stripe or a sign on the sides of a box body."""
    mark = _darker(_cargo_colour(rng), 0.8)
    low, high = sorted(rng.uniform(1.3, height - 0.3, 2).tolist())
    rear, front = bed
    sign = bed if rng.random() < 0.5 else (rear + (front - rear) * 0.2, rear + (front - rear) * 0.75)
    for x in (-half * 1.001, half * 1.001):
        load.sideways(x, (low, high), sign, mark)
        load.sideways(x, (height - 0.12, height), bed, _darker(cargo, 0.7))
    behind = (rear - 0.005, rear - 0.005)
    for x, width, shade in ((0.0, 0.03, 0.4), (-half * 0.5, 0.02, 0.6), (half * 0.5, 0.02, 0.6)):
        load.crossways((x - width, x + width), (1.0, height - 0.1), behind, _darker(cargo, shade))


def _cab(cab: Group, paint: Colour, half: float, span: _Span, height: float) -> None:
    """A truck's cab with windscreen, grille and lamps."""
    rear, front = span
    sill, belt, brow = 0.5, height * 0.56, front - 0.48
    profile = [(rear, sill), (rear, height), (brow, height), (front - 0.05, belt), (front, sill + 0.25), (front, sill)]
    cab.sweep(half, profile, [paint, paint, paint, paint, _darker(paint, 0.5)], paint)
    for x in (-half * 1.001, half * 1.001):
        low, high = (belt, front - 0.25), (height - 0.25, brow - 0.02)
        window = [(belt, rear + 0.45), (height - 0.25, rear + 0.45), high, low]
        cab.face([(x, y, z) for y, z in window], _GLASS)
        cab.sideways(x, (sill, sill + 0.2), (rear, front), _darker(paint, 0.4))
    slope = (brow - front + 0.05) / (height - belt)
    bottom, top = belt + 0.08, height - 0.18
    screen = (front - 0.04 + slope * 0.08, front - 0.04 + slope * (top - belt))
    cab.crossways((-half * 0.9, half * 0.9), (bottom, top), screen, _GLASS, 0.98)
    ahead = front + 0.005
    cab.crossways((-half * 0.6, half * 0.6), (sill + 0.32, belt - 0.15), (ahead, front - 0.03), _DARK)
    for side in (-1, 1):
        cab.crossways((side * half * 0.65, side * half * 0.95), (sill + 0.05, sill + 0.22), (ahead, ahead), _LAMP)
    cab.crossways((-0.26, 0.26), (sill + 0.05, sill + 0.16), (ahead, ahead), _PLATE)
