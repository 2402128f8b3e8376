"""A pipeline that can be killed: puts numbered messages of two sources and says how far it is.

python -m tests.delivery.producer SETTINGS_PICKLE FIRST COUNT
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path

from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.store import Message

KEYS = ("door", "yard")


def numbered(topic: str, numbers: range) -> list[Message]:
    """Messages whose payloads are ``{"key": …, "n": …}``, of two sources in turn."""
    return [Message(KEYS[n % 2], topic, json.dumps({"key": KEYS[n % 2], "n": n}).encode()) for n in numbers]


def main() -> None:
    settings: Settings = pickle.loads(Path(sys.argv[1]).read_bytes())
    first, count = int(sys.argv[2]), int(sys.argv[3])
    delivery = Delivery(settings)
    for n in range(first, first + count, 10):
        delivery.put(numbered(settings.connection.topic, range(n, n + 10)))
        print(n + 10, flush=True)
        time.sleep(0.002)
    delivery.close(timeout=120)


if __name__ == "__main__":
    main()
