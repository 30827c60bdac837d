"""Builds the documentation site into site/ and checks that it asks nobody else for anything. `make docs` runs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
OUTSIDE = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["'](?:https?:)?//[^"']+["'][^>]*>""")
SHIM = re.compile(r"""<script src=["']?https://unpkg\.com/iframe-worker/shim["']?></script>""")
ALLOWED = re.compile(r'rel="(?:canonical|next|prev)"')

STYLE = "assets/holdfast.css"
THEME_NAMES = """
[data-md-color-scheme] {
  --md-default-bg-color: var(--paper); --md-default-fg-color: var(--ink); --md-default-fg-color--light: var(--ink-3);
  --md-primary-fg-color: var(--well); --md-primary-bg-color: var(--ink); --md-primary-bg-color--light: var(--ink-3);
  --md-accent-fg-color: var(--accent); --md-typeset-a-color: var(--accent); --md-code-bg-color: var(--well); --md-code-fg-color: var(--ink);
  --md-text-font-family: var(--sans); --md-code-font-family: var(--mono);
  --md-footer-bg-color: var(--well); --md-footer-bg-color--dark: var(--well);
  --md-footer-fg-color: var(--ink); --md-footer-fg-color--light: var(--ink-3);
}
.md-typeset h1, .md-typeset h2 { color: var(--ink); font-weight: 600; } .md-search__form { background: var(--sheet); }
.md-header { border-bottom: 1px solid var(--line); box-shadow: none; }
"""


def main() -> None:
    env = {**os.environ, "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--clean", "--strict"], cwd=ROOT, env=env, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"the site could not be built:\n{done.stdout}{done.stderr}")
    use_own_worker(SITE)
    use_own_look(SITE)
    if found := outside_requests(SITE):
        sys.exit("the site asks others for something:\n" + "\n".join(found[:10]))
    print(f"{len(list(SITE.rglob('*.html')))} pages in {SITE.name}/: open {SITE.name}/index.html")


def use_own_worker(site: Path) -> None:
    """The theme loads a script from another host so that its search works from a folder; ours is in docs/assets/."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        depth = "../" * (len(page.relative_to(site).parts) - 1)
        page.write_text(SHIM.sub(f'<script src="{depth}assets/file-worker.js"></script>', text))


def use_own_look(site: Path) -> None:
    """The tokens of the dashboard, under the theme's switch between light and dark, and the theme's names for them."""
    tokens = (ROOT / "src/holdfast/core/look/tokens.css").read_text()
    light, _, dark = tokens.partition("@media screen and (prefers-color-scheme: dark)")
    dark = dark.strip().removeprefix("{").removesuffix("}").strip()
    look = light.replace(":root", ':root, [data-md-color-scheme="default"]') + dark.replace(
        ":root", '[data-md-color-scheme="slate"]'
    )
    (site / STYLE).write_text(look + THEME_NAMES)


def outside_requests(site: Path) -> list[str]:
    """Whatever a browser would load from another host as soon as it opens a page."""
    return [
        f"{page.relative_to(site)}: {tag[:160]}"
        for page in sorted(site.rglob("*.html"))
        for tag in OUTSIDE.findall(page.read_text(errors="replace"))
        if not ALLOWED.search(tag)
    ]


if __name__ == "__main__":
    main()
