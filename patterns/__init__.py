"""Rule files (JSON) that judge commands; no code lives here."""
