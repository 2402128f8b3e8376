"""Sensors, places and analytics modules: what nvmsgconv's configuration file says.

The file is an ini file with ``[sensorN]``, ``[placeN]`` and ``[analyticsN]`` sections, or YAML with those keys on its
top level; N is the source id. Layout and keys are DeepStream's.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_SECTION = re.compile(r"(sensor|place|analytics)(\d+)")
Triple = tuple[float, float, float]


class MessageConfigError(ValueError):
    """A configuration file that cannot be used. The text names file and section."""


@dataclass(frozen=True, slots=True)
class Sensor:
    """A camera. ``location`` is latitude, longitude, altitude; ``coordinate`` is x, y, z in the place's own frame."""

    id: str
    type: str = "Camera"
    description: str = ""
    location: Triple = (0.0, 0.0, 0.0)
    coordinate: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sensor is. ``sub_fields`` are id, name and level of a part of the place (aisle, entrance, spot)."""

    id: str
    name: str = ""
    type: str = ""
    location: Triple = (0.0, 0.0, 0.0)
    coordinate: Triple = (0.0, 0.0, 0.0)
    sub_fields: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True)
class AnalyticsModule:
    """What found the objects."""

    id: str
    description: str = ""
    source: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class MessageConfig:
    """All of them by source id."""

    sensors: Mapping[int, Sensor] = field(default_factory=dict)
    places: Mapping[int, Place] = field(default_factory=dict)
    analytics: Mapping[int, AnalyticsModule] = field(default_factory=dict)


def load_message_config(path: Path) -> MessageConfig:
    """Read a configuration file (.yml and .yaml: YAML, else ini). Sections with ``enable=0`` are left out.

    Raises:
        MessageConfigError: unreadable, unknown keys, or values that do not fit.
    """
    found: dict[str, dict[int, Any]] = {"sensor": {}, "place": {}, "analytics": {}}
    for name, values in _sections(path).items():
        match = _SECTION.fullmatch(name)
        if match is None:
            raise MessageConfigError(f"{path}: section '{name}' is none of sensorN, placeN and analyticsN")
        where = f"{path}, section '{name}'"
        if _text(values.pop("enable", "1")) in ("0", "false", "False"):
            continue
        found[match[1]][int(match[2])] = _READERS[match[1]](values, where)
    return MessageConfig(found["sensor"], found["place"], found["analytics"])


def _sections(path: Path) -> dict[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() in (".yml", ".yaml"):
            data = yaml.safe_load(text) or {}
            if not isinstance(data, dict) or not all(isinstance(values, dict) for values in data.values()):
                raise MessageConfigError(f"{path}: needs sections with keys and values on its top level")
            return {str(name): dict(values) for name, values in data.items()}
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
        parser.read_string(text, str(path))
        return {name: dict(parser[name]) for name in parser.sections()}
    except (OSError, UnicodeDecodeError, configparser.Error, yaml.YAMLError) as error:
        raise MessageConfigError(f"{path}: cannot be read: {error}") from None


def _sensor(values: dict[str, Any], where: str) -> Sensor:
    return Sensor(**_known(values, where, ("type", "description"), ("location", "coordinate")))


def _place(values: dict[str, Any], where: str) -> Place:
    sub_fields = [_text(values.pop(f"place-sub-field{n}", "")) for n in (1, 2, 3)]
    known = _known(values, where, ("name", "type"), ("location", "coordinate"))
    return Place(**known, sub_fields=(sub_fields[0], sub_fields[1], sub_fields[2]))


def _analytics(values: dict[str, Any], where: str) -> AnalyticsModule:
    return AnalyticsModule(**_known(values, where, ("description", "source", "version"), ()))


_READERS = {"sensor": _sensor, "place": _place, "analytics": _analytics}


def _known(values: dict[str, Any], where: str, texts: Sequence[str], triples: Sequence[str]) -> dict[str, Any]:
    unknown = [key for key in values if key not in ("id", *texts, *triples)]
    if unknown:
        raise MessageConfigError(f"{where}: unknown key '{unknown[0]}'; it has id, {', '.join((*texts, *triples))}")
    if "id" not in values:
        raise MessageConfigError(f"{where}: has no id")
    known: dict[str, Any] = {key: _text(values[key]) for key in ("id", *texts) if key in values}
    return {**known, **{key: _triple(values[key], f"{where}, {key}") for key in triples if key in values}}


def _triple(value: Any, where: str) -> Triple:
    """Three numbers, written ``1.5;2.5;3.0``."""
    try:
        a, b, c = (float(part) for part in str(value).split(";"))
    except ValueError:
        raise MessageConfigError(f"{where}: '{value}' is not three numbers like 1.5;2.5;3.0") from None
    return a, b, c


def _text(value: Any) -> str:
    return str(value).strip()
