"""Statements carried out on a catalogue: what each changes, starts or writes. Start at `engine`."""
