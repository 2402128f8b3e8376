"""Read by GStreamer's Python loader: offers the stand-in for nvmsgbroker."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from elements.portable.loader import offer

offer(globals(), "nvmsgbroker")
