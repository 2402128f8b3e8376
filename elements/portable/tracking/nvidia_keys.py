"""Keys of NVIDIA's tracker that have no effect here, so that a misspelt key can be told from one of theirs.

Source: the parameter tables of DeepStream's ``NvMultiObjectTracker``, releases 6 to 9.
"""

from __future__ import annotations

NVIDIA_KEYS: dict[str, frozenset[str]] = {
    "TargetManagement": frozenset(
        [
            "preserveStreamUpdateOrder",
            "enableBboxUnClipping",
            "minTrackerConfidence",
            "searchRegionPaddingScale",
            "outputTerminatedTracks",
            "outputShadowTracks",
            "terminatedTrackFilename",
        ]
    ),
    "TrajectoryManagement": frozenset(
        [
            "enableReAssoc",
            "minMatchingScore4Overall",
            "minTrackletMatchingScore",
            "minMatchingScore4ReidSimilarity",
            "matchingScoreWeight4TrackletSimilarity",
            "matchingScoreWeight4ReidSimilarity",
            "minTrajectoryLength4Projection",
            "prepLength4TrajectoryProjection",
            "trajectoryProjectionLength",
            "maxAngle4TrackletMatching",
            "minSpeedSimilarity4TrackletMatching",
            "minBboxSizeSimilarity4TrackletMatching",
            "maxTrackletMatchingTimeSearchRange",
            "trajectoryProjectionProcessNoiseScale",
            "trajectoryProjectionMeasurementNoiseScale",
            "trackletSpacialSearchRegionScale",
            "reidExtractionInterval",
        ]
    ),
    "DataAssociator": frozenset(
        [
            "dataAssociatorType",
            "associationMatcherType",
            "usePrediction4Assoc",
            "thresholdMahalanobis",
            "minMatchingScore4Overall",
            "minMatchingScore4SizeSimilarity",
            "minMatchingScore4VisualSimilarity",
            "minMatchingScore4ReidSimilarity",
            "minMatchingScore4TentativeIou",
            "matchingScoreWeight4SizeSimilarity",
            "matchingScoreWeight4Iou",
            "matchingScoreWeight4VisualSimilarity",
            "matchingScoreWeight4ReidSimilarity",
        ]
    ),
}
"""By section, for the sections that have keys with an effect here, too."""

NVIDIA_SECTIONS = frozenset(
    [
        "StateEstimator",
        "VisualTracker",
        "ReID",
        "Segmenter",
        "PoseEstimator",
        "ObjectModelProjection",
        "MultiViewAssociator",
        "Communicator",
    ]
)
"""Sections of which nothing has an effect here."""
