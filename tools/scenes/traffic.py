"""Who is where at any time: traffic as conveyor belts, so that a frame needs no simulation up to it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from tools.scenes.people import Looks, cyclist, pedestrian, random_looks
from tools.scenes.shapes import Figure, Mesh, Pose
from tools.scenes.street import STREET_END, STREET_START, Street
from tools.scenes.vehicles import car, truck

Label = Literal["person", "cyclist", "car", "truck"]
CLASSES: tuple[Label, ...] = ("person", "cyclist", "car", "truck")

_LENGTH = STREET_END - STREET_START


@dataclass(frozen=True)
class Actor:
    """One moving or standing object.

    Attributes:
        track_id: unique in the scene.
        label: its class.
        body: the mesh of a vehicle, or the looks of a person.
        width, length: metres on the ground.
        still: whether it never moves.
    """

    track_id: int
    label: Label
    body: Mesh | Looks
    width: float
    length: float
    still: bool

    def figure(self, travelled: float) -> Figure:
        """The shape after `travelled` metres."""
        if isinstance(self.body, Mesh):
            return self.body
        if self.label == "cyclist":
            return cyclist(self.body, travelled)
        return pedestrian(self.body, travelled, walking=not self.still)


@dataclass(frozen=True)
class Belt:
    """A line of actors that move together, endlessly, along the street.

    Attributes:
        seed, index, count: of the scene, of this belt, and how many belts there are (for track ids).
        x: metres; direction: +1 away towards +z.
        speed: mean metres per second; surge, rhythm: its slow ups and downs (metres, radians per second).
        gap: mean metres between followers; slack: how much of it varies.
        shares: probability of each of `CLASSES`; presence: probability that a place is taken.
        sway: sideways wandering in metres.
    """

    seed: int
    index: int
    count: int
    x: float
    direction: int
    speed: float
    surge: float
    rhythm: float
    gap: float
    slack: float
    shares: tuple[float, float, float, float]
    presence: float
    sway: float

    def at(self, time: float) -> Iterator[tuple[Actor, Pose, float]]:
        """Actors on the street at `time` seconds: who, where, and metres travelled since entering."""
        moved = self.speed * time + self.surge * np.sin(self.rhythm * time + self.index)
        first = int(np.floor((moved - _LENGTH) / self.gap)) - 1
        last = int(np.ceil(moved / self.gap)) + 1
        for place in range(first, last + 1):
            actor, offset, phase = _make_actor(self, place)
            travelled = moved - place * self.gap - offset
            if actor is None or not 0 <= travelled <= _LENGTH:
                continue
            z = STREET_START + travelled if self.direction > 0 else STREET_END - travelled
            drift = self.sway * np.sin(travelled * 0.22 + phase)
            turn = np.arctan(self.sway * 0.22 * np.cos(travelled * 0.22 + phase))
            heading = turn if self.direction > 0 else np.pi - turn
            if actor.still and actor.label == "person":
                heading = phase
            yield actor, Pose(float(self.x + drift), float(z), float(heading)), float(travelled)


@lru_cache(maxsize=4096)
def _make_actor(belt: Belt, place: int) -> tuple[Actor | None, float, float]:
    """The actor at a place of a belt (None when the place is free), its offset in metres and its phase."""
    rng = np.random.default_rng([belt.seed, belt.index, place + 1_000_000])
    offset, phase = float(rng.uniform(0, belt.slack)), float(rng.uniform(0, 2 * np.pi))
    if rng.random() > belt.presence:
        return None, offset, phase
    label = CLASSES[int(rng.choice(4, p=belt.shares))]
    body: Mesh | Looks
    if label in ("car", "truck"):
        vehicle = car(rng) if label == "car" else truck(rng)
        body, width, length = vehicle.mesh, vehicle.width, vehicle.length
    else:
        body = random_looks(rng)
        width, length = (0.5, 0.5) if label == "person" else (0.5, 1.7)
    # Places are numbered from below zero, so that the street is full at the start.
    track_id = (place + 200) * belt.count + belt.index + 1
    return Actor(track_id, label, body, width, length, still=belt.speed == 0), offset, phase


def plan_traffic(street: Street, seed: int, rng: np.random.Generator) -> list[Belt]:
    """Random belts for vehicles, cyclists, people on both pavements, and what stands."""
    belts: list[Belt] = []

    def add(
        x: float,
        direction: int,
        speed: float,
        gap: float,
        slack: float,
        shares: tuple[float, float, float, float],
        presence: float = 1.0,
        sway: float = 0.0,
    ) -> None:
        rhythm = float(rng.uniform(0.2, 0.5))
        surge = float(rng.uniform(0.0, 0.5)) * speed / rhythm
        index = len(belts)
        belts.append(Belt(seed, index, 0, x, direction, speed, surge, rhythm, gap, slack, shares, presence, sway))

    people, cyclists = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)
    alley = street.style == "alley"
    busy = rng.uniform(0.6, 1.0)
    trucks = rng.uniform(0.15, 0.4)
    for x, direction in street.lanes:
        speed = rng.uniform(2.5, 4.5) if alley else rng.uniform(5, 10)
        gap = rng.uniform(32, 50) if alley else rng.uniform(16, 28)
        add(x, direction, speed, gap, gap - 11.0, (0.0, 0.06, 0.94 - trucks, trucks), presence=busy)
    edge = max(x for x, _ in street.lanes)
    room = street.road - edge - 0.95  # beside a vehicle in the outer lane
    for side in (-1, 1):
        if not alley and room > 2.2 and rng.random() < 0.5:
            add(side * (street.road - 1.05), side, 0.0, 7.0, 0.8, (0.0, 0.0, 0.85, 0.15), presence=0.35)
        else:
            speed, gap = rng.uniform(3.0, 5.5), rng.uniform(12, 28)
            add(side * (street.road - 0.45), side, speed, gap, 8.0, cyclists, presence=busy)
    inner, outer = street.road + 0.75, street.road + street.pavement - 0.45
    for side in (-1, 1):
        for x in np.arange(inner, outer, 1.0).tolist():
            gap, direction = rng.uniform(13, 30), int(rng.choice([-1, 1]))
            speed, sway = rng.uniform(1.0, 1.7), rng.uniform(0, 0.25)
            add(side * x, direction, speed, gap, gap - 1.5, people, presence=busy, sway=sway)
        add(side * (outer + 0.1), 1, 0.0, 9.0, 6.0, people, presence=0.3)
    if alley:
        for x in (-street.road + 1.05, street.road - 1.05):
            gap, direction = rng.uniform(12, 22), int(rng.choice([-1, 1]))
            add(x, direction, rng.uniform(1.0, 1.6), gap, gap - 2, people, presence=0.6, sway=0.3)
    return [replace(belt, count=len(belts)) for belt in belts]
