"""The work: planning, running steps, speaking to models, keeping sessions."""
