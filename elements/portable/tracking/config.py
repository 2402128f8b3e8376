"""DeepStream's low-level tracker configuration (``ll-config-file``), as far as it means something here."""

from __future__ import annotations

import difflib
import logging
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from elements.portable.tracking.nvidia_keys import NVIDIA_KEYS, NVIDIA_SECTIONS

log = logging.getLogger("gstorch.tracker")

NOMINAL_FPS = 30.0  # DeepStream counts ages in frames; here a frame of age is 1/30 s of stream time


class TrackerConfigError(ValueError):
    """A tracker configuration that cannot be used. The text names file, line, key and what is allowed."""


@dataclass(frozen=True, slots=True)
class TrackerConfig:
    """What the tracker does, in DeepStream's words. ``configs/trackers/default.yml`` explains each value."""

    min_detector_confidence: float = 0.0
    tentative_detector_confidence: float = 0.2
    probation_age: int = 3
    early_termination_age: int = 1
    max_shadow_tracking_age: int = 45
    max_targets_per_stream: int = 150
    min_iou_diff_4_new_target: float = 0.7
    use_unique_id: bool = False
    check_class_match: bool = True
    min_matching_score_4_iou: float = 0.1

    def hits_to_confirm(self, gap_s: float) -> int:
        """Detections in a row that fill the probation age, where each stands for ``gap_s`` seconds of stream time.

        With the default age of 3 (0.1 s): three at 30 frames/s, two at 15, one at 10 and below. On the first frame the
        gap is not known yet (0): then as many as the age says.
        """
        hits = self.probation_age if gap_s <= 0 else self.probation_age / NOMINAL_FPS / gap_s
        return min(max(1, self.probation_age), max(1, math.ceil(hits - 0.1)))  # timestamps are rounded

    @property
    def shadow_seconds(self) -> float:
        """Stream time that an active target survives without a detection."""
        return self.max_shadow_tracking_age / NOMINAL_FPS


@dataclass(frozen=True, slots=True)
class _Key:
    """Where a field is in the file, and what it may be."""

    field: str
    kind: type
    low: float
    high: float


_INT_MAX = 2**31 - 1
_SIMILAR = 0.85  # difflib's ratio of names that are taken for misspellings of each other
_KEYS = {
    ("BaseConfig", "minDetectorConfidence"): _Key("min_detector_confidence", float, 0, 1),
    ("TargetManagement", "probationAge"): _Key("probation_age", int, 0, _INT_MAX),
    ("TargetManagement", "earlyTerminationAge"): _Key("early_termination_age", int, 0, _INT_MAX),
    ("TargetManagement", "maxShadowTrackingAge"): _Key("max_shadow_tracking_age", int, 0, _INT_MAX),
    ("TargetManagement", "maxTargetsPerStream"): _Key("max_targets_per_stream", int, 1, _INT_MAX),
    ("TargetManagement", "minIouDiff4NewTarget"): _Key("min_iou_diff_4_new_target", float, 0, 1),
    ("TrajectoryManagement", "useUniqueID"): _Key("use_unique_id", bool, 0, 1),
    ("DataAssociator", "checkClassMatch"): _Key("check_class_match", bool, 0, 1),
    ("DataAssociator", "tentativeDetectorConfidence"): _Key("tentative_detector_confidence", float, 0, 1),
    ("DataAssociator", "minMatchingScore4Iou"): _Key("min_matching_score_4_iou", float, 0, 1),
}


@dataclass(frozen=True, slots=True)
class TrackerFile:
    """What a tracker file says.

    Attributes:
        config: the values that have an effect here.
        idle: NVIDIA's keys that change nothing here (visual tracker, re-identification, …), as ``Section.key``.
        unknown: keys that neither NVIDIA's tracker nor this one is known to have: name, line, and a likely right name.
    """

    config: TrackerConfig
    idle: tuple[str, ...]
    unknown: tuple[str, ...]


def load_tracker_config(path: str | Path) -> TrackerConfig:
    """Read a DeepStream tracker file (``config_tracker_*.yml``), and name the keys without effect once in the log.

    A misspelt key that has an effect here is an error: NVIDIA's tracker would not know it either. Any other
    unknown key is a warning: a release of DeepStream may have more keys than are known here.

    Raises:
        TrackerConfigError: as `read_tracker_file`.
    """
    file = read_tracker_file(path)
    if file.unknown:
        log.warning("%s: unknown, so probably without effect: %s", path, "; ".join(file.unknown))
    if file.idle:
        log.info("%s: no effect here: %s", path, ", ".join(file.idle))
    return file.config


def read_tracker_file(path: str | Path) -> TrackerFile:
    """Read a DeepStream tracker file and say nothing about it.

    Raises:
        TrackerConfigError: with file and line, if the file is missing, is not YAML, misspells a key that has an effect
            here, or holds a value out of its range.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TrackerConfigError(f"{path}: cannot read the tracker configuration: {reason}") from error
    values: dict[str, Any] = {}
    idle: list[str] = []
    unknown: list[str] = []
    for section, key, node in _entries(path, text):
        name = f"{section}.{key}"
        known = _KEYS.get((section, key))
        if known is None:
            if _is_nvidias(section, key):
                idle.append(name)
            else:
                unknown.append(_unknown(path, section, key, node))
        elif known.field in values:
            raise TrackerConfigError(f"{_place(path, node)}: {name} is given twice")
        else:
            values[known.field] = _value(path, name, node, known)
    return TrackerFile(TrackerConfig(**values), tuple(idle), tuple(unknown))


def _is_nvidias(section: str, key: str) -> bool:
    if section in NVIDIA_SECTIONS:
        return not any(key == ours for _, ours in _KEYS)
    return key in NVIDIA_KEYS.get(section, ())


def _unknown(path: Path, section: str, key: str, node: yaml.Node) -> str:
    """An unknown key for the warning, unless it was to be one that has an effect here: then an error."""
    ours = {own: f"{home}.{own}" for home, own in _KEYS}
    if meant := _similar(key, ours):
        raise TrackerConfigError(f"{_place(path, node)}: unknown key {section}.{key}; did you mean {ours[meant]}?")
    meant = _similar(key, NVIDIA_KEYS.get(section, ()))
    return f"{section}.{key} (line {node.start_mark.line + 1}{f', did you mean {meant}?' if meant else ''})"


def _similar(key: str, names: Iterable[str]) -> str:
    """The name that ``key`` probably was to be; empty if it is like none."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=_SIMILAR)
    return by_lower[near[0]] if near else ""


def _entries(path: Path, text: str) -> Iterator[tuple[str, str, yaml.Node]]:
    """(section, key, value node) of the file. OpenCV's first line ``%YAML:1.0`` is no YAML directive: it is blanked."""
    try:
        root = yaml.compose(re.sub(r"\A\ufeff?%YAML:.*", "", text), yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise TrackerConfigError(f"{path}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise TrackerConfigError(f"{path}: not valid YAML: {error}") from error
    if root is None:
        return
    for section, body in _pairs(path, root, "the file"):
        if isinstance(body, yaml.ScalarNode) and not body.value:  # a section whose keys are all commented out
            continue
        for key, node in _pairs(path, body, section):
            yield section, key, node


def _pairs(path: Path, node: yaml.Node, what: str) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise TrackerConfigError(f"{_place(path, node)}: {what} must hold 'key: value' lines")
    for key, value in node.value:
        yield str(key.value), value


def _value(path: Path, name: str, node: yaml.Node, key: _Key) -> Any:
    wanted = {float: "a number", int: "a whole number", bool: "0 or 1"}[key.kind]
    try:
        number = float(node.value if node.value not in ("true", "false") else node.value == "true")
        fits = key.low <= number <= key.high and (key.kind is float or number.is_integer())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        limits = "" if key.kind is bool else f" from {key.low:g}" + (f" to {key.high:g}" if key.high < _INT_MAX else "")
        shown = node.value if isinstance(node, yaml.ScalarNode) else "a block"
        raise TrackerConfigError(f"{_place(path, node)}: {name} = {shown}: {wanted}{limits} is needed")
    return key.kind(number)


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
