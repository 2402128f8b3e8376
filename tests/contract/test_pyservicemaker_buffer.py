"""Buffer and Tensor."""

import numpy as np
import pytest
from gi.repository import Gst

from elements.portable.carrier import new_batch_buffer
from elements.portable.meta import BatchMeta
from elements.portable.pyservicemaker import Buffer, ColorFormat, as_tensor
from elements.portable.pyservicemaker._pydeepstream import Tensor
from elements.portable.surface import Surface
from elements.portable.video_buffer import twin_of
from tests.batches import batch_of_two


@pytest.fixture
def buffer() -> Buffer:
    return Buffer(new_batch_buffer(batch_of_two(5), 200, 40))


def test_a_batched_buffer(buffer: Buffer) -> None:
    assert (buffer.batch_size, buffer.timestamp) == (2, 200)
    assert [frame.frame_number for frame in buffer.batch_meta.frame_items] == [5, 5]
    assert buffer.get_chunk_id(0) == 0


def test_empty_and_plain_buffers() -> None:
    assert (Buffer().batch_size, Buffer().timestamp) == (0, 2**64 - 1)
    for source in ([1, 2, 255], (1, 2), bytearray(b"ab"), memoryview(b"ab"), []):
        plain = Buffer(source)
        assert (plain.batch_size, plain.timestamp, plain.batch_meta.n_frames) == (1, 2**64 - 1, 0)


@pytest.mark.parametrize("source", [b"ab", "ab", np.zeros(4, np.uint8), [256], [-1], [1.5], [np.uint8(3)], 7])
def test_trap_15_what_silently_ends_a_stream_there_raises_here(source: object) -> None:
    with pytest.raises(TypeError, match="list, tuple, bytearray or memoryview"):
        Buffer(source)


def test_metadata_of_a_copied_buffer_is_its_own() -> None:
    original = new_batch_buffer(batch_of_two(), 0, 0)
    branch = Buffer(twin_of(original))
    metadata = branch.batch_meta
    for frame in metadata.frame_items:
        frame.append(metadata.acquire_object_meta())
    assert [len(list(f.object_items)) for f in branch.batch_meta.frame_items] == [1, 1]
    assert [len(list(f.object_items)) for f in Buffer(original).batch_meta.frame_items] == [0, 0]


# --- extract ----------------------------------------------------------------------------------------------------------


def test_extract_gives_rgb_on_the_cpu(buffer: Buffer) -> None:
    tensor = buffer.extract(1)
    assert tensor
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((3, 4, 3), (12, 3, 1), np.uint8)
    assert (tensor.device_type, tensor.size()) == ("CPU", 36)
    assert tensor.__dlpack_device__() == (1, 0)
    assert np.array_equal(np.from_dlpack(tensor), np.full((3, 4, 3), 1))


def test_consumers_that_do_not_know_read_only_memory_get_a_copy() -> None:
    picture = np.zeros((2, 2, 3), np.uint8)
    picture.flags.writeable = False
    tensor = Buffer(new_batch_buffer(BatchMeta(surfaces=[Surface.of_array(picture)]), 0, 0)).extract(0)
    assert type(tensor.__dlpack__()).__name__ == "PyCapsule"
    assert type(tensor.__dlpack__(stream=1)).__name__ == "PyCapsule"


@pytest.mark.parametrize("batch_id", [-1, 2])
def test_extract_checks_the_batch_id(buffer: Buffer, batch_id: int) -> None:
    void = buffer.extract(batch_id)
    assert not void
    assert (void.size(), void.device_type) == (0, "NONE")
    assert not void.clone()
    for read in (lambda: void.shape, lambda: void.strides, lambda: void.dtype, lambda: void.__dlpack__()):
        with pytest.raises(RuntimeError, match="out of range: the batch has 2 pictures"):
            read()


def test_extract_wants_rgb(buffer: Buffer) -> None:
    surface = Surface.of_array(np.zeros((2, 2, 3), np.uint8)).resized(2, 2, "NV12")
    tensor = Buffer(new_batch_buffer(BatchMeta(surfaces=[surface]), 0, 0)).extract(0)
    with pytest.raises(RuntimeError, match="NV12"):
        _ = tensor.shape
    with pytest.raises(RuntimeError, match="no batch"):
        _ = Buffer([1]).extract(0).shape


# --- tensors ----------------------------------------------------------------------------------------------------------


def test_tensors_have_no_constructor() -> None:
    with pytest.raises(TypeError):
        Tensor()


def test_clone_packs_rows_and_owns_its_memory() -> None:
    padded = np.arange(24, dtype=np.uint8).reshape(2, 12)[:, :9].reshape(2, 9)
    source = as_tensor(padded, "HW")
    assert source.strides == (12, 1)
    twin = source.clone()
    assert twin.strides == (9, 1)
    padded[:] = 0
    assert np.from_dlpack(twin)[1, 0] == 12
    with pytest.raises(RuntimeError, match="Misaligned strides"):
        as_tensor(padded.T, "WH").clone()


def test_as_tensor_needs_dlpack_and_a_format() -> None:
    assert not as_tensor([1, 2], "x")
    with pytest.raises(TypeError):
        as_tensor(np.zeros(3))

    class OnGpu:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(RuntimeError, match="Unsupported Tensor Device Type"):
        as_tensor(OnGpu(), "HWC")


def test_wrap_takes_flat_bytes_only() -> None:
    wrapped = as_tensor(np.array([1, 2, 3], np.uint8), "JPEG").wrap(ColorFormat.I420)
    assert isinstance(wrapped, Buffer)
    assert wrapped.batch_size == 1
    for wrong in (np.zeros((2, 2), np.uint8), np.zeros(3, np.float32)):
        with pytest.raises(RuntimeError, match="Failure in wrapping"):
            as_tensor(wrong, "x").wrap(ColorFormat.RGB)


def test_there_is_no_gpu_memory() -> None:
    with pytest.raises(RuntimeError, match="host tensors only"):
        as_tensor(np.zeros(3, np.uint8), "x").to_gpu(0)


def test_the_buffer_is_referenced() -> None:
    gst_buffer = Gst.Buffer.new_wrapped(b"abcd")
    gst_buffer.pts = 9
    assert Buffer(gst_buffer).timestamp == 9
