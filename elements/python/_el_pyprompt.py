"""Read by GStreamer's Python loader (``GST_PLUGIN_PATH=<repo>/elements``): offers the element pyprompt."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
if str(_ROOT) not in sys.path:
    sys.path.insert(0, str(_ROOT))

try:
    from elements.prompting.pyprompt import FACTORY, PyPrompt
except ImportError as error:
    print(
        f"gstorch: pyprompt is not available ({error}): run 'source {_ROOT}/elements/env.sh' in this shell, then again",
        file=sys.stderr,
    )
else:
    __gstelementfactory__ = (FACTORY, 0, PyPrompt)
