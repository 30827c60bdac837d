"""The documents of memory and how events change them."""
