"""What objects do: zones, lines, directions and dwell times, from places of tracked objects. No GStreamer here.

`engine.SourceAnalytics` judges by rules of ours; `nvds_engine` by those of DeepStream's nvdsanalytics.
"""
