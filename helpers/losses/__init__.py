"""(embeddings, labels) to a scalar."""
