"""Outlines in their unit frame: the built-in three, and what SVG paths, glyphs and pictures are turned into."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.patches import Wedge
from PIL import Image, ImageDraw

from gerd.geometry.shapes import Outline, outline, rings_of_mask, rings_of_svg, rings_of_svg_file, rings_of_text

SQUARE = [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]
ONE = np.eye(2)


def svg(path: str) -> Outline:
    return outline(rings_of_svg(path))


def sides(shape: Outline) -> tuple[float, float]:
    """Width and height of the outline's box."""
    low, high = shape.extent(ONE)
    width, height = high - low
    return float(width), float(height)


def assert_fitted(shape: Outline) -> None:
    """Centred on the origin, the longer side 1, no vertex twice in a row."""
    low, high = shape.extent(ONE)
    assert np.abs(low + high).max() <= 2**-19
    assert max(sides(shape)) == pytest.approx(1, abs=2**-19)
    for ring in shape.rings:
        assert (ring != np.roll(ring, 1, axis=0)).any(axis=1).all()


class TestArea:
    @pytest.mark.parametrize(
        ("shape", "area"),
        [
            ("square", 1.0),
            ("circle", math.pi / 4),
            ("triangle", 0.5),
            ([SQUARE[::-1]], 1.0),
            ([[[0, 0], [3, 0], [3, 1], [1, 1], [1, 3], [0, 3]]], 5.0),
        ],
        ids=["square", "circle", "triangle", "backwards", "concave"],
    )
    def test_of_one_ring(self, shape: object, area: float) -> None:
        assert outline(shape).area == pytest.approx(area, rel=1e-12)  # type: ignore[arg-type]

    def test_a_ring_inside_a_ring_is_a_hole_and_a_ring_in_that_is_an_island(self) -> None:
        rings = [np.array(SQUARE) * size for size in (4.0, 2.0, 1.0)]
        assert outline(rings[:2]).area == pytest.approx(16 - 4)
        assert outline(rings).area == pytest.approx(16 - 4 + 1)
        assert outline([rings[2], rings[0][::-1], rings[1]]).area == pytest.approx(16 - 4 + 1)

    def test_rings_beside_each_other_add_up(self) -> None:
        assert outline([SQUARE, np.add(SQUARE, [3, 0])]).area == pytest.approx(2)


class TestExtent:
    @pytest.mark.parametrize("shape", ["square", "circle", "triangle"])
    def test_a_built_in_shape_fills_the_unit_box(self, shape: str) -> None:
        low, high = outline(shape).extent(ONE)
        assert (low.tolist(), high.tolist()) == ([-0.5, -0.5], [0.5, 0.5])

    def test_the_triangle_points_right(self) -> None:
        (ring,) = outline("triangle").rings
        assert ring[ring[:, 0].argmax()].tolist() == [0.5, 0.0]

    @given(st.lists(st.floats(-9, 9), min_size=4, max_size=4))
    def test_under_a_map_it_is_that_of_the_mapped_border(self, numbers: list[float]) -> None:
        linear = np.array(numbers).reshape(2, 2)
        angle = np.linspace(0, 2 * np.pi, 20_001)
        borders = {"circle": 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1), "square": np.array(SQUARE)}
        for name, border in borders.items():
            low, high = outline(name).extent(linear)
            moved = border @ linear.T
            assert low == pytest.approx(moved.min(axis=0), abs=1e-6)
            assert high == pytest.approx(moved.max(axis=0), abs=1e-6)

    @pytest.mark.parametrize("name", ["circle", "triangle"])
    def test_of_many_maps_at_once_is_that_of_each(self, name: str) -> None:
        maps = np.random.default_rng(0).normal(size=(3, 2, 2, 2))
        low, high = outline(name).extent(maps)
        assert low.shape == high.shape == (3, 2, 2)
        for place in np.ndindex(3, 2):
            alone = outline(name).extent(maps[place])
            assert np.array_equal([low[place], high[place]], alone)


class TestSvg:
    @pytest.mark.parametrize(
        "path",
        [
            "M 10 10 L 14 10 L 14 12 L 10 12 Z",
            "M10,10 14,10 14,12 10,12",
            "m 10 10 l 4 0 l 0 2 l -4 0 z",
            "M10 10h4v2h-4z",
            "M10 10 H14 V12 H10 Z",
            "m1e1+10 4-0 0 2-4 0z",
            "M 10 10 L 14 10 L 14 12 L 10 12 L 10 10 Z Z",
            "M10 10 C10 10 14 10 14 10 Q 14 11 14 12 L 10 12 Z",
        ],
    )
    def test_a_rectangle_in_any_spelling(self, path: str) -> None:
        shape = svg(path)
        assert_fitted(shape)
        assert sides(shape) == (1.0, 0.5)
        assert shape.area == pytest.approx(0.5)
        assert len(shape.rings) == 1

    def test_a_rectangle_has_four_vertices_in_the_order_of_the_path(self) -> None:
        (ring,) = svg("M10 10h4v2h-4z").rings
        assert ring.tolist() == [[-0.5, -0.25], [0.5, -0.25], [0.5, 0.25], [-0.5, 0.25]]

    @pytest.mark.parametrize("path", ["M-3 0 A 3 3 0 0 1 3 0 A 3 3 0 0 1 -3 0 Z", "M0 0a3 3 0 1 0 6 0 3 3 0 10-6 0z"])
    def test_arcs_make_a_circle(self, path: str) -> None:
        shape = svg(path)
        assert_fitted(shape)
        assert sides(shape) == pytest.approx((1, 1), abs=1e-3)
        assert shape.area == pytest.approx(math.pi / 4, rel=2e-3)

    def test_sub_paths_are_rings_and_make_holes(self) -> None:
        shape = svg("M0 0h8v8h-8z m2 2h4v4h-4z")
        assert len(shape.rings) == 2
        assert shape.area == pytest.approx(1 - 0.25)

    def test_a_quadratic_curve_encloses_what_calculus_says(self) -> None:
        shape = svg("M0 0 Q 1 2 2 0 Z")  # a parabola of height 1 over a base of 2: area 4 / 3
        assert sides(shape) == (1.0, 0.5)
        assert shape.area == pytest.approx(4 / 3 / 4, rel=5e-3)

    @given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
    def test_size_and_place_of_the_path_do_not_matter(self, size: float, place: float) -> None:
        numbers = np.array([0, 0, 4, 0, 4, 3, 1, 5]) * size + place
        moved = svg("M" + " ".join(format(number, ".17g") for number in numbers)).rings[0]
        assert moved == pytest.approx(svg("M 0 0 4 0 4 3 1 5").rings[0], abs=2e-6)


class TestText:
    @pytest.mark.parametrize(("text", "rings"), [("l", 1), ("i", 2), ("O", 2), ("8", 3), ("%", 5), ("AB", 5), ("é", 3)])
    def test_a_glyph_has_the_rings_that_one_sees(self, text: str, rings: int) -> None:
        shape = outline(rings_of_text(text))
        assert len(shape.rings) == rings
        assert_fitted(shape)
        assert 0 < shape.area < 1

    def test_the_hole_is_not_filled(self) -> None:
        shape = outline(rings_of_text("O"))
        whole = max(Outline((ring,)).area for ring in shape.rings)
        assert shape.area < 0.7 * whole

    def test_text_stands_upright_and_runs_to_the_right(self) -> None:
        ring = max(rings_of_text("L"), key=len)
        foot, stem = ring[ring[:, 0] > 0.2], ring[ring[:, 1] < 0]
        assert (foot[:, 1] > 0.3).all()  # y points down
        assert (stem[:, 0] < 0).all()
        dot = min(rings_of_text("l."), key=lambda ring: np.ptp(ring[:, 1]))
        assert (dot[:, 0] > 0).all()
        assert (dot[:, 1] > 0).all()

    @pytest.mark.parametrize("text", ["𝟘", "⚙", "◔"])
    def test_a_glyph_with_a_ring_of_control_points_only(self, text: str) -> None:
        """TrueType leaves out the points on the curve of such a ring; a gear's hole is one, and round."""
        shape = outline(rings_of_text(text))
        assert_fitted(shape)
        assert 0 < shape.area < 1

    def test_the_gear_has_a_round_hole(self) -> None:
        _, *circles = sorted(rings_of_text("⚙"), key=len, reverse=True)
        assert len(circles) == 2
        for circle in circles:
            radius = np.hypot(*(circle - (circle.min(axis=0) + circle.max(axis=0)) / 2).T)
            assert radius == pytest.approx(radius.mean(), rel=0.02)


def drawn(tmp_path: Path, picture: Image.Image, suffix: str = ".png") -> Outline:
    """The outline of a picture that has been saved as a file."""
    picture.save(tmp_path / f"mask{suffix}")
    return outline(rings_of_mask(tmp_path / f"mask{suffix}"))


def canvas(mode: str = "L", size: tuple[int, int] = (80, 60), background: object = 0) -> Image.Image:
    return Image.new(mode, size, background)  # type: ignore[arg-type]


class TestMask:
    BOX = (11, 15, 50, 34)  # 40 × 20 pixels, both ends included

    def rectangle(self, mode: str, light: object, background: object = 0) -> Image.Image:
        picture = canvas(mode, background=background)
        ImageDraw.Draw(picture).rectangle(self.BOX, fill=light)  # type: ignore[arg-type]
        return picture

    def assert_rectangle(self, shape: Outline) -> None:
        assert_fitted(shape)
        assert len(shape.rings) == 1
        assert sides(shape) == (1.0, 0.5)
        assert shape.area == pytest.approx(0.5, abs=0.001)  # contours cut the corners of pixels

    @pytest.mark.parametrize(
        ("mode", "light", "suffix"),
        [
            ("L", 255, ".png"),
            ("L", 255, ".pgm"),
            ("1", 1, ".png"),
            ("RGB", (255, 255, 255), ".png"),
            ("I;16", 65535, ".png"),
            ("I", 65535, ".pgm"),
            ("RGBA", (255, 255, 255, 255), ".png"),
            ("LA", (255, 255), ".png"),
        ],
    )
    def test_a_rectangle_in_any_kind_of_picture(self, mode: str, light: object, suffix: str, tmp_path: Path) -> None:
        self.assert_rectangle(drawn(tmp_path, self.rectangle(mode, light), suffix))

    def test_a_palette(self, tmp_path: Path) -> None:
        picture = self.rectangle("P", 1)
        picture.putpalette([0, 0, 0, 255, 255, 255])
        self.assert_rectangle(drawn(tmp_path, picture))

    def test_the_file_really_has_sixteen_bits(self, tmp_path: Path) -> None:
        """Half of 65535 is the border, not half of 255, and these two lie at the same distance from it."""
        picture = self.rectangle("I;16", 45_535, background=20_000)
        self.assert_rectangle(drawn(tmp_path, picture))
        with Image.open(tmp_path / "mask.png") as saved:
            assert saved.mode == "I;16"

    def test_what_is_transparent_is_outside(self, tmp_path: Path) -> None:
        self.assert_rectangle(drawn(tmp_path, self.rectangle("RGBA", (255, 255, 255, 255), (255, 255, 255, 0))))
        self.assert_rectangle(drawn(tmp_path, self.rectangle("LA", (255, 255), (255, 0))))

    def test_a_transparent_colour_is_outside(self, tmp_path: Path) -> None:
        for mode, light, other in (("L", 255, 200), ("I;16", 65535, 50_000)):
            self.rectangle(mode, light, background=other).save(tmp_path / "mask.png", transparency=other)
            self.assert_rectangle(outline(rings_of_mask(tmp_path / "mask.png")))

    def test_a_disc(self, tmp_path: Path) -> None:
        picture = canvas(size=(200, 200))
        ImageDraw.Draw(picture).ellipse((30, 40, 149, 159), fill=255)
        shape = drawn(tmp_path, picture)
        assert_fitted(shape)
        assert sides(shape) == (1.0, 1.0)
        assert shape.area == pytest.approx(math.pi / 4, rel=0.01)

    def test_a_hole_and_an_island(self, tmp_path: Path) -> None:
        picture = canvas(size=(100, 100))
        pen = ImageDraw.Draw(picture)
        for inset, light in ((10, 255), (20, 0), (40, 255)):
            pen.rectangle((inset, inset, 99 - inset, 99 - inset), fill=light)
        shape = drawn(tmp_path, picture)
        assert len(shape.rings) == 3
        assert shape.area == pytest.approx((80**2 - 60**2 + 20**2) / 80**2, abs=0.001)

    def test_a_shape_may_touch_the_edge_of_the_picture(self, tmp_path: Path) -> None:
        shape = drawn(tmp_path, canvas(background=255))
        assert sides(shape) == (1.0, 0.75)
        assert shape.area == pytest.approx(0.75, abs=0.001)

    def test_the_border_lies_where_half_of_the_light_is(self, tmp_path: Path) -> None:
        ramp = canvas(size=(256, 100))
        ramp.putdata([x for _ in range(100) for x in range(256)])
        width, height = sides(drawn(tmp_path, ramp))
        assert width / height == pytest.approx(128 / 100, rel=0.01)

    def test_it_is_not_mirrored(self, tmp_path: Path) -> None:
        picture = canvas(size=(90, 90))
        ImageDraw.Draw(picture).polygon([(10, 10), (80, 45), (10, 80)], fill=255)  # points right, as the triangle does
        (ring,) = drawn(tmp_path, picture).rings
        assert ring[ring[:, 0].argmax(), 1] == pytest.approx(0, abs=0.02)
        assert np.ptp(ring[ring[:, 0] < -0.45, 1]) > 0.9

    def test_a_single_pixel_is_enough(self, tmp_path: Path) -> None:
        picture = canvas(size=(3, 3))
        picture.putpixel((1, 1), 255)
        assert_fitted(drawn(tmp_path, picture))

    def test_a_jpeg(self, tmp_path: Path) -> None:
        """Its edges are blurred by a pixel or so."""
        shape = drawn(tmp_path, self.rectangle("RGB", (255, 255, 255)), ".jpg")
        assert_fitted(shape)
        assert shape.area == pytest.approx(0.5, abs=0.02)

    @pytest.mark.parametrize("ink", [(0, 0, 0, 255), (255, 255, 255, 255), (90, 200, 10, 255)])
    def test_an_icon_on_transparency(self, ink: tuple[int, ...], tmp_path: Path) -> None:
        picture = self.rectangle("RGBA", ink, (255, 255, 255, 0))
        picture.save(tmp_path / "icon.png")
        self.assert_rectangle(outline(rings_of_mask(tmp_path / "icon.png", alpha=True)))

    @pytest.mark.parametrize(("mode", "dark", "light"), [("L", 0, 255), ("I;16", 0, 65535), ("LA", (0, 255), (9, 0))])
    def test_what_is_dark_may_be_inside(self, mode: str, dark: object, light: object, tmp_path: Path) -> None:
        """What is transparent is outside in any case."""
        self.rectangle(mode, dark, light).save(tmp_path / "dark.png")
        self.assert_rectangle(outline(rings_of_mask(tmp_path / "dark.png", invert=True)))

    def test_a_hole_in_what_is_opaque(self, tmp_path: Path) -> None:
        self.rectangle("LA", (9, 0), (9, 255)).save(tmp_path / "hole.png")
        self.assert_rectangle(outline(rings_of_mask(tmp_path / "hole.png", alpha=True, invert=True)))

    def test_what_is_nowhere_inside_is_explained(self, tmp_path: Path) -> None:
        self.rectangle("LA", (0, 255), (0, 0)).save(tmp_path / "black.png")
        with pytest.raises(ValueError, match=r"has no light pixel.*alpha: true takes what is opaque"):
            rings_of_mask(tmp_path / "black.png")
        canvas().save(tmp_path / "solid.png")
        with pytest.raises(ValueError, match="has no transparent pixel"):
            rings_of_mask(tmp_path / "solid.png", alpha=True)
        canvas(background=255).save(tmp_path / "light.png")
        with pytest.raises(ValueError, match="has no dark pixel"):
            rings_of_mask(tmp_path / "light.png", invert=True)


def read_svg(tmp_path: Path, inner: str, before: str = "") -> Outline:
    file = tmp_path / "drawing.svg"
    file.write_text(f'{before}<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 90">{inner}</svg>', "utf-8")
    return outline(rings_of_svg_file(file))


class TestSvgFile:
    """Sides and areas of the fitted outlines, by hand."""

    FORMS: ClassVar = {
        '<rect x="3" y="7" width="40" height="20"/>': (1.0, 0.5, 0.5),
        '<rect width="40px" height="20px" rx="5"/>': (1.0, 0.5, (800 - (4 - math.pi) * 25) / 1600),
        '<circle cx="5" cy="9" r="0.004"/>': (1.0, 1.0, math.pi / 4),
        '<ellipse rx="8" ry="2"/>': (1.0, 0.25, math.pi / 16),
        '<polygon points="0,0 8,0 8,4 0,4"/>': (1.0, 0.5, 0.5),
        '<polyline points="0 0 8 0 8 8"/>': (1.0, 1.0, 0.5),
        '<path d="M0 0h8v8h-8z M2 2v4h4v-4z"/>': (1.0, 1.0, 0.75),
        '<g transform="translate(3 4) scale(2,1)"><rect width="4" height="2"/></g>': (1.0, 0.25, 0.25),
        '<rect transform="rotate(90)" width="4" height="2"/>': (0.5, 1.0, 0.5),
        '<g transform="rotate(45, 9, 9)"><rect width="4" height="4"/></g>': (1.0, 1.0, 0.5),
        '<rect transform="skewX(45)" width="4" height="4"/>': (1.0, 0.5, 0.25),
        '<rect transform="skewY(45)" width="4" height="4"/>': (0.5, 1.0, 0.25),
        '<g transform="matrix(0 2 -1 0 7 7)"><rect width="4" height="2"/></g>': (0.25, 1.0, 0.25),
        '<rect width="4" height="4"/><rect x="8" width="4" height="4"/>': (1.0, 1 / 3, 2 / 9),
        '<defs><rect width="99" height="1"/></defs><rect width="4" height="4"/>': (1.0, 1.0, 1.0),
        '<g fill="none"><rect width="99" height="1"/><rect fill="red" width="4" height="4"/></g>': (1.0, 1.0, 1.0),
        '<g style="display:none"><rect width="9" height="1"/></g><rect width="4" height="4"/>': (1.0, 1.0, 1.0),
        '<rect style="stroke:red; fill : none" width="9" height="1"/><rect width="4" height="4"/>': (1.0, 1.0, 1.0),
    }

    @pytest.mark.parametrize("inner", FORMS)
    def test_what_is_filled_is_taken(self, inner: str, tmp_path: Path) -> None:
        shape = read_svg(tmp_path, inner)
        width, height, area = self.FORMS[inner]
        assert_fitted(shape)
        assert sides(shape) == pytest.approx((width, height), abs=1e-3)
        assert shape.area == pytest.approx(area, rel=3e-3)

    def test_transformations_are_those_of_the_matrix_that_they_make(self, tmp_path: Path) -> None:
        path = '<path transform="{}" d="M 0 0 L 9 1 C 8 4 5 2 3 7 Z"/>'
        one, other = (
            read_svg(tmp_path, path.format(written)).rings[0]
            for written in ("translate(5,-1), rotate(30) scale(2 3)skewX(20)", self.matrix(5, -1, 30, 2, 3, 20))
        )
        np.testing.assert_allclose(one, other, atol=2e-6)

    @staticmethod
    def matrix(x: float, y: float, turn: float, a: float, b: float, slant: float) -> str:
        cosine, sine = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        linear = np.array([[cosine, -sine], [sine, cosine]]) @ np.diag([a, b])
        linear = linear @ [[1, math.tan(math.radians(slant))], [0, 1]]
        return f"matrix({' '.join(map(str, [*linear.T.ravel(), x, y]))})"

    def test_a_file_of_another_program(self, tmp_path: Path) -> None:
        """With a document type, groups, clip paths, styles and a namespace for links."""
        figure = Figure(figsize=(3, 3))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.add_patch(Wedge((0.5, 0.5), 0.4, 0, 270))
        figure.savefig(tmp_path / "wedge.svg", transparent=True)
        assert "<!DOCTYPE" in (tmp_path / "wedge.svg").read_text()
        shape = outline(rings_of_svg_file(tmp_path / "wedge.svg"))
        assert_fitted(shape)
        assert shape.area == pytest.approx(0.75 * math.pi / 4, rel=3e-3)
        assert not (np.concatenate(shape.rings) > 0.1).all(axis=1).any()  # the quarter that is missing is down right

    WRONG: ClassVar = {
        "<path d='M 0 0'": "is not an SVG file: not well-formed",
        "<g/>": "has no filled shape",
        '<rect fill="none" width="4" height="4"/>': "has no filled shape",
        '<rect width="50%" height="4"/>': "has '50%' where a number belongs",
        '<rect transform="turn(4)" width="4" height="4"/>': "has the transform 'turn(4)'; allowed: matrix",
        '<rect transform="rotate 4" width="4" height="4"/>': "has the transform 'rotate 4'; allowed: matrix",
        '<path d="M 0 0 L oops"/>': "is not an SVG path: it has the character 'o'",
        '<path d="M 0 0 L 1e300 0 L 4 4 z"/>': "has a coordinate that is too large",
        '<rect width="nan" height="4"/>': "is not an SVG path: it has the character 'n'",
        '<path d="M 0 0 L 1 0"/>': "encloses no area",
        f'<path d="M 0 0 {"L 1 2 L 3 5 " * 90_000}"/>': "has paths that are too long; allowed: up to",
    }

    @pytest.mark.parametrize("inner", WRONG, ids=lambda inner: inner[:40])
    def test_mistakes_are_explained(self, inner: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=re.escape(self.WRONG[inner])):
            read_svg(tmp_path, inner)

    def test_entities_are_refused(self, tmp_path: Path) -> None:
        """A few lines of them can stand for gigabytes, or for a file of yours."""
        rect = '<rect width="&a;" height="4"/>'
        for entity in ('a "&b;&b;&b;"', 'a SYSTEM "file:///etc/passwd"', '% a "4"'):
            with pytest.raises(ValueError, match="declares an entity"):
                read_svg(tmp_path, rect, f"<!DOCTYPE svg [<!ENTITY {entity}>]>")

    def test_a_file_that_is_too_large_or_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="there is no file"):
            rings_of_svg_file(tmp_path / "none.svg")
        with open(tmp_path / "large.svg", "wb") as file:
            file.truncate(2**22 + 1)
        with pytest.raises(ValueError, match="at most 4194304 are allowed"):
            rings_of_svg_file(tmp_path / "large.svg")
