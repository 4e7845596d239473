"""The output of `fencepost explore push` and `fencepost prove push`. No search and no proof belongs here."""
