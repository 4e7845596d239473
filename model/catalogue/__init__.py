"""Requirements: their type, and a catalogue for each protocol.

Requirements are data. Judges, reports and documents read them; no code runs a protocol from them.
"""
