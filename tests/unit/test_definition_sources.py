"""Sources of a definition: addresses, credentials, names."""

from pathlib import Path

import pytest

from pipelines.definition import Source, definition_from_mapping
from tests.unit.definition_files import load


@pytest.mark.parametrize(
    ("uri", "location", "gst_uri"),
    [
        ("clips/door.mp4", "<here>/clips/door.mp4", "file://<here>/clips/door.mp4"),
        ("/clips/door.mp4", "/clips/door.mp4", "file:///clips/door.mp4"),
        ("~/a b#1%20?.mp4", "<here>/~/a b#1%20?.mp4", "file://<here>/~/a%20b%231%2520%3F.mp4"),
        ("東門.mp4", "<here>/東門.mp4", "file://<here>/%E6%9D%B1%E9%96%80.mp4"),
        ("file:///a%20b%23.mp4", "/a b#.mp4", "file:///a%20b%23.mp4"),
        ("file://clips/a%20b.mp4", "<here>/clips/a b.mp4", "file://<here>/clips/a%20b.mp4"),
        ("file://../a.mp4", "<here>/../a.mp4", "file://<here>/../a.mp4"),
        ("file://localhost/a.mp4", "/a.mp4", "file:///a.mp4"),
        ("FILE:///a.mp4", "/a.mp4", "file:///a.mp4"),
        ("rtsp:/a.mp4", "<here>/rtsp:/a.mp4", "file://<here>/rtsp%3A/a.mp4"),
        ("http://h/a.mp4", "http://h/a.mp4", "http://h/a.mp4"),
        ("rtsp://h:8554/a?b=c", "rtsp://h:8554/a?b=c", "rtsp://h:8554/a?b=c"),
        ("rtsp://u:p%40s@h/a", "rtsp://h/a", "rtsp://u:p%40s@h/a"),
        ("rtsp://u:p@s@h/a", "rtsp://h/a", "rtsp://u:p%40s@h/a"),
        ("rtsp://u@h/a@b", "rtsp://h/a@b", "rtsp://u@h/a@b"),
        ("rtsp://h:554/a?to=b@c", "rtsp://h:554/a?to=b@c", "rtsp://h:554/a?to=b@c"),
        ("rtsp://[2001:db8::1]/a@b", "rtsp://[2001:db8::1]/a@b", "rtsp://[2001:db8::1]/a@b"),
        ("http://h/?user=u&pwd=x&c=1", "http://h/?user=***&pwd=***&c=1", "http://h/?user=u&pwd=x&c=1"),
    ],
)
def test_addresses(tmp_path: Path, uri: str, location: str, gst_uri: str) -> None:
    source = definition_from_mapping({"pipeline": "x", "sources": [uri]}, tmp_path).sources[0]
    assert source.location == location.replace("<here>", str(tmp_path))
    assert source.gst_uri.get_secret_value() == gst_uri.replace("<here>", str(tmp_path))


def test_credentials_in_keys_are_encoded() -> None:
    source = Source(uri="rtsp://192.0.2.1:554/a", username="me@home", password="p:/?#[]@%40 ü")
    assert source.gst_uri.get_secret_value() == (
        "rtsp://me%40home:p%3A%2F%3F%23%5B%5D%40%2540%20%C3%BC@192.0.2.1:554/a"
    )


@pytest.mark.parametrize(
    ("uri", "kind", "live"),
    [
        ("a.mp4", "file", False),
        ("http://h/a.mp4", "http", False),
        ("RTSP://h/a", "rtsp", True),
        ("rtsps://h", "rtsp", True),
    ],
)
def test_kinds(uri: str, kind: str, live: bool) -> None:
    source = Source(uri=uri)
    assert (source.kind, source.live) == (kind, live)


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    text = """
sources:
  - rtsp://u:hunter2@h/a
  - {uri: rtsp://h/b, username: u, password: hunter2}
  - {uri: "${CAMERA}"}
  - http://h/c?user=u&password=hunter2
stages:
  - node: {factory: rtspclientsink, properties: {location: "rtsp://h/${KEY}"}}
"""
    definition = load(tmp_path, text, CAMERA="rtsp://u:hunter2@h/d", KEY="hunter2")
    assert "hunter2" not in repr(definition) + str(definition) + "".join(s.location for s in definition.sources)


def test_names_of_sources(tmp_path: Path) -> None:
    text = """
sources:
  - a/clip.mp4
  - b/clip.avi
  - {uri: c/door.mp4, name: clip-2}
  - rtsp://u:p@192.0.2.10:8554/stream
  - rtsp://192.0.2.10/stream2
  - http://example.com/v/%C3%BC.mp4?x=1
  - http://example.com/live
  - file:///a%20b.mp4
  - 東門.mp4
"""
    assert [source.name for source in load(tmp_path, text).sources] == [
        "clip",
        "clip-3",
        "clip-2",
        "192.0.2.10",
        "192.0.2.10-2",
        "ü",
        "example.com",
        "a b",
        "東門",
    ]
