"""`make pictures`: the dashboard with the demo's day. Those that the docs' texts show go to docs/pictures, every page at three
widths in both themes to docs/pictures/every-size, which docs/screens.md lists. `… pictures.py gates now` makes some."""

import base64
import io
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.made_up_history import write_history  # noqa: E402

from tests.browser.harness import CHROMIUM, FLAGS, Demo, missing, start_demo  # noqa: E402
from tests.browser.places import SHOWN, address  # noqa: E402
from tests.kit import Agent, World, git, wait_until  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
EVERY_SIZE = FOLDER / "every-size"
SCREENS_PAGE = ROOT / "docs" / "screens.md"
WIDE = (1280, 800)
SIZES = ((400, 850), (1280, 800), (2560, 1300))
MOST_BYTES = 6_000_000


@dataclass(frozen=True)
class Picture:
    name: str
    path: str
    dark: bool = False
    size: tuple[int, int] = WIDE
    click: str = ""
    """A row to click first, by its words."""
    folder: Path = FOLDER


def pictures(demo: Demo) -> Iterator[Picture]:
    """Those that the docs show."""
    shop = demo.project("harbor-shop")
    yield Picture("now", "/")
    yield Picture("now-dark", "/", dark=True)
    yield Picture("now-narrow", "/", size=(400, 800))
    yield Picture("sessions", "/sessions")
    yield Picture("session", address("session", demo), click="checkout.py")
    yield Picture("session-dark", address("session", demo), dark=True)
    yield Picture("gates", "/gates")
    yield Picture("gates-dark", "/gates", dark=True)
    yield Picture("tasks", "/tasks")
    yield Picture("state", f"/state?project={shop}&step=12")
    yield Picture("uat", address("run", demo).partition("?")[0])
    yield Picture("uat-compare", address("run", demo))
    yield Picture("search", address("search", demo))
    yield Picture("memory", "/memory")
    yield Picture("activity", "/activity")
    yield Picture("cost", "/cost")
    yield Picture("health", "/health")


def every_size(demo: Demo) -> Iterator[Picture]:
    EVERY_SIZE.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        for size in SIZES:
            for dark in (False, True):
                theme = "dark" if dark else "light"
                yield Picture(f"{name}-{size[0]}-{theme}", address(name, demo), dark, size, folder=EVERY_SIZE)


def after_an_import() -> Iterator[Picture]:
    """On a machine where nothing but `holdfast data import` happened yet."""
    yield Picture("imported-now", "/")
    yield Picture("imported-activity", "/activity")


def after_a_loss() -> Iterator[Picture]:
    """Of a session that threw uncommitted work away."""
    yield Picture("undo", "/session/tidy-up")
    yield Picture("undo-now", "/")


@dataclass
class Played:
    """A machine of its own."""

    world: World

    @property
    def link(self) -> str:
        return str(self.world.json("dashboard", "--no-open")["link"])

    @property
    def address(self) -> str:
        parts = urlsplit(self.link)
        return f"{parts.scheme}://{parts.netloc}"

    def end(self) -> None:
        self.world.cli("dashboard", "--stop", code=None)
        self.world.close()


def take_imported(browser: Any, folder: Path) -> list[bool]:
    wanted = [one for one in after_an_import() if _wanted(one)]
    if not wanted:
        return []
    imported = Played(World(folder))
    try:
        # Until today: the last of them were this morning.
        write_history(imported.world.home, folder / "work", datetime.now(UTC) + timedelta(days=1))
        imported.world.cli("import", "claude-code")
        if seen := imported.world.view("sessions.unrecorded"):
            raise SystemExit(f"make pictures: other agents run on this machine and would be shown: {len(seen)}")
        return [_take(browser, imported, one) for one in wanted]
    finally:
        imported.end()


def take_a_loss(browser: Any, folder: Path) -> list[bool]:
    wanted = [one for one in after_a_loss() if _wanted(one)]
    if not wanted:
        return []
    played = Played(World(folder))
    try:
        _lose_work(played.world)
        return [_take(browser, played, one) for one in wanted]
    finally:
        played.end()


def _lose_work(world: World) -> None:
    shop = world.project / "shop.py"
    shop.write_text("def total(items):\n    return sum(items)\n")
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "add", "-A")
    git(world.project, "commit", "-q", "-m", "shop")
    agent = world.session("tidy-up")
    agent.start()
    agent.prompt("Tidy up the checkout, please")
    _call(world, agent, "printf 'TAX = 7\\n' >> shop.py")
    with shop.open("a") as file:
        file.writelines(f"# by hand, line {number}\n" for number in range(180))
    (world.project / "notes.md").write_text("what is left to do\n" * 34)
    _call(world, agent, "git checkout -q -- . && git clean -fdq")
    agent.stop()
    wait_until(lambda: "lines lost" in world.cli("undo", "--list"), "the loss is in the log")


def _call(world: World, agent: Agent, command: str) -> None:
    call = f"toolu_{len(command)}"
    agent.before("Bash", call=call, command=command)
    subprocess.run(["sh", "-c", command], cwd=world.project, check=True)
    agent.after("Bash", call=call, command=command)


def main() -> None:
    if why := missing():
        raise SystemExit(f"make pictures: {why}")
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        demo = start_demo()
        try:
            listed = [*pictures(demo), *every_size(demo)]
            taken = [_take(browser, demo, one) for one in listed if _wanted(one)]
        finally:
            demo.end()
        with tempfile.TemporaryDirectory() as folder:
            taken += take_imported(browser, Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            taken += take_a_loss(browser, Path(folder))
        browser.close()
    SCREENS_PAGE.write_text(_screens_page())
    whole = sum(path.stat().st_size for path in FOLDER.rglob("*.*"))
    print(f"{sum(taken)} pictures made; {whole / 1e6:.2f} MB in {FOLDER.relative_to(ROOT)}")
    if whole > MOST_BYTES:
        raise SystemExit(f"more than {MOST_BYTES} bytes: leave some out")


def _wanted(picture: Picture) -> bool:
    return not sys.argv[1:] or any(picture.name.startswith(word) for word in sys.argv[1:])


def _take(browser: Any, demo: Demo | Played, picture: Picture) -> bool:
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if picture.dark else "light",
        base_url=demo.address, reduced_motion="reduce",
    )  # fmt: skip
    page = context.new_page()
    page.goto(demo.link)
    page.wait_for_selector("main")
    answer = page.goto(picture.path)
    if answer.status == 200:
        page.wait_for_selector('[data-wire="live"]')
        if picture.click:
            page.get_by_role("link", name="Tools").first.click()
            page.locator("[data-row]", has_text=picture.click).last.click()
        page.wait_for_timeout(400)
        shot = page.screenshot()
        if picture.folder == FOLDER:
            (FOLDER / f"{picture.name}.png").write_bytes(_small(browser, shot))
        else:
            (picture.folder / f"{picture.name}.webp").write_bytes(_to_webp(shot))
    else:
        print(f"{picture.name}: {answer.status}")
    context.close()
    return answer.status == 200


def _screens_page() -> str:
    """The list of all of them, one row a page."""
    widths = [width for width, _ in SIZES]
    cells = [f"{width} {theme}" for width in widths for theme in ("light", "dark")]
    lines = [f"| page | {' | '.join(cells)} |", "|---" * (len(cells) + 1) + "|"]
    for name in SHOWN:
        links = (f"[{cell}](pictures/every-size/{name}-{cell.replace(' ', '-')}.webp)" for cell in cells)
        lines.append(f"| {name} | {' | '.join(links)} |")
    return SCREENS_TEXT + "\n".join(lines) + "\n"


SCREENS_TEXT = """# Every page in pictures

Each page of the dashboard on the day that `holdfast demo` plays, on a phone (400 pixels), a laptop (1280) and a large screen
(2560), in both themes. `make pictures` takes them again.

"""


def _to_webp(png: bytes) -> bytes:
    """Without loss, at a third of a PNG."""
    made = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(made, "WEBP", lossless=True, method=6)
    return made.getvalue()


PIXELS = """async (png) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, image.width, image.height);
  let text = "";
  for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""


def _palette(colours: Any, counts: Any) -> Any:
    """The most frequent ones, and those that are least like any of them: a small green dot stays green."""
    often = np.argsort(-counts)
    chosen = colours[often[:160]]
    others = colours[often[160:]]
    far = _distances(others, chosen).min(1) if len(others) else np.zeros(0)
    for _ in range(min(96, len(others))):
        added = others[far.argmax()]
        chosen = np.append(chosen, added)
        far = np.minimum(far, _distances(others, np.array([added]))[:, 0])
    return chosen


def _distances(one: Any, other: Any) -> Any:
    parts = [np.stack([c >> 16 & 255, c >> 8 & 255, c & 255], 1) for c in (one, other)]
    return ((parts[0][:, None] - parts[1][None]) ** 2).sum(2)


def _small(browser: Any, png: bytes) -> bytes:
    """The same picture with 256 colours: a third of the bytes, and letters stay sharp."""
    page = browser.new_page()
    width, height, packed = page.evaluate(PIXELS, base64.b64encode(png).decode())
    page.close()
    rgb = np.frombuffer(base64.b64decode(packed), np.uint8).reshape(-1, 4)[:, :3].astype(np.int32)
    all_colours, index, counts = np.unique(
        rgb[:, 0] << 16 | rgb[:, 1] << 8 | rgb[:, 2], return_inverse=True, return_counts=True
    )
    colours = _palette(all_colours, counts)
    index = _distances(all_colours, colours).argmin(1).astype(np.uint8)[index]
    lines = np.zeros((height, width + 1), np.uint8)
    lines[:, 1:] = index.reshape(height, width)
    palette = np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], 1).astype(np.uint8).tobytes()
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)), (b"PLTE", palette),
             (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))  # fmt: skip
    sealed = [struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(sealed)


if __name__ == "__main__":
    main()
