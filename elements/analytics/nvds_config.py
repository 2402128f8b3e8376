"""Configuration files of DeepStream's nvdsanalytics: key files (``[section]``, ``key=value``), or the same as YAML.

Places are pixels of a picture of ``config-width`` x ``config-height``; sections end in the number of the mux's pad.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from elements.analytics.geometry import Point

ALL_CLASSES = -1
MODES = ("loose", "balanced", "strict")


class NvdsConfigError(ValueError):
    """A configuration that cannot be used. The text names file, line, section and key."""


@dataclass(frozen=True, slots=True)
class Areas:
    """A section of areas: polygons by label. ``classes`` empty: all. ``inverse``: who is outside is meant.

    ``threshold`` is of overcrowding: so many objects are a crowd.
    """

    polygons: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    classes: frozenset[int] = frozenset()
    inverse: bool = False
    threshold: int = 1


@dataclass(frozen=True, slots=True)
class CrossedLine:
    """A line and the vector (start, end) of the way across it that counts."""

    way: tuple[Point, Point]
    ends: tuple[Point, Point]


@dataclass(frozen=True, slots=True)
class Lines:
    """A section of lines by label. ``extended``: each goes on to the edges of the picture."""

    lines: Mapping[str, CrossedLine] = field(default_factory=dict)
    classes: frozenset[int] = frozenset()
    extended: bool = True
    mode: str = "loose"


@dataclass(frozen=True, slots=True)
class Directions:
    """A section of directions by label, each from a point to another one."""

    vectors: Mapping[str, tuple[Point, Point]] = field(default_factory=dict)
    classes: frozenset[int] = frozenset()
    mode: str = "balanced"


@dataclass(frozen=True, slots=True)
class Stream:
    """What to look for in the frames of one pad of the mux."""

    rois: Areas = Areas()
    crowds: Areas = Areas()
    lines: Lines = Lines()
    directions: Directions = Directions()


@dataclass(frozen=True, slots=True)
class NvdsConfig:
    """The whole file.

    ``osd_mode``: 0 draws nothing, 1 lines and labels, 2 the texts and borders of objects as well. ``without_effect``
    says of sections and keys, with their places, that they change nothing.
    """

    enable: bool = True
    width: int = 1920
    height: int = 1080
    osd_mode: int = 2
    font_size: int = 12
    streams: Mapping[int, Stream] = field(default_factory=dict)
    without_effect: tuple[str, ...] = ()


class _Value(NamedTuple):
    text: str
    where: str


_Sections = dict[str, dict[str, _Value]]
_SECTION = re.compile(r"(roi-filtering|overcrowding|line-crossing|direction-detection)-stream-(\d+)")
_LABELS = {
    "roi-filtering": "roi-",
    "overcrowding": "roi-",
    "line-crossing": "line-crossing-",
    "direction-detection": "direction-",
}
_KEYS = {
    "property": (
        ("enable", "config-width", "config-height", "osd-mode", "display-font-size"),
        ("obj-cnt-win-in-ms", "display-obj-cnt"),
    ),
    "roi-filtering": (("enable", "inverse-roi", "class-id"), ()),
    "overcrowding": (("enable", "object-threshold", "class-id"), ("time-threshold",)),
    "line-crossing": (("enable", "class-id", "extended", "mode"), ()),
    "direction-detection": (("enable", "class-id", "mode"), ()),
}
"""Keys of each section: those with an effect here, and those without."""


def load_nvds_config(path: str | Path) -> NvdsConfig:
    """Read a configuration file.

    Raises:
        NvdsConfigError: if it cannot be read, or a value is not what its key takes.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NvdsConfigError(f"{file}: cannot be read: {error}") from None
    sections = _yaml_sections(text, file) if file.suffix in (".yml", ".yaml") else _key_file_sections(text, file)
    if "property" not in sections:
        raise NvdsConfigError(f"{file}: has no section 'property'")
    config = _property(sections["property"])
    idle = list(_without_effect("property", sections.pop("property")))
    streams: dict[int, Stream] = {}
    for name, values in sections.items():
        match = _SECTION.fullmatch(name)
        if match is None:
            idle.append(f"{file}: section '{name}' is not known")
        elif _number(values, "enable", 0, 0, 1):
            kind, pad = match[1], int(match[2])
            streams[pad] = _with_section(streams.get(pad, Stream()), kind, values)
            idle += _without_effect(kind, values)
    return replace(config, streams=streams, without_effect=tuple(idle))


# --- the two notations ------------------------------------------------------------------------------------------------


def _key_file_sections(text: str, file: Path) -> _Sections:
    sections: _Sections = {}
    current: dict[str, _Value] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line, where = raw.strip(), f"{file}:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1].strip(), {})
            continue
        key, separator, value = line.partition("=")
        if current is None or not separator:
            raise NvdsConfigError(f"{where}: '{line}' is neither [section] nor key=value in one")
        current[key.strip()] = _Value(value.strip(), where)
    return sections


def _yaml_sections(text: str, file: Path) -> _Sections:
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise NvdsConfigError(f"{file}: is not YAML: {error}") from None
    sections: _Sections = {}
    for name, body, where in _pairs(root, file, f"{file}"):
        sections[name] = {}
        for key, value, place in _pairs(body, file, where):
            if not isinstance(value, yaml.ScalarNode):
                raise NvdsConfigError(f"{place}: {key}: takes a single value")
            sections[name][key] = _Value(value.value, place)
    return sections


def _pairs(node: Any, file: Path, where: str) -> Iterator[tuple[str, Any, str]]:
    """Key, value and place of each entry of a YAML mapping."""
    if not isinstance(node, yaml.MappingNode):
        raise NvdsConfigError(f"{where}: keys and values are needed")
    for key, value in node.value:
        yield str(key.value), value, f"{file}:{key.start_mark.line + 1}"


# --- sections ---------------------------------------------------------------------------------------------------------


def _property(values: dict[str, _Value]) -> NvdsConfig:
    return NvdsConfig(
        bool(_number(values, "enable", 1, 0, 1)),
        _number(values, "config-width", 1920, 1),
        _number(values, "config-height", 1080, 1),
        _number(values, "osd-mode", 2, 0, 2),
        _number(values, "display-font-size", 12, 1),
    )


def _with_section(stream: Stream, kind: str, values: dict[str, _Value]) -> Stream:
    prefix = _LABELS[kind]
    found = {key.removeprefix(prefix): v for key, v in values.items() if key.startswith(prefix) and key != prefix}
    classes = _classes(values)
    if kind == "line-crossing":
        lines = {label: _crossed(_points(v, 4, 4)) for label, v in found.items()}
        extended = bool(_number(values, "extended", 1, 0, 1))
        return replace(stream, lines=Lines(lines, classes, extended, _mode(values, "loose")))
    if kind == "direction-detection":
        vectors = {label: _vector(_points(v, 2, 2), v) for label, v in found.items()}
        return replace(stream, directions=Directions(vectors, classes, _mode(values, "balanced")))
    polygons = {label: _points(v, 3) for label, v in found.items()}
    if kind == "overcrowding":
        return replace(stream, crowds=Areas(polygons, classes, threshold=_number(values, "object-threshold", 1, 0)))
    inverse = bool(_number(values, "inverse-roi", 0, 0, 1))
    return replace(stream, rois=Areas(polygons, classes, inverse))


def _crossed(points: tuple[Point, ...]) -> CrossedLine:
    return CrossedLine((points[0], points[1]), (points[2], points[3]))


def _vector(points: tuple[Point, ...], value: _Value) -> tuple[Point, Point]:
    if points[0] == points[1]:
        raise NvdsConfigError(f"{value.where}: '{value.text}': both points of the direction are the same")
    return points[0], points[1]


def _points(value: _Value, least: int, most: int | None = None) -> tuple[Point, ...]:
    try:
        numbers = [float(part) for part in value.text.split(";") if part.strip()]
    except ValueError:
        raise NvdsConfigError(f"{value.where}: '{value.text}': numbers separated by ';' are needed") from None
    points = tuple(zip(numbers[::2], numbers[1::2], strict=False))
    if len(numbers) % 2 or len(points) < least or (most is not None and len(points) > most):
        wanted = f"{2 * least}" if most is not None else f"{2 * least} or more"
        raise NvdsConfigError(f"{value.where}: '{value.text}': {wanted} numbers x;y;x;y… are needed")
    return points


def _number(values: dict[str, _Value], key: str, default: int, least: int, most: int | None = None) -> int:
    value = values.get(key)
    if value is None:
        return default
    if (
        not re.fullmatch(r"-?\d+", value.text)
        or int(value.text) < least
        or (most is not None and int(value.text) > most)
    ):
        wanted = f"from {least} to {most}" if most is not None else f"from {least} on"
        raise NvdsConfigError(f"{value.where}: {key}: '{value.text}' is not a whole number {wanted}")
    return int(value.text)


def _mode(values: dict[str, _Value], default: str) -> str:
    value = values.get("mode")
    if value is not None and value.text not in MODES:
        raise NvdsConfigError(f"{value.where}: mode: '{value.text}' is not one of {', '.join(MODES)}")
    return default if value is None else value.text


def _classes(values: dict[str, _Value]) -> frozenset[int]:
    value = values.get("class-id")
    if value is None:
        return frozenset()
    try:
        numbers = frozenset(int(part) for part in value.text.split(";") if part.strip())
    except ValueError:
        hint = "class numbers separated by ';' are needed, or -1"
        raise NvdsConfigError(f"{value.where}: class-id: '{value.text}': {hint}") from None
    return frozenset() if ALL_CLASSES in numbers else numbers


def _without_effect(kind: str, values: Mapping[str, _Value]) -> Iterator[str]:
    """What to say of keys that change nothing."""
    known, idle = _KEYS[kind]
    for key, value in values.items():
        if key in idle:
            yield f"{value.where}: {key} has no effect here"
        elif key not in known and not key.startswith(_LABELS.get(kind, "\n")):
            near = difflib.get_close_matches(key, known, 1)
            yield f"{value.where}: unknown key '{key}'" + (f": did you mean '{near[0]}'?" if near else "")
