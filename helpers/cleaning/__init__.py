"""What one post is cleaned of: markup, quotes, signatures, names, near copies."""
