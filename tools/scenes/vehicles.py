"""Cars and trucks as low-polygon meshes."""

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

_PAINTS = np.array(
    [
        (0.82, 0.82, 0.82), (0.10, 0.10, 0.11), (0.55, 0.57, 0.60), (0.30, 0.32, 0.34), (0.62, 0.08, 0.08),
        (0.10, 0.20, 0.46), (0.16, 0.34, 0.30), (0.70, 0.62, 0.46), (0.24, 0.40, 0.62), (0.82, 0.62, 0.10),
        (0.40, 0.14, 0.16), (0.46, 0.52, 0.40),
    ]
)  # fmt: skip
_PAINT_SHARES = np.array([20, 14, 16, 12, 8, 8, 4, 4, 5, 3, 3, 3]) / 100

_CARGO = np.array([(0.86, 0.86, 0.84), (0.80, 0.72, 0.52), (0.30, 0.42, 0.62), (0.66, 0.22, 0.16), (0.28, 0.46, 0.36), (0.62, 0.63, 0.65)])


def _darker(colour: Colour, factor: float) -> Colour:
    return (colour[0] * factor, colour[1] * factor, colour[2] * factor)


def _paint(rng: np.random.Generator) -> Colour:
    red, green, blue = _PAINTS[rng.choice(len(_PAINTS), p=_PAINT_SHARES)] * rng.uniform(0.85, 1.1)
    return (float(red), float(green), float(blue))


def _wheel(group: Group, x: float, z: float, radius: float) -> None:
    """A wheel seen from the side, with its dark arch."""
    angles = np.linspace(0, 2 * np.pi, 14, endpoint=False)

    def disc(size: float, out: float, colour: Colour) -> None:
        group.face([(x * out, max(radius + size * float(np.sin(a)), 0.0), z + size * float(np.cos(a))) for a in angles], colour)

    disc(radius * 1.16, 1.0, _DARK)
    disc(radius, 1.01, _RUBBER)
    disc(radius * 0.64, 1.02, _RIM)
    disc(radius * 0.18, 1.03, _DARK)


def car(rng: np.random.Generator) -> tuple[Mesh, float, float]:
    """A random car: hatchback, saloon or estate.

    Returns:
        The mesh, its width and its length in metres.
    """
    paint = _paint(rng)
    body = str(rng.choice(["hatchback", "saloon", "estate"], p=[0.42, 0.30, 0.28]))
    length = float(rng.uniform(3.7, 4.2) if body == "hatchback" else rng.uniform(4.4, 4.9))
    width = float(rng.uniform(1.70, 1.88))
    height = float(rng.uniform(1.58, 1.75) if body == "estate" else rng.uniform(1.40, 1.52))
    belt = height * float(rng.uniform(0.60, 0.64))
    rear, front, half = -length / 2, length / 2, width / 2
    wheel = float(rng.uniform(0.30, 0.35))
    axle_rear, axle_front = rear + length * 0.19, front - length * 0.185
    windscreen = front - length * 0.27
    roof_front = front - length * 0.44
    roof_rear = rear + length * {"hatchback": 0.12, "saloon": 0.27, "estate": 0.08}[body]
    rear_screen = rear + length * {"hatchback": 0.03, "saloon": 0.15, "estate": 0.02}[body]
    nose = belt * 0.80
    mesh = Mesh()
    tyres = mesh.group((0, wheel, 0))
    for z in (axle_rear, axle_front):
        for x in (-half + 0.14, half - 0.14):
            tyres.box((x - 0.11, 0.0, z - wheel * 0.9), (x + 0.11, wheel * 1.2, z + wheel * 0.9), _RUBBER)
    shell = mesh.group((0, belt * 0.55, 0), layer=1)
    # Side profile of the body below the windows, from the rear bumper over the bonnet to the front bumper.
    profile = [(rear + 0.06, 0.24), (rear, 0.42), (rear + 0.04, belt * 0.92), (rear_screen, belt), (windscreen, belt), (front - 0.22, nose), (front, nose * 0.72), (front - 0.05, 0.22)]
    for index, ((z0, y0), (z1, y1)) in enumerate(zip(profile, profile[1:], strict=False)):
        colour = _darker(paint, 0.45) if index in (0, 6) else paint
        shell.face([(-half, y0, z0), (half, y0, z0), (half, y1, z1), (-half, y1, z1)], colour)
    for x in (-half, half):
        shell.face([(x, y, z) for z, y in profile], paint)
        shell.face([(x, 0.22, rear + 0.1), (x, 0.34, rear + 0.1), (x, 0.34, front - 0.1), (x, 0.22, front - 0.1)], _darker(paint, 0.35))
        shell.face([(x * 1.001, belt * 0.93, rear + 0.1), (x * 1.001, belt * 0.97, rear + 0.1), (x * 1.001, belt * 0.97, windscreen), (x * 1.001, belt * 0.93, windscreen)], _darker(paint, 1.2))
        for z in (roof_front - 0.1, (roof_front + roof_rear) / 2 - 0.08):
            shell.face([(x * 1.001, 0.36, z), (x * 1.001, belt, z), (x * 1.001, belt, z - 0.025), (x * 1.001, 0.36, z - 0.025)], _darker(paint, 0.5))
        for z in (axle_rear, axle_front):
            _wheel(shell, x, z, wheel)
    _car_ends(shell, half, rear, front, belt, nose)
    top = mesh.group((0, belt, (roof_front + roof_rear) / 2), layer=2)
    inset = half * 0.80
    glass_front, glass_rear = windscreen - 0.04, rear_screen + 0.02
    for x, roof_x in ((-half * 0.97, -inset), (half * 0.97, inset)):
        top.face([(x, belt, rear_screen), (roof_x, height, roof_rear), (roof_x, height, roof_front), (x, belt, windscreen)], _darker(paint, 0.92))
        low, high = 0.06, 0.86

        def pane(z: float, z_top: float, part: float, x: float = x, roof_x: float = roof_x) -> tuple[float, float, float]:
            return (x + (roof_x - x) * part * 1.01, belt + (height - belt) * part, z + (z_top - z) * part)

        middle = (roof_front + roof_rear) / 2 - 0.08
        top.face([pane(windscreen - 0.26, roof_front - 0.06, low), pane(windscreen - 0.26, roof_front - 0.06, high), pane(middle + 0.05, middle + 0.05, high), pane(middle + 0.05, middle + 0.05, low)], _GLASS)
        top.face([pane(middle - 0.05, middle - 0.05, low), pane(middle - 0.05, middle - 0.05, high), pane(rear_screen + 0.22, roof_rear + 0.16, high), pane(rear_screen + 0.22, roof_rear + 0.16, low)], _GLASS)
    top.face([(-inset, height, roof_rear), (inset, height, roof_rear), (inset, height, roof_front), (-inset, height, roof_front)], paint)
    top.face([(-half * 0.92, belt, windscreen), (half * 0.92, belt, windscreen), (inset, height, roof_front), (-inset, height, roof_front)], _darker(paint, 0.8))
    top.face([(-half * 0.86, belt + 0.04, glass_front), (half * 0.86, belt + 0.04, glass_front), (inset * 0.92, height - 0.05, roof_front + 0.05), (-inset * 0.92, height - 0.05, roof_front + 0.05)], _GLASS)
    top.face([(-half * 0.92, belt, rear_screen), (half * 0.92, belt, rear_screen), (inset, height, roof_rear), (-inset, height, roof_rear)], _darker(paint, 0.8))
    top.face([(-half * 0.80, belt + 0.06, glass_rear), (half * 0.80, belt + 0.06, glass_rear), (inset * 0.88, height - 0.07, roof_rear - 0.02), (-inset * 0.88, height - 0.07, roof_rear - 0.02)], _GLASS)
    mirrors = mesh.group((0, belt, windscreen - 0.3), layer=3)
    for x in (-half - 0.07, half + 0.07):
        mirrors.box((x - 0.08, belt - 0.02, windscreen - 0.36), (x + 0.08, belt + 0.13, windscreen - 0.24), _darker(paint, 0.8))
    return mesh, width, length


def _car_ends(shell: Group, half: float, rear: float, front: float, belt: float, nose: float) -> None:
    """Lamps, grille and number plates."""
    z = front + 0.005
    for side in (-1, 1):
        outer, inner = side * half * 0.96, side * half * 0.56
        shell.face([(outer, nose * 0.74, z), (inner, nose * 0.70, z), (inner, nose * 0.93, front - 0.18), (outer, nose * 0.95, front - 0.18)], _LAMP)
        z_tail = rear - 0.005
        shell.face([(outer, belt * 0.64, z_tail), (side * half * 0.66, belt * 0.66, z_tail), (side * half * 0.66, belt * 0.86, z_tail + 0.03), (outer, belt * 0.90, z_tail + 0.03)], _TAIL)
    shell.face([(-half * 0.5, nose * 0.56, z), (half * 0.5, nose * 0.56, z), (half * 0.46, nose * 0.72, z), (-half * 0.46, nose * 0.72, z)], _DARK)
    shell.face([(-0.26, 0.36, z), (0.26, 0.36, z), (0.26, 0.47, z), (-0.26, 0.47, z)], _PLATE)
    shell.face([(-0.26, 0.52, rear - 0.005), (0.26, 0.52, rear - 0.005), (0.26, 0.63, rear), (-0.26, 0.63, rear)], _PLATE)


def truck(rng: np.random.Generator) -> tuple[Mesh, float, float]:
    """A random lorry: cab in front of a box or an open load bed with sides.

    Returns:
        The mesh, its width and its length in metres.
    """
    paint = _paint(rng)
    red, green, blue = _CARGO[rng.integers(len(_CARGO))] * rng.uniform(0.9, 1.08)
    cargo: Colour = (float(red), float(green), float(blue))
    length, width = float(rng.uniform(6.2, 8.4)), float(rng.uniform(2.20, 2.45))
    tipper = rng.random() < 0.25
    cab_height = float(rng.uniform(2.4, 2.8))
    cargo_height = float(rng.uniform(1.9, 2.2)) if tipper else float(rng.uniform(3.0, 3.5))
    rear, front, half = -length / 2, length / 2, width / 2
    cab_rear = front - float(rng.uniform(1.7, 2.0))
    wheel = 0.47
    mesh = Mesh()
    chassis = mesh.group((0, 0.6, 0))
    chassis.box((-half * 0.9, 0.45, rear + 0.1), (half * 0.9, 0.95, cab_rear + 0.2), _DARK)
    axles = (rear + length * 0.16, front - 0.95) if length < 7.2 else (rear + length * 0.13, rear + length * 0.13 + 1.1, front - 0.95)
    for z in axles:
        for x in (-half * 0.86, half * 0.86):
            chassis.box((x - 0.16, 0.0, z - wheel * 0.9), (x + 0.16, 0.8, z + wheel * 0.9), _RUBBER)
    load = mesh.group((0, 1.8, (rear + cab_rear) / 2), layer=1)
    load.box((-half, 0.95, rear), (half, cargo_height, cab_rear - 0.15), cargo)
    if tipper:
        load.face([(-half * 0.93, cargo_height, rear + 0.1), (half * 0.93, cargo_height, rear + 0.1), (half * 0.93, cargo_height, cab_rear - 0.25), (-half * 0.93, cargo_height, cab_rear - 0.25)], (0.36, 0.30, 0.23))
        for z in np.arange(rear + 0.6, cab_rear - 0.4, 0.9):
            for x in (-half, half):
                load.face([(x * 1.001, 0.95, float(z)), (x * 1.001, cargo_height, float(z)), (x * 1.001, cargo_height, float(z) + 0.12), (x * 1.001, 0.95, float(z) + 0.12)], _darker(cargo, 0.72))
    else:
        _box_livery(load, rng, cargo, half, rear, cab_rear - 0.15, cargo_height)
    for side in (-1, 1):
        load.face([(side * half * 0.95, 0.98, rear - 0.01), (side * half * 0.70, 0.98, rear - 0.01), (side * half * 0.70, 1.12, rear - 0.01), (side * half * 0.95, 1.12, rear - 0.01)], _TAIL)
    _truck_cab(mesh.group((0, 1.4, (cab_rear + front) / 2), layer=1), paint, half * 0.97, cab_rear, front, cab_height)
    wheels = mesh.group((0, wheel, 0), layer=2)
    for z in axles:
        for x in (-half, half):
            _wheel(wheels, x, z, wheel)
    return mesh, width, length


def _box_livery(load: Group, rng: np.random.Generator, cargo: Colour, half: float, rear: float, front: float, height: float) -> None:
    """Rear doors, roof edge and a stripe or a sign on the sides of a box body."""
    red, green, blue = _CARGO[rng.integers(len(_CARGO))] * 0.8
    mark: Colour = (float(red), float(green), float(blue))
    low, high = sorted(rng.uniform(1.3, height - 0.3, 2))
    start, end = (rear, front) if rng.random() < 0.5 else (rear + (front - rear) * 0.2, rear + (front - rear) * 0.75)
    for x in (-half * 1.001, half * 1.001):
        load.face([(x, low, start), (x, high, start), (x, high, end), (x, low, end)], mark)
        load.face([(x, height - 0.12, rear), (x, height, rear), (x, height, front), (x, height - 0.12, front)], _darker(cargo, 0.7))
    z = rear - 0.005
    load.face([(-0.03, 1.0, z), (0.03, 1.0, z), (0.03, height - 0.1, z), (-0.03, height - 0.1, z)], _darker(cargo, 0.4))
    for x in (-half * 0.5, half * 0.5):
        load.face([(x - 0.02, 1.0, z), (x + 0.02, 1.0, z), (x + 0.02, height - 0.1, z), (x - 0.02, height - 0.1, z)], _darker(cargo, 0.6))


def _truck_cab(cab: Group, paint: Colour, half: float, rear: float, front: float, height: float) -> None:
    sill, belt, screen = 0.5, height * 0.56, front - 0.28
    profile = [(rear, sill), (rear, height), (screen - 0.2, height), (front - 0.05, belt), (front, sill + 0.25), (front, sill)]
    for index, ((z0, y0), (z1, y1)) in enumerate(zip(profile, profile[1:], strict=False)):
        cab.face([(-half, y0, z0), (half, y0, z0), (half, y1, z1), (-half, y1, z1)], _darker(paint, 0.5) if index == 4 else paint)
    for x in (-half, half):
        cab.face([(x, y, z) for z, y in profile], paint)
        cab.face([(x * 1.001, belt, rear + 0.45), (x * 1.001, height - 0.25, rear + 0.45), (x * 1.001, height - 0.25, screen - 0.22), (x * 1.001, belt, front - 0.25)], _GLASS)
        cab.face([(x * 1.001, sill, rear), (x * 1.001, sill + 0.2, rear), (x * 1.001, sill + 0.2, front), (x * 1.001, sill, front)], _darker(paint, 0.4))
    slope = (screen - 0.2 - (front - 0.05)) / (height - belt)

    def on_screen(x: float, y: float) -> tuple[float, float, float]:
        return (x, y, front - 0.04 + slope * (y - belt))

    cab.face([on_screen(-half * 0.9, belt + 0.08), on_screen(half * 0.9, belt + 0.08), on_screen(half * 0.88, height - 0.18), on_screen(-half * 0.88, height - 0.18)], _GLASS)
    z = front + 0.005
    cab.face([(-half * 0.6, sill + 0.32, z), (half * 0.6, sill + 0.32, z), (half * 0.6, belt - 0.15, front - 0.03), (-half * 0.6, belt - 0.15, front - 0.03)], _DARK)
    for side in (-1, 1):
        cab.face([(side * half * 0.95, sill + 0.05, z), (side * half * 0.65, sill + 0.05, z), (side * half * 0.65, sill + 0.22, z), (side * half * 0.95, sill + 0.22, z)], _LAMP)
    cab.face([(-0.26, sill + 0.05, z), (0.26, sill + 0.05, z), (0.26, sill + 0.16, z), (-0.26, sill + 0.16, z)], _PLATE)
