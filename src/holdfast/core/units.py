"""Quantities as people read them."""


def format_bytes(count: int) -> str:
    number = float(count)
    for unit in ("B", "KB", "MB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GB"


def format_duration(ms: int) -> str:
    """Seconds below two minutes, else whole minutes."""
    return f"{ms // 1000} s" if ms < 120_000 else f"{ms // 60_000} min"
