"""Models: frames in, detections out. No GStreamer here."""
