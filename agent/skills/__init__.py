"""Skills: instructions with scripts and references, in the open SKILL.md format, loaded on demand."""
