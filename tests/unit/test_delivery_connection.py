"""Addresses of brokers: DeepStream's forms, URLs, what is wrong with them, and that nothing tells a password."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipelines.delivery.connection import AddressError, Tls, parse_connection

SECRET = "p@ss/w;rd"


@pytest.mark.parametrize(
    ("broker", "address", "hosts", "topic"),
    [
        ("kafka", "localhost;9092", (("localhost", 9092),), ""),
        ("kafka", "localhost;9092;entrance", (("localhost", 9092),), "entrance"),
        ("kafka", "a:9092,b:9093", (("a", 9092), ("b", 9093)), ""),
        ("kafka", "kafka://a,b:9093/entrance", (("a", 9092), ("b", 9093)), "entrance"),
        ("mqtt", "10.0.0.1;1884", (("10.0.0.1", 1884),), ""),
        ("mqtt", "mqtt://host/site/door", (("host", 1883),), "site/door"),
        ("redis", "host", (("host", 6379),), ""),
        ("nats", "[::1]:4223", (("::1", 4223),), ""),
        ("nats", "::1;4223", (("::1", 4223),), ""),
        ("webhook", "https://host/hook?x=1", (("host", 443),), ""),
        ("webhook", "http://host:8080/hook", (("host", 8080),), ""),
    ],
)
def test_hosts_and_topic(broker, address, hosts, topic):
    found = parse_connection(broker, address)
    assert (found.hosts, found.topic) == (hosts, topic)


def test_schemes_that_mean_tls():
    assert parse_connection("mqtt", "mqtts://host").tls == Tls()
    assert parse_connection("mqtt", "mqtts://host").hosts == (("host", 8883),)
    assert parse_connection("amqp", "amqps://host/vhost").path == "vhost"
    assert parse_connection("mqtt", "mqtt://host").tls is None


def test_credentials_of_deepstream_and_of_urls_are_the_same():
    one = parse_connection("amqp", "host;5672;guard;s;ecret")
    other = parse_connection("amqp", "amqp://guard:s%3Becret@host")
    assert (one.username, one.secret) == (other.username, other.secret) == ("guard", "s;ecret")


def test_keys_win_over_the_address():
    found = parse_connection(
        "mqtt", "mqtts://a:b@host/t", topic="own", username="u", password=SecretStr("p"), tls=Tls(Path("ca.pem"))
    )
    assert (found.topic, found.username, found.secret, found.tls) == ("own", "u", "p", Tls(Path("ca.pem")))


@pytest.mark.parametrize(
    ("broker", "address", "expected"),
    [
        ("kafka", "", "host;port[;topic]"),
        ("kafka", f"host;{SECRET}", "host;port[;topic]"),
        ("mqtt", f"user:{SECRET}@host", "host;port[;topic]"),
        ("amqp", "host;99999;u;p", "host;port[;username[;password]]"),
        ("amqp", "http://u:hush@host", "amqp://host:port"),
        ("webhook", "host;80", "https://host/path"),
        ("pigeon", "host;80", "known are kafka, mqtt, amqp, redis, nats, webhook, file"),
        ("amqp", "amqp://user:pa/ss@host", "%2F"),
    ],
)
def test_what_is_wrong_says_what_is_expected_and_no_secret(broker, address, expected):
    with pytest.raises(AddressError) as caught:
        parse_connection(broker, address)
    assert expected in str(caught.value)
    for secret in ("p@ss", "hush", "pa/ss"):
        assert secret not in str(caught.value)


def test_a_password_is_in_no_text():
    found = parse_connection("amqp", f"host;5672;guard;{SECRET}")
    assert found.secret == SECRET
    assert SECRET not in f"{found!r} {found} {found.name}"
    assert found.name == "amqp at host:5672"
    assert found.redact(f"no access with {SECRET} or p%40ss%2Fw%3Brd") == "no access with *** or ***"
    hook = parse_connection("webhook", "https://host/services/T0/token")
    assert "token" not in f"{hook!r} {hook.name} {hook.redact('cannot open /services/T0/token')}"
    assert pickle.loads(pickle.dumps(found)) == found
