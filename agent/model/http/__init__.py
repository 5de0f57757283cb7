"""HTTP to model servers: one small client for the usual case, httpx for the rest."""
