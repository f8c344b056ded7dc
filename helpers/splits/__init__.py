"""Who may be compared with whom."""
