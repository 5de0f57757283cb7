"""The Landlock sandbox, used where bubblewrap is missing."""
