"""Speed and size of the real program, measured against the limits it promises."""
