"""Posts as token ids on disk, and the batches drawn from them."""
