"""The tracker's configuration file, in DeepStream's format."""

import logging
from pathlib import Path

import pytest

from elements.portable.tracking.config import TrackerConfig, TrackerConfigError, load_tracker_config

DEFAULT_FILE = Path(__file__).resolve().parents[2] / "configs" / "trackers" / "default.yml"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tracker.yml"
    path.write_text(text)
    return path


def test_the_default_file_says_what_the_defaults_are(caplog: pytest.LogCaptureFixture) -> None:
    assert load_tracker_config(DEFAULT_FILE) == TrackerConfig()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_two_stage_file_differs_in_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    config = load_tracker_config(DEFAULT_FILE.with_name("two_stage.yml"))
    assert config == TrackerConfig(tentative_detector_confidence=0.5, max_shadow_tracking_age=75)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_deepstreams_keys_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(
        tmp_path,
        "%YAML:1.0\n\nBaseConfig:\n  minDetectorConfidence: 0.1894   # a comment\n"
        "TargetManagement:\n  probationAge: 4\n  maxShadowTrackingAge: 60\n  earlyTerminationAge: 2\n"
        "  maxTargetsPerStream: 30\n  minIouDiff4NewTarget: 0.3686\n  minTrackerConfidence: 0.15\n"
        "TrajectoryManagement:\n  useUniqueID: 1\n"
        "DataAssociator:\n  checkClassMatch: 0\n  tentativeDetectorConfidence: 0.1024\n  minMatchingScore4Iou: 0.0548\n"
        "VisualTracker:\n  visualTrackerType: 2\nReID:\n",
    )
    with caplog.at_level(logging.INFO, "gstorch.tracker"):
        config = load_tracker_config(path)
    assert config == TrackerConfig(0.1894, 0.1024, 4, 2, 60, 30, 0.3686, True, False, 0.0548)
    assert config.shadow_seconds == 2.0
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: no effect here: TargetManagement.minTrackerConfidence, VisualTracker.visualTrackerType"
    ]


def test_keys_that_nobody_knows_are_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A newer DeepStream may know them. A key of NVIDIA's sections is theirs to judge."""
    text = "TargetManagement:\n  enableBboxUnCliping: 1\n  maxAge: 3\nOwn:\n  x: 1\nReID:\n  batchSizes: 2\n"
    assert load_tracker_config(path := write(tmp_path, text)) == TrackerConfig()
    assert caplog.messages == [
        f"{path}: unknown, so probably without effect: TargetManagement.enableBboxUnCliping (line 2, did you mean "
        "enableBboxUnClipping?); TargetManagement.maxAge (line 3); Own.x (line 5)"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "%YAML:1.0\nBaseConfig:\n  minDetectorConfidence: 1.5\n",
            ":3: BaseConfig.minDetectorConfidence = 1.5: a number",
        ),
        (
            "TargetManagement:\n  probationAge: 2.5\n",
            ":2: TargetManagement.probationAge = 2.5: a whole number from 0 is",
        ),
        ("TargetManagement:\n  probationAge: [2]\n", ":2: TargetManagement.probationAge = a block: a whole number"),
        (
            "TargetManagement:\n  probationAge: 2\n  probationAge: 3\n",
            ":3: TargetManagement.probationAge is given twice",
        ),
        ("DataAssociator:\n  checkClassMatch: maybe\n", ":2: DataAssociator.checkClassMatch = maybe: 0 or 1 is needed"),
        (
            "TargetManagement:\n  probatonAge: 4\n",
            ":2: unknown key TargetManagement.probatonAge; did you mean TargetManagement.probationAge?",
        ),
        (
            "DataAssociator:\n  minMatchingScore4IoU: 0\n",
            ":2: unknown key DataAssociator.minMatchingScore4IoU; did you mean DataAssociator.minMatchingScore4Iou?",
        ),
        (
            "BaseConfig:\n  maxShadowTrackingAge: 4\n",
            ":2: unknown key BaseConfig.maxShadowTrackingAge; did you mean TargetManagement.maxShadowTrackingAge?",
        ),
        (
            "StateEstimator:\n  probationAge: 4\n",
            ":2: unknown key StateEstimator.probationAge; did you mean TargetManagement.probationAge?",
        ),
        ("TargetManagement: 3\n", ":1: TargetManagement must hold 'key: value' lines"),
        ("- 1\n", ":1: the file must hold 'key: value' lines"),
        ("A:\n  b: [1\n", ":3: not valid YAML: "),
        ("A:\n\tb: 1\n", ":2: not valid YAML: "),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(TrackerConfigError) as caught:
        load_tracker_config(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrackerConfigError, match=r"nowhere\.yml: cannot read the tracker configuration: No such file"):
        load_tracker_config(tmp_path / "nowhere.yml")


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_tracker_config(write(tmp_path, "%YAML:1.0\n")) == TrackerConfig()
