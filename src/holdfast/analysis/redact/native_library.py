"""Loads the native library and manages the memory it writes to."""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load_library() -> ctypes.CDLL | None:
    """The library built for this machine with the package, if any."""
    try:
        library = ctypes.CDLL(str(Path(__file__).with_name("libanchors.so")))
        find = library.holdfast_find_anchors
        library.holdfast_make_tables  # noqa: B018 (a library of an older build lacks it)
    except (OSError, AttributeError):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    find.restype = size
    find.argtypes = (pointer, ctypes.c_char_p, size, pointer, size, pointer, pointer, pointer)
    text = ctypes.c_char_p
    for name, arguments in (
        ("holdfast_decode_view", (text, size, ctypes.c_int, pointer, pointer, pointer)),
        ("holdfast_strip_colours", (text, size, pointer, pointer, pointer, pointer)),
        ("holdfast_flatten_json", (text, size, pointer, pointer, pointer, pointer)),
        ("holdfast_find_word", (text, size, size, text, size)),
        ("holdfast_make_tables", (pointer,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = size, arguments
    return library


FindWord = Callable[[bytes, int], int]
"""(text, start) → the position of the word, or the text's length."""


@cache
def word_search(word: bytes) -> FindWord | None:
    """A search for a lowercase word in any mix of case. In a long text ten times faster than `find` and patterns; None
    without the library."""
    library = load_library()
    if library is None:
        return None
    find, length = library.holdfast_find_word, len(word)
    return lambda text, at: int(find(text, len(text), at, word, length))


class _Buffers(threading.local):
    """Buffers for the library, kept between calls because fresh memory costs more than the work done in it."""

    def __init__(self) -> None:
        self.count = ctypes.c_size_t()
        self.count_ref = ctypes.byref(self.count)
        self.other = ctypes.c_size_t()
        self.other_ref = ctypes.byref(self.other)
        self._make(1 << 16, 1 << 16)

    def _make(self, size: int, numbers: int) -> None:
        self._text = ctypes.create_string_buffer(size)
        self._numbers = (ctypes.c_uint32 * numbers)()

    def of_size(self, size: int, numbers: int) -> tuple[Any, Any]:
        if size > len(self._text) or numbers > len(self._numbers):
            # One very large text must not occupy its memory for the life of the thread.
            if size > _MOST_KEPT:
                return ctypes.create_string_buffer(size), (ctypes.c_uint32 * numbers)()
            self._make(max(size, len(self._text)), max(numbers, len(self._numbers)))
        return self._text, self._numbers

    def numbers(self, offsets: Any, width: int) -> memoryview:
        """A copy of what the library wrote: the next call overwrites it."""
        return memoryview(ctypes.string_at(offsets, 4 * width * self.count.value)).cast("I")


_MOST_KEPT = 1 << 20
BUFFERS = _Buffers()
