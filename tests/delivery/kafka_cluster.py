"""A Kafka cluster in a process of its own: librdkafka's mock cluster, whose broker can be taken away and brought back.

Prints its addresses. Then each line of standard input is a command: ``down`` or ``up``.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


def librdkafka() -> ctypes.CDLL:
    import confluent_kafka

    folder = Path(confluent_kafka.__file__).parent
    (library,) = [*folder.parent.glob("confluent_kafka.libs/librdkafka-*.so*")] or ["librdkafka.so.1"]
    loaded = ctypes.CDLL(str(library))
    for name in ("conf_new", "new", "handle_mock_cluster"):
        getattr(loaded, f"rd_kafka_{name}").restype = ctypes.c_void_p
    loaded.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return loaded


def main() -> None:
    kafka = librdkafka()
    text = ctypes.create_string_buffer(512)
    configuration = ctypes.c_void_p(kafka.rd_kafka_conf_new())
    kafka.rd_kafka_conf_set(configuration, b"test.mock.num.brokers", b"1", text, 512)
    kafka.rd_kafka_conf_set(configuration, b"log_level", b"0", text, 512)
    producer = ctypes.c_void_p(kafka.rd_kafka_new(0, configuration, text, 512))
    cluster = ctypes.c_void_p(kafka.rd_kafka_handle_mock_cluster(producer))
    for topic in sys.argv[1:]:
        kafka.rd_kafka_mock_topic_create(cluster, topic.encode(), 2, 1)
    print(kafka.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        change = {"down": kafka.rd_kafka_mock_broker_set_down, "up": kafka.rd_kafka_mock_broker_set_up}[line.strip()]
        change(cluster, 1)
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
