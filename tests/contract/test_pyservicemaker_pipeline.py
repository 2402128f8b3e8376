"""Building pipelines: nodes, properties, links, attachments. Nothing is started here."""

import math
from pathlib import Path

import pytest
from gi.repository import Gst

import elements.portable.pyservicemaker as api
from elements.portable.pyservicemaker import (
    BatchMetadataOperator,
    BufferObserver,
    BufferOperator,
    Pipeline,
    Probe,
    probe,
    register_probe,
)
from elements.portable.pyservicemaker._pydeepstream import Node
from tests.batches import MakePipeline


class PassThrough(BufferOperator):
    def handle_buffer(self, buffer: api.Buffer) -> bool:
        return True


def test_version() -> None:
    assert api.__version__ == "0.0.1"


def test_the_public_name_gives_the_same_classes(pyservicemaker: object) -> None:
    import pyservicemaker._pydeepstream as native
    import pyservicemaker.osd as osd

    assert pyservicemaker.Pipeline is Pipeline
    assert native.Node is Node
    assert osd.Rect is api.osd.Rect


# --- nodes ------------------------------------------------------------------------------------------------------------


def test_nodes_by_name(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("identity")
    node = pipeline["identity"]
    assert isinstance(node, Node)
    assert pipeline["identity"] is node
    assert pipeline._nodes["identity"] is node
    assert (node.name, repr(node)) == ("identity", "Node(name=identity)")
    with pytest.raises(RuntimeError, match=r"^nobody Not found$"):
        pipeline["nobody"]


def test_unknown_factory_raises(make_pipeline: MakePipeline) -> None:
    with pytest.raises(RuntimeError, match=r"^Element creation failed$"):
        make_pipeline().add("no_such_factory", "x")


def test_a_second_element_of_a_name_is_dropped_and_its_properties_hit_the_first(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline().add("videotestsrc", "a").add("fakesink", "a", {"num-buffers": 4})
    assert pipeline["a"].get("num-buffers") == 4
    assert pipeline.gst_pipeline.get_by_name("a").get_factory().get_name() == "videotestsrc"


def test_pipeline_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="does not read"):
        Pipeline("p", str(tmp_path / "p.yaml"))


# --- properties -------------------------------------------------------------------------------------------------------


def test_values_come_back_with_their_type(make_pipeline: MakePipeline) -> None:
    node = make_pipeline("videotestsrc", "fakesink")["fakesink"]
    node.set({"sync": True, "async": False, "blocksize": 512, "ts-offset": -5})
    assert node.get("sync") is True
    assert node.get("async") is False
    assert (node.get("blocksize"), node.get("ts-offset")) == (512, -5)
    assert node.get("last-message") == ""


def test_a_list_of_dicts(make_pipeline: MakePipeline) -> None:
    node = make_pipeline("videotestsrc")["videotestsrc"]
    node.set([{"num-buffers": 2}, {"num-buffers": 9}])
    assert node.get("num-buffers") == 9


def test_trap_27_there_is_no_set_of_key_and_value(make_pipeline: MakePipeline) -> None:
    node = make_pipeline("videotestsrc")["videotestsrc"]
    for arguments in (("num-buffers", 3), ("num-buffers",), (7,)):
        with pytest.raises(TypeError):
            node.set(*arguments)


class Text(str):
    pass


@pytest.mark.parametrize("value", [None, [1], (1, 2), b"x", Path("x"), Text("x"), 2**31, -(2**31) - 1])
def test_other_values_raise_and_nothing_is_set(make_pipeline: MakePipeline, value: object) -> None:
    node = make_pipeline("videotestsrc")["videotestsrc"]
    with pytest.raises(RuntimeError, match="Unable to cast Python instance of type"):
        node.set({"pattern": value, "is-live": True})


@pytest.mark.filterwarnings("ignore:unable to set property")  # GLib's own
def test_enum_by_number_not_by_nick(make_pipeline: MakePipeline) -> None:
    node = make_pipeline("videotestsrc")["videotestsrc"]
    node.set({"pattern": 18})
    assert node.get("pattern") == 18
    node.set({"pattern": "snow"})
    assert node.get("pattern") == 18


def test_trap_26_unknown_properties_are_logged_only(
    make_pipeline: MakePipeline, caplog: pytest.LogCaptureFixture
) -> None:
    node = make_pipeline("videotestsrc")["videotestsrc"]
    node.set({"num-bufers": 3})
    assert "Property num-bufers is not supported by object videotestsrc" in caplog.text
    assert node.get("num-bufers") is None


def test_64_bit_values(make_pipeline: MakePipeline) -> None:
    node = make_pipeline("queue")["queue"]
    node.set({"max-size-time": 5_000_000_000.0})  # the way that NVIDIA's module takes
    assert node.get("max-size-time") == 5_000_000_000
    node.set({"max-size-time": 6_000_000_001})
    assert node.get("max-size-time") == 6_000_000_001


def test_caps_take_text_and_cannot_be_read(make_pipeline: MakePipeline) -> None:
    node = make_pipeline("capsfilter")["capsfilter"]
    node.set({"caps": "video/x-raw, format=RGB"})
    node.set({"caps": "not caps at all"})
    assert node._element.get_property("caps").to_string() == "video/x-raw, format=(string)RGB"
    assert node.get("caps") is None


# --- NVIDIA's child proxy cases ---------------------------------------------------------------------------------------


def test_child_properties_of_a_mixer(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("audiotestsrc", "audiomixer", "fakesink").add("audiotestsrc", "second")
    pipeline.link("second", "audiomixer")
    mixer = pipeline["audiomixer"]
    mixer.set({"sink_0::volume": 0.2, "sink_1::volume": 0.8, "sink_1::mute": True})
    assert math.isclose(mixer.get("sink_0::volume"), 0.2, rel_tol=1e-6)
    assert math.isclose(mixer.get("sink_1::volume"), 0.8, rel_tol=1e-6)
    assert (mixer.get("sink_0::mute"), mixer.get("sink_1::mute")) == (False, True)
    mixer.set({"sink_7::volume": 0.5})
    assert mixer.get("sink_7::volume") is None


def test_child_properties_of_a_compositor(make_pipeline: MakePipeline) -> None:
    compositor = make_pipeline("videotestsrc", "compositor", "fakesink")["compositor"]
    wanted = {"operator": 0, "sizing-policy": 1, "xpos": -100, "width": 640, "zorder": 5}
    compositor.set({f"sink_0::{name}": value for name, value in wanted.items()})
    assert {name: compositor.get(f"sink_0::{name}") for name in wanted} == wanted


# --- links ------------------------------------------------------------------------------------------------------------


def pads_of(pipeline: Pipeline, name: str) -> dict[str, str]:
    """Name of each linked sink pad of a node, and the element that feeds it."""
    sinks = pipeline[name]._element.sinkpads
    return {pad.get_name(): pad.get_peer().get_parent_element().get_name() for pad in sinks if pad.get_peer()}


def test_link_needs_two_names(make_pipeline: MakePipeline) -> None:
    with pytest.raises(Exception, match=r"^Invalid number of arguments$"):
        make_pipeline("identity").link("identity")


def test_mux_pads_follow_the_order_of_links(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("compositor")
    for name in "abc":
        pipeline.add("videotestsrc", name)
    pipeline.link(("b", "compositor"), ("", "sink_%u")).link("a", "compositor")
    pipeline.link(("c", "compositor"), ("src", "sink_3"))
    assert pads_of(pipeline, "compositor") == {"sink_0": "b", "sink_1": "a", "sink_3": "c"}


def test_request_src_pads(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "tee").add("queue", "q").add("compositor", "c")
    pipeline.link(("tee", "q"), ("src_%u", "")).link("tee", "c")
    assert [pad.get_name() for pad in pipeline["tee"]._element.srcpads] == ["src_0", "src_1"]
    assert pads_of(pipeline, "c") == {"sink_0": "tee"}


def test_dynamic_pads_take_the_mux_pad_at_once(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("compositor").add("uridecodebin", "dynamic").add("videotestsrc", "static")
    pipeline.link(("dynamic", "compositor"), ("", "sink_%u")).link("static", "compositor")
    assert [pad.get_name() for pad in pipeline["compositor"]._element.sinkpads] == ["sink_0", "sink_1"]
    assert pads_of(pipeline, "compositor") == {"sink_1": "static"}


def test_caps_that_never_meet(make_pipeline: MakePipeline) -> None:
    with pytest.raises(RuntimeError, match=r"^Elements linking  failed$"):
        make_pipeline("audiotestsrc", "compositor")
    with pytest.raises(RuntimeError, match=r"^Elements linking  failed$"):
        pipeline = make_pipeline("videotestsrc", "identity")
        pipeline.add("fakesink", "f").link(("identity", "f"), ("src", "sink_9"))


def test_a_taken_pad_refuses(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink").add("videotestsrc", "second")
    with pytest.raises(RuntimeError, match=r"^Element linking failed$"):
        pipeline.link("second", "fakesink")


# --- attachments ------------------------------------------------------------------------------------------------------


def test_attach_and_find(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "identity")
    attached = Probe("p", PassThrough())
    pipeline.attach("identity", attached, tips="src")
    assert pipeline["identity"].find("p") is attached
    assert pipeline["identity"].find("q") is None
    with pytest.raises(RuntimeError, match=r"^Custom Object duplicated$"):
        pipeline.attach("identity", Probe("p", PassThrough()))


def test_trap_11_probes_are_no_nodes(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("identity").attach("identity", Probe("p", PassThrough()))
    with pytest.raises(RuntimeError, match="p Not found"):
        pipeline["p"]


def test_trap_17_probes_go_on_src_pads_only(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "identity", "fakesink").add("uridecodebin", "dynamic")
    for node, pad in (("fakesink", ""), ("identity", "sink"), ("identity", "nothing"), ("dynamic", "")):
        with pytest.raises(RuntimeError, match=r"^Probe failure$"):
            pipeline.attach(node, Probe("p", PassThrough()), tips=pad)


def test_what_can_be_attached(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("identity")
    with pytest.raises(Exception, match=r"^Unsupported object type for Pipeline\.attach$"):
        pipeline.attach("identity", PassThrough())
    with pytest.raises(TypeError):
        pipeline["identity"].attach(PassThrough())
    with pytest.raises(RuntimeError, match=r"^Signal creation failed$"):
        pipeline.attach("identity", "no_such_probe", "x")


def test_probe_takes_a_name_and_an_operator() -> None:
    class Observer(BufferObserver):
        pass

    for arguments in (("p", Observer()), ("p", object()), (PassThrough(), "p"), ("p",)):
        with pytest.raises(TypeError):
            Probe(*arguments)


def test_init_must_be_called_when_overridden() -> None:
    class Forgetful(BatchMetadataOperator):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="__init__"):
        Forgetful()


def test_registered_probes_by_name(make_pipeline: MakePipeline) -> None:
    @probe("contract_probe", {"font-size": ("integer", 12, "size"), "title": ("string", "x")})
    class Registered(PassThrough):
        pass

    assert register_probe("contract_probe", PassThrough) is PassThrough  # the first one stays
    pipeline = make_pipeline("identity")
    pipeline.attach("identity", "contract_probe", "mine", properties={"font-size": 18, "unknown": 1})
    made = pipeline["identity"].find("mine")
    assert isinstance(made._operator, Registered)
    assert made._properties == {"gpu-id": 0, "font-size": 18, "title": "x"}
    with pytest.raises(RuntimeError, match=r"^Value type mismatch$"):
        made.set({"font-size": "big"})
    with pytest.raises(AttributeError):
        pipeline.add("identity", "i2").attach("i2", "contract_probe", properties={"font-size": 1})


def test_float_parameters_are_unsupported() -> None:
    with pytest.raises(RuntimeError, match=r"^Unsupported type float$"):
        register_probe("contract_float", PassThrough, {"x": ("float", 1.0)})


def test_plain_probes_take_any_property() -> None:
    made = Probe("p", PassThrough())
    made.set({"anything": 4})
    assert made._properties["anything"] == 4
    assert made._operator.get_property("anything") is None  # only inside the callback


def test_gst_pipeline_is_exposed(make_pipeline: MakePipeline) -> None:
    assert isinstance(make_pipeline().gst_pipeline, Gst.Pipeline)
