"""Samples of posts to vectors."""
