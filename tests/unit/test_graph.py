from __future__ import annotations

import pytest

from pipelines.graph import Attachment, Graph, Node
from pipelines.render import as_dot, as_mermaid, as_text


def small_graph() -> Graph:
    graph = Graph("small")
    graph.add(Node("camera", "nvurisrcbin", {"uri": "rtsp://u:secret@h/x", "source-id": 0}, frozenset({"uri"})))
    graph.add(Node("caps", "capsfilter", {"caps": "video/x-raw, format=RGB"}))
    graph.add(Node("sink", "fakesink", {"sync": False}))
    graph.link("camera", "caps", target_pad="sink_%u")
    graph.link("caps", "sink")
    graph.attach(Attachment("caps", "counter", "a.b:C"))
    return graph


def test_a_second_node_of_a_name_is_refused():
    graph = small_graph()
    with pytest.raises(ValueError, match="two nodes are named 'sink'"):
        graph.add(Node("sink", "fakesink"))


def test_links_and_attachments_need_their_nodes():
    graph = small_graph()
    with pytest.raises(KeyError, match="no node 'nowhere'"):
        graph.link("sink", "nowhere")
    with pytest.raises(KeyError, match="no node 'nowhere'"):
        graph.attach(Attachment("nowhere", "x", "a:B"))


def test_text_names_nodes_links_caps_and_what_is_a_stand_in():
    assert as_text(small_graph(), {"nvurisrcbin"}).splitlines() == [
        "pipeline small",
        "",
        "nodes",
        "  camera  nvurisrcbin  stand-in  uri=*** source-id=0",
        '  caps    capsfilter   real      caps="video/x-raw, format=RGB"',
        "  sink    fakesink     real      sync=false",
        "",
        "links",
        "  camera -> caps.sink_%u",
        "  caps -> sink  [video/x-raw, format=RGB]",
        "",
        "operators",
        "  counter on caps: a.b:C",
    ]


@pytest.mark.parametrize("render", [as_text, as_dot, as_mermaid])
def test_no_rendering_shows_a_secret(render):
    assert "secret" not in render(small_graph(), set())


def test_dot_and_mermaid_have_every_node_and_link():
    dot = as_dot(small_graph(), {"nvurisrcbin"})
    assert '"camera" [label="camera\\nnvurisrcbin", style=dashed];' in dot
    assert '"caps" -> "sink" [label="[video/x-raw, format=RGB]"];' in dot
    mermaid = as_mermaid(small_graph(), {"nvurisrcbin"})
    assert 'n0["camera<br/>nvurisrcbin"]:::standin' in mermaid
    assert "n1 --> n2" in mermaid
