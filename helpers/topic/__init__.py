"""How much of an embedding is topic, and how to take it out."""
