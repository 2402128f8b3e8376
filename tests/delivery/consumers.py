"""A consumer in a process of its own: writes ``{"id": …, "n": …, "key": …}`` per message to standard output.

    python -m tests.delivery.consumers BROKER HOST PORT TOPIC

It says ``ready`` when messages from then on reach it, and survives the broker's absence.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "gstorch-test"


def say(text: str) -> None:
    print(text, flush=True)


def got(message_id: str, payload: bytes) -> None:
    say(json.dumps({"id": message_id, **json.loads(payload)}))


def kafka(host: str, port: int, topic: str) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {"bootstrap.servers": f"{host}:{port}", "group.id": NAME, "reconnect.backoff.max.ms": 200}
    consumer = Consumer({**settings, "fetch.wait.max.ms": 20, "log_level": 0})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    say("ready")
    while True:
        for message in consumer.consume(1000, timeout=0.1):
            if not message.error():
                got(dict(message.headers())["gstorch-id"].decode(), message.value())


def mqtt(host: str, port: int, topic: str) -> None:
    from paho.mqtt import client as paho
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    client = paho.Client(paho.CallbackAPIVersion.VERSION2, NAME, protocol=paho.MQTTv5)
    session = Properties(PacketTypes.CONNECT)
    session.SessionExpiryInterval = 3600
    client.reconnect_delay_set(1, 1)
    client.on_connect = lambda *_: client.subscribe(topic, 1)
    client.on_subscribe = lambda *_: say("ready")
    client.on_message = lambda _c, _d, m: got(dict(m.properties.UserProperty)["gstorch-id"], m.payload)
    client.connect(host, port, clean_start=False, properties=session)
    client.loop_forever(retry_first_connection=True)


def amqp(host: str, port: int, topic: str) -> None:
    import pika

    def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        got(properties.message_id, body)
        channel.basic_ack(method.delivery_tag)

    while True:
        with contextlib.suppress(pika.exceptions.AMQPError, OSError):
            channel = pika.BlockingConnection(pika.ConnectionParameters(host, port)).channel()
            channel.queue_declare(NAME, durable=True)
            channel.queue_bind(NAME, "amq.topic", topic)
            channel.basic_consume(NAME, on_message)
            say("ready")
            channel.start_consuming()
        time.sleep(0.2)


def redis(host: str, port: int, topic: str) -> None:
    from redis import Redis, RedisError

    client, last = Redis(host=host, port=port), "0"
    say("ready")
    while True:
        try:
            for _, entries in client.xread({topic: last}, count=1000, block=100):
                for last, fields in entries:  # noqa: B007
                    got(fields[b"id"].decode(), fields[b"metadata"])
        except (RedisError, OSError):
            time.sleep(0.1)


def nats(host: str, port: int, topic: str) -> None:
    async def consume() -> None:
        import nats as client
        from nats.errors import Error

        async def ignore(*_: object) -> None:
            pass

        server = f"nats://{host}:{port}"
        connection = await client.connect(
            server, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=ignore, disconnected_cb=ignore
        )
        stream = connection.jetstream()
        await stream.add_stream(name=NAME, subjects=[topic])
        pull = await stream.pull_subscribe(topic, durable=NAME)
        say("ready")
        while True:
            try:
                for message in await pull.fetch(500, timeout=0.5):
                    got(message.headers["Nats-Msg-Id"], message.data)
                    await message.ack()
            except (Error, TimeoutError, OSError):
                await asyncio.sleep(0.05)

    asyncio.run(consume())


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        for message in json.loads(self.rfile.read(int(self.headers["Content-Length"]))):
            got(message["id"], json.dumps(message["payload"]).encode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def webhook(host: str, port: int, _topic: str) -> None:
    server = ThreadingHTTPServer((host, port), _Endpoint)
    say("ready")
    server.serve_forever()


if __name__ == "__main__":
    broker, host, port, topic = sys.argv[1:]
    {"kafka": kafka, "mqtt": mqtt, "amqp": amqp, "redis": redis, "nats": nats, "webhook": webhook}[broker](
        host, int(port), topic
    )
