"""GStreamer is up before the modules that define elements are imported: caps in class bodies need it."""

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

Gst.init(None)
