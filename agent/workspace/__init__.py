"""The context of a request: project notes, attachments, input files, history."""
