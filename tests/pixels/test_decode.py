from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from pixels.pictures import colour, every_format, grey, png_bomb, save
from plantain.pixels.decode import BadImage, decode_mask, decode_untrusted
from plantain.pixels.encode import encode_mask

FILES = every_format()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow on damaged tags


@pytest.mark.parametrize("kind", FILES)
def test_decode_untrusted_reads_every_format(kind: str) -> None:
    pixels = decode_untrusted(FILES[kind], "a")
    assert pixels.shape == (40, 60, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert pixels.std() > 10


@pytest.mark.parametrize("kind", ["png colour", "bmp", "tiff", "tiff lzw", "webp"])
def test_decode_untrusted_lossless_is_exact(kind: str) -> None:
    assert np.array_equal(decode_untrusted(FILES[kind], "a"), colour())


@pytest.mark.parametrize("kind", ["jpeg grey", "jpeg colour", "jpeg progressive", "jpeg cmyk"])
def test_decode_untrusted_jpeg_agrees_with_pillow(kind: str) -> None:
    expected = np.asarray(Image.open(io.BytesIO(FILES[kind])).convert("RGB"))
    assert np.array_equal(decode_untrusted(FILES[kind], "a"), expected)


def test_decode_untrusted_lays_transparency_on_black() -> None:
    image = Image.new("RGBA", (3, 1))
    image.putdata([(255, 255, 255, 0), (255, 255, 255, 128), (200, 100, 50, 255)])
    # 255 * 128 / 255 = 128.
    assert decode_untrusted(save(image, "PNG"), "a").tolist() == [
        [[0, 0, 0], [128, 128, 128], [200, 100, 50]]
    ]


@pytest.mark.parametrize(("top", "shift"), [(255, 0), (256, 1), (4095, 4), (65535, 8)])
def test_decode_untrusted_scales_16_bit_by_bits_in_use(top: int, shift: int) -> None:
    values = np.array([[0, top // 2, top]], np.uint16)
    got = decode_untrusted(save(Image.fromarray(values), "PNG"), "a")
    assert got[0, :, 0].tolist() == (values[0] >> shift).tolist()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("make", [grey, colour])
def test_decode_untrusted_honours_exif_orientation(orientation: int, kind: str, make: object) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = save(Image.fromarray(make()), kind, exif=exif)  # type: ignore[operator]
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    assert np.array_equal(decode_untrusted(data, "a"), np.asarray(expected))


def test_decode_untrusted_refuses_a_bomb_by_its_header() -> None:
    with pytest.raises(BadImage, match="900 million pixels, refused undecoded"):
        decode_untrusted(png_bomb(30_000, 30_000), "bomb.png")
    with pytest.raises(BadImage, match="9000x9000 pixels, refused undecoded"):
        decode_untrusted(png_bomb(9_000, 9_000), "bomb.png")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty file"),
        (bytes(128) + b"DICM" + bytes(50), "DICOM"),
        (b"\xff\xd8\xff\xe0" + bytes(9), "damaged JPEG"),
        (bytes(range(256)), "not an image that we read"),
    ],
)
def test_decode_untrusted_says_what_is_wrong(data: bytes, says: str) -> None:
    with pytest.raises(BadImage, match=says) as caught:
        decode_untrusted(data, "folder/x.jpg")
    assert str(caught.value).startswith("folder/x.jpg: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_decode_untrusted_refuses_several_frames(kind: str) -> None:
    frames = [Image.fromarray(colour(seed=k)) for k in range(3)]
    data = save(frames[0], kind, save_all=True, append_images=frames[1:])
    with pytest.raises(BadImage, match="several frames"):
        decode_untrusted(data, "a")


@given(st.sampled_from(sorted(FILES)), st.floats(0, 1))
def test_decode_untrusted_cut_file_is_refused_or_whole(kind: str, share: float) -> None:
    data = FILES[kind]
    try:
        pixels = decode_untrusted(data[: int(share * len(data))], "a")
    except BadImage:
        return
    assert np.array_equal(pixels, decode_untrusted(data, "a"))


@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=20),
    st.booleans(),
)
def test_decode_untrusted_flipped_bytes_raise_only_bad_image(
    kind: str, flips: list[tuple[float, int]], early: bool
) -> None:
    data = bytearray(FILES[kind])
    for share, value in flips:
        # Half of the examples damage the headers, where the parsers are.
        data[int(share * (min(len(data), 300) if early else len(data)))] = value
    try:
        pixels = decode_untrusted(bytes(data), "a")
    except BadImage as error:
        assert "\n" not in str(error)
        return
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert pixels.dtype == np.uint8


def test_decode_mask_returns_what_was_encoded() -> None:
    mask = grey() > 128
    assert np.array_equal(decode_mask(encode_mask(mask)), mask)
    assert Image.open(io.BytesIO(encode_mask(mask))).mode == "L"
