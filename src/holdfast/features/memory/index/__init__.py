"""What memory is searched by: the index and what it holds."""
