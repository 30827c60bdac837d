"""Run as a program: all sample texts go through the native library from memory that ends where they end. A library that
reads a byte outside of a text ends this process."""

import ctypes
from collections.abc import Callable
from typing import Any

from holdfast.analysis.redact import anchors, decoded_forms
from holdfast.analysis.redact.scanner import Scanner
from tests.analysis.redact.test_native import sample_texts

PAGE, PAGES = 4096, 1024
READ_WRITE, PRIVATE_ANONYMOUS = 3, 0x22
TEXT_ARGUMENT = {"holdfast_find_anchors": 1}
"""Of the other functions it is the first."""
WITHOUT_TEXT = ("holdfast_make_tables",)


class GuardedLibrary:
    """The library, with each text put behind a page that cannot be read, and before one."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype, system.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
        system.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        base = system.mmap(None, PAGE * (PAGES + 2), READ_WRITE, PRIVATE_ANONYMOUS, ctypes.c_size_t(-1).value, 0)
        self._start, self._end = base + PAGE, base + PAGE * (PAGES + 1)
        for page in (base, self._end):
            assert system.mprotect(page, PAGE, 0) == 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        function, place = getattr(self._library, name), TEXT_ARGUMENT.get(name, 0)
        if name in WITHOUT_TEXT:
            return function
        # The address of the text instead of an object that Python makes room around.
        function.argtypes = [
            ctypes.c_void_p if number == place else one for number, one in enumerate(function.argtypes)
        ]

        def call(*arguments: Any) -> int:
            text = arguments[place]
            assert len(text) <= PAGE * PAGES
            sizes = []
            for address in (self._end - len(text), self._start):
                ctypes.memmove(address, text, len(text))
                sizes.append(function(*arguments[:place], address, *arguments[place + 1 :]))
            assert sizes[0] == sizes[1], f"{name} depends on what lies around {text!r}"
            return sizes[1]

        return call


def main() -> None:
    library = anchors.load_library()
    assert library is not None
    guarded = GuardedLibrary(library)
    anchors.load_library = decoded_forms.load_library = lambda: guarded  # type: ignore[assignment, attr-defined]
    scanner = Scanner()
    texts = [text for text in sample_texts() if text]
    for text in texts:
        scanner.find(text)
        scanner.find(text[len(text) // 3 :])
        scanner.find(text[: -len(text) // 3] or text)
    print(len(texts), "texts")


if __name__ == "__main__":
    main()
