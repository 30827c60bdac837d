"""Screenshots: copied to where they stay, compared by pixels; nothing else is ever taken (S3-8)."""

import base64
import io
import json
import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from holdfast.features.uat.jobs import picture_program
from holdfast.features.uat.report import page
from tests.features.uat.kit import SHOT, Lab
from tests.features.uat.pictures import MAGIC, chunk, png
from tests.features.uat.policy.test_derive import begin


def shoot(lab: Lab, path: str) -> None:
    lab.tool(SHOT, f"### Result\n- [Screenshot of viewport]({path})", filename=path)
    lab.work()


def folder(lab: Lab) -> Path:
    return lab.project / "uat" / "screenshots" / lab.run["id"]


def test_a_screenshot_is_kept_under_the_seeds_name(lab: Lab) -> None:
    begin(lab)
    (lab.project / ".playwright-mcp").mkdir()
    (lab.project / ".playwright-mcp" / "page 1.png").write_bytes(png())
    shoot(lab, ".playwright-mcp/page 1.png")
    (shot,) = lab.document["artifacts"]["screenshots"]
    run = lab.run["id"]
    assert shot["name"] == f"{run}-login-flow-step1-navigate-143022"
    assert Path(shot["path"]) == folder(lab) / f"{shot['name']}.png"
    assert Path(shot["path"]).read_bytes() == png()
    assert (shot["size"], shot["stepNumber"], shot["action"], shot["success"]) == (len(png()), 1, "navigate", True)
    os.remove(lab.project / ".playwright-mcp" / "page 1.png")
    assert Path(shot["path"]).exists(), "it is a copy"


def test_several_in_one_second_are_told_apart(lab: Lab) -> None:
    begin(lab)
    for n in range(3):
        (lab.project / f"{n}.png").write_bytes(png(colour=(n, n, n)))
        shoot(lab, f"{n}.png")
        lab.now -= 100
    names = [s["name"] for s in lab.document["artifacts"]["screenshots"]]
    assert len(set(names)) == 3
    assert names[1].endswith("-2")


def test_the_seeds_own_tool_names_its_file_in_words(lab: Lab) -> None:
    begin(lab)
    (lab.project / "login.png").write_bytes(png())
    lab.tool("mcp__playwright__playwright_screenshot", f"Screenshot saved to: {lab.project}/login.png", name="login")
    lab.work()
    assert len(lab.document["artifacts"]["screenshots"]) == 1


@pytest.mark.parametrize(
    "bad", ["gone.png", "/etc/passwd.png", "../outside.png", "secret.png", "link.png", "pipe.png", "huge.png"]
)
def test_what_is_no_picture_of_the_project_is_refused_and_the_run_goes_on(lab: Lab, bad: str) -> None:
    begin(lab)
    (lab.project.parent / "outside.png").write_bytes(png())
    (lab.project / "secret.png").write_text("AWS_SECRET=…")
    (lab.project / "link.png").symlink_to(lab.project.parent / "outside.png")
    os.mkfifo(lab.project / "pipe.png")
    with (lab.project / "huge.png").open("wb") as file:
        file.write(MAGIC)
        file.truncate(30 << 20)
    shoot(lab, bad)
    assert lab.document["artifacts"]["screenshots"] == []
    (warning,) = [w for w in lab.document["execution"]["warnings"] if w["type"] == "screenshot"]
    assert bad in warning["message"]
    assert not folder(lab).exists() or list(folder(lab).iterdir()) == []
    assert lab.run["status"] == "active"


def test_a_folder_the_person_allowed_is_believed(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(png())
    config = Path(os.environ["HOME"]) / ".config" / "holdfast"
    config.mkdir(parents=True)
    (config / "settings.yaml").write_text(f"uat:\n  screenshot_folders: [{tmp_path / 'pictures'}]\n")
    begin(lab)
    shoot(lab, str(tmp_path / "pictures" / "a.png"))
    assert len(lab.document["artifacts"]["screenshots"]) == 1


def test_a_project_cannot_allow_folders_by_itself(lab: Lab, tmp_path: Path) -> None:
    """P9."""
    (tmp_path / "a.png").write_bytes(png())
    (lab.project / ".holdfast").mkdir()
    (lab.project / ".holdfast" / "settings.yaml").write_text("uat:\n  screenshot_folders: [/]\n  root: /tmp\n")
    begin(lab)
    shoot(lab, str(tmp_path / "a.png"))
    assert lab.document["artifacts"]["screenshots"] == []
    assert lab.run["root"] == f"{lab.project}/uat"


def test_a_small_picture_in_the_answer_itself_is_taken(lab: Lab) -> None:
    begin(lab)
    image = {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
    text = {"type": "text", "text": "### Result\n- [Screenshot](/tmp/elsewhere.png)"}
    lab.before(SHOT, "s")
    lab.hook("PostToolUse", tool_name=SHOT, tool_input={}, tool_use_id="s", tool_response=[text, image])
    lab.work()
    assert len(lab.document["artifacts"]["screenshots"]) == 1


def test_a_tool_that_takes_no_pictures_names_none(lab: Lab) -> None:
    """A page may talk of any file."""
    begin(lab)
    (lab.project / "a.png").write_bytes(png())
    lab.tool("mcp__playwright__browser_snapshot", "the page says: [see](a.png)")
    lab.work()
    assert lab.document["artifacts"]["screenshots"] == []


def test_console_lines_in_playwrights_log_file_are_read(lab: Lab) -> None:
    begin(lab)
    log = lab.project / ".playwright-mcp"
    log.mkdir()
    (log / "console.log").write_text(
        "[  1ms] [ERROR] old @ http://x:0\n[ 33ms] [ERROR] boom @ http://x:0\n[ 63ms] [VERBOSE] [DOM] x @ http://x:0\n"
    )
    lab.tool("mcp__playwright__browser_click", "### Events\n- New console entries: .playwright-mcp/console.log#L2-L3")
    lab.work()
    assert [w["message"] for w in lab.document["execution"]["warnings"]] == ["boom @ http://x:0"]


def compared(before: bytes, after: bytes) -> dict[str, object]:
    return picture_program.compare_pictures(before, after)[0]


def test_one_pixel_is_one_pixel() -> None:
    told, drawn = picture_program.compare_pictures(png(10, 10), png(10, 10, filters=5, dot=True))
    assert told == {"share": 0.01, "note": "1 pixel"}
    assert drawn is not None
    assert tuple(drawn[9, 9]) == picture_program.RED


def test_equal_pictures_are_equal_however_they_are_packed() -> None:
    assert compared(png(filters=0), png(filters=4))["share"] == 0


def test_what_no_eye_sees_is_no_difference() -> None:
    assert compared(png(colour=(10, 10, 10)), png(colour=(14, 10, 10)))["share"] == 0
    assert compared(png(colour=(10, 10, 10)), png(colour=(60, 10, 10)))["share"] == 1


def test_a_page_that_grew_differs_where_it_grew() -> None:
    assert compared(png(8, 4), png(8, 5)) == {"share": 0.2, "note": "8×4 became 8×5, 8 pixels"}


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    made = io.BytesIO()
    image.save(made, kind, **options)
    return made.getvalue()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_kind_of_png_is_read(mode: str) -> None:
    noise = random.Random(mode)
    for width, height in ((1, 1), (1, 5), (7, 1), (33, 17)):
        image = Image.frombytes("RGB", (width, height), noise.randbytes(width * height * 3))
        image = image.quantize(10) if mode == "P" else image.convert(mode)
        seen = picture_program.open_picture(saved(image, optimize=True))
        assert seen.tobytes() == image.convert("RGBA").tobytes()


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_other_formats_are_read(kind: str) -> None:
    image = Image.new("RGB", (9, 5), (40, 120, 200))
    assert compared(saved(image), saved(image, kind, quality=100))["share"] == 0


def test_a_transparent_colour_of_a_palette_is_transparent() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([0, 1])
    seen = picture_program.open_picture(saved(image, transparency=1))
    assert seen.tolist() == [[[10, 20, 30, 255], [40, 50, 60, 0]]]


def test_of_sixteen_bits_the_upper_eight_count() -> None:
    """Pillow alone would cut each value off at 255, and two different pictures would be equal."""
    greys = struct.pack(">4H", 0x0102, 0x7F00, 0x80FF, 0xFFFF)
    head = struct.pack(">IIBBBBB", 4, 1, 16, 0, 0, 0, 0)
    grey = MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" + greys)) + chunk(b"IEND", b"")
    assert picture_program.open_picture(grey)[0, :, 0].tolist() == [0x01, 0x7F, 0x80, 0xFF]
    colours = struct.pack(">3H", 0x0102, 0x7F00, 0x80FF)
    head = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    colour = MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" + colours)) + chunk(b"IEND", b"")
    assert picture_program.open_picture(colour)[0, 0].tolist() == [0x01, 0x7F, 0x80, 0xFF]


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Of an interlaced picture: first column, first row, and the steps between them."""


def test_an_interlaced_png_is_read() -> None:
    """Pillow writes none: the seven passes are written here, each as a small picture of its own."""
    values = [[(y * 9 + x) % 256 for x in range(9)] for y in range(6)]
    lines = b"".join(
        b"\0" + bytes(values[y][left::across])
        for left, top, across, down in PASSES
        for y in range(top, 6, down)
        if values[y][left::across]
    )
    head = struct.pack(">IIBBBBB", 9, 6, 8, 0, 0, 0, 1)
    data = MAGIC + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    assert picture_program.open_picture(data)[:, :, 0].tolist() == values


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_truncated_picture_is_refused_with_a_sentence(kind: str) -> None:
    noise = Image.frombytes("RGB", (64, 64), random.Random(3).randbytes(64 * 64 * 3))
    whole = saved(noise, kind)
    for size in (len(whole) // 2, 40):
        assert compared(png(), whole[:size]) == {"share": None, "note": picture_program.DAMAGED}


def test_other_formats_that_pillow_knows_are_not_opened() -> None:
    assert compared(png(), saved(Image.new("RGB", (4, 4)), "BMP"))["note"] == picture_program.DAMAGED


@given(st.binary(max_size=300))
def test_any_bytes_are_compared(rubbish: bytes) -> None:
    for data in (rubbish, MAGIC + rubbish, png()[:-20] + rubbish):
        share = compared(png(), data)["share"]
        assert share is None or (isinstance(share, float) and 0 <= share <= 1)


def test_a_picture_that_lies_about_its_size_is_not_opened() -> None:
    """A few bytes that would unpack to 14 GB, with a checksum that is right."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 6, 0, 0, 0))
    bomb = MAGIC + head + chunk(b"IDAT", zlib.compress(bytes(1 << 20))) + chunk(b"IEND", b"")
    assert compared(png(), bomb) == {"share": None, "note": picture_program.TOO_LARGE}
    assert "40 million pixels" in picture_program.TOO_LARGE


def test_thumbnails_are_made_by_the_program_and_what_it_cannot_open_has_none() -> None:
    wide = saved(Image.new("RGB", (960, 90), (200, 100, 50)))
    first, second, third = page.make_thumbnails([wide, b"no picture", b""])
    assert (second, third) == ("", "")
    with Image.open(io.BytesIO(base64.b64decode(first.removeprefix("data:image/png;base64,")))) as small:
        assert (small.format, small.width) == ("PNG", page.THUMBNAIL[0])


def test_the_daemon_does_not_load_pillow() -> None:
    words = [
        sys.executable,
        "-c",
        "import sys, holdfast.app, holdfast.features.uat.report.page; print('PIL' in sys.modules)",
    ]
    assert subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip() == "False"


def test_it_is_a_program_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").write_bytes(png(dot=True))
    words = [
        sys.executable,
        "-I",
        picture_program.__file__,
        "compare",
        *(tmp_path / n for n in ("a.png", "b.png", "c.png")),
    ]
    told = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert told == {"share": round(1 / 32, 6), "note": "1 pixel", "difference": str(tmp_path / "c.png")}
    assert (tmp_path / "c.png").read_bytes().startswith(MAGIC)


def test_a_large_picture_in_the_answer_is_read_from_the_transcript(lab: Lab, tmp_path: Path) -> None:
    """A payload is cut at 256 KB; what was cut out of it is in the file that the agent keeps."""
    noise = base64.b64encode(png() + os.urandom(300_000)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": noise}}
    result = {"type": "tool_result", "tool_use_id": "s", "content": [image]}
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": [result]}}) + "\n")
    begin(lab)
    tool = "mcp__chrome-devtools__take_screenshot"
    lab.before(tool, "s")
    told = {"tool_name": tool, "tool_input": {}, "tool_use_id": "s", "transcript_path": str(transcript)}
    lab.hook("PostToolUse", tool_response=[{"type": "text", "text": "Took a screenshot."}, image], **told)
    lab.work()
    (shot,) = lab.document["artifacts"]["screenshots"]
    assert base64.b64encode(Path(shot["path"]).read_bytes()).decode() == noise
    transcript.unlink()
    lab.before(tool, "t")
    lab.hook("PostToolUse", at=lab.now + 5_000, tool_response=[image], **(told | {"tool_use_id": "t"}))
    lab.work()
    assert "too large to be kept" in lab.document["execution"]["warnings"][-1]["message"]
