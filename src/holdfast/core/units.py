"""Quantities as people read them."""


def format_bytes(count: int) -> str:
    number = float(count)
    for unit in ("B", "KB", "MB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GB"


def format_count(count: int) -> str:
    """1234 as 1.2k."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def format_duration(ms: int) -> str:
    """Seconds below two minutes, else whole minutes."""
    return f"{ms // 1000} s" if ms < 120_000 else f"{ms // 60_000} min"
