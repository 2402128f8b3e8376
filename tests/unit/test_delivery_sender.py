"""The sender: back-off, order per source, refusals, and what it tells."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipelines.delivery.backlog import Backlog, Queued
from pipelines.delivery.broker import (
    BadOptionError,
    Broker,
    BrokerError,
    MissingLibraryError,
    Receipt,
    broker_class,
    envelope,
)
from pipelines.delivery.connection import SCHEMES, Connection, parse_connection
from pipelines.delivery.outbox import Outbox
from pipelines.delivery.store import Message
from pipelines.delivery.worker import Backoff, Sender, in_order_of_keys
from tests.waiting import LIMIT_S, wait_for


class Scripted(Broker):
    """Takes messages as its script says: one entry per call of `send`."""

    NAME = "scripted"

    def __init__(self, connection: Connection, script: list[dict[int, str]]) -> None:
        super().__init__(connection)
        self.script, self.sent, self.connects = script, [], 0

    def connect(self) -> None:
        self.connects += 1
        if self.connects == 1:
            raise BrokerError("no broker answers, password hush")

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        self.sent.append([m.number for m in messages])
        fate = self.script.pop(0) if self.script else {}
        for message in messages:
            word = fate.get(message.number, "")
            if word == "lost":
                continue
            yield Receipt(message.number, word)
        if "lost" in fate.values():
            raise BrokerError("the connection broke")

    def close(self) -> None:
        pass


def run(path: Path, script: list[dict[int, str]]) -> tuple[Scripted, Outbox]:
    outbox = Outbox(path)
    outbox.put([Message("door" if n % 2 else "yard", "t", b"%d" % n) for n in range(1, 7)])
    broker = Scripted(Connection("kafka", password=SecretStr("hush")), script)
    backlog = Backlog(path)
    sender = Sender(backlog, broker, Backoff(first=0.01, longest=0.02))
    sender.drain(10)
    sender.run()
    backlog.close()
    return broker, outbox


def test_pauses_double_up_to_a_limit_and_are_shortened_by_half_at_most():
    backoff = Backoff(first=0.5, longest=30)
    assert [backoff.pause(n, chance=0) for n in (1, 2, 3, 7, 1000)] == [0.5, 1, 2, 30, 30]
    assert backoff.pause(3, chance=1) == 1


def test_what_was_not_acknowledged_is_sent_again_and_a_source_stays_in_order(tmp_path):
    broker, outbox = run(tmp_path / "o.db", [{3: "lost"}])
    # 5 was taken, but follows 3 of the same source; 2, 4 and 6 are the other source's.
    assert broker.sent == [[1, 2, 3, 4, 5, 6], [3, 5]]
    assert (outbox.counters().delivered, outbox.counters().queued) == (6, 0)
    outbox.close()


def test_a_refused_message_is_counted_and_holds_nothing_up(tmp_path, caplog):
    broker, outbox = run(tmp_path / "o.db", [{2: "too large"}])
    assert broker.sent == [[1, 2, 3, 4, 5, 6]]
    counters = outbox.counters()
    assert (counters.made, counters.delivered, counters.dropped["refused"]) == (6, 5, 1)
    assert "refuses messages: too large" in caplog.text
    outbox.close()


def test_the_error_of_a_failed_connection_tells_no_password(tmp_path):
    outbox = Outbox(tmp_path / "o.db")
    outbox.put([Message("door", "t", b"1")])
    backlog = Backlog(outbox.path)
    sender = Sender(backlog, Scripted(Connection("kafka", password=SecretStr("hush")), []), Backoff(30, 30))
    thread = threading.Thread(target=sender.run)
    thread.start()
    wait_for(lambda: outbox.sender_state()[0] == "waiting")
    assert outbox.sender_state()[:2] == ("waiting", "no broker answers, password ***")
    sender.stop()
    thread.join(LIMIT_S)
    assert outbox.sender_state()[0] == "stopped"
    backlog.close()
    outbox.close()


def test_only_what_lies_before_a_keys_first_gap_is_settled():
    batch = [Queued(n, str(n), key, "t", b"", 0.0) for n, key in enumerate("aabab", 1)]
    assert list(in_order_of_keys(batch, {1, 3, 4, 5})) == [1, 3, 5]


@pytest.mark.parametrize("name", SCHEMES)
def test_every_adapter_is_found_and_names_unknown_options(name):
    try:
        adapter = broker_class(name)
    except MissingLibraryError as error:
        pytest.skip(str(error))
    place = parse_connection(name, "https://host/" if name == "webhook" else "host", options={"colour": "red"})
    with pytest.raises(BadOptionError, match="colour"):
        adapter(place)


def test_a_missing_library_is_named_with_the_pip_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match=r"mqtt needs .* pip install -e '\.\[mqtt\]'"):
        broker_class("mqtt")


@pytest.mark.parametrize(
    ("payload", "tail"),
    [
        (b'{"a": "\xc3\xa9"}', '"payload": {"a": "é"}}'),
        (b'{\n  "a" : 1\n}', '"payload": {   "a" : 1 }}'),
        (b"\xff\x00", '"payload_base64": "/wA="}'),
        (b"NaN", '"payload_base64": "TmFO"}'),
    ],
)
def test_envelope_is_one_line_of_strict_json(payload, tail):
    text = envelope(Queued(1, "abc-1", "door", "t", payload, 0.0)).decode()
    assert text == '{"id": "abc-1", "key": "door", "topic": "t", ' + tail
