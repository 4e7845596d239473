"""What a requirement is, and a folder of requirements for each protocol.

Requirements are data. Judges, reports and documents read them; no code runs a protocol from them.
"""
