"""Run the notebooks and show what they found.

This room reads the notebooks and the folder ``params/<run>/``, and writes executed notebooks and
one HTML page, the report of the run. It never computes a result: the notebooks do, with all other
rooms.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {
        "..core.artifacts": ["fingerprint_of", "make_folder", "read_json"],
        "..core.messages": ["escape_html"],
        "..core.names": ["describe", "distinct", "label", "name_of", "short_name", "system_of"],
        "..core.parameters": ["file_name", "memory_size", "row_title", "start", "unknown"],
        "..core.paths": ["NOTEBOOKS", "ROOT", "Run", "resolve", "slug"],
        "..core.results": [
            "COUNTS",
            "INTERVAL",
            "KEY",
            "format_interval",
            "names_of_models",
            "read_results",
            "record",
            "wide_results",
        ],
        ".guests": ["describe_overlap", "open_stores"],
        ".stages": ["ensure", "read_stages"],
        ".summary": ["difference_table", "folded", "readable", "styled"],
    },
)
