"""Each broker is started once, with a consumer that sees everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.services import SERVICES, Consumer, Service


class Running:
    """A broker, its consumer, and where to start reading."""

    def __init__(self, service: Service, consumer: Consumer) -> None:
        self.service, self.consumer = service, consumer


@pytest.fixture(scope="session", params=SERVICES)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    service = SERVICES[request.param](folder)
    consumer = Consumer(service, folder)
    try:
        service.start()
        consumer.start()
        yield Running(service, consumer)
    finally:
        consumer.stop()
        service.stop()
