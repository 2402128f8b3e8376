"""Multi-object tracking without GStreamer: DeepStream's tracker configuration, and tracks of one source over time."""

from elements.portable.tracking.config import (
    TrackerConfig,
    TrackerConfigError,
    load_tracker_config,
    read_tracker_file,
)

__all__ = ["TrackerConfig", "TrackerConfigError", "load_tracker_config", "read_tracker_file"]
