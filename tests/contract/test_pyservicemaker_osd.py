"""The osd types: as strict as NVIDIA's."""

import copy

import numpy as np
import pytest

from elements.portable.pyservicemaker import osd


def test_constructors_take_no_arguments_and_zero_everything() -> None:
    rect = osd.Rect()
    assert (rect.left, rect.top, rect.width, rect.height, rect.rotation_angle) == (0, 0, 0, 0, 0)
    assert (rect.border_width, rect.has_bg_color) == (0, 0)
    assert osd.Arrow().head is osd.ArrowHead.Start
    for kind in (osd.Text, osd.TextParams, osd.Rect, osd.Line, osd.Arrow, osd.Circle, osd.Mask):
        with pytest.raises(TypeError):
            kind(1)


def test_color_needs_four_numbers_and_font_has_no_constructor() -> None:
    assert osd.Color(1, 0.5, 0, 1).r == 1.0
    for wrong in ((), (1, 0, 0), ("1", 0, 0, 1)):
        with pytest.raises(TypeError):
            osd.Color(*wrong)
    with pytest.raises(TypeError, match="No constructor defined"):
        osd.Font()


@pytest.mark.parametrize("value", [-1, 3.0, "3", None, 2**32])
def test_integer_coordinates_are_unsigned(value: object) -> None:
    text = osd.Text()
    with pytest.raises(TypeError, match=r"osd\.Text\.x_offset"):
        text.x_offset = value
    text.x_offset = np.int64(7)
    assert text.x_offset == 7


def test_a_misspelt_attribute_raises() -> None:
    with pytest.raises(AttributeError):
        osd.Rect().boder_width = 2


def test_nested_structs_are_live_and_assigning_copies() -> None:
    rect, red = osd.Rect(), osd.Color(1, 0, 0, 1)
    rect.border_color = red
    red.r = 0.25
    assert rect.border_color.r == 1.0
    rect.border_color.g = 0.5
    assert rect.border_color.g == 0.5
    with pytest.raises(TypeError):
        rect.border_color = (1, 0, 0, 1)


def test_font_name_is_written_as_family_and_read_as_text() -> None:
    font = osd.Text().font
    font.name = osd.FontFamily.Serif
    assert font.name == "Serif"
    with pytest.raises(TypeError):
        font.name = "Serif"


def test_trap_8_unset_texts_are_empty_instead_of_a_crash() -> None:
    assert osd.Text().display_text == ""
    assert osd.TextParams().display_text == ""
    assert osd.Text().font.name == ""


def test_text_takes_bytes() -> None:
    text = osd.Text()
    text.display_text = "Straße".encode()
    assert text.display_text == "Straße"


def test_trap_9_mask_keeps_the_array_and_refuses_what_would_be_misread() -> None:
    mask = osd.Mask()
    assert mask.mask_array.size == 0
    mask.mask_array = np.ones((2, 3), np.float32)
    assert mask.mask_array.shape == (2, 3)
    for wrong in (np.ones((2, 3)), np.ones(4, np.float32), np.ones((2, 6), np.float32)[:, ::2], [[1.0]]):
        with pytest.raises(TypeError):
            mask.mask_array = wrong


def test_copies_are_independent_and_equal() -> None:
    rect = osd.Rect()
    rect.left = 5
    twin = copy.deepcopy(rect)
    assert twin == rect
    twin.border_color.r = 1
    assert twin != rect
    assert rect.border_color.r == 0
