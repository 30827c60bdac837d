"""Safe file names for ids and scenario names."""

import hashlib
import re

# Characters; file systems take 255 bytes, and endings are added.
LONGEST = 120
# Everything but ASCII letters, digits, dot, dash and underscore; and names made only of these.
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def safe_file_name(name: str, limit: int = LONGEST) -> str:
    """The name itself where it is harmless, else a readable form with a hash of the whole."""
    if len(name) <= limit and _PLAIN.fullmatch(name) and ".." not in name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    # Thirteen for the dash and the hash.
    readable = _UNSAFE.sub("_", name)[: limit - 13].strip("._-").replace("..", "_")
    return f"{readable}-{digest}" if readable else digest


def slugify_text(text: str, limit: int = 40) -> str:
    """For the inside of a file name: lower case, words joined by a dash."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()[: limit * 2])[:limit].strip("-") or "step"
