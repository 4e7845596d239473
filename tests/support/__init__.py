"""Drivers and doubles that tests share: one driver a kind, none of them a test."""
