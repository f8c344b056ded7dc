"""The posts table: collected, selected, joined into documents."""
