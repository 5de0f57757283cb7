"""Where a run works: its folder, the files given to it, and what it is told about them."""
