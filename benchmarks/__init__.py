"""Benchmarks of lanam beside its peers; only lanam's public API is used."""
