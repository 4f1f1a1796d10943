"""Recorded runs: one small JSON file each, beside this module, and the store that reads and writes them."""

from minilab.records.store import Record, load_record, named, of_grid, record_of, save_record

__all__ = ["Record", "load_record", "named", "of_grid", "record_of", "save_record"]
